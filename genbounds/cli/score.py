"""`genbounds score`: scores with intervals, which models differ, and (--by) every class's score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import genbounds as gb
from genbounds._text import display, interval, number, percent, shown
from genbounds.cli import _options as opt
from genbounds.cli._command import Answer, UsageError, command, renamed
from genbounds.cli._terminal import keep, print_remarks, print_table, progress, say

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
genbounds score real.npz model.npz --partner cheap.npz
genbounds score --across inception=real.npy:gan.npy clip=real2.npy:gan2.npy
"""


@command("[REFERENCE] GENERATED...", EXAMPLES)
def score(
    files: list[Path] | None = opt.argument(
        "FILE",
        "Features of the real data (the reference), then of one model each: .npy, .npz, "
        ".safetensors, .pt or .parquet; for fd also statistics (.npz with mu, sigma and n); with "
        "--encoder also images or texts. For is (class probabilities), vendi, rke and mean (one "
        "column of values) every file is a model.",
        default=None,
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
    partner: list[Path] | None = opt.option(
        "FILE",
        "Draws of a cheap partner of the model (fewer steps, distilled) from the same noise, then "
        "further ones; with groups in both files the rows of common groups are the common ones. "
        "Once for every model.",
    ),
    across: list[str] | None = opt.option(
        "ENCODER=REAL:MODEL[:MODEL...]",
        "Score by fd under several encoders at once: one such argument for each, models in one "
        "order, in place of the files.",
    ),
    scale: str = opt.choice(
        "log|floor",
        "With --across: geometric mean of the distances, or mean in multiples of what halves of "
        "the reference have.",
        default="log",
    ),
    judging: opt.Scoring,
) -> Answer:
    """Score models with confidence intervals, and compare them.

    With two models or more it also says which of them differ significantly; all these statements
    hold together at the confidence level.
    """
    from genbounds.cli._inputs import SAMPLE_ARGUMENTS, Models, choose_metric
    from genbounds.validation import check_choice, check_open_unit

    out, level, helpers = judging.output.out, judging.level, [*(partner or ())]
    spec = choose_metric(judging)
    check_choice("--estimator", estimator, spec.estimators)
    plain = by is None and estimator == "debiased"
    if across:
        if helpers or convergence or not plain or spec.name != "fd":
            raise gb.InputError("is for the debiased fd, by itself.", argument="--across")
        return across_encoders([*across, *map(str, files or ())], spec, judging, scale)
    if scale != "log":
        raise gb.InputError("is for --across: leave it out.", argument="--scale")
    if not files:
        raise UsageError("Missing argument 'FILE'.")
    if helpers and not plain:
        raise gb.InputError("is for --estimator debiased, without --by.", argument="--partner")
    models = len(files) - (spec.reference == "required" and judging.reference is None)
    if helpers and len(helpers) != models:
        raise gb.InputError(
            f"is given once for every model, beside the reference and the models; got "
            f"{len(helpers)} for {models} models.",
            argument="--partner",
        )
    check_open_unit("--level", level)
    if by is not None:
        check_by_class(spec, estimator=estimator, convergence=convergence)
        return by_class(files, by, judging, images)
    if convergence and out is None and not judging.output.as_json:
        raise gb.InputError("is for the page and the JSON: add --out or --json.", "--convergence")
    if images:
        raise gb.InputError("is for the page by class: add --by.", "--images")
    read = Models.read(files, spec, judging, partners=helpers)
    found = Scores(read=read, level=level, estimator=estimator, out=out, warnings=[*read.warnings])
    with read.named():
        partners = dict(zip(read.models, read.helpers, strict=False))
        estimates, prepared = read.estimates(
            estimator=estimator, partners=partners, done=found.take
        )
    if read.reference is not None and spec.reference != "required":
        # The real data themselves, for orientation.
        with renamed(dict.fromkeys(SAMPLE_ARGUMENTS, read.reference.path)):
            found.reference = prepared.estimate(read.real, estimator=estimator).score(level)
    if len(estimates) > 1 and estimator != "plugin":  # whose biases differ from model to model
        found.ranking = gb.estimators.rank(estimates, metric=spec.name, level=level)
    if convergence:
        found.take_parts(prepared)
    return Answer(
        document=found.document(),
        show=partial(found.show, verbose=judging.verbose),
        page=partial(found.page, prepared),
    )


@dataclass(slots=True, kw_only=True)
class Scores:
    """What was read, and what has come out so far."""

    read: Models
    level: float
    estimator: str
    out: Path | None
    warnings: list[gb.Diagnostic]
    scores: dict[str, gb.Score] = field(default_factory=dict)
    together: dict[str, gb.PrecisionRecall] = field(default_factory=dict)
    reference: gb.Score | None = None
    ranking: gb.Ranking | None = None
    growth: dict[str, Sequence[tuple[int, gb.Score]]] = field(default_factory=dict)
    plugin: dict[str, float | None] = field(default_factory=dict)

    def take(self, name: str, estimate: gb.estimators.Estimate) -> None:
        """Take up the score of a model, and what is to be read with it; keep all so far."""
        score, self.plugin[name] = estimate.score(self.level), estimate.plugin
        more = None if estimate.together is None else estimate.together(self.level)
        if isinstance(more, gb.TwoLevel):
            doubts = dict.fromkeys((*score.warnings, *more.warnings))
            score = replace(more, warnings=tuple(doubts))
        elif more is not None:
            self.together[name] = more
        self.scores[name] = score
        if self.out is not None:  # a long run that is stopped has left something
            keep(self.out, "score", self.document(), complete=False)

    def take_parts(self, prepared: gb.estimators.Prepared) -> None:
        """Score growing parts of each model's samples."""
        from genbounds.diagnostics import warn_of

        def of_part(rows: Any) -> gb.Score:
            return prepared.estimate(rows, estimator=self.estimator).score(self.level)

        models = self.read.models
        with progress("parts of samples") as advance:
            for done, (name, model) in enumerate(models.items()):
                advance(done, len(models), name)
                try:
                    self.growth[name] = gb.estimators.growing_scores(
                        model.sample, of_part, whole=self.scores[name]
                    )
                except gb.InputError as error:
                    reason = f"no convergence of {shown(name)}: {error.about(display(model.path))}"
                    self.warnings.append(warn_of("generated-moments-only", reason=reason))

    def document(self) -> dict[str, Any]:
        """Everything so far, as `--json` prints it."""
        metric, real = {"metric": self.read.spec.name}, self.read.reference
        rows = [{"model": name, **metric, **score.to_dict()} for name, score in self.scores.items()]
        for row in rows:
            if row["model"] in self.together:
                row["together"] = self.together[row["model"]].to_dict()
        document: dict[str, Any] = {"rows": rows}
        if self.reference is not None and real is not None:
            document["reference"] = {"model": real.name, **metric, **self.reference.to_dict()}
        if self.ranking is not None:
            document["ranking"] = self.ranking.to_dict()
            del document["ranking"]["scores"]
        if self.growth:
            document["convergence"] = {
                name: [score.to_dict() for _, score in points]
                for name, points in self.growth.items()
            }
        return document | _told(self.warnings)

    def page(self, prepared: gb.estimators.Prepared) -> gb.report.Page:
        """Return the page; beside each Fréchet distance of ours is the one of pytorch-fid."""
        read, usual = self.read, dict[str, float]()
        if read.spec.name == "fd" and self.estimator == "debiased" and read.reference is not None:
            content = read.reference.content  # of the rows, however they were drawn
            plain = prepared if read.real is content else read.spec.prepared(content)
            usual = {
                name: known or plain.reference.plugin(read.models[name].content)
                for name, known in self.plugin.items()
            }
        return gb.report.score_page(
            self.scores,
            metric=read.spec.name,
            level=self.level,
            ranking=self.ranking,
            reference=self.reference,
            together=self.together,
            convergence=self.growth,
            usual=usual,
            warnings=self.warnings,
        )

    def show(self, *, verbose: bool) -> None:
        """Print the table, best model first, reference last; verdict, warnings, assumptions."""
        from genbounds.report import _scores as report

        ranking, spec = self.ranking, self.read.spec
        better = "larger" if spec.higher_is_better else "smaller"
        say(f"{spec.title} ({better} is better), {percent(self.level)} confidence intervals", "")
        scores = dict(self.scores if ranking is None else ranking.scores)
        if self.reference is not None and self.read.reference is not None:
            scores[f"{self.read.reference.name} (reference)"] = self.reference
        table = report.comparison_table(scores, ranking)
        print_table(table, without=["Std. error"])
        for name, score in self.scores.items():
            if isinstance(score, gb.TwoLevel):
                alone = f"{number(score.plain.value)} {interval(score.plain.low, score.plain.high)}"
                say(
                    f"{shown(name)} alone: {alone}; its partner leaves "
                    f"{percent(round(score.variance_left, 2))} of the variance due to the images "
                    f"(correlation {score.correlation:.2f})."
                )
        if self.together:
            say("", report.TOGETHER)
            print_table(report.together_table(self.together, scores))
        if ranking is not None:
            say("", *report.verdict_lines(ranking))
            if "Group" in table.columns and len(ranking.contenders) > 1:
                say("Models that share a group letter do not differ significantly.")
            pairs = len(ranking.differences)
            adjusted = f", adjusted for all {pairs} pairs" if pairs > 1 else ""
            if "p" in table.columns:
                say(f"p is the p-value of no difference from {shown(ranking.best)}{adjusted}.")
        joint = [] if ranking is None else [ranking]
        more: dict[str, Any] = {"warnings": self.warnings, "together": self.together}
        print_remarks(scores, *joint, **more, verbose=verbose)


def _told(warnings: Sequence[gb.Diagnostic]) -> dict[str, Any]:
    """Return warnings about the whole run, as every document ends with them."""
    notes = [warning.message for warning in warnings]
    return {"warnings": [warning.to_dict() for warning in warnings], "notes": notes}


# --- across encoders ------------------------------------------------------------------------------


def across_encoders(
    given: Sequence[str], spec: gb.estimators.MetricSpec, judging: opt.Scoring, scale: str
) -> Answer:
    """Score every model under all encoders at once, and under each."""
    from genbounds.cli._inputs import Models
    from genbounds.validation import check_choice

    check_choice("--scale", scale, ("log", "floor"))
    read: dict[str, Models] = {}
    for text in given:
        encoder, _, paths = text.partition("=")
        files = [Path(path) for path in paths.split(":")]
        if not encoder or len(files) < 2 or encoder in read:
            raise gb.InputError(
                f"must be ENCODER=REAL:MODEL[:MODEL...], each encoder once; got {display(text)!r}.",
                argument="--across",
            )
        read[encoder] = Models.read(files, spec, replace(judging, reference=None))
    names = list(next(iter(read.values())).models)  # those of the first encoder's files
    ends = {encoder: _ends([*each.models]) for encoder, each in read.items()}
    for encoder, each in read.items():
        if set(ends[encoder]) == set(_ends(names)) and ends[encoder] != _ends(names):
            wanted, has = "the models in one order", ", ".join(map(display, each.models))
        elif len(each.models) != len(names):
            wanted, has = "the same models", f"{len(each.models)} of {len(names)}"
        else:
            continue
        what = f"must have {wanted} under every encoder; {display(encoder)} has {has}."
        raise gb.InputError(what, argument="--across")
    fakes = {e: dict(zip(names, each.samples.values(), strict=True)) for e, each in read.items()}
    real = {encoder: each.real for encoder, each in read.items()}
    ranking = gb.across(fakes, real, scale=scale, level=judging.level)
    scores = {("all", name): score for name, score in ranking.scores.items()}
    for encoder, by_one in ranking.by_encoder.items():
        scores |= {(encoder, name): by_one.scores[name] for name in ranking.scores}
    rows = [
        {"model": name, "metric": "fd", **score.to_dict(), "encoder": encoder}
        for (encoder, name), score in scores.items()
    ]
    whole = ranking.to_dict()
    del whole["scores"], whole["by_encoder"]
    disputed = [list(pair) for pair in ranking.disputed]
    warnings = [warning for each in read.values() for warning in (*each.warnings, *each.doubts)]
    document = {"rows": rows, "scale": scale, "ranking": whole, "disputed": disputed}
    return Answer(
        document=document | _told(warnings),
        show=lambda: _show_encoders(ranking, scale, verbose=judging.verbose),
        page=lambda: gb.report.encoders_page(ranking, warnings=warnings),
    )


def _ends(names: Sequence[str]) -> list[str]:
    """Return names without what all of them begin with."""
    letters = zip(*names, strict=False)
    shared = sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, letters))
    return [name[shared:] for name in names]


def _show_encoders(ranking: gb.EncoderRanking, scale: str, *, verbose: bool) -> None:
    """Print a line for every model and encoder, then what differs, and where encoders disagree."""
    from genbounds.report import _scores as wording

    how = "geometric mean" if scale == "log" else "mean in multiples of the floor"
    say(f"Fréchet distance over encoders ({how}), {percent(ranking.level)} intervals", "")
    print_table(wording.comparison_table(ranking.scores, ranking), without=["Std. error"])
    if ranking.differences:
        say("", *wording.verdict_lines(ranking))
    for name, found in ranking.by_encoder.items():
        say("", f"{shown(name)}, {percent(found.level)} intervals", "")
        print_table(wording.comparison_table(found.scores, found), without=["Std. error"])
    for line in wording.dispute_lines(ranking):
        say("", line)
    print_remarks(ranking.scores, ranking, verbose=verbose)


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


def by_class(
    files: Sequence[Path], by: str, judging: opt.Scoring, images: Sequence[Path] | None
) -> Answer:
    """Score every class of every model."""
    from genbounds.cli._inputs import Models
    from genbounds.cli._media import check_images, pictures_for_page
    from genbounds.estimators import metric_spec
    from genbounds.estimators.frechet._by_class import common_classes, rows_by_class

    out = judging.output.out
    check_images(images, out, files=len(files) + (judging.reference is not None))
    classed = replace(judging, reading=replace(judging.reading, by=by))
    read = Models.read(files, metric_spec("fd"), classed)
    pictures = pictures_for_page(read.inputs, images, out)
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
        document=_by_class_document(found, warnings),
        show=lambda: _show_classes(found, warnings, verbose=judging.verbose),
        page=page,
    )


def _by_class_document(
    found: dict[str, gb.ByClass], warnings: Sequence[gb.Diagnostic]
) -> dict[str, Any]:
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
    return {"rows": rows, "models": models} | _told(warnings)


def _show_classes(
    found: dict[str, gb.ByClass], warnings: Sequence[gb.Diagnostic], *, verbose: bool
) -> None:
    from genbounds.report._rows import class_table
    from genbounds.report._scores import mark

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
