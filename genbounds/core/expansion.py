"""Bias, variance and influence of a score, from its second-order expansion in the rows.

A smooth score of the distribution P_n of n rows is, to second order around its truth,

    T(P_n) = T(P) + (1/n) Σ_i IF(x_i) + (1/n²) Σ_ij h(x_i, x_j),

with the influence function IF and the symmetric kernel h of the quadratic part, both of mean zero
in either argument. Every score of this package has that form; what differs is IF and h, which a
`Form` gives for blocks of rows. From it follow, for every score alike,

* the bias, tr M with M_ij = h(x_i, x_j) / n²;
* the leave-one-out influence IF(x_i) - 2 h(x_i, x_i) / n: a row is part of the sample that it is
  compared with, and without this heavy tails inflate the variance;
* the variance. The mean square of those influences contains the noise of the other rows, 4 Σ M_ij²
  over pairs i ≠ j, where the quadratic part itself varies by 2 Σ M_ij²: half of it is subtracted,
  down to the variance of the quadratic part, which is all there is where IF vanishes;
* the curvature Σ IF(x_i) IF(x_j) M_ij over i ≠ j: how value and estimated variance move together.

The same holds for the independent units of a design (`design`): with the steps p_I of the weights,
G_I = Σ_i p_I,i IF(x_i) takes the place of IF(x_i)/n and M_IJ = Σ_ij p_I,i p_J,j h(x_i, x_j) that of
h(x_i, x_j) / n². Units of unequal weight make the score a ratio as well (`Design.ratio_bias`).

A row that is drawn alone is a unit of size one. Derivation: docs/explanation/frechet.md and
docs/explanation/sampling.md. Halving (`third_order`) removes one more order of the bias.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from genbounds.core.crossed import crossed_bias, error_of_seeds, seeds_and_cells, with_seeds
from genbounds.core.design import (
    Design,
    Groups,
    Index,
    pairs_between,
    pairs_within,
    places_in,
    sums_by,
)
from genbounds.core.estimate import SampleError, Tails
from genbounds.core.moments import BLOCK_BYTES, random_parts
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


class RowTerms(NamedTuple):
    """Of a block of k rows: the influence (centred or not), h(x, x), and its known part.

    `known` is the part of `own` whose mean over all rows is known without a pass over them
    (`Form.known_mean`): of a random part of the rows only the rest has to be averaged.
    """

    influence: Float
    own: Float
    known: Float | float = 0.0


class WeightedSums(Protocol):
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


class Form(ABC):
    """What a score tells of the rows of one sample: all that its expansion needs.

    Attributes
    ----------
    n : int
        Rows of the sample.
    rows_at_hand : int
        How many of them there are; the others are known by their moments only.
    width : int
        Numbers that a block holds for each row.
    block_rows : int
        Rows of a block.
    seed : int
        Of random parts and pairs; fixed by each score, so that a result repeats.
    bounded : bool
        Whether h is bounded, so that its mean square over some pairs can be relied on.
    divisor : float
        ``bias = mean h(x, x) / divisor`` of independent rows: n - 1 for a function of P_n; n where
        covariances already have the divisor n - 1.
    known_mean : float
        Mean over all rows of what `RowTerms.known` is for each.
    partners : int
        Of each row in the random pairs for E h²; 0: pairs are disjoint.
    paired_rows : int
        At most so many rows, of all blocks together, have partners.
    """

    n: int
    rows_at_hand: int
    width: int
    block_rows: int
    seed: int
    bounded = False
    divisor: float
    known_mean = 0.0
    partners = 0
    paired_rows = 1 << 62

    def blocks(self, part: Index | None) -> Iterator[tuple[Index, Any]]:
        """Yield (positions, block) of the rows with these numbers, or of all.

        Positions count within the selection.
        """
        numbers = np.arange(self.rows_at_hand) if part is None else part
        for start in range(0, numbers.size, self.block_rows):
            at = np.arange(start, min(start + self.block_rows, numbers.size))
            yield at, self.block(numbers[at])

    @abstractmethod
    def block(self, rows: Index) -> Any:
        """Return the rows with these numbers as one block."""

    @abstractmethod
    def terms(self, block: Any, positions: Index) -> RowTerms:
        """Influence and h(x, x) of the rows of a block."""

    @abstractmethod
    def across(self, one: Any, i: Index, two: Any, j: Index) -> Float:
        """h(x_i, x_j) for rows i of one block and rows j of another, or of the same.

        Where a score has two samples, a block may be of either.
        """

    def weighted(self) -> WeightedSums | None:
        """Return empty sums, from which curvature follows; None where it is not taken."""
        return None

    def square_of(self, rows: Index, v: Float) -> float:
        """Σ_ij v_i v_j h(x_i, x_j) over the rows with these numbers, pair by pair."""
        block, k = self.block(rows), np.arange(rows.size)
        total = float(v**2 @ self.terms(block, rows).own)
        for shift in range(1, rows.size):
            other = np.roll(k, -shift)
            total += float((v * v[other]) @ _across(self, block, k, block, other))
        return total


class FormOfNumbers(Form):
    """A form whose blocks are the numbers of their rows: all of them are held anyway."""

    def __init__(self, n: int, width: int) -> None:
        self.n = self.rows_at_hand = self.block_rows = n
        self.width, self.divisor = width, n - 1.0

    def block(self, rows: Index) -> Any:
        """Return the numbers."""
        return rows


def expand(
    form: Form,
    design: Design | None = None,
    *,
    part_rows: int | None = None,
    noise_factor: float = 1.0,
    bias_only: bool = False,
) -> tuple[SampleError, float]:
    """Expand a score in the independent units of one sample.

    Parameters
    ----------
    form : Form
        Of a function of the weighted rows whose IF and h have weighted mean zero.
    design : Design, optional
        None: independent rows of equal weight.
    part_rows : int, optional
        Let random parts of about so many rows (whole cells of units) stand for all of a large
        sample. Parts are added until their noise, which is part of the variance, is small. By
        default every row is used; of weighted rows always.
    noise_factor : float
        What halving will multiply the noise of a part by.
    bias_only : bool
        Whether `variance` may be that of first order, without curvature and tails.

    Returns
    -------
    error : SampleError
        With the influence of every unit, if every unit was used.
    noise : float
        The share of the parts in `variance`.
    """
    if design is not None and design.seed is not None:
        return _expand_crossed(form, design, bias_only=bias_only), 0.0
    grouped = None if design is None or design.independent else design
    sums = _UnitSums(form, grouped, bias_only, None if bias_only else form.weighted())
    shuffler = np.random.default_rng(form.seed)
    parts: Iterable[Any] = [None]
    if grouped is not None:
        parts = _parts_of_cells(form, grouped, part_rows)
    elif part_rows is not None and part_rows < form.rows_at_hand:
        parts = random_parts(form.seed, form.rows_at_hand, part_rows)
    for part in parts:
        if grouped is None:
            sums.add_rows(part, shuffler)
        else:
            sums.add_cells(part)
        error, noise = sums.error(noise_factor)
        if noise <= PART_NOISE * error.variance:
            break
    return (error if design is None else replace(error, units=design.labels)), noise


def _parts_of_cells(
    form: Form, design: Design, part_rows: int | None = None
) -> Iterator[list[Groups]]:
    """Yield cells of units in blocks: of `part_rows` rows or a few more, then one block a time."""
    used, enough = 0, form.n
    if part_rows is not None and not design.weighted:
        enough = min(part_rows, form.n)
    size = min(max(64, BLOCK_BYTES // (8 * form.width)), enough)
    cells = design.cells(np.random.default_rng(form.seed))
    ends = np.cumsum(design.row_counts[cells.numbers])[cells.starts[1:] - 1]
    start = 0
    part: list[Groups] = []
    while start < len(cells):
        stop = min(int(np.searchsorted(ends, used + size)) + 1, len(cells))
        part.append(cells.take(np.arange(start, stop)))
        start, used = stop, int(ends[stop - 1])
        if used >= enough:
            yield part
            part = []


def _expand_crossed(form: Form, design: Design, *, bias_only: bool) -> SampleError:
    """Expand in groups as without seeds, and add what seeds do (`core.crossed`)."""
    sums = _UnitSums(form, design, bias_only, None if bias_only else form.weighted())
    sums.add_cells(*_parts_of_cells(form, design))
    seeds, cells = seeds_and_cells(design)
    own = sums.row_squares
    if cells.units < design.n:
        in_cells = _UnitSums(form, cells, bias_only=True)
        in_cells.add_cells(*_parts_of_cells(form, cells))
        own = in_cells.squares
    error, _ = sums.error(1.0)
    linear = np.zeros(design.n)
    for rows, values in sums.row_linear:
        linear[rows] = values
    of_seeds = np.split(seeds.rows.numbers, seeds.rows.starts[1:-1])
    squares = np.array([form.square_of(rows, design.weights[rows]) for rows in of_seeds])
    bias = crossed_bias((design, seeds, cells), (sums.squares, squares.sum(), own))
    error = replace(error, units=design.labels, bias=bias)
    return with_seeds(error, error_of_seeds(seeds, linear, squares))


@dataclass
class _UnitSums:
    """Sums over the units of a sample, a part of them at a time."""

    form: Form
    design: Design | None
    bias_only: bool
    curvature: WeightedSums | None = None
    columns: list[tuple[Float, Float]] = field(default_factory=list)  # Σ w IF and M_II of units
    # Where these are not all in their order: their numbers, and the known part of Σ w² h(x, x).
    numbered: list[tuple[Index, Float]] = field(default_factory=list)
    products: list[Float] = field(default_factory=list)  # M_IJ of random pairs
    row_linear: list[tuple[Index, Float]] = field(default_factory=list)  # w IF of these rows
    row_squares = 0.0  # Σ w² h(x, x)
    squares = 0.0  # Σ M_II of units that are not centred
    diagonal = 0.0  # Σ G_I² M_II
    centre: float | None = None  # of the steps of units

    def add_rows(self, part: Index | None, shuffler: np.random.Generator) -> None:
        """Absorb independent rows: those with these numbers, or all."""
        form, n = self.form, self.form.n
        centre = 0.0 if self.curvature is None else self.curvature.centre
        for at, block in form.blocks(part):
            influence, own, known = form.terms(block, at)
            linear, own = (influence - centre) / n, own / n**2
            self.columns.append((linear, own))
            if part is not None or form.rows_at_hand < n:
                known = np.broadcast_to(known, own.shape) / n**2
                self.numbered.append((at if part is None else part[at], known))
            self.row_squares += float(own.sum())
            if self.bias_only:
                continue
            order = shuffler.permutation(at.size)  # pairs must not follow the order of a file
            half = order.size // 2
            i, j = order[:half], order[half : 2 * half]
            if form.partners:
                count = form.rows_at_hand if part is None else part.size
                most = max(2, form.paired_rows * order.size // count)
                i = np.tile(order[:most], form.partners)
                j = np.concatenate([np.roll(order[:most], 1 + k) for k in range(form.partners)])
            self.products.append(_across(form, block, i, block, j) / n**2)
            if self.curvature is not None:
                steps = linear - 2.0 * own
                # A constant leaves the square as it is, h having mean zero, but not the
                # diagonal. That of the first block is near enough to the one of all.
                self.centre = float(steps.mean()) if self.centre is None else self.centre
                steps -= self.centre
                self.curvature.add(block, steps / n)
                self.diagonal += float(steps**2 @ own)

    def add_cells(self, part: Sequence[Groups]) -> None:
        """Absorb cells of units, all rows of several as one block."""
        form, design = self.form, self.design
        assert design is not None
        centre = 0.0 if self.curvature is None else self.curvature.centre
        for cells in part:
            units = cells.numbers
            rows, starts = design.rows.take(units)
            block, weights = form.block(rows), design.weights[rows]
            influence, own, known = form.terms(block, rows)
            self.row_linear.append((rows, weights * influence))
            linear = np.add.reduceat(weights * (influence - centre), starts[:-1])
            row_own = np.add.reduceat(weights**2 * own, starts[:-1])
            mass = np.maximum(design.mass[units], np.finfo(np.float64).tiny)
            mixed = _products(form, block, weights, pairs_within(starts), starts.size - 1)
            own = row_own + 2.0 * mixed
            self.row_squares += float(row_own.sum())
            self.squares += float(own.sum())
            if design.stratified:
                # The mean of h over pairs of a stratum, by weight, is taken off: 0 if there is one.
                one, two, _ = pairs_within(cells.starts)
                crossed = _products(form, block, weights, _rows_of(starts, one, two), one.size)
                ratio = mass[one] / mass[two]
                each = np.append(crossed * ratio, crossed / ratio)
                shared = sums_by(np.append(one, two), each, own.size)
                own = own - shared / np.repeat(cells.sizes - 1.0, cells.sizes)
            else:
                own = own * design.own_factor[units]
            self.columns.append((linear, own))
            self.numbered.append((units, np.add.reduceat(weights**2 * known, starts[:-1])))
            if self.bias_only:
                continue
            self._add_pairs(contrasts(block, starts, cells.starts, weights, design.stratified))
            if self.curvature is not None:
                steps = linear - 2.0 * own
                if design.stratified:
                    steps = _within_cells(steps, mass, cells)
                    self.diagonal += 2.0 * float((steps[one] * steps[two]) @ crossed)
                else:
                    self.centre = float(steps.mean()) if self.centre is None else self.centre
                    steps -= self.centre
                self.diagonal += float(steps**2 @ own)
                self.curvature.add(block, weights * np.repeat(steps, np.diff(starts)))

    def _add_pairs(self, steps: Steps) -> None:
        """M_IJ of random pairs of steps from different cells, for E M_IJ²."""
        count = len(steps.rows)
        if count < 2:
            return
        cost = float(steps.rows.sizes.mean()) ** 2 * count
        shifts = int(np.clip(PAIR_BUDGET // cost, 1, min(MOST_SHIFTS, count - 1)))
        chosen = np.arange(count)[: max(32, int(count * min(1.0, PAIR_BUDGET / cost)))]
        for shift in range(1, shifts + 1):
            others = (chosen + shift) % count
            self.products.append(steps.products(self.form, chosen, steps, others))

    def error(self, noise_factor: float) -> tuple[SampleError, float]:
        """Bring together what was absorbed so far, and say what is noise of a part."""
        form, design = self.form, self.design
        units = form.n if design is None else design.units
        linear, own = map(np.concatenate, zip(*self.columns, strict=True))
        used = linear.size
        whole, times = used == units, units / used  # a sum over the units used to one over all
        known, known_bias = np.zeros(1), form.known_mean / form.n
        if self.numbered:
            numbers, known = map(np.concatenate, zip(*self.numbered, strict=True))
        if whole:  # their own mean is better: known means belong to exact coordinates
            known, known_bias = np.zeros(1), 0.0
            if self.numbered:
                place = np.argsort(numbers)
                linear, own = linear[place], own[place]
        if design is None:
            bessel, freedom = form.n / form.divisor, used - 1.0
            factor: Float | float = used / freedom
            linear -= 2.0 * own
            loo = linear - linear.mean()
        else:
            bessel = 1.0
            part = design if whole else design.of_units(numbers)
            factor, freedom = part.residual_factor, part.degrees_of_freedom
            # Not every score centres its influences: a unit with more rows must not bring their
            # mean.
            linear = part.deviations(linear)
            own = own + part.ratio_bias(linear, own if part.stratified else part.alone(own))
            loo = part.deviations(linear - 2.0 * own)
        first = times * float((factor * loo) @ loo)
        pairs = np.concatenate(self.products) if self.products else np.zeros(1)
        second = 2.0 * units**2 * float((pairs**2).mean())
        unknown = own - known
        bias = times * float(unknown.sum()) + known_bias
        of_rows = times * (self.row_squares - float(known.sum())) + known_bias
        pair_variance = min(second, 2.0 * bias**2)  # Σ M_IJ² is at most (tr M)²
        if not form.bounded:  # a pair of outliers can make it anything
            second = min(second, first)
        noise = noise_factor * (1.0 - 1.0 / times) * float(np.var(unknown)) * used * times**2
        curvature = 0.0
        if self.curvature is not None:
            curvature = times**2 * (self.curvature.square() - self.diagonal)
        most = float(np.sqrt(pair_variance / 2.0))  # no direction has more
        # On the scale of influences: a sum of squares over used² is the variance.
        influence = typical = np.sqrt(units * used) * loo
        if design is not None and not design.weighted:
            # Sizes of groups are known, and allowed for: a large group alone is no heavy tail.
            typical = influence / np.sqrt(part.mass / part.mass.mean())
        error = SampleError(
            n=form.n,
            variance=max(first - second, second) + noise,
            degrees_of_freedom=freedom,
            influence=np.sqrt(factor * (1.0 - 1.0 / units)) * influence if whole else None,
            bias=bessel * bias,
            row_bias=bessel * of_rows,
            curvature=curvature,
            lean=float(np.clip(curvature / first, -most, most)) if first > 0.0 else 0.0,
            quadratic_variance=second,
            pair_variance=pair_variance,
            pairs=pairs if whole and self.products else None,
            tails=None if self.bias_only else Tails.of(typical),
        )
        return error, noise


class Steps(NamedTuple):
    """Rows of a block with coefficients, in groups: each varies as the step p_I of a unit does."""

    block: Any
    rows: Groups
    coefficients: Float

    def products(self, form: Form, chosen: Index, others: Steps, theirs: Index) -> Float:
        """Σ a_i b_j h(x_i, y_j) for step ``chosen[k]`` and step ``theirs[k]`` of the others."""
        i, j, which = pairs_between(self.rows.sizes[chosen], others.rows.sizes[theirs])
        one = places_in(self.rows.starts, chosen).numbers[i]
        other = places_in(others.rows.starts, theirs).numbers[j]
        scale = self.coefficients[one] * others.coefficients[other]
        x, y = self.rows.numbers[one], others.rows.numbers[other]
        return sums_by(which, _across(form, self.block, x, others.block, y) * scale, chosen.size)


def contrasts(block: Any, starts: Index, cells: Index, weights: Float, stratified: bool) -> Steps:
    """Return a random step for every cell of units.

    The weights of its first unit; with strata the difference to the second one over √2, either
    brought to their common weight: it has no mean.

    Parameters
    ----------
    block
        Of the rows of all units.
    starts : ndarray of shape (units + 1,)
        Where the rows of each unit begin.
    cells : ndarray of shape (cells + 1,)
        Where the units of each cell begin.
    weights : ndarray of shape (rows,)
    stratified : bool
    """
    first = cells[:-1]
    if not stratified:
        chosen = places_in(starts, first)
        return Steps(block, chosen, weights[chosen.numbers])
    rows, begin = places_in(starts, np.column_stack([first, first + 1]).ravel())
    mass = np.maximum(np.add.reduceat(weights[rows], begin[:-1]), np.finfo(np.float64).tiny)
    common = np.sqrt((mass[::2] ** 2 + mass[1::2] ** 2) / 2.0)
    scale = np.column_stack([common / mass[::2], -common / mass[1::2]]) / np.sqrt(2.0)
    coefficients = np.repeat(scale.ravel(), np.diff(begin)) * weights[rows]
    return Steps(block, Groups(rows, begin[::2]), coefficients)


def _within_cells(steps: Float, mass: Float, cells: Groups) -> Float:
    """Return the steps of units, centred within their cells by weight."""
    begin, sizes = cells.starts[:-1], cells.sizes
    means = np.add.reduceat(mass * steps, begin) / np.add.reduceat(mass, begin)
    return np.asarray(np.repeat(sizes / (sizes - 1.0), sizes) * (steps - np.repeat(means, sizes)))


def _rows_of(starts: Index, ones: Index, twos: Index) -> tuple[Index, Index, Index]:
    """All pairs of a row of unit ``ones[k]`` and a row of unit ``twos[k]``, with their k."""
    one, two = places_in(starts, ones), places_in(starts, twos)
    i, j, which = pairs_between(one.sizes, two.sizes)
    return one.numbers[i], two.numbers[j], which


def _products(
    form: Form, block: Any, weights: Float, pairs: tuple[Index, Index, Index], size: int
) -> Float:
    """Σ w_i w_j h(x_i, x_j) over pairs of rows, for each of so many sums."""
    i, j, which = pairs
    if not i.size:
        return np.zeros(size)
    values = _across(form, block, i, block, j)
    return sums_by(which, values * weights[i] * weights[j], size)


def _across(form: Form, one: Any, i: Index, two: Any, j: Index) -> Float:
    """h(x_i, y_j) for rows of two blocks, some pairs at a time."""
    step = min(max(64, PAIR_ENTRIES // form.width), PAIR_SLICE)
    if i.size <= step:
        return form.across(one, i, two, j)
    parts = range(0, i.size, step)
    return np.concatenate([form.across(one, i[k : k + step], two, j[k : k + step]) for k in parts])


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


def with_mixed_term(
    errors: Sequence[SampleError], share: float, *, bounded: bool = False
) -> list[SampleError]:
    """Correct the errors of two samples for the noise of each other.

    The influence of either sample is evaluated at the other's estimate, which adds 4 Σ M_IJ² to the
    variance of both, where the mixed term has that variance once: half of it is taken off either,
    down to that of the quadratic part and the other half.

    Parameters
    ----------
    errors : sequence of SampleError
        Of either sample.
    share : float
        2 Σ M_IJ² over units I of one sample and J of the other.
    bounded : bool
        Whether `share` can be relied on (`Form.bounded`), also where it is more than the
        influences show: near equal distributions they happen to be small where the value is low.
    """
    freed = []
    for error in errors:
        least, mixed = error.quadratic_variance + share, share
        if not bounded:
            least, mixed = min(least, error.variance), min(mixed, error.variance)
        variance = max(error.variance - share, least)
        freed.append(replace(error, variance=variance, mixed_variance=mixed))
    return freed
