"""Texts: the lines of a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from genbounds.features._encoder import Kind
from genbounds.features.sources._source import Item, Source, ending_of, readable, stamp
from genbounds.files import display
from genbounds.validation import InputError

TEXTS = (".txt", ".jsonl")


class Texts(Source):
    """The lines of a text file, or the texts in a JSON-lines file; blank lines separate."""

    kind: Kind = "texts"

    def __init__(self, path: Path, *, field: str) -> None:
        self._path = path
        self._parse: Callable[[str], str] = (
            self._from_json if ending_of(path) == ".jsonl" else lambda line: line
        )
        self._field = field
        self.count = sum(1 for _ in self._lines())
        if not self.count:
            raise InputError(f"{display(path)}: has no text: write one text per line.")

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        with self._path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, line

    def fingerprint(self) -> str:
        return f"{stamp(self._path)} {self._field}"

    def items(self, start: int = 0) -> Iterator[Item]:
        shown = display(self._path)
        with readable(shown):
            for number, line in islice(self._lines(), start, None):
                label = f"{shown}, line {number}"
                try:
                    text = self._parse(line.decode("utf-8-sig" if number == 1 else "utf-8").strip())
                except UnicodeDecodeError as error:
                    raise InputError(f"{label}: is not UTF-8: convert the file.") from error
                except json.JSONDecodeError as error:
                    raise InputError(f"{label}: is not JSON ({error.msg}).") from error
                except UnicodeEncodeError as error:
                    raise InputError(
                        f"{label}: holds half of a surrogate pair, which is not a character: "
                        "write the text again."
                    ) from error
                except (RecursionError, ValueError) as error:  # thousands of brackets, or of digits
                    raise InputError(
                        f"{label}: is not a text: write a string, or an object that has one."
                    ) from error
                except KeyError as error:
                    raise InputError(
                        f"{label}: has no text called {self._field!r}: name the key with --field."
                    ) from error
                yield Item(label, text)

    def _from_json(self, line: str) -> str:
        content = json.loads(line)
        text = content[self._field] if isinstance(content, dict) else content
        if not isinstance(text, str):
            raise KeyError(self._field)
        text.encode()
        return text
