"""From file names to what the estimators take."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from genbounds._text import quoted, said_by
from genbounds.cli._encoding import which_encoder
from genbounds.cli._input import FOLDER_LABELS, FOLDERS, Input
from genbounds.cli._options import Reading, SharesReading
from genbounds.cli._plausible import check_widths, probabilities
from genbounds.cli._reading import at_shares, settle_labels
from genbounds.features import (
    check_same_encoder,
    entry_point,
    is_entry_point,
    media_kind,
)
from genbounds.features.sources import is_media_by_name
from genbounds.files import (
    FORMATS,
    Statistics,
    contents_of,
    display,
    pick_label,
    pick_labels,
    read_header,
)
from genbounds.samples import Sample, balanced, go_across
from genbounds.validation import InputError, meant

if TYPE_CHECKING:
    from genbounds.cli._encoding import FolderEncoder
    from genbounds.estimators import MetricSpec, Moments
    from genbounds.files import Contents


def choose_metric(name: str, *, logits: bool = False) -> MetricSpec:
    """Return the metric of that name, or ``module:name``; refuse options that it would ignore."""
    from genbounds.estimators import metric_names, metric_spec

    if is_entry_point(name):
        spec = _own_metric(name)
    else:
        try:
            spec = metric_spec(name)
        except InputError as error:
            raise InputError(
                f"must be one that `--metric help` lists; got {quoted(name)}."
                f"{meant(name, metric_names())}",
                argument="--metric",
            ) from error
    if logits and spec.data != "posteriors":
        raise InputError(
            f"is for class probabilities; --metric {spec.name} takes features.",
            argument="--logits",
        )
    return spec


def _own_metric(name: str) -> MetricSpec:
    """Return the metric that ``module:name`` stands for; only naming it runs the user's code."""
    from genbounds.estimators import CustomMetric, MetricSpec, SmoothScore, metric_spec

    try:
        with redirect_stdout(sys.stderr):
            target = entry_point(name)
    except InputError:
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {said_by(error)}"
        raise InputError(f"{display(name)}: fails when it is imported: {what}.") from error
    if not isinstance(target, (SmoothScore, MetricSpec, CustomMetric)):
        raise InputError(
            f"{display(name)} is no score: name a genbounds.SmoothScore.", argument="--metric"
        )
    return metric_spec(target)


def load(
    paths: Sequence[Path],
    metric: MetricSpec,
    reading: Reading,
    *,
    referenced: bool,
    encoder: FolderEncoder | None = None,
) -> list[Input]:
    """Read the files of one run; what is to be encoded is encoded.

    Parameters
    ----------
    paths : sequence of Path
    metric : MetricSpec
    reading : Reading
    referenced : bool
        Whether the first file is the reference.
    encoder : FolderEncoder, optional

    Raises
    ------
    InputError
        As `genbounds.files.read`; or if two files say that different encoders made them; or if a
        file surely holds something else than it is taken for.
    """
    if not referenced:
        _refuse_size_of_statistics(reading, "here is no reference")
    # Before anything is read: the files may be large.
    headers = {path: read_header(path) for path in paths if not is_media_by_name(path)}
    files = {path: header for path, header in headers.items() if not header.images}
    check_same_encoder({display(path): header.origin for path, header in files.items()})
    if metric.data == "features":
        check_widths({path: header.shape for path, header in files.items() if header.shape})
    of_models = replace(reading, reference_n=None, reference_exact=False)
    inputs: list[Input] = []
    for given, name in zip(paths, model_names(paths), strict=True):
        path = given if given in files else _encoded(given, name, encoder)
        is_reference = referenced and not inputs
        one = _input(path, metric, reading if is_reference else of_models, needed=not is_reference)
        inputs.append(replace(one, path=given, name=name))
    check_same_encoder({display(one.path): one.origin for one in inputs})
    if metric.data == "features":
        check_widths({one.path: one.shape for one in inputs})
    inputs = settle_labels(inputs)
    if not isinstance(reading, SharesReading) or reading.shares is None:
        return inputs
    return at_shares(inputs, reading.shares, referenced=referenced)


def _input(path: Path, metric: MetricSpec, reading: Reading, *, needed: bool) -> Input:
    """Read one file, opened once: features and labels are of one moment."""
    with contents_of(path) as contents:
        contents.values = metric.data == "values"
        held = contents.read()
        labels: dict[str, NDArray[Any] | None] = {}
        undecided = None
        if isinstance(held, np.ndarray) and not reading.iid:
            labels, undecided = _labels(path, contents, reading, needed=needed)
        contexts, classes = (
            None
            if getattr(reading, role) is None
            else pick_label(contents, _label_name(path, contents, role, reading))
            for role in ("contexts", "by")
        )
        origin = contents.origin
    content: Any = held
    sample: Any
    if isinstance(held, Statistics):
        content = sample = _moments(path, held, metric, reading)
    else:
        _refuse_size_of_statistics(
            reading, f"{display(path)} holds features, whose number is known"
        )
        if metric.data == "posteriors":
            content = probabilities(path, held, logits=reading.logits)
        told = reading.iid or any(array is not None for array in labels.values())
        sample = Sample(content, **labels) if told else content
    return Input(
        path=path,
        name="",
        content=content,
        sample=sample,
        origin=origin,
        contexts=contexts,
        classes=classes,
        undecided=undecided,
    )


def _moments(path: Path, held: Statistics, metric: MetricSpec, reading: Reading) -> Moments:
    from genbounds.estimators import Moments, metric_names

    if not metric.moments:
        what = f"--metric {metric.name}" if metric.name in metric_names() else metric.name
        raise InputError(
            f"{display(path)}: holds statistics (mu, sigma); {what} needs the features themselves."
        )
    try:
        return Moments.from_statistics(held, reading.reference_n, exact=reading.reference_exact)
    except InputError as error:
        raise InputError(f"{display(path)}: {error}") from error


def _refuse_size_of_statistics(reading: Reading, reason: str) -> None:
    for option in ("reference_n", "reference_exact"):
        if getattr(reading, option):
            raise InputError(
                f"is for a reference known by its statistics (mu, sigma); {reason}.",
                argument=f"--{option.replace('_', '-')}",
            )


def _labels(
    path: Path, contents: Contents, reading: Reading, *, needed: bool
) -> tuple[dict[str, NDArray[Any] | None], NDArray[Any] | None]:
    """Read the groups and strata of a file; one that is not `needed` may have none.

    Labels that nobody called either come apart, where equal numbers of each say that they were
    not drawn at random.
    """
    held = contents.arrays
    names: dict[str, str | None] = {}
    for role in ("groups", "strata"):
        asked = getattr(reading, role)
        name = FOLDER_LABELS if asked == FOLDERS else asked
        if name is not None and name not in held and not needed:
            name = None
        names[role] = None if name is None else _label_name(path, contents, role, reading)
    labels = pick_labels(contents, groups=names["groups"], strata=names["strata"])
    if names["strata"] is not None or "strata" in held:
        return {"groups": labels.groups, "strata": labels.strata}, None
    # By class, the classes that were asked for are the ones to look at.
    if reading.by is not None or not _by_design(labels.strata, labels.groups, names["groups"]):
        return {"groups": labels.groups, "strata": None}, None
    if reading.contexts in (FOLDERS, FOLDER_LABELS):  # named as classes
        return {"groups": labels.groups, "strata": labels.strata}, None
    return {"groups": labels.groups, "strata": None}, labels.strata


def _label_name(path: Path, contents: Contents, role: str, reading: Reading) -> str:
    """Return which array of a file the option ``--{role}`` means."""
    asked: str = getattr(reading, role)
    if asked != FOLDERS:
        return asked
    if FOLDER_LABELS not in contents.arrays:
        raise InputError(
            f"{display(path)} does not say which sub-folder each row comes from: are there "
            "sub-folders?",
            argument=f"--{role}",
        )
    return FOLDER_LABELS


def _by_design(labels: NDArray[Any] | None, groups: NDArray[Any] | None, asked: str | None) -> bool:
    """Whether labels that nobody called strata are those of a balanced design.

    Where groups go across them, the groups are what was drawn.
    """
    if labels is None or asked == FOLDER_LABELS:
        return False
    if groups is not None and go_across(groups, labels):
        return False
    return balanced(np.unique(labels, return_counts=True)[1])


def _encoded(path: Path, name: str, encoder: FolderEncoder | None) -> Path:
    """Return the file of features that belongs to what was named."""
    if encoder is None and path.is_dir() and path.suffix.lower() in FORMATS:
        raise InputError(f"{display(path)}: is a folder: give the file inside it.")
    if encoder is None:
        kind = media_kind(path) or "something to encode"
        raise InputError(f"{display(path)} is {kind}: {which_encoder(kind)}.")
    return encoder.features(path, name)


def model_names(paths: Sequence[Path]) -> list[str]:
    """Short names for files: their stems, lengthened by folders where those coincide."""
    stems = [_stem(path) for path in paths]
    names = list(stems)
    for depth in range(2, max((len(path.parts) for path in paths), default=0) + 1):
        counts = Counter(names)
        names = [
            "/".join((*path.parts[-depth:-1], stem)) if counts[name] > 1 else name
            for name, path, stem in zip(names, paths, stems, strict=True)
        ]
    counts = Counter(names)
    names = [
        name + path.suffix if counts[name] > 1 else name
        for name, path in zip(names, paths, strict=True)
    ]
    taken: set[str] = set()
    for index, name in enumerate(names):
        unique, copy = name, 1
        while unique in taken:
            copy += 1
            unique = f"{name} ({copy})"
        taken.add(unique)
        names[index] = unique
    return names


def _stem(path: Path) -> str:
    """Return a file's name without its ending; a folder has none, whatever dots it holds."""
    if path.is_dir():
        return path.name
    return path.stem.removesuffix(".tar") if path.name.endswith(".tar.gz") else path.stem
