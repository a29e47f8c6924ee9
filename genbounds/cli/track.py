"""`genbounds track`: has training stopped improving, and which checkpoint is to be kept."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import genbounds as gb
from genbounds._text import display, interval, percent, short
from genbounds.cli._command import Answer, command
from genbounds.cli._options import Scoring, argument, option
from genbounds.cli._terminal import keep, print_remarks, print_table, say

EXAMPLES = """
genbounds track real.npy step-*.npy
genbounds track real.npy step-*.npy --looks 30 --out results
genbounds track real.npy step-*.npy --fresh again.npy --json
genbounds track real.npy step-*.npy --metric kid --patience 5
"""


@command("[REFERENCE] STEP...", EXAMPLES)
def track(
    files: list[Path] = argument(
        "FILE",
        "Features of the real data (the reference), then one file per checkpoint with its step "
        "in the name, as in step-1000.npy. For is, vendi, rke and mean every file is a "
        "checkpoint. Formats as for score.",
    ),
    *,
    looks: int | None = option(
        "N",
        "Checkpoints that there will be at most, where the run goes on: the error is spent "
        "evenly over them.",
        show_default="as many as there are files",
    ),
    patience: int = option("K", "So many looks without an improvement are a plateau.", default=3),
    min_delta: float | None = option(
        "D", "Call it a plateau only if no improvement larger than this can have been missed."
    ),
    fresh: Path | None = option(
        "FILE", "Samples that the kept checkpoint generated anew: its score is taken from them."
    ),
    judging: Scoring,
) -> Answer:
    """Say whether training still improves, and which checkpoint to keep.

    Every checkpoint is compared with all earlier ones. At the level, no step of the whole run is
    wrongly called improved or collapsed.
    """
    from genbounds.cli._inputs import Models, choose_metric, reference_and_models
    from genbounds.validation import check_open_unit

    out = judging.output.out
    spec = choose_metric(judging)
    check_open_unit("--level", judging.level)
    real, checkpoints = reference_and_models(files, judging.reference, spec)
    if judging.reference is None and real is not None:
        _check_reference(real, checkpoints)
    steps = steps_of(checkpoints)
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
        show=lambda: _show(run, spec, verbose=judging.verbose),
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
    for path, step in steps.items():
        if step in known:
            raise gb.InputError(
                f"{display(known[step])} and {display(path)} are both of step {step}: give one "
                "file per step."
            )
        known[step] = path
    if len(steps) < len(paths):
        raise gb.InputError("one file is given twice: give one file per step.")
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


def _show(run: gb.Track, spec: gb.estimators.MetricSpec, *, verbose: bool) -> None:
    """Print the table by step, then the verdict, warnings and assumptions."""
    from genbounds.report.wording import mark

    better = "larger" if spec.higher_is_better else "smaller"
    say(f"{spec.title} by step ({better} is better), {percent(run.level)} for all looks", "")
    scores = {f"step {short(step)}": score for step, score in run.scores.items()}
    columns: dict[str, list[Any]] = {
        "Step": [short(look.step) for look in run.looks],
        "Score": [look.score.value for look in run.looks],
        "Interval": [interval(look.score.low, look.score.high) for look in run.looks],
        "n": [look.score.n for look in run.looks],
        "State": [look.state for look in run.looks],
    }
    if any(score.warnings for score in scores.values()):
        columns["Warnings"] = [mark(score) for score in scores.values()]
    print_table(gb.report.Table.of(columns))
    say("", *filter(None, (run.summary, run.advice)))
    print_remarks(scores, warnings=run.warnings, assumptions=run.assumptions, verbose=verbose)
