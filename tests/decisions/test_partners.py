"""Cheap partners in rankings, gates, tracks and plans."""

from __future__ import annotations

import math

import numpy as np
import pytest

import genbounds as gb
from tests.refusal import refused

N, MORE = 400, 3000
REAL = gb.Moments(np.zeros(6), np.eye(6))
NOISE = np.random.default_rng(0).normal(size=(N + MORE, 6))
NEW, OLD = 1.1 * NOISE[:N] + 0.2, 1.12 * NOISE[:N] + 0.22
CHEAP, OLD_CHEAP = 1.3 * NOISE + 0.5, 1.33 * NOISE + 0.52
NAMES = np.arange(N + MORE)


def named(rows, names=NAMES):
    """Rows whose noise has a name."""
    return gb.Sample(rows, groups=names[: len(rows)])


def test_a_partner_s_rows_are_found_by_name_or_by_place():
    """The first n of an array; with names whatever the order of either sample."""
    mixed = np.random.default_rng(1).permutation(N + MORE)
    by_place = gb.two_level(NEW, CHEAP[:N], CHEAP[N:], REAL)
    arrays = gb.compare({"a": NEW}, REAL, partners={"a": CHEAP})
    shuffled = gb.compare(
        {"a": named(NEW[::-1], NAMES[:N][::-1])},
        REAL,
        partners={"a": named(CHEAP[mixed], NAMES[mixed])},
    )
    for ranking in (arrays, shuffled):
        score = ranking.scores["a"]
        assert score.value == pytest.approx(by_place.value, rel=1e-3)
        assert score.stderr == pytest.approx(by_place.stderr, rel=0.05)


def test_models_of_the_same_noise_are_paired_with_their_partners():
    """Further draws of both partners share their noise as well."""
    models = {"new": named(NEW), "old": named(OLD)}
    partners = {"new": named(CHEAP), "old": named(OLD_CHEAP)}
    plain = gb.compare(models, REAL).difference("new", "old")
    helped = gb.compare(models, REAL, partners=partners).difference("new", "old")
    assert helped.stderr < 0.5 * plain.stderr
    alone = gb.compare(
        {"new": NEW, "old": OLD}, REAL, partners={"new": CHEAP, "old": OLD_CHEAP}
    ).difference("new", "old")
    assert helped.stderr < 0.3 * alone.stderr


def test_a_gate_and_a_track_take_partners():
    verdict = gb.gate(
        named(NEW), named(OLD), REAL, margin=0.0, partners=(named(CHEAP), named(OLD_CHEAP))
    )
    plain = gb.gate(named(NEW), named(OLD), REAL, margin=0.0)
    assert verdict.decision == "pass"
    assert verdict.high - verdict.low < 0.5 * (plain.high - plain.low)
    run = gb.track(
        {1: named(OLD), 2: named(NEW)}, REAL, partners={1: named(OLD_CHEAP), 2: named(CHEAP)}
    )
    assert (run.verdict, run.best) == ("improved", 2)


@pytest.mark.parametrize(("alike", "ratio"), [(0.99, 1 / 16), (0.9, 1 / 64)])
def test_a_plan_reaches_its_width_at_the_planned_cost(alike, ratio):
    """The planned numbers give about the width, at the cost that the gain says."""
    rng = np.random.default_rng(2)

    def both(n):
        noise, other = rng.normal(size=(2, n, 6))
        mixed = alike * noise + math.sqrt(1.0 - alike**2) * other
        return 1.1 * noise + 0.2, 1.3 * mixed + 0.5

    pilot, cheap = both(1000)
    costs = (1.0, ratio)
    plain = gb.plan(pilot, REAL, half_width=0.06)
    plan = gb.plan(pilot, REAL, half_width=0.06, partner=cheap, costs=costs)
    assert plan.pays
    cost = plan.n * (1.0 + ratio) + plan.n_cheap * ratio
    assert plain.n / cost == pytest.approx(plan.gain, rel=1e-12)
    images, rough = both(plan.n)
    score = gb.two_level(images, rough, both(plan.n_cheap)[1], REAL)
    assert (score.high - score.low) / 2.0 == pytest.approx(0.06, rel=0.3)


def test_a_plan_says_that_a_partner_does_not_pay():
    stranger = np.random.default_rng(3).normal(size=NEW.shape)
    plain = gb.plan(NEW, REAL, half_width=0.06)
    plan = gb.plan(NEW, REAL, half_width=0.06, partner=stranger, costs=(2, 1))
    assert (plan.pays, plan.feasible, plan.n, plan.n_cheap) == (False, True, plain.n, None)
    assert "does not pay" in str(plan)
    assert plain.pays is None


def test_partners_that_cannot_help_are_refused():
    with refused("partners", "'b'"):
        gb.compare({"a": NEW}, REAL, partners={"b": CHEAP})
    with refused("partner", "400"):
        gb.compare({"a": NEW}, REAL, partners={"a": CHEAP[:N]})
    with refused("partner", "groups"):
        gb.compare({"a": named(NEW)}, REAL, partners={"a": named(CHEAP[1:], NAMES[1:])})
    with refused("partner", "costs"):
        gb.plan(NEW, REAL, half_width=0.1, partner=CHEAP[:N])
    with refused("costs"):
        gb.plan(NEW, REAL, half_width=0.1, partner=CHEAP[:N], costs=(1.0, 0.0))
    with refused("partner", "two"):
        gb.plan((NEW, OLD), REAL, half_width=0.1, partner=CHEAP[:N], costs=(2.0, 1.0))
