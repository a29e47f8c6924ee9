"""Small files of every format and kind, good and hostile, from which mutations start."""

from __future__ import annotations

import io
import os
import pickle
import struct
import warnings
import zipfile
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

ROWS = np.random.default_rng(0).normal(size=(5, 3))
MEAN, COV = ROWS.mean(axis=0), np.cov(ROWS, rowvar=False)


class Payload:
    """Whoever unpickles it makes a folder; nobody should."""

    def __reduce__(self) -> tuple[object, ...]:
        return (os.mkdir, ("unpickled",))


def npy(array: np.ndarray, *, allow_pickle: bool = False) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=allow_pickle)
    return buffer.getvalue()


def forged(header: str, data: bytes = b"", *, version: bytes = b"\x01\x00") -> bytes:
    """A .npy file with any header."""
    text = header.encode("latin1")
    size = struct.pack("<H" if version == b"\x01\x00" else "<I", len(text))
    return b"\x93NUMPY" + version + size + text + data


def npz(members: dict[str, bytes], *, compression: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return buffer.getvalue()


def bomb() -> bytes:
    """260 MiB of zeros in a quarter of a megabyte."""
    shape = (260 << 7, 1 << 10)
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}\n"
    return npz({"features": forged(header, bytes(260 << 20))}, compression=zipfile.ZIP_DEFLATED)


def arrays() -> dict[str, np.ndarray]:
    payload = np.array([[0x7FF8DEADBEEF0001, 0x7FF0000000000001]], dtype="<u8").view("<f8")
    with np.errstate(over="ignore"):
        half = (ROWS * 1e6).astype(np.float16)  # infinities
    return {
        "f8": ROWS,
        "f4": ROWS.astype("<f4"),
        "f2": ROWS.astype("<f2"),
        "big endian": ROWS.astype(">f8"),
        "Fortran": np.asfortranarray(ROWS),
        "integers": np.arange(12, dtype="<i8").reshape(4, 3),
        "bytes": np.arange(12, dtype="u1").reshape(4, 3),
        "booleans": ROWS > 0,
        "long doubles": ROWS.astype(np.longdouble),
        "no rows": np.empty((0, 3)),
        "no columns": np.empty((3, 0)),
        "a number": np.array(3.0),
        "three axes": np.zeros((2, 2, 2)),
        "largest": np.full((3, 2), 1e308),
        "subnormal": np.full((3, 2), 5e-324),
        "NaN payloads": np.repeat(payload, 2, axis=0),
        "signalling NaN": np.full((2, 2), 0x7F800001, dtype="<u4").view("<f4"),
        "half overflow": half,
        "complex": ROWS.astype(complex),
        "text": np.array([["a", "b"]]),
        "dates": np.zeros((3, 2), "M8[s]"),
        "records": np.zeros(3, [("a", "f8")]),
    }


def _npy_files() -> list[bytes]:
    shape = "{{'descr': '{}', 'fortran_order': {}, 'shape': {}}}\n"
    objects = npy(np.array([[Payload()]], dtype=object), allow_pickle=True)
    return [
        *map(npy, arrays().values()),
        objects,
        pickle.dumps(Payload()),
        forged(shape.format("<f8", False, (10**10, 2048))),
        forged(shape.format("<f8", False, (-1, 4)), bytes(64)),
        forged(shape.format("<f8", False, (2**63, 2**63))),
        forged(shape.format("<f8", False, (0, 2**62))),
        forged(shape.format("|V0", False, (2**40, 1))),
        forged(shape.format("|O", False, (1, 1)), pickle.dumps(Payload())),
        forged("__import__('os').mkdir('unpickled')\n"),
        forged("(" * 5000),
        forged("{'descr': " + "[" * 900 + "]" * 900 + "}"),
        forged("9" * 5000),
        forged(" " * 70_000, version=b"\x02\x00"),
        b"\x93NUMPY\x01\x00\xff\xff",
        b"",
    ]


def _npz_files() -> list[bytes]:
    good = npy(ROWS)
    statistics = {"mu": npy(MEAN), "sigma": npy(COV), "n": npy(np.array(5))}
    return [
        npz({"features": good}),
        npz({"arr_0": good}, compression=zipfile.ZIP_DEFLATED),
        npz({"reps": good}, compression=zipfile.ZIP_BZIP2),
        npz({"features": good}, compression=zipfile.ZIP_LZMA),
        npz(statistics),
        npz(statistics | {"n": npy(np.array(np.nan))}),
        npz(statistics | {"mu": npy(np.array([[1e308]]))}),
        npz({"features": npy(np.array([[Payload()]], dtype=object), allow_pickle=True)}),
        npz({"features": pickle.dumps(Payload())}),
        npz({"features": _npy_files()[24]}),
        bomb(),
        npz({}),
    ]


def _safetensors_files() -> list[bytes]:
    from safetensors.numpy import save

    def with_header(header: bytes, data: bytes = b"") -> bytes:
        return struct.pack("<Q", len(header)) + header + data

    entry = b'{"features":{"dtype":"%s","shape":[%s],"data_offsets":[0,%d]}}'
    return [
        save({"features": ROWS}),
        save({"reps": ROWS.astype(np.float16)}),
        save({"arr_0": ROWS.astype(np.float32), "other": ROWS[:1]}),
        with_header(entry % (b"BF16", b"2,3", 12), bytes(range(12))),
        with_header(entry % (b"F64", b"1000000000,2048", 8), bytes(8)),
        with_header(entry % (b"I64", b"-1,2", 16), bytes(16)),
        with_header(entry % (b"F8_E4M3", b"2,2", 4), bytes(4)),
        struct.pack("<Q", 2**63) + b"{}",
        with_header(b"{" * 5000),
    ]


def _torch_files() -> list[bytes]:
    import torch

    def save(content: object, **options: object) -> bytes:
        buffer = io.BytesIO()
        torch.save(content, buffer, **options)
        return buffer.getvalue()

    rows = torch.from_numpy(ROWS)
    return [
        save(rows),
        save({"features": rows.half(), "epoch": 3}),
        save({"reps": rows.bfloat16()}),
        save(rows, _use_new_zipfile_serialization=False),
        save(torch.zeros(1).expand(10**9, 2048)),
        save(torch.zeros(3, 2, dtype=torch.complex64)),
        save(Payload()),
        save(Payload(), _use_new_zipfile_serialization=False),
        pickle.dumps(Payload()),
    ]


def _parquet_files() -> list[bytes]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables = [
        pa.table({f"x{j}": ROWS[:, j] for j in range(3)}),
        pa.table({"features": list(ROWS)}),
        pa.table({"reps": pa.FixedSizeListArray.from_arrays(pa.array(ROWS.ravel()), 3)}),
        pa.table({"x": pa.array([1.0, None])}),
        pa.table({"x": ["a", "b"]}),
    ]
    files = []
    for table in tables:
        sink = io.BytesIO()
        pq.write_table(table, sink)
        files.append(sink.getvalue())
    return files


MAKERS = {
    ".npy": _npy_files,
    ".npz": _npz_files,
    ".safetensors": _safetensors_files,
    ".pt": _torch_files,
    ".parquet": _parquet_files,
}


@cache
def seeds(suffix: str) -> tuple[bytes, ...]:
    """Return the seeds of one format."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tuple(MAKERS[suffix]())


def write_corpus(folder: Path) -> None:
    """Write every seed, with a first byte that tells its format, for a fuzzer to start from."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind, suffix in enumerate(MAKERS):
        for number, data in enumerate(seeds(suffix)):
            if len(data) < 1 << 16:
                (folder / f"seed{suffix}-{number}").write_bytes(bytes([kind]) + data)


def scratch() -> TemporaryDirectory[str]:
    """Return a temporary folder in memory where there is one."""
    shared = Path("/dev/shm")
    return TemporaryDirectory(dir=shared if os.access(shared, os.W_OK) else None)
