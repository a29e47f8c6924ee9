"""Features remember their items; pages show them as small pictures."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
import zipfile
from base64 import b64decode

import numpy as np
import pytest
from PIL import Image

from genbounds import files
from genbounds.features import extract, load_encoder, open_source
from genbounds.features.thumbnails import LARGEST, Pictures, pictures_of, thumbnails

N = 6
ODD = "<img src=x onerror=alert(1)>&\"'.png"


def picture(number, side=60):
    return np.full((side, side, 3), 40 * number, dtype=np.uint8)


def png(array):
    file = io.BytesIO()
    Image.fromarray(array).save(file, "PNG")
    return file.getvalue()


def opened(uri):
    head, _, data = uri.partition(";base64,")
    assert head in ("data:image/jpeg", "data:image/png")
    return np.asarray(Image.open(io.BytesIO(b64decode(data))))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "photos"
    (folder / "b").mkdir(parents=True)
    for number in range(N):
        name = ODD if number == 0 else f"b/{number}.png"
        (folder / name).write_bytes(png(picture(number)))
    return folder


def packed(folder, suffix):
    """The pictures of a folder as an archive or an array; names in their order."""
    out = folder.parent / f"packed{suffix}"
    names = open_source([folder]).names()
    if suffix == ".npy":
        np.save(out, np.stack([picture(number) for number in range(N)]))
    elif suffix == ".zip":
        with zipfile.ZipFile(out, "w") as archive:
            for name in names:
                archive.write(folder / name, name)
    else:
        with tarfile.open(out, "w:gz" if suffix == ".tar.gz" else "w") as archive:
            for name in names:
                archive.add(folder / name, name)
    return out


def features(source, out):
    encoder = load_encoder("tests.features.toy:moments")
    extract(open_source([source]), encoder, out=out)
    return out


def greys(found):
    return {row: int(opened(uri)[5, 5, 0]) for row, uri in found.items()}


@pytest.mark.parametrize("suffix", ["", ".zip", ".tar", ".tar.gz", ".npy"])
@pytest.mark.parametrize("form", [".safetensors", ".npz"])
def test_features_remember_their_items(folder, tmp_path, suffix, form):
    source = packed(folder, suffix) if suffix else folder
    out = features(source, tmp_path / "made" / f"x{form}")
    found = pictures_of(out, N)
    assert found.problem == ""
    assert greys(found.of([5, 1])) == pytest.approx({5: 200, 1: 40}, abs=2)
    if suffix != ".npy":
        assert found.name(1) == "b/1.png"
        assert found.name(0) == ODD
    assert files.read_labels(out).strata is None or suffix != ".npy"  # labels are what they were


def test_images_that_lie_elsewhere_must_be_named(folder, tmp_path, monkeypatch):
    out = features(folder, tmp_path / "made" / "x.safetensors")
    monkeypatch.chdir(tmp_path / "made")
    found = pictures_of(out, N)
    assert "photos, which is in neither its folder nor this one" in found.problem
    assert found.of(range(N)) == {}
    assert found.name(1) == "b/1.png"
    assert len(pictures_of(out, N, folder).of(range(N))) == N


def test_both_may_be_moved_together(folder, tmp_path, monkeypatch):
    features(folder, tmp_path / "made" / "x.safetensors")
    there = tmp_path / "elsewhere"
    there.mkdir()
    shutil.move(tmp_path / "photos", there / "photos")
    shutil.move(tmp_path / "made", there / "made")
    monkeypatch.chdir(there)
    assert len(pictures_of(there / "made" / "x.safetensors", N).of(range(N))) == N


def test_pictures_are_found_by_name_where_some_are_gone(folder, tmp_path):
    out = features(folder, tmp_path / "x.safetensors")
    (folder / "b" / "1.png").unlink()
    (folder / "a.png").write_bytes(png(picture(6)))
    assert greys(pictures_of(out, N).of(range(N))) == pytest.approx(
        {0: 0, 2: 80, 3: 120, 4: 160, 5: 200}, abs=2
    )


def test_what_is_not_at_hand_is_said_in_one_line(folder, tmp_path):
    out = features(folder, tmp_path / "x.safetensors")
    shutil.rmtree(folder)
    gone = pictures_of(out, N)
    assert "photos" in gone.problem
    assert "\n" not in gone.problem
    assert gone.of([0]) == {}
    assert gone.name(1) == "b/1.png"  # the name is still known
    np.save(tmp_path / "y.npy", np.ones((N, 2)))
    assert "--images" in pictures_of(tmp_path / "y.npy", N).problem
    np.save(tmp_path / "few.npy", np.stack([picture(0)] * 3))
    few = pictures_of(tmp_path / "y.npy", N, tmp_path / "few.npy").problem
    assert "does not hold" in few
    assert few.endswith(": 3 images for 6 rows")


def test_images_of_other_names_are_not_those_of_the_rows(folder, tmp_path):
    out = features(folder, tmp_path / "x.safetensors")
    for number, file in enumerate(sorted(folder.rglob("*.png"))):
        file.rename(folder / f"other-{number}.png")
    assert "none of its 6 images has the name of one of 6 rows" in pictures_of(out, N).problem


@pytest.mark.parametrize("source", ['["\\u0000"]', '["/dev/stdin"]', "[[1]]", "[" * 5000, '["."]'])
def test_a_hostile_source_does_no_harm(tmp_path, source):
    with files.open_features_writer(
        tmp_path / "x.safetensors", shape=(2, 1), dtype=np.dtype("f4"), metadata={"source": source}
    ) as write:
        write(np.ones((2, 1), dtype=np.float32))
    assert pictures_of(tmp_path / "x.safetensors", 2).problem


def test_damaged_and_huge_pictures_are_left_out(folder):
    (folder / "b" / "1.png").write_bytes(b"no picture")
    # A header that claims 30,000 x 30,000 pixels.
    bomb = bytearray(png(picture(2)))
    bomb[16:24] = (30_000).to_bytes(4, "big") * 2
    (folder / "b" / "2.png").write_bytes(bytes(bomb))
    assert set(thumbnails(open_source([folder]), range(N + 3))) == {0, 3, 4, 5}


def test_a_picture_carries_nothing_but_pixels():
    for shape, kept in (((300, 100, 3), (96, 32, 3)), ((40, 10, 3), (40, 10, 3))):
        image = Image.fromarray(np.full(shape, 255, dtype=np.uint8))
        image.info["icc_profile"] = np.random.default_rng(0).bytes(10_000)
        uri = thumbnails([image], [0])[0]
        assert opened(uri).shape == kept
        assert len(uri) < 2_000
    noise = np.random.default_rng(0).integers(0, 256, (500, 500, 3), dtype=np.uint8)
    assert len(thumbnails([noise], [0])[0]) < LARGEST


def test_arrays_in_memory():
    grey = np.linspace(0.0, 1.0, 64).reshape(1, 8, 8)
    found = opened(thumbnails(grey, [0, 1])[0])  # there is no number 1
    assert found[..., 0].tolist() == (grey[0] * 255).round().astype(int).tolist()
    deep = Image.fromarray(np.full((4, 4), 65_535, dtype=np.uint16))
    assert opened(thumbnails([deep], [0])[0]).min() == 255
    clear = Image.new("RGBA", (4, 4), (0, 0, 0, 0))
    assert opened(thumbnails([clear], [0])[0]).min() == 255  # transparent is white
    assert thumbnails(["text", np.ones((2, 2, 2, 2))], [0, 1]) == {}
    assert Pictures(contents=grey).name(3) == "row 3"


def test_the_names_are_part_of_the_digest(folder, tmp_path):
    """A file whose names were changed by hand is made again."""
    out = features(folder, tmp_path / "x.npz")
    first = out.read_bytes()
    with np.load(out) as held:
        arrays = dict(held)
    arrays["items"] = arrays["items"][::-1]
    np.savez(out, **arrays)
    features(folder, out)
    assert out.read_bytes() == first
    with np.load(out) as held:
        assert json.loads(bytes(held["metadata"]))["source"] == '["photos"]'
