"""Training runs that are followed: states, verdicts, the kept checkpoint, refusals."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import genbounds as gb
from genbounds.decisions import track_estimates
from tests.decisions.made import known, normal_estimates
from tests.warnings_of import codes, unreliable

D = 4
REAL = gb.Moments(np.zeros(D), np.eye(D))


def samples(scales, n=1500, seed=0):
    rng = np.random.default_rng(seed)
    return {100 * (t + 1): c * rng.normal(size=(n, D)) for t, c in enumerate(scales)}


def followed(values, *, sd=1.0, **options):
    estimates = {t: known(value, sd**2) for t, value in enumerate(values)}
    return track_estimates(estimates, metric="fd", **options)


@pytest.fixture(scope="module")
def run():
    return gb.track(samples([2.0, 1.5, 1.2, 1.2, 1.7]), REAL)


def test_a_run_that_collapses(run):
    states = [look.state for look in run.looks]
    assert states == ["first", "improved", "improved", "undecided", "collapsed"]
    assert run.verdict == "collapsed"
    assert run.best in (300, 400)
    assert run.looks[-1].worse_than == (200, 300, 400)
    assert run.looks[2].better_than == (100, 200)
    assert list(run.scores) == [100, 200, 300, 400, 500]
    assert run.summary.startswith("Collapsed: step 500 is worse than steps 200, 300 and 400")


def test_bands_hold_together(run):
    alone = gb.frechet_distance(samples([2.0])[100], REAL)
    assert run.scores[100].value == alone.value
    assert run.scores[100].high - run.scores[100].low > 1.2 * (alone.high - alone.low)
    assert run.looks[0].band == (run.scores[100].low, run.scores[100].high)


def test_no_checkpoint_is_advised_by_an_unreliable_score(run):
    assert run.advice.startswith(f"Keep step {run.best}. Corrected for having been chosen")
    few = gb.track(samples([2.0, 1.5, 1.2], n=6), REAL)
    assert not few.kept.score.reliable
    assert few.advice == ""
    assert "Keep step" not in repr(few)


@pytest.mark.parametrize("where", ["_loss_gap", "_gain", "_band", "_best"])
def test_a_monitor_that_is_interrupted_goes_on_as_if_it_had_not_been(run, monkeypatch, where):
    """Ctrl-C in a notebook, at any place of a look; then the same look again."""
    monitor = gb.Monitor(REAL, looks=5)
    following = type(monitor._following)
    for step, sample in samples([2.0, 1.5, 1.2, 1.2, 1.7]).items():
        if len(monitor.looks) == 3:

            def ctrl_c(*_):
                raise KeyboardInterrupt

            with monkeypatch.context() as patched:
                patched.setattr(following, where, ctrl_c)
                with pytest.raises(KeyboardInterrupt):
                    monitor.update(step, sample)
            assert len(monitor.looks) == 3
        monitor.update(step, sample)
    assert monitor.track() == run


def test_a_monitor_says_the_same(run):
    monitor = gb.Monitor(REAL, looks=5)
    for step, sample in samples([2.0, 1.5, 1.2, 1.2, 1.7]).items():
        look = monitor.update(step, sample)
        assert look == monitor.looks[-1]
    assert monitor.track() == run
    assert monitor.best() == run.kept


def test_larger_is_better_for_some_scores():
    rng = np.random.default_rng(0)
    probs = {t: rng.dirichlet(np.full(5, a), size=800) for t, a in enumerate([1.0, 0.2, 1.0])}
    run = gb.track(probs, metric="is")
    assert [look.state for look in run.looks] == ["first", "improved", "collapsed"]
    assert run.best == 1
    assert run.log_scale
    assert run.best_score.value <= run.scores[1].value


def test_steps_are_put_in_order():
    run = followed([9.0, 5.0])
    shuffled = track_estimates({1: known(5.0, 1.0), 0: known(9.0, 1.0)}, metric="fd")
    assert shuffled == run


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([0.0], "undecided"),
        ([9.0, 0.0], "improved"),
        ([0.0, 9.0], "collapsed"),
        ([9.0, 0.0, 0.1, 0.0], "improved"),  # within the last three looks
        ([9.0, 0.0, 0.1, 0.0, 0.1], "plateau"),
        ([0.0, 9.0, 0.1], "undecided"),  # came back
        ([0.1, 0.0, 0.1], "undecided"),  # too few looks
        ([0.1, 0.0, 0.1, 0.0], "plateau"),
    ],
)
def test_the_verdict_is_that_of_the_last_looks(values, verdict):
    run = followed(values)
    assert run.verdict == verdict
    assert run.summary


def test_slow_improvement_is_seen_over_several_looks():
    run = followed([16.0, 14.0, 12.0, 10.0, 8.0, 6.0, 4.0])
    assert run.verdict == "improved"
    assert not any(look.improved for look in run.looks)
    assert run.looks[-1].better_than == (0, 1, 2, 3, 4)


def test_a_plateau_has_a_bound_and_may_have_to_be_small():
    flat = [0.1, 0.0, 0.1, 0.0, 0.1]
    run = followed(flat)
    assert 0.0 < run.gain_high < 10.0
    assert f"{run.gain_high:.4g}"[:4] in run.summary
    assert followed(flat, min_delta=1.01 * run.gain_high).verdict == "plateau"
    assert followed(flat, min_delta=0.99 * run.gain_high).verdict == "undecided"


def test_an_unreliable_look_takes_no_part():
    doubt = unreliable("leak", "a leak")
    values = [9.0, 5.0, -90.0, 5.0]
    estimates = {t: known(value, 0.01) for t, value in enumerate(values)}
    estimates[2] = estimates[2].warned(doubt)
    run = track_estimates(estimates, metric="fd")
    assert run.looks[2].state == "unreliable"
    assert not run.looks[3].collapsed
    assert run.best == 1
    last = track_estimates({t: estimates[t] for t in (0, 1, 2)}, metric="fd")
    assert last.verdict == "undecided"


def test_looks_that_are_planned_cost_width():
    for values, verdict in (([0.0, 3.3], "collapsed"), ([3.3, 0.0], "improved")):
        assert followed(values).verdict == verdict
        assert followed(values, looks=100).verdict == "undecided"


def test_shared_latents_sharpen_the_comparison():
    rng = np.random.default_rng(1)
    latents = rng.normal(size=(800, D))
    told = {
        t: gb.Sample(c * latents, groups=np.arange(800)) for t, c in enumerate([1.30, 1.32, 1.30])
    }
    untold = {t: gb.Sample(sample.features) for t, sample in told.items()}
    assert gb.track(told, REAL).looks[1].collapsed
    assert not gb.track(untold, REAL).looks[1].collapsed


@pytest.mark.parametrize("copied", [700, 1500])
def test_a_checkpoint_with_rows_of_an_earlier_one_is_not_compared(copied):
    """Of a file half copied, half better, the run said "improved"."""
    data = samples([2.0, 1.5, 1.2, 1.02])
    data[400][:copied] = data[300][:copied]
    run = gb.track(data, REAL)
    assert [look.state for look in run.looks] == ["first", "improved", "improved", "unreliable"]
    assert (run.verdict, run.best) == ("undecided", 300)
    assert {"same-rows"} == codes(run) == codes(run.scores[400])
    assert run.summary.startswith("Nothing can be said: the run or its last score is unreliable")


def test_why_a_look_is_doubtful_is_a_warning_of_the_run():
    data = samples([2.0, 1.5, 1.2])
    data[200] = np.random.default_rng(1).standard_t(1.5, size=(1500, D))
    run = gb.track(data, REAL)
    assert run.looks[1].state == "unreliable"
    assert "heavy-tails" in codes(run)
    assert run.verdict == "improved"
    assert "unreliable" not in gb.track({1: data[100], 2: data[200], 3: data[300]}, REAL).summary


# --- the kept checkpoint --------------------------------------------------------------------------


def test_the_kept_score_is_fresh_or_corrected(run):
    kept = run.kept
    assert not kept.fresh
    assert kept.as_chosen == run.scores[run.best].value
    assert kept.as_chosen < kept.score.value < kept.score.high
    again = {run.best: samples([1.2], seed=9)[100]}
    fresh = gb.track(samples([2.0, 1.5, 1.2, 1.2, 1.7]), REAL, fresh=again)
    assert fresh.kept.fresh
    expected = gb.frechet_distance(again[run.best], REAL)
    assert (fresh.best_score.value, fresh.best_score.low) == (expected.value, expected.low)
    assert float(fresh.kept) == expected.value


def test_fresh_rows_that_are_not_fresh_are_said():
    data = samples([1.5, 1.2])
    run = gb.track(data, REAL, fresh={200: data[200]})
    assert codes(run) == codes(run.kept.score) == {"same-rows"}
    assert run.advice == ""


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gb.track({}, REAL), "must map at least one step"),
        (lambda: gb.track({"a": samples([1.0])[100]}, REAL), "must be a finite number; got 'a'"),
        (lambda: gb.track(samples([1.0]), REAL, level=1.0), "`level` must be"),
        (lambda: gb.track(samples([1.0]), REAL, patience=0), "`patience` must be"),
        (lambda: gb.track(samples([1.0]), REAL, min_delta=-1.0), "`min_delta` must be"),
        (lambda: gb.track(samples([1.0, 1.0]), REAL, looks=1), "`looks` was planned as 1"),
        (lambda: gb.track({1: np.ones((5, 3))}, REAL), "model 'step 1'"),
        (lambda: gb.track(samples([2.0, 1.0]), REAL, fresh={100: samples([1])[100]}), "step 200"),
        (lambda: gb.Monitor(REAL).best(), "nothing to choose from"),
        (lambda: gb.Monitor(), "needs a reference"),
    ],
)
def test_bad_input_is_one_clear_line(call, message):
    with pytest.raises(gb.InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_a_refused_update_records_nothing():
    monitor = gb.Monitor(REAL, looks=2)
    monitor.update(5, samples([1.5])[100])
    for step, sample in [(5, samples([1.0])[100]), (6, np.ones((50, 3))), (np.nan, REAL)]:
        with pytest.raises(gb.InputError):
            monitor.update(step, sample)
    assert len(monitor.looks) == 1
    assert monitor.update(6, samples([1.5], seed=1)[100]).state == "undecided"
    with pytest.raises(gb.InputError, match="planned as 2"):
        monitor.update(7, samples([1.0])[100])


# --- results in hand ------------------------------------------------------------------------------


def test_results_in_hand(run):
    for thing in (run, run.looks[0], run.kept):
        json.dumps(thing.to_dict(), allow_nan=False)
        rows = len(run.looks) if thing is run else 1
        assert len(thing.to_frame()) == rows
        assert thing.to_markdown().count("\n") == rows + 2
        assert "tabular" in thing.to_latex()
        assert "<svg" in thing._repr_html_()
        assert thing.plot() is not None
    assert run.plot().get_xlabel() == "step"
    assert "collapsed" in run.to_markdown()
    assert f"{run.kept:.1f}" == f"{run.best_score.value:.1f}"
    assert "Keep step" in repr(run)


# --- error rates ----------------------------------------------------------------------------------


def alarms(curves, root, *, looks):
    """Return how many curves have a false alarm, all looks being equal in truth."""
    plain = normal_estimates(np.zeros(looks), root)
    false = 0
    for z in curves:
        found = {t: replace(estimate, value=float(root[t] @ z)) for t, estimate in enumerate(plain)}
        run = track_estimates(found, metric="fd")
        false += any(look.improved or look.collapsed for look in run.looks)
    return false


@pytest.mark.statistical
@pytest.mark.slow
def test_false_alarms_of_a_whole_run():
    """Null: at most 5 % of flat runs have a false alarm.

    200 runs of six looks that share half of their noise; more than 29 would have probability
    below 1e-6 at a rate of 5 %. Power: the usual rule (the best so far, 1.96 standard errors) has
    an alarm in about 40 % of such runs, and would be caught with certainty.
    """
    rng = np.random.default_rng(0)
    root = np.hstack([np.eye(6), np.ones((6, 1))])
    curves = rng.normal(size=(200, 7))
    assert stats.binom.sf(29, 200, 0.05) < 1e-6
    assert alarms(curves, root, looks=6) <= 29
    own = curves[:, :6]
    least = np.minimum.accumulate(own, axis=1)[:, :-1]
    naive = np.abs(own[:, 1:] - least) > 1.96 * np.sqrt(2.0)
    assert naive.any(axis=1).sum() > 29


@pytest.mark.statistical
@pytest.mark.slow
def test_a_collapse_is_seen():
    """Power: a last look six standard errors of a difference worse is called so in 95 % or more.

    60 runs of ten looks; less than 45 would have probability below 1e-6 at 95 %.
    """
    rng = np.random.default_rng(1)
    seen = 0
    for _ in range(60):
        values = rng.normal(size=10)
        values[-1] += 6.0 * np.sqrt(2.0)
        seen += followed(values).verdict == "collapsed"
    assert stats.binom.cdf(44, 60, 0.95) < 1e-6
    assert seen >= 45
