"""Every format is read as it was written."""

from __future__ import annotations

import numpy as np
import pytest

from genbounds import files
from genbounds.cli import main
from genbounds.validation import InputError
from tests.files.made import COV, IDS, MEAN, WRITERS, X, save_torch, written
from tests.refusal import refused
from tests.scratch import keep_in_memory


@pytest.mark.parametrize(("writer", "suffix"), WRITERS, ids=IDS)
@pytest.mark.parametrize("in_memory", [1 << 26, 16], ids=["memory", "scratch"])
def test_features_round_trip(tmp_path, monkeypatch, writer, suffix, in_memory):
    keep_in_memory(monkeypatch, in_memory)
    array = files.read_features(written(tmp_path, writer, suffix))
    assert array.shape == X.shape
    assert not array.flags.writeable
    np.testing.assert_array_equal(np.asarray(array, dtype=np.float32), X)


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "int8", "uint16", "int64", "bool"]
)
def test_types_survive(tmp_path, dtype):
    x = (X > 0).astype(dtype)
    from safetensors.numpy import save_file

    np.save(tmp_path / "x.npy", x)
    save_file({"features": x}, tmp_path / "x.safetensors")
    for name in ("x.npy", "x.safetensors"):
        array = files.read_features(tmp_path / name)
        assert array.dtype == x.dtype
        np.testing.assert_array_equal(array, x)


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_bfloat16_is_widened_exactly(tmp_path, suffix):
    torch = pytest.importorskip("torch")
    tensor = torch.from_numpy(X).to(torch.bfloat16)
    path = tmp_path / f"x{suffix}"
    if suffix == ".pt":
        save_torch(path, tensor)
    else:
        from safetensors.torch import save_file

        save_file({"features": tensor}, path)
    np.testing.assert_array_equal(files.read_features(path), tensor.float().numpy())


@pytest.mark.parametrize("n", [30, None])
def test_statistics_round_trip(tmp_path, n):
    path = tmp_path / "stats.npz"
    files.write_statistics(path, MEAN, COV, n)
    mean, cov, count = files.read_statistics(path)
    np.testing.assert_array_equal(mean, MEAN)
    np.testing.assert_array_equal(cov, COV)
    assert count == n
    with np.load(path, allow_pickle=False) as archive:  # what pytorch-fid does
        np.testing.assert_array_equal(archive["mu"], MEAN)
        np.testing.assert_array_equal(archive["sigma"], COV)


def test_statistics_keep_a_part_of_the_rows(tmp_path):
    """Rows are ours; pytorch-fid and clean-fid read mu and sigma by name, past everything else."""
    path = tmp_path / "stats.npz"
    files.write_statistics(path, MEAN, COV, 30, rows=X[:7], metadata={"encoder": "e"})
    found = files.read_statistics(path)
    assert found.rows.dtype == X.dtype
    np.testing.assert_array_equal(found.rows, X[:7])
    np.testing.assert_array_equal(found.cov, COV)
    with np.load(path, allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["mu"][:], MEAN)
        np.testing.assert_array_equal(archive["sigma"][:], COV)
    from safetensors.numpy import save_file

    arrays = {"mu": MEAN, "sigma": COV, "n": np.array([30]), "rows": X[:7]}
    save_file(arrays, tmp_path / "stats.safetensors")
    np.testing.assert_array_equal(files.read(tmp_path / "stats.safetensors").rows, X[:7])
    for wrong in (X[:7, :2], X[0], X[:0]):
        with refused("`rows`"):
            files.write_statistics(path, MEAN, COV, 30, rows=wrong)
    with refused("`cov`"):
        files.write_statistics(path, MEAN, COV[:2], 30)


def test_statistics_of_other_tools_are_read(tmp_path):
    np.savez(tmp_path / "fid.npz", mu=MEAN.astype("f4"), sigma=COV)
    statistics = files.read(tmp_path / "fid.npz")
    assert isinstance(statistics, files.Statistics)
    assert statistics.n is None
    assert statistics.mean.dtype == np.float64


def test_equal_statistics_are_equal_bytes(tmp_path):
    for name in ("a.npz", "b.npz"):
        files.write_statistics(tmp_path / name, MEAN, COV, 30)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_features_and_statistics_are_told_apart(tmp_path):
    files.write_statistics(tmp_path / "s.npz", MEAN, COV, 30)
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(InputError, match=r"s\.npz: holds statistics"):
        files.read_features(tmp_path / "s.npz")
    with pytest.raises(InputError, match=r"x\.npy: holds features of shape \(30, 4\)"):
        files.read_statistics(tmp_path / "x.npy")


def test_widths_are_compared_before_anything_is_read(tmp_path, monkeypatch):
    """Two files of 3.2 GB, by their headers: not a byte of their numbers is needed."""
    for name, shape in {"a.npy": (400_000, 2_000), "b.npy": (320_000, 2_500)}.items():
        with (tmp_path / name).open("wb") as file:
            header = {"descr": "<f4", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            file.truncate(file.tell() + 3_200_000_000)  # sparse

    def none(*arguments, **options):
        raise AssertionError("read")

    monkeypatch.setattr("tempfile.TemporaryFile", none)
    status = main(["score", str(tmp_path / "a.npy"), str(tmp_path / "b.npy")])
    assert status == 2


def test_shapes_by_their_headers(tmp_path):
    np.save(tmp_path / "x.npy", X)
    files.write_statistics(tmp_path / "s.npz", MEAN, COV, 30)
    assert files.read_header(tmp_path / "x.npy").shape == X.shape
    assert files.read_header(tmp_path / "s.npz").shape == (0, len(MEAN))
