"""Statements and intervals that were tested: claimed against measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from genbounds._text import count, interval, number, percent, short, shown
from genbounds.report._canvas import COLOUR, WIDE, Canvas, drawn, rows_axes
from genbounds.report.blocks import Cell, Figure, Table, Tag, Tone
from genbounds.report.figures._axes import (
    DASHED,
    beside,
    few_ticks,
    interval_mark,
    log_axis,
    log_ticks,
)
from genbounds.report.wording import verdict_word
from genbounds.validation import InputError

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

VERDICT_MARKS = {"upheld": "open", "refuted": "filled", "vacuous": "open"}
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

    def picture(width: float) -> Canvas:
        canvas, axes = rows_axes(width, labels, right=16)
        for nominal in sorted({point.nominal for point in points}):
            axes.axvline(nominal, **DASHED)
        for row, (point, name) in enumerate(zip(points, labels, strict=True)):
            mark = _coverage_mark(axes, row, point)
            canvas.tip(
                mark,
                f"{shown(name)}: {percent(round(point.measured, 4))} of "
                f"{count(point.replications, 'interval')}",
            )
        ends = [end for p in points for end in (p.low, p.high, p.nominal)]
        axes.set_xlim(min(ends) - 0.01, min(1.005, max(ends) + 0.01))
        few_ticks(axes.xaxis, 4 if canvas.narrow else 7)
        axes.set_xlabel("measured coverage")
        return canvas

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


def _coverage_mark(axes: Axes, row: int, point: CoveragePoint) -> Artist:
    """Draw one measured coverage with its interval; open where it is not what was promised."""
    covered = point.low <= point.nominal <= point.high
    colour = COLOUR["accent" if covered else "bad"]
    axes.hlines(row, point.low, point.high, color=colour, linewidth=2)
    fill = colour if covered else COLOUR["paper"]
    style: dict[str, Any] = {"color": colour, "markerfacecolor": fill, "markersize": 6}
    return axes.plot(point.measured, row, "o", **style)[0]


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
    names = [row["id"] for row in measured]

    def picture(width: float) -> Canvas:
        canvas, axes = rows_axes(width, names, right=22)
        log_axis(canvas, axes, MISS_RATIOS)
        log_ticks(canvas, axes, zero=MISS_RATIOS[0])
        axes.axvline(1.0, **DASHED)
        for index, row in enumerate(measured):
            worst = row["worst"]
            low, value, high = (
                worst[key] / worst["claimed"] for key in ("miss_low", "miss", "miss_high")
            )
            interval_mark(
                canvas,
                index,
                (low, value, high),
                role=_role(row["verdict"]),
                mark=VERDICT_MARKS.get(row["verdict"], "open"),
                tip=f"{row['id']}: {number(worst['miss'])} "
                f"{interval(worst['miss_low'], worst['miss_high'])}, "
                f"allowed {short(worst['claimed'])}",
                zero=MISS_RATIOS[0],
            )
        axes.set_xlabel("failures per allowed failure")
        return canvas

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
    colour = COLOUR[_role(row["verdict"])]

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

    def picture(width: float) -> Canvas:
        names = [row["id"] for row in known]
        canvas, axes = rows_axes(width, names, right=58)
        log_axis(canvas, axes, [1.0, *(row["tightness"] for row in known)])
        axes.axvline(1.0, **DASHED)
        for row, entry in enumerate(known):
            width, result = entry["tightness"], entry["verdict"]
            text = f"{number(width, digits=3)}×"
            interval_mark(
                canvas,
                row,
                (1.0, width, width),
                role=_role(result),
                mark=VERDICT_MARKS.get(result, "open"),
                tip=f"{entry['id']}: {text}",
            )
            beside(axes, row, canvas.text(text))
        axes.set_xlabel("width over the smallest one that would hold")
        return canvas

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


def _role(word: str) -> str:
    """Return the colour of a verdict."""
    tone = VERDICT_TONES.get(word)
    return "muted" if tone is None else str(tone)
