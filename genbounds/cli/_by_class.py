"""`genbounds score --by NAME`: the Fréchet distance of every class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import genbounds as gb
from genbounds._errors import InputError
from genbounds._text import display, interval, number, percent, shown
from genbounds.cli._command import Answer
from genbounds.cli._inputs import Input, Models
from genbounds.cli._pictures import pictures_for_page
from genbounds.cli._terminal import print_remarks, print_table, progress, say
from genbounds.estimators.frechet._by_class import common_classes, rows_by_class

if TYPE_CHECKING:
    from genbounds.features.thumbnails import Pictures


def check_by_class(spec: gb.estimators.MetricSpec, *, estimator: str, convergence: bool) -> None:
    """Refuse options that the distance by class does not have.

    Raises
    ------
    InputError
    """
    if spec.name != "fd":
        raise InputError(f"is for --metric fd; got {spec.name}.", argument="--by")
    if estimator != "debiased":
        raise InputError(f"is for --estimator debiased; got {estimator}.", argument="--by")
    if convergence:
        raise InputError("does not apply with --by: leave one of them out.", "--convergence")


def by_class(
    read: Models,
    *,
    level: float,
    images: Sequence[Path] | None,
    out: Path | None,
    verbose: bool,
) -> Answer:
    """Score every class of every model."""
    pictures = pictures_for_page(read.inputs, images, out)
    found: dict[str, gb.ByClass] = {}
    for name in read.models:  # a model that lacks a class, before any other is scored for minutes
        with read.named(name), _named(read, name) as (model, real):
            common_classes(
                rows_by_class(model.sample, "labels", model.classes),
                rows_by_class(real.sample, "real_labels", real.classes),
            )
    with progress("models") as advance:
        for done, name in enumerate(read.models):
            advance(done, len(read.models), name)
            with read.named(name), _named(read, name) as (model, real):
                found[name] = gb.frechet_by_class(
                    model.sample, real.sample, model.classes, real.classes, level=level
                )
    warnings = [*read.warnings, *read.doubts]
    return Answer(
        document=_document(found, warnings),
        show=lambda: _show(found, warnings, verbose=verbose),
        page=lambda: _page(found, read, pictures, warnings),
    )


@contextmanager
def _named(read: Models, name: str) -> Iterator[tuple[Input, Input]]:
    """Yield a model and the reference; name the file whose classes are at fault."""
    model, real = read.models[name], read.reference
    assert real is not None, "of fd"
    try:
        yield model, real
    except InputError as error:
        if error.argument == "labels":
            raise InputError(f"{display(model.path)} {error.text}") from error
        if error.argument == "real_labels":
            text = f"{display(real.path)} {error.text} The model is {display(model.path)}."
            raise InputError(text) from error
        raise error.of_model(name) if error.argument != "real" else error from error


def _document(found: dict[str, gb.ByClass], warnings: Sequence[gb.Diagnostic]) -> dict[str, Any]:
    documents = {name: result.to_dict() for name, result in found.items()}
    rows = [
        {"model": name, "metric": "fd", "class": label, "share": document["shares"][label], **score}
        for name, document in documents.items()
        for label, score in document["classes"].items()
    ]
    models = [
        {"model": name}
        | {
            key: document[key]
            for key in ("mean", "whole", "difference", "worst", "reliable", "level")
        }
        for name, document in documents.items()
    ]
    return {
        "rows": rows,
        "models": models,
        "warnings": [warning.to_dict() for warning in warnings],
        "notes": [warning.message for warning in warnings],
    }


def _page(
    found: dict[str, gb.ByClass],
    read: Models,
    pictures: Sequence[Pictures],
    warnings: Sequence[gb.Diagnostic],
) -> gb.report.Page:
    real, *fake = zip(pictures, (file.classes for file in read.inputs), strict=True)
    return gb.report.by_class_page(
        found, fake=dict(zip(found, fake, strict=True)), real=real, warnings=warnings
    )


def _show(
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
