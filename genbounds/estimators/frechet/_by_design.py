"""The expansion in 1/n of samples drawn otherwise than row by row: groups, strata, shared units."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from genbounds.core.estimate import Estimate, SampleError
from genbounds.core.expansion import HALVING_NOISE, halved, third_order
from genbounds.estimators.frechet._by_expansion import (
    EFFECTIVE_RATIO,
    doubted,
    excess_of_tails,
    half_values,
)
from genbounds.estimators.frechet._expansion import PAIRING_SEED, gaussian_bias
from genbounds.estimators.frechet._outcome import joined
from genbounds.estimators.frechet._pair import Pair
from genbounds.estimators.frechet._sample import (
    FEW_RATIO,
    SIDES,
    SPLIT_RATIO,
    FrechetSample,
    Regime,
)
from genbounds.results import Diagnostic, Method, unreliable


def designed(fake: FrechetSample, real: FrechetSample, regime: Regime, every_row: bool) -> Estimate:
    """Remove the bias of samples that were drawn otherwise than row by row, by expansion."""
    pair = Pair(fake, real)
    common = pair.shared()
    if common is None:
        errors, shared = pair.errors(every_row=every_row), None
        second_order = pair.plugin - errors[0].bias - errors[1].bias
    else:
        errors, shared, curvature = common
        second_order = pair.plugin - errors[0].bias - errors[1].bias - shared.bias
        own, theirs = shared.influences
        errors = (
            replace(errors[0], influence=own, curvature=curvature),
            replace(errors[1], influence=theirs, curvature=0.0),
        )
    tails, excess = excess_of_tails(pair, errors), _excess(pair, errors)
    # Dependent rows are as good as fewer independent ones.
    fewer = [
        side.n / times / max(pair.directions[0].size, 1) if side.n is not None else np.inf
        for side, times in zip((fake, real), excess, strict=True)
    ]
    warnings = _dependence(pair, excess, fewer)
    if regime.smaller < FEW_RATIO:  # says all: too few even if rows were independent
        warnings = (
            unreliable(
                "few-samples",
                f"{regime.smaller:.2g} samples per dimension: the methods for so few assume "
                f"independent rows, and the expansion needs {FEW_RATIO}",
                "Use more samples, or fewer features.",
            ),
        )
    method: Method = "second-order"
    value = second_order
    total = 0.0 if shared is None else shared.variance
    small = [
        sample
        for sample, ratio in zip((fake, real), fewer, strict=True)
        if sample.rows is not None and (ratio < SPLIT_RATIO or shared is not None)
    ]
    halves = None
    if small and min(fewer) < SPLIT_RATIO:
        halves = _halves(fake, real, small, joint=shared is not None)
    if halves is not None:
        method = "third-order"
        value = third_order(second_order, half_values(halves, every_row))
        if shared is None:
            one, two = (
                halved(error, both=len(small) == 2) if sample in small else error
                for sample, error in zip((fake, real), errors, strict=True)
            )
            errors = one, two
        else:
            total += HALVING_NOISE * shared.quadratic_variance
    apart = errors[0].variance + errors[1].variance
    found = joined(
        method,
        value,
        (fake, real),
        errors,
        shared_variance=0.0 if shared is None else total - apart,
        warnings=warnings,
    )
    return doubted(found, tails, value - second_order)


def _halves(
    fake: FrechetSample, real: FrechetSample, small: list[FrechetSample], *, joint: bool
) -> list[Pair] | None:
    """Random halves of the units of the small samples; None where a stratum has too few units.

    `joint`: shared units go into the same half of either sample.
    """
    parts: list[list[FrechetSample]] = []
    names = None
    for sample in (fake, real):
        if sample not in small:
            parts.append([sample, sample])
            continue
        if sample.design is None:
            parts.append(list(sample.divided(2).parts))
            continue
        index = sample.design.halves(np.random.default_rng(PAIRING_SEED), names)
        if index is None:
            return None
        if joint:
            names = sample.design.named_halves(index)
        parts.append(sample.halves(index))
    return [Pair(one, two) for one, two in zip(*parts, strict=True)]


def _excess(pair: Pair, errors: tuple[SampleError, SampleError]) -> list[float]:
    """How many times the bias of independent Gaussian rows either sample's is; at least 1."""
    found = []
    roots = pair.directions[0]
    for side, error in zip((pair.fake, pair.real), errors, strict=True):
        if side.rows is None or side.n is None:
            found.append(1.0)
            continue
        # Of independent Gaussian rows, the bias of the root alone.
        gaussian = gaussian_bias(0.0, roots, side.n) + float(roots.sum()) / side.n
        found.append(max(error.bias / gaussian, 1.0) if gaussian > 0.0 else 1.0)
    return found


def _dependence(pair: Pair, excess: list[float], fewer: list[float]) -> tuple[Diagnostic, ...]:
    """Doubt the expansion where dependence leaves too few effective samples per dimension."""
    return tuple(
        unreliable(
            "heavy-tails" if side.independent else "dependent-rows",
            f"the bias is {times:.2g} times that of independent Gaussian rows: {side.n} "
            f"{name} samples are as good as {ratio:.2g} per dimension, where the method "
            f"needs {EFFECTIVE_RATIO}",
            "Use more groups of rows, or fewer features.",
        )
        for name, side, times, ratio in zip(
            SIDES, (pair.fake, pair.real), excess, fewer, strict=True
        )
        if side.rows is not None and ratio < EFFECTIVE_RATIO
    )
