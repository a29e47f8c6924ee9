"""Scalar arms: distributions on an interval, and the gamma distribution."""

from __future__ import annotations

import math

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from genbounds.bounds import Facts
from genbounds.simulate.arms import _tilting as tilting
from genbounds.simulate.arms._arm import Names, Outcomes, Statistics, SyntheticArm
from genbounds.validation import Float, InputError, check_open_unit, check_positive


class ScalarArm(SyntheticArm):
    """One feature of known mean and variance; `more` are further facts."""

    def __init__(
        self, name: str, families: set[str], mean: float, variance: float, **more: float
    ) -> None:
        self.name = name
        moments = {"d": 1, "mean": mean, "variance": variance}
        self._facts: Facts = {"families": frozenset(families)} | moments | more

    @property
    def facts(self) -> Facts:
        """True quantities by name."""
        return self._facts


_UNIT = {"unit-interval", "bounded"}


class BernoulliArm(ScalarArm):
    """Zeros and ones: every sample quantity is a function of the number of ones.

    Parameters
    ----------
    p : float
        Probability of a one, in (0, 1).
    """

    def __init__(self, p: float) -> None:
        self.p = check_open_unit("p", p)
        super().__init__(f"Bernoulli({self.p:g})", _UNIT, self.p, self.p * (1.0 - self.p))

    def draw(self, n: int, rng: Generator) -> Float:
        """Return `n` rows, shape (n, 1)."""
        return (rng.random((n, 1)) < self.p).astype(np.float64)

    def statistics(self, names: Names, n: int, replications: int, rng: Generator) -> Statistics:
        """Draw the number of ones, which is all that an unordered sample tells."""
        if set(names) & {"rows", "running_mean"}:
            return super().statistics(names, n, replications, rng)
        return self._from_ones(rng.binomial(n, self.p, replications), n)

    def size(self, names: Names, n: int) -> int:
        """Numbers held for each replication."""
        return n if set(names) & {"rows", "running_mean"} else 3

    def outcomes(self, names: Names, n: int) -> Outcomes:
        """All n + 1 counts with their binomial probabilities."""
        from scipy.stats import binom

        ones = np.arange(n + 1)
        probabilities = np.asarray(binom.pmf(ones, n, self.p))
        return Outcomes(statistics=self._from_ones(ones, n), probabilities=probabilities)

    def _from_ones(self, ones: NDArray[np.int64], n: int) -> Statistics:
        mean = ones / n
        variance = ones * (n - ones) / (n * max(n - 1, 1))
        return {"sample_mean": mean, "sample_variance": variance, "mean_square": mean}

    def tilted_rows(self, n: int, count: int, rng: Generator) -> tuple[Float, Float]:
        """Give the first rows another probability of a one."""
        p = self.p
        parts = [(0, p)] + [
            (start, q)
            for start in tilting.tilted_starts(n)
            for q in tilting.tilted_probabilities(p, start)
        ]

        def draw(part: tuple[int, float], k: int) -> Float:
            start, q = part
            chance = np.where(np.arange(n) < start, q, p)
            return (rng.random((k, n)) < chance).astype(np.float64)

        def log_ratio(part: tuple[int, float], rows: Float) -> Float:
            start, q = part
            ones = rows[:, :start].sum(axis=1)
            gain, loss = math.log(q / p), math.log((1.0 - q) / (1.0 - p))
            return np.asarray(ones * gain + (start - ones) * loss)

        rows = tilting.draw_parts(parts, count, rng, draw)
        return rows[:, :, None], tilting.mixture_weights([log_ratio(part, rows) for part in parts])


class BetaArm(ScalarArm):
    """Beta distribution on [0, 1].

    Parameters
    ----------
    a, b : float
        Shape parameters, positive; (1, 1) is the uniform distribution.
    """

    def __init__(self, a: float, b: float) -> None:
        self.a, self.b = check_positive("a", a), check_positive("b", b)
        total = self.a + self.b
        variance = self.a * self.b / (total**2 * (total + 1.0))
        super().__init__(f"Beta({self.a:g}, {self.b:g})", _UNIT, self.a / total, variance)

    def draw(self, n: int, rng: Generator) -> Float:
        """Return `n` rows, shape (n, 1)."""
        return rng.beta(self.a, self.b, (n, 1))

    def tilted_rows(self, n: int, count: int, rng: Generator) -> tuple[Float, Float]:
        """Raise one of the two parameters."""
        return _tilted_beta(self.a, self.b, n, count, rng)


def _tilted_beta(a: float, b: float, n: int, count: int, rng: Generator) -> tuple[Float, Float]:
    """Rows, (count, n, 1), of beta variables with either parameter raised, and log weights."""
    from scipy.special import betaln, digamma

    def cost(more_a: float, more_b: float) -> float:
        p, q = a + more_a, b + more_b
        total = digamma(p + q)
        change = more_a * (digamma(p) - total) + more_b * (digamma(q) - total)
        return n * float(betaln(a, b) - betaln(p, q) + change)

    parts = [(0.0, 0.0)]
    for level in tilting.LEVELS:
        in_a = tilting.strength(lambda x: cost(math.expm1(x) * a, 0.0), level, low=0.0, high=20.0)
        in_b = tilting.strength(lambda x: cost(0.0, math.expm1(x) * b), level, low=0.0, high=20.0)
        parts += [] if in_a is None else [(math.expm1(in_a) * a, 0.0)]
        parts += [] if in_b is None else [(0.0, math.expm1(in_b) * b)]

    def draw(part: tuple[float, float], k: int) -> Float:
        more_a, more_b = part
        return rng.beta(a + more_a, b + more_b, (k, n))

    # Rounded to an end of the interval a row has no finite logarithm.
    rows = np.clip(tilting.draw_parts(parts, count, rng, draw), 1e-300, 1.0 - 1e-16)
    low, high = np.log(rows).sum(axis=1), np.log1p(-rows).sum(axis=1)
    ratios = [
        more_a * low + more_b * high + n * (betaln(a, b) - betaln(a + more_a, b + more_b))
        for more_a, more_b in parts
    ]
    return rows[:, :, None], tilting.mixture_weights(ratios)


class UniformArm(ScalarArm):
    """Uniform distribution on [low, high].

    Parameters
    ----------
    low, high : float
        Ends, low < high.
    """

    def __init__(self, low: float = 0.0, high: float = 1.0) -> None:
        if not low < high:
            raise InputError(f"`low` must lie below `high`; got {low!r}, {high!r}.")
        self.low, self.high = float(low), float(high)
        families = _UNIT if self.low >= 0.0 and self.high <= 1.0 else {"bounded"}
        mean, variance = 0.5 * (self.low + self.high), (self.high - self.low) ** 2 / 12.0
        super().__init__(f"Uniform({self.low:g}, {self.high:g})", families, mean, variance)

    def draw(self, n: int, rng: Generator) -> Float:
        """Return `n` rows, shape (n, 1)."""
        return rng.uniform(self.low, self.high, (n, 1))

    def tilted_rows(self, n: int, count: int, rng: Generator) -> tuple[Float, Float] | None:
        """Make a beta distribution of the uniform one on [0, 1], the only one of the audit."""
        inside = (self.low, self.high) == (0.0, 1.0)
        return _tilted_beta(1.0, 1.0, n, count, rng) if inside else None


class GammaArm(ScalarArm):
    """Gamma distribution; χ² with k degrees of freedom is ``GammaArm(k / 2, 2)``.

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
        self.shape, self.scale = check_positive("shape", shape), check_positive("scale", scale)
        super().__init__(
            f"Gamma({self.shape:g}, scale {self.scale:g})",
            {"sub-exponential"},
            self.shape * self.scale,
            self.shape * self.scale**2,
            sub_exponential_nu=self.scale * (2.0 * self.shape) ** 0.5,
            sub_exponential_alpha=2.0 * self.scale,
        )

    def draw(self, n: int, rng: Generator) -> Float:
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
