"""Files of the usual tools: we read theirs, they read ours."""

from __future__ import annotations

import sys
from unittest import mock

import numpy as np
import pytest

from experiments.benchmarks.peers import load
from genbounds import features, files
from genbounds.estimators import Moments
from tests.features.conftest import missing
from tests.refusal import refused

X = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
Y = 1.0 + np.random.default_rng(1).normal(size=(60, 4)).astype(np.float32)


def peer(module):
    found = load(module)
    if found is None:
        missing(f"{module} is not installed (make encoders installs it)")
    return found


def moments_file(tmp_path, rows, name):
    """Write statistics by way of the whole pipeline."""
    np.save(tmp_path / "rows.npy", rows)
    source = features.open_source([tmp_path / "rows.npy"])
    features.extract(source, features.load_encoder("none"), moments=tmp_path / name)
    return tmp_path / name


def test_pytorch_fid_reads_ours(tmp_path):
    fid = peer("pytorch_fid.fid_score")
    ours = moments_file(tmp_path, X, "ours.npz")
    mean, cov = fid.compute_statistics_of_path(str(ours), None, 1, 4, "cpu")
    np.testing.assert_allclose(mean, X.mean(0, dtype=float), rtol=1e-12)
    np.testing.assert_allclose(cov, np.cov(X.astype(float), rowvar=False), rtol=1e-12)


def test_we_read_pytorch_fid(tmp_path):
    """Through its own writer, with its network replaced by the features at hand."""
    fid = peer("pytorch_fid.fid_score")
    folder = tmp_path / "images"
    folder.mkdir()
    (folder / "x.png").touch()
    with (
        mock.patch.object(fid, "get_activations", return_value=X),
        mock.patch.object(fid, "InceptionV3"),
    ):
        fid.InceptionV3.BLOCK_INDEX_BY_DIM = {4: 3}
        fid.save_fid_stats([str(folder), str(tmp_path / "theirs.npz")], 1, "cpu", 4)
    ours = Moments.load(tmp_path / "theirs.npz")
    assert ours.n is None
    np.testing.assert_allclose(ours.mean, X.mean(0), rtol=1e-12)
    np.testing.assert_allclose(ours.cov, np.cov(X, rowvar=False), rtol=1e-12)


def test_clean_fid_both_ways(tmp_path, monkeypatch):
    fid = peer("cleanfid.fid")
    stats = peer("cleanfid.features")
    folder = tmp_path / "stats"
    folder.mkdir()
    monkeypatch.setattr(sys.modules["cleanfid"], "__file__", str(tmp_path / "__init__.py"))
    with (
        mock.patch.object(fid, "build_feature_extractor"),
        mock.patch.object(fid, "get_folder_features", return_value=X),
    ):
        fid.make_custom_stats("toy", "nowhere", device="cpu")
    theirs = files.read_statistics(folder / "toy_clean_custom_na.npz")
    np.testing.assert_allclose(theirs.mean, X.mean(0), rtol=1e-12)
    np.testing.assert_allclose(theirs.cov, np.cov(X, rowvar=False), rtol=1e-12)
    kid = files.read_features(folder / "toy_clean_custom_na_kid.npz")
    assert (kid == X).all()
    moments_file(tmp_path, Y, "stats/ours_clean_custom_na.npz")
    mean, cov = stats.get_reference_statistics("ours", "na", split="custom")
    np.testing.assert_allclose(mean, Y.mean(0, dtype=float), rtol=1e-12)
    np.testing.assert_allclose(cov, np.cov(Y.astype(float), rowvar=False), rtol=1e-12)


def test_we_read_torch_fidelity(tmp_path):
    """Its cache of statistics and of features, through its own writer."""
    torch = pytest.importorskip("torch")
    metric = peer("torch_fidelity.metric_fid")
    utils = peer("torch_fidelity.utils")
    options = {"cache": True, "cache_root": str(tmp_path), "verbose": False}
    made = utils.cache_lookup_one_recompute_on_miss(
        "toy-stat", lambda: metric.fid_features_to_statistics(torch.from_numpy(X)), **options
    )
    (path,) = tmp_path.rglob("toy-stat.pt")
    ours = files.read_statistics(path)
    np.testing.assert_allclose(ours.mean, made["mu"], rtol=1e-7)
    np.testing.assert_allclose(ours.cov, made["sigma"], rtol=1e-12)
    utils.cache_lookup_one_recompute_on_miss("toy", lambda: torch.from_numpy(X), **options)
    (path,) = tmp_path.rglob("toy.pt")
    assert (files.read_features(path) == X).all()


def test_dgm_eval(tmp_path):
    """Its files are what NumPy writes of one array called reps, and it reads the same."""
    np.savez(tmp_path / "theirs.npz", reps=X)
    assert (files.read_features(tmp_path / "theirs.npz") == X).all()
    source = features.open_source([tmp_path / "theirs.npz"])
    features.extract(source, features.load_encoder("none"), out=tmp_path / "ours.npz", batch=7)
    with np.load(tmp_path / "ours.npz") as archive:
        assert (archive["reps"] == X).all()


@pytest.mark.parametrize("suffix", [".safetensors", ".npy", ".npz"])
def test_libraries_read_what_is_written(tmp_path, suffix):
    from safetensors.numpy import load_file

    with files.open_features_writer(
        tmp_path / f"x{suffix}", shape=X.shape, dtype=X.dtype, metadata={"encoder": "é"}
    ) as write:
        write(X[:20])
        write(X[20:].astype(">f4"))
    path = tmp_path / f"x{suffix}"
    readers = {
        ".safetensors": lambda: load_file(path)["features"],
        ".npy": lambda: np.load(path, allow_pickle=False),
        ".npz": lambda: np.load(path, allow_pickle=False)["reps"],
    }
    assert (readers[suffix]() == X).all()
    assert files.read_metadata(path) == ({} if suffix == ".npy" else {"encoder": "é"})


def test_a_writer_that_gets_too_little_leaves_nothing(tmp_path):
    writer = files.open_features_writer(tmp_path / "x.npy", shape=(3, 4), dtype=X.dtype)
    with refused("x.npy", "3 rows"), writer as write:
        write(X[:2])
    assert list(tmp_path.iterdir()) == []


def test_pickled_arrays_cannot_run_code(tmp_path):
    """NumPy arrays in a .pt are taken apart, not built by NumPy; anything else is refused."""
    import os
    import pickle

    torch = pytest.importorskip("torch")

    class Payload:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "ran"),)

    torch.save({"mu": Payload(), "sigma": X}, tmp_path / "x.pt")
    with refused("x.pt"):
        files.read(tmp_path / "x.pt")
    objects = np.array([Payload()], dtype=object)
    torch.save({"features": objects}, tmp_path / "y.pt", pickle_protocol=pickle.DEFAULT_PROTOCOL)
    with refused("y.pt"):
        files.read(tmp_path / "y.pt")
    for wrong in (np.array(["a"]), np.zeros(2, dtype="f4,i4"), np.zeros((2, 2), dtype=complex)):
        torch.save({"features": wrong}, tmp_path / "z.pt")
        with refused("z.pt"):
            files.read(tmp_path / "z.pt")
    assert not (tmp_path / "ran").exists()
    for array in (X, np.asfortranarray(X), X.astype(">f8"), X.astype(np.float16)):
        torch.save({"features": array}, tmp_path / "fine.pt")
        assert (files.read(tmp_path / "fine.pt") == array).all()
