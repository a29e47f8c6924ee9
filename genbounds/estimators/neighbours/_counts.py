"""Precision, recall, density and coverage as counts of rows in balls, for a sample and its halves.

With B(x) the closed ball to the k-th nearest other row of x's own sample, n real rows x and m
generated rows y:

    precision = share of y in some B(x)          recall   = share of x in some B(y)
    density   = pairs with y in B(x) / (k m)     coverage = share of B(x) that hold some y
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from genbounds.core.design import Design, Index
from genbounds.estimators.neighbours._pairs import Halves, Neighbours, Rows, close_pairs
from genbounds.validation import Float

Pairs = tuple[Index, Index, Float]


class Held:
    """What the balls around n rows of one sample hold of m of the other, for each cut.

    Attributes
    ----------
    balls : ndarray of int, shape (cuts, n)
        Rows of the other sample, of the same half, in each ball.
    rows : ndarray of bool, shape (cuts, m)
        Whether each row of the other sample is in a ball.
    """

    def __init__(self, cuts: int, n: int, m: int) -> None:
        self.balls = np.zeros((cuts, n), dtype=np.int64)
        self.rows = np.zeros((cuts, m), dtype=bool)

    def add(self, pairs: Pairs, radii: Float, centre_half: Halves, row_half: Halves) -> None:
        """Count pairs of a centre and a row, with their squared distances.

        A ball is closed: ties and copies are in it.
        """
        i, j, squares = pairs
        for cut, radius in enumerate(radii):
            inside = (squares <= radius[i]) & (centre_half[cut, i] == row_half[cut, j])
            self.balls[cut] += np.bincount(i[inside], minlength=radius.size)
            self.rows[cut, j[inside]] = True


@dataclass(frozen=True)
class Sided:
    """One sample with its neighbours, its halves, the radii of its balls, and how it was drawn."""

    rows: Rows
    near: Neighbours
    half: Halves
    radii: Float
    design: Design


def four_scores(real: Sided, fake: Sided, k: int) -> Float:
    """Score both samples, and all their halves.

    Parameters
    ----------
    real, fake : Sided
    k : int

    Returns
    -------
    ndarray of shape (1 + 2 cuts, 4)
        Row 0: of all rows; then of either half of every cut in turns.
    """
    cuts, n, m = len(real.half), len(real.rows), len(fake.rows)
    around_real, around_fake = Held(cuts, n, m), Held(cuts, m, n)
    blocks = close_pairs(real.rows, fake.rows, real.radii.max(axis=0), fake.radii.max(axis=0))
    for i, j, squares in blocks:
        around_real.add((i, j, squares), real.radii, real.half, fake.half)
        around_fake.add((j, i, squares), fake.radii, fake.half, real.half)
    sums = by_half(around_real.balls, real.half)
    columns = (
        shares(around_real.rows, fake.half),
        shares(around_fake.rows, real.half),
        sums / (k * sizes(fake.half)),
        shares(around_real.balls > 0, real.half),
    )
    return np.stack(columns, axis=1)


def held_by_others(sample: Sided) -> Float:
    """Share of rows in the ball of another row of the same sample: what real rows get.

    It is the precision of each row against the rest, exactly: without the row, only balls that held
    it grow.

    Returns
    -------
    ndarray of shape (1 + 2 cuts,)
    """
    limit = sample.radii.max(axis=0)
    pairs = sample.near.pairs(limit)
    blocks = close_pairs(sample.rows, sample.rows, limit) if pairs is None else [pairs]
    held = Held(len(sample.half), len(limit), len(limit))
    for i, j, squares in blocks:
        others = i != j
        block = i[others], j[others], squares[others]
        held.add(block, sample.radii, sample.half, sample.half)
    return shares(held.rows, sample.half)


def held_by_other_units(sample: Sided, k: int) -> Float:
    """Precision of each group of rows against the rest of its sample, as `held_by_others`.

    Without the group of row i, the ball of j holds i if fewer than k rows of other groups are
    closer to j.
    """
    index, squares, unit = sample.near.index, sample.near.squares, sample.design.unit
    n, kept = index.shape
    entry = np.arange(n * kept)
    row, groups = np.repeat(np.arange(n), kept), unit[index].ravel()
    new_row = entry % kept == 0
    tie = _starts(new_row | np.append(True, np.diff(squares.ravel()) != 0.0))
    # The same within the entries of one group in the list of one row.
    order = np.lexsort((entry, groups, row))
    new_group = np.append(True, (np.diff(row[order]) != 0) | (np.diff(groups[order]) != 0))
    run = _starts(new_group)
    run_tie = _starts(new_group | np.append(True, np.diff(squares.ravel()[order]) != 0.0))
    other = groups != unit[row]
    held = np.zeros(sample.half.shape, dtype=bool)
    for cut, side in enumerate(sample.half):
        alive = side[index].ravel() == side[row]
        before = np.cumsum(alive) - alive
        closer = before[tie] - np.repeat(before[new_row], kept)
        before = np.cumsum(alive[order]) - alive[order]
        same = np.empty(n * kept, dtype=np.int64)
        same[order] = before[run_tie] - before[run]
        inside = alive & other & (closer - same < k)
        held[cut, index.ravel()[inside]] = True
    return shares(held, sample.half)


def expected_coverage(n: Float, m: Float, k: int) -> Float:
    """Mean coverage of equal distributions without ties, whatever they are.

    Of a real row's n - 1 real neighbours and m generated rows, all in random order of distance,
    the k nearest are all real with probability ∏ (n - 1 - i) / (n - 1 + m - i).
    """
    i = np.arange(k)[:, None]
    return np.asarray(1.0 - np.prod((n - 1.0 - i) / (n - 1.0 + m - i), axis=0))


def sizes(half: Halves) -> Float:
    """Rows of the sample and of all halves."""
    return by_half(np.ones(half.shape, dtype=np.int64), half)


def shares(chosen: NDArray[np.bool_], half: Halves) -> Float:
    """Share of the rows that are `chosen`, in the sample and in all halves."""
    return by_half(chosen, half) / sizes(half)


def by_half(values: NDArray[np.int64] | NDArray[np.bool_], half: Halves) -> Float:
    """Sum one value per row over the sample, and over either half of every cut."""
    total = values.sum(axis=1, dtype=np.float64)
    upper = (values * half).sum(axis=1, dtype=np.float64)[1:]
    return np.concatenate([total[:1], np.stack([total[1:] - upper, upper], axis=1).ravel()])


def _starts(new: NDArray[np.bool_]) -> Index:
    """For each place of a sequence, where the run that it is in begins."""
    return np.asarray(np.maximum.accumulate(np.where(new, np.arange(new.size), 0)))
