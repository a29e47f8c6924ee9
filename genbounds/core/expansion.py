"""Bias, variance and influence of a score, from its second-order expansion in the rows.

A smooth score of the distribution P_n of n rows is, to second order around its truth,

    T(P_n) = T(P) + (1/n) Σ_i IF(x_i) + (1/n²) Σ_ij h(x_i, x_j),

with the influence function IF and the symmetric kernel h of the quadratic part, both of mean zero
in either argument. Every score of this package has that form; what differs is IF and h, which a
`QuadraticForm` gives for blocks of rows. From it follow, for every score alike,

* the bias, tr M with M_ij = h(x_i, x_j) / n²;
* the leave-one-out influence IF(x_i) - 2 h(x_i, x_i) / n: a row is part of the sample that it is
  compared with, and without this heavy tails inflate the variance;
* the variance. The mean square of those influences contains the noise of the other rows, 4 Σ M_ij²
  over pairs i ≠ j, where the quadratic part itself varies by 2 Σ M_ij²: half of it is subtracted,
  down to the variance of the quadratic part, which is all there is where IF vanishes;
* the curvature Σ IF(x_i) IF(x_j) M_ij over i ≠ j: how value and estimated variance move together.

Where rows are not independent draws, the same holds for the independent units of the design
(`design`): with the steps p_I of the weights, G_I = Σ_i p_I,i IF(x_i) takes the place of IF(x_i)/n
and M_IJ = Σ_ij p_I,i p_J,j h(x_i, x_j) that of h(x_i, x_j) / n² (`expand_design`).

Derivation: docs/explanation/frechet.md and docs/explanation/sampling.md. Halving (`halved`) removes
one more order of the bias.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np

from genbounds.core.design import Design, Index, chunks, row_pairs, sums_by, weighted_pairs
from genbounds.core.estimate import SampleError, Tails
from genbounds.core.moments import BLOCK_BYTES, random_parts
from genbounds.core.tiles import ChosenRows, client_for, over_rows
from genbounds.validation import Float

PART_NOISE = 0.02
"""Parts of a large sample are added until their noise is this share of the variance."""

PAIR_SLICE = 4096
"""Pairs of rows that are evaluated at once, at most, and ..."""

PAIR_ENTRIES = 1 << 18
"""... so many that their rows have about so many entries: they stay in the cache."""

PAIR_BUDGET = 1 << 15
"""Pairs of rows, about, from which E h² is estimated where units are groups of rows."""

MOST_SHIFTS = 4
"""Random partners of every unit at most, for the same."""

HALVING_NOISE = 1 / 9
"""What halving adds to the variance of the quadratic part, as a share of it: (4 whole - halves)/3
weighs the pairs of rows within a half by 2/3 and the others by 4/3, squared 10/9 on average."""


@dataclass(frozen=True, slots=True)
class RowTerms:
    """Of a block of k rows: the influence (centred or not), h(x, x), and its known part.

    `known` is the part of `own` whose mean over all rows is known without a pass over them
    (`QuadraticForm.known_mean`): of a random part of the rows only the rest has to be averaged.
    """

    influence: Float
    own: Float
    known: Float | float = 0.0


class Weighted(Protocol):
    """Sums Σ v_i φ(x_i) over rows, with h(x, x') = φ(x)·φ(x').

    Attributes
    ----------
    centre : float
        Mean of the influences over all rows, known beforehand.
    """

    centre: float

    def add(self, block: Any, v: Float) -> None:
        """Absorb a block of rows with their weights."""

    def square(self) -> float:
        """Σ_ij v_i v_j h(x_i, x_j) over all rows absorbed."""


class QuadraticForm(ABC):
    """What a score tells of its rows; the rest of this module follows from it.

    Attributes
    ----------
    n : int
    seed : int
        Of random parts and pairs; fixed by each score, so that a result repeats.
    bounded : bool
        Whether h is bounded, so that its mean square over some pairs can be relied on.
    known_mean : float
        Mean over all rows of what `RowTerms.known` is for each.
    """

    n: int
    seed: int
    bounded = False
    known_mean = 0.0

    @property
    def known_rows(self) -> int:
        """How many of the n rows are at hand."""
        return self.n

    @property
    def bias_divisor(self) -> float:
        """``bias = mean h(x, x) / bias_divisor`` of independent rows.

        n - 1 for a function of P_n; n where covariances already have the divisor n - 1.
        """
        return self.n - 1.0

    @property
    @abstractmethod
    def width(self) -> int:
        """Numbers that a block holds for each row."""

    @abstractmethod
    def blocks(self, part: Index | None) -> Iterator[tuple[Index, Any]]:
        """Yield (positions, block) of the rows with these numbers, or of all.

        Positions count within the selection. A block is good until the next one.
        """

    @abstractmethod
    def block(self, rows: Index) -> Any:
        """Return the rows with these numbers as one block."""

    @abstractmethod
    def terms(self, block: Any, positions: Index) -> RowTerms:
        """Influence and h(x, x) of the rows of a block."""

    @abstractmethod
    def across(self, one: Any, i: Index, two: Any, j: Index) -> Float:
        """h(x_i, x_j) for rows i of one block and rows j of another, or of the same."""

    def pairing(self, order: Index, count: int) -> tuple[Index, Index]:
        """Choose pairs of different rows of a block for E h²: disjoint ones.

        `order` is a random order of its rows; `count` rows are asked for in all blocks together.
        """
        half = order.size // 2
        return order[:half], order[half : 2 * half]

    def weighted(self) -> Weighted | None:
        """Return empty sums, from which curvature follows; None where it is not taken."""
        return None


class DivisibleForm(QuadraticForm):
    """A form of which workers of a cluster can take parts of the rows.

    Attributes
    ----------
    chosen : ChosenRows
        Its rows.
    step : int
        Rows of a block.
    """

    chosen: ChosenRows
    step: int

    @abstractmethod
    def holding(self, chosen: ChosenRows) -> Self:
        """Return the form of the same sample with a part of its rows at hand."""

    @abstractmethod
    def weighted(self) -> DivisibleSums:
        """Return empty sums."""


class DivisibleSums(Weighted, Protocol):
    """Sums that can be added to those over other rows."""

    def joined(self, other: Self) -> Self:
        """Return the sums over the rows of both."""


class NumberedRows(QuadraticForm):
    """A form whose blocks are the numbers of their rows: all of them are held anyway."""

    def block(self, rows: Index) -> Index:
        """Return the numbers."""
        return rows

    def blocks(self, part: Index | None) -> Iterator[tuple[Index, Index]]:
        """Yield all rows at once."""
        chosen = np.arange(self.n) if part is None else part
        yield np.arange(chosen.size), chosen


def expand_rows(
    form: QuadraticForm,
    *,
    part_rows: int | None = None,
    known_rows: int | None = None,
    bias_only: bool = False,
    noise_factor: float = 1.0,
) -> tuple[SampleError, float]:
    """Expand a score in independent rows.

    Parameters
    ----------
    form : QuadraticForm
    part_rows : int, optional
        Let random parts of so many rows stand for all of a large sample. Parts are added until
        their noise, which is part of the variance, is small. By default every row is used.
    known_rows : int, optional
        How many of its n rows the form has, a random part of them; by default all.
    bias_only : bool
        Whether bias alone is wanted: `variance` is then that of first order, `curvature` 0.
    noise_factor : float
        What halving will multiply the noise of a part by.

    Returns
    -------
    error : SampleError
        With the influence of every row, if every row was used in its own order.
    noise : float
        The share of the parts in `variance`.
    """
    n = form.n
    rows_here = n if known_rows is None else known_rows
    size = rows_here if part_rows is None else part_rows
    terms = influence, own, known = np.empty((3, rows_here))
    used, noise = 0, 0.0
    products: list[Float] = []
    sums = None if bias_only else form.weighted()
    curved = None if sums is None else _Curvature(sums, n)
    shuffler = np.random.default_rng(form.seed)
    orders = None if bias_only else lambda at: shuffler.permutation(at.size)
    for part in random_parts(form.seed, rows_here, size):
        count = rows_here if part is None else part.size
        mine = terms[:, used : used + count]
        if part is None and isinstance(form, DivisibleForm) and client_for(form.chosen, form.step):
            products += _on_workers(form, mine, curved, orders)
        else:
            products += _absorb(form, part, count, mine, curved, orders)
        used += count
        loo = influence[:used] - (2.0 / n) * own[:used]
        loo -= loo.mean()
        first = float(np.var(loo, ddof=1)) / n
        pairs = sum(crossed.size for crossed in products)
        pair_sum = sum(float(crossed @ crossed) for crossed in products)
        second = 2.0 * pair_sum / max(pairs, 1) / n**2
        if not form.bounded:  # a pair of outliers can make it anything
            second = min(second, first)
        variance = max(first - second, second)
        rest = own[:used] - known[:used]
        noise = noise_factor * (1.0 - used / n) * float(np.var(rest)) / used / n**2
        if noise <= PART_NOISE * variance:
            break
    # Known means belong to exact coordinates: where all rows are used, their own mean is better.
    mean_own = float(own.mean()) if used == n else float(rest.mean()) + form.known_mean
    whole = used == n and part is None
    bias = mean_own / form.bias_divisor
    error = SampleError(
        n=n,
        variance=variance + noise,
        degrees_of_freedom=used - 1.0,
        influence=loo if whole else None,
        bias=bias,
        row_bias=bias,
        curvature=0.0 if curved is None else curved.value(loo, own[:used]) / n**2,
        quadratic_variance=second,
        pairs=np.concatenate(products) if whole and products else None,
        tails=None if bias_only else Tails.of(loo),
    )
    return error, noise


Orders = Callable[[Index], Index]
"""Returns a random order of the rows of a block, from their positions."""


def _absorb(
    form: QuadraticForm,
    part: Index | None,
    count: int,
    terms: Float,
    curved: _Curvature | None,
    orders: Orders | None,
) -> list[Float]:
    """Fill in the terms of rows; return h(x, x') of random pairs of them, if `orders` are given.

    `count` rows are asked for, here or by others.
    """
    influence, own, known = terms
    products = []
    for at, block in form.blocks(part):
        rows = form.terms(block, at)
        influence[at], own[at], known[at] = rows.influence, rows.own, rows.known
        if orders is not None:  # pairs must not follow the order of a file
            products.append(_cross(form, block, *form.pairing(orders(at), count)))
        if curved is not None:
            curved.add(block, rows)
    return products


def _on_workers(
    form: DivisibleForm, terms: Float, curved: _Curvature | None, orders: Orders | None
) -> list[Float]:
    """Do the same for all rows, in the same blocks, on the workers of a cluster."""
    n, step = form.chosen.n, form.step
    order = np.arange(n)
    if orders is not None:
        order = np.concatenate([orders(order[k : k + step]) for k in range(0, n, step)])
    if curved is not None:
        at, block = next(form.blocks(None))
        curved.start(form.terms(block, at))
    bare = form.holding(form.chosen.part(slice(0, 0)))
    found = over_rows(
        _absorbed,
        _Absorbed.joined,
        form.chosen,
        order,
        constants=(bare, n, curved and curved.own_centre, orders is not None),
        step=step,
    )
    terms[:] = found.terms
    if curved is not None:
        curved.sums = found.sums
    return found.products


@dataclass(frozen=True, slots=True)
class _Absorbed:
    """What `_absorb` finds of some rows, with the sums for their curvature."""

    terms: Float
    products: list[Float]
    sums: Any

    def joined(self, other: _Absorbed) -> _Absorbed:
        return _Absorbed(
            np.concatenate([self.terms, other.terms], axis=1),
            self.products + other.products,
            None if self.sums is None else self.sums.joined(other.sums),
        )


def _absorbed(
    rows: ChosenRows,
    order: Index,
    bare: DivisibleForm,
    count: int,
    own_centre: float | None,
    pairs: bool,
) -> _Absorbed:
    form, terms = bare.holding(rows), np.empty((3, rows.n))
    curved = None if own_centre is None else _Curvature(form.weighted(), form.n, own_centre)
    products = _absorb(form, None, count, terms, curved, order.__getitem__ if pairs else None)
    return _Absorbed(terms, products, None if curved is None else curved.sums)


class _Curvature:
    """Mean of IF(x) IF(x') h(x, x') over pairs of different rows, in one pass."""

    def __init__(self, sums: Weighted, n: int, own_centre: float | None = None) -> None:
        self.sums, self._n, self.own_centre = sums, n, own_centre

    def start(self, rows: RowTerms) -> float:
        """Take the first block for the centre of all."""
        self.own_centre = float(rows.own.mean())
        return self.own_centre

    def add(self, block: Any, rows: RowTerms) -> None:
        # Influences are centred before all of them are known, near enough: h has mean zero, so
        # that a constant hardly matters.
        own = rows.own - (self.start(rows) if self.own_centre is None else self.own_centre)
        loo = rows.influence - self.sums.centre - (2.0 / self._n) * own
        self.sums.add(block, loo)

    def value(self, loo: Float, own: Float) -> float:
        return (self.sums.square() - float((loo**2) @ own)) / (loo.size * (loo.size - 1.0))


def _cross(form: QuadraticForm, block: Any, i: Index, j: Index) -> Float:
    step = min(max(64, PAIR_ENTRIES // form.width), PAIR_SLICE)
    if i.size <= step:
        return form.across(block, i, block, j)
    parts = range(0, i.size, step)
    return np.concatenate(
        [form.across(block, i[k : k + step], block, j[k : k + step]) for k in parts]
    )


def expand_design(
    form: QuadraticForm,
    design: Design,
    *,
    part_rows: int | None = None,
    bias_only: bool = False,
    noise_factor: float = 1.0,
) -> tuple[SampleError, float]:
    """Expand a score in the independent units of a design.

    Parameters
    ----------
    form : QuadraticForm
        Of a function of the weighted rows whose IF and h have weighted mean zero.
    design : Design
    part_rows, bias_only, noise_factor
        As for `expand_rows`; a part is made of whole cells of units. Weighted rows are all used.

    Returns
    -------
    error : SampleError
        With the influence of every unit, if every unit was used.
    noise : float
        The share of the parts in `variance`.
    """
    found = _Units(form, design, bias_only=bias_only)
    enough = form.n if part_rows is None or design.weighted else part_rows
    size = max(64, BLOCK_BYTES // (8 * form.width))
    cells = design.cells(np.random.default_rng(form.seed))
    for chunk in chunks(cells, design.row_counts, min(size, enough)):
        found.add(chunk)
        if found.rows >= enough:
            error, noise = found.error(noise_factor)
            if noise <= PART_NOISE * error.variance:
                return error, noise
    return found.error(noise_factor)


class _Units:
    """Sums over the units of a design, a chunk of whole cells at a time."""

    def __init__(self, form: QuadraticForm, design: Design, *, bias_only: bool) -> None:
        self.form, self.design, self.bias_only = form, design, bias_only
        self.sums = None if bias_only else form.weighted()
        self.centre = 0.0 if self.sums is None else self.sums.centre
        self.numbers: list[Index] = []
        self.linear: list[Float] = []  # Σ w IF of every unit
        self.own: list[Float] = []  # Σ M_II over all units is that of these
        self.own_rows: list[Float] = []  # Σ w² h(x, x) of the rows of every unit
        self.known: list[Float] = []
        self.rows = 0
        self.pair_products: list[Float] = []
        self.diagonal = 0.0
        self.step_centre: float | None = None

    def add(self, chunk: list[Index]) -> None:
        """Absorb the units of these cells."""
        form, design = self.form, self.design
        units = np.concatenate(chunk)
        members = [design.rows[unit] for unit in units]
        rows = np.concatenate(members)
        counts = design.row_counts[units]
        stops = np.cumsum(counts)
        local = [np.arange(stop - count, stop) for stop, count in zip(stops, counts, strict=True)]
        unit = np.repeat(np.arange(units.size), counts)
        weights = design.weights[rows]
        block = form.block(rows)
        terms = form.terms(block, rows)
        linear = sums_by(unit, weights * (terms.influence - self.centre), units.size)
        own = sums_by(unit, weights**2 * terms.own, units.size)
        self.own_rows.append(own)
        if (counts > 1).any():
            own = own + 2.0 * self._products(block, weights, _pairs_within(local), units.size)
        ends = np.cumsum([cell.size for cell in chunk])
        cells = [np.arange(end - cell.size, end) for cell, end in zip(chunk, ends, strict=True)]
        pairs, crossed = self._within_cells(block, weights, local, cells)
        self.numbers.append(units)
        self.linear.append(linear)
        # The mean of h over pairs of a stratum is taken off: 0 where there is but one.
        shared = np.zeros(units.size)
        for side in pairs:
            np.add.at(shared, side, crossed)
        mates = np.concatenate([np.full(cell.size, cell.size - 1.0) for cell in cells])
        self.own.append(own - shared / mates if design.stratified else own * design.factor[units])
        self.known.append(sums_by(unit, weights**2 * terms.known, units.size))
        self.rows += rows.size
        if self.bias_only:
            return
        self._add_pairs(block, weights, local, cells)
        if self.sums is not None:
            loo = linear - 2.0 * self.own[-1]
            self._add_curvature(block, weights, unit, loo, own, cells, pairs, crossed)

    def _products(
        self, block: Any, weights: Float, pairs: tuple[Index, Index, Index], size: int
    ) -> Float:
        """Σ w_i w_j h(x_i, x_j) over pairs of rows, for each of so many sums."""
        i, j, which = pairs
        values = _cross(self.form, block, i, j) * weights[i] * weights[j]
        return sums_by(which, values, size)

    def _within_cells(
        self, block: Any, weights: Float, local: list[Index], cells: list[Index]
    ) -> tuple[tuple[Index, Index], Float]:
        """Pairs of units of one cell, and the products of their rows; none without strata."""
        none = np.zeros(0, dtype=np.intp)
        if not self.design.stratified:
            return (none, none), np.zeros(0)
        one, two, _ = _pairs_within(cells)
        pairs = row_pairs([local[k] for k in one], [local[k] for k in two])
        return (one, two), self._products(block, weights, pairs, one.size)

    def _add_pairs(
        self, block: Any, weights: Float, local: list[Index], cells: list[Index]
    ) -> None:
        """M_IJ² of random pairs of steps from different cells, for E M_IJ²."""
        steps = [contrast(cell, local, weights, self.design.stratified) for cell in cells]
        if len(steps) < 2:
            return
        cost = float(np.mean([rows.size for rows, _ in steps])) ** 2 * len(steps)
        shifts = int(np.clip(PAIR_BUDGET // cost, 1, min(MOST_SHIFTS, len(steps) - 1)))
        kept = steps[: max(32, int(len(steps) * min(1.0, PAIR_BUDGET / cost)))]
        for shift in range(1, shifts + 1):
            others = [steps[(k + shift) % len(steps)] for k in range(len(kept))]
            i, j, scale, which = weighted_pairs(kept, others)
            values = sums_by(which, _cross(self.form, block, i, j) * scale, len(kept))
            self.pair_products.append(values)

    def _add_curvature(
        self,
        block: Any,
        weights: Float,
        unit: Index,
        loo: Float,
        own: Float,
        cells: list[Index],
        pairs: tuple[Index, Index],
        crossed: Float,
    ) -> None:
        """Σ G_I p_I over the units, of which the square is Σ G_I G_J M_IJ, and its diagonal."""
        assert self.sums is not None
        if self.design.stratified:
            cell = np.repeat(np.arange(len(cells)), [one.size for one in cells])
            mates = np.bincount(cell).astype(np.float64)
            means = sums_by(cell, loo, len(cells)) / mates
            steps = (mates / (mates - 1.0))[cell] * (loo - means[cell])
        else:
            # A constant leaves the square as it is, h having mean zero, but not the diagonal. That
            # of the first chunk is near enough to the one of all.
            if self.step_centre is None:
                self.step_centre = float(loo.mean())
            steps = loo - self.step_centre
        self.sums.add(block, weights * steps[unit])
        self.diagonal += float(steps**2 @ own)
        if pairs[0].size:
            self.diagonal += 2.0 * float((steps[pairs[0]] * steps[pairs[1]]) @ crossed)

    def error(self, noise_factor: float) -> tuple[SampleError, float]:
        """Bring together what was absorbed so far, and say what is noise of a part."""
        form, design = self.form, self.design
        numbers = np.concatenate(self.numbers)
        linear, own, own_rows, known = (
            np.concatenate(x) for x in (self.linear, self.own, self.own_rows, self.known)
        )
        used, units = numbers.size, design.units
        share = units / used
        part = design if used == units else design.of_units(numbers)
        place = np.argsort(numbers) if used == units else np.arange(used)
        linear, own, known = linear[place], own[place], known[place]
        # Not every score centres its influences: a unit with more rows must not bring their mean.
        linear = linear - part.mass * (linear.sum() / part.mass.sum())
        centred = part.centred(linear)
        # Units that bring more rows than others make the score a ratio.
        own = own - part.factor * part.centred(part.mass) * centred
        loo = part.centred(linear - 2.0 * own)
        first = share * float(part.factor @ loo**2)
        pairs = np.concatenate(self.pair_products) if self.pair_products else np.zeros(1)
        second = 2.0 * units * (units - 1.0) * float((pairs**2).mean())
        if not form.bounded:  # a pair of outliers can make it anything
            second = min(second, first)
        variance = max(first - second, second)
        of_known, mean = (0.0, 0.0) if used == units else (known, form.known_mean / form.n)
        rest = own - of_known
        noise = noise_factor * (1.0 - 1.0 / share) * float(np.var(rest)) * used * share**2
        curvature = 0.0
        if self.sums is not None:
            curvature = share**2 * (self.sums.square() - self.diagonal)
        influence = None
        if used == units:
            influence = np.sqrt(part.factor * units * (units - 1.0)) * loo
        error = SampleError(
            n=form.n,
            variance=variance + noise,
            degrees_of_freedom=part.degrees_of_freedom,
            influence=influence,
            units=design.labels,
            bias=share * float(rest.sum()) + mean,
            row_bias=share * float((own_rows - of_known).sum()) + mean,
            curvature=curvature,
            quadratic_variance=second,
            pairs=pairs if used == units and self.pair_products else None,
            # On the scale of influences: a sum of squares over used² is the variance.
            tails=Tails.of(np.sqrt(units * used) * loo),
        )
        return error, noise


def _pairs_within(parts: list[Index]) -> tuple[Index, Index, Index]:
    """All pairs of different members of one part, once each, with the number of the part."""
    sizes = np.array([part.size for part in parts])
    # Most parts are alike in size.
    triangles = {size: np.triu_indices(size, 1) for size in np.unique(sizes).tolist()}
    chosen = [triangles[part.size] for part in parts]
    i, j = (
        np.concatenate([part[pair[side]] for part, pair in zip(parts, chosen, strict=True)])
        for side in (0, 1)
    )
    return i, j, np.repeat(np.arange(sizes.size), sizes * (sizes - 1) // 2)


def contrast(
    cell: Index, local: list[Index], weights: Float, stratified: bool
) -> tuple[Index, Float]:
    """Rows and coefficients that vary as the step p_I of a unit does, from the units of one cell.

    The weights of one unit; with strata the difference of two over √2, which has no mean.
    """
    first = local[cell[0]]
    if not stratified:
        return first, weights[first]
    second = local[cell[1]]
    coefficients = np.concatenate([weights[first], -weights[second]]) / np.sqrt(2.0)
    return np.concatenate([first, second]), coefficients


def third_order(second_order: float, halves: Sequence[float]) -> float:
    """Remove one more order of the bias, from the second-order values of halves of the rows.

    What is left of the bias after second order falls with 1/n²: halving multiplies it by four.
    """
    return (4.0 * second_order - float(np.mean(halves))) / 3.0


def halved(error: SampleError, *, both: bool = False) -> SampleError:
    """Add the noise of halving; pairs across samples are weighed unevenly if `both` are halved."""
    own = HALVING_NOISE * error.quadratic_variance
    mixed = HALVING_NOISE * error.mixed_variance if both else 0.0
    return replace(
        error,
        variance=error.variance + own + mixed,
        quadratic_variance=error.quadratic_variance + own,
        mixed_variance=error.mixed_variance + mixed,
    )
