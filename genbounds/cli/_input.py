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


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One file: its path as given, its short unique name, what it holds.

    `content` is an array (n, d), or `Moments` where the file holds statistics; `origin` is what
    the file says about where its features came from.
    """

    path: Path
    name: str
    content: NDArray[Any] | Moments
    origin: Mapping[str, str] = field(default_factory=dict)

    @property
    def n(self) -> int | None:
        """Number of samples; None if the file holds statistics that do not say."""
        return len(self.content) if isinstance(self.content, np.ndarray) else self.content.n
