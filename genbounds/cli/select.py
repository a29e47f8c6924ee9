"""`genbounds select`: the best model, certified, from as few samples as possible."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from genbounds._text import interval, number, percent, shown
from genbounds.arms import Arm
from genbounds.cli._contexts import common_contexts, finish_contexts, rows_by_context
from genbounds.cli._encoding import FolderEncoder, open_encoder
from genbounds.cli._input import Drawing, Input
from genbounds.cli._inputs import choose_metric, load, options, renamed
from genbounds.cli._options import (
    AsJson,
    Device,
    EncoderName,
    Groups,
    Iid,
    Logits,
    Metric,
    Out,
    Precision,
    ReferenceExact,
    ReferenceN,
    Seed,
    Strata,
    Verbose,
    Weights,
    offer,
    policies,
)
from genbounds.cli._plausible import blocks, suspicions
from genbounds.cli._terminal import (
    interruptible,
    keep,
    keep_page,
    print_json,
    print_remarks,
    print_table,
    progress,
    say,
    tidy,
)
from genbounds.estimators import MetricSpec
from genbounds.features import check_same_encoder, is_entry_point, live_arm
from genbounds.files import display
from genbounds.origins import origin_warnings
from genbounds.results import Diagnostic
from genbounds.validation import InputError, check_choice, check_finite

if TYPE_CHECKING:
    from genbounds.select import ContextSelection, MixtureSelection, Policy, Selection, State

EXAMPLES = """Examples:

\b
genbounds select real.npy gan.npy vae.npy diffusion.npy
genbounds select --reference stats.npz models/*.npy --confidence 0.99 --out results
genbounds select --reference real.npy my_models:gan my_models:vae --budget 50000 --record kept
genbounds select --reference real.npy *.npy --metric kad --target mixture --tolerance 0.5
genbounds select --reference real.npz gan.npz diffusion.npz --contexts kind
genbounds select *.npy --metric is --policy elimination --budget 20000 --json
"""


# Long because every option is declared in its signature.
def select(
    arms: Annotated[
        list[Path],
        typer.Argument(
            metavar="ARM",
            help="The reference, unless --reference names it or the metric needs none; then one "
            "file per model: features, or for is class probabilities; rows are drawn at "
            "random, each once. Or a live model module:function, a function of (n, rng) that "
            "returns n new rows; with --encoder, n images or texts.",
            show_default=False,
        ),
    ],
    reference: Annotated[
        Path | None,
        typer.Option(
            "--reference",
            metavar="REFERENCE",
            help="Features of the real data, for fd also statistics; vendi and rke take their "
            "bandwidth from them, is and mean need none.",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        str,
        typer.Option(
            "--target",
            metavar="best|mixture",
            autocompletion=offer("best|mixture"),
            help="best: the best model; mixture: shares of models whose score is at most "
            "--tolerance from that of the best mixture (fd, kid, cmmd, kad, energy, rke).",
        ),
    ] = "best",
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            metavar="POLICY",
            autocompletion=offer(policies),
            help="Rule that picks the model to sample next. lucb, elimination and uniform stop "
            "once the best is certified; random, greedy, fd-ucb, is-ucb, naive-ucb and others "
            "spend the whole budget, up to 50,000 samples of a model.",
        ),
    ] = "lucb",
    policy_option: Annotated[
        list[str] | None,
        typer.Option(
            "--policy-option",
            metavar="NAME=VALUE",
            help="Option of the policy, such as constants=printed, kappa=1.6, threshold=none, "
            "burn_in=50 or refresh=0 of fd-ucb; may be repeated. All of them: the documentation of "
            "its class, gb.select.FdUcb and so on.",
            show_default=False,
        ),
    ] = None,
    metric: Metric = "fd",
    confidence: Annotated[
        float,
        typer.Option("--confidence", metavar="C", help="Confidence of a certified answer."),
    ] = 0.95,
    batch: Annotated[int, typer.Option("--batch", metavar="B", help="Samples drawn per step.")] = 5,
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget",
            metavar="N",
            help="Largest number of samples in total (with --cost: the most that they may cost).",
            show_default=False,
        ),
    ] = None,
    top: Annotated[
        int, typer.Option("--top", metavar="K", help="Find the best K models instead of one.")
    ] = 1,
    tolerance: Annotated[
        float,
        typer.Option(
            "--tolerance",
            metavar="E",
            help="A model counts as best if no other is better by more than this: squared "
            "distance for fd, logarithm for is.",
        ),
    ] = 0.0,
    cost: Annotated[
        list[str] | None,
        typer.Option(
            "--cost",
            metavar="NAME=C",
            help="Cost of one sample of this model, where it is not 1; may be repeated.",
            show_default=False,
        ),
    ] = None,
    contexts: Annotated[
        str | None,
        typer.Option(
            "--contexts",
            metavar="NAME",
            help="Array of the files that says which kind of prompt each row belongs to: a winner "
            "for each kind, all of them right together at --confidence; 'folders': each sub-folder "
            "of images is a kind.",
            show_default=False,
        ),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            "--record",
            metavar="DIR",
            help="Folder that keeps all samples drawn: the same command goes on from them after "
            "an interruption, also with a larger budget or more models behind the others.",
            show_default=False,
        ),
    ] = None,
    first_look: Annotated[
        int | None,
        typer.Option(
            "--first-look",
            metavar="N",
            help="Samples from which on a model is scored: more where rare samples matter. By "
            "default as few as the metric allows.",
            show_default=False,
        ),
    ] = None,
    seed: Seed = 0,
    encoder: EncoderName = None,
    weights: Weights = None,
    device: Device = "cpu",
    precision: Precision = "float32",
    logits: Logits = False,
    groups: Groups = None,
    strata: Strata = None,
    iid: Iid = False,
    reference_n: ReferenceN = None,
    reference_exact: ReferenceExact = False,
    out: Out = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Find the best model from as few samples as possible.

    Exit status 0 if the answer is certified, 1 if not: samples or budget were exhausted before, or
    fewer than two models are left. A model that fails, or whose samples are seen not to be
    independent of one another, is set aside and named.
    """
    from genbounds.select import POLICIES, ContextSelection, MixtureSelection, run
    from genbounds.select._run import TARGETS

    spec = choose_metric(metric, logits=logits)
    spec.check_growing("selection")
    drawing = Drawing(
        groups=groups,
        strata=strata,
        iid=iid,
        reference_n=reference_n,
        reference_exact=reference_exact,
        contexts=contexts,
    )
    check_choice("--policy", policy, POLICIES)
    check_choice("--target", target, TARGETS)
    if spec.reference == "required" and reference is None:
        if len(arms) < 2:
            raise InputError(
                f"--metric {metric} needs a reference: give it first, or as --reference FILE."
            )
        reference, *arms = arms  # as `score` takes it
    if spec.reference == "optional" and reference is None:
        with renamed({"reference": "--reference"}):
            spec.prepared(None)  # says what it needs one for, before files are read
    live = [arm for arm in arms if is_entry_point(str(arm)) and not arm.exists()]
    if live and logits:
        raise InputError("`--logits` is for files; let a live model return posteriors.")
    if live and contexts is not None:
        raise InputError(
            "is for files; for live models use gb.select.run(..., contexts=) in Python.",
            argument="--contexts",
        )
    if live and budget is None:
        raise InputError(
            f"{display(live[0])} never ends: say with --budget N how many samples to draw at most."
        )
    with (
        interruptible(_advice(live, record=record, encoder=encoder, out=out)),
        renamed(options("encoder", "weights", "precision")),
        open_encoder(
            encoder, {"weights": weights, "device": device, "precision": precision}, out=out
        ) as encoded,
    ):
        real = None if spec.reference == "none" else reference
        line_up = _LineUp.read(
            real, arms, live, spec, logits=logits, drawing=drawing, encoded=encoded
        )
        names: dict[str, Path | str] = {
            **options(
                "policy", "confidence", "batch", "budget", "seed", "top", "tolerance", "cost"
            ),
            **options("metric", "record", "target", "contexts", "first_look"),
        }
        if real is not None:
            names |= {"reference": real, "real": real}
        # A run that is recorded keeps what it has drawn until it is stopped, however that is.
        stopped = tidy() if record is not None else nullcontext()
        with progress("samples") as advance, renamed(names), stopped:
            result: Selection | MixtureSelection | ContextSelection = run(
                line_up.arms,
                line_up.reference,
                contexts=line_up.contexts,
                policy=policy if not policy_option else _policy(policy, policy_option),
                metric=spec,
                confidence=confidence,
                batch=batch,
                budget=budget,
                seed=seed,
                top=top,
                tolerance=tolerance,
                cost=_costs(cost or (), line_up.names),
                record=record,
                first_look=first_look,
                # A file answers a second time as it did the first.
                retries=2 if live else 0,
                progress=None if target == "mixture" else _counted(advance, budget),
                target=target,
            )
    if isinstance(result, ContextSelection):
        finish_contexts(result, line_up.warnings, out=out, as_json=as_json, verbose=verbose)
        if not result.certified:
            raise typer.Exit(1)
        return
    if isinstance(result, MixtureSelection):
        _finish_mixture(result, line_up.warnings, out=out, as_json=as_json, verbose=verbose)
        return
    notes = list(result.notes)
    if real is None and reference is not None:
        notes.append(f"{spec.title} uses no reference: {display(reference)} not read")
    document = result.to_dict()
    document["notes"] = [*notes, *(warning.message for warning in line_up.warnings)]
    keep(out, document)
    if out is not None:
        from genbounds.report import select_page

        keep_page(out, select_page(result, warnings=line_up.warnings))
    if as_json:
        print_json(document)
    else:
        _print(result, notes, line_up.warnings, verbose=verbose)
    if not result.certified:
        raise typer.Exit(1)


def _counted(
    advance: Callable[[int, int | None, str], None], budget: int | None
) -> Callable[[State], None]:
    """Return what moves the progress bar: samples of all contexts, if there are several."""
    drawn: dict[int, int] = {}

    def after_round(state: State) -> None:
        drawn[id(state)] = int(state.n.sum())
        advance(sum(drawn.values()), budget, "")

    return after_round


def _finish_mixture(
    result: MixtureSelection,
    warnings: list[Diagnostic],
    *,
    out: Path | None,
    as_json: bool,
    verbose: bool,
) -> None:
    """Keep and print shares and the bound of the gap; exit status 1 if it is not certified."""
    document = result.to_dict()
    document["notes"] = [warning.message for warning in warnings]
    keep(out, document)
    if out is not None:
        from genbounds.report import mixture_selection_page

        keep_page(out, mixture_selection_page(result, warnings=warnings))
    if as_json:
        print_json(document)
    else:
        say(f"{result}.", "")
        rows = [
            (
                shown(name),
                percent(round(share, 3)),
                number(result.samples[name]),
                number(score.value),
            )
            for name, share in sorted(result.weights.items(), key=lambda item: -item[1])
            for score in [result.scores[name]]
        ]
        print_table(
            ["Arm", "Share", "Samples", "Score"], rows, numeric=("Share", "Samples", "Score")
        )
        aside = [
            f"* {shown(name)} set aside: {display(why)}" for name, why in result.set_aside.items()
        ]
        if aside:
            say("", *aside)
        print_remarks({"mixture": result.score}, warnings=warnings, verbose=verbose)
    if not result.certified:
        raise typer.Exit(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _LineUp:
    """What takes part: files, live models, and the reference.

    `names` has the short name of every arm also by what was given on the command line. With
    contexts an arm is one for each, and `contexts` has their references, or their names alone.
    """

    arms: dict[str, Arm | dict[Any, Arm]]
    names: dict[str, str]
    reference: Any
    warnings: list[Diagnostic]
    contexts: Any = None

    @classmethod
    def read(
        cls,
        reference: Path | None,
        arms: list[Path],
        live: list[Path],
        metric: MetricSpec,
        *,
        logits: bool,
        drawing: Drawing,
        encoded: FolderEncoder | None,
    ) -> _LineUp:
        from genbounds.select import FeatureArm

        files = [arm for arm in arms if arm not in live]
        paths = files if reference is None else [reference, *files]
        inputs = load(
            paths,
            metric,
            logits=logits,
            referenced=reference is not None,
            drawing=drawing,
            encoder=encoded,
        )
        origins = {shown(model.name): model.origin for model in inputs}
        if live and encoded is not None:
            fresh = dict.fromkeys((shown(str(arm)) for arm in live), encoded.encoder.description)
            origins |= fresh
            check_same_encoder(origins)
        doubts = []
        if metric.data == "features":
            doubts = [doubt for one in inputs for doubt in suspicions(one)]
        real = None if reference is None else inputs.pop(0)
        names: list[Any] | None = None
        if drawing.contexts is not None:
            names = common_contexts([*([] if real is None else [real]), *inputs])
        live_encoder = None if encoded is None else encoded.encoder
        waiting, taking_part = iter(inputs), dict[str, Arm | dict[Any, Arm]]()
        for arm in arms:  # in the order given: ties are broken by it
            if arm in live:
                if str(arm) in taking_part:
                    raise InputError(f"{display(arm)} is given twice.")
                taking_part[str(arm)] = live_arm(str(arm), live_encoder)
            else:
                model = next(waiting)
                _check(model, posteriors=metric.data == "posteriors")
                taking_part[model.name] = (
                    FeatureArm(model.sample)
                    if names is None
                    else {
                        name: FeatureArm(rows)
                        for name, rows in rows_by_context(model, names).items()
                    }
                )
        given = dict(zip(map(str, arms), taking_part, strict=True))
        return cls(
            arms=taking_part,
            names=given | {name: name for name in taking_part},
            reference=None if real is None or names is not None else real.sample,
            contexts=names if names is None or real is None else rows_by_context(real, names),
            warnings=[*origin_warnings(origins), *doubts],
        )


def _policy(name: str, given: Iterable[str]) -> Policy:
    """Build a policy with the options NAME=VALUE."""
    from genbounds.select import POLICIES

    known = inspect.signature(POLICIES[name]).parameters
    chosen: dict[str, Any] = {}
    for text in given:
        key, _, value = text.partition("=")
        if key not in known:
            has = f"its options are {', '.join(known)}" if known else "it has none"
            raise InputError(
                f"{name} has no option {display(key)}: {has}.", argument="--policy-option"
            )
        kind = str(known[key].annotation).removesuffix(" | None")
        if value.lower() == "none" and kind != known[key].annotation:
            chosen[key] = None
            continue
        what, read = VALUES[kind]
        try:
            chosen[key] = read(value)
        except (ValueError, KeyError):
            raise InputError(
                f"{key} must be {what}; got {display(value)}.", argument="--policy-option"
            ) from None
    with renamed({key: f"--policy-option {key}" for key in known}):
        return POLICIES[name](**chosen)


VALUES: dict[str, tuple[str, Callable[[str], object]]] = {
    "str": ("a word", str),
    "int": ("a whole number", int),
    "float": ("a number", float),
    "bool": ("true or false", lambda text: {"true": True, "false": False}[text.lower()]),
}
"""How the value of a policy's option is read, by its type."""


def _costs(given: Iterable[str], names: Mapping[str, str]) -> dict[str, float]:
    """Read ``NAME=C``, the name being that of a model or its file as it was given."""
    costs = {}
    for text in given:
        name, _, value = text.rpartition("=")
        try:
            costs[names.get(name, name)] = float(value)
        except ValueError:
            name = ""
        if not name:
            raise InputError(
                f"must be NAME=C, such as {display(next(iter(names)))}=2.5; got {display(text)}.",
                argument="cost",
            )
    return costs


def _advice(
    live: Sequence[Path], *, record: Path | None, encoder: str | None, out: Path | None
) -> str:
    """Say after Ctrl-C what is left and how to go on."""
    if record is not None:
        return f"the samples drawn so far are in {display(record)}: the same command goes on."
    if live:
        return "what live models drew is lost; with --record DIR the same command would go on."
    if encoder is not None and out is None:
        return "what was encoded is lost; with --out DIR it is kept for the next run."
    return "the samples lie in the files; run the same command again."


def _check(model: Input, *, posteriors: bool) -> None:
    """Refuse a bad file before the run: there a bad draw would only set its arm aside."""
    from genbounds.estimators import inception_estimate

    rows = model.content
    if not isinstance(rows, np.ndarray):
        raise InputError(
            f"{display(model.path)}: holds statistics; an arm needs the features themselves."
        )
    with renamed({"fake": model.path, "probs": model.path}):
        if posteriors:
            inception_estimate(rows, estimator="plugin")
        for first, block in blocks(rows):
            check_finite("fake", block, first_row=first)


def _row(result: Selection, name: str) -> tuple[str, ...]:
    """Name, score, interval, samples and state of one arm; no state if all is well."""
    score, arm = result.scores.get(name), result.arms[name]
    scored = ("–", "–")
    if score is not None:
        scored = (number(score.value), interval(score.low, score.high))
    state = display(arm.reason)
    if arm.state == "set aside":
        state = f"set aside: {state}"
    elif score is not None and not score.reliable:
        state = f"{state}; unreliable" if state else "unreliable"
    return (shown(name), *scored, number(result.samples[name]), state)


def _print(
    result: Selection, notes: list[str], warnings: list[Diagnostic], *, verbose: bool
) -> None:
    best = ", ".join(shown(name) for name in result.top)
    several = len(result.top) > 1
    left = len(result.arms) - len(result.set_aside)
    if result.certified:
        verb = f"are the best {len(result.top)}" if several else "is the best"
        among = f" of the {left} models left" if result.set_aside else ""
        say(f"{best} {verb}{among}, {result.verdict}.")
    elif not left:
        say("Not certified: every model was set aside.")
    else:
        verb = "have the best scores" if several else "has the best score"
        say(f"Not certified ({result.stopped}); {best} {verb} so far.")
    say("")
    names = [*result.scores, *(name for name in result.samples if name not in result.scores)]
    rows = [_row(result, name) for name in names]
    columns = ["Arm", "Score", "Interval", "Samples", "State"]
    if not any(row[-1] for row in rows):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    print_table(columns, rows, numeric=("Score", "Samples"))
    priced = "" if result.cost == result.total_samples else f", cost {number(result.cost)}"
    say("", f"{number(result.total_samples)} samples in {number(result.steps)} steps{priced}.")
    if notes:
        say("", *(f"* {note}" for note in notes))
    print_remarks(result.scores, warnings=warnings, verbose=verbose)
