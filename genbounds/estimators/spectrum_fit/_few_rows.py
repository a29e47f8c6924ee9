"""The Fréchet distance from few samples: fewer than about four a dimension, or fewer than one.

The distance is ``‖gap‖² + Tr Σ + Tr Σ_r - 2 Tr √M``, M = Lᵀ Σ L, Σ_r = L Lᵀ. All but the last term
are unbiased up to Tr Σ / n; the root is taken of the population spectrum of M that a separable
Marchenko–Pastur law fits to the sample's (`_marchenko_pastur`). Derivations, and where it fails:
docs/explanation/few_samples.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy  # its submodules are loaded at their first use
from numpy.typing import NDArray

from genbounds.core.checks import row_ids
from genbounds.core.linalg import EPS
from genbounds.core.moments import random_groups
from genbounds.diagnostics import Severity, warn_of
from genbounds.estimators.spectrum_fit._contour import contour_trace_root
from genbounds.estimators.spectrum_fit._marchenko_pastur import RowLaw, ScaleWeights, fit_spectrum
from genbounds.results import Diagnostic, Method
from genbounds.validation import Float

PAIRED_ROWS = 400
"""At most so many rows, evenly spaced, for the noise of the leverages."""

BLOCK_ROWS = 1024
"""Rows whose influence is computed at once."""

FEW_ROWS = 16
"""Below so many rows the limit theorems do not hold well enough."""

SEEN_SHARE = 0.4
"""With fewer rows than this share of the directions, a cliff in the spectrum stays unseen."""

SHAPE_FLOOR = 1e-8
"""Eigenvalues of the reference, relative to the largest, are not believed below this."""

MISFIT = 0.4
"""Mean squared whitened residual above which no smooth spectrum fits. Measured: below 0.1 on
smooth spectra, 0.3-0.9 where they fall tenfold at one place, above 50 at a factor of 10⁴."""

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


@dataclass(frozen=True, slots=True)
class Fit:
    """The distance with the bias of one sample, or of both, removed: by a spectrum or the contour.

    Attributes
    ----------
    value : float
        Estimate of the squared distance; can be negative where the two distributions are close.
    variances : tuple of float
        Of `value`, due to each sample; what no sample shows counts with the first.
    influences : tuple of ndarray of shape (n,) or None
        Centred, of the rows of each; None if only moments are known.
    method : str
    warnings : tuple of Diagnostic
        Reasons not to trust the interval ``value ± 1.96 √variance``.
    details : tuple of str
    """

    value: float
    variances: tuple[float, ...]
    influences: tuple[Float | None, ...]
    method: Method
    warnings: tuple[Diagnostic, ...] = ()
    details: tuple[str, ...] = ()


EQUAL_ROWS = 0.05
"""Variance of the row scales up to which the contour, which takes them as equal, may be used."""


class Reference(NamedTuple):
    """What the bias of one sample is removed beside.

    Attributes
    ----------
    gap : ndarray of shape (d,)
        Mean of the sample minus its mean.
    factor : ndarray of shape (d, r)
        L with its covariance L Lᵀ.
    trace : float
        Of that covariance.
    spectrum : ndarray of shape (r,) or None
        Its positive eigenvalues, descending: what the spectrum may look like where fewer rows than
        directions do not show it.
    """

    gap: Float
    factor: Float
    trace: float
    spectrum: Float | None = None


def fit_one_sample(centred: Float, reference: Reference) -> Fit:
    """Debias the distance to a reference from few generated rows.

    `centred`: of shape (n, d), less their mean, n >= 2.
    """
    gap, projected = reference.gap, centred @ reference.factor
    n = centred.shape[0]
    squared_norm = np.einsum("ij,ij->i", centred, centred)
    trace = float(squared_norm.sum()) / (n - 1)
    base = float(gap @ gap) + trace - trace / n + reference.trace
    rest = 2.0 * (centred @ gap) + squared_norm
    side = Side.of(projected, distinct=distinct_rows(centred))
    if side is None:
        rest -= rest.mean()
        flat = warn_of("flat-where-reference-varies")
        warnings = (*few_rows(n), flat)
        return Fit(base, (variance_of_mean(rest),), (rest,), "spectrum-fit", warnings)
    lacking: tuple[Diagnostic, ...] = ()
    if side.rank < min(n - 1, projected.shape[1]):
        lacking = (warn_of("rank-of-rows", n=n, rank=side.rank),)
    return fit_of_rows(
        [side],
        [rest],
        [(centred, reference.factor)],
        base=base,
        traces=(trace, reference.trace),
        shape=_shape(reference.spectrum, n=n, rank=side.rank),
        lacking=lacking,
    )


def fit_of_rows(
    sides: Sequence[Side],
    rests: Sequence[Float],
    rows: Sequence[tuple[Float, Float]],
    *,
    base: float,
    traces: tuple[float, float],
    shape: Float | None = None,
    lacking: tuple[Diagnostic, ...] = (),
) -> Fit:
    """Debias a distance by the root of the spectrum of one sample, or of the product of both.

    Parameters
    ----------
    sides : sequence of Side
        Of the sample; of both, that with fewer rows first.
    rests : sequence of ndarray of shape (n,)
        Influence of the rows of each on all but the trace of the root.
    rows : sequence of tuple of ndarray of shape (n, d) and (d, r)
        The rows of each, less their mean, and the factor of the other.
    base : float
        The distance without the trace of the root.
    traces : tuple of float
        Of both covariances.
    shape : ndarray of shape (rank,) or None
        As in `fit_spectrum`.
    lacking : tuple of Diagnostic
        What is to be said of the rank.

    Notes
    -----
    The variance is that of the estimator linearised in the rows, each row left out of the
    resolvent that weighs it and its scale b_i left out of the distribution of the scales, plus the
    posterior variance of what the sample cannot see (`SpectrumFit.prior_variance`), plus the square
    of that share of the effect of the row scales by which their estimates are noise; both within
    `RootLimits`. Of two samples either's is at the other as it is.
    """
    values, rank, both = sides[0].values, sides[0].rank, range(len(sides))
    scales = [row_scales(side) for side in sides]
    laws = [
        RowLaw(rest.size - 1, None if one is None else one.radii)
        for rest, one in zip(rests, scales, strict=True)
    ]
    root = population_root(values, rows=laws, rank=rank, shape=shape)
    if root.method == "contour":
        steps = (
            jackknifed_contour(
                np.matmul(*rows[k]), rank, root.trace, [laws[j].n_effective for j in both if j != k]
            )
            - root.trace
            for k in both
        )
        root = replace(root, trace=root.trace + sum(steps))
    limits = RootLimits.of(values, traces=traces)
    root = root.within(limits)
    pairs = [root_influences(rests[k], sides[k], root, laws, k) for k in both]
    doubts = [scale_doubt(sides[k], root, laws, scales[k], k, shape) ** 2 for k in both]
    doubts[0] += 4.0 * root.unseen * root.inflation
    variances, by_plugin = limits.errors(
        root.trace,
        fitted=[variance_of_mean(fitted) for fitted, _ in pairs],
        plugin=[variance_of_mean(plugin) for _, plugin in pairs],
        inflation=root.inflation,
        doubts=doubts,
    )
    return Fit(
        base - 2.0 * root.trace,
        tuple(variances),
        tuple(plugin if by_plugin else fitted for fitted, plugin in pairs),
        root.method,
        warnings=(
            *root.warnings,
            *lacking,
            *(
                one
                for side, rest in zip(sides, rests, strict=True)
                for one in repeated_rows(rest.size - side.distinct, rest.size)
            ),
        ),
        details=root.details,
    )


def few_rows(n: int) -> tuple[Diagnostic, ...]:
    """Doubt a fit to fewer rows than its limit theorems allow."""
    if n >= FEW_ROWS:
        return ()
    return (warn_of("few-rows-for-limits", n=n, least=FEW_ROWS),)


def repeated_rows(repeated: int, n: int) -> tuple[Diagnostic, ...]:
    """Warn of rows that repeat others; many of them make the result unreliable."""
    if not repeated:
        return ()
    severity: Severity = "unreliable" if n - repeated < (1.0 - REPEATED_SHARE) * n else "caution"
    return (warn_of("repeated-rows", severity=severity, repeated=repeated, n=n),)


def fit_from_moments(cov: Float, n: int, reference: Reference) -> Fit:
    """Debias the distance from mean and covariance alone, as if all rows had one scale.

    Parameters
    ----------
    cov : ndarray of shape (d, d)
        Covariance of the sample, divisor n - 1.
    n : int
        Sample size, at least 2.
    reference : Reference

    Notes
    -----
    The variance is that of Gaussian rows under the estimator's own linearisation: with
    A = I - 2 L H Lᵀ the derivative in the covariance, (4 gapᵀΣgap + 2 Tr (AΣ)²) / n, where
    Tr (AΣ)² is estimated by Tr (AΣ̂)² - (Tr AΣ̂)²/N (unbiased for a fixed A).
    """
    gap, lower, trace = reference.gap, reference.factor, float(np.trace(cov))
    base = float(gap @ gap) + trace - trace / n + reference.trace
    moved = cov @ lower
    product = lower.T @ moved
    values, axes = scipy.linalg.eigh((product + product.T) / 2.0, check_finite=False)
    kept, rank = kept_ranks(values[::-1], n, lower.shape[1])
    moments_only = warn_of("moments-equally-scaled")
    squares = float((cov * cov).sum())
    linear = 4.0 * float(gap @ cov @ gap)

    def sampling(slopes: Float, values: Float, crossed: Float) -> float:
        """Variance with these derivatives of the trace in the eigenvalues."""
        curvature = squares + 4.0 * float(slopes @ (slopes * values**2 - crossed))
        forms = trace - 2.0 * float(slopes @ values)
        curvature = max(curvature - forms**2 / (n - 1), curvature / (n - 1))
        return (linear + 2.0 * curvature) / (n - 1)

    if not kept:
        none = np.zeros(0)
        warnings = (*few_rows(n), moments_only)
        return Fit(base, (sampling(none, none, none),), (None,), "spectrum-fit", warnings)
    values, axes = values[::-1][:kept], axes[:, ::-1][:, :kept]
    shape = _shape(reference.spectrum, n=n, rank=rank)
    root = population_root(values, rows=[RowLaw(n - 1)], rank=rank, shape=shape)
    limits = RootLimits.of(values, traces=(trace, reference.trace))
    root = root.within(limits)
    shift = values[:, None] + root.points
    share = np.asarray(root.points / shift**2)
    left = 1.0 - (values[:, None] / shift).sum(axis=0) / (n - 1)
    slopes = ((share / left) @ root.weights).real / (n - 1)
    crossed = moved @ axes
    crossed = np.einsum("ij,ij->j", crossed, crossed)
    variances, _ = limits.errors(
        root.trace,
        fitted=[sampling(slopes, values, crossed)],
        plugin=[sampling(0.5 / np.sqrt(values), values, crossed)],
        inflation=root.inflation,
        doubts=[4.0 * root.unseen * root.inflation],
    )
    warnings = (*root.warnings, moments_only)
    return Fit(
        base - 2.0 * root.trace, tuple(variances), (None,), root.method, warnings, root.details
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PopulationRoot:
    """Tr √M with its derivative in the measured ρ(x), and how far to trust it.

    Attributes
    ----------
    trace : float
    points, weights : ndarray
        x, and the derivatives in ρ(x) of the first sample.
    scales : tuple of ScaleWeights or None
        Derivatives in the distribution of the row scales of each sample.
    unseen : float
        Variance of what the sample cannot see.
    inflation : float
        Factor on the variance for a poor fit.
    method : {"spectrum-fit", "contour"}
    warnings : tuple of Diagnostic
    details : tuple of str
    """

    trace: float
    points: NDArray[Any]
    weights: NDArray[Any]
    scales: tuple[ScaleWeights | None, ...]
    unseen: float
    inflation: float
    method: Method
    warnings: tuple[Diagnostic, ...] = ()
    details: tuple[str, ...] = ()

    def within(self, limits: RootLimits) -> PopulationRoot:
        """Hold the trace of a poor fit within what it can be."""
        return replace(self, trace=limits.hold(self.trace)) if self.inflation > 1.0 else self


def _shape(reference_spectrum: Float | None, *, n: int, rank: int) -> Float | None:
    """Spectrum of Lᵀ Σ L where Σ is like the reference's: its square, kept off rounding.

    None where the rows show every direction, or the spectrum is not known.
    """
    if reference_spectrum is None or not n - 1 < rank <= reference_spectrum.size:
        return None
    shape: Float = np.maximum(reference_spectrum[:rank] / reference_spectrum[0], SHAPE_FLOOR) ** 2
    return shape


def population_root(
    values: Float, *, rows: Sequence[RowLaw], rank: int, shape: Float | None = None
) -> PopulationRoot:
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
    """
    fit = fit_spectrum(values, rows=rows, rank=rank, shape=shape)
    n = rows[0].n_effective + 1
    warnings = few_rows(n)
    if n - 1 < SEEN_SHARE * rank:
        enough = math.ceil(SEEN_SHARE * rank) + 1
        warnings += (warn_of("spectrum-guessed", n=n, rank=rank, enough=enough),)
    misfit = fit.misfit > MISFIT
    equal = all(law.radii is None or float(np.var(law.radii)) < EQUAL_ROWS for law in rows)
    if misfit and equal and rank <= CONTOUR_SHARE * (n - 1):
        contour = contour_trace_root(values, sizes=[law.n_effective for law in rows])
        return PopulationRoot(
            trace=contour.trace_root,
            points=contour.points,
            weights=contour.weights,
            scales=(None,) * len(rows),
            unseen=0.0,
            inflation=1.0,
            method="contour",
            warnings=warnings,
        )
    if misfit:
        warnings += (warn_of("no-smooth-spectrum"),)
    return PopulationRoot(
        trace=fit.value,
        points=fit.points,
        weights=fit.weights,
        scales=fit.scales,
        unseen=fit.prior_variance,
        inflation=max(1.0, fit.misfit / MISFIT),
        method="spectrum-fit",
        warnings=warnings,
        details=("rows of unequal scale",) if any(fit.scales) else (),
    )


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
        without.append(contour_trace_root(values[:seen], sizes=[kept - 1, *others]).trace_root)
    return groups * whole - (groups - 1) * math.fsum(without) / groups


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """Positive eigenvalues of the sample's M with the n-dimensional eigenvectors, squared."""

    values: Float
    vectors: Float
    rank: int
    distinct: int

    @classmethod
    def of(cls, projected: Float, *, distinct: int) -> Side | None:
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
        return cls(values=values, vectors=vectors, rank=rank, distinct=distinct)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scales:
    """Scales b_i of the rows, mean 1, and the share of noise in the spread they were drawn from."""

    radii: Float
    noise_share: float


def row_scales(side: Side) -> Scales | None:
    """Scales b_i of the rows, mean 1, from their leverages; None if they look equal.

    The leave-one-out leverage q_i = y_iᵀ (M̂₋ᵢ + τ)⁻¹ y_i / N is b_i times a quadratic form whose
    relative variance v for independent factors is 2 Tr A² / (Tr A)², seen in the off-diagonal
    forms of pairs of rows. The spread of q beyond v is the spread of b; the estimates are drawn
    to their mean until they have that spread.
    """
    n = side.vectors.shape[0]
    tau = float(np.median(side.values))
    share = side.values / (side.values + tau)
    left = np.maximum(1.0 - 1.0 / n - (side.vectors**2) @ share, EPS)
    leverage = ((side.vectors**2) @ share) / left
    mean = float(leverage.mean())
    if mean <= 0.0:
        return None
    relative = leverage / mean
    spread = float(np.var(relative, ddof=1))
    rows = np.unique(np.linspace(0, n - 1, min(n, PAIRED_ROWS)).astype(int))
    some = side.vectors[rows]
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
        return None
    return Scales(
        radii=1.0 + math.sqrt(excess / spread) * (relative - 1.0),
        noise_share=noise / (noise + excess),
    )


def scale_doubt(
    side: Side,
    root: PopulationRoot,
    rows: Sequence[RowLaw],
    scales: Scales | None,
    sample: int = 0,
    shape: Float | None = None,
) -> float:
    """Effect on the distance of one sample's row scales, times the share of noise in them."""
    if scales is None:
        return 0.0
    plain = [RowLaw(law.n_effective) if k == sample else law for k, law in enumerate(rows)]
    effect = population_root(side.values, rows=plain, rank=side.rank, shape=shape).trace
    return 2.0 * (effect - root.trace) * scales.noise_share


def root_influences(
    rest: Float, side: Side, root: PopulationRoot, rows: Sequence[RowLaw], sample: int = 0
) -> tuple[Float, Float]:
    """Influence on the distance of each row of one of the samples, centred.

    Parameters
    ----------
    rest : ndarray of shape (n,)
        Influence on all but the trace of the root.
    side, root, rows, sample
        As in `root_influence`.

    Returns
    -------
    fitted, plugin : ndarray of shape (n,)
        With the fitted root, and with that of the samples themselves, which is wanted where the fit
        is poor; elsewhere they are the same.
    """
    fitted = rest - 2.0 * root_influence(side, root, rows, sample)
    fitted -= fitted.mean()
    if root.inflation <= 1.0:
        return fitted, fitted
    # dλ_k = λ_k V_ik² for a row more, so that N Tr √M̂ gains half of N Σ_k √λ_k V_ik².
    gain = np.einsum("ik,ik,k->i", side.vectors, side.vectors, np.sqrt(side.values))
    plugin = rest - rows[sample].n_effective * gain
    plugin -= plugin.mean()
    return fitted, plugin


def variance_of_mean(influence: Float) -> float:
    """Variance of the mean of centred influences, each of a row left out."""
    return float(influence @ influence) / (influence.size - 1) ** 2


def root_influence(
    side: Side, root: PopulationRoot, rows: Sequence[RowLaw], sample: int = 0
) -> Float:
    """Influence on Tr √M, not centred, of each row of one of the samples that `rows` lists."""
    n = side.vectors.shape[0]
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
    influence *= rows[sample].n_effective / rows[0].n_effective
    radii, scales = rows[sample].radii, root.scales[sample]
    if radii is not None and scales is not None:
        odds = np.outer(radii, scales.odds)
        drift = (odds / (1.0 + odds) ** 2).mean(axis=0)
        influence += (odds / (1.0 + odds) - np.outer(radii - 1.0, drift)) @ scales.weights
    return influence


# --- Two samples that are both small for their dimension ------------------------------------------
# The eigenvalues of Σ̂ Σ̂_r are related to those of Σ Σ_r as those of one sample covariance are
# to those of its population, with the Marchenko–Pastur equations of both samples multiplied
# (`_marchenko_pastur`): the samples are free of each other, so that S-transforms multiply.
# Derivation and measurements: docs/explanation/few_samples.md.


def fit_both_samples(
    centred: tuple[Float, Float], factors: tuple[Float, Float], *, gap: Float, directions: int
) -> Fit | None:
    """Debias the distance of two samples; None if one does not vary where the other does.

    Parameters
    ----------
    centred : tuple of ndarray of shape (n, d) and (m, d)
        Rows of both samples less their means, that with fewer rows first.
    factors : tuple of ndarray of shape (d, r) and (d, s)
        Of either sample covariance; the rows themselves over √(n - 1) where r = n.
    gap : ndarray of shape (d,)
        Mean of the first minus mean of the second.
    directions : int
        Dimensions that both distributions fill, as far as the samples show.
    """
    sides = _sides(centred, factors, directions)
    if sides is None:
        return None
    norms = [np.einsum("ij,ij->i", rows, rows) for rows in centred]
    one, two = (float(norm.sum()) / (norm.size - 1) for norm in norms)
    rank = sides[0].rank
    found = fit_of_rows(
        sides,
        [
            norm + sign * (rows @ gap)
            for norm, rows, sign in zip(norms, centred, (2, -2), strict=True)
        ],
        list(zip(centred, factors[::-1], strict=True)),
        # Either trace Tr Σ̂ stands for Tr Σ, less the bias Tr Σ̂ / n of the squared gap.
        base=float(gap @ gap) + sum(float(norm.mean()) for norm in norms),
        traces=(one, two),
        lacking=(warn_of("shared-rank", rank=rank),) if rank < directions else (),
    )
    return replace(
        found, method="joint-contour" if found.method == "contour" else "joint-spectrum-fit"
    )


def _sides(
    centred: tuple[Float, Float], factors: tuple[Float, Float], directions: int
) -> tuple[Side, Side] | None:
    """Eigenvectors of both samples for the eigenvalues that they share, and the population's rank.

    By singular values: the smallest eigenvalues of a product of two samples of one size are near 0.
    """
    left, roots, right = scipy.linalg.svd(
        factors[0].T @ factors[1], full_matrices=False, check_finite=False
    )
    if not roots.size:  # neither sample varies
        return None
    kept = int((roots > 10.0 * max(left.shape[0], right.shape[1]) * EPS * roots[0]).sum())
    if not kept:
        return None
    roots, axes = roots[:kept], (left[:, :kept], right[:kept].T)
    distinct = [distinct_rows(rows) for rows in centred]
    seen = min(*(count - 1 for count in distinct), directions)
    rank = directions if kept >= seen else kept
    sides = []
    for k in (0, 1):
        if factors[k].shape[1] == len(centred[k]):
            vectors = axes[k]
        else:
            vectors = centred[k] @ (factors[1 - k] @ axes[1 - k])
            vectors /= math.sqrt(len(centred[k]) - 1) * roots
        sides.append(Side(values=roots**2, vectors=vectors, rank=rank, distinct=distinct[k]))
    return sides[0], sides[1]


# --- How wrong the trace of the root can be, whatever spectrum was fitted -------------------------
# The map (Σ, Σ_r) ↦ Tr √(Lᵀ Σ L), Σ_r = L Lᵀ, is jointly concave, so that samples make it too
# small on average; and it is at most √(Tr Σ Tr Σ_r) (Cauchy–Schwarz). The truth lies between
# these two up to the noise of the samples, also where a fit is poor. Derivation:
# docs/explanation/few_samples.md.


@dataclass(frozen=True, slots=True)
class RootLimits:
    """Between what the trace of the root lies.

    Attributes
    ----------
    low : float
        That of the samples themselves.
    high : float
        The root of the product of both traces.
    """

    low: float
    high: float

    @classmethod
    def of(cls, values: Float, *, traces: tuple[float, float]) -> RootLimits:
        """Limits from the positive eigenvalues of Lᵀ Σ̂ L and both traces."""
        low = float(np.sqrt(values).sum())
        return cls(low, max(math.sqrt(traces[0]) * math.sqrt(traces[1]), low))

    def hold(self, trace: float) -> float:
        """Return the nearest trace within the limits."""
        return min(max(trace, self.low), self.high)

    def errors(
        self,
        trace: float,
        *,
        fitted: Sequence[float],
        plugin: Sequence[float],
        inflation: float,
        doubts: Sequence[float],
    ) -> tuple[list[float], bool]:
        """Variances of the distance due to each sample, no larger than the limits admit.

        A standard error of doubt is at most the distance to the farther limit: to the plug-in where
        the trace is too large, to the smallest distance with these traces where it is
        too small.

        Parameters
        ----------
        trace : float
            The estimate; may lie outside the limits.
        fitted : sequence of float
            Variance by the influences of the fitted root, of each sample.
        plugin : sequence of float
            The same by those of the plug-in; needed only for a poor fit.
        inflation : float
            Factor on `fitted` for a poor fit; 1 for a good one.
        doubts : sequence of float
            Other variances, of what the samples do not show.

        Returns
        -------
        variances : list of float
        by_plugin : bool
            Whether the fit was so poor that its own influences mean nothing, and the noise is that
            of the plug-in.
        """
        allowed = (2.0 * max(trace - self.low, self.high - trace)) ** 2
        by_plugin = inflation > 1.0 and math.fsum(fitted) > math.fsum(plugin) + allowed
        sampling = plugin if by_plugin else fitted
        extra = [
            (inflation - 1.0) * own + doubt for own, doubt in zip(sampling, doubts, strict=True)
        ]
        total = math.fsum(extra)
        share = min(1.0, allowed / total) if total > 0.0 else 1.0
        return [own + share * more for own, more in zip(sampling, extra, strict=True)], by_plugin
