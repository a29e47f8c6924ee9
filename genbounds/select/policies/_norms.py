"""Norms of one arm's covariance that the published bonuses need, without a d × d eigenproblem."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its submodules are loaded at their first use
from numpy.typing import NDArray

from genbounds.validation import Float

PANEL = 256
"""Rows of the covariance that are held at a time."""

DENSE = 64
"""Up to this dimension the operator norm comes from all eigenvalues."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Norms:
    """What the bonus of M25 (6) needs to know of a covariance.

    Attributes
    ----------
    trace, trace_of_square, operator : float
        Tr Σ, Tr Σ², ‖Σ‖.
    """

    trace: float
    trace_of_square: float
    operator: float

    @classmethod
    def of_sample(cls, rows: NDArray[Any], *, threshold: float | None = None) -> Norms:
        """Norms of the sample covariance (divisor n, as in M25), optionally thresholded.

        Parameters
        ----------
        rows : ndarray of shape (n, d)
        threshold : float or None
            M of Cai & Liu (2011) as M25 App. C.3 uses it: off-diagonal entries below
            ``M sqrt(2 σ_ii σ_jj log(d) / n)`` become zero. None keeps every entry.
        """
        n, d = rows.shape
        centred, variances = _centred(rows)
        if threshold is None:  # the smaller of the two Gram sides has the same spectrum
            gram = (centred @ centred.T if n < d else centred.T @ centred) / n
            return cls(
                trace=float(np.trace(gram)),
                trace_of_square=float((gram * gram).sum()),
                operator=float(np.linalg.eigvalsh(gram)[-1]),
            )
        squares, operator = float(variances @ variances), float(variances.max())
        factor = threshold * math.sqrt(2.0 * math.log(d) / n)
        if factor < 1.0:  # otherwise no entry is large enough, by Cauchy and Schwarz
            spread = np.sqrt(variances)
            # Products in single precision where features come in it: a bonus needs no more.
            single = rows.dtype.itemsize <= 4
            scaled = np.empty(rows.shape, dtype=np.float32 if single else np.float64)
            divisor = np.where(spread > 0.0, spread, 1.0)
            np.divide(centred, divisor, out=scaled, casting="same_kind")
            entries = _correlations_above(scaled, factor)
            if entries.nnz:
                i, j = entries.coords
                entries.data *= spread[i] * spread[j]
                squares += 2.0 * float(entries.data @ entries.data)
                operator = _largest_eigenvalue(variances, entries)
        return cls(trace=float(variances.sum()), trace_of_square=squares, operator=operator)

    @property
    def quantities(self) -> dict[str, float]:
        """The norms as the catalogue of bounds calls them."""
        square = self.trace_of_square
        return {"trace": self.trace, "trace_square": square, "operator": self.operator}

    @classmethod
    def without_data(cls, d: int) -> Norms:
        """Dimension in place of data (M25 App. C.4): Tr Σ = Tr Σ² = d, ‖Σ‖ = 1."""
        return cls(trace=float(d), trace_of_square=float(d), operator=1.0)


def entry_norms(rows: NDArray[Any]) -> dict[str, float]:
    """Return what the bonus of O24 (7) needs to know of the sample covariance (divisor n).

    Named as in the catalogue: ``absolute_sum`` is ℐ, the sum of all |Σ_jl|, ``max_variance`` the
    largest Σ_jj, ``mean_deviation`` the mean of ``‖f(x_i) - μ̂‖``.
    """
    centred, variances = _centred(rows)
    norms, largest = Norms.of_sample(rows), float(variances.max())
    absolute = sum(float(np.abs(panel).sum()) for _, panel in _upper_panels(centred))
    absolute = float(variances.sum()) + 2.0 * absolute
    return _quantities(centred, norms.trace, norms.operator, absolute, largest)


def truncated_norms(
    rows: NDArray[Any], reference_cov: Float, *, cut: float, delta: float
) -> dict[str, float]:
    """Estimate the same as O24 App. D.5 does, with the constant 1 in every O(·) there.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
    reference_cov : ndarray of shape (d, d)
        Σ_r: Tr Σ is estimated by ``Tr[truncate(Σ̂) Σ_r]``.
    cut : float
        τ: entries below it become zero, negative ones included, as printed.
    delta : float
        ‖Σ‖ is estimated by the largest sample variance (divisor n - 1) plus
        ``sqrt(log(1/delta) / n)``.
    """
    n = rows.shape[0]
    centred, variances = _centred(rows)
    kept = np.where(variances >= cut, variances, 0.0)
    absolute, product = float(kept.sum()), float(kept @ np.diagonal(reference_cov))
    # By Cauchy and Schwarz no other column has an entry that is large enough.
    able = np.flatnonzero(variances * variances.max() >= cut**2)
    for start, panel in _upper_panels(centred[:, able]):
        panel[panel < cut] = 0.0
        absolute += 2.0 * float(panel.sum())
        target = reference_cov[np.ix_(able[start : start + len(panel)], able[start:])]
        product += 2.0 * float((panel * target).sum())
    largest = float(variances.max()) * n / (n - 1)
    operator = largest + math.sqrt(math.log(1.0 / delta) / n)
    return _quantities(centred, product, operator, absolute, largest)


def _centred(rows: NDArray[Any]) -> tuple[Float, Float]:
    """Return the rows less their mean, and the variances of the columns (divisor n)."""
    centred: Float = rows - rows.mean(axis=0, dtype=np.float64)
    return centred, np.einsum("ij,ij->j", centred, centred) / len(rows)


def _quantities(centred: Float, *norms: float) -> dict[str, float]:
    named = dict(zip(("trace", "operator", "absolute_sum", "max_variance"), norms, strict=True))
    lengths = np.sqrt(np.einsum("ij,ij->i", centred, centred))
    return named | {"mean_deviation": float(lengths.mean())}


def _upper_panels(
    centred: NDArray[np.floating[Any]],
) -> Iterator[tuple[int, NDArray[np.floating[Any]]]]:
    """Covariance entries above the diagonal: (first row, panel of its rows from that column on)."""
    n, d = centred.shape
    for start in range(0, d, PANEL):
        stop = min(start + PANEL, d)
        size = stop - start
        panel = np.empty((size, d - start), dtype=centred.dtype)
        columns = centred[:, start:stop]
        panel[:, :size] = np.triu(columns.T @ columns, 1)
        np.matmul(columns.T, centred[:, stop:], out=panel[:, size:])
        panel /= n
        yield start, panel


def _correlations_above(scaled: NDArray[np.floating[Any]], least: float) -> Any:
    """Upper off-diagonal entries of at least `least`, sparse; columns have variance 1."""
    d = scaled.shape[1]
    found: list[tuple[NDArray[np.intp], NDArray[np.intp], Float]] = []
    for start, panel in _upper_panels(scaled):
        i, j = np.divmod(np.flatnonzero(np.abs(panel) >= least), panel.shape[1])
        found.append((i + start, j + start, panel[i, j].astype(np.float64)))
    rows, columns, values = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return scipy.sparse.coo_array((values, (rows, columns)), shape=(d, d))


def _largest_eigenvalue(variances: Float, entries: Any) -> float:
    """Largest eigenvalue of the symmetric matrix with this diagonal and upper part."""
    d = variances.size
    matrix = entries + entries.T + scipy.sparse.diags_array(variances)
    if d > DENSE:
        start = np.sqrt(variances) + 1e-3 * math.sqrt(float(variances.max()))
        with suppress(scipy.sparse.linalg.ArpackError):  # no convergence
            largest = scipy.sparse.linalg.eigsh(
                matrix, k=1, which="LA", v0=start, return_eigenvectors=False
            )
            return float(largest[0])
    return float(np.linalg.eigvalsh(matrix.toarray())[-1])
