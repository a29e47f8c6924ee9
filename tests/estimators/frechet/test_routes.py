"""Which route removes the bias, by rows per direction, number of directions and what is known."""

from __future__ import annotations

import numpy as np
import pytest

import genbounds as gb
from genbounds.estimators import FrechetReference
from genbounds.estimators.frechet._pair import Pair
from genbounds.estimators.frechet._strategies import FIT_DIRECTIONS, FIT_RATIO, debiased
from genbounds.estimators.frechet._sample import SPLIT_RATIO, sample_of

D = FIT_DIRECTIONS


def rows(seed, n, d=D, freedom=8.0):
    """Elliptical t rows with a falling spectrum."""
    rng = np.random.default_rng(seed)
    scales = np.arange(1.0, d + 1.0) ** -0.5 / np.sqrt(rng.chisquare(freedom, (n, 1)) / freedom)
    return rng.normal(size=(n, d)) * scales


def route(score):
    (found,) = (note for note in score.notes if note.startswith("route: "))
    return found.removeprefix("route: ")


@pytest.mark.parametrize(
    ("n", "d", "expected"),
    [
        (4 * D, D, "separable spectrum fit"),
        (FIT_RATIO * D - 1, D, "separable spectrum fit"),
        (FIT_RATIO * D, D, "third order, by halving"),
        (4 * D, D - 1, "third order, by halving"),
    ],
)
def test_the_fit_serves_up_to_eight_rows_a_direction_where_there_are_many(n, d, expected):
    known = gb.Moments(np.zeros(d), np.diag(1.0 / np.arange(1.0, d + 1.0)))
    assert route(gb.frechet_distance(rows(0, n, d), known)) == expected


@pytest.mark.parametrize(
    ("n", "m", "d", "expected"),
    [
        (5 * D, 6 * D, D, "separable spectrum fit to both samples"),
        (6 * D, 5 * D, D, "separable spectrum fit to both samples"),
        (5 * D, FIT_RATIO * D, D, "separable spectrum fit"),
        (5 * D, 6 * D, D - 20, "third order, by halving"),
        (D, 6 * D, D - 20, "separable spectrum fit to both samples"),
    ],
)
def test_two_sampled_sides_below_eight_rows_are_fitted_together(n, m, d, expected):
    assert route(gb.frechet_distance(rows(0, n, d), rows(1, m, d))) == expected


def test_a_fit_that_is_not_trusted_leaves_it_to_the_expansion():
    """A spectrum with a cliff and rows of two lengths: neither fit nor contour applies."""
    rng = np.random.default_rng(2)
    spectrum = np.where(np.arange(D) < D // 2, 1.0, 1e-6)
    x = rng.normal(size=(5 * D, D)) * np.sqrt(spectrum * rng.choice([0.2, 1.8], size=(5 * D, 1)))
    known = gb.Moments(np.zeros(D), np.eye(D))
    assert any(
        note.startswith("unreliable") for note in gb.frechet_distance(x[: 3 * D], known).notes
    )
    score = gb.frechet_distance(x, known)
    assert route(score) == "third order, by halving"
    assert not any(note.startswith("unreliable") for note in score.notes)


def rare(seed, n, d, share=0.02):
    """Independent features that are not 0 in one row of fifty."""
    rng = np.random.default_rng(seed)
    return rng.exponential(size=(n, d)) * (rng.random((n, d)) < share)


@pytest.mark.parametrize("side", ["generated", "reference"])
def test_rare_features_are_doubted(side):
    """Fourth moments make their bias several times that of Gaussian rows.

    Intervals from features that are not 0 in one row of a hundred covered the truth 8 times in 100
    from four rows a direction, 39 times from eight (a development run).
    """
    d = 48
    exact = gb.Moments(np.full(d, 0.02), 0.0396 * np.eye(d))
    x = rare(9, 8 * d, d)
    score = gb.frechet_distance(*((x, exact) if side == "generated" else (exact, x)))
    (doubt,) = (note for note in score.notes if note.startswith("unreliable"))
    assert f"{8 * d} {side} rows are as good as" in doubt


def test_heavy_tails_that_the_expansion_can_bear_are_not_doubted():
    known = gb.Moments(np.zeros(48), np.diag(1.0 / np.arange(1.0, 49.0)))
    for seed in range(5):
        score = gb.frechet_distance(rows(seed, 4 * 48, 48), known)
        assert not any(note.startswith("unreliable") for note in score.notes)
    score = gb.frechet_distance(rows(5, 4 * 48, 48, freedom=3.0), known)
    assert any(note.startswith("unreliable: heavy tails") for note in score.notes)


@pytest.mark.parametrize("other", ["exact", "many rows", "few rows"])
def test_halving_weighs_pairs_of_rows_unevenly(other):
    """By 2/3 within a half and 4/3 across: squared, 10/9 on average; mixed pairs only if both are.

    The weights of all pairs of 1,000 rows are counted here.
    """
    half = np.arange(1000) % 2
    same = np.equal.outer(half, half)[~np.eye(1000, dtype=bool)]
    # The mean of two halves weighs its pairs by n² / (2 (n/2)²).
    excess = np.mean((4 / 3 - 1 / 3 * np.where(same, 2.0, 0.0)) ** 2) - 1
    n, d = 40, 4
    real = {
        "exact": gb.Moments(np.zeros(d), np.eye(d)),
        "many rows": rows(8, SPLIT_RATIO * d, d),
        "few rows": rows(8, 60, d),
    }
    pair = Pair(sample_of("fake", rows(7, n, d)), sample_of("real", real[other]))
    found = debiased(pair.fake, pair.real, every_row=True)
    assert "third order" in found.notes[0]
    one, two = pair.terms(every_row=True)
    mixed = other == "few rows"
    for variance, terms, halved in (
        (found.variance, one, True),
        (found.reference_variance, two, mixed),
    ):
        uneven = halved * (terms.quadratic_variance + mixed * terms.mixed_variance)
        assert variance - terms.variance == pytest.approx(excess * uneven, rel=0.02, abs=1e-15)


@pytest.mark.parametrize("swapped", [False, True])
def test_a_sampled_side_keeps_its_influences(swapped):
    """They make its noise cancel in differences; its variance is that of the expansion."""
    few, many = rows(3, 5 * D), rows(4, 10 * D)
    if swapped:
        expansion = FrechetReference(few).expand(many)
        variance, influence = expansion.variance, expansion.influence
    else:
        expansion = FrechetReference(many).expand(few)
        variance, influence = expansion.reference_variance, expansion.reference_influence
    assert "separable spectrum fit" in expansion.notes[0]
    assert influence.shape == (10 * D,)
    assert variance == pytest.approx(float(influence @ influence) / (10 * D) ** 2, rel=0.2)


def test_swapping_the_arguments_changes_only_rounding():
    few, many = rows(5, 5 * D), rows(6, 9 * D)
    there, back = gb.frechet_distance(few, many), gb.frechet_distance(many, few)
    assert there.value == pytest.approx(back.value, rel=1e-8)
    assert there.stderr == pytest.approx(back.stderr, rel=1e-6)
