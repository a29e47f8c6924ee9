"""Orders of growth and comparisons, judged by fits and not by miss rates: errors, kinds, widths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from genbounds.bounds._bound import Bound, Constants, gap, kind, quantity
from genbounds.validation import Float


def _rate(name: str, text: str, function: Any, *names: str) -> Callable[..., Callable[..., Bound]]:
    return kind("rates", quantity(name, text, function, *names), form="rate")


BIAS = _rate("bias", "|E score_N − score|", gap, "expected_score", "score")
VARIANCE = _rate("variance", "Var score_N", np.asarray, "score_variance")
RATIO = _rate(
    "variance-ratio", "variance over the rival's", np.divide, "score_variance", "rival_variance"
)
INTEGRAL = _rate("integral", "|I − Î_N|", gap, "integral", "mean")
REGRET = _rate("regret", "Σ_t (score of the pick − best score)", np.asarray, "regret")


def order(c: Constants, n: Any) -> Float:
    """``n^exponent``, up to a constant that the claim leaves open."""
    return np.asarray(np.asarray(n, dtype=np.float64) ** c["exponent"])


def leading_order(c: Constants, n: Any) -> Float:
    """``lead n^exponent``, up to a constant of the distribution that the claim names."""
    return np.asarray(c["lead"] * order(c, n))
