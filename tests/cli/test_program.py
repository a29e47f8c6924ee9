"""The program as a process: streams, signals, colour, start-up."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from genbounds import __version__
from tests.cli.conftest import listen_to_ctrl_c

COMMAND = [sys.executable, "-m", "genbounds.cli"]


def process(*arguments: object, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=60, **options
    )


def test_json_goes_through_a_pipe_alone(zoo):
    done = process("score", zoo / "real.npy", zoo / "good.npy", "--json")
    assert done.returncode == 0
    assert done.stderr == ""
    assert json.loads(done.stdout)["rows"][0]["model"] == "good"


def test_ascii_terminal(zoo):
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = process("score", zoo / "real.npy", zoo / "good.npy", env=environment)
    assert done.returncode == 0
    assert "good" in done.stdout


def test_broken_pipe(zoo):
    with subprocess.Popen(
        [*COMMAND, "bounds"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as program:
        program.stdout.close()
        assert program.stderr.read() == b""
        assert program.wait(30) == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here (Linux has one)")
@pytest.mark.parametrize("form", [["bounds"], ["bounds", "--json"]], ids=" ".join)
def test_a_full_disk_is_one_line_and_no_verdict(form):
    """Exit status 1 would say that the job ran and its answer is negative."""
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([*COMMAND, *form], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr == (
        "genbounds: standard output cannot be written: No space left on device: "
        "write to another place.\n"
    )


@pytest.mark.parametrize("form", [["bounds"], ["bounds", "--json"]], ids=" ".join)
def test_streams_that_are_closed_are_not_missed(form):
    done = subprocess.run(["sh", "-c", 'exec "$@" >&- 2>&-', "sh", *COMMAND, *form])
    assert done.returncode == 0
    done = subprocess.run(["sh", "-c", 'exec "$@" >&- 2>&-', "sh", *COMMAND, "score"])
    assert done.returncode == 2


def test_interrupt_keeps_what_is_done_and_says_so(tmp_path):
    command = [
        *COMMAND,
        "audit",
        "o24.h*",
        "o24.b*",
        "--replications",
        "2000000",
        "--out",
        str(tmp_path),
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=listen_to_ctrl_c
    ) as program:
        deadline = time.monotonic() + 50
        while not (tmp_path / "audit.sqlite").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.3)
        program.send_signal(signal.SIGINT)
        out, err = program.communicate(timeout=50)
    assert program.returncode == 130
    assert out == b""
    assert err.decode() == (
        f"genbounds: interrupted: what is finished is in {tmp_path}; "
        "the same command goes on from here.\n"
    )


def test_nothing_heavy_is_imported_for_help():
    code = (
        "import sys; from genbounds.cli import main; code = main(['--help']); "
        "heavy = {'torch', 'matplotlib', 'jinja2', 'sympy', 'statsmodels', 'pyarrow', 'sklearn', "
        "'rich.table'}; sys.exit(f'{heavy & set(sys.modules)}' if heavy & set(sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_help(run):
    for command in ("score", "features", "audit", "select", "bounds"):
        result = run(command, "--help")
        assert result.code == 0
        assert "Examples:" in result.out
        assert f"\n  genbounds {command} " in result.out
    assert run().out == run("--help").out
    assert run("--version").out == f"genbounds {__version__}\n"


def test_documented_options_exist(run):
    """Every option in docs/cli.md is in --help, and the other way round."""
    text = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    for command in ("score", "features", "audit", "select", "bounds"):
        section = text.split(f"## genbounds {command}")[1].split("\n## ")[0]
        options = set(re.findall(r"--[a-z]+", run(command, "--help").out)) - {"--help"}
        documented = set(re.findall(r"^\| `(--[a-z]+)", section, flags=re.MULTILINE))
        assert documented == options


@pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")
@pytest.mark.parametrize(("no_color", "coloured"), [(None, True), ("1", False)])
def test_colour_only_on_a_terminal_that_wants_it(zoo, no_color, coloured):
    import pty

    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    environment |= {"TERM": "xterm-256color", "COLUMNS": "100"}
    if no_color:
        environment["NO_COLOR"] = no_color
    primary, secondary = pty.openpty()
    arguments = ["score", str(zoo / "real.npy"), str(zoo / "good.npy")]
    with subprocess.Popen(
        [*COMMAND, *arguments], stdout=secondary, stderr=secondary, env=environment
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
        assert program.wait(60) == 0
    os.close(primary)
    colours = re.findall(rb"\x1b\[(?:[0-9]+;)*[34][0-9][0-9;]*m", output)
    assert b"good" in output
    assert bool(colours) == coloured


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(shell):
    """What docs/cli.md says to put where the shell looks."""
    done = process(env=os.environ | {"_GENBOUNDS_COMPLETE": f"source_{shell}"})
    assert "_GENBOUNDS_COMPLETE" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("genbounds s", {"score", "select"}),
        ("genbounds score --me", {"--metric"}),
        ("genbounds score --metric v", {"vendi"}),
        ("genbounds select --metric k", {"kid"}),
        ("genbounds select --policy el", {"elimination"}),
        ("genbounds features --fit c", {"crop"}),
        ("genbounds features --precision bf", {"bfloat16"}),
        ("genbounds audit --backend d", {"dask"}),
        ("genbounds bounds o24.hoef", {"o24.hoeffding"}),
        ("genbounds audit m25.mean-n", {"m25.mean-norm"}),
    ],
)
def test_completion(typed, offered):
    environment = {
        "_GENBOUNDS_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split()) - 1),
    }
    assert set(process(env=os.environ | environment).stdout.split()) == offered
