"""Rows of the classes of two samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds._text import count, shown
from genbounds.samples import Sample, check_labels
from genbounds.validation import InputError

LEAST_ROWS = 2

Label = int | str
"""What a class is called, as the user did."""


def rows_by_class(
    sample: Sample | NDArray[Any], argument: str, labels: Any
) -> dict[Label, NDArray[np.intp]]:
    """Return the rows of every class by its label."""
    classes, of_row = np.unique(check_labels(argument, labels, len(sample)), return_inverse=True)
    return {one: np.flatnonzero(of_row == k) for k, one in enumerate(classes.tolist())}


def common_classes(
    fake: Mapping[Label, NDArray[np.intp]], real: Mapping[Label, NDArray[np.intp]]
) -> list[Label]:
    """Return the classes, each of which has rows enough on both sides."""
    if not fake.keys() & real.keys():
        raise InputError(
            f"has no class of the reference: its first one is {next(iter(fake))!r}, that of the "
            f"reference {next(iter(real))!r}. Give both the same names, of one type.",
            argument="labels",
        )
    names = list(dict.fromkeys((*fake, *real)))
    if len(names) == 1:
        raise InputError(
            "has one class only: score it without classes (frechet_distance).", argument="labels"
        )
    for argument, side in (("labels", fake), ("real_labels", real)):
        few = [name for name in names if name not in side or side[name].size < LEAST_ROWS]
        if few:
            rows = side[few[0]].size if few[0] in side else 0
            raise InputError(
                f"has {count(rows, 'row')} of class {shown(str(few[0]))}"
                f"{f' (and {len(few) - 1} more such classes)' if few[1:] else ''}: a distance "
                f"needs {LEAST_ROWS} on both sides. Drop the class, or merge it with another.",
                argument=argument,
            )
    return names
