"""Seeds that cross groups: every prompt with the same seeds."""

import numpy as np
import pytest
import scipy.stats

import genbounds as gb
from tests.warnings_of import codes

D = 3
REAL = gb.Moments(np.zeros(D), np.eye(D))
OTHERS = np.random.default_rng(50).normal(size=(400, D))


def crossed(rng, prompts=60, seeds=6, share=0.1):
    """Rows prompt by prompt: a part of each prompt, of each seed, and of its own."""
    parts = [
        np.sqrt(0.4) * rng.normal(size=(prompts, 1, D)),
        np.sqrt(share) * rng.normal(size=(1, seeds, D)),
        np.sqrt(0.6 - share) * rng.normal(size=(prompts, seeds, D)),
    ]
    rows = 0.3 + sum(parts).reshape(-1, D)
    return rows, np.repeat(np.arange(prompts), seeds), np.tile(np.arange(seeds), prompts)


def posteriors(x):
    p = np.exp(2.0 * (x.features if isinstance(x, gb.Sample) else x))
    p /= p.sum(axis=1, keepdims=True)
    return gb.Sample(p, groups=x.groups, seeds=x.seeds) if isinstance(x, gb.Sample) else p


def column(x):
    return gb.Sample(x.features[:, :1], groups=x.groups, seeds=x.seeds)


SCORES = {
    "fd": lambda x: gb.frechet_distance(x, REAL),
    "kid": lambda x: gb.kernel_inception_distance(x, OTHERS),
    "cmmd": lambda x: gb.kernel_distance(x, OTHERS, kernel="rbf", bandwidth=2.0),
    "is": lambda x: gb.inception_score(posteriors(x)),
    "vendi": lambda x: gb.vendi_score(x, bandwidth=2.0),
    "vendi-2": lambda x: gb.vendi_score(x, bandwidth=2.0, order=2.0),
    "ustat": lambda x: gb.vendi_score(x, bandwidth=2.0, order=2.0, method="ustat"),
    "mean": lambda x: gb.mean_score(column(x)),
}


def test_a_mean_has_the_variance_of_groups_and_of_seeds():
    rows, prompt, seed = crossed(np.random.default_rng(0))
    x = rows[:, :1]
    found = gb.mean_score(gb.Sample(x, groups=prompt, seeds=seed))
    table = x.reshape(60, 6)
    variances = [np.var(table.mean(axis=k), ddof=1) / table.shape[1 - k] for k in (1, 0)]
    assert found.stderr == pytest.approx(np.sqrt(sum(variances)), rel=1e-12)
    freedom = sum(variances) ** 2 / (variances[0] ** 2 / 59 + variances[1] ** 2 / 5)
    half = scipy.stats.t.ppf(0.975, freedom) * found.stderr
    assert (found.high - found.low) / 2.0 == pytest.approx(half, rel=0.05)  # moved for skewness


def test_the_bias_of_a_balanced_cross_is_that_of_its_components():
    """Without an interaction the mean squares of prompts and seeds are all there is."""
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(30, 1, 1)), rng.normal(size=(1, 4, 1))
    rows = np.concatenate([9.0 + (a + b).reshape(-1, 1), np.zeros((120, 1))], axis=1)
    sample = gb.Sample(rows, groups=np.repeat(np.arange(30), 4), seeds=np.tile(np.arange(4), 30))
    kernel = gb.estimators.PolynomialKernel(degree=1)
    real = np.random.default_rng(2).normal(size=(50, 2))
    plugin = gb.kernel_distance(sample, real, estimator="plugin", kernel=kernel).value
    found = gb.kernel_distance(sample, real, kernel=kernel).value
    own = (np.var(a, ddof=1) / 30 + np.var(b, ddof=1) / 4) / 2.0  # k = x·y / d + 1
    theirs = np.var(real, axis=0, ddof=1).sum() / 50 / 2.0
    assert plugin - found == pytest.approx(own + theirs, rel=1e-9)


@pytest.mark.statistical
def test_the_bias_of_any_pattern_of_cells_is_removed():
    """H0: what is taken off is the bias on average. Six standard errors: false alarms below 1e-8.

    What prompts alone, or the raw sum of prompts and seeds less cells, take off is 120 and 15 off.
    """
    rng = np.random.default_rng(3)
    prompt, seed = np.repeat(np.arange(12), 3), np.tile(np.arange(3), 12)
    kept = rng.random(36) > 0.3
    prompt, seed = np.append(prompt[kept], [0, 0]), np.append(seed[kept], [0, 1])
    parts = [
        np.unique(names, return_inverse=True)[1] for names in (prompt, seed, 3 * prompt + seed)
    ]
    kernel = gb.estimators.PolynomialKernel(degree=1)
    removed = []
    for _ in range(300):
        x = 30.0 + sum(rng.normal(size=36)[part] for part in parts)
        sample = gb.Sample(x[:, None], groups=prompt, seeds=seed)
        plugin, value = (
            gb.kernel_distance(sample, np.zeros((4, 1)), kernel=kernel, estimator=estimator).value
            for estimator in ("plugin", "debiased")
        )
        removed.append(plugin - value)
    truth = sum(((np.bincount(part) / prompt.size) ** 2).sum() for part in parts)
    assert abs(np.mean(removed) - truth) < 6.0 * np.std(removed) / np.sqrt(len(removed))


@pytest.mark.parametrize("name", SCORES)
def test_every_score_takes_seeds(name):
    """Names and the order of rows do not matter; shared seeds widen the interval."""
    rows, prompt, seed = crossed(np.random.default_rng(4), share=0.2)
    score = SCORES[name]
    found = score(gb.Sample(rows, groups=prompt, seeds=seed))
    alone = score(gb.Sample(rows, groups=prompt))
    assert found.stderr > 1.2 * alone.stderr
    assert "few-seeds" in codes(found)
    assert "shared-seeds" not in codes(found)
    named = np.array([f"s{9 - k}" for k in range(6)])[seed]
    again = score(gb.Sample(rows, groups=prompt, seeds=named))
    assert again.value == pytest.approx(found.value, rel=1e-9)
    assert again.stderr == pytest.approx(found.stderr, rel=1e-9)


@pytest.mark.parametrize("name", ["fd", "kid", "is", "vendi"])
def test_models_on_the_same_seeds_are_compared_without_their_noise(name):
    """Joint by names of prompts and of seeds; with other seeds' names, nothing of it cancels."""
    rng = np.random.default_rng(5)
    rows, prompt, seed = crossed(rng, share=0.2)
    near = rows + 0.1 * rng.normal(size=rows.shape)
    real = {"fd": REAL, "kid": OTHERS}.get(name)
    options = {"bandwidth": 2.0} if name == "vendi" else {}
    prepare = posteriors if name == "is" else lambda x: x

    def gap(*seeds):
        given = {
            key: prepare(gb.Sample(x, groups=prompt, seeds=s))
            for key, x, s in zip("ab", (rows, near), seeds, strict=True)
        }
        return gb.compare(given, real, metric=name, options=options).difference("a", "b")

    joint, apart = gap(seed, seed), gap(seed, seed + 100)
    assert joint.stderr < 0.6 * apart.stderr


def test_seeds_and_groups_of_one_name_are_not_the_same():
    rows, prompt, seed = crossed(np.random.default_rng(6))
    given = {
        "a": gb.Sample(rows, groups=prompt, seeds=seed),
        "b": gb.Sample(rows + 0.2, groups=prompt + 1000, seeds=seed + 500),
    }
    one = gb.compare(given, REAL).difference("a", "b").stderr
    given["b"] = gb.Sample(rows + 0.2, groups=prompt + 1000, seeds=prompt.max() - 10 + seed)
    assert gb.compare(given, REAL).difference("a", "b").stderr == pytest.approx(one)


REFUSED = {
    "one seed": (lambda p, s: {"groups": p, "seeds": 0 * s}, "one seed for all groups"),
    "no groups": (lambda p, s: {"seeds": s}, "pass groups as well"),
    "strata": (lambda p, s: {"groups": p, "seeds": s, "strata": p % 2}, "no strata"),
    "nested": (lambda p, s: {"groups": p, "seeds": 10 * p + s}, "no two groups share"),
    "one each": (lambda p, s: {"groups": p, "seeds": p % 6}, "a single seed in every group"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_seeds_that_tell_nothing_are_refused(case):
    rows, prompt, seed = crossed(np.random.default_rng(7))
    make, message = REFUSED[case]
    with pytest.raises(gb.InputError, match=message):
        gb.frechet_distance(gb.Sample(rows, **make(prompt, seed)), REAL)


@pytest.mark.parametrize(
    "score",
    [
        lambda x: gb.precision_recall(x, OTHERS),
        lambda x: gb.modes(x, OTHERS),
        lambda x: gb.frechet_distance(x, gb.Sample(OTHERS[:360], groups=x.groups, seeds=x.seeds)),
        lambda x: gb.mean_score(column(x), bounds=(-100.0, 100.0)),
        lambda x: gb.plan(OTHERS, x, half_width=0.1),
    ],
)
def test_what_knows_no_seeds_refuses_them(score):
    rows, prompt, seed = crossed(np.random.default_rng(8))
    with pytest.raises(gb.InputError, match="seeds"):
        score(gb.Sample(rows, groups=prompt, seeds=seed))


@pytest.mark.parametrize("name", ["fd", "mean"])
def test_two_or_three_seeds_are_too_few(name):
    found = {}
    for seeds in (3, 4, 10):
        rows, prompt, seed = crossed(np.random.default_rng(9), seeds=seeds)
        found[seeds] = SCORES[name](gb.Sample(rows, groups=prompt, seeds=seed))
    assert "few-seeds" in codes(found[3], "unreliable")
    assert "few-seeds" in codes(found[4], "caution")
    assert "few-seeds" not in codes(found[10])
