"""The pages of decisions: `genbounds gate`, `plan`, `reproduce` and `track`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from genbounds._drawing import predicted_curve
from genbounds._text import count, interval, number, percent, short, shown, shown_pvalue
from genbounds.report import _scores as scored
from genbounds.report._scores import metric_title, remarks, with_assumptions
from genbounds.report.blocks import Block, Cell, Fact, Figure, Name, Notes, Table, Tag, Tone
from genbounds.report.page import Page, Section, answer_page, drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from genbounds.decisions import Plan, Reproduction, Track, Verdict

TONES: dict[str, Tone] = {
    "pass": "good", "consistent": "good", "fail": "bad", "not": "bad", "inconclusive": "open",
    "improved": "good", "collapsed": "bad", "undecided": "open",
}  # fmt: skip
"""How a decision, or the verdict on a run, is coloured."""

SHOWN = {"pass": "not worse", "fail": "worse", "inconclusive": "it may be worse"}
"""What each decision says about the candidate."""


def reproduction_page(found: Reproduction) -> Page:
    """Build the page of `genbounds reproduce`.

    Parameters
    ----------
    found : genbounds.decisions.Reproduction
    """
    where = f"{interval(found.low, found.high)} ({percent(found.level)})"
    facts: list[Fact] = [
        ("Predicted", found.predicted, where),
        ("Ours", found.value, "plug-in, of our own rows"),
    ]
    if found.decision is not None and found.pvalue is not None:
        tag = Tag(found.decision, TONES[found.decision])
        facts.insert(0, ("Decision", tag, f"p {shown_pvalue(found.pvalue)}"))
        facts.append(("Published", found.published, f"of {number(found.n)} rows"))
    page = answer_page("Is the published distance chance?", scored.sentence(str(found)), *facts)
    return page.add(Section("What this assumes", with_assumptions(found, title="")))


def gate_page(verdict: Verdict) -> Page:
    """Build the page of `genbounds gate`.

    Parameters
    ----------
    verdict : genbounds.decisions.Verdict
    """
    says = f"{SHOWN[verdict.decision]}{' or better' if verdict.equivalence else ''}"
    label, limits = "Worse by", interval(verdict.low, verdict.high)
    if verdict.worse_by < 0.0:
        label, limits = "Better by", interval(-verdict.high, -verdict.low)
    pvalue = f"p {shown_pvalue(verdict.difference.pvalue)} for no difference"
    facts: list[Fact] = [
        ("Decision", _tag(verdict), f"{says} by more than the margin"),
        (label, abs(verdict.worse_by), f"{limits}; {pvalue}"),
        ("Margin", short(verdict.margin), "in units of the score"),
    ]
    if verdict.relative_margin is not None:
        of = f"{percent(verdict.relative_margin)} of the score of {shown(verdict.baseline)}"
        facts[-1] = ("Margin", verdict.margin, of)
    if verdict.samples_needed is not None:
        facts.append(("Samples needed", verdict.samples_needed, "of each model, to settle it"))
    both = scored.score_plot(verdict.scores, metric=verdict.metric, level=verdict.level)
    return answer_page(
        "May the candidate replace the baseline?", scored.lead_sentence(verdict), *facts
    ).add(
        Section("The difference and the margin", with_assumptions(verdict, gate_plot(verdict))),
        Section("Both scores", [both]),
    )


def _tag(verdict: Verdict) -> Tag:
    return Tag(verdict.decision, TONES[verdict.decision])


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
    within = "within the unshaded part" if verdict.equivalence else "before the shaded part"
    names = Name(verdict.candidate), Name(verdict.baseline)
    return drawn(
        verdict.plot,
        rows=1,
        alt=f"{shown(verdict.candidate)} is worse than {shown(verdict.baseline)} by "
        f"{number(verdict.worse_by)}, limits {interval(verdict.low, verdict.high)}, margin "
        f"{number(verdict.margin)}.",
        caption="How much worse the candidate is than the baseline; the dashed line is the "
        f"margin. Either end of the line is a one-sided limit at {percent(verdict.level)}. It "
        f"passes where the whole line lies {within}.",
        table=Table(
            ("Candidate", "Baseline", "Worse by", "Low", "High", "Margin", "Decision"),
            [(*names, verdict.worse_by, verdict.low, verdict.high, verdict.margin, _tag(verdict))],
        ),
    )


# --- plan -----------------------------------------------------------------------------------------


def plan_page(plan: Plan) -> Page:
    """Build the page of `genbounds plan`.

    Parameters
    ----------
    plan : genbounds.decisions.Plan
    """
    wanted, least = "half-width", "half-width"
    target = f"{metric_title(plan.metric)}, {percent(plan.level)} interval"
    if plan.gap is not None:
        wanted, least = "difference", "smallest difference that is found"
        target = f"found with power {percent(plan.power)}, {percent(plan.level)} interval"
    facts: list[Fact] = [
        ("Generated samples", Tag("none", "bad"), "no number suffices")
        if plan.n is None
        else ("Generated samples", plan.n, "of each model" if plan.two_models else ""),
        (f"Target {wanted}", short(plan.half_width or plan.gap or 0.0), target),
        ("At best", plan.limit, f"{least} with any number of generated samples"),
    ]
    if plan.reference_needed is not None:
        facts.append(("Reference samples", plan.reference_needed, "at least"))
    page = answer_page("How many samples does it take?", scored.lead_sentence(plan), *facts)
    page.add(Section("More generated samples", with_assumptions(plan, plan_plot(plan))))
    reference = reference_plot(plan)
    return page if reference is None else page.add(Section("More reference samples", [reference]))


def plan_plot(plan: Plan) -> Figure:
    """Show the predicted half-width, or power, against the number of generated samples.

    Parameters
    ----------
    plan : Plan

    Returns
    -------
    Figure
    """
    upright, of = "half-width", "half-width of the interval for"
    floor = not plan.feasible
    if plan.powers is not None:
        upright, of, floor = "power", "power to find", False
    what = _measured(plan) if plan.gap is None else f"a difference of {short(plan.gap)}"
    return drawn(
        plan.plot,
        alt=f"Predicted {upright} against n. {plan}.",
        caption=f"Predicted {of} {what} against the number of generated samples"
        f"{' of each model' if plan.two_models else ''}. Dashed: the target."
        + (" Dotted: what no number of generated samples gets below." if floor else ""),
        table=width_table(plan),
    )


def width_table(plan: Plan) -> Table:
    """Return the predicted half-width, and power, of some numbers of samples."""
    rows: list[tuple[Cell, ...]] = [
        (n, width, *([] if power is None else [percent(round(power, 3))]))
        for n, width, power in plan.rows()
    ]
    width = "Half-width" if plan.pays is None else "Half-width alone"
    return Table(("n", width, *["Power"] * (plan.powers is not None)), rows)


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
    if plan.reference_sizes is None or plan.reference_half_widths is None:
        return None
    sizes, widths = plan.reference_sizes.tolist(), plan.reference_half_widths.tolist()
    if not min(widths) > 0.0:
        return None
    generated = "any number of" if plan.n is None else number(plan.n)
    step = max(1, (len(sizes) - 1) // 4)

    def paint(ax: Axes) -> None:
        across, upright = (sizes, "reference samples m"), (widths, "half-width")
        predicted_curve(ax, across, upright, wanted=plan.half_width)

    return drawn(
        paint,
        alt=f"Predicted half-width against m, with {generated} generated samples.",
        caption=f"Predicted half-width of the interval for {_measured(plan)}, with {generated} "
        f"samples{' of each model' if plan.two_models else ' of the model'}, against the number of "
        "reference samples." + ("" if plan.half_width is None else " Dashed: the target."),
        table=Table(
            ("m", "Half-width"),
            [(round(m), width) for m, width in list(zip(sizes, widths, strict=True))[::step]],
        ),
    )


def _measured(plan: Plan) -> str:
    """Return what the interval is for."""
    title = metric_title(plan.metric)
    return f"the difference of both models in {title}" if plan.two_models else title


# --- track ----------------------------------------------------------------------------------------

STATE_TONES: dict[str, Tone] = {"improved": "good", "collapsed": "bad", "unreliable": "open"}


def track_page(track: Track) -> Page:
    """Build the page of `genbounds track`.

    Parameters
    ----------
    track : genbounds.decisions.Track
    """
    title, kept = metric_title(track.metric), track.kept
    ends, looks = interval(kept.score.low, kept.score.high), count(len(track.looks), "look")
    tag = Tag(track.verdict, TONES.get(track.verdict, "plain"))
    facts: list[Fact] = [("Verdict", tag, f"after {looks} of {number(track.planned)}")]
    if track.advice:
        facts += [
            ("Keep step", short(track.best), f"the best of {looks} by {title}"),
            (title, kept.score.value, f"{ends}, from fresh rows")
            if kept.fresh
            else (title, ends, "corrected for the choice"),
        ]
    page = answer_page("Is training still improving?", f"{track.summary} {track.advice}", *facts)
    named = {f"step {short(step)}": score for step, score in track.scores.items()}
    warned, *basis = remarks(named, track.warnings)
    blocks: list[Block] = [
        warned,
        track_plot(track),
        f"At most {percent(1.0 - track.level)} of such runs call any step improved or collapsed "
        "that is not.",
        Notes(items=track.assumptions, title="What the verdict assumes"),
        *basis,
    ]
    return page.add(Section("The run", blocks))


def track_plot(track: Track) -> Figure:
    """Show the score of every checkpoint against its step, with simultaneous bands.

    Parameters
    ----------
    track : genbounds.decisions.Track

    Returns
    -------
    Figure
        Triangles are looks that improved or collapsed; the dashed line is the kept checkpoint.
    """
    title, looks = metric_title(track.metric), track.looks
    scores, steps = [look.score for look in looks], [look.step for look in looks]
    states = [look.state for look in looks]
    return drawn(
        track.plot,
        alt=f"{title} at {count(len(looks), 'step')}, from {number(scores[0].value)} at step "
        f"{short(steps[0])} to {number(scores[-1].value)} at step {short(steps[-1])}; "
        f"{states.count('improved')} improved, {states.count('collapsed')} collapsed. The best "
        f"value, {number(track.scores[track.best].value)}, is that of step {short(track.best)}.",
        caption=f"{title} by step. The band holds at all looks together with probability "
        f"{percent(track.level)}. Triangle up: better than every earlier step; triangle down: "
        "worse than an earlier one; cross: unreliable. The dashed line is the step to keep.",
        table=look_table(track),
    )


def look_table(track: Track) -> Table:
    """Return the score and the state of every look."""
    scores = {short(look.step): look.score for look in track.looks}
    states = [Tag(x.state, STATE_TONES.get(x.state, "plain")) for x in track.looks]
    more: dict[str, list[Cell]] = {"n": [s.n for s in scores.values()], "State": [*states]}
    table = scored.score_table(scores, more, name="Step", value="Score")
    # Steps sort as numbers, names do not.
    rows = [(step, *row[1:]) for step, row in zip(scores, table.rows, strict=True)]
    return Table(table.columns, rows)
