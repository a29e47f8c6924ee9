"""What a caller says of a kernel, and the bandwidth that rows suggest."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from genbounds._text import quoted
from genbounds.validation import (
    InputError,
    check_choice,
    check_count,
    check_features,
    check_finite,
)

BANDWIDTH_ROWS = 1000
"""Rows whose pairwise distances the median heuristic looks at."""

BANDWIDTH_SEED = 20_240_101

KernelFunction = Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolynomialKernel:
    """(γ x·y + offset)^degree, normalised to k(x, x) = 1; pass it as `kernel`.

    Attributes
    ----------
    degree : int
    gamma : float or None
        γ; None: one over the number of features.
    offset : float
        Non-negative.
    """

    degree: int = 3
    gamma: float | None = None
    offset: float = 1.0

    def __post_init__(self) -> None:
        check_count("degree", self.degree)
        if self.gamma is not None and not 0.0 < self.gamma < math.inf:
            raise InputError(
                f"must be positive and finite, or None; got {self.gamma!r}.", argument="gamma"
            )
        if not 0.0 <= self.offset < math.inf:
            raise InputError(
                f"must be non-negative and finite; got {self.offset!r}.", argument="offset"
            )

    def dimension(self, d: int) -> int:
        """Dimension of the feature map for d input features."""
        if self.offset == 0.0:
            return math.comb(d + self.degree - 1, self.degree)
        return math.comb(d + self.degree, self.degree)


Kernel = str | PolynomialKernel | KernelFunction


def check_bandwidth(bandwidth: Any) -> float:
    """Return a positive, finite bandwidth as a float."""
    if isinstance(bandwidth, bool) or not (
        isinstance(bandwidth, Real) and 0.0 < float(bandwidth) < math.inf
    ):
        raise InputError(
            f"must be a positive, finite number; got {quoted(bandwidth)}.", argument="bandwidth"
        )
    return float(bandwidth)


def median_bandwidth(x: Any, *, kernel: str = "rbf") -> float:
    """Median of the pairwise distances of at most 1,000 rows: the median heuristic.

    Parameters
    ----------
    x : array_like of shape (n, d)
    kernel : {"rbf", "laplace"}
        Euclidean distances for "rbf", ``exp(-‖x-y‖²/(2σ²))``; L1 distances for "laplace",
        ``exp(-‖x-y‖₁/σ)``.

    Returns
    -------
    float
        σ, in the unit of the features.
    """
    from scipy.spatial.distance import pdist

    check_choice("kernel", kernel, ("rbf", "laplace"))
    rows = check_features("x", x)
    if len(rows) > BANDWIDTH_ROWS:
        rng = np.random.default_rng(BANDWIDTH_SEED)
        rows = rows[np.sort(rng.choice(len(rows), BANDWIDTH_ROWS, replace=False))]
    rows = np.array(rows, dtype=np.float64)
    check_finite("x", rows)
    distances = pdist(rows, "euclidean" if kernel == "rbf" else "cityblock")
    median = float(np.median(distances))
    if median == 0.0:  # most rows coincide
        median = float(distances.mean())
    if median == 0.0 and (rows != rows[0]).any():
        raise InputError(
            "has rows so close together that the squares of their distances round to zero: "
            "multiply the features by a common number.",
            argument="x",
        )
    return median if median > 0.0 else 1.0
