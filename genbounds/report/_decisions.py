"""The pages of decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from genbounds._text import interval, number, percent, short, shown, shown_pvalue
from genbounds.report.blocks import Cell, Name, Table, Tag
from genbounds.report.figures._decisions import DECISION_TONES, gate_plot, plan_plot, reference_plot
from genbounds.report.figures._scores import score_plot
from genbounds.report.page import Page, Section, answer_page
from genbounds.report.pages import certificate, set_aside, with_assumptions
from genbounds.report.wording import metric_title, sentence, stop_reason
from genbounds.results import Diagnostic, Score

if TYPE_CHECKING:
    from genbounds.decisions import Plan, Reproduction, Verdict
    from genbounds.mixtures import Mixture, MixtureSelection
    from genbounds.select import SelectionPlan


def _lead(result: Verdict | Mixture | MixtureSelection | Plan | SelectionPlan) -> str:
    """Return what a result says as a sentence, its metric by its title."""
    return sentence(str(replace(result, metric=metric_title(result.metric))))


_SHOWN = {"pass": "not worse", "fail": "worse", "inconclusive": "it may be worse"}
"""What each decision says about the candidate."""


def reproduction_page(found: Reproduction) -> Page:
    """Build the page of `genbounds reproduce`.

    Parameters
    ----------
    found : genbounds.decisions.Reproduction
    """
    where = f"{interval(found.low, found.high)} ({percent(found.level)})"
    items: list[tuple[str, Cell, str]] = [
        ("Predicted", found.predicted, where),
        ("Ours", found.value, "plug-in, of our own rows"),
    ]
    if found.decision is not None and found.pvalue is not None:
        tag = Tag(found.decision, DECISION_TONES[found.decision])
        items.insert(0, ("Decision", tag, f"p {shown_pvalue(found.pvalue)}"))
        items.append(("Published", found.published, f"of {number(found.n)} rows"))
    page = answer_page("Is the published distance chance?", sentence(str(found)), *items)
    return page.add(Section("What this assumes", with_assumptions(found, title="")))


def gate_page(verdict: Verdict) -> Page:
    """Build the page of `genbounds gate`.

    Parameters
    ----------
    verdict : genbounds.decisions.Verdict
    """
    share = verdict.relative_margin
    pvalue = f"p {shown_pvalue(verdict.difference.pvalue)} for no difference"
    better = verdict.worse_by < 0.0
    limits = (
        interval(-verdict.high, -verdict.low) if better else interval(verdict.low, verdict.high)
    )
    page = answer_page(
        "May the candidate replace the baseline?",
        _lead(verdict),
        (
            "Decision",
            Tag(verdict.decision, DECISION_TONES[verdict.decision]),
            f"{_SHOWN[verdict.decision]}{' or better' if verdict.equivalence else ''} by more "
            "than the margin",
        ),
        ("Better by" if better else "Worse by", abs(verdict.worse_by), f"{limits}; {pvalue}"),
        (
            "Margin",
            short(verdict.margin) if share is None else verdict.margin,
            "in units of the score"
            if share is None
            else f"{percent(share)} of the score of {shown(verdict.baseline)}",
        ),
        *(
            [("Samples needed", verdict.samples_needed, "of each model, to settle it")]
            if verdict.samples_needed is not None
            else []
        ),
    )
    both = score_plot(verdict.scores, metric=verdict.metric, level=verdict.level)
    return page.add(
        Section("The difference and the margin", with_assumptions(verdict, gate_plot(verdict))),
        Section("Both scores", [both]),
    )


def mixture_page(mixture: Mixture) -> Page:
    """Build the page of `genbounds mixture`.

    Parameters
    ----------
    mixture : genbounds.decisions.Mixture
    """
    at = f"one-sided, {percent(mixture.level)}"
    score = mixture.score
    page = answer_page(
        "Is a mixture of models better?",
        _lead(mixture),
        ("Better than every model", certificate(mixture.certified), at),
        ("Gain, at least", mixture.gain_low, f"{at}; estimate {number(mixture.gain)}"),
        ("Score", score.value, f"of the mixture, {interval(score.low, score.high)}"),
    )
    figure = score_plot(_scores_by_share(mixture), metric=mixture.metric, level=mixture.level)
    blocks = with_assumptions(mixture, share_table(mixture), figure)
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
    answer = certificate(result.certified)
    at = f"at {percent(result.confidence)}"
    page = answer_page(
        "Which mixture of models is best?",
        _lead(result),
        ("Answer", answer, at if result.certified else f"{at}; {stop_reason(result.stopped)}"),
        ("Gap, at most", result.gap_high, f"to the best mixture, {at}"),
        ("Samples", result.total_samples, f"policy {result.policy}"),
    )
    scores = _scores_by_share(result)
    blocks = with_assumptions(
        result,
        sampled_share_table(result),
        score_plot(scores, metric=result.metric, level=result.confidence),
        *set_aside(result.set_aside),
        scores=scores,
        warnings=warnings,
    )
    return page.add(Section("Shares and scores", blocks))


def _scores_by_share(result: Mixture | MixtureSelection) -> dict[str, Score]:
    """Return the score of the mixture, then those of its models, the largest share first."""
    order = sorted(result.weights, key=lambda name: -result.weights[name])
    return {"mixture": result.score, **{name: result.scores[name] for name in order}}


def share_table(mixture: Mixture) -> Table:
    """Return the shares of a mixture and all scores."""
    rows = [
        (
            Name(name),
            percent(round(mixture.weights[name], 3)) if name in mixture.weights else "",
            score.value,
            interval(score.low, score.high),
        )
        for name, score in _scores_by_share(mixture).items()
    ]
    return Table(("Model", "Share", "Score", "Interval"), rows)


def sampled_share_table(result: MixtureSelection) -> Table:
    """Return the shares of a mixture that was found while samples were drawn."""
    _, *order = _scores_by_share(result)
    rows = [
        (Name(x), percent(round(result.weights[x], 3)), result.samples[x], result.scores[x].value)
        for x in order
    ]
    return Table(("Arm", "Share", "Samples", "Score"), rows)


def plan_page(plan: Plan) -> Page:
    """Build the page of `genbounds plan`.

    Parameters
    ----------
    plan : genbounds.decisions.Plan
    """
    wanted = "half-width" if plan.gap is None else "difference"
    least = wanted if plan.gap is None else "smallest difference that is found"
    answer: Tag | int = Tag("none", "bad") if plan.n is None else plan.n
    each = "of each model" if plan.two_models else ""
    facts: list[tuple[str, Cell, str]] = [
        ("Generated samples", answer, "no number suffices" if plan.n is None else each),
        (f"Target {wanted}", short(plan.half_width or plan.gap or 0.0), _target(plan)),
        ("At best", plan.limit, f"{least} with any number of generated samples"),
    ]
    if plan.reference_needed is not None:
        facts.append(("Reference samples", plan.reference_needed, "at least"))
    page = answer_page("How many samples does it take?", _lead(plan), *facts)
    page.add(Section("More generated samples", with_assumptions(plan, plan_plot(plan))))
    reference = reference_plot(plan)
    if reference is not None:
        page.add(Section("More reference samples", [reference]))
    return page


def selection_plan_page(plan: SelectionPlan) -> Page:
    """Build the page of `genbounds plan --confidence`.

    Parameters
    ----------
    plan : genbounds.select.SelectionPlan
    """
    answer: Tag | int = Tag("none", "bad") if plan.budget is None else plan.budget
    page = answer_page(
        "How many samples until the best is known?",
        _lead(plan),
        ("Samples in all", answer, f"suffice with probability {percent(plan.power)}"),
        ("Certified", percent(round(plan.certified, 3)), "of simulated runs"),
        (
            "First look",
            plan.first_look,
            f"samples of each model; the run draws at most {number(plan.limit)} of one",
        ),
    )
    figure = score_plot(plan.scores, metric=plan.metric, level=plan.confidence)
    blocks = with_assumptions(plan, pilot_table(plan), figure)
    return page.add(Section("Models and their pilots", blocks))


def pilot_table(plan: SelectionPlan) -> Table:
    """Return the score of every pilot, and how far its model is likely to be drawn."""
    rows = [
        (Name(name), score.value, interval(score.low, score.high), plan.samples[name])
        for name, score in plan.scores.items()
    ]
    caption = "Samples of each model in the simulated runs"
    return Table(("Model", "Pilot", "Interval", "Samples, median"), rows, caption)


def _target(plan: Plan) -> str:
    at = f"{percent(plan.level)} interval"
    if plan.gap is None:
        return f"{metric_title(plan.metric)}, {at}"
    return f"found with power {percent(plan.power)}, {at}"
