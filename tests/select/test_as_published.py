"""M25 Algorithm 1, written down once more from the printed lines, picks what `FdUcb` picks."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.linalg

from genbounds import InputError, select
from genbounds.estimators import Moments
from genbounds.select import FdUcb

CENTRE, COV = np.array([0.5, -1.0, 0.0]), np.diag([1.0, 4.0, 9.0])
KAPPA = math.sqrt(8.0 / 3.0)
STEPS, BATCH, DELTA = 1_000, 5, 0.05
GAPS = {"near": 0.0, "by": 2.0, "off": 6.0, "far": 20.0}


class Listed:
    """Rows in their order."""

    def __init__(self, rows):
        self.rows, self.given = rows, 0

    def draw(self, n, rng):
        self.given += n
        return self.rows[self.given - n : self.given]


def pools(seed=0):
    rng = np.random.default_rng(seed)
    size = (STEPS * BATCH + 100, 3)
    return {name: gap + rng.normal(size=size) * (1.5, 2.0, 2.0) for name, gap in GAPS.items()}


def optimistic_score(rows, delta):
    """Line 11 with (6), (23) and (24); divisors n; the norms are those of the sample."""
    n = len(rows)
    mean, cov = rows.mean(axis=0), np.cov(rows, rowvar=False, bias=True)
    trace, square, operator = np.trace(cov), np.trace(cov @ cov), np.linalg.norm(cov, 2)
    log6, log3, gap = math.log(6 / delta), math.log(3 / delta), np.linalg.norm(mean - CENTRE)
    delta_mu = math.sqrt((math.sqrt(8 * square * log6) + 8 * operator * log6) / n)
    rate = math.sqrt((4 * trace / operator + log3) / n)
    delta_sigma = 20 * KAPPA**2 * operator * rate + delta_mu**2
    bonus = (
        2 * delta_mu * (delta_mu + gap)
        + np.trace(scipy.linalg.sqrtm(COV)) * math.sqrt(8 * delta_sigma)
        + trace * math.sqrt(8 / n * log6)
        + 8 * operator / n * log6
    )
    root = np.sqrt(np.linalg.eigvals(cov @ COV).real.clip(0)).sum()
    return gap**2 + trace + np.trace(COV) - 2 * root - bonus


def printed(burn_in):
    """Lines 1 to 12."""
    kept, given = {name: rows[:burn_in] for name, rows in pools().items()}, pools()
    score = dict.fromkeys(kept, -math.inf)
    picks = []
    for _ in range(STEPS):
        picked = min(score, key=score.__getitem__)
        kept[picked] = given[picked][: len(kept[picked]) + BATCH]
        score[picked] = optimistic_score(kept[picked], DELTA / STEPS)
        picks.append(picked)
    return picks


def ours(burn_in, **options):
    policy = FdUcb(burn_in=burn_in, **options)
    arms = {name: Listed(rows) for name, rows in pools().items()}
    before = len(GAPS) * burn_in
    run = select.run(
        arms,
        Moments(CENTRE, COV),
        policy=policy,
        batch=BATCH,
        budget=STEPS * BATCH + before,
        confidence=1.0 - DELTA,
    )
    return [run.history.names[arm] for arm in run.history.picks[before // BATCH :]]


@pytest.mark.parametrize("burn_in", [0, 40])
def test_every_pick_is_that_of_the_printed_algorithm(burn_in):
    expected = printed(burn_in)
    assert len(set(expected[100:])) > 1  # else any order would do
    assert ours(burn_in, as_published=True) == expected


def test_without_it_the_burn_in_is_ranked_at_once():
    """The power of the test above: options alone are not the algorithm after a burn-in."""
    alone = ours(40, constants="printed", threshold=None, refresh=0)
    assert alone != printed(40)


def test_what_it_sets_is_said():
    policy = FdUcb(as_published=True)
    assert (policy.constants, policy.threshold, policy.refresh) == ("printed", None, 0)
    for option, value in {"threshold": 3.0, "refresh": 0.5}.items():
        with pytest.raises(InputError, match=option):
            FdUcb(as_published=True, **{option: value})
