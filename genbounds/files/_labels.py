"""Labels beside features: which group, and which stratum, each row belongs to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds._text import display
from genbounds.files._bomb import check_bomb
from genbounds.files._content import NAMES_KEY, Contents, Stored, names_of
from genbounds.validation import InputError


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """Which group and which stratum each row of a file belongs to.

    Attributes
    ----------
    groups : ndarray of shape (n,) or None
        Integers or texts. Rows of one group depend on one another.
    strata : ndarray of shape (n,) or None
        Integers or texts. The design fixed how many rows each stratum has: classes, usually.
    """

    groups: NDArray[Any] | None = None
    strata: NDArray[Any] | None = None


def pick_labels(contents: Contents, *, groups: str | None, strata: str | None) -> Labels:
    """Read the labels of a file."""
    found = {}
    for role, asked, usual in (
        ("groups", groups, ("groups",)),
        ("strata", strata, ("strata", "labels")),
    ):
        name = asked
        if name is None:
            name = next((name for name in usual if name in contents.arrays), None)
        if name is not None:
            found[role] = pick_label(contents, name)
    return Labels(**found)


def pick_label(contents: Contents, name: str) -> NDArray[Any]:
    """Read the array `name` of a file, which has one label per row of its features."""
    if name not in contents.arrays:
        raise InputError(
            f"{contents.shown}: has no array {display(name, limit=40)}, "
            f"only: {names_of(contents.arrays)}."
        )
    features = contents.features
    if features is None:
        raise InputError(
            f"{contents.shown}: holds statistics, which have no rows to label: "
            "use the features' own file."
        )
    return label_array(contents, name, features.shape[0])


def label_array(contents: Contents, name: str, n: int) -> NDArray[Any]:
    """Read one array of labels and check it against the number of rows."""
    shown, called = contents.shown, display(name, limit=40)
    if name in contents.columns:
        raise InputError(
            f"{shown}: {called} is one of the numeric columns that are the features: call it "
            "`groups`, `strata` or `labels`, or keep the features in one column of lists."
        )
    stored = contents.arrays[name]()
    if stored.shape != (n,):
        raise InputError(
            f"{shown}: {called} has shape {stored.shape} beside {n} rows: it needs one label a row."
        )
    if stored.dtype.kind not in "iubUS":
        raise InputError(
            f"{shown}: {called} holds {display(stored.dtype, limit=40)}: "
            "labels are integers or texts."
        )
    labels = _texts(shown, called, stored) if stored.dtype.kind == "S" else stored.load()
    known = contents.metadata.get(name + NAMES_KEY)
    if known is not None and labels.dtype.kind in "iu":
        labels = _named(shown, called, labels, known, contents.packed)
    labels = labels.astype(np.int64) if labels.dtype.kind == "b" else labels
    labels.flags.writeable = False
    return labels


def _texts(shown: str, called: str, stored: Stored) -> NDArray[Any]:
    try:
        return np.asarray(np.char.decode(stored.load(), "utf-8"))
    except UnicodeDecodeError as error:
        raise InputError(f"{shown}: {called} holds bytes that are not UTF-8.") from error


def _named(shown: str, called: str, codes: NDArray[Any], text: str, packed: int) -> NDArray[Any]:
    """Return the names for which codes stand."""
    names: object = None
    with suppress(ValueError, RecursionError):
        names = json.loads(text)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError(f"{shown}: the names of {called} are damaged: write it again.")
    if codes.size and not (0 <= int(codes.min()) and int(codes.max()) < len(names)):
        raise InputError(
            f"{shown}: {called} holds numbers beyond its {len(names)} names: write it again."
        )
    known = np.array(names, dtype=np.str_)
    check_bomb(
        shown,
        codes.size * known.itemsize,
        packed,
        kind="labels",
        advice="number the labels, or give them shorter names",
    )
    return np.asarray(known[codes])


def check_labels(labels: Mapping[str, NDArray[Any]], n: int) -> dict[str, NDArray[Any]]:
    """Check labels that are to be written beside n rows."""
    checked = {}
    for name, values in labels.items():
        array = np.asarray(values)
        if array.shape != (n,) or array.dtype.kind not in "iuU":
            raise InputError(
                f"`{name}` must hold {n} integers or texts, one per row; "
                f"got {array.dtype} of shape {array.shape}."
            )
        checked[name] = array
    return checked


def as_codes(labels: NDArray[Any]) -> tuple[NDArray[np.int32], str]:
    """Return texts as integers, and their names as JSON in the order of those integers."""
    names, codes = np.unique(labels, return_inverse=True)
    return codes.astype("<i4"), json.dumps(names.tolist())
