"""Realism of single rows against its definition and known values."""

from __future__ import annotations

import numpy as np
import pytest

import genbounds as gb
from tests.estimators.neighbours import dense
from tests.refusal import refused

RNG = np.random.default_rng(6)
REAL = RNG.normal(size=(120, 5))
FAKE = 1.3 * RNG.normal(size=(70, 5))


def published(fake, real, k):
    """The largest ratio over the balls that are smaller than the median, one by one."""
    radii = dense.radii(real, k)
    small = np.flatnonzero(radii < np.median(radii))
    return [max(radii[i] / np.linalg.norm(y - real[i]) for i in small) for y in fake]


@pytest.mark.parametrize("k", [1, 3, 5])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_it_is_the_published_number(k, dtype):
    fake, real = FAKE.astype(dtype), REAL.astype(dtype)
    expected = published(fake.astype("f8"), real.astype("f8"), k)
    np.testing.assert_allclose(gb.realism(fake, real, k=k), expected, rtol=1e-12)


def test_known_values():
    """Of the balls 1, 1, 2, 4, 8 on a line the first two are below the median."""
    real = np.array([[0.0], [1.0], [3.0], [7.0], [15.0]])
    found = gb.realism(np.array([[0.5], [3.0], [-4.0], [1.0]]), real, k=1)
    np.testing.assert_allclose(found, [2.0, 0.5, 0.25, np.inf])


def test_share_above_one_is_the_precision_of_the_small_balls():
    radii = dense.radii(REAL, 3)
    between = np.linalg.norm(FAKE[:, None] - REAL, axis=2)
    held = (between <= radii)[:, radii < np.median(radii)].any(axis=1)
    np.testing.assert_array_equal(gb.realism(FAKE, REAL) >= 1.0, held)


def test_unit_and_origin_do_not_matter():
    plain = gb.realism(FAKE, REAL)
    np.testing.assert_array_equal(gb.realism(FAKE * 2.0**300, REAL * 2.0**300), plain)
    far = gb.realism(gb.Sample(FAKE + 2.0**20), REAL + 2.0**20)
    np.testing.assert_allclose(far, plain, rtol=1e-8)


@pytest.mark.parametrize(
    ("change", "subjects"),
    [
        ({"k": 0}, ("`k`", "0")),
        ({"real": REAL[:3]}, ("`real`", "4")),
        ({"fake": FAKE[:, :2]}, ("`fake`", "2 features", "5")),
        ({"fake": np.where(FAKE > 2.0, np.nan, FAKE)}, ("`fake`", "NaN")),
        ({"real": np.ones((9, 5))}, ("`real`", "alike")),
    ],
)
def test_refusals(change, subjects):
    with refused(*subjects):
        gb.realism(**{"fake": FAKE, "real": REAL} | change)
