"""What is looked at to find out whether a score is a smooth function of weighted rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from genbounds.core.design import Design, Index
from genbounds.core.estimate import SampleError, mean_variance
from genbounds.estimators.smooth._engine import Steps, expand
from genbounds.estimators.smooth._slopes import (
    STEP,
    Slopes,
    Weighted,
    slopes,
    weighted_function,
)
from genbounds.validation import Float

DIRECTIONS = 4
GROUPS = 40
CURVED = 1e-9
"""Share of the gradient below which a second derivative is rounding."""

AGREE = 0.1
"""Relative difference between Hessian and secants of a smooth score. Fréchet, kernel, Vendi and
Inception scores and a smooth precision, of 300 to 500 rows in 8 to 32 dimensions, normal and
Student's t with 5 degrees, have 0.06 at most; tied eigenvalues, tied means and medians 0.4 to 5."""

FLAT = 1e-6
"""Share of the secants below which a Hessian is that of a piecewise linear score, and ..."""

SECANTS_AGREE = (0.6, 0.1)
"""... then the relative difference between secants of two lengths, and between their sizes. Sliced
distances on 30 lines have 0.4 and 0.04 at most, tied means and neighbours 1 and 0.15 at least."""

SAME_VALUE = 1e-6
"""Of the larger of value and standard error: what rounding may change."""

ROUNDING = 1e-12
"""Share of the quadratic part in the variance of a score that is linear in the weights."""


def value_of(function: Callable[..., Any], rows: Sequence[Float]) -> float:
    """Plug-in value of these rows, each of the same weight."""
    import torch

    weights = [torch.full((len(part),), 1.0 / len(part), dtype=torch.float64) for part in rows]
    value = torch.as_tensor(weighted_function(function, list(rows))(*weights))
    return float(value.detach())


def once_and_twice(
    function: Callable[..., Any], rows: Sequence[Float], stderr: float
) -> tuple[float, float, bool]:
    """Return the values of the rows once and of every row twice, and whether they are the same.

    A function of weighted rows does not see the difference; one that counts rows does.
    """
    once, twice = (
        value_of(function, [np.repeat(part, times, axis=0) for part in rows]) for times in (1, 2)
    )
    return once, twice, abs(once - twice) <= SAME_VALUE * max(abs(once), stderr)


def independent_of_a_sample(found: Slopes, rows: Sequence[Float]) -> str | None:
    """Why it is refused, if the value does not depend on one of the samples."""
    parts = np.split(found.gradient, [len(rows[0])])[: len(rows)]
    for name, part in zip(("w", "v"), parts, strict=False):
        if np.abs(part).max() == 0.0:
            return f"the value does not depend on the weights {name}"
    return None


def not_of_weights(
    function: Callable[..., Any], rows: Sequence[Float], found: Slopes
) -> str | None:
    """Why it is refused, if repeated rows at half the weight change the value."""
    g = np.split(found.gradient, [len(rows[0])])[: len(rows)]
    stderr = float(np.sqrt(sum(part.var() / part.size for part in g)))
    once, twice, repeatable = once_and_twice(function, rows, stderr)
    if abs(once - found.value) > SAME_VALUE * max(abs(found.value), stderr):
        return "the same rows give another value each time: fix all random numbers beforehand"
    if not repeatable:
        return (
            f"every row twice at half its weight changes the value from {once:.6g} to "
            f"{twice:.6g}: it is no function of weighted rows (neighbours, divisors n - 1?)"
        )
    return None


def how_curved(
    function: Callable[..., Any],
    rows: list[Float],
    designs: list[Design],
    exact: Slopes,
    rng: np.random.Generator,
) -> str | None:
    """Which derivative shows the curvature; None if neither does."""
    steps = Steps(designs)
    signs = [steps.signs(range(len(rows)), rng) for _ in range(DIRECTIONS)]
    score = weighted_function(function, rows)
    ways = [
        exact,
        slopes(score, designs, derivative="secant"),
        slopes(score, designs, derivative="secant", step=STEP / 2.0),
    ]
    hessian, whole, half = (
        np.stack([np.concatenate(steps.gather(way.product(steps.spread(s)))) for s in signs])
        for way in ways
    )
    size = float(np.linalg.norm(whole))
    slope = np.linalg.norm(np.concatenate(steps.gather(exact.gradient)))
    if max(size, float(np.linalg.norm(hessian))) <= CURVED * slope * len(signs):
        return "hessian"  # linear
    if np.linalg.norm(hessian - whole) <= AGREE * size:
        return "hessian"
    apart, unequal = SECANTS_AGREE
    if np.linalg.norm(hessian) > FLAT * size or np.linalg.norm(whole - half) > apart * size:
        return None
    return "secant" if abs(float(np.linalg.norm(half)) - size) <= unequal * size else None


def errors_compared(
    function: Callable[..., Any],
    rows: list[Float],
    designs: list[Design],
    derivative: str,
    rng: np.random.Generator,
) -> float:
    """Divide the standard error by leaving out groups of rows by that by differentiation."""
    score = weighted_function(function, rows)
    _, errors, _ = expand(score, designs, derivative=derivative, probes=2)
    explained = sum(mean_variance(e.influence) for e in errors if e.influence is not None)
    values = np.array([value_of(function, left) for left in _left_out(rows, rng)])
    scatter = (GROUPS - 1.0) ** 2 / GROUPS * float(values.var(ddof=1))
    return float(np.sqrt(scatter / explained)) if explained > 0.0 else float(scatter > 0.0) * np.inf


def _left_out(rows: Sequence[Float], rng: np.random.Generator) -> Iterator[list[Float]]:
    """Yield the rows without one group after the other."""
    groups: list[Index] = [rng.permutation(len(part)) % GROUPS for part in rows]
    for k in range(GROUPS):
        yield [part[group != k] for part, group in zip(rows, groups, strict=True)]


def piecewise(weighted: Weighted, designs: Sequence[Design], errors: Sequence[SampleError]) -> bool:
    """Whether a score without second derivatives is curved all the same, from kink to kink."""
    allowed = ROUNDING * sum(error.variance for error in errors)
    if any(error.quadratic_variance > allowed for error in errors):
        return False
    _, again, _ = expand(weighted, designs, derivative="secant", probes=2)
    return any(error.quadratic_variance > allowed for error in again)
