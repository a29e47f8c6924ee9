"""Statements and intervals on trial: claimed against measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from genbounds.files import display
from genbounds.report._canvas import COLOUR, WIDE, Canvas, draw, rows_axes
from genbounds.report._text import interval, number, percent, short
from genbounds.report.blocks import Figure, Table, Tag, Tone
from genbounds.report.figures._axes import DASHED, beside, few_ticks, log_axis, log_ticks
from genbounds.validation import InputError

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
        # A grossly wrong interval must not squeeze the others: it is shown at the edge.
        edge = min(point.nominal for point in points) - 0.1
        edge = max(edge, min(point.low for point in points) - 0.01)
        for row, point in enumerate(points):
            covered = point.low <= point.nominal <= point.high
            colour = COLOUR["accent" if covered else "bad"]
            if point.measured < edge:
                (mark,) = axes.plot(edge + 0.003, row, "<", color=colour, markersize=7)
                axes.annotate(
                    canvas.text(percent(round(point.measured, 3))),
                    (edge + 0.003, row),
                    xytext=(9, 0),
                    textcoords="offset points",
                    va="center",
                    color=colour,
                )
            else:
                axes.hlines(row, max(point.low, edge), point.high, color=colour, linewidth=2)
                (mark,) = axes.plot(point.measured, row, "o", color=colour, markersize=6)
            canvas.tip(
                mark,
                f"{display(labels[row], limit=60)}: {percent(round(point.measured, 4))} of "
                f"{number(point.replications)} intervals",
            )
        axes.set_xlim(edge, min(1.005, max(max(p.high, p.nominal) for p in points) + 0.01))
        few_ticks(axes.xaxis, 4 if canvas.narrow else 7)
        axes.set_xlabel("measured coverage")
        return canvas

    wide, narrow = draw(picture)
    return Figure(
        wide=wide,
        narrow=narrow,
        alt=(
            f"Measured coverage of {len(points)} kinds of interval against their nominal level; "
            f"{len(points) - len(off)} agree with it within the simulation's own error."
        ),
        caption=(
            "Dots: how often the intervals really covered the truth. Lines: exact binomial "
            "intervals of that share. Dashed: what was promised."
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
    names = [row["id"] for row in measured]
    low, high = MISS_RATIOS

    def picture(width: float) -> Canvas:
        canvas, axes = rows_axes(width, names, right=16)
        log_axis(canvas, axes, MISS_RATIOS)
        axes.axvline(1.0, **DASHED)
        for index, row in enumerate(measured):
            worst, colour = row["worst"], COLOUR[_role(row["verdict"])]
            ends = [worst[key] / worst["claimed"] for key in ("miss_low", "miss", "miss_high")]
            left, value, right = (min(max(end, low), high) for end in ends)
            axes.hlines(index, left, right, color=colour, linewidth=2)
            shape = "<" if ends[1] < low else ">" if ends[1] > high else "o"
            (mark,) = axes.plot(value, index, shape, color=colour, markersize=6)
            canvas.tip(
                mark,
                f"{row['id']}: {number(worst['miss'])} "
                f"{interval(worst['miss_low'], worst['miss_high'])}, "
                f"allowed {short(worst['claimed'])}",
            )
        axes.set_xlabel("misses per allowed miss")
        return canvas

    wide, narrow = draw(picture)
    refuted = [row["id"] for row in measured if row["verdict"] == "refuted"]
    return Figure(
        wide=wide,
        narrow=narrow,
        alt=(
            f"Miss rates of {len(measured)} statements relative to what they allow. "
            f"Refuted: {', '.join(refuted) or 'none'}."
        ),
        caption=(
            "How often each statement failed where it fared worst, as a multiple of what it "
            "allows, with exact intervals. Right of the dashed line it fails too often; arrows "
            "point beyond the axis."
        ),
        table=Table(
            columns=("Statement", "Allowed", "Measured", "Low", "High", "Law", "n", "d"),
            rows=[
                (
                    row["id"],
                    worst["claimed"],
                    worst["miss"],
                    worst["miss_low"],
                    worst["miss_high"],
                    str(worst["arm"]),
                    worst["n"],
                    worst["d"],
                )
                for row in measured
                if (worst := row["worst"])
            ],
        ),
    )


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
        axes.set_ylabel("miss rate")
        return canvas

    wide, narrow = draw(picture)
    over = [short(cell["delta"]) for cell in cells if cell["refutes"]]
    return Figure(
        wide=wide,
        narrow=narrow,
        alt=(
            f"Miss rate of {row['id']} against its failure probability. Above what is allowed "
            f"at δ = {', '.join(over)}."
            if over
            else f"Miss rate of {row['id']} against its failure probability, nowhere proven to "
            "be above what is allowed."
        ),
        caption=(
            "How often the statement fails in the worst of its cells, at each failure "
            "probability; lines are limits. Dashed: what it allows. Above that line it fails too "
            "often; arrows point below the axis."
        ),
        table=Table(
            columns=("δ", "Allowed", "Measured", "Low", "High", "Evidence", "Law", "n"),
            rows=[
                (
                    cell["delta"],
                    cell["claimed"],
                    cell["miss"],
                    cell["miss_low"],
                    cell["miss_high"],
                    cell["evidence"],
                    str(cell["arm"]),
                    cell["n"],
                )
                for cell in cells
            ],
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
            tone = _role(entry["verdict"])
            axes.hlines(row, 1.0, entry["tightness"], color=COLOUR[tone], linewidth=2)
            (mark,) = axes.plot(entry["tightness"], row, "o", color=COLOUR[tone], markersize=6)
            text = f"{number(entry['tightness'], digits=3)}×"
            canvas.tip(mark, f"{entry['id']}: {text}")
            beside(axes, row, canvas.text(text))
        axes.set_xlabel("width over needed width")
        return canvas

    wide, narrow = draw(picture)
    return Figure(
        wide=wide,
        narrow=narrow,
        alt=(
            f"Width of {len(known)} statements relative to the width that is needed, from "
            f"{number(known[0]['tightness'], digits=3)} ({known[0]['id']}) to "
            f"{number(known[-1]['tightness'], digits=3)} ({known[-1]['id']})."
        ),
        caption=(
            "How generous each statement is: its width over the width that the same failure "
            "probability needs. Left of the dashed line a statement promises too much."
        ),
        table=Table(
            columns=("Statement", "Tightness", "Verdict"),
            rows=[(row["id"], float(row["tightness"]), verdict(row["verdict"])) for row in known],
        ),
    )


def verdict(text: str) -> Tag:
    """Return the verdict `text` as a coloured word."""
    return Tag(text, VERDICT_TONES.get(text, "plain"))


def _role(word: str) -> str:
    """Return the colour of a verdict."""
    tone = VERDICT_TONES.get(word)
    return "muted" if tone is None else str(tone)
