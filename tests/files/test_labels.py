"""Groups and strata beside features: every format, every way to be wrong."""

from __future__ import annotations

import json

import numpy as np
import pytest

from genbounds import files
from tests.files.made import X
from tests.refusal import refused

N = len(X)
NUMBERS = np.arange(N) // 3
TEXTS = np.array(["cat", "dög", "eel \x1b[31m"])[np.arange(N) % 3]


def npz(path, **arrays):
    np.savez(path, features=X, **arrays)


def safetensors(path, **arrays):
    """Texts as the format's own library would have them: numbers, and names in the metadata."""
    from safetensors.numpy import save_file

    metadata, numbers = {}, {}
    for name, array in arrays.items():
        numbers[name] = np.asarray(array)
        if numbers[name].dtype.kind in "US":
            known, numbers[name] = np.unique(array, return_inverse=True)
            metadata[f"{name}.names"] = json.dumps([str(text) for text in known])
    save_file({"features": X, **numbers}, path, metadata=metadata)


def parquet_lists(path, **arrays):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    table = pa.table({"features": list(X), **{k: list(v) for k, v in arrays.items()}})
    pq.write_table(table, path, row_group_size=7)


def parquet_columns(path, **arrays):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    columns = {f"x{j}": X[:, j] for j in range(X.shape[1])}
    table = pa.table(
        columns | {k: pa.array(list(v)).dictionary_encode() for k, v in arrays.items()}
    )
    pq.write_table(table, path, row_group_size=7)


def torch_file(path, **arrays):
    torch = pytest.importorskip("torch")
    with path.open("wb") as file:
        torch.save({"features": torch.from_numpy(X), **arrays}, file)


def written(suffix):
    """Through the library's own writer."""

    def write(path, **arrays):
        with files.open_features_writer(
            path, shape=X.shape, dtype=X.dtype, metadata={"encoder": "e"}, labels=arrays
        ) as rows:
            rows(X)

    return write, suffix


WRITERS = {
    "npz": (npz, ".npz"),
    "safetensors": (safetensors, ".safetensors"),
    "lists": (parquet_lists, ".parquet"),
    "columns": (parquet_columns, ".parquet"),
    "torch": (torch_file, ".pt"),
    "our npz": written(".npz"),
    "our safetensors": written(".safetensors"),
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("labels", [NUMBERS, TEXTS], ids=["numbers", "texts"])
def test_labels_come_back(tmp_path, name, labels):
    if name == "torch" and labels is TEXTS:
        pytest.skip("PyTorch's files hold no texts that are safe to read")
    if name == "columns" and labels is NUMBERS:
        labels = labels.astype(str)  # dictionaries of numbers are none that anybody writes
    write, suffix = WRITERS[name]
    path = tmp_path / f"x{suffix}"
    write(path, groups=NUMBERS if name != "columns" else NUMBERS.astype(str), labels=labels)
    found = files.read_labels(path)
    assert (found.groups.astype(np.int64) == NUMBERS).all()
    assert found.strata.dtype.kind == labels.dtype.kind
    assert (found.strata == labels).all()
    assert not found.strata.flags.writeable
    features = files.read_features(path)  # labels are no features
    assert (features == X).all()
    assert files.read_metadata(path) == ({"encoder": "e"} if name.startswith("our") else {})


def test_which_array_is_taken(tmp_path):
    path = tmp_path / "x.npz"
    npz(path, labels=NUMBERS, strata=NUMBERS + 1, clip=NUMBERS + 2)
    assert files.read_labels(path).groups is None
    assert (files.read_labels(path).strata == NUMBERS + 1).all()  # before labels
    chosen = files.read_labels(path, groups="clip", strata="labels")
    assert (chosen.groups == NUMBERS + 2).all()
    assert (chosen.strata == NUMBERS).all()
    np.save(tmp_path / "x.npy", X)
    plain = files.read_labels(tmp_path / "x.npy")
    assert plain.groups is None
    assert plain.strata is None


def test_a_column_that_is_a_feature_is_no_label(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x0": X[:, 0], "x1": X[:, 1], "prompt": NUMBERS}), path)
    with refused("x.parquet", "prompt is one of the numeric columns that are the features"):
        files.read_labels(path, groups="prompt")


def test_bytes_are_texts(tmp_path):
    npz(tmp_path / "x.npz", labels=np.char.encode(TEXTS, "utf-8"))
    assert (files.read_labels(tmp_path / "x.npz").strata == TEXTS).all()


WRONG = {
    "length": ({"groups": NUMBERS[:-1]}, {}, "one label a row"),
    "one-hot": ({"labels": np.eye(N, 3)}, {}, "one label a row"),
    "floats": ({"labels": NUMBERS / 2}, {}, "integers or texts"),
    "absent": ({"labels": NUMBERS}, {"strata": "classes"}, "only: features, labels"),
    "bytes": ({"labels": np.full(N, b"\xff")}, {}, "not UTF-8"),
    "objects": ({"labels": np.array([{}] * N)}, {}, "never loaded"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_labels_are_one_line(tmp_path, name):
    arrays, chosen, line = WRONG[name]
    np.savez(tmp_path / "x.npz", features=X, **arrays, allow_pickle=True)
    with refused("x.npz", line):
        files.read_labels(tmp_path / "x.npz", **chosen)
    assert (files.read_features(tmp_path / "x.npz") == X).all()  # who wants none is not bothered


@pytest.mark.parametrize("names", ['["a"]', "[1, 2]", "{", "[" * 5000, '{"a": 1}'])
def test_wrong_names_are_one_line(tmp_path, names):
    from safetensors.numpy import save_file

    arrays = {"features": X, "labels": NUMBERS}
    save_file(arrays, tmp_path / "x.safetensors", metadata={"labels.names": names})
    with refused("x.safetensors", "labels"):
        files.read_labels(tmp_path / "x.safetensors")


def test_tables(tmp_path):
    path = tmp_path / "x.parquet"
    for labels in ([None, *NUMBERS[1:]], [0.5] * N, [[1]] * N):
        parquet_lists(path, labels=labels)
        with refused("x.parquet"):
            files.read_labels(path)


def test_a_long_name_for_many_rows_is_refused(tmp_path):
    """A text of a kilobyte is stored once, and would be unpacked for every row: 400 MB."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq
    from safetensors.numpy import save_file

    n, text = 100_000, "x" * 1000
    table = {"features": [[1.0]] * n, "labels": pa.array([text] * n).dictionary_encode()}
    pq.write_table(pa.table(table), tmp_path / "x.parquet")
    save_file(
        {"features": np.ones((n, 1), "u1"), "labels": np.zeros(n, "u1")},
        tmp_path / "x.safetensors",
        metadata={"labels.names": json.dumps([text])},
    )
    for name in ("x.parquet", "x.safetensors"):
        with refused(name, "claims to unpack"):
            files.read_labels(tmp_path / name)


def test_statistics_have_no_rows_to_label(tmp_path):
    np.savez(tmp_path / "x.npz", mu=np.zeros(2), sigma=np.eye(2), labels=np.arange(5))
    with refused("x.npz", "statistics"):
        files.read_labels(tmp_path / "x.npz")


@pytest.mark.parametrize("wrong", [NUMBERS[:-1], NUMBERS / 2, np.array([b"a"] * N)])
def test_wrong_labels_are_not_written(tmp_path, wrong):
    with (
        refused("`groups`"),
        files.open_features_writer(
            tmp_path / "x.npz", shape=X.shape, dtype=X.dtype, labels={"groups": wrong}
        ),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


def test_libraries_read_the_labels_that_are_written(tmp_path):
    from safetensors import safe_open

    for suffix in (".npz", ".safetensors"):
        write, _ = written(suffix)
        write(tmp_path / f"x{suffix}", labels=TEXTS, groups=NUMBERS)
    with np.load(tmp_path / "x.npz", allow_pickle=False) as archive:
        assert (archive["labels"] == TEXTS).all()
        assert (archive["reps"] == X).all()
    with safe_open(tmp_path / "x.safetensors", framework="numpy") as archive:
        names = json.loads(archive.metadata()["labels.names"])
        assert (np.array(names)[archive.get_tensor("labels")] == TEXTS).all()
        assert (archive.get_tensor("groups") == NUMBERS).all()
        assert (archive.get_tensor("features") == X).all()
