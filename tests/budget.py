"""How large the library is and how far a call travels in it: ``python -m tests.budget``.

Code lines leave out docstrings, comments and blanks. A trip is what one public call visits after a
warm-up: functions, files, and how often an input file is opened. `tests/budget.toml` holds both to
limits, of which each raise says why.
"""

from __future__ import annotations

import ast
import bisect
import collections
import io
import os
import re
import sys
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import genbounds as gb

LIBRARY = Path(gb.__file__).parent
TESTS = Path(__file__).parent
LONG_FUNCTION, WIDE_CLASS, LONG_FILE = 60, 12, 600


# --- size ---------------------------------------------------------------------------------------


def code_lines(text: str, tree: ast.Module | None = None) -> list[int]:
    """Numbers of the lines that hold code, in order."""
    documented: set[int] = set()
    for node in ast.walk(tree or ast.parse(text)):
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            documented |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    empty = (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    empty += (tokenize.ENDMARKER, tokenize.COMMENT)
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in empty:
            lines.update(range(token.start[0], token.end[0] + 1))
    return sorted(lines - documented)


def too_large(path: Path, tree: ast.Module, lines: list[int]) -> Iterator[str]:
    """Name each function that is too long, by its code lines, and class that is too wide."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            # A command's signature is its list of options: its body alone counts.
            first = node.body[0].lineno if path.parent.name == "cli" else node.lineno
            last = node.end_lineno or node.lineno
            if bisect.bisect_right(lines, last) - bisect.bisect_left(lines, first) > LONG_FUNCTION:
                yield "functions over 60 lines"
        elif isinstance(node, ast.ClassDef):
            if sum(isinstance(item, ast.AnnAssign) for item in node.body) > WIDE_CLASS:
                yield "classes over 12 fields"


def sizes() -> dict[str, int]:
    """Code lines of the whole library and of each package; what is too long or too wide."""
    packages: collections.Counter[str] = collections.Counter()
    large: collections.Counter[str] = collections.Counter()
    for path in sorted(LIBRARY.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        lines = code_lines(text, tree)
        place = path.relative_to(LIBRARY).parts
        packages[place[0] if len(place) > 1 else "modules"] += len(lines)
        large.update(too_large(path, tree, lines))
        large["files over 600 lines"] += len(lines) > LONG_FILE
    found = {"library": sum(packages.values()), **dict(sorted(packages.items()))}
    for name in ("functions over 60 lines", "classes over 12 fields", "files over 600 lines"):
        found[name] = large[name]
    private = re.compile(r"genbounds(\.[a-z_]+)*\._[a-z]")
    found["test files with private names"] = sum(
        bool(private.search(path.read_text(encoding="utf-8"))) for path in TESTS.rglob("*.py")
    )
    return found


# --- trips --------------------------------------------------------------------------------------


def trip(call: Callable[[], Any]) -> dict[str, int]:
    """Functions and files of the library that a call visits."""
    call()  # imports, and what is kept
    visited: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        file, name = frame.f_code.co_filename, frame.f_code.co_qualname
        if event == "call" and file.startswith(str(LIBRARY)) and not name.endswith(">"):
            visited.add((file, name))

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return {"functions": len(visited), "files": len({file for file, _ in visited})}


_OPENED: collections.Counter[str] = collections.Counter()
_LISTENING: list[bool] = []


def opened(call: Callable[[], Any]) -> collections.Counter[str]:
    """Return how often each file is opened, by its name."""
    if not _LISTENING:  # a hook cannot be taken away

        def note(event: str, arguments: tuple[Any, ...]) -> None:
            if event == "open" and isinstance(arguments[0], (str, os.PathLike)):
                _OPENED[os.path.basename(os.fspath(arguments[0]))] += 1

        sys.addaudithook(note)
        _LISTENING.append(True)
    _OPENED.clear()
    call()
    return collections.Counter(_OPENED)


def trips(folder: Path) -> dict[str, dict[str, int]]:
    """Trips of a distance, a comparison, a selection and a command, with files in `folder`."""
    rng = np.random.default_rng(0)
    real, a, b = (rng.normal(shift, 1.0, size=(2000, 16)) for shift in (0.0, 0.1, 0.3))
    names = []
    for name, rows in (("real", real), ("a", a), ("b", b)):
        names.append(str(folder / f"{name}.npy"))
        np.save(names[-1], rows)
    outs = (str(folder / f"out{k}") for k in range(9))  # a fresh one each time: nothing is kept

    def score() -> None:
        from genbounds.cli import main

        before = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
        try:
            main(["score", *names, "--out", next(outs)])
        finally:
            sys.stdout, sys.stderr = before

    found = {
        "frechet_distance": trip(lambda: gb.frechet_distance(a, real)),
        "compare": trip(lambda: gb.compare({"a": a, "b": b}, real)),
        "score": trip(score),
    }
    found["score"]["opened"] = max(opened(score)[Path(name).name] for name in names)
    return found


if __name__ == "__main__":
    import tempfile

    for name, number in sizes().items():
        print(f"{name:32s} {number}")
    with tempfile.TemporaryDirectory() as scratch:
        for name, figures in trips(Path(scratch)).items():
            print(f"{name:32s}", *(f"{key} {value}" for key, value in figures.items()), sep="  ")
