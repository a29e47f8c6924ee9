"""Counts of neighbours, against whole matrices of distances and against what is known exactly."""

from __future__ import annotations

from math import comb, sqrt

import numpy as np
import pytest
from scipy.special import ndtri

import genbounds as gb
from genbounds.core.design import design_of, row_design
from genbounds.estimators import NeighbourReference
from genbounds.estimators.neighbours._pairs import Neighbours, close_pairs
from genbounds.estimators.neighbours._reference import random_halves
from genbounds.estimators.neighbours._scored import expected_coverage
from genbounds.validation import seeded
from tests.estimators.neighbours import dense

RNG = np.random.default_rng(0)


def normal(n, d=6):
    return RNG.normal(size=(n, d))


def lattice(n):
    """Rows of few values, of which many coincide: all distances are ties."""
    return RNG.integers(0, 3, size=(n, 3)).astype(float)


COPIED = np.repeat(normal(25) + 100.0, 6, axis=0)  # their product of matrices is not exact

SAMPLES = {
    "copies of real rows": (COPIED[:120], COPIED),
    "double": (1.2 * normal(150), normal(150)),
    "single": ((1.2 * normal(150)).astype("f4"), normal(150).astype("f4")),
    "fewer generated": (1.2 * normal(100), normal(160)),
    "far off": (1.2 * normal(120) + 1e6, normal(120) + 1e6),
    "huge": (1e140 * normal(120), 1e140 * normal(120)),
    "ties": (lattice(200), lattice(220)),
    "one feature": (normal(110, 1), normal(130, 1)),
    "half": (normal(120).astype("f2"), normal(120).astype("f2")),
    "more copies than neighbours are kept": (
        normal(120),
        np.vstack([np.zeros((150, 6)), 5.0 * normal(70)]),
    ),
    "collapsed": (np.repeat(normal(4), 30, axis=0), normal(120)),
}


@pytest.mark.parametrize("kind", SAMPLES)
@pytest.mark.parametrize("k", [1, 3, 5])
def test_scores_of_the_whole_and_of_every_half_are_those_of_the_papers(kind, k):
    fake, real = SAMPLES[kind]
    reference = NeighbourReference(gb.Sample(real), k=k, splits=3, seed=4)
    scored = reference.scored("fake", gb.Sample(fake))
    real_half = random_halves(row_design(len(real)), 3, 4)
    fake_half = random_halves(row_design(len(fake)), 3, 4)
    unit = 1e140 if kind == "huge" else 1.0
    x, y = real.astype(float) / unit, fake.astype(float) / unit
    expected = [dense.scores(y, x, k)]
    nulls = [dense.left_out(x, np.arange(len(x)), k)]
    for a, b in zip(real_half[1:], fake_half[1:], strict=True):
        for side in (False, True):
            expected.append(dense.scores(y[b == side], x[a == side], k))
            nulls.append(dense.left_out(x[a == side], np.arange(np.sum(a == side)), k))
    np.testing.assert_allclose(scored.values, expected, rtol=1e-12)
    np.testing.assert_allclose(reference.null(len(x))[:, 0], nulls, rtol=1e-12)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("size", [3, 8])
def test_real_rows_in_groups_are_held_against_other_groups(ties, size):
    groups = RNG.permutation(np.repeat(np.arange(24), size))
    n = groups.size
    real = lattice(n) if ties else normal(24)[groups] + 0.3 * normal(n)
    sample = gb.Sample(real, groups=groups)
    reference = NeighbourReference(sample, k=2, splits=3, seed=1)
    half = random_halves(design_of("real", sample), 3, 1)
    expected = [dense.left_out(real, groups, 2)]
    for cut in half[1:]:
        for side in (False, True):
            expected.append(dense.left_out(real[cut == side], groups[cut == side], 2))
    np.testing.assert_allclose(reference.null(n)[:, 0], expected, rtol=1e-12)


def test_lists_of_neighbours_and_a_pass_over_all_rows_agree(monkeypatch):
    """The pass, which ties beyond the lists ask for, meets each row itself as well."""
    real = gb.Sample(normal(150))
    by_lists = NeighbourReference(real, splits=3).null(150)
    monkeypatch.setattr(Neighbours, "pairs", lambda self, limit: None)
    assert (NeighbourReference(real, splits=3).null(150) == by_lists).all()


def test_recall_of_fewer_rows_is_measured_by_as_many_real_ones():
    real = normal(300, 12)
    reference = NeighbourReference(gb.Sample(real), splits=4)
    found = [reference.null(m)[0, 1] for m in (100, 150, 300)]
    assert found[2] == reference.null(300)[0, 0]
    chosen = np.sort(seeded(0, "part").permutation(300)[:150])
    assert found[1] == pytest.approx(dense.left_out(real[chosen], np.arange(150), 5), rel=1e-12)


def test_expected_coverage_is_that_of_random_order():
    """All C(n - 1 + m, k) sets of nearest rows are equally likely."""
    for n, m, k in ((30, 20, 3), (100, 100, 5), (7, 40, 2)):
        expected = 1.0 - comb(n - 1, k) / comb(n - 1 + m, k)
        assert expected_coverage(np.array([n]), np.array([m]), k)[0] == pytest.approx(expected)


@pytest.mark.nightly
@pytest.mark.statistical
@pytest.mark.parametrize("d", [1, 40])
def test_density_and_coverage_of_equal_distributions_are_known(d):
    """False alarm 1e-6 (two means at 2.5e-7 on either side); a truth 5 standard errors off (2 % of
    density, 0.4 % of coverage) is seen with probability 50 %, 7 with 98 %.
    """
    rng = np.random.default_rng(d)
    found = []
    for _ in range(300):
        x, y = rng.normal(size=(110, d)) ** 3, rng.normal(size=(100, d)) ** 3
        reference = NeighbourReference(gb.Sample(x), splits=2)
        found.append(reference.scored("fake", gb.Sample(y)).values[0, 2:4])
    truth = [1.0, expected_coverage(np.array([110]), np.array([100]), 5)[0]]
    z = (np.mean(found, axis=0) - truth) / (np.std(found, axis=0, ddof=1) / sqrt(len(found)))
    assert (np.abs(z) < -ndtri(2.5e-7)).all(), z


def test_close_pairs_are_all_pairs_in_reach_in_any_block(monkeypatch):
    x, y = normal(90), normal(70)
    limit, other = RNG.uniform(0, 12, 90), RNG.uniform(0, 12, 70)
    squares = ((x[:, None] - y) ** 2).sum(axis=2)
    near = (squares <= limit[:, None]) | (squares <= other)
    for entries in (1 << 31, 0):
        monkeypatch.setattr("genbounds.estimators.neighbours._pairs.EXACT_ENTRIES", entries)
        monkeypatch.setattr("genbounds.estimators.neighbours._pairs.BLOCK_MIB", 0.01)
        blocks = list(close_pairs(x, y, limit, other))
        assert len(blocks) > 1
        found = np.zeros_like(squares)
        for i, j, values in blocks:
            found[i, j] = values
        np.testing.assert_allclose(found[near], squares[near], rtol=1e-12)


# Halves -------------------------------------------------------------------------------------------


def test_halves_divide_groups_whole_and_strata_evenly():
    groups = np.repeat(np.arange(60), 5)
    strata = np.repeat([0, 1, 2], [100, 75, 125])  # 20, 15 and 25 groups
    design = design_of("x", gb.Sample(np.zeros((300, 1)), groups=groups, strata=strata))
    half = random_halves(design, 20, 0)
    assert not half[0].any()
    for cut in half[1:]:
        by_group = cut.reshape(60, 5)
        assert (by_group == by_group[:, :1]).all()
        assert [cut[strata == s].sum() // 5 for s in (0, 1, 2)] in ([10, 7, 13], [10, 8, 12])
    assert len({cut.tobytes() for cut in half[1:]}) == 20


@pytest.mark.parametrize("kind", [int, str])
def test_a_name_is_in_the_same_half_of_every_sample(kind):
    """Of samples that hold the same names, in any order; of nearly all if they hold others too."""
    names = np.array([kind(name) for name in range(200)])
    order = RNG.permutation(200)
    one, two, part = (
        design_of("x", gb.Sample(np.zeros((len(g), 1)), groups=g))
        for g in (names, names[order], names[order][:150])
    )
    first, second, third = (random_halves(design, 10, 3) for design in (one, two, part))
    assert (first[:, order] == second).all()
    assert (second[1:, :150] == third[1:]).mean() > 0.9
