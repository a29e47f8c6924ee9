"""Mean of the classes' distances less the whole one: most of the noise is common to both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.estimators._design import Index, sums_by
from genbounds.estimators._estimate import Estimate, SampleError, mean_variance, sum_of
from genbounds.samples import Sample
from genbounds.validation import Float


@dataclass(frozen=True)
class Side:
    """One of both samples, as drawn, and the rows of each of its classes.

    Attributes
    ----------
    sample : ndarray of shape (n, d) or Sample
    rows : sequence of ndarray
    """

    sample: NDArray[Any] | Sample
    rows: Sequence[Index]

    @property
    def stratified(self) -> bool:
        """Whether the numbers of rows of the classes were fixed."""
        return isinstance(self.sample, Sample) and self.sample.strata is not None

    def unit_of_rows(self, names: NDArray[Any] | None) -> Index:
        """Return the unit of every row, whose names are sorted; without names it is the row."""
        if names is None or not isinstance(self.sample, Sample):
            return np.arange(len(self.sample))
        return np.searchsorted(names, np.asarray(self.sample.groups))


def mean_less_whole(
    mean: Estimate, whole: Estimate, classes: Sequence[Estimate], shares: Float, *sides: Side
) -> Estimate:
    """Estimate the difference with its error.

    Parameters
    ----------
    mean, whole : Estimate
    classes : sequence of Estimate
        What `mean` is the mean of.
    shares : ndarray of shape (classes,)
        Of the classes among the reference rows.
    sides : Side
        The generated rows, and those of the reference.

    Notes
    -----
    The influence of a row is the one on its class, times the share, less the one on the whole.
    Where the classes of reference rows were drawn too, a row also adds what its class has above
    the mean. What influences do not explain (second order) counts for every class and for the
    whole, which errs on the wide side.
    """
    parts = [one.scaled(share) for one, share in zip(classes, shares, strict=True)]
    fake, real = sides
    none = np.zeros(len(classes))
    above = none if real.stratified else np.array([one.value - mean.value for one in classes])
    sample = _error(whole.sample, [one.sample for one in parts], fake, none)
    reference = _error(whole.reference, [one.reference for one in parts], real, above)
    found = sum_of(mean.value - whole.value, [sample, reference])
    doubts = [one for one in (*mean.warnings, *whole.warnings) if one.severity == "unreliable"]
    return replace(
        mean,
        title="Fréchet distance, mean over classes less the whole",
        value=found.value,
        sample=sample,
        reference=reference,
        # Units that both samples share by name.
        shared_variance=found.stderr**2 - sample.variance - reference.variance,
        missing_rate=mean.missing_rate + whole.missing_rate,
        lower_limit=-np.inf,
        warnings=tuple(dict.fromkeys(doubts)),
        details=(),
    )


def _error(
    whole: SampleError, parts: Sequence[SampleError], side: Side, above: Float
) -> SampleError:
    """Return what one sample contributes; `above`: what rows add by being of their class."""
    influence = None
    variance = whole.unexplained + sum(part.unexplained for part in parts)
    if whole.influence is not None:
        size, unit = whole.influence.size, side.unit_of_rows(whole.units)
        influence = -whole.influence
        for rows, part, extra in zip(side.rows, parts, above, strict=True):
            units = np.unique(unit[rows])  # as the class has them, in its order
            if part.influence is not None:
                influence[units] += part.influence * (size / units.size)
            influence += sums_by(unit[rows], np.full(rows.size, extra), size) * (size / unit.size)
        influence -= influence.mean()
        variance += mean_variance(influence)
    return SampleError(
        n=whole.n,
        variance=variance,
        degrees_of_freedom=whole.degrees_of_freedom,
        influence=influence,
        units=whole.units,
    )
