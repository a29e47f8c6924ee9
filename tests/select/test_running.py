"""Scores that follow the samples of a run: a step costs its batch, and memory has a limit."""

from __future__ import annotations

import math

import numpy as np
import pytest

import genbounds.select as select
from genbounds.estimators import FrechetReference, Moments, RunningFrechet, metric_spec
from genbounds.select import FdUcb, Greedy, State
from genbounds.simulate import GaussianArm
from tests.select.test_policies import state


def test_scores_are_dropped_and_made_again_within_the_limit(monkeypatch):
    rng = np.random.default_rng(2)
    s = state([60] * 4)
    s.metric = metric_spec("fd").prepared(Moments(np.zeros(150), np.eye(150)))
    s.rows = [rng.standard_normal((60, 150)) for _ in range(4)]
    first = s.running(0)
    monkeypatch.setattr(RunningFrechet, "nbytes", 50 * 2**20)  # of 128 MiB in all: two fit
    kept = [s.running(arm) for arm in range(4)]
    assert s.running(3) is kept[3]
    assert s.running(2) is kept[2]
    again = s.running(0)
    assert again is not kept[0]
    assert again.loss() == pytest.approx(first.loss(), rel=1e-9)


def test_only_the_pulled_arm_is_evaluated(monkeypatch):
    calls = []
    add = RunningFrechet.add
    monkeypatch.setattr(
        RunningFrechet, "add", lambda self, rows: calls.append(rows) or add(self, rows)
    )
    arms = {f"a{i}": GaussianArm([float(i), 0.0], np.ones(2)) for i in range(3)}
    reference = Moments(np.zeros(2), np.eye(2))
    select.run(arms, reference, policy="greedy", budget=200)
    assert len(calls) == 40  # one a batch
    assert sum(rows.shape[0] for rows in calls) == 200  # and no row twice


@pytest.mark.slow
@pytest.mark.parametrize("policy", [Greedy(), FdUcb()])
def test_picks_are_those_of_the_plain_way(policy, monkeypatch):
    d = 140
    rng = np.random.default_rng(3)
    shifts = rng.standard_normal((4, d)) / math.sqrt(d)
    arms = {
        f"a{i}": GaussianArm(shift * (1.0 + 0.1 * i), np.full(d, 1.0 + 0.02 * i))
        for i, shift in enumerate(shifts)
    }
    reference = Moments(np.zeros(d), np.eye(d))
    quick = select.run(arms, reference, policy=policy, budget=600)
    plain = FrechetReference(reference)

    add = RunningFrechet.add

    def keep(self, rows):
        add(self, rows)
        self.kept = [*getattr(self, "kept", []), rows]

    monkeypatch.setattr(RunningFrechet, "add", keep)
    monkeypatch.setattr(
        RunningFrechet, "loss", lambda self, **_: plain.plugin(np.vstack(self.kept))
    )
    slow = select.run(arms, reference, policy=policy, budget=600)
    np.testing.assert_array_equal(quick.history.picks, slow.history.picks)


def test_greedy_on_a_kernel_score_is_that_of_all_rows(monkeypatch):
    arms = {name: GaussianArm(np.full(3, m), np.ones(3)) for name, m in (("near", 0.1), ("far", 1))}
    reference = np.random.default_rng(0).standard_normal((60, 3))
    runs = []
    for follow in (True, False):
        if not follow:
            monkeypatch.setattr(State, "running", lambda self, arm: None)
        runs.append(select.run(arms, reference, policy="greedy", metric="kid", budget=300))
    assert runs[0].samples == runs[1].samples
    assert runs[0].best == "near"
