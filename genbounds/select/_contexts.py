"""A winner for each context: a run for each, in turns, with one budget and one error in all."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral
from typing import Any

import numpy as np

from genbounds._random_effects import shrunken
from genbounds._text import quoted
from genbounds.estimators import MetricSpec
from genbounds.origins import origin_of
from genbounds.select._arms import FunctionArm
from genbounds.select._context_selection import Context, ContextSelection
from genbounds.select._loop import Loop
from genbounds.select._selection import Selection
from genbounds.select._state import State
from genbounds.select._summary import best_guess, final_estimates, summarise
from genbounds.validation import Float, InputError


def check_contexts(contexts: Any, reference: Any, metric: MetricSpec) -> dict[Context | None, Any]:
    """Return the reference of every context; `reference` is what the run was given for all.

    Raises
    ------
    InputError
        If references are missing or superfluous, or a name is no text or whole number.
    """
    needs = metric.reference
    if isinstance(contexts, Mapping):
        if needs == "none":
            raise InputError(
                f"must be a sequence of names: metric {metric.name!r} takes no references.",
                argument="contexts",
            )
        if reference is not None:
            raise InputError(
                "must be None: each context has its own, in `contexts`.", argument="reference"
            )
        names, references = list(contexts), list(contexts.values())
    elif isinstance(contexts, (str, bytes)) or not isinstance(contexts, Iterable):
        raise InputError(
            "must map names to references, or be a sequence of names; got "
            f"{type(contexts).__name__}.",
            argument="contexts",
        )
    elif needs == "required":
        raise InputError(
            f"must map each name to its reference, which metric {metric.name!r} needs; got "
            f"{type(contexts).__name__}.",
            argument="contexts",
        )
    else:
        names = list(contexts)
        references = [reference] * len(names)
    names = [_name(name) for name in names]
    if not names:
        raise InputError("is empty: name at least one context.", argument="contexts")
    if len({str(name) for name in names}) < len(names):
        raise InputError("names a context twice.", argument="contexts")
    return dict(zip(names, references, strict=True))


def _name(name: Any) -> Context:
    if isinstance(name, str):
        return str(name)
    if not isinstance(name, bool) and isinstance(name, Integral):
        return int(name)
    raise InputError(
        f"must have texts or whole numbers as names; got {quoted(name)}.", argument="contexts"
    )


def arms_in(arms: Any, context: Context | None) -> Any:
    """Return the arms of one context, by name; all as they are without contexts.

    An arm is a mapping of contexts to arms, or takes the context as the third argument of its draw.
    """
    if context is None or not isinstance(arms, Mapping):
        return arms
    return {name: _arm_in(name, arm, context) for name, arm in arms.items()}


def _arm_in(name: Any, arm: Any, context: Context) -> Any:
    if isinstance(arm, Mapping):
        if context not in arm:
            raise InputError(
                f"{quoted(name)} has nothing for context {quoted(context)}: give every arm one in "
                "each context.",
                argument="arms",
            )
        return arm[context]
    sample = getattr(arm, "draw", arm)
    if isinstance(arm, type) or not callable(sample):
        return arm
    try:
        inspect.signature(sample).bind(1, None, context)
    except TypeError:
        raise InputError(
            f"with contexts, {quoted(name)} must take (n, rng, context), or be a mapping of "
            "contexts to arms.",
            argument="arms",
        ) from None
    except ValueError:  # a function written in C that does not say
        pass
    return FunctionArm(lambda n, rng: sample(n, rng, context), origin_of(arm))


def carried_out(
    loops: Mapping[Any, Loop], progress: Callable[[State], None] | None
) -> dict[Any, Selection]:
    """Carry out the runs of all contexts (or the one for None), a round of each one in turn.

    Raises
    ------
    InputError
        If in every one every arm was set aside before it had a score.
    """
    for loop in loops.values():
        loop.resume()
    ended: dict[Any, Selection] = {}
    try:
        for context, loop in loops.items():
            try:
                loop.start()
            except InputError as error:
                if error.argument or context is None:
                    raise
                raise InputError(f"context {quoted(context)}: {error.text}") from error
        going = {context: loop.rounds() for context, loop in loops.items()}
        while going:
            for context in list(going):
                state = next(going[context], None)
                if state is None:
                    del going[context]
                    ended[context] = summarise(loops[context])
                elif progress is not None:
                    progress(state)
    finally:
        for loop in loops.values():
            loop.save()
    failures = {context: loop.failure for context, loop in loops.items()}
    if all(failures.values()):
        context, failure = next(iter(failures.items()))
        none = "" if context is None else f"no context has a result; {quoted(context)}: "
        raise InputError(f"{none}{failure}")
    return {context: ended[context] for context in loops}


def together(loops: Mapping[Context, Loop], ended: dict[Context, Selection]) -> ContextSelection:
    """Return the selections of all contexts as one result."""
    settings = next(iter(loops.values())).settings
    return ContextSelection(
        contexts=ended,
        recommended=_recommended(loops, ended),
        confidence=settings.confidence,
        policy=settings.policy.name,
        metric=settings.metric.name,
    )


def _recommended(
    loops: Mapping[Context, Loop], ended: Mapping[Context, Selection]
) -> dict[Context, str | None]:
    """Name one arm for each context: the winner; without one, the best by pooled estimates.

    None where no arm is left that could be recommended.
    """
    losses = np.full((len(loops), len(next(iter(loops.values())).samplers)), math.nan)
    variances = losses.copy()
    for place, loop in enumerate(loops.values()):
        for arm, estimate in final_estimates(loop).items():
            if loop.certificate.live[arm]:
                losses[place, arm] = estimate.loss
                variances[place, arm] = estimate.sample.variance
    best_arms: dict[Context, str | None] = {}
    for (context, loop), row in zip(loops.items(), pooled_losses(losses, variances), strict=True):
        if not loop.certificate.live.any():
            best_arms[context] = None
            continue
        best = best_guess(loop, np.where(np.isnan(row), math.inf, row).tolist())[0]
        selection = ended[context]
        best_arms[context] = selection.best if selection.certified else loop.settings.names[best]
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
