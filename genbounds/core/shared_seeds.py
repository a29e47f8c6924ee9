"""Whether all groups share what their k-th rows were drawn from: the same seeds for every prompt.

Let u_g be all rows of group g less their mean, one long vector. Groups that share nothing are
independent, whatever the rows of one share with their neighbours (frames of a clip do), and where
places mean nothing u_g has mean 0. Then W = Σ_{g≠h} u_g·u_h has mean 0, and nearly the distribution
of a weighted sum of centred χ²(1) whose weights are the eigenvalues of the matrix K of these
products, its diagonal 0: that of a gamma variable with the same variance 2 tr K² and third cumulant
8 tr K³.

Rows are first drawn towards their group's mean to at most the median distance, so that none decides
(a centre of all rows would be something that groups share).
"""

from __future__ import annotations

import math

import numpy as np
import scipy  # its submodules are loaded at their first use
from numpy.typing import NDArray

FALSE_ALARM = 1e-3
"""Probability, at most, that groups that share nothing are accused."""

LEAST_GROUPS = 20
"""So few sums are not normal."""

LEAST_SKEWNESS = 0.01
"""Of W, as tr K³ / (tr K²)^1.5: of less it is as good as normal."""

FEATURES_COMPARED = 64
"""Features, evenly spaced, that are looked at where there are more."""


def shared_places_pvalue(rows: NDArray[np.floating], groups: NDArray[np.generic]) -> float:
    """p-value of "rows at one place of all groups are no more alike than others".

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
    x = rows[:, columns][order].astype(np.float64).reshape(counts.size, size, columns.size)
    x -= x.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(x, axis=2, keepdims=True)
    limit = float(np.median(norms) or norms.max() or 1.0)
    x *= limit / np.maximum(norms, limit)
    u = (x - x.mean(axis=1, keepdims=True)).reshape(counts.size, -1)
    own = (u**2).sum(axis=1)  # the diagonal, which is taken off
    if len(u) <= u.shape[1]:
        products = u @ u.T
        weighted = float(own @ (products**2).sum(axis=1))
    else:  # the smaller matrix, of the same eigenvalues
        products, scaled = u.T @ u, u * np.sqrt(own)[:, None]
        weighted = float(((scaled.T @ scaled) * products).sum())
    second = float((products**2).sum() - own @ own)
    third = float(
        ((products @ products.T) * products).sum() - 3.0 * weighted + 2.0 * (own**3).sum()
    )
    if not second > 0.0:
        return 1.0
    z = float((u.sum(axis=0) ** 2).sum() - own.sum()) / math.sqrt(2.0 * second)
    shape = 0.5 / max(third / second**1.5, LEAST_SKEWNESS) ** 2
    return float(scipy.special.gammaincc(shape, max(shape + z * math.sqrt(shape), 0.0)))
