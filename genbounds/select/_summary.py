"""What a finished run says: the answer, the scores, and what happened on the way."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from genbounds._random_effects import shrunken
from genbounds._text import count, number, percent, short, shown
from genbounds.diagnostics import warn_of
from genbounds.estimators import Estimate
from genbounds.results import Score
from genbounds.select._loop import Loop
from genbounds.select._selection import Context, ContextSelection, History, Selection
from genbounds.validation import Float, InputError


def summarise(loop: Loop) -> Selection:
    """Make the result of a finished run."""
    certificate, settings, names = loop.certificate, loop.settings, tuple(loop.settings.arms)
    estimates, answer = _final_estimates(loop), certificate.answer()
    scores = {arm: _final_score(loop, arm, estimate) for arm, estimate in estimates.items()}
    losses = np.full(certificate.arms, math.inf)
    losses[list(estimates)] = [estimate.loss for estimate in estimates.values()]
    top = _best_guess(loop, losses) if answer is None else answer
    order = sorted(
        scores, key=lambda arm: (arm not in top, certificate.levels[arm] == 0, losses[arm])
    )
    stopped = _stopped(loop)
    picks, drawn = np.array([loop.picks, loop.drawn], dtype=np.int32)
    picks.flags.writeable = drawn.flags.writeable = False
    return Selection(
        best=names[top[0]],
        certified=answer is not None,
        confidence=settings.confidence,
        samples={sampler.name: sampler.n for sampler in loop.samplers},
        scores={names[arm]: scores[arm] for arm in order},
        steps=loop.state.step,
        top=tuple(names[arm] for arm in top),
        undecided=_named(loop, certificate.undecided()) if answer is None else (),
        stopped=stopped,
        policy=settings.policy.name,
        metric=settings.metric.name,
        arms={sampler.name: sampler.status for sampler in loop.samplers},
        history=History(
            names=names,
            picks=picks,
            drawn=drawn,
            looks=tuple(loop.looks),
            joined=tuple(loop.joined),
        ),
        cost=loop.cost,
        tolerance=settings.tolerance,
        notes=_notes(loop, stopped),
        warnings=tuple(
            warning.of(names[arm])
            for arm in top
            for warning in (scores[arm].warnings if arm in scores else ())
            if warning.severity == "unreliable"
        ),
    )


def _final_estimates(loop: Loop) -> dict[int, Estimate]:
    """Latest evaluation of every arm; of all its rows if it had no look."""
    estimates: dict[int, Estimate] = {}
    for arm, sampler in enumerate(loop.samplers):
        estimate = loop.certificate.latest[arm]
        if estimate is None and sampler.n >= 2:
            try:
                estimate = loop.settings.metric.estimate(sampler.rows)
            except InputError:  # the reason is in the arm's status
                continue
        if estimate is not None and math.isfinite(estimate.value):
            estimates[arm] = estimate
    return estimates


def _final_score(loop: Loop, arm: int, estimate: Estimate) -> Score:
    """Score of an arm's last evaluation, with what is to be doubted about it."""
    warnings = [loop.doubts[arm]] if arm in loop.doubts else []
    n = loop.samplers[arm].n
    if not loop.certificate.levels[arm] and n < loop.certificate.sizes[0]:
        warnings.append(warn_of("too-few-for-a-look", samples=count(n, "sample")))
    return loop.score(estimate, *warnings)


def _best_guess(loop: Loop, losses: Float) -> tuple[int, ...]:
    """Without a certificate: the `top` undefeated live arms with the best estimates.

    An arm that had its first look comes before one that had none: the score of a handful of
    samples is no evidence. If no arm is live, those that were set aside are all there is.
    """
    certificate = loop.certificate
    live = np.flatnonzero(certificate.live)
    if live.size == 0:
        live = np.arange(certificate.arms)
    beaten = certificate.beats[live].sum(axis=0) >= certificate.top
    ranked = np.lexsort((-loop.state.n, losses, certificate.levels == 0, beaten))
    return tuple(ranked[np.isin(ranked, live)][: certificate.top].tolist())


def _stopped(loop: Loop) -> str:
    certificate = loop.certificate
    if loop.settings.policy.certifies and certificate.answer() is not None:
        return "certified"
    if loop.futile:
        return "reference"
    live = np.flatnonzero(certificate.live)
    if not loop.budget.payable[live].all():
        return "budget"
    if live.size <= certificate.top:
        return "no rival"
    if certificate.hopeless_pairs().any():
        return "reference"
    if any(sampler.spent or sampler.failure is not None for sampler in loop.samplers):
        return "exhausted"
    return "limit"


def _notes(loop: Loop, stopped: str) -> tuple[str, ...]:
    certificate, settings = loop.certificate, loop.settings
    answer = "a certified answer"
    if settings.tolerance:
        answer += f", that no other arm is better by more than {short(settings.tolerance)},"
    if settings.place is not None:
        answer = f"any of the certified answers in {settings.contexts} contexts"
    promise = (
        f"{answer} is wrong with probability at most "
        f"{percent(round(1.0 - settings.confidence, 12))} at any stopping time, if the debiased "
        f"scores at the planned looks (the first at {number(certificate.sizes[0])} samples of an "
        "arm) are normal with the stated standard errors and the arms are independent"
    )
    if settings.metric.sampled_reference:
        promise += (
            "; the reference is a sample: the target is the distance to its population, and its "
            "noise is part of every comparison"
        )
    notes = [promise]
    if certificate.answer() is None:
        notes.append("no certificate: " + _why_not(loop, stopped))
    notes += [
        f"{shown(name)}: {doubtful} of {levels} looks were unreliable and are no evidence"
        for name, doubtful, levels in zip(
            settings.arms, certificate.doubtful, certificate.levels, strict=True
        )
        if doubtful
    ]
    aside = [shown(sampler.name) for sampler in loop.samplers if sampler.failure is not None]
    if aside:
        notes.append(f"set aside: {', '.join(aside)}; the answer is about the other arms")
    return tuple(notes)


def _why_not(loop: Loop, stopped: str) -> str:
    certificate = loop.certificate
    if (live := int(certificate.live.sum())) <= certificate.top:
        return f"{count(live, 'arm')} left, and none to compare with"
    budget, last = f"the budget of {short(loop.budget.total)}", certificate.sizes[-1]
    reason = {
        "budget": f"{budget} is spent",
        "reference": "the reference sample is too small to separate the leading models: only a "
        "larger one can",
        "exhausted": "arms were exhausted or set aside before the question was answered, as arms "
        "are compared at equal numbers of samples",
        "limit": f"the limit of {last} samples per arm is reached",
    }[stopped]
    unscored = _named(loop, certificate.live & (certificate.levels == 0))
    if stopped == "budget" and unscored:
        look = f"the first look ({certificate.sizes[0]} samples)"
        reason = f"{budget} ended before {look} of {', '.join(map(shown, unscored))}"
    undecided = ", ".join(map(shown, _named(loop, certificate.undecided())))
    hint = " (`genbounds plan --confidence` says how many samples it may take)"
    return f"{reason}; undecided: {undecided}{'' if stopped == 'reference' else hint}"


def _named(loop: Loop, arms: NDArray[np.bool_]) -> tuple[str, ...]:
    return tuple(loop.samplers[arm].name for arm in np.flatnonzero(arms))


# --- several contexts -----------------------------------------------------------------------------


def together(loops: Mapping[Context, Loop]) -> ContextSelection:
    """Return the selections of all contexts as one result."""
    settings = next(iter(loops.values())).settings
    return ContextSelection(
        contexts={context: loop.result for context, loop in loops.items()},
        recommended=_recommended(loops),
        confidence=settings.confidence,
        policy=settings.policy.name,
        metric=settings.metric.name,
    )


def _recommended(loops: Mapping[Context, Loop]) -> dict[Context, str | None]:
    """Name one arm for each context: the winner; without one, the best by pooled estimates.

    None where no arm is left that could be recommended.
    """
    losses = np.full((len(loops), len(next(iter(loops.values())).samplers)), math.nan)
    variances = losses.copy()
    for place, loop in enumerate(loops.values()):
        for arm, estimate in _final_estimates(loop).items():
            if loop.certificate.live[arm]:
                losses[place, arm] = estimate.loss
                variances[place, arm] = estimate.sample.variance
    best_arms: dict[Context, str | None] = dict.fromkeys(loops)
    for (context, loop), row in zip(loops.items(), pooled_losses(losses, variances), strict=True):
        if loop.result.certified:
            best_arms[context] = loop.result.best
        elif loop.certificate.live.any():
            best = _best_guess(loop, np.where(np.isnan(row), math.inf, row))[0]
            best_arms[context] = loop.samplers[best].name
    return best_arms


def pooled_losses(losses: Float, variances: Float) -> Float:
    """Shrink each arm's differences from the mean of all arms towards their mean over contexts.

    What makes a context hard for all arms cancels in the differences, as does the noise of its
    reference, as far as it is common to all.

    Parameters
    ----------
    losses, variances : ndarray of shape (C, K)
        Estimates of every arm in every context, small is good, and the variances that their own
        samples cause; NaN where there is none.

    Returns
    -------
    ndarray of shape (C, K)
        Comparable within a context only. The losses themselves if no arm has one in every context.
    """
    everywhere = np.isfinite(losses).all(axis=0)
    k = int(everywhere.sum())
    if k == 0:
        return losses
    shrunk: Float = losses - losses[:, everywhere].mean(axis=1, keepdims=True)
    # Var(x - mean of k): its own share of the mean counts against it.
    common = variances[:, everywhere].sum(axis=1, keepdims=True) / k**2
    within = variances * (1.0 - 2.0 * everywhere / k) + common
    for arm in range(losses.shape[1]):
        there = np.isfinite(losses[:, arm])
        shrunk[there, arm] = shrunken(shrunk[there, arm], within[there, arm])
    return shrunk
