"""The page of `genbounds modes`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from genbounds._text import count, interval, number, percent, shown
from genbounds.report.blocks import Block, Examples, Notes, Table, Tag, Tone
from genbounds.report.page import Page, Section, answer_page
from genbounds.report.pages import warning_blocks

if TYPE_CHECKING:
    from genbounds.explain import Modes, Region
    from genbounds.features.thumbnails import Pictures

MEANING = {
    "missing": "the model makes (nearly) none of these, and surely less than half as many as the "
    "data hold",
    "rare": "the model makes too few of these",
    "over": "the model makes too many of these",
    "invented": "the data hold (nearly) none of these, and surely less than half as many as the "
    "model makes",
    "even": "no difference could be shown",
}
_TONES: dict[str, Tone] = {"missing": "bad", "invented": "bad", "rare": "open", "over": "open"}


def modes_page(
    found: Mapping[str, Modes],
    *,
    fake: Mapping[str, Pictures] | None = None,
    real: Pictures | None = None,
) -> Page:
    """Build the page of `genbounds modes`.

    Parameters
    ----------
    found : mapping of str to Modes
        By the names of the models.
    fake : mapping of str to Pictures, optional
        Names and pictures of the generated rows of every model.
    real : Pictures, optional
        Of the real rows.
    """
    lines = [f"{shown(name)}: {result}." for name, result in found.items()]
    level = next(iter(found.values())).level
    kinds: list[str] = [region.kind for result in found.values() for region in result.found]
    page = answer_page(
        "Which kinds of rows does the model miss or invent?",
        " ".join(lines[:4]) + (" …" if len(lines) > 4 else ""),
        *((k.capitalize(), kinds.count(k), MEANING[k]) for k in MEANING if k != "even"),
    )
    for name, result in found.items():
        title = f"{shown(name)} against the real data"
        page.add(Section(title, modes_blocks(result, (fake or {}).get(name), real)))
    page.add(
        Section(
            "What this means",
            [
                "One half of the rows found the regions, the other half was counted: shares are "
                "unbiased, and a wrong claim about any region of a model has probability "
                f"{percent(round(1.0 - level, 12))} at most. Regions live in the encoder's space; "
                "what it does not see is not found, and few rows show only large changes.",
                Notes(
                    items=[f"{kind}: {text}" for kind, text in MEANING.items()],
                    title="Words",
                ),
            ],
        )
    )
    return page


def modes_blocks(
    result: Modes, fake: Pictures | None = None, real: Pictures | None = None
) -> list[Block]:
    """Return what a page shows of one model.

    Parameters
    ----------
    result : Modes
    fake, real : Pictures, optional
        Names and pictures of the rows of either sample.
    """
    blocks: list[Block] = [f"{result}."]
    blocks += warning_blocks({}, result.warnings)
    blocks.append(_table(result))
    blocks += region_examples(result, fake, real)
    if result.found:
        blocks += missing_pictures(real, fake)
    blocks.append(Notes(items=result.assumptions, folded=True))
    return blocks


def missing_pictures(*asked: Pictures | None) -> list[Block]:
    """Return why there are no pictures of some of the samples that were asked for."""
    problems = [one.problem for one in asked if one is not None and one.problem]
    return [Notes(items=problems, title="Pictures that are not at hand")] if problems else []


def pictured(rows: Sequence[int], pictures: Pictures | None) -> tuple[list[tuple[str, str]], str]:
    """Return names and pictures of rows, and a remark on those that have none."""
    if pictures is None:
        return [(f"row {row}", "") for row in rows], ""
    found = pictures.of(rows)
    lost = len(rows) - len(found)
    remark = ""
    if lost and pictures.contents is not None:
        remark = f"; {lost} of {count(len(rows), 'picture')} are missing or damaged"
    return [(pictures.name(row), found.get(row, "")) for row in rows], remark


def region_examples(
    result: Modes, fake: Pictures | None = None, real: Pictures | None = None, most: int = 10
) -> list[Examples]:
    """Return a row of pictures of either sample for each region that differs.

    Parameters
    ----------
    result : Modes
    fake, real : Pictures, optional
        Names and pictures of the rows of either sample.
    most : int
        Regions that are shown.
    """
    return [
        _examples(place, region, side, pictures)
        for place, region in enumerate(result.found[:most], 1)
        for side, pictures in (("real", real), ("fake", fake))
    ]


def _table(result: Modes) -> Table:
    rows = [
        (
            place,
            Tag(region.kind, _TONES.get(region.kind, "plain")),
            percent(round(region.share_fake, 4)),
            percent(round(region.share_real, 4)),
            region.ratio,
            interval(region.low, region.high),
            region.pvalue_adjusted,
        )
        for place, region in enumerate(result.regions, 1)
    ]
    return Table(
        columns=("Region", "Kind", "Generated", "Real", "Ratio", "Interval", "p, adjusted"),
        rows=rows,
        caption=f"Shares of {count(result.counted_fake, 'generated row')} and "
        f"{count(result.counted_real, 'real row')} that were counted; simultaneous "
        f"{percent(result.level)} intervals of their ratio",
    )


def _examples(place: int, region: Region, side: str, pictures: Pictures | None) -> Examples:
    rows = region.rows[side]
    share = region.share_real if side == "real" else region.share_fake
    what = "real" if side == "real" else "generated"
    title = f"Region {place}, {region.kind}: {what} rows ({number(100.0 * share, digits=2)} %)"
    if not rows:
        return Examples(f"{title}: none", [])
    items, remark = pictured(rows, pictures)
    return Examples(title + remark, items)
