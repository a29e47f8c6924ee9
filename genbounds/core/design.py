"""How a sample was drawn: what could have come out differently if the study were repeated.

A design divides the rows into independent *units* (a row, or a group of rows) inside *strata* (all
rows, or a class whose number of rows was fixed). With a_I the weights of the rows of unit I and r
units in its stratum, repeating the study changes the weights of the sample by independent steps
with the covariance of

    p_I = (r / (r - 1))^½ (a_I - mean of a over the stratum).

Bias and variance of any score follow from these steps (`core.expansion`). Rows, groups, fixed class
sizes and weights are all this one formula.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.samples import Sample
from genbounds.validation import Float, InputError

Index = NDArray[np.intp]

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
    found : bool
        Whether it is what the rows show, not what their user said.
    """

    unit: Index
    stratum: Index
    weights: Float
    labels: NDArray[Any] | None = None
    found: bool = False

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
        return self.units == self.n and not self.stratified and not self.weighted

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
    def factor(self) -> Float:
        """R / (r - 1) of the stratum of every unit."""
        r = self.sizes[self.stratum].astype(np.float64)
        out: Float = r / (r - 1.0)
        return out

    @property
    def degrees_of_freedom(self) -> float:
        """Units less strata."""
        return float(self.units - self.sizes.size)

    @property
    def free_units(self) -> float:
        """As many units without strata tell the variance; infinite for independent rows.

        No more than Kish's effective number: if few units have nearly all of the weight, the others
        tell nothing.
        """
        if self.independent:
            return np.inf
        return min(self.degrees_of_freedom + 1.0, 1.0 / float(self.mass @ self.mass))

    @property
    def effective(self) -> float:
        """Kish's effective number of rows, 1 / Σ w²."""
        return 1.0 / float(self.weights @ self.weights)

    @cached_property
    def rows(self) -> list[Index]:
        """Rows of every unit."""
        order = np.argsort(self.unit, kind="stable")
        return np.split(order, np.cumsum(np.bincount(self.unit, minlength=self.units))[:-1])

    @cached_property
    def row_counts(self) -> Index:
        """Rows of every unit."""
        return np.bincount(self.unit, minlength=self.units)

    @cached_property
    def mass(self) -> Float:
        """Sum of the weights of every unit."""
        return sums_by(self.unit, self.weights, self.units)

    def of_units(self, numbers: Index) -> Design:
        """Return the design of some units, in that order; weights as they are."""
        rows = np.concatenate([self.rows[unit] for unit in numbers])
        counts = self.row_counts[numbers]
        _, stratum = np.unique(self.stratum[numbers], return_inverse=True)
        unit = np.repeat(np.arange(numbers.size), counts)
        return Design(unit, stratum.astype(np.intp), self.weights[rows])

    def centred(self, values: Float) -> Float:
        """Subtract from one value per unit the mean of its stratum."""
        means = sums_by(self.stratum, values, self.sizes.size) / self.sizes
        out: Float = values - means[self.stratum]
        return out

    def halves(
        self, rng: np.random.Generator, names: tuple[NDArray[Any], Index] | None = None
    ) -> tuple[Index, Index] | None:
        """Divide the units of every stratum at random into halves; None where one has too few.

        Parameters
        ----------
        rng : Generator
        names : tuple of ndarray, optional
            Names of units of another sample, sorted, and the half of each: shared ones go there.

        Returns
        -------
        tuple of ndarray
            Rows of either half.
        """
        if self.sizes.min() < LEAST_HALVED:
            return None
        half = np.empty(self.units, dtype=np.intp)
        order = rng.permutation(self.units)
        order = order[np.argsort(self.stratum[order], kind="stable")]
        first = np.concatenate([[0], np.cumsum(self.sizes)[:-1]])
        half[order] = (np.arange(self.units) - first[self.stratum[order]]) % 2
        if names is not None and self.labels is not None:
            known, theirs = names
            at = np.searchsorted(known, self.labels).clip(max=known.size - 1)
            half = np.where(known[at] == self.labels, theirs[at], half)
        one, two = (np.flatnonzero(half[self.unit] == k) for k in (0, 1))
        left = [np.bincount(self.stratum[half == k], minlength=self.sizes.size) for k in (0, 1)]
        return None if np.min(left) < 2 else (one, two)

    def named_halves(self, halves: tuple[Index, Index]) -> tuple[NDArray[Any], Index] | None:
        """Return the names of all units with the half that each is in."""
        if self.labels is None:
            return None
        half = np.zeros(self.units, dtype=np.intp)
        half[self.unit[halves[1]]] = 1
        return self.labels, half

    def restricted(self, rows: Index) -> Design:
        """Return the design of some rows, whole units of them."""
        kept, unit = np.unique(self.unit[rows], return_inverse=True)
        _, stratum = np.unique(self.stratum[kept], return_inverse=True)
        weights = self.weights[rows]
        labels = None if self.labels is None else self.labels[kept]
        return Design(
            unit.astype(np.intp), stratum.astype(np.intp), weights / weights.sum(), labels
        )

    def cells(self, rng: np.random.Generator) -> list[Index]:
        """Divide the units at random into cells of two or three of one stratum, in random order.

        What differs within a cell differs as units of one stratum do: any number of cells says
        what all units would say of a covariance within strata.
        """
        order = rng.permutation(self.units)
        order = order[np.argsort(self.stratum[order], kind="stable")]
        found: list[Index] = []
        start = 0
        for size in self.sizes:
            members = order[start : start + size]
            start += size
            found += np.split(members, np.arange(2, size - 1, 2))
        return [found[k] for k in rng.permutation(len(found))]


def row_design(n: int) -> Design:
    """Return the design of n independent rows."""
    return Design(np.arange(n), np.zeros(n, dtype=np.intp), np.full(n, 1.0 / n))


def drawn(design: Design | None) -> str:
    """Say in words what is assumed of how a sample was drawn."""
    if design is None:
        return "the rows are independent of one another"
    unit = "rows" if design.units == design.n else "groups of rows"
    text = f"the {unit} are independent of one another"
    if design.stratified:
        text += f", within {design.sizes.size} classes whose numbers were fixed"
    if design.weighted:
        text += f"; their weights count for {design.effective:.4g} equal ones"
    return text


def design_of(name: str, x: Any) -> Design | None:
    """Return the design of a sample; None for independent rows of equal weight without labels.

    Raises
    ------
    InputError
        If groups and strata do not fit each other, or leave nothing to estimate a variance from.
    """
    if not isinstance(x, Sample) or (x.groups is None and x.strata is None and x.weights is None):
        return None
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
    return Design(unit.astype(np.intp), stratum, weights, labels)


def sums_by(number: Index, values: Float, size: int) -> Float:
    """Sum values by number, from 0 to `size`."""
    out: Float = np.bincount(number, values, minlength=size).astype(np.float64, copy=False)
    return out


def pair_positions(ones: Sequence[int], twos: Sequence[int]) -> tuple[Index, Index, Index]:
    """All pairs of a row of part k of one list and of part k of another, with their k.

    Parameters
    ----------
    ones, twos : sequence of int
        Rows of each part of either list; positions count through all parts.
    """
    one, two = np.asarray(ones, dtype=np.intp), np.asarray(twos, dtype=np.intp)
    counts = one * two
    which = np.repeat(np.arange(counts.size), counts)
    within = np.arange(which.size) - np.repeat(np.cumsum(counts) - counts, counts)
    row, column = np.divmod(within, two[which])
    return (np.cumsum(one) - one)[which] + row, (np.cumsum(two) - two)[which] + column, which


def row_pairs(ones: list[Index], twos: list[Index]) -> tuple[Index, Index, Index]:
    """All pairs of a row of ``ones[k]`` and a row of ``twos[k]``, with their k."""
    i, j, which = pair_positions([one.size for one in ones], [two.size for two in twos])
    return np.concatenate(ones)[i], np.concatenate(twos)[j], which


def weighted_pairs(
    ones: list[tuple[Index, Float]], twos: list[tuple[Index, Float]]
) -> tuple[Index, Index, Float, Index]:
    """Pair the rows of weighted parts as `row_pairs` does, with the products of their weights."""
    i, j, which = pair_positions([one.size for one, _ in ones], [two.size for two, _ in twos])
    (rows, weights), (others, theirs) = (
        [np.concatenate(lists) for lists in zip(*parts, strict=True)] for parts in (ones, twos)
    )
    return rows[i], others[j], weights[i] * theirs[j], which


def chunks(cells: list[Index], sizes: Index, rows: int) -> Iterator[list[Index]]:
    """Join cells until their units have about so many rows."""
    chunk: list[Index] = []
    held = 0
    for cell in cells:
        chunk.append(cell)
        held += int(sizes[cell].sum())
        if held >= rows:
            yield chunk
            chunk, held = [], 0
    if chunk:
        yield chunk
