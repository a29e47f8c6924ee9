"""Orders of growth and comparisons, judged by fits and not by miss rates: errors, kinds, widths."""

from __future__ import annotations

from typing import Any

import numpy as np

from genbounds.bounds._bound import Constants, kind, quantity
from genbounds.validation import Float


def _difference(expected_score: Any, score: Any) -> Any:
    return np.abs(expected_score - score)


def _spread(score_variance: Any) -> Any:
    return score_variance


def _compared(score_variance: Any, rival_variance: Any) -> Any:
    return score_variance / rival_variance


def _regret(regret: Any) -> Any:
    return regret


def _integral(integral: Any, mean: Any) -> Any:
    return np.abs(integral - mean)


BIAS = kind("rates", quantity("bias", "|E score_N − score|", _difference), form="rate")
VARIANCE = kind("rates", quantity("variance", "Var score_N", _spread), form="rate")
RATIO = kind(
    "rates", quantity("variance-ratio", "variance over the rival's", _compared), form="rate"
)
INTEGRAL = kind("rates", quantity("integral", "|I − Î_N|", _integral), form="rate")
REGRET = kind(
    "rates", quantity("regret", "Σ_t (score of the pick − best score)", _regret), form="rate"
)


def order(c: Constants, n: Any) -> Float:
    """``n^exponent``, up to a constant that the claim leaves open."""
    return np.asarray(np.asarray(n, dtype=np.float64) ** c["exponent"])


def leading_order(c: Constants, n: Any) -> Float:
    """``lead n^exponent``, up to a constant of the distribution that the claim names."""
    return np.asarray(c["lead"] * order(c, n))


def ratio(c: Constants) -> float:
    """Largest ratio that the comparison allows."""
    return c["ratio"]


def nystrom_product(
    c: Constants, n: Any, delta: Any, landmarks: Any, tau: Any, order: Any
) -> Float:
    """√(max{1, t^{2−α}} log(union/δ) (offset + t τ² log(n)²) / n), up to a constant."""
    spectrum = c["offset"] + landmarks * np.square(tau * np.log(n))
    many = np.maximum(1.0, np.asarray(landmarks, dtype=np.float64) ** (2.0 - order))
    return np.asarray(np.sqrt(many * np.log(c["union"] / delta) * spectrum / n))
