"""Printed statements about the Inception score, on the scale of its logarithm."""

from __future__ import annotations

from typing import Any

import numpy as np

from genbounds.bounds._assumptions import POSTERIORS, at_least
from genbounds.bounds._bound import Bound, Constants, Quantity
from genbounds.bounds._deterministic import clip, entropy_sum
from genbounds.validation import Float


def _marginal_error(mean_posterior: Float, marginal: Float) -> Float:
    return np.abs(mean_posterior - marginal)


def _log_score(log_score: Float) -> Float:
    return np.asarray(log_score)


def _log_classes(d: Any) -> Any:
    return np.log(d)


def _one() -> Float:
    return np.asarray(1.0)


MARGINAL_ERROR = Quantity(
    name="marginal-error", text="|p̃_j − p_j| for some j", function=_marginal_error
)
LOG_SCORE = Quantity(name="log-score", text="log IS", function=_log_score)
LOG_CLASSES = Quantity(name="log-classes", text="log d", function=_log_classes)
ONE = Quantity(name="one", text="1", function=_one)


def _bernstein(c: Constants, n: Any, log: Any, variance: Any, scale: Any) -> Any:
    """√(root V log/n) + linear · scale · log/(n−1)."""
    return np.sqrt(c["root"] * variance / n * log) + c["linear"] * scale * log / (n - 1)


def marginal_class(c: Constants, n: Any, delta: Any, d: Any, posterior_variance: Any) -> Any:
    """√((2V_j/n) log(4d/δ)) + 7/(3(n−1)) log(4d/δ), for every class j."""
    return _bernstein(c, n, np.log(c["union"] * d / delta), posterior_variance, 1.0)


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


MAURER_PONTIL = {"root": 2.0, "linear": 7.0 / 3.0, "union": 4.0}
_COMMON: dict[str, Any] = {
    "setting": "posteriors",
    "form": "plug-in",
    "assumptions": (POSTERIORS, at_least(2)),
}

STATEMENTS = (
    Bound(
        id="m25.marginal-class",
        claim="|p̃_j − p_j| ≤ √((2V_j/n)log(4d/δ)) + 7/(3(n−1))·log(4d/δ) for all j, w.p. ≥ 1−δ/2",
        latex=r"|\tilde p_j-p_j| \le \sqrt{\tfrac{2V_j}{n}\log\tfrac{4d}\delta}"
        r"+\tfrac{7}{3(n-1)}\log\tfrac{4d}\delta\quad\forall j",
        source="M25 (11)",
        quantity=MARGINAL_ERROR,
        constants=MAURER_PONTIL,
        width_function=marginal_class,
        failure=0.5,
        limit=ONE,
        **_COMMON,
    ),
    Bound(
        id="m25.is-bound",
        claim="log IS ≤ ℰ(Clip(p̃,ε)) − H̄ + √((2V_H/n)log(4d/δ)) + (7 log d)/(3(n−1))·log(4d/δ)",
        latex=r"\log\mathrm{IS} \le \mathcal E(\operatorname{Clip}_{1/e}(\tilde p,\varepsilon))"
        r"-\bar H+\sqrt{\tfrac{2V_H}{n}\log\tfrac{4d}\delta}"
        r"+\tfrac{7\log d}{3(n-1)}\log\tfrac{4d}\delta",
        source="M25 Theorem 2 (13)",
        quantity=LOG_SCORE,
        constants=MAURER_PONTIL,
        width_function=m25_log_bound,
        limit=LOG_CLASSES,
        **_COMMON,
    ),
    Bound(
        id="o24.is-bound",
        claim="log IS ≤ ℰ(Clip(p̃,ε)) − H̄ + √((2V_H/n)log(4/δ)) + 7C′/(3(n−1))·log(4/δ)",
        latex=r"\log\mathrm{IS} \le \mathcal E(\operatorname{Clip}_{1/e}(\tilde p,\varepsilon))"
        r"-\bar H+\sqrt{\tfrac{2V_H}{n}\log\tfrac{4}\delta}"
        r"+\tfrac{7C'}{3(n-1)}\log\tfrac{4}\delta",
        source="O24 Theorem 6.1 (14)",
        quantity=LOG_SCORE,
        constants=MAURER_PONTIL,
        width_function=o24_log_bound,
        limit=LOG_CLASSES,
        **_COMMON,
    ),
    Bound(
        id="o24.is-naive-bound",
        claim="log IS ≤ ℰ(Clip(p̃,ε)) − H̄ + C′√(log(4/δ)/(2n)), ε_j = √(log(4d/δ)/(2n))",
        latex=r"\log\mathrm{IS} \le \mathcal E(\operatorname{Clip}_{1/e}(\tilde p,\varepsilon))"
        r"-\bar H+C'\sqrt{\tfrac{1}{2n}\log\tfrac4\delta},\quad"
        r" \varepsilon_j=\sqrt{\tfrac{1}{2n}\log\tfrac{4d}\delta}",
        source="O24 (33)",
        quantity=LOG_SCORE,
        constants={"factor": 0.5, "union": 4.0},
        width_function=o24_naive_log_bound,
        limit=LOG_CLASSES,
        **_COMMON,
    ),
    Bound(
        id="m25.is-naive-bound",
        claim="the bound of M25 (13) with V_j = 1 and V_H = (log d)²",
        latex=r"\log\mathrm{IS} \le \text{(13) with } V_j=1,\;V_H=(\log d)^2",
        source="M25 Appendix C.4",
        quantity=LOG_SCORE,
        constants=MAURER_PONTIL,
        width_function=m25_naive_log_bound,
        limit=LOG_CLASSES,
        **_COMMON,
    ),
)
