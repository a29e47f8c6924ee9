"""Exact tests of counts, which are hypergeometric: of which real rows are hit, and of two shares.

The labels "trained on" and "held out" are exchangeable: all that decides the order of the rows is
blind to them. Given the order, the number of training rows among any so many is hypergeometric;
and so is, given how many rows of two samples lie in a region, how many of them are of the first.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy  # its submodules are loaded at their first use
from numpy.typing import NDArray

from genbounds._tables import AsJson
from genbounds.validation import Float

Index = NDArray[np.intp]
Mask = NDArray[np.bool_]

SHARES = (0.005, 0.02, 0.1, 0.3, 1.0)
"""Parts of the rows that are hit, nearest first, each of which is tested."""

SMALLEST = 1e-300
"""Smaller p-values are given as this one."""

PRIOR = 20
"""Hits without over-fitting that are added where its size is estimated."""

TIES = 1.0 + 1e-9
"""Probabilities that differ by less are equal up to rounding."""

NOTED, OTHER, BASE = 0.8, 0.1, 0.1
"""How the error of an interval is spent: on the end that a claim needs, on the other end, and on
the share that turns odds into a ratio."""

STEEPEST = 60.0
"""Logarithm of the largest odds ratio that is looked for; beyond it an end is 0 or infinite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excess:
    """How many distinct real rows are hit, and how many training rows too many are among them.

    With groups: how many distinct groups.

    Attributes
    ----------
    hit, trained : int
        Distinct real rows that are nearest to a generated one, and training rows among these.
    expected : float
        Training rows among as many if the output does not depend on which rows were trained on.
    pvalue : float
        Of that.
    low : int
        Lower confidence bound of the training rows that the output depends on.
    estimate : float
        The same without confidence: expected and observed number agree if so many are taken out.
    """

    hit: int
    trained: int
    expected: float
    pvalue: float
    low: int
    estimate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect(AsJson):
    """A training row that has a near copy, by the generated row that is nearest to it.

    Attributes
    ----------
    fake_row, train_row : int
        Numbers of the rows in their files, from 0.
    distance : float
        Between both, in units of the features.
    ratio : float
        Distance over that to the fifth nearest real row.
    hits : int
        Generated rows of which this training row is the near copy.
    """

    fake_row: int
    train_row: int
    distance: float
    ratio: float
    hits: int


def _log_weights(total: int, trained: int, drawn: int) -> tuple[Index, Float]:
    """Return the possible numbers of training rows, and the logarithm of what each one weighs."""
    t = np.arange(max(0, drawn - (total - trained)), min(drawn, trained) + 1)
    log = scipy.special.gammaln
    ways = log(t + 1) + log(trained - t + 1)
    ways += log(drawn - t + 1) + log(total - trained - drawn + t + 1)
    return t, -ways


def upper_tails(total: int, trained: int, drawn: int, odds: float = 1.0) -> Float:
    """Return P(T ≥ t) for t = 0 … `drawn`, T hypergeometric (Fisher's noncentral one).

    Parameters
    ----------
    total, trained : int
        Rows, and training rows among them.
    drawn : int
        Rows drawn without replacement.
    odds : float, default 1.0
        How many times likelier a training row is drawn.
    """
    t, weights = _log_weights(total, trained, drawn)
    weights += t * math.log(odds)
    mass = np.zeros(drawn + 1)
    mass[t] = np.exp(weights - weights.max())
    tails: Float = mass[::-1].cumsum()[::-1] / mass.sum()
    tails[: t[0] + 1] = 1.0
    return tails


def excess(order: Mask, total: int, trained: int, alpha: float, odds: float = 1.0) -> Excess:
    """Test whether training rows come too often, or too early, among the rows that are hit.

    Parameters
    ----------
    order : ndarray of shape (K,)
        Whether each distinct row that is hit was trained on, nearest first.
    total, trained : int
        Real rows, and training rows among them.
    alpha : float
        Error of the lower bound.
    odds : float, default 1.0
        How many times likelier a training row is hit without being copied.

    Notes
    -----
    *p-value.* The least of the prefixes' p-values p. Prefix j has one as small with probability
    F_j(p), its largest attainable p-value that is at most p: P(any) ≤ Σ_j F_j(p). Prefixes too
    short to reach p cost nothing (R. Tarone, Biometrics 1990).

    *Bound.* If the output depends on c training rows only, then among K rows of which T were
    trained on, T - c of K - c are at least as extreme as a draw from total - c rows with
    trained - c: putting a copy among the K replaces a random label by "trained on". The least c
    that is not rejected; the level is shared among the prefixes that can reject at all.
    """
    hits, trained_hits = len(order), int(order.sum())
    if not hits:
        return Excess(hit=0, trained=0, expected=0.0, pvalue=1.0, low=0, estimate=0.0)
    sizes = sorted({math.ceil(share * hits) for share in SHARES})
    counts = order.cumsum()[np.array(sizes) - 1].tolist()
    tails = [upper_tails(total, trained, size, odds) for size in sizes]
    least = min(tail[count] for tail, count in zip(tails, counts, strict=True))
    # P(T ≥ t) falls with t: the first that is as small is the largest attainable one.
    attainable = [tail[tail <= least * TIES][:1].sum() for tail in tails]
    pvalue = min(1.0, float(sum(attainable)))
    smallest = [float(tail[-1]) for tail in tails]
    # How many prefixes can reject at all, at the level that each of so many has.
    sharing = next(
        k for k in range(1, len(sizes) + 1) if sum(p <= alpha / k for p in smallest) <= k
    )
    low = int(pvalue <= alpha)
    for prefix in zip(sizes, counts, strict=True):
        low = max(low, _least_copies(total, trained, prefix, alpha / sharing, odds))
    expected = float(tails[-1][1:].sum())  # E T = Σ P(T ≥ t)
    estimate = (trained_hits - expected) / max(1.0 - expected / hits, SMALLEST)
    return Excess(
        hit=hits,
        trained=trained_hits,
        expected=expected,
        pvalue=max(pvalue, SMALLEST),  # beyond it only rounding
        low=low,
        # The bound may rest on the nearest hits alone, of which more are copies than of all.
        estimate=float(np.clip(estimate, low, trained_hits)),
    )


def careful_excess(order: Mask, total: int, trained: int, alpha: float, odds: float) -> Excess:
    """Return `excess` with `odds`, but never a smaller p-value or a larger bound than without.

    The odds are estimated from labels: only so is the test exact where nothing depends on these.
    """
    plain = excess(order, total, trained, alpha)
    under = excess(order, total, trained, alpha, odds)
    return replace(under, pvalue=max(under.pvalue, plain.pvalue), low=min(under.low, plain.low))


def _least_copies(total: int, trained: int, prefix: Sequence[int], p: float, odds: float) -> int:
    """Return the least number of copies that explains a prefix: its rows, training rows in it."""
    size, count = prefix

    def explains(c: int) -> bool:
        return bool(upper_tails(total - c, trained - c, size - c, odds)[count - c] > p)

    return bisect_left(range(count), True, key=explains)


def over_fitting(order: Mask, total: int, trained: int) -> float:
    """Return how many times likelier the generator hits a training row that it does not copy.

    A generator that fits its training rows too closely is likelier to be near to them, at every
    distance. So generated rows that are no nearer than real rows usually are tell by how much: at
    least 1, and drawn towards 1 by `PRIOR` rows, where there are few.

    Parameters
    ----------
    order : ndarray of shape (K,)
        Whether each distinct row that such generated rows hit was trained on.
    total, trained : int
    """
    usual = trained / total
    ours, others = order.sum() + PRIOR * usual, (~order).sum() + PRIOR * (1.0 - usual)
    return max(1.0, float(ours / others * (1.0 - usual) / usual))


def least_visible(total: int, trained: int, alpha: float) -> int:
    """Return how many copied rows are significant if nothing else is hit; all, if none are."""
    chance, hits = 1.0, 0
    while chance > alpha and hits < trained:
        chance *= (trained - hits) / (total - hits)
        hits += 1
    return hits


def listed(closeness: Float, trained: Mask, usable: Mask, fdr: float, odds: float = 1.0) -> Index:
    """Choose training rows such that a share of at most `fdr` is wrong on average.

    Parameters
    ----------
    closeness : ndarray of shape (U,)
        Smaller is closer; infinite where a row is not hit.
    trained, usable : ndarray of shape (U,)
    fdr : float
    odds : float, default 1.0
        As for `excess`: so many times more training rows than held-out ones are hit by chance.

    Returns
    -------
    ndarray of shape (k,)
        Places of the rows, closest first.

    Notes
    -----
    The conformal p-value of a training row is the share of held-out rows that are as close, itself
    counted among them; then Benjamini and Hochberg (S. Bates et al., Annals of Statistics 2023,
    theorem 2). Rows that are not reproduced are exchangeable with the held-out ones.
    """
    held = np.sort(closeness[usable & ~trained])
    places = np.flatnonzero(usable & trained & np.isfinite(closeness))
    places = places[np.argsort(closeness[places], kind="stable")]
    pvalues = (1 + np.searchsorted(held, closeness[places], side="right")) / (held.size + 1)
    rank = np.arange(1, places.size + 1)
    passed = np.flatnonzero(odds * pvalues * int((usable & trained).sum()) <= fdr * rank)
    return places[: passed[-1] + 1] if passed.size else places[:0]


def fisher(k: int, n: int, k0: int, n0: int) -> float:
    """Return the p-value of k of n against k0 of n0, for "the first share is not the larger one".

    Fisher's exact test, one-sided.
    """
    return float(scipy.stats.hypergeom.sf(k - 1, n + n0, n, k + k0))


def holm(pvalues: Sequence[float]) -> list[float]:
    """Return `pvalues` adjusted for their number (S. Holm, Scand. J. Stat. 6, 1979)."""
    p = np.asarray(pvalues, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(steps, 1.0)
    return [float(value) for value in adjusted]


def ratio_interval(k: int, n: int, k0: int, n0: int, error: float) -> tuple[float, float]:
    """Bound the ratio p / p0 of two shares from k of n and k0 of n0, where p > p0 is expected.

    Parameters
    ----------
    k, n, k0, n0 : int
    error : float
        Probability that the ratio lies outside, at most.

    Returns
    -------
    tuple of float
        Ends; the lower one is the sharper one. ``(0, inf)`` is possible.

    Notes
    -----
    The ratio is θ / (1 + p0 (θ - 1)) with θ the odds ratio. Ends of θ are exact given k + k0
    (R. A. Fisher, J. R. Stat. Soc. 98, 1935); p0 is at most u, by Clopper and Pearson (Biometrika
    26, 1934), and at least 0. Each of the three fails with its part of `error`.
    """
    low, inverse = (
        _least_odds(k, n, k0, n0, NOTED * error),
        _least_odds(k0, n0, k, n, OTHER * error),
    )
    high = 1.0 / inverse if inverse > 0.0 else math.inf
    base = (
        1.0 if k0 == n0 else float(scipy.special.betaincinv(k0 + 1.0, n0 - k0, 1.0 - BASE * error))
    )
    # With θ > 1 the ratio falls in p0, with θ < 1 it rises.
    return _ratio(low, base if low > 1.0 else 0.0), _ratio(high, base if high < 1.0 else 0.0)


def _ratio(odds: float, base: float) -> float:
    if math.isinf(odds):
        return math.inf if base == 0.0 else 1.0 / base
    return odds / (1.0 + base * (odds - 1.0))


def _least_odds(k: int, n: int, k0: int, n0: int, error: float) -> float:
    """Return the odds ratio with which k or more, given k + k0, have probability `error`."""
    i, weights = _log_weights(n + n0, n, k + k0)
    tail = i >= k

    def excess(log_odds: float) -> float:
        terms = weights + log_odds * i
        terms = np.exp(terms - terms.max())
        return float(terms[tail].sum() / terms.sum()) - error

    if tail.all() or excess(-STEEPEST) > 0.0:  # nothing speaks against any small odds
        return 0.0
    return math.exp(float(scipy.optimize.brentq(excess, -STEEPEST, STEEPEST, xtol=1e-9)))
