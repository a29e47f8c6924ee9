"""Put the findings on a few statements into the page of all of them."""

from __future__ import annotations

import re
from collections.abc import Collection

SECTION = "\n## "
REFUTED = "Refuted statements and their repairs"
VERDICTS = "All verdicts, worst first"
ROW = re.compile(r"^\| (?:\w+ \| )?`([^`]+)`")
"""A row of a table about a statement, which stands in its first or second cell."""


def merged(page: str, part: str, names: Collection[str], stamp: str) -> str:
    """Return `page` with the rows and sections of `names` as they are in `part`.

    Parameters
    ----------
    page, part : str
        Of `document`; `part` is from an audit of `names` alone.
    names : collection of str
    stamp : str
        When that was; said below the head of the page.
    """
    head, *sections = page.split(SECTION)
    new = dict(section.split("\n", 1) for section in part.split(SECTION)[1:])
    found = {}
    for section in sections:
        title, body = section.split("\n", 1)
        if title == REFUTED:
            body = _blocks(body, new.get(title, "\n"), names)
        elif title in new:
            body = _rows(body, new[title], names)
        found[title] = body
    said = ", ".join(f"`{name}`" for name in sorted(names))
    counts = re.findall(r"^\| `[^`]+` \| (\w+)", found[VERDICTS], flags=re.MULTILINE)
    refuted, vacuous = counts.count("refuted"), counts.count("vacuous")
    head = re.sub(
        r"\d+ statements are refuted, \d+ vacuous, \d+ not refuted",
        f"{refuted} statements are refuted, {vacuous} vacuous, "
        f"{len(counts) - refuted - vacuous} not refuted",
        re.sub(r"an audit of \d+ statements", f"an audit of {len(counts)} statements", head),
    )
    head = head.rstrip() + f"\n\nSince then alone: {said}. {stamp}"
    return SECTION.join([head + "\n", *(f"{title}\n{body}" for title, body in found.items())])


def _blocks(body: str, part: str, names: Collection[str]) -> str:
    """Replace what stands below the headings of `names`."""
    before, *blocks = body.split("\n### ")
    kept = [block for block in blocks if block.split("`")[1] not in names]
    return "\n### ".join([before, *part.split("\n### ")[1:], *kept])


def _rows(body: str, part: str, names: Collection[str]) -> str:
    """Replace the rows of `names` in every table that both have."""
    tables = [text for text in part.split("\n\n") if text.strip().startswith("|")]
    new = {table.strip().split("\n", 1)[0]: table.strip().split("\n")[2:] for table in tables}
    paragraphs = []
    for paragraph in body.strip("\n").split("\n\n"):
        head = paragraph.split("\n", 1)[0]
        if head in new:
            paragraph = "\n".join(_table(paragraph.split("\n"), new[head], names))
        paragraphs.append(paragraph)
    return "\n" + "\n\n".join(paragraphs) + "\n"


def _table(lines: list[str], rows: list[str], names: Collection[str]) -> list[str]:
    """Put `rows` where those of the same name were; new ones below the last of their verdict."""
    new: dict[str, list[str]] = {}
    for row in rows:
        new.setdefault(_name(row), []).append(row)
    found = lines[:2]
    for line in lines[2:]:
        name = _name(line)
        found += new.pop(name, []) if name in names else [line]
    for group in new.values():
        verdict = _verdict(group[0])
        alike = [place for place, line in enumerate(found) if _verdict(line) == verdict]
        place = alike[-1] + 1 if alike else len(found)
        found[place:place] = group
    return found


def _name(row: str) -> str:
    match = ROW.match(row)
    return match[1] if match else ""


def _verdict(row: str) -> str:
    """Return the second cell."""
    return row.split(" | ")[1] if " | " in row else ""
