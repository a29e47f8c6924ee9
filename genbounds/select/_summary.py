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
    stopped, why_not = _ending(loop)
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
        notes=_notes(loop, why_not),
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


def _ending(loop: Loop) -> tuple[str, str]:
    """Why the run ended, in a word, and why that is without a certificate."""
    certificate, budget = loop.certificate, f"the budget of {short(loop.budget.total)}"
    live = np.flatnonzero(certificate.live)
    spent = f"{budget} is spent"
    if unscored := _named(loop, certificate.live & (certificate.levels == 0)):
        look = f"the first look ({certificate.sizes[0]} samples)"
        spent = f"{budget} ended before {look} of {', '.join(map(shown, unscored))}"
    small = (
        "the reference sample is too small to separate the leading models: only a larger one can"
    )
    short_of_rows = any(one.spent or one.failure is not None for one in loop.samplers)
    ends = (
        ("certified", loop.settings.policy.certifies and certificate.answer() is not None, ""),
        ("reference", loop.futile, small),
        ("budget", not loop.budget.payable[live].all(), spent),
        ("no rival", live.size <= certificate.top, ""),
        ("reference", certificate.hopeless_pairs().any(), small),
        (
            "exhausted",
            short_of_rows,
            "arms were exhausted or set aside before the question was answered, as arms are "
            "compared at equal numbers of samples",
        ),
        ("limit", True, f"the limit of {certificate.sizes[-1]} samples per arm is reached"),
    )
    stopped, reason = next((word, reason) for word, so, reason in ends if so)
    if live.size <= certificate.top:
        return stopped, f"{count(live.size, 'arm')} left, and none to compare with"
    undecided = ", ".join(map(shown, _named(loop, certificate.undecided())))
    hint = " (`genbounds plan --confidence` says how many samples it may take)"
    return stopped, f"{reason}; undecided: {undecided}{'' if reason == small else hint}"


def _notes(loop: Loop, why_not: str) -> tuple[str, ...]:
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
    counts = zip(settings.arms, certificate.doubtful, certificate.levels, strict=True)
    aside = [shown(sampler.name) for sampler in loop.samplers if sampler.failure is not None]
    return (
        promise,
        *([f"no certificate: {why_not}"] if certificate.answer() is None else ()),
        *(
            f"{shown(name)}: {doubtful} of {levels} looks were unreliable and are no evidence"
            for name, doubtful, levels in counts
            if doubtful
        ),
        *([f"set aside: {', '.join(aside)}; the answer is about the other arms"] if aside else ()),
    )


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
