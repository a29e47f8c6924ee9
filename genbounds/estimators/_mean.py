"""Mean of one value per sample, such as CLIPScore, an aesthetic score or a rate of errors."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds import validation
from genbounds._betting import betting_lower_limit
from genbounds._text import quoted
from genbounds.core.checks import drawn, few_seeds
from genbounds.core.design import Design, Index, design_of, row_design, sums_by
from genbounds.core.estimate import Estimate, OwnInterval, heavy_tails, skewed, small_sample
from genbounds.core.expansion import FormOfNumbers, RowTerms, expand
from genbounds.estimators._metric_spec import MetricSpec, Prepared
from genbounds.results import Score
from genbounds.samples import Sample, features_of
from genbounds.validation import Float, InputError

ESTIMATORS = ("debiased", "plugin")

SMALLEST = 1e-150
"""Values below have squares that are no ordinary numbers."""

LARGEST_STAKE = 0.9

PLANNED = 4000
"""Groups for which limits are computed as they are when a number of them is planned."""

BETS = 6
"""Stakes up to 1,000 units; one more for each fourfold number: the best stake falls with √n."""


def mean_score(
    values: Any,
    *,
    groups: Any = None,
    bounds: tuple[float, float] | None = None,
    level: float = 0.95,
) -> Score:
    """Mean of per-sample scores (CLIPScore, aesthetic scores, human ratings) with its interval.

    Parameters
    ----------
    values : array_like of shape (n,) or (n, 1), or Sample
        One number per sample. A `Sample` of a column (n, 1) says more of how it was drawn.
    groups : array_like of shape (n,), optional
        Integers or strings: values with one id depend on one another (images of one prompt, ratings
        by one person).
    bounds : (float, float), optional
        Smallest and largest value there can be, known beforehand. The interval is then one that
        holds at every n, whatever the distribution, by betting; it is longer than the other.
    level : float
        Coverage of the interval, in (0, 1).

    Returns
    -------
    Score
        Larger is better: of an error, pass the negative.

    Raises
    ------
    InputError
        If a shape, a type or a value is not legal, a value is out of bounds, `groups` are given
        twice, or `bounds` with strata or weights.

    Notes
    -----
    Without `bounds` the interval is Student's, with both ends moved for skewness; by groups the
    standard error is that of a ratio of sums over groups. With `bounds` and groups the bets are on
    sums over groups, and no group may be larger than the largest one given.

    References
    ----------
    .. [1] I. Waudby-Smith and A. Ramdas, "Estimating means of bounded random variables by betting",
       JRSS B 86, 2024.

    Examples
    --------
    >>> import numpy as np, genbounds as gb
    >>> right = np.repeat([0.0, 1.0], [30, 170])
    >>> score = gb.mean_score(right, bounds=(0, 1))
    >>> 0.7 < score.low < 0.85 < score.high < 0.95
    True
    """
    level = validation.check_open_unit("level", level)
    if groups is not None:
        if isinstance(values, Sample):
            raise InputError("is a Sample, which has groups of its own.", "values")
        values = Sample(_column("values", values), groups=groups)
    found = mean_estimate(values, bounds=bounds, name="values")
    return found.made_from(values=values).score(level)


def mean_estimate(
    values: Any,
    *,
    estimator: str = "debiased",
    bounds: tuple[float, float] | None = None,
    name: str = "x",
) -> Estimate:
    """Mean with its variance and influences, before any level is chosen.

    `values` and `bounds` as for `mean_score`; the `estimator` makes no difference; `name`: what
    `values` are called in an error.
    """
    validation.check_choice("estimator", estimator, ESTIMATORS)
    column = _column(name, features_of(values))
    validation.check_finite(name, column)
    x = column[:, 0]
    design = design_of(name, values, crossed=True) or row_design(x.size)
    interval = None if bounds is None else _bounded(name, x, design, bounds)
    found = replace(mean_by_design(x, design), estimator=estimator, own_interval=interval)
    if bounds is None:
        _check_size(name, x)
        return found.warned(
            *few_seeds(0 if design.seed_labels is None else design.seed_labels.size),
            *heavy_tails(found),
            *small_sample(design.effective, units=design.free_units),
        )
    largest = int(design.row_counts.max())
    sizes = (f"no group can have more than {largest} rows",) if largest > 1 else ()
    return replace(
        found,
        combined=True,
        lower_limit=float(bounds[0]),
        upper_limit=float(bounds[1]),
        assumptions=(
            *found.assumptions,
            f"all values lie within [{bounds[0]:g}, {bounds[1]:g}]",
            *sizes,
        ),
    )


def mean_by_design(x: Float, design: Design) -> Estimate:
    """Mean of one value per row, with its variance by the `design` of the rows."""
    error, _ = expand(MeanForm(x, design.weights), design)
    return Estimate(
        title="mean",
        method="mean",
        value=float(design.weights @ x),
        sample=skewed(replace(error, bias=0.0)),
        higher_is_better=True,
        assumptions=(drawn(design),),
    )


class MeanForm(FormOfNumbers):
    """Values as a `Form`: their mean has no quadratic part."""

    seed = 0
    bounded = True

    def __init__(self, values: Float, weights: Float) -> None:
        super().__init__(values.size, 1)
        self.influence = values - float(weights @ values)

    def terms(self, block: Index, positions: Index) -> RowTerms:
        """Influence of each value."""
        return RowTerms(self.influence[block], np.zeros(block.size))

    def square_of(self, rows: Index, v: Float) -> float:
        """0: a mean is linear."""
        return 0.0

    def across(self, one: Index, i: Index, two: Index, j: Index) -> Float:
        """Zero."""
        return np.zeros(i.size)


def _column(name: str, values: Any) -> NDArray[Any]:
    """Return values as a column (n, 1)."""
    if not isinstance(values, (str, os.PathLike)):  # which `check_features` refuses best
        values = validation.as_numpy(name, values)
        values = values[:, None] if values.ndim == 1 else values
        if values.ndim != 2 or values.shape[1] != 1:
            raise InputError(
                f"must hold one number per sample, shape (n,) or (n, 1); got shape {values.shape}.",
                argument=name,
            )
    return validation.check_features(name, values).astype(np.float64, copy=False)


def _check_size(name: str, x: Float) -> None:
    """Refuse values that differ, and of whose squares nothing is left."""
    largest = float(np.abs(x).max())
    if 0.0 < largest < SMALLEST and np.ptp(x) > 0.0:
        raise InputError(
            f"has values of the order of {largest:.1g}, whose squares leave double precision: "
            "multiply them by a common number.",
            argument=name,
        )


def _bounded(name: str, x: Float, design: Design, bounds: Any) -> OwnInterval:
    """Interval of a mean of values between known bounds, at every n."""
    low, high = _check_bounds(bounds)
    if design.stratified or design.weighted:
        raise InputError(
            "are for independent values, or groups of them; with strata or weights leave them out.",
            argument="bounds",
        )
    if design.seed is not None:
        raise InputError("know no seeds that groups share; leave them out.", "bounds")
    outside = np.flatnonzero((x < low) | (x > high))
    if outside.size:
        raise InputError(
            f"has {x[outside[0]]:g} in row {outside[0]}, outside the bounds [{low:g}, {high:g}].",
            argument=name,
        )
    # Group sums over the largest size there can be are values in [0, 1] again.
    largest = float(design.row_counts.max())
    shares = (x - low) / (high - low)
    sums = sums_by(design.unit, shares, design.units) / largest
    sizes = design.row_counts / largest

    return _BettingInterval((low, high), sums, sizes)


@dataclass(frozen=True, slots=True, eq=False)
class _BettingInterval:
    """Limits of a mean of values within `bounds`, from their sums over groups as shares of it."""

    bounds: tuple[float, float]
    sums: Float
    sizes: Float

    def __call__(self, level: float) -> tuple[float, float]:
        low, high = self.bounds
        least, rest = (self._limit(sums, level) for sums in (self.sums, self.sizes - self.sums))
        return low + (high - low) * least, low + (high - low) * (1.0 - rest)

    def at(self, factor: float) -> OwnInterval:
        """Return what it would be of so many times as many groups that are like these.

        Beyond `PLANNED` groups widths fall with the root of their number.
        """
        units = min(max(round(factor * self.sums.size), 2), PLANNED)
        shrink = math.sqrt(min(units / (factor * self.sums.size), 1.0))
        order = np.argsort(self.sums / self.sizes, kind="stable")
        place = order[((np.arange(units) + 0.5) / units * order.size).astype(np.intp)]
        grown = replace(self, sums=self.sums[place], sizes=self.sizes[place])
        middle = float(grown.sums.sum() / grown.sizes.sum())
        value = self.bounds[0] + (self.bounds[1] - self.bounds[0]) * middle

        def interval(level: float) -> tuple[float, float]:
            low, high = grown(level)
            return shrink * (min(low, value) - value), shrink * (max(high, value) - value)

        return interval

    def _limit(self, sums: Float, level: float) -> float:
        needed = math.log(2.0 / (1.0 - level))
        bets = BETS + max(0, math.ceil(math.log(sums.size / 1000.0, 4.0)))
        stakes = [LARGEST_STAKE * 0.5**bet for bet in range(bets)]
        return float(betting_lower_limit(sums[None], needed, stakes, sizes=self.sizes)[0])


def _check_bounds(bounds: Any) -> tuple[float, float]:
    try:
        low, high = (float(bound) for bound in bounds)
    except (TypeError, ValueError):
        low = high = math.nan
    if not (-math.inf < low < high < math.inf):
        raise InputError(
            f"must be two finite numbers, the smaller one first; got {quoted(bounds)}.",
            argument="bounds",
        )
    return low, high


def _prepare(reference: Any, options: Mapping[str, Any], models: Sequence[Any]) -> Prepared:
    return Prepared(estimate=partial(mean_estimate, **options), columns=1)


MEAN = MetricSpec(
    name="mean",
    title="Mean",
    summary="mean of one value per sample, such as CLIPScore",
    prepare=_prepare,
    higher_is_better=True,
    data="values",
    reference="none",
    options=("bounds",),
)
