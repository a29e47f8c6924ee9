"""What of the diversity is the outputs', given their prompts; and distances of both together."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import binom

import genbounds as gb
from tests.refusal import refused

WIDTHS = {"bandwidth": 2.5, "prompt_bandwidth": 2.0}


def drawn(rng, prompts, each, spread=1.0):
    """Outputs that follow their prompts."""
    texts = np.repeat(rng.normal(size=(prompts, 3)), each, axis=0)
    return spread * rng.normal(size=texts.shape) + texts, texts


def kernels(x, y, sigma):
    """exp(-‖x-y‖²/(2σ²))."""
    return np.exp(-cdist(x, y, "sqeuclidean") / (2.0 * sigma**2))


@pytest.mark.parametrize("each", [1, 3])
def test_order_two_is_the_ratio_of_two_u_statistics(each):
    """Means of squared kernels over pairs of rows of different prompts, from their definition."""
    x, texts = drawn(np.random.default_rng(0), 60, each)
    other = cdist(texts, texts) > 0.0
    of_texts = kernels(texts, texts, 2.0) ** 2
    both = of_texts * kernels(x, x, 2.5) ** 2
    found = gb.conditional_vendi(x, texts, **WIDTHS)
    plain = of_texts[other].mean() / both[other].mean()
    assert found.conditional.value == pytest.approx(plain, rel=0.01)  # less the logarithm's bias
    product = found.prompts.value * found.conditional.value
    assert found.joint.value == pytest.approx(product, rel=1e-9)
    assert found.conditional.stderr < found.joint.stderr


@pytest.mark.parametrize("order", [1.0, 2.0, np.inf])
def test_an_echo_of_the_prompt_adds_nothing(order):
    """Outputs that are all alike have conditional diversity 1."""
    _, texts = drawn(np.random.default_rng(1), 100, 1)
    same = np.zeros((100, 2))
    found = gb.conditional_vendi(same, texts, order=order, **WIDTHS).conditional
    assert found.value == pytest.approx(1.0, abs=1e-6)


def expected(power, columns, sigmas):
    """E exp(-power/2 Σ D²/σ²) for D ~ N(0, C), C that of the differences of two rows."""
    covariance = np.kron([[2.0, 2.0], [2.0, 4.0]], np.eye(3))[:columns, :columns]
    weights = power / np.repeat(sigmas, 3)[:columns] ** 2
    return np.linalg.det(np.eye(columns) + weights[:, None] * covariance) ** -0.5


@pytest.mark.statistical
@pytest.mark.parametrize(("prompts", "each"), [(60, 1), (60, 4)])
def test_intervals_cover(prompts, each):
    """H0: 94 % cover. False alarms below 1e-6; 80 % is seen with 99 %."""
    sigmas = [2.0, 2.5]
    truth = expected(2, 3, sigmas) / expected(2, 6, sigmas)
    rng, hits, runs = np.random.default_rng(2), 0, 200
    for _ in range(runs):
        found = gb.conditional_vendi(*drawn(rng, prompts, each), **WIDTHS).conditional
        hits += found.low <= truth <= found.high
    assert hits >= binom.ppf(1e-6, runs, 0.94)


def test_the_joint_kernel_distance_is_a_u_statistic_over_prompts():
    """h(g, g') = k_T (k(x, x') - k(x, y') - k(y, x') + k(y, y')), pairs of different prompts."""
    rng = np.random.default_rng(3)
    x, texts = drawn(rng, 50, 2)
    y = texts + rng.normal(size=texts.shape) + 0.5
    between = kernels(x, y, 2.5)
    h = kernels(texts, texts, 2.0) * (kernels(x, x, 2.5) - between - between.T + kernels(y, y, 2.5))
    expected_value = h[cdist(texts, texts) > 0.0].mean()
    found = gb.kernel_distance(x, y, kernel="rbf", prompts=texts, **WIDTHS)
    assert found.value == pytest.approx(expected_value, rel=1e-9)
    swapped = gb.kernel_distance(x, y[::-1], kernel="rbf", prompts=(texts, texts[::-1]), **WIDTHS)
    assert swapped.value == pytest.approx(found.value, rel=1e-9)


def test_prompts_that_cannot_be_used_are_refused():
    x, texts = drawn(np.random.default_rng(4), 20, 2)
    with refused("prompts", "text encoder"):
        gb.conditional_vendi(x, np.repeat(np.arange(20), 2))
    with refused("prompts", "39"):
        gb.conditional_vendi(x, texts[1:])
    with refused("x", "Sample"):
        gb.conditional_vendi(gb.Sample(x), texts)
    with refused("bandwidth"):
        gb.conditional_vendi(x, texts, bandwidth=0.0)
    with refused("prompts", "rbf"):
        gb.kernel_distance(x, x + 1.0, prompts=texts)
