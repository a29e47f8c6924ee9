"""Whether a score is a smooth function of weighted rows, before anything is reported with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from genbounds import validation
from genbounds.core.design import Design, row_design
from genbounds.core.estimate import mean_variance
from genbounds.diagnostics import warn_of
from genbounds.estimators.smooth import _engine as engine
from genbounds.estimators.smooth._score import SAME_VALUE, SmoothScore, once_and_twice, value_of
from genbounds.results import Diagnostic
from genbounds.samples import features_of
from genbounds.validation import Float, InputError

MOST_ROWS = 1000
"""Rows of each sample that are looked at."""

FACTOR = 3.0
"""Between standard errors by differentiation and by leaving out groups."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreCheck:
    """What `check_score` found.

    Attributes
    ----------
    derivative : {"hessian", "secant"} or None
        What to pass to `SmoothScore`; None: the score is refused.
    warnings : tuple of Diagnostic
        Why it is refused, or is not differentiated twice.
    """

    derivative: str | None
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether `SmoothScore` may be used, with this `derivative`."""
        return self.derivative is not None

    def __str__(self) -> str:
        found = f'smooth: derivative="{self.derivative}"' if self.ok else "not smooth:"
        return "\n".join([found, *map(str, self.warnings)])


def check_score(function: Any, x: Any, y: Any = None) -> ScoreCheck:
    """Find out whether a score can be debiased by differentiation in the weights of its rows.

    Parameters
    ----------
    function : callable or SmoothScore
        As for `SmoothScore`.
    x : array_like of shape (n, d) or Sample
        Rows like those to be scored, also in number; up to 1,000 are looked at.
    y : array_like of shape (m, d) or Sample, optional
        Of the reference.

    Returns
    -------
    ScoreCheck
        ``.ok``, ``.derivative`` for `SmoothScore`, and the reasons in ``.warnings``.

    Raises
    ------
    InputError
        If rows are not legal, or the function fails.

    Notes
    -----
    Four checks, about 70 evaluations:

    1. Every row twice at half its weight must not change the value. Nearest neighbours do not pass.
    2. Value and gradient are float64 and finite, and every sample has a part in it.
    3. Products with the Hessian agree with secants half-way to a half sample. Where they do not but
       secants of both lengths agree (optimal transport), the answer is ``derivative="secant"``.
       Ties of a maximum or of eigenvalues, and quantiles, are refused.
    4. The standard error agrees, within a factor of three, with that of leaving out 40 groups of
       rows.

    Checks 1 and 2 are exact. For check 3 smooth scores have a wide margin where there are ten rows
    or more a dimension, but it is no test with a probability of error: a score may fail with too
    few rows, and a tie that this sample does not come near is not seen. Check 4 wrongly fails with
    a probability below 1e-12 for a score that is smooth, if the sums over groups are normal, and
    sees standard errors that are wrong by a factor of five in 99 of 100 samples.

    Examples
    --------
    >>> import numpy as np, torch, genbounds as gb
    >>> x = np.random.default_rng(0).normal(size=(300, 3))
    >>> gb.check_score(lambda x, w: (w @ x**2).log().sum(), x).derivative
    'hessian'
    >>> gb.check_score(lambda x, w: (w @ x).max(), x - x.mean(axis=0)).ok  # a tie
    False
    """
    given = "hessian"
    if isinstance(function, SmoothScore):
        function, given = function.function, function.derivative
    if not callable(function):
        raise InputError("must be a function of rows and weights.", argument="function")
    validation.check_installed("a score that is differentiated", "torch", "torch")
    rng = np.random.default_rng(0)
    rows = [_some("x", x, rng)] + ([] if y is None else [_some("y", y, rng)])
    designs = [row_design(len(part)) for part in rows]
    name = getattr(function, "__name__", type(function).__name__)
    with validation.blamed("function", of=name):
        score = engine.weighted_function(function, rows)
        try:
            first = engine.Slopes(score, designs, derivative="hessian")
        except InputError as error:
            return _refused(f"the function {error.text}")
        if refusal := not_of_weights(function, rows, first):
            return _refused(refusal)
        derivative = how_curved(score, designs, first, rng)
        if derivative is None:
            return _refused(
                "its second derivatives do not say how it changes from sample to sample (a "
                "maximum or eigenvalues that are nearly tied, a quantile, or too few rows)"
            )
        if given == "secant":
            derivative = "secant"
        _, errors, _ = engine.expand(score, designs, derivative=derivative, probes=2)
        explained = sum(mean_variance(e.influence) for e in errors if e.influence is not None)
        # Of the plug-in, from leaving out one group of rows after the other.
        groups = [rng.permutation(len(part)) % GROUPS for part in rows]
        without = [
            value_of(function, [part[of != k] for part, of in zip(rows, groups, strict=True)])
            for k in range(GROUPS)
        ]
        scatter = (GROUPS - 1.0) ** 2 / GROUPS * float(np.var(without, ddof=1))
    ratio = math.sqrt(scatter / explained) if explained > 0.0 else math.inf
    if not 1.0 / FACTOR <= ratio <= FACTOR:
        return _refused(
            f"leaving out groups of rows gives {ratio:.2g} times the standard error that "
            "differentiation gives"
        )
    why = () if derivative == given else (warn_of("piecewise-linear"),)
    return ScoreCheck(derivative=derivative, warnings=why)


def _refused(reason: str) -> ScoreCheck:
    remedy = "Compute it smoothly from rows and weights (docs/any_score.md)."
    warning = warn_of("not-differentiable", reason=reason.rstrip("."), remedy=remedy)
    return ScoreCheck(derivative=None, warnings=(warning,))


def _some(name: str, x: Any, rng: np.random.Generator) -> Float:
    """Return some of the rows, in random order."""
    rows = validation.check_features(name, features_of(x), minimum=2 * GROUPS)
    kept = rng.permutation(len(rows))[:MOST_ROWS]
    out: Float = np.asarray(rows[kept], dtype=np.float64)
    validation.check_finite(name, out)
    return out


def not_of_weights(
    function: Callable[..., Any], rows: Sequence[Float], found: engine.Slopes
) -> str:
    """Why it is refused: not a function of a sample, or repeated rows change the value; or ""."""
    parts = np.split(found.gradient, [len(rows[0])])[: len(rows)]
    for name, part in zip(("w", "v"), parts, strict=False):
        if np.abs(part).max() == 0.0:
            return f"the value does not depend on the weights {name}"
    stderr = float(np.sqrt(sum(part.var() / part.size for part in parts)))
    once, twice, repeatable = once_and_twice(function, rows, stderr)
    if abs(once - found.value) > SAME_VALUE * max(abs(found.value), stderr):
        return "the same rows give another value each time: fix all random numbers beforehand"
    if not repeatable:
        return (
            f"every row twice at half its weight changes the value from {once:.6g} to "
            f"{twice:.6g}: it is no function of weighted rows (neighbours, divisors n - 1?)"
        )
    return ""


def how_curved(
    score: engine.Weighted, designs: list[Design], exact: engine.Slopes, rng: np.random.Generator
) -> str | None:
    """Which derivative shows the curvature; None if neither does."""
    steps = engine.Steps(designs)
    signs = [steps.signs(range(len(designs)), rng) for _ in range(DIRECTIONS)]
    secants = (
        engine.Slopes(score, designs, derivative="secant", step=engine.STEP / part)
        for part in (1.0, 2.0)
    )
    hessian, whole, half = (
        np.stack([np.concatenate(steps.gather(way.product(steps.spread(s)))) for s in signs])
        for way in (exact, *secants)
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
