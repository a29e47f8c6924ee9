"""An estimate with its error, and its interval: what rankings and selections are made from."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds._text import number, percent
from genbounds.diagnostics import warn_of
from genbounds.origins import origin_of, origin_warnings
from genbounds.results import Diagnostic, Method, Score, all_reliable
from genbounds.validation import Float, InputError

LARGEST_SHIFT = 0.6
"""Standard errors by which curvature may move an interval: beyond, its expansion is not small."""


FEW_DIRECTIONS = 0.2
"""Least share of one direction in the quadratic part, that of five alike, from which on its curve
is followed to the end. ``python -m experiments.accuracy.ends`` shows what becomes of fewer."""


OwnInterval = Callable[[float], tuple[float, float]]
"""From a level to both ends of the confidence interval, on the scale of `Estimate.value`."""


def moved_ends(
    interval: OwnInterval, factor: float, shift: float, level: float
) -> tuple[float, float]:
    """Return the ends of the interval of a score that is multiplied by `factor`, and moved."""
    low, high = sorted(factor * end + shift for end in interval(level))
    return low, high


SAME = 1e-12
"""Values closer than this, relatively, differ by rounding: models that have collapsed are no
better than one another, though nothing in their rows varies."""


NO_VARIATION = 1e-14
"""Standard error, relative to the value, that is rounding."""


EULER = 0.5772


LEAST_INDEX = 2.1


LARGEST_SHARE = 1.0 / 3.0
"""Tail index and largest share in the variance from which on the standard error is not relied on.
Chosen on Student's t with 3 to 8 degrees of freedom, independent or common, also through a random
network, lognormal, rare and rectified features, clusters, digits and patches of photographs
(docs/evidence/accuracy.md): cells that cover less than 80 % are below or above it, those that cover
93 % hardly ever."""


FAR_BELOW = 0.99
"""Level whose whole interval must lie below the range of a score for it to be unreliable. Intervals
at 95 % do so by chance in about one of a hundred pairs of equal distributions, these in at most one
to three of a thousand (docs/evidence/sampling.md)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tails:
    """How heavy the tails of an influence are: what its standard error may have missed.

    Attributes
    ----------
    n : int
    largest : float
        Largest share of one row (or group of rows) in the sum of squared influences.
    index : float
        Hill's estimate of the tail index from the √n largest: below 2 there is no variance.
    variance : float
        What the influence makes up of the variance of the estimate, Σ IF² / n².
    """

    n: int
    largest: float
    index: float
    variance: float = 0.0

    @classmethod
    def of(cls, influence: Float) -> Tails:
        """Look at centred influences."""
        n = influence.size
        sizes = np.abs(influence)
        total = float(sizes @ sizes)
        k = max(2, math.isqrt(n))
        if not total > 0.0 or n <= k:
            return cls(n=n, largest=0.0, index=math.inf)
        top = np.partition(sizes, n - k - 1)[n - k - 1 :]
        threshold, top = top.min(), np.sort(top)[1:]
        mean = float(np.log(top / threshold).mean()) if threshold > 0.0 else math.inf
        return cls(
            n=n,
            largest=float(top[-1] ** 2) / total,
            index=1.0 / mean if mean > 0.0 else math.inf,
            variance=total / n**2,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleError:
    """What one sample contributes to the error of an estimate.

    Attributes
    ----------
    n : int or None
        Rows; None if the moments are exactly known.
    variance : float
        Variance of the estimate due to this sample; 0 if it is exact.
    degrees_of_freedom : float
        Of `variance`: n - 1 where it was estimated from n independent rows. (Satterthwaite's
        2n/(κ - 1), with κ the kurtosis of the influence, was tried and covers too much under heavy
        tails.)
    influence : ndarray of shape (n,) or None
        Centred influence of each row, or of each group of rows, on the estimate, itself left out:
        kept so that noise common to two models cancels in their difference.
    units : ndarray of shape (n,) or None
        What the rows (or groups of rows) of `influence` are called: two samples in which a name
        stands share that unit. None for rows that nothing else shares.
    bias, row_bias : float
        Second-order bias of the plug-in value due to this sample, and what it would be if its rows
        were independent.
    curvature : float
        E IF(x) IF(x') h(x, x') / n² with h the kernel of the quadratic part: a positive one means
        that value and estimated variance rise and fall together.
    lean : float
        The same over E IF(x)² / n: an eigenvalue of the quadratic part, where few of them count.
    skewness : float
        E IF³ / n², the third cumulant of the linear part; 0 where its estimate would be noisier
        than it is large (FD: docs/explanation/frechet.md).
    quadratic_variance, mixed_variance : float
        The share of the quadratic part in `variance`, 2 E h(x, x')² / n², and half of that of the
        mixed term of two samples.
    pair_variance : float
        `quadratic_variance` before what influences show limits it.
    pairs : ndarray or None
        h(x, x') of the random pairs of rows (or units) behind `quadratic_variance`, to any scale:
        the same pairs in every sample with the same number of rows, so that of two models with
        common rows or units it shows how much of the quadratic part cancels in the difference.
    tails : Tails or None
        How heavy the tails of the influence are, where they were looked at.
    seeds : SampleError or None
        What the seeds that all groups share contribute, a part of `variance`: their influences and
        names. `influence`, `units` are those of the groups then.
    row_ids : ndarray of shape (n,) or None
        Digest of every row in single precision, by which rows that two samples share are seen.
    """

    n: int | None = None
    variance: float = 0.0
    degrees_of_freedom: float = math.inf
    influence: Float | None = field(default=None, repr=False)
    units: NDArray[Any] | None = field(default=None, repr=False)
    bias: float = 0.0
    row_bias: float = 0.0
    curvature: float = 0.0
    lean: float = 0.0
    skewness: float = 0.0
    quadratic_variance: float = 0.0
    mixed_variance: float = 0.0
    pair_variance: float = 0.0
    pairs: Float | None = field(default=None, repr=False, compare=False)
    tails: Tails | None = None
    seeds: SampleError | None = None
    row_ids: NDArray[np.uint64] | None = field(default=None, repr=False, compare=False)

    @property
    def unexplained(self) -> float:
        """The part of the variance that the influences do not explain."""
        if self.influence is None:
            return self.variance
        seeds = 0.0 if self.seeds is None else self.seeds.variance
        return max(self.variance - seeds - mean_variance(self.influence), 0.0)

    def scaled(self, factor: float) -> SampleError:
        """Return the same for an estimate that is multiplied by `factor`."""
        values = {
            name: value * factor**power
            for power, names in _POWERS.items()
            for name in names.split()
            if (value := getattr(self, name)) is not None
        }
        tails = self.tails and replace(self.tails, variance=self.tails.variance * factor**2)
        return replace(self, **values, tails=tails, seeds=self.seeds and self.seeds.scaled(factor))


_POWERS = {
    1: "influence bias row_bias lean pairs",
    2: "variance quadratic_variance mixed_variance pair_variance",
    3: "curvature skewness",
}
"""Of a factor of the estimate, with which parts of its error go."""


EXACT = SampleError()
"""Of moments that are exactly known, and of a reference that is not used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One score of one model, before it is turned into an interval.

    All fields are on the scale where the statistic is asymptotically linear: the squared distance
    for FD, the logarithm for IS (`log_scale`).

    Attributes
    ----------
    value : float
        The estimate; a debiased one can lie outside the range of the score (a negative squared
        distance): `score` reports it clipped, differences use it as it is.
    sample : SampleError
        Error due to the generated sample.
    reference : SampleError
        The same for the reference sample; `EXACT` if it is exactly known or not used.
    missing_rate : float
        Where the size m of the reference is unknown and it is taken as exact: the bias that is left
        is about this over m. 0 elsewhere.
    shared_variance : float
        What units that both samples share add to the variance (negative where their noise cancels).
    estimator : str
        "debiased", "plugin", …
    method : str
        How the value was computed: one of `genbounds.results.METHODS`.
    log_scale : bool
        Whether the score is ``exp(value)``.
    lower_limit, upper_limit : float
        Smallest and largest possible value on this scale (0 for FD and for log IS).
    higher_is_better : bool
        Orientation of the score.
    statistic : str
        What is estimated, where one metric has several; only equal ones are ranked together.
    own_interval : callable or None
        From a level to the ends of the interval, where it is not a studentised normal one;
        differences take the normal one unless they are `combined`.
    combined : bool
        Whether differences combine the own intervals of both scores: where nearly all of some
        bounded values are equal, their standard error is too small, or 0.
    halves : ndarray of shape (cuts,) or None
        Half the difference of the scores of two random halves of both samples, for every cut, where
        the standard error is their root mean square: those of two models on one reference are
        subtracted. Such a score is one of samples of these sizes, and no others.
    together : callable or None
        From a level to the result that holds this score and those it is to be read with.
    warnings : tuple of Diagnostic
        Every reason to distrust the value or its interval.
    assumptions : tuple of str
        What the variance assumes.
    details : tuple of str
        How the method was set up.
    title : str
        What is measured, for people; may be empty.
    encoder : str
        Which encoder made the features, where they say so.
    plugin : float or None
        The plug-in value of the same rows, its bias left in, where it was computed on the way.
    """

    value: float
    sample: SampleError
    reference: SampleError = EXACT
    shared_variance: float = 0.0
    missing_rate: float = 0.0
    estimator: str = "debiased"
    method: Method = "influence"
    log_scale: bool = False
    lower_limit: float = -math.inf
    upper_limit: float = math.inf
    higher_is_better: bool = False
    statistic: str = ""
    own_interval: OwnInterval | None = field(default=None, compare=False)
    combined: bool = False
    halves: Float | None = field(default=None, repr=False, compare=False)
    together: Callable[[float], Any] | None = field(default=None, repr=False, compare=False)
    warnings: tuple[Diagnostic, ...] = ()
    assumptions: tuple[str, ...] = ()
    details: tuple[str, ...] = ()
    title: str = ""
    encoder: str = ""
    plugin: float | None = field(default=None, repr=False, compare=False)

    @property
    def n(self) -> int | None:
        """Generated rows; None if their moments are exact."""
        return self.sample.n

    @property
    def variance(self) -> float:
        """Variance of `value`, both samples together."""
        return self.sample.variance + self.reference.variance + self.shared_variance

    @property
    def stderr(self) -> float:
        """Standard error of `value`, both samples together."""
        return math.sqrt(self.variance)

    @property
    def reliable(self) -> bool:
        """Whether value and interval may be trusted: no warning says "unreliable"."""
        return all_reliable(self.warnings)

    @property
    def loss(self) -> float:
        """Value turned so that small is good."""
        return -self.value if self.higher_is_better else self.value

    def for_differences(self) -> Estimate:
        """Return what differences need of it, all of which can be pickled."""
        return replace(
            self, together=None, own_interval=self.own_interval if self.combined else None
        )

    def warned(self, *warnings: Diagnostic) -> Estimate:
        """Return the same with further warnings."""
        return replace(self, warnings=self.warnings + warnings) if warnings else self

    def made_from(self, **samples: Any) -> Estimate:
        """Return the same with what samples, by argument, say of their encoder; None: not used."""
        if not any(hasattr(x, "origin") for x in samples.values()):
            return self
        origins = {f"`{name}`": origin_of(x) for name, x in samples.items() if x is not None}
        encoders = {origin["encoder"] for origin in origins.values() if origin.get("encoder")}
        encoder = encoders.pop() if len(encoders) == 1 else ""
        return replace(self, encoder=encoder).warned(*origin_warnings(origins))

    def scaled(self, factor: float) -> Estimate:
        """Return the same for a score that is multiplied by `factor`, its limits at 0 or none."""
        return replace(
            self,
            value=self.value * factor,
            sample=self.sample.scaled(factor),
            reference=self.reference.scaled(factor),
            shared_variance=self.shared_variance * factor**2,
            missing_rate=self.missing_rate * factor,
            own_interval=self.own_interval and partial(moved_ends, self.own_interval, factor, 0.0),
            halves=None if self.halves is None else self.halves * factor,
            plugin=None if self.plugin is None else self.plugin * factor,
        )

    def score(self, level: float) -> Score:
        """Turn the estimate into a `Score` at `level`.

        The interval is clipped to the range of the score, which cannot lose coverage. One that
        lies below that range keeps its width, with a caution; the score is called unreliable if
        the interval at `FAR_BELOW` lies there as well.
        """
        ends = self.interval(level)
        value, low, high = (
            min(max(end, self.lower_limit), self.upper_limit) for end in (self.value, *ends)
        )
        stderr, found = self.stderr, [*self.warnings]
        rounding = SAME if self.log_scale else SAME * abs(self.lower_limit)
        if ends[1] < self.lower_limit - rounding:
            if self.interval(FAR_BELOW)[1] < self.lower_limit:
                found.append(warn_of("far-below-range"))
            else:
                chance = percent((1.0 - level) / 2.0)
                found.append(warn_of("whole-below-range", chance=chance))
        elif self.value < self.lower_limit - rounding:
            below = warn_of("below-range", value=number(self.value), lower_limit=self.lower_limit)
            found.append(below)
        elif self.value > self.upper_limit + SAME * abs(self.upper_limit):
            found.append(warn_of("above-range"))
        at_the_limit = value == self.lower_limit and not self.log_scale  # FD = 0: said above
        size = max(abs(value), 1.0) if self.log_scale else abs(value)
        no_width = max(stderr, (ends[1] - ends[0]) / 2.0) <= NO_VARIATION * size
        if self.sample.n is not None and no_width and not at_the_limit:
            found.append(warn_of("no-width"))
        if ends[1] < self.lower_limit:  # a width of 0 would claim to know it exactly
            high = min(self.lower_limit + (ends[1] - ends[0]), self.upper_limit)
        if self.log_scale:
            value, low, high = math.exp(value), math.exp(low), math.exp(high)
            stderr *= value
        return Score(
            value=value,
            low=low,
            high=high,
            level=level,
            stderr=stderr,
            n=self.sample.n,
            estimator=self.estimator,
            method=self.method,
            warnings=tuple(dict.fromkeys(found)),
            assumptions=self.assumptions,
            details=self.details,
            title=self.title,
            reference_n=self.reference.n,
            encoder=self.encoder,
            higher_is_better=self.higher_is_better,
        )

    def interval(self, level: float) -> tuple[float, float]:
        """Both ends of the interval at `level`, which may lie beyond the range of the score."""
        if self.own_interval is not None:
            low, high = self.own_interval(level)
            return min(low, self.value), max(high, self.value)
        errors = (self.sample, self.reference)
        parts = [(error.variance, error.degrees_of_freedom) for error in errors]
        quantile = student_quantile(level, welch_degrees_of_freedom(*parts))
        low, high = studentised_interval(
            self.value,
            self.stderr,
            quantile,
            curvature=self.sample.curvature + self.reference.curvature,
            skewness=self.sample.skewness + self.reference.skewness,
        )
        # Where few directions decide, one end lies farther. In one direction T = δ², estimated with
        # an error of standard deviation s, has the ends (|δ| ± z s)² = T̂ + (1 + z²) s² ± z se with
        # se = 2 |δ| s, which near δ = 0 says nothing of how far T may be: an expansion in
        # curvature / se³ breaks down. `lean` is s².
        lean = self.sample.lean + self.reference.lean
        # The mixed part of two samples, whose quadratic parts are alike where this matters.
        pairs = math.sqrt(self.sample.pair_variance) + math.sqrt(self.reference.pair_variance)
        shift = (1.0 + quantile**2) * lean
        few = self.shared_variance == 0.0 and 2.0 * lean**2 > FEW_DIRECTIONS * pairs**2
        if few and abs(shift) > LARGEST_SHIFT * self.stderr:
            far = self.value + shift + math.copysign(quantile * max(self.stderr, pairs), lean)
            low, high = min(low, far), max(high, far)
        return low, high


SMALL = 50
"""Samples below which intervals are less exact than they say, whatever the score."""


FEW_UNITS = 10
"""Independent units, fewer than which no quantile of Student's t makes up for the noise of a
standard error: of rows in 8 groups of 20 up to 23 % of the intervals miss."""


ROUNDING = 1e-6
"""By how much Kish's number of equal weights may fall short of their count."""


def small_sample(n: float, *, name: str = "", units: float = math.inf) -> tuple[Diagnostic, ...]:
    """Warn of `n` samples, fewer than `SMALL`; `name`: which ones, where there are two kinds.

    `units`: independent ones, where samples depend on one another.
    """
    what = f"{name} samples" if name else "samples"
    if units < FEW_UNITS - ROUNDING:
        return (warn_of("few-groups", what=what, units=units, least=FEW_UNITS, enough=SMALL),)
    if n >= SMALL - ROUNDING:
        return ()
    return (warn_of("few-samples", n=n, what=what, enough=SMALL),)


def heavy_tails(estimate: Estimate, *, rows: str = "rows") -> tuple[Diagnostic, ...]:
    """Warn of samples of an `estimate` whose tails are so heavy that its error is not relied on.

    `rows`: what they are made of.

    The tail index is low by more than one and a half standard errors of its own; or one row makes
    up more of the variance than half as much again as an exponential tail would leave it.
    """
    names = ("generated ", "reference ") if estimate.reference.n is not None else ("", "")
    variance, found = estimate.variance, []
    for whose, error in zip(names, (estimate.sample, estimate.reference), strict=True):
        if (tails := error.tails) is None:
            continue
        share = min(tails.variance / variance, 1.0) if variance > 0.0 else 1.0
        light = 1.5 * (math.log(tails.n) + EULER) ** 2 / tails.n
        index = tails.index * (1.0 + 1.5 / math.sqrt(max(2, math.isqrt(tails.n))))
        if (index < LEAST_INDEX and share > LARGEST_SHARE) or (
            share * tails.largest > max(LARGEST_SHARE, light)
        ):
            found.append(
                warn_of("heavy-tails", whose=whose + rows, largest=tails.largest, index=tails.index)
            )
    return tuple(found)


def bias_left(bias: float | None = None) -> Diagnostic:
    """Warn that a plug-in keeps its bias, of about that size where it is known."""
    size = "" if bias is None else f" (about {bias:+.3g})"
    return warn_of("bias-left", size=size)


def mean_variance(influence: Float) -> float:
    """Variance of the mean of `influence`."""
    return float(np.var(influence, ddof=1)) / influence.size


def skewed(error: SampleError) -> SampleError:
    """Add the third cumulant of the linear part, from the influence of every unit."""
    if error.influence is None:
        return error
    with np.errstate(over="ignore", invalid="ignore"):  # refused with its interval
        third = float((error.influence**3).mean())
    return replace(error, skewness=third / error.influence.size**2)


# --- ends of intervals, their quantiles, and degrees of freedom ---------------------------------


def studentised_interval(
    value: float, stderr: float, quantile: float, *, curvature: float = 0.0, skewness: float = 0.0
) -> tuple[float, float]:
    """Return both ends of the interval of a smooth function of means.

    Where value and estimated variance move together, a symmetric interval misses on one side: both
    ends are moved by (1 + z²) curvature / stderr³ + (1 + 2z²)/6 skewness / stderr³ standard errors,
    the Cornish–Fisher terms of the studentised statistic (P. Hall, "The bootstrap and Edgeworth
    expansion", 1992, §2.4; derivation: docs/explanation/frechet.md), by at most `LARGEST_SHIFT`.

    Parameters
    ----------
    value, stderr : float
    quantile : float
        z, two-sided.
    curvature, skewness : float
        As in `SampleError`.

    Raises
    ------
    InputError
        If the cube of a standard error leaves double precision. That of NaN gives ends that are
        NaN.
    """
    shift = 0.0
    if stderr > 0.0:
        cube = stderr * stderr * stderr
        if not sys.float_info.min <= cube < math.inf:
            raise beyond_double()
        shift = (1.0 + quantile**2) * curvature + (1.0 + 2.0 * quantile**2) / 6.0 * skewness
        shift = min(max(shift / cube, -LARGEST_SHIFT), LARGEST_SHIFT)
    half = math.hypot(quantile, shift) * stderr
    centre = value + shift * stderr
    return centre - half, centre + half


def beyond_double() -> InputError:
    """Return the refusal of a standard error whose cube leaves double precision."""
    return InputError(
        "the standard error of the score, or its cube, is beyond double precision: multiply "
        "all samples by a common number."
    )


def welch_degrees_of_freedom(*parts: tuple[float, float]) -> float:
    """Degrees of freedom of a sum of independent variance estimates, by Welch's formula.

    Parameters
    ----------
    *parts : tuple of float
        Of each: its variance and the degrees of freedom of that.

    Returns
    -------
    float
    """
    total = sum(variance for variance, _ in parts)
    if total == 0.0:
        return math.inf
    # Shares: squares of variances leave double precision where those of a score do not.
    weight = sum((variance / total) ** 2 / degrees for variance, degrees in parts)
    return 1.0 / weight if weight > 0.0 else math.inf


def student_quantile(level: float, degrees_of_freedom: float = math.inf) -> float:
    """Two-sided Student quantile at `level`.

    Normal (1.96 at level 0.95) for infinite `degrees_of_freedom`.
    """
    from scipy.special import ndtri, stdtrit

    tail = (1.0 - level) / 2.0
    if math.isinf(degrees_of_freedom):
        return float(-ndtri(tail))
    return float(-stdtrit(degrees_of_freedom, tail))
