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

from dataclasses import replace
from functools import lru_cache

import numpy as np
import scipy  # its submodules are loaded at their first use

from genbounds.estimators.neighbours._pairs import close_pairs
from genbounds.estimators.neighbours._reference import Held, Sided, by_half, held_among, sizes
from genbounds.validation import Float

MOST = 4
"""Times as many rows as there are, up to which an expected coverage is inverted."""


def clipped_scores(real: Sided, fake: Sided, k: int) -> dict[str, Float]:
    """Score both samples, and all their halves (`Count`)."""
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
    return {"clipped-density": found / usual, "clipped-coverage": np.array(coverage)}


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
