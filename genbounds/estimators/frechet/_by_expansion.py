"""The expansion in 1/n, of independent rows: second order, third order by halving small samples."""

from __future__ import annotations

from genbounds.core.estimate import Estimate, SampleError
from genbounds.core.expansion import halved, third_order
from genbounds.estimators.frechet._expansion import PART_ROWS, PART_WORK, gaussian_bias
from genbounds.estimators.frechet._outcome import joined
from genbounds.estimators.frechet._pair import Pair
from genbounds.estimators.frechet._sample import SPLIT_RATIO, FrechetSample, Regime
from genbounds.results import unreliable

EFFECTIVE_RATIO = 3.3
"""Samples per dimension that the expansion needs when dependence, heavy tails or rare features are
allowed for: a bias k times that of independent Gaussian rows makes n rows as good as n/k."""

LARGEST_REMAINDER = 0.4
"""Standard errors of bias that may be left after the third order. Where the bias is k times that of
Gaussian rows, about k - 1 times the third-order correction is left: the remainder of heavy tails
falls more slowly with n than halving takes it to. Rows of Student's t with 4 and 5 degrees of
freedom, which cover too seldom, are above it, those with 8 below (docs/evidence/accuracy.md)."""


def expanded(fake: FrechetSample, real: FrechetSample, regime: Regime, every_row: bool) -> Estimate:
    """Second order, and third order by halving whichever sample is not large."""
    pair = Pair(fake, real)
    errors = pair.errors(every_row=every_row)
    second_order = pair.plugin - errors[0].bias - errors[1].bias
    excess = excess_of_tails(pair, errors)
    small = [
        side
        for side, ratio, times in zip((fake, real), (regime.fake, regime.real), excess, strict=True)
        if side.rows is not None and (ratio < SPLIT_RATIO or ratio < EFFECTIVE_RATIO * times)
    ]
    if not small:
        return joined("second-order", second_order, (fake, real), errors)
    fakes, reals = (
        side.divided(2).parts if side in small else (side, side) for side in (fake, real)
    )
    halves = [Pair(*half) for half in zip(fakes, reals, strict=True)]
    value = third_order(second_order, half_values(halves, every_row))
    one, two = (
        halved(error, both=len(small) == 2) if side in small else error
        for side, error in zip((fake, real), errors, strict=True)
    )
    found = joined("third-order", value, (fake, real), (one, two))
    return doubted(found, excess, value - second_order)


def excess_of_tails(pair: Pair, errors: tuple[SampleError, SampleError]) -> list[float]:
    """How many times the bias of Gaussian rows either sample's is; 1 where no rows are known.

    Of rows as if they were independent: dependence is as fewer rows, which halving deals with.
    """
    found = []
    for side, error in zip((pair.fake, pair.real), errors, strict=True):
        if side.rows is None or side.n is None:
            found.append(1.0)
            continue
        gaussian = gaussian_bias(0.0, pair.directions[0], side.effective)
        own = error.row_bias - side.trace / side.effective
        found.append(own / gaussian if gaussian > 0.0 else 1.0)
    return found


def doubted(found: Estimate, excess: list[float], third: float) -> Estimate:
    """Call an estimate unreliable where heavy tails leave much of the bias after the third order.

    `third`: what the third order took off.
    """
    times = max(excess)
    left = (times - 1.0) * abs(third)
    # An interval that reaches down to 0 covers a small distance whatever is left of the bias.
    if left <= LARGEST_REMAINDER * found.stderr or found.value <= 2.0 * found.stderr:
        return found
    return found.warned(
        unreliable(
            "heavy-tails",
            f"heavy tails or rare features make the bias {times:.2g} times that of Gaussian "
            f"rows: about {left:.2g} of it may be left, where the standard error is "
            f"{found.stderr:.2g}",
            "Use more samples, or features with lighter tails.",
        )
    )


def half_values(halves: list[Pair], every_row: bool) -> list[float]:
    """Plug-in less second-order bias of both halves.

    For large samples only the first half pays for eigenvectors: the second differs from it in the
    Gaussian part of the bias, a function of the eigenvalues, and takes the rest from it.
    """
    costly = not every_row and any(
        side.n is not None and side.n > PART_ROWS and side.n * side.d**2 > PART_WORK
        for side in (halves[0].fake, halves[0].real)
    )
    values, rest = [], 0.0
    for k, half in enumerate(halves):
        if k == 0 or not costly:
            bias = half.bias(every_row=every_row)
            if costly:
                rest = bias - half.gaussian_bias()
        else:
            bias = half.gaussian_bias() + rest
        values.append(half.plugin - bias)
    return values
