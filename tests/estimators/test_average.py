"""The mean of independent estimates."""

from __future__ import annotations

import math

import numpy as np
import pytest

from genbounds.core.difference import average
from genbounds.core.estimate import Estimate, SampleError
from tests.warnings_of import caution, unreliable

ONE = Estimate(
    value=1.0,
    sample=SampleError(n=100, variance=4.0, degrees_of_freedom=99.0, curvature=8.0),
    reference=SampleError(n=50, variance=1.0, degrees_of_freedom=49.0),
    own_interval=lambda level: (0.9, 1.1),
    halves=np.ones(4),
    warnings=(caution("few-samples", "few"),),
)
TWO = Estimate(
    value=3.0,
    sample=SampleError(n=100, variance=4.0, degrees_of_freedom=99.0, curvature=8.0),
    warnings=(unreliable("leak", "copies", "look"),),
)


def test_values_and_errors_add_up():
    found = average([ONE, TWO], np.array([0.25, 0.75]), what="halves")
    assert found.value == pytest.approx(2.5)
    assert found.sample.variance == pytest.approx(4.0 / 16.0 + 4.0 * 9.0 / 16.0)
    assert found.reference.variance == pytest.approx(1.0 / 16.0)
    assert found.sample.curvature == pytest.approx(8.0 / 64.0 + 8.0 * 27.0 / 64.0)
    assert found.n == 200


def test_neither_has_its_own_interval_left():
    found = average([ONE, ONE], np.array([0.5, 0.5]), what="halves")
    assert found.stderr == pytest.approx(math.sqrt(2.5))
    low, high = found.interval(0.95)
    assert high - low > 3.0 * found.stderr
    assert found.halves is None


def test_doubts_are_counted():
    (warning,) = average([ONE, TWO], np.array([0.5, 0.5]), what="halves").warnings
    assert warning.code == "leak"
    assert warning.severity == "unreliable"
    assert "1 of 2 halves" in warning.message
