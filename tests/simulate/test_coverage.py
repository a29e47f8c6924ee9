"""Coverage of bounds and intervals."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from genbounds import InputError
from genbounds.bounds import catalog
from genbounds.simulate import (
    BernoulliArm,
    BetaArm,
    GaussianArm,
    coverage,
    interval_coverage,
)

NORMAL = GaussianArm(1.0, 4.0)


@dataclass(frozen=True)
class Interval:
    low: float
    high: float


def test_measures_the_exact_miss_rate():
    """Null: Clopper–Pearson limits at 1 − 1e-6 hold the exact rate. Sees 0.03 at 20,000."""
    bound = catalog()["o24.gaussian-mean"]
    found = coverage(bound, NORMAL, 10, 0.05, 20_000, 3, confidence=1 - 1e-6)
    exact = 2 * stats.norm.sf(np.sqrt(0.5 * np.log(2 / 0.05)))
    assert found.exact[0] == pytest.approx(exact, rel=1e-12)
    assert found.miss_low < exact < found.miss_high
    assert found.miss_high - found.miss_low < 0.03
    assert found.miss == found.misses / 20_000
    assert found.coverage == 1 - found.miss
    assert found.refuted
    assert found.claimed == 0.05
    # The width is half of the right one, which is 1.39 times the normal quantile at 0.05.
    assert found.tightness == pytest.approx(0.693, rel=0.05)


def test_right_constant_is_not_refuted():
    bound = catalog()["repaired.gaussian-mean"]
    found = coverage(bound, NORMAL, 10, 0.05, 2000, 3)
    assert not found.refuted
    assert found.exact[0] < 0.05


def test_exact_quantile_has_no_room():
    """Two per cent more miss probability than claimed is seen by the exact tail."""
    bound = catalog()["repaired.mean-norm-exact"]
    arm = GaussianArm(0.0, 1.0 / np.arange(1.0, 30.0))
    assert not coverage(bound, arm, 5, 1e-8, 10, 0).refuted
    wide = dataclasses.replace(bound, constants={"share": 1.02})
    assert coverage(wide, arm, 5, 1e-8, 10, 0).refuted


def test_refuted_without_an_exact_tail():
    """A planted false width is seen by the binomial limits alone."""
    bound = catalog()["o24.hoeffding"]
    wrong = dataclasses.replace(bound, constants={"factor": 0.05})
    arm = BetaArm(0.5, 0.5)
    assert coverage(wrong, arm, 20, 0.05, 2000, 0).exact is None
    assert coverage(wrong, arm, 20, 0.05, 2000, 0).refuted
    assert not coverage(bound, arm, 20, 0.05, 2000, 0).refuted


def test_limits_are_clopper_pearson():
    """To the last bit those of statsmodels, which a plain installation does without."""
    bound = catalog()["o24.gaussian-mean"]
    found = coverage(bound, NORMAL, 10, 0.05, 500, 1, confidence=0.95)
    limits = proportion_confint(found.misses, 500, alpha=0.05, method="beta")
    assert (found.miss_low, found.miss_high) == limits
    never = coverage(catalog()["m25.mean-norm"], NORMAL, 10, 1e-8, 100, 1)
    assert never.misses == 0
    assert never.miss_low == 0.0
    assert 0.0 < never.miss_high < 0.1


@pytest.mark.slow
def test_same_numbers_whatever_the_workers():
    bound = catalog()["m25.empirical-bernstein"]
    arm = BetaArm(2.0, 2.0)
    alone = coverage(bound, arm, 2000, 0.2, 6000, 7)
    assert coverage(bound, arm, 2000, 0.2, 6000, 7, jobs=2) == alone
    assert coverage(bound, arm, 2000, 0.2, 6000, 8).width != alone.width


def test_plain_json():
    found = coverage(catalog()["o24.gaussian-mean"], NORMAL, 10, 1e-6, 100, 1)
    assert json.loads(json.dumps(found.to_dict()))["tightness"] is None


@pytest.mark.parametrize(
    ("name", "arm", "n", "match"),
    [
        ("o24.gaussian-mean", BernoulliArm(0.5), 5, r"assumes X_i iid N\(μ, Σ\)"),
        ("o24.chi-square-mean", GaussianArm(0.0, 2.0), 5, r"N\(0, 1\)"),
        ("m25.empirical-bernstein", BernoulliArm(0.5), 1, "n ≥ 2"),
        ("m25.mean-norm", BernoulliArm(0.5), 5, "N"),
        ("m25.trace-root-monotone", GaussianArm(0.0, 1.0), 5, "deterministic"),
        ("o24.gaussian-mean", NORMAL, 0, "`n`"),
        ("o24.gaussian-mean", NORMAL, 2.5, "`n`"),
    ],
)
def test_outside_the_assumptions_is_refused(name, arm, n, match):
    with pytest.raises(InputError, match=match):
        coverage(catalog()[name], arm, n, 0.1, 10, 0)


@pytest.mark.parametrize(
    "bad", [{"delta": 0.0}, {"delta": float("nan")}, {"replications": 0}, {"seed": -1}]
)
def test_bad_arguments_are_named(bad):
    arguments = {"delta": 0.1, "replications": 10, "seed": 0} | bad
    with pytest.raises(InputError, match=next(iter(bad))):
        coverage(catalog()["o24.gaussian-mean"], NORMAL, 5, **arguments)


def test_what_is_no_bound_or_no_arm_is_named():
    with pytest.raises(InputError, match="`bound`"):
        coverage("o24.gaussian-mean", NORMAL, 5, 0.1, 10, 0)
    with pytest.raises(InputError, match="`arm`"):
        coverage(catalog()["o24.gaussian-mean"], np.zeros((5, 1)), 5, 0.1, 10, 0)


def draw_normal(rng):
    return rng.normal(2.0, 1.0, 30)


def student(level):
    quantile = stats.t.ppf(0.5 + level / 2, 29)  # of the 30 values of `draw_normal`

    def make(x):
        half = quantile * x.std(ddof=1) / np.sqrt(x.size)
        return Interval(x.mean() - half, x.mean() + half)

    return make


@pytest.mark.statistical
def test_interval_coverage_of_an_exact_interval():
    """Null: Student's interval covers exactly 95 %; limits at 1 − 1e-6. Sees 90 % (control)."""
    options = {"replications": 4000, "seed": 2, "confidence": 1 - 1e-6}
    found = interval_coverage(student(0.95), draw_normal, 2.0, level=0.95, **options)
    assert found.miss_low < 0.05 < found.miss_high
    assert not found.refuted
    assert found.tightness == pytest.approx(1.0, abs=0.1)
    control = interval_coverage(student(0.90), draw_normal, 2.0, level=0.95, **options)
    assert control.refuted


def test_coverage_of_intervals_by_hand():
    """[k - 1/2, k + 1/2] for draws k = 0, …, 19 about 9: one hit, half widths of 1/2."""
    drawn = iter(range(20))
    found = interval_coverage(
        lambda x: Interval(x - 0.5, x + 0.5),
        lambda rng: next(drawn),
        9.0,
        replications=20,
        seed=0,
        level=0.5,
        confidence=0.9,
    )
    assert (found.misses, found.replications, found.delta, found.claimed) == (19, 20, 0.5, 0.5)
    assert (found.miss, found.width, found.tightness) == (0.95, 1.0, 0.5 / 5.0)
    assert found.stderr == pytest.approx(np.sqrt(0.95 * 0.05 / 20))
    assert found.miss_low == pytest.approx(stats.beta.ppf(0.05, 19, 2))
    assert found.refuted
    assert str(found).replace("\u202f", " ") == (
        "interval: missed 19 of 20, 95.0 % [78.4, 99.7] (90 %), where 50.0 % are allowed: refuted; "
        "median width 1.000"
    )


def test_interval_of_nan_covers_nothing():
    found = interval_coverage(
        lambda x: Interval(np.nan, np.nan), draw_normal, 2.0, replications=20, seed=0, level=0.9
    )
    assert found.miss == 1.0
    assert found.miss_high == 1.0
