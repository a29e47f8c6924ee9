"""Whether all groups share what their k-th rows were drawn from: the same seeds for every prompt.

Rows of a group are exchangeable if groups share nothing. Let u be the rows less their group's mean.
If the order of the S rows of each of many groups says nothing, the sums z_k of u over the groups,
at each place k, are nearly normal, and T = Σ_k |z_k|² is distributed as Σ_j λ_j χ²(S - 1), λ the
eigenvalues of Σ u uᵀ / (S - 1). By Chernoff's bound,

    P(T ≥ t) ≤ min_s exp(-s t) Π_j (1 - 2 s λ_j)^(-(S - 1)/2).

Rows are drawn towards their centre to at most the median distance first, so that none decides.
"""

from __future__ import annotations

import numpy as np
import scipy  # its submodules are loaded at their first use
from numpy.typing import NDArray

from genbounds.validation import Float

FALSE_ALARM = 1e-3
"""Probability, at most, that groups that share nothing are accused."""

LEAST_GROUPS = 20
"""So few sums are not normal."""

FEATURES_COMPARED = 64
"""Features, evenly spaced, that are looked at where there are more."""


def shared_places_pvalue(rows: NDArray[np.floating], groups: NDArray[np.generic]) -> float:
    """Bound the p-value of "rows at one place of all groups are no more alike than others".

    Parameters
    ----------
    rows : ndarray of shape (n, d)
    groups : ndarray of shape (n,)

    Returns
    -------
    float
        1 for groups of unequal sizes, of single rows, or fewer than `LEAST_GROUPS`.
    """
    counts = np.unique(groups, return_counts=True)[1]
    size = int(counts[0])
    if counts.size < LEAST_GROUPS or size < 2 or (counts != size).any():
        return 1.0
    order = np.argsort(groups, kind="stable")
    d = rows.shape[1]
    columns = np.unique(np.linspace(0, d - 1, min(d, FEATURES_COMPARED)).astype(int))
    x = rows[:, columns][order].astype(np.float64)
    u = _drawn_in(x).reshape(counts.size, size, columns.size)
    u -= u.mean(axis=1, keepdims=True)
    sums = u.sum(axis=0)
    flat = u.reshape(-1, columns.size)
    eigenvalues = np.linalg.eigvalsh(flat.T @ flat) / (size - 1.0)
    return _chernoff(float((sums**2).sum()), np.maximum(eigenvalues, 0.0), size - 1)


def _drawn_in(x: Float) -> Float:
    """Return rows about their median, none farther from it than half of them are."""
    x = x - np.median(x, axis=0)
    norms = np.sqrt((x**2).sum(axis=1))
    limit = float(np.median(norms))
    return np.asarray(x * (limit / np.maximum(norms, limit))[:, None]) if limit else x


def _chernoff(seen: float, eigenvalues: Float, freedom: int) -> float:
    mean, largest = freedom * float(eigenvalues.sum()), float(eigenvalues[-1])
    if seen <= mean or not largest > 0.0:
        return 1.0

    def exponent(share: float) -> float:
        s = share / (2.0 * largest)
        return -s * seen - 0.5 * freedom * float(np.log1p(-2.0 * s * eigenvalues).sum())

    least = scipy.optimize.minimize_scalar(exponent, bounds=(0.0, 1.0 - 1e-9), method="bounded")
    return float(np.exp(min(float(least.fun), 0.0)))
