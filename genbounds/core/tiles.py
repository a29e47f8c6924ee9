"""Sums over all pairs of rows, a block of their kernel at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.validation import Float

SINGLE_ROWS = 4096
"""Above so many rows of a sample, kernels of float32 features are evaluated in float32."""


def weighted_sums(
    blocks: Iterable[tuple[slice, slice, NDArray[Any]]],
    weights: NDArray[Any],
    others: NDArray[Any] | None,
) -> tuple[Float, Float]:
    """Sum blocks of a kernel with the weights of the others, and with those of the rows.

    Parameters
    ----------
    blocks : iterable of (slice of the rows, slice of the others, ndarray)
        Without `others`, those on and above the diagonal of the kernel of rows with themselves.
    weights : ndarray of shape (n, ...)
        Of the rows.
    others : ndarray of shape (m, ...) or None
        Weights of the others.

    Returns
    -------
    over_others : ndarray of shape (n, ...)
    over_rows : ndarray of shape (m, ...)
        Of rows with themselves, the same array.
    """
    over_others = np.zeros(weights.shape)
    over_rows = over_others if others is None else np.zeros(others.shape)
    theirs = weights if others is None else others
    for i, j, values in blocks:
        over_others[i] += values @ theirs[j]
        if others is not None or i != j:
            over_rows[j] += values.T @ weights[i]
    return over_others, over_rows
