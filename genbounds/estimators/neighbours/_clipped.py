"""Clipped density and coverage: no row counts for more than one, no ball is larger than usual.

With B(x) the ball around a real row to its k-th nearest other real row, n real rows x and m
generated rows y:

    density  = mean over y of min(count of clipped balls that hold y, k) / k, over that of real rows
    coverage = the share of m rows like the real ones that would give the same mean over x of
               min(count of y in B(x), k) / k

A clipped ball is no larger than the median one. Coverage inverts the expectation for m' rows of the
real distribution, beta-binomial counts, which holds for every distribution without ties.
Both are 1 for a model as good as the data; published numbers are cut off there, these are not.

N. Salvy, H. Talbot and B. Thirion, "Enhanced generative model evaluation with clipped density and
coverage", arXiv 2507.01761, 2025.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import scipy  # its submodules are loaded at their first use

from genbounds.core.checks import drawing_warnings, drawn
from genbounds.core.estimate import Estimate, SampleError
from genbounds.diagnostics import warn_of
from genbounds.estimators.neighbours._pairs import close_pairs
from genbounds.estimators.neighbours._precision_recall import neighbour_metric
from genbounds.estimators.neighbours._reference import (
    Held,
    NeighbourReference,
    Sided,
    by_half,
    held_among,
    sizes,
)
from genbounds.estimators.neighbours._scored import LARGEST_DRIFT
from genbounds.validation import Float

MOST = 4
"""Times as many rows as there are, up to which an expected coverage is inverted."""

SUMMARIES = {
    "clipped-density": "share of generated rows in usual neighbourhoods of real ones, 1 = as real",
    "clipped-coverage": "share of good rows that would cover the real ones as well, 1 = as real",
}


def clipped_scores(real: Sided, fake: Sided, k: int) -> Float:
    """Score both samples, and all their halves.

    Returns
    -------
    ndarray of shape (1 + 2 cuts, 2)
        Clipped density and coverage of all rows; then of either half of every cut in turns.
    """
    clipped = replace(real, radii=np.minimum(real.radii, _medians(real)))
    around, inside, among = Held(real, fake), Held(clipped, fake), held_among(clipped)
    for i, j, squares in close_pairs(real.rows, fake.rows, real.limit):
        around.add(i, j, squares)
        inside.add(i, j, squares)
    n, m = sizes(real.half), sizes(fake.half)
    covered = by_half(np.minimum(around.balls, k), real.half) / (k * n)
    found, usual = (
        by_half(np.minimum(each.rows, k), half) / (k * rows)
        for each, half, rows in ((inside, fake.half, m), (among, real.half, n))
    )
    coverage = [
        np.interp(share, expected_shares(int(a), int(b), k), np.arange(MOST * int(b) + 1)) / b
        for share, a, b in zip(covered, n, m, strict=True)
    ]
    return np.column_stack([found / usual, coverage])


@lru_cache(maxsize=8)
def expected_shares(n: int, m: int, k: int) -> Float:
    """E min(J, k) / k for 0, 1, … rows of the real distribution, J of which fall into a ball.

    The ball holds the k nearest of n - 1 other real rows: among so many and m' others in random
    order of distance J is beta-binomial, with m' draws and parameters k and n - k.
    """
    rows = np.arange(MOST * m + 1)
    lacking = np.zeros(rows.size)
    for j in range(k):
        held = scipy.stats.betabinom.pmf(j, rows, k, n - k)
        lacking += (k - j) * np.where(j <= rows, held, 0.0)
    return np.asarray(1.0 - lacking / k)


def _medians(real: Sided) -> Float:
    """Squared median radius of all balls of the half that each row is in, for every cut."""
    out = np.empty_like(real.radii)
    for cut, side in enumerate(real.half):
        for half in (side, ~side):
            if half.any():
                out[cut, half] = np.median(np.sqrt(real.radii[cut, half])) ** 2
    return out


def _estimate(reference: NeighbourReference, x: Any, name: str) -> Estimate:
    """Estimate one of both, with its error from halves as the other scores by neighbours."""
    real, fake, seen, given = reference.sides("fake", x)
    values = clipped_scores(real, fake, reference.k)[:, tuple(SUMMARIES).index(name)]
    halves = (values[1::2] - values[2::2]) / 2.0
    drift = float(values[1:].mean() / values[0]) if values[0] else math.nan
    doubtful = not abs(drift - 1.0) <= LARGEST_DRIFT
    thinned = f"a random {len(seen.rows)} of {given} generated rows, as many as real ones"
    return Estimate(
        title=name.replace("-", " ").capitalize(),
        method="neighbours",
        value=float(values[0]),
        sample=SampleError(
            n=len(seen.rows),
            variance=math.nan if doubtful else float(np.mean(halves**2)),
            degrees_of_freedom=float(halves.size),
            units=seen.labels,
            row_ids=seen.single_ids,
        ),
        reference=SampleError(n=reference.n),
        halves=halves,
        lower_limit=0.0,
        higher_is_better=True,
        statistic=f"{name} of {len(seen.rows)} and {reference.n} rows with k = {reference.k}",
        warnings=(
            *drawing_warnings(seen, reference.seen),
            *[
                warn_of(
                    "halves-disagree", name=name, value=values[0], drift=drift * float(values[0])
                )
            ]
            * doubtful,
        ),
        assumptions=(
            drawn(seen.design),
            *[thinned] * (given > len(seen.rows)),
            "the interval is for the expected score at these sample sizes",
        ),
        details=(f"k = {reference.k}, not cut off at 1",),
    )


CLIPPED = tuple(
    neighbour_metric(
        name,
        title=name.replace("-", " ").capitalize(),
        summary=summary,
        estimate=_estimate,
        aliases=(name.replace("-", "_"),),
    )
    for name, summary in SUMMARIES.items()
)
