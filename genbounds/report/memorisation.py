"""The page of `genbounds memorisation`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from genbounds._text import count, number, percent
from genbounds.report._modes import missing_pictures, pictured
from genbounds.report.blocks import Block, Examples, Table, Tag, Tone
from genbounds.report.figures._memorisation import ratio_plot
from genbounds.report.page import Page, Section, answer_page
from genbounds.report.pages import with_assumptions
from genbounds.report.wording import sentence

if TYPE_CHECKING:
    from genbounds.explain import Memorisation
    from genbounds.features.thumbnails import Pictures

SHOWN = 100
"""Suspects on the page; results.json has all."""

PICTURED = 24
"""Suspects that are shown beside what they reproduce."""


def memorisation_page(
    result: Memorisation, *, fake: Pictures | None = None, train: Pictures | None = None
) -> Page:
    """Build the page of `genbounds memorisation`.

    Parameters
    ----------
    result : genbounds.explain.Memorisation
    fake, train : Pictures, optional
        Names and pictures of the generated and of the training rows.
    """
    rows = f"{result.unit}s"
    tone: Tone = "bad" if result.copies else "good"
    depends = result.pvalue <= 1.0 - result.level
    page = answer_page(
        "Does the model copy its training data?",
        sentence(str(result)),
        (
            "Near copies",
            Tag("found" if result.copies else "not significant", tone),
            f"p = {number(result.copies_pvalue, digits=2)}",
        ),
        (
            f"Training {rows} with near copies",
            f"at least {number(result.copies_low)}",
            f"{percent(round(result.share_low, 3))} of {number(result.train_units)}, at "
            f"{percent(result.level)}",
        ),
        (
            f"Depends on the training {rows}",
            Tag("yes", "open") if depends else Tag("not significant", "good"),
            f"p = {number(result.pvalue, digits=2)}",
        ),
    )
    blocks = with_assumptions(result, ratio_plot(result), title="What these numbers assume")
    page.add(Section("Training rows against held-out rows", blocks))
    if result.suspects:
        page.add(Section("What is reproduced", _suspects(result, fake, train)))
    return page


def _suspects(result: Memorisation, fake: Pictures | None, train: Pictures | None) -> list[Block]:
    """Tell generated rows and the training rows that they reproduce, and show them."""
    listed = result.suspects[:SHOWN]
    more = "" if len(listed) == len(result.suspects) else f", the nearest {len(listed)} of them"
    return [
        f"{count(len(result.suspects), f'training {result.unit}')} with near copies{more}: on "
        f"average at most {percent(result.fdr)} of the list are there by chance. Rows are numbered "
        "from 0, in the order of the files.",
        *_pairs(result, fake, train),
        *missing_pictures(fake, train),
        suspect_table(result, SHOWN),
    ]


def suspect_table(result: Memorisation, most: int) -> Table:
    """Return the generated rows that are nearest to what they reproduce."""
    return Table(
        ("Generated row", "Training row", "Distance", "Ratio", "Copies"),
        [
            (suspect.fake_row, suspect.train_row, suspect.distance, suspect.ratio, suspect.hits)
            for suspect in result.suspects[:most]
        ],
    )


def _pairs(result: Memorisation, fake: Pictures | None, train: Pictures | None) -> list[Block]:
    """Return generated pictures beside the training pictures that they reproduce, if there are any.

    What has no picture keeps its name.
    """
    shown = result.suspects[:PICTURED]
    sides, remarks = [], []
    for what, pictures, rows in (
        ("generated", fake, [one.fake_row for one in shown]),
        ("training", train, [one.train_row for one in shown]),
    ):
        if pictures is None:
            return []
        items, remark = pictured(rows, pictures)
        sides.append(items)
        remarks.append(remark and f"{remark} ({what})")
    if not any(remarks) and not any(uri for side in sides for _, uri in side):
        return []
    title = (
        "Generated pictures, and to the right of each the training picture that it reproduces, "
        f"in the order of the table{''.join(remarks)}"
    )
    items = [item for pair in zip(*sides, strict=True) for item in pair]
    return [Examples(title, items, paired=True)]
