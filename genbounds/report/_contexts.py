"""The page of `genbounds select --contexts`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from genbounds._text import count, interval, percent, shown
from genbounds.report.blocks import Block, Cell, Name, Notes, Table, Tag
from genbounds.report.figures._scores import score_plot
from genbounds.report.page import Page, Section, answer_page
from genbounds.report.pages import basis, set_aside, warning_blocks
from genbounds.report.wording import metric_title, stop_reason
from genbounds.results import Diagnostic

if TYPE_CHECKING:
    from genbounds.select import ContextSelection, Selection


def contexts_page(result: ContextSelection, *, warnings: Sequence[Diagnostic] = ()) -> Page:
    """Build the page of a selection with contexts.

    Parameters
    ----------
    result : genbounds.select.ContextSelection
    warnings : sequence of Diagnostic
        About the whole run: its files, for one.
    """
    total, open_ = len(result.contexts), len(result.undecided)
    title, at = metric_title(result.metric), f"at {percent(result.confidence)}"
    answer = Tag("all certified", "good") if result.certified else Tag("undecided in part", "open")
    page = answer_page(
        "Which model for which kind of prompt?",
        f"{total - open_} of {count(total, 'context')} have a certified winner by {title}.",
        ("Answer", answer, f"all winners right together {at}"),
        ("Undecided", open_, f"of {count(total, 'context')}"),
        ("Samples", result.total_samples, f"policy {result.policy}"),
    )
    scores = result.recommended_scores
    blocks: list[Block] = [*warning_blocks(scores, warnings), winner_table(result)]
    if not result.certified:
        blocks.append(
            "Where nothing is certified, the recommended model is the best by estimates that are "
            "pooled over contexts: no guarantee."
        )
    page.add(Section("The winner in each context", blocks))
    for context, selection in result.contexts.items():
        page.add(Section(shown(str(context)), _context(selection)))
    notes = list(dict.fromkeys(n for one in result.contexts.values() for n in one.notes[:1]))
    return page.add(
        Section(
            "What this rests on",
            [*basis(scores), Notes(items=notes, title="What the answer assumes")],
        )
    )


def winner_table(result: ContextSelection) -> Table:
    """Return the winner in each context, and the score of the recommended model."""
    scores = result.recommended_scores
    rows: list[tuple[Cell, ...]] = []
    for context, selection in result.contexts.items():
        score, winner = scores.get(str(context)), result.winners[context]
        rows.append(
            (
                Name(str(context)),
                Tag("undecided", "open") if winner is None else Name(winner),
                None if score is None else score.value,
                "–" if score is None else interval(score.low, score.high),
                selection.total_samples,
                ", ".join(map(shown, selection.undecided)) or "–",
                Name(result.recommended[context] or "–"),
            )
        )
    heads = ("Context", "Winner", "Score", "Interval", "Samples", "Undecided", "Recommended")
    return Table(heads, rows)


def _context(selection: Selection) -> list[Block]:
    """Return all scores of one context, and what went wrong in it."""
    blocks: list[Block] = [f"Stopped: {stop_reason(selection.stopped)}."]
    if selection.scores:
        blocks.append(
            score_plot(selection.scores, metric=selection.metric, level=selection.confidence)
        )
    return [
        *blocks,
        *set_aside(selection.set_aside),
        Notes(items=selection.notes[1:], title="Remarks"),
    ]
