"""A share of the items of a source, for one of several machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from numpy.typing import NDArray

from genbounds.features.sources._source import Item, Source
from genbounds.files import Part


class Share(Source):
    """The items of one part of a source.

    Parameters
    ----------
    whole : Source
        Its `count` is known.
    part : Part
    """

    count: int

    def __init__(self, whole: Source, part: Part) -> None:
        self._whole, self._part = whole, part
        self.kind, self.inputs = whole.kind, whole.inputs
        self.count = part.stop - part.start

    def fingerprint(self) -> str:
        return self._whole.fingerprint()

    def items(self, start: int = 0) -> Iterator[Item]:
        return islice(self._whole.items(self._part.start + start), self.count - start)

    def origin(self) -> Mapping[str, str]:
        return self._whole.origin()

    def labels(self) -> dict[str, NDArray[Any]]:
        kept = slice(self._part.start, self._part.stop)
        return {name: labels[kept] for name, labels in self._whole.labels().items()}

    def names(self) -> Sequence[str]:
        return self._whole.names()[self._part.start : self._part.stop]

    def pick(self, numbers: Iterable[int]) -> Iterator[tuple[int, Item]]:
        start = self._part.start
        for number, item in self._whole.pick(start + number for number in numbers):
            yield number - start, item

    def survey(self, looked: int = 1000) -> dict[str, Counter[str]]:
        return self._whole.survey(looked)  # the same for every part

    def decode(self, content: Any) -> Any:
        return self._whole.decode(content)
