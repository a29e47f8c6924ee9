"""References of which only statistics are known: coverage, kept and borrowed rows, unknown size."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from scipy.linalg import sqrtm
from scipy.stats import binom

import genbounds as gb
from genbounds.cli import main
from genbounds.estimators import FrechetReference
from tests.warnings_of import codes


def coverage(fake, real, truth, *, runs):
    """Coverage of references from `real`(rng), and how large standard errors are in truth."""
    hits, values, stderrs = 0, [], []
    for stream in np.random.SeedSequence(0).spawn(runs):
        rng = np.random.default_rng(stream)
        found = gb.frechet_distance(fake(rng), real(rng))
        hits += found.low <= truth <= found.high
        values.append(found.value)
        stderrs.append(found.stderr)
    return hits, np.array(values), np.array(stderrs)


def test_curvature_of_known_moments_is_a_second_derivative():
    """Along the influence of Gaussian rows, which moves μ by 2 Σ gap and Σ by 2 Σ (I - T) Σ."""
    root = np.array([[1.2, 0.0, 0.0], [0.3, 1.0, 0.0], [0.1, 0.2, 0.9]])
    mean, cov, n = np.array([0.5, 0.0, -0.2]), root @ root.T, 500
    other = np.diag([1.0, 2.0, 0.5])
    half = np.sqrt(other)
    transport = half @ np.linalg.inv(sqrtm(half @ cov @ half)) @ half
    moves = 2.0 * cov @ mean, 2.0 * cov @ (np.eye(3) - transport) @ cov

    def distance(step):
        mean_there, cov_there = mean + step * moves[0], cov + step * moves[1]
        return mean_there @ mean_there + np.trace(
            cov_there + other - 2.0 * sqrtm(half @ cov_there @ half)
        )

    h = 1e-3
    expected = (distance(h) - 2.0 * distance(0.0) + distance(-h)) / (2.0 * h**2) / n**2
    reference = FrechetReference(gb.Moments(np.zeros(3), other))
    found = reference.estimate(gb.Moments(mean, cov, n=n)).sample.curvature
    assert found == pytest.approx(expected, rel=1e-4, abs=0.0)


@pytest.mark.parametrize("scale", [0.8, 1.4])
def test_gaussian_reference_of_eight_samples_per_dimension(scale):
    """H0: at least 90 % at nominal 95 % of 200, missed with probability 1e-6.

    The ratio of standard error and scatter has a relative error of 0.05: half as much again, or a
    third too little, is seen.
    """
    d, m = 8, 64
    fake = gb.Moments(np.zeros(d), scale**2 * np.eye(d))
    truth = d * (scale - 1.0) ** 2

    def real(rng):
        return gb.Moments.from_features(rng.normal(size=(m, d)))

    hits, values, stderrs = coverage(lambda rng: fake, real, truth, runs=200)
    assert hits >= binom.ppf(1e-6, 200, 0.9)
    assert 0.75 < stderrs.mean() / values.std() < 1.4
    assert abs(values.mean() - truth) < 0.35 * values.std()  # five standard errors


def scaled_rows(rng, n, scale=1.0):
    """Gaussian rows of lognormal sizes: fourth moments are e times those of Gaussian ones."""
    return scale * rng.normal(size=(n, 8)) * np.exp(0.5 * rng.normal(size=(n, 1)))


@pytest.mark.slow
@pytest.mark.parametrize("keep", [0, 100])
def test_fourth_moments_are_kept_or_borrowed(keep):
    """As above, 80 times. Gaussian fourth moments would cover 60 %: power 0.97."""
    hits, _, _ = coverage(
        lambda rng: scaled_rows(rng, 800, 1.3),
        lambda rng: gb.Moments.from_features(scaled_rows(rng, 100), keep=keep),
        8.0 * np.exp(0.5) * 0.3**2,
        runs=80,
    )
    assert hits >= binom.ppf(1e-6, 80, 0.9)


def test_borrowed_fourth_moments_are_nearly_the_own_ones():
    """For Gaussian rows bias and variance are half of that and less."""
    rng = np.random.default_rng(2)
    fake, real = scaled_rows(rng, 4000, 1.3), scaled_rows(rng, 4000)
    own, borrowed = (
        FrechetReference(given).estimate(fake, estimator="plugin").reference
        for given in (real, gb.Moments.from_features(real))
    )
    assert borrowed.bias == pytest.approx(own.bias, rel=0.15)
    assert borrowed.variance == pytest.approx(own.variance, rel=0.35)


def test_kept_rows_are_used_and_said():
    """All rows kept are as good as the rows themselves; without them a caution says so."""
    rng = np.random.default_rng(3)
    fake, real = scaled_rows(rng, 800, 1.3), scaled_rows(rng, 400)
    rows, kept, none = (
        FrechetReference(given).estimate(fake, estimator="plugin")
        for given in (
            real,
            gb.Moments.from_features(real, keep=400),
            gb.Moments.from_features(real),
        )
    )
    assert kept.reference.variance == pytest.approx(rows.reference.variance, rel=1e-9)
    assert kept.reference.bias == pytest.approx(rows.reference.bias, rel=0.05)  # of third order too
    assert "moments-only" in codes(none, "caution")
    assert "moments-only" not in codes(kept)
    with_others = gb.Moments.from_features(real, keep=100, seed=1)
    assert FrechetReference(with_others).estimate(fake).reference != kept.reference


def test_size_that_nobody_knows(tmp_path):
    rng = np.random.default_rng(4)
    real = rng.normal(size=(300, 8))
    fake = 1.1 * rng.normal(size=(2000, 8))
    np.savez(tmp_path / "plain.npz", mu=real.mean(axis=0), sigma=np.cov(real.T))
    unknown = gb.Moments.load(tmp_path / "plain.npz")
    assert not unknown.size_known
    found = gb.frechet_distance(fake, unknown)
    assert not found.reliable
    assert codes(found, "unreliable") == {"reference-size-unknown"}
    assert next(w for w in found.warnings if w.code == "reference-size-unknown").remedy
    told = gb.Moments.load(tmp_path / "plain.npz", n=300)
    assert told.n == 300
    assert gb.frechet_distance(fake, told).value < found.value
    exact = gb.Moments(unknown.mean, unknown.cov)
    assert "reference-size-unknown" not in codes(gb.frechet_distance(fake, exact))
    for name, reference in {"unknown": unknown, "told": told, "exact": exact}.items():
        models = {"near": fake, "far": 1.5 * rng.normal(size=(2000, 8))}
        ranking = gb.compare(models, reference)
        assert ranking.scores["near"].reliable == (name != "unknown")
        assert (ranking.reference_rows_needed is not None) == (name == "unknown")
        if name == "unknown":  # far apart: few rows are enough, the rates are of the order d
            assert 2 <= ranking.reference_rows_needed < 50


def test_kept_rows_survive_a_file(tmp_path):
    real = np.random.default_rng(5).normal(size=(300, 8))
    moments = gb.Moments.from_features(real, keep=64)
    moments.save(tmp_path / "reference.npz")
    again = gb.Moments.load(tmp_path / "reference.npz")
    assert (again.n, again.size_known) == (300, True)
    np.testing.assert_array_equal(again.rows, moments.rows)
    assert {tuple(row) for row in again.rows} <= {tuple(row) for row in real}
    fake = 1.2 * np.random.default_rng(6).normal(size=(500, 8))
    assert gb.frechet_distance(fake, again) == gb.frechet_distance(fake, moments)
    with np.load(tmp_path / "reference.npz") as file:  # as pytorch-fid reads it
        np.testing.assert_allclose(file["sigma"], np.cov(real.T))


@pytest.mark.parametrize("n", [2, 50, 63])
def test_a_sample_is_no_smaller_than_the_rows_kept_of_it(n, tmp_path, capsys):
    rng = np.random.default_rng(8)
    path = tmp_path / "kept.npz"
    gb.Moments.from_features(rng.normal(size=(300, 4)), keep=64).save(path)
    with pytest.raises(gb.InputError, match="keeps 64 rows of its sample"):
        gb.Moments.load(path, n=n)
    assert gb.Moments.load(path, n=64).n == 64
    np.save(tmp_path / "new.npy", rng.normal(size=(80, 4)))
    assert main(["score", str(path), str(tmp_path / "new.npy"), "--reference-n", str(n)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def as_set(rows):
    return {tuple(row) for row in rows}


def test_moments_keep_a_random_part_through_merge_and_update():
    """The same part in any order; all of them while there are fewer than the limit."""
    rows = np.random.default_rng(7).normal(size=(900, 3))
    pieces = np.split(rows, [100, 200, 600])
    parts = [gb.Moments.from_features(piece, keep=150) for piece in pieces]
    there, back = parts[0].merge(parts[1]), parts[3].merge(parts[2])
    assert as_set(there.rows) <= as_set(rows[:200])
    assert len(there.rows) == 150
    whole, reverse = there.merge(parts[2]).merge(parts[3]), back.merge(parts[1]).merge(parts[0])
    assert len(whole.rows) == 150
    assert as_set(whole.rows) == as_set(reverse.rows)
    assert gb.Moments.empty(3).merge(parts[0]).rows is parts[0].rows
    assert parts[0].merge(gb.Moments.from_features(rows[100:])).rows is None
    grown = gb.Moments.empty(3, keep=150)
    assert grown.rows is None
    grown.update(pieces[0])
    assert as_set(grown.rows) == as_set(pieces[0])
    for piece in pieces[1:]:
        grown.update(piece)
    assert len(grown.rows) == 150
    assert as_set(grown.rows) <= as_set(rows)
    np.testing.assert_allclose(grown.cov, np.cov(rows.T))


@pytest.mark.parametrize("keep", [(100, 100, 100), (400, 400, 100)])
def test_every_row_is_kept_as_often(keep):
    """Of parts of 70, 200 and 730 rows; each count is 8 standard errors wide: false alarm 1e-14.

    Parts that entered alike whatever their size would be off by 30 of them; and those that keep
    all their rows, if all of these entered beside a tenth of the others, by 60.
    """
    counts, total = np.zeros(3), 0
    for seed in range(200):
        rows = np.random.default_rng(seed).normal(size=(1000, 1))
        pieces = np.split(rows, [70, 270])
        parts = [
            gb.Moments.from_features(piece, keep=limit, seed=seed)
            for piece, limit in zip(pieces, keep, strict=True)
        ]
        whole = parts[0].merge(parts[1]).merge(parts[2])
        counts += [len(as_set(piece) & as_set(whole.rows)) for piece in pieces]
        total += len(whole.rows)
    expected = total * np.array([0.07, 0.2, 0.73])
    assert (np.abs(counts - expected) < 8.0 * np.sqrt(expected)).all()


def test_parts_of_one_size_are_drawn_from_apart():
    """With the same keys each of two parts would give half of what is kept, every time."""
    counts = set()
    for seed in range(20):
        pieces = np.random.default_rng(seed).normal(size=(2, 200, 1))
        whole, other = (gb.Moments.from_features(piece, keep=100) for piece in pieces)
        counts.add(len(as_set(pieces[0]) & as_set(whole.merge(other).rows)))
    assert len(counts) > 3


@pytest.mark.slow
def test_merged_moments_cover():
    """Of rows with heavy fourth moments, in four parts: 200 times, as a reference in one piece."""
    hits, _, _ = coverage(
        lambda rng: scaled_rows(rng, 800, 1.3),
        lambda rng: functools.reduce(
            gb.Moments.merge,
            [gb.Moments.from_features(scaled_rows(rng, 100), keep=200) for _ in range(4)],
        ),
        8.0 * np.exp(0.5) * 0.3**2,
        runs=200,
    )
    assert hits >= binom.ppf(1e-6, 200, 0.9)
