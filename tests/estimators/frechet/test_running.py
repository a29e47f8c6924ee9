"""The distance that follows a sample, against that from all rows at once."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy

from genbounds.estimators import FrechetReference, Moments, RunningFrechet

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


def following(d):
    """A distance to N(0, I), whose trace of the root is that of the rows alone."""
    return RunningFrechet(FrechetReference(Moments(np.zeros(d), np.eye(d))))


def check_follows(running, seen, *, rel=RTOL):
    rows = np.concatenate(seen)
    expected = nuclear_norm(rows - rows.mean(axis=0)) / math.sqrt(len(rows) - 1)
    assert running.root == pytest.approx(expected, rel=rel)


@pytest.mark.parametrize("decay", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("batch", [2, 5, 40])
def test_the_root_follows_the_singular_values(decay, batch):
    """From no row over as many as dimensions (150) to twice as many."""
    running, seen = following(150), []
    for step, rows in enumerate(stream(150, 320, decay=decay, batch=batch, repeats=True)):
        running.add(rows)
        seen.append(rows)
        if step % 7 == 0 or batch == 40:
            check_follows(running, seen)


def test_small_dimensions_take_all_eigenvalues():
    running, seen = following(6), []
    for rows in stream(6, 40, decay=1.0, batch=3):
        running.add(rows)
        seen.append(rows)
        check_follows(running, seen, rel=1e-7)
    assert running.nbytes == 6 * 6 * 8


def test_rows_without_spread_add_nothing():
    running, seen = following(200), [np.zeros((3, 200))]
    running.add(seen[0].copy())
    assert running.root == 0.0
    for _ in range(30):
        running.add(np.ones((1, 200)))
    assert running.root == pytest.approx(math.sqrt(200 * 3 * 30 / 33 / 32), rel=1e-6)


@pytest.mark.parametrize("seed", [0, 1, 11])
@pytest.mark.parametrize("apart", [1e-6, 1e-8, 1e-9])
def test_rows_near_to_earlier_ones(apart, seed):
    """A generator that repeats itself up to a little noise: their rest is no new direction.

    Projected once, 1e-9 and seed 11 end 3e-6 off on every kernel of OpenBLAS that was tried.
    """
    rng, running, seen = np.random.default_rng(seed), following(150), []
    pool = rng.standard_normal((60, 150))
    for _ in range(30):
        rows = pool[rng.integers(0, 60, 5)] + apart * rng.standard_normal((5, 150))
        running.add(rows)
        seen.append(rows)
        check_follows(running, seen)


@pytest.mark.parametrize("batch", [5, 20])
def test_rows_that_wait_fill_several_panels(batch):
    """Of 420 directions up to 84 rows wait for the next decomposition, once there are as many."""
    running, seen = following(420), []
    for step, rows in enumerate(stream(420, 580, decay=1.0, batch=batch)):
        running.add(rows)
        seen.append(rows)
        if step * batch % 100 == 60 or step * batch > 500:
            check_follows(running, seen)


def test_no_decomposition_for_every_row(monkeypatch):
    calls, running = [], following(400)
    eigh = scipy.linalg.eigh
    monkeypatch.setattr(
        scipy.linalg, "eigh", lambda m, **how: calls.append(m.shape[0]) or eigh(m, **how)
    )
    for rows in stream(400, 300, decay=1.0, batch=5):
        running.add(rows)
    assert 4 <= len(calls) <= 12  # of 60 batches
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
def test_the_root_scales_with_its_rows(scale):
    plain, scaled = following(150), following(150)
    for rows in stream(150, 60, decay=1.0, batch=5):
        plain.add(rows)
        scaled.add(scale * rows)
    assert scaled.root == pytest.approx(scale * plain.root, rel=1e-9, abs=0.0)
