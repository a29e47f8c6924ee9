"""The pages that the commands write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from genbounds._text import count, display, interval, number, percent, short, shown
from genbounds.report.blocks import (
    Block,
    Cell,
    Code,
    Formula,
    Link,
    Name,
    Notes,
    Table,
    Tag,
    Tone,
)
from genbounds.report.figures._comparisons import difference_matrix, gap_plot
from genbounds.report.figures._convergence import convergence_plot
from genbounds.report.figures._scores import rank_plot, score_plot
from genbounds.report.figures._spending import samples_plot, spending_plot
from genbounds.report.figures._statements import (
    VERDICT_TONES,
    claim_plot,
    miss_plot,
    tightness_plot,
    verdict,
)
from genbounds.report.page import Page, Section, answer_page
from genbounds.report.wording import (
    assumption_lines,
    lead_of,
    letters_of,
    measured_lines,
    method_lines,
    metric_title,
    stop_reason,
    together_table,
    verdict_line,
    verdict_text,
    warning_lines,
    winner_line,
)
from genbounds.results import Diagnostic, Ranking, Score, all_reliable

if TYPE_CHECKING:
    from genbounds.bounds import Bound
    from genbounds.estimators import PrecisionRecall
    from genbounds.select import Selection

PAPERS = {
    "O24": (
        "Hu, Leung and Farnia (2024), An Optimism-based Approach to Online Evaluation of "
        "Generative Models",
        "https://arxiv.org/abs/2406.07451v1",
    ),
    "M25": (
        "Hu, Leung and Farnia (2025), A Multi-Armed Bandit Approach to Online Selection and "
        "Evaluation of Generative Models",
        "https://arxiv.org/abs/2406.07451v3",
    ),
    "V24": (
        "Ospanov and Farnia (2024), On the Statistical Complexity of Estimating VENDI Scores from "
        "Empirical Data",
        "https://arxiv.org/abs/2410.21719v1",
    ),
    "C20": (
        "Chong and Forsyth (2020), Effectively Unbiased FID and Inception Score and where to find "
        "them",
        "https://arxiv.org/abs/1911.07023",
    ),
}
"""The papers whose statements the catalogue has, by their short names, and where to read them."""

FORMS = {
    "oracle": "the width needs quantities that only the true distribution has",
    "plug-in": "the width is computed from the sample alone",
    "deterministic": "holds for every input, without probability",
    "rate": "claims an order of growth only",
}
"""What the form of a statement means."""


SETTLING = (
    "Each point uses a random half of the rows of the next one. A score that keeps drifting beyond "
    "its interval as rows are added is still biased, or its rows are not independent."
)
"""What stands below the scores of growing samples."""


USUAL = "The usual number still has its bias: it is what pytorch-fid prints of the same rows"
"""What stands above scores beside those of other programs."""


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
    title = metric_title(metric)
    warnings = [*warnings, *(() if ranking is None else ranking.warnings)]
    order = scores if ranking is None else ranking.scores
    best = next(iter(order))
    score = scores[best]
    at = f"{percent(level)} interval"
    facts: list[tuple[str, Cell, str]] = [
        ("Model", Name(best), f"n = {number(score.n)}")
        if len(scores) == 1
        else ("Best score", Name(best), f"of {count(len(scores), 'model')}")
        if score.reliable
        else ("Best score", "none", "the leading one is unreliable"),
        (title, score.value, f"{at} {interval(score.low, score.high)}"),
    ]
    if ranking is not None and score.reliable:
        facts += _ranking_facts(ranking)
    if reference is not None:
        remark = f"{at} {interval(reference.low, reference.high)}"
        facts.append(("Real data", reference.value, remark))
    page = answer_page(
        f"{title} of {count(len(scores), 'model')}",
        _score_lead(best, score, title, ranking),
        *facts,
    )
    figure = (
        score_plot(scores, metric=metric, level=level) if ranking is None else rank_plot(ranking)
    )
    doubts = warning_blocks(scores, warnings, together)
    lines = [f"{shown(name)}: {score.citation()}" for name, score in scores.items()]
    cite = Notes(items=lines, title="Lines for a paper", folded=True)
    beside = [_beside_usual(order, usual)] if usual else []
    page.add(Section("Scores", [*doubts, figure, *beside, *basis(scores), cite]))
    if together:
        table = together_table(together, order)
        page.add(Section("Precision, recall and their like", [table]))
    if convergence:
        growth = {name: convergence[name] for name in order if name in convergence}
        figure = convergence_plot(growth, metric=metric, lines="Model")
        page.add(Section("Do the scores settle as samples are added?", [figure, SETTLING]))
    if ranking is not None and letters_of(ranking):
        joint = Notes(items=ranking.assumptions, title="What the comparison assumes")
        # Of two models the matrix is one square.
        matrix = [difference_matrix(ranking)] if len(order) > 2 else []
        blocks: list[Block] = [gap_plot(ranking), *matrix, joint]
        page.add(Section("Which models differ significantly", blocks))
    return page


def _beside_usual(scores: Mapping[str, Score], usual: Mapping[str, float]) -> Table:
    """Return every score beside the number of other programs."""
    rows = [
        (Name(name), score.value, interval(score.low, score.high), usual[name])
        for name, score in scores.items()
    ]
    return Table(("Model", "Bias removed", "Interval", "Usual number"), rows, USUAL)


def _score_lead(best: str, score: Score, title: str, ranking: Ranking | None) -> str:
    """Say who is best and how sure that is."""
    value = f"{number(score.value)} {interval(score.low, score.high)}"
    if ranking is not None:
        if not score.reliable:
            return verdict_line(ranking)
        return f"{verdict_line(ranking)} Its {title}: {value}. {winner_line(ranking)}"
    doubt = "" if score.reliable else " This score is unreliable: see the warnings."
    return f"{display(best, limit=72)} has a {title} of {value}.{doubt}"


def _ranking_facts(ranking: Ranking) -> list[tuple[str, Cell, str]]:
    """By how much the best model leads, and how many may be as good."""
    second = list(ranking.scores)[1]
    gap = ranking.difference(ranking.best, second)
    value, *ends = lead_of(gap, log_scale=ranking.log_scale)
    unit = " times" if ranking.log_scale else ""
    doubt = "" if gap.distinguishable else ", not significant"
    contenders = len({*ranking.contenders, ranking.best})
    return [
        (
            "Better than the next by",
            f"{number(value)}{unit}",
            f"{interval(*ends)}, ahead of {shown(second)}{doubt}",
        ),
        (
            "May be the best",
            f"{contenders} of {len(ranking.scores)}",
            f"{percent(ranking.level)}, all comparisons jointly",
        ),
    ]


def warning_blocks(
    scores: Mapping[str, Score],
    warnings: Sequence[Diagnostic] = (),
    together: Mapping[str, PrecisionRecall] | None = None,
) -> list[Block]:
    """Warnings with the models that they concern, unreliable ones first."""
    items = warning_lines(scores, warnings, together)
    trusted = all_reliable(
        [*warnings, *(w for score in scores.values() for w in score.warnings)]
    ) and all(found.reliable for found in (together or {}).values())
    tone: Tone = "open" if trusted else "bad"
    return [Notes(items=items, title="Warnings", tone=tone)] if items else []


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
    assumed = assumption_lines(scores)
    return [
        Notes(items=assumed, title="What these intervals assume"),
        Notes(items=method_lines(scores), title="How each score was computed", folded=True),
    ]


def select_page(selection: Selection, *, warnings: Sequence[Diagnostic] = ()) -> Page:
    """Build the page of `genbounds select`.

    Parameters
    ----------
    selection : genbounds.select.Selection
    warnings : sequence of Diagnostic
        About the whole run: its files, for one.
    """
    best = ", ".join(display(name, limit=72) for name in selection.top)
    title = metric_title(selection.metric)
    are = "is" if len(selection.top) == 1 else "are"
    at = percent(selection.confidence)
    left = len(selection.samples) - len(selection.set_aside)
    of = f"of {count(left, 'model')}{' left' if selection.set_aside else ''} by {title}"
    total = count(selection.total_samples, "sample")
    if selection.certified:
        lead = f"{best} {are} the best {of} from {total}, {selection.verdict}."
    elif not left:
        lead = "Every model was set aside: there is no answer."
    else:
        lead = f"{best} {are} ahead, {of}, but {total} do not certify that at {at}."
    page = answer_page(
        "Which model is best?",
        lead,
        (
            "Best" if selection.certified else "Ahead",
            Name(selection.best) if left else "no model",
            title,
        ),
        (
            "Answer",
            certificate(selection.certified),
            f"at {at}" + ("" if selection.certified else f"; {stop_reason(selection.stopped)}"),
        ),
        (
            "Samples",
            selection.total_samples,
            f"in {count(selection.steps, 'step')}, policy {selection.policy}",
        ),
    )
    steps, spent = spending(selection)
    figures = [samples_plot(selection.samples, best=selection.best), spending_plot(steps, spent)]
    page.add(Section("Where the samples went", figures))
    blocks = warning_blocks(selection.scores, warnings)
    if selection.scores:
        blocks += [
            score_plot(selection.scores, metric=selection.metric, level=selection.confidence),
            "The intervals of all arms, at all times of the run, hold together with probability "
            f"{percent(selection.confidence)}.",
        ]
    blocks += [*set_aside(selection.set_aside), *basis(selection.scores)]
    blocks.append(Notes(items=selection.notes, title="What the answer assumes"))
    return page.add(Section("Scores at the end", blocks))


def set_aside(arms: Mapping[str, str]) -> list[Block]:
    """Return the arms that were set aside, and why, if there are any."""
    rows = [(Name(arm), display(why, limit=300)) for arm, why in arms.items()]
    return [Table(("Arm", "Why"), rows, "Arms that were set aside")] if rows else []


def certificate(certified: bool) -> Tag:
    """Return whether an answer is certified, as a coloured word."""
    return Tag("certified", "good") if certified else Tag("not certified", "open")


def spending(selection: Selection) -> tuple[list[int], dict[str, list[int]]]:
    """Return the samples in total, and of each arm, after each step of a selection."""
    import numpy as np

    history = selection.history
    total = np.cumsum(history.drawn)
    spent = {
        name: np.cumsum(np.where(history.picks == arm, history.drawn, 0)).tolist()
        for arm, name in enumerate(history.names)
    }
    return total.tolist(), spent


def audit_page(document: Mapping[str, Any], *, bounds: Mapping[str, Bound] | None = None) -> Page:
    """Build the page of `genbounds audit`.

    Parameters
    ----------
    document : mapping
        As ``genbounds audit --json`` prints it.
    bounds : mapping of str to Bound, optional
        The catalogue, for claims and formulas.
    """
    rows = document["rows"]
    counts = {word: sum(row["verdict"] == word for row in rows) for word in VERDICT_TONES}
    refuted = counts["refuted"]
    lead = f"Of {count(len(rows), 'published inequality', 'published inequalities')}, " + (
        "none failed more often than it allows."
        if not refuted
        else f"{refuted} failed more often than allowed."
    )
    page = answer_page(
        "Do the inequalities hold as printed?",
        lead,
        ("Refuted", refuted, "with a counterexample each"),
        ("Not refuted", counts["upheld"], "in no test did they fail more often than allowed"),
        ("Vacuous", counts["vacuous"], "never violated, but the bound says nothing"),
    )
    verdicts = verdict_table(rows, f"Verdicts, seed {document['seed']}")
    page.add(Section("Verdicts", [verdicts, _legend(rows)]))
    if any(row["worst"]["claimed"] > 0 for row in rows):
        page.add(Section("Promised against measured", [miss_plot(rows)]))
    if any(row.get("tightness") for row in rows):
        page.add(Section("How tight they are", [tightness_plot(rows)]))
    details: list[Block] = []
    for row in rows:
        if row["verdict"] == "refuted":
            bound = None if bounds is None else bounds.get(row["id"])
            details += [f"{row['id']} ({_spelled_out(row['source'])})"]
            details += [] if bound is None else [bound.claim, Formula(bound.latex)]
            details.append(_measured(row))
    if details:
        page.add(Section("What was refuted, and by what", details))
    return page


def verdict_table(rows: Sequence[Mapping[str, Any]], caption: str = "") -> Table:
    """Return the verdicts of an audit, whose `rows` are those of its JSON."""
    return Table(
        ("Statement", "Verdict", "Form", "Tightness", "Cases", "Source"),
        [
            (
                Code(row["id"]),
                Tag(
                    verdict_text(row["verdict"], row.get("refuted_from")),
                    verdict(row["verdict"]).tone,
                ),
                row["form"],
                None if row["verdict"] == "refuted" else row["tightness"],
                row["cells"],
                _source(row["source"]),
            )
            for row in rows
        ],
        caption,
    )


def statement_page(bound: Bound, row: Mapping[str, Any]) -> Page:
    """Build the page of `genbounds bounds ID`.

    Parameters
    ----------
    bound : genbounds.bounds.Bound
    row : mapping
        Its row of an audit.
    """
    page = answer_page(
        bound.id,
        bound.claim,
        ("Verdict", verdict(row["verdict"]), "of a quick audit"),
        ("Form", bound.form, FORMS[bound.form]),
        (
            "Tightness",
            row["tightness"],
            "width over the smallest one that would hold; 1 is perfect",
        ),
    )
    constants = [(Code(name), short(value)) for name, value in bound.constants.items()]
    return page.add(
        Section(
            "The statement",
            [
                Formula(bound.latex),
                Table(("Source",), [(_source(bound.source),)]),
                f"Setting: {bound.setting}.",
                Notes(items=[a.text for a in bound.assumptions], title="Assumptions"),
                Table(("Constant", "As printed"), constants),
            ],
        ),
        *([Section("Claimed against measured", [claim_plot(row)])] if row.get("by_delta") else []),
        Section("The verdict", [_measured(row), *_checked(row)]),
    )


def _source(text: str) -> Cell:
    """Link a source to its paper, as far as it is one of those that the catalogue transcribes."""
    paper = PAPERS.get(text[:3])
    return text if paper is None else Link(text, paper[1])


def _spelled_out(source: str) -> str:
    """Return a source with the paper's name in place of its short one."""
    paper = PAPERS.get(source[:3])
    return source if paper is None else f"{paper[0]}:{source[3:]}"


def _legend(rows: Sequence[Mapping[str, Any]]) -> Notes:
    """Explain the columns of an audit, and the short names of the papers that occur."""
    forms = [form for form in FORMS if any(row["form"] == form for row in rows)]
    papers = [name for name in PAPERS if any(name in row["source"] for row in rows)]
    return Notes(
        title="How to read the table",
        items=[
            "Not refuted: in no test did it fail more often than it allows; that is no proof.",
            "Tightness: width of the bound over the smallest one that would hold; 1 is perfect; "
            "below 1 the bound promises too much.",
            *(f"Form {form}: {FORMS[form]}." for form in forms),
            *(f"{name}: {PAPERS[name][0]}." for name in papers),
        ],
    )


def _checked(row: Mapping[str, Any]) -> list[Block]:
    """Exact checks and fits of a statement, if there are any."""
    rows = [
        (check["kind"], Tag("holds", "good") if check["holds"] else Tag("fails", "bad"),
         check["claim"], check["found"])
        for check in row.get("checks") or ()
    ]  # fmt: skip
    columns = ("Kind", "", "Checked", "Found")
    return [Table(columns, rows, "Exact checks and fits")] if rows else []


def _measured(row: Mapping[str, Any]) -> Notes:
    items = [f"Counterexample: {row['counterexample']}"] if row["counterexample"] else []
    return Notes(items=[*items, *measured_lines(row)], title="Measured")
