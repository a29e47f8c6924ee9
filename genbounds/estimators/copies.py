"""Scores of generated rows against the very rows that a model was trained on.

AuthPct is the share of rows that are no near copies of a training row; MIFID the Fréchet distance
over a penalty for rows that point where training rows point.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds import validation
from genbounds._text import number
from genbounds.core.checks import Checked, check_rows, refuse_moments, row_ids
from genbounds.core.close_rows import judge_common_rows
from genbounds.core.estimate import Estimate, small_sample
from genbounds.diagnostics import warn_of
from genbounds.estimators._mean import mean_by_design
from genbounds.estimators._metric_spec import MetricSpec, prepared_by
from genbounds.estimators.frechet._distance import FrechetReference
from genbounds.estimators.kernels._pair_kernels import check_directions, unit_rows
from genbounds.estimators.neighbours._pairs import Neighbours, framing, nearest_rows
from genbounds.estimators.neighbours._scored import share_interval
from genbounds.origins import check_same_encoder, origin_of
from genbounds.results import Diagnostic, Score
from genbounds.samples import converted, features_of
from genbounds.validation import Float

# --- AuthPct --------------------------------------------------------------------------------------

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
    level = validation.check_open_unit("level", level)
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

    Attributes
    ----------
    d : int
        Number of features.
    """

    def __init__(self, train: Any, *, name: str = "real") -> None:
        refuse_moments(name, train, "AuthPct needs")
        rows = validation.check_features(name, features_of(train), minimum=2)
        self._name, self._origin, self._ids = name, origin_of(train), row_ids(rows, name=name)
        self._framed = framing(rows)
        self._rows, self.d = self._framed(rows), rows.shape[1]
        self._squares = Neighbours.of(self._rows, min(4, len(rows) - 1)).squares[:, 0]

    def authentic(self, rows: NDArray[Any]) -> NDArray[np.bool_]:
        """Say which `rows` are farther from their nearest training row than that is from others."""
        index, squares = nearest_rows(self._framed(rows), self._rows)
        return np.asarray(squares > self._squares[index])

    def estimate(self, fake: Any, *, estimator: str = "debiased") -> Estimate:
        """Estimate for `fake` with its variance; the `estimator` makes no difference."""
        validation.check_choice("estimator", estimator, ("debiased", "plugin"))
        check_same_encoder({"`fake`": origin_of(fake), f"`{self._name}`": self._origin})
        seen = check_rows("fake", fake, needs="AuthPct needs")
        validation.check_same_dimension("fake", seen.rows.shape[1], self._name, self.d)
        authentic = self.authentic(seen.rows)
        design = seen.drawing
        found = mean_by_design(authentic.astype(np.float64), design)
        # As many independent rows would show the share with this variance, and their interval is
        # exact for any number of them.
        n, degrees, enough = float(design.units), math.inf, math.inf
        if not design.independent:
            degrees, enough = design.degrees_of_freedom, design.effective
            if found.variance > 0.0:
                n = found.value * (1.0 - found.value) / found.variance
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
            own_interval=share_interval(found.value, n, degrees=degrees),
            warnings=(
                *seen.warnings,
                *self._warnings(seen),
                *small_sample(enough, units=design.free_units),
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
    prepare=partial(prepared_by, TrainingRows),
    higher_is_better=True,
)


# --- MIFID ----------------------------------------------------------------------------------------

THRESHOLD = 0.1

BLOCK_ROWS = 2048
"""Rows whose cosines exist at any one time."""

TINY = 1e-14
"""What the published score adds to the penalty."""

NO_DISTANCE = 1e-12
"""Mean cosine distance that is rounding."""

NEAR = 3.0
"""Standard errors of the mean cosine distance within which its threshold may be on either side."""


def mifid(
    fake: Any,
    real: Any,
    *,
    threshold: float = THRESHOLD,
    estimator: str = "debiased",
    level: float = 0.95,
) -> Score:
    """Memorisation-informed Fréchet distance, with interval.

    Parameters
    ----------
    fake : array_like of shape (n, d) or Sample
        Generated features.
    real : array_like of shape (m, d) or Sample
        Features of the rows that the model was trained on.
    threshold : float
        In (0, 1): a mean cosine distance from here on is no sign of copies, and the score is the
        Fréchet distance.
    estimator : {"debiased", "plugin"}
        "plugin": the published number.
    level : float
        Coverage of the interval, in (0, 1).

    Returns
    -------
    Score
        Smaller is better. The interval is for the distance between the distributions, over the mean
        cosine distance of the model to these very reference rows.

    Raises
    ------
    InputError
        If a shape, a type or a value is not legal, or a row is zero: it has no direction.

    Notes
    -----
    With D the Fréchet distance and m the mean over generated rows of the smallest cosine distance
    1 - abs(cos(x, y)) to a reference row y, the score is D / m if m < `threshold`, else D [1]_. The
    variance is that of the ratio by the delta method, with the covariance of D and m from the
    influence of every row on both; the bias of D and that of the ratio are removed. Where m is
    within three standard errors of the threshold the score is unreliable: it jumps there.

    References
    ----------
    .. [1] C.-Y. Bai et al., "On training sample memorization: lessons from benchmarking generative
       modeling with a large-scale competition", KDD 2021, section 3.

    Examples
    --------
    >>> import numpy as np, genbounds as gb
    >>> rng = np.random.default_rng(0)
    >>> fake, real = 2.0 + rng.normal(size=(2, 500, 8))
    >>> gb.mifid(fake, real).low < 0.5
    True
    """
    level = validation.check_open_unit("level", level)
    found = MifidReference(real, threshold=threshold).estimate(fake, estimator=estimator)
    return found.made_from(fake=fake, real=real).score(level)


class MifidReference:
    """A reference prepared once, against which any number of models can be scored.

    Parameters
    ----------
    real, threshold
        As in `mifid`.

    Attributes
    ----------
    d : int
        Number of features.
    """

    def __init__(self, real: Any, *, threshold: float = THRESHOLD) -> None:
        refuse_moments("real", real, "MIFID needs")
        self.threshold = validation.check_open_unit("threshold", threshold)
        real = converted("real", real)
        self._rows = validation.check_features("real", features_of(real))
        self._distance, self.d = FrechetReference(real), self._rows.shape[1]
        check_directions("real", self._rows.any(axis=1))

    def estimate(self, fake: Any, *, estimator: str = "debiased") -> Estimate:
        """Estimate for `fake` by the `estimator` of `mifid`, before any level is chosen."""
        validation.check_choice("estimator", estimator, ("debiased", "plugin"))
        fake = converted("fake", fake)
        distance = self._distance.estimate(fake, estimator=estimator)
        seen = check_rows("fake", fake, needs="MIFID needs")
        check_directions("fake", seen.rows.any(axis=1))
        design = seen.drawing
        cosine = mean_by_design(cosine_distances(seen.rows, self._rows), design)
        penalised = cosine.value < self.threshold
        found = _ratio(distance, cosine, estimator) if penalised else distance
        size = f"mean cosine distance to the nearest reference row: {number(cosine.value)}"
        what = "the distance is divided by it" if penalised else "no penalty"
        return replace(
            found,
            title="MIFID",
            warnings=(*found.warnings, *self._warnings(cosine)),
            assumptions=(*found.assumptions, "the penalty is for these reference rows"),
            details=(*found.details, f"{size}; {what} (threshold {self.threshold:g})"),
        )

    def _warnings(self, cosine: Estimate) -> tuple[Diagnostic, ...]:
        """Warn of the jump of the score, and of what copies do to the distance."""
        mean, at, factor = number(cosine.value), self.threshold, number(1.0 / self.threshold)
        if cosine.value <= NO_DISTANCE:
            return (warn_of("rows-point-as-reference", cosine=mean),)
        if abs(cosine.value - at) <= NEAR * cosine.stderr:
            return (warn_of("near-threshold", cosine=mean, threshold=at, factor=factor),)
        return (warn_of("near-reference", cosine=mean),) if cosine.value < at else ()


def _ratio(distance: Estimate, cosine: Estimate, estimator: str) -> Estimate:
    """Divide a distance by a mean over the same rows, by the delta method."""
    penalty = cosine.value + TINY
    found = distance.scaled(1.0 / penalty)
    slope = -found.value / penalty  # of the ratio in the penalty
    one, two = found.sample.influence, cosine.sample.influence
    own = slope**2 * cosine.variance
    if one is None or two is None or distance.shared_variance != 0.0:
        # Of units that stand in both samples the covariance is not known: the worst there can be.
        added = own + 2.0 * abs(slope) * cosine.stderr * found.stderr
        error = replace(found.sample, variance=found.sample.variance + added)
        return replace(found, sample=error)
    covariance = float(one @ two) / (one.size * (one.size - 1.0))
    variance = max(found.sample.variance + own + 2.0 * slope * covariance, 0.0)
    error = replace(found.sample, influence=one + slope * two, variance=variance)
    # E[D/m] exceeds the ratio of the means by D Var(m)/m³ - Cov(D, m)/m².
    bias = 0.0 if estimator == "plugin" else -(slope * cosine.variance + covariance) / penalty
    return replace(found, value=found.value - bias, sample=error)


def cosine_distances(x: NDArray[Any], y: NDArray[Any]) -> Float:
    """Smallest 1 - |cos(x, y)| of each row of `x` to a row of `y`.

    Parameters
    ----------
    x, y : ndarray of shapes (n, d) and (m, d)
        Without zero rows.
    """
    smallest = np.full(len(x), np.inf)
    for start in range(0, len(x), BLOCK_ROWS):
        one, found = unit_rows(x[start : start + BLOCK_ROWS]), smallest[start : start + BLOCK_ROWS]
        for first in range(0, len(y), BLOCK_ROWS):
            two = unit_rows(y[first : first + BLOCK_ROWS])
            cosines = one @ two.T
            nearest = np.abs(cosines).argmax(axis=1)
            signs = np.where(cosines[np.arange(len(one)), nearest] < 0.0, -1.0, 1.0)
            gap = one - signs[:, None] * two[nearest]  # of directions, whose products lose digits
            np.minimum(found, np.einsum("ij,ij->i", gap, gap) / 2.0, out=found)
    return smallest


MIFID = MetricSpec(
    name="mifid",
    title="MIFID",
    summary="Fréchet distance over the mean cosine distance to the nearest training row",
    unit="squared feature units",
    prepare=partial(prepared_by, MifidReference, samples_per_dimension=4, sampled_reference=True),
    options=("threshold",),
)
