"""Where results go: a section of docs/evidence/experiments.md, and a picture beside it."""

from __future__ import annotations

import csv
import datetime
import io
import os
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from genbounds import __version__
from genbounds.files import atomic_write

PAGE = Path(__file__).parents[1] / "docs" / "evidence" / "experiments.md"


def record(name: str, lines: Sequence[str], *, page: Path = PAGE) -> None:
    """Replace the section between the markers `name: begin` and `name: end`."""
    begin, end = (f"<!-- {name}: {edge} -->" for edge in ("begin", "end"))
    text = page.read_text(encoding="utf-8")
    if text.count(begin) != 1 or text.count(end) != 1:
        raise ValueError(f"{page} must have the markers {begin} and {end} once each")
    head, _, rest = text.partition(begin)
    tail = rest.partition(end)[2]
    atomic_write(page, "\n".join([head + begin, *lines, end]) + tail)


def recorded_rows(name: str, *, key: int, page: Path = PAGE) -> dict[tuple[str, ...], str]:
    """Lines of the whole table of a section, by their first `key` cells."""
    rows = [f"| {' | '.join(row)} |" for row in read_data(name, page=page)]
    if not rows:
        begin, end = (f"<!-- {name}: {edge} -->" for edge in ("begin", "end"))
        section = page.read_text(encoding="utf-8").partition(begin)[2].partition(end)[0]
        rows = [line for line in section.splitlines() if line.startswith("| ")]
    return {tuple(cells_of(row)[:key]): row for row in rows}


def cells_of(line: str) -> list[str]:
    """Return the cells of a line of a table."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


LIMITS = re.compile(r" \(\d[\d.]*%? – \d[\d.]*%?\)| \[\d[\d.]*, \d[\d.]*\]")
"""Of a rate, behind it."""


def record_briefly(
    name: str, head: str, lines: Sequence[str], *, page: Path, without: Sequence[str] = ()
) -> None:
    """Replace the section by `head` and a table without the limits of its rates.

    The whole table goes beside the page; so do the columns `without`.
    """
    columns, _, *rows = (cells_of(line) for line in lines)
    write_data(name, columns, rows, page=page)
    places = [place for place, column in enumerate(columns) if column not in without]
    short = [[LIMITS.sub("", row[place]) for place in places] for row in rows]
    body = [*table([columns[place] for place in places], short), ""]
    record(name, [head, "", *body, f"[With exact limits](data/{name}.csv)."], page=page)


def data_file(name: str, *, page: Path = PAGE) -> Path:
    """Return where the whole table `name` of a page lies: every row and column, as CSV."""
    return page.parent / "data" / f"{name}.csv"


def write_data(
    name: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, page: Path = PAGE
) -> None:
    """Write the whole table, of which the page shows what a reader asks for."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([columns, *rows])
    path = data_file(name, page=page)
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, text.getvalue())


def read_data(name: str, *, page: Path = PAGE) -> list[list[str]]:
    """Read the rows of the whole table, without its head; none if it is not there yet."""
    path = data_file(name, page=page)
    if not path.exists():
        return []
    return list(csv.reader(path.read_text(encoding="utf-8").splitlines()))[1:]


def crossed(cells: Mapping[tuple[str, str], str], corner: str, *, missing: str = "") -> list[str]:
    """Return the lines of a table from its cells by (row, column), in the order they come in."""
    rows, columns = (list(dict.fromkeys(key[k] for key in cells)) for k in range(2))
    return table(
        [corner, *columns],
        [[row, *(cells.get((row, c), missing) for c in columns)] for row in rows],
    )


def shown(
    name: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    keep: Sequence[str],
    *,
    page: Path = PAGE,
) -> list[str]:
    """Write the whole table beside the page; return the lines of its columns `keep`."""
    write_data(name, columns, rows, page=page)
    places = [columns.index(column) for column in keep]
    lines = table(keep, [[row[place] for place in places] for row in rows])
    return [*lines, "", f"[Every column](data/{name}.csv)."]


def first(rate: str) -> str:
    """Return the rate of "rate (its limits)"."""
    return rate.partition(" ")[0]


def percent(rate: str) -> str:
    """Return the number of "3.0% (its limits)", as short as it is: 3."""
    return f"{float(first(rate).removesuffix('%')):g}"


def stamp(device: str = "CPU") -> str:
    """Return the date, the version and the kind of machine, as a line of a report."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    machine = f"{os.cpu_count()}-core {platform.machine().replace('_', '-')} machine"
    return f"{today}, genbounds {__version__}, {machine}, {device}."


def picture(name: str, paint: Callable[[Any], None], *, page: Path = PAGE, panels: int = 1) -> str:
    """Draw onto matplotlib axes; save beside the page; return the line that shows it.

    With more than one panel `paint` gets a list of axes.
    """
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "none", "font.size": 9}):
        from matplotlib.figure import Figure

        columns = min(panels, 3)
        lines = -(-panels // columns)
        figure = Figure(figsize=(6.4 if panels == 1 else 9.0, 3.6 * lines), layout="constrained")
        axes = [figure.add_subplot(lines, columns, number + 1) for number in range(panels)]
        paint(axes[0] if panels == 1 else axes)
        path = page.parent / "images" / f"{name}.svg"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, format="svg", metadata={"Date": None})
    return f"![{name}](images/{path.name})"


def exact_limits(hits: int, runs: int, level: float = 0.95) -> tuple[float, float]:
    """Return Clopper and Pearson's limits of a rate."""
    from scipy.stats import binomtest

    found = binomtest(int(hits), runs).proportion_ci(level, "exact")
    return float(found.low), float(found.high)


def rate(
    hits: int, runs: int, *, share: str = ".1%", limits: str = ".1%", level: float = 0.95
) -> str:
    """Return a rate with its exact limits; `share` and `limits` say how they are written."""
    low, high = exact_limits(hits, runs, level)
    return f"{hits / runs:{share}} ({low:{limits}} – {high:{limits}})"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table."""
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    return lines + [f"| {' | '.join(row)} |" for row in rows]
