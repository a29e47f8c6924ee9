"""Whatever a reader or a disk raises, as one `InputError` that says what to do."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from genbounds._scratch import scratch_folder
from genbounds._text import display
from genbounds.validation import InputError, how_to_install


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


@contextmanager
def naming_damage(shown: str) -> Iterator[None]:
    """Turn whatever a reader raises on a damaged file into one InputError."""
    try:
        yield
    except InputError:
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise InputError(
                f"{shown}: not enough space to unpack it in {scratch_folder()}: "
                "free some space or point TMPDIR to a larger disk."
            ) from error
        raise damaged(shown, error) from error
    except Exception as error:  # a damaged file can raise anything: no list of it is complete
        raise damaged(shown, error) from error


def damaged(shown: str, error: Exception) -> InputError:
    """Return the error of a file whose content is not what its format says."""
    reason = reason_of(error).rstrip(".")
    return InputError(f"{shown}: is damaged or truncated ({reason}): write it again.")


# From these versions on, reading weights cannot run code: torch by CVE-2025-32434 and
# CVE-2026-24747, sentence-transformers by running files of the model's folder, timm by asking
# torch for everything in a pickle. The lower bounds in pyproject.toml are the same.
SAFE: dict[str, tuple[int, ...]] = {
    "torch": (2, 10),
    "sentence_transformers": (6, 0),
    "timm": (1, 0, 26),
    "open_clip": (3, 0),
}


def check_safe(module: Any, needed_for: str) -> Any:
    """Return a library; refuse a version of it whose reading of weights can run code."""
    name = module.__name__
    found = str(getattr(module, "__version__", ""))
    numbers = tuple(int(number) for number in re.findall(r"\d+", found.partition("+")[0]))
    if name in SAFE and numbers < SAFE[name]:
        least = ".".join(map(str, SAFE[name]))
        raise InputError(
            f"{needed_for} needs {name} {least} or newer, and {display(found, limit=40)} is "
            "installed, with which a file of weights can run code: upgrade it."
        )
    return module


def optional_library(module: str, extra: str, title: str, shown: str) -> Any:
    """Import a library that only this format needs."""
    import importlib

    try:
        return check_safe(importlib.import_module(module), shown)
    except ImportError as error:
        raise InputError(
            f"{shown}: reading it needs {title}: {how_to_install(extra)}, "
            "or save the features as .npy."
        ) from error
