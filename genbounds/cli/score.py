"""`genbounds score`: scores with confidence intervals, and which models differ significantly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from genbounds._text import interval, number, percent, shown
from genbounds.cli._by_class import check_by_class, print_by_class, score_by_class
from genbounds.cli._input import Drawing, Input
from genbounds.cli._inputs import choose_metric
from genbounds.cli._models import doubts_of, files_named, metric_options, read_models
from genbounds.cli._options import (
    AsJson,
    Bandwidth,
    Device,
    EncoderName,
    Groups,
    Iid,
    Kernel,
    Level,
    Logits,
    Metric,
    Neighbours,
    Order,
    Out,
    Precision,
    Reference,
    ReferenceExact,
    ReferenceN,
    Strata,
    Verbose,
    Weights,
    offer,
)
from genbounds.cli._pictures import check_images
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
from genbounds.diagnostics import warn_of
from genbounds.estimators import (
    Estimate,
    MetricSpec,
    PrecisionRecall,
    Prepared,
    estimate_each,
    growing_scores,
    prepare_all,
    rank,
)
from genbounds.files import display
from genbounds.origins import origin_warnings
from genbounds.results import Diagnostic, Ranking, Score
from genbounds.validation import InputError, check_choice, check_open_unit

if TYPE_CHECKING:
    from genbounds.report import Page

EXAMPLES = """Examples:

\b
genbounds score real.npy gan.npy diffusion.npy
genbounds score real.npy gan/*.npz --level 0.99 --json
genbounds score real-stats.npz gan.npy --out results --convergence
genbounds score gan-probs.npy diffusion-probs.npy --metric is
genbounds score gan.npy diffusion.npy --metric rke --reference real.npy
genbounds score real.npz gan.npz --by labels --out results
genbounds score photos/ gan/ diffusion.zip --encoder timm:vit_small_patch14_dinov2 --out results
"""

ESTIMATORS = "debiased|plugin|infinity"


# Long because every option is declared in its signature.
def score(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            help="Features of the real data (the reference), then one file per model: .npy, .npz, "
            ".safetensors, .pt or .parquet; for fd also statistics (.npz with mu, sigma and n); "
            "with --encoder also folders and archives of images, or texts. For is, vendi, rke and "
            "mean every file is a model; is takes class probabilities, mean one column of values.",
            show_default=False,
        ),
    ],
    reference: Reference = None,
    metric: Metric = "fd",
    estimator: Annotated[
        str,
        typer.Option(
            "--estimator",
            metavar=ESTIMATORS,
            autocompletion=offer(ESTIMATORS),
            help="debiased: the bias is removed; plugin: the usual, biased number; infinity: FID∞ "
            "or IS∞ as published.",
        ),
    ] = "debiased",
    kernel: Kernel = None,
    bandwidth: Bandwidth = None,
    order: Order = None,
    k: Neighbours = None,
    level: Level = 0.95,
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
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="NAME",
            help="Array of the files that says which class each row is of: the fd of every class, "
            "worst first, all intervals together at --level; 'folders': each sub-folder of images "
            "is a class.",
            show_default=False,
        ),
    ] = None,
    images: Annotated[
        list[Path] | None,
        typer.Option(
            "--images",
            metavar="PATH",
            help="With --by: folder, archive or array of the images that a file is of, for the "
            "page; once for every file, the reference first.",
            show_default="as the files say",
        ),
    ] = None,
    convergence: Annotated[
        bool,
        typer.Option(
            "--convergence",
            help="Also score a half, a quarter, … of each model's samples, to see whether the "
            "scores have settled. Takes longer; needs --out or --json.",
        ),
    ] = False,
    out: Out = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Score models with confidence intervals, and compare them.

    With two models or more it also says which of them differ significantly; all these statements
    hold together at the confidence level.
    """
    spec = choose_metric(metric, logits=logits)
    check_open_unit("--level", level)
    check_choice("--estimator", estimator, spec.estimators)
    given = {"kernel": kernel, "bandwidth": bandwidth, "order": order, "k": k}
    chosen = metric_options(spec, given)
    models = list(files)
    if reference is None and spec.reference == "required":
        reference = models.pop(0)
    if not models:
        raise InputError(
            f"--metric {spec.name} needs a reference and at least one model; got one file."
        )
    if by is not None:
        check_by_class(spec, estimator=estimator, convergence=convergence)
    if convergence and out is None and not as_json:
        raise InputError("is for the page and the JSON: add --out or --json.", "--convergence")
    if images and by is None:
        raise InputError("is for the page by class: add --by.", "--images")
    check_images(images, out, files=1 + len(models))
    run = Run(spec=spec, estimator=estimator, level=level, options=chosen, out=out)
    drawing = Drawing(
        groups=groups,
        strata=strata,
        iid=iid,
        reference_n=reference_n,
        reference_exact=reference_exact,
        by=by,
    )
    how = {"weights": weights, "device": device, "precision": precision}
    with interruptible("run the same command again."):
        inputs = read_models(
            models,
            reference,
            spec,
            logits=logits,
            drawing=drawing,
            encoder=encoder,
            how=how,
            out=out,
        )
        if by is not None:
            real, *others = inputs
            classes = score_by_class(real, others, level=level, images=images, out=out)
        else:
            run.take(inputs, referenced=reference is not None)
            run.score()
            if convergence:
                run.score_parts()
            run.keep(complete=True)
            if out is not None:
                keep_page(out, run.page())
    if by is not None:
        print_by_class(classes, as_json=as_json, verbose=verbose)
    elif as_json:
        print_json(run.document())
    else:
        _print(run, verbose=verbose)


SMALLEST_P = 0.0001
"""Smaller p-values are shown as below it."""


@dataclass(slots=True, kw_only=True)
class Run:
    """One run: what was asked, what was read, and what has come out so far."""

    spec: MetricSpec
    estimator: str
    level: float
    options: dict[str, Any]
    out: Path | None
    models: dict[str, Input] = field(default_factory=dict)
    reference: Input | None = None
    prepared: Prepared | None = None
    scores: dict[str, Score] = field(default_factory=dict)
    ranking: Ranking | None = None
    reference_score: Score | None = None
    together: dict[str, PrecisionRecall] = field(default_factory=dict)
    growth: dict[str, Sequence[tuple[int, Score]]] = field(default_factory=dict)
    warnings: list[Diagnostic] = field(default_factory=list)

    def take(self, inputs: list[Input], *, referenced: bool) -> None:
        """Divide the files into the reference and the models; look whether they are plausible."""
        self.warnings += origin_warnings({shown(one.name): one.origin for one in inputs})
        if referenced:
            self.reference, *inputs = inputs
        self.models = {model.name: model for model in inputs}

    def score(self) -> None:
        """Score every model and compare them; keep each score as it comes."""
        samples = {name: model.sample for name, model in self.models.items()}
        real = None if self.reference is None else self.reference.sample
        doubts = doubts_of(self.spec, self.models, self.reference)
        named = files_named(self.models, self.reference)
        with named, progress("scoring") as advance:

            def done(name: str, estimate: Estimate) -> None:
                self.scores[name] = estimate.warned(*doubts[name]).score(self.level)
                if estimate.together is not None:
                    self.together[name] = estimate.together(self.level)
                self.keep()
                advance(len(self.scores), len(self.models), name)

            self.prepared = prepare_all(self.spec, samples, real, self.options)
            found = estimate_each(
                self.spec, self.prepared, samples, estimator=self.estimator, done=done
            )
        if self.reference is not None and self.spec.reference != "required":
            self._score_reference(self.prepared, self.reference)
        if len(found) > 1 and self.estimator != "plugin":  # whose biases differ from model to model
            doubted = {name: estimate.warned(*doubts[name]) for name, estimate in found.items()}
            self.ranking = rank(doubted, metric=self.spec.name, level=self.level)

    def _score_reference(self, prepared: Prepared, reference: Input) -> None:
        """Score the real data themselves, for orientation."""
        try:
            estimate = prepared.estimate(reference.sample, estimator=self.estimator)
        except InputError as error:
            raise error.about(display(reference.path)) from error
        self.reference_score = estimate.score(self.level)

    def score_parts(self) -> None:
        """Score growing parts of each model's samples."""
        prepared = self.prepared
        assert prepared is not None, "score() comes first"

        def of_part(rows: Any) -> Score:
            return prepared.estimate(rows, estimator=self.estimator).score(self.level)

        with progress("parts of samples") as advance:
            for done, (name, model) in enumerate(self.models.items()):
                advance(done, len(self.models), name)
                try:
                    self.growth[name] = growing_scores(
                        model.sample, of_part, whole=self.scores[name]
                    )
                except InputError as error:
                    reason = f"no convergence of {shown(name)}: {error.about(display(model.path))}"
                    self.warnings.append(warn_of("generated-moments-only", reason=reason))

    def in_order(self) -> dict[str, Score]:
        """All scores as the table shows them: best first, the reference last."""
        scores = dict(self.scores if self.ranking is None else self.ranking.scores)
        if self.reference_score is not None and self.reference is not None:
            scores[f"{self.reference.name} (reference)"] = self.reference_score
        return scores

    def keep(self, *, complete: bool = False) -> None:
        """Write what there is to the folder of results, if there is one."""
        keep(self.out, self.document(), complete=complete)

    def document(self) -> dict[str, Any]:
        """Everything so far, as `--json` prints it."""
        metric = {"metric": self.spec.name}
        beside = {name: {"together": found.to_dict()} for name, found in self.together.items()}
        document: dict[str, Any] = {
            "rows": [
                {"model": name, **metric, **score.to_dict(), **beside.get(name, {})}
                for name, score in self.scores.items()
            ]
        }
        if self.reference_score is not None and self.reference is not None:
            document["reference"] = {
                "model": self.reference.name, **metric, **self.reference_score.to_dict(),
            }  # fmt: skip
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

    def page(self) -> Page:
        """Return the page of the run."""
        from genbounds.report import score_page

        return score_page(
            self.scores,
            metric=self.spec.name,
            level=self.level,
            ranking=self.ranking,
            reference=self.reference_score,
            together=self.together,
            convergence=self.growth,
            warnings=self.warnings,
        )


def _print(run: Run, *, verbose: bool) -> None:
    """Print the table, best model first, then the verdict, warnings and assumptions."""
    from genbounds.report.wording import TOGETHER, mark, together_table, verdict_line

    ranking = run.ranking
    better = "larger" if run.spec.higher_is_better else "smaller"
    say(f"{run.spec.title} ({better} is better), {percent(run.level)} confidence intervals", "")
    scores = run.in_order()
    columns = {
        "Model": [shown(name) for name in scores],
        "Score": [number(score.value) for score in scores.values()],
        "Interval": [interval(score.low, score.high) for score in scores.values()],
        "n": [number(score.n) for score in scores.values()],
    }
    if ranking is not None:
        columns["Group"] = [ranking.letters.get(name, "") for name in scores]
        columns["p"] = [_pvalue(ranking, name) for name in scores]
    if any(score.warnings for score in scores.values()):
        columns["Warnings"] = [mark(score) for score in scores.values()]
    cells = list(zip(*columns.values(), strict=True))
    print_table(list(columns), cells, numeric=("Score", "n", "p"))
    if run.together:
        say("", TOGETHER)
        head, rows = together_table(run.together, scores)
        print_table(head, [(shown(model), *cells) for model, *cells in rows])
    if ranking is not None:
        say("", verdict_line(ranking))
        if len(ranking.contenders) > 1:
            say("Models that share a group letter do not differ significantly.")
        pairs = len(ranking.differences)
        adjusted = f", adjusted for all {pairs} pairs" if pairs > 1 else ""
        say(f"p is the p-value of no difference from {shown(ranking.best)}{adjusted}.")
    print_remarks(
        scores,
        warnings=[*run.warnings, *(() if ranking is None else ranking.warnings)],
        assumptions=() if ranking is None else ranking.assumptions,
        together=run.together,
        verbose=verbose,
    )


def _pvalue(ranking: Ranking, name: str) -> str:
    """Return the adjusted p-value of a model's difference from the best one."""
    if name == ranking.best or name not in ranking.scores:
        return "–"
    found = ranking.difference(ranking.best, name).pvalue_adjusted
    return f"<{SMALLEST_P}" if found < SMALLEST_P else number(found, digits=2)
