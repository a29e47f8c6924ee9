"""Every damaged or foreign file is one clear line."""

from __future__ import annotations

import io
import os
import pickle
import struct
import sys
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

from genbounds import files
from genbounds.validation import InputError
from tests.files.made import COV, MEAN, X, save_torch, write_npy
from tests.fuzz.seeds import Payload, hiding, npy, npz, renamed
from tests.refusal import refused
from tests.scratch import keep_in_memory


def bomb() -> bytes:
    """A megabyte that claims and holds 300 MiB of zeros."""
    header = io.BytesIO()
    shape = (300 << 10, 128)
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": shape}
    )
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("features.npy", "w") as member,
    ):
        member.write(header.getvalue())
        for _ in range(300):
            member.write(bytes(1 << 20))
    return buffer.getvalue()


def forged_npy(header: bytes, version: bytes = b"\x01\x00") -> bytes:
    size = struct.pack("<H" if version == b"\x01\x00" else "<I", len(header))
    return b"\x93NUMPY" + version + size + header


def flip_size(data: bytes) -> bytes:
    """Forge the uncompressed size in the central directory."""
    at = data.rindex(b"PK\x01\x02") + 24
    return data[:at] + struct.pack("<I", 1 << 20) + data[at + 4 :]


def safetensors_of(header: str) -> bytes:
    return struct.pack("<Q", len(header)) + header.encode()


GOOD = npy(X)
GOOD_NPZ = npz({"features": GOOD})

BAD_BYTES = {
    "empty.npy": (b"", "the file is empty: write it again."),
    "cut.npy": (
        GOOD[:-5],
        "is truncated or damaged, its header announces shape (30, 4) (480 bytes) and 475 bytes "
        "follow: write it again.",
    ),
    "tail.npy": (
        GOOD + b"xy",
        "is truncated or damaged, its header announces shape (30, 4) (480 bytes) and 482 bytes "
        "follow: write it again.",
    ),
    "header.npy": (GOOD[:40], "has a damaged NumPy header: write it again."),
    "eval.npy": (
        forged_npy(b"__import__('os').mkdir('unpickled')\n"),
        "has a damaged NumPy header: write it again.",
    ),
    "deep.npy": (forged_npy(b"(" * 9000), "has a damaged NumPy header: write it again."),
    "long.npy": (
        forged_npy(b" " * 200_000, b"\x02\x00"),
        "has a damaged NumPy header: write it again.",
    ),
    "huge.npy": (
        forged_npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000, 2048)}\n"),
        "is truncated or damaged, its header announces shape (10000000000, 2048) "
        "(163840000000000 bytes) and 0 bytes follow: write it again.",
    ),
    "negative.npy": (
        forged_npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 4)}\n"),
        "is truncated or damaged, its header announces shape (-1, 4) (-1 bytes) and 0 bytes "
        "follow: write it again.",
    ),
    "booleans.npy": (
        forged_npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (True, 4)}\n") + bytes(32),
        "has a damaged NumPy header: write it again.",
    ),
    "version.npy": (
        b"\x93NUMPY\x09\x00" + GOOD[8:],
        "is of a NumPy format for structured arrays: save a plain float array.",
    ),
    "pickle.npy": (
        pickle.dumps(Payload()),
        "is a pickle, which is never loaded: "
        "save the array with numpy.save(path, array, allow_pickle=False).",
    ),
    "objects.npy": (
        npy(np.array([[Payload()]], dtype=object), allow_pickle=True),
        "holds pickled Python objects, which are never loaded: "
        "save features as a plain float array of shape (n, d), labels as integers or texts.",
    ),
    "text.npy": (b"1 2 3\n", "is not a NumPy file: write it again with numpy.save."),
    "zip.npy": (GOOD_NPZ, "is not a NumPy file: it is a zip archive, call it .npz."),
    "words.npy": (
        npy(np.array([["a", "b"]])),
        "holds <U1, not real numbers: save a float array of shape (n, d).",
    ),
    "complex.npy": (
        npy(X.astype(complex)),
        "holds complex128, not real numbers: save a float array of shape (n, d).",
    ),
    "dates.npy": (
        npy(np.zeros((3, 2), "M8[s]")),
        "holds datetime64[s], not real numbers: save a float array of shape (n, d).",
    ),
    "record.npy": (
        npy(np.zeros(3, [("a", "f8")])),
        "holds [('a', '<f8')], not real numbers: save a float array of shape (n, d).",
    ),
    "vector.npy": (
        npy(X[0]),
        "holds an array of shape (4,): features need shape (n, d), one row per sample.",
    ),
    "scalar.npy": (
        npy(np.float64(3.0)),
        "holds an array of shape (): features need shape (n, d), one row per sample.",
    ),
    "images.npy": (
        npy(np.zeros((2, 3, 4))),
        "holds an array of shape (2, 3, 4): features need shape (n, d), one row per sample.",
    ),
    "norows.npy": (
        npy(np.zeros((0, 4))),
        "holds an array of shape (0, 4), no data: write it again.",
    ),
    "x.pkl": (
        pickle.dumps(Payload()),
        "`.pkl` files are not read: convert it to one of .npy, .npz, .safetensors, .pt, .parquet "
        "(pickles are never loaded).",
    ),
    "noending": (
        GOOD,
        "a name without ending is not read: convert it to one of .npy, .npz, .safetensors, .pt, "
        ".parquet (pickles are never loaded).",
    ),
    "not.npz": (
        b"hello",
        "is damaged or truncated (File is not a zip file): write it again.",
    ),
    "cut.npz": (
        GOOD_NPZ[:-30],
        "is damaged or truncated (File is not a zip file): write it again.",
    ),
    "unknown.npz": (
        npz({"embeddings": GOOD, "labels": GOOD}),
        "has no known array, only: embeddings, labels. Name the features `features`, `reps`, "
        "`feats` or `arr_0`, or the statistics `mu` and `sigma`.",
    ),
    "none.npz": (
        npz({}),
        "has no known array, only: nothing. Name the features `features`, `reps`, `feats` or "
        "`arr_0`, or the statistics `mu` and `sigma`.",
    ),
    "many.npz": (
        npz({f"k{i}": GOOD for i in range(12)}),
        "has no known array, only: k0, k1, k2, k3, k4, k5, k6, k7 and 4 more. Name the features "
        "`features`, `reps`, `feats` or `arr_0`, or the statistics `mu` and `sigma`.",
    ),
    "both.npz": (
        npz({"features": GOOD, "reps": GOOD}),
        "is ambiguous, it has features and reps: keep one array of features, or only the "
        "statistics.",
    ),
    "mixed.npz": (
        npz({"features": GOOD, "mu": npy(MEAN), "sigma": npy(COV)}),
        "is ambiguous, it has features and mu and sigma: keep one array of features, or only the "
        "statistics.",
    ),
    "objects.npz": (
        npz({"arr_0": npy(np.array([[{}]], dtype=object), allow_pickle=True)}),
        "(arr_0): holds pickled Python objects, which are never loaded: "
        "save features as a plain float array of shape (n, d), labels as integers or texts.",
    ),
    "pickled.npz": (
        npz({"arr_0": pickle.dumps(Payload())}),
        "(arr_0): is a pickle, which is never loaded: "
        "save the array with numpy.save(path, array, allow_pickle=False).",
    ),
    "crc.npz": (
        GOOD_NPZ.replace(GOOD, GOOD[:-1] + bytes([GOOD[-1] ^ 1])),
        "is damaged or truncated (Bad CRC-32 for file 'features.npy'): write it again.",
    ),
    "sigma.npz": (
        npz({"mu": npy(MEAN), "sigma": npy(COV[:2])}),
        "mu has shape (4,) and sigma (2, 4): statistics need shapes (d,) and (d, d).",
    ),
    "count.npz": (
        npz({"mu": npy(MEAN), "sigma": npy(COV), "n": npy(np.float64(2.5))}),
        "n is 2.5: it must be the number of samples, a whole number; leave it out if it is not "
        "known.",
    ),
    "rows.npz": (
        npz({"mu": npy(MEAN), "sigma": npy(COV), "rows": npy(X[:, :2])}),
        "rows has shape (30, 2) beside a mu of 4 features: it needs shape (k, 4), some of the "
        "samples.",
    ),
    "more.npz": (
        npz({"mu": npy(MEAN), "sigma": npy(COV), "rows": npy(X), "n": npy(np.array(7))}),
        "rows holds 30 samples of 7: write the statistics again.",
    ),
    "complex.npz": (
        npz({"mu": npy(MEAN), "sigma": npy(COV.astype(complex))}),
        "(sigma): holds complex128, not real numbers: save a float array of shape (n, d).",
    ),
    "bad.safetensors": (
        b"\xff" * 40,
        "is damaged or truncated (the header is longer than the file): write it again.",
    ),
    "twice.safetensors": (
        safetensors_of('{"a": {}, "a": {}}'),
        "is damaged or truncated (a name that occurs twice): write it again.",
    ),
    # Refused at the first too many: reading them all took 15 seconds, and what came after longer.
    "many.safetensors": (
        safetensors_of("{" + ", ".join(f'"{k}": {{}}' for k in range(10_002)) + ", nonsense"),
        "is damaged or truncated (more than 10,000 arrays, where features are one): write it "
        "again.",
    ),
    "bad.pt": (
        b"hello there",
        "is damaged or truncated, or not PyTorch's: write it again with torch.save.",
    ),
    "cut.parquet": (b"PAR1aaaaPAR1", None),
}


@pytest.mark.parametrize("name", BAD_BYTES)
def test_bad_bytes_are_one_clear_line(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)  # a payload that ran would leave its folder here
    if name.endswith(".pt"):
        pytest.importorskip("torch")
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    data, message = BAD_BYTES[name]
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        files.read(path)
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith(str(path))
    if message is not None:
        assert text.removeprefix(str(path)).lstrip(": ") == message
    assert not (tmp_path / "unpickled").exists()


def test_an_array_that_is_renamed_in_the_directory_is_refused(tmp_path):
    """One bit of it: groups, or the number of samples, would go unseen."""
    path = tmp_path / "x.npz"
    for data, old, new in (
        (npz({"features": npy(X), "groups": npy(np.arange(len(X)))}), b"groups", b"gsoups"),
        (
            npz({"mu": npy(X[0]), "sigma": npy(np.cov(X.T)), "n": npy(np.array(9))}),
            b"n.npy",
            b"o.npy",
        ),
    ):
        path.write_bytes(data)
        files.read(path)
        path.write_bytes(renamed(data, old, new))
        with refused("x.npz", "damaged"):
            files.read(path)


def test_an_array_that_the_directory_hides_is_refused(tmp_path):
    """One bit in the length of a comment: the arrays behind it would go unseen."""
    path = tmp_path / "x.npz"
    path.write_bytes(hiding(npz({"features": npy(X), "groups": npy(np.arange(len(X)))})))
    with refused("x.npz", "damaged"):
        files.read(path)


def test_damaged_tensors_are_refused(tmp_path):
    """PyTorch compares no checksums, and takes a member that is marked as a folder for junk."""
    path = tmp_path / "x.pt"
    save_torch(path, pytest.importorskip("torch").from_numpy(X))
    whole = path.read_bytes()
    (member,) = [one for one in zipfile.ZipFile(path).filelist if one.filename.endswith("data/0")]
    attributes = whole.rindex(member.filename.encode()) - 8
    for at, bit in ((whole.index(X[3].tobytes()), 1), (attributes, 0x10)):
        assert (files.read(path) == X).all()
        path.write_bytes(whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :])
        with refused("x.pt", "damaged"):
            files.read(path)
        path.write_bytes(whole)


def test_a_page_of_a_table_that_is_damaged_is_refused(tmp_path):
    """Tables may have checksums; some writers keep them."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "x.parquet"
    table = pa.table({f"f{k}": column for k, column in enumerate(X.T)})
    parquet.write_table(
        table, path, write_page_checksum=True, use_dictionary=False, compression="none"
    )
    content = bytearray(path.read_bytes())
    content[content.index(X[2, 0].tobytes())] ^= 1
    path.write_bytes(content)
    with refused("x.parquet", "damaged"):
        files.read(path)


def test_zip_bomb_is_refused_unread(tmp_path):
    path = tmp_path / "bomb.npz"
    path.write_bytes(bomb())
    with pytest.raises(
        InputError, match=r"\(features\): claims to unpack 30\d,\d+ bytes to 314,572,"
    ):
        files.read(path)


def test_forged_size_in_a_zip_directory(tmp_path):
    path = tmp_path / "x.npz"
    path.write_bytes(flip_size(GOOD_NPZ))
    with pytest.raises(InputError, match="truncated"):
        files.read(path)


def test_places_that_are_no_files(tmp_path):
    with pytest.raises(InputError, match=r"gone\.npy: no such file: check the path\.$"):
        files.read(tmp_path / "gone.npy")
    with pytest.raises(InputError, match=r"is a folder: give the file inside it\.$"):
        files.read(tmp_path)
    os.mkfifo(tmp_path / "pipe.npy")
    with pytest.raises(InputError, match=r"is not a regular file: save it to disk first\.$"):
        files.read(tmp_path / "pipe.npy")
    (tmp_path / "loop.npy").symlink_to(tmp_path / "loop.npy")
    with pytest.raises(InputError, match="symbolic links run in a circle"):
        files.read(tmp_path / "loop.npy")
    with pytest.raises(InputError, match="name is too long"):
        files.read(tmp_path / ("x" * 5000 + ".npy"))
    with pytest.raises(InputError, match=r"a\\x00b\.npy: cannot be read: .*embedded null"):
        files.read(tmp_path / "a\0b.npy")
    write_npy(tmp_path / "x.npy")
    with pytest.raises(InputError, match="a part of the path is a file"):
        files.read(tmp_path / "x.npy" / "y.npy")


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="files of Linux")
@pytest.mark.parametrize("name", ["mem", "status"])
def test_files_that_the_system_makes_up_are_not_called_empty(tmp_path, name):
    (tmp_path / "x.npy").symlink_to(f"/proc/self/{name}")
    with refused("x.npy", "not a file on a disk"):
        files.read(tmp_path / "x.npy")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_file(tmp_path):
    path = tmp_path / "x.npy"
    write_npy(path)
    path.chmod(0)
    with pytest.raises(InputError, match="no permission"):
        files.read(path)


def test_permission_errors_are_named(tmp_path, monkeypatch):
    path = tmp_path / "x.npy"
    write_npy(path)

    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(InputError, match=r"x\.npy: cannot be read: no permission"):
        files.read(path)


@pytest.mark.parametrize("module", ["torch", "pyarrow"])
def test_missing_optional_library(tmp_path, monkeypatch, module):
    suffix = {"torch": ".pt", "pyarrow": ".parquet"}[module]
    path = tmp_path / f"x{suffix}"
    path.write_bytes(b"something")
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, f"{module}.parquet", None)
    extra = {"torch": "torch", "pyarrow": "parquet"}[module]
    with pytest.raises(InputError, match=rf"genbounds\[{extra}\]' \(from a checkout: pip"):
        files.read(path)


def test_tensors_that_are_no_features(tmp_path):
    torch = pytest.importorskip("torch")
    cases = {
        "repeats 4 stored bytes": torch.zeros(1).expand(10**9, 2048),
        "sparse, complex or quantised": torch.eye(3).to_sparse(),
        "sparse, complex": torch.zeros(3, 2, dtype=torch.complex64),
        "holds a list where a tensor is needed": {"features": [1.0]},
        "has no known array, only: weight": {"weight": torch.zeros(2, 2)},
        "holds a list": [1.0],
        "pickled Python objects, which are never loaded": Payload(),
    }
    for message, content in cases.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # sparse and quantised layouts are in beta
            save_torch(tmp_path / "x.pt", content)
            with pytest.raises(InputError, match=message):
                files.read(tmp_path / "x.pt")
    assert not Path("unpickled").exists()


def test_tables_that_are_no_features(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    cases = {
        "column label holds string": {"label": ["a", "b"], "x": [1.0, 2.0]},
        "missing values": {"x": [1.0, None]},
        "missing values: drop": {"features": [[1.0, None], [1.0, 2.0]]},
        "lists of different lengths": {"features": [[1.0], [1.0, 2.0, 3.0]]},
        "lists of different": {"features": [[1.0], [1.0, 2.0]]},
        "column features holds list": {"features": [[[1.0]], [[2.0]]]},
        "ambiguous, it has features and reps": {"features": [[1.0]], "reps": [[1.0]]},
        "0 rows and 1 columns": {"x": pa.array([], pa.float32())},
    }
    for message, columns in cases.items():
        pq.write_table(pa.table(columns), tmp_path / "x.parquet")
        with pytest.raises(InputError, match=message):
            files.read(tmp_path / "x.parquet")


def test_table_that_would_explode(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"x": np.zeros(34_000_000)}), tmp_path / "x.parquet")
    with pytest.raises(InputError, match="claims to unpack"):
        files.read(tmp_path / "x.parquet")


def test_full_disk_while_unpacking(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "x.npz", X)
    keep_in_memory(monkeypatch, 16)

    class Full(io.RawIOBase):
        def write(self, data):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", Full)
    with pytest.raises(InputError, match=r"x\.npz: not enough space to unpack it .* point TMPDIR"):
        files.read(tmp_path / "x.npz")


def numpy_in_torch_file(path, put=b"f8"):
    """Save a NumPy array with torch, its type then called `put`; in the form without checksums."""
    torch = pytest.importorskip("torch")
    buffer = io.BytesIO()
    torch.save({"features": np.ones((3, 2))}, buffer, _use_new_zipfile_serialization=False)
    assert b"f8" in buffer.getvalue()
    path.write_bytes(buffer.getvalue().replace(b"f8", put))
    return path


@pytest.mark.parametrize("put", [b"f9", b"{1", b"O8"])
def test_arrays_in_a_torch_file_that_are_none(tmp_path, put):
    """A type that does not exist, or objects: refused, whichever way NumPy complains."""
    assert (files.read(numpy_in_torch_file(tmp_path / "x.pt")) == 1.0).all()
    with pytest.raises(InputError, match=r"x\.pt: is damaged"):
        files.read(numpy_in_torch_file(tmp_path / "x.pt", put))


class NeverFilled:
    """Pickled as a NumPy array that is begun and never given its numbers."""

    def __reduce__(self):
        return (np.ones(1).__reduce__()[0], (np.ndarray, (0,), b"b"))


def test_an_array_that_was_never_filled_is_none(tmp_path):
    torch = pytest.importorskip("torch")
    torch.save({"features": NeverFilled()}, tmp_path / "x.pt")
    with refused("x.pt"):
        files.read(tmp_path / "x.pt")
