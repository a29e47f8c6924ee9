"""Mixtures of other arms."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from genbounds.bounds import Facts
from genbounds.simulate.arms._arm import SyntheticArm, check_shares
from genbounds.validation import Float, InputError


class MixtureArm(SyntheticArm):
    """Mixture of distributions with known mean and covariance, such as ten Gaussians.

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
            raise InputError("`components` must hold at least one arm.")
        if len({arm.d for arm in self.components}) > 1:
            raise InputError("`components` must all have the same number of features.")
        for arm in self.components:
            if not {"mean", "cov"} <= arm.facts.keys():
                raise InputError(f"`components`: {arm.name} does not know mean and covariance.")
        self.weights = check_weights(weights, len(self.components))
        self.name = name or f"mixture({len(self.components)} components, d={self.components[0].d})"

    @cached_property
    def facts(self) -> Facts:
        """True quantities by name."""
        d = self.components[0].d
        means = np.stack([np.broadcast_to(arm.facts["mean"], (d,)) for arm in self.components])
        mean = self.weights @ means
        apart = means - mean
        cov = (apart.T * self.weights) @ apart
        for weight, arm in zip(self.weights, self.components, strict=True):
            within = np.asarray(arm.facts["cov"])
            cov += weight * (np.diag(within) if within.ndim == 1 else within)
        values = np.maximum(np.linalg.eigvalsh(cov), 0.0)
        return {
            "families": frozenset[str](),
            "d": d,
            "mean": mean,
            "cov": cov,
            "eigenvalues": values,
            "trace": float(np.trace(cov)),
            "operator": float(values.max()),
            "max_variance": float(np.diagonal(cov).max()),
        }

    def draw(self, n: int, rng: Generator) -> Float:
        """Return `n` rows, shape (n, d)."""
        owner = rng.choice(len(self.components), n, p=self.weights)
        rows = np.empty((n, self.d))
        for k, arm in enumerate(self.components):
            chosen = owner == k
            rows[chosen] = arm.draw(int(chosen.sum()), rng)
        return rows


def check_weights(weights: ArrayLike | None, count: int) -> Float:
    """Return `count` mixture weights of sum one; equal ones for None."""
    return check_shares(
        "weights", np.full(count, 1.0 / count) if weights is None else weights, count
    )
