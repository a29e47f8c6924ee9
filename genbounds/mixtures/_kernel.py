"""The score of a mixture from kernel means, and how far it is at most from that of the best one.

With m_a the mean embeddings of K arms and, last, of the reference, and c = (w, -1), the score is
f(w) = ‖R‖², R = Σ c_a m_a. With v the best weights, g_a = ∇f(w)·(w - e_a) = 2 ⟨R, Σ w_b m_b - m_a⟩
and G = Σ v_a g_a, the residual R' of v has ⟨R, R'⟩ = f(w) - G/2, so that by Cauchy and Schwarz

    f(w) - f(v) <= f(w) - (f(w) - G/2)² / f(w) = G - G² / 4f(w)    (f(w) where G > 2 f(w)):

less than the Frank–Wolfe gap, max g_a, and than the score itself. It needs upper bounds of f(w) and
of each g_a; as v is fixed, whatever the samples are, the number of the latter costs nothing. RKE is
1 / f, with c = w: there 1 / f(v) - 1 / f(w) is at most what it is with the least f(v). Both bounds
are of means over pairs of folds, at weights fitted to the other folds (`CrossedMeans`): the gap
that they give is concave in f and G, so that it holds for the mean weights. Who draws next is
decided by rows apart, the pilot. Proof: docs/explanation/mixture_certificate.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy  # its submodules are loaded at their first use
from numpy.typing import NDArray

from genbounds.core.estimate import Estimate, small_sample, student_quantile
from genbounds.estimators import (
    CrossedMeans,
    EstimateDifference,
    KernelReference,
    MetricSpec,
    Quadratic,
    crossed_distances,
    crossed_squares,
    heavy_tails,
    median_bandwidth,
    vendi_options,
)
from genbounds.results import Diagnostic
from genbounds.select._certificate import skewed, studentised
from genbounds.validation import Float, InputError

FOLDS = 5
"""Parts of the rows between which inner products are estimated, where nobody says how many."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judged:
    """What a mixture is decided from.

    Attributes
    ----------
    weights : ndarray of shape (cuts, models)
        Fitted to some rows, judged by others.
    mixed : Estimate
        Score of the mixture.
    alone : list of Estimate
        Of every model.
    gains : list of EstimateDifference
        By how much the mixture is better than every model.
    folds : int
    warnings : tuple of Diagnostic
        Besides those of `mixed`.
    """

    weights: Float
    mixed: Estimate
    alone: list[Estimate]
    gains: list[EstimateDifference]
    folds: int
    warnings: tuple[Diagnostic, ...]


def judged_by_folds(
    spec: MetricSpec, crossed: CrossedMeans, warnings: tuple[Diagnostic, ...]
) -> Judged:
    """Judge a mixture by a score that is quadratic in the weights, between pairs of folds."""
    weights = crossed.crossed_weights(reference=not spec.higher_is_better)
    mixed, *alone = _estimates(spec, crossed, weights)
    return Judged(
        weights=weights,
        mixed=replace(mixed, title=f"{spec.title} of a mixture"),
        alone=alone,
        gains=[_gain(crossed, weights, one, spec) for one in np.eye(len(alone))[:, None]],
        folds=crossed.folds,
        warnings=warnings,
    )


def _estimates(spec: MetricSpec, crossed: CrossedMeans, weights: Float) -> list[Estimate]:
    """Estimate the score of a mixture, then of every model alone."""
    how: dict[str, Any] = {"title": spec.title, "higher_is_better": spec.higher_is_better}
    every = (weights, *np.eye(weights.shape[1])[:, None])
    return [mixture_estimate(crossed, crossed.coefficients(each), **how) for each in every]


def crossed_means(
    spec: MetricSpec,
    models: Mapping[str, Any],
    reference: Any,
    options: Mapping[str, Any],
    *,
    folds: int,
    seed: int,
) -> tuple[CrossedMeans, tuple[Diagnostic, ...]]:
    """Return the kernel means of a mixture's score between all folds of its samples.

    The reference is the last sample; for "rke" only a bandwidth is taken from it.
    """
    if spec.name != "rke":
        kernel = "polynomial" if spec.name == "kid" else spec.name
        prepared = KernelReference(reference, kernel=kernel, **options)
        return crossed_distances(models, prepared, folds=folds, seed=seed)
    shared = [*models.values()] if reference is None else [reference]
    given, _ = vendi_options("rke", shared, options)
    if given["kernel"] != "rbf":
        raise InputError("must be 'rbf' for a mixture: pass no other.", argument="kernel")
    return crossed_squares(models, given["bandwidth"], folds=folds, seed=seed)


def mixture_estimate(
    crossed: CrossedMeans, c: Float, *, title: str, higher_is_better: bool = False
) -> Estimate:
    """Estimate the score at the mean of the weights in `c`.

    Parameters
    ----------
    crossed : CrossedMeans
        With a reference, unless `higher_is_better`.
    c : ndarray of shape (pairs, samples)
        For every pair of folds, or one row for all; not chosen by those two folds.
    title : str
    higher_is_better : bool
        Whether the score is one over the square: that of RKE.
    """
    quadratic = crossed.functional(_outer(c, c))
    above, variance = quadratic.value, quadratic.variance + crossed.variance_of_choice(c)
    value = above - crossed.spread(c)
    if higher_is_better:
        above, value, variance = -math.log(above), -math.log(value), variance / above**2

    def ends(level: float) -> tuple[float, float]:
        half = student_quantile(level, crossed.degrees(quadratic)) * math.sqrt(variance)
        return min(value, above) - half, max(value, above) + half

    models = len(crossed.samples) - (not higher_is_better)
    estimate = Estimate(
        title=title,
        method="u-statistic",
        value=value,
        sample=crossed.error(quadratic, slice(None, models), variance),
        reference=crossed.error(quadratic, slice(models, None), variance),
        own_interval=ends,
        lower_limit=0.0,
        log_scale=higher_is_better,
        higher_is_better=higher_is_better,
        statistic=crossed.kernel.label,
        assumptions=crossed.assumptions,
        details=(f"{crossed.folds} folds, {len(crossed.pairs)} pairs of them",),
    )
    designs = [sample.design for sample in crossed.samples]
    few = [one for x in designs for one in small_sample(x.effective, units=x.free_units)]
    return estimate.warned(*heavy_tails(estimate), *few[:1])


def _gain(
    crossed: CrossedMeans, weights: Float, single: Float, spec: MetricSpec
) -> EstimateDifference:
    """By how much the mixture is better, at least; the error of scores 1/q is linearised."""
    weights, single = crossed.coefficients(weights), crossed.coefficients(single)
    mixed, alone = _outer(weights, weights), _outer(single, single)
    q = p = 1.0
    if spec.higher_is_better:
        q, p = crossed.functional(mixed).value, crossed.functional(alone).value
    gain = crossed.functional(alone / p**2 - mixed / q**2)
    choice = crossed.variance_of_choice(weights) / q**4
    return EstimateDifference(
        value=1.0 / q - 1.0 / p if spec.higher_is_better else gain.value,
        stderr=math.sqrt(gain.variance + choice),
        degrees_of_freedom=crossed.degrees(gain),
    )


def _outer(c: Float, x: Float) -> Float:
    """Products of the weights of two samples, for every pair of folds."""
    out: Float = c[:, :, None] * x[:, None, :]
    return out


# --- how far it is from the best one: with arms that still draw ----------------------------------

PILOT = 4
"""One row of so many decides who draws next; for the Fréchet distance it also fits the weights."""

FEWER = math.sqrt(1.0 / (PILOT - 1.0))
"""Standard errors of the rows that judge, in those of the pilot."""


def parts(n: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which of `n` rows are the pilot, and which judge: always the same ones."""
    pilot = np.arange(n) % PILOT == PILOT - 1
    return pilot, ~pilot


def parted(real: NDArray[Any], rng: np.random.Generator) -> list[NDArray[Any]]:
    """Return the rows of a reference that are the pilot, by chance, and those that judge."""
    order = rng.permutation(len(real))
    return [real[np.sort(order[part])] for part in parts(len(real))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """What the rows say of the best weights.

    Attributes
    ----------
    weights : ndarray of shape (K,)
    estimates : list of Estimate
        Of the mixture, then of every arm, from the rows that judge.
    gaps, guess : Gaps
        From those rows; and from the pilot, what as many rows as judge would give.
    warnings : tuple of Diagnostic
    """

    weights: Float
    estimates: list[Estimate]
    gaps: Gaps
    guess: Gaps
    warnings: tuple[Diagnostic, ...] = ()
    live: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """Bounds of a mixture's f(w), and of how steeply it falls towards each vertex of the simplex.

    Attributes
    ----------
    score : float
        Confidence bound of f(w): upper, or lower for RKE.
    towards : ndarray of shape (K,)
        Upper confidence bounds of g_a.
    parts : ndarray of shape (1 + K, K + 1)
        Variance of the estimates of f(w) and each g_a due to each arm and, last, to the reference.
    bound : callable
        From bounds of f(w) and of the largest g_a to that of the gap.
    warnings : tuple of Diagnostic
    """

    score: float
    towards: Float
    parts: Float
    bound: Callable[[float, float], float]
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def high(self) -> float:
        """Upper bound of the gap."""
        return self.bound(self.score, max(0.0, float(self.towards.max())))

    def decisive(self, tolerance: float) -> NDArray[np.bool_]:
        """Which of f(w) and the g_a keep the gap above the `tolerance`, or else its bound up."""
        by_score = self.high == self.score
        level = min(tolerance, self.high)
        open_ = [self.bound(self.score, max(0.0, one)) >= level for one in self.towards]
        return np.array([by_score, *(one and not by_score for one in open_)])


def kernel_gaps(weights: Float, crossed: CrossedMeans, critical: float, scale: float = 1.0) -> Gaps:
    """Bound the means of f(w) and each g_a over `weights`; without a reference the gap of RKE.

    Parameters
    ----------
    weights : ndarray of shape (pairs, K)
        Fitted, for every pair of folds, to the other folds; or one row that owes nothing to any.
    crossed : CrossedMeans
    critical : float
    scale : float
        Of standard errors, to tell what other rows would give.
    """
    models = weights.shape[1]
    distance = len(crossed.samples) > models
    c = crossed.coefficients(weights)
    steps = [np.pad(weights - one, [(0, 0), (0, int(distance))]) for one in np.eye(models)]
    terms = [_estimated(crossed, c, step, c + step) for step in steps]
    towards = [term.value + scale * _reach(crossed, term, critical, 1.0) for term in terms]
    square, side = _estimated(crossed, c, c / 2.0, c), 1.0 if distance else -1.0
    score = square.value + side * scale * _reach(crossed, square, critical, side)
    if distance and models > 1:
        score = max(score, scale**2 * _unseen(crossed, c.mean(axis=0), critical))
    warnings: list[Diagnostic] = []
    for term in (square, *terms):
        arms = crossed.error(term, slice(None, models), term.variance)
        reference = crossed.error(term, slice(models, None), term.variance)
        warnings += heavy_tails(Estimate(value=term.value, sample=arms, reference=reference))
    return Gaps(
        score=max(score, 0.0),
        towards=np.array(towards),
        parts=np.array([np.pad(one.parts, (0, int(not distance))) for one in (square, *terms)]),
        bound=gap_bound if distance else rke_gap_bound,
        warnings=(*dict.fromkeys(warnings),),
    )


def _estimated(crossed: CrossedMeans, c: Float, x: Float, towards: Float) -> Quadratic:
    """Estimate the mean of 2 Σ c_a x_b ⟨m_a, m_b⟩; `towards`: how it changes with the weights."""
    product = _outer(c, x)
    quadratic = crossed.functional(product + product.transpose(0, 2, 1))
    choice = crossed.variance_of_choice(c, towards.mean(axis=0))
    return replace(quadratic, variance=quadratic.variance + choice)


def _reach(crossed: CrossedMeans, found: Quadratic, critical: float, side: float) -> float:
    """From the estimate to its upper (1) or lower (-1) bound: what its error's other tail takes."""
    if not found.parts.sum() > 0.0:
        return 0.0  # the vertex is where the weights are
    third = sum(float((steps**3).sum()) for steps in found.steps)
    quantile = studentised(critical, crossed.degrees(found))
    return skewed(quantile, -side * third / found.stderr**3) * found.stderr


def _unseen(crossed: CrossedMeans, c: Float, critical: float) -> float:
    """Bound the part of f(w) that its estimate does not see: the square of the weights' own noise.

    Weights that are free to follow the noise take it out of the estimated R: along the direction in
    which they move it, the estimate of f(w) is a sum of squares within folds, independent of the
    mean over them, of which f(w) is the square. It matters where nothing else is left of R.
    """
    tail = float(scipy.special.ndtr(-critical))
    quantile: float = scipy.special.ndtri(tail / 2.0) ** 2  # of χ² with one degree of freedom
    return crossed.variance_along(c) * quantile


def gap_bound(score: float, steepest: float) -> float:
    """Largest gap of a `score` f(w) and a G of at most so much: G - G²/4f, at most f."""
    if steepest >= 2.0 * score:
        return score
    return steepest - steepest**2 / (4.0 * score)


def rke_gap_bound(square: float, steepest: float) -> float:
    """Largest gap of RKE: 1 / (f - G + G²/4f) - 1 / f for f(w) of at least `square`."""
    if steepest >= 2.0 * square:
        return math.inf
    return square / (square - steepest / 2.0) ** 2 - 1.0 / square


class KernelJudge:
    """Weights of a mixture, and its gap, by a kernel distance or RKE.

    Parameters
    ----------
    real : ndarray of shape (m, d) or None
        Rows of the reference; of RKE, where they only tell a bandwidth.
    metric : MetricSpec
    options : mapping
        Of the kernel.
    rng : Generator
        Decides which rows of the reference are the pilot.
    tail : float
        Probability with which each bound of a look may be too small.
    seed : int
        Of the folds.
    """

    def __init__(
        self,
        real: NDArray[Any] | None,
        metric: MetricSpec,
        options: Mapping[str, Any],
        *,
        rng: np.random.Generator,
        tail: float,
        seed: int,
    ) -> None:
        self._spec, self._seed, self._options = metric, seed, dict(options)
        self._critical = -float(scipy.special.ndtri(tail))
        self._references: Sequence[NDArray[Any] | None] = [None, None]
        if metric.name == "rke":
            self._options = vendi_options("rke", [] if real is None else [real], options)[0]
            return
        assert real is not None
        if metric.name == "kad" and self._options.get("bandwidth") is None:
            self._options["bandwidth"] = median_bandwidth(real)  # one for both parts of the rows
        self._references = parted(real, rng)

    def look(self, rows: Mapping[str, NDArray[Any]]) -> Weighed:
        """Weigh these arms by the rows that judge; guess the bound from the pilot."""
        (pilot, _), (judging, warnings) = (self._crossed(rows, part) for part in range(2))
        distance = not self._spec.higher_is_better
        weights = judging.crossed_weights(reference=distance)
        guessed = pilot.fitted(range(FOLDS), reference=distance)[None]
        return Weighed(
            weights=weights.mean(axis=0),
            estimates=_estimates(self._spec, judging, weights),
            gaps=kernel_gaps(weights, judging, self._critical),
            guess=kernel_gaps(guessed, pilot, self._critical, FEWER),
            warnings=warnings,
        )

    def _crossed(
        self, rows: Mapping[str, NDArray[Any]], part: int
    ) -> tuple[CrossedMeans, tuple[Diagnostic, ...]]:
        """Return the kernel means of the pilot (0) or of the rows that judge (1)."""
        chosen = {name: sample[parts(len(sample))[part]] for name, sample in rows.items()}
        reference = self._references[part]
        return crossed_means(
            self._spec, chosen, reference, self._options, folds=FOLDS, seed=self._seed
        )
