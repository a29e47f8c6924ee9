"""Class posteriors row by row: influence on the log Inception score, and its quadratic part."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.core.design import Index
from genbounds.core.expansion import Form, RowTerms
from genbounds.core.moments import BLOCK_BYTES, row_blocks
from genbounds.validation import POSTERIOR_ATOL, Float, InputError, check_finite

HALVING_SEED = 20_190_110
"""Fixed, so that random halves and pairs of rows give the same result at every call."""

CACHE_SHARE = 32
"""Blocks are this much smaller than those of other estimators: many light passes over each."""

NEVER = 1e-290
"""A class of smaller mean probability adds nothing to the score, and has no finite inverse."""

TINY = float(np.finfo(np.float64).tiny)
"""Stands in for a probability of 0 in its logarithm: 0 log 0 = 0."""


class InceptionForm(Form):
    """The rows of a sample of posteriors as a `Form`; a block is an array of posteriors.

    With q the mean posterior, IF(p) = KL(p ‖ q) less its mean and h(p, p') = (1 - Σ p p'/q) / 2.

    Parameters
    ----------
    rows : ndarray of shape (n, classes)
    index : ndarray of shape (k,), optional
        The rows to use; they have been checked already.
    weights : ndarray of shape (n,) or (k,), optional
        Of these rows; they sum to one.
    half : ndarray of shape (n,), optional
        0 or 1 for every row: the divergences from the mean posterior of either half are wanted too.

    Attributes
    ----------
    marginals : ndarray of shape (classes, 1 or 3)
        Mean posterior of all rows and, from four rows on, of either random half.
    top : ndarray of shape (classes,)
        How often each class is the likeliest, counted by `terms`.
    divergence, own : ndarray of shape (1 or 3, n)
        KL divergence and chi-square distance of every row from each of them, filled by `terms`.
    """

    seed = HALVING_SEED

    def __init__(
        self,
        rows: NDArray[Any],
        index: Index | None = None,
        *,
        weights: Float | None = None,
        half: Index | None = None,
    ) -> None:
        self.rows, self.index = rows, index
        self.n = self.rows_at_hand = rows.shape[0] if index is None else index.size
        self.width, self.divisor = CACHE_SHARE * rows.shape[1], self.n - 1.0
        self.block_rows = max(2, BLOCK_BYTES // (8 * self.width))
        self.weights = weights
        self.half = np.zeros(self.n, dtype=np.intp) if half is None else half
        if half is not None:
            self.marginals = np.column_stack(_checked_marginals(rows, half))
        else:
            self.marginals = _marginal(rows, index, weights)[:, None]
        present = self.marginals > NEVER
        self._log = np.log(np.where(present, self.marginals, 1.0))
        self._inverse = np.where(present, 1.0 / np.where(present, self.marginals, 1.0), 0.0)
        self.divergence, self.own = np.full((2, self.marginals.shape[1], self.n), np.nan)
        self.top = np.zeros(rows.shape[1], dtype=np.intp)

    def block(self, rows: Index) -> Float:
        """Return posteriors that sum to one."""
        chosen = rows if self.index is None else self.index[rows]
        p: Float = np.asarray(self.rows[chosen], dtype=np.float64)  # a copy
        p /= p.sum(axis=1, keepdims=True)
        return p

    def terms(self, block: Float, positions: Index) -> RowTerms:
        """KL(p ‖ q) in nats and -(Σ p²/q - 1) / 2; the same for the halves is kept aside."""
        work = np.maximum(block, TINY)
        np.log(work, out=work)
        divergence = np.einsum("ij,ij->i", block, work) - (block @ self._log).T
        np.multiply(block, block, out=work)
        own = (work @ self._inverse).T - 1.0
        self.divergence[:, positions], self.own[:, positions] = divergence, own
        self.top += np.bincount(block.argmax(axis=1), minlength=self.top.size)
        return RowTerms(divergence[0], own[0] / -2.0)

    def across(self, one: Float, i: Index, two: Float, j: Index) -> Float:
        """h(p_i, p_j)."""
        weighted = two[j]
        weighted *= self._inverse[:, 0]
        crossed: Float = np.einsum("ij,ij->i", one[i], weighted)
        return (1.0 - crossed) / 2.0

    def square_of(self, rows: Index, v: Float) -> float:
        """Σ_ij v_i v_j h(p_i, p_j) over the rows with these numbers."""
        total = v @ self.block(rows)
        return (float(v.sum()) ** 2 - float(total**2 @ self._inverse[:, 0])) / 2.0

    def plugin(self) -> float:
        """Mean divergence, the plug-in log score, once `terms` has seen every row."""
        divergence = self.divergence[0]
        mean = divergence.mean() if self.weights is None else self.weights @ divergence
        return max(float(mean), 0.0)

    def half_values(self) -> list[float] | None:
        """Log score to second order of either half; None of fewer than four rows."""
        if self.n < 4:
            return None
        values = []
        for k in (0, 1):
            members = self.half == k
            own = self.own[1 + k, members]
            bias = -float(own.sum()) / (2.0 * own.size * (own.size - 1))
            values.append(max(float(self.divergence[1 + k, members].mean()), 0.0) - bias)
        return values

    def value(self) -> float:
        """Plug-in log score, without its error."""
        for positions, block in self.blocks(None):
            self.terms(block, positions)
        return self.plugin()


def random_halves(n: int) -> NDArray[np.intp]:
    """Label 0 or 1 of each row: random halves."""
    label = np.empty(n, dtype=np.intp)
    label[np.random.default_rng(HALVING_SEED).permutation(n)] = np.arange(n) % 2
    return label


def _marginal(rows: NDArray[Any], index: NDArray[np.intp] | None, weights: Float | None) -> Float:
    """Mean posterior; rows are checked where all of them are used."""
    total = np.zeros(rows.shape[1])
    n = rows.shape[0] if index is None else index.size
    for positions, block in row_blocks(rows, index):
        sums = (
            block.sum(axis=1) if index is not None else _check_posteriors(block, int(positions[0]))
        )
        block /= sums[:, None]
        total += block.sum(axis=0) / n if weights is None else weights[positions] @ block
    return total


def _checked_marginals(rows: NDArray[Any], half: NDArray[np.intp]) -> tuple[Float, ...]:
    """Mean posterior of all rows and, from four rows on, of either half; every row is checked."""
    n = rows.shape[0]
    totals = np.zeros((2, rows.shape[1]))
    for positions, block in row_blocks(rows, width=CACHE_SHARE * rows.shape[1]):
        total = _check_posteriors(block, int(positions[0]))
        # Rows are weighted by their half and by what makes them sum to one.
        totals += ((half[positions] == [[0], [1]]) / total) @ block
    marginal = totals.sum(axis=0) / n
    if n < 4:
        return (marginal,)
    return (marginal, *(totals / np.bincount(half)[:, None]))


def _check_posteriors(block: Float, first_row: int) -> Float:
    """Refuse rows that are no probability vectors; returns their sums."""
    with np.errstate(over="ignore", invalid="ignore"):  # said better below
        total: Float = block.sum(axis=1)
    if block.min() >= 0.0 and np.abs(total - 1.0).max() <= POSTERIOR_ATOL:  # NaN fails both
        return total
    check_finite("probs", block, first_row=first_row)
    lowest: Float = block.min(axis=1)
    row = int(np.flatnonzero(~(np.abs(total - 1.0) <= POSTERIOR_ATOL) | (lowest < 0.0))[0])
    what = "a negative entry" if lowest[row] < 0.0 else f"entries that sum to {total[row]:.6g}"
    raise InputError(
        f"has {what} in row {first_row + row}: every row must be a probability "
        "vector. If these are logits, apply a softmax first.",
        argument="probs",
    )
