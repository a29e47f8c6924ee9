"""The trace of the root of a population covariance from few rows, and the influence of each row.

By a fitted spectrum (`_marchenko_pastur`) or, where no smooth one fits and rows outnumber the r
directions, along a contour. With m(z) = N⁻¹ Σ_i 1/(λ_i - z) - (1 - c)/z and w = -1/m (X. Mestre,
IEEE Trans. Inf. Theory 54, 2008; M. Tiomoko and R. Couillet, arXiv 1903.03447)

    Tr √M ≈ -(N/2πi) ∮ ρ(z) dw/√w,  ρ = 1 + z m(z),

and for the product of two sample covariances w = 1/(z m m̃), with m̃ the same for the number of rows
of the other. The contour assumes no shape of the spectrum, but that no row is longer than another.
Derivation, and the O(1) bias that is taken off: docs/explanation/few_samples.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # its submodules are loaded at their first use
from numpy.typing import NDArray

from genbounds.core.checks import row_ids
from genbounds.core.moments import EPS, random_groups
from genbounds.diagnostics import warn_of
from genbounds.estimators.spectrum_fit._marchenko_pastur import RowLaw, SpectrumFit, fit_spectrum
from genbounds.results import Diagnostic, Method
from genbounds.validation import Float

STEP = 0.25
"""Of the trapezoidal sum along the contour: a half of it, or a quarter, moves the value by less
than 1e-9 of itself, over 24 decades of eigenvalues."""

TAIL = 30.0
"""Where the integrand has fallen to exp(-TAIL) beyond either end of the spectrum, the sum ends."""

PAIRED_ROWS = 400
"""At most so many rows, evenly spaced, for the noise of the leverages."""

BLOCK_ROWS = 1024
"""Rows whose influence is computed at once."""

FEW_ROWS = 16
"""Below so many rows the limit theorems do not hold well enough."""

SEEN_SHARE = 0.4
"""With fewer rows than this share of the directions, a cliff in the spectrum stays unseen."""

REPEATED_SHARE = 0.1
"""With a larger share of rows that repeat others, the distribution is taken to have few atoms."""

CONTOUR_SHARE = 0.85
"""The contour is used up to so many directions a row; its variance grows without bound at 1."""

CONTOUR_LIMIT = 0.9
"""The same for the contour of what is left without one group of rows."""

CONTOUR_GROUPS = (5, 10, 20)
"""Numbers of groups for the contour's jackknife, of which the first that the limit allows."""

GROUPING_SEED = 20_080_511
"""Fixed, so that the random grouping of rows gives the same result at every call."""

EQUAL_ROWS = 0.05
"""Variance of the row scales up to which the contour, which takes them as equal, may be used."""

Complex = NDArray[np.complex128]


def population_root(
    values: Float, *, rows: Sequence[RowLaw], rank: int, shape: Float | None = None
) -> tuple[SpectrumFit, Method, tuple[Diagnostic, ...]]:
    """Take the spectrum fit, or the contour where no smooth spectrum fits.

    Parameters
    ----------
    values : ndarray of shape (k,)
        Positive eigenvalues, in descending order.
    rows : sequence of RowLaw
        Of the sample; of both, that with fewer rows first, for the product of two covariances.
    rank : int
        Number of population eigenvalues.
    shape : ndarray of shape (rank,) or None
        As in `fit_spectrum`.

    Returns
    -------
    fit : SpectrumFit
        Of the trace of the root.
    method : {"spectrum-fit", "contour"}
    warnings : tuple of Diagnostic
    """
    fit = fit_spectrum(values, rows=rows, rank=rank, shape=shape)
    n = rows[0].n_effective + 1
    warnings = few_rows(n)
    if n - 1 < SEEN_SHARE * rank:
        enough = math.ceil(SEEN_SHARE * rank) + 1
        warnings += (warn_of("spectrum-guessed", n=n, rank=rank, enough=enough),)
    if fit.inflation > 1.0:
        equal = all(law.radii is None or float(np.var(law.radii)) < EQUAL_ROWS for law in rows)
        if equal and rank <= CONTOUR_SHARE * (n - 1):
            contour = contour_trace_root(values, sizes=[law.n_effective for law in rows])
            return contour, "contour", warnings
        warnings += (warn_of("no-smooth-spectrum"),)
    return fit, "spectrum-fit", warnings


def few_rows(n: int) -> tuple[Diagnostic, ...]:
    """Doubt a fit to fewer rows than its limit theorems allow."""
    return () if n >= FEW_ROWS else (warn_of("few-rows-for-limits", n=n, least=FEW_ROWS),)


# --- The contour ----------------------------------------------------------------------------------


def contour_around(lam: Float, size: float) -> tuple[Complex, Complex]:
    """Points z, and steps dz / πi, of a contour around eigenvalues of which the largest is 1.

    It passes between 0 and the smallest zero of m for `size` rows, alone below the spectrum: the
    upper half of a circle, from its right end on, in even steps of log (z - low)/(high - z).
    Spectra over many decades are resolved alike, and no cluster of eigenvalues, nor a complex zero
    of m' beside it, is near the contour. The lower half is the complex conjugate.
    """
    low, high = max(zero_below(lam, size), 1e-3 * float(lam.min())) / 2.0, 1.3
    run = np.exp(np.arange(TAIL, np.log(low / high) - TAIL, -STEP))
    z = (low + 1j * high * run) / (1.0 + 1j * run)
    return z, -STEP * 1j * run * (high - low) / (1.0 + 1j * run) ** 2 / (1j * np.pi)


def zero_below(lam: Float, size: float) -> float:
    """Return the zero of 1 - Σ λ/(λ - x)/size below all `lam`, from some size on the least of them.

    It is at about (1 - 1/size) of it: no step from there that rounding lets through may pass it.
    """
    least = float(lam.min())
    end = least * (1.0 - 1e-12)

    def excess(x: float) -> float:
        return 1.0 - float((lam / (lam - x)).sum()) / size

    if excess(end) >= 0.0:
        return least
    return float(scipy.optimize.brentq(excess, 0.0, end, xtol=1e-6 * least))


def contour_trace_root(values: Float, *, sizes: Sequence[int]) -> SpectrumFit:
    """Estimate Σ_j √t_j from all r positive sample eigenvalues.

    Parameters
    ----------
    values : ndarray of shape (r,)
        Of a sample covariance, or of the product of two.
    sizes : sequence of int
        Effective rows of each sample, more than r.

    Returns
    -------
    SpectrumFit
        Its points x = -z are complex, those of the upper half of the contour; of products with the
        weights only the real part is meant.
    """
    scale = float(values.max())
    lam = np.sort(values) / scale
    z, dz = contour_around(lam, float(min(sizes)))
    inverse = 1.0 / (lam - z[:, None])
    powers = [(inverse**k).sum(axis=1) for k in (1, 2, 3)]
    count, rise = lam.size + z * powers[0], powers[0] + z * powers[1]
    w, log_slope, bias = z.copy(), 1.0 / z, np.zeros_like(z)
    for size in sizes:
        m0, m1, m2 = (
            factor * (power - (size - lam.size) / z * (-1.0 / z) ** k) / size
            for k, (factor, power) in enumerate(zip((1.0, 1.0, 2.0), powers, strict=True))
        )
        w *= -1.0 / (z * m0)
        log_slope += rise / (size - count)
        bias += m2 / (2.0 * m1) - m1 / m0
    roots = root_along(w)
    estimate = -(count * roots * log_slope * dz).sum() + (roots * bias * dz).sum()
    unit = float(np.sqrt(scale))
    return SpectrumFit(
        value=unit * float(estimate.real),
        points=-scale * z,
        weights=-unit * sizes[0] * roots * dz / z,
        scales=(None,) * len(sizes),
    )


def root_along(w: Complex) -> Complex:
    """Root of w, which does not go round 0: it is followed along the contour."""
    roots: Complex = np.sqrt(np.abs(w)) * np.exp(0.5j * np.unwrap(np.angle(w)))
    return roots


def jackknifed_contour(
    projected: Float, rank: int, whole: float, others: Sequence[int] = ()
) -> float:
    """Take off the contour's O(1/n) bias by a delete-group jackknife over the rows of one sample.

    The contour is exact to that order for linear images of independent factors only; beyond them,
    rows whose quadratic forms vary more, it leaves a share of the bias that falls as 1/n. `others`
    are the effective rows of another sample, if the contour is that of a product.
    """
    n = projected.shape[0]
    for groups in CONTOUR_GROUPS:
        left = n - 1 - math.ceil(n / groups)
        if rank <= CONTOUR_LIMIT * left:
            break
    else:
        return whole
    label = random_groups(GROUPING_SEED, n, groups)
    scatter = projected.T @ projected
    without = []
    for group in range(groups):
        out = projected[label == group]
        kept = n - out.shape[0]
        total = out.sum(axis=0)  # minus the sum of the rows kept, since all of them are centred
        cov = (scatter - out.T @ out - np.outer(total, total) / kept) / (kept - 1)
        values = scipy.linalg.eigvalsh(cov, check_finite=False, overwrite_a=True)[::-1]
        seen = min(kept_ranks(values, kept, values.size)[0], rank)  # a feature can be rare
        without.append(contour_trace_root(values[:seen], sizes=[kept - 1, *others]).value)
    return groups * whole - (groups - 1) * math.fsum(without) / groups


# --- The rows of a sample: what they span, their scales, their influence --------------------------


def kept_ranks(values: Float, n: int, r: int, *, distinct: int | None = None) -> tuple[int, int]:
    """Numerical rank of the sample, and the rank of its distribution.

    `values` in descending order. Where a sample spans less than it could, so does its distribution;
    a few repeated rows, which real images have, are no sign of that.
    """
    full = min(n - 1, r)
    kept = int((values[:full] > 10.0 * max(n, r) * EPS * max(float(values[0]), 0.0)).sum())
    if distinct is not None and distinct >= (1.0 - REPEATED_SHARE) * n:
        full = min(distinct - 1, r)
    return kept, r if kept >= full else kept


def distinct_rows(rows: Float) -> int:
    """Count the rows that differ, by their 64-bit digests."""
    return int(np.unique(row_ids(rows)).size)


@dataclass(frozen=True, slots=True)
class Side:
    """One sample, as it varies in the directions of the other, whose covariance is L Lᵀ.

    Attributes
    ----------
    centred : ndarray of shape (n, d)
        Rows less their mean.
    factor : ndarray of shape (d, r)
        L.
    rest : ndarray of shape (n,)
        Influence of the rows on all of the distance but the trace of the root.
    values : ndarray of shape (k,)
        Positive eigenvalues of the sample's M = Lᵀ Σ̂ L, descending.
    vectors : ndarray of shape (n, k)
        Their eigenvectors over the rows.
    rank : int
        Number of population eigenvalues.
    distinct : int
        Number of rows that differ.
    row_law : RowLaw
    """

    centred: Float
    factor: Float
    rest: Float
    values: Float
    vectors: Float
    rank: int
    distinct: int
    row_law: RowLaw

    @classmethod
    def of(cls, centred: Float, factor: Float, gap: Float) -> Side | None:
        """Take rows that are all the directions show; None if they do not vary there."""
        projected, distinct = centred @ factor, distinct_rows(centred)
        n, r = projected.shape
        if not projected.any():
            return None
        if n <= r:
            values, vectors = np.linalg.eigh(projected @ projected.T / (n - 1))
        else:
            values, axes = np.linalg.eigh(projected.T @ projected / (n - 1))
        kept, rank = kept_ranks(values[::-1], n, r, distinct=distinct)
        values = values[::-1][:kept]
        if n <= r:
            vectors = vectors[:, ::-1][:, :kept]
        else:
            vectors = projected @ axes[:, ::-1][:, :kept]
            vectors /= np.sqrt((n - 1) * values)  # in place: as large as the sample itself
        law = row_law(values, vectors)
        return cls(centred, factor, rest_of(centred, gap), values, vectors, rank, distinct, law)


def rest_of(centred: Float, gap: Float) -> Float:
    """Influence of rows on the distance without the trace of the root; `gap`: to the other mean."""
    rest: Float = 2.0 * (centred @ gap) + np.einsum("ij,ij->i", centred, centred)
    return rest


def row_law(values: Float, vectors: Float) -> RowLaw:
    """Scales b_i of the rows, mean 1, from their leverages; None if they look equal.

    The leave-one-out leverage q_i = y_iᵀ (M̂₋ᵢ + τ)⁻¹ y_i / N is b_i times a quadratic form whose
    relative variance v for independent factors is 2 Tr A² / (Tr A)², seen in the off-diagonal
    forms of pairs of rows. The spread of q beyond v is the spread of b; the estimates are drawn
    to their mean until they have that spread.
    """
    n = vectors.shape[0]
    tau = float(np.median(values))
    share = values / (values + tau)
    left = np.maximum(1.0 - 1.0 / n - (vectors**2) @ share, EPS)
    leverage = ((vectors**2) @ share) / left
    mean = float(leverage.mean())
    if mean <= 0.0:
        return RowLaw(n - 1)
    relative = leverage / mean
    spread = float(np.var(relative, ddof=1))
    rows = np.unique(np.linspace(0, n - 1, min(n, PAIRED_ROWS)).astype(int))
    some = vectors[rows]
    hat = (some * share) @ some.T + 1.0 / n
    own = np.maximum(1.0 - np.diagonal(hat), EPS)
    hat *= hat
    determinant = np.outer(own, own)
    determinant -= hat
    np.maximum(determinant, EPS**2, out=determinant)
    hat /= determinant
    hat /= determinant
    np.fill_diagonal(hat, 0.0)
    weight = 1.0 / leverage[rows]
    noise = 2.0 * float(weight @ hat @ weight) / (rows.size * (rows.size - 1.0))
    excess = (spread - noise) / (1.0 + noise)
    if not excess > 0.0:
        return RowLaw(n - 1)
    radii = 1.0 + math.sqrt(excess / spread) * (relative - 1.0)
    return RowLaw(n - 1, radii, noise / (noise + excess))


def scale_doubt(
    sides: Sequence[Side], k: int, root: SpectrumFit, shape: Float | None = None
) -> float:
    """Effect on the distance of the row scales of sample k, times the share of noise in them."""
    law = sides[k].row_law
    if law.radii is None:
        return 0.0
    plain = [side.row_law for side in sides]
    plain[k] = RowLaw(law.n_effective)
    effect, *_ = population_root(sides[0].values, rows=plain, rank=sides[0].rank, shape=shape)
    return 2.0 * (effect.value - root.value) * law.noise_share


def root_influences(sides: Sequence[Side], k: int, root: SpectrumFit) -> tuple[Float, Float]:
    """Influence on the distance of each row of sample k, centred.

    Returns
    -------
    fitted, plugin : ndarray of shape (n,)
        With the fitted root, and with that of the samples themselves, which is wanted where the fit
        is poor; elsewhere they are the same.
    """
    side = sides[k]
    fitted = side.rest - 2.0 * _root_influence(sides, k, root)
    fitted -= fitted.mean()
    if root.inflation <= 1.0:
        return fitted, fitted
    # dλ_k = λ_k V_ik² for a row more, so that N Tr √M̂ gains half of N Σ_k √λ_k V_ik².
    gain = np.einsum("ik,ik,k->i", side.vectors, side.vectors, np.sqrt(side.values))
    plugin = side.rest - side.row_law.n_effective * gain
    plugin -= plugin.mean()
    return fitted, plugin


def _root_influence(sides: Sequence[Side], k: int, root: SpectrumFit) -> Float:
    """Influence on Tr √M, not centred, of each row of sample k."""
    side, law, scales = sides[k], sides[k].row_law, root.scales[k]
    n = len(side.vectors)
    shift = side.values[:, None] + root.points
    influence: Float = np.empty(n)
    for start in range(0, n, BLOCK_ROWS):  # the squares of all would be as large as the sample
        block = slice(start, start + BLOCK_ROWS)
        squared = side.vectors[block] ** 2
        left = 1.0 - 1.0 / n - squared @ (side.values[:, None] / shift)
        if left.dtype.kind == "f":
            left = np.maximum(left, EPS)
        change = squared @ (side.values[:, None] * root.points / shift**2)
        influence[block] = ((change / left) @ root.weights).real
    # The weights are those of the first sample's ρ, to which rows of the other add more or less.
    influence *= law.n_effective / sides[0].row_law.n_effective
    if law.radii is not None and scales is not None:
        odds = np.outer(law.radii, scales.odds)
        drift = (odds / (1.0 + odds) ** 2).mean(axis=0)
        influence += (odds / (1.0 + odds) - np.outer(law.radii - 1.0, drift)) @ scales.weights
    return influence
