"""`genbounds gate`, `plan`, `track` and `reproduce`: decisions from scores."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import genbounds as gb
from genbounds._text import display, percent, short
from genbounds.cli import _options as opt
from genbounds.cli._command import Answer, command, renamed
from genbounds.cli._terminal import keep, print_remarks, print_table, say, show

GATE_EXAMPLES = """
genbounds gate real.npy gan-old.npy gan-new.npy --margin 2%
genbounds gate real.npy old.npz new.npy --margin 0.5 --inconclusive pass
genbounds gate real.npz old.npz new.npz --margin 2% --groups prompts
genbounds gate old.npy new.npy --metric is --margin 1% --equivalence
"""

INCONCLUSIVE = "fail|pass"


@command("[REFERENCE] BASELINE CANDIDATE --margin M|P%", GATE_EXAMPLES)
def gate(
    files: list[Path] = opt.argument(
        "FILE",
        "The reference, the baseline and the candidate, in this order, as for `genbounds score`; "
        "no reference for is, vendi, rke and mean. For fd the baseline may be statistics.",
    ),
    *,
    margin: str = opt.option(
        "M|P%",
        "By how much the candidate may be worse: a number in units of the score, or a share of "
        "the baseline's score, such as 2%.",
        default=...,
    ),
    equivalence: bool = opt.flag("The candidate must not be better by more than that either."),
    inconclusive: str = opt.choice(
        INCONCLUSIVE,
        "Exit status where the samples do not tell: fail (1) or pass (0).",
        default="fail",
    ),
    judging: opt.Scoring,
) -> Answer:
    """Decide whether a candidate is worse than a baseline by no more than a margin.

    Exit status 0: it passes; 1: it fails, or the samples do not tell (--inconclusive).
    """
    from genbounds.cli._inputs import Models, choose_metric
    from genbounds.validation import check_choice

    level, verbose = judging.level, judging.verbose
    spec = choose_metric(judging)
    check_choice("--inconclusive", inconclusive, INCONCLUSIVE.split("|"))
    wanted = gb.decisions.Margin.of(margin)
    gb.decisions.check_gate(wanted, level=level, equivalence=equivalence)
    read = Models.read(files, spec, judging, [2])
    read = replace(read, models=dict(reversed(read.models.items())))  # the candidate first
    with read.named():
        verdict = gb.decisions.decide(
            read.estimates()[0],
            margin=wanted,
            metric=spec.name,
            level=level,
            equivalence=equivalence,
            warnings=read.warnings,
        )
    scores = {name: replace(score, assumptions=()) for name, score in verdict.scores.items()}
    told = verdict if verbose else replace(verdict, assumptions=())
    return Answer(
        document=verdict.to_dict(),
        show=lambda: show(told, scores=scores, verbose=verbose),
        page=lambda: gb.report.gate_page(verdict),
        negative=not verdict.accepted(inconclusive),
    )


# --- plan -----------------------------------------------------------------------------------------

PLAN_EXAMPLES = """
genbounds plan real.npy pilot.npy --half-width 0.5
genbounds plan real.npy gan-a.npy gan-b.npy --gap 0.3 --power 0.9
genbounds plan real.npz a.npz b.npz --groups prompts --gap 0.3 --out results
genbounds plan probs.npy --metric is --half-width 0.1
genbounds plan real.npy gan.npy vae.npy diffusion.npy --confidence 0.95
genbounds plan real.npy a.npy --half-width 1% --partner cheap.npy --costs 64,4
"""


@command("[REFERENCE] PILOT... --half-width H | --gap G | --confidence C", PLAN_EXAMPLES)
def plan(
    files: list[Path] = opt.argument(
        "FILE",
        "The reference that will be used, then a pilot: samples of one model, of two that are to "
        "be told apart, or of all from which `genbounds select` is to find the best; as for "
        "`genbounds score`. No reference for is, vendi, rke and mean.",
    ),
    *,
    half_width: str | None = opt.option(
        "H|P%",
        "Half the width that the interval may have: a number in units of the score, or a share "
        "of the pilot's score, such as 10%.",
    ),
    gap: str | None = opt.option(
        "G|P%",
        "Difference of two models that is to be found, as for --half-width; a share is of the "
        "first pilot's score.",
    ),
    confidence: float | None = opt.option(
        "C", "Confidence with which `genbounds select` is to certify the best of the models."
    ),
    power: float = opt.option(
        "P",
        "Probability with which the difference is found, or the best is certified.",
        default=0.8,
    ),
    tolerance: float = opt.option(
        "E",
        "With --confidence: as for select. A model counts as best if no other is better by more "
        "than this.",
        default=0.0,
    ),
    limit: int | None = opt.option(
        "N",
        "With --confidence: the most samples that a model can give. For models that are files: "
        "the rows of the shortest.",
    ),
    partner: Path | None = opt.option(
        "FILE", "The pilot of a cheap partner, row by row from the same noise as the one pilot."
    ),
    costs: str | None = opt.option(
        "A,B", "With --partner: costs of a draw of the model and of the partner, such as 64,4."
    ),
    judging: opt.Planning,
) -> Answer:
    """Say how many samples you need: for a narrow interval, to find a difference or the best model.

    Exit status 0: so many; 1: no number suffices with this reference, or (with --confidence) not
    with that probability.
    """
    from genbounds.cli._inputs import Models, choose_metric
    from genbounds.report._decisions import width_table
    from genbounds.report._selections import pilot_table
    from genbounds.select._plan import plan_selection
    from genbounds.validation import check_confidence, check_power

    level, verbose = judging.level, judging.verbose
    spec = choose_metric(judging)
    spec.check_growing("planning")
    if sum(target is not None for target in (half_width, gap, confidence)) != 1:
        raise gb.InputError("pass one target: --half-width, --gap or --confidence.")
    if confidence is None and (tolerance or limit is not None):
        name = "--tolerance" if tolerance else "--limit"
        raise gb.InputError("is for --confidence: leave it out.", argument=name)
    if confidence is None:
        gb.decisions.check_targets(half_width=half_width, gap=gap, power=power, level=level)
    else:
        check_confidence("confidence", confidence)
        check_power(power)
    if partner is not None and confidence is not None:
        raise gb.InputError("is for --half-width and --gap.", argument="--partner")
    helpers = [] if partner is None else [partner]
    prices = opt.numbers_of("--costs", costs, "64,4")
    gb.decisions.check_partner(1, partner, prices)
    if helpers and len(files) != 1 + (spec.reference == "required" and judging.reference is None):
        raise gb.InputError("is for the pilot of one model.", argument="--partner")
    counts = [] if confidence is not None else [1] if helpers else [1, 2]
    read = Models.read(files, spec, judging, counts, least=2, partners=helpers)
    pilot = {"pilot": next(iter(read.models.values())).path}
    found: Any
    with renamed(pilot), read.named():
        estimates, prepared = read.estimates()
        what = estimates, read.samples, prepared
        if confidence is None:
            found = gb.decisions.plan_from(
                *what, half_width=half_width, gap=gap, power=power, level=level
            )
            if helpers:
                (sample,) = read.samples.values()
                found = gb.decisions.with_partner(
                    found, estimates, prepared, sample, read.helpers[0], prices
                )
            table, page = width_table(found), partial(gb.report.plan_page, found)
        else:
            found = plan_selection(
                *what, confidence=confidence, power=power, tolerance=tolerance, limit=limit
            )
            table, page = pilot_table(found), partial(gb.report.selection_plan_page, found)
    return Answer(
        document=found.to_dict(),
        show=lambda: show(found, table, verbose=verbose),
        page=page,
        negative=not found.feasible,
    )


# --- track ----------------------------------------------------------------------------------------

TRACK_EXAMPLES = """
genbounds track real.npy step-*.npy
genbounds track real.npy step-*.npy --looks 30 --out results
genbounds track real.npy step-*.npy --fresh again.npy --json
genbounds track real.npy step-*.npy --metric kid --patience 5
"""


@command("[REFERENCE] STEP...", TRACK_EXAMPLES)
def track(
    files: list[Path] = opt.argument(
        "FILE",
        "The reference, then one file per checkpoint with its step in the name, as in "
        "step-1000.npy; as for `genbounds score`. No reference for is, vendi, rke and mean.",
    ),
    *,
    looks: int | None = opt.option(
        "N",
        "Checkpoints that there will be at most, where the run goes on: the error is spent "
        "evenly over them.",
        show_default="as many as there are files",
    ),
    patience: int = opt.option(
        "K", "So many looks without an improvement are a plateau.", default=3
    ),
    min_delta: float | None = opt.option(
        "D", "Call it a plateau only if no improvement larger than this can have been missed."
    ),
    fresh: Path | None = opt.option(
        "FILE", "Samples that the kept checkpoint generated anew: its score is taken from them."
    ),
    judging: opt.Scoring,
) -> Answer:
    """Say whether training still improves, and which checkpoint to keep.

    Every checkpoint is compared with all earlier ones. At the level, no step of the whole run is
    wrongly called improved or collapsed.
    """
    from genbounds.cli._inputs import Models, choose_metric
    from genbounds.validation import check_open_unit

    out = judging.output.out
    spec = choose_metric(judging)
    check_open_unit("--level", judging.level)
    real, checkpoints = judging.reference, [*files]
    if spec.reference == "required" and real is None:
        real, *checkpoints = files
        _check_reference(real, checkpoints)
    steps = steps_of(checkpoints) if checkpoints else {}
    # The shell sorts step-1000 before step-200.
    checkpoints.sort(key=lambda path: steps[path])
    keep(out, "track", {}, complete=False)
    models = checkpoints if fresh is None else [*checkpoints, fresh]
    read = Models.read(models, spec, replace(judging, reference=real))
    names = list(read.models)
    by_step = {steps[path]: name for path, name in zip(checkpoints, names, strict=False)}
    with read.named():
        found = read.estimates()[0]
        estimates = {step: found[name] for step, name in by_step.items()}
        settings: dict[str, Any] = {
            "metric": spec.name,
            "warnings": read.warnings,
            "looks": looks,
            "level": judging.level,
            "patience": patience,
            "min_delta": min_delta,
        }
        run = gb.decisions.track_estimates(estimates, **settings)
        if fresh is not None:
            again = {run.best: found[names[-1]]}
            run = gb.decisions.track_estimates(estimates, fresh=again, **settings)
    return Answer(
        document=_document(run, by_step),
        show=lambda: _show_track(run, spec, verbose=judging.verbose),
        page=lambda: gb.report.track_page(run),
    )


_WHOLE = r"(?<![0-9.])(?<![0-9]e)([0-9]+)(?![0-9A-Za-z]|\.[0-9])"
"""A whole number: no part of 0.10, 1e3 or 100k."""


def steps_of(paths: list[Path]) -> dict[Path, int]:
    """Return the step of every file: the number after "step", or the one that differs.

    Raises
    ------
    InputError
        If a name has no such number, several numbers differ, the names are built differently, or
        two files are of one step.
    """
    after = {path: re.findall(rf"step[-_= ]?{_WHOLE}", path.stem, re.IGNORECASE) for path in paths}
    found = {path: re.findall(_WHOLE, path.stem) for path in paths}
    if all(len(numbers) == 1 for numbers in after.values()):
        found = after
    for path, numbers in found.items():
        if not numbers and gb.files.shards_of(path) is not None:  # which refuses one without files
            raise gb.InputError(
                f"{display(path)}: a pattern in quotes is one checkpoint of several files: leave "
                "out the quotes."
            )
        if not numbers:
            raise gb.InputError(
                f"{display(path)}: its name has no whole number to take for the step: name files "
                "as in step-1000.npy."
            )
    alike = len(set(map(len, found.values()))) == 1
    columns = list(zip(*found.values(), strict=alike))
    varying = [k for k, column in enumerate(columns) if len(set(column)) > 1]
    if len(varying) > 1 or not alike:
        raise gb.InputError(
            f"{display(paths[0])}: several numbers in the names of the files differ, or one has "
            "more: which one is the step? Name files as in step-1000.npy."
        )
    place = varying[0] if varying else len(columns) - 1
    steps = {path: int(numbers[place]) for path, numbers in found.items()}
    known: dict[int, Path] = {}
    if len(steps) < len(paths):
        raise gb.InputError("one file is given twice: give one file per step.")
    for path, step in steps.items():
        if step in known:
            raise gb.InputError(
                f"{display(known[step])} and {display(path)} are both of step {step}: give one "
                "file per step."
            )
        known[step] = path
    return steps


def _check_reference(reference: Path, checkpoints: list[Path]) -> None:
    """Refuse a first file that is named as all others are: the real data were forgotten."""
    named = [re.sub("[0-9]+", "#", str(path)) for path in (reference, *checkpoints)]
    if checkpoints and len(set(named)) == 1:
        raise gb.InputError(
            f"{display(reference)} is named as the checkpoints are, but the first file is the "
            "reference: put the features of the real data there, or pass them as --reference."
        )


def _document(run: gb.Track, names: Mapping[int, str]) -> dict[str, Any]:
    """Return everything, as `--json` prints it."""
    document = run.to_dict()
    document["looks"] = [
        {"step": look["step"], "model": names[look["step"]], **look} for look in document["looks"]
    ]
    return document


def _show_track(run: gb.Track, spec: gb.estimators.MetricSpec, *, verbose: bool) -> None:
    """Print the table by step, then the verdict, warnings and assumptions."""
    from genbounds.report._decisions import look_table

    better = "larger" if spec.higher_is_better else "smaller"
    say(f"{spec.title} by step ({better} is better), {percent(run.level)} for all looks", "")
    scores = {f"step {short(step)}": score for step, score in run.scores.items()}
    print_table(look_table(run))
    say("", *filter(None, (run.summary, run.advice)))
    print_remarks(scores, run, verbose=verbose)


# --- reproduce ------------------------------------------------------------------------------------

REPRODUCE_EXAMPLES = """
genbounds reproduce real.npz model.npz --n 50000 --published 2.31
genbounds reproduce real.npy model.npy --n 50000 --published 2.31 \\
  --published-reference-n 50000
genbounds reproduce real.npy model.npy --n 10000
"""


@command("REFERENCE MODEL --n N", REPRODUCE_EXAMPLES)
def reproduce(
    files: list[Path] = opt.argument(
        "FILE",
        "The reference and the model, in this order, as for `genbounds score`; statistics (.npz "
        "with mu, sigma and n) will do.",
    ),
    *,
    n: int = opt.option("N", "Rows that they generated.", default=...),
    published: float | None = opt.option("V", "The distance they printed."),
    published_reference_n: int | None = opt.option(
        "M", "Rows of their own reference sample.", show_default="they have our reference file"
    ),
    training_sd: float = opt.option(
        "T",
        "Standard deviation of the distance between trainings, where they trained anew.",
        default=0.0,
    ),
    level: float = opt.LEVEL,
    judging: opt.ScoreJudging,
) -> Answer:
    """Say where another laboratory's plug-in distance of the same model falls.

    Exit status 0: the published distance is within what chance does, or none was given; 1: it is
    not, or the samples do not tell.
    """
    from genbounds.cli._inputs import Models, choose_metric

    spec = choose_metric(judging)
    read = Models.read(files, spec, judging, [1])
    (model,) = read.models.values()
    with renamed({"fake": model.path, "real": files[0]}):
        found = gb.decisions.reproduction(
            model.sample,
            read.real,
            n=n,
            published=published,
            published_reference_n=published_reference_n,
            training_sd=training_sd,
            level=level,
        )
    found = found.warned(*read.warnings, *read.doubts)
    return Answer(
        document=found.to_dict(),
        show=lambda: show(found, verbose=judging.verbose),
        page=lambda: gb.report.reproduction_page(found),
        negative=found.decision in ("not", "inconclusive"),
    )
