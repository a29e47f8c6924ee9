"""Seeds that cross groups: every prompt with the same seeds, say.

Two rows depend on one another if they share a group or a seed. For every bilinear form B

    E B = [same group] + [same seed] - [same cell],

a cell being a group with a seed. With the totals of groups, seeds and cells (levels A), and
Q_A = Σ_levels B(total, total) of rows about their common mean,

    E Q_A = Σ_c K_Ac σ²_c,   K_Ac = |N_Ac - m_A m_cᵀ|²,

N_Ac the table of the weights of levels of A and c, m_A its margins. Solved for the components σ²_c,
what the samples of other groups and seeds would show is Σ_c |m_c|² σ²_c, for every pattern of
missing and repeated cells: so much is the bias, of B = h. The raw sum would be low by 1/S of the
groups' part, half of it at two seeds: centring takes from the seeds what the cells take off.

The variance is that of groups alone and that of seeds alone, V_P + V_S. What cells have in common
with both is not taken off again: that is noisy where seeds are few, and costs a seventh of the
width at four seeds that do nothing, a twentieth at twenty. Either has its own degrees of freedom
(Satterthwaite). Coverage: docs/evidence/sampling.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from genbounds.core.design import Design, Index, sums_by
from genbounds.core.estimate import SampleError, welch_degrees_of_freedom
from genbounds.validation import Float


@dataclass(frozen=True)
class Crossing:
    """How groups and seeds of a design cross.

    Attributes
    ----------
    design, seeds, cells : Design
        The rows by groups, by seeds, and by both.
    """

    design: Design
    seeds: Design
    cells: Design

    @classmethod
    def of(cls, design: Design) -> Crossing:
        """Divide the rows of a design with seeds."""
        seed = design.seed
        assert seed is not None
        _, cell = np.unique(design.unit * (seed.max() + 1) + seed, return_inverse=True)
        seeds, cells = (_by(level.astype(np.intp), design.weights) for level in (seed, cell))
        return cls(design, replace(seeds, labels=design.seed_labels), cells)

    def rows_of_seeds(self) -> Iterator[Index]:
        """Yield the rows of every seed."""
        rows = self.seeds.rows
        return (rows.numbers[a:b] for a, b in zip(rows.starts[:-1], rows.starts[1:], strict=True))

    def error(
        self, groups: SampleError, linear: Float, squares: tuple[float, Float, float]
    ) -> SampleError:
        """Join the error of groups with what seeds add.

        Parameters
        ----------
        groups : SampleError
            As if seeds did not matter.
        linear : ndarray of shape (n,)
            Weight times influence of every row.
        squares : tuple
            Σ M_II over groups; M_II of every seed; Σ M_II over cells.
        """
        q = np.array([squares[0], squares[1].sum(), squares[2]])
        table, wanted = self._components()
        whole = replace(groups, bias=float(wanted @ np.linalg.solve(table, q)))
        seeds = self._of_seeds(linear, squares[1])
        return with_seeds(replace(whole, variance=groups.variance + seeds.variance), seeds)

    def _of_seeds(self, linear: Float, squares: Float) -> SampleError:
        """Variance of the seeds' totals, each without what it brings to its own comparison."""
        design = self.seeds
        by_seed = sums_by(design.unit, linear, design.units)
        loo = by_seed - 2.0 * design.residual_factor * squares
        loo -= design.mass * loo.sum()
        scale = np.sqrt(design.residual_factor * (design.units * (design.units - 1.0)))
        return SampleError(
            n=design.units,
            variance=float(design.residual_factor @ loo**2),
            degrees_of_freedom=design.degrees_of_freedom,
            influence=scale * loo,
            units=design.labels,
        )

    def _components(self) -> tuple[Float, Float]:
        """K of groups, seeds and cells, and |m|² of each."""
        levels = (self.design, self.seeds, self.cells)
        table = np.array([[_table(a, b) for b in levels] for a in levels])
        return table, np.array([float(level.mass @ level.mass) for level in levels])


def with_seeds(error: SampleError, seeds: SampleError) -> SampleError:
    """Return an error, of whose variance these seeds are a part and the rest is the groups'."""
    groups = max(error.variance - seeds.variance, 0.0), error.degrees_of_freedom
    freedom = welch_degrees_of_freedom(groups, (seeds.variance, seeds.degrees_of_freedom))
    return replace(error, degrees_of_freedom=freedom, seeds=seeds)


def _by(level: Index, weights: Float) -> Design:
    return Design(level, np.zeros(int(level.max()) + 1, dtype=np.intp), weights)


def _table(one: Design, two: Design) -> float:
    """|N - m_1 m_2ᵀ|², N the weights of levels of either that rows have in common."""
    pairs, at = np.unique(one.unit * two.units + two.unit, return_inverse=True)
    common = sums_by(at, one.weights, pairs.size)
    products = one.mass[pairs // two.units] * two.mass[pairs % two.units]
    whole = float(one.mass @ one.mass) * float(two.mass @ two.mass)
    return float(common @ (common - 2.0 * products)) + whole
