"""Arms of one feature, and with bounded rows: on the sphere, one-hot, and class posteriors.

The Inception score of the posteriors is known in closed form.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from genbounds.bounds import Facts, entropy_sum
from genbounds.simulate.arms import _tilting as tilting
from genbounds.simulate.arms._arm import (
    Names,
    Outcomes,
    Statistics,
    SyntheticArm,
    Tilted,
    chosen,
    shares_of,
)
from genbounds.validation import Float, InputError, check_count, check_open_unit, check_positive

_LARGEST_TILT = 6.0  # of log a: parameters are multiplied by e^(±6) at most


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

        def log_ratios(rows: Float) -> list[Float]:
            ones = {start: rows[:, :start].sum(axis=1) for start, _ in parts}
            return [
                ones[start] * math.log(q / p)
                + (start - ones[start]) * math.log((1.0 - q) / (1.0 - p))
                for start, q in parts
            ]

        return tilting.mixture(parts, count, rng, draw, log_ratios)


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
    """Rows, (count, n), of beta variables with either parameter raised, and log weights."""
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
        # Rounded to an end of the interval a row has no finite logarithm.
        return np.clip(rng.beta(a + part[0], b + part[1], (k, n)), 1e-300, 1.0 - 1e-16)

    def log_ratios(rows: Float) -> list[Float]:
        low, high = np.log(rows).sum(axis=1), np.log1p(-rows).sum(axis=1)
        return [
            more_a * low + more_b * high + n * (betaln(a, b) - betaln(a + more_a, b + more_b))
            for more_a, more_b in parts
        ]

    return tilting.mixture(parts, count, rng, draw, log_ratios)


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


# --- bounded rows ---------------------------------------------------------------------------------


class SphereArm(SyntheticArm):
    """Uniform distribution on the sphere of a given radius; d = 1 is a fair sign.

    Parameters
    ----------
    d : int
        Dimension.
    radius : float
        Norm of every row.
    """

    def __init__(self, d: int, radius: float = 1.0) -> None:
        self._d = check_count("d", d)
        self.radius = check_positive("radius", radius)
        self.name = f"sphere(d={self._d}, radius={self.radius:g})"

    @cached_property
    def facts(self) -> Facts:
        """True quantities by name; the kernel is the normalised inner product."""
        variance = self.radius**2 / self._d
        return {
            "families": frozenset({"bounded", "kernel"}),
            "d": self._d,
            "mean": np.zeros(self._d),
            "centred": True,
            "radius": self.radius,
            "trace": self.radius**2,
            "operator": variance,
            "effective_rank": float(self._d),
            "cov": np.full(self._d, variance),
            # Coordinates of the sphere have moment generating functions below those of
            # N(0, radius²/d), hence the ψ₂ constant of a Gaussian serves.
            "kappa": (8.0 / 3.0) ** 0.5,
            "kernel_spectrum": np.full(self._d, 1.0 / self._d),
        }

    def draw(self, n: int, rng: Generator) -> Float:
        """Return `n` rows, shape (n, d)."""
        rows = rng.standard_normal((n, self._d))
        return np.asarray(self.radius * rows / np.linalg.norm(rows, axis=1, keepdims=True))

    def tilted(self, names: Names, n: int, count: int, rng: Generator) -> Tilted | None:
        """Draw towards one direction; no tilt is known for the kernel spectrum."""
        return None if "sample_spectrum" in names else super().tilted(names, n, count, rng)

    def tilted_rows(self, n: int, count: int, rng: Generator) -> tuple[Float, Float]:
        """Draw the rows of a sample towards one direction, uniform and integrated out."""
        d = self._d

        def spread(kappa: float) -> float:
            return float(tilting.log_direction_mean(np.asarray(kappa), d))

        def cost(kappa: float) -> float:
            slope = (spread(kappa * 1.0001) - spread(kappa * 0.9999)) / (2e-4 * kappa)
            return n * (kappa * slope - spread(kappa))

        def draw(kappa: float, k: int) -> Float:
            return _towards(kappa, k, n, d, rng)

        def log_ratios(rows: Float) -> list[Float]:
            length = np.linalg.norm(rows.sum(axis=1), axis=1)
            return [tilting.log_direction_mean(x * length, d) - n * spread(x) for x in kappas]

        kappas = [0.0, *tilting.strengths(cost, low=1e-6, high=200.0)]
        rows, weights = tilting.mixture(kappas, count, rng, draw, log_ratios)
        return self.radius * rows, weights


def _towards(kappa: float, k: int, n: int, d: int, rng: Generator) -> Float:
    """Von Mises–Fisher rows of shape (k, n, d), one random direction for each of the k samples."""
    if kappa == 0.0 or k == 0:
        return tilting.random_directions(k * n, d, rng).reshape(k, n, d)
    if d == 1:
        sign = np.where(rng.random((k, n)) < 1.0 / (1.0 + math.exp(-2.0 * kappa)), 1.0, -1.0)
        return (sign * np.where(rng.random((k, 1)) < 0.5, 1.0, -1.0))[:, :, None]
    from scipy.stats import vonmises_fisher

    axis = np.eye(d)[0]
    rows = np.asarray(vonmises_fisher(axis, kappa).rvs(k * n, random_state=rng)).reshape(k, n, d)
    # The reflection that carries the axis to the direction: the distribution about the axis,
    # which is symmetric, stays as it is.
    normal = tilting.random_directions(k, d, rng) - axis
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    return np.asarray(rows - 2.0 * (rows @ normal[:, :, None]) * normal[:, None, :])


class CategoricalArm(SyntheticArm):
    """One-hot rows. With the kernel k(x, y) = [x = y] the spectrum is the class probabilities.

    Parameters
    ----------
    probabilities : array_like of shape (d,)
        Class probabilities.
    name : str, optional
        Label in reports.
    """

    def __init__(self, probabilities: ArrayLike, *, name: str | None = None) -> None:
        self.probabilities = p = shares_of("probabilities", probabilities)
        self.name = name or f"one-hot(d={p.size}, largest {p.max():g})"

    @cached_property
    def facts(self) -> Facts:
        """True quantities by name."""
        p = self.probabilities
        return {
            "families": frozenset({"bounded", "kernel", "classes"}),
            "d": p.size,
            "mean": p,
            "centred": False,
            "radius": 1.0,
            "trace": float(1.0 - p @ p),
            "kernel_spectrum": np.sort(p)[::-1],
        }

    def draw(self, n: int, rng: Generator) -> Float:
        """Return `n` rows, shape (n, d)."""
        d = self.probabilities.size
        return np.eye(d)[rng.choice(d, n, p=self.probabilities)]

    def statistics(self, names: Names, n: int, replications: int, rng: Generator) -> Statistics:
        """Draw the class counts, which are sufficient."""
        return self._from_shares(names, rng.multinomial(n, self.probabilities, replications) / n)

    def _from_shares(self, names: Names, mean: Float) -> Statistics:
        """Compute the quantities `names` from class shares `mean`, shape (replications, d)."""
        table = {
            "mean_vector": mean,
            "mean_error_norm": np.linalg.norm(mean - self.probabilities, axis=1),
            "sample_spectrum": np.sort(mean, axis=1)[:, ::-1],
        }
        return chosen(names, table)

    def size(self, names: Names, n: int) -> int:
        """Numbers held for each replication."""
        return 3 * self.probabilities.size

    def tilted(self, names: Names, n: int, count: int, rng: Generator) -> Tilted:
        """Make one class, drawn at random and integrated out, more or less likely."""
        p = self.probabilities
        d = p.size
        # new[j, i]: probability of class j in the i-th tilt, if it is the class that is tilted.
        lists = [tilting.tilted_probabilities(float(value), n) for value in p]
        depth = min(map(len, lists))
        new = np.array([tilts[:depth] for tilts in lists])

        def draw(tilt: int | None, k: int) -> Float:
            if tilt is None:
                return np.asarray(rng.multinomial(n, p, k), dtype=np.float64)
            chosen = rng.integers(d, size=k)
            q = new[chosen, tilt]
            chances = np.tile(p, (k, 1)) * ((1.0 - q) / (1.0 - p[chosen]))[:, None]
            chances[np.arange(k), chosen] = q
            return np.asarray(rng.multinomial(n, chances), dtype=np.float64)

        def log_ratios(counts: Float) -> list[Float]:
            each = [
                counts * np.log(q / p) + (n - counts) * np.log((1.0 - q) / (1.0 - p)) for q in new.T
            ]
            mixed = [np.logaddexp.reduce(ratio, axis=1) - math.log(d) for ratio in each]
            return [np.zeros(count), *mixed]

        counts, weights = tilting.mixture([None, *range(depth)], count, rng, draw, log_ratios)
        return Tilted(statistics=self._from_shares(names, counts / n), log_weights=weights)


class DirichletArm(SyntheticArm):
    """Mixture of Dirichlet distributions on the simplex of d classes.

    Parameters
    ----------
    concentrations : array_like of shape (d,) or (k, d)
        Positive Dirichlet parameters, one row per component. Small ones give near-deterministic
        posteriors, large ones posteriors near the component's mean.
    weights : array_like of shape (k,), optional
        Mixture weights; equal by default.
    name : str, optional
        Label in reports.

    Raises
    ------
    InputError
        If a parameter is not positive or the weights are no distribution.

    Notes
    -----
    log IS = H(p̄) − E H(p). A Dirichlet distribution with parameters a, A = Σ a_j, has mean a/A
    and E H(p) = ψ(A+1) − Σ_j (a_j/A) ψ(a_j+1), so that the truth needs no quadrature; it is exact
    to the rounding of the digamma function, about 1e-14.
    """

    def __init__(
        self,
        concentrations: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        name: str | None = None,
    ) -> None:
        table = np.atleast_2d(np.array(concentrations, dtype=np.float64))
        if not (table.ndim == 2 and (table > 0.0).all() and np.isfinite(table).all()):
            raise InputError("`concentrations` must be positive and finite, shape (d,) or (k, d).")
        self.concentrations: Float = table
        self.weights = shares_of("weights", weights, len(table))
        self.name = name or f"Dirichlet(d={table.shape[1]}, {len(table)} components)"

    @cached_property
    def facts(self) -> Facts:
        """True quantities by name."""
        from scipy.special import digamma

        totals = self.concentrations.sum(axis=1)
        means = self.concentrations / totals[:, None]
        entropies = digamma(totals + 1.0) - (means * digamma(self.concentrations + 1.0)).sum(axis=1)
        marginal = self.weights @ means
        mean_entropy = float(self.weights @ entropies)
        d = self.concentrations.shape[1]
        return {
            "families": frozenset({"posterior"}),
            "d": d,
            "marginal": marginal,
            "conditional_entropy": mean_entropy,
            "log_score": float(entropy_sum(marginal)) - mean_entropy,
            "entropy_limit": float(np.log(d)),
        }

    def draw(self, n: int, rng: Generator) -> Float:
        """Return `n` posteriors, shape (n, d); every row sums to one."""
        component = rng.choice(len(self.weights), n, p=self.weights)
        logs = _log_gammas(self.concentrations[component], rng)
        rows = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(rows / rows.sum(axis=1, keepdims=True))

    def reduce(self, names: Names, rows: Float) -> Statistics:
        """Compute sample quantities from posteriors of shape (replications, n, d)."""
        entropies = entropy_sum(rows)
        table = {
            "mean_posterior": lambda: rows.mean(axis=1),
            "posterior_variance": lambda: rows.var(axis=1, ddof=1),
            "mean_entropy": lambda: entropies.mean(axis=1),
            "entropy_variance": lambda: entropies.var(axis=1, ddof=1),
        }
        return chosen(names, table)

    def size(self, names: Names, n: int) -> int:
        """Numbers held for each replication."""
        return 3 * n * self.d

    def tilted_rows(self, n: int, count: int, rng: Generator) -> tuple[Float, Float]:
        """Change the parameters of one class, drawn at random and integrated out, or of all."""
        old, (k, d) = self.concentrations, self.concentrations.shape
        classes = [*(slice(j, j + 1) for j in range(d)), slice(0, d)]
        tilts = np.swapaxes([self._tilted_parameters(n, which) for which in classes], 0, 1)
        # Parts: the distribution itself, then each tilt of one class, then each tilt of all.
        first, *sizes = tilting.part_sizes(1 + 2 * len(tilts), count, rng)
        shapes = [np.broadcast_to(old, (first, k, d))]
        for tilt, single, joint in zip(tilts, sizes, sizes[len(tilts) :], strict=False):
            shapes.append(tilt[np.r_[rng.integers(d, size=single), np.full(joint, d)]])
        table = np.concatenate(shapes)
        component = rng.choice(k, (count, n), p=self.weights)
        logs = _log_gammas(table[np.arange(count)[:, None], component], rng)
        logs -= np.logaddexp.reduce(logs, axis=2, keepdims=True)
        # All that the densities depend on: rows of each component, and sums of their logarithms.
        member = component[:, :, None] == np.arange(k)
        rows = member.sum(axis=1)
        sums = np.einsum("rnk,rnd->rkd", member, logs)

        def log_ratio(new: Float) -> Float:
            change = rows @ _constant_change(old, new)
            return np.asarray(change + np.einsum("rkd,kd->r", sums, new - old))

        ratios = [np.zeros(count)]
        for tilt in tilts:
            *each, whole = map(log_ratio, tilt)
            ratios += [np.logaddexp.reduce(each, axis=0) - math.log(d), whole]
        return np.exp(logs), tilting.mixture_weights(ratios)

    def _tilted_parameters(self, n: int, classes: slice) -> list[Float]:
        """Parameters under which n rows cost each level, with those of `classes` multiplied.

        Larger parameters of a class make it more likely, larger ones of all bring the posteriors
        towards their mean.
        """
        from scipy.special import digamma

        old = self.concentrations

        def scaled(x: float) -> Float:
            new = old.copy()
            new[:, classes] *= math.exp(x)
            return new

        def cost(x: float) -> float:
            new = scaled(x)
            slope = digamma(new) - digamma(new.sum(axis=1, keepdims=True))
            each = _constant_change(old, new) + ((new - old) * slope).sum(axis=1)
            return n * float(self.weights @ each)

        def reach(sign: float, level: float) -> float:
            high = _LARGEST_TILT
            x = tilting.strength(lambda x: cost(sign * x), level, low=0.0, high=high)
            return sign * (high if x is None else x)

        return [scaled(reach(sign, level)) for sign in (1.0, -1.0) for level in tilting.LEVELS]


def _constant_change(old: Float, new: Float) -> Float:
    """Log of the ratio of the two densities' constants, one for each component."""
    from scipy.special import gammaln

    ratio = gammaln(new.sum(axis=-1)) - gammaln(old.sum(axis=-1))
    return np.asarray(ratio - (gammaln(new) - gammaln(old)).sum(axis=-1))


def _log_gammas(shape: Float, rng: Generator) -> Float:
    """Logarithms of gamma variables, whose shares of their sum are a Dirichlet variable.

    G(a) = G(a+1) U^{1/a} in distribution: parameters far below 1 would underflow to 0/0.
    """
    first = np.log(rng.standard_gamma(shape + 1.0))
    return np.asarray(first + np.log1p(-rng.random(shape.shape)) / shape)
