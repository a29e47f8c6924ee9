"""The engine: Bartlett's draws are distributed as samples; NumPy, torch and the estimator agree.

Two-sample tests are Kolmogorov–Smirnov tests at 1e-7 each, fewer than ten in a test: a false alarm
has probability below 1e-6.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import linalg, stats

import genbounds as gb
from genbounds import InputError
from genbounds.simulate import (
    FrechetArm,
    FrechetScores,
    GaussianArm,
    StudentArm,
    frechet_scores,
)

torch = pytest.importorskip("torch")

ALARM = 1e-7


def turned(values, seed):
    basis, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(values),) * 2))
    cov = (basis * values) @ basis.T
    return (cov + cov.T) / 2


POWER = 1.0 / np.arange(1.0, 7.0)
ARMS = {
    "turned": FrechetArm(
        GaussianArm(np.full(6, 0.3), turned(POWER, 1)), np.zeros(6), turned(POWER[::-1], 2)
    ),
    "diagonal": FrechetArm(GaussianArm(0.0, POWER), np.full(6, -0.5), POWER[::-1]),
    "equal": FrechetArm(GaussianArm(0.0, np.ones(6)), 0.0, np.ones(6)),
    "low rank": FrechetArm(GaussianArm(0.0, np.r_[1.0, 0.5, np.zeros(4)]), 0.0, np.ones(6)),
}


class White(SimpleNamespace):
    """White samples as the engine takes them: √n times their means, triangles of their scatter."""

    @classmethod
    def of(cls, d, n, count, seed):
        """Take `count` samples of n rows."""
        rows = np.random.default_rng(seed).standard_normal((count, n, d))
        upper = np.linalg.qr(linalg.helmert(n) @ rows, mode="r")
        return cls(mean=np.sqrt(n) * rows.mean(axis=1), triangle=np.swapaxes(upper, 1, 2))


def plain(arm, n, count, rng):
    """Sample quantities from rows, by their definition; the distance with divisor n − 1 as well."""
    rows = arm.features.draw(n * count, rng).reshape(count, n, arm.d)
    mean = rows.mean(axis=1)
    centred = rows - mean[:, None, :]
    cov = np.swapaxes(centred, 1, 2) @ centred / n
    reference = arm.facts["reference_cov"]
    products = np.linalg.eigvals(cov @ reference).real.clip(min=0.0)
    root = np.sqrt(products).sum(axis=1)
    gap = ((mean - arm.reference_mean) ** 2).sum(axis=1)
    trace, scale = np.trace(cov, axis1=1, axis2=2), n / (n - 1)
    total = gap + np.trace(reference)
    return {
        "sample_mean_gap": np.sqrt(gap),
        "sample_trace_root": root,
        "distance_plugin": total + trace - 2 * root,
        "unbiased": total + scale * trace - 2 * np.sqrt(scale) * root,
    }


NAMES = ["sample_mean_gap", "sample_trace_root", "distance_plugin"]


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("name", "n"), [("turned", 2), ("turned", 7), ("diagonal", 40), ("equal", 4), ("low rank", 7)]
)
def test_sample_quantities_are_distributed_as_those_of_samples(name, n):
    """Null: same distribution as rows, n − 1 < d (the trapezoid) and d = n − 1 included.

    Power: one degree of freedom less at n = 7 is seen, see the control below.
    """
    arm, count = ARMS[name], 2000
    slow = plain(arm, n, count, np.random.default_rng(2))
    fast = arm.statistics(NAMES, n, count, np.random.default_rng(1))
    for key in NAMES:
        assert stats.ks_2samp(fast[key], slow[key]).pvalue > ALARM, key
    scores = frechet_scores(arm, n, count, seed=1, estimator="plugin", device="cpu")
    assert stats.ks_2samp(scores.values, slow["unbiased"]).pvalue > ALARM


def test_a_wrong_degree_of_freedom_is_seen():
    arm, n, count = ARMS["turned"], 7, 3000
    wrong = arm.statistics(NAMES, n + 1, count, np.random.default_rng(1))
    slow = plain(arm, n, count, np.random.default_rng(2))
    assert stats.ks_2samp(wrong["sample_trace_root"], slow["sample_trace_root"]).pvalue < ALARM


@pytest.mark.parametrize("debias", [False, True])
@pytest.mark.parametrize("n", [4, 60])
@pytest.mark.parametrize("name", ARMS)
def test_torch_equals_numpy_for_the_same_draws(name, n, debias):
    arm = ARMS[name]
    white = White.of(6, n, 50, 3)
    here = arm.engine().evaluate(white, n, debias=debias)
    same_on_torch(arm, white, n, here, debias)


def same_on_torch(arm, white, n, here, debias):
    there = White(**{name: torch.from_numpy(array) for name, array in vars(white).items()})
    parts = arm.engine("cpu").evaluate(there, n, debias=debias)
    for field in ("gap", "trace", "roots", "bias", "variance"):
        value = getattr(here, field)
        if value is None:
            assert getattr(parts, field) is None
        else:
            # Roots of eigenvalues that are zero but for rounding are 1e-8 of the largest.
            assert_allclose(
                np.asarray(getattr(parts, field)), value, rtol=1e-9, atol=2e-7 * value.max()
            )


def test_a_sample_with_the_moments_of_the_reference_has_no_negative_distance():
    """The three traces cancel but for their rounding, of either sign."""
    rng, n = np.random.default_rng(0), 12
    white = White(mean=np.zeros((1, 6)), triangle=np.sqrt(n - 1) * np.eye(6)[None])
    distances, exact = [], []
    for seed in range(20):
        cov = turned(rng.uniform(0.5, 2.0, 6), seed)
        engine = FrechetArm(GaussianArm(0.0, cov), 0.0, cov).engine()
        parts = engine.evaluate(white, n, debias=False)
        distances.append(engine.plugin(parts)[0])
        exact.append(parts.trace[0] + engine.reference_trace - 2.0 * parts.roots[0].sum())
    assert min(exact) < 0.0 < max(exact)
    assert_allclose(distances, np.maximum(exact, 0.0), rtol=0.0, atol=1e-14)
    assert min(distances) == 0.0


@pytest.mark.parametrize("n", [24, 90, 400])
@pytest.mark.parametrize("name", ["turned", "diagonal", "equal"])
def test_scores_are_those_of_the_estimator(name, n):
    """The same sample moments through `frechet_distance`: value, interval, standard error."""
    arm = ARMS[name]
    white = White.of(6, n, 20, 4)
    engine = arm.engine()
    parts = engine.evaluate(white, n, debias=True)
    features = arm.features
    axes = np.eye(6) if features.axes is None else features.axes
    factor = axes @ (np.sqrt(features.eigenvalues)[:, None] * white.triangle)
    mean = features.mean + (white.mean * np.sqrt(features.eigenvalues)) @ axes.T / np.sqrt(n)
    reference = gb.Moments(arm.reference_mean, arm.facts["reference_cov"])
    distance, debiased = engine.plugin(parts), engine.debiased(parts, n)
    for k in range(20):
        moments = gb.Moments(mean[k], factor[k] @ factor[k].T / (n - 1), n)
        plugin = gb.frechet_distance(moments, reference, estimator="plugin")
        assert distance[k] == pytest.approx(plugin.value, rel=1e-9)
        score = gb.frechet_distance(moments, reference)
        assert max(debiased[k], 0.0) == pytest.approx(score.value, abs=1e-9)
        assert np.sqrt(parts.variance[k]) == pytest.approx(score.stderr, rel=1e-9)


@pytest.mark.nightly
@pytest.mark.statistical
@pytest.mark.parametrize("device", [None, pytest.param("cpu", marks=pytest.mark.slow)])
def test_scores_cover_and_lose_their_bias(device):
    """Null: mean zero error, 95 % coverage. False alarm < 1e-6. The control sees the plug-in."""
    arm = ARMS["turned"]
    found = frechet_scores(arm, 400, 4000, seed=1, device=device)
    # What the second order leaves of the bias is of order (d/n)² FD: far below the error here.
    assert abs(found.bias) < 5.5 * found.bias_stderr
    coverage = found.coverage()
    misses = coverage.misses
    assert coverage.tightness == pytest.approx(1.0, abs=0.1)
    # 0.5 % granted to the normal limit at n = 67 d.
    assert stats.binom.sf(misses - 1, 4000, 0.055) > 1e-6
    assert stats.binom.cdf(misses, 4000, 0.045) > 1e-6
    assert coverage.stderr == pytest.approx(np.sqrt(0.05 * 0.95 / 4000), rel=0.2)
    assert coverage.miss_low < coverage.miss < coverage.miss_high
    assert found.spread_stderr == pytest.approx(found.spread / np.sqrt(8000), rel=0.2)
    assert ("torch" if device else "NumPy") in found.device
    assert np.unique(found.values).size == 4000  # every batch has draws of its own
    biased = frechet_scores(arm, 400, 4000, seed=1, estimator="plugin", device=device)
    assert biased.bias > 6.0 * biased.bias_stderr
    with pytest.raises(InputError, match="'plugin'"):
        biased.coverage()
    again, other = (frechet_scores(arm, 400, 50, seed=seed, device=device) for seed in (1, 2))
    assert np.array_equal(again.values, frechet_scores(arm, 400, 50, seed=1, device=device).values)
    assert not np.array_equal(again.values, other.values)


@pytest.mark.statistical
def test_no_bias_is_left_at_five_samples_a_dimension():
    """Null: mean zero error. False alarm < 1e-6. The control, second order alone, is seen."""
    d, n, count = 48, 240, 600
    arm = FrechetArm(GaussianArm(0.1, np.ones(d)), 0.0, 0.5 + np.arange(d) / d)
    engine, truth = arm.engine(), arm.facts["distance"]
    parts = engine.evaluate(White.of(d, n, count, 7), n, debias=True)
    error = engine.debiased(parts, n) - truth
    assert abs(error.mean()) < 5.0 * error.std(ddof=1) / np.sqrt(count)
    second = engine.plugin(parts) - parts.bias - truth
    assert second.mean() > 20.0 * second.std(ddof=1) / np.sqrt(count)


@pytest.mark.slow
def test_scores_go_on_after_an_interruption(tmp_path):
    arm = ARMS["turned"]
    plain = frechet_scores(arm, 400, 2100)

    def stop(done, total, label):
        assert total == 3
        if done == 1:
            raise KeyError(label)

    with pytest.raises(KeyError, match="n=400"):
        frechet_scores(arm, 400, 2100, out=tmp_path, progress=stop)
    calls = []
    found = frechet_scores(arm, 400, 2100, out=tmp_path, progress=lambda *a: calls.append(a))
    assert len(calls) == 2
    for field in ("values", "low", "high"):
        assert np.array_equal(getattr(found, field), getattr(plain, field))


def test_bias_and_spread_with_their_errors_by_hand():
    """Values 1, 2, 3, 6: squares of deviations 4, 1, 0, 9, of their own deviations 49 in all."""
    values = np.array([1.0, 2.0, 3.0, 6.0])
    found = FrechetScores(
        arm="", n=2, d=1, estimator="plugin", level=0.9, truth=2.5, values=values,
        low=values, high=values, device="cpu",
    )  # fmt: skip
    assert (found.replications, found.bias) == (4, 0.5)
    assert found.spread == pytest.approx(np.sqrt(14 / 3), rel=1e-12)
    assert found.bias_stderr == pytest.approx(np.sqrt(14 / 3) / 2, rel=1e-12)
    assert found.spread_stderr == pytest.approx(np.sqrt(49 / 3) / 4 / np.sqrt(14 / 3), rel=1e-12)


def test_the_level_changes_the_interval_only():
    arm = ARMS["diagonal"]
    narrow, wide = (frechet_scores(arm, 100, 5, level=level) for level in (0.5, 0.99))
    assert np.array_equal(narrow.values, wide.values)
    assert (wide.high - wide.low > narrow.high - narrow.low).all()


def test_arm_statistics_come_from_the_engine():
    """Divisor n there; the same as from the covariance matrices of the same draws."""
    arm, names = ARMS["turned"], ["distance_plugin", "sample_mean_gap", "sample_trace_root"]
    fast = arm.statistics(names, 9, 40, np.random.default_rng(5))
    slow = arm.statistics([*names, "covariance"], 9, 40, np.random.default_rng(5))
    for name in names:
        np.testing.assert_allclose(fast[name], slow[name], rtol=1e-8)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: frechet_scores(GaussianArm(0.0, POWER), 60, 5), "`arm`"),
        (lambda: frechet_scores(FrechetArm(StudentArm(0.0, 1.0, df=5), 0.0, 1.0), 9, 5), "`arm`"),
        (lambda: frechet_scores(ARMS["equal"], 23, 5), "`n`"),
        (lambda: frechet_scores(ARMS["equal"], 1, 5, estimator="plugin"), "`n`"),
        (lambda: frechet_scores(ARMS["equal"], 30, 0), "`replications`"),
        (lambda: frechet_scores(ARMS["equal"], 30, 5, seed=-1), "`seed`"),
        (lambda: frechet_scores(ARMS["equal"], 30, 5, estimator="infinity"), "`estimator`"),
        (lambda: frechet_scores(ARMS["equal"], 30, 5, level=1.0), "`level`"),
        (lambda: frechet_scores(ARMS["equal"], 30, 5, device="abacus"), "`device`"),
    ],
)
def test_bad_arguments_are_named(call, match):
    with pytest.raises(InputError, match=match):
        call()


@pytest.mark.parametrize("replications", [1, 2])
def test_products_that_skip_zeros_equal_full_ones(replications):
    """From 512 dimensions on, on a CPU; torch multiplies full matrices."""
    values = 1.0 / np.arange(1.0, 513.0)
    arm = FrechetArm(GaussianArm(0.0, turned(values, 1)), 0.0, turned(values[::-1], 2))
    white = White.of(512, 600, replications, 0)
    here = arm.engine().evaluate(white, 600, debias=True)
    same_on_torch(arm, white, 600, here, True)
    # Above the diagonal nothing is read.
    white.triangle = white.triangle + np.triu(np.ones((512, 512)), 1)
    again = arm.engine().evaluate(white, 600, debias=False)
    assert_allclose(again.roots.sum(axis=1), here.roots.sum(axis=1), rtol=1e-12)
