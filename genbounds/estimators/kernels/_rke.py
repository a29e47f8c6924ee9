"""Order 2 without eigenvalues: ‖C‖² = E k(x, x')² by its unbiased U-statistic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.core.design import Design, Index
from genbounds.core.estimate import SampleError
from genbounds.core.expansion import FormOfNumbers, RowTerms, expand
from genbounds.core.moments import row_blocks
from genbounds.core.tiles import weighted_sums
from genbounds.estimators.kernels._kernel_rows import KernelRows, kernel_rows
from genbounds.estimators.kernels._pair_kernels import BLOCK_ROWS
from genbounds.estimators.kernels._parameters import Kernel
from genbounds.validation import Float

SHIFTS, PAIRING_SEED = 8, 20_240_103
"""Pairings of every row that estimate E k⁴ from features; fixed, so that results repeat."""

MINIMUM = 8
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
        return _of_design(rows, features, design)
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


def _of_design(
    rows: KernelRows, features: NDArray[Any] | None, design: Design
) -> tuple[float, float, SampleError]:
    if features is None:
        sums, _ = _from_blocks(rows, design.weights)
    else:
        scaled = features * np.sqrt(design.weights)[:, None]
        sums = np.einsum("ij,ij->i", features @ (scaled.T @ scaled), features)
    plugin = float(design.weights @ sums)
    error, _ = expand(SquaredKernelForm(rows, sums, plugin), design)
    return plugin, plugin - error.bias, error


class SquaredKernelForm(FormOfNumbers):
    """Rows as a `Form` of E k(x, x')²; a block is the numbers of its rows.

    Parameters
    ----------
    rows : KernelRows
    sums : ndarray of shape (n,)
        Weighted mean of k(x_i, x)² over all rows x.
    plugin : float
        Weighted mean of `sums`.
    """

    seed = PAIRING_SEED
    bounded = True

    def __init__(self, rows: KernelRows, sums: Float, plugin: float) -> None:
        super().__init__(rows.n, rows.width)
        self.rows, self.sums, self.mean = rows, sums, plugin

    def terms(self, block: Index, positions: Index) -> RowTerms:
        """Influence 2 (E k(x, ·)² - E k²), and h(x, x)."""
        means = self.sums[block]
        return RowTerms(2.0 * (means - self.mean), 1.0 - 2.0 * means + self.mean)

    def across(self, a: Index, i: Index, b: Index, j: Index) -> Float:
        """k(x_i, x_j)² less the means over either."""
        one, two = a[i], b[j]
        values: Float = self.rows.pairs(one, two) ** 2
        return values - self.sums[one] - self.sums[two] + self.mean


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
    fourth = 0.0

    def squared() -> Iterator[tuple[slice, slice, NDArray[Any]]]:
        nonlocal fourth
        for i, j, values in rows.upper_blocks():
            values *= values
            flat = values.ravel()
            # Blocks off the diagonal stand for their mirror image too.
            fourth += float(np.dot(flat, flat)) * (2.0 if i != j else 1.0)
            yield i, j, values

    return weighted_sums(squared(), weights, None)[0], fourth


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
