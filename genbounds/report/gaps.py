"""How far every model is behind the first one, with intervals that hold jointly."""

from __future__ import annotations

import math

from genbounds.files import display
from genbounds.report._canvas import COLOUR, Canvas, draw, row_height, rows_axes
from genbounds.report._text import interval, number, percent
from genbounds.report.blocks import Figure, Name, Table, Tag
from genbounds.results import Ranking
from genbounds.validation import InputError


def gap_plot(ranking: Ranking) -> Figure:
    """Show how far each model is behind the first, with simultaneous intervals.

    Parameters
    ----------
    ranking : Ranking
        Of at least two models.

    Returns
    -------
    Figure
        Distances behind the first model, on the scale of `Ranking.differences`; those whose
        interval holds zero may be as good as the first.

    Raises
    ------
    InputError
        If there is one model only.
    """
    first, *others = ranking.scores
    if not others:
        raise InputError("`ranking` must hold at least 2 models to compare; got 1.")
    pairs = [ranking.difference(first, name) for name in others]
    # Better minus worse is negative where small scores are good; what is shown is what is lacking.
    sign = -1.0 if any(pair.value < 0.0 for pair in pairs) else 1.0
    gaps = [
        (sign * pair.value, *sorted((sign * pair.low, sign * pair.high)), pair.distinguishable)
        for pair in pairs
    ]

    def picture(width: float) -> Canvas:
        canvas = Canvas(width, 56 + row_height(len(others)) * len(others))
        axes = rows_axes(canvas, others, right=18)
        for row, (name, (value, low, high, certain)) in enumerate(zip(others, gaps, strict=True)):
            colour = COLOUR["muted" if certain else "accent"]
            if math.isfinite(low) and math.isfinite(high):
                axes.hlines(row, low, high, color=colour, linewidth=2.4)
            (mark,) = axes.plot(value, row, "o", color=colour, markersize=6.5)
            canvas.tip(
                mark,
                f"{display(name, limit=60)}: {number(value)} behind {interval(low, high)}"
                + ("" if certain else ", may be as good"),
            )
        axes.axvline(0.0, color=COLOUR["ink"], linewidth=1, linestyle=(0, (4, 3)))
        axes.set_xlabel("behind the first")
        return canvas

    wide, narrow = draw(picture)
    open_ones = sum(not certain for *_, certain in gaps)
    return Figure(
        wide=wide,
        narrow=narrow,
        alt=(
            f"How far {len(others)} other model{'s' * (len(others) > 1)} lie behind "
            f"{display(first, limit=60)}, with simultaneous intervals; {open_ones} of them may be "
            "as good."
        ),
        caption=(
            f"How far each model is behind {display(first, limit=60)}. Lines are simultaneous "
            f"{percent(ranking.level)} intervals: all of them, and those of all other pairs, hold "
            "together. In colour: whoever may be as good, its line reaching zero."
        ),
        table=Table(
            columns=("Model", "Behind", "Low", "High", "Distinguishable"),
            rows=[
                (Name(name), value, low, high, Tag("yes", "good") if certain else Tag("no"))
                for name, (value, low, high, certain) in zip(others, gaps, strict=True)
            ],
        ),
    )
