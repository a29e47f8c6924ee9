"""Digests of arrays, which files of ours hold in their metadata: a flipped bit is one line."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

NAMES_KEY = ".names"
"""``labels.names`` in the metadata of a .safetensors file, which holds no texts in arrays: a JSON
list of the names that stand for 0, 1, … in the array ``labels``."""

DIGEST_KEY = "genbounds.sha256."
"""``genbounds.sha256.features`` in the metadata of a file of ours: the digest of that array."""

Check = Callable[[Iterable[bytes]], Iterator[bytes]]


def digest_of(dtype: np.dtype[Any], shape: Sequence[int], names: str = "") -> Any:
    """Begin the SHA-256 of an array with all that its bytes do not say.

    Parameters
    ----------
    dtype, shape
    names : str
        JSON list of the texts for which its integers stand, if they do.
    """
    return hashlib.sha256(json.dumps([dtype.str, [*map(int, shape)], names]).encode())


def check_of(
    key: str, dtype: np.dtype[Any], shape: Sequence[int], metadata: Mapping[str, Any]
) -> Check:
    """Return what passes on the bytes of an array and compares their digest at the end.

    It raises ValueError if they are not those of which `metadata` hold the digest.
    """
    known = metadata.get(DIGEST_KEY + key)

    def checked(chunks: Iterable[bytes]) -> Iterator[bytes]:
        digest = digest_of(dtype, shape, str(metadata.get(key + NAMES_KEY, "")))
        for chunk in chunks:
            digest.update(chunk)
            yield chunk
        if digest.hexdigest() != known:
            raise ValueError("its numbers do not fit the checksum in it")

    return iter if known is None else checked
