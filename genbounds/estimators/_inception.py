"""Inception score: exp of the mean divergence of class posteriors from their average."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.estimators._design import Design, Index, design_of, drawn
from genbounds.estimators._estimate import Estimate, SampleError, bias_left, small_sample
from genbounds.estimators._extrapolation import Subsets, extrapolate
from genbounds.estimators._inspect import inspect
from genbounds.estimators._moments import row_blocks
from genbounds.estimators._resampling import (
    Interval,
    Jackknife,
    bootstrap_score,
    check_interval,
    jackknife_score,
)
from genbounds.estimators._second_order import (
    QuadraticForm,
    RowTerms,
    expand_design,
    expand_rows,
    halved,
    third_order,
)
from genbounds.origins import origin_of
from genbounds.results import Diagnostic, Method, Score, caution, unreliable
from genbounds.samples import Sample, features_of, too_even
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
        One posterior a row: non-negative, summing to one; or a `Sample` of them that says how the
        rows depend on one another or are weighted.
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
    found = inception_estimate(probs, estimator=estimator)
    found = found.made_from({"`probs`": origin_of(probs)})
    if plan is None:
        return found.score(level)

    def estimate(samples: Sequence[NDArray[Any] | None]) -> float:
        # Rows drawn again repeat on purpose: they are taken as independent.
        return inception_estimate(Sample(samples[0]), estimator=estimator).value

    if design_of("probs", probs) is not None:
        raise InputError(
            "is a Sample with groups, strata or weights, which has the interval 'influence' only.",
            argument="probs",
        )
    samples = (check_features("probs", features_of(probs)), None)
    if isinstance(plan, Jackknife):
        return jackknife_score(found, estimate, samples, plan, level)
    empirical = inception_estimate(probs, estimator="plugin").value
    return bootstrap_score(found, estimate, samples, empirical, plan, level)


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
            f"must leave 2 rows per part: at most {len(rows) // 2}; got {splits}.",
            argument="splits",
        )
    return tuple(
        inception_estimate(part, estimator="plugin").score(level)
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
    return inception_estimate(probs, estimator="infinity", subsets=subsets).score(level)


# In one piece: value, error and warnings of the three estimators share every step.
def inception_estimate(
    probs: Any, *, estimator: str = "debiased", subsets: Subsets | None = None
) -> Estimate:
    """Log Inception score with its variance and influence, before any level is chosen.

    `probs` and `estimator` are those of `inception_score`, `subsets` those of `inception_infinity`.
    """
    check_choice("estimator", estimator, ESTIMATORS)
    seen = inspect("probs", probs, posteriors=True)
    rows, design = seen.rows, seen.design
    n = rows.shape[0]
    if design is None or design.independent:
        form = InceptionRows(rows, half=_halves(n))
        error, _ = expand_rows(form)
        error = error if design is None else replace(error, units=design.labels)
        plugin = form.plugin()
        value, method = _third_order(form, plugin - error.bias)
    else:
        if estimator == "infinity":
            raise InputError(
                "IS∞ draws subsets of independent rows: use 'debiased' with groups, strata or "
                "weights."
            )
        form = InceptionRows(rows, weights=design.weights)
        error, _ = expand_design(form, design)
        plugin = form.plugin()
        value, method, error = _designed(rows, design, plugin - error.bias, error)
    warnings = seen.warnings
    if not seen.told:
        warnings += _balanced(form.top)
    details: tuple[str, ...] = ()
    if estimator == "plugin":
        warnings += (bias_left(plugin - value),)
        value, method = plugin, "plug-in"
    elif estimator == "infinity":
        subsets = subsets or Subsets()
        # The line is drawn through the score itself.
        line = extrapolate(lambda index: math.exp(InceptionRows(rows, index).value()), n, subsets)
        warnings += subsets.warnings
        score = max(line.value, 1.0)
        value, method = math.log(score), "extrapolation"
        error = replace(error, variance=error.variance + line.variance / score**2)
        details = (f"{line.sizes.size} subset sizes from {line.sizes[0]} to {line.sizes[-1]}",)
    classes = int((form.marginals[:, 0] > 0.0).sum())
    warnings += small_sample(n, units=math.inf if design is None else design.free_units)
    if n < 2 * classes:
        warnings += (
            caution(
                "few-samples",
                f"{n} samples for {classes} classes, fewer than two per class: the interval does "
                "not cover the bias that can be left",
                "Use more samples.",
            ),
        )
    assumptions = [drawn(design)]
    if estimator == "infinity":
        assumptions.append("the plug-in score is linear in 1/N over the subsets")
    return Estimate(
        title="Inception score",
        estimator=estimator,
        method=method,
        value=value,
        sample=replace(error, row_ids=seen.ids),
        log_scale=True,
        lower_limit=0.0,
        upper_limit=math.log(rows.shape[1]),
        higher_is_better=True,
        warnings=warnings,
        assumptions=tuple(assumptions),
        details=details,
    )


def _balanced(counts: Index) -> tuple[Diagnostic, ...]:
    """Warn of class counts that are more even than independent draws would leave them."""
    if not too_even(counts):
        return ()
    return (
        unreliable(
            "balanced-classes",
            "the likeliest classes occur more evenly than independent draws would: the number of "
            "samples of each class was fixed",
            "Pass genbounds.Sample(probs, strata=classes).",
        ),
    )


def _third_order(form: InceptionRows, second_order: float) -> tuple[float, Method]:
    """Log IS with its bias removed, and how."""
    if form.n < 4:
        return second_order, "second-order"
    halves = []
    for k in (0, 1):
        chosen = form.half == k
        own = form.own[1 + k, chosen]
        bias = -float(own.sum()) / (2.0 * own.size * (own.size - 1))
        halves.append(max(float(form.divergence[1 + k, chosen].mean()), 0.0) - bias)
    return third_order(second_order, halves), "third-order"


def _designed(
    rows: NDArray[Any], design: Design, second_order: float, error: SampleError
) -> tuple[float, Method, SampleError]:
    """Log IS to third order, by halves of the units of a design."""
    halves = design.halves(np.random.default_rng(HALVING_SEED))
    if halves is None:
        return second_order, "second-order", error
    values = []
    for index in halves:
        part = design.restricted(index)
        form = InceptionRows(rows, index, weights=part.weights)
        half, _ = expand_design(form, part, bias_only=True)
        values.append(form.plugin() - half.bias)
    return third_order(second_order, values), "third-order", halved(error)


class InceptionRows(QuadraticForm):
    """The rows of a sample of posteriors as a `QuadraticForm`; a block is an array of posteriors.

    With q the mean posterior, IF(p) = KL(p ‖ q) less its mean and h(p, p') = (1 - Σ p p'/q) / 2.

    Parameters
    ----------
    rows : ndarray of shape (n, classes)
    index : ndarray of shape (k,), optional
        The rows to use; they have been checked already.
    weights : ndarray of shape (n,) or (k,), optional
        Of these rows; they sum to one.
    half : ndarray of shape (n,), optional
        0 or 1 for every row: the divergences from the mean posterior of either half are wanted too.

    Attributes
    ----------
    marginals : ndarray of shape (classes, 1 or 3)
        Mean posterior of all rows and, from four rows on, of either random half.
    top : ndarray of shape (classes,)
        How often each class is the likeliest, counted by `terms`.
    divergence, own : ndarray of shape (1 or 3, n)
        KL divergence and chi-square distance of every row from each of them, filled by `terms`.
    """

    seed = HALVING_SEED

    def __init__(
        self,
        rows: NDArray[Any],
        index: Index | None = None,
        *,
        weights: Float | None = None,
        half: Index | None = None,
    ) -> None:
        self.rows, self.index = rows, index
        self.n = rows.shape[0] if index is None else index.size
        self.weights = weights
        self.half = np.zeros(self.n, dtype=np.intp) if half is None else half
        if half is not None:
            self.marginals = np.column_stack(_checked_marginals(rows, half))
        else:
            self.marginals = _marginal(rows, index, weights)[:, None]
        present = self.marginals > NEVER
        self._log = np.log(np.where(present, self.marginals, 1.0))
        self._inverse = np.where(present, 1.0 / np.where(present, self.marginals, 1.0), 0.0)
        self.divergence, self.own = np.empty((2, self.marginals.shape[1], self.n))
        self.top = np.zeros(rows.shape[1], dtype=np.intp)

    @property
    def width(self) -> int:
        """Numbers a row."""
        return CACHE_SHARE * int(self.rows.shape[1])

    def block(self, rows: Index) -> Float:
        """Return posteriors that sum to one."""
        chosen = rows if self.index is None else self.index[rows]
        p: Float = np.array(self.rows[chosen], dtype=np.float64)
        p /= p.sum(axis=1, keepdims=True)
        return p

    def blocks(self, part: Index | None) -> Iterator[tuple[Index, Float]]:
        """Yield posteriors that sum to one."""
        assert part is None  # one pass is cheap: every row is used
        for positions, p in row_blocks(
            self.rows, self.index, width=CACHE_SHARE * self.rows.shape[1]
        ):
            p /= p.sum(axis=1, keepdims=True)
            yield positions, p

    def terms(self, block: Float, positions: Index) -> RowTerms:
        """KL(p ‖ q) in nats and -(Σ p²/q - 1) / 2; the same for the halves is kept aside."""
        work = np.maximum(block, TINY)
        np.log(work, out=work)
        divergence = np.einsum("ij,ij->i", block, work) - (block @ self._log).T
        np.multiply(block, block, out=work)
        own = (work @ self._inverse).T - 1.0
        self.divergence[:, positions], self.own[:, positions] = divergence, own
        self.top += np.bincount(block.argmax(axis=1), minlength=self.top.size)
        return RowTerms(divergence[0], own[0] / -2.0)

    def across(self, one: Float, i: Index, two: Float, j: Index) -> Float:
        """h(p_i, p_j)."""
        weighted = two[j]
        weighted *= self._inverse[:, 0]
        crossed: Float = np.einsum("ij,ij->i", one[i], weighted)
        return (1.0 - crossed) / 2.0

    def plugin(self) -> float:
        """Mean divergence, the plug-in log score, once `terms` has seen every row."""
        divergence = self.divergence[0]
        mean = divergence.mean() if self.weights is None else self.weights @ divergence
        return max(float(mean), 0.0)

    def value(self) -> float:
        """Plug-in log score, without its error."""
        for positions, block in self.blocks(None):
            self.terms(block, positions)
        return self.plugin()


def _halves(n: int) -> NDArray[np.intp]:
    """Label 0 or 1 of each row: random halves."""
    label = np.empty(n, dtype=np.intp)
    label[np.random.default_rng(HALVING_SEED).permutation(n)] = np.arange(n) % 2
    return label


def _marginal(rows: NDArray[Any], index: NDArray[np.intp] | None, weights: Float | None) -> Float:
    """Mean posterior; rows are checked where all of them are used."""
    total = np.zeros(rows.shape[1])
    n = rows.shape[0] if index is None else index.size
    for positions, block in row_blocks(rows, index):
        sums = (
            block.sum(axis=1) if index is not None else _check_posteriors(block, int(positions[0]))
        )
        block /= sums[:, None]
        total += block.sum(axis=0) / n if weights is None else weights[positions] @ block
    return total


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
        f"has {what} in row {first_row + row}: every row must be a probability "
        "vector. If these are logits, apply a softmax first.",
        argument="probs",
    )
