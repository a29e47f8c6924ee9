"""Readers: the same items in the same order from every container; errors that name the item."""

from __future__ import annotations

import gzip
import io
import os
import resource
import socket
import tarfile
import zipfile

import numpy as np
import pytest
from PIL import Image

from genbounds.features import extract, open_source
from tests.features.conftest import N, pictures, png
from tests.features.test_extract import Toy
from tests.fuzz.seeds import blank_png, damaged_header, hiding, looping_tar, renamed, seeds, tar
from tests.refusal import refused


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
@pytest.mark.parametrize("start", [3, N + 4])
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


def zipped() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for number, image in enumerate(pictures()[:3]):
            archive.writestr(f"{number}.png", png(image))
    return buffer.getvalue()


def zip_that_hides(tmp_path):
    (tmp_path / "x.zip").write_bytes(hiding(zipped()))
    return tmp_path / "x.zip"


def zip_without_an_ending(tmp_path):
    """In its directory an image is none."""
    (tmp_path / "x.zip").write_bytes(renamed(zipped(), b"1.png", b"1.pnf"))
    return tmp_path / "x.zip"


def zip_with_one_image_twice(tmp_path):
    """By its directory; in place of another one."""
    (tmp_path / "x.zip").write_bytes(renamed(zipped(), b"0.png", b"1.png"))
    return tmp_path / "x.zip"


def tar_with_a_damaged_header(tmp_path):
    images = {f"{number}.png": png(image) for number, image in enumerate(pictures()[:3])}
    (tmp_path / "x.tar").write_bytes(damaged_header(tar(images)))
    return tmp_path / "x.tar"


def tar_with_another_checksum(tmp_path):
    packed = gzip.compress(tar({"0.png": png(pictures()[0])}))
    (tmp_path / "x.tgz").write_bytes(packed[:-8] + bytes(4) + packed[-4:])
    return tmp_path / "x.tgz"


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


def pipe(tmp_path):
    """Whoever opens it waits for a writer, for ever."""
    (tmp_path / "a.png").write_bytes(png(pictures()[0]))
    os.mkfifo(tmp_path / "pipe.png")
    return tmp_path


def link_to_nothing(tmp_path):
    (tmp_path / "a.png").write_bytes(png(pictures()[0]))
    (tmp_path / "gone.png").symlink_to("nowhere.png")
    return tmp_path


def socket_file(tmp_path):
    here = os.getcwd()
    os.chdir(tmp_path)  # a socket's name may not be long
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket.png")
    os.chdir(here)
    return tmp_path


def huge_stack(tmp_path):
    """One image of 1.6 gigapixels, in a file that takes no space."""
    with (tmp_path / "x.npy").open("wb") as file:
        header = {"descr": "|u1", "fortran_order": False, "shape": (1, 40_000, 40_000)}
        np.lib.format.write_array_header_1_0(file, header)
        file.truncate(file.tell() + 40_000**2)
    return tmp_path / "x.npy"


def encapsulated(tmp_path):
    (tmp_path / "x.png").write_bytes(EPS)
    return tmp_path


EPS = b"""%!PS-Adobe-3.0 EPSF-3.0
%%BoundingBox: 0 0 8 8
%%EndComments
%%EOF
"""


def other_field(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"body": "a"}\n')
    return tmp_path / "x.jsonl"


BAD = {
    cut_tar: "x.tar", tar_without_images: "x.tar.gz", no_images: "x.npy",
    socket_file: "socket.png", encapsulated: "x.png", zip_that_hides: "x.zip",
    zip_without_an_ending: "x.zip", zip_with_one_image_twice: "x.zip",
    tar_with_a_damaged_header: "x.tar", tar_with_another_checksum: "x.tgz",
}  # fmt: skip


@pytest.mark.parametrize("make", BAD, ids=lambda make: make.__name__)
def test_bad_input_is_named(tmp_path, make):
    with refused(str(tmp_path), BAD[make]):
        extract(open_source([make(tmp_path)]), Toy(takes=None), out=tmp_path / "out.npy")


HOSTILE = {
    "bomb.zip": lambda: seeds(".zip")[8],
    "bomb.tgz": lambda: seeds(".tgz")[-1],
    "blank.png": lambda: blank_png(12_000, 12_000),
    "circle.tar": looping_tar,
    "name.tgz": lambda: gzip.compress(tar_header(b"L", 1 << 40)),
    "damaged.zip": lambda: deflated_badly(),
    "deep.jsonl": lambda: b"[" * 5000,
    "digits.jsonl": lambda: b"9" * 5000,
    "half.jsonl": lambda: b'{"text": "\\ud800"}',
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


@pytest.mark.parametrize("ending", ["txt", "jsonl", "zip", "tar", "tgz", "npz", "pt"])
def test_a_pipe_is_not_waited_for(tmp_path, ending):
    os.mkfifo(tmp_path / f"x.{ending}")
    with refused(f"x.{ending}", "regular file"):
        open_source([tmp_path / f"x.{ending}"])


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_input_is_refused(tmp_path, name):
    """What the fuzzer found, or would have to find: refused in one line, in little memory."""
    (tmp_path / name).write_bytes(HOSTILE[name]())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with refused() if name.endswith(".png") else refused(name):  # who encodes names the image
        arrays(open_source([tmp_path if name.endswith(".png") else tmp_path / name]))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kB


def test_an_image_starts_no_program(tmp_path, monkeypatch):
    """Pillow hands EPS to Ghostscript, whatever the file is called."""
    from PIL import EpsImagePlugin

    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "gs"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(EpsImagePlugin, "gs_binary", None)
    folder = tmp_path / "images"
    folder.mkdir()
    with refused():
        arrays(open_source([encapsulated(folder)]))
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("x.png", EPS)
    with refused():
        arrays(open_source([tmp_path / "x.zip"]))
    assert not (tmp_path / "ran").exists()


def test_the_formats_that_are_meant(tmp_path):
    """Under any of their names; a telephone's photograph is a JPEG with a second image behind."""
    picture = Image.fromarray(pictures()[0])
    for form, name in {"PNG": "a.jpg", "WEBP": "b.png", "TIFF": "c.tiff", "PPM": "d.ppm"}.items():
        options = {"lossless": True} if form == "WEBP" else {}
        picture.save(tmp_path / name, form, **options)
    picture.save(tmp_path / "e.jpg", "MPO", save_all=True, append_images=[picture])
    found = arrays(open_source([tmp_path]))
    assert len(found) == 5
    assert all((pixels == pictures()[0]).all() for pixels in found[:4])
    assert found[4].shape == pictures()[0].shape


def test_names_that_are_not_utf8(tmp_path):
    name = os.path.join(os.fsencode(tmp_path), b"caf\xe9.png")
    with open(name, "wb") as file:
        file.write(png(pictures()[0]))
    source = open_source([tmp_path])
    assert len(source.fingerprint()) == 64
    (item,) = source.items()
    assert item.label.endswith(r"caf\udce9.png")
    assert (arrays(source)[0] == pictures()[0]).all()


def test_arrays_that_are_no_images(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((5, 3)))
    with refused("x.npy", "float64", "(5, 3)"):
        open_source([tmp_path / "x.npy"], items="images")
    assert open_source([tmp_path / "x.npy"]).kind == "rows"
    np.savez(tmp_path / "x.npz", labels=np.zeros(5))
    with refused("x.npz"):
        open_source([tmp_path / "x.npz"], items="images")


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("packed", [False, True])
def test_arrays_of_images_in_any_order(tmp_path, order, packed):
    stack = np.asarray(np.stack(pictures()), order=order)
    (np.savez_compressed if packed else np.savez)(tmp_path / "x.npz", arr_0=stack)
    source = open_source([tmp_path / "x.npz"])
    for start in (0, 4):
        found = arrays(source, start)
        assert all((a == b).all() for a, b in zip(found, pictures()[start:], strict=True))


def test_an_image_beyond_the_limit_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 20)
    (tmp_path / "x.png").write_bytes(png(pictures()[0]))
    with refused():
        arrays(open_source([tmp_path]))
