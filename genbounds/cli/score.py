"""`genbounds score`: scores with intervals, and which models differ significantly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from genbounds.cli._completion import offer
from genbounds.cli._encoding import Device, EncoderName, Precision, Weights, encoding
from genbounds.cli._inputs import Input, choose_metric, load, options, renamed
from genbounds.cli._terminal import (
    AsJson,
    Logits,
    Out,
    Verbose,
    announce,
    interruptible,
    keep,
    print_json,
    print_remarks,
    print_table,
    progress,
    say,
    shown,
)
from genbounds.estimators import (
    Estimate,
    MetricSpec,
    Prepared,
    estimate_each,
    growing_scores,
    metric_names,
    metric_spec,
    prepare_all,
    rank,
)
from genbounds.files import display
from genbounds.origins import origin_warnings
from genbounds.results import Diagnostic, Ranking, Score, caution
from genbounds.validation import InputError, check_choice, check_open_unit

EXAMPLES = """Examples:

\b
genbounds score real.npy gan.npy diffusion.npy
genbounds score real.npy gan/*.npz --level 0.99 --json
genbounds score real-stats.npz gan.npy --out results --convergence
genbounds score gan-probs.npy diffusion-probs.npy --metric is
genbounds score gan.npy diffusion.npy --metric rke --reference real.npy
genbounds score photos/ gan/ diffusion.zip --encoder timm:vit_small_patch14_dinov2 --out results
"""

SAMPLE_ARGUMENTS = ("fake", "probs", "x")
"""What the library calls the sample of one model."""

METRICS = "|".join(metric_names())
METRICS_HELP = "; ".join(f"{name}: {metric_spec(name).summary}" for name in metric_names())


def score(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="[REFERENCE] GENERATED...",
            help="Features (or class probabilities) of real data, then of each model: .npy, .npz, "
            ".safetensors, .pt, .parquet; for fd also statistics (.npz with mu, sigma and n); with "
            "--encoder folders and archives of images, or texts. For is, vendi and rke all files "
            "are models.",
            show_default=False,
        ),
    ],
    reference: Annotated[
        Path | None,
        typer.Option(
            "--reference",
            metavar="FILE",
            help="Real data; all other files are then models.",
            show_default=False,
        ),
    ] = None,
    metric: Annotated[
        str,
        typer.Option(
            "--metric", metavar=METRICS, autocompletion=offer(METRICS), help=f"{METRICS_HELP}."
        ),
    ] = "fd",
    estimator: Annotated[
        str,
        typer.Option(
            "--estimator",
            metavar="debiased|plugin|infinity",
            autocompletion=offer("debiased|plugin|infinity"),
            help="debiased: bias removed. plugin: the usual biased number. infinity: FID∞ and IS∞ "
            "as published.",
        ),
    ] = "debiased",
    kernel: Annotated[
        str | None,
        typer.Option(
            "--kernel",
            metavar="rbf|laplace|cosine|polynomial",
            autocompletion=offer("rbf|laplace|cosine|polynomial"),
            help="Kernel of the Vendi score and RKE.",
            show_default="rbf",
        ),
    ] = None,
    bandwidth: Annotated[
        float | None,
        typer.Option(
            "--bandwidth",
            metavar="S",
            help="Bandwidth of the rbf or laplace kernel.",
            show_default="median heuristic",
        ),
    ] = None,
    order: Annotated[
        float | None,
        typer.Option(
            "--order",
            metavar="A",
            help="Rényi order of the Vendi score (> 0, or inf).",
            show_default="1",
        ),
    ] = None,
    level: Annotated[
        float, typer.Option("--level", metavar="L", help="Confidence level of the intervals.")
    ] = 0.95,
    encoder: EncoderName = None,
    weights: Weights = None,
    device: Device = "cpu",
    precision: Precision = "float32",
    logits: Logits = False,
    convergence: Annotated[
        bool,
        typer.Option(
            "--convergence",
            help="Also score a half, a quarter, … of each model's samples, to see whether the "
            "scores settle. For --out and --json; takes longer.",
        ),
    ] = False,
    out: Out = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Score models, with confidence intervals, and compare them.

    With two models or more it also says which of them differ significantly; those statements hold
    together at the confidence level.
    """
    spec = choose_metric(metric, logits=logits)
    check_open_unit("--level", level)
    check_choice("--estimator", estimator, spec.estimators)
    chosen = _metric_options(spec, {"kernel": kernel, "bandwidth": bandwidth, "order": order})
    if convergence and out is None and not as_json:
        raise InputError("`--convergence` is for the page and the JSON: give --out or --json.")
    models = list(files)
    if reference is None and spec.reference == "required":
        reference = models.pop(0)
    if not models:
        raise InputError(f"--metric {metric} needs a REFERENCE and a GENERATED file; got one file.")
    job = Job(spec=spec, estimator=estimator, level=level, options=chosen)
    how = {"weights": weights, "device": device, "precision": precision}
    with (
        interruptible("nothing was lost but time; run the same command again."),
        renamed(options("encoder", "weights", "precision")),
        encoding(encoder, how, out=out) as encoded,
    ):
        real = [] if reference is None else [reference]
        inputs = load([*real, *models], spec, logits=logits, encoding=encoded)
        job.take(inputs, referenced=reference is not None)
        job.run(out, convergence=convergence)
        if out is not None:
            _write_page(job, out)
    if as_json:
        print_json(job.document())
    else:
        job.print(verbose=verbose)


def _metric_options(spec: MetricSpec, given: dict[str, Any]) -> dict[str, Any]:
    chosen = {name: value for name, value in given.items() if value is not None}
    for name in chosen:
        if name not in spec.options:
            legal = [other for other in metric_names() if name in metric_spec(other).options]
            raise InputError(
                f"is for --metric {' and '.join(legal)}; got {spec.name}.", argument=f"--{name}"
            )
    return chosen


def _write_page(job: Job, out: Path) -> None:
    from genbounds.report.page import write_page
    from genbounds.report.pages import score_page

    page = score_page(
        job.scores,
        metric=job.spec.name,
        level=job.level,
        ranking=job.ranking,
        reference=job.reference_score,
        convergence=job.growth,
        warnings=job.warnings,
    )
    write_page(out / "report.html", page)
    announce(out / "report.html")


@dataclass(slots=True, kw_only=True)
class Job:
    """One run: what was asked, what was read, what came out."""

    spec: MetricSpec
    estimator: str
    level: float
    options: dict[str, Any] = field(default_factory=dict)
    models: list[Input] = field(default_factory=list)
    reference: Input | None = None
    scores: dict[str, Score] = field(default_factory=dict)
    ranking: Ranking | None = None
    reference_score: Score | None = None
    growth: dict[str, Sequence[tuple[int, Score]]] = field(default_factory=dict)
    warnings: list[Diagnostic] = field(default_factory=list)

    def take(self, inputs: list[Input], *, referenced: bool) -> None:
        """Divide the files into the reference and the models."""
        self.warnings += origin_warnings({shown(one.name): one.origin for one in inputs})
        if not referenced:
            self.models = inputs
            return
        self.reference, *self.models = inputs
        if self.reference.n is None:
            self.warnings.append(
                caution(
                    "reference-size-unknown",
                    f"{shown(self.reference.path.name)} does not say from how many samples it "
                    "comes (no `n`): the reference is taken as exactly known",
                    "Store `n` beside `mu` and `sigma`.",
                )
            )

    def run(self, out: Path | None, *, convergence: bool) -> None:
        """Score every model, compare them, and keep results as they come."""
        with renamed(self._names()):
            self._score(out)
        keep(out, self.document())
        if convergence:
            self._grow()
            keep(out, self.document())

    def _names(self) -> dict[str, Path | str]:
        """Map arguments of the library to what they are called here."""
        names: dict[str, Path | str] = {**options("estimator", "kernel", "bandwidth", "order")}
        return names if self.reference is None else {**names, "real": self.reference.path}

    def _score(self, out: Path | None) -> None:
        contents = {model.name: model.content for model in self.models}
        real = None if self.reference is None else self.reference.content
        with progress("scoring") as advance:

            def done(name: str, estimate: Estimate) -> None:
                self.scores[name] = estimate.score(self.level)
                keep(out, self.document())
                advance(len(self.scores), len(self.models), name)

            try:
                prepared = prepare_all(self.spec, contents, real, self.options)
                found = estimate_each(
                    self.spec, prepared, contents, estimator=self.estimator, done=done
                )
            except InputError as error:
                raise self._blamed(error) from error
        if self.spec.reference != "required" and self.reference is not None:
            self._score_reference(prepared, self.reference)
        if len(found) > 1 and self.estimator != "plugin":
            self.ranking = rank(found, metric=self.spec.name, level=self.level)

    def _blamed(self, error: InputError) -> InputError:
        """Name the model's file instead of the model and the argument."""
        paths = {model.name: display(model.path) for model in self.models}
        if error.model not in paths:
            return error
        path = paths[error.model]
        if error.argument in SAMPLE_ARGUMENTS:
            return error.about(path)
        return InputError(error.text if error.argument else f"{path}: {error.text}", error.argument)

    def _score_reference(self, prepared: Prepared, reference: Input) -> None:
        """Score the real data themselves, for orientation."""
        try:
            estimate = prepared.estimate(reference.content, estimator=self.estimator)
        except InputError as error:
            raise error.about(display(reference.path)) from error
        self.reference_score = estimate.score(self.level)

    def _grow(self) -> None:
        contents = {model.name: model.content for model in self.models}
        real = None if self.reference is None else self.reference.content
        prepared = prepare_all(self.spec, contents, real, self.options)
        with progress("parts of samples") as advance:
            for done, model in enumerate(self.models):
                advance(done, len(self.models), model.name)
                try:
                    self.growth[model.name] = growing_scores(
                        model.content,
                        lambda rows: prepared.estimate(rows, estimator=self.estimator).score(
                            self.level
                        ),
                        whole=self.scores[model.name],
                    )
                except InputError as error:
                    self.warnings.append(
                        caution("few-samples", f"no convergence of {shown(model.name)}: {error}")
                    )

    def document(self) -> dict[str, Any]:
        """Everything so far, as `--json` prints it."""
        rows = [
            {"model": name, "metric": self.spec.name, **result.to_dict()}
            for name, result in self.scores.items()
        ]
        document: dict[str, Any] = {"rows": rows}
        if self.reference_score is not None and self.reference is not None:
            document["reference"] = {
                "model": self.reference.name,
                "metric": self.spec.name,
                **self.reference_score.to_dict(),
            }
        if self.ranking is not None:
            ranking = self.ranking.to_dict()
            document["ranking"] = {key: ranking[key] for key in ranking if key != "scores"}
        if self.growth:
            document["convergence"] = {
                name: [score.to_dict() for _, score in points]
                for name, points in self.growth.items()
            }
        return document | {
            "warnings": [warning.to_dict() for warning in self.warnings],
            "notes": [warning.message for warning in self.warnings],
        }

    def print(self, *, verbose: bool) -> None:
        """Print the table, the verdict, warnings and assumptions."""
        from genbounds.report import interval, number, percent

        better = "larger" if self.spec.higher_is_better else "smaller"
        say(f"{self.spec.title} ({better} is better), {percent(self.level)} confidence intervals")
        say("")
        letters = {} if self.ranking is None else self.ranking.letters
        order = list(self.scores) if self.ranking is None else list(self.ranking.scores)
        rows = [(name, self.scores[name], letters.get(name, "")) for name in order]
        if self.reference_score is not None and self.reference is not None:
            rows.append((f"{self.reference.name} (reference)", self.reference_score, ""))
        compared = self.ranking is not None
        print_table(
            ("Model", "Score", "Interval", "n", *(["Group"] if compared else [])),
            [
                (shown(name), number(s.value), interval(s.low, s.high), number(s.n))
                + ((group,) if compared else ())
                for name, s, group in rows
            ],
            numeric=("Score", "n"),
        )
        if self.ranking is not None:
            say("", _verdict(self.ranking))
        joint = () if self.ranking is None else self.ranking.assumptions
        print_remarks(
            {name: score for name, score, _ in rows},
            warnings=self.warnings,
            assumptions=joint,
            verbose=verbose,
        )


def _verdict(ranking: Ranking) -> str:
    from genbounds.report import percent

    others = [shown(name) for name in ranking.contenders if name != ranking.best]
    if not others:
        return (
            f"{shown(ranking.best)} is significantly better than every other model "
            f"({percent(ranking.level)}, jointly)."
        )
    return (
        f"{shown(ranking.best)} has the best score, but does not differ significantly from "
        f"{', '.join(others)} ({percent(ranking.level)}, jointly). "
        "Models that share a letter do not differ significantly."
    )
