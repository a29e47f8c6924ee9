from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from genbounds.select import critical_value, crossing_probability, look_sizes
from genbounds.validation import InputError

# Pocock (1977), Table 1: constants of the two-sided 5 % group-sequential test, equal spacing.
POCOCK = {1: 1.960, 2: 2.178, 3: 2.289, 4: 2.361, 5: 2.413, 10: 2.555}


@pytest.mark.parametrize("looks", POCOCK)
def test_agrees_with_published_group_sequential_constants(looks):
    sizes = tuple(range(100, 100 * looks + 1, 100))
    assert critical_value(0.05, sizes, sides=2) == pytest.approx(POCOCK[looks], abs=6e-4)


@pytest.mark.parametrize("sides", [1, 2])
@pytest.mark.parametrize("error", [0.2, 0.05, 1e-3, 1e-6])
def test_critical_value_inverts_crossing_probability(sides, error):
    sizes = look_sizes(100, 50_000)
    critical = critical_value(error, sizes, sides=sides)
    # brentq stops within 1e-10 of the root; quadrature leaves 1e-12
    assert crossing_probability(critical, sizes, sides=sides) == pytest.approx(error, rel=1e-6)
    assert critical < stats.norm.isf(error / sides / len(sizes))  # better than the union bound
    assert critical > stats.norm.isf(error / sides)


def test_more_looks_need_a_higher_value():
    values = [critical_value(0.01, look_sizes(100, limit)) for limit in (100, 200, 1_000, 10_000)]
    assert values == sorted(values)
    assert len(set(values)) == len(values)


@pytest.mark.statistical
@pytest.mark.parametrize("order", [1, 2])
def test_crossing_probability_by_simulation(order):
    """Null: z-statistics of either order cross with the computed probability, unequal spacing.

    40,000 paths; two-sided binomial gate at 1e-6. Power: a boundary computed for one look less
    (negative control below) misses by more than the gate allows.
    """
    sizes, error, paths = (20, 25, 40, 41, 80, 200), 0.05, 40_000
    critical = critical_value(error, sizes, order=order)
    rng = np.random.default_rng(1)
    # Brownian motion at times n^order has correlations (n_k / n_l)^(order/2).
    times = np.array((0, *sizes), dtype=float) ** order
    steps = np.sqrt(np.diff(times))
    z = np.cumsum(rng.standard_normal((paths, len(sizes))) * steps, axis=1) / np.sqrt(times[1:])
    low, high = stats.binom.ppf([5e-7, 1 - 5e-7], paths, error)
    assert low <= (z >= critical).any(axis=1).sum() <= high
    too_small = critical_value(error, sizes[:3], order=order)
    assert (z >= too_small).any(axis=1).sum() > high


def test_arms_that_run_out_are_looked_at_with_all_their_rows():
    """Up to a fifth of a file was drawn and never scored."""
    assert look_sizes(100, 196, ends=[196, 196]) == (100, 125, 157, 196)
    assert look_sizes(100, 480, ends=[130, 480, 9e9]) == (
        100, 125, 130, 163, 204, 255, 319, 399, 480,
    )  # fmt: skip
    assert look_sizes(100, 200, ends=[130, 135, 140]) == (100, 125, 130, 140, 175, 200)
    assert look_sizes(100, 500, ends=[300]) == (100, 125, 157, 197, 247, 300, 375, 469, 500)
    assert look_sizes(100, 125, ends=[90]) == (100, 125)


def test_look_sizes():
    assert look_sizes(100, 100) == (100,)
    sizes = look_sizes(100, 1_000, growth=1.5)
    assert sizes == (100, 150, 225, 338, 507, 761, 1_000)
    assert look_sizes(2, 10, growth=1.1) == (2, 3, 4, 5, 6, 7, 8, 9, 10)


@pytest.mark.parametrize(
    ("first", "limit", "growth", "message"),
    [
        (100, 99, 1.25, "`limit` .99 samples per arm. lies below the first look"),
        (100, 1_000, 1.0, "`growth` must be at least 1.1"),
        (100, 1_000, float("nan"), "`growth` must be at least 1.1"),
    ],
)
def test_look_sizes_refuses(first, limit, growth, message):
    with pytest.raises(InputError, match=message):
        look_sizes(first, limit, growth=growth)
