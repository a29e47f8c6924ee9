"""What all inputs have in common: items in a fixed order, each with a name for errors."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genbounds._pictures import FACTS
from genbounds.features._encoder import Kind
from genbounds.features.sources._images import facts_of
from genbounds.files import display
from genbounds.validation import InputError


class Item(NamedTuple):
    """One item to encode: its name in errors, and its content."""

    label: str
    content: Any


class Source(ABC):
    """Items to encode, in a fixed order.

    Attributes
    ----------
    kind : {"images", "texts", "files", "rows"}
    count : int or None
        How many items; None where only reading all of it would tell.
    inputs : tuple of Path
        What `open_source` was given.
    """

    kind: Kind
    count: int | None = None
    inputs: tuple[Path, ...] = ()
    _path: Path
    _names: Sequence[str] = ()

    def fingerprint(self) -> str:
        """Return a text that changes when the content does (names, sizes, times)."""
        return stamp(self._path)

    @abstractmethod
    def items(self, start: int = 0) -> Iterator[Item]:
        """Yield the items from number `start` on."""

    def origin(self) -> Mapping[str, str]:
        """Return what the input says of the encoder that made it, if it holds features."""
        return {}

    def labels(self) -> dict[str, NDArray[Any]]:
        """Return labels (n,) of the items, by name; complete once all items have been read.

        By default the sub-folders that they lie in.
        """
        return folder_labels([folder_of(name) for name in self._names])

    def names(self) -> Sequence[str]:
        """Return what the items are called within the input; complete once all have been read.

        Empty where items are known by their number alone.
        """
        return self._names

    def pick(self, numbers: Iterable[int]) -> Iterator[tuple[int, Item]]:
        """Yield the items of these `numbers`; what cannot be read is left out."""
        for number in sorted(set(numbers)):
            with suppress(InputError):
                yield from ((number, item) for item in islice(self.items(number), 1))

    def survey(self, looked: int = 1000) -> dict[str, Counter[str]]:
        """Count what the headers of about `looked` pictures say, all through the input.

        Returns
        -------
        dict of str to Counter
            Of `genbounds._pictures.FACTS`; empty if the items are no pictures.
        """
        if self.kind != "images":
            return {}
        found: dict[str, Counter[str]] = {fact: Counter() for fact in FACTS}
        if self.count is None:  # an archive that is read from its beginning
            items: Iterable[Item] = islice(self.items(), looked)
        else:
            step = -(-self.count // looked)
            items = (item for _, item in self.pick(range(0, self.count, step)))
        with suppress(InputError):  # who reads the items says what is wrong with them
            for item in items:
                with suppress(InputError):
                    for fact, value in facts_of(item.content).items():
                        found[fact][value] += 1
        return found

    def decode(self, content: Any) -> Any:
        """Turn an item's content into what encoders take; called from several threads."""
        return content


def item_names(names: Sequence[str]) -> NDArray[np.str_]:
    """Return `names` as file formats take them: text, escaped where it is not printable."""
    return np.array([display(name, limit=None) for name in names], dtype=np.str_)


def folder_labels(folders: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Return the sub-folders of items as labels, if there are at least two."""
    if len(set(folders)) < 2:
        return {}
    # Escaped where they are not UTF-8 or not printable: file formats take only text.
    shown = {folder: display(folder or ".", limit=None) for folder in set(folders)}
    return {"labels": np.array([shown[folder] for folder in folders])}


def folder_of(name: str) -> str:
    """Return the folder in a path with slashes; one text for all of its items."""
    return sys.intern(name.rpartition("/")[0])


def ending_of(path: Path) -> str:
    name = path.name.lower()
    return ".tar.gz" if name.endswith(".tar.gz") else path.suffix.lower()


@contextmanager
def readable(shown: str) -> Iterator[None]:
    """Turn what reading raises into one InputError."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as error:  # of the disk, of a zip, of a tar: no list of them is complete
        reason = error.strerror if isinstance(error, OSError) else None
        raise InputError(
            f"{shown}: cannot be read ({display(reason or error)}): "
            "check its permissions, or write it again."
        ) from error


def stamp(path: Path) -> str:
    status = path.stat()
    return f"{path.name} {status.st_size} {status.st_mtime_ns}"
