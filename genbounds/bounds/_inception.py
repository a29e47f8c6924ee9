"""The Inception score, on the scale of its logarithm: errors, kinds of statements, widths."""

from __future__ import annotations

from typing import Any

import numpy as np

from genbounds.bounds._assumptions import POSTERIORS, at_least
from genbounds.bounds._bound import Composed, Constants, gap, kind, quantity, unit
from genbounds.bounds._inequalities import clip, entropy_sum
from genbounds.validation import Float

MARGINAL_ERROR = quantity(
    "marginal-error", "|p̃_j − p_j| for some j", gap, "mean_posterior", "marginal"
)
MARGINAL_ENTROPY = quantity("marginal-entropy", "H(p)", entropy_sum, "marginal")
LOG_SCORE = quantity("log-score", "log IS", np.asarray, "log_score")
LOG_CLASSES = quantity("log-classes", "log d", np.log, "d")
ONE = quantity("one", "1", unit)

_SAMPLE = (POSTERIORS, at_least(2))
MARGINAL = kind("posteriors", MARGINAL_ERROR, *_SAMPLE, form="plug-in", limit=ONE)
INFORMATION = kind("posteriors", MARGINAL_ENTROPY, *_SAMPLE, form="plug-in", limit=LOG_CLASSES)
INCEPTION = kind("posteriors", LOG_SCORE, *_SAMPLE, form="plug-in", limit=LOG_CLASSES)


MAURER_PONTIL = {"root": 2.0, "linear": 7.0 / 3.0, "union": 4.0}


def _bernstein(c: Constants, n: Any, log: Any, variance: Any, scale: Any) -> Any:
    """√(root V log/n) + linear · scale · log/(n−1)."""
    return np.sqrt(c["root"] * variance / n * log) + c["linear"] * scale * log / (n - 1)


def marginal_class(c: Constants, n: Any, delta: Any, d: Any, posterior_variance: Any) -> Any:
    """√((2V_j/n) log(4d/δ)) + 7/(3(n−1)) log(4d/δ), for every class j."""
    return _bernstein(c, n, np.log(c["union"] * d / delta), posterior_variance, 1.0)


def _of_class(c: Constants, n: Any, delta: Any, d: Any) -> Any:
    """√(factor log(union d/δ)/n), Hoeffding's ε_j."""
    return np.sqrt(c["factor"] / n * np.log(c["union"] * d / delta))


def _clipped_entropy(c: Constants, mean_posterior: Float, epsilon: Any) -> Float:
    """ℰ(Clip_{1/e}(p̃, ε))."""
    return entropy_sum(clip(mean_posterior, np.broadcast_to(epsilon, np.shape(mean_posterior))))


def _less_entropy(c: Constants, mean_entropy: Any) -> Any:
    return -mean_entropy


def _m25_entropy(c: Constants, n: Any, delta: Any, d: Any, entropy_variance: Any) -> Any:
    """Bound on E H(p) − H̄ in M25 (13)."""
    return _bernstein(c, n, np.log(c["union"] * d / delta), entropy_variance, np.log(d))


def _o24_entropy(
    c: Constants, n: Any, delta: Any, entropy_variance: Any, entropy_limit: Any
) -> Any:
    """Bound on E H(p) − H̄ in O24 (14), C′ = `entropy_limit`."""
    return _bernstein(c, n, np.log(c["union"] / delta), entropy_variance, entropy_limit)


def _o24_naive_entropy(c: Constants, n: Any, delta: Any, entropy_limit: Any) -> Any:
    return entropy_limit * np.sqrt(c["factor"] / n * np.log(c["union"] / delta))


def _unit_variance(c: Constants, mean_posterior: Any) -> Float:
    return np.ones(np.shape(mean_posterior))


def _largest_variance(c: Constants, d: Any) -> Any:
    return np.log(d) ** 2


optimistic_entropy = Composed(_clipped_entropy, epsilon=marginal_class)

# Logarithms of M25 (13) and the same with V_j = 1, V_H = (log d)²; of O24 (14) and (33).
m25_log_bound = Composed(optimistic_entropy, _less_entropy, _m25_entropy)
m25_naive_log_bound = Composed(
    m25_log_bound, posterior_variance=_unit_variance, entropy_variance=_largest_variance
)
o24_log_bound = Composed(optimistic_entropy, _less_entropy, _o24_entropy)
o24_naive_log_bound = Composed(
    _clipped_entropy, _less_entropy, _o24_naive_entropy, epsilon=_of_class
)
