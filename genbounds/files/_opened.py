"""One file, opened once: regular, and the same from first byte to last.

Whatever a reader or a disk raises becomes one `InputError` that says what to do.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from genbounds._scratch import scratch_folder
from genbounds._text import display, quoted
from genbounds.validation import InputError


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a regular file for reading; refuse what another program changes meanwhile.

    Everything is read through the one open file, and nothing is mapped from it: an array mapped
    from a file that is then truncated would end the process, and one that is edited in place
    would give a number of neither version. Whatever is raised meanwhile becomes an `InputError`:
    a damaged file can make a reader raise anything.

    Raises
    ------
    InputError
        If it is missing, unreadable, empty, not a regular file, or has another size or time of
        change at the end than at the beginning.
    """
    shown = display(path)
    try:
        file = open_at_once(path)
    except FileNotFoundError:
        # `open` says the same of a path that does not exist and of a link to such a path.
        what = "is a link to a file that is gone" if os.path.islink(path) else "no such file"
        raise InputError(f"{shown}: {what}: check the path.") from None
    except IsADirectoryError:
        raise InputError(f"{shown}: is a folder: give the file inside it.") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{shown}: cannot be read: {reason_of(error)}.") from error
    with file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"{shown}: is not a regular file: save it to disk first.")
        if status.st_size == 0:
            what = "is not a file on a disk: save what it holds to one first"
            with suppress(OSError):  # what the system makes up, in /proc, has no size either
                if not file.read(1):
                    what = "the file is empty: write it again"
            raise InputError(f"{shown}: {what}.")
        before = state_of(status)
        try:
            yield file
        except Exception as error:
            if state_of(os.fstat(file.fileno())) != before:
                raise changed(shown) from error
            if isinstance(error, InputError):
                raise
            raise damaged(shown, error) from error
        if state_of(os.fstat(file.fileno())) != before:
            raise changed(shown)


def ending_of(path: str | os.PathLike[str]) -> str:
    """Return the ending of a name in lower case; refuse what is no name."""
    try:
        return Path(os.fsdecode(path)).suffix.lower()
    except TypeError as error:
        raise InputError(f"{quoted(path)} is not the name of a file: pass a path.") from error


def open_at_once(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a file for reading; a pipe that nobody writes to is opened without waiting."""
    number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        return os.fdopen(number, "rb")
    except BaseException:  # a folder, for one
        os.close(number)
        raise


def state_of(status: os.stat_result) -> tuple[int, ...]:
    """Return which file this is, and what a change of it changes."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def changed(shown: str) -> InputError:
    """Return the error of a file that is not what it was."""
    return InputError(
        f"{shown}: was changed while it was read: wait until it is written, then run this again."
    )


def reason_of(error: Exception) -> str:
    """Say why an operation failed and, where it is known, what to do."""
    advice = {
        errno.EACCES: "no permission: change the file's or folder's permissions, or choose another",
        errno.EPERM: "no permission: change the file's or folder's permissions, or choose another",
        errno.EROFS: "the file system is read-only: choose another folder",
        errno.ENOSPC: "the disk is full: free some space or choose another folder",
        errno.EDQUOT: "the disk quota is used up: free some space or choose another folder",
        errno.ENAMETOOLONG: "the name is too long: choose a shorter one",
        errno.ENOTDIR: "a part of the path is a file, not a folder: check the path",
        errno.EEXIST: "a part of the path is a file, not a folder: check the path",
        errno.EISDIR: "it is a folder: give a file name",
        errno.ELOOP: "its symbolic links run in a circle: fix the link",
    }
    if isinstance(error, OSError) and error.errno in advice:
        return advice[error.errno]
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return display(text or type(error).__name__)


def damaged(shown: str, error: Exception) -> InputError:
    """Return the error of a file whose content is not what its format says."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return InputError(
            f"{shown}: not enough space to unpack it in {scratch_folder()}: "
            "free some space or point TMPDIR to a larger disk."
        )
    reason = reason_of(error).rstrip(".")
    return InputError(f"{shown}: is damaged or truncated ({reason}): write it again.")
