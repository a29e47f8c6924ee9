"""Readers: the same items in the same order from every container; errors that name the item."""

from __future__ import annotations

import gzip
import io
import os
import resource
import tarfile
import zipfile

import numpy as np
import pytest
from PIL import Image

from genbounds.features import open_source
from genbounds.validation import InputError
from tests.features.conftest import N, pictures, png
from tests.fuzz.seeds import blank_png, looping_tar, seeds


def arrays(source, start=0):
    return [np.asarray(source.decode(item.content)) for item in source.items(start)]


@pytest.mark.parametrize("name", ["folder", "images.zip"])
def test_in_the_order_of_their_paths(media, ordered_by_path, name):
    source = open_source([media / name])
    assert (source.kind, source.count) == ("images", N)
    assert all((a == b).all() for a, b in zip(arrays(source), ordered_by_path, strict=True))


@pytest.mark.parametrize(
    ("name", "count"),
    [("shard.tar", N), ("shard.tar.gz", None), ("samples.npz", N), ("samples.npy", N)],
)
def test_shards_in_their_own_order(media, name, count):
    source = open_source([media / name])
    assert source.count == count
    assert all((a == b).all() for a, b in zip(arrays(source), pictures(), strict=True))


@pytest.mark.parametrize(
    "names", [["folder"], ["shard.tar", "images.zip"], ["shard.tar.gz"] * 2, ["samples.npz"] * 2]
)
@pytest.mark.parametrize("start", [0, 3, N, N + 4])
def test_starts_anywhere(media, names, start):
    source = open_source([media / name for name in names])
    whole = arrays(source)
    assert len(whole) == N * len(names)
    rest = arrays(source, start)
    assert len(rest) == max(len(whole) - start, 0)
    assert all((a == b).all() for a, b in zip(rest, whole[start:], strict=True))


def test_texts(media):
    expected = ["one text", "ein zweiter, mit Umlaut: ü", "three"]
    for name in ("texts.txt", "texts.jsonl"):
        source = open_source([media / name])
        assert (source.kind, source.count) == ("texts", 3)
        assert [item.content for item in source.items()] == expected
    source = open_source([media / "texts.jsonl"], field="caption")
    assert [item.content for item in source.items(1)] == [t.upper() for t in expected[1:]]


def test_files(media):
    source = open_source([media / "folder"], items="files")
    assert source.count == N + 1  # with readme.txt, without what is hidden
    assert [item.content.name for item in source.items()][-1] == "readme.txt"


def test_a_fingerprint_follows_the_content(media, tmp_path):
    for name, image in enumerate(pictures()[:2]):
        (tmp_path / f"{name}.png").write_bytes(png(image))
    before = open_source([tmp_path]).fingerprint()
    assert open_source([tmp_path]).fingerprint() == before
    os.utime(tmp_path / "0.png", (1, 1))
    after = open_source([tmp_path]).fingerprint()
    assert after != before
    (tmp_path / "0.png").rename(tmp_path / "2.png")
    assert open_source([tmp_path]).fingerprint() != after


def bad_folder(tmp_path):
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "x.png").write_bytes(b"no image")
    return tmp_path / "bad"


def cut_image(tmp_path):
    (tmp_path / "cut.png").write_bytes(png(pictures()[0])[:-40])
    return tmp_path


def empty_folder(tmp_path):
    return tmp_path


def missing(tmp_path):
    return tmp_path / "gone"


def foreign(tmp_path):
    (tmp_path / "x.csv").write_text("1")
    return tmp_path / "x.csv"


def no_zip(tmp_path):
    (tmp_path / "x.zip").write_bytes(b"PK nothing")
    return tmp_path / "x.zip"


def zip_without_images(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("a.txt", "a")
    return tmp_path / "x.zip"


def cut_tar(tmp_path):
    (tmp_path / "x.tar").write_bytes(b"nothing at all" * 100)
    return tmp_path / "x.tar"


def tar_without_images(tmp_path):
    with tarfile.open(tmp_path / "x.tar.gz", "w:gz"):
        pass
    return tmp_path / "x.tar.gz"


def no_images(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((2, 3, 4, 5), dtype=np.uint8))
    return tmp_path / "x.npy"


def no_text(tmp_path):
    (tmp_path / "x.txt").write_text("\n \n")
    return tmp_path / "x.txt"


def latin(tmp_path):
    (tmp_path / "x.txt").write_bytes(b"fine\nna\xefve\n")
    return tmp_path / "x.txt"


def no_json(tmp_path):
    (tmp_path / "x.jsonl").write_text('"fine"\n{')
    return tmp_path / "x.jsonl"


def other_field(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"body": "a"}\n')
    return tmp_path / "x.jsonl"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (bad_folder, r"x\.png: is no image that Pillow reads"),
        (cut_image, r"cut\.png: is a damaged image"),
        (empty_folder, r"has no images"),
        (missing, r"gone: no such file or folder"),
        (foreign, r"x\.csv: is nothing that can be encoded"),
        (no_zip, r"x\.zip: cannot be read"),
        (zip_without_images, r"x\.zip: has no images"),
        (cut_tar, r"x\.tar: cannot be read"),
        (tar_without_images, r"x\.tar\.gz: has no images"),
        (no_images, r"x\.npy: holds an array of shape"),
        (no_text, r"x\.txt: has no text"),
        (latin, r"x\.txt, line 2: is not UTF-8"),
        (no_json, r"x\.jsonl, line 2: is not JSON"),
        (other_field, r"x\.jsonl, line 1: has no text called 'text'"),
    ],
)
def test_bad_input_is_named(tmp_path, make, message):
    from genbounds.features import extract
    from tests.features.test_extract import Toy

    with pytest.raises(InputError, match=message) as caught:
        extract(open_source([make(tmp_path)]), Toy(takes=None), out=tmp_path / "out.npy")
    assert "\n" not in str(caught.value)


HOSTILE = {
    "bomb.zip": (lambda: seeds(".zip")[8], r"a\.png\): claims to unpack .* no real images do"),
    "bomb.tgz": (lambda: seeds(".tgz")[-1], r"a\.png\): claims to unpack .* no real images do"),
    "blank.png": (
        lambda: blank_png(12_000, 12_000),
        r"is an image of 12000 × 12000 in [\d,]+ bytes",
    ),
    "circle.tar": (looping_tar, r"its members go round in a circle"),
    "name.tgz": (
        lambda: gzip.compress(tar_header(b"L", 1 << 40)),
        r"a header announces 1099511627776 bytes",
    ),
    "damaged.zip": (lambda: deflated_badly(), r"a\.png\): cannot be read \(Error -3"),
    "deep.jsonl": (lambda: b"[" * 5000, r"line 1: holds something else than a text"),
    "digits.jsonl": (lambda: b"9" * 5000, r"line 1: holds something else than a text"),
    "half.jsonl": (lambda: b'{"text": "\\ud800"}', r"line 1: holds half of a surrogate pair"),
}


def tar_header(kind, size):
    info = tarfile.TarInfo("x")
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT) + bytes(1024)


def deflated_badly():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.png", png(pictures()[0]))
    data = bytearray(buffer.getvalue())
    data[35:45] = b"\xff" * 10
    return bytes(data)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_input_is_refused(tmp_path, name):
    """What the fuzzer found, or would have to find: refused in one line, in little memory."""
    make, message = HOSTILE[name]
    (tmp_path / name).write_bytes(make())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError, match=message):
        arrays(open_source([tmp_path if name.endswith(".png") else tmp_path / name]))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kB


def test_arrays_that_are_no_images(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((5, 3)))
    with pytest.raises(InputError, match=r"holds float64 of shape \(5, 3\) where images"):
        open_source([tmp_path / "x.npy"], items="images")
    assert open_source([tmp_path / "x.npy"]).kind == "rows"
    np.savez(tmp_path / "x.npz", labels=np.zeros(5))
    with pytest.raises(InputError, match="holds no array where images"):
        open_source([tmp_path / "x.npz"], items="images")


def test_kinds_do_not_mix(media):
    with pytest.raises(InputError, match="encode them separately"):
        open_source([media / "folder", media / "texts.txt"])


def test_a_bomb_is_no_image(tmp_path, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 20)
    (tmp_path / "x.png").write_bytes(png(pictures()[0]))
    with pytest.raises(InputError, match="is no image"):
        arrays(open_source([tmp_path]))
