"""What the documentation tells people to type works, and prints what stands there.

Python blocks of a page run one after the other in one namespace, in a folder with the files that
examples speak of; lines of a shell block that start with ``genbounds`` run as well. A ``text``
block right after a Python block is its output, and in a ``console`` block the lines after ``$ ...``
are: words must agree, and numbers to the digit shown; a line ``...`` stands for any lines. A Python
block whose first line is ``# name.py`` is also written to that file, which a shell block may run. A
comment ``<!-- not run: why -->`` above a block leaves it out. Cells (``{cell}``) run when the pages
are built.
"""

from __future__ import annotations

import contextlib
import glob
import importlib.util
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import typer

from genbounds.cli import main

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "docs/**/*.md", "experiments/**/*.md")
    for path in ROOT.glob(pattern)
    if "generated" not in path.parts and "_build" not in path.parts
)
SHELLS = {"sh", "bash", "shell", "console"}
OTHER_PROGRAMS = {"git", "cd", ".", "pip", "python", "python3", "make"}

FENCE = re.compile(
    r"^(?P<above><!--[^\n]*-->\n\n?)?```(?P<kind>[a-z]*|\{[a-z]+\}[^\n]*)\n(?P<body>.*?)^```$",
    flags=re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    kind: str
    body: str
    left_out: bool
    follows_python: bool = False


def blocks(text: str) -> list[Block]:
    found: list[Block] = []
    end, last = 0, ""
    for match in FENCE.finditer(text):
        follows = last == "python" and not text[end : match.start()].strip()
        left_out = bool(re.match(r"<!-- not run: \S", match["above"] or ""))
        found.append(Block(match["kind"], match["body"], left_out, follows))
        end, last = match.end(), match["kind"]
    return found


# --- what is printed against what stands there ---------------------------------------------------

NUMBER = re.compile(r"[-+]?(?:\d[\d ,]*)?\.?\d+(?:[eE][-+]?\d+)?")


def same_number(printed: str, stated: str) -> bool:
    """Whether two numbers agree to the digit shown: whole numbers exactly, others to one unit."""
    one, two = (float(re.sub("[ ,]", "", text)) for text in (printed, stated))
    mantissa, _, exponent = stated.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    unit = 10.0 ** (int(exponent or 0) - decimals) if decimals or exponent else 0.0
    return abs(one - two) <= 1.01 * unit  # the last digit may be rounded otherwise elsewhere


def same_line(printed: str, stated: str) -> bool:
    """Whether two lines agree in their words, and in their numbers to the digit shown.

    One that ends in ``...`` says how the other begins.
    """
    shown = stated.removesuffix("...")
    lines = [NUMBER.sub("#", line).replace("─", "").split() for line in (printed, shown)]
    if stated.endswith("..."):
        lines[0] = lines[0][: len(lines[1])]
    if lines[0] != lines[1]:
        return False
    return all(map(same_number, NUMBER.findall(printed), NUMBER.findall(shown)))


def agrees(printed: list[str], stated: list[str]) -> bool:
    if not stated:
        return not printed
    if stated[0].strip() == "...":
        return any(agrees(printed[k:], stated[1:]) for k in range(len(printed) + 1))
    return bool(printed) and same_line(printed[0], stated[0]) and agrees(printed[1:], stated[1:])


def assert_agrees(printed: str, stated: str) -> None:
    plain = [text.replace("\u202f", " ").splitlines() for text in (printed, stated)]
    kept = [[line for line in lines if line.strip()] for lines in plain]
    assert agrees(*kept), f"printed:\n{printed}\nstated:\n{stated}"


# --- running -------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """Return the working directory, with every file that an example names."""
    write_files(tmp_path, n=600, d=4)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # as a script in this folder
    return tmp_path


def write_files(tmp_path: Path, *, n: int, d: int) -> None:
    """Write every file that an example names, with n rows of d features."""
    rng = np.random.default_rng(0)
    features = {
        "real": 1.0, "model_a": 1.2, "model_b": 2.0, "gan": 1.3, "vae": 1.8, "diffusion": 1.05,
        "generated": 1.1, "train": 1.0, "heldout": 1.0,
    }  # fmt: skip
    (tmp_path / "models").mkdir(exist_ok=True)
    for name, scale in features.items():
        np.save(tmp_path / f"{name}.npy", scale * rng.normal(size=(n, d)))
        if name != "real":
            np.save(tmp_path / "models" / f"{name}.npy", scale * rng.normal(size=(n, d)))
    (tmp_path / "probs").mkdir(exist_ok=True)
    for name, alpha in {"real-probs": 0.05, "gan-probs": 0.1, "posteriors": 0.2}.items():
        np.save(tmp_path / f"{name}.npy", rng.dirichlet([alpha] * 5, size=n))
        np.save(tmp_path / "probs" / f"{name}.npy", rng.dirichlet([alpha] * 5, size=n))
    for name in ("real-stats", "statistics"):
        np.savez(tmp_path / f"{name}.npz", mu=np.zeros(d), sigma=np.eye(d))
    for step, scale in {500: 2.0, 1000: 1.5, 1500: 1.2, 2000: 1.2, 2500: 1.2, 3000: 1.2}.items():
        np.save(tmp_path / f"step-{step}.npy", scale * rng.normal(size=(n, d)))
    np.save(tmp_path / "again.npy", 1.2 * rng.normal(size=(n, d)))


def commands(block: Block) -> Iterator[tuple[list[str], str | None]]:
    """Yield (words, stated output or None) of every command of a shell block."""
    body = re.sub(r"\\\n\s*", " ", block.body)
    if block.kind == "console":
        for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
            line, _, output = part.partition("\n")
            yield shlex.split(line, comments=True), output
    else:
        for line in body.splitlines():
            for part in line.split("&&"):
                if words := shlex.split(part, comments=True):
                    yield words, None


def expensive(words: list[str]) -> bool:
    """Whether a command takes more than seconds, or an encoder's weights: it is parsed, no more."""
    if words[1] == "audit":
        return not ("--quick" in words and re.fullmatch(r"[a-z0-9]+\.[a-z0-9-]+", words[2]))
    return words[1] == "features" or "--encoder" in words


def run_genbounds(words: list[str], stated: str | None) -> None:
    if expensive(words):
        # As in earnest, up to where the command itself would begin.
        with mock.patch.object(typer.core.TyperCommand, "invoke", return_value=0):
            assert main(words[1:]) == 0, words
        return
    expanded = [name for word in words[1:] for name in sorted(glob.glob(word)) or [word]]
    with contextlib.redirect_stdout(io.StringIO()) as out:
        code = main(expanded)
    assert code == 0 or (code == 1 and words[1] in ("mixture", "reproduce", "select")), (
        f"{words} ended with {code}"
    )
    if stated is not None:
        assert_agrees(out.getvalue(), stated)


def check_other_program(words: list[str]) -> None:
    """Whatever is not ours is not run, but what it names must be there."""
    name = words[0] if words[0] == "." else Path(words[0]).name
    assert name in OTHER_PROGRAMS, f"what is {words}?"
    if name == "make":
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        for target in words[1:]:
            if "=" not in target:
                assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
    if words[:2] == ["python", "-m"] and words[2].startswith("experiments"):
        assert importlib.util.find_spec(words[2]), words


@pytest.mark.parametrize("page", PAGES)
def test_page(page, folder):
    run_page(page)


def write_module(body: str) -> str:
    """Write a block that begins with the name of a file to it; return the name of its module."""
    name = re.match(r"# (\w+)\.py\n", body)
    if name is None:
        return "__main__"
    Path(f"{name[1]}.py").write_text(body, encoding="utf-8")
    sys.modules.pop(name[1], None)
    return name[1]


def run_script(words: list[str], stated: str | None) -> None:
    """Run a script that the page had the reader write, as a process of its own."""
    done = subprocess.run(
        [sys.executable, "-W", "error", *words[1:]],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    if stated is not None:
        assert_agrees(done.stdout, stated)


def run_page(page: str) -> None:
    """Run the blocks of a page one after the other, and compare what they print."""
    found = blocks((ROOT / page).read_text(encoding="utf-8"))
    namespace: dict[str, Any] = {"__name__": "__main__"}
    printed = ""
    for block in found:
        if block.left_out:
            continue
        if block.kind == "python":
            namespace["__name__"] = write_module(block.body)
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(block.body, page, "exec"), namespace)  # our own page
            printed = out.getvalue()
        elif block.kind == "text" and block.follows_python:
            assert_agrees(printed, block.body)
        elif block.kind in SHELLS:
            for words, stated in commands(block):
                if Path(words[0]).name == "genbounds":
                    run_genbounds(words, stated)
                elif words[0] == "python" and words[1] != "-m" and Path(words[1]).exists():
                    run_script(words, stated)
                else:
                    check_other_program(words)


@pytest.mark.slow
@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_page_as_a_script_of_its_own(page, folder):
    """In another process, with warnings as errors: nothing comes from the session of the tests."""
    found = blocks((ROOT / page).read_text(encoding="utf-8"))
    python = [block.body for block in found if block.kind == "python" and not block.left_out]
    assert python
    (folder / "script.py").write_text("\n".join(python), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", "script.py"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.nightly
@pytest.mark.slow
def test_the_readme_s_python_at_the_size_of_inception_features(folder):
    """With 2,048 features and half as many rows: some minutes."""
    write_files(folder, n=1024, d=2048)
    test_page_as_a_script_of_its_own("README.md", folder)


# --- the checks can fail -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("printed", "stated", "same"),
    [
        ("a 1.00 [0.50, 2.0]", "a   1.01 [0.50, 2.1]", True),
        ("a 1.00 [0.50, 2.0]", "a   1.02 [0.50, 2.0]", False),
        ("a 1.00 [0.50, 2.0]", "a 1.50 [0.50, 2.0]", False),
        ("a 1.00 b", "a 1.00 c", False),
        ("1 000 rows", "1 001 rows", False),
        ("1.5e-06 x", "1.6e-06 x", True),
        ("1.5e-06 x", "1.8e-06 x", False),
        ("* bias 0.7 and so on", "* bias 0.5 ...", False),
        ("one\ntwo\nthree", "one\n...", True),
        ("one\ntwo\nthree", "...\nthree", True),
        ("one\ntwo", "one", False),
        ("one", "one\ntwo", False),
        ("* bias 0.5 and so on", "* bias ...", True),
    ],
)
def test_comparison(printed, stated, same):
    if same:
        assert_agrees(printed, stated)
    else:
        with pytest.raises(AssertionError):
            assert_agrees(printed, stated)


def test_blocks_are_found():
    text = "```python\n1\n```\n\n```text\n2\n```\n\n<!-- not run: no GPU -->\n```sh\n3\n```\n"
    assert blocks(text) == [
        Block("python", "1\n", False),
        Block("text", "2\n", False, True),
        Block("sh", "3\n", True),
    ]


@pytest.mark.parametrize("line", ["make nonsense", "rm -rf x", "python -m experiments.nonsense"])
def test_unknown_commands_are_seen(line):
    with pytest.raises(AssertionError):
        check_other_program(line.split())


def test_failing_command_is_seen(folder):
    with pytest.raises(AssertionError, match="ended with 2"):
        run_genbounds(["genbounds", "score", "gone.npy", "gan.npy"], None)
