"""What a terminal would obey reaches neither a terminal nor a page, by whatever channel."""

from __future__ import annotations

import json
import os
import sqlite3
import struct
import unicodedata

import numpy as np
import pytest

import genbounds as gb
from genbounds import files

SEQUENCES = [
    "\x1b[2J", "\x1b[31m", "\x1b]0;title\x07", "\x1b]8;;x:y\x1b\\", "\x1b]52;c;eA==\x07",
    "\x1bP+q544e\x1b\\", "\x1b_x\x1b\\", "\x1b^x\x1b\\", "\x1bXx\x1b\\", "\x1bc",
    "\x1b[6n", "\x1b[?1049h", "\x1b[21t", "\x9b31m", "\x9d0;title\x9c",
    "\x90q\x9c", "\x07", "\b\b", "\rfaked", "\x0b\x0c",
    "\x0e", "\x7f", "\u202e", "\u2066", "\u2028",
    "\u200b", "\U000e0041", "\nfaked: done",
]  # fmt: skip
OBEYED = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
HARMLESS = {"\N{ZERO WIDTH JOINER}"}
RNG = np.random.default_rng(0)
ROWS = {name: scale * RNG.normal(size=(60, 3)) for name, scale in {"real": 1.0, "a": 1.2}.items()}

assert len(SEQUENCES) >= 25


def obeyed(text: str, *, lines: int | None = None) -> list[str]:
    """Return what a terminal would obey; so many `lines` are expected."""
    if lines is not None and text.count("\n") != lines:
        return [f"{text.count(chr(10))} lines"]
    plain = text.replace("\n", "")
    return sorted({c for c in plain if unicodedata.category(c) in OBEYED and c not in HARMLESS})


def safetensors(path, arrays, metadata):
    """Write a file by hand: names and metadata of any text."""
    header, end = {"__metadata__": metadata}, 0
    for name, array in arrays.items():
        first, end = end, end + array.nbytes
        header[name] = {"dtype": "F64", "shape": array.shape, "data_offsets": [first, end]}
    text = json.dumps(header).encode()
    content = b"".join(array.tobytes() for array in arrays.values())
    path.write_bytes(struct.pack("<Q", len(text)) + text + content)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, rows in ROWS.items():
        np.save(f"{name}.npy", rows)
    return tmp_path


# Each channel: given the folder and a sequence, the arguments of `genbounds`.


def file_name(here, text):
    np.save(f"x{text}.npy", ROWS["a"])
    return "score", "real.npy", f"x{text}.npy", "a.npy", "--out", "out", "--verbose"


def missing_file(here, text):
    return "score", "real.npy", f"x{text}.npy"


def array_name(here, text):
    np.savez("x.npz", **{f"x{text}": ROWS["a"]})
    return "score", "real.npy", "x.npz"


def tensor_name(here, text):
    safetensors(here / "x.safetensors", {f"x{text}": ROWS["a"]}, {})
    return "score", "real.npy", "x.safetensors"


def encoder(here, text):
    for name in ROWS:
        safetensors(
            here / f"{name}.safetensors", {"features": ROWS[name]}, {"encoder": name + text}
        )
    return "score", "real.safetensors", "a.safetensors"


def libraries(here, text):
    for name in ROWS:
        metadata = {"encoder": text, "libraries": name + text, "weights": f"random {text}"}
        safetensors(here / f"{name}.safetensors", {"features": ROWS[name]}, metadata)
    return "score", "real.safetensors", "a.safetensors", "--out", "out"


def origin_of_features(here, text):
    safetensors(here / "x.safetensors", {"features": ROWS["a"]}, {text: text, "encoder": text})
    return "features", "x.safetensors", "--moments", f"m{text}.npz"


def label_option(here, text):
    return "score", "real.npy", "a.npy", "--groups", text


def groups(here, text):
    np.savez("x.npz", features=ROWS["a"], groups=np.array([f"{text}{k // 3}" for k in range(60)]))
    return "score", "real.npy", "x.npz", "--verbose", "--out", "out"


def strata(here, text):
    labels = np.array([f"{text}{k}" for k in range(60)])  # a row each, which is refused
    np.savez("x.npz", features=ROWS["a"], strata=labels)
    return "score", "real.npy", "x.npz", "--strata", "strata"


def option(here, text):
    return "score", "real.npy", "a.npy", "--metric", text


def unknown_option(here, text):
    return "score", "real.npy", "a.npy", f"--x{text}"


def command(here, text):
    return (f"x{text}",)


def statement(here, text):
    return "bounds", f"o24.{text}"


def policy(here, text):
    return "select", "--reference", "real.npy", "a.npy", "--policy", text


def cost(here, text):
    return "select", "--reference", "real.npy", "a.npy", "--cost", text


def arm(here, text):
    return "select", "--reference", "real.npy", f"x{text}:y", "--budget", "10"


def encoder_option(here, text):
    (here / "images").mkdir()
    return "features", "images", "--encoder", f"timm:{text}", "--out", "x.npy"


def image(here, text):
    (here / "images").mkdir()
    (here / "images" / f"x{text}.png").write_bytes(b"none")
    return "features", "images", "--encoder", "tests.features.toy:moments", "--out", "x.npy"


def folder(here, text):
    (here / f"x{text}").mkdir()
    return "features", f"x{text}", "--encoder", "tests.features.toy:moments", "--out", "x.npy"


def field(here, text):
    (here / "x.jsonl").write_text('{"a": "b"}\n')
    return (
        "features", "x.jsonl", "--field", text, "--encoder", "tests.features.toy:lengths",
        "--out", "x.npy",
    )  # fmt: skip


def out(here, text):
    (here / "file").write_text("")
    return "score", "real.npy", "a.npy", "--out", f"file/{text}"


def store(here, text):
    return "audit", "o24.hoeffding", "--quick", "--out", f"x{text}", "--replications", "0"


def store_of_another_run(here, text):
    with sqlite3.connect(here / "audit.sqlite") as connection:
        connection.execute("CREATE TABLE work (key TEXT PRIMARY KEY, value TEXT, checksum TEXT)")
        connection.execute("CREATE TABLE configuration (key TEXT PRIMARY KEY, value TEXT)")
        connection.execute("INSERT INTO configuration VALUES (?, ?)", (text, text))
    connection.close()
    return "audit", "o24.hoeffding", "--quick", "--out", "."


def scheduler(here, text):
    return (
        "audit", "o24.hoeffding", "--quick", "--backend", "dask", "--scheduler", f"tcp://{text}",
    )  # fmt: skip


CHANNELS = [
    file_name, missing_file, array_name, tensor_name, encoder, libraries, origin_of_features,
    label_option, groups, strata, option, unknown_option, command, statement, policy, cost, arm,
    encoder_option, image, folder, field, out, store, store_of_another_run, scheduler,
]  # fmt: skip


# Half of them in one text: one function escapes them, tried with each alone below. In two, as what
# follows an equals sign is no part of an option's name.
TEXTS = ["".join(SEQUENCES[first::2]) for first in range(2)]


@pytest.mark.parametrize("text", TEXTS, ids=["even", "odd"])
@pytest.mark.parametrize("channel", CHANNELS)
def test_nothing_that_a_terminal_obeys(run, here, channel, text):
    result = run(*channel(here, text))
    assert result.code in (0, 1, 2)
    assert "Traceback" not in result.err
    assert not obeyed(result.out)
    assert not obeyed(result.err, lines=1 if result.code == 2 else None)
    for page in here.rglob("report.html"):
        assert not obeyed(page.read_text())
    for document in here.rglob("results.json"):
        assert not obeyed(document.read_text())


@pytest.mark.parametrize("sequence", SEQUENCES, ids=ascii)
def test_results_in_hand(sequence):
    """In Python: what is printed of rankings, selections and errors, whatever models are called."""
    models = {f"a{sequence}": ROWS["a"], f"b{sequence}": 1.1 * ROWS["a"] + 0.1}
    ranking = gb.compare(models, ROWS["real"])
    ways = [str(ranking), repr(ranking), ranking.to_markdown(), ranking.to_latex()]
    ways += [ranking._repr_html_(), *(str(warning) for warning in ranking.warnings)]
    ways += [score.citation() for score in ranking.scores.values()]
    with pytest.raises(gb.InputError) as caught:
        gb.compare(models | {f"c{sequence}": ROWS["a"][:, :2]}, ROWS["real"])
    ways.append(str(caught.value))
    with pytest.raises(gb.InputError) as caught:
        files.read(f"x{sequence}.npy".replace("/", ""))
    ways.append(str(caught.value))
    for text in ways:
        assert not obeyed(text), text


def test_the_probe_sees_each_of_them():
    """Negative control."""
    for sequence in SEQUENCES:
        assert obeyed(f"before {sequence} after", lines=0)
    assert not obeyed("Fréchet 95\u202f% ≥ α — “x”\n")
    assert os.linesep == "\n"
