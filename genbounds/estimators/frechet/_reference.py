"""A reference of the Fréchet distance, prepared once, and models scored against it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from genbounds._process import threads_for
from genbounds.core.class_shares import at_reference_shares, classes_of, shares_differ
from genbounds.core.estimate import Estimate
from genbounds.core.moments import Moments
from genbounds.core.scale import factor_of, scaled_back, unit_of
from genbounds.diagnostics import warn_of
from genbounds.estimators._extrapolation import Subsets, not_independent
from genbounds.estimators.frechet._debias import debias, infinity, plugin
from genbounds.estimators.frechet._pair import plugin_value
from genbounds.estimators.frechet._sample import (
    FEW_RATIO,
    FrechetSample,
    sample_of,
    sample_of_rows,
)
from genbounds.origins import check_same_encoder, origin_of
from genbounds.samples import Sample, features_of
from genbounds.validation import Float, InputError, check_choice, check_same_dimension

ESTIMATORS = ("debiased", "plugin", "infinity")

DECADES = 20.0
"""How far the size of features may be from 1: eighth powers of it, and products, are formed."""

NEGLIGIBLE_TRACE = 1e-60
"""Of one covariance beside the other: its square roots are then beyond double precision."""


LARGEST_OFFSET = 1e7
"""Means of features, in standard deviations, whose differences keep eight digits or more."""

LOST_OFFSET = 1e10
"""The same, from which on moments alone, which cannot be moved, have lost what counts."""


class FrechetReference:
    """A reference prepared once, against which any number of models can be scored.

    Parameters
    ----------
    real : array_like of shape (m, d), Sample or Moments

    Notes
    -----
    Holds a factor ``cov = L @ L.T`` of the reference covariance, and of those of its two random
    halves where they are needed. Each model then costs its covariance, one symmetric eigenproblem
    of size at most d and the products for its error.
    """

    def __init__(self, real: Any) -> None:
        self._work = _work(real)
        with threads_for(self._work):
            self._side = sample_of("real", real)
            if isinstance(real, Moments):
                _ = self._side.factor  # refuses what is no covariance before anything is drawn
        self._classes, self._origin = classes_of(real), origin_of(real)

    @property
    def d(self) -> int:
        """Number of features."""
        return self._side.mean.size

    @property
    def n(self) -> int | None:
        """Reference samples; None if the moments are exactly known."""
        return self._side.n

    @property
    def has_rows(self) -> bool:
        """Whether the reference is known row by row, not by its moments alone."""
        return self._side.rows is not None

    @property
    def serves_few_samples(self) -> bool:
        """Whether models with fewer than four samples per dimension get reliable scores.

        Not if the reference has as few itself and only its moments are known.
        """
        side = self._side
        return self.has_rows or side.effective >= FEW_RATIO * side.directions

    @property
    def moments(self) -> Moments:
        """Mean and covariance of the reference."""
        return self._side.moments

    @property
    def factor(self) -> Float:
        """L of shape (d, r) with ``cov = L @ L.T``, r the numerical rank."""
        return self._side.factor

    def plugin(self, fake: Any) -> float:
        """Plug-in distance of `fake`, biased upward; never negative."""
        with threads_for(max(_work(fake), self._work)):
            side, real, unit = self._pair(fake if isinstance(fake, Moments) else Sample(fake))
            return plugin_value(side, real) * factor_of(unit, 2)

    def estimate(
        self,
        fake: Any,
        *,
        estimator: str = "debiased",
        subsets: Subsets | None = None,
        influences: bool = True,
    ) -> Estimate:
        """Estimate with its variance and influences, before any level is chosen.

        `fake` and `estimator` are those of `frechet_distance`, `subsets` those of
        `frechet_infinity`. With ``influences=False``, for one score and no difference, a random
        part of the rows of a large sample stands for all in bias and variance
        (docs/explanation/frechet.md).
        """
        with threads_for(max(_work(fake), self._work)):
            check_choice("estimator", estimator, ESTIMATORS)
            fake = at_reference_shares(fake, self._classes)
            side, real, unit = self._pair(fake)
            if estimator == "plugin":
                found = plugin(side, real, every_row=influences)
            elif estimator == "infinity":
                if not (side.independent and real.independent):
                    raise not_independent("FD∞")
                found = infinity(side, real, subsets or Subsets(), every_row=influences)
            else:
                found = debias(side, real, every_row=influences)
            offset = _offset(side, real)
            if offset > LOST_OFFSET:
                found = found.warned(warn_of("far-from-zero", offset=offset))
            found = scaled_back(found, unit, power=2)
        return found.warned(
            *shares_differ(
                fake,
                self._classes,
                lambda sample: self.estimate(sample, estimator=estimator, influences=False),
            )
        )

    def _pair(self, fake: Any) -> tuple[FrechetSample, FrechetSample, float]:
        """Return both samples, and the power of two by which their features were divided."""
        check_same_encoder({"`fake`": origin_of(fake), "`real`": self._origin})
        side, real = sample_of("fake", fake), self._side
        check_same_dimension("fake", side.mean.size, "real", real.mean.size)
        if side.rows is not None and real.rows is not None and _offset(side, real) > LARGEST_OFFSET:
            origin = np.asarray(real.rows[0], dtype=np.float64)
            side, real = _moved(origin, side), _moved(origin, real)
        unit = unit_of(_size(side, real), decades=DECADES)
        if unit != 1.0:
            side, real = _divided_by(unit, side), _divided_by(unit, real)
        _check_ratio(side, real, unit)
        return side, real, unit


def _work(x: Any) -> float:
    """Multiply-adds of a covariance of these rows, or of a product of two covariances."""
    if isinstance(x, Moments):
        return float(x.d) ** 3
    shape: tuple[int, ...] = getattr(features_of(x), "shape", ())
    return float(shape[0]) * float(shape[1]) * min(shape) if len(shape) == 2 else 0.0


def _size(fake: FrechetSample, real: FrechetSample) -> float:
    """Return the length that the features' deviations, or the gap of their means, are about."""
    gap = fake.mean - real.mean
    with np.errstate(over="ignore"):
        total = fake.trace + real.trace + float(gap @ gap)
    if 1e-280 < total < math.inf:
        return math.sqrt(total)
    # Squares are not to be trusted.
    sides = [side.centred for side in (fake, real) if side.rows is not None]
    roots = [math.sqrt(side.trace) for side in (fake, real) if side.rows is None]
    return max(float(np.abs(gap).max()), *(float(np.abs(x).max()) for x in sides), *roots)


def _offset(fake: FrechetSample, real: FrechetSample) -> float:
    """Largest mean of a feature that both samples share, in standard deviations."""
    common = np.minimum(np.abs(fake.mean), np.abs(real.mean))
    spread = math.sqrt(max(fake.trace, real.trace) / real.mean.size)
    return float(common.max()) / spread if spread > 0.0 else 0.0


def _moved(origin: Float, side: FrechetSample) -> FrechetSample:
    """Return it about this row: large means would cost digits."""
    rows = np.asarray(side.rows, dtype=np.float64) - origin
    return sample_of_rows(side.name, rows, side.design, side.seen)


def _divided_by(unit: float, side: FrechetSample) -> FrechetSample:
    """Return the same sample in other units: what is known of its rows stays known."""
    if side.rows is None:
        return FrechetSample(side.name, side.moments.divided_by(unit))
    rows = np.asarray(side.rows, dtype=np.float64) / unit
    return sample_of_rows(side.name, rows, side.design, side.seen)


def _check_ratio(fake: FrechetSample, real: FrechetSample, unit: float) -> None:
    """Refuse a sample that is constant beside the other in double precision."""
    small, large = sorted((fake.trace, real.trace))
    if 0.0 < small < NEGLIGIBLE_TRACE * large:
        raise InputError(
            f"and `real` have standard deviations of {unit * math.sqrt(fake.trace):.3g} and "
            f"{unit * math.sqrt(real.trace):.3g}: beside the larger one the smaller is constant in "
            "double precision. Bring both to one unit; what is constant by right, pass as "
            "Moments(mean, zeros of shape (d, d), n).",
            argument="fake",
        )
