"""The mean of the classes' distances, and by what it exceeds the whole one, with their errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.core.average import average
from genbounds.core.checks import check_sample
from genbounds.core.design import Index, design_of, sums_by
from genbounds.core.difference import sum_of
from genbounds.core.estimate import Estimate, SampleError, mean_variance
from genbounds.samples import Sample
from genbounds.validation import Float


@dataclass(frozen=True)
class Side:
    """How one of both samples was drawn, and the rows of each of its classes.

    Attributes
    ----------
    unit : ndarray of int, shape (n,)
        Unit of every row: the row itself, its group, or the draw that identical rows count as.
    weights : ndarray of shape (n,)
        They sum to 1.
    stratified : bool
        Whether the numbers of rows of the classes were fixed.
    rows : sequence of ndarray
    """

    unit: Index
    weights: Float
    stratified: bool
    rows: Sequence[Index]

    @classmethod
    def of(cls, name: str, sample: NDArray[Any] | Sample, rows: Sequence[Index]) -> Side:
        """Look at a sample as its score did."""
        given = isinstance(sample, Sample)
        design = design_of(name, sample) if given else check_sample(name, sample).design
        if design is None:
            n = len(sample)
            return cls(np.arange(n), np.full(n, 1.0 / n), False, rows)
        return cls(design.unit, design.weights, design.sizes.size > 1, rows)

    @property
    def shares(self) -> Float:
        """Weight of every class."""
        return np.array([self.weights[rows].sum() for rows in self.rows])

    def influence_of_shares(self, values: Float) -> Float:
        """Return the influence of every unit on a mean over the classes, by being of its class.

        None has any where the numbers of rows of the classes were fixed.
        """
        size = int(self.unit.max()) + 1
        out = np.zeros(size)
        if not self.stratified:
            above = values - self.shares @ values
            for rows, more in zip(self.rows, above, strict=True):
                out += sums_by(self.unit[rows], self.weights[rows] * more, size) * size
        return out


def mean_over_classes(classes: Sequence[Estimate], real: Side) -> Estimate:
    """Mean of the classes' distances, weighted by their shares of the reference.

    The shares have an error of their own where the classes of the reference rows were drawn.
    """
    mean = average(classes, real.shares, what="classes")
    of_shares = real.influence_of_shares(np.array([one.value for one in classes]))
    variance = mean.reference.variance + mean_variance(of_shares)
    return replace(
        mean,
        title="Fréchet distance, mean over classes",
        reference=replace(mean.reference, variance=variance),
        details=(*mean.details, "the mean takes each class's estimate before it is cut off at 0"),
        assumptions=(*mean.assumptions, "classes are independent of one another"),
    )


def mean_less_whole(
    mean: Estimate, whole: Estimate, classes: Sequence[Estimate], fake: Side, real: Side
) -> Estimate:
    """Estimate the difference with its error.

    Parameters
    ----------
    mean, whole : Estimate
    classes : sequence of Estimate
        What `mean` is the mean of.
    fake, real : Side

    Notes
    -----
    The influence of a row is the one on its class, times the share, less the one on the whole.
    Where the classes of reference rows were drawn too, a row also adds what its class has above
    the mean. What influences do not explain (second order) counts for every class and for the
    whole, which errs on the wide side.
    """
    parts = [one.scaled(share) for one, share in zip(classes, real.shares, strict=True)]
    values = np.array([one.value for one in classes])
    # Shares are those of the reference alone.
    sample = _error(whole.sample, [one.sample for one in parts], fake, np.zeros(len(classes)))
    reference = _error(whole.reference, [one.reference for one in parts], real, values)
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
    whole: SampleError, parts: Sequence[SampleError], side: Side, values: Float
) -> SampleError:
    """Return what one sample contributes; `values` of the classes: if shares are this sample's."""
    influence, variance = side.influence_of_shares(values), whole.unexplained
    if whole.influence is not None:
        influence -= whole.influence
    size = influence.size
    for rows, part in zip(side.rows, parts, strict=True):
        there = np.unique(side.unit[rows])  # as the class has them, in its order
        if part.influence is not None and part.influence.size == there.size:
            influence[there] += part.influence * (size / there.size)
            variance += part.unexplained
        else:  # few rows of which a part was taken for one: as if they were other rows
            variance += part.variance
    influence -= influence.mean()
    return SampleError(
        n=whole.n,
        variance=variance + mean_variance(influence),
        degrees_of_freedom=whole.degrees_of_freedom,
        influence=influence,
        units=whole.units,
    )
