"""Kernel scores that follow a sample, against the same scores from all rows at once."""

from __future__ import annotations

import math

import numpy as np
import pytest

import genbounds as gb
from genbounds.estimators import KernelReference, PolynomialKernel, RunningKid, metric_spec

KERNEL_METRICS = {
    "kid": {},
    "kid, degree 2": {"degree": 2, "offset": 0.5},
    "rke": {},
    "rke, laplace": {"kernel": "laplace"},
    "rke, cosine": {"kernel": "cosine"},
    "rke, polynomial": {"kernel": PolynomialKernel(degree=2)},
}


@pytest.mark.parametrize("case", KERNEL_METRICS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_kernel_scores_follow_the_sample(case, dtype):
    """Worst relative difference seen: 3e-15 (float64), 2e-15 (float32: sums are in float64)."""
    name = case.split(",")[0]
    rng = np.random.default_rng(4)
    reference = rng.standard_normal((80, 6))
    metric = metric_spec(name).prepared(reference, KERNEL_METRICS[case])
    running = metric.follow(6)
    assert running.loss() == -math.inf
    rows = rng.normal(0.3, size=(700, 6)).astype(dtype)
    done = 0
    for end in (1, 6, 11, 250, 300, 700):
        running.add(rows[done:end])
        done = end
        assert running.n == end
        if end >= metric.minimum:
            assert running.loss() == pytest.approx(metric.plugin_loss(rows[:end]), rel=1e-12)
    assert running.nbytes >= rows.nbytes


def test_rows_of_a_weighted_reference_count_by_their_weights():
    rng = np.random.default_rng(5)
    reference, weights = rng.normal(size=(100, 3)), rng.integers(1, 4, size=100)
    rows = rng.normal(size=(60, 3))
    losses = []
    for real in (gb.Sample(reference, weights=weights), np.repeat(reference, weights, axis=0)):
        running = RunningKid(KernelReference(real))
        running.add(rows)
        losses.append(running.loss())
    assert losses[0] == pytest.approx(losses[1], rel=1e-12)


def test_a_step_of_a_kernel_score_meets_its_batch_only(monkeypatch):
    """Kernel values of one step: batch × (rows + reference), not rows² (measured by counting)."""
    rng = np.random.default_rng(4)
    reference = KernelReference(rng.standard_normal((80, 6)))
    counted = []
    block = type(reference._kernel).block
    monkeypatch.setattr(
        type(reference._kernel),
        "block",
        lambda self, a, b: counted.append(len(a) * len(b)) or block(self, a, b),
    )
    running = RunningKid(reference)
    rows = rng.standard_normal((305, 6))
    running.add(rows[:300])
    running.loss()
    counted.clear()
    running.add(rows[300:])
    running.loss()
    assert sum(counted) == 5 * (300 + 5 + 80)
