"""Class posteriors whose Inception score is known, in closed form or by quadrature."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from genbounds.bounds import Facts, entropy_sum
from genbounds.simulate._arms import Statistics, SyntheticArm
from genbounds.validation import Float, InputError, check_open_unit


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
        return reduce_posteriors(names, rows)

    def size(self, names: Collection[str], n: int) -> int:
        """Numbers held for each replication."""
        return 3 * n * self.d


def log_gammas(shape: Float, rng: np.random.Generator) -> Float:
    """Logarithms of gamma variables, whose shares of their sum are a Dirichlet variable.

    G(a) = G(a+1) U^{1/a} in law: parameters far below 1 would underflow to 0/0.
    """
    first = np.log(rng.standard_gamma(shape + 1.0))
    return np.asarray(first + np.log1p(-rng.random(shape.shape)) / shape)


def reduce_posteriors(names: Collection[str], rows: Float) -> Statistics:
    """Compute sample quantities from posteriors of shape (replications, n, d)."""
    entropies = entropy_sum(rows)
    table = {
        "mean_posterior": lambda: rows.mean(axis=1),
        "posterior_variance": lambda: rows.var(axis=1, ddof=1),
        "mean_entropy": lambda: entropies.mean(axis=1),
        "entropy_variance": lambda: entropies.var(axis=1, ddof=1),
    }
    return {name: np.asarray(table[name]()) for name in names if name in table}


def class_mixture(
    class_law: ArrayLike,
    *,
    certainty: float,
    concentration: float,
    name: str | None = None,
) -> DirichletArm:
    """Posteriors of images whose classes follow a known law, each posterior about its own class.

    Parameters
    ----------
    class_law : array_like of shape (d,)
        How often every class is generated; positive, sum one.
    certainty : float
        Mean posterior probability of the image's own class, in (0, 1); the rest is shared equally.
        Near 1: near-deterministic; 1/d: near-uniform if `concentration` is large.
    concentration : float
        Sum of the Dirichlet parameters: large ones give posteriors near their mean, small ones
        posteriors near the corners.
    name : str, optional
        Label in reports.

    Returns
    -------
    DirichletArm
        One component a class.

    Raises
    ------
    InputError
        If the law has fewer than two classes or is no distribution, or a number is not legal.
    """
    weights = np.array(class_law, dtype=np.float64)
    if not (weights.ndim == 1 and weights.size > 1 and (weights > 0.0).all()):
        raise InputError("`class_law` must be positive, shape (d,) with d at least 2.")
    certainty = check_open_unit("certainty", certainty)
    if not 0.0 < concentration < np.inf:
        raise InputError(f"`concentration` must be positive and finite; got {concentration!r}.")
    d = weights.size
    means = np.full((d, d), (1.0 - certainty) / (d - 1))
    np.fill_diagonal(means, certainty)
    return DirichletArm(
        concentration * means,
        weights=weights,
        name=name or f"{d} classes, certainty {certainty:g}, concentration {concentration:g}",
    )


class LogisticArm(SyntheticArm):
    """Two classes with Gaussian logits: p = 1/(1 + e^{−x}), x ~ N(mean, scale²).

    Parameters
    ----------
    mean, scale : float
        Of the logit; `scale` positive, at most 1e3. Large ones are near-deterministic.
    name : str, optional
        Label in reports.

    Raises
    ------
    InputError
        If a number is not legal.

    Notes
    -----
    Class law and mean entropy are integrals over one normal variable by the trapezoidal rule on
    ±12 standard deviations, halved until nothing changes beyond 1e-13; the last change is in
    ``facts["log_score_accuracy"]``.
    """

    def __init__(self, mean: float, scale: float, *, name: str | None = None) -> None:
        if not np.isfinite(mean):
            raise InputError(f"`mean` must be finite; got {mean!r}.")
        if not 0.0 < scale <= 1e3:
            raise InputError(f"`scale` must be in (0, 1000]; got {scale!r}.")
        self.mean, self.scale = float(mean), float(scale)
        self.name = name or f"logistic({self.mean:g}, {self.scale:g})"

    @cached_property
    def facts(self) -> Facts:
        """True quantities by name; ``log_score_accuracy`` limits the error of ``log_score``."""
        steps, change = 64, np.inf
        before = self._integrals(steps)
        while change > 1e-13 and steps < 2**20:
            steps *= 2
            now = self._integrals(steps)
            change, before = float(np.abs(now - before).max()), now
        share, entropy = before
        marginal = np.array([share, 1.0 - share])
        slope = abs(float(np.log(marginal[0] / marginal[1])))  # of the entropy in the share
        return {
            "families": frozenset({"posterior"}),
            "d": 2,
            "marginal": marginal,
            "conditional_entropy": float(entropy),
            "log_score": float(entropy_sum(marginal)) - float(entropy),
            "log_score_accuracy": max(change, 1e-13) * (1.0 + slope),
            "entropy_limit": float(np.log(2.0)),
        }

    def _integrals(self, steps: int) -> Float:
        z = np.linspace(-12.0, 12.0, steps + 1)
        weight = np.exp(-0.5 * z * z)
        weight /= weight.sum()
        pairs = self._posteriors(self.mean + self.scale * z)
        return np.array([weight @ pairs[:, 0], weight @ entropy_sum(pairs)])

    def draw(self, n: int, rng: np.random.Generator) -> Float:
        """Return `n` posteriors, shape (n, 2); every row sums to one."""
        return self._posteriors(self.mean + self.scale * rng.standard_normal(n))

    @staticmethod
    def _posteriors(logit: Float) -> Float:
        from scipy.special import expit

        return np.stack([expit(logit), expit(-logit)], axis=-1)

    def statistics(
        self, names: Collection[str], n: int, replications: int, rng: np.random.Generator
    ) -> Statistics:
        """Draw sample quantities from plain samples."""
        return self.reduce(names, self.draw(replications * n, rng).reshape(-1, n, 2))

    def reduce(self, names: Collection[str], rows: Float) -> Statistics:
        """Compute sample quantities from posteriors of shape (replications, n, 2)."""
        return reduce_posteriors(names, rows)
