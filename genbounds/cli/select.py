"""`genbounds select`: the best model, certified, from as few samples as possible."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from genbounds._text import interval, number, percent, shown
from genbounds.arms import Arm
from genbounds.cli._encoding import FolderEncoder, open_encoder
from genbounds.cli._inputs import Input, choose_metric, load, options, renamed
from genbounds.cli._options import (
    AsJson,
    Device,
    EncoderName,
    Logits,
    Metric,
    Out,
    Precision,
    Seed,
    Verbose,
    Weights,
    offer,
    policies,
)
from genbounds.cli._plausible import blocks, check_widths
from genbounds.cli._terminal import (
    interruptible,
    keep,
    keep_page,
    print_json,
    print_remarks,
    print_table,
    progress,
    say,
)
from genbounds.estimators import MetricSpec
from genbounds.features import check_same_encoder, is_entry_point, live_arm
from genbounds.files import display
from genbounds.origins import origin_warnings
from genbounds.results import Diagnostic
from genbounds.validation import InputError, check_choice, check_finite

if TYPE_CHECKING:
    from genbounds.select import Selection

EXAMPLES = """Examples:

\b
genbounds select --reference real.npy gan.npy vae.npy diffusion.npy
genbounds select --reference stats.npz models/*.npy --confidence 0.99 --out results
genbounds select --reference real.npy my_models:gan my_models:vae --budget 50000
genbounds select *.npy --metric is --policy elimination --budget 20000 --json
"""


def select(
    arms: Annotated[
        list[Path],
        typer.Argument(
            metavar="ARM",
            help="One file per model: features, or for is class probabilities; rows are drawn at "
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
            help="Features of the real data, for fd also statistics. Not needed for is.",
            show_default=False,
        ),
    ] = None,
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            metavar="POLICY",
            autocompletion=offer(policies),
            help="Rule that picks the model to sample next. lucb, elimination and uniform stop "
            "once the best is certified; random, greedy, fd-ucb, is-ucb, naive-ucb and others "
            "spend the whole budget.",
        ),
    ] = "lucb",
    metric: Metric = "fd",
    confidence: Annotated[
        float,
        typer.Option("--confidence", metavar="C", help="Confidence of a certified answer."),
    ] = 0.95,
    batch: Annotated[int, typer.Option("--batch", metavar="B", help="Samples drawn per step.")] = 5,
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget", metavar="N", help="Largest number of samples in total.", show_default=False
        ),
    ] = None,
    seed: Seed = 0,
    encoder: EncoderName = None,
    weights: Weights = None,
    device: Device = "cpu",
    precision: Precision = "float32",
    logits: Logits = False,
    out: Out = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Find the best model from as few samples as possible.

    Exit status 0 if the answer is certified, 1 if the samples or the budget ran out before.
    """
    from genbounds.select import POLICIES, run

    spec = choose_metric(metric, logits=logits)
    check_choice("--policy", policy, POLICIES)
    if spec.reference != "none" and reference is None:
        raise InputError(f"--metric {metric} needs a reference: give --reference FILE.")
    live = [arm for arm in arms if is_entry_point(str(arm)) and not arm.exists()]
    if live and logits:
        raise InputError("`--logits` is for files; let a live model return posteriors.")
    if live and budget is None:
        raise InputError(
            f"{display(live[0])} never ends: say with --budget N how many samples to draw at most."
        )
    with (
        interruptible("run the same command again."),
        renamed(options("encoder", "weights", "precision")),
        open_encoder(
            encoder, {"weights": weights, "device": device, "precision": precision}, out=out
        ) as encoded,
    ):
        real = None if spec.reference == "none" else reference
        line_up = _LineUp.read(real, arms, live, spec, logits=logits, encoded=encoded)
        names: dict[str, Path | str] = {
            **options("policy", "confidence", "batch", "budget", "seed")
        }
        if real is not None:
            names |= {"reference": real, "real": real}
        with progress("samples") as advance, renamed(names):
            result = run(
                line_up.arms,
                line_up.reference,
                policy=policy,
                metric=metric,
                confidence=confidence,
                batch=batch,
                budget=budget,
                seed=seed,
                retries=0,
                progress=lambda state: advance(int(state.n.sum()), budget, ""),
            )
    document = result.to_dict()
    document["notes"] += [warning.message for warning in line_up.warnings]
    if real is None and reference is not None:
        document["notes"].append(f"{spec.title} uses no reference: {display(reference)} not read")
    keep(out, document)
    if out is not None:
        from genbounds.report import select_page

        keep_page(out, select_page(result))
    if as_json:
        print_json(document)
    else:
        _print(result, document["notes"], line_up.warnings, verbose=verbose)
    if not result.certified:
        raise typer.Exit(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _LineUp:
    """What takes part: files as arms that end, live models, and what they are held against."""

    arms: dict[str, Arm]
    reference: Any
    warnings: list[Diagnostic]

    @classmethod
    def read(
        cls,
        reference: Path | None,
        arms: list[Path],
        live: list[Path],
        metric: MetricSpec,
        *,
        logits: bool,
        encoded: FolderEncoder | None,
    ) -> _LineUp:
        from genbounds.select import FeatureArm

        files = [arm for arm in arms if arm not in live]
        paths = files if reference is None else [reference, *files]
        inputs = load(paths, metric, logits=logits, encoder=encoded)
        if metric.data == "features":
            check_widths(inputs)
        origins = {shown(model.name): model.origin for model in inputs}
        if live and encoded is not None:
            fresh = dict.fromkeys((shown(str(arm)) for arm in live), encoded.encoder.description)
            origins |= fresh
            check_same_encoder(origins)
        real = None if reference is None else inputs.pop(0)
        live_encoder = None if encoded is None else encoded.encoder
        waiting, taking_part = iter(inputs), dict[str, Arm]()
        for arm in arms:  # in the order given: ties are broken by it
            if arm in live:
                taking_part[str(arm)] = live_arm(str(arm), live_encoder)
            else:
                model = next(waiting)
                rows = _checked(model, posteriors=metric.data == "posteriors")
                taking_part[model.name] = FeatureArm(rows)
        return cls(
            arms=taking_part,
            reference=None if real is None else real.content,
            warnings=origin_warnings(origins),
        )


def _checked(model: Input, *, posteriors: bool) -> NDArray[Any]:
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
    return rows


def _print(
    result: Selection, notes: list[str], warnings: list[Diagnostic], *, verbose: bool
) -> None:
    if result.certified:
        say(f"{shown(result.best)} is the best, certified at {percent(result.confidence)}.")
    else:
        say(f"Not certified ({result.stopped}); {shown(result.best)} has the best score so far.")
    say("")
    print_table(
        ("Arm", "Score", "Interval", "Samples"),
        [
            (
                shown(name),
                *(
                    (number(score.value), interval(score.low, score.high))
                    if (score := result.scores.get(name)) is not None
                    else ("–", "–")
                ),
                number(result.samples[name]),
            )
            for name in [*result.scores, *(n for n in result.samples if n not in result.scores)]
        ],
        numeric=("Score", "Samples"),
    )
    say("", f"{number(result.total_samples)} samples in {number(result.steps)} steps.")
    if notes:
        say("", *(f"* {note}" for note in notes))
    print_remarks(result.scores, warnings=warnings, verbose=verbose)
