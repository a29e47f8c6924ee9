"""What a published score tells: the best of several evaluations, another laboratory's distance."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, Literal

import numpy as np
import scipy  # its submodules are loaded at their first use

from genbounds._tables import Line, Warned
from genbounds._text import number, percent, shown_pvalue
from genbounds.decisions._estimates import all_warnings, distrust
from genbounds.diagnostics import warn_of
from genbounds.estimators import Moments, frechet_distance, metric_spec
from genbounds.results import Diagnostic, Score, hedged
from genbounds.samples import Sample, features_of, refuse_weights
from genbounds.validation import InputError, check_count, check_features, check_open_unit


def best_of(score: Score, k: int, *, shared: float = 0.0) -> Score:
    """Correct a score for being the best of several evaluations of one model.

    Parameters
    ----------
    score : Score
        The best of them: the least, or the largest where higher is better.
    k : int
        How many evaluations there were, each with rows of its own and as many.
    shared : float
        Part of the variance that all evaluations have in common, from 0 to 1: that of a small
        reference. With s the standard error of the difference of two evaluations (`compare`) it is
        1 - s²/(2 se²).

    Returns
    -------
    Score
        With the bias of the choice removed, and an interval for the score of the model.

    Raises
    ------
    InputError
        If `k` is no whole number of at least 1, `shared` no number from 0 to 1, or `score` no
        `Score`.

    Notes
    -----
    The least of k normal values lies 0.56, 0.85, 1.16 and 1.54 standard errors below their mean at
    k = 2, 3, 5 and 10. With q(p) = Φ⁻¹(1 − (1 − p)^{1/k}), its quantiles, the interval is
    [y − q(1 − α/2) se, y − q(α/2) se]; what they share is a normal error more. The mean of all k
    evaluations is both simpler and more exact; use this where only the best one was reported. The
    best of k *training runs* is another matter: see `compare_recipes`.

    Examples
    --------
    >>> import genbounds as gb
    >>> score = gb.Score(value=3.0, low=2.8, high=3.2, level=0.95, stderr=0.1, n=1000,
    ...                  estimator="debiased", method="second-order")
    >>> print(f"{gb.best_of(score, 3):.3f}")
    3.085
    """
    if not isinstance(score, Score):
        raise InputError(f"must be a Score; got {type(score).__name__}.", argument="score")
    k = check_count("k", k)
    given: object = shared  # callers are not type-checked
    if isinstance(given, bool) or not (isinstance(given, Real) and 0.0 <= float(given) <= 1.0):
        raise InputError(f"must be a number from 0 to 1; got {shared!r}.", argument="shared")
    if k == 1:
        return score
    tail = (1.0 - score.level) / 2.0
    own = math.sqrt(1.0 - shared)
    mean, spread = _least_moments(k)
    mean, spread = own * mean, math.hypot(own * spread, math.sqrt(shared))
    offsets = (mean, *(_least_quantile(p, k, own) for p in (1.0 - tail, tail)))
    unit = -score.stderr if score.higher_is_better else score.stderr
    value, *ends = (score.value - offset * unit for offset in offsets)
    return replace(
        score,
        value=value,
        low=min(ends),
        high=max(ends),
        stderr=score.stderr * spread,
        assumptions=(
            *score.assumptions,
            f"it is the best of {k} evaluations of one model, each with rows of its own and as "
            f"many, which have {percent(shared)} of their variance in common",
        ),
        details=(*score.details, f"corrected for the best of {k} evaluations"),
    )


def _least_quantile(p: float, k: int, own: float) -> float:
    """Return the p-quantile of the least of k normal values and a common error of the rest."""
    u = np.linspace(-9.0, 9.0, 3601)
    weights = np.exp(-0.5 * u**2) / math.sqrt(2.0 * math.pi) * 0.005
    common = math.sqrt(1.0 - own**2)

    def excess(x: float) -> float:
        alone = (x - common * u) / max(own, 1e-6)
        least = k * scipy.special.log_ndtr(-alone)  # log P(all are larger)
        return float(weights @ -np.expm1(least)) - p

    return float(scipy.optimize.brentq(excess, -20.0, 20.0, xtol=1e-12))


def _least_moments(k: int) -> tuple[float, float]:
    """Return mean and standard deviation of the least of k standard normal values."""
    x = np.linspace(-12.0, 12.0, 4801)  # the trapezoidal rule is exact to rounding for such curves
    above = (k - 1) * scipy.special.log_ndtr(-x)
    weights = k * np.exp(-0.5 * x**2 + above) / math.sqrt(2.0 * math.pi) * 0.005
    mean = float(weights @ x)
    return mean, math.sqrt(float(weights @ (x - mean) ** 2))


SUBSETS = 60
"""Random parts of our rows, of the size of theirs, where that is at most half of ours."""

LEAST_THEIRS = 20
"""Rows of theirs, fewer than which give a distance that is not normal about what is predicted."""

LEAST_PER_FEATURE = 20
"""Rows of theirs per feature, fewer than which have a bias and a noise that only parts of our rows
tell: without them 21, 12, 8 and 3 of 100 true distances were denied of 5, 10, 20 and 31."""

_ASSUMPTIONS = (
    "the other laboratory drew its rows from the same model, encoded them alike, and printed the "
    "plug-in distance",
    "bias falls with one over the number of rows",
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Reproduction(Warned):
    """Where another laboratory's plug-in distance falls, and whether a published one does.

    Attributes
    ----------
    value : float
        Our own plug-in distance, in squared feature units.
    predicted : float
        What theirs is on average, with the bias of its own number of rows.
    stderr : float
        Standard deviation of theirs about `predicted`: the draws of both laboratories.
    low, high : float
        Their distance falls between these with probability `level`.
    level : float
    n : int
        Rows that they generated.
    published : float or None
        What they printed.
    decision : {"consistent", "not", "inconclusive"} or None
        Whether `published` lies within what chance does, which an unreliable score or one of few
        samples does not tell; None where nothing was published.
    pvalue : float or None
        Of `published`, two-sided.
    published_reference_n : int or None
        Rows of their own reference; None: they have our file.
    training_sd : float
        Standard deviation of the distance between trainings that differ in their seed.
    warnings : tuple of Diagnostic
    assumptions : tuple of str
    """

    _json = "decision low high * pvalue reliable"
    _names = "Distance"

    value: float
    predicted: float
    stderr: float
    level: float
    n: int
    published: float | None
    published_reference_n: int | None
    training_sd: float
    warnings: tuple[Diagnostic, ...] = ()
    assumptions: tuple[str, ...] = field(default=_ASSUMPTIONS, init=False)

    @property
    def low(self) -> float:
        """Lower end of the prediction; no distance is below 0."""
        return max(0.0, self.predicted - self._reach)

    @property
    def high(self) -> float:
        """Upper end of the prediction."""
        return self.predicted + self._reach

    @property
    def _reach(self) -> float:
        return float(scipy.special.ndtri((1.0 + self.level) / 2.0)) * self.stderr

    @property
    def pvalue(self) -> float | None:
        """Probability of a distance as far from the predicted one, or farther."""
        if self.published is None:
            return None
        away = abs(self.published - self.predicted) / self.stderr
        return float(2.0 * scipy.special.ndtr(-away))

    @property
    def decision(self) -> Literal["consistent", "not", "inconclusive"] | None:
        """Whether the published distance is one that chance gives."""
        if self.published is None:
            return None
        if distrust(self.warnings):
            return "inconclusive"
        return "consistent" if self.low <= self.published <= self.high else "not"

    def warned(self, *warnings: Diagnostic) -> Reproduction:
        """Return the same with further warnings, each once."""
        return replace(self, warnings=all_warnings(self.warnings, warnings))

    def __str__(self) -> str:
        """Return one line for a log."""
        m = self.published_reference_n
        reference = "same reference file" if m is None else f"own reference of {number(m)} rows"
        ends = f"{number(self.low)} to {number(self.high)} ({percent(self.level)}, {reference})"
        where = f"the plug-in distance of {number(self.n)} rows falls in {ends}"
        where += f"; ours is {number(self.value)}"
        if self.pvalue is None:  # nothing was published
            return hedged(where, self.warnings)
        if reason := distrust(self.warnings):
            return f"{self.decision}: {where}; {reason}"
        verdict = "consistent: {} is within what chance does"
        if self.decision == "not":
            verdict = "not consistent: {} is more than chance"
        return f"{verdict.format(number(self.published))} (p {shown_pvalue(self.pvalue)}); {where}"

    def _lines(self) -> list[Line]:
        alone = {"ours": self.value, "published": self.published}
        return [
            Line(name="predicted", value=self.predicted, low=self.low, high=self.high),
            *(Line(name=name, value=value) for name, value in alone.items() if value is not None),
        ]

    def _caption(self) -> str:
        return f"Fréchet distance, plug-in, of {number(self.n)} rows; {percent(self.level)}"


def reproduction(
    fake: Any,
    real: Any,
    *,
    n: int,
    published: float | None = None,
    published_reference_n: int | None = None,
    training_sd: float = 0.0,
    metric: Any = "fd",
    level: float = 0.95,
) -> Reproduction:
    """Say where another laboratory's plug-in distance of the same model falls.

    Parameters
    ----------
    fake, real : array_like of shape (n, d), Sample or Moments
        Our own generated and reference features, as for `frechet_distance`, without weights.
    n : int
        Rows that the other laboratory generated.
    published : float, optional
        The distance that it printed, squared feature units.
    published_reference_n : int, optional
        Rows of its own reference sample. By default it used our reference file, whose error and
        bias are then in both numbers.
    training_sd : float, default 0.0
        Standard deviation of the distance between trainings of one recipe, where it trained the
        model anew (`compare_recipes` estimates it). 0: the same weights.
    metric : {"fd", "fid"}
    level : float
        Probability of the prediction, in (0, 1).

    Returns
    -------
    Reproduction

    Raises
    ------
    InputError
        As `frechet_distance`; or if a number is not legal, rows have weights, or a sample whose
        size counts does not say it.

    Notes
    -----
    b and s are the plug-in distance less the debiased one, and its standard error, each for one
    sample with the moments of the other taken as exact. From n₁ own rows theirs of n₂ has the
    expectation D − b_x (1 − n₁/n₂) and the variance s_x² (1 + n₁/n₂) about it; with another
    reference of m₂ rows for our m also − b_y (1 − m/m₂) and + s_y² (1 + m/m₂); with another
    training + 2τ². Where n₂ ≤ n₁/2, or m₂ ≤ m/2, and rows are plain, random parts of our rows show
    both.

    Examples
    --------
    >>> import numpy as np, genbounds as gb
    >>> rng = np.random.default_rng(0)
    >>> fake, real = 1.2 * rng.normal(size=(2000, 4)), rng.normal(size=(3000, 4))
    >>> gb.reproduction(fake, real, n=500, published=0.2).decision
    'consistent'
    """
    n, level = check_count("n", n, minimum=2), check_open_unit("level", level)
    if metric_spec(metric).name != "fd":
        raise InputError("must be 'fd': only of that the bias is predicted.", argument="metric")
    for name, given in {"published": published, "training_sd": training_sd}.items():
        if given is not None and not 0.0 <= given < math.inf:
            raise InputError(f"must be a number of at least 0; got {given!r}.", argument=name)
    x, y = _exact("fake", fake), _exact("real", real)
    value = frechet_distance(x, y, estimator="plugin").value
    moved = [_moved("fake", fake, y, value, n)]
    if published_reference_n is not None:
        m = check_count("published_reference_n", published_reference_n, minimum=2)
        moved.append(_moved("real", real, x, value, m))
    shifts, variances, warnings = zip(*moved, strict=True)
    return Reproduction(
        value=value,
        predicted=value + sum(shifts),
        stderr=math.sqrt(sum(variances) + 2.0 * training_sd**2),
        level=level,
        n=n,
        published=published,
        published_reference_n=published_reference_n,
        training_sd=training_sd,
        warnings=all_warnings(*warnings),
    )


def _moved(
    name: str, sample: Any, other: Moments, plugin: float, theirs: int
) -> tuple[float, float, tuple[Diagnostic, ...]]:
    """Return what another number of rows of one sample adds to the plug-in, and the variance.

    Also what there is to warn of. `other`: the sample that stays as it is, as if exact.
    """

    def distance(rows: Any, **options: Any) -> Score:
        pair = {"fake": rows, "real": other} if name == "fake" else {"fake": other, "real": rows}
        return frechet_distance(**pair, **options)

    rows = None if isinstance(sample, Moments) else check_features(name, features_of(sample))
    ours = sample.n if rows is None else len(rows)
    if ours is None:
        raise InputError("does not say from how many rows it comes.", argument=name)
    one_sided = distance(sample)
    variance = one_sided.stderr**2
    shift, spread = -(plugin - one_sided.value) * (1.0 - ours / theirs), variance * ours / theirs
    least = max(LEAST_THEIRS, min(ours // 2, LEAST_PER_FEATURE * other.mean.size))
    labelled = isinstance(sample, Sample) and sample.labelled
    if rows is not None and not labelled and theirs <= ours / 2:
        least = LEAST_THEIRS
        rng = np.random.default_rng(0)
        subsets = (rows[np.sort(rng.choice(ours, theirs, replace=False))] for _ in range(SUBSETS))
        values = [distance(_exact(name, subset), estimator="plugin").value for subset in subsets]
        # Parts of one sample overlap, so that they vary less than samples of so many rows.
        shift = float(np.mean(values)) - plugin
        spread = max(spread, float(np.var(values, ddof=1)) / (1.0 - theirs / ours))
    warnings = one_sided.warnings
    if theirs < least:
        what = "generated" if name == "fake" else "reference"
        warnings = (warn_of("published-from-few", n=theirs, what=what, least=least), *warnings)
    return shift, variance + spread, warnings


def _exact(name: str, sample: Any) -> Moments:
    """Return the moments of a sample as if they were those of a population."""
    refuse_weights(name, sample, ": published distances have none.")
    if not isinstance(sample, Moments):
        sample = Moments.from_features(check_features(name, features_of(sample)))
    return Moments(sample.mean, sample.cov)
