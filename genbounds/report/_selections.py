"""The pages of `genbounds select`, of its plan, and of mixtures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from genbounds import _drawing as draw
from genbounds._drawing import COLOUR, SERIES, Scale, Style
from genbounds._text import count, display, interval, number, percent, shown
from genbounds.report import _scores as scored
from genbounds.report.blocks import Block, Cell, Figure, Name, Notes, Table, Tag
from genbounds.report.page import Page, Section, answer_page, drawn
from genbounds.report.wording import stop_reason
from genbounds.results import Diagnostic, Score
from genbounds.validation import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from genbounds.mixtures import Mixture, MixtureSelection
    from genbounds.select import ContextSelection, Selection, SelectionPlan


def select_page(selection: Selection, *, warnings: Sequence[Diagnostic] = ()) -> Page:
    """Build the page of `genbounds select`.

    Parameters
    ----------
    selection : genbounds.select.Selection
    warnings : sequence of Diagnostic
        About the whole run: its files, for one.
    """
    title, at = scored.metric_title(selection.metric), percent(selection.confidence)
    why = "" if selection.certified else f"; {stop_reason(selection.stopped)}"
    took = f"in {count(selection.steps, 'step')}, policy {selection.policy}"
    aside = len(selection.set_aside) == len(selection.samples)
    best = "no model" if aside else Name(selection.best)
    page = answer_page(
        "Which model is best?",
        selection_line(selection),
        ("Best" if selection.certified else "Ahead", best, title),
        ("Answer", certificate(selection.certified), f"at {at}{why}"),
        ("Samples", selection.total_samples, took),
    )
    spent = spending_plot(*spending(selection))
    figures = [samples_plot(selection.samples, best=selection.best), spent]
    page.add(Section("Where the samples went", figures))
    warned, *basis = scored.remarks(selection.scores, warnings)
    blocks: list[Block] = [warned]
    if selection.scores:
        blocks += [
            scored.score_plot(
                selection.scores, metric=selection.metric, level=selection.confidence
            ),
            "The intervals of all arms, at all times of the run, hold together with probability "
            f"{at}.",
        ]
    blocks += [*set_aside(selection.set_aside), *basis]
    blocks.append(Notes(items=selection.notes, title="What the answer assumes"))
    return page.add(Section("Scores at the end", blocks))


def selection_line(selection: Selection) -> str:
    """Say which models are best, of how many, from how many samples."""
    best, at = ", ".join(map(shown, selection.top)), percent(selection.confidence)
    are = "is" if len(selection.top) == 1 else "are"
    most = "" if len(selection.top) == 1 else f" {len(selection.top)}"
    left = len(selection.samples) - len(selection.set_aside)
    of = f"of {count(left, 'model')}{' left' if selection.set_aside else ''}"
    by = f"by {scored.metric_title(selection.metric)}"
    total = count(selection.total_samples, "sample")
    if selection.certified:
        return f"{best} {are} the best{most} {of} {by} from {total}, {selection.verdict}."
    if not left:
        return "Not certified: every model was set aside."
    why = stop_reason(selection.stopped)
    return f"{best} {are} ahead, {of} {by}, but {total} do not certify that at {at}: {why}."


def set_aside(arms: Mapping[str, str]) -> list[Block]:
    """Return the arms that were set aside, and why, if there are any."""
    rows = [(Name(arm), display(why, limit=300)) for arm, why in arms.items()]
    return [Table(("Arm", "Why"), rows, "Arms that were set aside")] if rows else []


def certificate(certified: bool) -> Tag:
    """Return whether an answer is certified, as a coloured word."""
    return Tag("certified", "good") if certified else Tag("not certified", "open")


def contexts_page(result: ContextSelection, *, warnings: Sequence[Diagnostic] = ()) -> Page:
    """Build the page of a selection with contexts.

    Parameters
    ----------
    result : genbounds.select.ContextSelection
    warnings : sequence of Diagnostic
        About the whole run: its files, for one.
    """
    of, undecided = count(len(result.contexts), "context"), len(result.undecided)
    at = f"at {percent(result.confidence)}"
    answer = Tag("all certified", "good") if result.certified else Tag("undecided in part", "open")
    page = answer_page(
        "Which model for which kind of prompt?",
        contexts_line(result),
        ("Answer", answer, f"all winners right together {at}"),
        ("Undecided", undecided, f"of {of}"),
        ("Samples", result.total_samples, f"by {scored.metric_title(result.metric)}"),
    )
    scores = result.recommended_scores
    warned, *basis = scored.remarks(scores, warnings)
    blocks: list[Block] = [warned, winner_table(result)]
    if not result.certified:
        blocks.append(
            "Where nothing is certified, the recommended model is the best by estimates that are "
            "pooled over contexts: no guarantee."
        )
    page.add(Section("The winner in each context", blocks))
    for context, selection in result.contexts.items():
        page.add(Section(shown(str(context)), _context(selection)))
    first = list(dict.fromkeys(n for one in result.contexts.values() for n in one.notes[:1]))
    notes = Notes(items=first, title="What the answer assumes")
    return page.add(Section("What this rests on", [*basis, notes]))


def contexts_line(result: ContextSelection) -> str:
    """Say in how many contexts the best model is known."""
    total, decided = len(result.contexts), len(result.contexts) - len(result.undecided)
    at = f"together at {percent(result.confidence)}"
    if result.certified:
        return f"A best model in each of {total} contexts, {at}."
    return f"Not certified in all contexts: {decided} of {total} decided, {at}."


def winner_table(result: ContextSelection) -> Table:
    """Return the winner in each context, and the score of the recommended model."""
    rows: list[tuple[Cell, ...]] = []
    for context, selection in result.contexts.items():
        score, winner = result.recommended_scores.get(str(context)), result.winners[context]
        won = Tag("undecided", "open") if winner is None else Name(winner)
        value = (None, "–") if score is None else (score.value, interval(score.low, score.high))
        undecided = ", ".join(map(shown, selection.undecided)) or "–"
        recommended = Name(result.recommended[context] or "–")
        name = Name(str(context))
        rows.append((name, won, *value, selection.total_samples, undecided, recommended))
    heads = ("Context", "Winner", "Score", "Interval", "Samples", "Undecided", "Recommended")
    return Table(heads, rows)


def _context(selection: Selection) -> list[Block]:
    """Return all scores of one context, and what went wrong in it."""
    scores, level = selection.scores, selection.confidence
    return [
        f"Stopped: {stop_reason(selection.stopped)}.",
        *([scored.score_plot(scores, metric=selection.metric, level=level)] if scores else []),
        *set_aside(selection.set_aside),
        Notes(items=selection.notes[1:], title="Remarks"),
    ]


def selection_plan_page(plan: SelectionPlan) -> Page:
    """Build the page of `genbounds plan --confidence`.

    Parameters
    ----------
    plan : genbounds.select.SelectionPlan
    """
    answer: Tag | int = Tag("none", "bad") if plan.budget is None else plan.budget
    looks = f"samples of each model; the run draws at most {number(plan.limit)} of one"
    page = answer_page(
        "How many samples until the best is known?",
        scored.lead_sentence(plan),
        ("Samples in all", answer, f"suffice with probability {percent(plan.power)}"),
        ("Certified", percent(round(plan.certified, 3)), "of simulated runs"),
        ("First look", plan.first_look, looks),
    )
    figure = scored.score_plot(plan.scores, metric=plan.metric, level=plan.confidence)
    blocks = scored.with_assumptions(plan, pilot_table(plan), figure)
    return page.add(Section("Models and their pilots", blocks))


def pilot_table(plan: SelectionPlan) -> Table:
    """Return the score of every pilot, and how far its model is likely to be drawn."""
    drawn = {"Samples, median": [plan.samples[name] for name in plan.scores]}
    caption = "Samples of each model in the simulated runs"
    return scored.score_table(plan.scores, drawn, value="Pilot", caption=caption)


# --- mixtures -------------------------------------------------------------------------------------


def mixture_page(mixture: Mixture) -> Page:
    """Build the page of `genbounds mixture`.

    Parameters
    ----------
    mixture : genbounds.decisions.Mixture
    """
    at = f"one-sided, {percent(mixture.level)}"
    ends = interval(mixture.score.low, mixture.score.high)
    page = answer_page(
        "Is a mixture of models better?",
        scored.lead_sentence(mixture),
        ("Better than every model", certificate(mixture.certified), at),
        ("Gain, at least", mixture.gain_low, f"{at}; estimate {number(mixture.gain)}"),
        ("Score", mixture.score.value, f"of the mixture, {ends}"),
    )
    figure = scored.score_plot(
        _scores_by_share(mixture), metric=mixture.metric, level=mixture.level
    )
    blocks = scored.with_assumptions(mixture, share_table(mixture), figure)
    return page.add(Section("Shares and scores", blocks))


def mixture_selection_page(
    result: MixtureSelection, *, warnings: Sequence[Diagnostic] = ()
) -> Page:
    """Build the page of `genbounds select --target mixture`.

    Parameters
    ----------
    result : genbounds.select.MixtureSelection
    warnings : sequence of Diagnostic
        About the whole run: its files, for one.
    """
    at = f"at {percent(result.confidence)}"
    why = "" if result.certified else f"; {stop_reason(result.stopped)}"
    page = answer_page(
        "Which mixture of models is best?",
        scored.lead_sentence(result),
        ("Answer", certificate(result.certified), f"{at}{why}"),
        ("Gap, at most", result.gap_high, f"to the best mixture, {at}"),
        ("Samples", result.total_samples, f"policy {result.policy}"),
    )
    scores = _scores_by_share(result)
    figure = scored.score_plot(scores, metric=result.metric, level=result.confidence)
    warned = scored.remarks(scores, warnings)[0]
    assumed = Notes(items=result.assumptions, title=scored.ASSUMED)
    aside = set_aside(result.set_aside)
    return page.add(
        Section("Shares and scores", [warned, share_table(result), figure, *aside, assumed])
    )


def _scores_by_share(result: Mixture | MixtureSelection) -> dict[str, Score]:
    """Return the score of the mixture, then those of its models, the largest share first."""
    order = sorted(result.weights, key=lambda name: -result.weights[name])
    return {"mixture": result.score, **{name: result.scores[name] for name in order}}


def share_table(result: Mixture | MixtureSelection) -> Table:
    """Return the scores of a mixture and of its models, their shares, and what each has drawn."""
    scores = _scores_by_share(result)
    shares: list[Cell] = ["", *(percent(round(result.weights[x], 3)) for x in [*scores][1:])]
    more: dict[str, Sequence[Cell]] = {"Share": shares}
    if (samples := getattr(result, "samples", None)) is not None:
        more["Samples"] = [samples.get(name, sum(samples.values())) for name in scores]
    return scored.score_table(scores, more, value="Score")


# --- figures --------------------------------------------------------------------------------------


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

    def paint(ax: Axes) -> None:
        draw.name_rows(ax, names)
        Scale(0, max(*samples.values(), 1) * 1.02).apply(ax, "samples drawn")
        for row, name in enumerate(names):
            edge, fill = ("accent", "accent") if name == best else ("muted", "paper")
            colours: Style = {"color": COLOUR[fill], "edgecolor": COLOUR[edge]}
            (bar,) = ax.barh(row, samples[name], height=0.62, linewidth=1.2, **colours)
            draw.tip(bar, f"{shown(name)}: {count(samples[name], 'sample')}")
            place: Style = {"va": "center", "xytext": (5, 0), "textcoords": "offset points"}
            ax.annotate(number(samples[name]), (samples[name], row), **place)

    shares = (percent(round(samples[name] / max(total, 1), 4)) for name in names)
    return drawn(
        paint,
        rows=len(names),
        alt=f"Samples drawn from each of {count(len(names), 'arm')}, {number(total)} together; "
        f"most from {shown(names[0])}, {number(samples[names[0]])}.",
        caption="Where the samples went. The arm that was selected is filled.",
        table=Table(
            ("Arm", "Samples", "Share"),
            [(Name(name), samples[name], share) for name, share in zip(names, shares, strict=True)],
        ),
    )


def spending(selection: Selection) -> tuple[list[int], dict[str, list[int]]]:
    """Return the samples in total, and of each arm, after each step of a selection."""
    history = selection.history
    spent = {
        name: np.cumsum(np.where(history.picks == arm, history.drawn, 0)).tolist()
        for arm, name in enumerate(history.names)
    }
    return np.cumsum(history.drawn).tolist(), spent


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
    edges, heights = _heights(steps, [spent[name] for name in names])
    square = {"marker": "s", "markersize": 9, "linestyle": "none"}
    legend = [(name, draw.series_style(k) | square) for k, name in enumerate(names[:SERIES])]

    def paint(ax: Axes) -> None:
        Scale(edges[0], edges[-1]).apply(ax, "samples drawn in total")
        Scale(0.0, 1.0).apply(ax, "share of the draws", upright=True)
        draw.legend(ax, legend)
        ax.grid(visible=False)
        ax.set_yticks([0.0, 0.5, 1.0], [percent(share) for share in (0.0, 0.5, 1.0)])
        for index, (name, low, high) in enumerate(zip(names, heights, heights[1:], strict=False)):
            fill = COLOUR[f"series-{index}" if index < SERIES else "grid"]
            style: Style = {"color": fill, "edgecolor": COLOUR["paper"], "linewidth": 0.8}
            band = ax.fill_between(edges, low, high, step="post", **style)
            draw.tip(band, f"{shown(name)}: {number(spent[name][-1])} samples at the end")
            if high[-1] - low[-1] > 0.07:  # as high as the text
                middle = (low[-1] + high[-1]) / 2.0
                fit = display(display(name, limit=None), limit=20 if draw.is_narrow(ax) else 28)
                look: Style = draw.BESIDE | {"color": COLOUR["ink"]}
                ax.annotate(fit, (1.0, middle), xycoords=ax.get_yaxis_transform(), **look)

    points = sorted({round(i * (len(steps) - 1) / 9) for i in range(10)})
    return drawn(
        paint,
        alt=f"Share of the draws that each of {count(len(names), 'arm')} had over time, up to "
        f"{number(steps[-1])} samples in total; most went to {shown(names[0])}.",
        caption="Which arms were drawn from as the selection went on, from bottom to top in the "
        "order of the legend. An arm that was given up has no share any more."
        + ("" if len(names) <= SERIES else f" The legend names the {SERIES} most drawn."),
        table=Table(
            ("Arm", *(f"at {number(steps[i])}" for i in points)),
            [(Name(name), *(spent[name][i] for i in points)) for name in names],
            "Samples drawn from each arm, by the total",
        ),
    )


def _heights(steps: Sequence[int], lines: Sequence[Sequence[int]]) -> tuple[list[int], Any]:
    """Return edges of stretches of time, and the shares of what was drawn in each on one another.

    A stretch holds several rounds of all lines, so that taking turns looks like taking turns. Row k
    has the sums of the first k lines' shares, the last stretch twice: as a step is drawn.
    """
    stretches = min(max(len(steps) // (4 * len(lines)), 1), 40)
    ends = np.array([round((k + 1) * len(steps) / stretches) - 1 for k in range(stretches)])
    drawn = np.diff(np.asarray(lines)[:, ends], prepend=0)
    some = drawn.sum(axis=0) > 0
    shares = drawn[:, some] / drawn[:, some].sum(axis=0)
    heights = np.cumsum(np.pad(shares, ((1, 0), (0, 0))), axis=0)
    return [0, *np.asarray(steps)[ends[some]].tolist()], np.c_[heights, heights[:, -1]]
