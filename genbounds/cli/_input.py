"""What one file of a command holds, and how its samples were drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from genbounds.samples import Sample
from genbounds.validation import InputError, check_count

if TYPE_CHECKING:
    from genbounds.estimators import Moments

FOLDERS = "folders"
"""As the name of an array: the sub-folder that each image was in, which `features` keeps."""

FOLDER_LABELS = "labels"
"""The array in which `features` keeps it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """How the samples were drawn, as the options say.

    Attributes
    ----------
    groups, strata : str or None
        Arrays of the files, or "folders"; None: those of the usual names, where they are there.
    iid : bool
        The rows are independent, whatever the files hold.
    reference_n : int or None
        Samples behind a reference that is known by its statistics.
    reference_exact : bool
        Those statistics are exact.
    contexts, by : str or None
        Array of the files that says which context, or class, each row belongs to, or "folders".
    """

    groups: str | None = None
    strata: str | None = None
    iid: bool = False
    reference_n: int | None = None
    reference_exact: bool = False
    contexts: str | None = None
    by: str | None = None

    def __post_init__(self) -> None:
        if self.iid and (self.groups is not None or self.strata is not None):
            raise InputError("ignores groups and strata: leave out one of them.", "--iid")
        if self.reference_n is not None:
            check_count("--reference-n", self.reference_n, minimum=2)
            if self.reference_exact:
                raise InputError("contradicts --reference-n: leave out one.", "--reference-exact")

    @property
    def of_models(self) -> Drawing:
        """The same, without what is said of the reference."""
        return replace(self, reference_n=None, reference_exact=False)

    def sample(self, rows: NDArray[Any], labels: Mapping[str, NDArray[Any] | None]) -> Any:
        """Return the rows with the `labels` ("groups", "strata") of their file."""
        if self.iid:
            return Sample(rows)
        if all(array is None for array in labels.values()):
            return rows
        return Sample(rows, **labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One file: its path as given, its short unique name, what it holds.

    `content` is an array (n, d), or `Moments` where the file holds statistics; `sample` is what a
    score takes: the same, or a `Sample` that says how the rows were drawn. `origin` is what the
    file says about where its features came from; `contexts` the context of each row and `classes`
    its class, where they were asked for; `undecided` labels that can be groups or strata.
    """

    path: Path
    name: str
    content: NDArray[Any] | Moments
    sample: Any
    origin: Mapping[str, str] = field(default_factory=dict)
    contexts: NDArray[Any] | None = None
    classes: NDArray[Any] | None = None
    undecided: NDArray[Any] | None = None

    @property
    def n(self) -> int | None:
        """Number of samples; None if the file holds statistics that do not say."""
        return len(self.content) if isinstance(self.content, np.ndarray) else self.content.n

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features; statistics have no rows."""
        content = self.content
        return content.shape if isinstance(content, np.ndarray) else (0, content.d)
