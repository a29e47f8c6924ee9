"""Whether rows that two samples have in common were copied, or are equal by chance.

Counts, one-hot rows, fingerprints and sparse features coincide by chance, within a sample and
between samples. Let x_1, ..., x_n be independent draws from p and y_1, ..., y_m from q, any two
distributions. The value a stands N_a times among the x, M_a times among the y, K_a = N_a + M_a
times in all. Chance makes no more pairs between the samples than within, as
Σ pq ≤ (Σ p² + Σ q²)/2.

Given all K_a and R = Σ N_a, the N_a are independent binomials (K_a, t_a) given their sum, with
t_a = c w_a/(1 + c w_a), w_a = p_a/q_a, and c free.

**Values that stand twice** (all coincidences of continuous distributions). Of D such values, of
whose 2D rows R are x's, C stand once in each sample. If p = q,

    P(C = c) ∝ binom(D, c) 2^c binom(D - c, (R - c)/2),    c ≡ R mod 2,

and every other p, q has smaller C in likelihood ratio order (Muirhead's inequality).

**All values that repeat.** S = Σ N M/(K - 1) over K ≥ 2. For every j, P(min(N, K - N) ≥ j) is
largest at t = ½. So S without the condition on R is stochastically below
S* = Σ B (K - B)/(K - 1) with B ~ Bin(K, ½). The condition costs a factor 1/P(ΣN = R): with c such
that R is the mean, it is the mode (Darroch), and a distribution on the integers of variance at most
L/4, L = Σ K, has a mode of probability at least 1/√(1 + 3L). With Chernoff's bound

    p = √(1 + 3L) min_u exp(-uS) Π E exp(u S*_a).

Both are p-values for **every** p and q; twice the smaller is used. At least 24 common rows are
needed for 10⁻⁶. Samples of which repeated rows were dropped break it: they have coincidences
between, and none within. Files that stand in a sample more than once hide copies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy  # its submodules are loaded at their first use
from numpy.typing import NDArray

from genbounds.results import Severity
from genbounds.validation import Float

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
        doubted = has_new_entries(common_once(ids, others), tuple(samples))
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


def common_once(ids: NDArray[np.uint64], others: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the digests that stand once in each sample."""
    values, times = np.unique(np.concatenate([ids, others]), return_counts=True)
    return np.intersect1d(values[times == 2], np.intersect1d(ids, others))


def has_new_entries(
    common: NDArray[np.uint64],
    samples: Sequence[tuple[NDArray[np.uint64], NDArray[np.floating]]],
) -> bool:
    """Whether a common row has entries that no other row has: no row of a discrete distribution.

    It is a copy, or one input (a text, a file) that both samples drew.

    Parameters
    ----------
    common : ndarray
        Digests of the rows in question.
    samples : sequence of (digests, rows)
        All rows, those in question too; compared in the lowest of their precisions.
    """
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
