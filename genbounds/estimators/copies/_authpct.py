"""AuthPct: the share of generated rows that are no near copies of a training row."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.core.checks import Checked, check_rows, row_ids
from genbounds.core.close_rows import judge_common_rows
from genbounds.core.design import row_design
from genbounds.core.estimate import Estimate, small_sample
from genbounds.core.moments import Moments
from genbounds.diagnostics import warn_of
from genbounds.estimators._mean import mean_by_design
from genbounds.estimators._metric_spec import MetricSpec, preparing
from genbounds.estimators.neighbours import Neighbours, framing, nearest_rows, share_interval
from genbounds.origins import check_same_encoder, origin_of
from genbounds.results import Diagnostic, Score
from genbounds.samples import features_of
from genbounds.validation import (
    InputError,
    check_choice,
    check_features,
    check_open_unit,
    check_same_dimension,
)

PERCENT = 100.0

ADDED = 2.0
"""Rows of either kind that the variance is estimated with (A. Agresti and B. A. Coull, Am. Stat.
52, 1998): differences of models of which nearly all rows are of one kind hold."""


def authpct(fake: Any, train: Any, *, level: float = 0.95) -> Score:
    """Percentage of generated rows that are authentic: no near copies of a training row.

    Parameters
    ----------
    fake : array_like of shape (n, d) or Sample
        Generated features.
    train : array_like of shape (m, d)
        Features of the rows that the model was trained on, all of them.
    level : float
        Coverage of the interval, in (0, 1).

    Returns
    -------
    Score
        Between 0 and 100; larger is better. The interval is for this very training set: exact
        (Clopper-Pearson) for independent rows; with groups, strata or weights that of the number
        of independent rows that show as much.

    Raises
    ------
    InputError
        If a shape, a type or a value is not legal.

    Notes
    -----
    A generated row is authentic if it is farther from its nearest training row than that row is
    from its own nearest other training row [1]_. Distances are Euclidean; ties are not authentic.
    Not even new real rows are all authentic: score held-out rows as well, and compare. Whether
    there are copies at all `memorisation` tests exactly.

    References
    ----------
    .. [1] A. Alaa et al., "How faithful is your synthetic data? Sample-level metrics for evaluating
       and auditing generative models", ICML 2022, section 3 (authenticity).

    Examples
    --------
    >>> import numpy as np, genbounds as gb
    >>> rng = np.random.default_rng(0)
    >>> train, fresh = rng.normal(size=(2, 300, 16))
    >>> copies = train + 0.1 * rng.normal(size=(300, 16))
    >>> gb.authpct(copies, train).high < 2.0 < 50.0 < gb.authpct(fresh, train).low
    True
    """
    level = check_open_unit("level", level)
    found = TrainingRows(train, name="train").estimate(fake)
    return found.made_from(fake=fake, train=train).score(level)


class TrainingRows:
    """Training rows prepared once, against which any number of models can be scored.

    Parameters
    ----------
    train : array_like of shape (m, d) or Sample
        How they were drawn does not matter: they are what they are.
    name : str
        What they are called in an error.
    """

    def __init__(self, train: Any, *, name: str = "real") -> None:
        if isinstance(train, Moments):
            raise InputError("is given by its moments; AuthPct needs the rows.", argument=name)
        rows = check_features(name, features_of(train), minimum=2)
        self._name, self._origin, self._ids = name, origin_of(train), row_ids(rows, name=name)
        self._framed = framing(rows)
        self._rows = self._framed(rows)
        self._squares = Neighbours.of(self._rows, min(4, len(rows) - 1)).squares[:, 0]

    @property
    def d(self) -> int:
        """Number of features."""
        return int(self._rows.shape[1])

    def authentic(self, rows: NDArray[Any]) -> NDArray[np.bool_]:
        """Say which `rows` are farther from their nearest training row than that is from others."""
        index, squares = nearest_rows(self._framed(rows), self._rows)
        return np.asarray(squares > self._squares[index])

    def estimate(self, fake: Any, *, estimator: str = "debiased") -> Estimate:
        """Estimate for `fake` with its variance; the `estimator` makes no difference."""
        check_choice("estimator", estimator, ("debiased", "plugin"))
        check_same_encoder({"`fake`": origin_of(fake), f"`{self._name}`": self._origin})
        seen = check_rows("fake", fake, needs="AuthPct needs")
        check_same_dimension("fake", seen.rows.shape[1], self._name, self.d)
        authentic = self.authentic(seen.rows)
        design = seen.design or row_design(authentic.size)
        found = mean_by_design(authentic.astype(np.float64), design)
        # As many independent rows would show the share with this variance.
        n, spread = float(design.units), found.value * (1.0 - found.value)
        if not design.independent and found.variance > 0.0:
            n = spread / found.variance
        share = (found.value * n + ADDED) / (n + 2.0 * ADDED)
        error = replace(
            found.sample,
            n=authentic.size,
            variance=max(found.variance, share * (1.0 - share) / n),
            skewness=0.0,
            units=design.labels,
            row_ids=seen.single_ids,
        )
        found = replace(
            found,
            title="AuthPct",
            estimator=estimator,
            sample=error,
            lower_limit=0.0,
            upper_limit=1.0,
            own_interval=share_interval(
                found.value,
                n,
                degrees=math.inf if design.independent else design.degrees_of_freedom,
            ),
            warnings=(
                *seen.warnings,
                *self._warnings(seen),
                # The interval of independent rows is exact for any number of them.
                *small_sample(
                    math.inf if design.independent else design.effective, units=design.free_units
                ),
            ),
            assumptions=(
                *found.assumptions,
                "the interval is for this training set; a low score is no proof of copies: a "
                "model that is sharper than the data has one as well",
            ),
            details=(f"{authentic.sum()} of {authentic.size} generated rows are authentic",),
        )
        return replace(found.scaled(PERCENT), upper_limit=PERCENT)

    def _warnings(self, seen: Checked) -> Iterator[Diagnostic]:
        """Tell of training rows near which every row is authentic, and of exact copies of some."""
        if twins := int(np.sum(self._squares == 0.0)):
            yield warn_of("equal-training-rows", twins=twins, rows=len(self._rows))
        # Many copies may be the wrong file.
        both = self._framed(seen.rows), self._rows
        copies, severity = judge_common_rows(seen.ids, self._ids, both)
        if severity is not None:
            yield warn_of("copied-training-rows", copies=copies, rows=seen.ids.size)


AUTHPCT = MetricSpec(
    name="authpct",
    title="AuthPct",
    summary="percentage of rows that are no near copies of a training row (the reference)",
    unit="%",
    prepare=preparing(TrainingRows),
    higher_is_better=True,
)
