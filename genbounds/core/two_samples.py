"""What two samples do together to the error of a score.

To second order a score of two samples has, beside the quadratic part h of either (`expansion`), a
mixed part 2 Σ h(x_i, y_j) / nm, which `Form.across` gives for blocks of either. From there on the
Fréchet distance and kernel distances are the same. Derivation: docs/explanation/frechet.md and
docs/explanation/sampling.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.core.design import Design, Groups, Index, product_factor
from genbounds.core.estimate import SampleError
from genbounds.core.expansion import MOST_SHIFTS, PAIR_BUDGET, Form, Steps, contrasts
from genbounds.validation import Float, InputError

LEAST_PAIRS, MOST_PAIRS = 512, 2048
"""Of steps of either sample, drawn for E h(x, y)²: it corrects a variance of which it is a small
share. As many as cost no more than ..."""

PAIR_WORK = 1 << 27
"""... so many products, where those of a row grow with the square of its width."""


Forms = tuple[Form, Form]
"""Of both samples; `across` of the first takes blocks of either."""

Designs = tuple[Design | None, Design | None]
"""Of both samples; None: independent rows."""


def mixed_square(forms: Forms, designs: Designs) -> float:
    """Σ M_IJ² over the units I of one sample and J of the other, estimated from random ones."""
    rngs = [np.random.default_rng(form.seed + k) for k, form in enumerate(forms)]
    (ones, n), (twos, m) = map(_random_steps, forms, designs, rngs)
    k = np.arange(max(len(ones.rows), len(twos.rows)))
    values = ones.products(forms[0], k % len(ones.rows), twos, k % len(twos.rows))
    return n * m * float(np.mean(values**2))


def _random_steps(form: Form, design: Design | None, rng: np.random.Generator) -> tuple[Steps, int]:
    """Random steps of a sample, and how many units it has."""
    most = int(np.clip(PAIR_WORK // form.width**2, LEAST_PAIRS, MOST_PAIRS))
    if design is None or design.independent:
        rows = rng.integers(form.rows_at_hand, size=most)
        place = np.arange(most + 1)
        alone, weights = Groups(place[:-1], place), np.full(most, 1.0 / form.n)
        return Steps(form.block(rows), alone, weights), form.n
    size = float(np.mean(design.row_counts)) * (2.0 if design.stratified else 1.0)
    cells = design.cells(rng)
    count = min(int(np.clip(PAIR_BUDGET / size**2, 32, most)), len(cells))
    units, within = cells.take(np.arange(count))
    rows, starts = design.rows.take(units)
    weights = design.weights[rows]
    return contrasts(form.block(rows), starts, within, weights, design.stratified), design.units


@dataclass(frozen=True)
class SharedError:
    """What units that stand in both samples do to the error.

    Attributes
    ----------
    bias : float
        Of the mixed term.
    variance, quadratic_variance : float
        Of the score, all units of both samples together; the share of its quadratic part.
    influences : tuple of ndarray
        Of the units of either sample, with their part of the mixed term.
    steps : tuple of ndarray
        What each unit of either sample moves the score by, through both samples.
    """

    bias: float
    variance: float
    quadratic_variance: float
    influences: tuple[Float, Float]
    steps: tuple[Float, Float]


def shared_units(one: Design | None, two: Design | None, *, least: int = 2) -> NDArray[Any] | None:
    """Names of the units that two samples share; None if they share fewer than `least`."""
    if one is None or two is None or one.labels is None or two.labels is None:
        return None
    if one.series is not None or two.series is not None:
        ours, theirs = (d.labels if d.series is None else d.series.names for d in (one, two))
        _refuse_common(
            ours,
            theirs,
            "groups of the generated sample, and an order cuts them into blocks that are not the "
            "same: leave out the order, or pass blocks that both share as groups.",
        )
    if (one.labels.dtype.kind in "US") != (two.labels.dtype.kind in "US"):
        return None  # words here, numbers there
    _refuse_common(
        one.seed_labels,
        two.seed_labels,
        "seeds of the generated sample: there is no error for a distance between samples of the "
        "same seeds. Draw one of them from seeds of its own.",
    )
    common = np.intersect1d(one.labels, two.labels)
    return common if common.size >= least else None


def _refuse_common(names: NDArray[Any] | None, others: NDArray[Any] | None, why: str) -> None:
    """Refuse names that stand in both samples of a distance."""
    if names is not None and others is not None and np.isin(names, others).any():
        raise InputError(f"has {why}", "real")


def shared_error(
    forms: Forms, designs: Designs, errors: Sequence[SampleError], common: NDArray[Any]
) -> SharedError:
    """Error of two samples that share units, from the influence of every unit of either.

    A shared unit has M_II = h(x_I, x_I) + h(y_I, y_I) + 2 h(x_I, y_I), and steps of both samples
    move together: everything follows from the units of both samples as one.

    Parameters
    ----------
    forms, designs : tuple
        Both designs name their units.
    errors : sequence of SampleError
        Of either sample as if the other were exact, with the influence of every unit.
    common : ndarray
        Names of the shared units, at least two.
    """
    shared = _Shared(forms, designs, common)
    own = shared.own_products()
    steps = []
    for error, place in zip(errors, shared.units, strict=True):
        assert error.influence is not None
        size = error.influence.size
        # In the units of the estimate, centred within strata: their squares sum to the variance.
        steps.append(error.influence / np.sqrt(size * (size - 1.0)))
        steps[-1][place] -= 2.0 * (own - own.mean())
    joint = steps[0].copy(), steps[1].copy()
    joint[0][shared.units[0]] += steps[1][shared.units[1]]
    joint[1][shared.units[1]] += steps[0][shared.units[0]]
    alone = np.delete(steps[1], shared.units[1])  # a shared unit counts once
    first = float(joint[0] @ joint[0]) + float(alone @ alone)
    second = 2.0 * shared.joint_square()
    if not forms[0].bounded:  # a pair of outliers can make it anything
        second = min(second, first)
    scaled = [side * np.sqrt(side.size * (side.size - 1.0)) for side in steps]
    seeds = sum(error.seeds.variance for error in errors if error.seeds is not None)
    return SharedError(
        bias=2.0 * float(own.sum()),
        variance=max(first - second, second) + seeds,
        quadratic_variance=second,
        influences=(scaled[0], scaled[1]),
        steps=joint,
    )


def shared_bias(forms: Forms, designs: Designs, common: NDArray[Any]) -> float:
    """Bias of the mixed term alone, as in `shared_error`."""
    return 2.0 * float(_Shared(forms, designs, common).own_products().sum())


class _Shared:
    """Units that two samples share: the number of each in either design."""

    def __init__(self, forms: Forms, designs: Designs, common: NDArray[Any]) -> None:
        one, two = designs
        assert one is not None
        assert two is not None
        self.forms, self.designs = forms, (one, two)
        self.units = tuple(np.searchsorted(np.asarray(d.labels), common) for d in (one, two))
        self.stratified = one.stratified or two.stratified

    def own_products(self) -> Float:
        """h(x_I, y_I) of every shared unit, less that with another unit of its stratum."""
        ones, twos = self.units
        own = self._by_unit(ones, twos)
        if not self.stratified:
            one, two = (d.share[units] for d, units in zip(self.designs, self.units, strict=True))
            return own * product_factor(one, two, np.zeros_like(ones))
        mates, mass = twos[self._mates(self._rng())], self.designs[1].mass
        return own - self._by_unit(ones, mates) * mass[twos] / mass[mates]

    def joint_square(self) -> float:
        """Σ M_IJ² over pairs of different shared units, M_IJ of both samples together."""
        size, rng = self.units[0].size, self._rng()
        rows = float(max(design.row_counts.mean() for design in self.designs))
        rows *= 2.0 if self.stratified else 1.0
        pairs = int(np.clip(PAIR_BUDGET / rows**2, 32, MOST_SHIFTS * size))
        shifts = min(MOST_SHIFTS, size - 1)
        mates = self._mates(rng) if self.stratified else None
        order = rng.permutation(size)[: max(2, pairs // shifts)]
        # Units of one block are paired with one another: its rows are made once for all pairs.
        blocks = int(np.clip(order.size * rows * 8 // PAIR_BUDGET, 1, order.size // 2))
        values = [
            self._joint_products(units, mates, min(shifts, units.size - 1))
            for units in np.array_split(order, blocks)
        ]
        return size * (size - 1.0) * float(np.mean(np.concatenate(values) ** 2))

    def _joint_products(self, units: Index, mates: Index | None, shifts: int) -> Float:
        """M_IJ of each of these units with the next ones."""
        ones, twos = (
            self._steps(k, place[units], None if mates is None else place[mates[units]])
            for k, place in enumerate(self.units)
        )
        first, form = np.arange(units.size), self.forms[0]
        values = []
        for shift in range(1, shifts + 1):
            other = (first + shift) % units.size
            values.append(
                ones.products(form, first, ones, other)
                + twos.products(form, first, twos, other)
                + ones.products(form, first, twos, other)
                + ones.products(form, other, twos, first)
            )
        return np.concatenate(values)

    def _by_unit(self, ones: Index, twos: Index) -> Float:
        """Σ a_i b_j h(x_i, y_j) of pairs of units, some at a time so that memory does not grow."""
        values = []
        largest = max(
            int(design.row_counts[units].max())
            for design, units in zip(self.designs, (ones, twos), strict=True)
        )
        step = max(1, PAIR_BUDGET // (8 * largest))
        for start in range(0, ones.size, step):
            part = slice(start, start + step)
            steps, others = self._steps(0, ones[part]), self._steps(1, twos[part])
            k = np.arange(len(steps.rows))
            values.append(steps.products(self.forms[0], k, others, k))
        return np.concatenate(values)

    def _steps(self, k: int, units: Index, mates: Index | None = None) -> Steps:
        """Units of sample k as steps; with mates less those, over √2."""
        design, form = self.designs[k], self.forms[k]
        members = units if mates is None else np.column_stack([units, mates]).ravel()
        rows, starts = design.rows.take(members)
        cells = np.arange(0, members.size + 1, 1 if mates is None else 2)
        weights = design.weights[rows]
        return contrasts(form.block(rows), starts, cells, weights, mates is not None)

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(self.forms[0].seed)

    def _mates(self, rng: np.random.Generator) -> Index:
        """Another unit of the same stratum for each, by a cycle through its members at random."""
        stratum = self.designs[0].stratum[self.units[0]]
        order = rng.permutation(stratum.size)
        order = order[np.argsort(stratum[order], kind="stable")]
        same = stratum[order] == np.roll(stratum[order], -1)
        same[-1] = False
        firsts = np.searchsorted(stratum[order], stratum[order])
        mates = np.empty(order.size, dtype=np.intp)
        mates[order] = np.where(same, np.roll(order, -1), order[firsts])
        return mates
