"""The ends of every option's range, files that announce nonsense, streams that take nothing."""

from __future__ import annotations

import io
import json
import os
import struct
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

import genbounds as gb
from genbounds.cli import main
from genbounds.features.sources import open_source

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, scale in {"x": 1.0, "y": 1.1, "z": 1.2}.items():
        np.save(f"{name}.npy", scale * RNG.normal(size=(120, 4)))
    return tmp_path


LONG = "a" * 300 + ".npy"
REFUSED = {
    "order": "score x.npy y.npy --metric vendi --order 1e308",
    "order, float": "score x.npy y.npy --metric vendi --order 1e16",
    "confidence 0": "plan x.npy y.npy z.npy --confidence 1e-300",
    "confidence 1": "plan x.npy y.npy z.npy --confidence 0.9999999999999999",
    "confidence of select": "select --reference x.npy y.npy z.npy --confidence 1e-300",
    "cost": "select --reference x.npy y.npy z.npy --cost y=1e308",
    "option of a policy": "select x.npy y.npy z.npy --policy fd-ucb --policy-option kappa=1e308",
    "name": f"score x.npy {LONG}",
    "name of an arm": f"select --reference x.npy y.npy {LONG}",
    "name of a baseline": f"gate x.npy {LONG} y.npy --margin 1",
    "name of training rows": f"memorisation y.npy --train {LONG} --heldout x.npy",
    "folder": f"score x.npy y.npy --out {'b' * 300}",
    "path": f"score x.npy y.npy --out {'/'.join(['c' * 200] * 30)}",
}


@pytest.mark.parametrize("case", REFUSED)
def test_one_line_and_status_2(case, capsys):
    assert main(REFUSED[case].split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "Traceback" not in err


ACCEPTED = [
    "score x.npy y.npy --level 1e-300 --json",
    "score x.npy y.npy --level 0.9999999999999999 --json",
    "score x.npy y.npy --metric vendi --order 1e-308 --json",
    "score x.npy y.npy --metric vendi --order 64 --json",
    "score x.npy y.npy --metric vendi --order inf --json",
    "score x.npy y.npy --reference-n 1000000000000000000000000 --json",
    "plan x.npy y.npy --half-width 1e308 --json",
    "plan x.npy y.npy --half-width 1e-308 --json",
    "gate x.npy y.npy z.npy --margin 1e308 --json",
]


@pytest.mark.parametrize("command", ACCEPTED)
def test_what_is_legal_gives_finite_json(command, capsys):
    np.savez("x.npz", mu=np.zeros(4), sigma=np.eye(4))
    words = command.replace("x.npy", "x.npz") if "--reference-n" in command else command
    assert main(words.split()) in (0, 1)
    json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(name))


HEADERS = {
    "offsets": {"features": {"dtype": "F32", "shape": [30, 4], "data_offsets": [None, 480]}},
    "offsets of words": {"features": {"dtype": "F32", "shape": [30, 4], "data_offsets": ["", {}]}},
    "offsets of two kinds": {
        "a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
        "b": {"dtype": "F32", "shape": [1], "data_offsets": [None, 8]},
    },
    "shape": {"features": {"dtype": "F32", "shape": [[30], 4], "data_offsets": [0, 480]}},
    "many": {
        f"t{k}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for k in range(20_000)
    },
}


@pytest.mark.parametrize("case", HEADERS)
def test_a_header_of_nonsense(case, capsys):
    header = json.dumps(HEADERS[case]).encode()
    content = struct.pack("<Q", len(header)) + header + bytes(480)
    Path("bad.safetensors").write_bytes(content)
    assert main(["score", "x.npy", "bad.safetensors"]) == 2
    assert "bad.safetensors: is damaged" in capsys.readouterr().err


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_a_linked_image_in_an_archive_is_named(kind, capsys):
    """It was left out: the score was that of fewer images."""
    with tarfile.open("photos.tar", "w") as archive:
        image = tarfile.TarInfo("a.png")
        image.size = 4
        archive.addfile(image, io.BytesIO(b"\x89PNG"))
        link = tarfile.TarInfo("b.png")
        link.type, link.linkname = kind, "a.png"
        archive.addfile(link)
    with pytest.raises(gb.InputError, match=r"b\.png.*is a link to a\.png"):
        open_source(["photos.tar"])


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("command", ["score none.npy y.npy", "gate x.npy", "score --nonsense"])
def test_bad_input_is_2_where_nobody_can_read_why(command):
    words = [sys.executable, "-m", "genbounds", *command.split()]
    with open("/dev/full", "w") as full:
        assert subprocess.run(words, stderr=full, stdout=subprocess.DEVNULL).returncode == 2
    closed = f"exec {' '.join(words)} 2>&- >/dev/null"
    assert subprocess.run(["bash", "-c", closed]).returncode == 2


def test_no_file_of_the_working_folder_changes_a_page(folder):
    """A `matplotlibrc` would, and could have a program named latex set the texts."""
    pages = []
    for name in ("left7", "right7"):
        (folder / "matplotlibrc").write_text("text.usetex: True\nfont.size: 40\naxes.grid: True\n")
        if pages:
            (folder / "matplotlibrc").unlink()
        words = f"-m genbounds score x.npy y.npy z.npy --out {name}".split()
        subprocess.run([sys.executable, *words], check=True, capture_output=True)
        pages.append((folder / name / "report.html").read_text().replace(name, ""))
    assert pages[0] == pages[1]


def test_figures_start_from_defaults_of_matplotlib():
    """In a process whose parameters were set by somebody else, and stay set."""
    import matplotlib

    from genbounds import report

    scores = ranking().scores
    plain = report.score_plot(scores, metric="fd", level=0.95)
    with matplotlib.rc_context({"text.usetex": True, "font.size": 40, "axes.grid": True}):
        assert report.score_plot(scores, metric="fd", level=0.95).wide == plain.wide
        assert matplotlib.rcParams["font.size"] == 40


def ranking() -> gb.Ranking:
    rng = np.random.default_rng(0)
    models = {name: scale * rng.normal(size=(100, 3)) for name, scale in {"a": 1, "b": 2}.items()}
    return gb.compare(models, rng.normal(size=(100, 3)))
