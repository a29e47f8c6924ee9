"""Scores as people read them, on the terminal and on pages; the page of `genbounds score`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from genbounds import _drawing as draw
from genbounds._drawing import COLOUR, DASHED, SERIES, Row, Scale, Style
from genbounds._text import SMALLEST_P, count, display, interval, number, percent, short, shown
from genbounds.estimators import PrecisionRecall, metric_spec
from genbounds.report.blocks import Block, Cell, Fact, Facts, Figure, Name, Notes, Table, Tag, Tone
from genbounds.report.page import FOOT, NO_VALUE, Page, Section, drawn
from genbounds.results import Diagnostic, Difference, Ranking, Score
from genbounds.validation import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from genbounds.estimators import EncoderRanking

NAMED_RIVALS = 3
"""So many models are named in a sentence; more are counted."""

SETTLING = (
    "Each point uses a random half of the rows of the next one. A score that keeps drifting beyond "
    "its interval as rows are added is still biased, or its rows are not independent."
)
"""What stands below the scores of growing samples."""

USUAL = "The usual number still has its bias: it is what pytorch-fid prints of the same rows"
"""What stands above scores beside those of other programs."""

ASSUMED = "What this assumes"
"""Title of the assumptions of a result."""

LARGEST_MATRIX = 40
ONE_MODEL = "`ranking` must hold at least 2 models to compare; got 1."
SIGNIFICANT = {True: Tag("yes", "good"), False: Tag("no")}

BANDS = 4
"""Bands of more lines than these hide one another: the table has the intervals."""


# --- sentences ------------------------------------------------------------------------------------


def metric_title(metric: str) -> str:
    """Title of a registered metric; any other name as it is."""
    try:
        return metric_spec(metric).title
    except InputError:
        return metric


def sentence(text: str) -> str:
    """Return a line for a log as a sentence."""
    return f"{text[:1].upper()}{text[1:]}."


def lead_sentence(result: Any) -> str:
    """Return what a result says as a sentence, its metric by its title."""
    return sentence(str(replace(result, metric=metric_title(result.metric))))


def with_interval(score: Score) -> str:
    """Format a score and its interval."""
    return f"{number(score.value)} {interval(score.low, score.high)}"


def verdict_lines(ranking: Ranking) -> list[str]:
    """Say which model is best, which others do not differ from it, and its corrected interval.

    The interval is that after the choice; its value is not printed: near a tie it can lie above
    the scores of all models.
    """
    best, at = shown(ranking.best), f"({percent(ranking.level)}, jointly)"
    rivals = [shown(model) for model in ranking.contenders if model != ranking.best]
    corrected = []
    if not ranking.scores[ranking.best].reliable:
        text = "No model is named best: the leading score is unreliable."
    else:
        if not rivals:
            text = f"{best} is significantly better than every other model {at}."
        else:
            few = len(rivals) <= NAMED_RIVALS
            whom = ", ".join(rivals) if few else f"{len(rivals)} other models"
            text = f"{best} has the best score, but does not differ significantly from {whom} {at}."
        if (chosen := ranking.chosen) is not None:
            ends = interval(chosen.low, chosen.high)
            corrected = [f"Corrected for having been chosen, the interval of {best} is {ends}."]
    doubtful = [shown(model) for model, score in ranking.scores.items() if not score.reliable]
    if doubtful:
        text += f" Unreliable: {', '.join(doubtful)} (see the warnings)."
    return [text, *corrected]


def dispute_lines(ranking: EncoderRanking) -> list[str]:
    """Say which models two encoders rank otherwise."""
    return [
        f"{shown(a)} is better than {shown(b)} under {shown(one)}, worse under {shown(other)}."
        for a, b, one, other in ranking.disputed
    ]


def lead_of(pair: Difference, *, log_scale: bool = False) -> tuple[float, float, float]:
    """Return a lead and its interval as positive numbers in favour of the better model.

    Where differences are those of logarithms, it is the ratio of the larger score to the smaller.
    """
    sign = -1.0 if pair.value < 0.0 else 1.0
    low, high = sorted((sign * pair.low, sign * pair.high))
    if log_scale:
        return math.exp(sign * pair.value), math.exp(low), math.exp(high)
    return sign * pair.value, low, high


METHOD_WORDS = {
    "second-order": "bias removed by an expansion in 1/n",
    "third-order": "bias removed by an expansion in 1/n, the next order by halving the samples",
    "spectrum-fit": "few samples: bias removed by a fit of the population spectrum",
    "joint-spectrum-fit": "few samples: bias removed by a fit of both population spectra",
    "contour": "few samples: bias removed by a contour integral over the spectrum",
    "joint-contour": "few samples: bias removed by a contour integral over both spectra",
}
"""What the methods do whose names do not say it; docs/methods.md has when each is chosen."""


def remarks(
    scores: Mapping[str, Score],
    warnings: Iterable[Diagnostic] = (),
    assumptions: Iterable[str] = (),
    together: Mapping[str, PrecisionRecall] | None = None,
) -> tuple[Notes, Notes, Notes]:
    """Return what to know about scores: their warnings, assumptions and, folded, methods.

    Each warning is there once, with the models that it concerns unless all; unreliable ones first.
    Models of the same method are in one line.

    Parameters
    ----------
    scores : mapping of str to Score
    warnings : iterable of Diagnostic
        About all models together.
    assumptions : iterable of str
        The same.
    together : mapping of str to PrecisionRecall, optional
        Further scores of the models.
    """
    concerned: dict[Diagnostic, dict[str, None]] = {warning: {} for warning in warnings}
    methods: dict[tuple[str, ...], list[str]] = {}
    warned: list[tuple[str, Any]] = [*scores.items(), *(together or {}).items()]
    for model, result in warned:
        for warning in result.warnings:
            concerned.setdefault(warning, {})[shown(model)] = None
    for model, score in scores.items():
        words = METHOD_WORDS.get(score.method)
        method = score.method if words is None else f"{score.method} ({words})"
        methods.setdefault((method, *score.details), []).append(shown(model))
    ordered = sorted(concerned, key=lambda warning: warning.severity != "unreliable")
    lines = [
        f"{warning} ({', '.join(concerned[warning])})"
        if 0 < len(concerned[warning]) < len(scores)
        else str(warning)
        for warning in ordered
    ]
    assumed = dict.fromkeys(text for score in scores.values() for text in score.assumptions)
    how = [f"{', '.join(names)}: {'; '.join(method)}" for method, names in methods.items()]
    doubt: Tone = "bad" if ordered and ordered[0].severity == "unreliable" else "open"
    return (
        Notes(items=lines, title="Warnings", tone=doubt),
        Notes(items=[*(assumed | dict.fromkeys(assumptions))], title="What these intervals assume"),
        Notes(items=how, title="How each score was computed", folded=True),
    )


def with_assumptions(result: Any, *blocks: Block, title: str = ASSUMED) -> list[Block]:
    """Return `blocks` between the warnings of a result and what it assumes.

    Parameters
    ----------
    result : Noted
    *blocks
    title : str
        Of what it assumes.
    """
    assumed = Notes(items=result.assumptions, title=title)
    return [remarks({}, result.warnings)[0], *blocks, assumed]


# --- tables ---------------------------------------------------------------------------------------


def mark(score: Score) -> str:
    """Return what a table says beside a score that carries warnings."""
    if not score.reliable:
        return "unreliable"
    return "caution" if score.warnings else ""


def score_table(
    scores: Mapping[str, Score],
    more: Mapping[str, Sequence[Cell]],
    *,
    name: str = "Model",
    value: str,
    caption: str = "",
) -> Table:
    """Return names, scores and intervals, `more` columns by their heads, and marks of warnings."""
    columns: dict[str, Sequence[Cell]] = {
        name: [Name(model) for model in scores],
        value: [score.value for score in scores.values()],
        "Interval": [interval(score.low, score.high) for score in scores.values()],
        **more,
    }
    if any(score.warnings for score in scores.values()):
        tones: dict[str, Tone] = {"unreliable": "bad", "caution": "open"}
        marks = map(mark, scores.values())
        columns["Warnings"] = [Tag(text, tones[text]) if text else "" for text in marks]
    return Table(tuple(columns), list(zip(*columns.values(), strict=True)), caption)


def comparison_table(scores: Mapping[str, Score], ranking: Ranking | None = None) -> Table:
    """Return scores and how they were found; of a ranking also groups, and p-values of the first.

    Letters of groups have the models whose scores can be relied on, if there are two.

    Parameters
    ----------
    scores : mapping of str to Score
    ranking : Ranking, optional
        Of some of them.
    """
    columns: dict[str, list[Cell]] = {
        "Std. error": [score.stderr for score in scores.values()],
        "n": [score.n for score in scores.values()],
    }
    letters = {} if ranking is None else ranking.letters
    letters = {name: text for name, text in letters.items() if scores[name].reliable}
    if ranking is not None and len(letters) > 1:
        columns["Group"] = [letters.get(name, "") for name in scores]
        if ranking.best in letters:
            pvalues: dict[str, Cell] = {}
            for name in letters.keys() - {ranking.best}:
                p = ranking.difference(ranking.best, name).pvalue_adjusted
                pvalues[name] = f"<{SMALLEST_P}" if p < SMALLEST_P else number(p, digits=2)
            columns["p"] = [pvalues.get(name, NO_VALUE) for name in scores]
    return score_table(scores, columns, value="Score")


TOGETHER = "Read them together; in the last column 1 means as good as real data"
"""What stands above the scores of precision and its like."""


def together_table(together: Mapping[str, PrecisionRecall], order: Iterable[str]) -> Table:
    """Return precision and its like of every model.

    Parameters
    ----------
    together : mapping of str to PrecisionRecall
    order : iterable of str
        Names of the models; some may have no such scores.
    """

    def cell(score: Score) -> str:
        return with_interval(score) if score.reliable else f"{number(score.value)} unreliable"

    rows = []
    for model in order:
        if (found := together.get(model)) is None:
            continue
        for name in found.drift:
            ratio = "" if found.calibrated is None else cell(found.calibrated[name])
            rows.append((Name(model), name, cell(getattr(found, name)), ratio))
    return Table(("Model", "Score", "As published", "Relative to real"), rows, TOGETHER)


# --- pages ----------------------------------------------------------------------------------------


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
    about = (*warnings, *(() if ranking is None else ranking.warnings))
    warned, *basis = remarks(scores, about, together=together)
    title = metric_title(metric)
    figure = _comparison(order, title, level, ranking)
    lead, facts = _answer(order, title, level, ranking)
    if reference is not None:
        ends = interval(reference.low, reference.high)
        facts.append(("Real data", reference.value, f"{percent(level)} interval {ends}"))
    blocks: list[Block] = [warned, figure]
    if usual:
        columns = {"Usual number": [usual[name] for name in order]}
        blocks.append(score_table(order, columns, value="Bias removed", caption=USUAL))
    lines = [f"{shown(name)}: {score.citation()}" for name, score in scores.items()]
    cite = Notes(items=lines, title="Lines for a paper", folded=True)
    sections = [Section("Scores", [*blocks, *basis, cite])]
    if together:
        table = together_table(together, order)
        sections.append(Section("Precision, recall and their like", [table]))
    if convergence:
        growth = {name: convergence[name] for name in order if name in convergence}
        settling: list[Block] = [convergence_plot(growth, metric=metric, lines="Model"), SETTLING]
        sections.append(Section("Do the scores settle as samples are added?", settling))
    if ranking is not None and "Group" in figure.table.columns:
        # Of two models the matrix is one square.
        matrix = [difference_matrix(ranking)] if len(order) > 2 else []
        joint = Notes(items=ranking.assumptions, title="What the comparison assumes")
        differ: list[Block] = [gap_plot(ranking), *matrix, joint]
        sections.append(Section("Which models differ significantly", differ))
    question = f"{title} of {count(len(scores), 'model')}"
    return Page(question, lead, Facts(items=facts), FOOT, sections)


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
        table = comparison_table(found.scores, found if found.differences else None)
        caption = f"{shown(name)}, {percent(found.level)} intervals"
        tables.append(replace(table, caption=caption))
    said = dispute_lines(ranking)
    disputed = [Notes(items=said, title="Where encoders disagree")] if said else []
    return page.add(Section("Under each encoder", [*tables, *disputed]))


def _answer(
    scores: Mapping[str, Score], title: str, level: float, ranking: Ranking | None
) -> tuple[str, list[Fact]]:
    """Say who is best and how sure that is, by how much it leads, and how many may be as good."""
    best, score = next(iter(scores.items()))
    value = (title, score.value, f"{percent(level)} interval {interval(score.low, score.high)}")
    if ranking is None:
        doubt = "" if score.reliable else " This score is unreliable: see the warnings."
        lead = f"{display(best, limit=72)} has a {title} of {with_interval(score)}.{doubt}"
        return lead, [("Model", Name(best), f"n = {number(score.n)}"), value]
    lead, *corrected = verdict_lines(ranking)
    if not score.reliable:
        return lead, [("Best score", "none", "the leading one is unreliable"), value]
    second = list(scores)[1]
    gap = ranking.difference(best, second)
    ahead, *ends = lead_of(gap, log_scale=ranking.log_scale)
    times = " times" if ranking.log_scale else ""
    doubt = "" if gap.distinguishable else ", not significant"
    by = f"{interval(*ends)}, ahead of {shown(second)}{doubt}"
    contenders = len({*ranking.contenders, best})
    jointly = f"{percent(ranking.level)}, all comparisons jointly"
    return " ".join((lead, f"Its {title}: {with_interval(score)}.", *corrected)), [
        ("Best score", Name(best), f"of {count(len(scores), 'model')}"),
        value,
        ("Better than the next by", f"{number(ahead)}{times}", by),
        ("May be the best", f"{contenders} of {len(scores)}", jointly),
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
    return _comparison(ranking.scores, metric_title(ranking.metric), ranking.level, ranking)


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
    return _comparison(scores, metric_title(metric), level, None)


def _comparison(
    scores: Mapping[str, Score], title: str, level: float, ranking: Ranking | None
) -> Figure:
    table = comparison_table(scores, ranking)
    heading, letters = "", [""] * len(scores)
    if "Group" in table.columns:
        heading = "Group"
        letters = [str(row[table.columns.index(heading)]) for row in table.rows]
    filled = scores if ranking is None else ranking.contenders
    rows = []
    for (name, score), group in zip(scores.items(), letters, strict=True):
        look = ("accent", "filled") if name in filled else ("muted", "open")
        tip = f"{shown(name)}: {with_interval(score)}"
        if not score.reliable:
            look, tip = ("bad", "cross"), f"{tip}, unreliable"
        rows.append(Row(name, (score.low, score.value, score.high), *look, tip, group))
    scale = Scale.spread(list(scores.values()))
    start = max(scale.low, scale.floor)
    cut = any(s.low < start < s.value or s.high > scale.high for s in scores.values())
    joint = (
        " Filled: the models that may be the best. Models that share a group letter do not differ "
        f"significantly at {percent(level)}, all comparisons taken jointly."
    )
    top, first = next(iter(scores.items()))
    return drawn(
        partial(draw.interval_rows, rows=rows, label=title, scale=scale, heading=heading),
        rows=len(rows),
        alt=f"{title} of {count(len(scores), 'model')}. On top: {shown(top)} "
        f"with {number(first.value)}, interval {interval(first.low, first.high)}.",
        caption=f"{title}. Lines are {percent(level)} confidence intervals"
        + ("; one with an arrow goes on, to 0 or beyond the axis." if cut else ".")
        + (" Crosses: unreliable, see the warnings." * any(row.mark == "cross" for row in rows))
        + joint * bool(heading),
        table=table,
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
        rows=k,
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
        value, low, high = lead_of(pair, log_scale=ranking.log_scale)
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
    scale = Scale.linear([none, *(end for row in rows for end in row.ends)])
    return drawn(
        partial(draw.interval_rows, rows=rows, label=label, scale=scale, lines=[none]),
        rows=len(rows),
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
    title = metric_title(metric)
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
                draw.tip(point, f"{shown(name)}, n = {number(n)}: {with_interval(score)}")
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
