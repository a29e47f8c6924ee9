"""The distance of every class."""

from __future__ import annotations

import numpy as np
import pytest

import genbounds as gb
from tests.refusal import refused

CLASSES = 6


def classes(rng, each, d, gap=0.0, scale=1.0):
    """Rows of six classes far apart; of the last one every feature is shifted by `gap`."""
    labels = np.repeat(np.arange(CLASSES), each)
    centres = 5.0 * np.random.default_rng(7).normal(size=(CLASSES, d))
    x = centres[labels] + scale * rng.normal(size=(labels.size, d))
    x[labels == CLASSES - 1] += gap
    return x, labels


def test_every_class_is_a_distance_of_its_own_at_a_joint_level():
    rng = np.random.default_rng(0)
    (fake, labels), (real, others) = classes(rng, 60, 4, gap=1.0), classes(rng, 80, 4)
    mixed = rng.permutation(labels.size)
    found = gb.frechet_by_class(fake[mixed], real, labels[mixed], others, level=0.9)
    for k in range(CLASSES):
        rows = mixed[labels[mixed] == k]
        alone = gb.frechet_distance(
            gb.Sample(fake[rows]), gb.Sample(real[others == k]), level=1.0 - (1.0 - 0.9) / CLASSES
        )
        assert found.classes[k].to_dict() == alone.to_dict()
    assert next(iter(found.classes)) == CLASSES - 1
    assert found.worst == (CLASSES - 1,)
    assert str(found).startswith("5 is the worst of 6 classes")
    assert found.shares == dict.fromkeys(found.classes, 1 / CLASSES)
    values = [score.value for score in found.classes.values()]
    assert values == sorted(values, reverse=True)


def test_the_mean_weighs_classes_by_their_share_of_the_reference():
    rng = np.random.default_rng(1)
    (fake, labels), (real, others) = classes(rng, 100, 3, gap=2.0), classes(rng, 100, 3, gap=-2.0)
    kept = (others != 0) | (np.arange(others.size) < 40)
    found = gb.frechet_by_class(fake, real[kept], labels, others[kept])
    shares = np.array([40, 100, 100, 100, 100, 100]) / 540
    assert [found.shares[k] for k in range(6)] == pytest.approx(shares.tolist())
    alone = [
        gb.estimators.FrechetReference(gb.Sample(real[kept & (others == k)])).estimate(
            gb.Sample(fake[labels == k]), influences=False
        )
        for k in range(6)
    ]
    values = np.array([one.value for one in alone])
    assert found.mean.value == pytest.approx(shares @ values)
    # The shares of random classes have an error of their own.
    of_shares = shares @ (values - shares @ values) ** 2 / 539
    variance = shares**2 @ [one.variance for one in alone] + of_shares
    assert found.mean.stderr**2 == pytest.approx(variance)


def test_weights_of_the_reference_are_in_the_shares_and_in_their_error():
    """As if rows with an integer weight stood there as often."""
    rng = np.random.default_rng(9)
    (fake, labels), (real, others) = classes(rng, 60, 2, gap=1.0), classes(rng, 80, 2)
    weights = np.where(others < 3, 3.0, 1.0)
    found = gb.frechet_by_class(
        gb.Sample(fake + 2.0), gb.Sample(real, weights=weights), labels // 3, others // 3
    )
    assert found.shares == pytest.approx({0: 0.75, 1: 0.25})
    low, high = sorted((found.classes[0], found.classes[1]), key=lambda score: score.value)
    assert low.value < found.mean.value < high.value
    assert found.mean.value == pytest.approx(
        0.75 * found.classes[0].value + 0.25 * found.classes[1].value, rel=0.02
    )


@pytest.mark.parametrize("strata", [True, False])
def test_classes_of_equal_numbers_are_strata_also_of_grouped_rows(strata):
    rng = np.random.default_rng(10)
    (fake, labels), (real, others) = classes(rng, 60, 3), classes(rng, 60, 3)

    def given(rows, kinds):
        prompts = np.arange(len(rows)) // 3
        return gb.Sample(rows, groups=prompts, strata=kinds if strata else None)

    found = gb.frechet_by_class(given(fake, labels), given(real, others), labels, others)
    both = gb.frechet_distance(
        gb.Sample(fake, groups=np.arange(360) // 3, strata=labels),
        gb.Sample(real, groups=np.arange(360) // 3, strata=others),
    )
    assert found.whole.to_dict() == both.to_dict()


def test_a_doubt_of_the_whole_is_one_of_the_result():
    rng = np.random.default_rng(11)
    labels = (np.arange(400) < 100).astype(int)
    fake, real = rng.normal(size=(2, 400, 3)) + 4.0 * labels[:, None]
    found = gb.frechet_by_class(fake, real, labels, labels)
    assert not found.whole.reliable
    assert not found.reliable
    assert "dependent-rows" in {warning.code for warning in found.warnings}
    assert str(found).endswith("; unreliable: see the warnings")


def test_classes_that_are_exchanged_are_seen_by_the_classes_alone():
    rng = np.random.default_rng(2)
    (fake, labels), (real, others) = classes(rng, 150, 4), classes(rng, 150, 4)
    found = gb.frechet_by_class(fake, real, (labels + 1) % CLASSES, others)
    assert found.whole.low == 0.0
    assert found.mean.low > 10.0
    assert found.reliable


def test_groups_are_kept_in_every_class():
    rng = np.random.default_rng(3)
    prompts = np.repeat(np.arange(CLASSES * 50), 4)
    labels = prompts // 50
    x = rng.normal(size=(prompts[-1] + 1, 3))[prompts] + 0.1 * rng.normal(size=(prompts.size, 3))
    real, others = rng.normal(size=(1200, 3)), np.repeat(np.arange(CLASSES), 200)
    found = gb.frechet_by_class(gb.Sample(x, groups=prompts), real, labels, others)
    alone = gb.frechet_distance(
        gb.Sample(x[:200], groups=prompts[:200]),
        gb.Sample(real[:200]),
        level=1.0 - (1.0 - 0.95) / CLASSES,
    )
    assert found.classes[0].to_dict() == alone.to_dict()


def test_fifty_rows_of_many_features_are_called_unreliable():
    rng = np.random.default_rng(4)
    (fake, labels), (real, others) = classes(rng, 50, 128), classes(rng, 50, 128)
    found = gb.frechet_by_class(fake, real, labels, others)
    assert not any(score.reliable for score in found.classes.values())
    assert not found.mean.reliable
    assert found.mean.warnings[0].message.startswith("6 of 6 classes cannot be relied on: ")
    assert "few-samples" in {warning.code for warning in found.warnings}


def plain_distance(x, y):
    """Plug-in distance in two dimensions, where Tr √ is known from trace and determinant."""
    one, two = np.cov(x.T), np.cov(y.T)
    gap = x.mean(axis=0) - y.mean(axis=0)
    root = np.sqrt(np.trace(one @ two) + 2.0 * np.sqrt(np.linalg.det(one) * np.linalg.det(two)))
    return gap @ gap + np.trace(one) + np.trace(two) - 2.0 * root


def plain_difference(x, y, k, c):
    shares = np.bincount(c) / c.size
    mean = sum(plain_distance(x[k == one], y[c == one]) * shares[one] for one in range(2))
    return mean - plain_distance(x, y)


def jackknife_variance(values):
    return (len(values) - 1.0) * np.var(values)


def test_the_error_of_mean_less_whole_is_that_of_the_jackknife():
    """Of one row at a time, from the definition: what rows add by their class is in it."""
    rng = np.random.default_rng(3)
    k, c = rng.integers(2, size=(2, 800))
    x = rng.normal(size=(800, 2)) + 1.5 * k[:, None]
    y = 1.5 * rng.normal(size=(800, 2)) - 2.0 * (c == 0)[:, None]
    found = gb.frechet_by_class(gb.Sample(x), gb.Sample(y), k, c).difference
    rows = range(800)
    one, all_of = [np.delete(x, i, axis=0) for i in rows], [np.delete(k, i) for i in rows]
    two, theirs = [np.delete(y, i, axis=0) for i in rows], [np.delete(c, i) for i in rows]
    fake = [plain_difference(one[i], y, all_of[i], c) for i in rows]
    real = [plain_difference(x, two[i], k, theirs[i]) for i in rows]
    expected = np.sqrt(jackknife_variance(fake) + jackknife_variance(real))
    assert found.stderr == pytest.approx(expected, rel=0.02)
    assert found.value == pytest.approx(plain_difference(x, y, k, c), abs=0.1 * found.stderr)


def test_rows_that_repeat_have_one_influence_on_the_difference():
    """Their copies were drawn with them: the error is that of the rows without copies."""
    rng = np.random.default_rng(4)
    (fake, labels), (real, others) = classes(rng, 50, 3), classes(rng, 50, 3, gap=1.0)
    labels, others = labels // 3, others // 3
    once = gb.frechet_by_class(gb.Sample(fake), gb.Sample(real), labels, others).difference
    twice = gb.frechet_by_class(
        np.repeat(fake, 2, axis=0), np.repeat(real, 2, axis=0), labels.repeat(2), others.repeat(2)
    ).difference
    assert twice.stderr == pytest.approx(once.stderr, rel=0.1)


@pytest.mark.parametrize("kind", [np.arange, lambda n: np.array([f"p{i:04d}" for i in range(n)])])
def test_the_order_of_rows_and_their_names_do_not_matter(kind):
    rng = np.random.default_rng(5)
    (fake, labels), (real, others) = classes(rng, 50, 3), classes(rng, 40, 3, gap=1.0)
    labels, others = labels // 3, others // 3
    plain = gb.frechet_by_class(gb.Sample(fake), gb.Sample(real), labels, others).difference
    order, name = rng.permutation(300), rng.permutation(kind(300))
    mixed = gb.frechet_by_class(
        gb.Sample(fake[order], groups=name), gb.Sample(real), labels[order], others
    ).difference
    assert mixed.value == pytest.approx(plain.value, abs=0.5 * plain.stderr)
    assert mixed.stderr == pytest.approx(plain.stderr, rel=0.05)


def test_a_model_that_exchanges_classes_loses_all_of_the_mean_between_them():
    rng = np.random.default_rng(2)
    (fake, labels), (real, others) = classes(rng, 200, 3), classes(rng, 200, 3)
    found = gb.frechet_by_class(fake, real, CLASSES - 1 - labels, others)
    assert found.difference.low > 0.0
    assert found.difference.value == pytest.approx(found.mean.value, rel=0.01)
    assert found.to_dict()["difference"] == found.difference.to_dict()


def test_strata_that_are_finer_than_classes_are_kept():
    """Else balanced kinds within a class count as drawn, and too much is subtracted."""
    rng = np.random.default_rng(6)
    (fake, kinds), (real, others) = classes(rng, 40, 3), classes(rng, 50, 3)
    labels, theirs = kinds // 3, others // 3
    given = gb.Sample(fake, strata=kinds), gb.Sample(real, strata=others)
    found = gb.frechet_by_class(*given, labels, theirs)
    for label in range(2):
        own, their = labels == label, theirs == label
        alone = gb.frechet_distance(
            gb.Sample(fake[own], strata=kinds[own]),
            gb.Sample(real[their], strata=others[their]),
            level=0.975,
        )
        assert found.classes[label].to_dict() == alone.to_dict()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": np.arange(12) % 3}, "has 0 rows of class 2: a distance needs 2 on both sides"),
        ({"labels": np.arange(12) // 11}, "has 1 row of class 1"),
        ({"labels": np.zeros(12, int), "real_labels": np.zeros(12, int)}, "has one class only"),
        ({"labels": np.arange(11)}, "must have shape (12,), one id per row"),
        ({"labels": np.linspace(0, 1, 12)}, "must hold integers or strings"),
        ({"fake": gb.Moments(np.zeros(2), np.eye(2), 12)}, "is given by its moments"),
        ({"level": 1.5}, "must be"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(change, message):
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(2, 12, 2))
    labels = np.arange(12) % 2
    given = {"fake": x, "real": y, "labels": labels, "real_labels": labels, "level": 0.95} | change
    with refused(message):
        gb.frechet_by_class(**given)


@pytest.mark.statistical
@pytest.mark.nightly
def test_all_intervals_hold_together():
    """All six intervals hold in at least 95 % of samples.

    A correct family misses in 5 % of 300 samples at most: more than 36 misses has a probability
    of 5e-7. Without the joint level six intervals miss in 26 %: 36 misses or fewer then have a
    probability of 2e-9.
    """
    truth = np.zeros(CLASSES)
    truth[-1] = 4 * 0.5**2
    misses = 0
    for seed in range(300):
        rng = np.random.default_rng([11, seed])
        (fake, labels), (real, others) = classes(rng, 64, 4, gap=0.5), classes(rng, 64, 4)
        found = gb.frechet_by_class(fake, real, labels, others)
        scores = [found.classes[k] for k in range(CLASSES)]
        misses += not all(
            score.low <= true <= score.high for score, true in zip(scores, truth, strict=True)
        )
    assert misses <= 36
