"""What an extraction keeps until it is finished, in a folder beside its result."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from genbounds.estimators import Moments
from genbounds.files import atomic_write, open_features_writer, read_features


class Parts(Protocol):
    """What is done so far: it survives an interruption."""

    @property
    def rows(self) -> int:
        """Rows done."""
        ...

    @property
    def d(self) -> int:
        """Features of a row."""
        ...

    def add(self, rows: NDArray[Any]) -> None:
        """Keep one more block."""
        ...

    def moments(self) -> Moments:
        """Return the statistics of all rows."""
        ...


class StoredBlocks:
    """Blocks of features, a file each."""

    def __init__(self, folder: Path, block: int) -> None:
        self._folder = folder
        self._count = 0
        while (path := self._path(self._count)).is_file():
            # A block is written whole or not at all; a short one is the last.
            if len(read_features(path)) != block:
                path.unlink()
                break
            self._count += 1
        self.rows = self._count * block

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:08d}.npy"

    def _blocks(self) -> Iterator[NDArray[Any]]:
        for number in range(self._count):
            yield read_features(self._path(number))

    @property
    def d(self) -> int:
        return int(read_features(self._path(0)).shape[1])

    def add(self, rows: NDArray[Any]) -> None:
        buffer = io.BytesIO()
        np.save(buffer, rows, allow_pickle=False)
        atomic_write(self._path(self._count), buffer.getvalue())
        self._count += 1
        self.rows += len(rows)

    def assemble(self, out: Path, metadata: Mapping[str, str]) -> None:
        """Write all blocks as one file of features."""
        first = read_features(self._path(0))
        with open_features_writer(
            out, shape=(self.rows, first.shape[1]), dtype=first.dtype, metadata=metadata
        ) as write:
            for rows in self._blocks():
                write(rows)

    def moments(self) -> Moments:
        total: Moments | None = None
        for rows in self._blocks():
            total = _merged(total, rows)
        assert total is not None
        return total


class RunningMoments:
    """The statistics of everything so far, in one file."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "moments.npz"
        self._total = Moments.load(self._path) if self._path.is_file() else None

    @property
    def rows(self) -> int:
        return 0 if self._total is None else self._total.n or 0

    @property
    def d(self) -> int:
        return 0 if self._total is None else self._total.d

    def add(self, rows: NDArray[Any]) -> None:
        self._total = _merged(self._total, rows)
        if self.rows > 1:  # one row has no covariance, and is the whole input
            self._total.save(self._path)

    def moments(self) -> Moments:
        assert self._total is not None
        return self._total


def _merged(total: Moments | None, rows: NDArray[Any]) -> Moments:
    """Add the moments of a block, rounded as a file would hold them.

    A run that was interrupted reads them from a file and must end with the same bytes.
    """
    part = Moments.from_features(rows)
    merged = part if total is None else total.merge(part)
    if merged.n is None or merged.n < 2:
        return merged
    return Moments(merged.mean, merged.cov, merged.n)
