"""The catalogue: what is in it, and that widths are the printed formulas."""

from __future__ import annotations

import dataclasses
import math
import pickle
import re
from dataclasses import replace
from fractions import Fraction
from math import log, sqrt
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from genbounds import InputError
from genbounds.bounds import Bound, catalog, clip, entropy_sum, exact_sides, truncate

ROOT = Path(__file__).parents[2]

# Generic quantities: no two alike, so that a formula that mixes them up shows.
N, DELTA = 50, 0.03
Q = {
    "variance": 2.5,
    "sample_variance": 0.21,
    "sub_exponential_nu": 1.3,
    "sub_exponential_alpha": 1.9,
    "trace": 7.0,
    "trace_square": 11.0,
    "operator": 2.9,
    "effective_rank": 7.0 / 2.9,
    "max_variance": 2.2,
    "absolute_sum": 13.0,
    "kappa": 1.7,
    "d": 6,
    "radius": 3.1,
    "mean_error_norm": 0.37,
    "mean_gap": 0.83,
    "sample_mean_gap": 0.91,
    "mean_deviation": 1.1,
    "covariance_error": 0.71,
    "reference_root_trace": 4.3,
    "order": 1.4,
    "kept": 3,
    "landmarks": 400,
    "tau": 0.3,
    "frequencies": 17,
    "covariance": np.array([[2.0, 0.4], [0.4, 1.5]])[None],
    "reference_cov": np.array([[1.2, 0.1], [0.1, 0.8]]),
    "reference_operator": 1.3,
    "reference_trace": 2.0,
    "sample_trace_root": np.array([2.3]),
    "nystrom_residual": 0.21,
    "trace_root": 2.4,
    "product_trace": 3.3,
    "kernel_spectrum": np.array([0.7, 0.2, 0.1]),
    "rows": np.array([[0.1, 0.9, 0.4, 0.3]]),
    "eigenvalues": np.array([2.9, 2.1, 1.0, 0.6, 0.3, 0.1]),
}


def mean_squared(union):
    return (sqrt(8 * 11.0 * log(union / DELTA)) + 8 * 2.9 * log(union / DELTA)) / N


def rank(union):
    return 20 * 2.9 * sqrt((4 * 7.0 / 2.9 + log(union / DELTA)) / N)


def trace_term(union, linear):
    return 7.0 * sqrt(8 / N * log(union / DELTA)) + linear * 2.9 / N * log(union / DELTA)


def edge(log_term):
    e = sqrt(log_term / (2 * N))
    return 2.9 * (2 * sqrt(6 / N) + 2 * e + (sqrt(6 / N) + e) ** 2)


def m25_bonus():
    delta_mu = sqrt(mean_squared(6))
    delta_sigma = 1.7**2 * rank(3) + mean_squared(6)
    return 2 * delta_mu * (delta_mu + 0.91) + 4.3 * sqrt(8 * delta_sigma) + trace_term(6, 8)


def o24_bonus():
    c_n = 2 * (0.83 + 0.37 + 1.1)
    mean = sqrt(2 * 13.0 / N) * (32 * log(24 * 6 / DELTA)) ** 0.25
    inner = 2.2 * rank(3) + 2 * 13.0 / N * sqrt(32 * log(24 * 6 / DELTA))
    return c_n * mean + trace_term(36, 0) + 4.3 * sqrt(8 * inner)


def o24_naive_bonus():
    c_n = 2 * (0.83 + 0.37 + 1.1)
    mean = c_n * sqrt(2.2) * sqrt(6 / N * log(36 / DELTA))
    inner = edge(log(6 / DELTA)) + 6 * 2.2 / N * log(36 / DELTA)
    return mean + trace_term(36, 0) + 4.3 * sqrt(8 * inner)


def bounded_bonus():
    first = sqrt(2 * 6 * 3.1**2 * log(36 / DELTA) / N + 7.0 / N)
    second = 1.7**2 * rank(3) + first**2
    hoeffding = 4 * 3.1**2 * sqrt(log(3 / DELTA) / (2 * N))
    return 2 * (first + 0.91) * first + 4.3 * sqrt(8 * second) + hoeffding


def naive_m25_bonus():
    mean2 = (sqrt(8 * 6 * log(6 / DELTA)) + 8 * log(6 / DELTA)) / N
    sigma = 1.7**2 * 20 * sqrt((4 * 6 + log(3 / DELTA)) / N) + mean2
    trace = 6 * sqrt(8 / N * log(6 / DELTA)) + 8 / N * log(6 / DELTA)
    return 2 * sqrt(mean2) * (sqrt(mean2) + 0.91) + 4.3 * sqrt(8 * sigma) + trace


# Every formula again, with its numbers, straight from the papers.
PRINTED = {
    "o24.gaussian-mean": lambda: sqrt(2.5 / (2 * N) * log(2 / DELTA)),
    "o24.hoeffding": lambda: sqrt(log(1 / DELTA) / (2 * N)),
    "o24.bennett": lambda: sqrt(2 * 2.5 * log(1 / DELTA) / N) + log(1 / DELTA) / (3 * N),
    "m25.empirical-bernstein": lambda: (
        sqrt(2 * 0.21 * log(2 / DELTA) / N) + 7 * log(2 / DELTA) / (3 * (N - 1))
    ),
    "o24.chi-square-mean": lambda: sqrt(8 / N * log(2 / DELTA)),
    "o24.squared-mean": lambda: sqrt(32 / N**2 * log(2 / DELTA)),
    "o24.product-of-means": lambda: sqrt(8 * log(4 / DELTA)) / N,
    "m25.sub-exponential-mean": lambda: max(
        sqrt(2 * 1.3**2 * log(2 / DELTA) / N), 2 * 1.9 * log(2 / DELTA) / N
    ),
    "m25.weighted-chi-square": lambda: max(
        sqrt(8 * 11.0 * log(2 / DELTA) / N), 8 * 2.9 * log(2 / DELTA) / N
    ),
    "v24.vector-bernstein": lambda: 3.1 * sqrt(8 / N * (log(1 / DELTA) + 0.25)),
    "o24.covariance-dimension": lambda: edge(log(2 / DELTA)),
    "o24.covariance-effective-rank": lambda: 2.2 * rank(1),
    "m25.covariance-effective-rank": lambda: 1.7**2 * rank(1),
    "o24.naive-mean-norm": lambda: sqrt(2.2) * sqrt(6 / N * log(12 / DELTA)),
    "o24.mean-norm": lambda: sqrt(2 * 13.0 / N) * (32 * log(24 * 6 / DELTA)) ** 0.25,
    "o24.covariance": lambda: 2.2 * rank(3) + 0.37**2,
    "o24.covariance-sub-gaussian": lambda: 2.9 * rank(1),
    "o24.naive-covariance": lambda: 0.37**2 + edge(log(2 / DELTA)),
    "m25.mean-norm": lambda: mean_squared(6),
    "m25.mean-norm-as-printed": lambda: sqrt(mean_squared(6)),
    "m25.covariance": lambda: 1.7**2 * rank(3) + mean_squared(6),
    "m25.bounded-mean-norm": lambda: sqrt(2 * 6 * 3.1**2 * log(36 / DELTA) / N + 7.0 / N),
    "m25.fd-decomposition": lambda: (
        2 * 0.37 * (0.37 + 0.91) + 4.3 * sqrt(8 * 0.71) + trace_term(6, 8)
    ),
    "o24.fd-decomposition": lambda: (
        (0.37 + 2 * 0.83) * 0.37
        + 4.3 * sqrt(8 * 0.71)
        + trace_term(36, 0)
        + 0.37 * (0.37 + 2 * 1.1)
    ),
    "m25.fd-bonus": m25_bonus,
    "o24.fd-bonus": o24_bonus,
    "o24.fd-naive-bonus": o24_naive_bonus,
    "m25.fd-naive-bonus": naive_m25_bonus,
    "m25.fd-bounded-bonus": bounded_bonus,
    "m25.fd-bounded-decomposition": lambda: (
        2 * 0.37 * (0.37 + 0.91)
        + 4.3 * sqrt(8 * 0.71)
        + 4 * 3.1**2 * sqrt(log(3 / DELTA) / (2 * N))
    ),
    "v24.eigenvalues": lambda: sqrt(32 * log(2 / DELTA) / N),
    "v24.order-ge-2": lambda: sqrt(32 * log(2 / DELTA) / N),
    "v24.order-lt-2": lambda: sqrt(32 * 6**0.6 * log(2 / DELTA) / N),
    "v24.order-one": lambda: sqrt(32 * 6**0.6 * log(2 / DELTA) / N),
    "v24.truncated": lambda: sqrt(32 * 3**0.6 * log(2 / DELTA) / N),
    "v24.fkea": lambda: sqrt(128 * 17**0.6 * log(3 / DELTA) / 17),
}

P = np.array([0.5, 0.3, 0.15, 0.05])
V = np.array([0.04, 0.03, 0.02, 0.01])
POSTERIOR = {
    "d": 4,
    "mean_posterior": P[None],
    "posterior_variance": V[None],
    "mean_entropy": np.array([0.4]),
    "entropy_variance": np.array([0.07]),
    "entropy_limit": 1.25,
}


def towards_1_over_e(epsilon):
    moved = []
    for p, e in zip(P, epsilon, strict=True):
        gap = 1 / math.e - p
        moved.append(p + math.copysign(e, gap) if abs(gap) >= e else 1 / math.e)
    return -sum(p * log(p) for p in moved)


def bernstein(variance, log_term, scale):
    return sqrt(2 * variance / N * log_term) + 7 * scale / (3 * (N - 1)) * log_term


PRINTED_SCORES = {
    "m25.optimistic-entropy": lambda: towards_1_over_e(
        [bernstein(v, log(16 / DELTA), 1) for v in V]
    ),
    "m25.is-bound": lambda: (
        towards_1_over_e([bernstein(v, log(16 / DELTA), 1) for v in V])
        - 0.4
        + bernstein(0.07, log(16 / DELTA), log(4))
    ),
    "o24.is-bound": lambda: (
        towards_1_over_e([bernstein(v, log(16 / DELTA), 1) for v in V])
        - 0.4
        + bernstein(0.07, log(4 / DELTA), 1.25)
    ),
    "o24.is-naive-bound": lambda: (
        towards_1_over_e([sqrt(log(16 / DELTA) / (2 * N))] * 4)
        - 0.4
        + 1.25 * sqrt(log(4 / DELTA) / (2 * N))
    ),
    "m25.is-naive-bound": lambda: (
        towards_1_over_e([bernstein(1, log(16 / DELTA), 1)] * 4)
        - 0.4
        + bernstein(log(4) ** 2, log(16 / DELTA), log(4))
    ),
}

IDS_OF_DETERMINISTIC = {
    "m25.trace-root-perturbation",
    "m25.trace-root-monotone",
    "m25.trace-root-subadditive",
    "m25.inverse-order",
    "m25.clip-optimism",
    "v24.hoffman-wielandt",
    "v24.simplex-projection",
    "v24.norm-embedding",
    "o24.visit-sum-power",
    "o24.visit-sum-log",
    "m25.visit-sum-power",
    "m25.visit-sum-log",
    "o24.visit-total-power",
    "o24.visit-total-log",
    "m25.visit-total-power",
    "m25.visit-total-log",
    "m25.visit-sum-power-as-counted",
    "m25.covariance-split",
    "m25.sub-exponential-sum",
    "c20.koksma-hlawka",
}


# Exponent of the number of samples, or of the steps of a policy, where the claim has one.
RATES = {
    "c20.fid-bias": -1.0,
    "c20.fid-variance": -1.0,
    "c20.is-bias": -1.0,
    "c20.rank-flip": -1.0,
    "c20.fid-infinity": None,
    "c20.fid-infinity-with-replacement": None,
    "c20.spacing": None,
    "c20.sobol": None,
    "c20.sobol-mean": None,
    "c20.sobol-rate": -1.0,
    "v24.nystrom": -0.5,
    "v24.nystrom-product": None,
    "v24.nystrom-proof": -0.5,
    "o24.fid-ucb-regret": 0.75,
    "m25.fd-ucb-regret": 0.75,
    "o24.is-ucb-regret": 0.5,
    "m25.is-ucb-regret": 0.5,
}
PLUG_IN = {"o24.fd-bonus-plug-in", "m25.fd-bonus-plug-in", "m25.fd-bonus-plug-in-program"}


def test_holds_every_printed_statement():
    printed = {name for name in catalog() if not name.startswith("repaired.")}
    assert printed == {
        *PRINTED,
        *PRINTED_SCORES,
        *IDS_OF_DETERMINISTIC,
        *RATES,
        *PLUG_IN,
        "m25.marginal-class",
    }


@pytest.mark.parametrize("name", PRINTED)
def test_width_is_the_printed_formula(name):
    width = catalog()[name].width(n=N, delta=DELTA, **Q)
    assert float(width) == pytest.approx(PRINTED[name](), rel=1e-13)


@pytest.mark.parametrize("n", [N, 100_000])  # where every class is clipped to 1/e, and where none
@pytest.mark.parametrize("name", PRINTED_SCORES)
def test_score_bound_is_the_printed_formula(name, n, monkeypatch):
    monkeypatch.setitem(globals(), "N", n)
    width = catalog()[name].width(n=n, delta=DELTA, **POSTERIOR)
    assert float(width[0]) == pytest.approx(PRINTED_SCORES[name](), rel=1e-13)


# The repaired ones again, with their numbers, straight from their claims (quadratures and searches
# have tests of their own).
def squared_mean(union):
    x = log(union / DELTA)
    return (7.0 + 2 * sqrt(11.0 * x) + 2 * 2.9 * x) / N


def squared_norms(union):
    x = log(union / DELTA)
    return 2 * sqrt(11.0 * x / N) + 2 * 2.9 * x / N


def along_gap(union):
    return 2 * 0.83 * sqrt(2 * 2.9 * log(union / DELTA) / N)


def repaired_rank(union):
    return 160 / 3 * 2.9 * sqrt((4 * 7.0 / 2.9 + log(union / DELTA)) / N)


def repaired_edge(union):
    e = sqrt(2 * log(union / DELTA) / N)
    return 2.9 * (2 * sqrt(6 / N) + 2 * e + (sqrt(6 / N) + e) ** 2)


def gordon():
    eta = (sqrt(7.0 / 2.9) + 1 + sqrt(2 * log(2 / DELTA))) / sqrt(N)
    return 2.9 * (2 * eta + eta**2)


def sharp():
    m, x = N - 1, log(3 / DELTA)
    spread = sqrt(2 * x / m)
    least = max(2.4 * (1 - 7 / (2 * m)) - sqrt(3.3) * spread, 2.4 * (1 - sqrt(6 / m) - spread), 0)
    return along_gap(3) + squared_norms(3) + 2 * (2.4 - sqrt(1 - 1 / N) * least)


def root_of(error):
    return 2 * 4.3 * sqrt(error)


REPAIRED = {
    "gaussian-mean": lambda: sqrt(2 * 2.5 * log(2 / DELTA) / N),
    "gaussian-mean-exact": lambda: stats.norm.isf(DELTA / 2) * sqrt(2.5 / N),
    "chi-square-mean": lambda: 2 * sqrt(log(2 / DELTA) / N) + 2 * log(2 / DELTA) / N,
    "squared-mean": lambda: 2 * log(2 / DELTA) / N,
    "product-of-means": lambda: log(2 / DELTA) / N,
    "weighted-chi-square": lambda: squared_norms(2),
    "mean-norm": lambda: sqrt(7.0 / N) + sqrt(2 * 2.9 * log(1 / DELTA) / N),
    "mean-norm-squared": lambda: squared_mean(1),
    "naive-mean-norm": lambda: sqrt(2.2 * 2 * 6 / N * log(12 / DELTA)),
    "covariance-dimension": lambda: repaired_edge(2),
    "covariance-effective-rank": lambda: repaired_rank(1),
    "covariance-gordon": gordon,
    "covariance": lambda: repaired_rank(3) + squared_mean(3),
    "naive-covariance": lambda: 0.37**2 + repaired_edge(2),
    "fd-decomposition": lambda: 2 * 0.83 * 0.37 + squared_norms(6) + root_of(0.71),
    "fd-bonus": lambda: (
        along_gap(4) + squared_norms(4) + root_of(repaired_rank(4) + squared_mean(4))
    ),
    "fd-naive-bonus": lambda: (
        along_gap(4) + squared_norms(4) + root_of(repaired_edge(8) + squared_mean(4))
    ),
    "fd-bonus-sharp": sharp,
    "kernel-covariance": lambda: sqrt((1 - 0.54) / N) + sqrt(log(1 / DELTA) / N),
    "nystrom": lambda: 0.21 + (1 + sqrt(log(1 / DELTA))) / sqrt(N),
    "rke-u-statistic": lambda: sqrt(log(2 / DELTA) / (2 * (N // 2))),
}


@pytest.mark.parametrize("name", REPAIRED)
def test_width_is_the_claimed_formula(name):
    width = catalog()[f"repaired.{name}"].width(n=N, delta=DELTA, **Q)
    assert float(width) == pytest.approx(REPAIRED[name](), rel=1e-12)


def test_marginal_class_width():
    width = catalog()["m25.marginal-class"].width(n=N, delta=DELTA, **POSTERIOR)
    expected = [bernstein(v, log(16 / DELTA), 1) for v in V]
    assert width[0] == pytest.approx(expected, rel=1e-13)


def test_plugin_bonuses_are_the_printed_ones_at_the_estimates():
    """O24 App. D.5 and M25 App. C.3, worked out for one sample covariance."""
    kept = Q["covariance"][0] >= 0.05 * 1.3  # all but the entries below τ
    assert kept.all()
    absolute = np.abs(Q["covariance"][0]).sum()
    largest = 2.0 * N / (N - 1)
    operator = largest + sqrt(log(1 / DELTA) / N)
    trace = float(np.trace(Q["covariance"][0] @ Q["reference_cov"]))
    mean_error = sqrt(2 * absolute / N) * (32 * log(24 * 2 / DELTA)) ** 0.25
    estimates = Q | {"d": 2, "mean_gap": 0.5, "mean_error_norm": mean_error, "trace": trace}
    estimates |= {"operator": operator, "effective_rank": trace / operator}
    estimates |= {"max_variance": largest, "absolute_sum": absolute}
    expected = catalog()["o24.fd-bonus"].width(n=N, delta=DELTA, **estimates)
    found = catalog()["o24.fd-bonus-plug-in"].width(n=N, delta=DELTA, **(Q | {"d": 2}))
    assert float(found[0]) == pytest.approx(float(expected), rel=1e-13)

    # 0.4 < 2 √((2·1.5 + 0.16) log 2 / 50) = 0.419: the off-diagonal entry goes.
    estimates = Q | {"trace": 3.5, "trace_square": 6.25, "operator": 2.0, "kappa": 1.0}
    estimates |= {"effective_rank": 1.75}
    expected = catalog()["m25.fd-bonus"].width(n=N, delta=DELTA, **estimates)
    found = catalog()["m25.fd-bonus-plug-in"].width(n=N, delta=DELTA, **Q)
    assert float(found[0]) == pytest.approx(float(expected), rel=1e-13)


def test_both_thresholds_of_m25():
    """0.5 lies between 2 √((2·1.5 + 0.25) log 2 / 50) = 0.425 and 2 √(6 log 2 / 50) = 0.577."""
    given = {"n": N, "delta": DELTA} | Q
    whole, diagonal = (
        given | {"covariance": np.array([[[2.0, entry], [entry, 1.5]]])} for entry in (0.5, 0.0)
    )
    gaussian, program = (catalog()[f"m25.fd-bonus-plug-in{name}"] for name in ("", "-program"))
    assert program.width(**whole) == program.width(**diagonal) == gaussian.width(**diagonal)
    assert gaussian.width(**whole) > gaussian.width(**diagonal)


def test_truncation_drops_negative_entries_as_printed():
    bound = catalog()["o24.fd-bonus-plug-in"]
    dropped, diagonal = (
        bound.width(n=N, delta=DELTA, **(Q | {"d": 2, "covariance": np.array([matrix])}))
        for matrix in ([[1.0, -0.9], [-0.9, 1.0]], [[1.0, 0.0], [0.0, 1.0]])
    )
    assert dropped.tolist() == diagonal.tolist()


def test_data_driven_bonus_needs_enough_samples_and_is_never_a_number_below():
    bound = catalog()["repaired.fd-bonus-data-driven"]
    few = bound.width(n=5, delta=DELTA, **(Q | {"d": 2}))
    assert np.isinf(few).all()
    enough = [float(bound.width(n=n, delta=DELTA, **(Q | {"d": 2}))[0]) for n in (60, 200, 5000)]
    assert np.isfinite(enough).all()
    assert np.diff(enough).max() < 0.0


def test_sharp_bonus_has_the_parametric_rate():
    """Order n^(-1/2) where the published bonus has n^(-1/4)."""
    sizes = np.array([1e6, 1e8])

    def slope(name):
        widths = [float(catalog()[name].width(n=n, delta=DELTA, **Q)) for n in sizes]
        return math.log(widths[1] / widths[0]) / math.log(sizes[1] / sizes[0])

    assert slope("repaired.fd-bonus-sharp") == pytest.approx(-0.5, abs=0.01)
    assert slope("m25.fd-bonus") == pytest.approx(-0.25, abs=0.02)


def test_betting_limit_is_where_the_capital_crosses():
    rows = np.random.default_rng(0).random((3, 40)) ** 2
    width = catalog()["repaired.betting"].width(n=40, delta=0.05, rows=rows)
    stakes = 0.9 * 0.5 ** np.arange(6)
    for sample, reach in zip(1.0 - rows, width, strict=True):
        low = sample.mean() - reach

        def capital(mean, sample=sample):
            return np.mean([np.prod(1 + s * (sample / mean - 1)) for s in stakes])

        assert capital(0.999 * low) > 20.0 > capital(1.002 * low)


def test_order_one_bound_is_trivial_exactly_from_where_entropy_can_differ_fully():
    bound = catalog()["repaired.vendi-order-one"]
    spectrum = np.full(4, 0.25)
    few = bound.width(n=4, delta=0.05, d=4, kernel_spectrum=spectrum)
    many = bound.width(n=10_000, delta=0.05, d=4, kernel_spectrum=spectrum)
    assert float(few) == pytest.approx(log(4))
    reach = sqrt(0.75 / 10_000) + sqrt(log(20) / 10_000)
    t = 0.5 * 2 * reach
    expected = t * log(3) - t * log(t) - (1 - t) * log(1 - t)
    assert float(many) == pytest.approx(expected, rel=1e-12)


def test_product_of_the_main_text():
    """V24 Theorem 3(b): log(2/δ) times t τ² log² n, where Appendix A.5 adds them."""
    width = catalog()["v24.nystrom-product"].width(n=N, delta=DELTA, **Q)
    expected = sqrt(400**0.6 * log(2 / DELTA) * 400 * 0.3**2 * log(N) ** 2 / N)
    assert float(width) == pytest.approx(expected, rel=1e-13)


def test_koksma_hlawka_of_a_known_function_and_known_points():
    """One dimension: f = 1 below 1/4 and 3 from there on; points 0.1, 0.2, 0.6, 0.9."""
    bound = catalog()["c20.koksma-hlawka"]
    points = np.array([0.2, 0.9, 0.1, 0.6])[None, :, None]
    given = {"points": points, "knots": np.array([[[0.25]]]), "levels": np.array([[[1.0, 3.0]]])}
    # D*: just with 0.2 half of the points lie in [0, 0.2]. I = 2.5, Î = 2.
    assert float(bound.width(**given)[0]) == pytest.approx(2 * 0.3, rel=1e-13)
    assert float(bound.error(**given)[0]) == pytest.approx(0.5, rel=1e-13)


def test_moment_of_a_sum_is_that_of_its_draws():
    """χ²₁ and a normal variable: log E exp(s(X−μ)) in closed form."""
    bound = catalog()["m25.sub-exponential-sum"]
    given = {"weights": [2.0, 1.0], "shapes": [0.5, 0.0], "scales": [2.0, 0.0]}
    given |= {"deviations": [0.0, 3.0], "position": 0.5}
    arrays = {name: np.array(value)[None] for name, value in given.items()}
    s = 0.5 / 8  # α = 4 of χ²₁, times its weight
    expected = -0.5 * log(1 - 4 * s) - 2 * s + 9 * s**2 / 2
    assert float(bound.error(**arrays)[0]) == pytest.approx(expected, rel=1e-12)
    assert float(bound.width(**arrays)[0]) == pytest.approx(s**2 / 2 * (4 * 4 + 9), rel=1e-13)
    small = arrays | {"position": np.array([1e-4])}
    near = float(bound.error(**small)[0]) / float(bound.width(**small)[0])
    assert near == pytest.approx((8 + 9) / (16 + 9), rel=1e-4)  # variances over ν²


def test_landmarks_that_may_miss_a_class_say_nothing():
    """Two classes of 0.9 and 0.1, t = 40: 0.9⁴⁰ = 0.0148 of δ is spent."""
    bound = catalog()["repaired.nystrom-classes"]
    given = {"n": N, "landmarks": 40, "kernel_spectrum": np.array([0.9, 0.1])}
    left = 0.05 - 0.9**40 - 0.1**40
    expected = (1 + sqrt(log(1 / left))) / sqrt(N)
    assert float(bound.width(**given, delta=0.05)) == pytest.approx(expected, rel=1e-13)
    assert float(bound.width(**given, delta=0.014)) == math.inf
    nothing = {"n": N, "landmarks": 2, "kernel_spectrum": np.array([0.5, 0.5])}
    assert float(bound.width(**nothing, delta=0.5)) == math.inf  # 2 · 0.5², to the last bit


# What the field's bounds are to be compared with, and the statement that each one stands beside.
SHARPER = {
    "repaired.gaussian-mean-exact": "o24.gaussian-mean",
    "repaired.chi-square-mean": "o24.chi-square-mean",  # Laurent–Massart
    "repaired.weighted-chi-square": "m25.weighted-chi-square",
    "repaired.mean-norm-exact": "o24.mean-norm",  # weighted χ²
    "repaired.mean-norm": "m25.mean-norm-as-printed",  # Borell–TIS
    "repaired.covariance-dimension": "o24.covariance-dimension",  # Wainwright
    "repaired.covariance-gordon": "m25.covariance-effective-rank",  # Koltchinskii–Lounici
    "repaired.betting": "m25.empirical-bernstein",
    "repaired.kernel-covariance": "v24.eigenvalues",  # McDiarmid
    "repaired.rke-u-statistic": "v24.order-ge-2",
    "repaired.vendi-order-one": "v24.order-one",  # Fannes–Audenaert
    "repaired.fd-bonus-data-driven": "o24.fd-bonus-plug-in",
    "repaired.gaussian-mean-uniform": "o24.gaussian-mean",
    "repaired.hoeffding-uniform": "o24.hoeffding",
}


def test_sharper_statements_stand_beside_the_printed_ones():
    listing = catalog()
    assert {name: listing[name].repairs for name in SHARPER} == SHARPER
    derivations = (ROOT / "docs" / "bounds.md").read_text(encoding="utf-8")
    for name, bound in listing.items():
        if name.startswith("repaired."):
            assert bound.repairs in listing
            assert not bound.repairs.startswith("repaired.")
            assert bound.source
            assert f"`{name}`" in derivations, name


def quantities_of(bound: Bound):
    rng = np.random.default_rng(3)
    if bound.setting == "posteriors":
        return POSTERIOR | {"n": N, "delta": DELTA}
    p = np.array([[0.2, 0.7, 0.1]])
    inputs = {
        "factor": rng.normal(size=(1, 3, 3)),
        "other_factor": rng.normal(size=(1, 3, 3)),
        "reference_factor": rng.normal(size=(1, 3, 3)),
        "larger": 5.0 * np.eye(3)[None],
        "smaller": np.eye(3)[None],
        "a": np.diag([1.0, 2.0, 4.0])[None],
        "b": np.eye(3)[None],
        "p": np.array([[0.05, 0.9, 0.05]]),
        "p_estimate": np.array([[0.45, 0.1, 0.45]]),
        "v": p,
        "w": np.array([[0.5, 0.5, 0.0]]),
        "t": np.array([2]),
        "alpha": np.array([0.4 if bound.setting.startswith("visits") else 1.4]),
        "weights": np.array([[1.0, 2.0]]),
        "shapes": np.array([[0.5, 3.0]]),
        "scales": np.array([[2.0, 0.7]]),
        "deviations": np.array([[0.4, 1.1]]),
        "position": np.array([0.6]),
        "points": np.array([[[0.1, 0.4], [0.7, 0.2], [0.5, 0.9]]]),
        "knots": np.array([[[0.3, 0.6], [0.2, 0.8]]]),
        "levels": np.array([[[1.0, 3.0, 2.0], [-1.0, 0.5, 2.5]]]),
        "picks": np.array([[3.0, 9.0]]),
        "batch": np.array([5.0]),
        "burn_in": np.array([10.0]),
    }
    return Q | inputs | {"n": N, "delta": DELTA}


# Covariances of which a small change of θ_ij decides whether they are kept.
THETA_ENTRIES = {
    ("m25.fd-bonus-plug-in", "variances"): 0.4192,
    ("m25.fd-bonus-plug-in", "squares"): 0.4192,
    ("m25.fd-bonus-plug-in-program", "variances"): 0.57,
    ("m25.fd-bonus-plug-in-program", "squares"): 0.578,
    ("m25.fd-bonus-plug-in-program", "threshold"): 0.55,
}


@pytest.mark.parametrize(
    ("name", "constant"),
    [(name, constant) for name, bound in catalog().items() for constant in bound.constants],
)
def test_every_constant_is_used(name, constant):
    bound = catalog()[name]
    quantities = quantities_of(bound)
    if "plug-in" in name:
        quantities |= {"d": 2}
        entry = THETA_ENTRIES.get((name, constant), 0.4)
        quantities |= {"covariance": np.array([[[2.0, entry], [entry, 1.5]]])}
        if constant == "truncation":  # a step: one that cuts something
            quantities |= {"reference_operator": 2.0}
    if name == "repaired.fd-bonus-data-driven":
        quantities |= {"n": 400}
    if constant == "unseen":  # else no class is missed
        quantities |= {"landmarks": 40}
    if name == "m25.optimistic-entropy":  # fewer leave every class clipped to 1/e
        quantities |= {"n": 100_000}
    if name == "repaired.vendi-order-one":
        quantities |= {"n": 500}
    if bound.quantity.name == "mean-error" and "sub" in name:  # either branch of the maximum
        quantities["sub_exponential_alpha"] = 1e-3 if constant == "root" else 1e3
    if "weighted-chi-square" in name:
        quantities["operator"] = 1e-3 if constant == "root" else 1e3
    changed = dataclasses.replace(
        bound, constants={**bound.constants, constant: bound.constants[constant] * 0.7 + 0.25}
    )
    assert np.all(changed.width(**quantities) != bound.width(**quantities))
    assert catalog()[name].constants == bound.constants


ORACLE = [
    name
    for name, bound in catalog().items()
    if bound.form == "oracle"
    and not name.startswith("v24.order-one")
    and not bound.setting.endswith("sequence")  # one width for each running mean
]


@pytest.mark.parametrize("name", ORACLE)
def test_width_falls_with_n_and_delta_and_broadcasts(name):
    bound = catalog()[name]
    n = np.array([50, 100, 1000])
    delta = np.array([1e-12, 0.01, 0.2])
    grid = bound.width(**{**quantities_of(bound), "n": n[:, None], "delta": delta})
    for i, size in enumerate(n):
        for j, share in enumerate(delta):
            single = bound.width(**{**quantities_of(bound), "n": int(size), "delta": float(share)})
            assert np.broadcast_to(grid, (3, 3))[i, j] == pytest.approx(float(single), rel=1e-12)
    grid = np.broadcast_to(grid, (3, 3))
    assert (np.diff(grid, axis=0) <= 0).all()
    assert (np.diff(grid, axis=1) < 0).all()


def test_read_only_and_portable():
    bounds = catalog()
    with pytest.raises(TypeError):
        bounds["o24.gaussian-mean"] = None
    bound = bounds["o24.gaussian-mean"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        bound.id = "other"
    with pytest.raises(TypeError):
        bound.constants["factor"] = 2.0


def test_all_travel_to_other_processes():
    for bound in catalog().values():
        again = pickle.loads(pickle.dumps(bound))  # noqa: S301 - our own bytes
        assert again.constants == bound.constants
        assert [a.text for a in again.assumptions] == [a.text for a in bound.assumptions]


def test_describes_itself():
    for name, bound in catalog().items():
        assert bound.id == name
        assert bound.claim
        assert bound.latex.count("{") == bound.latex.count("}")
        assert bound.source
        assert bound.assumptions
        assert 0.0 < bound.failure <= 1.0
        assert bound.repairs is None or bound.repairs in catalog()
        # A printed statement, too, may hold in the place of another.
        assert bound.repairs or not name.startswith("repaired.")


@pytest.mark.parametrize("name", catalog())
def test_missing_constant_is_named(name):
    """By the name that the bound has for it, those of one part of a formula included."""
    bound = catalog()[name]
    quantities = quantities_of(bound) | ({"d": 2} if "plug-in" in name else {})
    for constant in bound.constants:
        left = {key: value for key, value in bound.constants.items() if key != constant}
        with pytest.raises(
            InputError, match=rf"{re.escape(name)}.*takes the constant '{constant}'"
        ):
            replace(bound, constants=left).width(**quantities)


def test_missing_constant_of_an_exact_side_is_named():
    bound = replace(catalog()["v24.hoffman-wielandt"], constants={})
    identity = [[Fraction(1), Fraction(0)], [Fraction(0), Fraction(1)]]
    with pytest.raises(InputError, match=r"takes the constant 'factor'"):
        exact_sides(bound, {"a": identity, "b": identity})


def test_missing_quantity_is_named():
    with pytest.raises(InputError, match=r"o24\.gaussian-mean.*needs `variance`"):
        catalog()["o24.gaussian-mean"].width(n=10, delta=0.1)


def test_holds():
    bound = catalog()["repaired.gaussian-mean"]
    width = float(bound.width(n=4, delta=0.1, variance=1.0))
    means = np.array([0.0, 0.99 * width, 1.01 * width, np.nan])
    held = bound.holds(n=4, delta=0.1, variance=1.0, mean=0.0, sample_mean=means)
    assert held.tolist() == [True, True, False, False]


def test_claimed_probability():
    assert catalog()["m25.mean-norm"].claimed(0.3) == pytest.approx(0.1)
    assert catalog()["m25.covariance"].claimed(0.3) == pytest.approx(0.2)
    assert catalog()["o24.gaussian-mean"].claimed(0.3) == 0.3
    assert catalog()["v24.hoffman-wielandt"].claimed(0.3) == 0.0


@pytest.mark.parametrize("name", catalog())
def test_spends_the_share_of_delta_that_its_claim_prints(name):
    bound = catalog()[name]
    spent = re.search(r"w\.p\. ≥ 1−(\d?)δ/(\d)", bound.claim)
    share = 1.0 if spent is None else int(spent[1] or 1) / int(spent[2])
    assert bound.failure == pytest.approx(share, rel=1e-15)


@pytest.mark.parametrize("name", [name for name, exponent in RATES.items() if exponent])
def test_rates_are_those_of_the_claims(name):
    few, many = catalog()[name].width(n=np.array([16, 256]))
    assert many / few == pytest.approx(16.0 ** RATES[name])


def test_a_standard_normal_variable_is_nothing_else():
    (standard,) = catalog()["o24.chi-square-mean"].assumptions
    facts = {"families": {"gaussian"}, "d": 1, "mean": 0.0, "variance": 1.0}
    assert standard.predicate(facts, 5, 0.1)
    for other in ({"families": {"bounded"}}, {"d": 2}, {"mean": 0.5}, {"variance": 2.0}):
        assert not standard.predicate(facts | other, 5, 0.1)


def test_assumptions_are_checked():
    facts = {"families": {"gaussian"}, "d": 2, "effective_rank": 2.0}
    assert catalog()["o24.gaussian-mean"].violated(facts, 10, 0.1) == ("d = 1",)
    covariance = catalog()["o24.covariance"]
    assert covariance.violated(facts, 12, 0.1) == ()  # 4·2 + log 30 = 11.4
    assert covariance.violated(facts, 11, 0.1) == ("n ≥ 4 r(Σ) + log(3/δ)",)
    vendi = catalog()["v24.eigenvalues"]
    assert vendi.violated({"families": {"kernel"}}, 2 + 8 * 7, math.exp(-7)) == ()
    assert vendi.violated({"families": {"kernel"}}, 2 + 8 * 7, math.exp(-7.01)) != ()


RANK_FACTORS = {
    "o24.covariance-effective-rank": 1, "m25.covariance-effective-rank": 1,
    "o24.covariance-sub-gaussian": 1, "repaired.covariance-effective-rank": 1,
    "o24.covariance": 3, "m25.covariance": 3, "m25.fd-bonus": 3, "m25.fd-naive-bonus": 3,
    "m25.fd-bounded-bonus": 3, "m25.fd-bonus-plug-in": 3, "repaired.covariance": 3,
    "m25.fd-bonus-plug-in-program": 3,
    "repaired.fd-bonus": 4,
}  # fmt: skip


def of_sizes(name):
    """The conditions of a statement on n and δ, by their text."""
    conditions = catalog()[name].assumptions
    return {one.text: one.predicate for one in conditions if "n ≥" in one.text or "≤ n" in one.text}


@pytest.mark.parametrize("name", catalog())
def test_begins_where_the_paper_says(name):
    """n ≥ 4 r(Σ) + log(k/δ), k = 3 where δ is split in three; for δ = 0.1, r = 2: 11.4 if k = 3."""
    said = [text for text in of_sizes(name) if "r(Σ)" in text]
    assert said == [f"n ≥ 4 r(Σ) + log({RANK_FACTORS.get(name)}/δ)"] * (name in RANK_FACTORS)
    for text in said:
        begins = math.ceil(8.0 + math.log(RANK_FACTORS[name] / 0.1))
        holds = of_sizes(name)[text]
        assert [holds({"effective_rank": 2.0}, n, 0.1) for n in (begins - 1, begins)] == [
            False,
            True,
        ]


@pytest.mark.parametrize("name", [name for name in catalog() if "n ≥ 2" in of_sizes(name)])
def test_one_sample_has_no_variance(name):
    assert [of_sizes(name)["n ≥ 2"]({}, n, 0.1) for n in (1, 2)] == [False, True]


def test_vector_bernstein_ends_where_its_width_is_the_range():
    bound, (holds,) = catalog()["v24.vector-bernstein"], of_sizes("v24.vector-bernstein").values()
    for n in range(1, 60):
        assert holds({}, n, 0.1) == (bound.width(n=n, delta=0.1, radius=1.0) <= 1.0)


def test_unknown_form_is_refused():
    with pytest.raises(InputError, match="form"):
        dataclasses.replace(catalog()["o24.hoeffding"], form="other")


def test_clip_moves_towards_the_point_and_stops_there():
    p = np.array([0.1, 0.9, 0.3, 1 / math.e])
    moved = clip(p, np.array([0.2, 0.2, 0.2, 0.2]))
    assert moved == pytest.approx([0.3, 0.7, 1 / math.e, 1 / math.e])


def test_entropy_sum_and_truncation():
    assert float(entropy_sum(np.array([0.5, 0.5, 0.0]))) == pytest.approx(log(2))
    kept = truncate(np.array([[0.5, 0.3, 0.2]]), np.array([2]))
    assert kept == pytest.approx(np.array([[0.6, 0.4, 0.0]]))
