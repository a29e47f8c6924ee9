"""Rows that are more alike than chance leaves them: within a sample, and of two samples.

**Near duplicates and equally large groups** lie closer to some others than to the rest.

Around a row of a distribution with k local dimensions, k j log(r_{j+1} / r_j) of its j-th and next
nearest distances are independent and exponential (E. Levina and P. Bickel, NeurIPS 2004). Two
things do not agree with that: a gap that is far too wide ends a group of near duplicates; and if
gaps are widest after the same j for many rows, so many share a source. Distances are relative to
the longer row, so that short rows of a distribution with heavy tails are not near to one another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy  # its submodules are loaded at their first use
from numpy.typing import NDArray

from genbounds.core.design import Index
from genbounds.results import Severity
from genbounds.validation import Float

SEED = 20_261_122
"""Of the rows that are looked at, so that a result repeats."""

CENTRE_ROWS = 256
"""Rows whose medians are the centre, from which outliers are far."""

ROW_BLOCK = 1 << 18
"""Entries that are worked on at a time: they stay in the cache."""

SHORT_ROW = 256
"""Entries that numpy sorts, row by row, in a fifth of the time that it takes of longer rows."""

NEIGHBOUR_ROWS = (32, 1024)
"""The nearest neighbours of at least and at most so many rows are looked for: of as many as cost
some hundredths of the time of a Fréchet distance of the same sample."""

LARGEST_GROUP = 25
"""Rows of one source that are looked for: larger clusters are taken for what the distribution is
made of."""

FALSE_ALARM = 1e-6
"""Probability of a warning about independent rows, for each of these checks."""

NEAR_TWINS = (0.02, 0.1)
"""Near duplicates that a row has on average, from which on a caution is given, and from which on
the interval is called unreliable: bias and variance grow by about that share."""

LARGEST_TWINS = 4
MOST_TWINS = 2.0
"""Near duplicates of one row, and of all rows on average, beyond which these are clusters, of which
a distribution may well be made: independent rows of twelve kinds that lie far apart look the same.
Only rows of equally large groups tell then."""

LARGEST_PEAK = 2.0
"""p(j)² / p(j-1) p(j+1) for p(j) the share of rows with j others in their cluster times j, if sizes
are Poisson: 2 at j = 2, less beyond."""

LEAST_GAP = math.log(2.0)
"""Near duplicates are closer to one another than half of the way to the next row."""

NEAR_ROWS, NEAR_PART = 5, 0.1
"""Rows with near duplicates, or their part of few rows, without which no warning is given: real
images have some."""


def clusters(logs: Float, n: int) -> tuple[float, int]:
    """Look for rows that lie closer to some others than to the rest.

    Parameters
    ----------
    logs : ndarray of shape (rows, neighbours)
        As `log_distances` returns them.
    n : int
        Different rows in all.

    Returns
    -------
    twins : float
        Nearly identical rows that a row has on average; 0 if hardly any row has one.
    mates : int
        The j for which more rows have exactly j others near to them than one more or less; 0 if no
        j stands out. Clusters that are part of a distribution differ in size from sample to sample:
        their sizes are Poisson, and give no peak above `LARGEST_PEAK`.
    """
    gaps, others = np.diff(logs, axis=1), np.arange(1, logs.shape[1])
    spacings = gaps * others
    # Gaps beyond the near duplicates: with these, a median of the first ones sees no dimension.
    dimension = math.log(2.0) / max(float(np.median(spacings[:, LARGEST_TWINS:])), 1e-300)
    wide = (spacings * dimension > math.log(gaps.size / FALSE_ALARM)) & (gaps > LEAST_GAP)
    near, twins = (others * wide).max(axis=1), 0.0
    if near.mean() <= MOST_TWINS:
        near = np.where(near <= LARGEST_TWINS, near, 0)
        enough = (near > 0).sum() >= min(NEAR_ROWS, NEAR_PART * len(near))
        twins = float(near.mean()) if enough else 0.0
    spacings = spacings[(spacings > 0.0).all(axis=1)]  # equal distances: features of few values
    if len(spacings) < 2 or others.size < 3:
        return twins, 0
    mean = spacings.mean(axis=0)
    seen = np.minimum(len(spacings), n / (others + 1.0))  # rows of one group are one observation
    error = spacings.var(axis=0, ddof=1) / (mean**2 * seen)
    noise = np.sqrt(4.0 * error[1:-1] + error[:-2] + error[2:])
    if not (noise > 0.0).all():  # rows on a regular grid
        return twins, 0
    level = np.log(mean)
    peak = 2.0 * level[1:-1] - level[:-2] - level[2:] - math.log(LARGEST_PEAK)
    z = peak / noise
    mates = int(others[int(z.argmax()) + 1])
    seen_by_chance = z.max() <= scipy.special.ndtri(1.0 - FALSE_ALARM / z.size)
    if seen_by_chance or _by_chance(spacings, n, mates) > FALSE_ALARM:
        mates = 0
    return twins, mates


def _by_chance(spacings: Float, n: int, others: int) -> float:
    """Bound the probability that as many clusters have so many `others`, if sizes are Poisson.

    Of a few clusters two or three are easily of one size, however many rows they have.
    """
    counts = np.arange(1, spacings.shape[1] + 1)
    rows = np.bincount(spacings.argmax(axis=1), minlength=counts.size)  # by their widest gap
    clusters = rows * (n / len(spacings)) / (counts + 1.0)
    alike, every = math.floor(clusters[others - 1]), math.ceil(clusters.sum())
    if not alike:
        return 1.0
    largest = math.exp(others * math.log(others) - others - math.lgamma(others + 1.0))
    return float(scipy.special.betainc(alike, every - alike + 1.0, largest))


def log_distances(rows: NDArray[Any], distinct: Index) -> Float | None:
    """Logarithms of the distances from some rows to their nearest neighbours and one more.

    ‖x - y‖² / max(‖x‖², ‖y‖²), for centred rows with these squared norms. `distinct`: the places of
    rows that are not equal, in their order. None if nothing can be said: of rows of few values,
    which coincide by chance, or where a row is the centre or its square beyond floating point.
    """
    n, d = distinct.size, rows.shape[1]
    if d < 2 or n < max(8, len(rows) // 2):
        return None
    least, most = NEIGHBOUR_ROWS
    size = min(max(least, int(0.15 * d + 4e7 / (n * (2.0 * d + 50.0)))), most)
    chosen = np.arange(n)
    if size < n:
        chosen = np.sort(np.random.default_rng(SEED).choice(n, size, replace=False))
    kind = np.float32 if rows.dtype.itemsize <= 4 else np.float64
    x: NDArray[np.floating[Any]] = rows[distinct[chosen]].astype(kind, copy=False)
    ordered = np.sort(x[:CENTRE_ROWS], axis=0)  # for medians in half the time of `numpy.median`
    centre = 0.5 * ordered[(len(ordered) - 1) // 2] + 0.5 * ordered[len(ordered) // 2]
    x -= centre
    own = np.einsum("ij,ij->i", x, x)[:, None]
    largest = float(np.finfo(kind).max) / 4.0  # so that sums of two are finite
    if not ((own > 0.0) & (own < largest)).all():
        return None
    floor = 8.0 * float(np.finfo(kind).eps)  # below it the product is all rounding
    kept = min(LARGEST_GROUP, n - 3) + 1
    step = max(kept, min(2 * ROW_BLOCK // max(d, len(x)), SHORT_ROW - kept))
    # The nearest so far, sorted, and behind them the distances to a block of rows.
    row = np.full((len(x), kept + step), np.inf, dtype=kind)
    # ‖x‖² + ‖y‖² - 2 x·y as one product: of (x, ‖x‖², 1) with (-2 y, 1, ‖y‖²).
    left = np.concatenate([x, own, np.ones_like(own)], axis=1)
    right = np.ones((step, d + 2), dtype=kind)
    longer = np.empty((len(x), step), dtype=kind)
    for start in range(0, n, step):
        size = min(step, n - start)
        block = right[:size, :d]
        np.subtract(rows[distinct[start : start + step]], centre, out=block)
        squares = np.einsum("ij,ij->i", block, block)
        if not ((squares > 0.0) & (squares < largest)).all():
            return None
        block *= -2.0
        right[:size, d + 1] = squares
        distances = row[:, kept : kept + size]
        np.matmul(left, right[:size].T, out=distances)
        distances /= np.maximum(own, squares, out=longer[:, :size])
        here = np.flatnonzero((chosen >= start) & (chosen < start + step))
        distances[here, chosen[here] - start] = np.inf
        row[:, : kept + size].sort(axis=1)  # of short rows faster than a partition
    nearest = row[:, :kept]
    logs: Float = 0.5 * np.log(np.maximum(nearest, floor, dtype=np.float64))
    return logs


# --- Whether rows that two samples have in common were copied, or are equal by chance -------------
# Counts, one-hot rows, fingerprints and sparse features coincide by chance, within a sample and
# between samples. Let x_1, ..., x_n be independent draws from p and y_1, ..., y_m from q, any two
# distributions. The value a stands N_a times among the x, M_a times among the y, K_a = N_a + M_a
# times in all. Chance makes no more pairs between the samples than within, as Σ pq ≤ (Σ p² + Σ
# q²)/2.
#
# Given all K_a and R = Σ N_a, the N_a are independent binomials (K_a, t_a) given their sum, with
# t_a = c w_a/(1 + c w_a), w_a = p_a/q_a, and c free.
#
# **Values that stand twice** (all coincidences of continuous distributions). Of D such values, of
# whose 2D rows R are x's, C stand once in each sample. If p = q,
#
#     P(C = c) ∝ binom(D, c) 2^c binom(D - c, (R - c)/2),    c ≡ R mod 2,
#
# and every other p, q has smaller C in likelihood ratio order (Muirhead's inequality).
#
# **All values that repeat.** S = Σ N M/(K - 1) over K ≥ 2. For every j, P(min(N, K - N) ≥ j) is
# largest at t = ½. So S without the condition on R is stochastically below S* = Σ B (K - B)/(K - 1)
# with B ~ Bin(K, ½). The condition costs a factor 1/P(ΣN = R): with c such that R is the mean, it
# is the mode (Darroch), and a distribution on the integers of variance at most L/4, L = Σ K, has a
# mode of probability at least 1/√(1 + 3L). With Chernoff's bound
#
#     p = √(1 + 3L) min_u exp(-uS) Π E exp(u S*_a).
#
# Both are p-values for **every** p and q; twice the smaller is used. At least 24 common rows are
# needed for 10⁻⁶. Samples of which repeated rows were dropped break it: they have coincidences
# between, and none within. Files that stand in a sample more than once hide copies.

LEAK_SHARE = 0.01
"""Share of a sample's rows that another holds from which on a score is no comparison."""

LEAK_PVALUE = 1e-6
"""Probability of a false accusation, at most: that independent rows of any two distributions
have so much in common. `experiments.accuracy.coincidences` measures both errors."""

LEAST_COMMON = 24
"""Common rows without which no p-value is as small."""

CAUTION_PVALUE = 1e-4
"""The same for a caution."""

LARGEST_TILT = 60.0
"""Of the Chernoff bound: beyond it nothing is gained."""

UNSHARED_ENTRIES = 3
"""Entries, or half of them if these are fewer, but at least two, that no other row has and that
therefore show a row to be none of a discrete distribution."""

COLUMNS_COMPARED = 64
"""Columns in which entries are compared, where there are more."""

ROWS_COMPARED = 20
"""Common rows whose entries are compared."""


def judge_common_rows(
    ids: NDArray[np.uint64],
    others: NDArray[np.uint64],
    rows: tuple[NDArray[np.floating], NDArray[np.floating]] | None = None,
) -> tuple[int, Severity | None]:
    """Count the rows of one sample that another holds, and say what to think of them.

    Parameters
    ----------
    ids, others : ndarray of shape (n,), (m,)
        Digests of the rows of two samples.
    rows : pair of ndarray, optional
        The rows themselves: few common ones can then be told from rows of a discrete distribution.

    Returns
    -------
    int
    "unreliable", "caution" or None
        None if nothing speaks against chance.
    """
    common = int(np.isin(ids, others).sum())
    if not common:
        return 0, None
    p = coincidence_pvalue(ids, others)
    if p <= LEAK_PVALUE and common >= LEAK_SHARE * ids.size:
        return common, "unreliable"
    doubted = p <= CAUTION_PVALUE
    if not doubted and rows is not None:
        samples = zip((ids, others), rows, strict=True)
        doubted = has_new_entries(ids, others, tuple(samples))
    return common, "caution" if doubted else None


def coincidence_pvalue(ids: NDArray[np.uint64], others: NDArray[np.uint64]) -> float:
    """Return the p-value of "no row was copied from one sample to the other".

    Parameters
    ----------
    ids, others : ndarray of shape (n,), (m,)
        Digests of the rows of two samples.

    Returns
    -------
    float
        At most α with probability at most α, for independent samples of any two distributions.
    """
    values, place = np.unique(np.concatenate([ids, others]), return_inverse=True)
    total = np.bincount(place, minlength=values.size)
    repeated = total >= 2
    first = np.bincount(place[: ids.size], minlength=values.size)[repeated]
    total = total[repeated]
    twice = first[total == 2]
    common = int((twice == 1).sum())
    tail = math.exp(scipy.special.logsumexp(twice_law(twice.size, int(twice.sum()))[common:]))
    if twice.size == total.size:
        return min(1.0, tail)
    between = float((first * (total - first) / (total - 1.0)).sum())
    return min(1.0, 2.0 * min(tail, bound_of_pairs(between, total)))


def twice_law(pairs: int, own: int) -> Float:
    """Return log P(C = c), c = 0, ..., `pairs`, where both distributions are equal.

    Of `pairs` values that stand twice, C stand in both samples; `own` of the 2·`pairs` rows are of
    the first sample.
    """
    c = np.arange(pairs + 1)
    alone = (own - c) / 2.0  # values that stand twice in the first sample
    split = np.array([c, alone, pairs - c - alone])
    possible = ((own - c) % 2 == 0) & (split >= 0).all(axis=0)
    # The logarithm of 0! is that of any impossible split, which is set aside.
    logs = c * math.log(2.0) - scipy.special.gammaln(np.maximum(split, 0) + 1).sum(axis=0)
    return np.asarray(scipy.special.log_softmax(np.where(possible, logs, -np.inf)))


def bound_of_pairs(seen: float, total: NDArray[np.intp]) -> float:
    """Bound the probability of S ≥ `seen`, whatever the two distributions; `total`: all K."""
    sizes, times = np.unique(total, return_counts=True)
    if seen <= 0.25 * float(sizes @ times):  # the mean of S*
        return 1.0
    distributions = []
    for size in sizes:
        b = np.arange(size + 1.0)
        logs = -scipy.special.betaln(b + 1.0, size - b + 1.0)  # of (size + 1) binom(size, b)
        distributions.append((scipy.special.log_softmax(logs), b * (size - b) / (size - 1.0)))

    def exponent(u: float) -> float:
        moments = [scipy.special.logsumexp(logs + u * terms) for logs, terms in distributions]
        return float(times @ np.array(moments)) - u * seen

    least = scipy.optimize.minimize_scalar(
        exponent, bounds=(0.0, LARGEST_TILT), method="bounded", options={"xatol": 1e-4}
    )
    log_p = 0.5 * math.log1p(3.0 * float(total.sum())) + min(float(least.fun), 0.0)
    return math.exp(min(log_p, 0.0))


def has_new_entries(
    some: NDArray[np.uint64],
    others: NDArray[np.uint64],
    samples: Sequence[tuple[NDArray[np.uint64], NDArray[np.floating]]],
) -> bool:
    """Whether a row that stands once in either has entries that no other row has.

    It is no row of a discrete distribution, but a copy, or one input (a text, a file) that both
    samples drew.

    Parameters
    ----------
    some, others : ndarray
        Digests of the rows in question.
    samples : sequence of (digests, rows)
        All rows, those in question too; compared in the lowest of their precisions.
    """
    values, times = np.unique(np.concatenate([some, others]), return_counts=True)
    common = np.intersect1d(values[times == 2], np.intersect1d(some, others))
    d = samples[0][1].shape[1]
    columns = np.unique(np.linspace(0, d - 1, min(d, COLUMNS_COMPARED)).astype(int))
    least = max(2, min(UNSHARED_ENTRIES, math.ceil(columns.size / 2)))  # one may be a rare number
    precision = min((rows.dtype for _, rows in samples), key=lambda kind: kind.itemsize)
    with np.errstate(over="ignore"):
        ids = np.concatenate([ids for ids, _ in samples])
        entries = np.concatenate([rows[:, columns].astype(precision) for _, rows in samples])
    for digest in common[:ROWS_COMPARED]:
        same = ids == digest
        shared = (entries[~same] == entries[same.argmax()]).any(axis=0)
        if int((~shared).sum()) >= least:
            return True
    return False
