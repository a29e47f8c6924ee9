"""A training run: score against step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from genbounds._text import count, interval, number, percent, short
from genbounds.report._canvas import COLOUR, WIDE, Canvas, drawn
from genbounds.report.blocks import Cell, Figure, Table, Tag, Tone
from genbounds.report.figures._axes import DASHED, band, few_ticks
from genbounds.report.figures._convergence import upright_scale
from genbounds.report.wording import metric_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from genbounds.decisions import Look, Track

MARKS = {
    "first": ("o", "accent"),
    "improved": ("^", "good"),
    "undecided": ("o", "accent"),
    "collapsed": ("v", "bad"),
    "unreliable": ("X", "muted"),
}
"""Mark and colour of every state of a look: told apart without colours too."""

TONES: dict[str, Tone] = {"improved": "good", "collapsed": "bad", "unreliable": "open"}


def track_plot(track: Track) -> Figure:
    """Show the score of every checkpoint against its step, with simultaneous bands.

    Parameters
    ----------
    track : genbounds.decisions.Track

    Returns
    -------
    Figure
        Triangles are looks that improved or collapsed; the dashed line is the kept checkpoint.
    """
    title = metric_title(track.metric)
    looks = track.looks
    scores = [look.score for look in looks]
    steps = [look.step for look in looks]

    def picture(width: float) -> Canvas:
        canvas = Canvas(width, 300 if width == WIDE else 270)
        axes = canvas.axes(left=62, right=18, top=12, bottom=46, grid="both")
        margin = 0.03 * (steps[-1] - steps[0]) or 1.0
        axes.set_xlim(steps[0] - margin, steps[-1] + margin)
        few_ticks(axes.xaxis, 4 if canvas.narrow else 7)
        floor = upright_scale(canvas, axes, scores, [score.value for score in scores])
        band(axes, steps, scores, floor, COLOUR["accent"])
        values = [max(score.value, floor) for score in scores]
        axes.plot(steps, values, color=COLOUR["accent"], linewidth=1.6)
        axes.axvline(track.best, **DASHED)
        for look, value in zip(looks, values, strict=True):
            _mark(canvas, axes, look, value)
        axes.set_xlabel("step")
        axes.set_ylabel(title)
        return canvas

    best = track.scores[track.best]
    states = [look.state for look in looks]
    rows: list[tuple[Cell, ...]] = [
        (
            short(look.step),
            look.score.value,
            look.score.low,
            look.score.high,
            look.score.n,
            Tag(look.state, TONES.get(look.state, "plain")),
        )
        for look in looks
    ]
    return drawn(
        picture,
        alt=(
            f"{title} at {count(len(looks), 'step')}, from {number(scores[0].value)} at step "
            f"{short(steps[0])} to {number(scores[-1].value)} at step {short(steps[-1])}; "
            f"{states.count('improved')} improved, {states.count('collapsed')} collapsed. "
            f"The best value, {number(best.value)}, is that of step {short(track.best)}."
        ),
        caption=(
            f"{title} by step. The band holds at all looks together with probability "
            f"{percent(track.level)}. Triangle up: better than every earlier step; triangle down: "
            "worse than an earlier one; cross: unreliable. The dashed line is the step to keep."
        ),
        table=Table(columns=("Step", "Value", "Low", "High", "n", "State"), rows=rows),
    )


def _mark(canvas: Canvas, axes: Axes, look: Look, value: float) -> None:
    shape, role = MARKS[look.state]
    size = 7.0 if shape == "o" else 10.0
    edge = COLOUR["paper"]
    (mark,) = axes.plot(
        look.step, value, shape, color=COLOUR[role], markersize=size, markeredgecolor=edge
    )
    score = look.score
    canvas.tip(
        mark,
        f"step {short(look.step)}: {number(score.value)} {interval(score.low, score.high)}, "
        f"{look.state}",
    )
