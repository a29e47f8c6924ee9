"""What one file of a command holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from genbounds.estimators import Moments

FOLDERS = "folders"
"""As the name of an array: the sub-folder that each image was in, which `features` keeps."""

FOLDER_LABELS = "labels"
"""The array in which `features` keeps it."""


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
