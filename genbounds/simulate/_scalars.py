"""Scalar arms: bounded laws and the gamma law."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from genbounds.bounds import Facts
from genbounds.simulate._arms import Outcomes, Statistics, SyntheticArm
from genbounds.validation import Float, InputError, check_open_unit


class BernoulliArm(SyntheticArm):
    """Zeros and ones: every sample quantity is a function of the number of ones.

    Parameters
    ----------
    p : float
        Probability of a one, in (0, 1).
    """

    def __init__(self, p: float) -> None:
        self.p = check_open_unit("p", p)
        self.name = f"Bernoulli({self.p:g})"

    @cached_property
    def facts(self) -> Facts:
        """True quantities by name."""
        return {
            "families": frozenset({"unit-interval", "bounded"}),
            "d": 1,
            "mean": self.p,
            "variance": self.p * (1.0 - self.p),
        }

    def draw(self, n: int, rng: np.random.Generator) -> Float:
        """Return `n` rows, shape (n, 1)."""
        return (rng.random((n, 1)) < self.p).astype(np.float64)

    def statistics(
        self, names: Collection[str], n: int, replications: int, rng: np.random.Generator
    ) -> Statistics:
        """Draw the number of ones, which is all that an unordered sample tells."""
        if set(names) & {"rows", "running_mean"}:
            return super().statistics(names, n, replications, rng)
        return self._from_ones(rng.binomial(n, self.p, replications), n)

    def size(self, names: Collection[str], n: int) -> int:
        """Numbers held for each replication."""
        return n if set(names) & {"rows", "running_mean"} else 3

    def outcomes(self, names: Collection[str], n: int) -> Outcomes:
        """All n + 1 counts with their binomial probabilities."""
        from scipy.stats import binom

        ones = np.arange(n + 1)
        probabilities = np.asarray(binom.pmf(ones, n, self.p))
        return Outcomes(statistics=self._from_ones(ones, n), probabilities=probabilities)

    def _from_ones(self, ones: NDArray[np.int64], n: int) -> Statistics:
        mean = ones / n
        variance = ones * (n - ones) / (n * max(n - 1, 1))
        return {"sample_mean": mean, "sample_variance": variance, "mean_square": mean}


class BetaArm(SyntheticArm):
    """Beta law on [0, 1].

    Parameters
    ----------
    a, b : float
        Shape parameters, positive; (1, 1) is the uniform law.
    """

    def __init__(self, a: float, b: float) -> None:
        if not (a > 0.0 and b > 0.0):
            raise InputError(f"`a` and `b` must be positive; got {a!r}, {b!r}.")
        self.a, self.b = float(a), float(b)
        self.name = f"Beta({self.a:g}, {self.b:g})"

    @cached_property
    def facts(self) -> Facts:
        """True quantities by name."""
        total = self.a + self.b
        return {
            "families": frozenset({"unit-interval", "bounded"}),
            "d": 1,
            "mean": self.a / total,
            "variance": self.a * self.b / (total**2 * (total + 1.0)),
        }

    def draw(self, n: int, rng: np.random.Generator) -> Float:
        """Return `n` rows, shape (n, 1)."""
        return rng.beta(self.a, self.b, (n, 1))


class UniformArm(SyntheticArm):
    """Uniform law on [low, high].

    Parameters
    ----------
    low, high : float
        Ends, low < high.
    """

    def __init__(self, low: float = 0.0, high: float = 1.0) -> None:
        if not low < high:
            raise InputError(f"`low` must lie below `high`; got {low!r}, {high!r}.")
        self.low, self.high = float(low), float(high)
        self.name = f"Uniform({self.low:g}, {self.high:g})"

    @cached_property
    def facts(self) -> Facts:
        """True quantities by name."""
        inside = self.low >= 0.0 and self.high <= 1.0
        return {
            "families": frozenset({"bounded", *(("unit-interval",) if inside else ())}),
            "d": 1,
            "mean": 0.5 * (self.low + self.high),
            "variance": (self.high - self.low) ** 2 / 12.0,
        }

    def draw(self, n: int, rng: np.random.Generator) -> Float:
        """Return `n` rows, shape (n, 1)."""
        return rng.uniform(self.low, self.high, (n, 1))


class GammaArm(SyntheticArm):
    """Gamma law; χ² with k degrees of freedom is ``GammaArm(k / 2, 2)``.

    Parameters
    ----------
    shape, scale : float
        Positive.

    Notes
    -----
    X is sub-exponential with α = 2 scale and ν² = 2 shape scale²: with ``|u| = |λ| scale ≤ 1/2``,
    log E e^{λ(X−EX)} = shape (−u − log(1−u)) = shape Σ_{k≥2} u^k/k ≤ shape u², since the sum is
    at most ``u²/2 · 1/(1−|u|)``; χ²₁ (shape 1/2, scale 2) is the familiar SE(2, 4).
    """

    def __init__(self, shape: float, scale: float = 1.0) -> None:
        if not (shape > 0.0 and scale > 0.0):
            raise InputError(f"`shape` and `scale` must be positive; got {shape!r}, {scale!r}.")
        self.shape, self.scale = float(shape), float(scale)
        self.name = f"Gamma({self.shape:g}, scale {self.scale:g})"

    @cached_property
    def facts(self) -> Facts:
        """True quantities by name."""
        return {
            "families": frozenset({"sub-exponential"}),
            "d": 1,
            "mean": self.shape * self.scale,
            "variance": self.shape * self.scale**2,
            "sub_exponential_nu": self.scale * (2.0 * self.shape) ** 0.5,
            "sub_exponential_alpha": 2.0 * self.scale,
        }

    def draw(self, n: int, rng: np.random.Generator) -> Float:
        """Return `n` rows, shape (n, 1)."""
        return rng.gamma(self.shape, self.scale, (n, 1))

    def tail(self, quantity: str, n: int, threshold: float) -> float | None:
        """Exact tail of the sample mean, itself a gamma variable."""
        if quantity != "mean-error":
            return None
        from scipy.special import gammainc, gammaincc

        mean = self.shape * self.scale
        upper = gammaincc(n * self.shape, n * (mean + threshold) / self.scale)
        lower = gammainc(n * self.shape, n * max(mean - threshold, 0.0) / self.scale)
        return float(upper + lower)
