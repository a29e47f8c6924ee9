"""The Fréchet distance of a mixture: one half of the rows chooses the shares, the other judges.

The distance is convex in the shares, so that mean shares are no worse than the two distances
together say (docs/explanation/mixtures.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy  # its submodules are loaded at their first use
from numpy.typing import NDArray

from genbounds._process import is_dask_array
from genbounds.core.checks import check_rows
from genbounds.core.difference import EstimateDifference, average, difference
from genbounds.core.estimate import Estimate, mean_variance, welch_degrees_of_freedom
from genbounds.core.moments import EPS, Moments, row_moments
from genbounds.estimators.frechet._distance import FrechetReference
from genbounds.estimators.kernels import _cross_fitted as crossed
from genbounds.mixtures._kernel import Judged
from genbounds.samples import Sample
from genbounds.validation import Float

HALVES = 2

NEEDS = "a mixture needs"

NO_SHARE = 1e-4
"""A smaller share is what the search for the best shares leaves of none."""

POOR_UNIT = 0.01
"""The search begins again, in units of what it found, where that is less than this part of what it
began with."""


def frechet_mixture(models: Mapping[str, Any], real: Any, *, seed: int) -> Judged:
    """Find the shares with the least Fréchet distance, and estimate it from rows that did not.

    Parameters
    ----------
    models : mapping of str to array_like of shape (n, d) or Sample
        At least eight rows, or groups of them, each.
    real : array_like of shape (m, d) or Sample
    seed : int
        Of the two halves.

    Returns
    -------
    Judged
        Shares, the mixture's distance, those of the models, and the differences.

    Raises
    ------
    InputError
        As `frechet_distance`; if there are too few rows, or strata of one row.
    """
    reference = check_rows("real", real, needs=NEEDS)
    checked = crossed.inspected_models(models, needs=NEEDS, width=reference.rows.shape[1])
    # As given; of a dask array the rows, which are computed by now.
    whole = FrechetReference(reference.rows if is_dask_array(real) else real)
    given = [checked[name].rows if is_dask_array(x) else x for name, x in models.items()]
    alone = [whole.estimate(x, influences=False) for x in given]
    *parts, real_part = crossed.folded([*checked.items(), ("", reference)], HALVES, seed)
    halves = [_Half([*parts, real_part], half) for half in range(HALVES)]
    weights = np.stack([least_distance(halves[1 - half].distance) for half in range(HALVES)])
    mixed = [half.mixed(shares) for half, shares in zip(halves, weights, strict=True)]
    gains = [
        [difference(one, mix) for one in half.alone()]
        for half, mix in zip(halves, mixed, strict=True)
    ]
    mean = average(mixed, np.full(HALVES, 1.0 / HALVES), what="halves")
    choice = _variance_of_choice(halves, weights, mixed)
    mean = replace(mean, shared_variance=mean.shared_variance + choice)
    return Judged(
        weights=weights,
        mixed=assuming(_at_mean_shares(mean, halves, weights), alone),
        alone=alone,
        gains=[_mean_difference(pair, choice) for pair in zip(*gains, strict=True)],
        folds=HALVES,
        warnings=crossed.warnings_of(checked, reference),
    )


def assuming(mixed: Estimate, alone: Sequence[Estimate]) -> Estimate:
    """Return the estimate of a mixture with what those of its models assume.

    It was made from one sample in which every model is a stratum; nobody fixed any classes, and
    models may well be alike.
    """
    assumed = dict.fromkeys(text for one in alone for text in one.assumptions)
    return replace(
        mixed,
        assumptions=(*assumed, "the number of rows of each model was fixed"),
        warnings=tuple(one for one in mixed.warnings if one.code != "unrelated-labels"),
    )


def _variance_of_choice(
    halves: Sequence[_Half], weights: Float, mixed: Sequence[Estimate]
) -> float:
    """Variance that the choice of shares adds to the mean of both halves' distances.

    The shares follow the noise of one half, and judge it by that of the other, and the other way
    round. To first order the covariance of both errors is half of the variance of one half's
    difference at both sets of shares, of which a quarter comes to the mean
    (docs/explanation/mixtures.md).
    """
    if (weights[0] == weights[1]).all():
        return 0.0
    noise = [
        difference(_linear(half.mixed(other)), _linear(mix)).stderr ** 2
        for half, other, mix in zip(halves, weights[::-1], mixed, strict=True)
    ]
    return math.fsum(noise) / HALVES**3


def _linear(estimate: Estimate) -> Estimate:
    """Return it with the error of its influences alone; all of it where there are none."""
    sample, reference = (
        error
        if error.influence is None
        else replace(error, variance=mean_variance(error.influence))
        for error in (estimate.sample, estimate.reference)
    )
    return replace(estimate, sample=sample, reference=reference)


class _Half:
    """One half of the rows of all samples, the reference last."""

    def __init__(self, samples: Sequence[crossed.FoldedSample], half: int) -> None:
        self._parts = []
        for sample in samples:
            rows = np.flatnonzero(sample.fold == half)
            unit, weights = sample.design.unit[rows], sample.weights[rows]
            strata = sample.design.stratum[unit]
            self._parts.append(Part(sample.rows[rows], sample.names[unit], strata, weights))
        found = (row_moments(part.rows, weights=part.weights) for part in self._parts)
        *models, real = (Moments(one.mean, one.cov, one.n) for one in found)
        self.distance = MixtureDistance(models, real)
        # The rows of the reference need no names unless the user gave them some.
        named = samples[-1].design.labels is not None
        self._against = FrechetReference(self._parts.pop().sample(named=named))

    def mixed(self, shares: Float) -> Estimate:
        """Distance of the rows of all models, weighted by their shares."""
        return self._against.estimate(mixed_sample(self._parts, shares))

    def alone(self) -> list[Estimate]:
        """Distances of all models."""
        return [self._against.estimate(part.sample()) for part in self._parts]


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Rows of one sample, with what their units and strata are called."""

    rows: NDArray[Any]
    units: NDArray[np.intp]
    strata: NDArray[np.intp]
    weights: Float

    def sample(self, *, named: bool = True) -> Sample:
        """Return the same as a `Sample`, without weights that are all alike."""
        even = np.allclose(self.weights, self.weights[0], rtol=1e-12)
        return Sample(
            self.rows,
            groups=self.units if named else None,
            strata=self.strata if self.strata.any() else None,
            weights=None if even else self.weights,
        )


def mixed_sample(parts: Sequence[Part], shares: Float) -> Sample:
    """Rows of all models, weighted by their shares; each model's number of rows is fixed."""
    kept = [(part, share) for part, share in zip(parts, shares, strict=True) if share > 0]
    if len(kept) == 1:
        return kept[0][0].sample()
    units = np.concatenate([part.units for part, _ in kept])
    model = np.repeat(np.arange(len(kept)), [len(part.units) for part, _ in kept])
    strata = np.concatenate([part.strata for part, _ in kept])
    both = np.unique(np.stack([model, strata]), axis=1, return_inverse=True)[1].ravel()
    # A unit that several models share lies in no stratum of one of them: none is told then,
    # which counts what differs between models as noise, and errs on the wide side.
    shared = sum(np.unique(part.units).size for part, _ in kept) > np.unique(units).size
    return Sample(
        np.concatenate([part.rows for part, _ in kept]),
        groups=units,
        strata=None if shared else both,
        weights=np.concatenate([share * part.weights for part, share in kept]),
    )


def least_distance(distance: MixtureDistance) -> Float:
    """Find the shares with the least (plug-in) distance of the mixture: a convex problem.

    Parameters
    ----------
    distance : MixtureDistance

    Returns
    -------
    ndarray of shape (K,)
        They add up to one.
    """
    shares = np.full(distance.models, 1.0 / distance.models)
    one = {"type": "eq", "fun": lambda w: w.sum() - 1.0, "jac": np.ones_like}
    unit, value = math.inf, max(distance(shares)[0], 1e-300)
    # The solver stops at steps that are small beside the unit. Where a model is far away equal
    # shares are a poor one, and rounding would decide on what remains: once more from there.
    while value < POOR_UNIT * unit:
        unit = value
        shares = scipy.optimize.minimize(
            lambda w, unit: [part / unit for part in distance(w)],
            shares,
            (unit,),
            jac=True,
            method="SLSQP",
            bounds=[(0.0, 1.0)] * distance.models,
            constraints=one,
        ).x
        shares = np.where(shares > NO_SHARE, shares, 0.0)
        shares /= shares.sum()
        value = max(distance(shares)[0], 1e-300)
    return shares


class MixtureDistance:
    """Fréchet distance of a mixture with given moments, and its gradient in the shares.

    With M_k = Σ_k + μ_k μ_k' the second moments, the mixture has μ = Σ w_k μ_k and the covariance
    Σ w_k M_k - μ μ'. Of the distance ‖μ_r‖² - 2 μ_r·μ + Σ w_k Tr M_k + Tr Σ_r - 2 Tr (L'ΣL)^½, with
    Σ_r = LL', only the last term is not linear; it is convex, since the covariance is concave in
    the shares and the root of a matrix increasing and concave.

    Parameters
    ----------
    models : sequence of Moments
        Of K models, with d features.
    real : Moments
        Of the reference.

    Attributes
    ----------
    models : int
        K.
    """

    def __init__(self, models: Sequence[Moments], real: Moments) -> None:
        self.models = len(models)
        self._given = list(models)
        self._origin = real.mean  # of all means: it is free
        self._means = np.stack([m.mean - real.mean for m in models])
        self._traces = np.array([np.trace(m.cov) for m in models]) + (self._means**2).sum(axis=1)
        values, vectors = np.linalg.eigh(real.cov)
        self._trace = float(values.sum())
        kept = values > values.size * EPS * values[-1]
        factor = vectors[:, kept] * np.sqrt(values[kept])
        # All that depends on the shares is L'ΣL, so that products of d × d are taken once.
        self._turned = self._means @ factor
        self._seconds = np.stack([factor.T @ m.cov @ factor for m in models])
        self._seconds += self._turned[:, :, None] * self._turned[:, None]

    def __call__(self, shares: Float) -> tuple[float, Float]:
        """Return the distance at `shares`, of shape (K,), and its gradient in them."""
        mean = shares @ self._turned
        square = np.tensordot(shares, self._seconds, axes=1) - np.outer(mean, mean)  # L'ΣL
        squares, vectors = np.linalg.eigh(square)
        # Those that are not 0 but for rounding: the slope of the root is infinite there.
        kept = squares > squares.size * EPS * squares.max(initial=0.0)
        roots = np.sqrt(squares[kept])
        turned = vectors[:, kept] / np.sqrt(roots)
        inverse = turned @ turned.T
        inner = np.tensordot(self._seconds, inverse, axes=2)
        gradient: Float = self._traces - inner + 2.0 * self._turned @ (inverse @ mean)
        value = float(shares @ self._traces) + self._trace - 2.0 * float(roots.sum())
        return value, gradient

    def mixed(self, shares: Float) -> Moments:
        """Return mean and covariance of the mixture with these `shares`, of shape (K,)."""
        gap = shares @ self._means
        apart = self._means - gap
        cov = (apart.T * shares) @ apart
        for share, model in zip(shares, self._given, strict=True):
            cov += share * model.cov
        return Moments(self._origin + gap, cov)


def _at_mean_shares(estimate: Estimate, halves: Sequence[_Half], weights: Float) -> Estimate:
    """Take off what mean shares gain on the mean of both distances; the upper end keeps it."""
    gap = 0.0
    for half in halves:
        each = [half.distance(shares)[0] for shares in weights]
        at_mean = half.distance(weights.mean(axis=0))[0]
        gap += max(math.fsum(each) / HALVES - at_mean, 0.0) / HALVES

    def ends(level: float) -> tuple[float, float]:
        low, high = estimate.interval(level)
        return low - gap, high

    return replace(
        estimate,
        title="Fréchet distance of a mixture",
        value=estimate.value - gap,
        own_interval=ends,
        details=(f"{HALVES} halves: one chooses the shares, the other judges them",),
    )


def _mean_difference(pair: Sequence[EstimateDifference], choice: float) -> EstimateDifference:
    """Mean of the differences in both halves; `choice`: variance that the choice of shares adds."""
    parts = [(gap.stderr**2, gap.degrees_of_freedom) for gap in pair]
    return EstimateDifference(
        value=sum(gap.value for gap in pair) / HALVES,
        stderr=math.sqrt(sum(variance for variance, _ in parts) / HALVES**2 + choice),
        degrees_of_freedom=welch_degrees_of_freedom(*parts),
        curvature=sum(gap.curvature for gap in pair) / HALVES**3,
        skewness=sum(gap.skewness for gap in pair) / HALVES**3,
    )
