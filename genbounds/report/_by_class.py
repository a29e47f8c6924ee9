"""The page of `genbounds score --by`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from genbounds._text import interval, number, percent, shown
from genbounds.report._modes import missing_pictures, pictured
from genbounds.report.blocks import Block, Examples, Name, Table
from genbounds.report.figures._scores import score_plot
from genbounds.report.page import Page, Section, answer_page
from genbounds.report.pages import basis, warning_blocks
from genbounds.report.wording import mark
from genbounds.results import Diagnostic

if TYPE_CHECKING:
    from genbounds.estimators import ByClass
    from genbounds.features.thumbnails import Pictures

    Held = tuple[Pictures, Any]

PLOTTED_CLASSES = 30
"""Classes in the figure, the worst first; the table has all."""

SHOWN_CLASSES = 10
"""Classes whose pictures are shown, the worst first."""

SHOWN_ROWS = 8
"""Pictures of either sample of a class."""


def by_class_page(
    found: Mapping[str, ByClass],
    *,
    fake: Mapping[str, Held] | None = None,
    real: Held | None = None,
    warnings: Sequence[Diagnostic] = (),
) -> Page:
    """Build the page of `genbounds score --by`.

    Parameters
    ----------
    found : mapping of str to ByClass
        By the names of the models.
    fake : mapping of str to (Pictures, array_like of shape (n,)), optional
        Pictures of the generated rows of every model, and the class of each row.
    real : (Pictures, array_like of shape (m,)), optional
        The same of the real rows.
    warnings : sequence of Diagnostic
        About the whole run: its files, for one.
    """
    first = next(iter(found.values()))
    page = answer_page(
        "Which classes does the model make worst?",
        " ".join(f"{shown(name)}: {result}." for name, result in list(found.items())[:4]),
        ("Classes", len(first.classes), f"all together at {percent(first.level)}"),
    )
    for name, result in found.items():
        scores = {str(label): score for label, score in result.classes.items()}
        blocks: list[Block] = [
            *warning_blocks(scores | result.overall, warnings),
            score_plot(
                dict(list(scores.items())[:PLOTTED_CLASSES]), metric="fd", level=result.level
            ),
            class_table(result),
            *(
                f"{what.capitalize()}: {number(score.value)} {interval(score.low, score.high)}."
                for what, score in result.overall.items()
            ),
            *_pictures(result, (fake or {}).get(name), real),
        ]
        page.add(Section(shown(name), blocks))
    return page.add(Section("What this rests on", basis({"mean": first.mean, "all": first.whole})))


def class_table(result: ByClass) -> Table:
    """Return the score of every class, the worst first."""
    rows = [
        (
            Name(str(label)),
            score.value,
            interval(score.low, score.high),
            score.n,
            percent(round(result.shares[label], 4)),
            "can be the worst" if label in result.worst else "",
            mark(score),
        )
        for label, score in result.classes.items()
    ]
    heads = ("Class", "FD", "Interval", "n", "Share of real", "Worst", "Warnings")
    return Table(heads, rows, "Worst first; the intervals of all classes hold together")


def _pictures(result: ByClass, fake: Held | None, real: Held | None) -> list[Block]:
    """Return pictures of the worst classes, real and generated; where there are none, why."""
    blocks: list[Block] = []
    for label in list(result.classes)[:SHOWN_CLASSES]:
        for side, held in (("real", real), ("generated", fake)):
            if held is None:
                continue
            pictures, classes = held
            rows = np.flatnonzero(np.asarray(classes) == label)
            chosen = rows[np.linspace(0, rows.size - 1, min(SHOWN_ROWS, rows.size)).astype(int)]
            if pictures.contents is not None:
                items, remark = pictured(chosen.tolist(), pictures)
                blocks.append(Examples(f"{shown(str(label))}: {side}{remark}", items))
    return [*blocks, *missing_pictures(*(held[0] for held in (real, fake) if held is not None))]
