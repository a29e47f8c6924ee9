"""Draw until the gap of a mixture's score to that of the best mixture is certified to be small."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds._tables import Line
from genbounds._text import count, interval, number, percent, short, shown
from genbounds.core.checks import refuse_moments
from genbounds.estimators import MetricSpec
from genbounds.mixtures._frechet_gap import FrechetJudge
from genbounds.mixtures._kernel import KernelJudge, Weighed
from genbounds.mixtures._mixture import check_metric, in_words, largest_first
from genbounds.results import Diagnostic, Score, all_reliable, hedged, titled
from genbounds.samples import Sample, features_of
from genbounds.select._arms import FeatureArm, rows_in_all
from genbounds.select._independence import rows_of_another
from genbounds.select._looks import MINIMUM_LOOK, look_sizes
from genbounds.select._loop import ORDER_ERROR, Budget, Drawing
from genbounds.select._sampler import agree_on_columns, all_set_aside
from genbounds.select._selection import ArmStatus, Drawn
from genbounds.validation import InputError, check_count, check_features, check_finite

ALLOCATIONS = ("lucb", "uniform")

LEAST_NEED = 1e-4
"""Of the largest variance per row: an arm is never drawn from at less than 1 % of its share."""

FIRST_LOOK = 200
FRECHET_LOOK = 8
LIMIT = 5_000
"""Default sizes of an arm: of the first look, for each feature for the Fréchet distance, and of the
last. A look at a kernel distance costs the square of all rows together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureSettings(Drawing):
    """What `run` was asked for. Its docstring describes each."""

    metric: MetricSpec
    options: Mapping[str, Any]
    policy: str

    def __post_init__(self) -> None:
        check_metric(self.metric, "target 'mixture'")
        if not self.tolerance > 0.0:
            raise InputError(
                "must be above 0 for target 'mixture': how far from the best mixture will do.",
                argument="tolerance",
            )
        if self.first_look is not None:
            check_count("first_look", self.first_look, minimum=MINIMUM_LOOK)


class MixtureLoop:
    """One run in progress; `run` carries it out and returns its result.

    Parameters
    ----------
    reference : array_like of shape (m, d), optional for "rke"
    settings : MixtureSettings
    """

    def __init__(self, reference: Any, settings: MixtureSettings) -> None:
        self.settings = settings
        for name, arm in settings.arms.items():
            if isinstance(arm, FeatureArm) and arm.labelled:
                raise InputError(
                    f"{shown(name)} has groups or strata, which target 'mixture' does not take: "
                    "if its rows are independent all the same, genbounds.Sample(x) (--iid).",
                    argument="arms",
                )
        spec, total = settings.metric, settings.budget
        real = None if reference is None else _rows_of(reference)
        self._columns = None if real is None else real.shape[1]
        least = FRECHET_LOOK * (self._columns or 0) if spec.name == "fd" else 0
        first = settings.first_look or max(FIRST_LOOK, least)
        limit = settings.limit or max(LIMIT, 4 * first)
        rows = [rows_in_all(arm) for arm in settings.arms.values()]
        self._limits = np.minimum(limit, rows).astype(np.int64)
        self.samplers = settings.samplers(self._limits.tolist())
        self.budget = Budget(total, settings.costs, settings.batch)
        last = min(limit, max(first, int(self._limits.max())))
        self.sizes = look_sizes(first, last, growth=settings.growth)
        # Half of the error for f(w), half for the g_a; the looks share it evenly.
        tail = settings.error / (2 * len(self.sizes))
        rng = settings.stream(0)
        self._judge: FrechetJudge | KernelJudge
        if spec.name == "fd" and real is not None:
            self._judge = FrechetJudge(real, rng=rng, tail=tail)
        else:
            options, seed = settings.options, settings.seed
            self._judge = KernelJudge(real, spec, options, rng=rng, tail=tail, seed=seed)
        self.steps = 0
        needed = float(settings.costs @ np.minimum(self.sizes[0], rows))
        if total is not None and total < needed:  # some arms would be left out
            raise InputError(
                f"must be at least {short(needed)}, for {self.sizes[0]} samples of each of "
                f"{count(len(rows), 'arm')}; got {short(total)}.",
                argument="budget",
            )

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
        # Their intervals hold at all looks.
        level = 1.0 - settings.error / (len(self.sizes) * (1 + len(look.live)))
        score, *scores = (
            replace(estimate.score(level), level=settings.confidence) for estimate in look.estimates
        )
        return MixtureSelection(
            weights=dict(zip(names, map(float, look.weights), strict=True)),
            score=score,
            scores=dict(zip(names, scores, strict=True)),
            # Alone it is the best mixture there is.
            gap_high=look.gaps.high if len(names) > 1 else 0.0,
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
            arms={sampler.name: sampler.status for sampler in self.samplers},
            warnings=look.warnings,
            assumptions=score.assumptions,
        )

    def _answer(self, look: Weighed, looks: int) -> str:
        """Why to stop after this look; empty: go on."""
        if len(look.live) < 2:
            return "no rival"
        if look.gaps.high <= self.settings.tolerance and all_reliable(look.warnings):
            return "certified"
        return self._why_ended() if looks == len(self.sizes) else ""

    def _draw_more(self, look: Weighed, total: int) -> bool:
        """Draw rows for the next look, of which there are to be `total`; False if none is left."""
        while self._free().any():
            if self._draw(self._next(look, total)):
                return True
        return False

    def _draw(self, wanted: NDArray[np.int64]) -> bool:
        """Bring every arm to the size `wanted`, as far as it can; return whether any row came."""
        spent = self.budget.spent
        for arm, (sampler, size) in enumerate(zip(self.samplers, wanted, strict=True)):
            while sampler.available and sampler.n < size:
                affordable = min(self.budget.affordable(arm), int(size) - sampler.n)
                if not affordable:
                    break
                self.budget.pay(arm, sampler.pull(affordable))
                self.steps += 1
        return self.budget.spent > spent

    def _live(self) -> list[int]:
        """Arms with sound rows, and enough of them; the others are set aside."""
        agree_on_columns(self.samplers, self._columns, "the reference has")
        error = ORDER_ERROR / (len(self.samplers) * len(self.sizes))
        seen: dict[str, NDArray[np.uint64]] = {}
        for sampler in self.samplers:
            n = sampler.n
            if sampler.failure is not None:
                continue
            if sampler.labelled:
                sampler.set_aside("its rows have groups or strata, which a mixture does not take")
            elif n < MINIMUM_LOOK:
                sampler.set_aside(f"it gave {n} samples; {MINIMUM_LOOK} are needed")
            else:
                prints = sampler.fingerprints(n)
                doubt = rows_of_another(prints, seen) or sampler.dependence(n, None, error=error)
                seen[sampler.name] = prints
                if doubt is not None:
                    sampler.set_aside(doubt.message)
        live = [arm for arm, sampler in enumerate(self.samplers) if sampler.failure is None]
        if not live:
            raise InputError(all_set_aside(self.samplers))
        return live

    def _look(self) -> Weighed:
        """Weigh the live arms by the rows so far."""
        live = self._live()
        look = self._judge.look({self.samplers[arm].name: self.samplers[arm].rows for arm in live})
        warnings = (*look.warnings, *look.estimates[0].warnings, *look.gaps.warnings)
        return replace(look, live=live, warnings=(*dict.fromkeys(warnings),))

    def _next(self, look: Weighed, total: int) -> NDArray[np.int64]:
        """Sizes of all arms at the next look: `total` or more, by what the pilot says.

        A batch of arm b lessens the variance of a bound by about σ_b²/n_b² a row; it goes where
        that is the most for the cost, of those bounds that keep the gap above the tolerance.
        """
        settings = self.settings
        sizes = np.array([sampler.n for sampler in self.samplers])
        need = np.zeros(len(sizes))
        need[look.live] = 1.0
        if settings.policy != "uniform":
            parts = look.guess.parts[look.guess.decisive(settings.tolerance), :-1]
            wanted = parts.max(axis=0) * sizes[look.live]
            need[look.live] = np.maximum(wanted, LEAST_NEED * float(wanted.max()))
        free = self._free()
        missing = max(total - int(sizes[look.live].sum()), settings.batch)
        while missing > 0 and free.any():
            gain = np.where(free, need / (sizes.astype(np.float64) ** 2 * settings.costs), -1.0)
            arm = int(gain.argmax())
            step = min(settings.batch, int(self._limits[arm] - sizes[arm]))
            sizes[arm] += step
            missing -= step
            free[arm] = sizes[arm] < self._limits[arm]
        return sizes

    def _free(self) -> NDArray[np.bool_]:
        """Arms that can be drawn from, and paid."""
        return self.budget.payable & [sampler.available for sampler in self.samplers]

    def _why_ended(self) -> str:
        live = [arm for arm, sampler in enumerate(self.samplers) if sampler.failure is None]
        if not self.budget.payable[live].all():
            return "budget"
        return "exhausted" if any(self.samplers[arm].spent for arm in live) else "limit"


def _rows_of(reference: Any) -> NDArray[Any]:
    """Return the rows of the reference; refuse what is known of how they were drawn."""
    refuse_moments("reference", reference, "target 'mixture' needs")
    if isinstance(reference, Sample) and (reference.labelled or reference.weights is not None):
        raise InputError(
            "has groups, strata or weights, which target 'mixture' does not take: pass its rows.",
            argument="reference",
        )
    rows = check_features("reference", features_of(reference), minimum=MINIMUM_LOOK)
    check_finite("reference", rows)
    return rows


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MixtureSelection(Drawn):
    """A mixture of arms, and how far it is at most from the best one.

    Attributes
    ----------
    weights : dict of str to float
        Share of every live arm; they add up to one.
    score : Score
        Of the mixture with these weights.
    scores : dict of str to Score
        Of every live arm alone. The intervals of mixture and arms at all looks of the run hold
        together with probability `confidence`.
    gap_high : float
        Upper confidence bound of how much better the score of the best mixture is; in units of
        the score. Infinite where RKE has none yet.
    certified : bool
        Whether the gap is at most `tolerance` with probability at least `confidence`: `gap_high`
        says so, from rows that are not in doubt.
    tolerance, confidence : float
    samples : dict of str to int
        Samples drawn from each arm.
    looks : int
        How often the bound was computed.
    steps : int
        Batches drawn.
    stopped : str
        Why the run ended: "certified", "budget", "limit", "exhausted" or "no rival", as for
        `Selection`.
    policy, metric : str
    cost : float
        Of all samples; their number if no costs were given.
    arms : dict of str to ArmStatus
        Whether each arm is live or set aside, and why.
    warnings : tuple of Diagnostic
        Of the last look.
    assumptions : tuple of str
    """

    _json = "* set_aside reliable"

    _names = "Arm"

    weights: dict[str, float]
    score: Score
    scores: dict[str, Score]
    gap_high: float
    certified: bool
    tolerance: float
    confidence: float
    samples: dict[str, int]
    looks: int
    steps: int
    stopped: str
    policy: str
    metric: str
    cost: float
    arms: dict[str, ArmStatus] = field(default_factory=dict)
    warnings: tuple[Diagnostic, ...] = ()
    assumptions: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return one line for a log."""
        score = f"{number(self.score.value)} {interval(self.score.low, self.score.high)}"
        side = "below" if self.score.higher_is_better else "above"
        gap = f"at most {number(self.gap_high)}" if math.isfinite(self.gap_high) else "maybe far"
        bound = f"{gap} {side} the best mixture ({percent(self.confidence)})"
        verdict = "certified" if self.certified else f"not certified, stopped: {self.stopped}"
        took = f"tolerance {short(self.tolerance)}, {number(self.total_samples)} samples"
        text = f"{self.metric} of {in_words(self.weights)}: {score}, {bound}; {verdict} ({took})"
        return hedged(text, self.warnings)

    def _lines(self) -> list[Line]:
        rows = [("mixture", self.score, 1.0, self.total_samples)]
        rows += [
            (name, self.scores[name], self.weights[name], self.samples[name])
            for name in largest_first(self.weights)
        ]
        return [Line.of(name, score, weight=w, samples=n) for name, score, w, n in rows]

    def _caption(self) -> str:
        title = titled(self.scores.values(), self.metric)
        return f"{title} of the mixture and of each arm, {percent(self.confidence)} intervals"
