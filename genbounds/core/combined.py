"""The error of a weighted sum of scores that were computed from the same rows.

The sum has the influence Σ w_k IF_k, whose variance already holds what the scores share. What a
variance has less than its influence shows (the noise of the other rows, which it counts twice:
`expansion`) cancels as the quadratic parts do, whose values at the same random pairs of rows every
score keeps; without these nothing is taken off. What it has more is added as if wholly correlated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from genbounds.core.estimate import SampleError, Tails, mean_variance
from genbounds.validation import Float


@dataclass(frozen=True, slots=True, kw_only=True)
class Covariances:
    """Of several scores of the same rows, all of shape (scores, scores).

    Attributes
    ----------
    first : ndarray
        Of the influences.
    cancelled, quadratic : ndarray
        What `first` counts too much, and the share of the quadratic parts.
    units : int
        Rows, or units, behind them.
    """

    units: int
    first: Float
    cancelled: Float
    quadratic: Float

    @classmethod
    def of(cls, errors: Sequence[SampleError]) -> Covariances:
        """Compute them from scores with the influence of every row, or unit."""
        influences = np.stack([e.influence for e in errors if e.influence is not None])
        n = influences.shape[1]
        first = np.atleast_2d(np.cov(influences)) / n
        pairs = [e.pairs for e in errors if e.pairs is not None]
        if len(pairs) < len(errors) or len({p.size for p in pairs}) > 1:
            return cls(units=n, first=first, cancelled=0.0 * first, quadratic=0.0 * first)
        alike = np.stack(pairs)
        alike /= np.maximum(np.sqrt((alike**2).mean(axis=1, keepdims=True)), 1e-300)
        alike = alike @ alike.T / alike.shape[1]
        lost = [max(v - _of_units(e), 0.0) for v, e in zip(np.diagonal(first), errors, strict=True)]
        cancelled, quadratic = (
            np.sqrt(np.outer(each, each)) * alike
            for each in (lost, [e.quadratic_variance for e in errors])
        )
        return cls(units=n, first=first, cancelled=cancelled, quadratic=quadratic)

    @property
    def best(self) -> Float:
        """Of the errors, as well as it is known."""
        return self.first - self.cancelled

    @property
    def correlation(self) -> float:
        """Of the influences of the first two scores; 0 where one has none."""
        product = float(self.first[0, 0] * self.first[1, 1])
        return float(self.first[0, 1]) / math.sqrt(product) if product > 0.0 else 0.0

    def variance(self, weights: Float) -> float:
        """Of the weighted sum; at least that of its quadratic part."""
        first, lost, second = (
            float(weights @ each @ weights) for each in (self.first, self.cancelled, self.quadratic)
        )
        return max(first - lost, min(second, first))


def combined(errors: Sequence[SampleError], weights: Sequence[float] | Float) -> SampleError:
    """Return the error of Σ w_k T_k from those of scores T_k of the same rows, in the same order.

    Parameters
    ----------
    errors : sequence of SampleError
        Of one sample each time. Where one has no influences (moments of a reference, say), all are
        taken as wholly correlated.
    weights : array_like of shape (scores,)

    Returns
    -------
    SampleError
        Its curvature is that of the quadratic part along the influence of each score.
    """
    w = np.asarray(weights, dtype=np.float64)
    terms = list(zip(w.tolist(), errors, strict=True))
    n = errors[0].n
    degrees = min(e.degrees_of_freedom for e in errors)
    influences = [e.influence for e in errors if e.influence is not None]
    if len(influences) < len(errors):
        whole = sum(weight * math.sqrt(e.variance) for weight, e in terms)
        return SampleError(n=n, variance=whole**2, degrees_of_freedom=degrees)
    influence = w @ np.stack(influences)
    over = sum(abs(weight) * math.sqrt(e.unexplained) for weight, e in terms)
    variance = Covariances.of(errors).variance(w) + over**2
    seeds = [e.seeds for e in errors if e.seeds is not None]
    of_seeds = combined(seeds, weights) if len(seeds) == len(errors) else None
    slope = sum(
        weight * e.curvature / max(mean_variance(each), 1e-300)
        for (weight, e), each in zip(terms, influences, strict=True)
    )
    return SampleError(
        n=n,
        variance=variance + (0.0 if of_seeds is None else of_seeds.variance),
        degrees_of_freedom=degrees,
        influence=influence,
        units=errors[0].units,
        bias=sum(weight * e.bias for weight, e in terms),
        curvature=slope * mean_variance(influence),
        lean=sum(weight * e.lean for weight, e in terms),
        pair_variance=sum(abs(weight) * math.sqrt(e.pair_variance) for weight, e in terms) ** 2,
        skewness=float((influence**3).mean()) / influence.size**2
        if any(e.skewness for e in errors)
        else 0.0,
        tails=Tails.of(influence) if any(e.tails for e in errors) else None,
        seeds=of_seeds,
        row_ids=errors[0].row_ids,
    )


def _of_units(error: SampleError) -> float:
    """Variance without that of seeds which cross the units."""
    return error.variance - (0.0 if error.seeds is None else error.seeds.variance)
