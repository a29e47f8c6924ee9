"""A verdict with its margin, and what more samples would give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from genbounds._text import interval, number, percent, short, shown
from genbounds.report._canvas import COLOUR, WIDE, Canvas, drawn
from genbounds.report.blocks import Cell, Figure, Name, Table, Tag, Tone
from genbounds.report.figures._axes import (
    DASHED,
    Row,
    few_ticks,
    interval_rows,
    linear_scale,
    log_axis,
    log_ticks,
)
from genbounds.report.wording import metric_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from genbounds.decisions import Plan, Verdict

DECISION_TONES: dict[str, Tone] = {
    "pass": "good", "consistent": "good", "fail": "bad", "not": "bad", "inconclusive": "open",
}  # fmt: skip
"""How a decision is coloured."""


def gate_plot(verdict: Verdict) -> Figure:
    """Show how much worse the candidate is, with its limits, beside the margin.

    Parameters
    ----------
    verdict : Verdict

    Returns
    -------
    Figure
        It passes where the line ends before the shaded part.
    """
    ends = (verdict.low, verdict.worse_by, verdict.high)
    role = {"pass": "good", "fail": "bad"}.get(verdict.decision, "accent")
    limits = interval(verdict.low, verdict.high)
    places = [verdict.margin, *([-verdict.margin] if verdict.equivalence else [])]

    def scale(canvas: Canvas, axes: Axes) -> float:
        zero = linear_scale(canvas, axes, values=[0.0, *places, *ends], margin=0.08)
        left, right = axes.get_xlim()
        for start, stop in [(verdict.margin, right), (left, -verdict.margin)][: len(places)]:
            axes.axvspan(start, stop, color=COLOUR["bad"], alpha=0.12, linewidth=0)
        return zero

    mark = "filled" if verdict.reliable else "cross"
    tip = f"worse by {number(verdict.worse_by)} {limits}"
    picture = partial(
        interval_rows,
        rows=[Row(verdict.candidate, ends, role, mark, tip)],
        label=f"{metric_title(verdict.metric)}: worse by",
        scale=scale,
        lines=places,
    )
    within = "within the unshaded part" if verdict.equivalence else "before the shaded part"
    return drawn(
        picture,
        alt=(
            f"{shown(verdict.candidate)} is worse than {shown(verdict.baseline)} by "
            f"{number(verdict.worse_by)}, limits {limits}, margin {number(verdict.margin)}."
        ),
        caption=(
            f"How much worse the candidate is than the baseline; the dashed line is the margin. "
            f"Either end of the line is a one-sided limit at {percent(verdict.level)}. It passes "
            f"where the whole line lies {within}."
        ),
        table=Table(
            columns=("Candidate", "Baseline", "Worse by", "Low", "High", "Margin", "Decision"),
            rows=[
                (
                    Name(verdict.candidate),
                    Name(verdict.baseline),
                    verdict.worse_by,
                    verdict.low,
                    verdict.high,
                    verdict.margin,
                    Tag(verdict.decision, DECISION_TONES[verdict.decision]),
                )
            ],
        ),
    )


def plan_plot(plan: Plan) -> Figure:
    """Show the predicted half-width, or power, against the number of generated samples.

    Parameters
    ----------
    plan : Plan

    Returns
    -------
    Figure
    """
    of_power = plan.powers is not None
    curve = plan.half_widths if plan.powers is None else plan.powers
    wanted = (plan.power if of_power else plan.half_width) or 0.0
    floor = None if of_power or plan.feasible else plan.limit
    picture = _curve(
        plan.sizes.tolist(),
        curve.tolist(),
        label="generated samples n",
        upright="power" if of_power else "half-width",
        wanted=wanted,
        at=plan.n,
        floor=floor,
    )
    what = _measured(plan) if plan.gap is None else f"a difference of {short(plan.gap)}"
    return drawn(
        picture,
        alt=f"Predicted {'power' if of_power else 'half-width'} against n. {plan}.",
        caption=(
            f"Predicted {'power to find' if of_power else 'half-width of the interval for'} {what} "
            "against the number of generated samples"
            f"{' of each model' if plan.two_models else ''}. Dashed: the target."
            + ("" if floor is None else " Dotted: what no number of generated samples gets below.")
        ),
        table=width_table(plan),
    )


def width_table(plan: Plan) -> Table:
    """Return the predicted half-width, and power, of some numbers of samples."""
    rows: list[tuple[Cell, ...]] = [
        (n, width, *([] if power is None else [percent(round(power, 3))]))
        for n, width, power in plan.rows()
    ]
    return Table(("n", "Half-width", *["Power"] * (plan.powers is not None)), rows)


def reference_plot(plan: Plan) -> Figure | None:
    """Show the predicted half-width against the number of reference samples.

    Parameters
    ----------
    plan : Plan

    Returns
    -------
    Figure or None
        None where the reference is exact, or there is none.
    """
    sizes, widths = plan.reference_sizes, plan.reference_half_widths
    if sizes is None or widths is None or not widths.min() > 0.0:
        return None
    picture = _curve(
        sizes.tolist(),
        widths.tolist(),
        label="reference samples m",
        upright="half-width",
        wanted=plan.half_width,
        at=None,
        floor=None,
    )
    generated = "any number of" if plan.n is None else number(plan.n)
    step = max(1, (len(sizes) - 1) // 4)
    return drawn(
        picture,
        alt=f"Predicted half-width against m, with {generated} generated samples.",
        caption=(
            f"Predicted half-width of the interval for {_measured(plan)}, with {generated} samples"
            f"{' of each model' if plan.two_models else ' of the model'}, against the number of "
            "reference samples." + ("" if plan.half_width is None else " Dashed: the target.")
        ),
        table=Table(
            ("m", "Half-width"),
            [(round(m), w) for m, w in zip(sizes[::step], widths[::step], strict=True)],
        ),
    )


def _measured(plan: Plan) -> str:
    """Return what the interval is for."""
    title = metric_title(plan.metric)
    return f"the difference of both models in {title}" if plan.two_models else title


def _curve(
    sizes: Sequence[float],
    values: Sequence[float],
    *,
    label: str,
    upright: str,
    wanted: float | None,
    at: float | None,
    floor: float | None,
) -> Callable[[float], Canvas]:
    """Return what draws one predicted curve with its target, and the place where it is reached."""

    def picture(width: float) -> Canvas:
        canvas = Canvas(width, 280 if width == WIDE else 250)
        axes = canvas.axes(left=62, right=14, top=12, bottom=46, grid="both")
        log_axis(canvas, axes, sizes)
        (curve,) = axes.plot(sizes, values, color=COLOUR["accent"], linewidth=1.8)
        ends = (f"{number(values[k])} at {number(round(sizes[k]))}" for k in (0, -1))
        canvas.tip(curve, f"{upright} {', '.join(ends)}")
        if wanted is not None:
            axes.axhline(wanted, **DASHED)
        if floor is not None:
            axes.axhline(floor, color=COLOUR["muted"], linewidth=1.2, linestyle=(0, (1, 2)))
        if at is not None and wanted is not None:
            (mark,) = axes.plot(
                at, wanted, "o", color=COLOUR["accent"], markersize=7, clip_on=False, zorder=4
            )
            canvas.tip(mark, f"n = {number(at)}")
        if upright == "power":
            axes.set_ylim(0.0, 1.02)
            few_ticks(axes.yaxis, 6)
        else:
            seen = [*values, *(x for x in (wanted, floor) if x)]
            axes.set_yscale("log")
            axes.set_ylim(min(seen) / 1.15, max(seen) * 1.15)
            log_ticks(canvas, axes, vertical=True)
        axes.set_xlabel(label)
        axes.set_ylabel(upright)
        return canvas

    return picture
