"""The Fréchet distance from few samples: fewer than about four a dimension, or fewer than one.

The distance is ``‖gap‖² + Tr Σ + Tr Σ_r - 2 Tr √M``, M = Lᵀ Σ L, Σ_r = L Lᵀ. All but the last term
are unbiased up to Tr Σ / n; the root is taken of the population spectrum of M (`_root`).
Derivations, and where it fails: docs/explanation/few_samples.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy  # its submodules are loaded at their first use

from genbounds.core.estimate import Estimate, SampleError, Tails
from genbounds.core.moments import EPS
from genbounds.diagnostics import Severity, warn_of
from genbounds.estimators.spectrum_fit import _root
from genbounds.estimators.spectrum_fit._marchenko_pastur import RowLaw, SpectrumFit
from genbounds.estimators.spectrum_fit._root import Side
from genbounds.results import Diagnostic, Method
from genbounds.validation import Float

SHAPE_FLOOR = 1e-8
"""Eigenvalues of the reference, relative to the largest, are not believed below this."""

FEW: frozenset[Method] = frozenset(
    {"spectrum-fit", "joint-spectrum-fit", "contour", "joint-contour", "one-by-one"}
)
"""Methods for few samples per feature, of either side."""


def from_few(estimates: Iterable[Estimate]) -> tuple[Diagnostic, ...]:
    """Return what a plan has to say if it is made from scores of few samples per feature.

    Their variance has no quadratic part of its own: all of it is taken to fall with 1/n.

    Parameters
    ----------
    estimates : iterable of Estimate

    Returns
    -------
    tuple of Diagnostic
    """
    if not any(estimate.method in FEW for estimate in estimates):
        return ()
    return (warn_of("plan-from-few"),)


@dataclass(frozen=True, slots=True)
class Fit:
    """The distance with the bias of one sample, or of both, removed: by a spectrum or the contour.

    Attributes
    ----------
    value : float
        Estimate of the squared distance; can be negative where the two distributions are close.
    errors : tuple of SampleError
        Due to each sample; what no sample shows counts with the first.
    method : str
    warnings : tuple of Diagnostic
        Reasons not to trust the interval ``value ± 1.96 √variance``.
    details : tuple of str
    """

    value: float
    errors: tuple[SampleError, ...]
    method: Method
    warnings: tuple[Diagnostic, ...] = ()
    details: tuple[str, ...] = ()


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

    def base(self, trace: float, n: int) -> float:
        """Distance without the trace of the root, from the trace of a covariance of `n` rows."""
        return float(self.gap @ self.gap) + trace - trace / n + self.trace

    def shape(self, n: int, rank: int) -> Float | None:
        """Spectrum of Lᵀ Σ L where Σ is like the reference's: its square, kept off rounding.

        None where the rows show every direction, or the spectrum is not known.
        """
        if self.spectrum is None or not n - 1 < rank <= self.spectrum.size:
            return None
        shape: Float = np.maximum(self.spectrum[:rank] / self.spectrum[0], SHAPE_FLOOR) ** 2
        return shape


def fit_one_sample(centred: Float, reference: Reference) -> Fit:
    """Debias the distance to a reference from few generated rows.

    `centred`: of shape (n, d), less their mean, n >= 2.
    """
    n = len(centred)
    trace = float(np.einsum("ij,ij->i", centred, centred).sum()) / (n - 1)
    base = reference.base(trace, n)
    side = Side.of(centred, reference.factor, reference.gap)
    if side is None:
        rest = _root.rest_of(centred, reference.gap)
        rest -= rest.mean()
        warnings = (*_root.few_rows(n), warn_of("flat-where-reference-varies"))
        return Fit(base, (error_of(n, variance_of_mean(rest), rest),), "spectrum-fit", warnings)
    lacking: tuple[Diagnostic, ...] = ()
    if side.rank < min(n - 1, reference.factor.shape[1]):
        lacking = (warn_of("rank-of-rows", n=n, rank=side.rank),)
    limits = RootLimits.of(side.values, traces=(trace, reference.trace))
    return fit_of_rows([side], base, limits, shape=reference.shape(n, side.rank), lacking=lacking)


def fit_of_rows(
    sides: Sequence[Side],
    base: float,
    limits: RootLimits,
    *,
    shape: Float | None = None,
    lacking: tuple[Diagnostic, ...] = (),
) -> Fit:
    """Debias a distance by the root of the spectrum of one sample, or of the product of both.

    Parameters
    ----------
    sides : sequence of Side
        Of the sample; of both, that with fewer rows first.
    base : float
        The distance without the trace of the root.
    limits : RootLimits
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
    laws = [side.row_law for side in sides]
    root, method, warnings = _root.population_root(values, rows=laws, rank=rank, shape=shape)
    if method == "contour":
        steps = (
            _root.jackknifed_contour(
                side.centred @ side.factor,
                rank,
                root.value,
                [law.n_effective for law in laws if law is not side.row_law],
            )
            - root.value
            for side in sides
        )
        root = replace(root, value=root.value + sum(steps))
    root = limits.hold(root)
    fitted, plugin = zip(*(_root.root_influences(sides, k, root) for k in both), strict=True)
    doubts = [_root.scale_doubt(sides, k, root, shape) ** 2 for k in both]
    doubts[0] += 4.0 * root.prior_variance * root.inflation
    variances, by_plugin = limits.errors(
        root.value,
        fitted=list(map(variance_of_mean, fitted)),
        plugin=list(map(variance_of_mean, plugin)),
        inflation=root.inflation,
        doubts=doubts,
    )
    repeated = [warning for side in sides for warning in repeated_rows(side)]
    return Fit(
        base - 2.0 * root.value,
        tuple(
            error_of(influence.size, variance, influence)
            for variance, influence in zip(variances, plugin if by_plugin else fitted, strict=True)
        ),
        method,
        warnings=(*warnings, *lacking, *repeated),
        details=("rows of unequal scale",) if any(root.scales) else (),
    )


def error_of(n: int, variance: float, influence: Float | None = None) -> SampleError:
    """Error due to `n` rows; without an influence if only their moments are known."""
    return SampleError(
        n=n,
        variance=variance,
        degrees_of_freedom=n - 1.0,
        influence=influence,
        tails=None if influence is None else Tails.of(influence),
    )


def variance_of_mean(influence: Float) -> float:
    """Variance of the mean of centred influences, each of a row left out."""
    return float(influence @ influence) / (influence.size - 1) ** 2


def repeated_rows(side: Side) -> tuple[Diagnostic, ...]:
    """Warn of rows that repeat others; many of them make the result unreliable."""
    n = len(side.centred)
    if side.distinct == n:
        return ()
    many = side.distinct < (1.0 - _root.REPEATED_SHARE) * n
    severity: Severity = "unreliable" if many else "caution"
    return (warn_of("repeated-rows", severity=severity, repeated=n - side.distinct, n=n),)


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
    base = reference.base(trace, n)
    moved = cov @ lower
    product = lower.T @ moved
    values, axes = scipy.linalg.eigh((product + product.T) / 2.0, check_finite=False)
    kept, rank = _root.kept_ranks(values[::-1], n, lower.shape[1])
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
        warnings = (*_root.few_rows(n), moments_only)
        return Fit(base, (error_of(n, sampling(none, none, none)),), "spectrum-fit", warnings)
    values, axes = values[::-1][:kept], axes[:, ::-1][:, :kept]
    root, method, warnings = _root.population_root(
        values, rows=[RowLaw(n - 1)], rank=rank, shape=reference.shape(n, rank)
    )
    limits = RootLimits.of(values, traces=(trace, reference.trace))
    root = limits.hold(root)
    shift = values[:, None] + root.points
    share = np.asarray(root.points / shift**2)
    left = 1.0 - (values[:, None] / shift).sum(axis=0) / (n - 1)
    slopes = ((share / left) @ root.weights).real / (n - 1)
    crossed = moved @ axes
    crossed = np.einsum("ij,ij->j", crossed, crossed)
    (variance,), _ = limits.errors(
        root.value,
        fitted=[sampling(slopes, values, crossed)],
        plugin=[sampling(0.5 / np.sqrt(values), values, crossed)],
        inflation=root.inflation,
        doubts=[4.0 * root.prior_variance * root.inflation],
    )
    warnings += (moments_only,)
    return Fit(base - 2.0 * root.value, (error_of(n, variance),), method, warnings)


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
    sides = _sides(centred, factors, gap, directions)
    if not sides:
        return None
    norms = [np.einsum("ij,ij->i", rows, rows) for rows in centred]
    one, two = (float(norm.sum()) / (norm.size - 1) for norm in norms)
    rank = sides[0].rank
    found = fit_of_rows(
        sides,
        # Either trace Tr Σ̂ stands for Tr Σ, less the bias Tr Σ̂ / n of the squared gap.
        float(gap @ gap) + sum(float(norm.mean()) for norm in norms),
        RootLimits.of(sides[0].values, traces=(one, two)),
        lacking=(warn_of("shared-rank", rank=rank),) if rank < directions else (),
    )
    return replace(
        found, method="joint-contour" if found.method == "contour" else "joint-spectrum-fit"
    )


def _sides(
    centred: tuple[Float, Float], factors: tuple[Float, Float], gap: Float, directions: int
) -> list[Side]:
    """Eigenvectors of both samples for the eigenvalues that they share, and the population's rank.

    By singular values: the smallest eigenvalues of a product of two samples of one size are near 0.
    None of samples that share no eigenvalue.
    """
    left, roots, right = scipy.linalg.svd(
        factors[0].T @ factors[1], full_matrices=False, check_finite=False
    )
    largest = roots.max(initial=0.0)
    kept = int((roots > 10.0 * max(left.shape[0], right.shape[1]) * EPS * largest).sum())
    if not kept:
        return []
    roots, axes = roots[:kept], (left[:, :kept], right[:kept].T)
    distinct = [_root.distinct_rows(rows) for rows in centred]
    seen = min(*(count - 1 for count in distinct), directions)
    rank = directions if kept >= seen else kept
    sides = []
    for k, sign in enumerate((1.0, -1.0)):
        rows, other = centred[k], factors[1 - k]
        if factors[k].shape[1] == len(rows):
            vectors = axes[k]
        else:
            vectors = rows @ (other @ axes[1 - k])
            vectors /= math.sqrt(len(rows) - 1) * roots
        values, rest = roots**2, _root.rest_of(rows, sign * gap)
        law = _root.row_law(values, vectors)
        sides.append(Side(rows, other, rest, values, vectors, rank, distinct[k], law))
    return sides


# --- How wrong the trace of the root can be, whatever spectrum was fitted -------------------------
# The map (Σ, Σ_r) ↦ Tr √(Lᵀ Σ L), Σ_r = L Lᵀ, is jointly concave, so that samples make it too
# small on average; and it is at most √(Tr Σ Tr Σ_r) (Cauchy–Schwarz). The truth lies between
# these two up to the noise of the samples, also where a fit is poor. Derivation:
# docs/explanation/few_samples.md.


class RootLimits(NamedTuple):
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

    def hold(self, root: SpectrumFit) -> SpectrumFit:
        """Hold the trace of a poor fit within the limits."""
        if root.inflation <= 1.0:
            return root
        return replace(root, value=min(max(root.value, self.low), self.high))

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
