"""Recorded features as an arm: drawn without replacement, their truth that of the record."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.bounds import Facts, entropy_sum
from genbounds.simulate._arms import Statistics, SyntheticArm, reduce_rows
from genbounds.simulate._mixtures import moment_facts
from genbounds.simulate._posteriors import reduce_posteriors
from genbounds.validation import Float, InputError, check_features

# Rows of posteriors sum to one within this.
_SUM = 1e-6


class ReplayArm(SyntheticArm):
    """Rows that a real model once gave, replayed.

    Every call of `draw` is one sample without replacement, independent of the others. For a
    selection, whose successive draws must not repeat a row either, there is `select.FeatureArm`.

    Parameters
    ----------
    rows : array_like of shape (N, d)
        Features or posteriors. Not copied.
    posteriors : bool
        Whether the rows are class posteriors; their Inception score is then among the facts.
    name : str, optional
        Label in reports.

    Raises
    ------
    InputError
        If the rows are not finite numbers of shape (N, d), N at least 2, or are no posteriors.

    Notes
    -----
    The truth is that of the record as a finite population: covariance with divisor N. The mean of
    n rows without replacement has covariance Σ/n · (N−n)/(N−1): intervals for independent rows
    cover too often as n nears N.
    """

    def __init__(self, rows: Any, *, posteriors: bool = False, name: str | None = None) -> None:
        self.rows: NDArray[Any] = check_features("rows", rows)
        if not np.isfinite(self.rows).all():
            raise InputError("`rows` must be finite.")
        self.posteriors = bool(posteriors)
        if self.posteriors and (
            self.rows.min() < 0.0 or np.abs(self.rows.sum(axis=1) - 1.0).max() > _SUM
        ):
            raise InputError("`rows` must be non-negative and sum to one to be posteriors.")
        self.name = name or f"replay of {len(self.rows)} rows (d={self.rows.shape[1]})"

    @cached_property
    def facts(self) -> Facts:
        """True quantities of the record by name."""
        rows = np.asarray(self.rows, dtype=np.float64)
        mean = rows.mean(axis=0)
        apart = rows - mean
        facts = dict(moment_facts(mean, apart.T @ apart / len(rows)))
        facts["size"] = len(rows)
        if self.posteriors:
            entropy = float(entropy_sum(rows).mean())
            facts |= {
                "families": frozenset({"posterior"}),
                "marginal": mean,
                "conditional_entropy": entropy,
                "log_score": float(entropy_sum(mean)) - entropy,
                "entropy_limit": float(np.log(mean.size)),
            }
        return facts

    @property
    def d(self) -> int:
        """Number of features."""
        return int(self.rows.shape[1])

    def draw(self, n: int, rng: np.random.Generator) -> Float:
        """Return `n` different rows, shape (n, d).

        Raises
        ------
        InputError
            If the record has fewer.
        """
        if n > len(self.rows):
            raise InputError(f"`n` must be at most the {len(self.rows)} rows recorded; got {n}.")
        chosen = rng.choice(len(self.rows), n, replace=False)
        return np.asarray(self.rows[chosen], dtype=np.float64)

    def statistics(
        self, names: Collection[str], n: int, replications: int, rng: np.random.Generator
    ) -> Statistics:
        """Draw sample quantities, every sample without replacement."""
        return self.reduce(names, np.stack([self.draw(n, rng) for _ in range(replications)]))

    def reduce(self, names: Collection[str], rows: Float) -> Statistics:
        """Compute sample quantities from raw samples of shape (replications, n, d)."""
        if self.posteriors:
            return reduce_posteriors(names, rows)
        return reduce_rows(names, rows, self.facts)
