"""`genbounds select --contexts NAME`: rows by their context, and what is printed then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import genbounds as gb
from genbounds._errors import InputError
from genbounds._text import display, number, percent, shown
from genbounds.cli._inputs import Input
from genbounds.cli._terminal import print_table, say


def common_contexts(inputs: Sequence[Input]) -> list[Any]:
    """Return the contexts that the rows of every file belong to, in order."""
    first, *others = inputs
    known = _names(first)
    for other in others:
        here = _names(other)
        for has, lacks, names in ((first, other, known - here), (other, first, here - known)):
            if names:
                raise InputError(
                    f"{display(lacks.path)} has no rows of context {display(min(names), limit=40)},"
                    f" which {display(has.path)} has: add some, or leave that context out of all "
                    "files.",
                    argument="--contexts",
                )
    return sorted(known)


def _names(file: Input) -> set[Any]:
    return set(np.unique(np.asarray(file.contexts)).tolist())


def rows_by_context(file: Input, contexts: Sequence[Any]) -> dict[Any, Any]:
    """Return the rows of a file in each context, with what is known of how they were drawn."""
    return {context: _part(file.sample, file.contexts == context) for context in contexts}


def _part(sample: Any, rows: Any) -> Any:
    part = sample[rows]
    if (
        not isinstance(part, gb.Sample)
        or part.strata is None
        or (part.strata != part.strata[0]).any()
    ):
        return part
    # Of one class alone: nothing is stratified within it.
    if part.groups is None and part.weights is None:
        return part.features
    return gb.Sample(part.features, groups=part.groups, weights=part.weights)


def show_contexts(result: gb.select.ContextSelection) -> None:
    """Print which arm is best in each context."""
    from genbounds.report._selections import winner_table
    from genbounds.report.wording import stop_reason

    total = len(result.contexts)
    if result.certified:
        say(f"A best model in each of {total} contexts, together at {percent(result.confidence)}.")
    else:
        decided = total - len(result.undecided)
        at = percent(result.confidence)
        say(f"Not certified in all contexts: {decided} of {total} decided, together at {at}.")
    say("")
    print_table(winner_table(result))
    lines = [f"{number(result.total_samples)} samples; scores are those of the recommended models."]
    if not result.certified:
        lines.append("Where nothing is certified, the recommendation is an estimate.")
    lines += [
        f"* {shown(str(context))}: {stop_reason(result.contexts[context].stopped)}"
        for context in result.undecided
    ]
    lines += [
        f"* {shown(str(context))}: {shown(arm)} set aside: {display(why)}"
        for context, arms in result.set_aside.items()
        for arm, why in arms.items()
    ]
    say("", *lines)
