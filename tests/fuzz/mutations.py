"""Damage of the kinds that happen and of the kinds that are made on purpose."""

from __future__ import annotations

import gzip
import io
import json
import random
import struct
import tarfile
import zipfile
import zlib

from tests.fuzz.seeds import seeds, with_checksum

NUMBERS = (0, 1, 7, 127, 128, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1)
WORDS = (b"<f8", b"|O", b">c16", b"|V0", b"(1, 1)", b"(-1,)", b"9" * 30, b"nan", b"\x80\x05", b"PK")


def mutate(suffix: str, rng: random.Random) -> bytes:
    """One damaged file of this format."""
    data = rng.choice(seeds(suffix))
    if len(data) > 1 << 16:  # the bomb: as it is, or cut
        return data if rng.random() < 0.02 else mutate(suffix, rng)
    if suffix in (".npz", ".pt", ".zip") and rng.random() < 0.5:
        return _inside_zip(data, rng)
    if suffix == ".tar" and rng.random() < 0.5:
        return _tar_header(data, rng)
    if suffix == ".tgz" and rng.random() < 0.7:
        return _inside_gzip(data, rng)
    if suffix == ".png" and rng.random() < 0.5:
        return _chunks(data, rng)
    if suffix == ".safetensors" and rng.random() < 0.5:
        return _header(data, rng)
    return _bytes(data, rng)


def _bytes(data: bytes, rng: random.Random) -> bytes:
    for _ in range(rng.choice((0, 1, 1, 2, 4, 16))):
        if not data:
            return data
        at = rng.randrange(len(data))
        kind = rng.randrange(8)
        if kind == 0:
            data = data[:at]
        elif kind == 1:
            data = data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
        elif kind == 2:
            data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
        elif kind == 3:
            size = rng.choice((1, 2, 4, 8))
            number = rng.choice(NUMBERS) & ((1 << 8 * size) - 1)
            data = data[:at] + number.to_bytes(size, "little") + data[at + size :]
        elif kind == 4:
            data = data[:at] + data[at + rng.randrange(1, 9) :]
        elif kind == 5:
            data = data[:at] + rng.choice(WORDS) + data[at:]
        elif kind == 6:
            end = min(len(data), at + rng.randrange(1, 65))
            data = data[:end] + data[at:end] + data[end:]
        else:
            data += rng.randbytes(rng.randrange(1, 33))
    return data


def _inside_zip(data: bytes, rng: random.Random) -> bytes:
    """Damage a member and pack it again, so that no checksum gives it away."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    except (zipfile.BadZipFile, NotImplementedError):
        return _bytes(data, rng)
    if members:
        chosen = rng.randrange(len(members))
        name, content = members[chosen]
        members[chosen] = (name, _bytes(content, rng))
        if rng.random() < 0.1:
            members.append((rng.choice(("mu.npy", "sigma.npy", "n.npy", name)), content))
    buffer = io.BytesIO()
    compression = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in dict(members).items():
            archive.writestr(name, content)
    return buffer.getvalue()


def _tar_header(data: bytes, rng: random.Random) -> bytes:
    """Damage a block as a header is damaged, and make its checksum right again."""
    start = tarfile.BLOCKSIZE * rng.randrange(max(len(data) // tarfile.BLOCKSIZE, 1))
    block = data[start : start + tarfile.BLOCKSIZE]
    if len(block) < tarfile.BLOCKSIZE:
        return _bytes(data, rng)
    # mode, size, time, kind of entry, name of a link, magic and version, device, prefix
    at, size = rng.choice(
        ((100, 8), (124, 12), (136, 12), (156, 1), (157, 100), (257, 8), (345, 9))
    )
    number = rng.choice((*NUMBERS, -1, -512, -1024))
    new = rng.choice(
        (
            number.to_bytes(12, "big", signed=True)[-size:],
            (b"%o" % abs(number))[:size].ljust(size, b"\0"),
            rng.randbytes(size),
            rng.choice(b"0123456789AVNKLMSDgx\0").to_bytes(1, "big") * size,
        )
    )
    damaged = with_checksum(block[:at] + new + block[at + size :])
    return data[:start] + damaged + data[start + tarfile.BLOCKSIZE :]


def _inside_gzip(data: bytes, rng: random.Random) -> bytes:
    """Damage the archive and pack it again."""
    try:
        content = gzip.decompress(data)
    except (OSError, EOFError, zlib.error):
        return _bytes(data, rng)
    if len(content) > 1 << 16:
        return data
    damaged = (_tar_header if rng.random() < 0.5 else _bytes)(content, rng)
    return gzip.compress(damaged, compresslevel=1, mtime=0)


def _chunks(data: bytes, rng: random.Random) -> bytes:
    """Damage one chunk of a PNG file, and make its checksum right again."""
    at, chunks = 8, []
    while at + 12 <= len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        chunks.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + size]))
        at += 12 + size
    if not chunks:
        return _bytes(data, rng)
    chosen = rng.randrange(len(chunks))
    kind, content = chunks[chosen]
    chunks[chosen] = (kind, _bytes(content, rng))
    packed = (
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in chunks
    )
    return data[:8] + b"".join(packed)


def _header(data: bytes, rng: random.Random) -> bytes:
    """Change one value in the header of a safetensors file, and keep the header's length right."""
    if len(data) < 8 or (size := struct.unpack("<Q", data[:8])[0]) > len(data):
        return _bytes(data, rng)
    try:
        header = json.loads(data[8 : 8 + size])
        entry = header[rng.choice([key for key in header if key != "__metadata__"])]
    except (ValueError, IndexError, RecursionError):
        return _bytes(data, rng)
    change = rng.randrange(4)
    if change == 0:
        entry["dtype"] = rng.choice(("F16", "F32", "F64", "BF16", "I8", "BOOL", "U64", "C64", "X"))
    elif change == 1:
        entry["shape"] = [rng.choice((*NUMBERS, -1, 3, 5)) for _ in range(rng.randrange(4))]
    elif change == 2:
        entry["data_offsets"] = [rng.choice(NUMBERS), rng.choice(NUMBERS)]
    else:
        header = {rng.choice(("features", "reps", "arr_0", "x", "__metadata__")): entry}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data[8 + size :]
