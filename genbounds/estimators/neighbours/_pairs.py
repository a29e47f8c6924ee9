"""Exact nearest neighbours, and the pairs of rows close enough to lie in a ball.

scikit-learn finds candidates in blocks. What is kept is computed again from the differences of
rows, in double precision: equal rows are then at distance 0, and ties are ties, which the product
of matrices behind fast distances would break by rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.core.design import Index
from genbounds.core.moments import spread_rows
from genbounds.core.scale import unit_of
from genbounds.validation import Float

Rows = NDArray[Any]

Halves = NDArray[np.bool_]
"""Shape (1 + cuts, n): which half each row is in. Number 0 is no cut, all rows in one half."""

BLOCK_MIB = 64
"""Distances held at a time."""

BLOCK_ENTRIES = 1 << 21
"""Entries of rows gathered at a time to compute distances again."""

EXACT_ENTRIES = 1 << 31
"""Entries of pairs of one block that are computed again. More are only those of a model that has
collapsed into every ball; fast distances, true to 1e-7 of themselves, then do."""

SLACK = 1e-6
"""By how much, relatively, a fast distance may exceed a limit and still be looked at."""

ROUNDING = 1e-14
"""By how much a fast distance can be off, in squared lengths of both rows."""

DOUBT = 1e-3
"""Share of the distance to the last neighbour that is kept, above which such an error counts."""


FAR = 100.0
"""Distance from the origin, in standard deviations, from which rows are centred first."""

DECADES = 9.0
"""Powers of ten from 1 up to which features have an ordinary size."""

BLOCK_ROWS = 1024


def framing(reference: Rows) -> Callable[[Rows], Rows]:
    """Return what brings rows about a reference and into its unit, a power of two.

    Products of matrices lose digits far from the origin, squares of numbers of extreme size all of
    them. Single precision is multiplied out in double precision and has no digits to lose.
    """
    starts = range(0, len(reference), BLOCK_ROWS)
    largest = max(float(np.abs(reference[start : start + BLOCK_ROWS]).max()) for start in starts)
    unit = unit_of(largest, decades=DECADES)
    shift: Float | None = None
    if reference.dtype.itemsize > 4:
        few = np.asarray(spread_rows(reference, BLOCK_ROWS), np.float64) / unit
        centre = few.mean(axis=0)
        if float(centre @ centre) > FAR**2 * float(few.var(axis=0).sum()):
            shift = centre * unit

    def framed(rows: Rows) -> Rows:
        kind = np.float64 if rows.dtype.itemsize > 4 else np.float32
        if shift is None and unit == 1.0:
            return np.asarray(rows, dtype=kind)
        out = np.array(rows, dtype=np.float64)
        if shift is not None:
            out -= shift
        out /= unit
        return out

    return framed


@dataclass(frozen=True)
class Neighbours:
    """The nearest rows of each row, nearest first.

    Attributes
    ----------
    index : ndarray of int, shape (n, kept)
    squares : ndarray of shape (n, kept)
        Squared distances.
    """

    index: Index
    squares: Float

    @classmethod
    def of(cls, rows: Rows, kept: int, *, among: Rows | None = None) -> Neighbours:
        """Find the `kept` nearest rows among others, or the nearest other ones of the same rows."""
        from sklearn.neighbors import NearestNeighbors

        others = rows if among is None else among
        near = NearestNeighbors(n_neighbors=kept, algorithm="brute").fit(others)
        # Without rows of their own the search leaves out each row itself.
        index = near.kneighbors(None if among is None else rows, return_distance=False)
        n = len(rows)
        squares = squared_distances(rows, np.repeat(np.arange(n), kept), others, index.ravel())
        index, squares = index.reshape(n, kept), squares.reshape(n, kept)
        # What a fast distance is off by can hide a nearer row; at distance 0 there is none.
        error = ROUNDING * (_lengths(rows) + _lengths(others).max())
        farthest = squares.max(axis=1)
        doubtful = np.flatnonzero((error > DOUBT * farthest) & (farthest > 0.0))
        if doubtful.size:
            _search_exactly(rows, others, doubtful, index, squares, itself=among is None)
        order = np.argsort(squares, axis=1, kind="stable")
        return cls(np.take_along_axis(index, order, 1), np.take_along_axis(squares, order, 1))

    def pairs(self, limit: Float) -> tuple[Index, Index, Float] | None:
        """All pairs (i, j) with a squared distance of at most ``limit[i]``; None if some are cut.

        Ties can go on beyond the last neighbour that was kept.
        """
        n, kept = self.index.shape
        if kept < n - 1 and (self.squares[:, -1] <= limit).any():
            return None
        i, place = np.nonzero(self.squares <= limit[:, None])
        return i, self.index[i, place], self.squares[i, place]

    def radii(self, half: Halves, k: int) -> Float | None:
        """Squared distance of each row to its k-th neighbour in its own half, for every cut.

        None where a list is too short for that.
        """
        found = np.empty(half.shape)
        for cut, side in enumerate(half):
            rank = np.cumsum(side[self.index] == side[:, None], axis=1, dtype=np.int32)
            if (rank[:, -1] < k).any():
                return None
            place = (rank >= k).argmax(axis=1)
            found[cut] = self.squares[np.arange(len(place)), place]
        return found


def _search_exactly(
    rows: Rows, others: Rows, doubtful: Index, index: Index, squares: Float, *, itself: bool
) -> None:
    """Find the nearest rows of some rows again, in place, from differences of all pairs."""
    from scipy.spatial.distance import cdist

    kept = index.shape[1]
    step = max(1, (BLOCK_MIB << 17) // len(others))
    for start in range(0, doubtful.size, step):
        some = doubtful[start : start + step]
        distances = cdist(rows[some], others, "sqeuclidean")
        if itself:
            distances[np.arange(some.size), some] = np.inf
        nearest = np.argpartition(distances, kept - 1, axis=1)[:, :kept]
        index[some], squares[some] = nearest, np.take_along_axis(distances, nearest, 1)


def nearest_rows(x: Rows, y: Rows) -> tuple[Index, Float]:
    """Find the row of `y` that is nearest to each row of `x`, and their squared distance.

    Rounding can exchange candidates that are about equally near: the nearest few are looked at.
    """
    near = Neighbours.of(x, min(4, len(y)), among=y)
    return near.index[:, 0], near.squares[:, 0]


def close_pairs(
    x: Rows, y: Rows, limit_x: Float, limit_y: Float | None = None
) -> Iterator[tuple[Index, Index, Float]]:
    """Pairs (i, j) whose squared distance is at most ``limit_x[i]`` or ``limit_y[j]``, in blocks.

    Parameters
    ----------
    x : ndarray of shape (n, d)
    y : ndarray of shape (m, d)
    limit_x, limit_y : ndarray of shapes (n,) and (m,)

    Yields
    ------
    tuple of ndarray
        Indices of both rows, squared distances.
    """
    from sklearn.metrics import pairwise_distances_chunked

    # Fast distances err by a share of the squared lengths of rows as well.
    rounding = ROUNDING * (_lengths(x).max() + _lengths(y).max())
    ceiling_x = limit_x * (1.0 + SLACK) + rounding
    ceiling_y = None if limit_y is None else limit_y * (1.0 + SLACK) + rounding

    def close(block: Float, start: int) -> list[Any]:
        near = block <= ceiling_x[start : start + len(block), None]
        if ceiling_y is not None:
            near |= block <= ceiling_y
        i, j = np.nonzero(near)
        # One entry a row of the block is what scikit-learn wants to see.
        return [(i + start, j, block[i, j].astype(np.float64))] + [None] * (len(block) - 1)

    chunks = pairwise_distances_chunked(
        x, y, metric="euclidean", squared=True, working_memory=BLOCK_MIB, reduce_func=close
    )
    for (i, j, squares), *_ in chunks:
        if i.size * x.shape[1] <= EXACT_ENTRIES:
            squares = squared_distances(x, i, y, j)
        yield i, j, squares


def squared_distances(x: Rows, i: Index, y: Rows, j: Index) -> Float:
    """Squared distances of the rows x_i and y_j, from their differences."""
    found = np.empty(i.size)
    step = max(1, BLOCK_ENTRIES // x.shape[1])
    for start in range(0, i.size, step):
        part = slice(start, start + step)
        gap = np.subtract(x[i[part]], y[j[part]], dtype=np.float64)
        found[part] = np.einsum("ij,ij->i", gap, gap)
    return found


def _lengths(rows: Rows) -> Float:
    """Squared lengths of rows."""
    return np.asarray(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
