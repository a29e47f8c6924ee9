"""Texts use the field's words: docs, README, and every string and docstring of the package.

A reader knows pytorch-fid and what a confidence interval is. Words that only the makers of this
library used for a thing are listed with the word that the field has for it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

INSTEAD = {
    r"laws?": "distribution",
    r"routes?": "method",
    r"fewest": "minimum",
    r"dry": "exhausted",
    r"upheld|upholds?": "not refuted",
    r"rooms?": "package, space",
    r"houses?": "architecture, package",
    r"(rows|samples) (a|per) direction": "samples per dimension",
    r"(rows|samples) a side": "rows per sample",
    r"(either|both|other) sides? (few|sampled|exact|small)": "sample",
    r"to be had": "are known, can be computed",
    r"takes? the mark away": "drop the metadata",
    r"mourned": "a plain statement",
    r"knock(s|ed)?": "a plain statement",
    r"on trial": "tested",
    r"taken back": "subtracted, scaled back",
}
"""What is not written, as a pattern of whole words, and what is."""
DIALECT = re.compile(rf"\b({'|'.join(INSTEAD)})\b", re.IGNORECASE)

NAMES = re.compile(
    r"power[- ]laws?|Marchenko[–-]Pastur\s+laws?|laws?\s+of\s+large\s+numbers"  # of the field
    r"|[`\"']upheld[`\"']"  # the verdict in JSON
    r"|http\.routes"  # a setting of Dask
    r"|\]\([^)]*\)|https?://\S+",  # addresses
    re.IGNORECASE,
)
"""Where such a word is right."""

CODE = re.compile(r"^```.*?^```$|`[^`\n]*`|<!--.*?-->", re.MULTILINE | re.DOTALL)
"""Code and comments in a page: names are no prose."""

PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("docs/e*/*.md"),
        *ROOT.glob("experiments/**/*.md"),
    )
)
MODULES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("genbounds/**/*.py"))


def dialect(text: str) -> list[str]:
    """Return what of `text` the field has other words for, each with the words around it."""
    prose = " ".join(NAMES.sub(" ", text).split())  # a phrase may go over the end of a line
    return [prose[max(m.start() - 40, 0) : m.end() + 20] for m in DIALECT.finditer(prose)]


def strings(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of every string of a module that is prose: longer than one word."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


@pytest.mark.parametrize("page", PAGES)
def test_pages_use_the_words_of_the_field(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert dialect(CODE.sub(" ", NAMES.sub(" ", text))) == []


@pytest.mark.parametrize("module", MODULES)
def test_strings_and_docstrings_use_the_words_of_the_field(module):
    source = (ROOT / module).read_text(encoding="utf-8")
    assert [f"line {line}: {w}" for line, text in strings(source) for w in dialect(text)] == []


@pytest.mark.parametrize(
    "text",
    [
        "the distance between the two laws",
        "by another route",
        "the fewest samples",
        "fewer than four rows per direction",
        "its error is not to be had",
        "put it on trial",
        "The room of the estimators",
    ],
)
def test_dialect_is_seen(text):
    """Negative control."""
    assert dialect(text)


@pytest.mark.parametrize(
    "text",
    ["a power-law spectrum", "the Marchenko–Pastur law", '"upheld" is printed as not refuted'],
)
def test_words_of_the_field_are_allowed(text):
    assert dialect(text) == []
