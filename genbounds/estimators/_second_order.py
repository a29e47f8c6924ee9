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
  over pairs i ≠ j, where the quadratic part itself varies by 2 Σ M_ij²: half of it is taken back,
  down to the variance of the quadratic part, which is all there is where IF vanishes;
* the curvature Σ IF(x_i) IF(x_j) M_ij over i ≠ j: how value and estimated variance move together.

Derivation: docs/frechet.md. Halving (`halved`) removes one more order of the bias.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from genbounds.estimators._estimate import SampleError
from genbounds.estimators._moments import random_parts
from genbounds.validation import Float

Index = NDArray[np.intp]

PART_NOISE = 0.02
"""Parts of a large sample are added until their noise is this share of the variance."""

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


class QuadraticForm(Protocol):
    """What a score tells of its rows; the rest of this module follows from it.

    Attributes
    ----------
    n : int
    seed : int
        Of random parts and pairs; fixed by each score, so that a result repeats.
    bias_divisor : float
        ``bias = mean h(x, x) / bias_divisor``: n - 1 for a function of P_n, n where covariances
        already have the divisor n - 1.
    known_mean : float
        Mean over all rows of what `RowTerms.known` is for each.
    bounded : bool
        Whether h is bounded, so that its mean square over some pairs can be relied on.
    """

    n: int
    seed: int
    bias_divisor: float
    known_mean: float
    bounded: bool

    def blocks(self, part: Index | None) -> Iterator[tuple[Index, Any]]:
        """Yield (positions, block) of the rows with these numbers, or of all.

        Positions count within the selection. A block is good until the next one.
        """

    def terms(self, block: Any, positions: Index) -> RowTerms:
        """Influence and h(x, x) of the rows of a block."""

    def pair_squares(self, block: Any, order: Index, count: int) -> tuple[float, int]:
        """Sum of h² over random pairs of different rows of a block, and their number.

        `order` is a random order of its rows; `count` rows are asked for in all blocks together.
        """

    def weighted(self) -> Weighted | None:
        """Return empty sums, from which curvature follows; None where it is not taken."""


def expand_rows(
    form: QuadraticForm,
    *,
    part_rows: int | None = None,
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
    n, size = form.n, form.n if part_rows is None else part_rows
    influence, own, known = np.empty(n), np.empty(n), np.empty(n)
    pair_sum, pairs, used, noise = 0.0, 0, 0, 0.0
    sums = None if bias_only else form.weighted()
    curved = None if sums is None else _Curvature(sums, n)
    shuffler = np.random.default_rng(form.seed)
    for part in random_parts(form.seed, n, size):
        count = n if part is None else part.size
        for positions, block in form.blocks(part):
            at = used + positions
            rows = form.terms(block, positions)
            influence[at], own[at], known[at] = rows.influence, rows.own, rows.known
            order = shuffler.permutation(len(at))  # pairs must not follow the order of a file
            if not bias_only:
                total, number = form.pair_squares(block, order, count)
                pair_sum, pairs = pair_sum + total, pairs + number
            if curved is not None:
                curved.add(block, rows)
        used += count
        rest = own[:used] - known[:used]
        loo = influence[:used] - (2.0 / n) * own[:used]
        loo -= loo.mean()
        first = float(np.var(loo, ddof=1)) / n
        second = 2.0 * pair_sum / max(pairs, 1) / n**2
        if not form.bounded:  # a pair of outliers can make it anything
            second = min(second, first)
        variance = max(first - second, second)
        noise = noise_factor * (1.0 - used / n) * float(np.var(rest)) / used / n**2
        if noise <= PART_NOISE * variance:
            break
    # Known means belong to exact coordinates: where all rows are used, their own mean is better.
    mean_own = float(own.mean()) if used == n else float(rest.mean()) + form.known_mean
    error = SampleError(
        n=n,
        variance=variance + noise,
        degrees_of_freedom=used - 1.0,
        influence=loo if used == n and part is None else None,
        bias=mean_own / form.bias_divisor,
        curvature=0.0 if curved is None else curved.value(loo, own[:used]) / n**2,
        quadratic_variance=second,
    )
    return error, noise


class _Curvature:
    """Mean of IF(x) IF(x') h(x, x') over pairs of different rows, in one pass."""

    def __init__(self, sums: Weighted, n: int) -> None:
        self._sums, self._n = sums, n
        self._own_centre: float | None = None

    def add(self, block: Any, rows: RowTerms) -> None:
        # Influences are centred before all of them are known, near enough: h has mean zero, so
        # that a constant hardly matters.
        if self._own_centre is None:
            self._own_centre = float(rows.own.mean())
        loo = rows.influence - self._sums.centre - (2.0 / self._n) * (rows.own - self._own_centre)
        self._sums.add(block, loo)

    def value(self, loo: Float, own: Float) -> float:
        return (self._sums.square() - float((loo**2) @ own)) / (loo.size * (loo.size - 1.0))


def third_order(second_order: float, halves: Sequence[float]) -> float:
    """Remove one more order of the bias, from the second-order values of halves of the rows.

    What is left of the bias after second order falls with 1/n²: halving multiplies it by four.
    """
    return (4.0 * second_order - float(np.mean(halves))) / 3.0


def halved(error: SampleError, *, both: bool = False) -> SampleError:
    """Add the noise of halving; pairs across samples are weighed unevenly if `both` are halved."""
    uneven = error.quadratic_variance + (error.mixed_variance if both else 0.0)
    return replace(error, variance=error.variance + HALVING_NOISE * uneven)
