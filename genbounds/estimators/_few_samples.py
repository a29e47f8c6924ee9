"""The Fréchet distance from few samples: fewer than about four a dimension, or fewer than one.

The distance is ``‖gap‖² + Tr Σ + Tr Σ_r - 2 Tr √M``, M = Lᵀ Σ L, Σ_r = L Lᵀ. All but the last term
are unbiased up to Tr Σ / n; the root is taken of the population spectrum of M that a separable
Marchenko–Pastur law fits to the sample's (`_marchenko_pastur`). Derivations, and where it fails:
docs/few_samples.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from genbounds.estimators._linalg import EPS
from genbounds.estimators._marchenko_pastur import SpectrumFit, fit_spectrum
from genbounds.validation import Float

PAIRED_ROWS = 400
"""At most so many rows, evenly spaced, for the noise of the leverages."""

FEW_ROWS = 16
"""Below so many rows no limit law is near."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FewSamples:
    """The distance with its bias removed, from few samples.

    Attributes
    ----------
    value : float
        Estimate of the squared distance; can be negative where the two laws are close.
    variance : float
        Variance of `value` due to the generated sample.
    influence : ndarray of shape (n,) or None
        Centred influence of each generated row; None if only moments are known.
    route : str
        "spectrum fit" or "separable spectrum fit".
    notes : tuple of str
        What cannot be trusted, with the reason.
    reliable : bool
        Whether the interval ``value ± 1.96 √variance`` is believed to cover.
    """

    value: float
    variance: float
    influence: Float | None
    route: str
    notes: tuple[str, ...]
    reliable: bool


def few_samples(
    centred: Float, projected: Float, *, gap: Float, reference_trace: float
) -> FewSamples:
    """Debias the distance to a reference from few generated rows.

    Parameters
    ----------
    centred : ndarray of shape (n, d)
        Generated rows less their mean, n >= 2.
    projected : ndarray of shape (n, r)
        ``centred @ L`` with reference covariance ``L @ L.T``.
    gap : ndarray of shape (d,)
        Mean of the rows minus mean of the reference.
    reference_trace : float
        Trace of the reference covariance.

    Notes
    -----
    The variance is that of the estimator linearised in the rows, each row left out of the
    resolvent that weighs it and its scale b_i left out of the law of the scales, plus the
    posterior variance of what the sample cannot see (`SpectrumFit.prior_variance`).
    """
    n = centred.shape[0]
    squared_norm = np.einsum("ij,ij->i", centred, centred)
    trace = float(squared_norm.sum()) / (n - 1)
    base = float(gap @ gap) + trace - trace / n + reference_trace
    influence = 2.0 * (centred @ gap) + squared_norm
    side = _Side.of(projected)
    if side is None:
        influence -= influence.mean()
        return FewSamples(
            value=base,
            variance=float(influence @ influence) / (n - 1) ** 2,
            influence=influence,
            route="spectrum fit",
            notes=("the rows do not vary where the reference does",),
            reliable=n >= FEW_ROWS,
        )
    radii = _radii(side)
    fit = fit_spectrum(side.values, n_effective=n - 1, rank=side.rank, radii=radii)
    influence -= 2.0 * _root_influence(side, fit, radii)
    influence -= influence.mean()
    variance = float(influence @ influence) / (n - 1) ** 2 + 4.0 * fit.prior_variance
    route = "spectrum fit" if radii is None else "separable spectrum fit"
    return FewSamples(
        value=base - 2.0 * fit.trace_root,
        variance=variance,
        influence=influence,
        route=route,
        notes=(),
        reliable=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """Positive eigenvalues of the sample's M with the n-dimensional eigenvectors, squared."""

    values: Float
    vectors: Float
    rank: int

    @classmethod
    def of(cls, projected: Float) -> _Side | None:
        n, r = projected.shape
        if not projected.any():
            return None
        if n <= r:
            values, vectors = linalg.eigh(projected @ projected.T / (n - 1), check_finite=False)
        else:
            values, axes = linalg.eigh(projected.T @ projected / (n - 1), check_finite=False)
        full = min(n - 1, r)
        values = values[::-1][:full]
        kept = int((values > 10.0 * max(n, r) * EPS * values[0]).sum())
        values = values[:kept]
        if n <= r:
            vectors = vectors[:, ::-1][:, :kept]
        else:
            vectors = (projected @ axes[:, ::-1][:, :kept]) / np.sqrt((n - 1) * values)
        # A sample spans less than it could only if its law does.
        return cls(values=values, vectors=vectors, rank=r if kept == full else kept)


def _radii(side: _Side) -> Float | None:
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
    rest = np.eye(rows.size) - (some * share) @ some.T - 1.0 / n
    own = np.maximum(np.diagonal(rest), EPS)
    determinant = np.maximum(np.outer(own, own) - rest**2, EPS**2)
    crossed = (rest / determinant) ** 2 / np.outer(leverage[rows], leverage[rows])
    noise = 2.0 * float(crossed[np.triu_indices(rows.size, 1)].mean())
    excess = (spread - noise) / (1.0 + noise)
    if not excess > 0.0:
        return None
    radii: Float = 1.0 + math.sqrt(excess / spread) * (relative - 1.0)
    return radii


def _root_influence(side: _Side, fit: SpectrumFit, radii: Float | None) -> Float:
    """Influence of each row on Tr √M, not centred."""
    n = side.vectors.shape[0]
    squared = side.vectors**2
    shift = side.values[:, None] + fit.points
    leverage = squared @ (side.values[:, None] / shift)
    change = squared @ (side.values[:, None] * fit.points / shift**2)
    influence: Float = (change / np.maximum(1.0 - 1.0 / n - leverage, EPS)) @ fit.weights
    if radii is not None and fit.radius_weights is not None and fit.row_odds is not None:
        odds = np.outer(radii, fit.row_odds)
        drift = (odds / (1.0 + odds) ** 2).mean(axis=0)
        influence += (odds / (1.0 + odds) - np.outer(radii - 1.0, drift)) @ fit.radius_weights
    return influence
