"""Inception score: exp of the mean divergence of class posteriors from their average."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.estimators._expansion import Expansion, mean_variance
from genbounds.estimators._extrapolation import Subsets, extrapolate
from genbounds.estimators._moments import row_blocks
from genbounds.estimators._resampling import (
    Interval,
    Jackknife,
    bootstrap_score,
    check_interval,
    jackknife_score,
)
from genbounds.origins import origin_notes, origin_of
from genbounds.results import Score
from genbounds.validation import (
    POSTERIOR_ATOL,
    Float,
    InputError,
    check_choice,
    check_count,
    check_features,
    check_finite,
    check_open_unit,
)

ESTIMATORS = ("debiased", "plugin", "infinity")

HALVING_SEED = 20_190_110
"""Fixed, so that random halves and pairs of rows give the same result at every call."""

CACHE_SHARE = 32
"""Blocks are this much smaller than those of other estimators: many light passes over each."""

NEVER = 1e-290
"""A class of smaller mean probability adds nothing to the score, and has no finite inverse."""

TINY = float(np.finfo(np.float64).tiny)
"""Stands in for a probability of 0 in its logarithm: 0 log 0 = 0."""


def inception_score(
    probs: Any,
    *,
    estimator: str = "debiased",
    level: float = 0.95,
    interval: Interval = "influence",
) -> Score:
    """Inception score of class posteriors: ``exp E KL(p(y|x) ‖ p(y))``.

    Parameters
    ----------
    probs : array_like of shape (n, classes)
        One posterior a row: non-negative, summing to one. Rows must be independent.
    estimator : {"debiased", "plugin", "infinity"}
        "debiased" removes the bias of log IS to third order in 1/n; "plugin" is the usual number
        on one split; "infinity" is IS∞ as published, extrapolated from subsets.
    level : float
        Coverage of the interval, in (0, 1).
    interval : {"influence", "jackknife", "bootstrap"} or Jackknife or Bootstrap
        How the interval is made; the last two recompute the estimate, for comparison.

    Returns
    -------
    Score
        The interval is computed for log IS and mapped through exp.

    Raises
    ------
    InputError
        If a row is not a probability vector.

    Notes
    -----
    With q the mean posterior, log IS has influence ``KL(p_i ‖ q) - log IS`` and bias
    ``-Σ_j Var(p_j) / (2 n q_j)``. Derivation, and why the textbook standard error is too small with
    few samples: docs/inception.md.

    References
    ----------
    .. [1] T. Salimans et al., "Improved techniques for training GANs", NeurIPS 2016.
    .. [2] M. J. Chong and D. Forsyth, "Effectively unbiased FID and Inception Score and where to
       find them", CVPR 2020, eq. (13).

    Examples
    --------
    >>> import numpy as np, genbounds as gb
    >>> score = gb.inception_score(np.tile(np.eye(4), (50, 1)), estimator="plugin")
    >>> round(score.value, 6)
    4.0
    """
    level = check_open_unit("level", level)
    plan = check_interval(interval)
    expansion = inception_expansion(probs, estimator=estimator)
    notes = origin_notes({"`probs`": origin_of(probs)})
    expansion = replace(expansion, notes=expansion.notes + tuple(notes))
    if plan is None:
        return expansion.score(level)

    def estimate(samples: Sequence[NDArray[Any] | None]) -> float:
        return inception_expansion(samples[0], estimator=estimator).value

    samples = (check_features("probs", probs), None)
    if isinstance(plan, Jackknife):
        return jackknife_score(expansion, estimate, samples, plan, level)
    empirical = inception_expansion(probs, estimator="plugin").value
    return bootstrap_score(expansion, estimate, samples, empirical, plan, level)


def inception_splits(probs: Any, *, splits: int = 10, level: float = 0.95) -> tuple[Score, ...]:
    """Plug-in Inception score of each of some consecutive parts, as first published.

    Parameters
    ----------
    probs : array_like of shape (n, classes)
    splits : int
        Number of parts, in the order of the rows; their sizes differ by at most one.
    level : float

    Returns
    -------
    tuple of Score
        One a part. Their mean is the number in most tables: biased like a score of n / splits
        samples. Their standard deviation is not the error of that mean.

    Raises
    ------
    InputError
        As `inception_score`; or if a part would have fewer than 2 rows.

    References
    ----------
    .. [1] T. Salimans et al., "Improved techniques for training GANs", NeurIPS 2016 (10 parts).
    """
    level = check_open_unit("level", level)
    rows = check_features("probs", probs)
    if check_count("splits", splits) > len(rows) // 2:
        raise InputError(
            f"`splits` must leave 2 rows a part: at most {len(rows) // 2}; got {splits}."
        )
    return tuple(
        inception_expansion(part, estimator="plugin").score(level)
        for part in np.array_split(rows, splits)
    )


def inception_infinity(probs: Any, *, level: float = 0.95, subsets: Subsets | None = None) -> Score:
    """IS∞ as published: plug-in scores of random subsets, extrapolated linearly in 1/N.

    Parameters
    ----------
    probs : array_like of shape (n, classes)
        The pool; n >= 20.
    level : float
    subsets : Subsets, optional
        Number of sizes, smallest size, spacing, replacement, repeats.

    Returns
    -------
    Score
        `stderr` joins the sampling error of the pool and the scatter about the line.

    Raises
    ------
    InputError
        As `inception_score`; or if the pool is too small, or `subsets` not legal.

    References
    ----------
    .. [1] M. J. Chong and D. Forsyth, "Effectively unbiased FID and Inception Score and where to
       find them", CVPR 2020, §3.3 and §4.3.
    """
    level = check_open_unit("level", level)
    return inception_expansion(probs, estimator="infinity", subsets=subsets).score(level)


def inception_expansion(
    probs: Any, *, estimator: str = "debiased", subsets: Subsets | None = None
) -> Expansion:
    """Log Inception score with its variance and influence, before any level is chosen.

    `probs` and `estimator` are those of `inception_score`, `subsets` those of `inception_infinity`.
    """
    check_choice("estimator", estimator, ESTIMATORS)
    subsets = subsets or Subsets()
    rows = check_features("probs", probs)
    n = rows.shape[0]
    half = _halves(n)
    marginals = _checked_marginals(rows, half)
    marginal = marginals[0]
    terms = _terms(rows, None, *marginals)
    value, variance = terms.plugin, terms.variance
    third_order, route = _third_order(terms, half)
    notes = ["interval assumes independent rows"]
    if estimator == "debiased":
        value = third_order
        notes.append(f"route: {route}")
    elif estimator == "plugin":
        notes.append(
            f"plug-in: bias of log IS not removed (about {terms.plugin - third_order:+.3g}), "
            "so the interval is not centred on the truth"
        )
    else:
        value, variance, line = _infinity(rows, variance, subsets)
        notes.append(line)
    classes = int((marginal > 0.0).sum())
    if n < 50:
        notes.append(f"only {n} samples: the interval can miss more often")
    if n < 2 * classes:
        notes.append(
            f"{n} samples for {classes} classes: fewer than two a class, "
            "so bias can be left that the interval does not cover"
        )
    return Expansion(
        estimator=estimator,
        value=value,
        variance=variance,
        degrees_of_freedom=n - 1.0,
        influence=terms.influence,
        n=n,
        log_scale=True,
        lower_limit=0.0,
        upper_limit=math.log(rows.shape[1]),
        higher_is_better=True,
        notes=tuple(notes),
    )


def _halves(n: int) -> NDArray[np.intp]:
    """Label 0 or 1 of each row: random halves."""
    label = np.empty(n, dtype=np.intp)
    label[np.random.default_rng(HALVING_SEED).permutation(n)] = np.arange(n) % 2
    return label


def _third_order(terms: _Terms, half: NDArray[np.intp]) -> tuple[float, str]:
    """Log IS with its bias removed, and how."""
    n = half.size
    second_order = terms.plugin - terms.bias
    if n < 4:
        return second_order, "second order"
    # Halving the sample multiplies what is left of the bias by four.
    half_value = 0.0
    for k, (divergence, own) in enumerate(terms.halves):
        chosen = half == k
        plugin, bias = _plugin_and_bias(divergence[chosen], own[chosen])
        half_value += (plugin - bias) / 2.0
    return (4.0 * second_order - half_value) / 3.0, "third order, by halving"


def _infinity(rows: NDArray[Any], variance: float, subsets: Subsets) -> tuple[float, float, str]:
    """Log of the extrapolated score (the line is drawn through IS itself), variance, a note."""
    line = extrapolate(
        lambda index: math.exp(_terms(rows, index, _marginal(rows, index)).plugin),
        rows.shape[0],
        subsets,
    )
    value = max(line.value, 1.0)
    note = (
        f"IS∞ as published: {line.sizes.size} sizes from {line.sizes[0]} to {line.sizes[-1]}; "
        "its error beyond the first order in 1/N is not covered by the interval"
    )
    return math.log(value), variance + line.variance / value**2, note


@dataclass(frozen=True, slots=True)
class _Terms:
    """Plug-in log IS with its second-order bias, its variance and its influence.

    `halves`: for the mean posterior of each half, divergence and chi-square distance of all rows.
    """

    plugin: float
    bias: float
    variance: float
    influence: Float
    halves: tuple[tuple[Float, Float], ...] = ()


def _marginal(rows: NDArray[Any], index: NDArray[np.intp] | None) -> Float:
    total = np.zeros(rows.shape[1])
    n = 0
    for _, block in row_blocks(rows, index):
        block /= block.sum(axis=1, keepdims=True)
        total += block.sum(axis=0)
        n += block.shape[0]
    return total / n


def _checked_marginals(rows: NDArray[Any], half: NDArray[np.intp]) -> tuple[Float, ...]:
    """Mean posterior of all rows and, from four rows on, of either half; every row is checked."""
    n = rows.shape[0]
    totals = np.zeros((2, rows.shape[1]))
    for positions, block in row_blocks(rows, width=CACHE_SHARE * rows.shape[1]):
        total = _check_posteriors(block, int(positions[0]))
        # Rows are weighted by their half and by what makes them sum to one.
        totals += ((half[positions] == [[0], [1]]) / total) @ block
    marginal = totals.sum(axis=0) / n
    if n < 4:
        return (marginal,)
    return (marginal, *(totals / np.bincount(half)[:, None]))


def _terms(
    rows: NDArray[Any], index: NDArray[np.intp] | None, marginal: Float, *halves: Float
) -> _Terms:
    n = rows.shape[0] if index is None else index.size
    marginals = np.column_stack([marginal, *halves])
    present = marginals > NEVER
    log_marginals = np.log(np.where(present, marginals, 1.0))
    inverse = np.where(present, 1.0 / np.where(present, marginals, 1.0), 0.0)
    divergence = np.empty((marginals.shape[1], n))  # KL(p_i ‖ q), in nats
    own = np.empty((marginals.shape[1], n))  # chi-square distance of p_i from q
    pair_sum, pairs = 0.0, 0
    shuffler = np.random.default_rng(HALVING_SEED)
    for positions, p in row_blocks(rows, index, width=CACHE_SHARE * rows.shape[1]):
        p /= p.sum(axis=1, keepdims=True)
        work = np.maximum(p, TINY)
        np.log(work, out=work)
        divergence[:, positions] = np.einsum("ij,ij->i", p, work) - (p @ log_marginals).T
        np.multiply(p, p, out=work)
        own[:, positions] = (work @ inverse).T - 1.0
        shuffled = shuffler.permutation(p.shape[0])  # pairs must not follow the file's order
        one, two = np.array_split(shuffled[: p.shape[0] // 2 * 2], 2)
        weighted = np.take(p, two, axis=0, out=work[: two.size])
        weighted *= inverse[:, 0]
        cross = np.einsum("ij,ij->i", p[one], weighted) - 1.0
        pair_sum += float(cross @ cross)
        pairs += one.size
    plugin, bias = _plugin_and_bias(divergence[0], own[0])
    # A row sits in the q it is compared with, which pulls its divergence down by own/n: the
    # leave-one-out influence puts that back.
    influence = divergence[0] - divergence[0].mean() + (own[0] - own[0].mean()) / n
    first = mean_variance(influence)
    # The quadratic part has kernel -cross/2, hence variance 2 E(cross/2)²/n²; estimating q adds
    # twice that to `first`.
    second = pair_sum / (2.0 * max(pairs, 1) * n**2)
    return _Terms(
        plugin=plugin,
        bias=bias,
        variance=max(first - second, first / 2.0),
        influence=influence,
        halves=tuple(zip(divergence[1:], own[1:], strict=True)),
    )


def _plugin_and_bias(divergence: Float, own: Float) -> tuple[float, float]:
    """Plug-in log IS and its second-order bias, from the distances of a sample's rows from q."""
    n = divergence.size
    return max(float(divergence.mean()), 0.0), -float(own.sum()) / (2.0 * n * (n - 1))


def _check_posteriors(block: Float, first_row: int) -> Float:
    """Refuse rows that are no probability vectors; returns their sums."""
    with np.errstate(over="ignore", invalid="ignore"):  # said better below
        total: Float = block.sum(axis=1)
    if block.min() >= 0.0 and np.abs(total - 1.0).max() <= POSTERIOR_ATOL:  # NaN fails both
        return total
    check_finite("probs", block, first_row=first_row)
    lowest: Float = block.min(axis=1)
    row = int(np.flatnonzero(~(np.abs(total - 1.0) <= POSTERIOR_ATOL) | (lowest < 0.0))[0])
    what = "a negative entry" if lowest[row] < 0.0 else f"entries that sum to {total[row]:.6g}"
    raise InputError(
        f"`probs` has {what} in row {first_row + row}: every row must be a probability "
        "vector. If these are logits, apply a softmax first (`--logits`)."
    )
