"""What a reader may do with a file: give a result, or refuse it in one line."""

from __future__ import annotations

import sys
import time
import unicodedata
import warnings
from pathlib import Path

import numpy as np

from genbounds import Moments, files
from genbounds.validation import InputError

SECONDS = 5.0
"""No input of a few kilobytes may take longer, on a busy machine."""

EXPANSION = 1 << 24
"""Bytes that a file of a few kilobytes may become."""

FORBIDDEN = {"pickle.find_class", "os.system", "os.exec", "os.mkdir", "subprocess.Popen"}

UNSHOWN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
"""Unicode's categories of what a terminal would obey rather than show."""

_watching = False
_seen: list[str] = []


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    if _watching and event in FORBIDDEN:
        _seen.append(f"{event} {arguments[:2]}")


sys.addaudithook(_audit)


class Broken(AssertionError):
    """A reader did something else."""


def probe(path: Path, data: bytes) -> str:
    """Read `data` as a file; returns "read" or "refused", raises `Broken` for anything else."""
    global _watching
    path.write_bytes(data)
    _seen.clear()
    start = time.perf_counter()
    _watching = True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            outcome = _read(path)
    except Exception as error:
        raise Broken(f"{type(error).__name__}: {error}") from error
    finally:
        _watching = False
    if _seen:
        raise Broken(f"ran {_seen}")
    if (took := time.perf_counter() - start) > SECONDS:
        raise Broken(f"took {took:.1f} s")
    return outcome


def _read(path: Path) -> str:
    try:
        content = files.read(path)
    except InputError as error:
        return _refused(path, error)
    if isinstance(content, files.Statistics):
        try:
            Moments(content.mean, content.cov, content.n)
        except InputError as error:
            return _refused(None, error)
        return "read"
    if content.ndim != 2 or content.size == 0 or content.nbytes > EXPANSION:
        raise Broken(f"an array of shape {content.shape}, {content.nbytes} bytes")
    try:
        moments = Moments.from_features(content)
    except InputError as error:
        return _refused(None, error)
    if not np.isfinite(moments.mean).all():
        raise Broken(f"mean {moments.mean}")
    return "read"


def _refused(path: Path | None, error: InputError) -> str:
    message = str(error)
    if len(message) > 1000 or any(unicodedata.category(c) in UNSHOWN for c in message):
        raise Broken(f"message {message!r}")
    if path is not None and not message.startswith(str(path)):
        raise Broken(f"message does not name the file: {message!r}")
    return "refused"
