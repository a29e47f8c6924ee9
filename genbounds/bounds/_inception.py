"""The Inception score, on the scale of its logarithm: errors, kinds of statements, widths."""

from __future__ import annotations

from typing import Any

import numpy as np

from genbounds.bounds._assumptions import POSTERIORS, at_least
from genbounds.bounds._bound import Constants, kind, quantity
from genbounds.bounds._inequalities import clip, entropy_sum
from genbounds.validation import Float


def _marginal_error(mean_posterior: Float, marginal: Float) -> Float:
    return np.abs(mean_posterior - marginal)


def _log_score(log_score: Float) -> Float:
    return np.asarray(log_score)


def _log_classes(d: Any) -> Any:
    return np.log(d)


def _one() -> Float:
    return np.asarray(1.0)


def _entropy(marginal: Float) -> Float:
    return entropy_sum(marginal)


MARGINAL_ERROR = quantity("marginal-error", "|p̃_j − p_j| for some j", _marginal_error)
MARGINAL_ENTROPY = quantity("marginal-entropy", "H(p)", _entropy)
LOG_SCORE = quantity("log-score", "log IS", _log_score)
LOG_CLASSES = quantity("log-classes", "log d", _log_classes)
ONE = quantity("one", "1", _one)

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


def optimistic_entropy(
    c: Constants, n: Any, delta: Any, d: Any, mean_posterior: Float, posterior_variance: Float
) -> Float:
    """ℰ(Clip_{1/e}(p̃, ε)) with ε of `marginal_class`."""
    epsilon = marginal_class(c, n, delta, d, posterior_variance)
    return entropy_sum(clip(mean_posterior, epsilon))


def m25_log_bound(
    c: Constants,
    n: Any,
    delta: Any,
    d: Any,
    mean_posterior: Any,
    posterior_variance: Any,
    mean_entropy: Any,
    entropy_variance: Any,
) -> Any:
    """Logarithm of M25 (13)."""
    epsilon = marginal_class(c, n, delta, d, posterior_variance)
    entropy = _bernstein(c, n, np.log(c["union"] * d / delta), entropy_variance, np.log(d))
    return entropy_sum(clip(mean_posterior, epsilon)) - mean_entropy + entropy


def o24_log_bound(
    c: Constants,
    n: Any,
    delta: Any,
    d: Any,
    mean_posterior: Any,
    posterior_variance: Any,
    mean_entropy: Any,
    entropy_variance: Any,
    entropy_limit: Any,
) -> Any:
    """Logarithm of O24 (14), C′ = `entropy_limit`."""
    epsilon = marginal_class(c, n, delta, d, posterior_variance)
    entropy = _bernstein(c, n, np.log(c["union"] / delta), entropy_variance, entropy_limit)
    return entropy_sum(clip(mean_posterior, epsilon)) - mean_entropy + entropy


def o24_naive_log_bound(
    c: Constants,
    n: Any,
    delta: Any,
    d: Any,
    mean_posterior: Any,
    mean_entropy: Any,
    entropy_limit: Any,
) -> Any:
    """Logarithm of O24 (33)."""
    epsilon = np.sqrt(c["factor"] / n * np.log(c["union"] * d / delta))
    entropy = entropy_limit * np.sqrt(c["factor"] / n * np.log(c["union"] / delta))
    clipped = clip(mean_posterior, np.broadcast_to(epsilon, np.shape(mean_posterior)))
    return entropy_sum(clipped) - mean_entropy + entropy


def m25_naive_log_bound(
    c: Constants, n: Any, delta: Any, d: Any, mean_posterior: Any, mean_entropy: Any
) -> Float:
    """`m25_log_bound` with V_j = 1 and V_H = (log d)²."""
    ones = np.ones(np.shape(mean_posterior))
    return np.asarray(
        m25_log_bound(c, n, delta, d, mean_posterior, ones, mean_entropy, np.log(d) ** 2)
    )
