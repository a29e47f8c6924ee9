"""Arms that are no linear image of independent factors: mixtures, rectified and normalised laws."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from genbounds.bounds import Facts
from genbounds.simulate._arms import SyntheticArm
from genbounds.simulate._gaussian import GaussianArm
from genbounds.validation import Float, InputError


class MixtureArm(SyntheticArm):
    """Mixture of laws with known mean and covariance, such as ten Gaussians.

    Parameters
    ----------
    components : sequence of SyntheticArm
        Their facts hold ``mean`` and ``cov``; all of the same d.
    weights : array_like of shape (k,), optional
        Mixture weights; equal by default.
    name : str, optional
        Label in reports.

    Raises
    ------
    InputError
        If there are no components, they do not fit together, or the weights are no distribution.

    Notes
    -----
    μ = Σ w_k μ_k, Σ = Σ w_k (Σ_k + μ_k μ_kᵀ) − μ μᵀ: exact to rounding.
    """

    def __init__(
        self,
        components: Sequence[SyntheticArm],
        *,
        weights: ArrayLike | None = None,
        name: str | None = None,
    ) -> None:
        self.components = tuple(components)
        if not self.components:
            raise InputError("`components` must hold at least one law.")
        if len({part.d for part in self.components}) > 1:
            raise InputError("`components` must all have the same number of features.")
        for part in self.components:
            if not {"mean", "cov"} <= part.facts.keys():
                raise InputError(f"`components`: {part.name} does not know mean and covariance.")
        count = len(self.components)
        shares = np.full(count, 1.0 / count) if weights is None else np.array(weights)
        if not (
            shares.shape == (count,)
            and (shares >= 0.0).all()
            and abs(float(shares.sum()) - 1.0) < 1e-9
        ):
            raise InputError("`weights` must be one non-negative number a component, sum one.")
        self.weights: Float = shares / shares.sum()
        self.name = name or f"mixture({count} components, d={self.components[0].d})"

    @cached_property
    def facts(self) -> Facts:
        """True quantities by name."""
        d = self.components[0].d
        means = np.stack([np.broadcast_to(part.facts["mean"], (d,)) for part in self.components])
        mean = self.weights @ means
        apart = means - mean
        cov = (apart.T * self.weights) @ apart
        for weight, part in zip(self.weights, self.components, strict=True):
            own = np.asarray(part.facts["cov"])
            cov += weight * (np.diag(own) if own.ndim == 1 else own)
        return moment_facts(mean, cov)

    def draw(self, n: int, rng: np.random.Generator) -> Float:
        """Return `n` rows, shape (n, d)."""
        owner = rng.choice(len(self.components), n, p=self.weights)
        rows = np.empty((n, self.d))
        for k, part in enumerate(self.components):
            chosen = owner == k
            rows[chosen] = part.draw(int(chosen.sum()), rng)
        return rows


class RectifiedArm(SyntheticArm):
    """max(0, x) of Gaussian rows x, as features behind a rectifier are.

    Parameters
    ----------
    mean : array_like of shape (d,)
        Of x; a scalar is repeated.
    cov : array_like of shape (d, d) or (d,)
        Covariance of x, or its diagonal; every variance positive.
    name : str, optional
        Label in reports.

    Raises
    ------
    InputError
        As `GaussianArm`; or if a variance of x is zero.

    Notes
    -----
    With a = μ_i/σ_i, b = μ_j/σ_j, correlation ρ and r = √(1−ρ²),

        E x_i⁺ x_j⁺ = σ_i σ_j [ (ab+ρ) Φ₂(a, b; ρ) + a φ(b) Φ((a−ρb)/r) + b φ(a) Φ((b−ρa)/r)
                                + r φ(a) φ((b−ρa)/r) ],

    and Φ₂ comes from Owen's T function, so that mean and covariance are closed forms, accurate to
    about 1e-14 of the largest second moment.
    """

    def __init__(self, mean: ArrayLike, cov: ArrayLike, *, name: str | None = None) -> None:
        self.source = GaussianArm(mean, cov)
        self._variances: Float = (
            self.source.cov if self.source.cov.ndim == 1 else np.diagonal(self.source.cov).copy()
        )
        if not (self._variances > 0.0).all():
            raise InputError("`cov` must have positive variances: there is no density otherwise.")
        self.name = name or f"rectified({self.source.name})"

    @cached_property
    def facts(self) -> Facts:
        """True quantities by name."""
        from scipy.special import ndtr

        scale = np.sqrt(self._variances)
        a = self.source.mean / scale
        mean = scale * (a * ndtr(a) + _density(a))
        if self.source.cov.ndim == 1:
            square = self._variances * ((a * a + 1.0) * ndtr(a) + a * _density(a))
            return moment_facts(mean, np.diag(np.maximum(square - mean**2, 0.0)), accuracy=1e-13)
        correlation = self.source.cov / np.outer(scale, scale)
        second = np.outer(scale, scale) * rectified_product(a[:, None], a[None, :], correlation)
        np.fill_diagonal(second, self._variances * ((a * a + 1.0) * ndtr(a) + a * _density(a)))
        cov = second - np.outer(mean, mean)
        return moment_facts(mean, (cov + cov.T) / 2.0, accuracy=1e-13 * float(second.max()))

    def draw(self, n: int, rng: np.random.Generator) -> Float:
        """Return `n` rows, shape (n, d)."""
        return np.maximum(self.source.draw(n, rng), 0.0)


class NormalisedArm(SyntheticArm):
    """Gaussian rows divided by their norm: unit rows in a cone, as CLIP features are.

    Parameters
    ----------
    mean : array_like of shape (d,)
        Of the Gaussian rows; a scalar is repeated. Far from 0 it makes the cone narrow.
    cov : array_like of shape (d, d) or (d,)
        Covariance of the Gaussian rows, or its diagonal.
    name : str, optional
        Label in reports.

    Raises
    ------
    InputError
        As `GaussianArm`; or if mean and covariance are both zero.

    Notes
    -----
    1/‖z‖ = π^{-1/2} ∫ t^{-1/2} e^{-t‖z‖²} dt and 1/‖z‖² = ∫ e^{-t‖z‖²} dt over t > 0. Under the
    weight e^{-t‖z‖²}, whose mean is φ(t) = Π_j (1+2tλ_j)^{-1/2} exp(−tμ_j²/(1+2tλ_j)), the rows
    are Gaussian with means μ_j/(1+2tλ_j) and variances λ_j/(1+2tλ_j) in the eigenbasis: mean and
    second moments are integrals over one variable, taken in log t by the trapezoidal rule. The
    largest change on halving the step, which the rule's error is far below, is in
    ``facts["moment_accuracy"]``.
    """

    def __init__(self, mean: ArrayLike, cov: ArrayLike, *, name: str | None = None) -> None:
        self.source = GaussianArm(mean, cov)
        if not (self.source.mean.any() or self.source.eigenvalues.any()):
            raise InputError("`mean` and `cov` are both zero: there is no direction.")
        self.name = name or f"normalised({self.source.name})"

    @cached_property
    def facts(self) -> Facts:
        """True quantities by name; ``moment_accuracy`` is the error limit of every moment."""
        values, axes = self.source.eigenvalues, self.source.axes
        centre = self.source.mean if axes is None else self.source.mean @ axes
        steps, before, change = 256, None, np.inf
        while True:
            first, second = _normalised_moments(centre, values, steps)
            if before is not None:
                change = max(
                    float(np.abs(first - before[0]).max()), float(np.abs(second - before[1]).max())
                )
            if change < 1e-12 or steps > 2**15:
                break
            before, steps = (first, second), 2 * steps
        if axes is not None:
            first, second = axes @ first, axes @ second @ axes.T
        cov = second - np.outer(first, first)
        facts = moment_facts(first, (cov + cov.T) / 2.0, accuracy=max(change, 1e-13))
        return dict(facts) | {
            "families": frozenset({"bounded"}),
            "radius": 1.0,
            "centred": not self.source.mean.any(),
        }

    def draw(self, n: int, rng: np.random.Generator) -> Float:
        """Return `n` rows of norm one, shape (n, d)."""
        rows = self.source.draw(n, rng)
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def moment_facts(mean: Float, cov: Float, *, accuracy: float = 0.0) -> Facts:
    """Facts that follow from mean and covariance; `accuracy` limits the error of any entry."""
    values = np.maximum(np.linalg.eigvalsh(cov), 0.0)
    return {
        "families": frozenset[str](),
        "d": mean.size,
        "mean": mean,
        "cov": cov,
        "moment_accuracy": accuracy,
        "eigenvalues": values,
        "trace": float(np.trace(cov)),
        "operator": float(values.max()),
        "max_variance": float(np.diagonal(cov).max()),
    }


def rectified_product(a: Float, b: Float, correlation: Float) -> Float:
    """E (a+u)⁺ (b+v)⁺ for standard normal u, v with this correlation; arrays are broadcast."""
    from scipy.special import ndtr

    a, b, rho = np.broadcast_arrays(a, b, np.clip(correlation, -1.0, 1.0))
    rest = np.sqrt((1.0 - rho) * (1.0 + rho))
    with np.errstate(divide="ignore", invalid="ignore"):
        # At |ρ| = 1 the ratios are ±∞; 0/0, where the two agree, as 0, which shares the term.
        one, two = (
            np.nan_to_num((a - rho * b) / rest, nan=0.0, posinf=np.inf, neginf=-np.inf),
            (np.nan_to_num((b - rho * a) / rest, nan=0.0, posinf=np.inf, neginf=-np.inf)),
        )
    value = (a * b + rho) * bivariate_normal(a, b, rho)
    value += a * _density(b) * ndtr(one) + b * _density(a) * ndtr(two)
    value += rest * _density(a) * _density(two)
    return np.asarray(np.maximum(value, 0.0))


def bivariate_normal(a: Float, b: Float, rho: Float) -> Float:
    """P(u ≤ a, v ≤ b) for standard normals with correlation ρ (D. B. Owen, 1956)."""
    from scipy.special import ndtr, owens_t

    rest = np.sqrt((1.0 - rho) * (1.0 + rho))
    with np.errstate(divide="ignore", invalid="ignore"):
        slope_a = (b / a - rho) / rest
        slope_b = (a / b - rho) / rest
    # T(0, ±∞) = ±1/4 where one limit is 0 and the other is not.
    slope_a = np.where(a == 0.0, np.copysign(np.inf, b), slope_a)
    slope_b = np.where(b == 0.0, np.copysign(np.inf, a), slope_b)
    opposite = (a * b < 0.0) | ((a * b == 0.0) & (a + b < 0.0))
    value = (ndtr(a) + ndtr(b)) / 2.0 - owens_t(a, slope_a) - owens_t(b, slope_b) - 0.5 * opposite
    value = np.where((a == 0.0) & (b == 0.0), 0.25 + np.arcsin(rho) / (2.0 * np.pi), value)
    value = np.where(rho >= 1.0, ndtr(np.minimum(a, b)), value)
    value = np.where(rho <= -1.0, np.maximum(ndtr(a) - ndtr(-b), 0.0), value)
    return np.asarray(np.maximum(value, 0.0))


def _density(x: Float) -> Float:
    return np.asarray(np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi))


def _normalised_moments(mean: Float, values: Float, steps: int) -> tuple[Float, Float]:
    """Mean and second moments of z/‖z‖, z ~ N(mean, diag(values)), by `steps` points in log t."""
    size = float(mean @ mean + values.sum())
    u = np.linspace(-75.0, 75.0, steps + 1) - np.log(size)
    t = np.exp(u)
    spread = 1.0 + 2.0 * np.multiply.outer(t, values)
    log_weight = -0.5 * np.log(spread).sum(axis=1) - t * (mean**2 / spread).sum(axis=1)
    step = float(u[1] - u[0])
    centre, variance = mean / spread, values / spread
    weight = np.exp(log_weight + u) * step
    first = (np.exp(log_weight + 0.5 * u) * step / np.sqrt(np.pi)) @ centre
    second = (centre.T * weight) @ centre + np.diag(weight @ variance)
    return first, second
