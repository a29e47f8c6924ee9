"""What commands that score models share: options of metrics, reading, errors that name a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from genbounds._text import listed
from genbounds.cli._encoding import open_encoder
from genbounds.cli._input import Drawing, Input
from genbounds.cli._inputs import load, options, renamed
from genbounds.cli._plausible import suspicions
from genbounds.estimators import MetricSpec, metric_names, metric_spec
from genbounds.files import display
from genbounds.results import Diagnostic
from genbounds.validation import InputError

SAMPLE_ARGUMENTS = ("fake", "probs", "x")
"""What the library calls the sample of one model."""


def metric_options(spec: MetricSpec, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were `given`, refusing those that the metric would ignore."""
    chosen = {name: value for name, value in given.items() if value is not None}
    for name in chosen:
        if name not in spec.options:
            legal = [other for other in metric_names() if name in metric_spec(other).options]
            raise InputError(
                f"is for --metric {listed(legal)}; got {spec.name}.", argument=f"--{name}"
            )
    return chosen


def read_models(
    files: Sequence[Path],
    reference: Path | None,
    spec: MetricSpec,
    *,
    logits: bool,
    drawing: Drawing,
    encoder: str | None,
    how: Mapping[str, Any],
    out: Path | None,
) -> list[Input]:
    """Read the reference, if there is one, and the models; encode what is to be encoded.

    Parameters
    ----------
    files : sequence of Path
        Of the models.
    reference : Path or None
    spec : MetricSpec
    logits, drawing
        As for `load`.
    encoder, how, out
        As for `open_encoder`.
    """
    with (
        renamed(options("encoder", "weights", "precision")),
        open_encoder(encoder, how, out=out) as loaded,
    ):
        return load(
            [*([] if reference is None else [reference]), *files],
            spec,
            logits=logits,
            referenced=reference is not None,
            drawing=drawing,
            encoder=loaded,
        )


def reads_rows(name: str) -> MetricSpec:
    """Return how files are read by the command `name`, which needs the rows themselves."""
    return replace(metric_spec("kid"), name=name)


def split_reference(
    files: Sequence[Path], reference: Path | None, spec: MetricSpec, models: Sequence[int] | None
) -> tuple[Path | None, list[Path]]:
    """Return the reference, the first file where the metric needs one, and the models' files.

    Parameters
    ----------
    files : sequence of Path
        As given.
    reference : Path or None
        That of ``--reference``.
    spec : MetricSpec
    models : sequence of int or None
        How many models there may be; None: two or more.
    """
    rest = list(files)
    if reference is None and spec.reference == "required":
        reference = rest.pop(0)
    if len(rest) < 2 if models is None else len(rest) not in models:
        counts = "at least two models"
        if models is not None:
            counts = " or ".join(f"{count} model{'s' * (count > 1)}" for count in models)
        first = "a reference and " if spec.reference == "required" else ""
        got = "1 file" if len(files) == 1 else f"{len(files)} files"
        raise InputError(f"--metric {spec.name} takes {first}{counts}; got {got}.")
    return reference, rest


def doubts_of(
    spec: MetricSpec, models: Mapping[str, Input], reference: Input | None
) -> dict[str, tuple[Diagnostic, ...]]:
    """Return what is implausible about the file of each model, or about the reference."""
    if spec.data != "features":
        return dict.fromkeys(models, ())
    shared = () if reference is None else suspicions(reference)
    return {name: (*suspicions(model), *shared) for name, model in models.items()}


@contextmanager
def files_named(models: Mapping[str, Input], reference: Input | None) -> Iterator[None]:
    """Name the file or the option in an error instead of the library's argument."""
    scored = ("estimator", "kernel", "bandwidth", "order", "k", "level")
    decided = ("margin", "half_width", "gap", "power", "looks", "patience", "min_delta")
    mixed = ("folds", "metric", "seed")
    names: dict[str, Path | str] = {**options(*scored, *decided, *mixed)}
    if reference is not None:
        names |= dict.fromkeys(("real", "reference"), reference.path)
    try:
        with renamed(names):
            yield
    except InputError as error:
        if error.model not in models:
            raise
        path = display(models[error.model].path)
        if error.argument in SAMPLE_ARGUMENTS:
            raise error.about(path) from error
        text = error.text if error.argument else f"{path}: {error.text}"
        raise InputError(text, error.argument) from error
