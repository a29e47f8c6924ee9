"""The program as a process: streams, signals, colour, start-up."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from genbounds import __version__
from genbounds.cli import main
from tests.cli.conftest import listen_to_ctrl_c, on_terminal

COMMAND = [sys.executable, "-m", "genbounds"]


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


@pytest.mark.parametrize("argument", ["bounds", "--help", "--version"])
def test_broken_pipe(argument):
    with subprocess.Popen(
        [*COMMAND, argument], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as program:
        program.stdout.close()
        assert program.stderr.read() == b""
        assert program.wait(30) == 0


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("form", [["bounds"], ["bounds", "--json"]], ids=" ".join)
def test_streams_that_are_closed_are_not_missed(form):
    done = subprocess.run(["sh", "-c", 'exec "$@" >&- 2>&-', "sh", *COMMAND, *form])
    assert done.returncode == 0
    done = subprocess.run(["sh", "-c", 'exec "$@" >&- 2>&-', "sh", *COMMAND, "score"])
    assert done.returncode == 2


@pytest.mark.slow
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
        "heavy = {'numpy', 'torch', 'matplotlib', 'jinja2', 'sympy', 'statsmodels', 'pyarrow', "
        "'sklearn', 'rich.table'} & set(sys.modules); sys.exit(f'{heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_help(run):
    for command in ("score", "track", "features", "audit", "select", "bounds"):
        result = run(command, "--help")
        assert result.code == 0
        assert "Examples:" in result.out
        assert f"\n  genbounds {command} " in result.out
    assert run().out == run("--help").out
    assert run("--version").out == f"genbounds {__version__}\n"


COMMANDS = (
    "score", "gate", "plan", "track", "mixture", "modes", "memorisation", "reproduce", "features",
    "audit", "select", "bounds",
)  # fmt: skip


def test_help_fits_a_terminal_of_80_columns(run, monkeypatch):
    """No command is shortened in the list of them."""
    monkeypatch.setenv("COLUMNS", "80")
    assert "..." not in run("--help").out.partition("Commands:")[2].partition("Examples:")[0]
    lines = [line for name in COMMANDS for line in run(name, "--help").out.splitlines()]
    assert [line for line in lines if len(line) > 80] == []
    assert len(lines) > 500


def test_documented_options_exist(run):
    """Every option in docs/cli.md is in --help, and the other way round."""
    text = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    for command in COMMANDS:
        section = text.split(f"## genbounds {command}")[1].split("\n## ")[0]
        options = set(re.findall(r"--[a-z]+", run(command, "--help").out)) - {"--help"}
        rows = re.findall(r"^\| (`--[^|]*) \|", section, flags=re.MULTILINE)
        documented = set(re.findall(r"--[a-z]+", " ".join(rows)))
        assert documented == options


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")
@pytest.mark.parametrize(("no_color", "coloured"), [(None, True), ("1", False)])
def test_colour_only_on_a_terminal_that_wants_it(zoo, no_color, coloured):
    wanted = {"TERM": "xterm-256color"} | ({"NO_COLOR": no_color} if no_color else {})
    (output,) = on_terminal([100], "score", zoo / "real.npy", zoo / "good.npy", **wanted)
    colours = re.findall(r"\x1b\[(?:[0-9]+;)*[34][0-9][0-9;]*m", output)
    assert "good" in output
    assert bool(colours) == coloured


def completed(monkeypatch, capsys, how, **words):
    """Return what the shell is told; in this process, as a start of the program takes a second."""
    for name, value in {"_GENBOUNDS_COMPLETE": how, **words}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit):
        main([])
    told = capsys.readouterr()
    assert told.err == ""
    return told.out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(shell, monkeypatch, capsys):
    """What docs/cli.md says to put where the shell looks."""
    assert "_GENBOUNDS_COMPLETE" in completed(monkeypatch, capsys, f"source_{shell}")


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("genbounds s", {"score", "select"}),
        ("genbounds score --me", {"--metric"}),
        ("genbounds score --metric v", {"vendi"}),
        ("genbounds select --metric k", {"kad", "kid"}),
        ("genbounds score --metric p", {"precision"}),
        ("genbounds select --metric p", set()),
        ("genbounds select --policy el", {"elimination"}),
        ("genbounds features --fit c", {"crop"}),
        ("genbounds features --precision bf", {"bfloat16"}),
        ("genbounds audit --backend d", {"dask"}),
        ("genbounds bounds o24.hoef", {"o24.hoeffding"}),
        ("genbounds audit m25.mean-n", {"m25.mean-norm", "m25.mean-norm-as-printed"}),
    ],
)
def test_completion(typed, offered, monkeypatch, capsys):
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
    assert set(completed(monkeypatch, capsys, "complete_bash", **words).split()) == offered


# --- signals -------------------------------------------------------------------------------------

POSIX = pytest.mark.skipif(not Path("/proc").exists(), reason="processes are listed in /proc")


def listen() -> None:
    """Run in a new process: whoever started the tests may ignore these."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)


def children(parent: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(path.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(path.parent.name))
    return found


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for(condition, seconds: float = 50.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.05)


@pytest.mark.slow
@POSIX
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_leaves_no_worker(tmp_path, name):
    number = getattr(signal, name)
    command = [*COMMAND, "audit", "o24.h*", "o24.b*", "--replications", "20000000", "--jobs", "2"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=listen,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    ) as program:  # fmt: skip
        workers: list[int] = []

        def at_work() -> bool:
            workers[:] = [p for p in children(program.pid) if b"Loky" in command_line(p)]
            return len(workers) == 2

        wait_for(at_work)
        family = children(program.pid)
        program.send_signal(number)
        _, err = program.communicate(timeout=50)
    assert program.returncode == 128 + number
    assert err.count(b"\n") == 1
    wait_for(lambda: not any(map(alive, family)), seconds=20.0)
    assert not list(tmp_path.iterdir())


def command_line(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


ENDLESS = """
import time
import numpy as np
def embed(batch):
    open("started", "w").close()
    time.sleep(0.2)
    return np.array([[image.mean(), image.std()] for image in batch])
"""


@pytest.mark.slow
@POSIX
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_signal_leaves_no_scratch_folder(tmp_path, name):
    number = getattr(signal, name)
    scratch = tmp_path / "scratch"
    for folder in (scratch, tmp_path / "images"):
        folder.mkdir()
    for i in range(2000):
        Image.new("L", (2, 2), i % 256).save(tmp_path / "images" / f"{i:04d}.png")
    (tmp_path / "endless.py").write_text(ENDLESS)
    command = [*COMMAND, "score", "images", "images", "--encoder", "endless:embed"]
    paths = os.pathsep.join([os.getcwd(), *filter(None, sys.path)])
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=listen,
        env=os.environ | {"TMPDIR": str(scratch), "PYTHONPATH": paths},
    ) as program:  # fmt: skip
        wait_for(lambda: (tmp_path / "started").exists())
        assert list(scratch.iterdir())
        program.send_signal(number)
        _, err = program.communicate(timeout=5)
    assert program.returncode == 128 + number
    assert err.count(b"\n") == 1
    assert not list(scratch.iterdir())


@pytest.mark.slow
@POSIX
def test_the_status_is_that_of_the_answer_when_the_reader_has_gone_away(tmp_path):
    """With 0 a failing gate passed in `genbounds gate ... | head -1`."""
    rng = np.random.default_rng(0)
    for name, mean in {"real": 0.0, "old": 0.5, "new": 1.0}.items():
        np.save(tmp_path / f"{name}.npy", rng.normal(mean, 1.0, size=(300, 2)))
    command = [*COMMAND, "gate", "real.npy", "old.npy", "new.npy", "--margin", "5%"]
    for options in (["--json"], ["--verbose"]):
        ours, theirs = os.pipe()
        os.close(ours)
        env = os.environ | {"PYTHONPATH": os.pathsep.join([os.getcwd(), *filter(None, sys.path)])}
        done = subprocess.run(
            [*command, *options], cwd=tmp_path, env=env, stdout=theirs, stderr=subprocess.PIPE
        )
        os.close(theirs)
        assert (done.returncode, done.stderr) == (1, b"")


SLOW = """
import os, time
import numpy as np

def slow(n, rng):
    time.sleep(0.05)
    with open("calls", "a") as calls:
        calls.write(".")
    return rng.standard_normal((n, 2))

other = slow
"""


@pytest.mark.slow
@POSIX
def test_sigterm_keeps_what_a_recorded_selection_has_drawn(tmp_path):
    """Clusters stop jobs by it; up to half a minute of draws was lost."""
    (tmp_path / "live_slow.py").write_text(SLOW)
    np.savez(tmp_path / "real.npz", mu=np.zeros(2), sigma=np.eye(2))
    command = [
        *COMMAND, "select", "--reference", "real.npz", "live_slow:slow", "live_slow:other",
        "--budget", "9000", "--record", "kept",
    ]  # fmt: skip
    paths = os.pathsep.join([os.getcwd(), *filter(None, sys.path)])
    calls = tmp_path / "calls"
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=listen,
        env=os.environ | {"PYTHONPATH": paths},
    ) as program:  # fmt: skip
        wait_for(lambda: calls.exists() and calls.stat().st_size > 20)
        program.send_signal(signal.SIGTERM)
        _, err = program.communicate(timeout=10)
    assert program.returncode == 128 + signal.SIGTERM
    assert err.count(b"\n") == 1
    kept = sum(len(np.load(path)) for path in (tmp_path / "kept").glob("*.npy"))
    assert kept >= 5 * (calls.stat().st_size - 1)


DROPPED = """
import signal, sys, time
class Dropped:
    def __del__(self):
        signal.raise_signal(signal.{name})
def embed(batch):
    Dropped()
    time.sleep(50)
"""

REPLACED = """
import signal
def embed(batch):
    try:
        signal.raise_signal(signal.{name})
    except KeyboardInterrupt:
        raise ValueError("Invalid affine transformation matrix")
"""


@POSIX
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
@pytest.mark.parametrize("code", [DROPPED, REPLACED], ids=["destructor", "another error"])
def test_a_signal_that_python_or_compiled_code_takes_is_heard(tmp_path, code, name):
    """Python prints what is raised in a destructor, and goes on; matplotlib made a ValueError."""
    (tmp_path / "encoder.py").write_text(code.format(name=name))
    Image.new("L", (2, 2)).save(tmp_path / "image.png")
    done = subprocess.run(
        [*COMMAND, "features", ".", "--encoder", "encoder:embed", "--out", "x.npz"],
        cwd=tmp_path, capture_output=True, text=True, preexec_fn=listen,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([os.getcwd(), *filter(None, sys.path)])},
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") <= 1
    assert done.stderr.startswith("genbounds: interrupted: ") or code == REPLACED
    assert done.returncode == 128 + getattr(signal, name)


def test_a_signal_is_heard_wherever_a_command_is(monkeypatch):
    """Also before its work begins: a library that it imports may drop the exception."""
    seen = []
    before = sys.unraisablehook
    monkeypatch.setattr("typer.echo", lambda text: seen.append(sys.unraisablehook))
    main(["--version"])
    assert seen[0] is not before
    assert sys.unraisablehook is before


PATIENT = """
import pathlib, time
import numpy as np
def embed(batch):
    pathlib.Path("started").touch()
    while not pathlib.Path("go").exists():
        time.sleep(0.02)
    return np.array([[image.mean(), image.std()] for image in batch])
"""


@pytest.mark.slow
@POSIX
def test_what_is_ignored_stays_ignored(tmp_path):
    """As nohup has it: the program goes on when the terminal goes away."""

    def nohup() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    (tmp_path / "images").mkdir()
    for i in range(60):
        Image.new("L", (2, 2), 4 * i).save(tmp_path / "images" / f"{i:04d}.png")
    (tmp_path / "patient.py").write_text(PATIENT)
    command = [*COMMAND, "score", "images", "images", "--encoder", "patient:embed", "--json"]
    paths = os.pathsep.join([os.getcwd(), *filter(None, sys.path)])
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, preexec_fn=nohup,
        env=os.environ | {"PYTHONPATH": paths},
    ) as program:  # fmt: skip
        wait_for(lambda: (tmp_path / "started").exists())
        program.send_signal(signal.SIGHUP)
        time.sleep(0.2)
        (tmp_path / "go").touch()
        out, _ = program.communicate(timeout=50)
    assert program.returncode == 0
    assert json.loads(out)["complete"] is True


@POSIX
def test_ctrl_c_during_imports_is_quiet(tmp_path):
    """Wherever it comes: here in a module that takes its time."""
    (tmp_path / "typer.py").write_text(
        "import pathlib, time\npathlib.Path('importing').touch()\ntime.sleep(60)\n"
    )
    paths = os.pathsep.join([str(tmp_path), os.getcwd()])
    with subprocess.Popen(
        [*COMMAND, "--help"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=listen, env=os.environ | {"PYTHONPATH": paths},
    ) as program:  # fmt: skip
        wait_for(lambda: (tmp_path / "importing").exists())
        program.send_signal(signal.SIGINT)
        out, err = program.communicate(timeout=10)
    assert (program.returncode, out, err) == (130, b"", b"")


@pytest.mark.slow
@POSIX
def test_ctrl_c_while_a_command_imports_is_quiet(tmp_path):
    (tmp_path / "joblib.py").write_text(
        "import pathlib, time\npathlib.Path('importing').touch()\ntime.sleep(60)\n"
    )
    paths = os.pathsep.join([str(tmp_path), os.getcwd()])
    with subprocess.Popen(
        [*COMMAND, "audit"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=listen, env=os.environ | {"PYTHONPATH": paths},
    ) as program:  # fmt: skip
        wait_for(lambda: (tmp_path / "importing").exists())
        program.send_signal(signal.SIGINT)
        out, err = program.communicate(timeout=10)
    assert (program.returncode, out) == (130, b"")
    assert err.count(b"\n") <= 1
