"""How a sample was drawn: what could have come out differently if the study were repeated.

A design divides the rows into independent *units* (a row, or a group of rows) inside *strata* (all
rows, or a class whose number of rows was fixed). With a_I the weights of the rows of unit I, m_I
the share of its stratum that they are, and A the sum of a over the stratum, repeating the study
changes the weights of the sample by independent steps with the covariance of

    p_I = f_I^½ (a_I - m_I A),    f_I = 1 / (1 - 2 m_I) / (1 + Σ m_J² / (1 - 2 m_J)).

Of r equal units f is r / (r - 1). Bias and variance of any score follow from these steps
(`core.expansion`). Rows, groups, fixed class sizes and weights are all this one formula. Where
seeds cross the groups, rows that share either depend on one another: groups are the units, and
seeds a second factor (`core.crossed`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genbounds._series import Series
from genbounds.samples import Sample
from genbounds.validation import Float, InputError

Index = NDArray[np.intp]

DOMINANT_SHARE = 0.4
"""Of the weight, from which on one unit makes the value of a distance lean: its bias is half of a
standard error there, nine tenths at a share of 0.74 (FD, d = 4, beside fourteen groups of 10)."""

LEAST_LEFT = 0.2
"""Of 1 - 2 m of a unit with the share m: beyond 0.4 its own products say too little."""

LEAST_HALVED = 4
"""Units of a stratum from which it can be halved: either half must show how units vary."""


@dataclass(frozen=True)
class Design:
    """Units, strata and weights of n rows.

    Attributes
    ----------
    unit : ndarray of int, shape (n,)
        Number of the unit of each row, from 0.
    stratum : ndarray of int, shape (units,)
        Number of the stratum of each unit, from 0.
    weights : ndarray of shape (n,)
        Of the rows; they sum to one.
    labels : ndarray of shape (units,) or None
        What the units are called, by which two samples know that they share some; None for rows
        that nothing else shares.
    of_repeats : bool
        Whether equal rows are its groups, and not what the user said.
    seed : ndarray of int, shape (n,), or None
        Number of the seed of each row, from 0, where seeds cross the units.
    seed_labels : ndarray of shape (seeds,) or None
        What the seeds are called.
    series : Series or None
        Whose blocks the units are, where rows stand in a row.
    """

    unit: Index
    stratum: Index
    weights: Float
    labels: NDArray[Any] | None = None
    of_repeats: bool = False
    seed: Index | None = None
    seed_labels: NDArray[Any] | None = None
    series: Series | None = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.unit.size

    @property
    def units(self) -> int:
        """Number of independent units."""
        return self.stratum.size

    @cached_property
    def independent(self) -> bool:
        """Whether this is nothing but independent rows of equal weight."""
        alone = self.units == self.n and self.seed is None
        return alone and not self.stratified and not self.weighted

    @cached_property
    def stratified(self) -> bool:
        """Whether there is more than one stratum."""
        return bool((self.stratum != self.stratum[0]).any())

    @cached_property
    def weighted(self) -> bool:
        """Whether rows have different weights."""
        return bool(np.ptp(self.weights) > 1e-12 * self.weights.max())

    @cached_property
    def sizes(self) -> Index:
        """Units in every stratum."""
        return np.bincount(self.stratum)

    @cached_property
    def share(self) -> Float:
        """Which part of the weight of its stratum every unit has."""
        whole = self._by_stratum(self.mass)
        out: Float = self.mass / np.where(whole > 0.0, whole, 1.0)
        return out

    @cached_property
    def own_factor(self) -> Float:
        """By how much the product of every unit with itself is too small: `product_factor`."""
        return product_factor(self.share, self.share, self.stratum)

    def alone(self, own: Float) -> Float:
        """Return what each unit itself adds to Σ f_I M_II, from `own`, which is f_I M_II."""
        left = np.maximum(1.0 - 2.0 * self.share, LEAST_LEFT)
        return (own / self.own_factor - self.share**2 * self._by_stratum(own)) / left

    def ratio_bias(self, linear: Float, alone: Float) -> Float:
        """Bias of units that bring more rows than others, which make a score a ratio.

        Parameters
        ----------
        linear : ndarray of shape (units,)
            Σ w IF of every unit.
        alone : ndarray of shape (units,)
            What it adds to the bias itself, of which large units have more than small ones.
        """
        r = self.sizes[self.stratum].astype(np.float64)
        more = self.share - 1.0 / r
        return -r / (r - 1.0) * more * self.deviations(linear - 2.0 * alone)

    @cached_property
    def residual_factor(self) -> Float:
        """1 / (1 - share) of every unit: CR2, R / (r - 1) of equal ones.

        A unit with much of the weight pulls the mean towards itself: its square is too small. R. M.
        Bell and D. F. McCaffrey, "Bias reduction in standard errors for linear regression with
        multi-stage samples", Survey Methodology 28, 2002.
        """
        out: Float = 1.0 / np.maximum(1.0 - self.share, 0.5 / self.units)
        return out

    @cached_property
    def degrees_of_freedom(self) -> float:
        """Of a variance from the squares of all units, by Bell and McCaffrey's approximation.

        (tr B)² / tr B² for independent rows of one variance; units less strata if all are equal.
        """
        c = self.share**2 * self.residual_factor
        squares, sums, mass = (
            sums_by(self.stratum, x, self.sizes.size) for x in (self.share**2 - c**2, c, self.mass)
        )
        return float((mass @ mass) ** 2 / (mass**4 @ (squares + sums**2)))

    @property
    def free_units(self) -> float:
        """As many units without strata tell the variance; infinite for independent rows.

        Of weighted rows, or beside one unit with much of the weight, no more than Kish's effective
        number: if few units have nearly all of the weight, the others tell nothing.
        """
        if self.independent:
            return np.inf
        free = float(self.units - self.sizes.size) + 1.0
        if self.weighted or float(self.mass.max()) > DOMINANT_SHARE:
            return min(free, 1.0 / float(self.mass @ self.mass))
        return free

    @property
    def effective(self) -> float:
        """Kish's effective number of rows, 1 / Σ w²."""
        return 1.0 / float(self.weights @ self.weights)

    @cached_property
    def rows(self) -> Groups:
        """The rows of every unit, and their places."""
        return Groups(np.argsort(self.unit, kind="stable"), starts_of(self.row_counts))

    @cached_property
    def row_counts(self) -> Index:
        """Rows of every unit."""
        return np.bincount(self.unit, minlength=self.units)

    @cached_property
    def mass(self) -> Float:
        """Sum of the weights of every unit."""
        return sums_by(self.unit, self.weights, self.units)

    def of_units(self, units: Index) -> Design:
        """Return the design of some units, in that order; weights as they are."""
        rows, starts = self.rows.take(units)
        stratum = np.unique(self.stratum[units], return_inverse=True)[1].astype(np.intp)
        unit = np.repeat(np.arange(units.size), np.diff(starts))
        return Design(unit, stratum, self.weights[rows])

    def deviations(self, sums: Float) -> Float:
        """Subtract from one sum per unit its share of that of its stratum."""
        return sums - self.share * self._by_stratum(sums)

    def off_mean(self, values: Float) -> Float:
        """Subtract from one value per unit the weighted mean of its stratum."""
        return values - self._by_stratum(self.share * values)

    def _by_stratum(self, values: Float) -> Float:
        """For every unit, the sum over its stratum."""
        return sums_by(self.stratum, values, self.sizes.size)[self.stratum]

    def halves(
        self, rng: np.random.Generator, named: tuple[NDArray[Any], Index] | None = None
    ) -> Index | None:
        """Divide the units of every stratum at random into halves; None where one has too few.

        Parameters
        ----------
        rng : Generator
        named : tuple of ndarray, optional
            Names of units of another sample, sorted, and the half of each: shared ones go there.

        Returns
        -------
        ndarray of shape (units,)
            0 or 1.
        """
        if self.sizes.min() < LEAST_HALVED:
            return None
        order = rng.permutation(self.units)
        order = order[np.argsort(self.stratum[order], kind="stable")]
        half = np.empty(self.units, dtype=np.intp)
        half[order] = (np.arange(self.units) - starts_of(self.sizes)[self.stratum[order]]) % 2
        if named is not None and self.labels is not None:
            names, theirs = named
            at = np.searchsorted(names, self.labels).clip(max=names.size - 1)
            half = np.where(names[at] == self.labels, theirs[at], half)
        left = [np.bincount(self.stratum[half == k], minlength=self.sizes.size) for k in (0, 1)]
        return None if np.min(left) < 2 else half

    def rows_of_halves(self, half: Index) -> tuple[Index, Index]:
        """Return the rows of the units of half 0, and of those of half 1."""
        return np.flatnonzero(half[self.unit] == 0), np.flatnonzero(half[self.unit] == 1)

    def restricted(self, rows: Index) -> Design:
        """Return the design of some rows, whole units of them."""
        units, unit = np.unique(self.unit[rows], return_inverse=True)
        unit = unit.astype(np.intp)
        stratum = np.unique(self.stratum[units], return_inverse=True)[1].astype(np.intp)
        weights = self.weights[rows] / self.weights[rows].sum()
        labels = None if self.labels is None else self.labels[units]
        seed, seed_labels = self.seed, self.seed_labels
        if seed is not None and seed_labels is not None:
            seeds, seed = np.unique(seed[rows], return_inverse=True)
            seed, seed_labels = seed.astype(np.intp), seed_labels[seeds]
        return Design(unit, stratum, weights, labels, seed=seed, seed_labels=seed_labels)

    def cells(self, rng: np.random.Generator) -> Groups:
        """Divide the units at random into cells of two or three of one stratum, in random order.

        What differs within a cell differs as units of one stratum do: any number of cells says
        what all units would say of a covariance within strata.
        """
        order = rng.permutation(self.units)
        order = order[np.argsort(self.stratum[order], kind="stable")]
        stratum = self.stratum[order]
        place = np.arange(self.units) - starts_of(self.sizes)[stratum]
        within = np.minimum(place // 2, np.maximum(self.sizes[stratum] // 2 - 1, 0))
        ends = np.flatnonzero((np.diff(stratum) != 0) | (np.diff(within) != 0)) + 1
        cells = Groups(order, np.concatenate([[0], ends, [self.units]]))
        return Groups(*cells.take(rng.permutation(len(cells))))


class Groups(NamedTuple):
    """Numbers in groups: those of group k are ``numbers[starts[k]:starts[k + 1]]``."""

    numbers: Index
    starts: Index

    def __len__(self) -> int:
        return self.starts.size - 1

    @property
    def sizes(self) -> Index:
        """Numbers in every group."""
        return np.diff(self.starts)

    def take(self, groups: Index) -> Groups:
        """Return some of the groups, in that order."""
        places, starts = places_in(self.starts, groups)
        return Groups(self.numbers[places], starts)


def places_in(begin: Index, groups: Index) -> Groups:
    """Return the places of some of the groups that begin there, in that order."""
    sizes = np.diff(begin)[groups]
    starts = starts_of(sizes)
    place = np.repeat(begin[groups] - starts[:-1], sizes) + np.arange(starts[-1])
    return Groups(place, starts)


def starts_of(sizes: Index) -> Index:
    """Return where groups of these sizes begin, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(sizes)])


def row_design(n: int) -> Design:
    """Return the design of n independent rows."""
    return Design(np.arange(n), np.zeros(n, dtype=np.intp), np.full(n, 1.0 / n))


def design_of(name: str, x: Any, *, crossed: bool = False) -> Design | None:
    """Return the design of a sample; None for independent rows of equal weight without labels.

    `crossed`: whether what asks knows what to do with seeds.

    Raises
    ------
    InputError
        If groups and strata, or groups and seeds, do not fit each other, or leave nothing to
        estimate a variance from; if there are seeds and they are not known what to do with.
    """
    if not isinstance(x, Sample) or (x.groups is None and x.strata is None and x.weights is None):
        return None
    if isinstance(x.shares, str) and x.shares == "reference":
        raise InputError(
            "is 'reference', where no reference is asked for its classes: pass the share of every "
            "class.",
            argument="shares",
        )
    n = len(x)
    weights = np.full(n, 1.0 / n) if x.weights is None else x.weights
    if x.groups is None:
        unit, labels = np.arange(n), None
    else:
        labels, unit = np.unique(x.groups, return_inverse=True)
    units = n if labels is None else labels.size
    if units < 2:
        raise InputError(
            "has a single group: nothing shows how groups vary. Give the id of every group.",
            argument=name,
        )
    stratum = np.zeros(units, dtype=np.intp)
    if x.strata is not None:
        names, of_row = np.unique(x.strata, return_inverse=True)
        stratum[unit] = of_row
        if (stratum[unit] != of_row).any():
            row = int(np.flatnonzero(stratum[unit] != of_row)[0])
            raise InputError(
                f"has group {x.groups[row].item()!r} in two strata, "
                f"{names[stratum[unit[row]]].item()!r} and {x.strata[row].item()!r}: a group lies "
                "within one stratum. Are both arrays in the order of the rows?",
                argument=name,
            )
        sizes = np.bincount(stratum)
        if (sizes < 2).any():
            alone = names[int(np.argmin(sizes))].item()
            what = "row" if x.groups is None else "group"
            raise InputError(
                f"has a stratum with a single {what} ({alone!r}): nothing shows how it varies. "
                "Merge it with another stratum, or drop it.",
                argument=name,
            )
    unit = unit.astype(np.intp)
    if x.seeds is None:
        return Design(unit, stratum, weights, labels, series=x.series)
    if not crossed:
        raise InputError(
            "has seeds, for which this has no error: it is there for Fréchet and kernel distances, "
            "Inception and Vendi scores and means.",
            argument=name,
        )
    seed_labels, seed = np.unique(x.seeds, return_inverse=True)
    seed = seed.astype(np.intp)
    _check_crossing(name, unit, seed)
    return Design(unit, stratum, weights, labels, seed=seed, seed_labels=seed_labels)


def _check_crossing(name: str, unit: Index, seed: Index) -> None:
    """Refuse seeds that nothing can be learnt from."""
    units, seeds = int(unit.max()) + 1, int(seed.max()) + 1
    cells = np.unique(unit * seeds + seed).size
    if seeds == 1:
        why = "one seed for all groups: nothing shows how seeds vary. Draw from several."
    elif cells == seeds:
        why = "seeds that no two groups share: the groups say it all. Leave the seeds out."
    elif cells == units:
        why = "a single seed in every group: their parts of the variance cannot be told apart."
    else:
        return
    raise InputError(f"has {why}", argument=name)


def sums_by(number: Index, values: Float, size: int) -> Float:
    """Sum values by number, from 0 to `size`."""
    out: Float = np.bincount(number, values, minlength=size).astype(np.float64, copy=False)
    return out


def product_factor(one: Float, two: Float, stratum: Index) -> Float:
    """By how much the product of a unit with itself is too small, for every unit: f_I.

    A unit is part of the means that are taken off it. If b_I is its product in truth, it has
    M_II = (1 - m_I - n_I) b_I + m_I n_I Σ b_J on average, so that Σ f_I M_II = Σ b_I with
    f_I = 1 / (1 - m_I - n_I) / (1 + Σ m_J n_J / (1 - m_J - n_J)): r / (r - 1) of r equal units.

    Parameters
    ----------
    one, two : ndarray of shape (units,)
        m and n, shares of the units in their stratum; of two samples where these share units.
    stratum : ndarray of int, shape (units,)
    """
    left = np.maximum(1.0 - one - two, LEAST_LEFT)
    size = int(stratum.max()) + 1
    out: Float = 1.0 / (left * (1.0 + sums_by(stratum, one * two / left, size)[stratum]))
    # Of two units that are all of a stratum M_11 = M_22, whatever their shares: as of equal ones.
    whole = np.isclose(sums_by(stratum, one + two, size), 2.0)
    return np.where((whole & (np.bincount(stratum) == 2))[stratum], 2.0, out)


def pairs_between(ones: Index, twos: Index) -> tuple[Index, Index, Index]:
    """All pairs of a member of group k of one list and of group k of another, with their k.

    Parameters
    ----------
    ones, twos : ndarray of shape (groups,)
        Sizes of the groups of either list; members count through all groups.
    """
    counts = ones * twos
    which = np.repeat(np.arange(counts.size), counts)
    within = np.arange(which.size) - np.repeat(np.cumsum(counts) - counts, counts)
    row, column = np.divmod(within, twos[which])
    return (np.cumsum(ones) - ones)[which] + row, (np.cumsum(twos) - twos)[which] + column, which


def pairs_within(starts: Index) -> tuple[Index, Index, Index]:
    """All pairs of different members of one group, once each, with the number of the group."""
    sizes = np.diff(starts)
    nothing = np.zeros((3, 0), dtype=np.intp)
    found = [nothing]
    for size in np.unique(sizes[sizes > 1]).tolist():
        groups = np.flatnonzero(sizes == size)  # most groups are alike in size
        row, column = np.triu_indices(size, 1)
        first = starts[groups, None]
        which = np.broadcast_to(groups[:, None], (groups.size, row.size))
        found.append(np.stack([first + row, first + column, which]).reshape(3, -1))
    i, j, which = np.concatenate(found, axis=1)
    return i, j, which
