"""Random halves of a sample: whole groups, inside strata, the same for units that samples share."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.core.design import Design
from genbounds.validation import Float, seeded

Halves = NDArray[np.bool_]
"""Shape (1 + cuts, n): which half each row is in. Number 0 is no cut, all rows in one half."""


def random_halves(design: Design, cuts: int, seed: int) -> Halves:
    """Cut a sample at random into halves, `cuts` times.

    The order of the units is random and depends on `seed` and their names alone: units with one
    name are in the same half of all samples, as far as these samples hold the same units, and so
    are rows without a name by their place.

    Parameters
    ----------
    design : Design
    cuts, seed : int

    Returns
    -------
    ndarray of bool, shape (1 + cuts, n)
    """
    stratum = design.stratum
    sizes = np.bincount(stratum)
    odd = sizes % 2
    # The spare unit of an odd stratum goes to either half in turns.
    lower = sizes // 2 + odd * (np.cumsum(odd) % 2)
    first = np.cumsum(sizes) - sizes
    found = np.zeros((1 + cuts, design.n), dtype=bool)
    upper = np.empty(design.units, dtype=bool)
    for cut, keys in enumerate(unit_keys(design, cuts, seed), 1):
        order = np.lexsort((keys, stratum))
        place = np.arange(design.units) - first[stratum[order]]
        upper[order] = place >= lower[stratum[order]]
        found[cut] = upper[design.unit]
    return found


def unit_keys(design: Design, cuts: int, seed: int) -> Float:
    """Random numbers in [0, 1), shape (cuts, units): of a name the same in every sample."""
    rng = seeded(seed, "halves")
    if design.labels is None:
        return rng.random((cuts, design.units))
    salts = rng.integers(1 << 63, size=(cuts, 1), dtype=np.uint64)
    return np.multiply(_mixed(_digests(design.labels) ^ salts), 2.0**-64, dtype=np.float64)


def _digests(labels: NDArray[Any]) -> NDArray[np.uint64]:
    if labels.dtype.kind in "iub":
        return _mixed(labels.astype(np.int64).view(np.uint64))
    digests = (blake2b(str(label).encode(), digest_size=8).digest() for label in labels)
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def _mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64 bits, each of which then depends on all (splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
