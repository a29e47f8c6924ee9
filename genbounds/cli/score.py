"""`genbounds score`: scores with intervals, which models differ, and (--by) every class's score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import genbounds as gb
from genbounds._text import display, interval, number, percent, shown
from genbounds.cli import _options as opt
from genbounds.cli._command import Answer, command
from genbounds.cli._terminal import keep, notes_of, print_remarks, print_table, progress, say

if TYPE_CHECKING:
    from genbounds.cli._inputs import Models

EXAMPLES = """
genbounds score real.npy gan.npy diffusion.npy
genbounds score real.npy gan/*.npz --level 0.99 --json
genbounds score real-stats.npz gan.npy --out results --convergence
genbounds score gan-probs.npy diffusion-probs.npy --metric is
genbounds score gan.npy diffusion.npy --metric rke --reference real.npy
genbounds score real.npz gan.npz --by labels --out results
genbounds score photos/ gan/ diffusion.zip --encoder dinov2 --out results
"""


@command("[REFERENCE] GENERATED...", EXAMPLES)
def score(
    files: list[Path] = opt.argument(
        "FILE",
        "Features of the real data (the reference), then of one model each: .npy, .npz, "
        ".safetensors, .pt or .parquet; for fd also statistics (.npz with mu, sigma and n); with "
        "--encoder also images or texts. For is (class probabilities), vendi, rke and mean (one "
        "column of values) every file is a model.",
    ),
    *,
    estimator: str = opt.choice(
        "debiased|plugin|infinity",
        "debiased: the bias is removed; plugin: the usual, biased number; infinity: FID∞ or IS∞ "
        "as published.",
        default="debiased",
    ),
    by: str | None = opt.array_option(
        "which class each row is of: the fd of every class, worst first, all intervals together "
        "at --level",
        "class",
    ),
    images: list[Path] | None = opt.images_option(
        "with --by, once for every file, the reference first"
    ),
    convergence: bool = opt.flag(
        "Also score a half, a quarter, … of each model's samples, to see whether the scores have "
        "settled. Takes longer; needs --out or --json."
    ),
    judging: opt.Scoring,
) -> Answer:
    """Score models with confidence intervals, and compare them.

    With two models or more it also says which of them differ significantly; all these statements
    hold together at the confidence level.
    """
    from genbounds.cli._inputs import SAMPLE_ARGUMENTS, Models, choose_metric
    from genbounds.cli._media import check_images
    from genbounds.validation import check_choice, check_open_unit

    out, level = judging.output.out, judging.level
    spec = choose_metric(judging)
    check_choice("--estimator", estimator, spec.estimators)
    if by is not None:
        check_by_class(spec, estimator=estimator, convergence=convergence)
        check_images(images, out, files=len(files) + (judging.reference is not None))
    if convergence and out is None and not judging.output.as_json:
        raise gb.InputError("is for the page and the JSON: add --out or --json.", "--convergence")
    if images and by is None:
        raise gb.InputError("is for the page by class: add --by.", "--images")
    check_open_unit("--level", level)
    read = Models.read(files, spec, replace(judging, reading=replace(judging.reading, by=by)))
    if by is not None:
        return by_class(read, judging, images)
    found = Scores(read=read, level=level, warnings=[*read.warnings])

    def done(name: str, estimate: gb.estimators.Estimate) -> None:
        found.scores[name], found.plugin[name] = estimate.score(level), estimate.plugin
        if estimate.together is not None:
            found.together[name] = estimate.together(level)
        if out is not None:  # a long run that is stopped has left something
            keep(out, "score", found.document(), complete=False)

    with read.named():
        estimates, prepared = read.estimates(estimator=estimator, done=done)
    if read.reference is not None and spec.reference != "required":
        # The real data themselves, for orientation.
        with opt.renamed(dict.fromkeys(SAMPLE_ARGUMENTS, read.reference.path)):
            found.reference = prepared.estimate(read.real, estimator=estimator).score(level)
    if len(estimates) > 1 and estimator != "plugin":  # whose biases differ from model to model
        found.ranking = gb.estimators.rank(estimates, metric=spec.name, level=level)
    if convergence:
        _score_parts(found, prepared, estimator)
    return Answer(
        document=found.document(),
        show=lambda: _show(found, verbose=judging.verbose),
        page=lambda: _page(found, prepared, estimator),
    )


@dataclass(slots=True, kw_only=True)
class Scores:
    """What was read, and what has come out so far."""

    read: Models
    level: float
    warnings: list[gb.Diagnostic]
    scores: dict[str, gb.Score] = field(default_factory=dict)
    together: dict[str, gb.PrecisionRecall] = field(default_factory=dict)
    reference: gb.Score | None = None
    ranking: gb.Ranking | None = None
    growth: dict[str, Sequence[tuple[int, gb.Score]]] = field(default_factory=dict)
    plugin: dict[str, float | None] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """Everything so far, as `--json` prints it."""
        metric = {"metric": self.read.spec.name}
        document: dict[str, Any] = {
            "rows": [
                {"model": name, **metric, **score.to_dict()} for name, score in self.scores.items()
            ]
        }
        for row in document["rows"]:
            if row["model"] in self.together:
                row["together"] = self.together[row["model"]].to_dict()
        if self.reference is not None and self.read.reference is not None:
            name = self.read.reference.name
            document["reference"] = {"model": name, **metric, **self.reference.to_dict()}
        if self.ranking is not None:
            document["ranking"] = self.ranking.to_dict()
            del document["ranking"]["scores"]
        if self.growth:
            document["convergence"] = {
                name: [score.to_dict() for _, score in points]
                for name, points in self.growth.items()
            }
        return document | notes_of(self.warnings)


def _score_parts(found: Scores, prepared: gb.estimators.Prepared, estimator: str) -> None:
    """Score growing parts of each model's samples."""
    from genbounds.diagnostics import warn_of

    def of_part(rows: Any) -> gb.Score:
        return prepared.estimate(rows, estimator=estimator).score(found.level)

    models = found.read.models
    with progress("parts of samples") as advance:
        for done, (name, model) in enumerate(models.items()):
            advance(done, len(models), name)
            try:
                whole = found.scores[name]
                found.growth[name] = gb.estimators.growing_scores(
                    model.sample, of_part, whole=whole
                )
            except gb.InputError as error:
                reason = f"no convergence of {shown(name)}: {error.about(display(model.path))}"
                found.warnings.append(warn_of("generated-moments-only", reason=reason))


def _page(found: Scores, prepared: gb.estimators.Prepared, estimator: str) -> gb.report.Page:
    """Return the page; beside each Fréchet distance of ours is the one that pytorch-fid prints."""
    read, usual = found.read, dict[str, float]()
    if read.spec.name == "fd" and estimator == "debiased" and read.reference is not None:
        content = read.reference.content  # of the rows, however they were drawn
        plain = prepared if read.real is content else read.spec.prepared(content)
        usual = {
            name: known or plain.reference.plugin(read.models[name].content)
            for name, known in found.plugin.items()
        }
    return gb.report.score_page(
        found.scores,
        metric=read.spec.name,
        level=found.level,
        ranking=found.ranking,
        reference=found.reference,
        together=found.together,
        convergence=found.growth,
        usual=usual,
        warnings=found.warnings,
    )


def _show(found: Scores, *, verbose: bool) -> None:
    """Print the table, best model first, reference last; then verdict, warnings, assumptions."""
    from genbounds.report import wording

    ranking, spec = found.ranking, found.read.spec
    better = "larger" if spec.higher_is_better else "smaller"
    say(f"{spec.title} ({better} is better), {percent(found.level)} confidence intervals", "")
    scores = dict(found.scores if ranking is None else ranking.scores)
    if found.reference is not None and found.read.reference is not None:
        scores[f"{found.read.reference.name} (reference)"] = found.reference
    table = wording.comparison_table(scores, ranking)
    print_table(table, without=["Std. error"])
    if found.together:
        say("", wording.TOGETHER)
        print_table(wording.together_table(found.together, scores))
    if ranking is not None:
        say("", *filter(None, (wording.verdict_line(ranking), wording.winner_line(ranking))))
        if "Group" in table.columns and len(ranking.contenders) > 1:
            say("Models that share a group letter do not differ significantly.")
        pairs = len(ranking.differences)
        adjusted = f", adjusted for all {pairs} pairs" if pairs > 1 else ""
        if "p" in table.columns:
            say(f"p is the p-value of no difference from {shown(ranking.best)}{adjusted}.")
    print_remarks(
        scores,
        warnings=[*found.warnings, *(() if ranking is None else ranking.warnings)],
        assumptions=() if ranking is None else ranking.assumptions,
        together=found.together,
        verbose=verbose,
    )


# --- by class -------------------------------------------------------------------------------------


def check_by_class(spec: gb.estimators.MetricSpec, *, estimator: str, convergence: bool) -> None:
    """Refuse options that the distance by class does not have.

    Raises
    ------
    InputError
    """
    if spec.name != "fd":
        raise gb.InputError(f"is for --metric fd; got {spec.name}.", argument="--by")
    if estimator != "debiased":
        raise gb.InputError(f"is for --estimator debiased; got {estimator}.", argument="--by")
    if convergence:
        raise gb.InputError("does not apply with --by: leave one of them out.", "--convergence")


def by_class(read: Models, judging: opt.Judging, images: Sequence[Path] | None) -> Answer:
    """Score every class of every model."""
    from genbounds.cli._media import pictures_for_page
    from genbounds.estimators.frechet._by_class import common_classes, rows_by_class

    pictures = pictures_for_page(read.inputs, images, judging.output.out)
    found: dict[str, gb.ByClass] = {}
    real = read.reference
    assert real is not None, "of fd"
    for name, model in read.models.items():  # before any other is scored for minutes
        with read.named(name):
            common_classes(
                rows_by_class(model.sample, "labels", model.classes),
                rows_by_class(real.sample, "real_labels", real.classes),
            )
    with progress("models") as advance:
        for done, (name, model) in enumerate(read.models.items()):
            advance(done, len(read.models), name)
            with read.named(name):
                found[name] = gb.frechet_by_class(
                    model.sample, real.sample, model.classes, real.classes, level=judging.level
                )
    warnings = [*read.warnings, *read.doubts]

    def page() -> gb.report.Page:
        shown_of, *fake = zip(pictures, (file.classes for file in read.inputs), strict=True)
        of = dict(zip(found, fake, strict=True))
        return gb.report.by_class_page(found, fake=of, real=shown_of, warnings=warnings)

    return Answer(
        document=_by_class_document(found) | notes_of(warnings),
        show=lambda: _show_classes(found, warnings, verbose=judging.verbose),
        page=page,
    )


def _by_class_document(found: dict[str, gb.ByClass]) -> dict[str, Any]:
    documents = {name: result.to_dict() for name, result in found.items()}
    rows = [
        {"model": name, "metric": "fd", "class": label, "share": document["shares"][label], **score}
        for name, document in documents.items()
        for label, score in document["classes"].items()
    ]
    told = ("mean", "whole", "difference", "worst", "reliable", "level")
    models = [
        {"model": name, **{key: document[key] for key in told}}
        for name, document in documents.items()
    ]
    return {"rows": rows, "models": models}


def _show_classes(
    found: dict[str, gb.ByClass], warnings: Sequence[gb.Diagnostic], *, verbose: bool
) -> None:
    from genbounds.report._rows import class_table
    from genbounds.report.wording import mark

    level = percent(next(iter(found.values())).level)
    say(f"Fréchet distance by class (smaller is better), {level} intervals that hold together")
    for name, result in found.items():
        scores = {str(label): score for label, score in result.classes.items()}
        say("", f"{shown(name)}: {result}", "")
        print_table(class_table(result), without=["Worst"])
        for what, score in result.overall.items():
            doubt = f", {mark(score)}" if mark(score) else ""
            say(f"{what}: {number(score.value)} {interval(score.low, score.high)}{doubt}")
        print_remarks(scores | result.overall, warnings=warnings, verbose=verbose)
