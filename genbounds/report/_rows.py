"""Pages that show rows: `genbounds modes`, `memorisation` and `score --by`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from genbounds._text import count, interval, number, percent, shown
from genbounds.report import _scores as scored
from genbounds.report.blocks import Block, Cell, Examples, Figure, Notes, Table, Tag, Tone
from genbounds.report.page import Page, Section, answer_page, drawn
from genbounds.results import Diagnostic

if TYPE_CHECKING:
    from genbounds.estimators import ByClass
    from genbounds.explain import Memorisation, Modes, Region
    from genbounds.features.thumbnails import Pictures

    Held = tuple[Pictures, Any]


def _missing(*asked: Pictures | None) -> list[Block]:
    """Return why there are no pictures of some of the samples that were asked for."""
    problems = [one.problem for one in asked if one is not None and one.problem]
    return [Notes(items=problems, title="Pictures that are not at hand")] if problems else []


def _pictured(rows: Sequence[int], pictures: Pictures | None) -> tuple[list[tuple[str, str]], str]:
    """Return names and pictures of rows, and a remark on those that have none."""
    if pictures is None:
        return [(f"row {row}", "") for row in rows], ""
    found = pictures.of(rows)
    lost = len(rows) - len(found)
    remark = ""
    if lost and pictures.contents is not None:
        remark = f"; {lost} of {count(len(rows), 'picture')} are missing or damaged"
    return [(pictures.name(row), found.get(row, "")) for row in rows], remark


# --- modes ----------------------------------------------------------------------------------------

MEANING = {
    "missing": "the model makes (nearly) none of these, and surely less than half as many as the "
    "data hold",
    "rare": "the model makes too few of these",
    "over": "the model makes too many of these",
    "invented": "the data hold (nearly) none of these, and surely less than half as many as the "
    "model makes",
    "even": "no difference could be shown",
}
TONES: dict[str, Tone] = {"missing": "bad", "invented": "bad", "rare": "open", "over": "open"}


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
    kinds: list[str] = [region.kind for result in found.values() for region in result.found]
    page = answer_page(
        "Which kinds of rows does the model miss or invent?",
        " ".join(lines[:4]) + (" …" if len(lines) > 4 else ""),
        *((k.capitalize(), kinds.count(k), MEANING[k]) for k in MEANING if k != "even"),
    )
    for name, result in found.items():
        pictures = (fake or {}).get(name)
        blocks: list[Block] = [
            f"{result}.",
            scored.remarks({}, result.warnings)[0],
            region_table(result, result.regions),
            *region_examples(result, pictures, real),
            *(_missing(real, pictures) if result.found else []),
            Notes(items=result.assumptions, folded=True),
        ]
        page.add(Section(f"{shown(name)} against the real data", blocks))
    level = next(iter(found.values())).level
    words = Notes(items=[f"{kind}: {text}" for kind, text in MEANING.items()], title="Words")
    means = (
        "One half of the rows found the regions, the other half was counted: shares are "
        "unbiased, and a wrong claim about any region of a model has probability "
        f"{percent(round(1.0 - level, 12))} at most. Regions live in the encoder's space; "
        "what it does not see is not found, and few rows show only large changes."
    )
    return page.add(Section("What this means", [means, words]))


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
    examples = []
    for place, region in enumerate(result.found[:most], 1):
        for side, what, share, pictures in (
            ("real", "real", region.share_real, real),
            ("fake", "generated", region.share_fake, fake),
        ):
            items, remark = _pictured(region.rows[side], pictures)
            rows = f"{what} rows ({number(100.0 * share, digits=2)} %)"
            none = "" if items else ": none"
            title = f"Region {place}, {region.kind}: {rows}{none}{remark}"
            examples.append(Examples(title, items))
    return examples


def region_table(result: Modes, regions: Sequence[Region]) -> Table:
    """Return the shares of some regions of a result, and the rows that show each best."""
    fake = count(result.counted_fake, "generated row")
    real = count(result.counted_real, "real row")
    rows = [
        (
            place,
            Tag(r.kind, TONES.get(r.kind, "plain")),
            percent(round(r.share_fake, 4)),
            percent(round(r.share_real, 4)),
            r.ratio,
            interval(r.low, r.high),
            r.pvalue_adjusted,
            ", ".join(map(str, r.rows["fake" if r.low > 1.0 else "real"][:3])),
        )
        for place, r in enumerate(regions, 1)
    ]
    return Table(
        ("Region", "Kind", "Generated", "Real", "Ratio", "Interval", "p", "Rows that show it"),
        rows,
        f"Shares of {fake} and {real} that were counted; simultaneous "
        f"{percent(result.level)} intervals of their ratio; p adjusted for all regions",
    )


# --- by class -------------------------------------------------------------------------------------

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
        worst = dict(list(scores.items())[:PLOTTED_CLASSES])
        blocks: list[Block] = [
            scored.remarks(scores | result.overall, warnings)[0],
            scored.score_plot(worst, metric="fd", level=result.level),
            class_table(result),
            *(
                f"{what.capitalize()}: {scored.with_interval(s)}."
                for what, s in result.overall.items()
            ),
            *_class_pictures(result, (fake or {}).get(name), real),
        ]
        page.add(Section(shown(name), blocks))
    basis = scored.remarks({"mean": first.mean, "all": first.whole})[1:]
    return page.add(Section("What this rests on", basis))


def class_table(result: ByClass) -> Table:
    """Return the score of every class, the worst first."""
    classes = result.classes
    more: dict[str, Sequence[Cell]] = {
        "n": [score.n for score in classes.values()],
        "Share of real": [percent(round(result.shares[label], 4)) for label in classes],
        "Worst": ["can be the worst" if label in result.worst else "" for label in classes],
    }
    caption = "Worst first; the intervals of all classes hold together"
    scores = {str(label): score for label, score in classes.items()}
    return scored.score_table(scores, more, name="Class", value="FD", caption=caption)


def _class_pictures(result: ByClass, fake: Held | None, real: Held | None) -> list[Block]:
    """Return pictures of the worst classes, real and generated; where there are none, why."""
    sides = [(side, *held) for side, held in (("real", real), ("generated", fake)) if held]
    blocks: list[Block] = []
    for label in list(result.classes)[:SHOWN_CLASSES]:
        for side, pictures, classes in sides:
            rows = np.flatnonzero(np.asarray(classes) == label)
            chosen = rows[np.linspace(0, rows.size - 1, min(SHOWN_ROWS, rows.size)).astype(int)]
            if pictures.contents is not None:
                items, remark = _pictured(chosen.tolist(), pictures)
                blocks.append(Examples(f"{shown(str(label))}: {side}{remark}", items))
    return [*blocks, *_missing(*(pictures for _, pictures, _ in sides))]


# --- memorisation ---------------------------------------------------------------------------------

SUSPECTS = 100
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
    training = f"training {result.unit}s"
    copied = Tag("found", "bad") if result.copies else Tag("not significant", "good")
    depends = result.pvalue <= 1.0 - result.level
    share = percent(round(result.share_low, 3))
    dependent = Tag("yes", "open") if depends else Tag("not significant", "good")
    least = f"at least {number(result.copies_low)}"
    of = f"{share} of {number(result.train_units)}, at {percent(result.level)}"
    page = answer_page(
        "Does the model copy its training data?",
        scored.sentence(str(result)),
        ("Near copies", copied, f"p = {number(result.copies_pvalue, digits=2)}"),
        (f"{training.capitalize()} with near copies", least, of),
        (f"Depends on the {training}", dependent, f"p = {number(result.pvalue, digits=2)}"),
    )
    blocks = scored.with_assumptions(result, ratio_plot(result), title="What these numbers assume")
    page.add(Section("Training rows against held-out rows", blocks))
    if not result.suspects:
        return page
    suspects = count(len(result.suspects), f"training {result.unit}")
    more = f", the nearest {SUSPECTS} of them" if len(result.suspects) > SUSPECTS else ""
    reproduced = [
        f"{suspects} with near copies{more}: on average at most {percent(result.fdr)} of the list "
        "are there by chance. Rows are numbered from 0, in the order of the files.",
        *_pairs(result, fake, train),
        *_missing(fake, train),
        suspect_table(result, SUSPECTS),
    ]
    return page.add(Section("What is reproduced", reproduced))


def suspect_table(result: Memorisation, most: int) -> Table:
    """Return the generated rows that are nearest to what they reproduce."""
    rows = [(s.fake_row, s.train_row, s.distance, s.ratio, s.hits) for s in result.suspects[:most]]
    return Table(("Generated row", "Training row", "Distance", "Ratio", "Copies"), rows)


def _pairs(result: Memorisation, fake: Pictures | None, train: Pictures | None) -> list[Block]:
    """Return generated pictures beside the training pictures that they reproduce, if there are any.

    What has no picture keeps its name.
    """
    if fake is None or train is None:
        return []
    suspects = result.suspects[:PICTURED]
    left, left_remark = _pictured([s.fake_row for s in suspects], fake)
    right, right_remark = _pictured([s.train_row for s in suspects], train)
    remarks = left_remark and f"{left_remark} (generated)"
    remarks += right_remark and f"{right_remark} (training)"
    if not remarks and not any(uri for _, uri in (*left, *right)):
        return []
    title = (
        "Generated pictures, and to the right of each the training picture that it reproduces, "
        f"in the order of the table{remarks}"
    )
    pairs = [item for pair in zip(left, right, strict=True) for item in pair]
    return [Examples(title, pairs, paired=True)]


def ratio_plot(result: Memorisation) -> Figure:
    """Show the ratios of generated rows, by whether the nearest real row was trained on.

    Parameters
    ----------
    result : Memorisation

    Returns
    -------
    Figure
        Copies stand on the left, in the line of the training rows only.
    """
    near, rows = result.near, f"{result.unit}s"
    return drawn(
        result.plot,
        alt=f"Ratios of {number(result.n)} generated rows. Of {number(near.hit)} real {rows} with "
        f"near copies {number(near.trained)} were trained on, {number(near.expected)} expected.",
        caption="Distance of generated rows to the nearest real row, over that to the fifth: "
        "generated rows whose nearest row was trained on (shaded), per training row, and those "
        "whose nearest row was held out, per held-out row. Both lines agree, up to noise, where "
        "the output does not depend on which rows were trained on; copies stand left of the "
        "dashed line.",
        table=Table(
            ("Generated rows", f"Real {rows} hit", "Trained on", "Expected", "p"),
            [
                (name, part.hit, part.trained, part.expected, part.pvalue)
                for name, part in (("near copies", near), ("all", result.every))
            ],
        ),
    )
