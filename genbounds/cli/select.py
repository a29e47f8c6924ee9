"""`genbounds select` and `mixture`: the best model, or mixture of models, with a certificate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import genbounds as gb
from genbounds._text import display, interval, number, percent, shown
from genbounds.cli import _options as opt
from genbounds.cli._command import Answer, command, renamed
from genbounds.cli._terminal import print_remarks, print_table, progress, say, tidy

if TYPE_CHECKING:
    from genbounds.report.blocks import Cell

EXAMPLES = """
genbounds select real.npy gan.npy vae.npy diffusion.npy
genbounds select --reference stats.npz models/*.npy --confidence 0.99
genbounds select real.npy models:gan models:vae --budget 50000 --record kept
genbounds select r.npy a.npy b.npy --metric kad --target mixture --tolerance 1
genbounds select --reference real.npz gan.npz diffusion.npz --contexts kind
genbounds select *.npy --metric is --policy elimination --budget 20000 --json
"""


def _advice(
    arms: Sequence[Path], record: Path | None, judging: opt.ScoreJudging, **_: object
) -> str:
    """Say after Ctrl-C what is left and how to go on."""
    if record is not None:
        return f"the samples drawn so far are in {display(record)}: the same command goes on."
    if _live(arms):
        return "what live models drew is lost; with --record DIR the same command would go on."
    if judging.reading.encoder is not None and judging.output.out is None:
        return "what was encoded is lost; with --out DIR it is kept for the next run."
    return "the samples lie in the files; run the same command again."


def _live(arms: Sequence[Path]) -> list[Path]:
    return [arm for arm in arms if gb.features.is_entry_point(str(arm)) and not arm.exists()]


@command("[REFERENCE] ARM...", EXAMPLES, advice=_advice)
def select(
    arms: list[Path] = opt.argument(
        "ARM",
        "The reference, unless --reference names it or the metric needs none; then one file per "
        "model: features, or for is class probabilities; rows are drawn at random, each once. Or "
        "a live model module:function, a function of (n, rng) that returns n new rows; with "
        "--encoder, n images or texts.",
    ),
    *,
    reference: Path | None = opt.option(
        "REFERENCE",
        "Features of the real data, for fd also statistics; vendi and rke take their bandwidth "
        "from them, is and mean need none.",
    ),
    target: str = opt.choice(
        "best|mixture",
        "best: the best model; mixture: shares of models whose score is at most --tolerance from "
        "that of the best mixture (fd, kid, cmmd, kad, energy, rke).",
        default="best",
    ),
    policy: str = opt.option(
        "POLICY",
        "Rule that picks the model to sample next. lucb, elimination and uniform stop once the "
        "best is certified; random, greedy, fd-ucb and others spend the budget, or 50,000 samples "
        "of a model.",
        default="lucb",
        offers=lambda: gb.select.POLICIES,
    ),
    policy_option: list[str] | None = opt.option(
        "NAME=VALUE",
        "Option of the policy, such as kappa=1.6 or threshold=none of fd-ucb; may be repeated. "
        "All of them: the documentation of its class, gb.select.FdUcb and so on.",
    ),
    metric: str = opt.metric_option(opt.growing_metrics),
    confidence: float = opt.option("C", "Confidence of a certified answer.", default=0.95),
    batch: int = opt.option("B", "Samples drawn per step.", default=5),
    budget: int | None = opt.option(
        "N", "Largest number of samples in total (with --cost: the most that they may cost)."
    ),
    top: int = opt.option("K", "Find the best K models instead of one.", default=1),
    tolerance: float = opt.option(
        "E",
        "A model counts as best if no other is better by more than this: squared distance for "
        "fd, logarithm for is.",
        default=0.0,
    ),
    cost: list[str] | None = opt.option(
        "NAME=C", "Cost of one sample of this model, where it is not 1; may be repeated."
    ),
    contexts: str | None = opt.array_option(
        "which kind of prompt each row belongs to: a winner for each kind, all of them right "
        "together at --confidence",
        "kind",
    ),
    record: Path | None = opt.option(
        "DIR",
        "Folder that keeps all samples drawn: the same command goes on from them after an "
        "interruption, also with a larger budget or more models behind the others.",
    ),
    first_look: int | None = opt.option(
        "N",
        "Samples from which on a model is scored: more where rare samples matter. By default as "
        "few as the metric allows.",
    ),
    seed: int = opt.SEED,
    judging: opt.ScoreJudging,
) -> Answer:
    """Find the best model from as few samples as possible.

    Exit status 0 if the answer is certified, 1 if not: samples or budget were exhausted before, or
    fewer than two models are left. A model that fails, or whose samples are seen not to be
    independent of one another, is set aside and named.
    """
    from genbounds.cli._inputs import choose_metric
    from genbounds.cli._line_up import costs_of, counted, line_up, policy_of
    from genbounds.cli._media import open_encoder
    from genbounds.select._run import TARGETS
    from genbounds.validation import check_choice

    spec = choose_metric(replace(judging, metric=metric))
    reading = replace(judging.reading, contexts=contexts)
    spec.check_growing("selection")
    check_choice("--policy", policy, gb.select.POLICIES)
    check_choice("--target", target, TARGETS)
    if spec.reference == "required" and reference is None:
        if len(arms) < 2:
            raise gb.InputError(
                f"--metric {metric} needs a reference: give it first, or as --reference FILE."
            )
        reference, *arms = arms  # as `score` takes it
    if spec.reference == "optional" and reference is None:
        spec.prepared(None)  # says what it needs one for, before files are read
    live = _live(arms)
    if live:
        _check_live(live[0], reading, budget)
    real = None if spec.reference == "none" else reference
    # A run that is recorded keeps what it has drawn until it is stopped, however that is.
    stopped = tidy() if record is not None else nullcontext()
    with open_encoder(reading, [real, *arms], out=judging.output.out) as encoded:
        taken, known, warnings = line_up(real, arms, live, spec, reading, encoded)
        names = {} if real is None else {"reference": real, "real": real}
        with progress("samples") as advance, renamed(names), stopped:
            result = gb.select.run(
                **taken,
                policy=policy if not policy_option else policy_of(policy, policy_option),
                metric=spec,
                confidence=confidence,
                batch=batch,
                budget=budget,
                seed=seed,
                top=top,
                tolerance=tolerance,
                cost=costs_of(cost or (), known),
                record=record,
                first_look=first_look,
                # A file answers a second time as it did the first.
                retries=2 if live else 0,
                progress=None if target == "mixture" else counted(advance, budget),
                target=target,
            )
    unread = () if reference is None or real is not None else (reference,)
    notes = [f"{spec.title} uses no reference: {display(path)} not read" for path in unread]
    return _answer(result, notes, warnings, verbose=judging.verbose)


def _answer(
    result: Any, notes: Sequence[str], warnings: Sequence[gb.Diagnostic], *, verbose: bool
) -> Answer:
    """Answer with the page and the table of one target."""
    page: Callable[..., gb.report.Page]
    show: Callable[[Any], None]
    if isinstance(result, gb.select.ContextSelection):
        page, show, notes = gb.report.contexts_page, _show_contexts, []
        scores = result.recommended_scores
    elif isinstance(result, gb.select.MixtureSelection):
        page, show, notes = gb.report.mixture_selection_page, _show_mixture, []
        scores = {"mixture": result.score}
    else:
        page, show, notes = gb.report.select_page, _show, [*result.notes, *notes]
        scores = result.scores

    def show_all() -> None:
        show(result)
        if notes:
            say("", *(f"* {note}" for note in notes))
        print_remarks(scores, warnings=warnings, verbose=verbose)

    return Answer(
        document=result.to_dict() | {"notes": [*notes, *(w.message for w in warnings)]},
        show=show_all,
        page=lambda: page(result, warnings=warnings),
        negative=not result.certified,
    )


def _check_live(arm: Path, reading: opt.ScoreReading, budget: int | None) -> None:
    """Refuse options that live models do not take, and a run without an end."""
    if reading.logits:
        raise gb.InputError("`--logits` is for files; let a live model return posteriors.")
    if reading.contexts is not None:
        raise gb.InputError(
            "is for files; for live models use gb.select.run(..., contexts=) in Python.",
            argument="--contexts",
        )
    if budget is None:
        raise gb.InputError(
            f"{display(arm)} never ends: say with --budget N how many samples to draw at most."
        )


def _row(result: gb.select.Selection, name: str) -> tuple[Cell, ...]:
    """Name, score, interval, samples and state of one arm; no state if all is well."""
    score, arm = result.scores.get(name), result.arms[name]
    scored = ("–", "–") if score is None else (score.value, interval(score.low, score.high))
    state = display(arm.reason)
    if arm.state == "set aside":
        state = f"set aside: {state}"
    elif score is not None and not score.reliable:
        state = f"{state}; unreliable" if state else "unreliable"
    return (gb.report.Name(name), *scored, result.samples[name], state)


def _show(result: gb.select.Selection) -> None:
    from genbounds.report._selections import selection_line

    say(selection_line(result), "")
    names = [*result.scores, *(name for name in result.samples if name not in result.scores)]
    rows = [_row(result, name) for name in names]
    table = gb.report.Table(("Arm", "Score", "Interval", "Samples", "State"), rows)
    print_table(table, without=() if any(row[-1] for row in rows) else ("State",))
    priced = "" if result.cost == result.total_samples else f", cost {number(result.cost)}"
    say("", f"{number(result.total_samples)} samples in {number(result.steps)} steps{priced}.")


def _show_mixture(result: gb.select.MixtureSelection) -> None:
    """Print shares and the bound of the gap."""
    from genbounds.report._selections import share_table

    say(f"{result}.", "")
    print_table(share_table(result))
    aside = [f"* {shown(name)} set aside: {display(why)}" for name, why in result.set_aside.items()]
    if aside:
        say("", *aside)


def _show_contexts(result: gb.select.ContextSelection) -> None:
    """Print which arm is best in each context."""
    from genbounds.report._selections import contexts_line, winner_table
    from genbounds.report.wording import stop_reason

    say(contexts_line(result), "")
    print_table(winner_table(result))
    lines = [f"{number(result.total_samples)} samples; scores are those of the recommended models."]
    if not result.certified:
        lines.append("Where nothing is certified, the recommendation is an estimate.")
    lines += [
        f"* {shown(str(context))}: {stop_reason(result.contexts[context].stopped)}"
        for context in result.undecided
    ]
    lines += [
        f"* {shown(str(context))}: {shown(arm)} set aside: {display(why)}"
        for context, arms in result.set_aside.items()
        for arm, why in arms.items()
    ]
    say("", *lines)


# --- mixture --------------------------------------------------------------------------------------

MIXTURE_EXAMPLES = """
genbounds mixture real.npy gan.npy diffusion.npy vae.npy
genbounds mixture real.npz a.npz b.npz --metric cmmd --groups prompts
genbounds mixture gan.npy vae.npy --metric rke --reference real.npy --json
"""


@command("[REFERENCE] MODEL MODEL...", MIXTURE_EXAMPLES)
def mixture(
    files: list[Path] = opt.argument(
        "FILE",
        "The reference, then two models or more, as for `genbounds score`. For rke no reference.",
    ),
    *,
    reference: Path | None = opt.REFERENCE,
    metric: str = opt.metric_option(opt.mixture_metrics, "kid"),
    bandwidth: float | None = opt.bandwidth_option(),
    level: float = opt.LEVEL,
    folds: int | None = opt.option(
        "J", "Parts of the rows, between which weights are judged. Not for fd.", show_default="5"
    ),
    seed: int = opt.SEED,
    judging: opt.VerboseJudging,
) -> Answer:
    """Find the mixture of models with the best score, and whether it beats every single model.

    Exit status 0: it does, at the confidence level; 1: that is not certified.
    """
    from genbounds.cli._inputs import Models, choose_metric
    from genbounds.mixtures import check_mixture

    options = opt.KernelOptions(bandwidth=bandwidth)
    judging = replace(judging, reference=reference, metric=metric, options=options, level=level)
    spec = choose_metric(judging)
    check_mixture(spec, level=level, folds=folds, seed=seed)
    read = Models.read(files, spec, judging, least=2)
    with read.named():
        found = gb.mixture(
            read.samples,
            read.real,
            metric=spec.name,
            level=level,
            folds=folds,
            seed=seed,
            options=read.options,
        ).warned(*read.doubts)
    return Answer(
        document=found.to_dict(),
        show=lambda: _show_shares(found, spec, verbose=judging.verbose),
        page=lambda: gb.report.mixture_page(found),
        negative=not found.certified,
    )


def _show_shares(found: gb.Mixture, spec: gb.estimators.MetricSpec, *, verbose: bool) -> None:
    from genbounds.report._selections import share_table

    better = "larger" if spec.higher_is_better else "smaller"
    say(f"{spec.title} ({better} is better), {percent(found.level)} confidence intervals", "")
    print_table(share_table(found))
    say("", f"{found.verdict}.")
    print_remarks({"mixture": found.score}, verbose=verbose)
