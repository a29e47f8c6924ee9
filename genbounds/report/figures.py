"""Pictures of results. Every function is pure: results in, `Figure` out, equal for equal input."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from genbounds.files import display
from genbounds.report._canvas import (
    COLOUR,
    SERIES,
    WIDE,
    Canvas,
    draw,
    drawing_style,
    inline,
    left_margin,
    row_height,
    rows_axes,
)
from genbounds.report._text import group_letters, interval, number, percent, short
from genbounds.report.blocks import Cell, Figure, Name, Table, Tag, Tone
from genbounds.results import Ranking, Score
from genbounds.validation import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

VERDICT_TONES: dict[str, Tone] = {"upheld": "good", "refuted": "bad", "vacuous": "open"}
LARGEST_MATRIX = 40
MISS_RATIOS = (1e-3, 1e3)
METRIC_TITLES = {
    "fd": "Fréchet distance",
    "kid": "Kernel Inception distance",
    "is": "Inception score",
    "vendi": "Vendi score",
    "rke": "Vendi score of order 2 (RKE)",
}


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


def rank_plot(ranking: Ranking) -> Figure:
    """Show scores with intervals, best on top, and the letters of the groups.

    Parameters
    ----------
    ranking : Ranking

    Returns
    -------
    Figure
        Models that share a letter are not distinguishable.
    """
    figure = _scores(
        ranking.scores,
        metric=ranking.metric,
        level=ranking.level,
        letters=group_letters(ranking),
        coloured=ranking.contenders,
    )
    return replace(
        figure,
        caption=(
            f"{figure.caption} Models that share a letter are not distinguishable at that level "
            "jointly. In colour: whoever may still be the best."
        ),
    )


def score_plot(scores: Mapping[str, Score], *, metric: str, level: float) -> Figure:
    """Show scores with intervals, in the order given.

    Parameters
    ----------
    scores : mapping of str to Score
    metric : str
        For the axis.
    level : float
        Of the intervals, for the caption.
    """
    if not scores:
        raise InputError("`scores` must hold at least one model.")
    return _scores(scores, metric=metric, level=level, letters={}, coloured=tuple(scores))


def _scores(
    scored: Mapping[str, Score],
    *,
    metric: str,
    level: float,
    letters: Mapping[str, str],
    coloured: Sequence[str],
) -> Figure:
    names, scores = list(scored), list(scored.values())
    title = METRIC_TITLES.get(metric, metric)
    widest = max((len(text) for text in letters.values()), default=0)

    def picture(width: float) -> Canvas:
        canvas = Canvas(width, 56 + row_height(len(names)) * len(names))
        axes = rows_axes(canvas, names, right=18 + 7.5 * widest)
        floor = _value_scale(canvas, axes, scores)
        for row, (name, score) in enumerate(scored.items()):
            colour = COLOUR["accent" if name in coloured else "muted"]
            _interval_mark(canvas, axes, row, name, score, colour, floor)
            if letters:
                _beside(axes, row, letters[name])
        axes.set_xlabel(title)
        return canvas

    wide, narrow = draw(picture)
    first = scores[0]
    grouped = bool(letters)
    return Figure(
        wide=wide,
        narrow=narrow,
        alt=(
            f"{title} of {_models(len(names))}. On top: {display(names[0], limit=60)} "
            f"with {number(first.value)}, interval {interval(first.low, first.high)}."
        ),
        caption=f"{title}. Lines are {percent(level)} intervals.",
        table=Table(
            columns=("Model", "Score", "Low", "High", "Std. error", "n", *["Group"] * grouped),
            rows=[
                (
                    Name(name),
                    score.value,
                    score.low,
                    score.high,
                    score.stderr,
                    score.n,
                    *[letters.get(name, "")] * grouped,
                )
                for name, score in scored.items()
            ],
        ),
    )


def _models(count: int) -> str:
    return "1 model" if count == 1 else f"{count} models"


def difference_matrix(ranking: Ranking) -> Figure:
    """Who is distinguishable from whom, and by how much at least.

    Parameters
    ----------
    ranking : Ranking
        Of at least two models.

    Returns
    -------
    Figure
        Rows and columns in the order of the ranking; above the diagonal the row is ahead.
    """
    names = list(ranking.scores)[:LARGEST_MATRIX]
    k = len(names)
    if k < 2:
        raise InputError(f"`ranking` must hold at least 2 models to compare; got {k}.")
    position = {name: index for index, name in enumerate(names)}
    shown = [
        pair for pair in ranking.differences if pair.better in position and pair.worse in position
    ]
    open_pairs = [pair for pair in shown if not pair.distinguishable]
    left_out = len(ranking.scores) - k

    def picture(width: float) -> Canvas:
        left = left_margin(names, narrow=width < WIDE)
        cell = min(42.0, (width - left - 8) / k)
        canvas = Canvas(width, cell * k + 34)
        axes = canvas.axes(left=left, right=width - left - cell * k, top=28, bottom=6, grid="")
        axes.set_xlim(-0.5, k - 0.5)
        axes.set_ylim(k - 0.5, -0.5)
        axes.set_yticks(range(k), [canvas.name(name) if cell >= 11 else "" for name in names])
        axes.set_xticks(
            range(k), [str(index + 1) for index in range(k)] if cell >= 14 else [""] * k
        )
        axes.xaxis.tick_top()
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        from matplotlib.patches import Rectangle

        for pair in shown:
            i, j = sorted((position[pair.better], position[pair.worse]))
            certain = pair.distinguishable
            patch = Rectangle(
                (j - 0.46, i - 0.46),
                0.92,
                0.92,
                facecolor=COLOUR["accent"] if certain else COLOUR["grid"],
                edgecolor="none",
            )
            axes.add_patch(patch)
            canvas.tip(
                patch,
                f"{display(pair.better, limit=40)} − {display(pair.worse, limit=40)}: "
                f"{number(pair.value)} {interval(pair.low, pair.high)}"
                + ("" if certain else ", not distinguishable"),
            )
        for index in range(k):
            axes.plot(index, index, ".", color=COLOUR["muted"], markersize=2)
        return canvas

    wide, narrow = draw(picture)
    pairs = len(shown)
    return Figure(
        wide=wide,
        narrow=narrow,
        alt=(
            f"Matrix of all {pairs} pairs of {k} models; {pairs - len(open_pairs)} pairs are "
            f"distinguishable, {len(open_pairs)} are not."
        ),
        caption=(
            "Every pair of models, columns numbered as the rows. In colour: the row is better "
            f"than the column, and all such statements hold together at {percent(ranking.level)}. "
            "Grey: the samples do not tell."
            + (f" The {left_out} models behind the first {k} are left out." if left_out else "")
        ),
        table=Table(
            columns=("Better", "Worse", "Difference", "Low", "High", "Distinguishable"),
            rows=[
                (
                    Name(pair.better),
                    Name(pair.worse),
                    pair.value,
                    pair.low,
                    pair.high,
                    Tag("yes", "good") if pair.distinguishable else Tag("no"),
                )
                for pair in shown
            ],
            caption=f"Differences with simultaneous {percent(ranking.level)} intervals",
        ),
    )


def convergence_plot(
    series: Mapping[str, Sequence[tuple[int, Score]]],
    *,
    truth: float | None = None,
    metric: str = "fd",
) -> Figure:
    """Show an estimate, with its interval, against the number of samples.

    Parameters
    ----------
    series : mapping of str to sequence of (n, Score)
        One line an entry, such as "plug-in" and "debiased"; n increasing.
    truth : float or None
        Drawn as a level line.
    metric : str
        For the axis.
    """
    if not series or not all(series.values()):
        raise InputError("`series` must hold at least one line of at least one point.")
    title = METRIC_TITLES.get(metric, metric)

    def picture(width: float) -> Canvas:
        canvas = Canvas(width, 300 if width == WIDE else 250)
        lines = [*series, *([] if truth is None else ["truth"])]
        top = _legend(canvas, lines, dashed_last=truth is not None)
        axes = canvas.axes(left=62, right=14, top=top, bottom=46, grid="both")
        _log_axis(canvas, axes, [n for points in series.values() for n, _ in points])
        for index, (label, points) in enumerate(series.items()):
            colour = COLOUR[f"series-{index % SERIES}"]
            xs = [n for n, _ in points]
            axes.fill_between(
                xs,
                [score.low for _, score in points],
                [score.high for _, score in points],
                color=colour,
                alpha=0.16,
                linewidth=0,
            )
            axes.plot(xs, [s.value for _, s in points], color=colour, linewidth=1.6)
            for n, score in points:
                (mark,) = axes.plot(n, score.value, "o", color=colour, markersize=4.5)
                canvas.tip(
                    mark,
                    f"{display(label, limit=60)}, n = {n}: {number(score.value)} "
                    f"{interval(score.low, score.high)}",
                )
        if truth is not None:
            axes.axhline(truth, color=COLOUR["ink"], linewidth=1, linestyle=(0, (4, 3)))
        _few_ticks(axes.yaxis, 6)
        axes.set_xlabel("samples n")
        axes.set_ylabel(title)
        return canvas

    wide, narrow = draw(picture)
    last = {label: points[-1] for label, points in series.items()}
    rows: list[tuple[Cell, ...]] = [
        (label, n, s.value, s.low, s.high) for label, points in series.items() for n, s in points
    ]
    return Figure(
        wide=wide,
        narrow=narrow,
        alt=f"{title} against the number of samples. "
        + " ".join(
            f"{display(label, limit=60)}: {number(score.value)} at n = {n}."
            for label, (n, score) in last.items()
        )
        + ("" if truth is None else f" Truth: {number(truth)}."),
        caption=(
            f"{title} as the number of samples grows. Bands are intervals"
            + ("." if truth is None else "; the dashed line is the truth.")
        ),
        table=Table(columns=("Estimator", "n", "Value", "Low", "High"), rows=rows),
    )


def samples_plot(samples: Mapping[str, int], *, best: str | None = None) -> Figure:
    """Show the samples spent on each arm of a selection.

    Parameters
    ----------
    samples : mapping of str to int
    best : str or None
        The arm to show in colour.
    """
    if not samples:
        raise InputError("`samples` must hold at least one arm.")
    names = sorted(samples, key=lambda name: -samples[name])
    total = sum(samples.values())

    def picture(width: float) -> Canvas:
        canvas = Canvas(width, 56 + row_height(len(names)) * len(names))
        axes = rows_axes(canvas, names, right=62)
        for row, name in enumerate(names):
            colour = COLOUR["accent" if name == best else "muted"]
            (bar,) = axes.barh(row, samples[name], height=0.62, color=colour)
            canvas.tip(bar, f"{display(name, limit=60)}: {number(samples[name])} samples")
            axes.annotate(
                canvas.text(number(samples[name])),
                (samples[name], row),
                xytext=(5, 0),
                textcoords="offset points",
                va="center",
            )
        _few_ticks(axes.xaxis, 4 if canvas.narrow else 7)
        axes.set_xlim(0, max(*samples.values(), 1) * 1.02)
        axes.set_xlabel("samples drawn")
        return canvas

    wide, narrow = draw(picture)
    return Figure(
        wide=wide,
        narrow=narrow,
        alt=(
            f"Samples drawn from each of {len(names)} arms, {number(total)} together; most from "
            f"{display(names[0], limit=60)}, {number(samples[names[0]])}."
        ),
        caption="Where the samples went. In colour: the arm that was selected.",
        table=Table(
            columns=("Arm", "Samples", "Share"),
            rows=[
                (Name(name), samples[name], percent(round(samples[name] / max(total, 1), 4)))
                for name in names
            ],
        ),
    )


def spending_plot(steps: Sequence[int], spent: Mapping[str, Sequence[int]]) -> Figure:
    """Show the samples held of each arm as a selection went on.

    Parameters
    ----------
    steps : sequence of int
        Total samples drawn at each point in time, increasing.
    spent : mapping of str to sequence of int
        For each arm its samples at the same points in time.
    """
    if not steps or any(len(line) != len(steps) for line in spent.values()):
        raise InputError("`spent` must hold, for every arm, one number for each of `steps`.")
    names = sorted(spent, key=lambda name: -spent[name][-1])
    # A page can show so many points; the last one always stays.
    stride = max(1, len(steps) // 200)
    kept = sorted({*range(0, len(steps), stride), len(steps) - 1})

    def picture(width: float) -> Canvas:
        canvas = Canvas(width, 300 if width == WIDE else 270)
        top = _legend(canvas, names[:SERIES])
        axes = canvas.axes(left=72, right=14, top=top, bottom=46, grid="both")
        # The most drawn on top; those below are thicker, so that no line hides another.
        for index, name in reversed(list(enumerate(names))):
            shown = index < SERIES
            (line,) = axes.plot(
                [steps[i] for i in kept],
                [spent[name][i] for i in kept],
                color=COLOUR[f"series-{index}" if shown else "grid"],
                linewidth=1.6 + 0.8 * min(index, 4) if shown else 1.0,
                zorder=3 if shown else 2,
            )
            canvas.tip(line, f"{display(name, limit=60)}: {number(spent[name][-1])} at the end")
        _few_ticks(axes.xaxis, 4 if canvas.narrow else 7)
        _few_ticks(axes.yaxis, 6)
        axes.set_xlabel("samples drawn in total")
        axes.set_ylabel("from this arm")
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        return canvas

    wide, narrow = draw(picture)
    points = sorted({round(i * (len(steps) - 1) / 9) for i in range(10)})
    return Figure(
        wide=wide,
        narrow=narrow,
        alt=(
            f"Samples drawn from each of {len(names)} arms over time, up to {number(steps[-1])} "
            f"in total; most from {display(names[0], limit=60)}."
        ),
        caption=(
            "How the samples were shared out as the selection went on"
            + ("." if len(names) <= SERIES else f"; the {SERIES} most drawn are in colour.")
        ),
        table=Table(
            columns=("Arm", *(f"at {number(steps[i])}" for i in points)),
            rows=[(Name(name), *(spent[name][i] for i in points)) for name in names],
        ),
    )


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
        canvas = Canvas(width, 56 + row_height(len(points)) * len(points))
        axes = rows_axes(canvas, labels, right=16)
        for nominal in sorted({point.nominal for point in points}):
            axes.axvline(nominal, color=COLOUR["ink"], linewidth=1, linestyle=(0, (4, 3)))
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
        _few_ticks(axes.xaxis, 4 if canvas.narrow else 7)
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
        canvas = Canvas(width, 56 + row_height(len(names)) * len(names))
        axes = rows_axes(canvas, names, right=16)
        _log_axis(canvas, axes, MISS_RATIOS)
        axes.axvline(1.0, color=COLOUR["ink"], linewidth=1, linestyle=(0, (4, 3)))
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
        _log_axis(canvas, axes, [cell["delta"] for cell in cells])
        axes.set_yscale("log")
        axes.set_ylim(floor, 3.0)
        _log_ticks(canvas, axes, vertical=True)
        deltas = [cell["delta"] for cell in cells]
        axes.plot(deltas, claims, color=COLOUR["ink"], linewidth=1, linestyle=(0, (4, 3)))
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
        canvas = Canvas(width, 56 + row_height(len(names)) * len(names))
        axes = rows_axes(canvas, names, right=58)
        _log_axis(canvas, axes, [1.0, *(row["tightness"] for row in known)])
        axes.axvline(1.0, color=COLOUR["ink"], linewidth=1, linestyle=(0, (4, 3)))
        for row, entry in enumerate(known):
            tone = _role(entry["verdict"])
            axes.hlines(row, 1.0, entry["tightness"], color=COLOUR[tone], linewidth=2)
            (mark,) = axes.plot(entry["tightness"], row, "o", color=COLOUR[tone], markersize=6)
            text = f"{number(entry['tightness'], digits=3)}×"
            canvas.tip(mark, f"{entry['id']}: {text}")
            _beside(axes, row, canvas.text(text))
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


def formula(latex: str) -> str | None:
    """Draw a formula as inline SVG in the page's colour; None if matplotlib cannot read it."""
    from matplotlib.figure import Figure as Drawing

    style: dict[Any, Any] = {
        "svg.fonttype": "path",
        "svg.hashsalt": "genbounds",
        "mathtext.fontset": "stix",
    }
    buffer = io.StringIO()
    empty = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    try:
        with drawing_style(style):
            drawing = Drawing(figsize=(1, 1), dpi=72)
            drawing.text(0, 0, f"${_mathtext(latex)}$", fontsize=17, color=COLOUR["ink"])
            drawing.savefig(
                buffer,
                format="svg",
                metadata=empty,
                bbox_inches="tight",
                pad_inches=0.03,
                transparent=True,
            )
    except ValueError:  # mathtext knows a part of LaTeX
        return None
    return inline(buffer.getvalue(), keep_size=True)


# What the catalogue uses of LaTeX beyond mathtext, in mathtext's words.
_TOKEN = r"\s*(\\[A-Za-z]+|[^\s{}\\\[])"
_GROUP = r"\s*(\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}|\\[A-Za-z]+|[^\s{}\\])"
_FRACTION = re.compile(rf"\\[td]frac{_GROUP}{_GROUP}")
_WORDS = re.compile(r"\\text\{([^{}]*)\}")
_TRANSLATIONS = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (rf"\\(sqrt|mathcal|mathbb|hat|tilde|bar){_TOKEN}", r"\\\1{\2}"),
        (r"\\[Bb]igg?l(?![A-Za-z])", r"\\left"),
        (r"\\[Bb]igg?r(?![A-Za-z])", r"\\right"),
        (r"\\le(?![A-Za-z])", r"\\leq "),
        (r"\\ge(?![A-Za-z])", r"\\geq "),
    )
)


def _mathtext(latex: str) -> str:
    latex = _WORDS.sub(lambda found: r"\mathrm{" + found[1].replace(" ", r"\ ") + "}", latex)
    for pattern, replacement in _TRANSLATIONS:
        latex = pattern.sub(replacement, latex)
    found = 1
    while found:  # a fraction may hold another
        latex, found = _FRACTION.subn(r"\\frac{\1}{\2}", latex)
    return latex


def _role(word: str) -> str:
    """Return the colour of a verdict."""
    tone = VERDICT_TONES.get(word)
    return "muted" if tone is None else str(tone)


def _beside(axes: Axes, row: int, text: str) -> None:
    """Write at the right end of a row."""
    axes.annotate(
        text,
        (1.0, row),
        xycoords=axes.get_yaxis_transform(),
        xytext=(8, 0),
        textcoords="offset points",
        va="center",
        color=COLOUR["muted"],
    )


def _interval_mark(
    canvas: Canvas, axes: Axes, row: int, name: str, score: Score, colour: str, floor: float | None
) -> None:
    ends = [score.low, score.high]
    value = score.value
    if floor is not None:
        ends, value = [max(end, floor) for end in ends], max(value, floor)
    if all(map(math.isfinite, ends)):
        axes.hlines(row, ends[0], ends[1], color=colour, linewidth=2.4)
    (mark,) = axes.plot(value, row, "o", color=colour, markersize=6.5)
    canvas.tip(
        mark, f"{display(name, limit=60)}: {number(score.value)} {interval(score.low, score.high)}"
    )


def _value_scale(canvas: Canvas, axes: Axes, scores: Sequence[Score]) -> float | None:
    """Choose a linear or logarithmic axis; returns the smallest value that a log axis shows."""
    values = [score.value for score in scores if math.isfinite(score.value)]
    if not values or min(values) <= 0.0 or max(values) < 20.0 * min(values):
        _few_ticks(axes.xaxis, 5)
        return None
    floor = min(values) / 2.0
    tops = [score.high for score in scores if math.isfinite(score.high)]
    axes.set_xscale("log")
    axes.set_xlim(floor * 0.95, max(values + tops) * 1.1)
    _log_ticks(canvas, axes)
    return floor


def _log_axis(canvas: Canvas, axes: Axes, values: Sequence[float]) -> None:
    low, high = min(values), max(values)
    room = max((high / low) ** 0.04, 1.05)
    axes.set_xscale("log")
    axes.set_xlim(low / room, high * room)
    _log_ticks(canvas, axes)


def _log_ticks(canvas: Canvas, axes: Axes, *, vertical: bool = False) -> None:
    """Ticks of a logarithmic axis as plain text, never mathematics."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    low, high = axes.get_ylim() if vertical else axes.get_xlim()
    axis = axes.yaxis if vertical else axes.xaxis
    few = math.log10(high / low) < 2.2
    subs = (1.0, 2.0, 5.0) if few else (1.0,)
    axis.set_major_locator(LogLocator(subs=subs, numticks=5 if canvas.narrow else 8))
    axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axis.set_minor_formatter(NullFormatter())
    if vertical:
        axis.set_minor_locator(NullLocator())


def _few_ticks(axis: Axis, count: int) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(count, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))


def _legend(canvas: Canvas, names: Sequence[str], *, dashed_last: bool = False) -> float:
    """Draw a legend above the axes; return the room it takes.

    Its texts are tokens, whose width matplotlib cannot know.
    """
    from matplotlib.lines import Line2D

    columns = 2 if canvas.narrow else 4
    step = (canvas.width - 24) / columns
    for index, name in enumerate(names):
        x = 12 + step * (index % columns)
        y = 1.0 - (14 + 18 * (index // columns)) / canvas.height
        dashed = dashed_last and index == len(names) - 1
        line = Line2D([x / canvas.width, (x + 16) / canvas.width], [y, y], linewidth=2.4)
        line.set_color(COLOUR["ink"] if dashed else COLOUR[f"series-{index % SERIES}"])
        if dashed:
            line.set(linestyle=(0, (4, 3)), linewidth=1)
        canvas.figure.add_artist(line)
        limit = 17 if canvas.narrow else 20
        canvas.figure.text(
            (x + 22) / canvas.width, y, canvas.name(name, limit=limit), va="center_baseline"
        )
    return 22.0 + 18 * math.ceil(len(names) / columns)
