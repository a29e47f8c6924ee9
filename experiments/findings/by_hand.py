"""Refutations that need nothing but a calculator: the standard library's `math`.

Each function returns how often the statement fails, or a lower limit of that, and how often it
says that it may; for a deterministic claim the two sides. The findings print their source.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping


def o24_gaussian_mean() -> tuple[float, float]:
    # X_1 ~ N(0, 1): |X̄| > x has probability erfc(x √(n/2)).
    n, delta = 1, 0.2
    width = math.sqrt(1 / (2 * n) * math.log(2 / delta))
    return math.erfc(width * math.sqrt(n / 2)), delta


def o24_naive_mean_norm() -> tuple[float, float]:
    # N(0, 1): |μ̂| > x has probability erfc(x √(n/2)).
    n, d, delta = 2, 1, 0.05
    width = math.sqrt(d / n * math.log(2 * d / delta))
    return math.erfc(width * math.sqrt(n / 2)), delta


def o24_mean_norm() -> tuple[float, float]:
    # N(0, 1): |μ̂| > x has probability erfc(x √(n/2)); ℐ = 1.
    n, d, delta = 2, 1, 1e-20
    width = math.sqrt(2 / n) * (32 * math.log(24 * d / delta)) ** 0.25
    return math.erfc(width * math.sqrt(n / 2)), delta / 3


def o24_chi_square_mean() -> tuple[float, float]:
    # n = 1: Z² − 1 > w is |Z| > √(1 + w).
    delta = 1e-3
    width = math.sqrt(8 * math.log(2 / delta))
    return math.erfc(math.sqrt((1 + width) / 2)), delta


def o24_squared_mean() -> tuple[float, float]:
    # n = 1: z² > w is |z| > √w.
    delta = 1e-6
    width = math.sqrt(32 * math.log(2 / delta))
    return math.erfc(math.sqrt(width / 2)), delta


def o24_product_of_means() -> tuple[float, float]:
    # n = 1: P(|zu| > w) = E P(|u| > w/|z|), a sum over z of steps of 0.001.
    delta = 1e-6
    width = math.sqrt(8 * math.log(4 / delta))
    grid = [0.001 * (k + 0.5) for k in range(20_000)]
    density = [math.sqrt(2 / math.pi) * math.exp(-z * z / 2) for z in grid]
    tails = [math.erfc(width / z / math.sqrt(2)) for z in grid]
    return sum(0.001 * p * t for p, t in zip(density, tails, strict=True)), delta


def o24_covariance_dimension() -> tuple[float, float]:
    # d = 1, n = 2: n⁻¹Σx² is exponential with mean 1.
    n, d, delta = 2, 1, 1e-6
    e = math.sqrt(math.log(2 / delta) / (2 * n))
    width = 2 * math.sqrt(d / n) + 2 * e + (math.sqrt(d / n) + e) ** 2
    return math.exp(-(1 + width)), delta


def o24_covariance_effective_rank() -> tuple[float, float]:
    # d = 1, σ² = 1e-6, n = 20: the error is σ²|χ²/20 − 1|; χ² with 20 degrees of freedom has a
    # density of at most that at 18, so that it seldom lies within the width of its mean.
    n, delta, variance = 20, 0.2, 1e-6
    width = 20 * variance * variance * math.sqrt((4 + math.log(1 / delta)) / n)
    densest = 18**9 * math.exp(-9) / (2**10 * math.gamma(10))
    return 1 - 2 * n * width / variance * densest, delta


def o24_covariance() -> tuple[float, float]:
    # d = 1, σ² = 1e-6, n = 20: Σ̂ is σ²χ²/20 with 19 degrees of freedom, whose density is largest at
    # 17, and (μ̂−μ)² = σ²Z²/20 is at most σ²/20 where |Z| ≤ 1, in 68 % of the samples.
    n, delta, variance = 20, 0.2, 1e-6
    width = 20 * variance * variance * math.sqrt((4 + math.log(3 / delta)) / n) + variance / n
    densest = 17**8.5 * math.exp(-8.5) / (2**9.5 * math.gamma(9.5))
    return math.erf(1 / math.sqrt(2)) * (1 - 2 * n * width / variance * densest), delta


def m25_mean_norm() -> tuple[float, float]:
    # Σ = I, d = 64, n = 2: ‖μ̂−μ‖² is χ²/2 with 64 degrees of freedom, a Poisson sum.
    n, d, delta = 2, 64, 0.2
    log = math.log(6 / delta)
    width = (math.sqrt(8 * d * log) + 8 * log) / n
    half = n * width / 2
    tail = sum(math.exp(-half) * half**k / math.factorial(k) for k in range(d // 2))
    return tail, delta / 3


def m25_mean_norm_as_printed() -> tuple[float, float]:
    # Σ = I, d = 64, n = 2: n‖μ̂−μ‖² is χ² with 64 degrees of freedom, a Poisson sum.
    n, d, delta = 2, 64, 0.2
    log = math.log(6 / delta)
    width = math.sqrt((math.sqrt(8 * d * log) + 8 * log) / n)
    half = n * width**2 / 2
    tail = sum(math.exp(-half) * half**k / math.factorial(k) for k in range(d // 2))
    return tail, delta / 3


def o24_visit_sum_log() -> tuple[float, float]:
    # One generator, one batch of b = 1: n_1 = 1.
    return 1 / 1, 2 * 1 * math.log(1)


def m25_visit_sum_log() -> tuple[float, float]:
    # One generator, picked once, b = 1: n_1 = 1.
    return 1 / 1, 2 / 1 * math.log(1)


def o24_fd_decomposition() -> tuple[float, float]:
    # N(0, 1) against N(0, 1e-6), n = 2: μ̂ and y = (x_1−x_2)/2 are independent N(0, 1/2), Σ̂ = y²,
    # FD_n − FD = μ̂² + y² − 1 − 0.002(|y| − 1). Take |μ̂| ≤ 0.05, in erf(0.05) of the samples, and
    # look for the y from which on the statement fails; |y| > y has probability erfc(y).
    delta = 1e-6
    trace = math.sqrt(8 / 2 * math.log(6 / delta))
    y = 1.0
    while True:
        width = 2 * 0.05**2 + 2 * 0.05 * y + 1e-3 * math.sqrt(8 * (y * y - 1)) + trace
        if y * y - 1 - 0.002 * (y - 1) > width:
            break
        y += 0.001
    return math.erf(0.05) * math.erfc(y), delta / 3


def o24_fd_naive_bonus() -> tuple[float, float]:
    # N(0, 1) against N(1e4, 1), n = 2: μ̂ and y = (x_1−x_2)/2 are independent N(0, 1/2), and
    # FD_n − FD = −2e4 μ̂ + μ̂² + (|y|−1)². In C_n, n⁻¹Σ|x_i−μ̂| = |y| ≤ 10 but for erfc(10). Solved
    # for the m from which on μ̂ = −m makes the bonus too small.
    n, gap, delta = 2, 1e4, 1e-6
    log = math.log(6 / delta)
    mean, e = math.sqrt(log / n), math.sqrt(log / (2 * n))
    spread = 2 * math.sqrt(1 / n) + 2 * e + (math.sqrt(1 / n) + e) ** 2 + log / n
    rest = math.sqrt(8 / n * log) + math.sqrt(8 * spread)
    m = (2 * (gap + 10) * mean + rest) / (2 * gap - 2 * mean)
    return 0.5 * math.erfc(m) * (1 - math.erfc(10)), delta


def o24_fd_bonus() -> tuple[float, float]:
    # N(0, 1) against N(1e4, 1), n = 2: μ̂ and y = (x_1−x_2)/2 are independent N(0, 1/2), and
    # FD_n − FD = −2e4 μ̂ + μ̂² + (|y|−1)². In C_n, n⁻¹Σ|x_i−μ̂| = |y| ≤ 10 but for erfc(10). Solved
    # for the m from which on μ̂ = −m makes the bonus too small; ℐ = σ² = ‖Σ‖ = r = 1.
    n, gap, delta = 2, 1e4, 1e-20
    inner = math.sqrt(32 * math.log(24 / delta))
    mean = math.sqrt(2 / n * inner)
    spread = 20 * math.sqrt((4 + math.log(3 / delta)) / n) + 2 / n * inner
    rest = math.sqrt(8 / n * math.log(6 / delta)) + math.sqrt(8 * spread)
    m = (2 * (gap + 10) * mean + rest) / (2 * gap - 2 * mean)
    return 0.5 * math.erfc(m) * (1 - math.erfc(10)), delta


def o24_fd_bonus_plug_in() -> tuple[float, float]:
    # N(0, 1) against N(1e4, 1), n = 2: μ̂ and y = (x_1−x_2)/2 are independent N(0, 1/2), Σ̂ = y² and
    # FD_n − FD ≥ −2e4 μ̂. The bonus, with ‖μ−μ_r‖ = 0.5 for 1e4, grows with Σ̂; where |y| ≤ 3 it is
    # at most this, at Σ̂ = 9.
    n, gap, delta, cov = 2, 1e4, 0.05, 9.0
    inner = math.sqrt(32 * math.log(24 / delta))
    mean = math.sqrt(2 * cov / n * inner)
    variance = cov * n / (n - 1)
    operator = variance + math.sqrt(math.log(1 / delta) / n)
    rank = cov / operator
    spread = 20 * variance * operator * math.sqrt((4 * rank + math.log(3 / delta)) / n)
    spread += 2 * cov / n * inner
    width = 2 * (0.5 + mean + 3) * mean + cov * math.sqrt(8 / n * math.log(6 / delta))
    width += math.sqrt(8 * spread)
    return 0.5 * math.erfc(width / (2 * gap)) * (1 - math.erfc(3)), delta


def v24_nystrom() -> tuple[float, float]:
    # Classes of 1/2 and 100 of 0.005, k(x, y) = [x = y], t = 2: λ_102 = 0. Both landmarks miss the
    # large class in a quarter of the samples; then λ^Nys, lifted to sum 1, nears (1/2, 1/2) and its
    # error 0.35, whatever n. Asked is an error of order 1/√n but for δ = 0.1.
    lift = (1 - 0.505) / 2
    assert math.dist((0.5 + lift, 0.005 + lift), (0.5, 0.5)) > 0.34
    return 0.5 * 0.5, 0.1


def v24_nystrom_product() -> tuple[float, float]:
    # Two equal classes, k(x, y) = [x = y], t = 2, n = 101, α = 2: λ_3(K) = 0 ≤ τ for every τ. The
    # shares of an odd n are at least 1/(2n) from 1/2, and so is λ^Nys: every sample has this error
    # or more. The constant of O(·) is one for all τ; no number is large enough: here a million.
    n, t, delta, tau, constant = 101, 2, 0.1, 1e-12, 1e6
    width = constant * math.sqrt(math.log(2 / delta) * t * tau**2 * math.log(n) ** 2 / n)
    least = math.hypot(0.5 + 0.5 / n, 0.5 - 0.5 / n) - math.sqrt(0.5)
    return float(least > width), delta + 2 / n**3


def v24_nystrom_proof() -> tuple[float, float]:
    # Classes of 1 − p and p = 1/t, k(x, y) = [x = y]: λ_3(K) = 0, t = C 3 log n, here C = 10 and
    # n = 1e24. All landmarks miss the small class with probability (1−p)^t, nearly 1/e; then λ^Nys
    # is the share s of the large class, lifted to s + (1−s)/t and (1−s)/t, whose norm (α = 2) is
    # nearly p²/2 too large: far more than √(log(2/δ)/n) times a constant of ten thousand.
    n, delta = 1e24, 0.1
    t = 10 * 3 * math.log(n)
    p = 1 / t
    s = 1 - p - n**-0.4  # no smaller share, but for 2 exp(−2n^0.2)
    lifted = math.hypot(s + (1 - s) / t, math.sqrt(t - 1) * (1 - s) / t)
    assert lifted - math.hypot(1 - p, p) > 1e4 * math.sqrt(math.log(2 / delta) / n)
    return (1 - p) ** t - 2 * math.exp(-2 * n**0.2), delta + 2 / n**3


def c20_fid_infinity_with_replacement() -> tuple[float, float]:
    # x = ±1 with even chances against N(0, 1): FD_n = m² + (1−√(1−m²))², between m² and m² + m⁴.
    # Given the pool's own mean M, n draws with replacement have E m² = M² + (1−M²)/n: linear in
    # 1/n, so that the line at 0 is M², and E M² = 1/P. The m⁴ move it by no more than Σ|w| E m⁴,
    # w the weights of the line, E m⁴ ≤ 3 (P^(−1/2) + n^(−1/2))⁴. Allowed: a tenth of the bias of
    # the pool, E(M² + M⁴) ≤ 1/P + 3/P².
    pool = 20_000
    sizes = [5_000 + j * 15_000 // 14 for j in range(15)]
    mean = sum(1 / n for n in sizes) / 15
    squares = sum((1 / n - mean) ** 2 for n in sizes)
    weights = [1 / 15 - mean * (1 / n - mean) / squares for n in sizes]
    fourth = [3 * (pool**-0.5 + n**-0.5) ** 4 for n in sizes]
    rest = sum(abs(w) * m for w, m in zip(weights, fourth, strict=True))
    return 1 / pool - rest, 0.1 * (1 / pool + 3 / pool**2)


def o24_visit_total_power() -> tuple[float, float]:
    # G = 1, b = 5, T = 1,000, α = 1/2: n_1(T) = 5,000 images.
    return math.sqrt(5 * 1000), math.sqrt(1000)


def o24_visit_total_log() -> tuple[float, float]:
    # G = 1, b = 5, T = 1,000: n_1(T) = 5,000 images.
    return math.log(5 * 1000), math.log(1000)


def m25_visit_sum_power_as_counted() -> tuple[float, float]:
    # N = 10, b = 100, one pick, α = 1/2: n_1 = N images at the beginning of the step. With N = 0
    # the left side is infinite.
    return 10**-0.5, 2**0.5 / (100**0.5 * (1 - 0.5))


def o24_covariance_sub_gaussian() -> tuple[float, float]:
    # N(0, 1e-6) is sub-Gaussian with σ² = 1e-6, n = 20: the error is σ²|χ²/20 − 1|; χ² with 20
    # degrees of freedom has a density of at most that at 18, so that it seldom lies so near.
    n, delta, variance = 20, 0.2, 1e-6
    width = 20 * variance * variance * math.sqrt((4 + math.log(1 / delta)) / n)
    densest = 18**9 * math.exp(-9) / (2**10 * math.gamma(10))
    return 1 - 2 * n * width / variance * densest, delta


def o24_naive_covariance() -> tuple[float, float]:
    # N(0, 1), n = 2: μ̂ and y = (x_1−x_2)/2 are independent N(0, 1/2), Σ̂ = y². Where |μ̂| ≤ 0.05,
    # in erf(0.05) of the samples, the width is at most this; |y| > √(1 + w) has an erfc.
    n, d, delta = 2, 1, 1e-20
    e = math.sqrt(math.log(2 / delta) / (2 * n))
    width = 0.05**2 + 2 * math.sqrt(d / n) + 2 * e + (math.sqrt(d / n) + e) ** 2
    return math.erf(0.05) * math.erfc(math.sqrt(1 + width)), delta


BY_HAND: Mapping[str, Callable[[], tuple[float, float]]] = {
    "o24.gaussian-mean": o24_gaussian_mean,
    "o24.naive-mean-norm": o24_naive_mean_norm,
    "o24.mean-norm": o24_mean_norm,
    "o24.chi-square-mean": o24_chi_square_mean,
    "o24.squared-mean": o24_squared_mean,
    "o24.product-of-means": o24_product_of_means,
    "o24.covariance-dimension": o24_covariance_dimension,
    "o24.covariance-effective-rank": o24_covariance_effective_rank,
    "o24.covariance": o24_covariance,
    "m25.mean-norm": m25_mean_norm,
    "m25.mean-norm-as-printed": m25_mean_norm_as_printed,
    "o24.visit-sum-log": o24_visit_sum_log,
    "m25.visit-sum-log": m25_visit_sum_log,
    "o24.fd-decomposition": o24_fd_decomposition,
    "o24.fd-naive-bonus": o24_fd_naive_bonus,
    "o24.fd-bonus": o24_fd_bonus,
    "o24.fd-bonus-plug-in": o24_fd_bonus_plug_in,
    "v24.nystrom": v24_nystrom,
    "v24.nystrom-product": v24_nystrom_product,
    "v24.nystrom-proof": v24_nystrom_proof,
    "o24.visit-total-power": o24_visit_total_power,
    "o24.visit-total-log": o24_visit_total_log,
    "m25.visit-sum-power-as-counted": m25_visit_sum_power_as_counted,
    "o24.covariance-sub-gaussian": o24_covariance_sub_gaussian,
    "o24.naive-covariance": o24_naive_covariance,
    "c20.fid-infinity-with-replacement": c20_fid_infinity_with_replacement,
}
