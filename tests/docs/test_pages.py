"""Pages that people read on their way in are short; measured tables stand in the appendix."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
REFERENCE = {
    "api", "arms", "bounds", "checks", "cli", "dependencies", "index", "methods", "policies",
}  # fmt: skip
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for folder in (DOCS, DOCS / "explanation")
    for page in folder.glob("*.md")
    if page.stem not in REFERENCE
)
EVERY = sorted(
    page.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "docs/*.md", "docs/e*/*.md", "experiments/**/*.md")
    for page in ROOT.glob(pattern)
)
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LONGEST_PAGE, LONGEST_TABLE = 900, 10
WORDS = 35_000
"""Of all these pages."""
README_WORDS = 500
ALL_WORDS = 100_000
"""Of every page of docs/: what a study found in full lies beside its page as CSV."""


def words(page: Path) -> int:
    return len(re.findall(r"\w+", page.read_text(encoding="utf-8")))


def longest_table(text: str) -> int:
    """Rows of the longest table, without its head."""
    longest = rows = 0
    for line in text.splitlines():
        rows = rows + 1 if line.startswith("|") else 0
        longest = max(longest, rows - 2)
    return longest


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_short(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert words(ROOT / page) <= LONGEST_PAGE
    assert longest_table(text) <= LONGEST_TABLE


def test_the_way_in_is_short():
    assert sum(words(ROOT / page) for page in PAGES) <= WORDS
    assert words(ROOT / "README.md") <= README_WORDS


def test_all_pages_together_are_not_too_many():
    pages = [*DOCS.glob("*.md"), *DOCS.glob("e*/*.md")]
    assert sum(map(words, pages)) <= ALL_WORDS


def test_every_page_is_in_the_index():
    index = (DOCS / "index.md").read_text(encoding="utf-8").splitlines()
    pages = [*DOCS.glob("*.md"), *DOCS.glob("e*/*.md")]
    names = {page.relative_to(DOCS).with_suffix("").as_posix() for page in pages} - {"index"}
    assert names - set(index) == set()


def anchors(text: str) -> set[str]:
    """Return the names under which the headings of a page can be linked."""
    heads = re.findall(r"^#+ (.*)$", CODE.sub("", text), re.MULTILINE)
    plain = [re.sub(r"\]\([^)]*\)|[`*\[]", "", head).strip().lower() for head in heads]
    return {re.sub(r"[^\w\- ]", "", head).replace(" ", "-") for head in plain}


def broken(page: Path) -> list[str]:
    """Return the links of a page to files or headings that are not there."""
    found = []
    for link in re.findall(r"\]\(([^)\s]+)\)", CODE.sub("", page.read_text(encoding="utf-8"))):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if not link.startswith("http") and not (
            target.exists()
            and (not anchor or anchor in anchors(target.read_text(encoding="utf-8")))
        ):
            found.append(link)
    return found


@pytest.mark.parametrize("page", EVERY)
def test_links_and_their_headings_are_there(page):
    """The strict build does not look at pages outside docs/."""
    assert broken(ROOT / page) == []


def test_a_broken_link_is_seen(tmp_path):
    (tmp_path / "a.md").write_text("# A *b* `c`!\n[x](b.md) [y](#a-b-c) [z](a.md#d)\n")
    assert broken(tmp_path / "a.md") == ["b.md", "a.md#d"]


def test_pages_that_messages_name_are_there():
    named = {
        name
        for path in (ROOT / "genbounds").glob("**/*.py")
        for name in re.findall(r"docs/[\w/-]+\.md", path.read_text(encoding="utf-8"))
    }
    assert named
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_the_readme_s_three_numbers_are_the_measured_ones():
    """From the table of errors: 2,048 Gaussian features, 1,000 rows of either sample."""
    with (DOCS / "evidence" / "data" / "error.csv").open(encoding="utf-8") as file:
        (cell,) = (
            row
            for row in csv.DictReader(file)
            if (row["distribution"], row["d"], row["n / m"]) == ("gauss", "2048", "1000 / 1000")
        )
    truth, ours, plain = (
        float(cell["truth"]) + shift
        for shift in (0.0, float(cell["bias"]), float(cell["bias of plug-in"]))
    )
    table = (ROOT / "README.md").read_text(encoding="utf-8").partition("![")[0]
    assert f"| the usual number | {plain:.1f} |" in table
    assert f"| genbounds | {ours:.1f}, with a root mean square error of " in table
    assert f"error of {float(cell['RMSE']):.1f} ([measured]" in table
    assert f"| the truth | {truth:.1f} |" in table


def test_rows_of_tables_are_counted():
    assert longest_table("| a |\n|---|\n| 1 |\n| 2 |\n\n| b |\n|---|\n") == 2
