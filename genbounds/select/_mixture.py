"""Draw until the gap of a mixture's score to that of the best mixture is certified to be small.

With m_a the mean embeddings of K arms and, last, of the reference, and c = (w, -1), the score is
f(w) = ‖R‖², R = Σ c_a m_a. With v the best weights, g_a = ∇f(w)·(w - e_a) = 2 ⟨R, Σ w_b m_b - m_a⟩
and G = Σ v_a g_a, the residual R' of v has ⟨R, R'⟩ = f(w) - G/2, so that by Cauchy and Schwarz

    f(w) - f(v) <= f(w) - (f(w) - G/2)² / f(w) = G - G² / 4f(w)    (f(w) where G > 2 f(w)):

less than the Frank–Wolfe gap, max g_a, and than the score itself. It needs upper bounds of f(w) and
of each g_a; as v is fixed, whatever the samples are, the number of the latter costs nothing. Of the
rows of every arm and of the reference a quarter decides the weights, and who draws next; the others
certify. Proof: docs/selection.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy  # its submodules are loaded at their first use
from numpy.typing import NDArray

from genbounds.arms import Arm
from genbounds.estimators import (
    CrossedMeans,
    Estimate,
    KernelReference,
    MetricSpec,
    Quadratic,
    crossed_distances,
    heavy_tails,
    median_bandwidth,
    mixture_estimate,
)
from genbounds.results import Diagnostic, Score, all_reliable
from genbounds.samples import Sample, features_of
from genbounds.select._boundary import look_sizes
from genbounds.select._budget import Budget
from genbounds.select._certificate import skewed, studentised
from genbounds.select._first_look import MINIMUM_LOOK
from genbounds.select._independence import copies, order_effect, rows_of_another
from genbounds.select._loop import ORDER_ERROR
from genbounds.select._mixture_selection import MixtureSelection
from genbounds.select._sampler import Sampler
from genbounds.select._summary import statuses
from genbounds.validation import Float, InputError, check_features, check_finite

METRICS = ("kid", "cmmd", "kad", "energy")
"""Distances that are quadratic in the weights of a mixture."""

ALLOCATIONS = ("lucb", "uniform")

FITTING = 4
"""One row of so many fits the weights."""

FOLDS = 5
"""Parts between which inner products are estimated."""

LEAST_NEED = 1e-4
"""Of the largest variance per row: an arm is never drawn from at less than 1 % of its share."""

FIRST_LOOK = 200
LIMIT = 5_000
"""Default sizes of an arm. A look costs the square of all rows together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureSettings:
    """What `run` was asked for. Its docstring describes each."""

    metric: MetricSpec
    options: Mapping[str, Any]
    policy: str
    confidence: float
    tolerance: float
    batch: int
    budget: int | None
    seed: int
    limit: int
    first_look: int
    growth: float
    cost: Float
    retries: int
    dtype: np.dtype[Any] | None

    def __post_init__(self) -> None:
        if self.metric.name not in METRICS:
            raise InputError(
                f"must be one of {', '.join(METRICS)} for target 'mixture'; got "
                f"{self.metric.name!r}.",
                argument="metric",
            )
        if not self.tolerance > 0.0:
            raise InputError(
                "must be above 0 for target 'mixture': how far from the best mixture will do.",
                argument="tolerance",
            )
        if self.first_look < MINIMUM_LOOK:
            raise InputError(
                f"must be at least {MINIMUM_LOOK}; got {self.first_look}.", argument="first_look"
            )

    @property
    def error(self) -> float:
        """Admitted probability of a wrong certificate."""
        return 1.0 - self.confidence

    def stream(self, *key: int) -> np.random.Generator:
        """Return the generator of one arm (1 + its position), or of the reference (0)."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key))


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """Bounds of a score, and of how steeply it falls towards each vertex of the simplex.

    Attributes
    ----------
    score : float
        Upper confidence bound of f(w).
    towards : ndarray of shape (K,)
        Upper confidence bounds of g_a.
    parts : ndarray of shape (1 + K, K + 1)
        Variance of the estimates of f(w) and each g_a due to each arm and, last, to the reference.
    warnings : tuple of Diagnostic
    """

    score: float
    towards: Float
    parts: Float
    warnings: tuple[Diagnostic, ...]

    @classmethod
    def at(cls, weights: Float, crossed: CrossedMeans, critical: float, scale: float = 1.0) -> Gaps:
        """Bound them at `weights` that owe nothing to the rows behind `crossed`.

        `scale`: of standard errors, to tell what other rows would give.
        """
        c = np.append(weights, -1.0)
        steps = [np.append(weights - vertex, 0.0) for vertex in np.eye(len(weights))]
        found = [
            crossed.functional((np.outer(c, x) + np.outer(x, c))[None]) for x in (c / 2.0, *steps)
        ]
        high = [one.value + scale * _reach(crossed, one, critical) for one in found]
        warnings = [warning for one in found for warning in _tails(crossed, one)]
        return cls(
            score=max(high[0], 0.0),
            towards=np.array(high[1:]),
            parts=np.array([one.parts for one in found]),
            warnings=(*dict.fromkeys(warnings),),
        )

    @property
    def high(self) -> float:
        """Upper bound of the gap."""
        return gap_bound(self.score, max(0.0, float(self.towards.max())))

    def decisive(self, tolerance: float) -> NDArray[np.bool_]:
        """Which of f(w) and the g_a keep the gap above the `tolerance`, or else its bound up."""
        by_score = float(self.towards.max()) >= 2.0 * self.score
        level = min(tolerance, self.high)
        open_ = [gap_bound(self.score, max(0.0, one)) >= level for one in self.towards]
        return np.array([by_score, *(one and not by_score for one in open_)])


def gap_bound(score: float, steepest: float) -> float:
    """Largest gap of a `score` f(w) and a G of at most so much: G - G²/4f, at most f."""
    if steepest >= 2.0 * score:
        return score
    return steepest - steepest**2 / (4.0 * score)


def _reach(crossed: CrossedMeans, found: Quadratic, critical: float) -> float:
    """From the estimate to its upper bound: the lower tail of its error is the one that matters."""
    if not found.parts.sum() > 0.0:
        return 0.0  # the vertex is where the weights are
    third = sum(float((steps**3).sum()) for steps in found.steps)
    quantile = studentised(critical, crossed.degrees(found))
    return skewed(quantile, -third / found.stderr**3) * found.stderr


def _tails(crossed: CrossedMeans, found: Quadratic) -> tuple[Diagnostic, ...]:
    models = len(crossed.samples) - 1
    sides = (slice(None, models), slice(models, None))
    arms, reference = (crossed.error(found, side, found.variance) for side in sides)
    return heavy_tails(Estimate(value=found.value, sample=arms, reference=reference))


class MixtureLoop:
    """One run in progress; `run` carries it out and returns its result.

    Parameters
    ----------
    arms : mapping of str to Arm
    reference : array_like of shape (m, d)
    settings : MixtureSettings
    """

    def __init__(self, arms: Mapping[str, Arm], reference: Any, settings: MixtureSettings) -> None:
        self.settings = settings
        real = _rows_of(reference)
        options = dict(settings.options)
        if settings.metric.name == "kad" and options.get("bandwidth") is None:
            options["bandwidth"] = median_bandwidth(real)  # one for both parts of the rows
        kernel = "polynomial" if settings.metric.name == "kid" else settings.metric.name
        order = settings.stream(0).permutation(len(real))
        self._references = [
            KernelReference(real[np.sort(order[part])], kernel=kernel, **options)
            for part in _parts(len(real))
        ]
        self._columns = real.shape[1]
        self.samplers = [
            Sampler(
                name,
                arm,
                settings.stream(1 + position),
                limit=settings.limit,
                retries=settings.retries,
                dtype=settings.dtype,
            )
            for position, (name, arm) in enumerate(arms.items())
        ]
        self.budget = Budget(settings.budget, settings.cost, settings.batch)
        self.sizes = look_sizes(settings.first_look, settings.limit, growth=settings.growth)
        # Half of the error for f(w), half for the g_a; the looks share it evenly.
        self.critical = -float(scipy.special.ndtri(settings.error / (2 * len(self.sizes))))
        self.steps = 0

    def run(self) -> MixtureSelection:
        """Draw until the gap is certified, or nothing is left to draw or to spend."""
        settings = self.settings
        self._draw(np.full(len(self.samplers), self.sizes[0]))
        look, looks = self._look(), 1
        while not (stopped := self._answer(look, looks)):
            if not self._draw_more(look, len(look.live) * self.sizes[looks]):
                stopped = self._why_ended()
                break
            look, looks = self._look(), looks + 1
        names = [self.samplers[arm].name for arm in look.live]
        return MixtureSelection(
            weights=dict(zip(names, map(float, look.weights), strict=True)),
            score=look.scores[0],
            scores=dict(zip(names, look.scores[1:], strict=True)),
            gap_high=look.gaps.high,
            certified=stopped == "certified",
            tolerance=settings.tolerance,
            confidence=settings.confidence,
            samples={sampler.name: sampler.n for sampler in self.samplers},
            looks=looks,
            steps=self.steps,
            stopped=stopped,
            policy=settings.policy,
            metric=settings.metric.name,
            cost=self.budget.spent,
            arms=statuses(self.samplers),
            warnings=look.warnings,
            assumptions=look.scores[0].assumptions,
        )

    def _answer(self, look: _Look, looks: int) -> str:
        """Why to stop after this look; empty: go on."""
        if len(look.live) < 2:
            return "no rival"
        if look.gaps.high <= self.settings.tolerance and all_reliable(look.warnings):
            return "certified"
        return "limit" if looks == len(self.sizes) else ""

    def _draw_more(self, look: _Look, total: int) -> bool:
        """Draw rows for the next look, of which there are to be `total`; False if none is left."""
        while self._free().any():
            if self._draw(self._next(look, total)):
                return True
        return False

    def _draw(self, wanted: NDArray[np.int64]) -> int:
        """Bring every arm to the size `wanted`, as far as it can; return how many rows came."""
        before = sum(sampler.n for sampler in self.samplers)
        for arm, (sampler, size) in enumerate(zip(self.samplers, wanted, strict=True)):
            while sampler.available and sampler.n < size:
                affordable = min(self.budget.affordable(arm), int(size) - sampler.n)
                if not affordable:
                    break
                self.budget.pay(arm, sampler.pull(affordable))
                self.steps += 1
        return sum(sampler.n for sampler in self.samplers) - before

    def _live(self) -> list[int]:
        """Arms with sound rows, and enough of them; the others are set aside."""
        rows, seen = [sampler.rows for sampler in self.samplers], dict[str, NDArray[np.uint64]]()
        error = ORDER_ERROR / (len(self.samplers) * len(self.sizes))
        for sampler, one in zip(self.samplers, rows, strict=True):
            if sampler.failure is not None:
                continue
            if sampler.labelled:
                sampler.set_aside("its rows have groups or strata, which a mixture does not take")
            elif sampler.n and sampler.columns != self._columns:
                sampler.set_aside(
                    f"its rows have {sampler.columns} columns, the reference has {self._columns}"
                )
            elif sampler.n < MINIMUM_LOOK:
                sampler.set_aside(f"it gave {sampler.n} samples; {MINIMUM_LOOK} are needed")
            else:
                prints = sampler.fingerprints(sampler.n)
                doubt = (
                    rows_of_another(one, prints, seen)
                    or copies(one, prints)
                    or order_effect(one, None, error=error)
                )
                seen[sampler.name] = prints
                if doubt is not None:
                    sampler.set_aside(doubt.message)
        live = [arm for arm, sampler in enumerate(self.samplers) if sampler.failure is None]
        if not live:
            reasons = "; ".join(f"{sampler.name}: {sampler.failure}" for sampler in self.samplers)
            raise InputError(f"every arm had to be set aside ({reasons}).")
        return live

    def _look(self) -> _Look:
        """Fit the weights to one part of the rows, and judge them by the other."""
        live = self._live()
        fitting, certifying = (self._crossed(live, part) for part in range(2))
        weights = np.ones(1)
        if len(live) > 1:
            weights = fitting[0].fitted(range(FOLDS), reference=True)
        crossed, warnings = certifying
        gaps = Gaps.at(weights, crossed, self.critical)
        # What the fitting rows say of bounds that as many rows as certify would give.
        scale = math.sqrt(1.0 / (FITTING - 1.0))
        guess = Gaps.at(weights, fitting[0], self.critical, scale)
        level = 1.0 - self.settings.error / (len(self.sizes) * (1 + len(live)))
        title = self.settings.metric.title
        found = [
            mixture_estimate(crossed, np.append(row, -1.0)[None], title=title)
            for row in (weights, *np.eye(len(live)))
        ]
        scores = [
            replace(estimate.score(level), level=self.settings.confidence) for estimate in found
        ]
        seen = (*warnings, *found[0].warnings, *gaps.warnings)
        return _Look(
            live=live,
            weights=weights,
            scores=scores,
            gaps=gaps,
            guess=guess,
            warnings=(*dict.fromkeys(seen),),
        )

    def _crossed(self, live: list[int], part: int) -> tuple[CrossedMeans, tuple[Diagnostic, ...]]:
        """Return the kernel means of the fitting (0) or certifying (1) rows."""
        samplers = [self.samplers[arm] for arm in live]
        rows = {one.name: one.rows[_parts(one.n)[part]] for one in samplers}
        return crossed_distances(rows, self._references[part], folds=FOLDS, seed=self.settings.seed)

    def _next(self, look: _Look, total: int) -> NDArray[np.int64]:
        """Sizes of all arms at the next look: `total` or more, by what the fitting rows say.

        A batch of arm b lessens the variance of a bound by about σ_b²/n_b² a row; it goes where
        that is the most for the cost, of those bounds that keep the gap above the tolerance.
        """
        settings = self.settings
        sizes = np.array([sampler.n for sampler in self.samplers])
        need = np.zeros(len(sizes))
        need[look.live] = 1.0
        if settings.policy != "uniform":
            parts = look.guess.parts[look.guess.decisive(settings.tolerance), :-1]
            found = parts.max(axis=0) * sizes[look.live]
            need[look.live] = np.maximum(found, LEAST_NEED * float(found.max()))
        free = self._free()
        missing = max(total - int(sizes[look.live].sum()), settings.batch)
        while missing > 0 and free.any():
            gain = np.where(free, need / (sizes.astype(np.float64) ** 2 * settings.cost), -1.0)
            arm = int(gain.argmax())
            step = min(settings.batch, settings.limit - int(sizes[arm]))
            sizes[arm] += step
            missing -= step
            free[arm] = sizes[arm] < settings.limit
        return sizes

    def _free(self) -> NDArray[np.bool_]:
        """Arms that can be drawn from, and paid."""
        return np.array(
            [
                sampler.available and self.budget.affordable(arm) > 0
                for arm, sampler in enumerate(self.samplers)
            ]
        )

    def _why_ended(self) -> str:
        live = [arm for arm, sampler in enumerate(self.samplers) if sampler.failure is None]
        if any(self.budget.affordable(arm) == 0 for arm in live):
            return "budget"
        return "exhausted" if any(self.samplers[arm].exhausted for arm in live) else "limit"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """What the rows said when they were last looked at.

    Attributes
    ----------
    live : list of int
    weights : ndarray of shape (K,)
    scores : list of Score
        Of the mixture, then of every live arm.
    gaps, guess : Gaps
        From the certifying rows, and from the fitting ones.
    warnings : tuple of Diagnostic
    """

    live: list[int]
    weights: Float
    scores: list[Score]
    gaps: Gaps
    guess: Gaps
    warnings: tuple[Diagnostic, ...]


def _parts(n: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which of `n` rows fit the weights, and which certify: always the same ones."""
    fitting = np.arange(n) % FITTING == FITTING - 1
    return fitting, ~fitting


def _rows_of(reference: Any) -> NDArray[Any]:
    """Return the rows of the reference; refuse what is known of how they were drawn."""
    if isinstance(reference, Sample) and (reference.labelled or reference.weights is not None):
        raise InputError(
            "has groups, strata or weights, which target 'mixture' does not take: pass its rows.",
            argument="reference",
        )
    rows = check_features("reference", features_of(reference), minimum=MINIMUM_LOOK)
    check_finite("reference", rows)
    return rows
