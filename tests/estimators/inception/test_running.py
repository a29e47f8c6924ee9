"""The score that follows a sample, against that from all rows at once."""

from __future__ import annotations

import math

import numpy as np
import pytest

from genbounds.estimators import RunningInception, inception_estimate
from genbounds.validation import InputError


def test_running_inception_is_the_plugin():
    p = np.random.default_rng(0).dirichlet([0.2] * 12, 300)
    running = RunningInception(12)
    assert running.loss() == -math.inf
    for start in range(0, 300, 9):
        running.add(p[start : start + 9])
    expected = inception_estimate(p, estimator="plugin").value
    assert running.loss() == pytest.approx(-expected, rel=1e-12)
    values = np.column_stack([p, -(p * np.log(p)).sum(axis=1)])
    np.testing.assert_allclose(running.variances, values.var(axis=0, ddof=1), rtol=1e-10)


@pytest.mark.parametrize("bad", [[[0.5, 0.6]], [[1.5, -0.5]], [[math.nan, 1.0]]])
def test_running_inception_refuses_what_is_no_posterior(bad):
    with pytest.raises(InputError, match=r"`draw`.* row 0"):
        RunningInception(2).add(np.array(bad))
