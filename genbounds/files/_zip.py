"""Zip archives whose directory is whole, and what claims to unpack to more than real data do."""

from __future__ import annotations

import os
import zipfile
from typing import IO

from genbounds.validation import InputError

_ENTRY = b"PK\x01\x02"

# Real features shrink 1- to 20-fold. Whatever claims to unpack to more than `_BOMB_BYTES` from
# less than 1/`_BOMB_RATIO` of that is refused unread.
_BOMB_RATIO = 200
_BOMB_BYTES = 1 << 28

_INSTEAD = {
    "features": "save it uncompressed as .npy",
    "labels": "number the labels, or give them shorter names",
    "images": "pack it without compression",
}


def open_zip(file: str | os.PathLike[str] | IO[bytes]) -> zipfile.ZipFile:
    """Open an archive; refuse one in whose directory a member is the comment of another.

    One flipped bit in the length of a comment does that, and Python goes on without the member.

    Raises
    ------
    zipfile.BadZipFile
        Also for what Python refuses by itself.
    """
    archive = zipfile.ZipFile(file)
    for info in archive.filelist:
        if _ENTRY in info.comment:
            archive.close()
            raise zipfile.BadZipFile("its directory hides a member")
    return archive


def check_bomb(shown: str, unpacked: int, packed: int, kind: str = "features") -> None:
    """Refuse what claims to unpack to far more bytes than `kind` ever do."""
    if unpacked > _BOMB_BYTES and unpacked > _BOMB_RATIO * packed:
        raise InputError(
            f"{shown}: claims to unpack {packed:,} bytes to {unpacked:,}, which no real {kind} "
            f"do: if it is genuine, {_INSTEAD[kind]}."
        )
