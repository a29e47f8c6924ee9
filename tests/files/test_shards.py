"""Several files as one sample: the rows and labels of one file, or one clear line."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import numpy as np
import pytest

import genbounds as gb
from genbounds import files
from tests.files import made
from tests.files.made import IDS, WRITERS, X
from tests.refusal import refused
from tests.scratch import keep_in_memory, read_at_once

CUTS = (0, 7, 8, 30)
ORIGIN = {"encoder": "toy", "weights": "sha256:1", "preprocessing": "none"}


def write(path: Path, rows=X, *, labels=None, **metadata: str) -> Path:
    with files.open_features_writer(
        path, shape=rows.shape, dtype=rows.dtype, metadata=metadata, labels=labels
    ) as append:
        append(rows)
    return path


def shards(folder: Path, suffix: str = ".npz", **labels) -> list[Path]:
    """Write X in three files, with these labels beside the rows."""
    pieces = [slice(*cut) for cut in itertools.pairwise(CUTS)]
    return [
        write(
            folder / f"x-{k}{suffix}",
            X[piece],
            labels={name: np.asarray(values)[piece] for name, values in labels.items()},
            **ORIGIN,
        )
        for k, piece in enumerate(pieces)
    ]


def parts(folder: Path, bounds=CUTS, *, of: int | None = None, count: int = 30) -> list[Path]:
    """Write X as the parts of an extraction."""
    cuts = list(itertools.pairwise(bounds))
    return [
        write(
            folder / f"part-{k}.npz",
            X[start:stop],
            part=f"{k + 1}/{of or len(cuts)} {start}:{stop}/{count}",
        )
        for k, (start, stop) in enumerate(cuts)
    ]


@pytest.mark.parametrize("in_memory", [1 << 26, 16])
@pytest.mark.parametrize(("writer", "suffix"), WRITERS, ids=IDS)
def test_shards_of_every_format_are_one_array(tmp_path, monkeypatch, writer, suffix, in_memory):
    keep_in_memory(monkeypatch, in_memory)
    kind = X.dtype
    for k, (start, stop) in enumerate(itertools.pairwise(CUTS)):
        monkeypatch.setattr(made, "X", np.resize(X[start:stop], (30, 4)))  # writers take 30 rows
        (tmp_path / str(k)).mkdir()
        path = made.written(tmp_path / str(k), writer, suffix)
        if suffix == ".NPY":
            path.write_bytes(b"")
            with path.open("wb") as file:
                np.save(file, made.X.astype(">f4"))
            kind = np.dtype(">f4")
    paths = [tmp_path / str(k) / f"x{suffix}" for k in range(3)]
    found = files.read_features(paths)
    assert isinstance(found, np.memmap) == (in_memory == 16)
    assert found.dtype == kind
    assert not found.flags.writeable
    expected = [np.resize(X[cut[0] : cut[1]], (30, 4)) for cut in itertools.pairwise(CUTS)]
    assert (np.asarray(found) == np.concatenate(expected)).all()


def test_a_pattern_names_the_files_that_fit_in_the_order_of_their_names(tmp_path):
    shards(tmp_path)
    pattern = str(tmp_path / "x-*.npz")
    assert (files.read_features(pattern) == X).all()
    assert (files.read_features(Path(pattern)) == X).all()
    assert (files.read_features(str(tmp_path / "x-[12].npz")) == X[7:]).all()
    write(tmp_path / "a[1].npz", X[:3])  # the name of a file comes first
    assert (files.read_features(tmp_path / "a[1].npz") == X[:3]).all()


def test_numbers_in_names_count_by_value(tmp_path):
    """Also of folders; names that differ in zeros alone have an order, whichever the disk has."""
    order = [("1", "x-2"), ("1", "x-03"), ("1", "x-3"), ("1", "x-10"), ("2", "x-1"), ("10", "x")]
    for row, (folder, name) in reversed(list(zip(X, order, strict=False))):
        (tmp_path / folder).mkdir(exist_ok=True)
        write(tmp_path / folder / f"{name}.npz", row[None])
    found = files.read_features(str(tmp_path / "*" / "x*.npz"))
    assert (found == X[: len(order)]).all()


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_labels_and_the_encoder_are_joined(tmp_path, suffix):
    groups, strata = np.arange(30) // 3, np.array(["cat", "a long dog"] * 15)
    paths = shards(tmp_path, suffix, groups=groups, strata=strata)
    found = files.read_labels(paths)
    assert found.groups.tolist() == groups.tolist()
    assert found.strata.tolist() == strata.tolist()
    assert files.read_metadata(paths) == ORIGIN
    assert files.read_features(paths).origin == ORIGIN


def test_what_only_some_files_say_of_the_encoder_is_not_known_of_all(tmp_path):
    one = write(tmp_path / "1.npz", X[:10], **ORIGIN, libraries="torch 1", run="a")
    two = write(tmp_path / "2.npz", X[10:20], **ORIGIN, libraries="torch 2", run="a")
    assert files.read_metadata([one, two]) == ORIGIN | {"libraries": "torch 1; torch 2"}
    assert files.read_metadata([one, write(tmp_path / "3.npz", X[20:])]) == {}


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_parts_come_in_the_order_of_their_items(tmp_path, order):
    paths = parts(tmp_path)
    assert (files.read_features([paths[k] for k in order]) == X).all()


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ((0, 2), ("part-2.npz", "part 2 is missing")),
        ((1, 2), ("part-1.npz", "part 1 is missing")),
        ((0, 1), ("part-1.npz", "part 3 is missing")),
        ((0,), ("part-0.npz", "part 2 is missing")),
    ],
)
def test_a_missing_part_is_refused(tmp_path, named, words):
    paths = parts(tmp_path)
    with refused(*words):
        files.read_features([paths[k] for k in named])


def test_parts_that_do_not_fit_are_refused(tmp_path):
    paths = parts(tmp_path)
    (tmp_path / "copy").mkdir()
    copy = parts(tmp_path / "copy")
    with refused("copy/part-1.npz", "part 2 is there twice"):
        files.read_features([paths[0], paths[1], copy[1], paths[2]])
    whole = write(tmp_path / "whole.npz")
    with refused("part-0.npz is part 1 of 3", "whole.npz is none of it"):
        files.read_features([*paths, whole])
    (tmp_path / "more").mkdir()
    more = parts(tmp_path / "more", (0, 7, 8, 30, 31), count=31)
    with refused("part 1 of 3", "more/part-2.npz is none of it"):
        files.read_features([*paths[:2], more[2]])
    (tmp_path / "batch").mkdir()
    batch = parts(tmp_path / "batch", (0, 6, 8, 30))
    with refused("batch/part-1.npz: begins with item 7", "--batch"):
        files.read_features([paths[0], batch[1], paths[2]])


@pytest.mark.parametrize(
    "text", ["", "1/3", "a", "1/3 0:8/30", "0/0 0:7/7", "9" * 40 + "/3 0:7/7", "1/3 0:7/30\n"]
)
def test_a_damaged_part_is_refused(tmp_path, text):
    path = write(tmp_path / "x.npz", X[:7], part=text)
    with refused("x.npz", "part"):
        files.read_features([path])


def test_files_that_are_no_shards_of_one_sample_are_refused(tmp_path):
    one = write(tmp_path / "one.npz", X[:5], labels={"groups": np.arange(5)}, **ORIGIN)
    more = {"groups": np.arange(5)}
    cases = {
        "has 3 features and": write(tmp_path / "width.npz", X[:5, :3], labels=more),
        "holds float64 and": write(tmp_path / "type.npz", X[:5].astype("f8"), labels=more),
        "has no groups": write(tmp_path / "labels.npz", X[5:10]),
        "their weights differ": write(
            tmp_path / "encoder.npz", X[5:9], labels={"groups": np.arange(4)}, encoder="toy",
            weights="sha256:2", preprocessing="none",
        ),
    }  # fmt: skip
    for words, other in cases.items():
        with refused("one.npz", other.name, words):
            files.read_features([one, other])
    os.link(one, tmp_path / "link.npz")
    for again in (one, tmp_path / "link.npz"):
        with refused(again.name, "is named twice"):
            files.read_features([one, again])
    files.write_statistics(tmp_path / "mu.npz", made.MEAN, made.COV, 30)
    with refused("mu.npz", "statistics"):
        files.read_features([one, tmp_path / "mu.npz"])
    with refused("no files"):
        files.read_features([])
    with refused("nothing-", "no file has such a name"):
        files.read_features(tmp_path / "nothing-*.npz")
    with refused("gone.npz", "no such file"):
        files.read_features([one, tmp_path / "gone.npz"])
    with refused("not the name of a file"):
        files.read_features([3])
    texts = write(tmp_path / "texts.npz", X[5:7], labels={"groups": np.array(["a", "b"])})
    assert (files.read_features([one, texts]) == X[:7]).all()
    with refused("one.npz", "numbers in groups", "texts.npz"):
        files.read_labels([one, texts])


def test_a_shard_that_changes_meanwhile_is_refused(tmp_path):
    paths = shards(tmp_path)
    with files.contents_of(paths) as contents:
        os.utime(paths[1], (1, 1))
        with refused("x-1.npz", "changed"):
            contents.read()


def test_a_damaged_shard_is_named(tmp_path):
    paths = shards(tmp_path, ".safetensors")
    paths[2].write_bytes(paths[2].read_bytes()[:-1])
    with refused("x-2.safetensors", "damaged"):
        files.read(paths)


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_a_row_that_is_not_finite_is_named_in_its_own_file(tmp_path, monkeypatch, value):
    read_at_once(monkeypatch, 40)  # two rows and a half
    bad = X.copy()
    bad[12, 3] = value
    paths = [write(tmp_path / "one.npy", X[:8]), write(tmp_path / "two.npy", bad[8:])]
    with refused("two.npy", "in row 4:"):
        files.read(paths)


def test_a_list_of_names_is_no_array_of_numbers(tmp_path):
    with refused("holds names of files", "read_features"):
        gb.frechet_distance([str(path) for path in shards(tmp_path)], X)
