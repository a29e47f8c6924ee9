"""Files of every format, made without the library."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

X = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
MEAN, COV = X.mean(0, dtype=np.float64), np.cov(X.astype(np.float64), rowvar=False)


def save_torch(path: Path, content: object) -> None:
    torch = pytest.importorskip("torch")
    with path.open("wb") as file:
        torch.save(content, file)


def write_npy(path):
    np.save(path, X)


def write_fortran(path):
    np.save(path, np.asfortranarray(X))


def write_big_endian(path):
    np.save(path, X.astype(">f4"))


def write_npz(path):
    np.savez(path, features=X, labels=np.arange(30))


def write_npz_reps(path):
    np.savez(path, reps=X)


def write_npz_arr_0(path):
    np.savez_compressed(path, X)


def write_safetensors(path):
    from safetensors.numpy import save_file

    save_file({"features": X, "other": X[:3]}, path)


def write_tensor(path):
    torch = pytest.importorskip("torch")
    save_torch(path, torch.from_numpy(X))


def write_tensors(path):
    torch = pytest.importorskip("torch")
    save_torch(path, {"reps": torch.from_numpy(X), "epoch": 3})


def write_legacy_tensor(path):
    torch = pytest.importorskip("torch")
    with path.open("wb") as file:
        torch.save(torch.from_numpy(X), file, _use_new_zipfile_serialization=False)


def write_parquet_columns(path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(pa.table({f"x{j}": X[:, j] for j in range(4)}), path, row_group_size=7)


def write_parquet_lists(path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    table = pa.table({"name": ["a"] * 30, "features": list(X)})
    pq.write_table(table, path, row_group_size=11)


def write_parquet_fixed_lists(path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    column = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 4)
    pq.write_table(pa.table({"reps": column}), path)


WRITERS = [
    (write_npy, ".npy"),
    (write_fortran, ".npy"),
    (write_big_endian, ".NPY"),
    (write_npz, ".npz"),
    (write_npz_reps, ".npz"),
    (write_npz_arr_0, ".npz"),
    (write_safetensors, ".safetensors"),
    (write_tensor, ".pt"),
    (write_tensors, ".pt"),
    (write_legacy_tensor, ".pth"),
    (write_parquet_columns, ".parquet"),
    (write_parquet_lists, ".parquet"),
    (write_parquet_fixed_lists, ".parquet"),
]
IDS = [writer.__name__.removeprefix("write_") for writer, _ in WRITERS]


def written(tmp_path: Path, writer, suffix: str) -> Path:
    path = tmp_path / f"x{suffix}"
    if suffix == ".NPY":  # np.save would append its own
        with path.open("wb") as file:
            np.save(file, X.astype(">f4"))
    else:
        writer(path)
    return path
