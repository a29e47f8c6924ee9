"""Rates are fitted right, and a wrong rate is refuted."""

from __future__ import annotations

import dataclasses
import re
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from genbounds import InputError
from genbounds.bounds import catalog, truncate
from genbounds.simulate import CategoricalArm, FrechetArm, GaussianArm, NystromArm, audit, coverage
from genbounds.simulate.auditing import _rates

BOUNDS = catalog()


def verdict(name, replications=600, **constants):
    bound = BOUNDS[name]
    bound = dataclasses.replace(bound, constants={**bound.constants, **constants})
    return audit(catalogue={name: bound}, replications=replications)[name]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("c20.fid-bias", {"exponent": -0.5}),
        pytest.param("c20.fid-variance", {"exponent": -2.0}, marks=pytest.mark.slow),
        ("c20.sobol", {"ratio": 1e-4}),
        ("c20.spacing", {"ratio": 0.01}),
    ],
)
def test_planted_rate_turns_the_verdict(name, wrong):
    assert verdict(name).verdict == "upheld"
    row = verdict(name, **wrong)
    assert row.verdict == "refuted"
    assert row.counterexample


@pytest.mark.parametrize("plain", [None, (1, 0), (1, 1), (2, 0), (2, 1)])
def test_sobol_points_are_upheld_where_every_kind_of_them_gains(plain, monkeypatch):
    """At 2 latents Sobol points are closer and better than iid ones but for one sampler and score.

    Both scores must vary less; of the means that of FD_N alone must gain.
    """

    def networks(runs, n, rng):
        for latent in (2, 8, 32):
            scores = rng.standard_normal((runs, 3, 2))
            for sampler, score in ((1, 0), (1, 1), (2, 0), (2, 1)):
                if latent == 2 and (sampler, score) != plain:
                    scores[:, sampler, score] *= 0.01
                    scores[:, sampler, score] += (-10.0, 10.0)[score]
            yield latent, scores

    monkeypatch.setattr(_rates, "_networks", networks)
    bound, rng = BOUNDS["c20.sobol"], np.random.default_rng(0)
    *ratios, both = _rates.sobol_variances(bound, 600, rng)
    assert both.holds == (plain is None)
    # Twelve ratios, two sides; the last of 32 latents, where no score varies less.
    ratio, low, high = (float(part) for part in re.findall(r"\d+\.\d+", ratios[-1].found))
    assert high / ratio == pytest.approx(stats.f.isf(1e-6 / 24.0, 39, 39), rel=0.003)
    assert low * high == pytest.approx(ratio**2, rel=0.01)
    *_, of_distance = _rates.sobol_means(bound, 600, rng)
    assert of_distance.holds == (plain not in ((1, 0), (2, 0)))


def test_integrals_of_the_study_are_known():
    axis = (np.arange(100) + 0.5) / 100.0  # the steps lie between these points
    for d, function, truth in _rates._FUNCTIONS.values():
        grid = np.stack(np.meshgrid(*[axis] * d), axis=-1).reshape(-1, d)
        assert function(grid).mean() == pytest.approx(truth, rel=1e-4)


def last_size_only(sizes):
    """The plain score of the pool in place of the line's value at 0."""
    return (sizes == sizes[-1]).astype(float)


@pytest.mark.slow
def test_extrapolation_stands_without_replacement_and_falls_with_it_or_without_a_line(monkeypatch):
    """In the first cell, whose plain bias is 0.015; chance turns it with probability below 1e-6."""
    arm = FrechetArm(GaussianArm(0.0, np.ones(32)), 0.0, np.ones(32))

    def holds(name):
        rng = np.random.default_rng(0)
        found = _rates.bias_left(BOUNDS[name], arm, 5000, 20_000, 12, rng)
        assert found.decisive
        return found.holds

    assert holds("c20.fid-infinity")
    assert not holds("c20.fid-infinity-with-replacement")
    monkeypatch.setattr(_rates, "intercept_weights", last_size_only)
    assert not holds("c20.fid-infinity")


def test_arms_of_the_study_of_extrapolation_are_what_their_names_say(monkeypatch):
    monkeypatch.setattr(_rates, "bias_left", lambda bound, arm, *rest: arm)
    for arm in _rates.fid_infinity(BOUNDS["c20.fid-infinity"], 100, np.random.default_rng(0)):
        scale = 1.1 if "1.1 I" in arm.name else 1.0
        assert f"d={arm.d}" in arm.name
        assert arm.facts["distance"] == pytest.approx(arm.d * (1 - scale**0.5) ** 2, abs=1e-9)


@pytest.mark.parametrize(("power", "holds"), [(-0.5, True), (-0.8, True), (-0.2, False)])
def test_an_error_of_nystrom_that_falls_too_slowly_refutes(power, holds):
    """Errors are n^power but for noise; quantiles come from 20 batches."""

    def statistics(names, n, count, rng):
        error = n**power * rng.uniform(0.9, 1.0, size=count)
        return {"nystrom_spectrum": np.stack([0.5 + error, 0.5 - error], axis=1)}

    facts = {"kernel_spectrum": np.array([0.5, 0.5])}
    arm = SimpleNamespace(arm=None, landmarks=2, d=2, facts=facts, statistics=statistics)
    case = ([arm] * 5, "planted")
    rng = np.random.default_rng(0)
    (check,) = _rates._falls(BOUNDS["v24.nystrom"], [case], 1000, rng)
    assert check.holds == holds


@pytest.mark.slow
def test_nystrom_falls_as_printed_and_stands_with_the_condition_of_its_proof():
    """t ≥ r τ log n asks for nothing where λ_r = 0: two landmarks among 101 classes suffice."""
    row = verdict("v24.nystrom")
    assert row.verdict == "refuted"
    assert [check.holds for check in row.checks] == [True, True, False]
    # The right constant in the false claim: an error that need not vanish.
    assert verdict("v24.nystrom", exponent=0.0).verdict == "upheld"
    # A wrong one fails where the printed one stands.
    assert not verdict("v24.nystrom", exponent=-1.0).checks[0].holds


def test_no_constant_serves_the_product_of_the_main_text():
    """The error does not vanish with τ where λ_r = 0; beside a sum it need not."""
    row = verdict("v24.nystrom-product")
    assert row.verdict == "refuted"
    assert row.checks[0].decisive
    least = np.hypot(51 / 101, 50 / 101) - np.sqrt(0.5)  # 101 rows of two equal classes
    assert f"at least {least:.4g} in every sample" in row.checks[0].found
    assert verdict("v24.nystrom-product", offset=1.0).verdict == "upheld"


def test_no_constant_of_the_proof_serves_every_distribution(monkeypatch):
    """C r log n landmarks miss a class of p = 1/t; as many as it takes do not."""
    bound = BOUNDS["v24.nystrom-proof"]
    found = _rates._universal(bound)
    assert found.refutes
    assert "0.36" in found.found
    monkeypatch.setattr(_rates, "_unseen", lambda p, t: (1 - p) ** (t / p))
    assert not _rates._universal(bound).refutes


def test_two_landmarks_leave_an_error_that_no_sample_size_mends():
    """Both miss the class of 1/2 in a quarter of the samples; then λ^Nys lifts to (½, ½)."""
    p = np.r_[0.5, np.full(100, 0.005)]
    arm = NystromArm(CategoricalArm(p), 2)
    drawn = arm.statistics(["nystrom_spectrum"], 10_000, 4000, np.random.default_rng(0))
    found = truncate(drawn["nystrom_spectrum"], 2)
    truth = truncate(np.sort(p)[::-1][None], 2)[0, :2]
    assert truth == pytest.approx([0.7475, 0.2525])
    missed = np.abs(found[:, 0] - 0.5) < 0.01
    assert 0.2 < missed.mean() < 0.3
    error = np.linalg.norm(found[missed, :2] - truth, axis=1)
    assert error.min() > 0.34


@pytest.mark.slow
def test_inception_bias_has_its_leading_term():
    row = verdict("c20.is-bias", replications=2000)
    assert row.verdict == "upheld"
    assert all(check.holds for check in row.checks)
    assert verdict("c20.is-bias", replications=2000, exponent=-2.5).verdict == "refuted"


def test_ranks_flip():
    row = verdict("c20.rank-flip")
    assert row.verdict == "upheld"
    assert row.checks[0].holds


@pytest.mark.slow
def test_published_regret_bound_is_empty_at_the_horizon_of_the_papers():
    row = verdict("m25.fd-ucb-regret")
    assert row.verdict == "vacuous"
    assert row.checks[0].kind == "vacuous fit"


def test_a_rate_without_a_study_and_a_rate_as_a_miss_rate_are_refused():
    bound = dataclasses.replace(BOUNDS["c20.fid-bias"], id="c20.other")
    with pytest.raises(InputError, match=r"`c20\.other`"):
        audit(catalogue={bound.id: bound}, replications=10)
    with pytest.raises(InputError, match=r"`c20\.fid-bias`"):
        coverage(BOUNDS["c20.fid-bias"], GaussianArm(0.0, 1.0), 5, 0.1, 10, 0)
