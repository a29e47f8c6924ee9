"""Order 2 without eigenvalues: ‖C‖² = E k(x, x')² by its unbiased U-statistic."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.core.design import Design, Index
from genbounds.core.estimate import SampleError
from genbounds.core.expansion import expand
from genbounds.core.moments import row_blocks
from genbounds.estimators.kernels._estimate import KernelForm
from genbounds.estimators.kernels._kernel_rows import KernelRows, kernel_rows
from genbounds.estimators.kernels._pair_kernels import BLOCK_ROWS, Kernel, Squares, weighted_sums
from genbounds.validation import Float

SHIFTS, PAIRING_SEED = 8, 20_240_103
"""Pairings of every row that estimate E k⁴ from features; fixed, so that results repeat."""

LEAST_ROWS = 8
"""Minimum number of rows from which the variance of the U-statistic is estimated."""


def frobenius(rows: KernelRows, design: Design | None = None) -> tuple[float, float, SampleError]:
    """Estimate ‖C‖² = E k(x, x')² by its U-statistic, one block of K at a time.

    Returns
    -------
    plugin : float
        Tr (K/n)², with the diagonal; with weights Σ w_i w_j k_ij².
    value : float
        Unbiased.
    error : SampleError
        Of `value`, with the influence of every row, or unit of the design.

    Notes
    -----
    Var U = (4 (n-2) ζ₁ + 2 ζ₂) / (n(n-1)), with ζ₂ the variance of k(x, x')² and ζ₁ that of its
    conditional mean. The sample variance of the estimated projections has expectation
    ((n-2)(n-4) ζ₁ + (n-2) ζ₂) / (n-1)², which is solved for ζ₁.

    Under a design the score is quadratic in the weights, so that its plug-in less tr M is unbiased:
    for independent rows it is the U-statistic.
    """
    n = rows.n
    features = rows.features() if rows.dimension is not None and rows.dimension < n else None
    if design is not None:
        if features is None:
            own, _ = _from_blocks(rows, design.weights)
        else:
            scaled = features * np.sqrt(design.weights)[:, None]
            own = np.einsum("ij,ij->i", features @ (scaled.T @ scaled), features)
        form = SquaredKernelForm(rows, own, design.weights)
        error, _ = expand(form, design)
        return form.mean, form.mean - error.bias, error
    if features is None:
        squares, fourth = _from_blocks(rows, np.ones(n))
    else:
        squares, fourth = _from_features(features)
    projection = (squares - 1.0) / (n - 1.0)  # k(x, x) = 1
    value = float(projection.mean())
    spread = float(np.var(projection, ddof=1))
    pairwise = max((fourth - n) / (n * (n - 1.0)) - value**2, 0.0)
    linear = (spread * (n - 1.0) ** 2 - (n - 2.0) * pairwise) / ((n - 2.0) * (n - 4.0))
    linear = max(linear, 0.0)
    error = SampleError(
        variance=(4.0 * (n - 2.0) * linear + 2.0 * pairwise) / (n * (n - 1.0)),
        degrees_of_freedom=n - 1.0,
        influence=2.0 * (projection - value),
        quadratic_variance=2.0 * max(pairwise - 2.0 * linear, 0.0) / (n * (n - 1.0)),
    )
    return (1.0 + (n - 1.0) * value) / n, value, error


class SquaredKernelForm(KernelForm):
    """Rows as a `Form` of E k(x, x')²; `own` has the weighted mean of k(x, ·)² over all rows."""

    seed = PAIRING_SEED
    bounded = True

    def __init__(self, rows: KernelRows, own: Float, weights: Float) -> None:
        super().__init__(rows.given.shape[1], own, np.ones(rows.n), weights)
        self.rows = rows

    def pairs(self, i: Index, j: Index) -> Float:
        """k(x_i, x_j)² of pairs of rows."""
        return self.rows.pairs(i, j) ** 2


def squared_kernel_sum(
    one: NDArray[Any], two: NDArray[Any], *, kernel: Kernel, bandwidth: float | None
) -> float:
    """Sum of k(x, y)² over all pairs of a row of `one` and a row of `two`.

    Parameters
    ----------
    one : ndarray of shape (n, d)
    two : ndarray of shape (k, d)
    kernel : str, PolynomialKernel or callable
        As for `vendi_score`.
    bandwidth : float or None
        Needed where the kernel has one.

    Returns
    -------
    float
    """
    rows = kernel_rows(np.concatenate([one, two]), kernel, bandwidth)
    total = 0.0
    for start in range(len(one), rows.n, BLOCK_ROWS):
        values = rows.block(slice(0, len(one)), slice(start, min(start + BLOCK_ROWS, rows.n)))
        total += float(np.einsum("ij,ij->i", values, values).sum(dtype=np.float64))
    return total


def _from_blocks(rows: KernelRows, weights: Float) -> tuple[Float, float]:
    """Weighted row sums of K∘K, and the sum of all k⁴."""
    fourth = Squares(symmetric=True)
    blocks = ((i, j, np.multiply(k, k, out=k)) for i, j, k in rows.upper_blocks())
    return weighted_sums(fourth.through(blocks), weights)[0], fourth.total


def _from_features(features: NDArray[Any]) -> tuple[Float, float]:
    """Compute the same from the smaller side; k⁴, wanted only for the variance, from some pairs."""
    n, d = features.shape
    gram = np.zeros((d, d))
    for _, block in row_blocks(features):
        gram += block.T @ block
    shuffler = np.random.default_rng(PAIRING_SEED)
    squares, fourth, pairs = np.empty(n), 0.0, 0
    for positions, block in row_blocks(features):
        squares[positions] = np.einsum("ij,ij->i", block @ gram, block)
        shuffled = block[shuffler.permutation(len(block))]
        for shift in range(1, min(SHIFTS, len(block) - 1) + 1):
            values = np.einsum("ij,ij->i", shuffled, np.roll(shuffled, shift, axis=0))
            fourth += float((values**4).sum())
            pairs += values.size
    return squares, n + n * (n - 1.0) * fourth / max(pairs, 1)


PairSum = Callable[[NDArray[Any], NDArray[Any]], float]
"""Sum of a kernel over all pairs of a row of the first and a row of the second argument."""


class GrowingPairs:
    """Sum of a symmetric kernel over all pairs of rows of a growing sample, the diagonal too.

    Attributes
    ----------
    n : int
        Rows so far.
    total : float
    """

    def __init__(self, pair_sum: PairSum) -> None:
        self.n = 0
        self.total = 0.0
        self._pair_sum = pair_sum
        self._rows: NDArray[Any] | None = None

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return 0 if self._rows is None else self._rows.nbytes

    def add(self, rows: NDArray[Any]) -> None:
        """Take up rows of shape (b, d)."""
        if self._rows is not None:
            self.total += 2.0 * self._pair_sum(rows, self._rows)
        self.total += self._pair_sum(rows, rows)
        self._rows = np.concatenate([rows[:0] if self._rows is None else self._rows, rows])
        self.n = len(self._rows)


class RunningRke(GrowingPairs):
    """Plug-in order-2 entropy, the logarithm of the mean squared kernel.

    Parameters
    ----------
    pair_sum : callable
        Sum of k² over pairs of rows.
    """

    def loss(self) -> float:
        """Minus the logarithm of the plug-in score of all rows so far; -inf before two."""
        n = self.n
        return math.log(self.total / n**2) if n > 1 else -math.inf
