"""`genbounds score`: scores with confidence intervals, and which models differ significantly."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from genbounds._errors import InputError
from genbounds._text import display, interval, percent, shown, shown_pvalue
from genbounds.cli._command import Answer, command
from genbounds.cli._options import Judging, argument, choice, flag, option, renamed
from genbounds.cli._terminal import keep, print_remarks, print_table, progress, say

if TYPE_CHECKING:
    from genbounds.cli._inputs import Models
    from genbounds.estimators import Estimate, PrecisionRecall, Prepared
    from genbounds.report import Page
    from genbounds.results import Diagnostic, Ranking, Score

EXAMPLES = """
genbounds score real.npy gan.npy diffusion.npy
genbounds score real.npy gan/*.npz --level 0.99 --json
genbounds score real-stats.npz gan.npy --out results --convergence
genbounds score gan-probs.npy diffusion-probs.npy --metric is
genbounds score gan.npy diffusion.npy --metric rke --reference real.npy
genbounds score real.npz gan.npz --by labels --out results
genbounds score photos/ gan/ diffusion.zip --encoder dinov2 --out results
"""

ESTIMATORS = "debiased|plugin|infinity"


@command("[REFERENCE] GENERATED...", EXAMPLES)
def score(
    files: list[Path] = argument(
        "FILE",
        "Features of the real data (the reference), then one file per model: .npy, .npz, "
        ".safetensors, .pt or .parquet; for fd also statistics (.npz with mu, sigma and n); with "
        "--encoder also folders and archives of images, or texts. For is, vendi, rke and mean "
        "every file is a model; is takes class probabilities, mean one column of values.",
    ),
    *,
    estimator: str = choice(
        ESTIMATORS,
        "debiased: the bias is removed; plugin: the usual, biased number; infinity: FID∞ or IS∞ "
        "as published.",
        default="debiased",
    ),
    by: str | None = option(
        "NAME",
        "Array of the files that says which class each row is of: the fd of every class, worst "
        "first, all intervals together at --level; 'folders': each sub-folder of images is a "
        "class.",
    ),
    images: list[Path] | None = option(
        "PATH",
        "With --by: folder, archive or array of the images that a file is of, for the page; once "
        "for every file, the reference first.",
        show_default="as the files say",
    ),
    convergence: bool = flag(
        "Also score a half, a quarter, … of each model's samples, to see whether the scores have "
        "settled. Takes longer; needs --out or --json."
    ),
    judging: Judging,
) -> Answer:
    """Score models with confidence intervals, and compare them.

    With two models or more it also says which of them differ significantly; all these statements
    hold together at the confidence level.
    """
    from genbounds.cli._by_class import by_class, check_by_class
    from genbounds.cli._inputs import Models, choose_metric
    from genbounds.cli._pictures import check_images
    from genbounds.validation import check_choice, check_open_unit

    out, level, verbose = judging.output.out, judging.level, judging.verbose
    spec = choose_metric(judging.metric, logits=judging.reading.logits)
    check_choice("--estimator", estimator, spec.estimators)
    if by is not None:
        check_by_class(spec, estimator=estimator, convergence=convergence)
        check_images(images, out, files=len(files) + (judging.reference is not None))
    if convergence and out is None and not judging.output.as_json:
        raise InputError("is for the page and the JSON: add --out or --json.", "--convergence")
    if images and by is None:
        raise InputError("is for the page by class: add --by.", "--images")
    check_open_unit("--level", level)
    reading = replace(judging.reading, by=by)
    read = Models.read(
        files, spec, reading, reference=judging.reference, options=judging.options, out=out
    )
    if by is not None:
        return by_class(read, level=level, images=images, out=out, verbose=verbose)
    run = Run(read=read, estimator=estimator, level=level, warnings=list(read.warnings))
    run.score(out)
    if convergence:
        run.score_parts()
    return Answer(document=run.document(), show=lambda: _show(run, verbose=verbose), page=run.page)


@dataclass(slots=True, kw_only=True)
class Run:
    """What was asked, what was read, and what has come out so far."""

    read: Models
    estimator: str
    level: float
    prepared: Prepared = field(init=False)
    scores: dict[str, Score] = field(default_factory=dict)
    ranking: Ranking | None = None
    reference_score: Score | None = None
    together: dict[str, PrecisionRecall] = field(default_factory=dict)
    growth: dict[str, Sequence[tuple[int, Score]]] = field(default_factory=dict)
    warnings: list[Diagnostic] = field(default_factory=list)

    def score(self, out: Path | None) -> None:
        """Score every model and compare them; keep each score in `out` as it comes."""
        from genbounds.cli._inputs import SAMPLE_ARGUMENTS
        from genbounds.estimators import rank

        read = self.read

        def done(name: str, estimate: Estimate) -> None:
            self.scores[name] = estimate.warned(*read.models[name].doubts).score(self.level)
            if estimate.together is not None:
                self.together[name] = estimate.together(self.level)
            keep(out, "score", self.document(), complete=False)

        with read.named():
            found, self.prepared = read.estimates(estimator=self.estimator, done=done)
        if read.reference is not None and read.spec.reference != "required":
            # The real data themselves, for orientation.
            with renamed(dict.fromkeys(SAMPLE_ARGUMENTS, read.reference.path)):
                estimate = self.prepared.estimate(read.real, estimator=self.estimator)
            self.reference_score = estimate.score(self.level)
        if len(found) > 1 and self.estimator != "plugin":  # whose biases differ from model to model
            self.ranking = rank(found, metric=read.spec.name, level=self.level)

    def score_parts(self) -> None:
        """Score growing parts of each model's samples."""
        from genbounds.diagnostics import warn_of
        from genbounds.estimators import growing_scores

        def of_part(rows: Any) -> Score:
            return self.prepared.estimate(rows, estimator=self.estimator).score(self.level)

        with progress("parts of samples") as advance:
            for done, (name, model) in enumerate(self.read.models.items()):
                advance(done, len(self.read.models), name)
                try:
                    self.growth[name] = growing_scores(
                        model.sample, of_part, whole=self.scores[name]
                    )
                except InputError as error:
                    reason = f"no convergence of {shown(name)}: {error.about(display(model.path))}"
                    self.warnings.append(warn_of("generated-moments-only", reason=reason))

    def document(self) -> dict[str, Any]:
        """Everything so far, as `--json` prints it."""
        metric = {"metric": self.read.spec.name}
        beside = {name: {"together": found.to_dict()} for name, found in self.together.items()}
        document: dict[str, Any] = {
            "rows": [
                {"model": name, **metric, **score.to_dict(), **beside.get(name, {})}
                for name, score in self.scores.items()
            ]
        }
        if self.reference_score is not None and self.read.reference is not None:
            document["reference"] = {
                "model": self.read.reference.name, **metric, **self.reference_score.to_dict(),
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

    def usual(self) -> dict[str, float]:
        """Return the Fréchet distance of every model as pytorch-fid prints it, beside ours."""
        read, real = self.read, self.read.reference
        if read.spec.name != "fd" or self.estimator != "debiased" or real is None:
            return {}
        # Of the rows, however they were drawn.
        plain = self.prepared if read.real is real.content else read.spec.prepared(real.content)
        reference: Any = plain.reference
        return {name: reference.plugin(model.content) for name, model in read.models.items()}

    def page(self) -> Page:
        """Return the page of the run."""
        from genbounds.report import score_page

        return score_page(
            self.scores,
            metric=self.read.spec.name,
            level=self.level,
            ranking=self.ranking,
            reference=self.reference_score,
            together=self.together,
            convergence=self.growth,
            usual=self.usual(),
            warnings=self.warnings,
        )


def _show(run: Run, *, verbose: bool) -> None:
    """Print the table, best model first, reference last; then verdict, warnings, assumptions."""
    from genbounds.report import Name, Table
    from genbounds.report.wording import letters_of, mark, together_table, verdict_line, winner_line

    ranking = run.ranking
    better = "larger" if run.read.spec.higher_is_better else "smaller"
    say(
        f"{run.read.spec.title} ({better} is better), {percent(run.level)} confidence intervals", ""
    )
    scores = dict(run.scores if ranking is None else ranking.scores)
    if run.reference_score is not None and run.read.reference is not None:
        scores[f"{run.read.reference.name} (reference)"] = run.reference_score
    columns: dict[str, list[Any]] = {
        "Model": [Name(name) for name in scores],
        "Score": [score.value for score in scores.values()],
        "Interval": [interval(score.low, score.high) for score in scores.values()],
        "n": [score.n for score in scores.values()],
    }
    letters = {} if ranking is None else letters_of(ranking)
    if letters:
        columns["Group"] = [letters.get(name, "") for name in scores]
    if ranking is not None and ranking.best in letters:
        columns["p"] = [_pvalue(ranking, name, letters) for name in scores]
    if any(score.warnings for score in scores.values()):
        columns["Warnings"] = [mark(score) for score in scores.values()]
    print_table(Table.of(columns))
    if run.together:
        table = together_table(run.together, scores)
        say("", table.caption)
        print_table(table)
    if ranking is not None:
        say("", *filter(None, (verdict_line(ranking), winner_line(ranking))))
        if letters and len(ranking.contenders) > 1:
            say("Models that share a group letter do not differ significantly.")
        pairs = len(ranking.differences)
        adjusted = f", adjusted for all {pairs} pairs" if pairs > 1 else ""
        if "p" in columns:
            say(f"p is the p-value of no difference from {shown(ranking.best)}{adjusted}.")
    print_remarks(
        scores,
        warnings=[*run.warnings, *(() if ranking is None else ranking.warnings)],
        assumptions=() if ranking is None else ranking.assumptions,
        together=run.together,
        verbose=verbose,
    )


def _pvalue(ranking: Ranking, name: str, reliable: Container[str]) -> str:
    """Return the adjusted p-value of a model's difference from the best one."""
    if name == ranking.best or name not in reliable:
        return "–"
    adjusted = ranking.difference(ranking.best, name).pvalue_adjusted
    return shown_pvalue(adjusted).removeprefix("= ").replace(" ", "")
