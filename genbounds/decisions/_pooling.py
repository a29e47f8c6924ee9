"""The mean of few values whose errors are known and which vary beyond them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from genbounds._random_effects import paule_mandel
from genbounds.estimators import student_quantile
from genbounds.validation import Float


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooled:
    """A mean of k values by Paule–Mandel weights.

    Attributes
    ----------
    mean : float
    variance : float
        Of the mean, after Hartung and Knapp: from how the values spread.
    degrees_of_freedom : float
        k - 1.
    between : float
        Variance between the values that their own errors do not explain.
    """

    mean: float
    variance: float
    degrees_of_freedom: float
    between: float


def pooled(values: Float, within: Float) -> Pooled:
    """Pool values with known variances `within` and one unknown variance between them.

    Paule & Mandel, J. Res. NBS 87, 1982; Hartung & Knapp, Stat. Med. 20, 2001 (their variance as
    it stands, also where the values spread less than their errors say).
    """
    k = values.size
    between = paule_mandel(values, within)
    total = within + between
    weights = 1.0 / total if (total > 0.0).all() else np.ones(k)
    weights = weights / weights.sum()
    mean = float(weights @ values)
    variance = float(weights @ (values - mean) ** 2) / (k - 1.0)
    return Pooled(mean=mean, variance=variance, degrees_of_freedom=k - 1.0, between=between)


def half_width(level: float, variance: float, degrees_of_freedom: float, known: float) -> float:
    """Return half the interval of one mean with an estimated and a known variance.

    Both half-widths are added in squares. Welch's degrees of freedom of the sum would be too many
    whenever the estimated variance is small by chance: with two of its own, intervals then cover
    92 to 94 %. (Differences of two such means keep Welch's: theirs err on the safe side as it is.)

    Parameters
    ----------
    level : float
    variance, degrees_of_freedom : float
        The estimated variance.
    known : float
        The known one.
    """
    estimated = student_quantile(level, degrees_of_freedom) * math.sqrt(variance)
    return math.hypot(estimated, student_quantile(level) * math.sqrt(known))


def share(part: float, whole: float) -> float:
    """Return a share of a whole, 0 of nothing."""
    return part / whole if whole > 0.0 and math.isfinite(whole) else 0.0
