"""What every score of a growing sample offers."""

from __future__ import annotations

from typing import Any, Protocol

from numpy.typing import NDArray


class Running(Protocol):
    """A plug-in score of a sample that grows."""

    @property
    def n(self) -> int:
        """Rows taken up."""

    @property
    def nbytes(self) -> int:
        """Memory held."""

    def add(self, rows: NDArray[Any]) -> None:
        """Take up rows of shape (b, d)."""

    def loss(self) -> float:
        """Plug-in score of all rows so far, turned so that small is good; -inf before two."""
