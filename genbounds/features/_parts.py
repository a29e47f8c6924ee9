"""What an extraction keeps until it is finished, in a folder beside its result."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from genbounds import files
from genbounds.core.moments import KEPT
from genbounds.estimators import Moments
from genbounds.files import display
from genbounds.validation import InputError

_log = logging.getLogger("genbounds.features")


class StoredBlocks:
    """Blocks of features, a file each, stamped with their run.

    Parameters
    ----------
    folder : Path
    run : str
        What decides every row of the result.
    block : int
        Rows of every block but the last.

    Raises
    ------
    InputError
        If the folder holds blocks of another run.
    """

    def __init__(self, folder: Path, run: str, block: int) -> None:
        self._folder, self._run = folder, run
        self._count = self.d = 0
        for path in sorted(folder.glob("*.safetensors")):
            rows = _kept(path, run, "blocks", files.read_features)
            if rows is None or path != self._path(self._count):
                _log.warning("%s: is damaged: computed again.", display(path))
                break
            # A short block is the last of a run that was stopped before it wrote its result.
            if len(rows) != block:
                break
            self._count += 1
            self.d = rows.shape[1]
        self.rows = self._count * block

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:08d}.safetensors"

    def _blocks(self) -> Iterator[NDArray[Any]]:
        for number in range(self._count):
            yield files.read_features(self._path(number))

    def add(self, rows: NDArray[Any]) -> None:
        """Keep one more block."""
        path, stamp = self._path(self._count), {"run": self._run}
        with files.open_features_writer(
            path, shape=rows.shape, dtype=rows.dtype, metadata=stamp
        ) as write:
            write(rows)
        self._count += 1
        self.rows += len(rows)
        self.d = rows.shape[1]

    def assemble(
        self, out: Path, metadata: Mapping[str, str], labels: Mapping[str, NDArray[Any]]
    ) -> None:
        """Write all blocks as one file of features."""
        dtype, shape = files.read_features(self._path(0)).dtype, (self.rows, self.d)
        with files.open_features_writer(
            out, shape=shape, dtype=dtype, metadata=metadata, labels=labels
        ) as write:
            for rows in self._blocks():
                write(rows)

    def moments(self) -> Moments:
        """Return the statistics of all rows."""
        total: Moments | None = None
        for rows in self._blocks():
            total = _merged(total, rows)
        assert total is not None
        return total


class RunningMoments:
    """The statistics of everything so far, in one file that is stamped with its run.

    Raises
    ------
    InputError
        If the folder holds statistics of another run.
    """

    def __init__(self, folder: Path, run: str) -> None:
        self._path, self._run = folder / "moments.npz", run
        self._total: Moments | None = None
        if self._path.is_file():
            self._total = _kept(self._path, run, "statistics", Moments.load)
            if self._total is None:
                _log.warning("%s: is damaged: computed again.", display(self._path))

    @property
    def rows(self) -> int:
        """Rows done."""
        return 0 if self._total is None else self._total.n or 0

    @property
    def d(self) -> int:
        """Features of a row."""
        return 0 if self._total is None else self._total.d

    def add(self, rows: NDArray[Any]) -> None:
        """Take one more block into account."""
        self._total = _merged(self._total, rows)
        if self.rows > 1:  # one row has no covariance, and is the whole input
            self._total.save(self._path, metadata={"run": self._run})

    def moments(self) -> Moments:
        """Return the statistics of all rows."""
        assert self._total is not None
        return self._total


def _kept(path: Path, run: str, what: str, read: Callable[[Path], Any]) -> Any:
    """Return what a file of this run holds; None if it is damaged."""
    try:
        stamp, content = files.read_metadata(path), read(path)
    except InputError:
        return None
    if stamp.get("run") != run:
        raise InputError(
            f"{display(path.parent)}: holds {what} of another run (another input, encoder or "
            "batch): repeat that run, delete the folder, or write elsewhere."
        )
    return content


def _merged(total: Moments | None, rows: NDArray[Any]) -> Moments:
    """Add the moments of a block, rounded as a file would hold them.

    A run that was interrupted reads them from a file and must end with the same bytes.
    """
    part = Moments.from_features(rows, keep=KEPT)
    merged = part if total is None else total.merge(part)
    if merged.n is None or merged.n < 2:
        return merged
    return Moments.from_statistics(files.Statistics(merged.mean, merged.cov, merged.n, merged.rows))


def remove_own(folder: Path, run: str) -> None:
    """Remove what `run` kept in a locked folder, and what was half written there."""
    for path in (*folder.glob("*.safetensors"), *folder.glob("*.npz")):
        with suppress(InputError):
            if files.read_metadata(path).get("run") == run:
                path.unlink()
    for path in folder.glob(".genbounds-*.part"):
        path.unlink()
