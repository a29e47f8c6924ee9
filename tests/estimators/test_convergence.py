"""Scores of growing parts of a sample: the parts are what they are said to be."""

from __future__ import annotations

import errno
import tempfile
from dataclasses import replace

import numpy as np
import pytest

import genbounds as gb
from genbounds.estimators import convergence, growing_scores, metric_spec
from genbounds.results import Score
from genbounds.validation import InputError

SCORE = Score(
    value=1.0,
    low=0.5,
    high=2.0,
    level=0.95,
    stderr=0.3,
    n=None,
    estimator="debiased",
    method="mean",
)
LARGE = 20_000
"""Columns of 1,801 rows of which half do not fit into memory: they go to a scratch file."""


def parts_of(x, **options):
    """Return what `growing_scores` scores, smallest part first."""
    seen = []

    def score(rows):
        seen.append(np.array(rows))
        return replace(SCORE, n=len(rows))

    sizes = [n for n, _ in growing_scores(x, score, **options)]
    seen.sort(key=len)
    assert [len(part) for part in seen] == sizes
    return seen


@pytest.mark.parametrize(
    ("dtype", "columns"),
    [
        (np.float16, 2),
        (">f8", 2),
        (np.int32, 2),
        (np.float32, 2),
        pytest.param(np.float32, LARGE, marks=pytest.mark.slow),
    ],
)
def test_parts_are_nested_random_and_whole(dtype, columns):
    x = np.arange(2 * 1801).reshape(1801, 2).astype(dtype)
    x = np.tile(x, (1, columns // 2))
    parts = parts_of(x)
    assert [len(part) for part in parts] == [56, 112, 225, 450, 900, 1801]
    np.testing.assert_array_equal(parts[-1], x)
    rows = [{tuple(row) for row in part[:, -2:].tolist()} for part in parts]
    for part, found, larger in zip(parts[:-1], rows[:-1], rows[1:], strict=True):
        assert len(found) == len(part)  # no row twice
        assert found < larger
    firsts = {tuple(row) for row in x[:900, -2:].tolist()}
    # Hypergeometric: 450 of 900 expected, standard deviation 11; a random part is within 90.
    assert abs(len(rows[-2] & firsts) - 450) < 90


def test_order_follows_the_seed():
    x = np.arange(400.0).reshape(200, 2)
    one, same, other = (parts_of(x, seed=seed) for seed in (3, 3, 4))
    for a, b in zip(one, same, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(one[0], other[0])


@pytest.mark.parametrize(
    ("n", "halvings", "sizes"),
    [
        (99, 5, [99]),
        (100, 5, [50, 100]),
        (6400, 5, [200, 400, 800, 1600, 3200, 6400]),
        (6400, 1, [3200, 6400]),
        (6400, 0, [6400]),
        (2, 5, [2]),
    ],
)
def test_sizes(n, halvings, sizes):
    assert [len(part) for part in parts_of(np.ones((n, 1)), halvings=halvings)] == sizes


def test_a_known_score_of_the_whole_is_taken():
    known = replace(SCORE, value=7.0)
    seen = []
    grown = growing_scores(
        np.ones((200, 1)), lambda rows: seen.append(len(rows)) or SCORE, whole=known
    )
    assert seen == [100, 50]
    assert grown[-1] == (200, known)


def test_sizes_that_are_refused_are_left_out_and_a_refusal_of_the_whole_is_not():
    def score(rows):
        if len(rows) < 300:
            raise InputError("too few")
        return SCORE

    assert [n for n, _ in growing_scores(np.ones((1600, 1)), score)] == [400, 800, 1600]
    with pytest.raises(InputError, match="too few"):
        growing_scores(np.ones((200, 1)), score)


def test_a_full_disk_is_one_line(monkeypatch):
    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.raises(InputError, match="not enough space for a copy of half of the rows"):
        growing_scores(np.ones((1801, LARGE), np.float32), lambda rows: SCORE)


@pytest.mark.parametrize("metric", ["is", "rke", "vendi", "recall"])
def test_the_whole_scores_as_ever(metric):
    """All rows score as in `compare`, with one kernel and one bandwidth at every size."""
    rng = np.random.default_rng(0)
    if metric_spec(metric).data == "posteriors":
        real, fakes = None, {m: rng.dirichlet([0.3] * 4, size=400) for m in "ab"}
    else:
        real, fakes = rng.normal(size=(500, 3)), {m: rng.normal(size=(400, 3)) for m in "ab"}
    grown = convergence(fakes, real, metric=metric, level=0.9)
    ranking = gb.compare(fakes, real, metric=metric, level=0.9)
    # A hundred eigenvalues, which "vendi" keeps of this kernel, are not to be had of fewer rows.
    # Neighbours take 100 rows.
    least = {"vendi": 200, "recall": 100}
    sizes = [n for n in (50, 100, 200, 400) if n >= least.get(metric, 50)]
    for name in fakes:
        assert [n for n, _ in grown[name]] == sizes
        assert [score.n for _, score in grown[name]] == sizes
        assert grown[name][-1][1].value == pytest.approx(ranking.scores[name].value, rel=1e-12)
        assert {score.level for _, score in grown[name]} == {0.9}


def test_plugin_is_biased_in_small_samples_and_debiased_is_not():
    """Equal distributions, d = 20: the plug-in is above 0.5 at n = 100, tens of deviations."""
    rng = np.random.default_rng(1)
    real, fake = gb.Moments(np.zeros(20), np.eye(20)), rng.normal(size=(3200, 20))
    plugin, debiased = (
        [s.value for _, s in convergence({"a": fake}, real, estimator=e)["a"]]
        for e in ("plugin", "debiased")
    )
    assert plugin[0] > 0.5 > 10 * plugin[-1]
    assert plugin == sorted(plugin, reverse=True)
    assert debiased[0] < plugin[0] / 2


@pytest.mark.parametrize(
    ("fakes", "options", "message"),
    [
        ({}, {}, "at least one model"),
        ({"a": gb.Moments(np.zeros(2), np.eye(2), 50)}, {}, "model 'a': .* no parts"),
        ({"a": np.ones((5, 2)), "b": np.ones(5)}, {}, "model 'b'|model 'a'"),
        ({"a": np.ones((200, 2))}, {"metric": "fdd"}, "`metric`"),
        ({"a": np.ones((200, 2))}, {"estimator": "best"}, "`estimator`"),
        ({"a": np.ones((200, 2))}, {"level": 95}, "`level`"),
        ({"a": np.ones((200, 2))}, {"halvings": -1}, "`halvings`"),
        ({"a": np.ones((200, 2))}, {"seed": 0.5}, "`seed`"),
        ({"a": np.ones((200, 3))}, {}, "features"),
    ],
)
def test_bad_calls(fakes, options, message):
    with pytest.raises(InputError, match=message):
        convergence(fakes, np.random.default_rng(0).normal(size=(50, 2)), **options)
