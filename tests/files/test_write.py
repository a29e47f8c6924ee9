"""Whole files or nothing."""

from __future__ import annotations

import os
import stat

import numpy as np
import pytest

from genbounds import files
from genbounds.validation import InputError
from tests.files.made import COV, MEAN, X
from tests.refusal import refused


def test_atomic_write(tmp_path):
    path = tmp_path / "new" / "folder" / "ä.txt"
    files.atomic_write(path, "one\n")
    files.atomic_write(path, "zwei ✓\n")
    assert path.read_text(encoding="utf-8") == "zwei ✓\n"
    assert os.listdir(path.parent) == ["ä.txt"]
    umask = os.umask(0)
    os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask


def test_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "x.txt"
    files.atomic_write(path, "old")

    def interrupt(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        files.atomic_write(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["x.txt"]


def test_a_rename_is_followed_by_a_sync_of_the_folder(tmp_path, monkeypatch):
    """Without it a power failure can leave the old name, or none."""
    path, synced, real = tmp_path / "x.txt", [], os.fsync

    def watch(descriptor):
        mode = os.fstat(descriptor).st_mode
        synced.append(("folder" if stat.S_ISDIR(mode) else "file", path.exists()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", watch)
    files.atomic_write(path, "new")
    assert synced == [("file", False), ("folder", True)]


def test_who_reads_during_a_write_sees_the_whole_old_file(tmp_path):
    path = tmp_path / "x.txt"
    files.atomic_write(path, "old")
    with path.open() as reader:
        files.atomic_write(path, "new")
        assert reader.read() == "old"
    assert path.read_text() == "new"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (28, "the disk is full: free some space"),
        (30, "the file system is read-only"),
        (13, "no permission"),
        (122, "the disk quota is used up"),
    ],
)
def test_failing_write_is_one_line(tmp_path, monkeypatch, code, message):
    def fail(descriptor):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(InputError, match=message) as caught:
        files.atomic_write(tmp_path / "x.txt", "new")
    assert str(caught.value).startswith(f"{tmp_path / 'x.txt'}: cannot be written: ")
    assert os.listdir(tmp_path) == []


def test_unusable_targets(tmp_path):
    files.atomic_write(tmp_path / "file", "x")
    with pytest.raises(InputError, match="a part of the path is a file"):
        files.atomic_write(tmp_path / "file" / "x.txt", "x")
    with pytest.raises(InputError, match="it is a folder: give a file name"):
        files.atomic_write(tmp_path, "x")
    with pytest.raises(InputError, match=r"end the name in \.npz"):
        files.write_statistics(tmp_path / "stats.npy", MEAN, COV)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (X[3].tobytes(), X[4].tobytes()),
        (np.array([0, 1, 1], "<i4").tobytes(), np.array([0, 1, 0], "<i4").tobytes()),
        (b'\\"a\\"', b'\\"c\\"'),  # the name of a label
        (b'"labels": {', b'"babels": {'),
        (b'"features": {', b'"reps": {    '),
    ],
    ids=["a row", "labels", "a name", "no labels", "no features"],
)
def test_what_was_changed_in_a_file_of_ours_is_refused(tmp_path, old, new):
    """.safetensors has no checksums of its own; ours are digests in its metadata."""
    path = tmp_path / "x.safetensors"
    labels = np.array(["a", "b", "b"] * 10)
    with files.open_features_writer(
        path, shape=X.shape, dtype=X.dtype, labels={"labels": labels}
    ) as write:
        write(X[:7])
        write(X[7:])
    assert (files.read_features(path) == X).all()
    assert (files.read_labels(path, strata="labels").strata == labels).all()
    assert files.read_metadata(path) == {}
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new, 1))
    for named in (path, [path]):
        with refused("x.safetensors", "damaged"):
            files.read_features(named)
            files.read_labels(named, strata="labels")


def test_display_is_one_printable_line():
    assert files.display("a\nb\x1b[31m\udcff") == r"a\nb\x1b[31m\udcff"
    assert files.display("ä✓ ") == "ä✓ "
    assert len(files.display("x" * 10_000)) == 201
