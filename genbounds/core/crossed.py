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

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from genbounds.core.design import Design, sums_by
from genbounds.core.estimate import SampleError, welch_degrees_of_freedom
from genbounds.validation import Float


def seeds_and_cells(design: Design) -> tuple[Design, Design]:
    """Divide the rows of a design with seeds by these, and by groups and seeds together."""
    assert design.seed is not None
    pair = design.unit * (design.seed.max() + 1) + design.seed
    cell = np.unique(pair, return_inverse=True)[1].astype(np.intp)
    one, two = (np.zeros(int(level.max()) + 1, dtype=np.intp) for level in (design.seed, cell))
    seeds = Design(design.seed, one, design.weights, design.seed_labels)
    return seeds, Design(cell, two, design.weights)


def crossed_bias(levels: Sequence[Design], squares: Sequence[float]) -> float:
    """Σ_c |m_c|² σ²_c of groups, seeds and cells; `squares`: Σ M_II over the levels of each."""
    table = np.array([[_table(a, b) for b in levels] for a in levels])
    wanted = np.array([float(level.mass @ level.mass) for level in levels])
    return float(wanted @ np.linalg.solve(table, np.array(squares)))


def error_of_seeds(design: Design, linear: Float, squares: Float) -> SampleError:
    """Variance of the seeds' totals, each without what it brings to its own comparison.

    Parameters
    ----------
    design : Design
        Of the rows by seeds.
    linear : ndarray of shape (n,)
        Weight times influence of every row.
    squares : ndarray of shape (seeds,)
        M_II of every seed.
    """
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


def with_seeds(groups: SampleError, seeds: SampleError) -> SampleError:
    """Add what seeds, or what else crosses the groups, do to the error of groups alone."""
    parts = [(one.variance, one.degrees_of_freedom) for one in (groups, seeds)]
    names = ("variance", "curvature", "skewness", "lean", "pair_variance")
    sums: dict[str, Any] = {name: getattr(groups, name) + getattr(seeds, name) for name in names}
    degrees = welch_degrees_of_freedom(*parts)
    return replace(groups, degrees_of_freedom=degrees, seeds=seeds, **sums)


def _table(one: Design, two: Design) -> float:
    """|N - m_1 m_2ᵀ|², N the weights of levels of either that rows have in common."""
    pairs, at = np.unique(one.unit * two.units + two.unit, return_inverse=True)
    common = sums_by(at, one.weights, pairs.size)
    products = one.mass[pairs // two.units] * two.mass[pairs % two.units]
    whole = float(one.mass @ one.mass) * float(two.mass @ two.mass)
    return float(common @ (common - 2.0 * products)) + whole
