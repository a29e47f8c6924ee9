"""What a person sees on a terminal of 60 to 200 columns: every id, every number, whole."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest

from tests.cli.conftest import on_terminal

WIDTHS = (60, 80, 120, 200)
LONG = {f"model-{'m' * 64}-{k}": scale for k, scale in ((1, 1.3), (2, 1.6))}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("terminal")
    rng = np.random.default_rng(0)
    for name, scale in {"real": 1.0, "a": 1.3, "b": 1.6, **LONG}.items():
        np.save(folder / f"{name}.npy", scale * rng.normal(size=(300, 4)))
    train = rng.normal(size=(300, 4))
    np.save(folder / "train.npy", train)
    np.save(folder / "copies.npy", np.r_[train[:40] + 1e-4, rng.normal(size=(260, 4))])
    for step, scale in {100: 2.0, 200: 1.4, 300: 1.1}.items():
        np.save(folder / f"step-{step}.npy", scale * rng.normal(size=(300, 4)))
    return folder


def shown_on(widths, folder, *words: str) -> list[str]:
    """Return what the program shows on terminals of these widths, uncoloured."""
    words = [str(folder / word) if word.endswith((".npy", ".npz")) else word for word in words]
    shown = on_terminal(widths, *words, errors=subprocess.DEVNULL, TERM="xterm", NO_COLOR="1")
    return [re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text).replace("\r", "") for text in shown]


COMMANDS = {
    "score": ["score", "real.npy", *(f"{name}.npy" for name in LONG)],
    "score of short names": ["score", "real.npy", "a.npy", "b.npy"],
    "track": ["track", "real.npy", "step-100.npy", "step-200.npy", "step-300.npy"],
    "gate": ["gate", "real.npy", "a.npy", "b.npy", "--margin", "5%", "--verbose"],
    "memorisation": ["memorisation", "copies.npy", "--train", "train.npy", "--heldout", "real.npy"],
    "features": ["features", "a.npy", "--moments", "a.npz"],
    "plan": ["plan", "real.npy", "a.npy", "--half-width", "0.05"],
    "mixture": ["mixture", "real.npy", "a.npy", "b.npy"],
    "modes": ["modes", "real.npy", "a.npy"],
    "select": ["select", "real.npy", "a.npy", "b.npy"],
    "audit": ["audit", "o24.*-mean", "--quick", "--replications", "20"],
    "bounds": ["bounds", "m25.*"],
}
NUMBER = re.compile(r"\d[\d\u202f,.·⁻⁰¹²³⁴-⁹]*")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")
@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_is_hidden_at_any_width(folder, command):
    """Numbers and words that stand in the output of a wide terminal stand in every other."""
    whole, *narrower = shown_on((400, *WIDTHS), folder, *COMMANDS[command])
    numbers = set(NUMBER.findall(whole))
    ids = set(re.findall(r"\b[a-z0-9]+\.[a-z0-9-]+\b", whole))
    assert numbers
    for width, shown in zip(WIDTHS, narrower, strict=True):
        joined = re.sub(r"[ \n]+", " ", shown)
        assert {n for n in numbers if n not in joined} == set(), width
        assert {name for name in ids if name not in joined} == set(), width
        assert not re.search(r"\d…", shown)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")
def test_long_names_stay_apart(folder):
    for shown in shown_on(WIDTHS, folder, *COMMANDS["score"]):
        rows = shown.partition("─\n")[2].partition("\n\n")[0]  # between the head and the sentences
        names = {line.split()[0] for line in rows.splitlines() if line.startswith("model-")}
        assert len(names) == 2


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")
@pytest.mark.parametrize("command", ["score", "memorisation"])
def test_no_line_is_wider_than_the_terminal_or_broken_in_a_word(folder, command):
    """A terminal left to itself breaks sentences in the middle of a word."""
    whole, *narrower = shown_on((400, *WIDTHS), folder, *COMMANDS[command])
    words = set(whole.split())
    for width, shown in zip(WIDTHS, narrower, strict=True):
        assert max(map(len, shown.splitlines())) <= width
        sentences = shown.rpartition("Assumptions")[2]
        assert {word for word in sentences.split() if word.strip("─") not in words | {""}} == set()
