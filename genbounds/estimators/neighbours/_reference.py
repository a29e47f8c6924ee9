"""Counts of rows in balls, against a real sample that is prepared once.

With B(x) the closed ball to the k-th nearest other row of x's own sample, n real rows x and m
generated rows y:

    precision = share of y in some B(x)          recall   = share of x in some B(y)
    density   = pairs with y in B(x) / (k m)     coverage = share of B(x) that hold some y

Cut both samples at random into halves: the scores of the halves are two independent repeats at half
the size, so that the mean of (S_A - S_B)² / 4 over the cuts estimates the variance of the score.
Derivation, and why nothing else does: docs/explanation/precision_recall.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds._process import threads_for
from genbounds.core.checks import Checked, check_rows
from genbounds.core.design import Design, Index, row_design
from genbounds.estimators.neighbours._pairs import Halves, Neighbours, Rows, close_pairs, framing
from genbounds.estimators.neighbours._scored import Scored, with_f_score
from genbounds.origins import check_same_encoder, origin_of
from genbounds.samples import Sample, converted, refuse_weights
from genbounds.validation import Float, InputError, check_count, check_same_dimension, seeded

ROWS_PER_NEIGHBOUR = 20
"""Minimum number of rows, in units of k: fewer leave halves whose balls are most of the sample."""

LARGEST_GROUP = 100
"""Rows of one group up to which real rows are measured against those of other groups."""


class NeighbourReference:
    """Real features prepared once, against which any number of models can be scored.

    Parameters
    ----------
    real : array_like of shape (n, d) or Sample
    k, splits, seed
        As in `precision_recall`.

    Attributes
    ----------
    n, d : int
        Real rows, and features.
    minimum : int
        Rows below which nothing is scored.
    largest_group : int
        Rows of the largest group of real rows.
    """

    def __init__(self, real: Any, *, k: int = 5, splits: int = 40, seed: int = 0) -> None:
        self.k, self.minimum = check_count("k", k), ROWS_PER_NEIGHBOUR * k
        self.splits = check_count("splits", splits, minimum=2)
        self.seed = check_count("seed", seed, minimum=0)
        self._origin = origin_of(real)
        self._seen = self._inspected("real", real)
        self.n, self.d = self._seen.rows.shape
        self._framed = framing(self._seen.rows)
        self._real = self._sided(self._seen.rows, self._seen.design)
        self.largest_group = int(self._real.design.row_counts.max())
        self._nulls: dict[int, Float] = {}

    def scored(self, name: str, fake: Any, count: Count | None = None) -> Scored:
        """Count for the sample `fake`; `name`: what it is called in an error.

        `count`: by default the scores of `PrecisionRecall`.
        """
        check_same_encoder({f"`{name}`": origin_of(fake), "`real`": self._origin})
        fake = converted(name, fake)
        given = len(fake)
        seen = self._inspected(name, self._thinned(name, fake))
        check_same_dimension(name, seen.rows.shape[1], "real", self.d)
        with threads_for(float(given) * max(self.n, given) * self.d):
            sided = self._sided(seen.rows, seen.design)
            found = (count or five_scores)(self._real, sided, self.k)
        values = np.column_stack([*found.values()])
        rows = sizes(self._real.half), sizes(sided.half)
        return Scored(values, tuple(found), rows, self.k, given, (self._seen, seen))

    def null(self, m: int) -> Float:
        """Score real rows: of the sizes of the reference and of `m` generated rows.

        Returns
        -------
        ndarray of shape (1 + 2 splits, 2)
            Precision and recall, of all rows and of all halves.
        """
        if m not in self._nulls:
            whole = held_by_others(self._real, self.k)
            part = whole if m >= self.n else held_by_others(self._part(m), self.k)
            self._nulls[m] = np.stack([whole, part], axis=1)
        return self._nulls[m]

    @property
    def tied(self) -> float:
        """Share of real rows whose next neighbour is as far away as their k-th one."""
        squares = self._real.near.squares
        if squares.shape[1] <= self.k:
            return 0.0
        return float((squares[:, self.k - 1] == squares[:, self.k]).mean())

    def _inspected(self, name: str, x: Any) -> Checked:
        return inspected(name, x, self.minimum, f"k = {self.k}")

    def _part(self, m: int) -> Sided:
        """Return a random m of the real rows, in whole groups, halved among themselves."""
        design = self._real.design
        order = seeded(self.seed, "part").permutation(design.units)
        filled = np.cumsum(design.row_counts[order]) <= m
        rows = np.flatnonzero(np.isin(design.unit, order[filled]))
        return self._sided(self._seen.rows[rows], design.restricted(rows))

    def _sided(self, rows: Rows, design: Design | None) -> Sided:
        design = design or row_design(len(rows))
        half = random_halves(design, self.splits, self.seed)
        framed = self._framed(rows)
        largest = min(int(design.row_counts.max()), LARGEST_GROUP)
        kept = max(64, 8 * self.k, 4 * (self.k + largest))
        radii = None
        while radii is None:  # halves of whole groups may need more neighbours
            near = Neighbours.of(framed, min(kept, len(rows) - 1))
            radii = near.radii(half, self.k)
            kept *= 2
        return Sided(framed, near, half, radii, design)

    def _thinned(self, name: str, fake: Any) -> Any:
        """Take as many rows as the reference has, where there are more."""
        m = len(fake)
        if m <= self.n:
            return fake
        if isinstance(fake, Sample) and (fake.labelled or fake.weights is not None):
            raise InputError(
                f"has {m} rows and the reference {self.n}: pass at most as many, in whole groups "
                "and with classes in proportion.",
                argument=name,
            )
        rows = np.sort(seeded(self.seed, "thinned").choice(m, self.n, replace=False))
        return fake[rows]


def inspected(name: str, x: Any, least: int, what: str) -> Checked:
    """Check a sample: features, at least so many rows, as `what` needs, and no weights."""
    why = ", which counts of neighbours do not take: draw rows in proportion to them."
    refuse_weights(name, x, why)
    seen = check_rows(name, x, needs="neighbours need", minimum=1)
    if (n := len(seen.rows)) < least:
        raise InputError(
            f"has {n} rows; {what} needs at least {least}: pass more rows.", argument=name
        )
    return seen


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


@dataclass(frozen=True)
class Sided:
    """One sample with its neighbours, its halves, the radii of its balls, and how it was drawn."""

    rows: Rows
    near: Neighbours
    half: Halves
    radii: Float
    design: Design

    @property
    def limit(self) -> Float:
        """Squared radius of the largest ball around each row, in any half."""
        return np.asarray(self.radii.max(axis=0))


class Held:
    """What the balls around the rows of one sample hold of another, for each cut.

    Attributes
    ----------
    balls : ndarray of int, shape (cuts, n)
        Rows of the other sample, of the same half, in each ball.
    rows : ndarray of int, shape (cuts, m)
        Balls that hold each row of the other sample.
    """

    def __init__(self, centres: Sided, others: Sided) -> None:
        self.centres, self.others = centres, others
        self.balls = np.zeros(centres.half.shape, dtype=np.int64)
        self.rows = np.zeros(others.half.shape, dtype=np.int64)

    def add(self, i: Index, j: Index, squares: Float) -> None:
        """Count pairs of a centre and a row; a ball is closed: ties and copies are in it."""
        for cut, radius in enumerate(self.centres.radii):
            inside = squares <= radius[i]
            inside &= self.centres.half[cut, i] == self.others.half[cut, j]
            self.balls[cut] += np.bincount(i[inside], minlength=radius.size)
            self.rows[cut] += np.bincount(j[inside], minlength=len(self.others.rows))


Count = Callable[[Sided, Sided, int], dict[str, Float]]
"""From real rows, generated ones and k to scores by name: of all rows, then of either half of every
cut in turns, shape (1 + 2 cuts,)."""


def five_scores(real: Sided, fake: Sided, k: int) -> dict[str, Float]:
    """Score both samples, and all their halves, as `Count`."""
    around_real, around_fake = Held(real, fake), Held(fake, real)
    for i, j, squares in close_pairs(real.rows, fake.rows, real.limit, fake.limit):
        around_real.add(i, j, squares)
        around_fake.add(j, i, squares)
    return with_f_score(
        shares(around_real.rows > 0, fake.half),
        shares(around_fake.rows > 0, real.half),
        by_half(around_real.balls, real.half) / (k * sizes(fake.half)),
        shares(around_real.balls > 0, real.half),
    )


def held_by_others(sample: Sided, k: int) -> Float:
    """Share of rows in the ball of another row of the same sample: what real rows get.

    It is the precision of each row against the rest, exactly: without the row, only balls that held
    it grow. With groups, of each group against the rest.

    Returns
    -------
    ndarray of shape (1 + 2 cuts,)
    """
    alone = sample.design.units == sample.design.n
    held = held_among(sample).rows > 0 if alone else held_by_other_units(sample, k)
    return shares(held, sample.half)


def held_among(sample: Sided) -> Held:
    """Count rows in the balls around the others of the same sample."""
    pairs = sample.near.pairs(sample.limit)
    blocks = close_pairs(sample.rows, sample.rows, sample.limit) if pairs is None else [pairs]
    held = Held(sample, sample)
    for i, j, squares in blocks:
        others = i != j
        held.add(i[others], j[others], squares[others])
    return held


def held_by_other_units(sample: Sided, k: int) -> Halves:
    """Say which rows are in the ball of a row of another group, for every cut.

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
    return held


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
