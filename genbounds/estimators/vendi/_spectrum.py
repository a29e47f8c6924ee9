"""Spectra of a kernel matrix: the smaller side, leading pairs, Nyström, Fourier, Lanczos."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import scipy  # its submodules are loaded at their first use
from numpy.typing import NDArray

from genbounds.core.design import Index
from genbounds.core.moments import BLOCK_BYTES
from genbounds.estimators.kernels._kernel_rows import KernelRows
from genbounds.estimators.kernels._rke import frobenius
from genbounds.estimators.vendi._expansion import ZERO, Spectrum
from genbounds.validation import Float

KRYLOV_POWERS = 4
CONVERGED = 1e-3
"""Relative residual below which an eigenpair is deflated."""

KRYLOV_EXTRA = 32
"""Columns of the block beyond the wanted eigenpairs."""


@dataclass(eq=False)
class FeatureRows:
    """Rows of a feature map, made when they are asked for.

    Attributes
    ----------
    given : ndarray of shape (n, d) or more rows
        What they are made of.
    make : callable, optional
        Returns features, of some of these rows.
    d : int
        Dimension of the feature map; by default that of the rows.
    dtype : numpy dtype
        Precision of products with them; by default that of the rows.
    index : ndarray of int, optional
        Which of the rows there are.
    """

    given: NDArray[Any]
    make: Callable[[NDArray[Any]], NDArray[Any]] | None = field(default=None, kw_only=True)
    d: int = field(default=0, kw_only=True)
    dtype: Any = field(default=None, kw_only=True)
    index: Index | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self.n = len(self.given) if self.index is None else len(self.index)
        self.d = self.d or self.given.shape[1]
        self.dtype = np.dtype(self.given.dtype if self.dtype is None else self.dtype)

    def subset(self, index: Index) -> FeatureRows:
        """Return some of the rows."""
        return replace(self, index=index if self.index is None else self.index[index])

    def _rows(self, where: slice | Index) -> NDArray[Any]:
        rows = self.given[where if self.index is None else self.index[where]]
        return rows if self.make is None else self.make(rows)

    def blocks(
        self, index: Index | None = None, *, copies: int = 1
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[Any]]]:
        """Yield (positions, rows) over blocks of all rows or of those with that index.

        `copies`: arrays of this size that the caller makes of a block.
        """
        n = self.n if index is None else index.size
        size = max(2, BLOCK_BYTES // (copies * self.dtype.itemsize * self.d))
        for start in range(0, n, size):
            stop = min(start + size, n)
            part = slice(start, stop) if index is None else index[start:stop]
            rows = self._rows(part).astype(self.dtype, copy=False)
            yield np.arange(start, stop), rows

    def gram(self, weights: Float | None = None) -> Float:
        """Return ΦᵀΦ/n or ΦΦᵀ/n, whichever is smaller, in float64; with weights Φᵀ diag(w) Φ."""
        if self.n <= self.d:
            rows = self._rows(slice(0, self.n)).astype(np.float64, copy=False)
            return weighted_gram(np.asarray(rows @ rows.T), weights)
        out = np.zeros((self.d, self.d))
        for positions, block in self.blocks():
            out += (block if weights is None else block * weights[positions, None]).T @ block
        if weights is None:
            out /= self.n
        return out


def weighted_gram(matrix: Float, weights: Float | None) -> Float:
    """K/n in place, or diag(w)^½ K diag(w)^½."""
    if weights is None:
        matrix /= len(matrix)
    else:
        root = np.sqrt(weights)
        matrix *= root[:, None]
        matrix *= root
    return matrix


def from_features(
    features: FeatureRows, gram: Float | None = None, weights: Float | None = None
) -> Spectrum:
    """Decompose ΦᵀΦ/n or ΦΦᵀ/n, whichever is smaller: `gram`, where it is known."""
    gram = features.gram(weights) if gram is None else gram
    if features.n <= features.d:
        return _from_vectors(*_eigh(gram.copy()), weights)
    values, vectors = _eigh(gram.astype(features.dtype))
    kept = values > ZERO
    values = np.ascontiguousarray(values[kept], dtype=np.float64)
    vectors = np.ascontiguousarray(vectors[:, kept])

    def coordinates(index: Index | None) -> Iterator[tuple[NDArray[np.intp], Float]]:
        for positions, block in features.blocks(index, copies=4):
            yield positions, block @ vectors

    return Spectrum(values=values, coordinates=coordinates)


def _eigh(matrix: Float) -> tuple[Float, Float]:
    """Eigenvalues, largest first, and eigenvectors; `matrix` is overwritten."""
    values, vectors = scipy.linalg.eigh(
        matrix.T,  # in LAPACK's order, so that no copy is made
        check_finite=False,
        overwrite_a=True,
        driver="evd",
    )
    return values[::-1], vectors[:, ::-1]


def from_gram(gram: Float, weights: Float | None = None) -> Spectrum:
    """Decompose the n × n kernel matrix, with weights of its rows; `gram` is overwritten."""
    return _from_vectors(*_eigh(weighted_gram(gram, weights)), weights)


def _from_vectors(values: Float, vectors: Float, weights: Float | None = None) -> Spectrum:
    n = len(vectors)
    kept = values > ZERO
    values = np.ascontiguousarray(values[kept])
    z = vectors[:, kept] * np.sqrt(n * values)
    if weights is not None:  # a row without weight is nowhere in the spectrum
        scale = np.sqrt(n * weights)
        z /= np.where(scale > 0.0, scale, np.inf)[:, None]

    def coordinates(index: Index | None) -> Iterator[tuple[NDArray[np.intp], Float]]:
        chosen = z if index is None else z[index]
        yield np.arange(len(chosen)), chosen

    return Spectrum(values=values, coordinates=coordinates)


def leading(rows: KernelRows, count: int, seed: int) -> tuple[Spectrum, float]:
    """Leading eigenpairs by a randomised block Krylov method, and the largest residual.

    No more of the kernel matrix than one block exists at any time.

    References
    ----------
    .. [1] C. Musco and C. Musco, "Randomized block Krylov methods for stronger and faster
       approximate singular value decomposition", NeurIPS 2015.
    """
    n = rows.n
    rng = np.random.default_rng(seed)
    block = rng.standard_normal((n, count + KRYLOV_EXTRA))
    parts = []
    for _ in range(KRYLOV_POWERS):
        block = np.linalg.qr(rows.multiply(block) / n)[0]
        parts.append(block)
    basis = np.linalg.qr(np.hstack(parts))[0]
    values, vectors, residual = _ritz_pairs(rows, basis, count + KRYLOV_EXTRA)
    return _from_vectors(values, vectors), float(residual[:count].max())


def _ritz_pairs(rows: KernelRows, basis: Float, count: int) -> tuple[Float, Float, Float]:
    """Return the leading eigenpairs of K/n within the span of `basis`, and their residuals."""
    moved = rows.multiply(basis) / rows.n
    values, small = scipy.linalg.eigh(basis.T @ moved, check_finite=False)
    values, small = values[::-1][:count], small[:, ::-1][:, :count]
    vectors = basis @ small
    return values, vectors, np.linalg.norm(moved @ small - vectors * values, axis=0)


def nystrom_spectrum(rows: KernelRows, landmarks: int, seed: int) -> tuple[Spectrum, float]:
    """Spectrum of the Nyström approximation on random landmarks, and its trace (at most 1).

    References
    ----------
    .. [1] C. K. I. Williams and M. Seeger, "Using the Nyström method to speed up kernel machines",
       NeurIPS 2000.
    """
    rng = np.random.default_rng(seed)
    index = np.sort(rng.choice(rows.n, landmarks, replace=False))
    values, vectors = scipy.linalg.eigh(rows.subset(index).matrix(), check_finite=False)
    kept = values > landmarks * np.finfo(float).eps * values[-1]
    root = vectors[:, kept] / np.sqrt(values[kept])
    features = np.empty((rows.n, root.shape[1]))
    for part in rows.slices():
        features[part] = rows.block(part, index) @ root
    spectrum = from_features(FeatureRows(features))
    return spectrum, float(spectrum.values.sum())


def fourier_features(rows: KernelRows, frequencies: int, seed: int) -> FeatureRows:
    """Cosines and sines at random frequencies, 2t of them, each row of norm one.

    References
    ----------
    .. [1] A. Rahimi and B. Recht, "Random features for large-scale kernel machines", NeurIPS 2007.
    """
    rng = np.random.default_rng(seed)
    shape = (rows.rows.shape[1], frequencies)
    omega = rng.standard_normal(shape) if rows.name == "rbf" else rng.standard_cauchy(shape)
    # Angles of a Cauchy distribution can be too large for the cosine of a float32.
    dtype = rows.rows.dtype if rows.name == "rbf" else np.dtype(np.float64)
    omega = omega.astype(dtype)
    scale = dtype.type(1.0 / math.sqrt(frequencies))

    def make(part: NDArray[Any]) -> NDArray[Any]:
        angle = part @ omega
        features = np.empty((len(angle), 2 * frequencies), dtype)
        np.cos(angle, out=features[:, :frequencies])
        np.sin(angle, out=features[:, frequencies:])
        features *= scale
        return features

    return FeatureRows(rows.rows, make=make, d=2 * frequencies, dtype=dtype)


class TraceEstimate(NamedTuple):
    """Entropy of the empirical spectrum by stochastic Lanczos quadrature.

    Attributes
    ----------
    value : float
        log Vendi score.
    stderr : float
        Of the random probes.
    bracket : float
        Half of the gap between the Gauss and the Gauss-Radau rule: quadrature error.
    """

    value: float
    stderr: float
    bracket: float


def lanczos_entropy(
    rows: KernelRows, *, order: float, deflated: int, probes: int, steps: int, seed: int
) -> TraceEstimate:
    """Tr f(K/n) without K: leading eigenpairs exactly, the rest by quadrature.

    Notes
    -----
    f(x) = -x log x for order 1, x^α otherwise. Tr A = 1 is known and Tr A² comes from the blocks
    themselves: x and x² serve as control variates, with weights fitted to f under the estimated
    spectral distribution, which removes most of the noise of the probes. All probes share every
    block of K.

    References
    ----------
    .. [1] S. Ubaru, J. Chen and Y. Saad, "Fast estimation of tr(f(A)) via stochastic Lanczos
       quadrature", SIAM J. Matrix Anal. Appl. 38, 2017.
    .. [2] R. A. Meyer, C. Musco, C. Musco and D. P. Woodruff, "Hutch++: optimal stochastic trace
       estimation", SOSA 2021.
    .. [3] G. H. Golub and G. Meurant, "Matrices, moments and quadrature", 1994.
    """
    n = rows.n
    rng = np.random.default_rng(seed)
    basis = rng.standard_normal((n, deflated))
    for _ in range(2):
        basis = np.linalg.qr(rows.multiply(basis) / n)[0]
    values, vectors, residual = _ritz_pairs(rows, basis, deflated)
    good = residual <= CONVERGED * np.abs(values)  # its square is what f(λ) is wrong by
    vectors, values = vectors[:, good], values[good]
    start = rng.choice([-1.0, 1.0], size=(n, probes))
    start -= vectors @ (vectors.T @ start)
    norms = (start * start).sum(axis=0)
    alphas, betas = _lanczos(rows, start / np.sqrt(norms), vectors, steps)
    moments, gauss, radau = np.empty((2, probes)), np.empty(probes), np.empty(probes)
    nodes, weights = [], []
    for j, (diagonal, off) in enumerate(zip(alphas.T, betas.T, strict=True)):
        theta, vectors = scipy.linalg.eigh_tridiagonal(diagonal, off[:-1], check_finite=False)
        weight = norms[j] * vectors[0] ** 2
        moments[:, j] = weight @ theta, weight @ theta**2
        gauss[j] = weight @ _entropy_term(theta, order)
        # One row more, so that there is an eigenvalue 0; a kernel of small rank has one already.
        row = np.zeros(2)
        if theta[0] > ZERO:
            row = off[-1] * np.array([1.0, off[-1] * (vectors[-1] ** 2 @ (1.0 / theta))])
        theta_zero, vectors = scipy.linalg.eigh_tridiagonal(
            np.append(diagonal, row[1]), np.append(off[:-1], row[0]), check_finite=False
        )
        radau[j] = norms[j] * (vectors[0] ** 2 @ _entropy_term(theta_zero, order))
        nodes.append(theta)
        weights.append(weight)
    known = np.array([1.0, frobenius(rows)[0]]) - [values.sum(), values @ values]
    theta, root = np.concatenate(nodes), np.sqrt(np.concatenate(weights))
    design = np.column_stack([theta, theta**2]) * root[:, None]
    coefficients = np.linalg.lstsq(design, root * _entropy_term(theta, order), rcond=None)[0]
    rest = (gauss + radau) / 2.0 - coefficients @ moments
    total = float(_entropy_term(values, order).sum() + coefficients @ known + rest.mean())
    stderr = float(rest.std(ddof=1)) / math.sqrt(probes)
    bracket = abs(float((gauss - radau).mean())) / 2.0
    if order == 1.0:
        return TraceEstimate(total, stderr, bracket)
    scale = 1.0 / (abs(1.0 - order) * total)
    return TraceEstimate(math.log(total) / (1.0 - order), stderr * scale, bracket * scale)


def _entropy_term(x: Float, order: float) -> Float:
    """Terms of the entropy; 0 for what is rounding, whose small powers are not small."""
    kept = x > ZERO
    p = np.where(kept, x, 1.0)
    return np.asarray(kept * (-p * np.log(p) if order == 1.0 else p**order))


def _lanczos(rows: KernelRows, start: Float, deflated: Float, steps: int) -> tuple[Float, Float]:
    """Tridiagonal coefficients (steps, probes) for each column of `start`, orthogonalised fully."""
    alphas, betas = np.zeros((steps, start.shape[1])), np.zeros((steps, start.shape[1]))
    basis, v = [start], start
    for k in range(steps):
        w = rows.multiply(v) / rows.n
        alphas[k] = np.einsum("ij,ij->j", v, w)
        for _ in range(2):
            w -= deflated @ (deflated.T @ w)
            for earlier in basis:
                w -= earlier * np.einsum("ij,ij->j", earlier, w)
        betas[k] = np.linalg.norm(w, axis=0)
        live = betas[k] > ZERO * rows.n
        betas[k, ~live] = 0.0
        v = np.where(live, w / np.where(live, betas[k], 1.0), 0.0)
        basis.append(v)
    return alphas, betas
