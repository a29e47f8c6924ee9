"""Statements and intervals that were tested: claimed against measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from genbounds._text import count, interval, number, percent, short, shown
from genbounds.report._canvas import COLOUR, WIDE, Canvas, drawn
from genbounds.report.blocks import Cell, Figure, Table, Tag, Tone
from genbounds.report.figures._axes import (
    DASHED,
    Row,
    interval_rows,
    linear_scale,
    log_axis,
    log_ticks,
)
from genbounds.report.wording import verdict_word
from genbounds.validation import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

VERDICT_TONES: dict[str, Tone] = {"upheld": "good", "refuted": "bad", "vacuous": "open"}
MISS_RATIOS = (1e-3, 1e3)


@dataclass(frozen=True, slots=True, kw_only=True)
class CoveragePoint:
    """How often intervals at `nominal` level covered the truth.

    Attributes
    ----------
    label : str
        Which intervals, on which arm.
    n : int
        Samples per interval.
    nominal, measured : float
        Levels in (0, 1).
    low, high : float
        Exact interval of the measured level.
    replications : int
    """

    label: str
    n: int
    nominal: float
    measured: float
    low: float
    high: float
    replications: int


def coverage_plot(points: Sequence[CoveragePoint]) -> Figure:
    """Nominal against measured coverage, with exact intervals.

    Parameters
    ----------
    points : sequence of CoveragePoint
    """
    if not points:
        raise InputError("`points` must hold at least one coverage measurement.")
    labels = [f"{point.label}, n = {point.n}" for point in points]
    off = [point for point in points if not point.low <= point.nominal <= point.high]

    rows = []
    for point, name in zip(points, labels, strict=True):
        look = ("bad", "open") if point in off else ("accent", "filled")
        tip = (
            f"{shown(name)}: {percent(round(point.measured, 4))} of "
            f"{count(point.replications, 'interval')}"
        )
        rows.append(Row(name, (point.low, point.measured, point.high), *look, tip))
    ends = [end for p in points for end in (p.low, p.high, p.nominal)]
    picture = partial(
        interval_rows,
        rows=rows,
        label="measured coverage",
        scale=partial(linear_scale, values=ends),
        lines=sorted({point.nominal for point in points}),
    )
    return drawn(
        picture,
        alt=(
            f"Measured coverage of {count(len(points), 'kind')} of interval against their nominal "
            "level; "
            f"{len(points) - len(off)} agree with it within the simulation's own error."
        ),
        caption=(
            "Dots: how often the intervals really covered the truth; open: not as often as "
            "promised. Lines: exact binomial intervals of that share. Dashed: what was promised."
        ),
        table=Table(
            columns=("Interval", "n", "Promised", "Measured", "Low", "High", "Replications"),
            rows=[
                (p.label, p.n, p.nominal, p.measured, p.low, p.high, p.replications) for p in points
            ],
        ),
    )


def miss_plot(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Show how often each statement failed at its worst cell, relative to what it allows.

    Parameters
    ----------
    rows : sequence of mapping
        Rows of an audit as ``genbounds audit --json`` prints them; statements that allow no miss
        (deterministic ones) are left out.
    """
    measured = [row for row in rows if row["worst"]["claimed"] > 0.0]
    if not measured:
        raise InputError("`rows` must hold at least one statement that allows some misses.")

    def scale(canvas: Canvas, axes: Axes) -> float:
        log_axis(canvas, axes, MISS_RATIOS)
        log_ticks(canvas, axes, zero=MISS_RATIOS[0])
        return MISS_RATIOS[0]

    drawn_rows = []
    for row in measured:
        worst, claimed = row["worst"], row["worst"]["claimed"]
        tip = (
            f"{row['id']}: {number(worst['miss'])} "
            f"{interval(worst['miss_low'], worst['miss_high'])}, allowed {short(claimed)}"
        )
        ends = worst["miss_low"] / claimed, worst["miss"] / claimed, worst["miss_high"] / claimed
        drawn_rows.append(Row(row["id"], ends, *_look(row["verdict"]), tip))
    label = "failures per allowed failure"
    picture = partial(interval_rows, rows=drawn_rows, label=label, scale=scale, lines=[1.0])
    refuted = [row["id"] for row in measured if row["verdict"] == "refuted"]
    return drawn(
        picture,
        alt=(
            f"Failure rates of {count(len(measured), 'statement')} relative to what they allow. "
            f"Refuted: {', '.join(refuted) or 'none'}."
        ),
        caption=(
            "How often each statement failed in its worst case, as a multiple of what it allows, "
            "with exact intervals. Right of the dashed line it fails too often; filled: refuted. "
            "An arrow: the interval goes on beyond the axis."
        ),
        table=Table(
            columns=("Statement", *_EVIDENCE, "d"),
            rows=[(row["id"], *_evidence(row["worst"]), row["worst"]["d"]) for row in measured],
        ),
    )


_EVIDENCE = ("Allowed", "Measured", "Low", "High", "Distribution", "n")


def _evidence(cell: Mapping[str, Any]) -> tuple[Cell, ...]:
    """Return the numbers of one test case under the headings `_EVIDENCE`."""
    numbers = (cell[key] for key in ("claimed", "miss", "miss_low", "miss_high"))
    return (*numbers, str(cell["arm"]), cell["n"])


def claim_plot(row: Mapping[str, Any]) -> Figure:
    """Show claimed against measured miss rate of one statement over its failure probability.

    Parameters
    ----------
    row : mapping
        Its row of an audit as ``genbounds audit --json`` prints it, with ``by_delta``.
    """
    cells = [cell for cell in row.get("by_delta") or () if cell["claimed"] > 0.0]
    if not cells:
        raise InputError("`row` must hold a measured miss rate in its `by_delta`.")
    claims = [cell["claimed"] for cell in cells]
    # Far below every claim a rate is as good as none.
    floor = min(claims) * 1e-3
    colour = COLOUR[_look(row["verdict"])[0]]

    def picture(width: float) -> Canvas:
        canvas = Canvas(width, 320 if width == WIDE else 270)
        axes = canvas.axes(left=66, right=14, top=16, bottom=46, grid="both")
        log_axis(canvas, axes, [cell["delta"] for cell in cells])
        axes.set_yscale("log")
        axes.set_ylim(floor, 3.0)
        log_ticks(canvas, axes, vertical=True)
        deltas = [cell["delta"] for cell in cells]
        axes.plot(deltas, claims, **DASHED)
        for cell in cells:
            low, value, high = (max(cell[key], floor) for key in ("miss_low", "miss", "miss_high"))
            axes.vlines(cell["delta"], low, high, color=colour, linewidth=2)
            shape = "v" if cell["miss"] <= floor else "o"
            (mark,) = axes.plot(cell["delta"], value, shape, color=colour, markersize=6)
            canvas.tip(
                mark,
                f"δ = {short(cell['delta'])}: {number(cell['miss'])} "
                f"{interval(cell['miss_low'], cell['miss_high'])} ({cell['evidence']}), "
                f"allowed {short(cell['claimed'])}; {cell['arm']}",
            )
        axes.set_xlabel("failure probability δ")
        axes.set_ylabel("failure rate")
        return canvas

    over = [short(cell["delta"]) for cell in cells if cell["refutes"]]
    return drawn(
        picture,
        alt=(
            f"Failure rate of {row['id']} against its failure probability. Above what is allowed "
            f"at δ = {', '.join(over)}."
            if over
            else f"Failure rate of {row['id']} against its failure probability, nowhere proven to "
            "be above what is allowed."
        ),
        caption=(
            "How often the statement fails in its worst case, at each failure probability, with "
            "exact intervals. Dashed: what it allows; above that line it fails too often. Arrows "
            "point below the axis."
        ),
        table=Table(
            columns=("δ", *_EVIDENCE, "Evidence"),
            rows=[(cell["delta"], *_evidence(cell), cell["evidence"]) for cell in cells],
        ),
    )


def tightness_plot(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """How many times wider than necessary each statement is, on a logarithmic scale.

    Parameters
    ----------
    rows : sequence of mapping
        Rows of an audit as ``genbounds audit --json`` prints them; those without a tightness are
        left out.
    """
    known = [row for row in rows if row.get("tightness") and row["tightness"] > 0]
    if not known:
        raise InputError("`rows` must hold at least one statement with a tightness.")
    known.sort(key=lambda row: row["tightness"])

    def scale(canvas: Canvas, axes: Axes) -> float:
        log_axis(canvas, axes, [1.0, *(row["tightness"] for row in known)])
        return -math.inf

    drawn_rows = []
    for row in known:
        times, text = row["tightness"], f"{number(row['tightness'], digits=3)}×"
        look, tip = _look(row["verdict"]), f"{row['id']}: {text}"
        drawn_rows.append(Row(row["id"], (1.0, times, times), *look, tip, text))
    label = "width over the smallest one that would hold"
    picture = partial(
        interval_rows, rows=drawn_rows, label=label, scale=scale, right=58.0, lines=[1.0]
    )
    return drawn(
        picture,
        alt=(
            f"Width of {count(len(known), 'statement')} relative to the width that is needed, from "
            f"{number(known[0]['tightness'], digits=3)} ({known[0]['id']}) to "
            f"{number(known[-1]['tightness'], digits=3)} ({known[-1]['id']})."
        ),
        caption=(
            "Tightness: the width of each bound over the smallest one that would hold at the same "
            "failure probability. Left of the dashed line bounds promise too much; filled: refuted."
        ),
        table=Table(
            columns=("Statement", "Tightness", "Verdict"),
            rows=[(row["id"], float(row["tightness"]), verdict(row["verdict"])) for row in known],
        ),
    )


def verdict(text: str) -> Tag:
    """Return the verdict `text` of an audit as a coloured word, as people read it."""
    return Tag(verdict_word(text), VERDICT_TONES.get(text, "plain"))


def _look(word: str) -> tuple[str, str]:
    """Return colour and mark of a verdict."""
    return VERDICT_TONES.get(word, "muted"), "filled" if word == "refuted" else "open"
