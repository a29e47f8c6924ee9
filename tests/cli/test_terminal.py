"""What a person sees on a terminal of 60 to 200 columns: every id, every number, whole."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import subprocess
import sys
import termios

import numpy as np
import pytest

WIDTHS = (60, 80, 120, 200)
LONG = {f"model-{'m' * 34}-{k}": scale for k, scale in ((1, 1.3), (2, 1.6))}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("terminal")
    rng = np.random.default_rng(0)
    for name, scale in {"real": 1.0, "a": 1.3, "b": 1.6, **LONG}.items():
        np.save(folder / f"{name}.npy", scale * rng.normal(size=(300, 4)))
    for step, scale in {100: 2.0, 200: 1.4, 300: 1.1}.items():
        np.save(folder / f"step-{step}.npy", scale * rng.normal(size=(300, 4)))
    return folder


def on_terminal(folder, width: int, *words: str) -> str:
    """Run the program on a pseudo-terminal of this width; return what it shows, uncoloured."""
    import pty

    primary, secondary = pty.openpty()
    fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
    with subprocess.Popen(
        [sys.executable, "-m", "genbounds", *words],
        cwd=folder,
        stdout=secondary,
        stderr=subprocess.DEVNULL,
        env=environment | {"TERM": "xterm", "NO_COLOR": "1"},
    ) as program:
        os.close(secondary)
        output = b""
        while True:
            try:
                chunk = os.read(primary, 65536)
            except OSError:  # the other end was closed
                break
            if not chunk:
                break
            output += chunk
        assert program.wait(60) in (0, 1)
    os.close(primary)
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", output.decode()).replace("\r", "")


COMMANDS = {
    "score": ["score", "real.npy", *(f"{name}.npy" for name in LONG)],
    "score of short names": ["score", "real.npy", "a.npy", "b.npy"],
    "track": ["track", "real.npy", "step-100.npy", "step-200.npy", "step-300.npy"],
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
    whole = on_terminal(folder, 400, *COMMANDS[command])
    numbers = set(NUMBER.findall(whole))
    ids = set(re.findall(r"\b[a-z0-9]+\.[a-z0-9-]+\b", whole))
    assert numbers
    for width in WIDTHS:
        shown = on_terminal(folder, width, *COMMANDS[command])
        joined = re.sub(r"[ \n]+", " ", shown)
        assert {n for n in numbers if n not in joined} == set(), width
        assert {name for name in ids if name not in joined} == set(), width
        assert not re.search(r"\d…", shown)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")
@pytest.mark.parametrize("width", WIDTHS)
def test_long_names_stay_apart(folder, width):
    shown = on_terminal(folder, width, *COMMANDS["score"])
    rows = shown.partition("─\n")[2].partition("\n\n")[0]  # below the head, above the sentences
    names = {line.split()[0] for line in rows.splitlines() if line.startswith("model-")}
    assert len(names) == 2
