"""Where the samples of a selection went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from genbounds._text import count, number, percent, shown
from genbounds.report._canvas import COLOUR, SERIES, WIDE, Canvas, drawn, left_margin, rows_axes
from genbounds.report.blocks import Figure, Name, Table
from genbounds.report.figures._axes import beside, few_ticks, label, legend
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
            role = "accent" if name == best else "muted"
            (bar,) = axes.barh(
                row,
                samples[name],
                height=0.62,
                color=COLOUR[role if name == best else "paper"],
                edgecolor=COLOUR[role],
                linewidth=1.2,
            )
            canvas.tip(bar, f"{shown(name)}: {count(samples[name], 'sample')}")
            label(axes, canvas.text(number(samples[name])), (samples[name], row), 5)
        few_ticks(axes.xaxis, 4 if canvas.narrow else 7)
        axes.set_xlim(0, max(*samples.values(), 1) * 1.02)
        axes.set_xlabel("samples drawn")
        return canvas

    return drawn(
        picture,
        alt=(
            f"Samples drawn from each of {count(len(names), 'arm')}, {number(total)} together; "
            f"most from {shown(names[0])}, {number(samples[names[0]])}."
        ),
        caption="Where the samples went. The arm that was selected is filled.",
        table=Table(
            columns=("Arm", "Samples", "Share"),
            rows=[
                (Name(name), samples[name], percent(round(samples[name] / max(total, 1), 4)))
                for name in names
            ],
        ),
    )


# Branches: what is drawn depends on which results there are.
def spending_plot(steps: Sequence[int], spent: Mapping[str, Sequence[int]]) -> Figure:
    """Show which arms were drawn from as a selection went on.

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
    edges, shares = _shares(steps, [spent[name] for name in names])

    def picture(width: float) -> Canvas:
        canvas = Canvas(width, 300 if width == WIDE else 270)
        top = legend(canvas, names[:SERIES], squares=True)
        right = 14.0 + left_margin(names, narrow=canvas.narrow)
        axes = canvas.axes(left=56, right=right, top=top, bottom=46, grid="")
        bottom = [0.0] * len(shares[0])
        for index, (name, share) in enumerate(zip(names, shares, strict=True)):
            above = [low + part for low, part in zip(bottom, share, strict=True)]
            band = axes.fill_between(
                edges,
                [*bottom, bottom[-1]],
                [*above, above[-1]],
                step="post",
                color=COLOUR[f"series-{index}" if index < SERIES else "grid"],
                edgecolor=COLOUR["paper"],
                linewidth=0.8,
            )
            canvas.tip(band, f"{shown(name)}: {number(spent[name][-1])} samples at the end")
            if share[-1] > 0.07:  # as high as the text
                style = {"color": COLOUR["ink"], "va": "center_baseline"}
                beside(axes, (bottom[-1] + above[-1]) / 2.0, canvas.name(name), **style)
            bottom = above
        few_ticks(axes.xaxis, 4 if canvas.narrow else 7)
        axes.set_yticks([0.0, 0.5, 1.0], [percent(share) for share in (0.0, 0.5, 1.0)])
        axes.set_xlabel("samples drawn in total")
        axes.set_ylabel("share of the draws")
        axes.set_xlim(edges[0], edges[-1])
        axes.set_ylim(0.0, 1.0)
        return canvas

    points = sorted({round(i * (len(steps) - 1) / 9) for i in range(10)})
    return drawn(
        picture,
        alt=(
            f"Share of the draws that each of {count(len(names), 'arm')} had over time, up to "
            f"{number(steps[-1])} samples in total; most went to {shown(names[0])}."
        ),
        caption=(
            "Which arms were drawn from as the selection went on, from bottom to top in the order "
            "of the legend. An arm that was given up has no share any more."
            + ("" if len(names) <= SERIES else f" The legend names the {SERIES} most drawn.")
        ),
        table=Table(
            columns=("Arm", *(f"at {number(steps[i])}" for i in points)),
            rows=[(Name(name), *(spent[name][i] for i in points)) for name in names],
            caption="Samples drawn from each arm, by the total",
        ),
    )


def _shares(
    steps: Sequence[int], lines: Sequence[Sequence[int]]
) -> tuple[list[int], list[list[float]]]:
    """Return edges of stretches of time, and each line's share of what was drawn in each.

    A stretch holds several rounds of all lines, so that taking turns looks like taking turns.
    """
    stretches = min(max(len(steps) // (4 * len(lines)), 1), 40)
    ends = [round((k + 1) * len(steps) / stretches) - 1 for k in range(stretches)]
    edges, shares = [0], [list[float]() for _ in lines]
    last = [0] * len(lines)
    for end in ends:
        now = [line[end] for line in lines]
        drawn = sum(now) - sum(last)
        if drawn == 0:
            continue
        for share, one, before in zip(shares, now, last, strict=True):
            share.append((one - before) / drawn)
        edges.append(steps[end])
        last = now
    return edges, shares
