"""How near generated rows are to training rows and to held-out ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from genbounds._text import number
from genbounds.report._canvas import COLOUR, WIDE, Canvas, drawn
from genbounds.report.blocks import Figure, Table
from genbounds.report.figures._axes import DASHED, few_ticks, legend

if TYPE_CHECKING:
    from genbounds.explain import Memorisation

SIDES = ("nearest: training", "nearest: held out")


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
    edges, *sides = result.densities()

    def picture(width: float) -> Canvas:
        canvas = Canvas(width, 300 if width == WIDE else 270)
        top = 8.0 + legend(canvas, SIDES)
        axes = canvas.axes(left=62, right=14, top=top, bottom=46, grid="y")
        for index, heights in enumerate(sides):
            colour = COLOUR[f"series-{index}"]
            if not index:  # told apart without colours too
                axes.stairs(heights, edges, color=colour, fill=True, alpha=0.3)
            line = axes.stairs(heights, edges, color=colour, linewidth=1.8)
            near = float(heights[edges[1:] <= result.closer].sum())
            canvas.tip(line, f"{SIDES[index]}: {number(near)} near copies per real row")
        axes.axvline(result.closer, **DASHED)
        axes.set_xlim(0.0, 1.0)
        axes.set_ylim(0.0, 1.08 * max(float(heights.max()) for heights in sides))
        few_ticks(axes.xaxis, 5)
        few_ticks(axes.yaxis, 4)
        axes.set_xlabel("distance ratio" if canvas.narrow else "distance to nearest / to fifth")
        axes.set_ylabel("per real row")
        return canvas

    near, every = result.near, result.every
    rows = f"{result.unit}s"
    return drawn(
        picture,
        alt=(
            f"Ratios of {number(result.n)} generated rows. Of {number(near.hit)} real {rows} with "
            f"near copies {number(near.trained)} were trained on, {number(near.expected)} expected."
        ),
        caption=(
            "Distance of generated rows to the nearest real row, over that to the fifth: generated "
            "rows whose nearest row was trained on (shaded), per training row, and those whose "
            "nearest row was held out, per held-out row. Both lines agree, up to noise, where the "
            "output does not depend on which rows were trained on; copies stand left of the dashed "
            "line."
        ),
        table=Table(
            columns=("Generated rows", f"Real {rows} hit", "Trained on", "Expected", "p"),
            rows=[
                (name, part.hit, part.trained, part.expected, part.pvalue)
                for name, part in (("near copies", near), ("all", every))
            ],
        ),
    )
