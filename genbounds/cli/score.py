"""`genbounds score`: scores with intervals, and who is distinguishable from whom."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from genbounds.cli._completion import offer
from genbounds.cli._encoding import Device, EncoderName, Encoding, Precision, Weights, encoding
from genbounds.cli._inputs import METRICS, Input, Metric, as_options, blame, choose_metric, load
from genbounds.cli._terminal import (
    AsJson,
    Logits,
    Out,
    announce,
    interruptible,
    keep,
    print_json,
    print_table,
    progress,
    say,
    shown,
)
from genbounds.results import Ranking, Score
from genbounds.validation import InputError, check_open_unit

if TYPE_CHECKING:
    from genbounds.estimators import Expansion

EXAMPLES = """Examples:

\b
genbounds score real.npy gan.npy diffusion.npy
genbounds score real.npy gan/*.npz --level 0.99 --json
genbounds score real-stats.npz gan.npy --out results --convergence
genbounds score real-probs.npy gan-probs.npy --metric is
genbounds score real.npy gan.npy diffusion.npy --metric rke
genbounds score photos/ gan/ diffusion.zip --encoder timm:vit_small_patch14_dinov2 --out results
"""


def score(
    reference: Annotated[
        Path,
        typer.Argument(
            metavar="REFERENCE",
            help="Features (or posteriors) of real data: .npy, .npz, .safetensors, .pt, .parquet; "
            "for fd also statistics (.npz with mu, sigma and, where known, n); with --encoder "
            "folders and archives of images, or texts.",
            show_default=False,
        ),
    ],
    generated: Annotated[
        list[Path] | None,
        typer.Argument(metavar="GENERATED", help="The same of each model.", show_default=False),
    ] = None,
    metric: Annotated[
        str,
        typer.Option(
            "--metric",
            metavar="|".join(METRICS),
            autocompletion=offer("|".join(METRICS)),
            help="Which score.",
        ),
    ] = "fd",
    estimator: Annotated[
        str,
        typer.Option(
            "--estimator",
            metavar="debiased|plugin|infinity",
            autocompletion=offer("debiased|plugin|infinity"),
            help="How it is estimated; infinity (FD∞, IS∞ as published) for fd and is.",
        ),
    ] = "debiased",
    kernel: Annotated[
        str | None,
        typer.Option(
            "--kernel",
            metavar="rbf|laplace|cosine|polynomial",
            autocompletion=offer("rbf|laplace|cosine|polynomial"),
            help="Of vendi and rke.",
            show_default="rbf",
        ),
    ] = None,
    bandwidth: Annotated[
        float | None,
        typer.Option(
            "--bandwidth", metavar="S", help="Of rbf and laplace.", show_default="median heuristic"
        ),
    ] = None,
    order: Annotated[
        float | None,
        typer.Option("--order", metavar="A", help="Of vendi; inf is legal.", show_default="1"),
    ] = None,
    level: Annotated[
        float, typer.Option("--level", metavar="L", help="Coverage of the intervals.")
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
            help="Also score a half, a quarter, … of each model's rows: do the scores settle? For "
            "--out and --json; takes longer.",
        ),
    ] = False,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Score models against a reference, with intervals.

    With two models or more it also says who is distinguishable from whom; those statements hold
    jointly at the level.

    is, vendi and rke need no reference. With one file, that file is the model; with more, the
    first is scored as well, for orientation, and is not ranked (vendi and rke take their bandwidth
    from it). Posteriors are rows that sum to one.
    """
    chosen = choose_metric(metric, logits=logits)
    with as_options("level"):
        check_open_unit("level", level)
    given = {"kernel": kernel, "bandwidth": bandwidth, "order": order}
    options = {name: value for name, value in given.items() if value is not None}
    if options and metric not in ("vendi", "rke"):
        raise InputError(f"`--{next(iter(options))}` is for --metric vendi and rke.")
    if convergence and out is None and not as_json:
        raise InputError("`--convergence` is for the page and the JSON: give --out or --json.")
    models, real = generated or [], [reference]
    if not models and not chosen.referenced:
        models, real = real, []
    if not models:
        raise InputError(f"--metric {metric} needs a REFERENCE and a GENERATED file; got one file.")
    job = _Job(metric=metric, chosen=chosen, estimator=estimator, level=level, options=options)
    with (
        interruptible("nothing was lost but time; run the same command again."),
        as_options("encoder", "weights", "precision"),
        encoding(
            encoder, {"weights": weights, "device": device, "precision": precision}, out=out
        ) as encoded,
    ):
        job.read(real, models, logits=logits, encoded=encoded)
        job.run(out, convergence=convergence)
        if out is not None:
            from genbounds.report.page import write_page
            from genbounds.report.pages import score_page

            page = score_page(
                job.scores,
                metric=metric,
                level=level,
                ranking=job.ranking,
                reference=job.reference_score,
                convergence=job.growth,
                notes=job.notes,
            )
            write_page(out / "report.html", page)
            announce(out / "report.html")
    if as_json:
        print_json(job.document())
    else:
        job.print()


@dataclass(slots=True, kw_only=True)
class _Job:
    """One run: what was asked, what was read, what came out."""

    metric: str
    chosen: Metric
    estimator: str
    level: float
    options: dict[str, Any] = field(default_factory=dict)
    models: list[Input] = field(default_factory=list)
    reference: Input | None = None
    scores: dict[str, Score] = field(default_factory=dict)
    ranking: Ranking | None = None
    reference_score: Score | None = None
    growth: dict[str, Sequence[tuple[int, Score]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def read(
        self,
        reference: list[Path],
        generated: list[Path],
        *,
        logits: bool,
        encoded: Encoding | None,
    ) -> None:
        from genbounds.features import origin_notes

        inputs = load([*reference, *generated], self.chosen, logits=logits, encoding=encoded)
        self.notes += origin_notes({shown(model.name): model.origin for model in inputs})
        self.models = inputs[len(reference) :]
        if reference:
            self.reference = inputs[0]
            if self.chosen.referenced and inputs[0].n is None:
                self.notes.append(
                    f"{shown(inputs[0].path.name)} does not say from how many samples it comes "
                    "(no `n`): the reference is taken as exactly known"
                )

    def run(self, out: Path | None, *, convergence: bool) -> None:
        expand = self._prepare()
        expansions: dict[str, Expansion] = {}
        with progress("scoring") as advance:
            for done, model in enumerate(self.models):
                advance(done, len(self.models), model.name)
                expansions[model.name] = self._expand(expand, model)
                self.scores[model.name] = expansions[model.name].score(self.level)
                keep(out, self.document())
        if self.reference is not None and not self.chosen.referenced:
            self._score_reference(expand, self.reference)
        if len(expansions) > 1 and self.estimator != "plugin":
            from genbounds.estimators import rank

            self.ranking = rank(expansions, metric=self.metric, level=self.level)
        keep(out, self.document())
        if convergence:
            self._grow(expand)
            keep(out, self.document())

    def _prepare(self) -> Callable[[Any, str], Expansion]:
        if self.chosen.posteriors:
            return self.chosen.prepare(None, self.options, None)
        source = self.models[0] if self.reference is None else self.reference
        scored = [*self.models, *([] if self.reference is None else [self.reference])]
        fewest = min((sample.n for sample in scored if sample.n is not None), default=None)
        with (
            blame({"real": source.path, "x": source.path}),
            as_options("kernel", "bandwidth", "order"),
        ):
            return self.chosen.prepare(source.content, self.options, fewest)

    def _expand(self, expand: Callable[[Any, str], Expansion], model: Input) -> Expansion:
        files = {"fake": model.path, "probs": model.path, "x": model.path}
        if self.reference is not None:
            files["real"] = self.reference.path
        with blame(files), as_options("estimator", "kernel", "bandwidth", "order"):
            return expand(model.content, self.estimator)

    def _grow(self, expand: Callable[[Any, str], Expansion]) -> None:
        from genbounds.estimators import growing_scores

        with progress("parts of samples") as advance:
            for done, model in enumerate(self.models):
                advance(done, len(self.models), model.name)
                try:
                    with blame({"x": model.path}):
                        self.growth[model.name] = growing_scores(
                            model.content,
                            lambda rows: expand(rows, self.estimator).score(self.level),
                            whole=self.scores[model.name],
                        )
                except InputError as error:
                    self.notes.append(f"no convergence of {shown(model.name)}: {error}")

    def _score_reference(self, expand: Callable[[Any, str], Expansion], reference: Input) -> None:
        try:
            self.reference_score = self._expand(expand, reference).score(self.level)
        except InputError as error:  # it is not needed, so it may be something else
            self.notes.append(
                f"the {self.chosen.title} uses no reference, and this is none: {error}"
            )

    def document(self) -> dict[str, Any]:
        rows = [
            {"model": name, "metric": self.metric, **result.to_dict()}
            for name, result in self.scores.items()
        ]
        document: dict[str, Any] = {"rows": rows}
        if self.reference_score is not None and self.reference is not None:
            document["reference"] = {
                "model": self.reference.name,
                "metric": self.metric,
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
        return document | {"notes": self.notes}

    def print(self) -> None:
        from genbounds.report import group_letters, interval, number, percent

        chosen = self.chosen
        say(f"{chosen.title} ({chosen.better} is better), {percent(self.level)} intervals")
        say("")
        letters = {} if self.ranking is None else group_letters(self.ranking)
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
        notes = dict.fromkeys([*self.notes, *(n for s in self.scores.values() for n in s.notes)])
        if self.ranking is not None:
            notes |= dict.fromkeys(self.ranking.notes)
        if notes:
            say("", *(f"* {note}" for note in notes))


def _verdict(ranking: Ranking) -> str:
    from genbounds.report import percent

    others = [shown(name) for name in ranking.contenders if name != ranking.best]
    if not others:
        return f"{shown(ranking.best)} is the best of them ({percent(ranking.level)}, jointly)."
    return (
        f"{shown(ranking.best)} is ahead, but the samples do not tell it from "
        f"{', '.join(others)} ({percent(ranking.level)}, jointly). "
        "Models that share a letter are not distinguishable."
    )
