"""Which real row is nearest to a generated one, without looking at which were trained on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds import validation
from genbounds.estimators import row_ids, unit_of
from genbounds.samples import Sample, features_of, refuse_weights
from genbounds.validation import Float, InputError

Index = NDArray[np.intp]
Mask = NDArray[np.bool_]

BLOCK_BYTES = 1 << 26
"""Of what is worked on at a time, besides the pool."""

DECADES = 10.0
"""How far the largest feature may be from 1: even in float32 its square is no rounding error."""

LEAST_UNITS = 7
"""A row, five others and one more: below it no ratio of distances is defined."""


class Pool:
    """Training and held-out rows in one random order.

    Ties between rows are broken by place, which says nothing of where a row comes from.

    Attributes
    ----------
    rows : ndarray of shape (N, d)
        A copy, centred and divided by `scale`: distances lose no digits to a common offset, and
        their squares stay within the floating type.
    centre : ndarray of shape (d,)
    scale : float
        A power of two; 1 for features of an ordinary size.
    source : ndarray of shape (N,)
        Row number in its own file.
    unit : ndarray of shape (N,)
        What a row belongs to: all rows of one group, or all equal rows, are one unit.
    trained : ndarray of shape (U,)
        Whether a unit was trained on.
    usable : ndarray of shape (U,)
        Whether a unit lies in one of the files only.
    sizes : tuple of int
        Usable units, and how many of them were trained on.
    ids : tuple of ndarray
        Digests of the training and of the held-out rows.
    unit_name : {"group", "row"}
        Whether units are groups that were given.

    Raises
    ------
    InputError
        If a sample is not legal, both hold the same rows, only one has groups, or a group is in
        both.
    """

    def __init__(self, train: Any, heldout: Any, rng: np.random.Generator) -> None:
        rows = _checked({"train": train, "heldout": heldout})
        n, total = len(rows[0]), len(rows[0]) + len(rows[1])
        order = rng.permutation(total)
        place = np.argsort(order)
        pooled = np.empty((total, rows[0].shape[1]), dtype=np.result_type(np.float32, *rows))
        pooled[place[:n]], pooled[place[n:]] = rows
        ids = row_ids(pooled)[place]
        self.ids, is_train = (ids[:n], ids[n:]), np.arange(total) < n
        self.source: Index = np.where(is_train, np.arange(total), np.arange(total) - n)[order]
        groups = _groups(train, heldout)
        self.unit_name = "row" if groups is None else "group"
        label = ids if groups is None else groups
        _, first, unit = np.unique(label[order], return_index=True, return_inverse=True)
        # Numbered by place: names might tell the file.
        self.unit: Index = np.argsort(np.argsort(first))[unit]
        self.usable: Mask = np.ones(first.size, dtype=bool)
        self.usable[self.unit[np.isin(ids, np.intersect1d(*self.ids))[order]]] = False
        self.trained: Mask = np.zeros(first.size, dtype=bool)
        self.trained[self.unit[is_train[order]]] = True
        self.sizes = int(self.usable.sum()), int((self.usable & self.trained).sum())
        if not 0 < self.sizes[1] < self.sizes[0]:
            raise InputError(
                "holds the same rows as `train`: pass rows that the model was not trained on.",
                argument="heldout",
            )
        if first.size < LEAST_UNITS:
            raise InputError(
                f"and `train` need at least {LEAST_UNITS} distinct {self.unit_name}s together; "
                f"got {first.size}.",
                argument="heldout",
            )
        self.centre: Float = pooled.mean(axis=0, dtype=np.float64)
        pooled -= self.centre
        self.scale = unit_of(max(float(pooled.max()), -float(pooled.min())), decades=DECADES)
        pooled /= self.scale
        self.rows = pooled

    def as_rows(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return other rows in the same precision, around the same centre and in this scale."""
        centred = (rows.astype(self.rows.dtype) - self.centre) / self.scale
        return centred.astype(self.rows.dtype, copy=False)


def _checked(samples: dict[str, Any]) -> list[NDArray[Any]]:
    """Return the rows of both samples, finite and without weights."""
    rows = [validation.check_features(name, features_of(x)) for name, x in samples.items()]
    validation.check_same_dimension("heldout", rows[1].shape[1], "train", rows[0].shape[1])
    for (name, given), x in zip(samples.items(), rows, strict=True):
        check_rows(name, x)
        refuse_weights(name, given, ": this test counts rows. Leave them out.")
    return rows


def _groups(train: Any, heldout: Any) -> NDArray[Any] | None:
    """Return the groups of all real rows; None if they have none."""
    one, two = (x.groups if isinstance(x, Sample) else None for x in (train, heldout))
    if one is None and two is None:
        return None
    if one is None or two is None:
        raise InputError(
            "`train` and `heldout` must both have groups, or neither: pass genbounds.Sample(x, "
            "groups=...) (--groups) for both, or none of them (--iid)."
        )
    common = np.intersect1d(one, two)
    if common.size:
        raise InputError(
            f"shares {common.size} groups with `train`: a whole group (a clip, a prompt) must be "
            "trained on or held out. Split by group, or number the groups of both apart.",
            argument="heldout",
        )
    return np.concatenate([one, two])


def check_rows(name: str, x: NDArray[Any]) -> None:
    """Refuse rows that are not finite."""
    for start in range(0, len(x), step := _step(x.shape[1], 1)):
        validation.check_finite(name, np.asarray(x[start : start + step]), first_row=start)


def _step(d: int, kept: int) -> int:
    return max(64, BLOCK_BYTES // (8 * (2 * d + 8 * kept)))


class Neighbours:
    """The nearest units of each query in a pool, exactly.

    Parameters
    ----------
    queries : ndarray of shape (m, d)
        In the precision of the pool and around its centre if `own` is given, else as they came.
    pool : Pool
    ranks : tuple of int
        Which of the nearest distinct units; the first is 1.
    own : ndarray of shape (m,), optional
        Unit of each query, which is not its own neighbour.

    Attributes
    ----------
    row : ndarray of shape (m,)
        Place in the pool of the nearest row.
    distances : ndarray of shape (m, k)
        To the nearest unit, and to those of the other ranks; in the scale of the pool.
    ratio : ndarray of shape (m,)
        Distance to the nearest unit over that to the second of the ranks; 1 if both are 0.
    """

    def __init__(
        self,
        queries: NDArray[Any],
        pool: Pool,
        ranks: tuple[int, ...] = (1, 5),
        own: Index | None = None,
    ) -> None:
        from sklearn.neighbors import NearestNeighbors

        sizes = np.sort(np.bincount(pool.unit))[::-1]
        ranks = tuple(min(rank, sizes.size - (own is not None)) for rank in ranks)
        # So many rows hold as many distinct units, whatever the sizes of the nearer ones.
        most = int(sizes[: max(ranks) - 1 + (own is not None)].sum()) + 1
        search = NearestNeighbors(n_neighbors=min(most, len(pool.rows)), algorithm="brute")
        search.fit(pool.rows)
        m, d = queries.shape
        self.row, self.distances = np.empty(m, dtype=np.intp), np.empty((m, len(ranks)))
        for start in range(0, m, step := _step(d, most)):
            part = slice(start, start + step)
            block = queries[part] if own is not None else pool.as_rows(queries[part])
            found, places = search.kneighbors(block)
            first = _first_of_unit(pool.unit[places])
            if own is not None:
                first &= pool.unit[places] != own[part, None]
            seen = first.cumsum(axis=1)
            at = np.stack([(seen >= rank).argmax(axis=1) for rank in ranks], axis=1)
            self.row[part] = np.take_along_axis(places, at[:, :1], axis=1)[:, 0]
            self.distances[part] = np.take_along_axis(found, at, axis=1)
            # Products of rows lose the digits of a small distance; differences keep them.
            gap = block.astype(np.float64) - pool.rows[self.row[part]]
            self.distances[part, 0] = np.sqrt(np.einsum("ij,ij->i", gap, gap))
        near, far = self.distances[:, 0], self.distances[:, 1]
        self.ratio: Float = np.divide(near, far, out=np.ones_like(near), where=far > 0.0)


def _first_of_unit(units: Index) -> Mask:
    """Return where each unit stands for the first time in its line."""
    order = np.argsort(units, axis=1, kind="stable")
    ordered = np.take_along_axis(units, order, axis=1)
    new = np.ones(units.shape, dtype=bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    first = np.empty_like(new)
    np.put_along_axis(first, order, new, axis=1)
    return first
