"""Mean of the classes' distances less the whole one: most of the noise is common to both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.estimators._design import Index, design_of, sums_by
from genbounds.estimators._estimate import Estimate, SampleError, mean_variance, sum_of
from genbounds.estimators._inspect import inspect
from genbounds.samples import Sample
from genbounds.validation import Float


@dataclass(frozen=True)
class Side:
    """How one of both samples was drawn, and the rows of each of its classes.

    Attributes
    ----------
    unit : ndarray of int, shape (n,)
        Unit of every row: the row itself, its group, or the draw that identical rows count as.
    stratified : bool
        Whether the numbers of rows of the classes were fixed.
    rows : sequence of ndarray
    """

    unit: Index
    stratified: bool
    rows: Sequence[Index]

    @classmethod
    def of(cls, name: str, sample: NDArray[Any] | Sample, rows: Sequence[Index]) -> Side:
        """Look at a sample as its score did."""
        given = isinstance(sample, Sample)
        design = design_of(name, sample) if given else inspect(name, sample).design
        if design is None:
            return cls(np.arange(len(sample)), False, rows)
        return cls(design.unit, design.sizes.size > 1, rows)


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
    if whole.influence is None:
        return replace(whole, variance=whole.variance + sum(part.variance for part in parts))
    size, n = whole.influence.size, side.unit.size
    variance, influence = whole.unexplained, -whole.influence
    for rows, part, extra in zip(side.rows, parts, above, strict=True):
        unit = side.unit[rows]
        there = np.unique(unit)  # as the class has them, in its order
        if part.influence is not None and part.influence.size == there.size:
            influence[there] += part.influence * (size / there.size)
            variance += part.unexplained
        else:  # few rows of which a part was taken for one: as if they were other rows
            variance += part.variance
        influence += sums_by(unit, np.full(rows.size, extra), size) * (size / n)
    influence -= influence.mean()
    return SampleError(
        n=whole.n,
        variance=variance + mean_variance(influence),
        degrees_of_freedom=whole.degrees_of_freedom,
        influence=influence,
        units=whole.units,
    )
