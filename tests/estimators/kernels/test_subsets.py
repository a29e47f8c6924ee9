"""KID as published: the mean over random subsets, what varies about it, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

import genbounds as gb
from genbounds.validation import InputError, seeded
from tests.estimators.kernels.test_distance import KERNELS, direct
from tests.warnings_of import codes


def samples(n=200, m=150, d=6):
    rng = np.random.default_rng(0)
    return rng.normal(0.3, 1.2, (n, d)), rng.normal(size=(m, d))


@pytest.mark.parametrize("size", [20, 150])
def test_value_is_the_mean_over_subsets_and_the_caution_says_their_spread(size):
    """As torch-fidelity, torchmetrics and clean-fid have it: a loop over textbook sums."""
    x, y = samples()
    rng = seeded(3, "subsets")
    drawn = ([z[rng.choice(len(z), size, replace=False)] for z in (x, y)] for _ in range(25))
    sums = [direct(*pair, KERNELS["kid"][1], unbiased=True) for pair in drawn]
    score = gb.kernel_distance(x, y, subsets=25, subset_size=size, seed=3)
    assert score.value == pytest.approx(np.mean(sums), rel=1e-10)
    assert score.estimator == "subsets"
    assert codes(score) == {"subset-spread"}
    (warning,) = score.warnings
    assert f"{np.std(sums):.4g}" in warning.message
    everything = gb.kernel_distance(x, y)
    assert score.stderr**2 == pytest.approx(everything.stderr**2 + np.var(sums) / 24, rel=1e-9)
    assert f"{score.stderr:.4g}" in warning.message


def test_the_spread_of_subsets_is_no_error_and_the_interval_is_wider_than_that_of_all_pairs():
    rng = np.random.default_rng(1)
    x, y = rng.normal(0.2, 1.0, (1000, 4)), rng.normal(size=(1000, 4))
    score, everything = (
        gb.kernel_distance(x, y, subsets=20, subset_size=70),
        gb.kernel_distance(x, y),
    )
    assert everything.stderr < score.stderr < 2.0 * everything.stderr


@pytest.mark.statistical
def test_the_mean_of_subsets_varies_about_all_pairs_by_the_choice_alone():
    """Null: E = value of all pairs, Var = variance over subsets / count; false alarm 1e-6 each.

    400 choices from one pair of samples; a value off by 0.4 standard errors of the choice, or a
    variance wrong by a factor of 2, is found with probability above 0.99.
    """
    x, y = samples()
    whole = gb.kernel_distance(x, y)
    scores = [gb.kernel_distance(x, y, subsets=10, subset_size=40, seed=s) for s in range(400)]
    values = np.array([score.value for score in scores])
    choice = np.array([score.stderr**2 for score in scores]) - whole.stderr**2
    gap = (values.mean() - whole.value) / np.sqrt(choice.mean() / 400)
    assert abs(gap) < 5.0
    low, high = chi2.ppf([5e-7, 1.0 - 5e-7], 399) / 399
    assert low < values.var(ddof=1) / choice.mean() < high


@pytest.mark.parametrize("kernel", ["cmmd", "energy"])
def test_every_kernel_has_subsets_and_features_of_any_size(kernel):
    x, y = samples()
    score = gb.kernel_distance(x, y, kernel=kernel, subsets=5, subset_size=30)
    larger = gb.kernel_distance(1e40 * x, 1e40 * y, kernel=kernel, subsets=5, subset_size=30)
    factor = 1e40 if kernel == "energy" else 1.0
    assert larger.value == pytest.approx(factor * score.value, rel=1e-9)
    assert larger.stderr == pytest.approx(factor * score.stderr, rel=1e-9)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"subsets": 1}, "`subsets` must be a whole number of at least 2; got 1."),
        ({"subsets": 5, "subset_size": 1}, "`subset_size` must be a whole number of at least 2"),
        ({"subsets": 5, "subset_size": 151}, "`subset_size` must be at most 150, the rows of the"),
        ({"subsets": 5}, "`subset_size` must be at most 150, .*; got 1,000."),
        ({"subsets": 5, "estimator": "plugin"}, "`estimator` must be 'debiased' with `subsets`"),
    ],
)
def test_what_is_not_legal_is_refused(given, message):
    with pytest.raises(InputError, match=message):
        gb.kernel_distance(*samples(), **given)


def test_groups_are_refused():
    x, y = samples()
    grouped = gb.Sample(x, groups=np.arange(200) // 2)
    with pytest.raises(InputError, match="`subsets` are of independent rows"):
        gb.kernel_distance(grouped, y, subsets=5)
