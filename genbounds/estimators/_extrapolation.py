"""FD∞ and IS∞ as published: a line through scores of random subsets, read at 1/N = 0."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from genbounds.diagnostics import warn_of
from genbounds.results import Diagnostic
from genbounds.validation import Float, InputError, check_choice, check_count

SPACINGS = ("n", "1/n")
WEIGHTS = ("equal", "1/n**2")

MINIMUM_POOL = 20
"""Minimum number of samples through which a line is drawn."""

LINEAR = "the plug-in score is linear in 1/N over the subsets"
"""What an extrapolated score assumes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subsets:
    """Which subsets of the pool are scored.

    Attributes
    ----------
    points : int
        Number of sizes, at least 3 (published: 15).
    minimum : int or None
        Smallest size. None: 5,000 as published, or a tenth of a pool below 50,000.
    spacing : {"n", "1/n"}
        Sizes evenly spaced in N (recommended by the paper) or in 1/N.
    replace : bool
        Draw each subset with replacement (as the paper's text) or without (as its listing). With
        replacement nothing is gained, and the score is called unreliable: the larger the subsets,
        the nearer they are to the pool, whose own bias stays.
    repeats : int
        Whole regressions, averaged; their spread is the extrapolation's own noise.
    seed : int
        Of the subsets.
    weights : {"equal", "1/n**2"}
        Of the points of the line. "equal", ordinary least squares, is published. "1/n**2" takes the
        *variance* of a point to fall as 1/N²: its squared residual is multiplied by N². Weights of
        1/N² instead would rely on the smallest subsets, and the score err more.
    """

    points: int = 15
    minimum: int | None = None
    spacing: str = "n"
    replace: bool = False
    repeats: int = 1
    seed: int = 0
    weights: str = "equal"

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What these subsets leave undone."""
        return (warn_of("with-replacement"),) if self.replace else ()

    def sizes(self, n: int) -> NDArray[np.intp]:
        """Return the subset sizes for a pool of `n`, smallest first."""
        check_choice("spacing", self.spacing, SPACINGS)
        check_choice("weights", self.weights, WEIGHTS)
        check_count("points", self.points, minimum=3)
        check_count("repeats", self.repeats)
        if n < MINIMUM_POOL:
            raise InputError(
                f"extrapolation needs a pool of at least {MINIMUM_POOL} samples; got {n}. "
                "Use the debiased estimator."
            )
        smallest = min(5000, n // 10) if self.minimum is None else self.minimum
        check_count("minimum", smallest, minimum=2)
        if not smallest < n:
            raise InputError(f"must be below the pool's {n} samples; got {smallest}.", "minimum")
        if self.spacing == "n":
            sizes = np.linspace(smallest, n, self.points)
        else:
            sizes = 1.0 / np.linspace(1.0 / smallest, 1.0 / n, self.points)
        return np.rint(sizes).astype(np.intp)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extrapolation:
    """A fitted line ``score = value + slope / N``.

    Attributes
    ----------
    value, slope : float
        Intercept and slope, averaged over the repeats.
    variance : float
        Of `value` from the scatter about the line alone; it knows nothing of the pool's own
        sampling error.
    sizes : ndarray of shape (points,)
    scores : ndarray of shape (repeats, points)
    """

    value: float
    slope: float
    variance: float
    sizes: NDArray[np.intp]
    scores: Float

    @property
    def details(self) -> tuple[str, ...]:
        """What the line was drawn through."""
        return (f"{self.sizes.size} subset sizes from {self.sizes[0]} to {self.sizes[-1]}",)

    def at(self, n: int) -> float:
        """Predict the plug-in score of `n` samples: the line read at 1/n (C20 §4.3).

        Without an interval: the subsets overlap, so that their scatter about the line does not
        say how far the scores of another pool would lie. Predictions from independent pools do.
        """
        return self.value + self.slope / n


def not_independent(title: str) -> InputError:
    """Return what to raise for rows of which no subsets can be drawn."""
    return InputError(
        f"{title} draws subsets of independent rows: use 'debiased' with groups, strata or weights."
    )


def extrapolate(
    score: Callable[[NDArray[np.intp]], float], n: int, subsets: Subsets
) -> Extrapolation:
    """Fit the line of C20 §3.3 to `score(rows)` over random subsets of ``range(n)``.

    References
    ----------
    .. [1] M. J. Chong and D. Forsyth, "Effectively unbiased FID and Inception Score and where to
       find them", CVPR 2020.
    """
    sizes = subsets.sizes(n)
    rng = np.random.default_rng(subsets.seed)
    scores = np.array(
        [
            [score(np.sort(rng.choice(n, size=size, replace=subsets.replace))) for size in sizes]
            for _ in range(subsets.repeats)
        ]
    )
    root = sizes ** (0.0 if subsets.weights == "equal" else 1.0)  # of the weight of a square
    design, target = np.column_stack([root, root / sizes]), root * scores.mean(axis=0)
    (value, slope), *_ = np.linalg.lstsq(design, target, rcond=None)
    residual = target - design @ (value, slope)
    noise = float(residual @ residual) / (sizes.size - 2)
    return Extrapolation(
        value=float(value),
        slope=float(slope),
        variance=noise * float(np.linalg.inv(design.T @ design)[0, 0]),
        sizes=sizes,
        scores=scores,
    )
