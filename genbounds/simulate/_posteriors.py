"""Class posteriors whose Inception score is known in closed form."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from genbounds.bounds import Facts, entropy_sum
from genbounds.simulate._arms import Statistics, SyntheticArm
from genbounds.validation import Float, InputError


class DirichletArm(SyntheticArm):
    """Mixture of Dirichlet laws on the simplex of d classes.

    Parameters
    ----------
    concentrations : array_like of shape (d,) or (k, d)
        Positive Dirichlet parameters, one row a component. Small ones give near-deterministic
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
    log IS = H(p̄) − E H(p). A Dirichlet law with parameters a, A = Σ a_j, has mean a/A and
    E H(p) = ψ(A+1) − Σ_j (a_j/A) ψ(a_j+1), so that the truth needs no quadrature; it is exact to
    the rounding of the digamma function, about 1e-14.
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
        shares = np.full(len(table), 1.0 / len(table)) if weights is None else np.array(weights)
        if not (
            shares.shape == (len(table),)
            and (shares >= 0.0).all()
            and abs(shares.sum() - 1.0) < 1e-9
        ):
            raise InputError("`weights` must be one non-negative number a component, sum one.")
        self.concentrations: Float = table
        self.weights: Float = shares / shares.sum()
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

    def draw(self, n: int, rng: np.random.Generator) -> Float:
        """Return `n` posteriors, shape (n, d); every row sums to one."""
        component = rng.choice(len(self.weights), n, p=self.weights)
        logs = log_gammas(self.concentrations[component], rng)
        rows = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(rows / rows.sum(axis=1, keepdims=True))

    def statistics(
        self, names: Collection[str], n: int, replications: int, rng: np.random.Generator
    ) -> Statistics:
        """Draw sample quantities from plain samples."""
        return self.reduce(names, self.draw(replications * n, rng).reshape(replications, n, self.d))

    def reduce(self, names: Collection[str], rows: Float) -> Statistics:
        """Compute sample quantities from posteriors of shape (replications, n, d)."""
        entropies = entropy_sum(rows)
        table = {
            "mean_posterior": lambda: rows.mean(axis=1),
            "posterior_variance": lambda: rows.var(axis=1, ddof=1),
            "mean_entropy": lambda: entropies.mean(axis=1),
            "entropy_variance": lambda: entropies.var(axis=1, ddof=1),
        }
        return {name: np.asarray(table[name]()) for name in names if name in table}

    def size(self, names: Collection[str], n: int) -> int:
        """Numbers held for each replication."""
        return 3 * n * self.d


def log_gammas(shape: Float, rng: np.random.Generator) -> Float:
    """Logarithms of gamma variables, whose shares of their sum are a Dirichlet variable.

    G(a) = G(a+1) U^{1/a} in law: parameters far below 1 would underflow to 0/0.
    """
    first = np.log(rng.standard_gamma(shape + 1.0))
    return np.asarray(first + np.log1p(-rng.random(shape.shape)) / shape)
