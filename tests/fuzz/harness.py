"""What a reader may do with a file: give a result, or refuse it in one line."""

from __future__ import annotations

import resource
import signal
import sys
import time
import unicodedata
import warnings
from pathlib import Path

import numpy as np

from genbounds import Moments, files
from genbounds.features import open_source
from genbounds.validation import InputError
from tests.fuzz.seeds import ARRAYS

SECONDS = 2.0
"""Of a processor, however busy the machine is: no input of a few kilobytes may take more."""

HANG = 60.0
"""Seconds after which an input is given up."""

EXPANSION = 1 << 24
"""Bytes that a file of a few kilobytes may become."""

KILOBYTES = 400_000
"""Memory by which a process may grow over one such input."""

FORBIDDEN = {
    "pickle.find_class", "os.system", "os.exec", "os.mkdir", "subprocess.Popen", "socket.connect",
}  # fmt: skip

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


def _give_up(*_: object) -> None:
    raise TimeoutError(f"no end after {HANG:g} s")


def probe(path: Path, data: bytes) -> str:
    """Read `data` as a file; returns "read" or "refused", raises `Broken` for anything else."""
    global _watching
    reader = _read if path.suffix in ARRAYS else _encode
    if reader is _encode:
        path = path.parent / f"of{path.suffix}" / path.name
        path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    _seen.clear()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    _watching = True
    signal.signal(signal.SIGALRM, _give_up)
    signal.setitimer(signal.ITIMER_REAL, HANG)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            outcome = reader(path)
    except Exception as error:
        raise Broken(f"{type(error).__name__}: {error}") from error
    finally:
        _watching = False
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    if _seen:
        raise Broken(f"ran {_seen}")
    if (took := time.process_time() - start) > SECONDS:
        raise Broken(f"took {took:.1f} s of a processor")
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    if grown > KILOBYTES:
        raise Broken(f"took {grown:,} kB")
    return outcome


def _read(path: Path) -> str:
    try:
        content = files.read(path)
        metadata = files.read_metadata(path)
    except InputError as error:
        return _refused(path, error)
    try:
        labels = files.read_labels(path)
    except InputError as error:  # of the labels: the features are good all the same
        _refused(path, error)
        labels = files.Labels()
    if not all(isinstance(text, str) for pair in metadata.items() for text in pair):
        raise Broken(f"metadata {metadata!r}")
    if isinstance(content, files.Statistics):
        try:
            Moments(content.mean, content.cov, content.n)
        except InputError as error:
            return _refused(None, error)
        return "read"
    if content.ndim != 2 or content.size == 0 or content.nbytes > EXPANSION:
        raise Broken(f"an array of shape {content.shape}, {content.nbytes} bytes")
    for ids in (labels.groups, labels.strata):
        if ids is not None and (ids.shape != content.shape[:1] or ids.nbytes > EXPANSION):
            raise Broken(f"labels of shape {ids.shape}, {ids.nbytes} bytes")
    try:
        moments = Moments.from_features(content)
    except InputError as error:
        return _refused(None, error)
    if not np.isfinite(moments.mean).all():
        raise Broken(f"mean {moments.mean}")
    return "read"


def _encode(path: Path) -> str:
    """Read every item of something to encode, an image as the only one of its folder."""
    archive = path.suffix in (".zip", ".tar", ".tgz", ".txt", ".jsonl")
    try:
        source = open_source([path if archive else path.parent])
        for number, item in enumerate(source.items()):
            if not item.label.startswith(str(path)) or number > 100_000:
                raise Broken(f"item {number}, {item.label!r}")
            try:
                content = source.decode(item.content)
            except InputError as error:  # who encodes puts the label before it
                return _refused(None, error)
            if isinstance(content, str):
                content.encode()  # what a tokeniser begins with
            elif min(content.size) < 1:
                raise Broken(f"an image of size {content.size}")
    except InputError as error:
        return _refused(path, error)
    return "read"


def _refused(path: Path | None, error: InputError) -> str:
    message = str(error)
    if len(message) > 1000 or any(unicodedata.category(c) in UNSHOWN for c in message):
        raise Broken(f"message {message!r}")
    if path is not None and not message.startswith(str(path)):
        raise Broken(f"message does not name the file: {message!r}")
    return "refused"
