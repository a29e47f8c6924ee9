"""What an object keeps is what it was given: through changes of the array, and through a pickle."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import genbounds as gb
import genbounds.samples

RNG = np.random.default_rng(0)


def test_a_sample_does_not_follow_its_array():
    x, real = RNG.normal(size=(200, 3)), RNG.normal(size=(300, 3))
    sample = gb.Sample(x)
    before = gb.frechet_distance(sample, real)
    x += 5.0
    assert gb.frechet_distance(sample, real) == before


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_large_sample_that_was_changed_is_refused(monkeypatch, order):
    monkeypatch.setattr(genbounds.samples, "LARGEST_COPY", 1000)
    x, real = np.array(RNG.normal(size=(5000, 3)), order=order), RNG.normal(size=(300, 3))
    sample = gb.Sample(x)
    assert np.shares_memory(sample.features, x)
    gb.frechet_distance(sample, real)
    x[4321, 2] += 1e-9
    with pytest.raises(gb.InputError, match="were changed"):
        gb.frechet_distance(sample, real)


def test_a_mapped_file_is_not_copied(tmp_path):
    np.save(tmp_path / "x.npy", RNG.normal(size=(100, 3)))
    x = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert np.shares_memory(gb.Sample(x).features, x)


METRICS = {"fd": {}, "vendi": {"order": 1.0}, "recall": {"splits": 4}}


@pytest.mark.parametrize("metric", METRICS)
def test_a_monitor_goes_on_after_a_pickle(metric):
    rng = np.random.default_rng(1)
    real = rng.normal(size=(300, 3))
    looks = [scale * rng.normal(size=(300, 3)) for scale in (2.0, 1.2, 1.0, 40.0)]
    asked = {"looks": 4, "metric": metric, "options": METRICS[metric]}
    whole, parted = gb.Monitor(real, **asked), gb.Monitor(real, **asked)
    for step, x in enumerate(looks):
        parted = pickle.loads(pickle.dumps(parted))  # noqa: S301 - our own bytes
        # As written: an end of an interval that is not known equals no other.
        assert repr(parted.update(step, x)) == repr(whole.update(step, x))
    assert repr(parted.track()) == repr(whole.track())


def test_a_monitor_of_means_goes_on_after_a_pickle():
    x = (RNG.random((3, 100, 1)) < 0.9).astype(float)
    monitor = gb.Monitor(looks=3, metric="mean", options={"bounds": (0, 1)})
    for step, values in enumerate(x):
        monitor = pickle.loads(pickle.dumps(monitor))  # noqa: S301 - our own bytes
        monitor.update(step, values)
    assert len(monitor.looks) == 3


def test_a_winner_over_nobody_is_no_winner():
    def broken(n, rng):
        raise TypeError("my own")

    arms = {"a": broken, "b": lambda n, rng: rng.normal(size=(n, 3))}
    found = gb.select.run(arms, RNG.normal(size=(300, 3)), budget=500)
    assert not found.certified
    assert "compared with nothing" in repr(found).splitlines()[0]
    assert "my own" in found.set_aside["a"]


def test_fd_infinity_against_a_small_reference_is_unreliable():
    """The bias it leaves is two standard errors of the rest."""
    x, real = RNG.normal(size=(3000, 16)), RNG.normal(size=(200, 16))
    found = gb.frechet_distance(x, real, estimator="infinity")
    assert {w.severity for w in found.warnings if w.code == "bias-left"} == {"unreliable"}
    exact = gb.frechet_distance(x, gb.Moments(np.zeros(16), np.eye(16)), estimator="infinity")
    assert exact.reliable
