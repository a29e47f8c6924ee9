"""The page of `genbounds score`: scores with their intervals, and which models differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from genbounds import _drawing as draw
from genbounds._drawing import COLOUR, DASHED, SERIES, Row, Scale, Style
from genbounds._text import count, display, interval, number, percent, short, shown
from genbounds.report import wording
from genbounds.report.blocks import Block, Fact, Figure, Name, Notes, Table, Tag
from genbounds.report.page import Page, Section, answer_page, drawn, drawn_rows, rows_height
from genbounds.results import Diagnostic, Difference, Ranking, Score, all_reliable
from genbounds.validation import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from genbounds.estimators import EncoderRanking, PrecisionRecall

SETTLING = (
    "Each point uses a random half of the rows of the next one. A score that keeps drifting beyond "
    "its interval as rows are added is still biased, or its rows are not independent."
)
"""What stands below the scores of growing samples."""

USUAL = "The usual number still has its bias: it is what pytorch-fid prints of the same rows"
"""What stands above scores beside those of other programs."""

LARGEST_MATRIX = 40
ONE_MODEL = "`ranking` must hold at least 2 models to compare; got 1."
SIGNIFICANT = {True: Tag("yes", "good"), False: Tag("no")}

BANDS = 4
"""Bands of more lines than these hide one another: the table has the intervals."""


def score_page(
    scores: Mapping[str, Score],
    *,
    metric: str,
    level: float,
    ranking: Ranking | None = None,
    reference: Score | None = None,
    together: Mapping[str, PrecisionRecall] | None = None,
    convergence: Mapping[str, Sequence[tuple[int, Score]]] | None = None,
    usual: Mapping[str, float] | None = None,
    warnings: Sequence[Diagnostic] = (),
) -> Page:
    """Build the page of `genbounds score`.

    Parameters
    ----------
    scores : mapping of str to Score
    metric : str
    level : float
    ranking : Ranking or None
        Of the same models, if there are two or more.
    reference : Score or None
        Score of the real data themselves, for orientation.
    together : mapping of str to PrecisionRecall, optional
        Precision and its like of every model, where one of them is shown.
    convergence : mapping of str to sequence of (int, Score), optional
        Scores of growing parts of the models' samples, as `genbounds.estimators.convergence`
        returns them.
    usual : mapping of str to float, optional
        The plug-in score of every model, as other programs print it.
    warnings : sequence of Diagnostic
        About the whole run.
    """
    order = scores if ranking is None else ranking.scores
    title = wording.metric_title(metric)
    lead, facts = _answer(order, title, level, ranking)
    if reference is not None:
        remark = f"{percent(level)} interval {wording.interval_of(reference)}"
        facts.append(("Real data", reference.value, remark))
    page = answer_page(f"{title} of {count(len(scores), 'model')}", lead, *facts)
    warnings = [*warnings, *(() if ranking is None else ranking.warnings)]
    blocks = warning_blocks(scores, warnings, together)
    blocks.append(_scores(order, metric, level, ranking))
    if usual:
        columns = {"Usual number": [usual[name] for name in order]}
        blocks.append(wording.score_table(order, columns, value="Bias removed", caption=USUAL))
    lines = [f"{shown(name)}: {score.citation()}" for name, score in scores.items()]
    cite = Notes(items=lines, title="Lines for a paper", folded=True)
    page.add(Section("Scores", [*blocks, *basis(scores), cite]))
    if together:
        table = wording.together_table(together, order)
        page.add(Section("Precision, recall and their like", [table]))
    if convergence:
        growth = {name: convergence[name] for name in order if name in convergence}
        figure = convergence_plot(growth, metric=metric, lines="Model")
        page.add(Section("Do the scores settle as samples are added?", [figure, SETTLING]))
    if ranking is not None and wording.letters_of(ranking):
        joint = Notes(items=ranking.assumptions, title="What the comparison assumes")
        # Of two models the matrix is one square.
        matrix = [difference_matrix(ranking)] if len(order) > 2 else []
        differ: list[Block] = [gap_plot(ranking), *matrix, joint]
        page.add(Section("Which models differ significantly", differ))
    return page


def encoders_page(ranking: EncoderRanking, *, warnings: Sequence[Diagnostic] = ()) -> Page:
    """Show models under several encoders at once, and under each.

    Parameters
    ----------
    ranking : EncoderRanking
    warnings : sequence of Diagnostic
        About the whole run.
    """
    several = ranking if ranking.differences else None
    page = score_page(
        ranking.scores, metric="fd", level=ranking.level, ranking=several, warnings=warnings
    )
    tables: list[Block] = []
    for name, found in ranking.by_encoder.items():
        table = wording.comparison_table(found.scores, found if found.differences else None)
        caption = f"{shown(name)}, {percent(found.level)} intervals"
        tables.append(replace(table, caption=caption))
    said = [
        f"{shown(a)} is better than {shown(b)} under {shown(one)}, worse under {shown(other)}."
        for a, b, one, other in ranking.disputed
    ]
    disputed = [Notes(items=said, title="Where encoders disagree")] if said else []
    return page.add(Section("Under each encoder", [*tables, *disputed]))


def _answer(
    scores: Mapping[str, Score], title: str, level: float, ranking: Ranking | None
) -> tuple[str, list[Fact]]:
    """Say who is best and how sure that is, by how much it leads, and how many may be as good."""
    best, score = next(iter(scores.items()))
    value = (title, score.value, f"{percent(level)} interval {wording.interval_of(score)}")
    if ranking is None:
        doubt = "" if score.reliable else " This score is unreliable: see the warnings."
        lead = f"{display(best, limit=72)} has a {title} of {wording.with_interval(score)}.{doubt}"
        return lead, [("Model", Name(best), f"n = {number(score.n)}"), value]
    lead = wording.verdict_line(ranking)
    if not score.reliable:
        return lead, [("Best score", "none", "the leading one is unreliable"), value]
    second = list(scores)[1]
    gap = ranking.difference(best, second)
    ahead, *ends = wording.lead_of(gap, log_scale=ranking.log_scale)
    times = " times" if ranking.log_scale else ""
    doubt = "" if gap.distinguishable else ", not significant"
    by = f"{interval(*ends)}, ahead of {shown(second)}{doubt}"
    contenders = len({*ranking.contenders, best})
    jointly = f"{percent(ranking.level)}, all comparisons jointly"
    return f"{lead} Its {title}: {wording.with_interval(score)}. {wording.winner_line(ranking)}", [
        ("Best score", Name(best), f"of {count(len(scores), 'model')}"),
        value,
        ("Better than the next by", f"{number(ahead)}{times}", by),
        ("May be the best", f"{contenders} of {len(scores)}", jointly),
    ]


# --- what several pages say -----------------------------------------------------------------------


def warning_blocks(
    scores: Mapping[str, Score],
    warnings: Sequence[Diagnostic] = (),
    together: Mapping[str, PrecisionRecall] | None = None,
) -> list[Block]:
    """Warnings with the models that they concern, unreliable ones first."""
    items = wording.warning_lines(scores, warnings, together)
    results: list[Score | PrecisionRecall] = [*scores.values(), *(together or {}).values()]
    trusted = all_reliable(warnings) and all(result.reliable for result in results)
    notes = Notes(items=items, title="Warnings", tone="open" if trusted else "bad")
    return [notes] if items else []


def with_assumptions(
    result: Any,
    *blocks: Block,
    scores: Mapping[str, Score] | None = None,
    warnings: Sequence[Diagnostic] | None = None,
    title: str = "What this assumes",
) -> list[Block]:
    """Return `blocks` between the warnings of a result and what it assumes.

    Parameters
    ----------
    result : Noted
    *blocks
    scores : mapping of str to Score, optional
        Whose warnings are shown as well.
    warnings : sequence of Diagnostic, optional
        In place of those of the result.
    title : str
        Of what it assumes.
    """
    doubts = warning_blocks(scores or {}, result.warnings if warnings is None else warnings)
    return [*doubts, *blocks, Notes(items=result.assumptions, title=title)]


def basis(scores: Mapping[str, Score]) -> list[Block]:
    """Return what the intervals assume and, behind a fold, how each score was computed."""
    assumed = wording.assumption_lines(scores)
    return [
        Notes(items=assumed, title="What these intervals assume"),
        Notes(items=wording.method_lines(scores), title="How each score was computed", folded=True),
    ]


# --- figures --------------------------------------------------------------------------------------


def rank_plot(ranking: Ranking) -> Figure:
    """Show scores with intervals, best on top, and the letters of the groups.

    Parameters
    ----------
    ranking : Ranking

    Returns
    -------
    Figure
        Models that share a letter do not differ significantly.
    """
    return _scores(ranking.scores, ranking.metric, ranking.level, ranking)


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
    return _scores(scores, metric, level, None)


def _scores(
    scores: Mapping[str, Score], metric: str, level: float, ranking: Ranking | None
) -> Figure:
    title = wording.metric_title(metric)
    letters = {} if ranking is None else wording.letters_of(ranking)
    filled = scores if ranking is None else ranking.contenders
    rows = []
    for name, score in scores.items():
        look = ("accent", "filled") if name in filled else ("muted", "open")
        tip = f"{shown(name)}: {wording.with_interval(score)}"
        if not score.reliable:
            look, tip = ("bad", "cross"), f"{tip}, unreliable"
        ends = score.low, score.value, score.high
        rows.append(Row(name, ends, *look, tip, letters.get(name, "")))
    scale = Scale.spread(list(scores.values()))
    start = max(scale.low, scale.floor)
    cut = any(s.low < start < s.value or s.high > scale.high for s in scores.values())
    crosses = any(not score.reliable for score in scores.values())
    joint = (
        " Filled: the models that may be the best. Models that share a group letter do not differ "
        f"significantly at {percent(level)}, all comparisons taken jointly."
    )
    top = next(iter(scores))
    return drawn_rows(
        rows,
        title,
        scale,
        heading="Group" if letters else "",
        alt=f"{title} of {count(len(scores), 'model')}. On top: {shown(top)} "
        f"with {number(scores[top].value)}, interval {wording.interval_of(scores[top])}.",
        caption=f"{title}. Lines are {percent(level)} confidence intervals"
        + ("; one with an arrow goes on, to 0 or beyond the axis." if cut else ".")
        + (" Crosses: unreliable, see the warnings." if crosses else "")
        + (joint if letters else ""),
        table=wording.comparison_table(scores, ranking),
    )


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
    if len(ranking.scores) < 2:
        raise InputError(ONE_MODEL)
    place = {name: k for k, name in enumerate(list(ranking.scores)[:LARGEST_MATRIX])}
    pairs = [pair for pair in ranking.differences if pair.better in place and pair.worse in place]
    significant = sum(pair.distinguishable for pair in pairs)
    k = len(place)
    left_out = len(ranking.scores) - len(place)

    def paint(ax: Axes) -> None:
        draw.name_rows(ax, [*place])
        least, most = (5, 12) if draw.is_narrow(ax) else (12, 24)
        ax.set_xlim(-0.5, max(k, least) - 0.5)
        ax.set_xticks(range(k), [str(x + 1) if k <= most else "" for x in range(k)])
        ax.xaxis.tick_top()
        ax.tick_params(length=0)
        ax.spines["bottom"].set_visible(False)
        ax.grid(visible=False)
        for pair in pairs:
            _pair_cell(ax, pair, place)
        ax.plot(range(k), range(k), ".", color=COLOUR["muted"], markersize=2)

    fields = attrgetter("low", "high", "pvalue_adjusted")
    rows = [
        (Name(p.better), p.value, Name(p.worse), *fields(p), SIGNIFICANT[p.distinguishable])
        for p in pairs
    ]
    return drawn(
        paint,
        height=rows_height(k),
        alt=f"Matrix of {count(len(pairs), 'pair')} of {len(place)} models; {significant} differ "
        f"significantly, {len(pairs) - significant} do not.",
        caption="Every pair of models; columns are numbered as the rows. Filled: the row is "
        "significantly better than the column; all these statements hold together at "
        f"{percent(ranking.level)}. Open: no significant difference."
        + (f" {count(left_out, 'model')} ranked lower are left out." if left_out else ""),
        table=Table(
            ("Better", "Difference", "Worse", "Low", "High", "p, adjusted", "Significant"),
            rows,
            f"Differences with simultaneous {percent(ranking.level)} intervals"
            + (" (of logarithms)" if ranking.log_scale else ""),
        ),
    )


def _pair_cell(ax: Axes, pair: Difference, place: Mapping[str, int]) -> None:
    from matplotlib.patches import Rectangle

    i, j = sorted((place[pair.better], place[pair.worse]))
    certain = pair.distinguishable
    face, edge = ("accent", "accent") if certain else ("paper", "muted")
    look: Style = {"facecolor": COLOUR[face], "edgecolor": COLOUR[edge], "linewidth": 0.8}
    patch = ax.add_patch(Rectangle((j - 0.44, i - 0.44), 0.88, 0.88, **look))
    names = f"{shown(pair.better)} − {shown(pair.worse)}"
    ends = interval(pair.low, pair.high) + ("" if certain else ", not significant")
    draw.tip(patch, f"{names}: {number(pair.value)} {ends}")


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
    first, *others = ranking.scores
    if not others:
        raise InputError(ONE_MODEL)
    rows, cells = [], []
    for name in others:
        pair = ranking.difference(first, name)
        value, low, high = wording.lead_of(pair, log_scale=ranking.log_scale)
        tip = f"{shown(name)}: {number(value)} behind {interval(low, high)}"
        look = ("muted", "open") if pair.distinguishable else ("accent", "filled")
        doubt = "" if pair.distinguishable else ", may be as good"
        rows.append(Row(name, (low, value, high), *look, tip + doubt))
        cells.append((Name(name), value, low, high, SIGNIFICANT[pair.distinguishable]))
    none, label = 0.0, "behind the first"
    what = f"How far each model is behind {shown(first)}."
    if ranking.log_scale:
        none, label = 1.0, "score of the first over this one's"
        what = f"The score of {shown(first)} as a multiple of each other model's."
    as_good = sum(row.mark == "filled" for row in rows)
    return drawn_rows(
        rows,
        label,
        Scale.linear([none, *(end for row in rows for end in row.ends)]),
        lines=[none],
        alt=f"How far {count(len(others), 'other model')} lie behind {shown(first)}, with "
        f"simultaneous intervals; {as_good} of them may be as good.",
        caption=f"{what} Lines are simultaneous {percent(ranking.level)} intervals: all of them, "
        "and those of all other pairs, hold together. Filled: may be as good; the line reaches "
        f"the dashed {short(none)}.",
        table=Table(("Model", "Behind", "Low", "High", "Significant"), cells),
    )


# Branches: what is drawn depends on which results there are.
def convergence_plot(
    series: Mapping[str, Sequence[tuple[int, Score]]],
    *,
    truth: float | None = None,
    metric: str = "fd",
    lines: str = "Estimator",
) -> Figure:
    """Show estimates, with their intervals, against the number of samples.

    Parameters
    ----------
    series : mapping of str to sequence of (n, Score)
        One line per entry, such as "plug-in" and "debiased", or one per model as
        `genbounds.estimators.convergence` returns them; n increasing.
    truth : float or None
        Drawn as a level line.
    metric : str
        For the axis.
    lines : str
        What one line is, for the table: "Estimator", "Model".
    """
    if not series or not all(series.values()):
        raise InputError("`series` must hold at least one line of at least one point.")
    title = wording.metric_title(metric)
    points = [(name, n, score) for name, line in series.items() for n, score in line]
    scores = [score for *_, score in points]
    ends = {name: line[-1] for name, line in series.items()}
    sizes = Scale.logarithmic(n for _, n, _ in points)
    true = [] if truth is None else [truth]
    scale = Scale.growth(scores, [*(score.value for _, score in ends.values()), *true])
    legend = [(name, draw.series_style(k)) for k, name in enumerate(list(series)[:SERIES])]
    legend += [("truth", DASHED) for _ in true]

    def paint(ax: Axes) -> None:
        sizes.apply(ax, "samples n")
        scale.apply(ax, title, upright=True)
        draw.legend(ax, legend)
        # The first on top; pale if beyond the legend.
        for index, (name, line) in reversed(list(enumerate(series.items()))):
            pale = {"color": COLOUR["grid"], "marker": "o"}
            style = draw.series_style(index) if index < SERIES else pale
            places = [n for n, _ in line]
            values = [max(score.value, scale.floor) for _, score in line]
            if len(series) <= BANDS:
                draw.band(ax, places, [score for _, score in line], scale, style["color"])
            ax.plot(places, values, color=style["color"], linewidth=1.6)
            for (n, score), value in zip(line, values, strict=True):
                (point,) = ax.plot(n, value, **(style | {"linestyle": "none"}))
                draw.tip(point, f"{shown(name)}, n = {number(n)}: {wording.with_interval(score)}")
        for value in true:
            ax.axhline(value, **DASHED)

    at_the_end = [
        f" {shown(name)}: {number(score.value)} at n = {number(n)}."
        for name, (n, score) in list(ends.items())[:SERIES]
    ] + [f" Truth: {number(value)}." for value in true]
    return drawn(
        paint,
        alt=f"{title} against the number of samples.{''.join(at_the_end)}",
        caption=f"{title} as the number of samples grows. "
        + _convergence_caption(len(series), {score.level for score in scores}, truth),
        table=Table(
            (lines, "n", "Value", "Low", "High"),
            [(Name(name), n, s.value, s.low, s.high) for name, n, s in points],
        ),
    )


def _convergence_caption(lines: int, levels: set[float], truth: float | None) -> str:
    """Say what is drawn, and how."""
    at = f"{percent(levels.pop())} confidence intervals" if len(levels) == 1 else "intervals"
    parts = [f"Bands are {at}" if lines <= BANDS else f"The table has the {at}"]
    if truth is not None:
        parts.append("the dashed line is the truth")
    if lines > SERIES:
        parts.append(f"the legend names the first {SERIES} lines")
    return f"{'; '.join(parts)}. What lies beyond an axis is drawn at its edge."
