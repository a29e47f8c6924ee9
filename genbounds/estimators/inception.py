"""Inception score: exp of the mean divergence of class posteriors from their average.

`InceptionForm` is the mathematics: influence on the log score of every row, and its quadratic part.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy  # its submodules are loaded at their first use
from numpy.typing import NDArray

from genbounds import validation
from genbounds.core.checks import check_sample, drawn
from genbounds.core.design import Design, Index, row_design
from genbounds.core.estimate import Estimate, bias_left, small_sample
from genbounds.core.expansion import Form, RowTerms, expand, halved, third_order
from genbounds.core.moments import BLOCK_BYTES, row_blocks
from genbounds.diagnostics import warn_of
from genbounds.estimators._extrapolation import LINEAR, Subsets, extrapolate, not_independent
from genbounds.estimators._metric_spec import MetricSpec, Prepared
from genbounds.results import Method, Score
from genbounds.samples import too_even
from genbounds.validation import POSTERIOR_ATOL, Float, InputError

HALVING_SEED = 20_190_110
"""Fixed, so that random halves and pairs of rows give the same result at every call."""

CACHE_SHARE = 32
"""Blocks are this much smaller than those of other estimators: many light passes over each."""

NEVER = 1e-290
"""A class of smaller mean probability adds nothing to the score, and has no finite inverse."""

TINY = float(np.finfo(np.float64).tiny)
"""Stands in for a probability of 0 in its logarithm: 0 log 0 = 0."""


class InceptionForm(Form):
    """The rows of a sample of posteriors as a `Form`; a block is an array of posteriors.

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
        Mean posterior of all rows and of either half.
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
        self.rows, self.index, self.half = rows, index, half
        self.n = self.rows_at_hand = len(rows) if index is None else index.size
        self.weights = np.full(self.n, 1.0 / self.n) if weights is None else weights
        self.width, self.divisor = CACHE_SHARE * rows.shape[1], self.n - 1.0
        self.block_rows = max(2, BLOCK_BYTES // (8 * self.width))
        self.marginals = _marginals(rows, index, self.weights, half)
        present = self.marginals > NEVER
        self._log = np.log(np.where(present, self.marginals, 1.0))
        self._inverse = np.where(present, 1.0 / np.where(present, self.marginals, 1.0), 0.0)
        self.divergence, self.own = np.full((2, self.marginals.shape[1], self.n), np.nan)
        self.top = np.zeros(rows.shape[1], dtype=np.intp)

    def block(self, rows: Index) -> Float:
        """Return posteriors that sum to one."""
        chosen = rows if self.index is None else self.index[rows]
        p: Float = np.asarray(self.rows[chosen], dtype=np.float64)  # a copy
        p /= p.sum(axis=1, keepdims=True)
        return p

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

    def square_of(self, rows: Index, v: Float) -> float:
        """Σ_ij v_i v_j h(p_i, p_j) over the rows with these numbers."""
        total = v @ self.block(rows)
        return (float(v.sum()) ** 2 - float(total**2 @ self._inverse[:, 0])) / 2.0

    def plugin(self) -> float:
        """Mean divergence, the plug-in log score, once `terms` has seen every row."""
        return max(float(self.weights @ self.divergence[0]), 0.0)

    def half_values(self) -> list[float] | None:
        """Log score to second order of either half, if there are any."""
        if self.half is None:
            return None
        values = []
        for k in (0, 1):
            members = self.half == k
            own = self.own[1 + k, members]
            bias = -float(own.sum()) / (2.0 * own.size * (own.size - 1))
            values.append(max(float(self.divergence[1 + k, members].mean()), 0.0) - bias)
        return values

    def value(self) -> float:
        """Plug-in log score, without its error."""
        for positions, block in self.blocks(None):
            self.terms(block, positions)
        return self.plugin()


def _marginals(
    rows: NDArray[Any], index: Index | None, weights: Float, half: Index | None
) -> Float:
    """Mean posterior of all rows and of either `half`, if there are any, shape (classes, 1 or 3).

    Rows are checked where all of them are used.
    """
    shares = weights[None]
    if half is not None:
        shares = np.concatenate([shares, (half == [[0], [1]]) / np.bincount(half)[:, None]])
    means = np.zeros((len(shares), rows.shape[1]))
    for positions, block in row_blocks(rows, index, width=CACHE_SHARE * rows.shape[1]):
        if index is None:
            sums = _check_posteriors(block, int(positions[0]))
        else:
            sums = block.sum(axis=1)
        # Rows are weighted by what makes them sum to one as well.
        means += (shares[:, positions] / sums) @ block
    return means.T


def _check_posteriors(block: Float, first_row: int) -> Float:
    """Refuse rows that are no probability vectors; returns their sums."""
    with np.errstate(over="ignore", invalid="ignore"):  # said better below
        total: Float = block.sum(axis=1)
    if block.min() >= 0.0 and np.abs(total - 1.0).max() <= POSTERIOR_ATOL:  # NaN fails both
        return total
    validation.check_finite("probs", block, first_row=first_row)
    lowest: Float = block.min(axis=1)
    row = int(np.flatnonzero(~(np.abs(total - 1.0) <= POSTERIOR_ATOL) | (lowest < 0.0))[0])
    what = "a negative entry" if lowest[row] < 0.0 else f"entries that sum to {total[row]:.6g}"
    raise InputError(
        f"has {what} in row {first_row + row}: every row must be a probability "
        "vector. If these are logits, apply a softmax first (--logits).",
        argument="probs",
    )


ESTIMATORS = ("debiased", "plugin", "infinity")


# In one piece: value, error and warnings of the three estimators share every step.
def inception_estimate(
    probs: Any, *, estimator: str = "debiased", subsets: Subsets | None = None
) -> Estimate:
    """Log Inception score with its variance and influence, before any level is chosen.

    `probs` and `estimator` are those of `inception_score`, `subsets` those of `inception_infinity`.
    """
    validation.check_choice("estimator", estimator, ESTIMATORS)
    seen = check_sample("probs", probs, posteriors=True, crossed=True)
    rows, design = seen.rows, seen.design
    n = rows.shape[0]
    alone = design is None or design.independent
    if estimator == "infinity" and not alone:
        raise not_independent("IS∞")
    # Independent rows are compared with the mean posterior of their half in the same pass.
    form = InceptionForm(
        rows,
        weights=None if design is None else design.weights,
        half=row_design(n).halves(np.random.default_rng(HALVING_SEED)) if alone else None,
    )
    error, _ = expand(form, design)
    plugin = form.plugin()
    value: float = plugin - error.bias
    method: Method = "second-order"
    halves = form.half_values() if design is None or alone else _half_values(rows, design)
    if halves is not None:
        value, method = third_order(value, halves), "third-order"
    warnings = seen.warnings
    if not seen.told and too_even(form.top):
        warnings += (warn_of("balanced-classes"),)
    assumptions: tuple[str, ...] = (drawn(design),)
    details: tuple[str, ...] = ()
    if estimator == "plugin":
        warnings += (bias_left(plugin - value),)
        value, method = plugin, "plug-in"
    elif estimator == "debiased" and halves is not None:
        error = halved(error)
    elif estimator == "infinity":
        subsets = subsets or Subsets()
        # The line is drawn through the score itself.
        line = extrapolate(lambda index: math.exp(InceptionForm(rows, index).value()), n, subsets)
        warnings += subsets.warnings
        score = max(line.value, 1.0)
        value, method = math.log(score), "extrapolation"
        error = replace(error, variance=error.variance + line.variance / score**2)
        assumptions += (LINEAR,)
        details = line.details
    classes = int((form.marginals[:, 0] > 0.0).sum())
    warnings += small_sample(n, units=seen.drawing.free_units)
    if n < 2 * classes:
        warnings += (warn_of("few-per-class", n=n, classes=classes),)
    return Estimate(
        title="Inception score",
        estimator=estimator,
        method=method,
        value=value,
        sample=replace(error, row_ids=seen.single_ids),
        log_scale=True,
        lower_limit=0.0,
        upper_limit=math.log(rows.shape[1]),
        higher_is_better=True,
        warnings=warnings,
        assumptions=assumptions,
        details=details,
    )


def _half_values(rows: NDArray[Any], design: Design) -> list[float] | None:
    """Log IS to second order of both halves of the units of a design; None of too few units."""
    half = design.halves(np.random.default_rng(HALVING_SEED))
    if half is None:
        return None
    values = []
    for index in design.rows_of_halves(half):
        part = design.restricted(index)
        form = InceptionForm(rows, index, weights=part.weights)
        error, _ = expand(form, part, bias_only=True)  # before the value: it looks at every row
        values.append(form.plugin() - error.bias)
    return values


def inception_score(
    probs: Any, *, estimator: str = "debiased", level: float = 0.95, interval: str = "influence"
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
    interval : {"influence"}
        From the influence of every row. Resampled intervals are no longer offered.

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
    few samples: docs/explanation/inception.md.

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
    level = validation.check_open_unit("level", level)
    if interval != "influence":
        raise validation.removed_interval()
    estimate = inception_estimate(probs, estimator=estimator)
    return estimate.made_from(probs=probs).score(level)


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
    level = validation.check_open_unit("level", level)
    rows = validation.check_features("probs", probs)
    if validation.check_count("splits", splits) > len(rows) // 2:
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
    level = validation.check_open_unit("level", level)
    return inception_estimate(probs, estimator="infinity", subsets=subsets).score(level)


class RunningInception:
    """Sums of posteriors and of their entropies: plug-in Inception score and M25's variances.

    Parameters
    ----------
    classes : int
    """

    def __init__(self, classes: int) -> None:
        self.n, self.classes = 0, classes
        # Of the posteriors and, last, of their entropy; relative to the first row, which is near
        # the mean, so that variances do not cancel.
        self._origin, self._sums, self._squares = np.zeros((3, classes + 1))

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return 3 * self._sums.nbytes

    def add(self, rows: NDArray[Any]) -> None:
        """Take up posteriors, `rows` of shape (b, classes)."""
        p = np.asarray(rows, dtype=np.float64)
        with validation.calling("probs", "draw"):
            p = p / _check_posteriors(p, self.n)[:, None]
        values = np.column_stack([p, scipy.special.entr(p).sum(axis=1)])
        if self.n == 0:
            self._origin[:] = values[0]
        values -= self._origin
        self.n += len(values)
        self._sums += values.sum(axis=0)
        self._squares += np.einsum("ij,ij->j", values, values)

    @property
    def means(self) -> Float:
        """Mean posterior and, last, mean conditional entropy; shape (classes + 1,)."""
        return self._origin + self._sums / self.n

    @property
    def variances(self) -> Float:
        """Sample variances (divisor n - 1) of the same."""
        return np.maximum(self._squares - self._sums**2 / self.n, 0.0) / (self.n - 1)

    def loss(self) -> float:
        """Minus the logarithm of the plug-in score; -inf before two rows."""
        if self.n < 2:
            return -math.inf
        means = self.means
        return float(means[-1] - scipy.special.entr(means[:-1]).sum())


def _prepare(reference: Any, options: Mapping[str, Any], models: Sequence[Any]) -> Prepared:
    return Prepared(estimate=inception_estimate, follow=RunningInception, samples_per_dimension=5)


IS = MetricSpec(
    name="is",
    title="Inception score",
    summary="Inception score: confidence and variety of class probabilities",
    prepare=_prepare,
    higher_is_better=True,
    data="posteriors",
    reference="none",
    estimators=ESTIMATORS,
)
