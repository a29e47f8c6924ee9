"""A kernel matrix that is given has the score of the rows that it is the kernel of."""

from __future__ import annotations

import numpy as np
import pytest

import genbounds as gb
from tests.refusal import refused

RNG = np.random.default_rng(7)
N = 200
X = RNG.normal(size=(N, 3))
SHUFFLED = RNG.permutation(N)


def matrix(x, sigma=1.5):
    return np.exp(-((x[:, None] - x) ** 2).sum(axis=2) / (2.0 * sigma**2))


def same(found, expected):
    for name in ("value", "low", "high", "stderr"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-9)
    assert [w.code for w in found.warnings] == [w.code for w in expected.warnings]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"order": 2.0},
        {"order": 2.0, "method": "ustat"},
        {"order": np.inf},
        {"method": "truncated", "components": 10},
        {"method": "nystrom", "components": 20},
        {"method": "lanczos", "components": 20},
        {"estimator": "plugin"},
    ],
    ids=str,
)
def test_the_score_is_that_of_the_rows(options):
    """Whatever the diagonal: kernels are normalised."""
    expected = gb.vendi_score(X, bandwidth=1.5, **options)
    size = np.exp(X[:, 0])
    given = matrix(X) * size * size[:, None]
    same(gb.vendi_score(given, kernel="precomputed", **options), expected)


@pytest.mark.parametrize(
    "design",
    [
        {"groups": SHUFFLED // 4},
        {"groups": SHUFFLED},  # independent, but ordered by their names
        {"weights": 1.0 + (SHUFFLED % 3)},
        {"strata": SHUFFLED % 2},
    ],
    ids=lambda design: next(iter(design)),
)
def test_a_sample_says_how_the_rows_of_the_matrix_were_drawn(design):
    rows = (
        X[SHUFFLED // 4] + 0.1 * X if "strata" not in design else X + 5.0 * (SHUFFLED % 2)[:, None]
    )
    expected = gb.vendi_score(gb.Sample(rows, **design), bandwidth=1.5, order=2.0)
    sample = gb.Sample(matrix(rows), **design)
    same(gb.vendi_score(sample, kernel="precomputed", order=2.0), expected)


def test_groups_that_the_matrix_knows_nothing_of_are_noticed():
    rows, groups = RNG.normal(size=(600, 20)), RNG.permutation(600) // 10
    expected = gb.vendi_score(gb.Sample(rows, groups=groups), bandwidth=6.0, order=2.0)
    sample = gb.Sample(matrix(rows, 6.0), groups=groups)
    found = gb.vendi_score(sample, kernel="precomputed", order=2.0)
    for score in (expected, found):
        assert [warning.code for warning in score.warnings] == ["unrelated-labels"]


def test_samples_that_repeat_count_once():
    rows = X[np.arange(N) % 150]
    expected = gb.vendi_score(rows, bandwidth=1.5, order=2.0)
    found = gb.vendi_score(matrix(rows), kernel="precomputed", order=2.0)
    assert "duplicates" in {warning.code for warning in found.warnings}
    # The draws are numbered otherwise, and random pairs of them are others.
    assert found.value == pytest.approx(expected.value, rel=1e-3)
    assert found.high == pytest.approx(expected.high, rel=1e-2)


def test_models_are_compared_by_what_they_share():
    """In another order each."""
    models = {"a": X, "b": (X + 0.1 * RNG.normal(size=X.shape))[SHUFFLED]}
    ids = {"a": np.arange(N), "b": SHUFFLED}

    def compared(given, **options):
        samples = {name: gb.Sample(x, groups=ids[name]) for name, x in given.items()}
        return gb.compare(samples, metric="vendi", options={"order": 2.0, **options})

    found = compared({name: matrix(x) for name, x in models.items()}, kernel="precomputed")
    expected = compared(models, bandwidth=1.5)
    for name in models:
        same(found.scores[name], expected.scores[name])
    assert found.warnings == expected.warnings
    one, two = (ranking.difference("a", "b") for ranking in (found, expected))
    assert one.stderr == pytest.approx(two.stderr, rel=1e-9)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (matrix(X)[:10], "shape (10, 200)"),
        (matrix(X) + np.triu(np.ones((N, N)), 1), "not symmetric"),
        (np.where(np.eye(N, k=3) == 1.0, np.nan, matrix(X)), "NaN in row 0"),
    ],
)
def test_what_is_no_kernel_matrix_is_refused(given, words):
    with refused("`x`", words):
        gb.vendi_score(given, kernel="precomputed")
    with refused("`kernel`", "positive"):
        gb.vendi_score(-matrix(X), kernel="precomputed")
