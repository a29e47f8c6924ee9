"""Labels that nobody called groups or strata: which of the two they are.

With strata, the classes would be there again in a repetition, and their part of the variance is no
error; with groups, others would. The intervals of strata are the narrower ones, so that they are
taken only where both samples have the same classes, with many rows each.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from genbounds._text import said_by
from genbounds.cli._input import FOLDER_LABELS, FOLDERS, Input
from genbounds.cli._terminal import complain
from genbounds.features import is_media
from genbounds.files import display
from genbounds.samples import Sample
from genbounds.validation import InputError

MANY_UNITS = 30
"""So many labels of at most ..."""

FEW_ROWS = 20
"""... so many rows each are prompts, patients or clips; classes have more rows."""


def settle_labels(inputs: Sequence[Input]) -> list[Input]:
    """Take the undecided labels of each file as groups or strata, and say so.

    Raises
    ------
    InputError
        If they can be either.
    """
    classes = [_classes(one) for one in inputs]
    return [
        one
        if one.undecided is None
        else _settled(one, one.undecided, [*classes[:i], *classes[i + 1 :]])
        for i, one in enumerate(inputs)
    ]


def at_shares(inputs: Sequence[Input], asked: str, *, referenced: bool) -> list[Input]:
    """Score classes at the shares that ``--shares`` asks for: equal, the reference's, a file's.

    Raises
    ------
    InputError
        If a file has no classes, or others; or the file of shares is none.
    """
    if asked == "reference" and not referenced:
        raise InputError("is 'reference', and here is no reference.", argument="--shares")
    given = asked if asked in ("equal", "reference") else _shares_in(Path(asked))
    models = inputs[1:] if asked == "reference" else inputs
    return [*inputs[: len(inputs) - len(models)], *(_at(one, given) for one in models)]


def _at(one: Input, shares: str | dict[str, float]) -> Input:
    sample = one.sample
    if not isinstance(sample, Sample) or sample.strata is None:
        raise InputError(
            f"{display(one.path)} does not say which class each row is of: pass --strata.",
            argument="--shares",
        )
    chosen: Any = shares
    if not isinstance(shares, str):  # keys of JSON are texts
        texts = {str(name): name for name in np.unique(sample.strata).tolist()}
        chosen = {texts.get(name, name): share for name, share in shares.items()}
    try:
        told = Sample(sample.features, groups=sample.groups, strata=sample.strata, shares=chosen)
    except InputError as error:
        raise InputError(f"{display(one.path)}: {error}", argument="--shares") from error
    return replace(one, sample=told)


def _shares_in(path: Path) -> dict[str, float]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"must be 'equal', 'reference' or a JSON file that can be read; {display(path)}: "
            f"{said_by(error)}.",
            argument="--shares",
        ) from error
    if not isinstance(found, dict) or not all(
        isinstance(share, (int, float)) for share in found.values()
    ):
        raise InputError(
            f"{display(path)} must hold an object with a number for every class.",
            argument="--shares",
        )
    return found


def _settled(one: Input, labels: NDArray[Any], others: Sequence[frozenset[str]]) -> Input:
    reading = _reading(one, labels, others)
    units, counts = np.unique(labels, return_counts=True)
    word = FOLDERS if is_media(one.path) else FOLDER_LABELS
    rows = f"{counts.min()}" if np.ptp(counts) == 0 else f"{counts.min()} to {counts.max()}"
    found = f"{display(one.path)}: {units.size} {word} of {rows} rows each"
    if reading is None:
        raise InputError(
            f"{found} can be groups (others would be drawn next time) or strata (the same classes "
            f"again): pass --groups {word} or --strata {word}, or --iid for neither."
        )
    other = "strata" if reading == "groups" else "groups"
    complain(f"{found} are taken as {reading} (--{other} {word} for {other})")
    sample = one.sample if isinstance(one.sample, Sample) else Sample(one.sample)
    groups, strata = (labels, None) if reading == "groups" else (sample.groups, labels)
    return replace(one, sample=Sample(sample.features, groups=groups, strata=strata))


def _reading(
    one: Input, labels: NDArray[Any], others: Sequence[frozenset[str]]
) -> Literal["groups", "strata"] | None:
    """Tell groups from strata; None where both are possible."""
    counts = np.unique(labels, return_counts=True)[1]
    grouped = isinstance(one.sample, Sample) and one.sample.groups is not None
    if counts.size >= MANY_UNITS and counts.max() <= FEW_ROWS:
        return None if grouped else "groups"
    names = _classes(one)
    return "strata" if names and names in others else None


def _classes(one: Input) -> frozenset[str]:
    """Return the names of the classes of a file, if all have many rows."""
    labels = one.sample.strata if isinstance(one.sample, Sample) else None
    labels = labels if one.undecided is None else one.undecided
    if labels is None:
        return frozenset()
    names, counts = np.unique(labels, return_counts=True)
    return frozenset(map(str, names)) if counts.min() > FEW_ROWS else frozenset()
