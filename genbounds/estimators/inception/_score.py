"""Inception score: exp of the mean divergence of class posteriors from their average."""

from __future__ import annotations

from typing import Any

import numpy as np

from genbounds.estimators._extrapolation import Subsets
from genbounds.estimators.inception._estimate import inception_estimate
from genbounds.results import Score
from genbounds.validation import (
    InputError,
    check_count,
    check_features,
    check_open_unit,
    removed_interval,
)


def inception_score(
    probs: Any,
    *,
    estimator: str = "debiased",
    level: float = 0.95,
    interval: str = "influence",
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
    level = check_open_unit("level", level)
    if interval != "influence":
        raise removed_interval()
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
