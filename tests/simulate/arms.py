"""Arms of known truth that only the tests need: features and posteriors as networks make them."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.special import expit, ndtr, owens_t

from genbounds.bounds import entropy_sum
from genbounds.estimators import gaussian_bias
from genbounds.simulate import FrechetArm, GaussianArm, SyntheticArm


class RectifiedArm(SyntheticArm):
    """max(0, x) of Gaussian rows x, as features behind a rectifier are.

    With a = μ_i/σ_i, b = μ_j/σ_j, correlation ρ and r = √(1−ρ²),

        E x_i⁺ x_j⁺ = σ_i σ_j [ (ab+ρ) Φ₂(a, b; ρ) + a φ(b) Φ((a−ρb)/r) + b φ(a) Φ((b−ρa)/r)
                                + r φ(a) φ((b−ρa)/r) ],

    and Φ₂ comes from Owen's T function.
    """

    def __init__(self, mean, cov):
        self.source = GaussianArm(mean, cov)
        self.name = f"rectified({self.source.name})"

    @cached_property
    def facts(self):
        scale = np.sqrt(np.diagonal(self.source.cov))
        a = self.source.mean / scale
        mean = scale * (a * ndtr(a) + density(a))
        correlation = self.source.cov / np.outer(scale, scale)
        second = np.outer(scale, scale) * rectified_product(a[:, None], a[None, :], correlation)
        np.fill_diagonal(second, scale**2 * ((a * a + 1.0) * ndtr(a) + a * density(a)))
        return moment_facts(mean, second - np.outer(mean, mean))

    def draw(self, n, rng):
        return np.maximum(self.source.draw(n, rng), 0.0)


def rectified_product(a, b, rho):
    """E (a+u)⁺ (b+v)⁺ for standard normal u, v with correlation |ρ| < 1."""
    a, b, rho = np.broadcast_arrays(a, b, np.clip(rho, -1.0 + 1e-15, 1.0 - 1e-15))
    rest = np.sqrt((1.0 - rho) * (1.0 + rho))
    one, two = (a - rho * b) / rest, (b - rho * a) / rest
    value = (a * b + rho) * bivariate_normal(a, b, rho)
    value += a * density(b) * ndtr(one) + b * density(a) * ndtr(two)
    return value + rest * density(a) * density(two)


def bivariate_normal(a, b, rho):
    """P(u ≤ a, v ≤ b) for standard normals with correlation |ρ| < 1 (D. B. Owen, 1956)."""
    rest = np.sqrt((1.0 - rho) * (1.0 + rho))
    with np.errstate(divide="ignore", invalid="ignore"):
        slope_a, slope_b = (b / a - rho) / rest, (a / b - rho) / rest
    # T(0, ±∞) = ±1/4 where one limit is 0 and the other is not.
    slope_a = np.where(a == 0.0, np.copysign(np.inf, b), slope_a)
    slope_b = np.where(b == 0.0, np.copysign(np.inf, a), slope_b)
    opposite = (a * b < 0.0) | ((a * b == 0.0) & (a + b < 0.0))
    value = (ndtr(a) + ndtr(b)) / 2.0 - owens_t(a, slope_a) - owens_t(b, slope_b) - 0.5 * opposite
    return np.where((a == 0.0) & (b == 0.0), 0.25 + np.arcsin(rho) / (2.0 * np.pi), value)


def density(x):
    return np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi)


class NormalisedArm(SyntheticArm):
    """Gaussian rows divided by their norm: unit rows in a cone, as CLIP features are.

    1/‖z‖ = π^{-1/2} ∫ t^{-1/2} e^{-t‖z‖²} dt and 1/‖z‖² = ∫ e^{-t‖z‖²} dt over t > 0. Under the
    weight e^{-t‖z‖²}, whose mean is φ(t) = Π_j (1+2tλ_j)^{-1/2} exp(−tμ_j²/(1+2tλ_j)), the rows
    are Gaussian with means μ_j/(1+2tλ_j) and variances λ_j/(1+2tλ_j) along the eigenvectors: mean
    and second moments are integrals over one variable, taken in log t by the trapezoidal rule.
    """

    def __init__(self, mean, cov):
        self.source = GaussianArm(mean, cov)
        self.name = f"normalised({self.source.name})"

    @cached_property
    def facts(self):
        source = self.source
        first, second = normalised_moments(source.along_axes(source.mean), source.eigenvalues)
        if source.axes is not None:
            first, second = source.axes @ first, source.axes @ second @ source.axes.T
        return moment_facts(first, second - np.outer(first, first))

    def draw(self, n, rng):
        rows = self.source.draw(n, rng)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def normalised_moments(mean, values, steps=4096):
    """Mean and second moments of z/‖z‖, z ~ N(mean, diag(values)), by `steps` points in log t."""
    u = np.linspace(-75.0, 75.0, steps + 1) - np.log(mean @ mean + values.sum())
    t = np.exp(u)
    spread = 1.0 + 2.0 * np.multiply.outer(t, values)
    log_weight = -0.5 * np.log(spread).sum(axis=1) - t * (mean**2 / spread).sum(axis=1)
    step = u[1] - u[0]
    centre, variance = mean / spread, values / spread
    weight = np.exp(log_weight + u) * step
    first = (np.exp(log_weight + 0.5 * u) * step / np.sqrt(np.pi)) @ centre
    return first, (centre.T * weight) @ centre + np.diag(weight @ variance)


def moment_facts(mean, cov):
    return {
        "families": frozenset(),
        "d": mean.size,
        "mean": mean,
        "cov": (cov + cov.T) / 2.0,
        "trace": float(np.trace(cov)),
    }


class LogisticArm(SyntheticArm):
    """Two classes with Gaussian logits: p = 1/(1 + e^{−x}), x ~ N(mean, scale²).

    Class shares and mean entropy are integrals over one normal variable, by the trapezoidal rule
    on ±12 standard deviations.
    """

    def __init__(self, mean, scale):
        self.mean, self.scale = mean, scale
        self.name = f"logistic({mean:g}, {scale:g})"

    @cached_property
    def facts(self):
        z = np.linspace(-12.0, 12.0, 2**16 + 1)
        weight = np.exp(-0.5 * z * z)
        weight /= weight.sum()
        pairs = self.posteriors(z)
        marginal = weight @ pairs
        entropy = float(weight @ entropy_sum(pairs))
        return {
            "families": frozenset({"posterior"}),
            "d": 2,
            "marginal": marginal,
            "conditional_entropy": entropy,
            "log_score": float(entropy_sum(marginal)) - entropy,
            "entropy_limit": float(np.log(2.0)),
        }

    def posteriors(self, z):
        logit = self.mean + self.scale * z
        return np.stack([expit(logit), expit(-logit)], axis=-1)

    def draw(self, n, rng):
        return self.posteriors(rng.standard_normal(n))


def flipped_scores(d, *, wide=1.3, narrow=0.67):
    """Two generators, and the sample size below which the plug-in distance ranks them wrongly.

    N(0, wide² I) and N(0, narrow² I) against N(0, I) have FD d(σ−1)²; the bias K/n of the plug-in
    has K = dσ² + σ d(d+1)/4 (to second order, `plugin_bias`), larger for the wide one.
    """
    arms = {
        name: FrechetArm(GaussianArm(0.0, np.full(d, scale**2)), 0.0, np.ones(d), name=name)
        for name, scale in (("wide", wide), ("narrow", narrow))
    }
    constants = {name: plugin_bias(arm) for name, arm in arms.items()}
    gap = arms["narrow"].facts["distance"] - arms["wide"].facts["distance"]
    return arms, (constants["wide"] - constants["narrow"]) / gap


def plugin_bias(arm):
    """K of E FD_n = FD + K/n + O(n⁻²) for Gaussian features, covariances with divisor n − 1."""
    values, axes = arm.features.eigenvalues, arm.features.axes
    turned = arm.reference_root if axes is None else arm.reference_root @ axes
    inner = np.linalg.eigvalsh((turned * values) @ turned.T)
    return gaussian_bias(float(values.sum()), np.sqrt(np.maximum(inner, 0.0)), 1)
