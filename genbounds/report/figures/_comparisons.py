"""Which models differ significantly, and by how much."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from genbounds._text import count, interval, number, percent, short, shown
from genbounds.report._canvas import COLOUR, WIDE, Canvas, drawn, left_margin
from genbounds.report.blocks import Figure, Name, Table, Tag
from genbounds.report.figures._axes import Row, interval_rows, linear_scale
from genbounds.report.wording import lead_of
from genbounds.results import Difference, Ranking
from genbounds.validation import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LARGEST_MATRIX = 40


def difference_matrix(ranking: Ranking) -> Figure:
    """Show which pairs of models differ significantly.

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
    pairs = [
        pair for pair in ranking.differences if pair.better in position and pair.worse in position
    ]
    significant = sum(pair.distinguishable for pair in pairs)
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
        for pair in pairs:
            _pair_cell(canvas, axes, pair, position)
        for index in range(k):
            axes.plot(index, index, ".", color=COLOUR["muted"], markersize=2)
        return canvas

    return drawn(
        picture,
        alt=(
            f"Matrix of {count(len(pairs), 'pair')} of {k} models; {significant} differ "
            f"significantly, {len(pairs) - significant} do not."
        ),
        caption=(
            "Every pair of models; columns are numbered as the rows. Filled: the row is "
            "significantly better than the column; all these statements hold together at "
            f"{percent(ranking.level)}. Open: no significant difference."
            + (f" {count(left_out, 'model')} ranked lower are left out." if left_out else "")
        ),
        table=Table(
            columns=("Better", "Difference", "Worse", "Low", "High", "p, adjusted", "Significant"),
            rows=[
                (
                    Name(p.better),
                    p.value,
                    Name(p.worse),
                    p.low,
                    p.high,
                    p.pvalue_adjusted,
                    _answer(p),
                )
                for p in pairs
            ],
            caption=f"Differences with simultaneous {percent(ranking.level)} intervals"
            + (" (of logarithms)" if ranking.log_scale else ""),
        ),
    )


def _pair_cell(canvas: Canvas, axes: Axes, pair: Difference, position: dict[str, int]) -> None:
    from matplotlib.patches import Rectangle

    i, j = sorted((position[pair.better], position[pair.worse]))
    certain = pair.distinguishable
    patch = Rectangle(
        (j - 0.44, i - 0.44),
        0.88,
        0.88,
        facecolor=COLOUR["accent" if certain else "paper"],
        edgecolor=COLOUR["accent" if certain else "muted"],
        linewidth=0.8,
    )
    axes.add_patch(patch)
    canvas.tip(
        patch,
        f"{shown(pair.better)} − {shown(pair.worse)}: {number(pair.value)} "
        f"{interval(pair.low, pair.high)}" + ("" if certain else ", not significant"),
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
        Distances behind the first model (ratios, where the differences are those of logarithms);
        models whose interval holds zero (one) may be as good as the first.

    Raises
    ------
    InputError
        If there is one model only.
    """
    _check_several(ranking)
    first, *others = ranking.scores
    pairs = [ranking.difference(first, name) for name in others]
    leads = [lead_of(pair, log_scale=ranking.log_scale) for pair in pairs]
    none = 1.0 if ranking.log_scale else 0.0

    rows = []
    for name, pair, (value, *limits) in zip(others, pairs, leads, strict=True):
        tip = f"{shown(name)}: {number(value)} behind {interval(*limits)}"
        look = ("muted", "open") if pair.distinguishable else ("accent", "filled")
        doubt = "" if pair.distinguishable else ", may be as good"
        rows.append(Row(name, (limits[0], value, limits[1]), *look, tip + doubt))
    picture = partial(
        interval_rows,
        rows=rows,
        label="score of the first over this one's" if ranking.log_scale else "behind the first",
        scale=partial(linear_scale, values=[none, *(end for lead in leads for end in lead)]),
        lines=[none],
    )
    open_ones = sum(not pair.distinguishable for pair in pairs)
    what = (
        f"The score of {shown(first)} as a multiple of each other model's."
        if ranking.log_scale
        else f"How far each model is behind {shown(first)}."
    )
    return drawn(
        picture,
        alt=(
            f"How far {count(len(others), 'other model')} lie behind {shown(first)}, with "
            f"simultaneous intervals; {open_ones} of them may be as good."
        ),
        caption=(
            f"{what} Lines are simultaneous {percent(ranking.level)} intervals: all of them, and "
            "those of all other pairs, hold together. Filled: may be as good; the line reaches "
            f"the dashed {short(none)}."
        ),
        table=Table(
            columns=("Model", "Behind", "Low", "High", "Significant"),
            rows=[
                (Name(name), *lead, _answer(pair))
                for name, pair, lead in zip(others, pairs, leads, strict=True)
            ],
        ),
    )


def _answer(pair: Difference) -> Tag:
    return Tag("yes", "good") if pair.distinguishable else Tag("no")


def _check_several(ranking: Ranking) -> None:
    if len(ranking.scores) < 2:
        raise InputError(
            f"`ranking` must hold at least 2 models to compare; got {len(ranking.scores)}."
        )
