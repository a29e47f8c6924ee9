"""`genbounds score --by NAME`: the Fréchet distance of every class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from genbounds._text import interval, number, percent, shown
from genbounds.cli._input import Input
from genbounds.cli._models import doubts_of, files_named, reads_rows
from genbounds.cli._pictures import pictures_for_page
from genbounds.cli._terminal import (
    keep,
    keep_page,
    print_json,
    print_remarks,
    print_table,
    progress,
    say,
)
from genbounds.files import display
from genbounds.origins import origin_warnings
from genbounds.results import Diagnostic
from genbounds.validation import InputError

if TYPE_CHECKING:
    from genbounds.estimators import ByClass, MetricSpec
    from genbounds.features.thumbnails import Pictures
    from genbounds.report import Page


def check_by_class(spec: MetricSpec, *, estimator: str, convergence: bool) -> None:
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


Found = tuple[dict[str, "ByClass"], list[Diagnostic]]
"""The result of every model, and warnings about all of them."""


def score_by_class(
    real: Input,
    models: Sequence[Input],
    *,
    level: float,
    images: Sequence[Path] | None,
    out: Path | None,
) -> Found:
    """Score every class of every model; keep the result and its page."""
    pictures = pictures_for_page([real, *models], images, out)
    _check_classes(models, real)
    found: dict[str, ByClass] = {}
    with progress("models") as advance:
        for done, model in enumerate(models):
            advance(done, len(models), model.name)
            with files_named({model.name: model}, real):
                found[model.name] = _of_model(model, real, level=level)
    inputs = {shown(one.name): one for one in (real, *models)}
    warnings = [
        *origin_warnings({name: one.origin for name, one in inputs.items()}),
        *dict.fromkeys(
            doubt
            for doubts in doubts_of(reads_rows("fd"), {m.name: m for m in models}, real).values()
            for doubt in doubts
        ),
    ]
    keep(out, _document(found, warnings))
    if out is not None:
        keep_page(out, _page(found, models, real, pictures, warnings))
    return found, warnings


def print_by_class(result: Found, *, as_json: bool, verbose: bool) -> None:
    """Print what was found."""
    if as_json:
        print_json(_document(*result))
    else:
        _print(*result, verbose=verbose)


def _check_classes(models: Sequence[Input], real: Input) -> None:
    """Refuse a model that lacks a class, before any other is scored for minutes."""
    from genbounds.estimators.frechet._classes import common_classes, rows_by_class

    for model in models:
        with files_named({model.name: model}, real), _named(model, real):
            common_classes(
                *(
                    rows_by_class(one.sample, argument, one.classes)
                    for argument, one in (("labels", model), ("real_labels", real))
                )
            )


def _of_model(model: Input, real: Input, *, level: float) -> ByClass:
    from genbounds.estimators import frechet_by_class

    with _named(model, real):
        return frechet_by_class(model.sample, real.sample, model.classes, real.classes, level=level)


@contextmanager
def _named(model: Input, real: Input) -> Iterator[None]:
    """Name the file whose classes are at fault, and the model."""
    try:
        yield
    except InputError as error:
        if error.argument == "labels":
            raise InputError(f"{display(model.path)} {error.text}") from error
        if error.argument == "real_labels":
            text = f"{display(real.path)} {error.text} The model is {display(model.path)}."
            raise InputError(text) from error
        raise error.of_model(model.name) if error.argument != "real" else error from error


def _document(found: dict[str, ByClass], warnings: Sequence[Diagnostic]) -> dict[str, Any]:
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
    found: dict[str, ByClass],
    models: Sequence[Input],
    real: Input,
    pictures: Sequence[Pictures],
    warnings: Sequence[Diagnostic],
) -> Page:
    from genbounds.report import by_class_page

    first, *others = pictures
    fake = {model.name: (held, model.classes) for model, held in zip(models, others, strict=True)}
    return by_class_page(found, fake=fake, real=(first, real.classes), warnings=warnings)


def _print(found: dict[str, ByClass], warnings: Sequence[Diagnostic], *, verbose: bool) -> None:
    from genbounds.report.wording import mark

    level = percent(next(iter(found.values())).level)
    say(f"Fréchet distance by class (smaller is better), {level} intervals that hold together")
    for name, result in found.items():
        scores = {str(label): score for label, score in result.classes.items()}
        say("", f"{shown(name)}: {result}", "")
        rows = [
            (
                shown(label),
                number(score.value),
                interval(score.low, score.high),
                number(score.n),
                percent(round(share, 4)),
                mark(score),
            )
            for (label, score), share in zip(scores.items(), result.shares.values(), strict=True)
        ]
        columns = ("Class", "FD", "Interval", "n", "Share of real", "Warnings")
        print_table(columns, rows, numeric=("FD", "n", "Share of real"))
        for what, score in result.overall.items():
            doubt = f", {mark(score)}" if mark(score) else ""
            say(f"{what}: {number(score.value)} {interval(score.low, score.high)}{doubt}")
        print_remarks(scores | result.overall, warnings=warnings, verbose=verbose)
