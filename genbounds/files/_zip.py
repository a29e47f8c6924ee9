"""Zip archives whose directory is whole."""

from __future__ import annotations

import os
import zipfile
from typing import IO

_ENTRY = b"PK\x01\x02"


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
