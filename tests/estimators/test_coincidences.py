"""Rows that two samples share: chance is not accused, copies are seen."""

from itertools import product
from math import comb

import numpy as np
import pytest
from scipy.stats import binom

import genbounds as gb
from genbounds.core.close_rows import (
    bound_of_pairs,
    coincidence_pvalue,
    judge_common_rows,
    twice_law,
)

DISCRETE = {
    "counts": lambda g, n: g.poisson(1.0, (n, 8)) * 1.0,
    "one-hot": lambda g, n: np.eye(100)[g.integers(100, size=n)],
    "fingerprints": lambda g, n: (g.random((n, 64)) < 0.05) * 1.0,
    "sparse ReLU": lambda g, n: np.maximum(
        g.standard_normal((n, 1)) + g.standard_normal((n, 64)) - 3.5, 0.0
    ),
    "counts of one rate": lambda g, n: g.poisson(g.gamma(0.5, 1.0, (n, 1)) * np.ones(16)) * 1.0,
    "answers": lambda g, n: np.clip(
        np.round(3.0 + 1.2 * g.standard_normal((n, 1)) + 0.8 * g.standard_normal((n, 20))), 1, 5
    ),
    "half rows of zeros": lambda g, n: g.standard_normal((n, 32)) * (g.random((n, 1)) < 0.5),
}


def ids_of(first, total):
    """Digests of samples in which value a stands first[a] times, of total[a] in both."""
    values = np.arange(len(first), dtype=np.uint64)
    return np.repeat(values, first), np.repeat(values, np.subtract(total, first))


def exact_size(weights, total, own):
    """Largest P(p ≤ α)/α over α, by all splits of `total` with `own` rows of the first sample."""
    chances, pvalues = [], []
    for first in product(*(range(k + 1) for k in total)):
        if sum(first) != own:
            continue
        split = zip(first, total, weights, strict=True)
        chances.append(np.prod([comb(k, f) * w**f for f, k, w in split]))
        pvalues.append(coincidence_pvalue(*ids_of(first, total)))
    order = np.argsort(pvalues)
    pvalues = np.array(pvalues)[order]
    reached = np.cumsum(np.array(chances)[order]) / np.sum(chances)
    last = np.append(pvalues[1:] > pvalues[:-1], True)  # of equal p-values, all count
    return (reached / pvalues)[last].max()


@pytest.mark.parametrize(
    "total", [pytest.param((2, 2, 2, 2, 3, 3), marks=pytest.mark.slow), (1, 2, 2, 4, 5)]
)
@pytest.mark.parametrize("spread", [0.0, 2.0])
def test_no_pair_of_laws_is_accused_more_often_than_said(total, spread):
    """Exactly, over all splits of these values; `spread`: of the logarithm of p/q."""
    weights = np.exp(spread * np.random.default_rng(1).standard_normal(len(total)))
    for own in range(sum(total) + 1):
        assert exact_size(weights, total, own) <= 1.0 + 1e-12


def test_the_law_of_values_that_stand_twice_is_that_of_all_splits():
    for own in range(13):
        counts = np.zeros(7)
        for first in product(range(3), repeat=6):
            if sum(first) == own:
                counts[first.count(1)] += np.prod([comb(2, f) for f in first])
        np.testing.assert_allclose(np.exp(twice_law(6, own)), counts / counts.sum(), atol=1e-14)


@pytest.mark.parametrize("size", [3, 4])
def test_the_bound_holds_where_values_stand_often(size):
    """Thirty values, the law of S and the sum by convolution; p and q alike and unlike."""
    total = np.full(30, size)
    for spread in (0.0, 1.0):
        weights = np.exp(spread * np.random.default_rng(2).standard_normal(30))
        law = {(0, 0): 1.0}  # of (number of rows of the first sample, Σ N M)
        for w in weights:
            split = np.array([comb(size, b) * w**b for b in range(size + 1)])
            further = {}
            for (own, pairs), chance in law.items():
                for b, more in enumerate(split / split.sum()):
                    key = own + b, pairs + b * (size - b)
                    further[key] = further.get(key, 0.0) + chance * more
            law = further
        own = 30 * size // 2
        law = {pairs: chance for (n, pairs), chance in law.items() if n == own}
        tail, whole = 0.0, sum(law.values())
        for pairs in sorted(law, reverse=True):
            tail += law[pairs] / whole
            assert tail <= bound_of_pairs(pairs / (size - 1.0), total) + 1e-12


@pytest.mark.statistical
@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_rows_are_not_accused(name):
    """H0: at most one of 10⁴ is doubted; a rule that accuses one in ten is seen with 1 − 10⁻⁹."""
    for stream in np.random.SeedSequence(3).spawn(100):
        rng = np.random.default_rng(stream)
        x, y = DISCRETE[name](rng, 500), DISCRETE[name](rng, 500)
        ids = [gb.estimators.row_ids(z) for z in (x, y)]
        assert judge_common_rows(*ids, (x, y))[1] is None


def test_copied_rows_are_seen():
    """5 % of Gaussian rows, in every one of 60 samples: power of at least 95 % at level 0.05."""
    found = 0
    for stream in np.random.SeedSequence(4).spawn(60):
        rng = np.random.default_rng(stream)
        x, y = rng.standard_normal((2, 500, 8))
        x[:25] = y[:25]
        ids = [gb.estimators.row_ids(z) for z in (x, y)]
        found += judge_common_rows(*ids)[1] == "unreliable"
    assert binom.cdf(found, 60, 0.95) > 0.05


def test_a_few_copies_of_continuous_rows_are_a_caution():
    rng = np.random.default_rng(5)
    x, y = rng.standard_normal((2, 300, 8))
    x[0] = y[7]
    ids = [gb.estimators.row_ids(z) for z in (x, y)]
    assert judge_common_rows(*ids, (x, y)) == (1, "caution")
    assert judge_common_rows(*ids) == (1, None)


FEW = ("counts of one rate", "half rows of zeros")  # one rule, which is tried with all above


@pytest.mark.slow
@pytest.mark.parametrize("name", FEW)
def test_no_command_accuses_discrete_rows(name):
    """Neither as they come, nor told to be independent."""
    rng = np.random.default_rng(6)
    real, a, b = (DISCRETE[name](rng, 400) for _ in range(3))
    for given in ((real, a, b), (gb.Sample(real), gb.Sample(a), gb.Sample(b))):
        real, a, b = given
        accused = [
            gb.kernel_distance(a, real).warnings,
            *(s.warnings for s in gb.compare({"a": a, "b": b}, real, metric="kid").scores.values()),
            gb.compare({"a": a, "b": b}, real, metric="kid").warnings,
            gb.gate(a, b, real, margin=1.0, metric="kid").warnings,
            gb.mixture({"a": a, "b": b}, real).warnings,
            gb.modes(a, real).warnings,
        ]
        codes = {warning.code for warnings in accused for warning in warnings}
        assert not codes & {"leak", "same-rows", "copies", "duplicates", "dependent-rows"}
        # Of copies, equal real rows are what hides them: a caution, no more.
        warnings = *gb.memorisation(a, real, b).warnings, *gb.authpct(a, real).warnings
        assert not {w.code for w in warnings} & {"leak", "same-rows", "copies"}
        assert "duplicates" not in {w.code for w in warnings if w.severity == "unreliable"}


@pytest.mark.parametrize("name", FEW)
def test_no_arm_of_discrete_rows_is_set_aside(name):
    arms = {one: lambda n, rng: DISCRETE[name](rng, n) for one in "ab"}
    real = DISCRETE[name](np.random.default_rng(7), 400)
    assert not gb.select.run(arms, real, metric="kid", limit=400).set_aside


@pytest.mark.parametrize("kind", ["fair bits", "counts and a number"])
def test_files_that_a_sample_holds_twice_count_once(kind):
    """One row in twenty is a copy, in every one of 30 samples."""
    make = {
        "fair bits": lambda g: (g.random((400, 64)) < 0.5) * 1.0,
        "counts and a number": lambda g: np.c_[g.poisson(1.0, (400, 3)), g.standard_normal(400)],
    }[kind]
    for stream in np.random.SeedSequence(8).spawn(30):
        x = make(np.random.default_rng(stream))
        x[:20] = x[20:40]
        assert "duplicates" in {w.code for w in gb.vendi_score(x).warnings}
