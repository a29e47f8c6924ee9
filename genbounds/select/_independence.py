"""Whether the rows of an arm can be independent draws from one distribution.

Standard errors, bias corrections and hence certificates assume that they are. Two checks run at
every look, before its score becomes evidence; an arm that fails one is set aside.

**Rows that repeat.** Independent rows of a continuous distribution never coincide; rows drawn from
a fixed pool with replacement do, and their score is that of the pool. Of n rows from a pool of m,
about n²/(2m) copy an earlier one, and the variance that their spread shows is too small by a share
n/m of itself. `COPIED_SHARE` allows n/m = 4 %. Distributions that are discrete (one-hot posteriors,
binary attributes, counts, values rounded to a few digits) repeat rows by right: there different
rows share their entries. So only copies of rows with `UNSHARED_ENTRIES` entries that no other
distinct row has in their place count, and none where equal rows make more pairs than a pool of so
many rows would: some texts are likelier than others.

**Rows whose order matters.** If rows are independent (or drawn without replacement), every order of
them is as likely as any other, whatever their distribution. A few summaries of each row are turned
into normal scores by rank and made uncorrelated; then, over the order of drawing, their
discrete cosine transform Z has uncorrelated entries of mean 0 and variance 1, nearly normal, so
that the energy E_m = Σ_j Z_mj² at each frequency m is about χ². Drift, slow or sudden, and clumps
of alike rows put energy in low frequencies; classes taken in turn take it out of them, and a
fixed cycle puts it into single ones. The tests: the energy of the lowest 2^j - 1 frequencies is too
large, or too small; the largest energy of a single frequency is too large. The smallest p-value is
multiplied by their number (Bonferroni).

Under random orders p-values of 1 % and below came out at most half as often as they say (Gaussian,
Student t, one-hot, binary and rare rows, n from 100 to 1,000). docs/evidence/selection_dependent.md
has the power.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import scipy  # its submodules are loaded at their first use
from numpy.typing import NDArray

from genbounds._text import display
from genbounds.core.close_rows import LEAST_COMMON, judge_common_rows
from genbounds.diagnostics import warn_of
from genbounds.results import Diagnostic
from genbounds.validation import Float

COPIED_SHARE = 0.02
"""Share of the rows that may copy earlier ones, and ..."""

COPIES = 3
"""... so many in any case."""

UNSHARED_ENTRIES = 3
"""Entries by which a row is known to be none of a discrete distribution. One-hot rows have one
(two classes: two)."""

PAIRS_LIMIT = 6.0
"""Standard deviations by which a pool leaves pairs of equal rows beyond those expected: in about
one of 10^7 samples."""

COLUMNS_COMPARED = 64
"""Columns in which entries are compared, where there are more."""

COMPONENTS = 6
"""Principal components among the summaries of a row; the other two are its distance from the mean
and its influence on the score."""

MINIMUM_ROWS = 64
"""Rows below which the order is not tested: the tests are asymptotic."""

BALANCED_FREQUENCIES = 7
"""Frequencies from which on too little energy is looked for: of fewer it has no power."""

RELATIVE_ROUNDING = 1e-9
"""Summaries that differ by less are equal: equal rows are summarised alike up to rounding, and the
rounding of a matrix product may depend on the place of the row."""

BLOCK = 2**16
"""Entries that are worked on at a time: few enough to stay in the cache."""

_SKETCH_SEED = 20_261_122


def copies(rows: NDArray[Any], fingerprints: NDArray[np.uint64]) -> Diagnostic | None:
    """Say that rows come from a pool, if they do.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
    fingerprints : ndarray of shape (n,)
        Equal for equal rows.

    Returns
    -------
    Diagnostic or None
        Unreliable: no score of these rows is evidence. None if a single value repeats, as rows of
        zeros do, or some repeat far more often than others, as texts do: they are what a
        distribution is made of.
    """
    n = len(rows)
    allowed = max(COPIES, COPIED_SHARE * n)
    ordered = np.sort(fingerprints)
    if (ordered[1:] == ordered[:-1]).sum() < allowed:
        return None
    _, first, counts = np.unique(fingerprints, return_index=True, return_counts=True)
    repeats = (counts - 1)[_unshared(rows[first]) >= UNSHARED_ENTRIES]
    copied = int(repeats.sum())
    if copied < allowed or (len(first) > 1 and copied == repeats.max()):
        return None
    if _some_are_likelier(counts):
        return None
    return warn_of("copies-of-earlier-rows", copied=copied, n=n)


def _some_are_likelier(counts: NDArray[np.int64]) -> bool:
    """Whether some values come more often than others: texts of a distribution, no pool's rows.

    From a pool of m, n draws show m (1 - (1 - 1/m)^n) values on average, which tells m, and
    n (n - 1)/2m pairs of equal rows, with about as large a variance.
    """
    n, distinct = int(counts.sum()), counts.size
    if distinct == 1:
        return False

    def missing(log_m: float) -> float:
        return distinct + math.exp(log_m) * math.expm1(n * math.log1p(-math.exp(-log_m)))

    log_m = scipy.optimize.brentq(missing, math.log(distinct), math.log(n) * 2.0 + 10.0)
    expected = 0.5 * n * (n - 1.0) / math.exp(log_m)
    pairs = 0.5 * float((counts * (counts - 1.0)).sum())
    return pairs > expected + PAIRS_LIMIT * math.sqrt(expected)


def rows_of_another(
    fingerprints: NDArray[np.uint64], others: Mapping[str, NDArray[np.uint64]]
) -> Diagnostic | None:
    """Say that rows are those of one of the `others`, arms with the fingerprints of their rows."""
    everyone = np.concatenate([fingerprints[:0], *others.values()])
    leading = np.zeros(1 << 16, dtype=bool)  # 16 bits tell most of the others' rows from these
    leading[fingerprints >> np.uint64(48)] = True
    everyone = everyone[leading[everyone >> np.uint64(48)]]
    if np.isin(everyone, fingerprints).sum() < LEAST_COMMON:  # rows of all others together
        return None
    for name, theirs in others.items():
        common, severity = judge_common_rows(fingerprints, theirs)
        if severity == "unreliable":
            return warn_of(
                "rows-of-another-arm",
                copied=common,
                rows=fingerprints.size,
                name=display(name, limit=60),
            )
    return None


def _unshared(rows: NDArray[Any]) -> NDArray[np.int64]:
    """Count, for each of distinct `rows`, the entries that no other row has in their column."""
    d = rows.shape[1]
    unshared = np.zeros(len(rows), dtype=np.int64)
    for column in np.unique(np.linspace(0, d - 1, min(d, COLUMNS_COMPARED)).astype(int)):
        _, inverse, counts = np.unique(rows[:, column], return_inverse=True, return_counts=True)
        unshared += counts[inverse] == 1
    return unshared


def order_effect(rows: NDArray[Any], influence: Float | None, *, error: float) -> Diagnostic | None:
    """Say that rows depend on one another or drift, if their order shows it.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
        In the order of drawing.
    influence : ndarray of shape (n,) or None
        Of every row on the score, where it is known.
    error : float
        Probability that independent rows are accused.

    Returns
    -------
    Diagnostic or None
        Unreliable: no score of these rows is evidence.
    """
    n = len(rows)
    if n < MINIMUM_ROWS:
        return None
    # A transform of a length with large prime factors takes six times as long: leave out a few.
    first = slice(scipy.fft.prev_fast_len(n))
    scores = _normal_scores(_summaries(rows, influence)[:, first])
    if not len(scores):
        return None  # nothing varies
    drift, balance, cycle = _p_values(scores)
    p = min(drift, balance, cycle)
    if p > error:
        return None
    if p == drift:
        what = "its rows drift, or alike ones come together"
    else:
        what = "its rows take turns: they are balanced or come in a cycle, not independently"
    return warn_of("order-of-draws", what=what, p=p, n=n)


def _p_values(scores: Float) -> tuple[float, float, float]:
    """Of drift, of balance, of a cycle, each multiplied by the number of all tests."""
    q, n = scores.shape
    transform = scipy.fft.dct(scores, type=2, norm="ortho", axis=1)[:, 1:]
    energy = np.einsum("ij,ij->j", transform, transform)
    bands = 2 ** np.arange(1, int(math.log2((n + 1) / 2)) + 1) - 1
    low = energy.cumsum()[bands - 1]
    large = scipy.special.chdtrc(q * bands, low)
    wide = bands >= BALANCED_FREQUENCIES
    small = scipy.special.chdtr(q * bands[wide], low[wide])
    single = energy.size * scipy.special.chdtrc(q, energy.max())
    tests = large.size + small.size + 1
    return tests * float(large.min()), tests * float(small.min()), tests * float(single)


def _summaries(rows: NDArray[Any], influence: Float | None) -> Float:
    """Principal components of the rows, distances from their mean, influences: (at most 8, n).

    Each is the same function of its row whatever the order, so that a random order of the rows is
    one of the summaries.
    """
    n, d = rows.shape
    mean = rows.mean(axis=0, dtype=np.float64)
    scale = max(float(rows.max()), -float(rows.min()), float(np.finfo(np.float64).tiny))
    axes = _start(d)
    if d > COMPONENTS:
        # The leading directions by one step of subspace iteration; the rest matters little.
        axes = np.linalg.qr(sum(x.T @ (x @ axes) for x in _blocks(rows, mean, scale)))[0]
    parts = [(x @ axes, np.einsum("ij,ij->i", x, x)) for x in _blocks(rows, mean, scale)]
    x = np.concatenate([part for part, _ in parts])
    distance = np.concatenate([part for _, part in parts])
    size, directions = np.linalg.eigh(x.T @ x)
    kept = directions[:, size > RELATIVE_ROUNDING * float(size[-1])][:, -COMPONENTS:]
    found = [*(x @ kept).T, distance]
    if influence is not None and influence.shape == (n,):
        found.append(influence)
    return np.stack(found)


@lru_cache(maxsize=4)
def _start(d: int) -> Float:
    """All directions, or random ones with which the search for the leading ones starts."""
    if d <= COMPONENTS:
        return np.eye(d)
    rng = np.random.default_rng(_SKETCH_SEED)
    return rng.standard_normal((d, min(d, 2 * COMPONENTS)))


def _blocks(rows: NDArray[Any], mean: Float, scale: float) -> Iterator[Float]:
    """Rows less their mean, over `scale`, a block at a time."""
    step = max(1, BLOCK // rows.shape[1])
    for start in range(0, len(rows), step):
        block = rows[start : start + step].astype(np.float64)
        block -= mean
        block *= 1.0 / scale
        yield block


def _normal_scores(summaries: Float) -> Float:
    """Return normal quantiles of the ranks, uncorrelated and with variance 1, without constants."""
    n = summaries.shape[1]
    step = RELATIVE_ROUNDING * np.abs(summaries).max(axis=1, keepdims=True)
    rounded = np.rint(summaries / np.where(step > 0.0, step, 1.0)).astype(np.int32)
    scores = scipy.special.ndtri((_double_ranks(rounded) + 1.0) / (2 * n))
    scores -= scores.mean(axis=1, keepdims=True)
    values, axes = np.linalg.eigh(scores @ scores.T / (n - 1))
    kept = values > RELATIVE_ROUNDING * n
    whitened: Float = (axes[:, kept] / np.sqrt(values[kept])).T @ scores
    return whitened


def _double_ranks(values: NDArray[np.int32]) -> NDArray[np.intp]:
    """Twice the ranks from 0 in each line; equal values share the mean of theirs."""
    ranks = np.empty(values.shape, dtype=np.intp)
    for line, line_ranks in zip(values, ranks, strict=True):
        _, place, counts = np.unique(line, return_inverse=True, return_counts=True)
        line_ranks[:] = (2 * counts.cumsum() - counts - 1)[place]
    return ranks
