"""Digests of arrays, which files of ours hold in their metadata: a flipped bit is one line."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import IO, Any

import numpy as np

from genbounds.files._content import DIGEST_KEY, NAMES_KEY

Data = Callable[[], AbstractContextManager[IO[bytes]]]


def digest_of(dtype: np.dtype[Any], shape: Sequence[int], names: str = "") -> Any:
    """Begin the SHA-256 of an array with all that its bytes do not say.

    Parameters
    ----------
    dtype, shape
    names : str
        JSON list of the texts for which its integers stand, if they do.
    """
    return hashlib.sha256(json.dumps([dtype.str, [*map(int, shape)], names]).encode())


def check_complete(arrays: Collection[str], metadata: Mapping[str, Any]) -> None:
    """Refuse a file that lacks an array of which it holds the digest."""
    for key in metadata:
        if key.startswith(DIGEST_KEY) and key.removeprefix(DIGEST_KEY) not in arrays:
            raise ValueError("it lacks an array of which it has the checksum")


def checked(
    data: Data, *, key: str, dtype: np.dtype[Any], shape: Sequence[int], metadata: Mapping[str, Any]
) -> Data:
    """Return the bytes of an array so that whoever reads all of them has them compared.

    Raises
    ------
    ValueError
        At their end, if they are not those of which `metadata` holds the digest.
    """
    known = metadata.get(DIGEST_KEY + key)
    if known is None:
        return data

    @contextmanager
    def compared() -> Iterator[Any]:
        digest = digest_of(dtype, shape, str(metadata.get(key + NAMES_KEY, "")))
        with data() as stream:
            counted = _Counted(stream, digest)
            yield counted
            if counted.size == dtype.itemsize * math.prod(shape):
                compare(digest.hexdigest(), known)

    return compared


def compare(found: str, known: str) -> None:
    """Refuse another digest than the file holds."""
    if found != known:
        raise ValueError("its numbers do not fit the checksum in it")


class _Counted:
    """A stream whose bytes are counted and enter a digest when they are read."""

    def __init__(self, stream: IO[bytes], digest: Any) -> None:
        self._stream, self._digest, self.size = stream, digest, 0
        self.seek = stream.seek

    def read(self, size: int) -> bytes:
        content = self._stream.read(size)
        self._digest.update(content)
        self.size += len(content)
        return content
