"""Where the samples of a selection went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from genbounds.files import display
from genbounds.report._canvas import COLOUR, SERIES, WIDE, Canvas, draw, rows_axes
from genbounds.report._text import number, percent
from genbounds.report.blocks import Figure, Name, Table
from genbounds.report.figures._axes import few_ticks, legend
from genbounds.validation import InputError


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
        canvas, axes = rows_axes(width, names, right=62)
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
        few_ticks(axes.xaxis, 4 if canvas.narrow else 7)
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
        top = legend(canvas, names[:SERIES])
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
        few_ticks(axes.xaxis, 4 if canvas.narrow else 7)
        few_ticks(axes.yaxis, 6)
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
