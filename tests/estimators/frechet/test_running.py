"""The distance that follows a sample, against that from all rows at once."""

from __future__ import annotations

import math

import numpy as np
import pytest

from genbounds.estimators import FrechetReference, Moments, RunningFrechet
from genbounds.estimators.frechet import _trace_root as trace_root_module
from genbounds.estimators.frechet._trace_root import TraceRoot

# Relative to the sum of the singular values; worst seen 5e-8 over spectra, batches and repeats.
RTOL = 3e-7


def nuclear_norm(rows):
    return np.linalg.svd(rows, compute_uv=False).sum()


def stream(r, n, *, decay, batch, repeats=False):
    rng = np.random.default_rng(r + n)
    scale = np.arange(1, r + 1) ** (-decay / 2)
    for start in range(0, n, batch):
        rows = rng.standard_normal((min(batch, n - start), r)) * scale
        rows *= np.exp(0.3 * rng.standard_normal((rows.shape[0], 1)))
        if repeats and start // batch % 5 == 2:
            rows[1:] = rows[0]  # a collapsed generator
        yield rows


@pytest.mark.parametrize("decay", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("batch", [1, 5, 40])
def test_trace_root_follows_the_singular_values(decay, batch):
    """From no row over as many as dimensions (150) to twice as many."""
    total, seen, waited = TraceRoot(150), [], 0
    for step, rows in enumerate(stream(150, 320, decay=decay, batch=batch, repeats=True)):
        total.add(rows)
        seen.append(rows)
        if step % 7 == 0 or batch == 40:
            waited += total._pending > 0
            assert total.value() == pytest.approx(nuclear_norm(np.concatenate(seen)), rel=RTOL)
    assert waited or batch == 40  # the determinants had their part in it


def test_small_dimensions_take_all_eigenvalues():
    total, seen = TraceRoot(6), []
    for rows in stream(6, 40, decay=1.0, batch=3):
        total.add(rows)
        seen.append(rows)
        expected = nuclear_norm(np.concatenate(seen))
        assert total.value() == pytest.approx(expected, rel=1e-7)
    assert total.nbytes == 6 * 6 * 8


def test_rows_without_spread_add_nothing():
    total = TraceRoot(200)
    total.add(np.zeros((3, 200)))
    assert total.value() == 0.0
    row = np.ones((1, 200))
    for _ in range(30):
        total.add(row)
    assert total.value() == pytest.approx(math.sqrt(30 * 200), rel=1e-6)


@pytest.mark.parametrize("seed", [0, 1, 11])
@pytest.mark.parametrize("apart", [1e-6, 1e-8, 1e-9])
def test_rows_near_to_earlier_ones(apart, seed):
    """A generator that repeats itself up to a little noise: their rest is no new direction.

    Projected once, 1e-9 and seed 11 end 3e-6 off on every kernel of OpenBLAS that was tried.
    """
    rng, total, seen = np.random.default_rng(seed), TraceRoot(150), []
    pool = rng.standard_normal((60, 150))
    for _ in range(30):
        rows = pool[rng.integers(0, 60, 5)] + apart * rng.standard_normal((5, 150))
        total.add(rows)
        seen.append(rows)
        assert total.value() == pytest.approx(nuclear_norm(np.concatenate(seen)), rel=RTOL)


def test_rows_that_come_many_at_a_time_wait_as_well():
    total, seen = TraceRoot(300), []
    for rows in stream(300, 260, decay=1.0, batch=20):
        total.add(rows)
        seen.append(rows)
    assert total._pending >= 20 > trace_root_module.AT_ONCE
    assert total.value() == pytest.approx(nuclear_norm(np.concatenate(seen)), rel=RTOL)


@pytest.mark.parametrize("batch", [1, 5, 20])
def test_rows_that_wait_fill_several_panels(monkeypatch, batch):
    monkeypatch.setattr(trace_root_module, "PANEL", 8)
    total, seen, most = TraceRoot(300), [], 0
    for rows in stream(300, 260, decay=1.0, batch=batch):
        total.add(rows)
        seen.append(rows)
        most = max(most, len(total._whitening))
        if len(seen) % 5 == 0:
            expected = nuclear_norm(np.concatenate(seen))
            assert total.value() == pytest.approx(expected, rel=1e-8)
    assert most >= 4


def test_the_largest_nodes_take_the_trace_alone(monkeypatch):
    found, nodes = [], []
    for far in (trace_root_module.FAR, math.inf):
        monkeypatch.setattr(trace_root_module, "FAR", far)
        total, values = TraceRoot(150), []
        for rows in stream(150, 140, decay=1.0, batch=5):
            total.add(rows)
            values.append(total.value())
        found.append(values)
        nodes.append(total._nodes.size)
    assert found[0] == pytest.approx(found[1], rel=1e-10, abs=0.0)
    assert nodes[0] < nodes[1]


def test_no_decomposition_for_every_row(monkeypatch):
    calls = []
    eigh = trace_root_module._eigh
    monkeypatch.setattr(trace_root_module, "_eigh", lambda m: calls.append(m.shape[0]) or eigh(m))
    total = TraceRoot(400)
    for rows in stream(400, 300, decay=1.0, batch=5):
        total.add(rows)
    assert len(calls) <= 12  # of 60 batches
    assert max(calls) <= 300  # never d × d before there are so many rows


@pytest.mark.parametrize(("n", "d"), [(37, 150), (400, 150), (60, 5)])
def test_running_distance_is_the_plugin(n, d):
    rng = np.random.default_rng(n)
    rows = (rng.standard_normal((n, d)) * np.linspace(1.5, 0.2, d) + 3.0).astype(np.float32)
    reference = FrechetReference(rng.standard_normal((3 * d, d)))
    running = RunningFrechet(reference)
    assert running.loss() == -math.inf
    for start in range(0, n, 7):
        running.add(rows[start : start + 7])
    assert running.n == n
    expected = reference.plugin(rows)
    assert running.loss() == pytest.approx(expected, rel=1e-6)
    x = rows.astype(np.float64)
    assert running.trace == pytest.approx(np.trace(np.cov(x, rowvar=False)), rel=1e-10)
    gap = np.linalg.norm(x.mean(axis=0) - reference.moments.mean)
    assert running.mean_gap == pytest.approx(gap, rel=1e-10)


def test_running_distance_with_a_singular_reference():
    d, rng = 160, np.random.default_rng(1)
    cov = np.diag(np.r_[np.ones(140), np.zeros(20)])
    reference = FrechetReference(Moments(np.zeros(d), cov))
    rows = rng.standard_normal((200, d))
    running = RunningFrechet(reference)
    for start in range(0, 200, 5):
        running.add(rows[start : start + 5])
    assert running.loss() == pytest.approx(reference.plugin(rows), rel=1e-6)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_trace_root_scales_with_its_rows(scale):
    plain, scaled = TraceRoot(150), TraceRoot(150)
    for rows in stream(150, 60, decay=1.0, batch=5):
        plain.add(rows)
        scaled.add(scale * rows)
    assert scaled.value() == pytest.approx(scale * plain.value(), rel=1e-9, abs=0.0)
