"""Small files of every format and kind, good and hostile, from which mutations start."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import os
import pickle
import struct
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

ROWS = np.random.default_rng(0).normal(size=(5, 3))
CODES = np.array([0, 1, 1, 0, 1])
MEAN, COV = ROWS.mean(axis=0), np.cov(ROWS, rowvar=False)


class Payload:
    """Whoever unpickles it makes a folder; nobody should."""

    def __reduce__(self) -> tuple[object, ...]:
        return (os.mkdir, ("unpickled",))


class Punycode:
    """Whoever lets it choose the encoding computes for minutes: it takes quadratic time."""

    def __reduce__(self) -> tuple[object, ...]:
        text = "".join(map(chr, range(0x4E00, 0x4E00 + 20_000))) * 2
        return (codecs.encode, (text, "punycode"))


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


def renamed(data: bytes, old: bytes, new: bytes) -> bytes:
    """An archive whose directory calls a member otherwise than the member does itself."""
    start = data.rindex(old)
    return data[:start] + new + data[start + len(old) :]


def hiding(data: bytes) -> bytes:
    """An archive in whose directory all members but the first are the comment of the first."""
    at = data.index(b"PK\x01\x02") + 32
    return data[:at] + struct.pack("<H", 1 << 12) + data[at + 2 :]


def bomb() -> bytes:
    """260 MiB of zeros in a quarter of a megabyte."""
    shape = (260 << 7, 1 << 10)
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}\n"
    return _zeros("features.npy", forged(header))


def _zeros(name: str, start: bytes = b"") -> bytes:
    """260 MiB of zeros after `start`, in a quarter of a megabyte; packed in little memory."""
    buffer = io.BytesIO()
    info = zipfile.ZipInfo(name)
    info.compress_type = zipfile.ZIP_DEFLATED
    with (
        zipfile.ZipFile(buffer, "w") as archive,
        archive.open(info, "w", force_zip64=True) as member,
    ):
        member.write(start)
        for _ in range(260):
            member.write(bytes(1 << 20))
    return buffer.getvalue()


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
        forged(shape.format("<f8", False, (True, 4)), bytes(32)),
        forged(shape.format("<f8", False, (2, True)), bytes(16)),
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + bytes(100),
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


def forged_texts() -> bytes:
    """Five texts of a gigabyte each, by their header."""
    return forged("{'descr': '<U268435456', 'fortran_order': False, 'shape': (5,)}\n")


def _npz_files() -> list[bytes]:
    good = npy(ROWS)
    statistics = {"mu": npy(MEAN), "sigma": npy(COV), "n": npy(np.array(5))}
    texts = npy(np.array(["a", "b\x1b[31m", "a", "b", "c"]))
    return [
        npz({"features": good, "groups": npy(np.arange(5)), "labels": texts}),
        npz({"features": good, "groups": npy(np.arange(4)), "strata": npy(np.eye(5))}),
        npz({"features": good, "labels": forged_texts()}),
        npz(statistics | {"rows": npy(ROWS[:2])}),
        npz(statistics | {"rows": npy(ROWS[:, :2])}),
        npz(statistics | {"mu": npy(MEAN + 1j)}),
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
        npz({"features": good, "metadata": npy(np.frombuffer(b'{"encoder": "x"}', "u1"))}),
        npz({"features": good, "metadata": npy(np.frombuffer(b"[" * 5000, "u1"))}),
        npz({"features": good, "metadata": npy(np.frombuffer(b"[[1, 2]]", "u1"))}),
        npz(
            {
                "features": good,
                "metadata": npy(np.frombuffer(b'{"genbounds.sha256.features": [1]}', "u1")),
            }
        ),
        npz({"arr_0": npy(np.zeros((2, 4, 4, 3), "u1"))}),
        renamed(npz({"features": good, "groups": npy(CODES)}), b"groups", b"gsoups"),
        bomb(),
        npz({}),
    ]


def _safetensors_files() -> list[bytes]:
    from safetensors.numpy import save

    def with_header(header: bytes, data: bytes = b"") -> bytes:
        return struct.pack("<Q", len(header)) + header + data

    twice = b'"features":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}'
    entry = b'{"features":{"dtype":"%s","shape":[%s],"data_offsets":[0,%d]}}'
    return [
        save({"features": ROWS}),
        save({"reps": ROWS.astype(np.float16)}),
        save({"arr_0": ROWS.astype(np.float32), "other": ROWS[:1]}),
        save({"features": ROWS}, metadata={"encoder": "x", "weights": "y"}),
        save({"mu": MEAN, "sigma": COV, "n": np.array([5])}),
        save({"mu": MEAN, "sigma": COV[:2]}),
        save({"features": ROWS, "labels": CODES}, metadata={"labels.names": '["a", "b"]'}),
        save({"features": ROWS, "labels": CODES}, metadata={"labels.names": '["a"]'}),
        save({"features": ROWS, "labels": CODES}, metadata={"labels.names": "[" * 5000}),
        save({"features": ROWS}, metadata={"genbounds.sha256.features": "0" * 64}),
        save({"features": ROWS}, metadata={"genbounds.sha256.labels": "0" * 64}),
        save(
            {"features": ROWS}, metadata={"encoder": "\x1b]0;x\x07\x1b[2J", "libraries": "\u202e"}
        ),
        with_header(entry % (b"BF16", b"2,3", 12), bytes(range(12))),
        with_header(entry % (b"F64", b"1000000000,2048", 8), bytes(8)),
        with_header(entry % (b"I64", b"-1,2", 16), bytes(16)),
        with_header(entry % (b"F8_E4M3", b"2,2", 4), bytes(4)),
        struct.pack("<Q", 2**63) + b"{}",
        with_header(b"{" * 5000),
        with_header(b"{" + twice + b"," + twice + b"}", bytes(2)),
        with_header(b'{"features":{"dtype":"U8","shape":[true,2],"data_offsets":[0,2]}}', bytes(2)),
        with_header(b'{"features":{"dtype":"U8","shape":[1,2],"data_offsets":[1,3]}}', bytes(3)),
        with_header(b"[]"),
    ]


def _torch_files() -> list[bytes]:
    import torch

    def save(content: object, **options: object) -> bytes:
        buffer = io.BytesIO()
        torch.save(content, buffer, **options)
        return buffer.getvalue()

    # Without checksums, which stop most mutations of an archive.
    legacy = {"_use_new_zipfile_serialization": False}
    rows = torch.from_numpy(ROWS)
    return [
        save(rows),
        save({"features": rows.half(), "epoch": 3}),
        save({"reps": rows.bfloat16()}),
        save({"mu": torch.from_numpy(MEAN), "sigma": torch.from_numpy(COV)}),
        save({"mu": MEAN, "sigma": COV}),
        save({"mu": MEAN, "sigma": COV}, **legacy).replace(b"f8", b"f9"),
        save({"mu": MEAN, "sigma": COV}, **legacy),
        save(rows, **legacy),
        save(torch.zeros(1).expand(10**9, 2048)),
        save(torch.zeros(3, 2, dtype=torch.complex64)),
        save(Payload()),
        save({"features": Punycode()}),
        save(Payload(), **legacy),
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
        pa.table({"features": list(ROWS), "groups": [1, 2, 3, 4, 5], "labels": list("abcab")}),
        pa.table({"x": ROWS[:, 0], "labels": pa.array(["a", None, "b", "c", "d"])}),
    ]
    files = []
    for table in tables:
        sink = io.BytesIO()
        pq.write_table(table, sink)
        files.append(sink.getvalue())
    return files


# --- what is to be encoded -----------------------------------------------------------------------


def image(form: str, mode: str = "RGB", **options: object) -> bytes:
    from PIL import Image

    pixels = np.random.default_rng(1).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(buffer, form, **options)
    return buffer.getvalue()


def png(width: int, height: int, data: bytes = b"") -> bytes:
    """A PNG file that claims any size, with checksums that are right."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        body = kind + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")
    )


def blank_png(width: int, height: int) -> bytes:
    """A black image, genuine, some thousand times smaller than its pixels."""
    packer = zlib.compressobj()
    row = bytes(1 + 3 * width)
    data = b"".join([packer.compress(row) for _ in range(height)]) + packer.flush()
    return png(width, height, data)


def _images(form: str) -> list[bytes]:
    modes = {"JPEG": ("RGB", "L", "CMYK"), "PPM": ("RGB", "L"), "GIF": ("P", "L")}
    plain = [image(form, mode) for mode in modes.get(form, ("RGB", "RGBA", "L"))]
    return [*plain, b"", b"\0" * 64]


def _png_files() -> list[bytes]:
    return [
        *_images("PNG"),
        image("PNG", "1"),
        image("PNG", "P"),
        image("PNG", "LA"),
        png(2**31 - 1, 2**31 - 1),
        png(13_000, 13_000, zlib.compress(bytes(100))),
        blank_png(12_000, 12_000),
    ]


def _zip_files() -> list[bytes]:
    def pack(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", compression) as archive:
            for name, data in members.items():
                archive.writestr(name, data)
        return buffer.getvalue()

    one, two = image("PNG"), image("JPEG")
    return [
        pack({"a.png": one, "b/c.jpg": two}),
        pack({"a.png": one, "b.png": one}, zipfile.ZIP_DEFLATED),
        pack({"a.png": one}, zipfile.ZIP_LZMA),
        pack({"a.png": one}, zipfile.ZIP_BZIP2),
        pack({"../../a.png": one, "/etc/b.png": one, "c\n\x1b[31m.png": one}),
        pack({"a.png": b""}),
        pack({"readme.txt": b"x"}),
        pack({}),
        _zeros("a.png"),
        hiding(pack({"a.png": one, "b/c.jpg": two})),
        renamed(pack({"a.png": one, "b/c.jpg": two}), b"a.png", b"b.png"),
    ]


def tar(members: dict[str, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def damaged_header(data: bytes) -> bytes:
    """A tar archive with one flipped bit in the header of its second member."""
    at = 2 * tarfile.BLOCKSIZE
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def looping_tar() -> bytes:
    """A second header with a negative size, which sends tarfile back to that header."""
    block = tarfile.TarInfo("b.png").tobuf(tarfile.GNU_FORMAT)
    size = (-tarfile.BLOCKSIZE).to_bytes(12, "big", signed=True)
    first = tarfile.TarInfo("a.png").tobuf(tarfile.GNU_FORMAT)
    return first + with_checksum(block[:124] + size + block[136:]) + bytes(1024)


def with_checksum(block: bytes) -> bytes:
    """Put the right checksum into one header of a tar archive."""
    blanked = block[:148] + b" " * 8 + block[156:]
    return block[:148] + b"%06o\0 " % sum(blanked) + block[156:]


def _tar_files() -> list[bytes]:
    one, two = image("PNG"), image("JPEG")
    return [
        tar({"a.png": one, "b/c.jpg": two}),
        tar({"a.png": one}, tarfile.GNU_FORMAT),
        tar({"a" * 150 + ".png": one}, tarfile.GNU_FORMAT),
        tar({"ü" * 150 + ".png": one, "../b.png": one}),
        tar({"readme.txt": b"x"}),
        looping_tar(),
        damaged_header(tar({"a.png": one, "b/c.jpg": two})),
        tar({}),
        b"",
    ]


def _tgz_files() -> list[bytes]:
    packer = zlib.compressobj(wbits=31)
    info = tarfile.TarInfo("a.png")
    info.size = 260 << 20
    zeros = b"".join([packer.compress(bytes(1 << 20)) for _ in range(260)])
    hostile = zlib.compressobj(wbits=31)
    head = hostile.compress(info.tobuf())
    body = b"".join([hostile.compress(bytes(1 << 20)) for _ in range(260)]) + hostile.flush()
    return [
        *(gzip.compress(data, mtime=0) for data in _tar_files()),
        zeros + packer.flush(),
        head + body,
    ]


def _txt_files() -> list[bytes]:
    return [
        b"one text\nanother\n",
        "ein Text, mit Umlaut: ü\n\n\nzwei".encode(),
        b"\xef\xbb\xbfwith a mark\r\nof order\r\n",
        "UTF-16".encode("utf-16"),
        b"\0\0\n\0",
        b"x" * 70_000,
        b"\n\n",
        b"",
    ]


def _jsonl_files() -> list[bytes]:
    return [
        b'{"text": "one"}\n{"text": "two", "more": [1, 2]}\n',
        b'"one"\n"two"\n',
        b'{"caption": "one"}\n',
        b'{"text": null}\n',
        b'{"text": "\\ud800"}\n',
        b"[" * 5000 + b"\n",
        b'{"text":' * 3000 + b"\n",
        b"9" * 5000 + b"\n",
        b"NaN\nInfinity\n",
        json.dumps({"text": "\x1b[31m\u202e\0"}).encode(),
        b"",
    ]


MAKERS: dict[str, Callable[[], list[bytes]]] = {
    ".npy": _npy_files,
    ".npz": _npz_files,
    ".safetensors": _safetensors_files,
    ".pt": _torch_files,
    ".parquet": _parquet_files,
    ".zip": _zip_files,
    ".tar": _tar_files,
    ".tgz": _tgz_files,
    ".txt": _txt_files,
    ".jsonl": _jsonl_files,
    ".png": _png_files,
    ".jpg": partial(_images, "JPEG"),
    ".gif": partial(_images, "GIF"),
    ".bmp": partial(_images, "BMP"),
    ".webp": partial(_images, "WEBP"),
    ".tif": partial(_images, "TIFF"),
    ".ppm": partial(_images, "PPM"),
}
"""Formats by the ending that names them."""

SHARES = {
    ".npy": 5, ".npz": 5, ".safetensors": 5, ".pt": 4, ".parquet": 4,
    ".zip": 2, ".tar": 2, ".tgz": 2, ".txt": 1, ".jsonl": 1,
    ".png": 2, ".jpg": 1, ".gif": 1, ".bmp": 1, ".webp": 1, ".tif": 1, ".ppm": 1,
}  # fmt: skip
"""How a run of the fuzzer is divided."""

ARRAYS = (".npy", ".npz", ".safetensors", ".pt", ".parquet")
"""What holds features or statistics; the rest is to be encoded."""


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
