"""One run at a time in a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from genbounds._text import display
from genbounds.files._open import open_at_once, reason_of
from genbounds.validation import InputError

_NAME = ".lock"


@contextmanager
def locked(folder: str | os.PathLike[str], *, use: str) -> Iterator[None]:
    """Keep other runs out of a folder; a run that is killed leaves no lock.

    Parameters
    ----------
    folder : path-like
        Made if it does not exist; removed in the end if it is empty.
    use : str
        What the folder is used for, as an error calls it.

    Raises
    ------
    InputError
        If another run uses the folder, or it cannot be written.
    """
    path = Path(folder) / _NAME
    try:
        file = _take(path)
    except BlockingIOError as error:
        raise InputError(
            f"{use}: another run is at work there: wait for it, or write elsewhere."
        ) from error
    except OSError as error:
        raise InputError(
            f"{display(path.parent)}: cannot be written: {reason_of(error)}."
        ) from error
    try:
        yield
    finally:
        # The name first: whoever opened this file meanwhile sees that it is not the lock any more.
        with suppress(OSError):
            path.unlink()
        file.close()
        with suppress(OSError):
            path.parent.rmdir()


def clear(folder: Path) -> None:
    """Remove every file of a locked folder but the lock."""
    for path in folder.iterdir():
        if path.name != _NAME:
            path.unlink(missing_ok=True)


def _take(path: Path) -> IO[bytes]:
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            file = open_at_once(path, "ab", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        except FileNotFoundError:  # a run that ended removed the folder just now
            continue
        try:
            _lock(file)
            # A run that ended between `open` and the lock has removed this file.
            if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        except FileNotFoundError:
            pass
        except BaseException:
            file.close()
            raise
        file.close()


def _lock(file: IO[bytes]) -> None:
    """Lock an open file for as long as it is open; raise BlockingIOError if it is locked."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError as error:
            raise BlockingIOError from error
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        # A network file system without locks. What a run keeps is marked as its own all the same.
        return
