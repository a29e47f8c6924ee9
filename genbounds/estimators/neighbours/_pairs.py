"""Exact nearest neighbours, the pairs of rows close enough to lie in a ball, and realism of rows.

scikit-learn finds candidates in blocks. What is kept is computed again from the differences of
rows, in double precision: equal rows are then at distance 0, and ties are ties, which the product
of matrices behind fast distances would break by rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its submodules are loaded at their first use
from numpy.typing import NDArray

from genbounds import validation
from genbounds.core.design import Index
from genbounds.core.moments import row_blocks, spread_rows
from genbounds.core.scale import unit_of
from genbounds.origins import check_same_encoder, origin_of
from genbounds.samples import features_of
from genbounds.validation import Float, InputError

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

CENTRE_ROWS = 1024
"""Rows, about, whose mean is the centre then."""


def framing(reference: Rows) -> Callable[[Rows], Rows]:
    """Return what brings rows about a reference and into its unit, a power of two.

    Products of matrices lose digits far from the origin, squares of numbers of extreme size all of
    them. Single precision is multiplied out in double precision and has no digits to lose.
    """
    largest = max(float(np.abs(block).max()) for _, block in row_blocks(reference))
    unit = unit_of(largest, decades=DECADES)
    shift: Float | None = None
    if reference.dtype.itemsize > 4:
        few = np.asarray(spread_rows(reference, CENTRE_ROWS), np.float64) / unit
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
        # What a fast distance is off by can hide a nearer row; at distance 0 there is none. Such
        # rows are searched again, by differences of all pairs.
        error = ROUNDING * (_lengths(rows) + _lengths(others).max())
        farthest = squares.max(axis=1)
        doubtful = np.flatnonzero((error > DOUBT * farthest) & (farthest > 0.0))
        step = max(1, (BLOCK_MIB << 17) // len(others))
        for start in range(0, doubtful.size, step):
            some = doubtful[start : start + step]
            distances = scipy.spatial.distance.cdist(rows[some], others, "sqeuclidean")
            if among is None:
                distances[np.arange(some.size), some] = np.inf
            nearest = np.argpartition(distances, kept - 1, axis=1)[:, :kept]
            index[some], squares[some] = nearest, np.take_along_axis(distances, nearest, 1)
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

    for (i, j, squares), *_ in _by_blocks(x, y, close):
        if i.size * x.shape[1] <= EXACT_ENTRIES:
            squares = squared_distances(x, i, y, j)
        yield i, j, squares


def _by_blocks(x: Rows, y: Rows, reduce: Callable[[Float, int], Any]) -> Iterator[Any]:
    """Yield what `reduce` makes of blocks of fast squared distances, from the row they begin at."""
    from sklearn.metrics import pairwise_distances_chunked

    return pairwise_distances_chunked(  # type: ignore[no-any-return]
        x, y, metric="euclidean", squared=True, working_memory=BLOCK_MIB, reduce_func=reduce
    )


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


def realism(fake: Any, real: Any, *, k: int = 3) -> Float:
    """Realism of each generated row, to sort or to look at them: no score of a model.

    Parameters
    ----------
    fake : array_like of shape (m, d) or Sample
        Generated features.
    real : array_like of shape (n, d) or Sample
        Features of real rows.
    k : int
        Neighbours.

    Returns
    -------
    ndarray of shape (m,)
        1 or more: within the neighbourhood of a real row. Infinite for a copy of one.

    Raises
    ------
    InputError
        If a shape, a type or a value is not legal, or no real row has a smaller neighbourhood than
        the median.

    Notes
    -----
    The largest ratio d_k(x) / ‖y - x‖ over real rows x, with d_k the distance to the k-th nearest
    other real row; only rows x with a d_k below the median count [1]_.

    References
    ----------
    .. [1] T. Kynkäänniemi et al., "Improved precision and recall metric for assessing generative
       models", NeurIPS 2019, section 5.

    Examples
    --------
    >>> import numpy as np, genbounds as gb
    >>> rng = np.random.default_rng(0)
    >>> real = rng.normal(size=(500, 4))
    >>> found = gb.realism([[0.0, 0.0, 0.0, 0.0], [9.0, 9.0, 9.0, 9.0]], real)
    >>> bool(found[0] > 1.0 > found[1])
    True
    """
    k = validation.check_count("k", k)
    check_same_encoder({"`fake`": origin_of(fake), "`real`": origin_of(real)})
    rows = validation.check_features("real", features_of(real), minimum=k + 1)
    queries = validation.check_features("fake", features_of(fake), minimum=1)
    validation.check_same_dimension("fake", queries.shape[1], "real", rows.shape[1])
    for name, x in (("real", rows), ("fake", queries)):
        validation.check_finite(name, x)
    framed = framing(rows)
    rows, queries = framed(rows), framed(queries)
    radii = Neighbours.of(rows, k).squares[:, -1]
    small = radii < np.median(radii)
    if not small.any():
        raise InputError(
            "has no neighbourhood below the median: all rows are alike, or equally far apart.",
            argument="real",
        )
    centres, radii = rows[small], radii[small]

    def deepest(block: Float, start: int) -> Float:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = radii / block
        ratio[block == 0.0] = np.inf
        at = ratio.argmax(axis=1)
        squares = squared_distances(queries, start + np.arange(len(block)), centres, at)
        found = np.full(len(block), np.inf)
        np.divide(radii[at], squares, out=found, where=squares > 0.0)
        return found

    return np.asarray(np.sqrt(np.concatenate(list(_by_blocks(queries, centres, deepest)))))
