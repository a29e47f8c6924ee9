"""Which arms are proven better than which, and when that answers the question.

Arm i *beats* arm j at look k if the difference of their debiased scores, each on the arm's own
first n_k samples, exceeds `critical` standard errors in favour of i (`critical` is a normal
quantile, replaced by Student's of the same tail for the degrees of freedom of that standard
error). The two streams are fixed before the run starts, so that this statistic does not depend on
what the policy did: a policy decides only how far each stream is read. Hence one critical value per
pair, exact over all planned looks, holds at every data-dependent stopping time.

Let T be the true best `top` arms (any choice among ties). A wrong answer claims that some arm
outside T is better than some arm inside T, directly or through a chain of beaten arms; every such
chain has one link from outside T to inside T that is a false comparison. There are
top · (K - top) such ordered pairs, and the error probability is divided among them (union bound).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from genbounds.estimators import Estimate, difference
from genbounds.select._looks import critical_value
from genbounds.validation import Float

Bools = NDArray[np.bool_]

LARGEST_BEND = 0.6
"""Standard errors that curvature adds to a critical value at most: beyond, its expansion is not
small (the estimators' intervals have the same limit)."""


class Certificate:
    """Evidence of one run. Arms are known by their position.

    Parameters
    ----------
    arms : int
        Number of arms, K.
    sizes : tuple of int
        Planned looks (`look_sizes`).
    error : float
        Admitted probability of a wrong answer.
    top : int
        How many arms to name.
    tolerance : float
        An arm counts as best if no other is better by more than this.

    Attributes
    ----------
    critical : float
        Critical value of each comparison.
    levels : ndarray of int, shape (K,)
        Looks completed by each arm.
    live : ndarray of bool, shape (K,)
        False for arms set aside.
    loss, stderr : ndarray of shape (K,)
        Latest debiased value, turned so that small is good, and its standard error; NaN before
        the first look.
    doubtful : ndarray of int, shape (K,)
        Looks whose score is unreliable: they are no evidence.
    beats : ndarray of bool, shape (K, K)
        Row beats column, directly or through a chain of live arms.
    near : ndarray of bool, shape (K, K)
        Row is proven not to be worse than column by more than the tolerance, where there is one.
    """

    beats: Bools

    def __init__(
        self, arms: int, sizes: tuple[int, ...], *, error: float, top: int, tolerance: float
    ) -> None:
        self.arms, self.sizes = arms, sizes
        self.top, self.tolerance = top, tolerance
        self.critical = critical_value(error / max(1, top * (arms - top)), sizes, order=2)
        self.levels, self.doubtful = np.zeros((2, arms), dtype=np.int64)
        self.live = np.ones(arms, dtype=bool)
        self.loss, self.stderr = np.full((2, arms), math.nan)
        self.latest: list[Estimate | None] = [None] * arms
        self.near, self._direct, self._hopeless = np.zeros((3, arms, arms), dtype=bool)
        self._looks: list[dict[int, Evidence]] = [{} for _ in range(arms)]
        self._conclude()

    def next_size(self, arm: int) -> int | None:
        """Return the sample size at which `arm` is scored next; None after the last look."""
        level = int(self.levels[arm])
        return self.sizes[level] if level < len(self.sizes) else None

    def add(self, arm: int, estimate: Estimate) -> None:
        """Enter the `estimate` of the next look of `arm`; compare with all at the same look."""
        level = int(self.levels[arm])
        look = self._looks[arm][level] = Evidence.of(estimate)
        self.latest[arm] = look.estimate
        self.doubtful[arm] += not look.sound
        self.levels[arm] = level + 1
        self.loss[arm], self.stderr[arm] = estimate.loss, estimate.stderr
        for other in range(self.arms):
            if other != arm and self.levels[other] > level:
                self._compare(arm, other, level)
        self._conclude()
        # Looks that every arm still in the race has passed are needed no more.
        racing = self.undecided()
        lowest = int(self.levels[racing].min()) if racing.any() else len(self.sizes)
        for looks in self._looks:
            for old in [known for known in looks if known < lowest]:
                del looks[old]

    def set_aside(self, arm: int) -> None:
        """Take `arm` out: the answer is about the others."""
        self.live[arm] = False
        self._looks[arm].clear()
        self._conclude()

    def answer(self) -> tuple[int, ...] | None:
        """Return the certified `top` arms, best estimate first; None while there is no answer."""
        return self._answer

    def _conclude(self) -> None:
        """Take stock of all comparisons. Policies ask at every step, these change at looks only."""
        self.beats = transitive(self._direct & self.live[:, None] & self.live[None, :])
        self._open: dict[bytes, Bools] = {}
        self._answer: tuple[int, ...] | None = None
        live = np.flatnonzero(self.live)
        if live.size > self.top:  # an answer that leaves no arm out says nothing
            proven = (self.beats | self.near)[np.ix_(live, live)]
            chosen, holds = leaders(proven, self.loss[live], top=self.top)
            best = live[chosen]
            if holds:
                self._answer = tuple(best[np.argsort(self.loss[best], kind="stable")].tolist())

    def undecided(self) -> Bools:
        """Arms neither proven to belong to the answer nor proven to be outside it."""
        return self.live & undecided(self.beats, top=self.top, arms=int(self.live.sum()))

    def open_pairs(self, available: Bools) -> Bools:
        """Pairs that more samples could still decide, as a symmetric (K, K) matrix.

        Parameters
        ----------
        available : ndarray of bool, shape (K,)
            Arms that can be pulled.

        Returns
        -------
        ndarray of bool, shape (K, K)
        """
        key = available.tobytes()
        if key not in self._open:
            candidate = self.undecided()
            pairs = candidate[:, None] & candidate[None, :]
            pairs &= ~(self.beats | self.beats.T | self._hopeless)
            # The next common look must be within reach of whichever arm is behind.
            reachable = available & (self.levels < len(self.sizes))
            behind = self.levels[:, None] <= self.levels[None, :]
            stuck = behind & ~reachable[:, None]
            pairs &= ~(stuck | stuck.T)
            np.fill_diagonal(pairs, False)
            self._open[key] = pairs
        return self._open[key]

    def hopeless_pairs(self) -> Bools:
        """Pairs that the noise of the reference sample alone keeps undecidable."""
        undecided = self.undecided()
        pairs: Bools = self._hopeless & undecided[:, None] & undecided[None, :] & ~self.beats
        return pairs

    def _compare(self, a: int, b: int, level: int) -> None:
        first, second = self._looks[a].get(level), self._looks[b].get(level)
        if first is None or second is None or not (first.sound and second.sound):
            return  # an interval that is not trusted is no evidence
        sign = 1.0 if first.estimate.higher_is_better else -1.0
        noise = difference(first.estimate, second.estimate)
        if noise.own_interval is not None:
            from scipy.special import ndtr

            joint = 1.0 - 2.0 * float(ndtr(-self.critical))
            least, most = sorted(sign * end for end in noise.interval(joint))
        elif not noise.stderr > 0.0:
            return  # without any estimated noise there is no test
        else:
            gap = second.estimate.loss - first.estimate.loss  # positive: a is better
            critical = studentised(self.critical, noise.degrees_of_freedom)
            third = -sign * (second.third - first.third + shared_third(first, second))
            bend = sign * noise.curvature
            for_a, for_b = leads_that_prove(critical, noise.stderr, third=third, curvature=bend)
            least, most = gap - for_a, gap + for_b
            # Otherwise it is not known how much of the reference's noise both share at this look.
            if first.cancels and second.cancels:
                own = first.estimate.sample.variance + second.estimate.sample.variance
                reference = math.sqrt(max(noise.stderr**2 - own, 0.0))
                # Even the widest gap that these samples leave plausible would not clear the
                # reference's own noise, which no further sample lessens.
                widest = abs(gap) + self.tolerance + critical * math.sqrt(own)
                self._hopeless[a, b] = self._hopeless[b, a] = widest < critical * reference
        for winner, loser, lead in ((a, b, least), (b, a, -most)):
            self._direct[winner, loser] |= lead > 0.0
            self.near[winner, loser] |= self.tolerance > max(0.0, -lead)


CONDITIONS = frozenset({"reference-size-unknown"})
"""Doubts about the reference that all arms share. They do not withhold the certificate: it is about
the reference as it was given, and its scores say what that rests on."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """An estimate without its arm's influence, of which the third cumulant is kept.

    Attributes
    ----------
    estimate : Estimate
    third : float
        Third cumulant of the debiased value due to the arm's own sample; 0 if unknown.
    """

    estimate: Estimate
    third: float

    @property
    def sound(self) -> bool:
        """Whether it may certify anything: no doubt of its own."""
        return all(
            warning.severity != "unreliable" or warning.code in CONDITIONS
            for warning in self.estimate.warnings
        )

    @property
    def cancels(self) -> bool:
        """Whether the noise of the reference is known row by row, if there is any."""
        reference = self.estimate.reference
        return reference.variance == 0.0 or reference.influence is not None

    @classmethod
    def of(cls, estimate: Estimate) -> Evidence:
        influence = estimate.sample.influence
        third = 0.0 if influence is None else _third(influence)
        sample = replace(estimate.sample, influence=None)
        return cls(replace(estimate, sample=sample), third)


def _third(influence: Float) -> float:
    """Third cumulant of the mean of `influence`."""
    centred = influence - influence.mean()
    return float(centred @ (centred * centred)) / influence.size**3


def shared_third(a: Evidence, b: Evidence) -> float:
    """Third cumulant of value(b) - value(a) due to the reference, as far as it is known."""
    one, two = a.estimate.reference.influence, b.estimate.reference.influence
    return 0.0 if one is None or two is None else _third(two - one)


def skewed(critical: float, skewness: float, curvature: float = 0.0) -> float:
    """Critical value of a studentised statistic whose upper tail may be the heavier one.

    Cornish–Fisher, as in `studentised_interval`: negative `skewness` (third cumulant of the linear
    part, in standard errors) makes the upper tail heavier by (2c² + 1)/6 of it, negative
    `curvature` (value and estimated variance move against each other) by 1 + c² of it (P. Hall,
    "The bootstrap and Edgeworth expansion", 1992, sections 2.4 and 2.6). Where they would allow a
    smaller value, they are not used. Curvature adds at most `LARGEST_BEND`.
    """
    bend = min(max(0.0, -curvature) * (1.0 + critical**2), LARGEST_BEND)
    return critical + max(0.0, -skewness) * (2.0 * critical**2 + 1.0) / 6.0 + bend


def leads_that_prove(
    critical: float, stderr: float, *, third: float, curvature: float
) -> tuple[float, float]:
    """Return how far the first of two arms must lead, and the second, to be proven better.

    Parameters
    ----------
    critical : float
        `studentised`.
    stderr, third, curvature : float
        Of the first arm's lead: its standard error, third cumulant and curvature.
    """
    one, other = (
        stderr * skewed(critical, turn * third / stderr**3, turn * curvature / stderr**3)
        for turn in (1.0, -1.0)
    )
    return one, other


def studentised(critical: float, degrees_of_freedom: float) -> float:
    """Student quantile with the tail probability of the normal quantile `critical`."""
    from scipy.special import ndtr, stdtrit

    if math.isinf(degrees_of_freedom):
        return critical
    return float(-stdtrit(degrees_of_freedom, ndtr(-critical)))


# --- what follows from pairs of arms, for one run or for many at once: matrices (..., K, K) -------


def transitive(direct: Bools) -> Bools:
    """Return who beats whom directly or through a chain of beaten arms (Warshall)."""
    beats = direct.copy()
    links = direct.any(axis=-1) & direct.any(axis=-2)  # others are in the middle of no chain
    for arm in np.flatnonzero(links.reshape(-1, direct.shape[-1]).any(axis=0)):
        beats |= beats[..., :, arm, None] & beats[..., arm, None, :]
    diagonal = np.arange(direct.shape[-1])
    beats[..., diagonal, diagonal] = False
    return beats


def undecided(beats: Bools, *, top: int, arms: int) -> Bools:
    """Return which of `arms` live arms are neither proven among the best `top` nor proven out."""
    open_: Bools = (beats.sum(axis=-2) < top) & (beats.sum(axis=-1) < arms - top)
    return open_


def leaders(proven: Bools, loss: Float, *, top: int) -> tuple[Bools, Bools]:
    """Return the `top` arms with the most wins, and whether they win against all others.

    Among equals those with the smallest `loss`, of shape (..., K); NaN is the largest.
    """
    order = np.lexsort((np.where(np.isnan(loss), np.inf, loss), -proven.sum(axis=-1)), axis=-1)
    chosen = np.zeros(loss.shape, dtype=bool)
    np.put_along_axis(chosen, order[..., :top], True, axis=-1)
    across = chosen[..., :, None] & ~chosen[..., None, :]
    return chosen, np.asarray((proven | ~across).all(axis=(-2, -1)))
