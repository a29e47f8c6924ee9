"""What two samples do together to the error of a score.

To second order a score of two samples has, beside the quadratic part h of either (`expansion`), a
mixed part 2 Σ h(x_i, y_j) / nm. A score says what it is by a `Between`; from there on the
Fréchet distance and kernel distances are the same. Derivation: docs/explanation/frechet.md and
docs/explanation/sampling.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.core.design import Design, Index, sums_by, weighted_pairs
from genbounds.core.estimate import SampleError
from genbounds.core.expansion import (
    MOST_SHIFTS,
    PAIR_BUDGET,
    QuadraticForm,
    contrast,
)
from genbounds.validation import Float

PAIRS = 512
"""Of steps of either sample, drawn for E h(x, y)²: it corrects a variance of which it is a small
share."""

Between = Callable[[Any, Index, Any, Index], Float]
"""h(x_i, y_j) for rows i of a block of the first sample and rows j of one of the second."""

Part = tuple[Index, Float]
"""Rows with coefficients."""


@dataclass(frozen=True)
class Side:
    """One sample: what its rows tell to second order, and how it was drawn (None: row by row)."""

    form: QuadraticForm
    design: Design | None


def mixed_square(fake: Side, real: Side, between: Between) -> float:
    """Σ M_IJ² over the units I of one sample and J of the other, estimated from random ones."""
    one, two = (
        _random_steps(side, np.random.default_rng(side.form.seed + k))
        for k, side in enumerate((fake, real))
    )
    count = max(len(one.parts), len(two.parts))
    ones = [one.parts[k % len(one.parts)] for k in range(count)]
    twos = [two.parts[k % len(two.parts)] for k in range(count)]
    values = _products(between, one.block, two.block, ones, twos)
    return one.units * two.units * float(np.mean(values**2))


def with_mixed_term(
    errors: tuple[SampleError, SampleError], share: float, *, bounded: bool = False
) -> tuple[SampleError, SampleError]:
    """Correct the errors of two samples for the noise of each other.

    The influence of either sample is evaluated at the other's estimate, which adds 4 Σ M_IJ² to the
    variance of both, where the mixed term has that variance once: half of it is taken off either,
    down to that of the quadratic part and the other half.

    Parameters
    ----------
    errors : tuple of SampleError
        Of either sample.
    share : float
        2 Σ M_IJ² over units I of one sample and J of the other.
    bounded : bool
        Whether `share` can be relied on (`QuadraticForm.bounded`), also where it is more than the
        influences show: near equal distributions they happen to be small where the value is low.
    """
    one, two = (
        replace(
            error,
            variance=max(
                error.variance - share,
                error.quadratic_variance + share
                if bounded
                else min(error.quadratic_variance + share, error.variance),
            ),
            mixed_variance=share if bounded else min(share, error.variance),
        )
        for error in errors
    )
    return one, two


@dataclass(frozen=True)
class _Steps:
    """Random steps of one sample: parts of a block of rows, and how many units there are."""

    block: Any
    parts: list[Part]
    units: int


def _random_steps(side: Side, rng: np.random.Generator) -> _Steps:
    form, design = side.form, side.design
    if design is None or design.independent:
        rows = rng.integers(form.known_rows, size=PAIRS)
        one = np.array([1.0 / form.n])
        return _Steps(form.block(rows), [(np.array([k]), one) for k in range(PAIRS)], form.n)
    size = float(np.mean(design.row_counts)) * (2.0 if design.stratified else 1.0)
    count = int(np.clip(PAIR_BUDGET / size**2, 32, PAIRS))
    cells = design.cells(rng)[:count]
    members = [design.rows[unit] for unit in np.concatenate(cells)]
    rows = np.concatenate(members)
    stops = np.cumsum([member.size for member in members])
    local = [np.arange(stop - m.size, stop) for stop, m in zip(stops, members, strict=True)]
    weights = design.weights[rows]
    ends = np.cumsum([cell.size for cell in cells])
    numbered = [np.arange(end - cell.size, end) for cell, end in zip(cells, ends, strict=True)]
    parts = [contrast(cell, local, weights, design.stratified) for cell in numbered]
    return _Steps(form.block(rows), parts, design.units)


def _products(between: Between, one: Any, two: Any, ones: list[Part], twos: list[Part]) -> Float:
    """Σ a_i b_j h(x_i, y_j) for each pair of parts of two blocks."""
    i, j, scale, which = weighted_pairs(ones, twos)
    total = np.zeros(len(ones))
    for start in range(0, i.size, PAIR_BUDGET // 8):
        part = slice(start, start + PAIR_BUDGET // 8)
        values = between(one, i[part], two, j[part]) * scale[part]
        total += sums_by(which[part], values, len(ones))
    return total


@dataclass(frozen=True)
class SharedError:
    """What units that stand in both samples do to the error.

    Attributes
    ----------
    bias : float
        Of the mixed term.
    variance, quadratic_variance : float
        Of the score, all units of both samples together; the share of its quadratic part.
    degrees_of_freedom : float
    influences : tuple of ndarray
        Of the units of either sample, with their part of the mixed term.
    steps : tuple of ndarray
        What each unit of either sample moves the score by, through both samples.
    """

    bias: float
    variance: float
    quadratic_variance: float
    degrees_of_freedom: float
    influences: tuple[Float, Float]
    steps: tuple[Float, Float]


def shared_units(one: Design | None, two: Design | None) -> NDArray[Any] | None:
    """Names of the units that two samples share; None if they share none."""
    if one is None or two is None or one.labels is None or two.labels is None:
        return None
    if (one.labels.dtype.kind in "US") != (two.labels.dtype.kind in "US"):
        return None  # words here, numbers there
    common = np.intersect1d(one.labels, two.labels)
    return common if common.size else None


def shared_error(
    sides: tuple[Side, Side],
    errors: tuple[SampleError, SampleError],
    common: NDArray[Any],
    between: Between,
) -> SharedError:
    """Error of two samples that share units, from the influence of every unit of either.

    A shared unit has M_II = h(x_I, x_I) + h(y_I, y_I) + 2 h(x_I, y_I), and steps of both samples
    move together: everything follows from the units of both samples as one.

    Parameters
    ----------
    sides : tuple of Side
        Both with a design that names its units.
    errors : tuple of SampleError
        Of either sample as if the other were exact, with the influence of every unit.
    common : ndarray
        Names of the shared units, at least two.
    between : Between
    """
    one, two, at = _shared_places(sides, common)
    own = _own_products(sides, at, between)
    # Influences in the units of the estimate, centred within strata.
    steps = [_unit_steps(error) for error in errors]
    for side, place in zip(steps, at, strict=True):
        side[place] -= 2.0 * (own - own.mean())
    joint = steps[0].copy(), steps[1].copy()
    joint[0][at[0]] += steps[1][at[1]]
    joint[1][at[1]] += steps[0][at[0]]
    alone = np.delete(steps[1], at[1])  # a shared unit counts once
    first = float(joint[0] @ joint[0]) + float(alone @ alone)
    second = 2.0 * _joint_square(sides, at, between)
    if not sides[0].form.bounded:  # a pair of outliers can make it anything
        second = min(second, first)
    scaled = [side * np.sqrt(side.size * (side.size - 1.0)) for side in steps]
    return SharedError(
        bias=2.0 * float(own.sum()),
        variance=max(first - second, second),
        quadratic_variance=second,
        degrees_of_freedom=float(
            one.units + two.units - common.size - max(one.sizes.size, two.sizes.size)
        ),
        influences=(scaled[0], scaled[1]),
        steps=joint,
    )


def shared_bias(sides: tuple[Side, Side], common: NDArray[Any], between: Between) -> float:
    """Bias of the mixed term alone, as in `shared_error`."""
    *_, at = _shared_places(sides, common)
    return 2.0 * float(_own_products(sides, at, between).sum())


def _shared_places(
    sides: tuple[Side, Side], common: NDArray[Any]
) -> tuple[Design, Design, tuple[Index, Index]]:
    """Both designs, and the number of every shared unit in either."""
    one, two = (side.design for side in sides)
    assert one is not None
    assert two is not None
    assert one.labels is not None
    assert two.labels is not None
    return one, two, (np.searchsorted(one.labels, common), np.searchsorted(two.labels, common))


def _unit_steps(error: SampleError) -> Float:
    """Influence of every unit on the estimate; their squares add up to the variance."""
    assert error.influence is not None
    size = error.influence.size
    steps: Float = error.influence / np.sqrt(size * (size - 1.0))
    return steps


def _own_products(sides: tuple[Side, Side], at: tuple[Index, Index], between: Between) -> Float:
    """h(x_I, y_I) of every shared unit, less that with another unit of its stratum."""
    designs = [side.design for side in sides if side.design is not None]
    ones, twos = (
        [_part(design, unit) for unit in place] for design, place in zip(designs, at, strict=True)
    )
    own = _by_unit(sides, ones, twos, between)
    if not any(design.stratified for design in designs):
        return own * (own.size / (own.size - 1.0))
    mates = _mates(designs[0].stratum[at[0]], np.random.default_rng(sides[0].form.seed))
    return own - _by_unit(sides, ones, [twos[k] for k in mates], between)


def _mates(stratum: Index, rng: np.random.Generator) -> Index:
    """Another unit of the same stratum for each, by a cycle through its members in random order."""
    order = rng.permutation(stratum.size)
    order = order[np.argsort(stratum[order], kind="stable")]
    same = stratum[order] == np.roll(stratum[order], -1)
    same[-1] = False
    firsts = np.searchsorted(stratum[order], stratum[order])
    mates = np.empty(order.size, dtype=np.intp)
    mates[order] = np.where(same, np.roll(order, -1), order[firsts])
    return mates


def _part(design: Design, unit: int) -> Part:
    rows = design.rows[unit]
    return rows, design.weights[rows]


def _step(design: Design, place: Index, k: int, mates: Index | None) -> Part:
    """Rows and coefficients of the step of a unit: with strata less that of a mate, over √2."""
    rows, weights = _part(design, place[k])
    if mates is None:
        return rows, weights
    others, theirs = _part(design, place[mates[k]])
    return np.concatenate([rows, others]), np.concatenate([weights, -theirs]) / np.sqrt(2.0)


def _by_unit(
    sides: tuple[Side, Side], ones: list[Part], twos: list[Part], between: Between
) -> Float:
    """Σ a_i b_j h(x_i, y_j) of pairs of parts, some at a time so that memory does not grow."""
    found = []
    largest = max(rows.size for rows, _ in (*ones, *twos))
    step = max(1, PAIR_BUDGET // (8 * largest))
    for start in range(0, len(ones), step):
        (one, local_ones), (two, local_twos) = (
            _block_of(side.form, parts[start : start + step])
            for side, parts in zip(sides, (ones, twos), strict=True)
        )
        found.append(_products(between, one, two, local_ones, local_twos))
    return np.concatenate(found)


def _block_of(form: QuadraticForm, parts: list[Part]) -> tuple[Any, list[Part]]:
    """Return the rows of some parts as one block, and the parts by their place in it."""
    stops = np.cumsum([rows.size for rows, _ in parts])
    local = [
        (np.arange(stop - rows.size, stop), coefficients)
        for stop, (rows, coefficients) in zip(stops, parts, strict=True)
    ]
    return form.block(np.concatenate([rows for rows, _ in parts])), local


def _joint_square(sides: tuple[Side, Side], at: tuple[Index, Index], between: Between) -> float:
    """Σ M_IJ² over pairs of different shared units, M_IJ of both samples together."""
    designs = [side.design for side in sides if side.design is not None]
    rng = np.random.default_rng(sides[0].form.seed)
    size = at[0].size
    stratified = any(design.stratified for design in designs)
    rows = float(max(design.row_counts.mean() for design in designs)) * (2.0 if stratified else 1.0)
    pairs = int(np.clip(PAIR_BUDGET / rows**2, 32, MOST_SHIFTS * size))
    shifts = min(MOST_SHIFTS, size - 1)
    mates = _mates(designs[0].stratum[at[0]], rng) if stratified else None
    order = rng.permutation(size)[: max(2, pairs // shifts)]
    # Units of one block are paired with one another: its rows are made once for all pairs.
    blocks = int(np.clip(order.size * rows * 8 // PAIR_BUDGET, 1, order.size // 2))
    values = []
    for units in np.array_split(order, blocks):
        (x, ones), (y, twos) = (
            _block_of(side.form, [_step(design, place, k, mates) for k in units])
            for side, design, place in zip(sides, designs, at, strict=True)
        )
        within = [_within(side.form) for side in sides]
        for shift in range(1, min(shifts, units.size - 1) + 1):
            next_ones, next_twos = (part[shift:] + part[:shift] for part in (ones, twos))
            values.append(
                _products(within[0], x, x, ones, next_ones)
                + _products(within[1], y, y, twos, next_twos)
                + _products(between, x, y, ones, next_twos)
                + _products(between, x, y, next_ones, twos)
            )
    return size * (size - 1.0) * float(np.mean(np.concatenate(values) ** 2))


def _within(form: QuadraticForm) -> Between:
    """H of one sample, for rows of two blocks."""

    def between(one: Any, i: Index, two: Any, j: Index) -> Float:
        return form.across(one, i, two, j)

    return between
