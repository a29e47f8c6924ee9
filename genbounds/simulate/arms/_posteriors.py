"""Class posteriors whose Inception score is known in closed form."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from genbounds.bounds import Facts, entropy_sum
from genbounds.simulate.arms._arm import Names, Statistics, SyntheticArm, check_weights
from genbounds.simulate.arms._tilting import LEVELS, mixture_weights, part_sizes, strength
from genbounds.validation import Float, InputError

_LARGEST_TILT = 6.0  # of log a: parameters are multiplied by e^(±6) at most


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
        self.weights = check_weights(weights, len(table))
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
        return {name: np.asarray(table[name]()) for name in names if name in table}

    def size(self, names: Names, n: int) -> int:
        """Numbers held for each replication."""
        return 3 * n * self.d

    def tilted_rows(self, n: int, count: int, rng: Generator) -> tuple[Float, Float]:
        """Change the parameters of one class, drawn at random and integrated out, or of all."""
        old, (k, d) = self.concentrations, self.concentrations.shape
        single = [self._tilted_parameters(n, slice(j, j + 1)) for j in range(d)]
        joint = self._tilted_parameters(n, slice(0, d))
        depth = len(joint)
        # Parts: the distribution itself, then each tilt of one class, then each tilt of all.
        sizes = part_sizes(1 + 2 * depth, count, rng)
        shapes = [np.broadcast_to(old, (sizes[0], k, d))]
        for tilt in range(depth):
            chosen = rng.integers(d, size=sizes[1 + tilt])
            shapes.append(np.array([single[j][tilt] for j in chosen]).reshape(-1, k, d))
            shapes.append(np.broadcast_to(joint[tilt], (sizes[1 + depth + tilt], k, d)))
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
        for tilt in range(depth):
            each = np.stack([log_ratio(tilts[tilt]) for tilts in single])
            ratios.append(np.logaddexp.reduce(each, axis=0) - math.log(d))
            ratios.append(log_ratio(joint[tilt]))
        return np.exp(logs), mixture_weights(ratios)

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

        def reaching(sign: float) -> list[Float]:
            logs = [
                strength(lambda x: cost(sign * x), level, low=0.0, high=_LARGEST_TILT)
                for level in LEVELS
            ]
            return [scaled(sign * (_LARGEST_TILT if x is None else x)) for x in logs]

        return reaching(1.0) + reaching(-1.0)


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
