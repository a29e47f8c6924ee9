"""Regions of the feature space in which two samples look different: cells of k-means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds._process import silenced
from genbounds.validation import Float, seeded

CELLS = (10, 20, 40)
"""Numbers of cells: large kinds of rows are seen by few cells, small ones by many."""

REGIONS = 10
"""Cells that are kept: the more are tested, the less each of them can show."""

CHANCES = 2
"""Cells that may show the same: the second is for where the first was an accident."""

OVERLAP = 0.5
"""Share of the rows of the smaller of two cells from which on they show the same."""

FITTED_ROWS = 20_000
"""Rows that k-means is fitted to, at most; all rows are assigned to its cells."""

LEAST_ROWS = 4
"""Rows per cell on average, without which so many cells are not tried."""

Mask = NDArray[np.bool_]
Index = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Cell:
    """A region: which rows of either sample lie in it, and what the discovery rows show.

    Attributes
    ----------
    fake, real : ndarray of bool, shape (n,)
        Of all rows, also of those that did not help to find it.
    nearest : dict of str to ndarray of int
        Rows of "fake" and of "real" in it, the nearest to its centre first.
    more : bool
        Whether the discovery rows show more generated rows there than real ones.
    """

    fake: Mask
    real: Mask
    nearest: dict[str, Index]
    more: bool

    def repeats(self, other: Cell) -> bool:
        """Whether it shows what `other` shows: most rows of one of them are in both."""
        mine, its = (np.concatenate([cell.fake, cell.real]) for cell in (self, other))
        common = (mine & its).sum()
        return bool(self.more == other.more and common > OVERLAP * min(mine.sum(), its.sum()))


def find_cells(
    fake: NDArray[Any], real: NDArray[Any], halves: tuple[Index, Index], seed: int
) -> list[Cell]:
    """Return the cells whose shares differ most among the discovery rows, those first.

    Parameters
    ----------
    fake, real : ndarray of shape (n, d)
    halves : tuple of ndarray
        The discovery rows of each. Nothing else decides what the cells are.
    seed : int
    """
    x = _scaled(fake, real, halves)
    parts = {"fake": x[: len(fake)], "real": x[len(fake) :]}
    discovery = {"fake": halves[0], "real": halves[1]}
    rng = seeded(seed, "cells")
    candidates = []
    for k, model in _fitted(parts, discovery, rng):
        cell_of = {name: model.predict(rows) for name, rows in parts.items()}
        counts = {name: np.bincount(cell_of[name][discovery[name]], minlength=k) for name in parts}
        z = _z(counts["fake"], len(halves[0]), counts["real"], len(halves[1]))
        candidates += [
            (abs(z[j]), z[j] > 0.0, {name: cell_of[name] == j for name in parts},
             model.cluster_centers_[j])
            for j in range(k)
        ]  # fmt: skip
    candidates.sort(key=lambda one: -one[0])
    cells: list[Cell] = []
    for _, more, member, centre in candidates:
        nearest = {name: _nearest(parts[name], member[name], centre) for name in parts}
        cell = Cell(member["fake"], member["real"], nearest, bool(more))
        # Pieces of one strong change must not take the places of all others.
        if sum(cell.repeats(other) for other in cells) < CHANCES:
            cells.append(cell)
        if len(cells) == REGIONS:
            break
    return cells


def _scaled(
    fake: NDArray[Any], real: NDArray[Any], halves: tuple[Index, Index]
) -> NDArray[np.float32]:
    """Return all rows centred, in single precision, divided so that none overflows there."""
    seen = np.concatenate([fake[halves[0]], real[halves[1]]])
    centre = seen.mean(axis=0, dtype=np.float64)
    scale = float(np.abs(seen - centre).max()) or 1.0
    out = np.empty((len(fake) + len(real), fake.shape[1]), dtype=np.float32)
    out[: len(fake)] = (fake - centre) / scale
    out[len(fake) :] = (real - centre) / scale
    return out


def _fitted(
    parts: dict[str, NDArray[np.float32]], seen: dict[str, Index], rng: np.random.Generator
) -> list[tuple[int, Any]]:
    from sklearn.cluster import KMeans

    rows = np.concatenate([parts[name][seen[name]] for name in parts])
    # Either sample counts the same, however many rows it has.
    weights = np.concatenate([np.full(len(seen[name]), 1.0 / len(seen[name])) for name in parts])
    if len(rows) > FITTED_ROWS:
        chosen = rng.choice(len(rows), FITTED_ROWS, replace=False)
        rows, weights = rows[chosen], weights[chosen]
    weights = weights / weights.mean()
    models = []
    for k in CELLS:
        if LEAST_ROWS * k > len(rows):
            break
        model = KMeans(k, n_init=1, max_iter=50, random_state=int(rng.integers(2**31)))
        with silenced(Warning):  # fewer distinct rows than cells: some stay empty
            models.append((k, model.fit(rows, sample_weight=weights)))
    return models


def _z(k: Index, n: int, k0: Index, n0: int) -> Float:
    """Return how many standard errors the first share lies above the second."""
    p = (k + k0) / (n + n0)
    error = np.sqrt(np.maximum(p * (1.0 - p), 1e-12) * (1.0 / n + 1.0 / n0))
    out: Float = (k / n - k0 / n0) / error
    return out


def _nearest(rows: NDArray[np.float32], member: Mask, centre: NDArray[Any]) -> Index:
    inside = np.flatnonzero(member)
    gaps = ((rows[inside] - centre) ** 2).sum(axis=1)
    return inside[np.argsort(gaps, kind="stable")]
