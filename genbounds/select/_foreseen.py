"""Runs of a selection as they may come, simulated from the estimates of pilots.

A run compares the scores of arms at the planned looks. Those scores are their arm's true one, the
noise of the arm's own rows, and that of the reference, which the pilots have in common with the
run. So paths of the scores are simulated about the pilots' estimates, and the comparisons of
`Certificate` are made on them, without a single row being drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from genbounds.estimators import Estimate, difference, welch_degrees_of_freedom
from genbounds.select._certificate import Look, skewed, studentised, third_cumulant
from genbounds.select._evidence import Bools, leaders, transitive, undecided
from genbounds.validation import Float

RUNS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """Simulated runs.

    Attributes
    ----------
    drawn : ndarray of int, shape (runs, K)
        Samples of each arm.
    certified, hopeless : ndarray of bool, shape (runs,)
        Whether the run ended with a certificate, or because the reference is too small.
    """

    drawn: Float
    certified: Bools
    hopeless: Bools


def foresee(
    pilots: Sequence[Estimate],
    sizes: tuple[int, ...],
    *,
    critical: float,
    top: int,
    tolerance: float,
    rng: np.random.Generator,
) -> Runs:
    """Simulate runs with policy "elimination".

    Parameters
    ----------
    pilots : sequence of Estimate
        Of the K arms, against the reference of the run.
    sizes : tuple of int
        Looks.
    critical : float
        Of each comparison.
    top : int
    tolerance : float
    rng : Generator

    Returns
    -------
    Runs
    """
    arms = len(pilots)
    own = _own_variances(pilots, sizes)
    losses, pairs = _paths(pilots, sizes, rng), _pairs(pilots)
    drawn = np.zeros((RUNS, arms))
    racing = np.ones((RUNS, arms), dtype=bool)
    direct = np.zeros((RUNS, arms, arms), dtype=bool)
    near, closed = direct.copy(), direct.copy()
    certified, hopeless = np.zeros(RUNS, dtype=bool), np.zeros(RUNS, dtype=bool)
    for level, size in enumerate(sizes):
        drawn[racing] = size
        reach, reference = _reach(pairs, arms, size, critical)
        loss = losses[:, level]
        both = racing[:, :, None] & racing[:, None, :]
        lead = loss[:, None, :] - loss[:, :, None]  # positive: the arm of the row is better
        direct |= both & (lead > reach)
        if tolerance > 0.0:
            near |= both & (lead + tolerance > reach)
        # What `Certificate` calls hopeless: the reference's own noise is larger than any gap.
        apart = np.sqrt(own[level][:, None] + own[level][None, :])
        widest = np.abs(lead) + tolerance + critical * apart
        closed = np.where(both, widest < critical * reference, closed)
        beats = transitive(direct)
        running = racing.any(axis=1)
        done = running & leaders(beats | near, loss, top=top)[1]
        open_ = undecided(beats, top=top, arms=arms)
        settled = beats | beats.swapaxes(1, 2) | closed | np.eye(arms, dtype=bool)
        rivals = open_[:, :, None] & open_[:, None, :] & ~settled
        racing = rivals.any(axis=2) & (running & ~done)[:, None]
        certified |= done
        hopeless |= running & ~done & ~racing.any(axis=1)
    return Runs(drawn=drawn, certified=certified, hopeless=hopeless)


def _parts(estimate: Estimate) -> tuple[float, float]:
    """Coefficients a, b of the own variance a/n + b/n² at n samples, for the given reference."""
    own = estimate.sample
    assert own.n is not None
    quadratic = min(own.quadratic_variance, own.variance)
    return (own.variance - quadratic) * own.n, quadratic * own.n**2


def _own_variances(pilots: Sequence[Estimate], sizes: tuple[int, ...]) -> Float:
    """Variance due to the arm's own rows, shape (looks, K)."""
    n = np.array(sizes, dtype=float)[:, None]
    linear, quadratic = np.array([_parts(pilot) for pilot in pilots]).T
    variances: Float = linear / n + quadratic / n**2
    return variances


def _paths(pilots: Sequence[Estimate], sizes: tuple[int, ...], rng: np.random.Generator) -> Float:
    """Losses at the looks, shape (runs, looks, K).

    Both parts of the noise are sums with independent steps, divided by n and by n².
    """
    n = np.array(sizes, dtype=float)[:, None]
    shape = (RUNS, len(sizes), len(pilots))
    linear, quadratic = np.array([_parts(pilot) for pilot in pilots]).T
    first = np.sqrt(np.diff(n, axis=0, prepend=0.0)) * rng.standard_normal(shape)
    second = np.sqrt(np.diff(n**2, axis=0, prepend=0.0)) * rng.standard_normal(shape)
    noise = np.sqrt(linear) * first.cumsum(axis=1) / n
    noise += np.sqrt(quadratic) * second.cumsum(axis=1) / n**2
    spread = np.sqrt([pilot.sample.variance for pilot in pilots])
    centres = np.array([pilot.loss for pilot in pilots])
    centres = centres + spread * rng.standard_normal((RUNS, 1, len(pilots)))
    losses: Float = centres + noise
    return losses


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two arms, and what the reference adds to the noise of their difference."""

    first: Look
    second: Look
    reference: float
    mixed: float
    third: float

    @classmethod
    def of(cls, first: Look, second: Look) -> _Pair:
        one, two = first.estimate, second.estimate
        variance = difference(one, two).stderr ** 2 - one.sample.variance - two.sample.variance
        reference = max(variance, 0.0)
        mixed = min(one.reference.mixed_variance + two.reference.mixed_variance, reference)
        shared = third_cumulant(first, second) - _sign(one) * (second.third - first.third)
        return cls(first, second, reference, mixed, shared)

    def at(self, size: int, critical: float) -> tuple[float, float, float]:
        """Return the leads that are proof for either arm, and the reference's standard error.

        The latter is 0 where it is not known how much of the noise both share.
        """
        one, two = self.first.estimate, self.second.estimate
        n, m = one.sample.n, two.sample.n
        assert n is not None
        assert m is not None
        own = [a / size + b / size**2 for a, b in map(_parts, (one, two))]
        reference = self.reference - self.mixed * (1.0 - max(n, m) / size)
        stderr = math.sqrt(sum(own) + reference)
        if not stderr > 0.0:
            return math.inf, math.inf, 0.0  # without any noise there is no test
        sign, near, far = _sign(one), (n / size) ** 2, (m / size) ** 2
        third = self.third + sign * (self.second.third * far - self.first.third * near)
        curvature = sign * (two.sample.curvature * far - one.sample.curvature * near)
        degrees = welch_degrees_of_freedom(
            (own[0], one.sample.degrees_of_freedom * size / n),
            (own[1], two.sample.degrees_of_freedom * size / m),
            (reference, min(one.reference.degrees_of_freedom, two.reference.degrees_of_freedom)),
        )
        level = studentised(critical, degrees)
        for_first, for_second = (
            stderr * skewed(level, turn * third / stderr**3, turn * curvature / stderr**3)
            for turn in (1.0, -1.0)
        )
        cancels = self.first.cancels and self.second.cancels
        return for_first, for_second, math.sqrt(reference) if cancels else 0.0


def _pairs(pilots: Sequence[Estimate]) -> dict[tuple[int, int], _Pair]:
    looks = [Look.of(pilot) for pilot in pilots]
    return {(a, b): _Pair.of(looks[a], looks[b]) for b in range(len(looks)) for a in range(b)}


def _sign(estimate: Estimate) -> float:
    return -1.0 if estimate.higher_is_better else 1.0


def _reach(
    pairs: dict[tuple[int, int], _Pair], arms: int, size: int, critical: float
) -> tuple[Float, Float]:
    """Return the leads that are proof at a look, and the reference's standard errors, both (K, K).

    Proof for the arm of the row; infinite on the diagonal.
    """
    reach, reference = np.full((arms, arms), math.inf), np.zeros((arms, arms))
    for (a, b), pair in pairs.items():
        reach[a, b], reach[b, a], shared = pair.at(size, critical)
        reference[a, b] = reference[b, a] = shared
    return reach, reference
