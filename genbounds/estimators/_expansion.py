"""A statistic with its error: what every interval, ranking and selection is made from."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from genbounds.results import Score
from genbounds.validation import Float, InputError

SAME = 1e-12
"""Values closer than this, relatively, differ by rounding: models that have collapsed are no
better than one another, though nothing in their rows varies."""

NO_VARIATION = 1e-14
"""Standard error, relative to the value, that is rounding."""

LARGEST_SHIFT = 0.6
"""Standard errors by which curvature may move an interval: beyond, its expansion is not small."""

OUT_OF_RANGE = (
    "the score is beyond the range of double precision (1.8e308): divide all features, of both "
    "sides, by a common number."
)


class Law(Protocol):
    """How a statistic is distributed where it is not asymptotically normal."""

    def interval(self, level: float) -> tuple[float, float]:
        """Both ends of the confidence interval, on the scale of `Expansion.value`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """One score of one model, before it is turned into an interval.

    All fields are on the scale where the statistic is asymptotically linear: the squared distance
    for FD, the logarithm for IS (`log_scale`).

    Attributes
    ----------
    estimator : str
        "debiased", "plugin", …; `notes` say by which route.
    value : float
        The estimate; for a debiased statistic it can lie outside the range of the score
        (a negative squared distance): `score` reports it clipped, differences use it as it is.
    variance : float
        Estimated variance of `value` due to the generated sample; 0 if its moments are exact.
    degrees_of_freedom : float
        Of `variance`: n - 1 where it was estimated from n rows. (Satterthwaite's 2n/(κ - 1),
        with κ the kurtosis of the influence, was tried and covers too much under heavy tails.)
    reference_variance, reference_degrees_of_freedom : float
        The same for the reference sample; variance 0 if it is exactly known or not used.
    reference_influence : ndarray of shape (m,) or None
        Centred influence of each reference row, kept so that the noise of a shared reference
        cancels in the difference of two models.
    influence : ndarray of shape (n,) or None
        Centred influence of each generated row, for models that share their samples.
    curvature, reference_curvature : float
        Of either sample, E IF(x) IF(x') h(x, x') / n² with h the kernel of the quadratic part: a
        positive one means that value and estimated variance rise and fall together.
    skewness, reference_skewness : float
        Of either sample, E IF³ / n²: the third cumulant of the linear part; 0 where its estimate
        would be noisier than it is large (FD: docs/frechet.md).
    n, n_reference : int or None
        Sample sizes; None where moments are exact.
    log_scale : bool
        Whether the score is ``exp(value)``.
    lower_limit : float
        Smallest possible value on this scale (0 for FD and for log IS).
    upper_limit : float
        Largest possible value on this scale.
    higher_is_better : bool
        Orientation of the score.
    statistic : str
        What is estimated, where one metric has several; only equal ones are ranked together.
    unit : float
        What one of all the fields above is, in units of the score: other than 1 only for features
        so large or small that variances would leave double precision.
    law : Law or None
        Where the score's own interval comes from, if not from a normal law; differences take the
        normal one. Only with `unit` 1.
    notes : tuple of str
        What the variance assumes and any reason not to trust it.
    """

    estimator: str
    value: float
    variance: float
    degrees_of_freedom: float = math.inf
    reference_variance: float = 0.0
    reference_degrees_of_freedom: float = math.inf
    reference_influence: Float | None = None
    influence: Float | None = None
    curvature: float = 0.0
    skewness: float = 0.0
    reference_curvature: float = 0.0
    reference_skewness: float = 0.0
    n: int | None = None
    n_reference: int | None = None
    log_scale: bool = False
    lower_limit: float = -math.inf
    upper_limit: float = math.inf
    higher_is_better: bool = False
    statistic: str = ""
    unit: float = 1.0
    law: Law | None = None
    notes: tuple[str, ...] = ()

    @property
    def stderr(self) -> float:
        """Standard error of `value`, both samples together."""
        return math.sqrt(self.variance + self.reference_variance)

    @property
    def doubts(self) -> tuple[str, ...]:
        """Notes that call the value and its interval unreliable."""
        return tuple(note for note in self.notes if note.startswith("unreliable"))

    def in_unit(self, unit: float) -> Expansion:
        """Return the same with another `unit`, no smaller than this one's."""
        if unit == self.unit:
            return self
        share = self.unit / unit
        influence, other = self.influence, self.reference_influence
        return replace(
            self,
            value=self.value * share,
            variance=self.variance * share**2,
            reference_variance=self.reference_variance * share**2,
            influence=None if influence is None else influence * share,
            reference_influence=None if other is None else other * share,
            curvature=self.curvature * share**3,
            reference_curvature=self.reference_curvature * share**3,
            skewness=self.skewness * share**3,
            reference_skewness=self.reference_skewness * share**3,
            unit=unit,
        )

    def score(self, level: float) -> Score:
        """Turn the expansion into a `Score` at `level` by `studentised_interval`, or its law.

        The interval is clipped to the range of the score, which cannot lose coverage.
        """
        if self.law is None:
            ends = self._normal_interval(level)
        else:
            low, high = self.law.interval(level)
            ends = min(low, self.value), max(high, self.value)
        value, low, high = (
            min(max(end, self.lower_limit), self.upper_limit) for end in (self.value, *ends)
        )
        notes = self.notes
        if self.value < self.lower_limit:
            notes += (
                f"the debiased estimate {self.value * self.unit:.4g} lies below the smallest "
                f"possible value {self.lower_limit:g} and is reported as that: not distinguishable "
                "from it",
            )
        if self.value > self.upper_limit:
            notes += ("the debiased estimate lies above the largest possible value, reported",)
        if ends[1] < self.lower_limit:
            notes += (
                "the whole interval lies below the smallest possible value: "
                "the samples are not independent, or another assumption fails",
            )
        stderr = self.stderr
        at_the_limit = value == self.lower_limit and not self.log_scale  # FD = 0 has its own note
        size = max(abs(value), 1.0) if self.log_scale else abs(value)
        if self.n is not None and stderr <= NO_VARIATION * size and not at_the_limit:
            notes += (
                "unreliable: the rows show no variation in what they contribute, so the interval "
                "has no width and says nothing about other samples",
            )
        if self.log_scale:
            value, low, high = math.exp(value), math.exp(low), math.exp(high)
            stderr *= value
        return Score(
            value=times_unit(value, self.unit),
            low=times_unit(low, self.unit),
            high=times_unit(high, self.unit),
            level=level,
            stderr=times_unit(stderr, self.unit),
            n=self.n,
            estimator=self.estimator,
            notes=notes,
        )

    def _normal_interval(self, level: float) -> tuple[float, float]:
        total = welch_degrees_of_freedom(
            (self.variance, self.degrees_of_freedom),
            (self.reference_variance, self.reference_degrees_of_freedom),
        )
        return studentised_interval(
            self.value,
            self.stderr,
            student_quantile(level, total),
            curvature=self.curvature + self.reference_curvature,
            skewness=self.skewness + self.reference_skewness,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpansionDifference:
    """``a.value - b.value`` with its standard error and Welch's degrees of freedom.

    `curvature`, `skewness` and `unit` as in `Expansion`.
    """

    value: float
    stderr: float
    degrees_of_freedom: float
    curvature: float = 0.0
    skewness: float = 0.0
    unit: float = 1.0

    def interval(self, level: float) -> tuple[float, float]:
        """Both ends of the interval at `level`, in units of the score."""
        low, high = studentised_interval(
            self.value,
            self.stderr,
            student_quantile(level, self.degrees_of_freedom),
            curvature=self.curvature,
            skewness=self.skewness,
        )
        return times_unit(low, self.unit), times_unit(high, self.unit)


def times_unit(value: float, unit: float) -> float:
    """Return ``value * unit``, refusing what leaves double precision.

    Raises
    ------
    InputError
        If the product is beyond 1.8e308.
    """
    if unit == 1.0 or value == 0.0:
        return value
    if not math.isfinite(value * unit):
        raise InputError(OUT_OF_RANGE)
    return value * unit


def studentised_interval(
    value: float, stderr: float, quantile: float, *, curvature: float = 0.0, skewness: float = 0.0
) -> tuple[float, float]:
    """Return both ends of the interval of a smooth function of means.

    Where value and estimated variance move together, a symmetric interval misses on one side: both
    ends are moved by (1 + z²) curvature / stderr³ + (1 + 2z²)/6 skewness / stderr³ standard errors,
    the Cornish–Fisher terms of the studentised statistic (P. Hall, "The bootstrap and Edgeworth
    expansion", 1992, §2.4; derivation: docs/frechet.md), by at most `LARGEST_SHIFT`.

    Parameters
    ----------
    value, stderr : float
    quantile : float
        z, two-sided.
    curvature, skewness : float
        As in `Expansion`.
    """
    shift = 0.0
    if stderr > 0.0:
        shift = (1.0 + quantile**2) * curvature + (1.0 + 2.0 * quantile**2) / 6.0 * skewness
        shift = min(max(shift / stderr**3, -LARGEST_SHIFT), LARGEST_SHIFT)
    half = math.hypot(quantile, shift) * stderr
    centre = value + shift * stderr
    return centre - half, centre + half


def difference(a: Expansion, b: Expansion, *, shared_samples: bool = False) -> ExpansionDifference:
    """Difference of two models scored against the same reference.

    Parameters
    ----------
    a, b : Expansion
    shared_samples : bool
        Whether row i of both generated samples came from the same latent or prompt, so that the
        noise common to both cancels; needs influences of equal length.

    Returns
    -------
    ExpansionDifference
        `a` minus `b`, with its variance.

    Notes
    -----
    Influences are differenced row by row before their variance is taken. The part of a variance
    that its influence does not explain (second order) is kept for both models. Curvatures and
    skewnesses subtract for samples of their own; of a common sample, whose noise cancels as far as
    both models feel it alike, none is taken.
    """
    unit = max(a.unit, b.unit)
    a, b = a.in_unit(unit), b.in_unit(unit)
    parts, curvature, skewness = [], 0.0, 0.0
    for shared, one, two in (
        (shared_samples, _Noise.generated(a), _Noise.generated(b)),
        (True, _Noise.reference(a), _Noise.reference(b)),
    ):
        if shared and one.influence is not None and two.influence is not None:
            apart = one.influence - two.influence
            variance = mean_variance(apart) + one.unexplained() + two.unexplained()
            parts.append((variance, apart.size - 1.0))
        else:
            parts += [(one.variance, one.degrees), (two.variance, two.degrees)]
            curvature += one.curvature - two.curvature
            skewness += one.skewness - two.skewness
    gap = a.value - b.value
    if abs(gap) <= SAME * max(abs(a.value), abs(b.value), 1.0 if a.log_scale else 0.0):
        gap = 0.0
    return ExpansionDifference(
        value=gap,
        stderr=math.sqrt(sum(variance for variance, _ in parts)),
        degrees_of_freedom=welch_degrees_of_freedom(*parts),
        curvature=curvature,
        skewness=skewness,
        unit=unit,
    )


def difference_stderr(a: Expansion, b: Expansion) -> float:
    """Return the standard error of ``a.value - b.value`` for independent samples."""
    gap = difference(a, b)
    return times_unit(gap.stderr, gap.unit)


@dataclass(frozen=True, slots=True)
class _Noise:
    """One sample's part in the error of an expansion."""

    variance: float
    degrees: float
    influence: Float | None
    curvature: float
    skewness: float

    @classmethod
    def generated(cls, x: Expansion) -> _Noise:
        return cls(x.variance, x.degrees_of_freedom, x.influence, x.curvature, x.skewness)

    @classmethod
    def reference(cls, x: Expansion) -> _Noise:
        return cls(
            x.reference_variance,
            x.reference_degrees_of_freedom,
            x.reference_influence,
            x.reference_curvature,
            x.reference_skewness,
        )

    def unexplained(self) -> float:
        if self.influence is None:
            return self.variance
        return max(self.variance - mean_variance(self.influence), 0.0)


def mean_variance(influence: Float) -> float:
    """Variance of the mean of `influence`."""
    return float(np.var(influence, ddof=1)) / influence.size


def welch_degrees_of_freedom(*parts: tuple[float, float]) -> float:
    """Degrees of freedom of a sum of independent variance estimates (variance, degrees)."""
    total = sum(variance for variance, _ in parts)
    weight = sum(variance**2 / degrees for variance, degrees in parts)
    return total**2 / weight if weight > 0.0 else math.inf


def student_quantile(level: float, degrees_of_freedom: float = math.inf) -> float:
    """Two-sided Student quantile at `level`.

    Normal (1.96 at level 0.95) for infinite `degrees_of_freedom`.
    """
    from scipy.special import ndtri, stdtrit

    tail = (1.0 - level) / 2.0
    if math.isinf(degrees_of_freedom):
        return float(-ndtri(tail))
    return float(-stdtrit(degrees_of_freedom, tail))
