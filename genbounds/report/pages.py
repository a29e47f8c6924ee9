"""The pages that the commands write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from genbounds.files import display
from genbounds.report._text import interval, metric_title, number, percent, rate, short
from genbounds.report.blocks import (
    Block,
    Cell,
    Code,
    Facts,
    Formula,
    Link,
    Name,
    Notes,
    Table,
    Tag,
)
from genbounds.report.figures import (
    VERDICT_TONES,
    claim_plot,
    convergence_plot,
    difference_matrix,
    gap_plot,
    miss_plot,
    rank_plot,
    samples_plot,
    score_plot,
    spending_plot,
    tightness_plot,
    verdict,
)
from genbounds.report.page import Page, Section
from genbounds.results import Diagnostic, Ranking, Score

if TYPE_CHECKING:
    from genbounds.bounds import Bound
    from genbounds.select import Selection

PAPERS = {
    "O24": "https://arxiv.org/abs/2406.07451v1",
    "M25": "https://arxiv.org/abs/2406.07451v3",
    "V24": "https://arxiv.org/abs/2410.21719v1",
    "C20": "https://arxiv.org/abs/1911.07023",
}
"""Where to read the papers whose statements the catalogue has, by their short names."""

_FOOT = "Made by genbounds. The page is complete in itself: it loads nothing from anywhere."


def score_page(
    scores: Mapping[str, Score],
    *,
    metric: str,
    level: float,
    ranking: Ranking | None = None,
    reference: Score | None = None,
    convergence: Mapping[str, Sequence[tuple[int, Score]]] | None = None,
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
    convergence : mapping of str to sequence of (int, Score), optional
        Scores of growing parts of the models' samples, as `genbounds.estimators.convergence`
        returns them.
    warnings : sequence of Diagnostic
        About the whole run.
    """
    title = metric_title(metric)
    best = next(iter(scores)) if ranking is None else ranking.best
    score = scores[best]
    facts: list[tuple[str, Cell, str]] = [
        ("Model" if len(scores) == 1 else "Best score", Name(best), f"of {len(scores)}"),
        (title, score.value, f"{percent(level)} interval {interval(score.low, score.high)}"),
    ]
    if reference is not None:
        remark = f"{percent(level)} interval {interval(reference.low, reference.high)}"
        facts.append(("Real data", reference.value, remark))
    name = display(best, limit=72)
    lead = f"{name} has a {title} of {number(score.value)} {interval(score.low, score.high)}."
    if ranking is not None:
        rivals = len(ranking.contenders) - (ranking.best in ranking.contenders)
        facts.append(("May still be the best", rivals + 1, "models, jointly"))
        lead = f"{name} has the best {title}, {number(score.value)}; " + (
            f"it is significantly better than every other model ({percent(level)}, jointly)."
            if rivals == 0
            else f"it does not differ significantly from {_names(ranking)}."
        )
    page = Page(title=f"{title} of {_count(len(scores), 'model')}", lead=lead, foot=_FOOT)
    page.facts = Facts(items=facts)
    figure = (
        score_plot(scores, metric=metric, level=level) if ranking is None else rank_plot(ranking)
    )
    page.add(Section("Scores", [figure, *_remarks(scores, warnings)]))
    if convergence:
        names = scores if ranking is None else ranking.scores
        growth = {name: convergence[name] for name in names if name in convergence}
        page.add(
            Section(
                "Do the scores settle as samples are added?",
                [
                    convergence_plot(growth, metric=metric, lines="Model"),
                    "Each point is the score of a random half of the rows of the next. An estimate "
                    "that keeps drifting beyond its band as rows are added is still biased, or its "
                    "rows are not independent.",
                ],
            )
        )
    if ranking is not None:
        joint = Notes(items=ranking.assumptions, title="What the comparison assumes")
        blocks: list[Block] = [gap_plot(ranking), difference_matrix(ranking), joint]
        page.add(Section("Which models differ significantly", blocks))
    return page


def _remarks(scores: Mapping[str, Score], warnings: Sequence[Diagnostic] = ()) -> list[Block]:
    """Warnings with the models that they concern, assumptions, and methods behind a fold."""
    concerned: dict[Diagnostic, list[str]] = {warning: [] for warning in warnings}
    for name, score in scores.items():
        for warning in score.warnings:
            concerned.setdefault(warning, []).append(display(name, limit=60))
    many = len(scores) > 1
    items = [
        f"{warning} ({', '.join(names)})" if names and many else str(warning)
        for warning, names in concerned.items()
    ]
    assumed = dict.fromkeys(a for score in scores.values() for a in score.assumptions)
    methods = [
        f"{display(name, limit=60)}: {'; '.join((score.method, *score.details))}"
        for name, score in scores.items()
    ]
    found: list[Block] = [Notes(items=items, title="Warnings")] if items else []
    if assumed:
        found.append(Notes(items=list(assumed), title="What these intervals assume"))
    return [*found, Notes(items=methods, title="How each score was computed", folded=True)]


def select_page(selection: Selection) -> Page:
    """Build the page of `genbounds select`.

    Parameters
    ----------
    selection : genbounds.select.Selection
    """
    name = display(selection.best, limit=72)
    title = metric_title(selection.metric)
    total = selection.total_samples
    if selection.certified:
        lead = (
            f"{name} is the best of {len(selection.samples)} models by {title}, certified at "
            f"{percent(selection.confidence)} from {number(total)} samples."
        )
        state = Tag("certified", "good")
    else:
        lead = (
            f"{name} is ahead of {len(selection.samples)} models by {title}, but "
            f"{number(total)} samples do not certify it at {percent(selection.confidence)}."
        )
        state = Tag("not certified", "open")
    page = Page(title="Which model is best?", lead=lead, foot=_FOOT)
    page.facts = Facts(
        items=[
            ("Best", Name(selection.best), title),
            ("Answer", state, f"at {percent(selection.confidence)}; stopped: {selection.stopped}"),
            ("Samples", total, f"in {number(selection.steps)} steps, policy {selection.policy}"),
        ]
    )
    steps, spent = spending(selection)
    page.add(
        Section(
            "Where the samples went",
            [
                samples_plot(selection.samples, best=selection.best),
                spending_plot(steps, spent),
            ],
        )
    )
    blocks: list[Block] = []
    if selection.scores:
        blocks.append(
            score_plot(selection.scores, metric=selection.metric, level=selection.confidence)
        )
        blocks.append(
            "These intervals belong together: those of all arms at all times of the run hold at "
            f"once with probability {percent(selection.confidence)}."
        )
    if selection.set_aside:
        rows = [(Name(arm), reason) for arm, reason in selection.set_aside.items()]
        blocks.append(Table(("Arm", "Why"), rows, "Arms that were set aside"))
    blocks += _remarks(selection.scores)
    blocks.append(Notes(items=selection.notes, title="What the answer rests on"))
    return page.add(Section("Scores at the end", blocks))


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
    refuted = [row["id"] for row in rows if row["verdict"] == "refuted"]
    lead = f"Of {_count(len(rows), 'statement')}, " + (
        "none was refuted."
        if not refuted
        else f"{len(refuted)} failed beyond what is allowed: {', '.join(refuted)}."
    )
    page = Page(title="Do the inequalities hold as printed?", lead=lead, foot=_FOOT)
    page.facts = Facts(
        items=[
            ("Upheld", counts["upheld"], "never failed more often than allowed"),
            ("Refuted", counts["refuted"], "with a counterexample each"),
            ("Vacuous", counts["vacuous"], "true, and say nothing"),
        ]
    )
    verdicts = Table(
        columns=("Statement", "Verdict", "Form", "Tightness", "Cells", "Source"),
        rows=[
            (
                Code(row["id"]),
                verdict(row["verdict"]),
                row["form"],
                row["tightness"],
                row["cells"],
                _source(row["source"]),
            )
            for row in rows
        ],
        caption=f"Verdicts, seed {document['seed']}",
    )
    page.add(Section("Verdicts", [verdicts]))
    if any(row["worst"]["claimed"] > 0 for row in rows):
        page.add(Section("Promised against measured", [miss_plot(rows)]))
    if any(row.get("tightness") for row in rows):
        page.add(Section("How tight they are", [tightness_plot(rows)]))
    details: list[Block] = []
    for row in rows:
        if row["verdict"] == "refuted":
            bound = None if bounds is None else bounds.get(row["id"])
            details += [f"{row['id']} ({row['source']})"]
            details += [] if bound is None else [bound.claim, Formula(bound.latex)]
            details.append(_measured(row))
    if details:
        page.add(Section("What was refuted, and by what", details))
    return page


def statement_page(bound: Bound, row: Mapping[str, Any]) -> Page:
    """Build the page of `genbounds bounds ID`.

    Parameters
    ----------
    bound : genbounds.bounds.Bound
    row : mapping
        Its row of an audit.
    """
    page = Page(title=bound.id, lead=bound.claim, foot=_FOOT)
    page.facts = Facts(
        items=[
            ("Verdict", verdict(row["verdict"]), "of a quick audit"),
            ("Form", bound.form, bound.setting),
            ("Tightness", row["tightness"], "width over needed width"),
        ]
    )
    constants = [(Code(name), short(value)) for name, value in bound.constants.items()]
    return page.add(
        Section(
            "The statement",
            [
                Formula(bound.latex),
                Table(("Source",), [(_source(bound.source),)]),
                Notes(items=[a.text for a in bound.assumptions], title="Assumptions"),
                Table(("Constant", "As printed"), constants),
            ],
        ),
        *([Section("Claimed against measured", [claim_plot(row)])] if row.get("by_delta") else []),
        Section("The verdict", [_measured(row), *_checked(row)]),
    )


def _source(text: str) -> Cell:
    """Link a source to its paper, as far as it is one of those that the catalogue transcribes."""
    address = PAPERS.get(text[:3])
    return text if address is None else Link(text, address)


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
    worst = row["worst"]
    items = [f"Counterexample: {row['counterexample']}"] if row["counterexample"] else []
    size = "" if worst["n"] is None else f" with n = {worst['n']}"
    case = f"{worst['arm']}{size}, d = {worst['d']}"
    if worst["delta"] is None:
        items.append(f"Searched for inputs that violate it, worst: {case}.")
    else:
        items.append(
            f"Worst case: {case}, δ = {short(worst['delta'])}; it misses at a rate of "
            f"{rate(worst['miss'], worst['miss_low'], worst['miss_high'])}, "
            f"allowed is {short(worst['claimed'])}."
        )
    return Notes(items=items, title="Measured")


def _names(ranking: Ranking) -> str:
    """Name the rivals of the model that is ahead, a few at most."""
    rivals = [display(name, limit=40) for name in ranking.contenders if name != ranking.best]
    return ", ".join(rivals) if len(rivals) <= 3 else f"{len(rivals)} other models"


def _count(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
