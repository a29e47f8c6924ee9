"""Approximations of Vendi scores: their rates on known spectra, their stated errors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

import genbounds as gb
from genbounds.estimators.kernels._kernel_rows import kernel_rows
from genbounds.estimators.vendi._spectrum import fourier_features, lanczos_entropy, nystrom_spectrum
from genbounds.simulate import RbfArm

GAUSS = RbfArm((2.0, 1.0, 1.0, 0.5), 2.0)
SAMPLE = GAUSS.draw(300, np.random.default_rng(0))
EMPIRICAL = {"bandwidth": 2.0, "estimator": "plugin"}
ALARM = 1e-6


@pytest.mark.statistical
def test_fkea_falls_as_one_over_t_with_its_constant():
    """On Gaussian rows E mean_ij(k̂ - k)² = mean_ij[(1 + k⁴)/2 - k²]/t exactly.

    The mean over 40 seeds at t = 25, 100, 400 and 1,600 lies within 5.5 of its standard errors
    (each below 8 % of the value): false alarm below 1e-6 together. Power: a rate of t^(-1/2), a
    frequency distribution of another width or frequencies used twice are off by a factor of two.
    """
    rows = kernel_rows(SAMPLE[:150], "rbf", 2.0)
    kernel = rows.matrix()
    constant = float(((1.0 + kernel**4) / 2.0 - kernel**2).mean())
    for t in (25, 100, 400, 1600):
        errors = []
        for seed in range(40):
            blocks = [block for _, block in fourier_features(rows, t, seed).blocks()]
            features = np.concatenate(blocks)
            errors.append(float(((features @ features.T - kernel) ** 2).mean()))
        noise = np.std(errors, ddof=1) / math.sqrt(len(errors))
        assert abs(np.mean(errors) - constant / t) < 5.5 * noise
        assert noise < 0.08 * constant / t


@pytest.mark.statistical
@pytest.mark.parametrize("order", [0.5, 2.0])
def test_fkea_on_equal_orthogonal_clusters(order):
    """There the log score is low by α(k-1)/(4t) to first order in 1/t.

    Off-diagonal entries of the k × k kernel have variance 1/(2t), and a relative perturbation e of
    equal eigenvalues lowers the entropy by α mean(e²)/2. 200 seeds, t = 200 and 800, k = 5: gate at
    5.5 standard errors plus 6 k/t of the value for the next order. Power: a rate of t^(-1/2), or an
    order that is not used, is off by a factor of two.
    """
    k = 5
    rows = 1e3 * np.repeat(np.eye(k), 4, axis=0)
    given = {"bandwidth": 10.0, "order": order, "estimator": "plugin", "method": "fkea"}
    for t in (200, 800):
        lost = [
            math.log(k / gb.vendi_score(rows, components=t, seed=s, **given).value)
            for s in range(200)
        ]
        expected = order * (k - 1) / (4 * t)
        error = np.std(lost, ddof=1) / math.sqrt(len(lost))
        assert error < 0.06 * expected
        assert abs(np.mean(lost) - expected) < 5.5 * error + 6 * k / t * expected


@pytest.mark.statistical
def test_nystrom_misses_the_clusters_without_a_landmark():
    """The expected missing trace is the hypergeometric chance to miss a cluster, exactly.

    20 clusters of 5 rows, 400 seeds, gate at 5.5 standard errors (each below 5 % of the value).
    Power: landmarks drawn with replacement, or half of them, miss more by a third or a multiple.
    """
    rows = kernel_rows(1e3 * np.repeat(np.eye(20), 5, axis=0), "rbf", 10.0)
    for landmarks in (10, 25, 40):
        missing = np.array(
            [1.0 - nystrom_spectrum(rows, landmarks, seed)[1] for seed in range(400)]
        )
        expected = special.comb(95, landmarks) / special.comb(100, landmarks)
        error = missing.std(ddof=1) / math.sqrt(missing.size)
        assert abs(missing.mean() - expected) < 5.5 * error
        assert error < 0.05 * expected


def test_nystrom_falls_with_the_tail_of_a_gaussian_spectrum():
    """No projection on m directions misses less than the tail beyond m (Eckart & Young).

    Random landmarks keep a power of it: the slope of the missing trace on the tail, both in
    logarithms, is above 0.4 (0.55 measured over a hundredfold of the trace); eigenvalues that are
    summed wrongly or landmarks that are not used leave it at zero.
    """
    rows = kernel_rows(SAMPLE, "rbf", 2.0)
    spectrum = np.linalg.eigvalsh(rows.matrix() / rows.n)[::-1]
    counts = (10, 20, 40, 80, 160)
    missing = np.array(
        [np.mean([1.0 - nystrom_spectrum(rows, m, s)[1] for s in range(5)]) for m in counts]
    )
    tail = np.array([spectrum[m:].sum() for m in counts])
    assert (missing >= tail).all()
    assert 0.4 < np.polyfit(np.log(tail), np.log(missing), 1)[0] <= 1.0
    law = np.array([1.0 - GAUSS.spectrum[:m].sum() for m in counts[:3]])
    assert (missing[:3] < 4.0 * law).all()


@pytest.mark.statistical
def test_lanczos_noise_falls_with_the_probes_and_is_the_one_stated():
    """Null: the variance over seeds is 1/p of one constant, and the mean of the stated one.

    60 seeds with 4 and 64 probes: the ratio of variances over 16 lies within the F quantiles of
    1e-6 (nearly normal sums; [0.3, 3.5]); each variance over the stated within those of chi-squared
    and the noise of the stated, 1.5. Power: a variance that does not fall has ratio 1/16.
    """
    rows = kernel_rows(SAMPLE, "rbf", 2.0)
    exact = math.log(gb.vendi_score(SAMPLE, method="exact", **EMPIRICAL).value)
    variance = {}
    for probes in (4, 64):
        results = [
            lanczos_entropy(rows, order=1.0, deflated=5, probes=probes, steps=12, seed=seed)
            for seed in range(60)
        ]
        values = np.array([r.value for r in results])
        variance[probes] = values.var(ddof=1)
        stated = np.mean([r.stderr**2 for r in results])
        chi = stats.chi2.ppf([ALARM / 2, 1 - ALARM / 2], 59) / 59
        assert chi[0] / 1.5 < variance[probes] / stated < 1.5 * chi[1]
        drift = abs(values.mean() - exact)  # the rest is quadrature
        assert drift < 5.5 * values.std() / math.sqrt(60) + results[0].bracket
    low, high = stats.f.ppf([ALARM / 2, 1 - ALARM / 2], 59, 59)
    assert low < variance[4] / variance[64] / 16.0 < high


def test_lanczos_quadrature_brackets_the_value_ever_closer():
    """Gauss and Gauss–Radau: the gap of -x log x on [0, λ] falls faster than steps^(-2).

    The value itself is followed down to 1e-9 where all eigenpairs are deflated.
    """
    rows = kernel_rows(SAMPLE, "rbf", 2.0)
    given = {"order": 1.0, "probes": 8, "seed": 0}
    steps = (4, 6, 8, 12, 16, 24)
    results = [lanczos_entropy(rows, deflated=0, steps=count, **given) for count in steps]
    gaps = [r.bracket for r in results]
    assert np.all(np.diff(gaps) < 0.0)
    assert np.polyfit(np.log(steps), np.log(gaps), 1)[0] < -2.0
    for result in results:  # the same probes: what differs is the quadrature
        assert abs(result.value - results[-1].value) <= result.bracket + results[-1].bracket
    small = kernel_rows(SAMPLE[:40], "rbf", 2.0)
    exact = gb.vendi_score(SAMPLE[:40], method="exact", **EMPIRICAL).value
    whole = lanczos_entropy(small, deflated=40, steps=20, **given)
    assert whole.value == pytest.approx(math.log(exact), abs=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "laplace", "cosine"])
@pytest.mark.parametrize("order", [0.05, 0.3, 0.9, 1.0, 1.5])
def test_lanczos_takes_no_rounding_for_spectrum(kernel, order):
    """Five distinct rows, each 40 times: the eigenvalues left are 0 but for rounding.

    Small powers of 1e-17 are not small, and a line fitted to them has any slope: a score of five
    rows was 277, 3e15 or a logarithm of a negative number.
    """
    x = np.repeat(np.random.default_rng(0).normal(size=(5, 3)), 40, axis=0)
    rows = kernel_rows(x, kernel, None if kernel == "cosine" else 2.0)
    spectrum = np.linalg.eigvalsh(rows.multiply(np.eye(200)) / 200)[-5:]
    spectrum = spectrum[spectrum > 1e-9]
    entropy = -spectrum @ np.log(spectrum)
    if order != 1.0:
        entropy = math.log((spectrum**order).sum()) / (1.0 - order)
    found = lanczos_entropy(rows, order=order, deflated=50, probes=24, steps=16, seed=0)
    assert found.value == pytest.approx(entropy, abs=1e-6)
    assert found.stderr + found.bracket < 1e-6


@pytest.mark.parametrize("order", [0.9, 1.0, 3.0])
def test_lanczos_ends_where_a_kernel_has_no_more_rank(order):
    """21 of 240 eigenvalues are not 0: Radau's rule has its node 0 before it asks for one."""
    x = np.random.default_rng(0).normal(size=(240, 6))
    given = {"kernel": gb.estimators.PolynomialKernel(degree=2, offset=0.0), "order": order}
    found = gb.vendi_score(x, method="lanczos", components=10, **given)
    assert found.value == pytest.approx(
        gb.vendi_score(x, estimator="plugin", **given).value, rel=0.01
    )
    assert found.low < found.value < found.high


@pytest.mark.slow
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(12, 40),
    d=st.integers(1, 5),
    order=st.sampled_from([0.5, 1.0, 1.7, 2.0, 4.0]),
)
@settings(deadline=None, max_examples=40)
def test_laws_of_the_approximations(seed, n, d, order):
    """Bounds, order, permutation and rotation, each within the error that the method states.

    Against the exact spectrum p, which is invariant. Truncated: equal. Nyström: eigenvalues are
    low by its missing trace m in all, so |Σp² - Σp̂²| ≤ 4 m max(p, p̂), p lifted. FKEA: a mean of t
    kernels of norm at most one, so ‖p̂‖₂ is within (1/2t)^½ + (2 log(1/δ)/t)^½ of ‖p‖₂ (McDiarmid;
    δ = 1e-8). Lanczos: ten standard errors of 23 degrees of freedom (7e-10) and the bracket.
    """
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)) * np.linspace(2.0, 0.7, d)
    turned = (x @ np.linalg.qr(rng.normal(size=(d, d)))[0])[rng.permutation(n)]
    given = {"bandwidth": 1.5, "estimator": "plugin", "seed": seed % 1000}
    t, frequencies = 8, 300

    def value(rows, method, alpha):
        components = frequencies if method == "fkea" else t
        return gb.vendi_score(
            rows, method=method, order=alpha, components=components, **given
        ).value

    for method, limit in (("truncated", t), ("nystrom", t), ("fkea", min(n, 2 * frequencies))):
        high, low = value(turned, method, order), value(turned, method, order + 0.5)
        assert 1.0 - 1e-9 <= low <= high * (1.0 + 1e-9)
        assert high <= limit * (1.0 + 1e-6)
    assert value(turned, "truncated", order) == pytest.approx(
        value(x, "truncated", order), rel=1e-7
    )
    rows = kernel_rows(turned, "rbf", 1.5)
    missing = 1.0 - nystrom_spectrum(rows, min(5 * t, n), given["seed"])[1]
    cut, approximate = (value(turned, m, 2.0) for m in ("truncated", "nystrom"))
    largest = max(1.0 / value(turned, m, math.inf) for m in ("truncated", "nystrom"))
    assert abs(1.0 / cut - 1.0 / approximate) <= 4.0 * missing * largest + 1e-9
    exact = gb.vendi_score(x, method="exact", order=2.0, bandwidth=1.5, estimator="plugin").value
    slack = math.sqrt(0.5 / frequencies) + math.sqrt(2.0 * math.log(1e8) / frequencies)
    assert abs(value(turned, "fkea", 2.0) ** -0.5 - exact**-0.5) <= slack
    whole = gb.vendi_score(x, method="exact", order=order, bandwidth=1.5, estimator="plugin").value
    lanczos = lanczos_entropy(
        rows, order=order, deflated=n // 4, probes=24, steps=min(16, n), seed=seed
    )
    bar = 10.0 * lanczos.stderr + 2.0 * lanczos.bracket + 1e-6
    assert abs(lanczos.value - math.log(whole)) <= bar
    assert lanczos.value <= math.log(n) + bar
