"""Sub-folders become labels; what files say of groups and strata is kept."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
import zipfile

import numpy as np
import pytest

import genbounds as gb
from genbounds import features, files
from genbounds.cli import main
from tests.features.conftest import N, pictures, png
from tests.features.test_extract import Toy
from tests.refusal import refused

NAMES = [f"{folder}{number}.png" for number, folder in enumerate(["cats/", "dogs/old/", ""] * 3)]


def folder_of_images(root):
    for name, pixels in zip(NAMES, pictures(), strict=False):
        path = root / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(pixels))
    return root / "images"


def zip_of_images(root):
    with zipfile.ZipFile(root / "images.zip", "w") as archive:
        for name, pixels in zip(NAMES, pictures(), strict=False):
            archive.writestr(name, png(pixels))
    return root / "images.zip"


def tar_of_images(root, *, mode="w", name="images.tar"):
    with tarfile.open(root / name, mode) as archive:
        for member, pixels in zip(NAMES, pictures(), strict=False):
            info, content = tarfile.TarInfo(member), png(pixels)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return root / name


def tgz_of_images(root):
    return tar_of_images(root, mode="w:gz", name="images.tar.gz")


def folders(names):
    return [name.rpartition("/")[0] or "." for name in names]


@pytest.mark.parametrize("make", [folder_of_images, zip_of_images, tar_of_images, tgz_of_images])
@pytest.mark.parametrize("suffix", [".safetensors", ".npz"])
def test_sub_folders_are_labels(tmp_path, make, suffix):
    out = tmp_path / f"x{suffix}"
    source = features.open_source([make(tmp_path)])
    features.extract(source, Toy(), out=out)
    archive = "tar" in make.__name__ or "tgz" in make.__name__
    expected = folders(NAMES if archive else sorted(NAMES))
    found = files.read_labels(out)
    assert found.groups is None
    assert found.strata.tolist() == expected
    assert files.read_labels(out, groups="labels").groups.tolist() == expected
    assert files.read_metadata(out)["encoder"] == "toy"
    images = [np.asarray(source.decode(item.content), float) for item in source.items()]
    for row, image in zip(files.read_features(out), images, strict=True):
        assert (row[:3] == image.mean((0, 1))).all()


@pytest.mark.parametrize("make", [folder_of_images, tgz_of_images])
def test_labels_survive_an_interruption(tmp_path, make):
    path = make(tmp_path)
    for name, fail_at in {"whole": None, "cut": 3}.items():
        source = features.open_source([path])
        arguments = {"out": tmp_path / f"{name}.safetensors", "batch": 2, "block": 2}
        if fail_at:
            with pytest.raises(KeyboardInterrupt):
                features.extract(source, Toy(fail_at=fail_at), **arguments)
            source = features.open_source([path])
        features.extract(source, Toy(), **arguments)
    whole, cut = (tmp_path / f"{name}.safetensors" for name in ("whole", "cut"))
    assert whole.read_bytes() == cut.read_bytes()
    assert files.read_labels(cut).strata is not None


def test_one_folder_is_no_label(tmp_path):
    for number, pixels in enumerate(pictures()):
        (tmp_path / "in" / "only").mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / "only" / f"{number}.png").write_bytes(png(pixels))
    out = tmp_path / "x.safetensors"
    features.extract(features.open_source([tmp_path / "in"]), Toy(), out=out)
    assert files.read_labels(out).strata is None


def test_names_that_are_not_utf8(tmp_path):
    """They are shown as everything else shows them, so that every reader can read the file."""
    from safetensors import safe_open

    for number, name in enumerate([b"caf\xe9", b"esc\x1b[31m"]):
        folder = os.path.join(os.fsencode(tmp_path), b"in", name)
        os.makedirs(folder)
        with open(os.path.join(folder, b"\xff%d.png" % number), "wb") as file:
            file.write(png(pictures()[number]))
    out = tmp_path / "x.safetensors"
    assert features.extract(features.open_source([tmp_path / "in"]), Toy(), out=out).n == 2
    assert files.read_labels(out).strata.tolist() == ["caf\\udce9", "esc\\x1b[31m"]
    with safe_open(out, framework="numpy") as file:
        assert file.get_tensor("labels").tolist() == [0, 1]


def test_files_of_features_pass_their_labels_on(media, tmp_path, caplog):
    rows = np.random.default_rng(0).normal(size=(6, 3))
    marks = {"groups": np.arange(6) // 2, "labels": np.array(list("aabbcc"))}
    np.savez(tmp_path / "a.npz", features=rows, **marks)
    np.savez(tmp_path / "b.npz", features=rows, labels=np.arange(6), strata=np.eye(6))
    np.savez(tmp_path / "c.npz", arr_0=np.stack(pictures()), labels=np.arange(N))
    none = features.load_encoder("none")

    def converted(*names, encoder=none):
        source = features.open_source([tmp_path / f"{name}.npz" for name in names])
        features.extract(source, encoder, out=tmp_path / "x.safetensors", batch=2)
        return files.read_labels(tmp_path / "x.safetensors")

    found = converted("a")
    assert (found.groups == marks["groups"]).all()
    assert (found.strata == marks["labels"]).all()
    assert converted("b").strata.tolist() == list(range(6))
    assert "strata" in caplog.text  # not one label a row
    caplog.clear()
    both = converted("a", "b")  # numbers beside texts are texts; groups are not in both
    assert both.strata.tolist() == [*"aabbcc", *"012345"]
    assert both.groups is None
    assert "groups" in caplog.text
    assert converted("c", encoder=Toy()).strata.tolist() == list(range(N))


def test_reference_packs_of_guided_diffusion(tmp_path, caplog):
    """Images with statistics beside them: a score takes the statistics, an encoder the images."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 4))
    np.savez(
        tmp_path / "pack.npz",
        arr_0=rng.integers(0, 256, size=(6, 5, 5, 3), dtype=np.uint8),
        arr_1=np.arange(6) % 3,
        mu=rows.mean(0),
        sigma=np.cov(rows, rowvar=False),
        mu_s=np.zeros(3),
        sigma_s=np.eye(3),
    )
    held = files.read(tmp_path / "pack.npz")
    np.testing.assert_allclose(held.mean, rows.mean(0))
    assert held.n is None  # of more images than the pack holds
    assert "pack.npz: its statistics (mu, sigma) are taken" in caplog.text
    assert not files.read_header(tmp_path / "pack.npz").images
    source = features.open_source([tmp_path / "pack.npz"])
    assert source.count == 6
    assert source.labels()["labels"].tolist() == [0, 1, 2, 0, 1, 2]
    np.savez(tmp_path / "both.npz", arr_0=rows, mu=rows.mean(0), sigma=np.cov(rows, rowvar=False))
    with refused("both.npz", "ambiguous"):
        files.read(tmp_path / "both.npz")


@pytest.fixture
def packs(tmp_path):
    """A pack of the public form, and statistics and rows of spatial features to score with it."""
    rng = np.random.default_rng(1)
    rows, spatial = rng.normal(size=(500, 4)), rng.normal(size=(500, 3))
    np.savez(
        tmp_path / "pack.npz",
        arr_0=rng.integers(0, 256, size=(6, 5, 5, 3), dtype=np.uint8),
        mu=rows.mean(0),
        sigma=np.cov(rows, rowvar=False),
        mu_s=spatial.mean(0),
        sigma_s=np.cov(spatial, rowvar=False),
    )
    np.savez(tmp_path / "fid.npz", mu=rows.mean(0), sigma=np.cov(rows, rowvar=False), n=500)
    np.save(tmp_path / "spatial.npy", 1.5 * rng.normal(size=(400, 3)))
    return tmp_path


def test_a_known_pack_says_its_n(packs, caplog, monkeypatch):
    """By the digest of the whole file; another file of the same size is not known."""
    path = packs / "pack.npz"
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    assert files.read_statistics(path).n is None
    monkeypatch.setitem(files.KNOWN_PACKS, digest, (len(content), 1_281_167))
    assert files.read_statistics(path).n == 1_281_167
    assert "(mu, sigma; n = 1,281,167) are taken" in caplog.text
    at = content.index(b"PK\x01\x02") + 12  # when its first array was packed
    other = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
    (packs / "other.npz").write_bytes(other)
    assert files.read_statistics(packs / "other.npz").n is None


def test_sfid_takes_the_statistics_of_spatial_features(packs, capsys):
    args = [str(packs / "pack.npz"), str(packs / "spatial.npy"), "--json"]
    assert main(["score", *args, "--metric", "sfid"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    with np.load(packs / "pack.npz") as pack:
        real = gb.Moments(pack["mu_s"], pack["sigma_s"])
    expected = gb.frechet_distance(np.load(packs / "spatial.npy"), real)
    assert (row["metric"], row["value"]) == ("sfid", pytest.approx(expected.value, rel=1e-12))
    assert main(["score", *args]) == 2  # 4 features beside 3
    assert main(["score", *args[:1], str(packs / "fid.npz"), "--metric", "sfid"]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.endswith("fid.npz: has statistics and no mu_s and sigma_s, which are needed here.")
    np.savez(packs / "half.npz", mu_s=np.zeros(4))
    assert main(["score", str(packs / "half.npz"), *args[1:], "--metric", "sfid"]) == 2
    said = capsys.readouterr().err
    assert said.endswith("half.npz: has statistics and no sigma_s, which is needed here.\n")
