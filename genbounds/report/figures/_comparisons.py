"""Who is distinguishable from whom, and who is how far behind."""

from __future__ import annotations

import math

from genbounds.files import display
from genbounds.report._canvas import COLOUR, WIDE, Canvas, draw, left_margin, rows_axes
from genbounds.report._text import interval, number, percent
from genbounds.report.blocks import Figure, Name, Table, Tag
from genbounds.report.figures._axes import DASHED
from genbounds.results import Ranking
from genbounds.validation import InputError

LARGEST_MATRIX = 40


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
    _check_several(ranking)
    names = list(ranking.scores)[:LARGEST_MATRIX]
    k = len(names)
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
    _check_several(ranking)
    first, *others = ranking.scores
    pairs = [ranking.difference(first, name) for name in others]
    # Better minus worse is negative where small scores are good; what is shown is what is lacking.
    sign = -1.0 if any(pair.value < 0.0 for pair in pairs) else 1.0
    gaps = [
        (sign * pair.value, *sorted((sign * pair.low, sign * pair.high)), pair.distinguishable)
        for pair in pairs
    ]

    def picture(width: float) -> Canvas:
        canvas, axes = rows_axes(width, others, right=18)
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
        axes.axvline(0.0, **DASHED)
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


def _check_several(ranking: Ranking) -> None:
    if len(ranking.scores) < 2:
        raise InputError(
            f"`ranking` must hold at least 2 models to compare; got {len(ranking.scores)}."
        )
