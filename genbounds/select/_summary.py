"""What a finished run says: the answer, the scores, and what happened on the way."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from genbounds._text import count, number, percent, short, shown
from genbounds.diagnostics import warn_of
from genbounds.estimators import Estimate
from genbounds.results import Score
from genbounds.select._loop import Loop
from genbounds.select._sampler import Sampler
from genbounds.select._selection import ArmStatus, History, Selection
from genbounds.validation import InputError


def summarise(loop: Loop) -> Selection:
    """Make the result of a finished run."""
    certificate, settings = loop.certificate, loop.settings
    estimates = final_estimates(loop)
    scores = {arm: _final_score(loop, arm, estimate) for arm, estimate in estimates.items()}
    losses = [estimates[k].loss if k in estimates else math.inf for k in range(certificate.arms)]
    answer = certificate.answer()
    top = best_guess(loop, losses) if answer is None else answer
    order = sorted(
        range(len(loop.samplers)),
        key=lambda arm: (arm not in top, certificate.levels[arm] == 0, losses[arm]),
    )
    names = settings.names
    return Selection(
        best=names[top[0]],
        certified=answer is not None,
        confidence=settings.confidence,
        samples={sampler.name: sampler.n for sampler in loop.samplers},
        scores={names[arm]: scores[arm] for arm in order if arm in scores},
        steps=loop.state.step,
        top=tuple(names[arm] for arm in top),
        undecided=()
        if answer is not None
        else tuple(names[arm] for arm in np.flatnonzero(certificate.undecided())),
        stopped=_stopped(loop),
        policy=settings.policy.name,
        metric=settings.metric.name,
        arms=statuses(loop.samplers),
        history=History(
            names=names,
            picks=_frozen(loop.picks),
            drawn=_frozen(loop.drawn),
            looks=tuple(loop.looks),
            joined=tuple(int(step) for step in loop.joined),
        ),
        cost=loop.cost,
        tolerance=settings.tolerance,
        notes=_notes(loop),
        warnings=tuple(
            warning.of(names[arm])
            for arm in top
            for warning in (scores[arm].warnings if arm in scores else ())
            if warning.severity == "unreliable"
        ),
    )


def final_estimates(loop: Loop) -> dict[int, Estimate]:
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


def best_guess(loop: Loop, losses: Sequence[float]) -> tuple[int, ...]:
    """Without a certificate: the `top` undefeated live arms with the best estimates.

    An arm that had its first look comes before one that had none: the score of a handful of
    samples is no evidence. If no arm is live, those that were set aside are all there is.
    """
    certificate = loop.certificate
    live = np.flatnonzero(certificate.live)
    if live.size == 0:
        live = np.arange(len(loop.samplers))
    defeats = certificate.beats[live].sum(axis=0)
    ranked = sorted(
        live,
        key=lambda arm: (
            defeats[arm] >= certificate.top,
            certificate.levels[arm] == 0,
            losses[int(arm)],
            -loop.state.n[arm],
        ),
    )
    return tuple(int(arm) for arm in ranked[: certificate.top])


def _stopped(loop: Loop) -> str:
    certificate = loop.certificate
    if loop.settings.policy.certifies and certificate.answer() is not None:
        return "certified"
    if loop.futile:
        return "reference"
    live = np.flatnonzero(certificate.live)
    if any(loop.budget.affordable(int(arm)) == 0 for arm in live):
        return "budget"
    if live.size <= certificate.top:
        return "no rival"
    if certificate.hopeless_pairs().any():
        return "reference"
    if any(sampler.spent or sampler.failure is not None for sampler in loop.samplers):
        return "exhausted"
    return "limit"


def statuses(samplers: Sequence[Sampler]) -> dict[str, ArmStatus]:
    """Whether each arm is live, and what happened with it."""
    states = {}
    for sampler in samplers:
        if sampler.failure is not None:
            states[sampler.name] = ArmStatus(state="set aside", reason=sampler.failure)
            continue
        remarks = []
        if sampler.spent:
            remarks.append(f"exhausted after {count(sampler.n, 'sample')}")
        if sampler.retried:
            remarks.append(
                f"{len(sampler.retried)} failed draws repeated and not used (first: "
                f"{sampler.retried[0]})"
            )
        states[sampler.name] = ArmStatus(state="live", reason="; ".join(remarks))
    return states


def _notes(loop: Loop) -> tuple[str, ...]:
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
        notes.append("no certificate: " + _why_not(loop))
    notes += [
        f"{shown(name)}: {doubtful} of {levels} looks were unreliable and are no evidence"
        for name, doubtful, levels in zip(
            settings.names, certificate.doubtful, certificate.levels, strict=True
        )
        if doubtful
    ]
    aside = [shown(sampler.name) for sampler in loop.samplers if sampler.failure is not None]
    if aside:
        notes.append(f"set aside: {', '.join(aside)}; the answer is about the other arms")
    return tuple(notes)


def _why_not(loop: Loop) -> str:
    certificate, total = loop.certificate, loop.budget.total
    live = int(certificate.live.sum())
    if live <= certificate.top:
        return f"{count(live, 'arm')} left, and none to compare with"
    stopped = _stopped(loop)
    match stopped:
        case "budget" if unscored := _named(loop, certificate.live & (certificate.levels == 0)):
            reason = (
                f"the budget of {short(float(total or 0))} ended before the first look "
                f"({certificate.sizes[0]} samples) of {unscored}"
            )
        case "budget":
            reason = f"the budget of {short(float(total or 0))} is spent"
        case "reference":
            reason = (
                "the reference sample is too small to separate the leading models: only a larger "
                "one can"
            )
        case "exhausted":
            reason = (
                "arms were exhausted or set aside before the question was answered, as arms are "
                "compared at equal numbers of samples"
            )
        case _:
            reason = f"the limit of {certificate.sizes[-1]} samples per arm is reached"
    hint = (
        ""
        if stopped == "reference"
        else " (`genbounds plan --confidence` says how many samples it may take)"
    )
    return f"{reason}; undecided: {_named(loop, certificate.undecided())}{hint}"


def _named(loop: Loop, arms: NDArray[np.bool_]) -> str:
    return ", ".join(shown(loop.settings.names[arm]) for arm in np.flatnonzero(arms))


def _frozen(values: list[int]) -> NDArray[np.int32]:
    array = np.array(values, dtype=np.int32)
    array.flags.writeable = False
    return array
