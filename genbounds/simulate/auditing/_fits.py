"""Fits of orders of growth, with intervals at 1 − 1e-6 for a claim as a whole.

Every interval is by the normal distribution of the averages.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from genbounds.simulate.auditing._results import FALSE_ALARM, Check
from genbounds.validation import Float


def fit(claim: str, holds: bool, found: str) -> Check:
    """Return what a fit found; one that contradicts its claim refutes."""
    return Check(kind="fit", claim=claim, holds=bool(holds), found=found, decisive=True)


def normal_reach(count: int = 1) -> float:
    """Return the half-width, in standard errors, of one of `count` intervals that hold together."""
    from scipy.special import ndtri

    return float(-ndtri(FALSE_ALARM / (2.0 * count)))


def average(values: Float) -> tuple[float, float]:
    """Mean and its standard error."""
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(values.size))


def averages(samples: Iterable[Float]) -> tuple[Float, Float]:
    """Means of several samples, and their standard errors."""
    pairs = [average(values) for values in samples]
    return np.array([mean for mean, _ in pairs]), np.array([error for _, error in pairs])


def fit_power(
    sizes: Float, means: Float, errors: Float, *, count: int = 1
) -> tuple[float, float, float]:
    """Exponent b of means ≈ A n^b (1 + c/n), with its limits.

    Parameters
    ----------
    sizes, means, errors : ndarray
        n, averages of one sign, and their standard errors.
    count : int
        Fits that hold together.

    Returns
    -------
    tuple of float
        Exponent, lower and upper limit.
    """
    design = np.stack([np.ones_like(sizes), np.log(sizes), 1.0 / sizes], axis=1)
    weights = np.abs(means) / errors
    scaled = design * weights[:, None]
    target = np.log(np.abs(means)) * weights
    solve = np.linalg.pinv(scaled)  # (X'X)⁻¹ is its product with its transpose
    slope, spread = float(solve[1] @ target), float(np.linalg.norm(solve[1]))
    return slope, slope - normal_reach(count) * spread, slope + normal_reach(count) * spread


def judge_exponent(claimed: float, what: str, fitted: tuple[float, float, float]) -> Check:
    """Compare a claimed exponent with the limits of the fitted one."""
    slope, low, high = fitted
    return fit(
        f"{what}: exponent {claimed:g}",
        low <= claimed <= high,
        f"fitted exponent {slope:.3f}, interval [{low:.3f}, {high:.3f}]",
    )
