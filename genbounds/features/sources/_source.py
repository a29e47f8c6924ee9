"""What all inputs have in common: items in a fixed order, each with a name for errors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genbounds.features._encoder import Kind
from genbounds.features.sources._images import decode_image, facts_of
from genbounds.files import display
from genbounds.origins import FACTS
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
        status = self._path.stat()
        return f"{self._path.name} {status.st_size} {status.st_mtime_ns}"

    @abstractmethod
    def items(self, start: int = 0) -> Iterator[Item]:
        """Yield the items from number `start` on."""

    def decode(self, content: Any) -> Any:
        """Turn an item's content into what encoders take; called from several threads."""
        picture = self.kind == "images" and isinstance(content, (Path, bytes))
        return decode_image(content) if picture else content

    def origin(self) -> Mapping[str, str]:
        """Return what the input says of the encoder that made it, if it holds features."""
        return {}

    def labels(self) -> dict[str, NDArray[Any]]:
        """Return labels (n,) of the items, by name; complete once all items have been read.

        By default the sub-folders that they lie in, if there are at least two.
        """
        folders = [name.rpartition("/")[0] or "." for name in self._names]
        if len(set(folders)) < 2:
            return {}
        shown = {folder: display(folder, limit=None) for folder in set(folders)}
        return {"labels": np.array([shown[folder] for folder in folders])}

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
            Of `genbounds.origins.FACTS`; empty if the items are no pictures.
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


def item_names(names: Sequence[str]) -> NDArray[np.str_]:
    """Return `names` as file formats take them: text, escaped where it is not printable."""
    return np.array([display(name, limit=None) for name in names], dtype=np.str_)


def ending_of(path: Path) -> str:
    name = path.name.lower()
    return ".tar.gz" if name.endswith(".tar.gz") else path.suffix.lower()


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn what reading raises into one InputError."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as error:  # of the disk, of a zip, of a tar: no list of them is complete
        reason = error.strerror if isinstance(error, OSError) else None
        raise InputError(
            f"{display(path)}: cannot be read ({display(reason or error)}): "
            "check its permissions, or write it again."
        ) from error
