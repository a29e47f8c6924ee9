"""What is noticed where nothing is said of how rows were drawn; false alarms."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.stats import binom

import genbounds as gb
from genbounds.core.checks import (
    FALSE_ALARM,
    check_sample,
    leaked,
    likeness_z,
    shared_places_pvalue,
    shared_rows,
)
from genbounds.core.close_rows import (
    CENTRE_ROWS,
    LARGEST_GROUP,
    log_distances,
)
from tests.refusal import refused
from tests.warnings_of import codes

REAL = gb.Moments(np.full(16, 0.2), 1.3 * np.eye(16))
NOTICED = {"duplicates", "near-duplicates", "dependent-rows", "balanced-classes", "leak"}


def distance(x):
    return gb.frechet_distance(x, REAL)


def gauss(rng, n=512, d=16):
    return rng.normal(size=(n, d))


SCORES = {
    "fd": distance,
    "kid": lambda x: gb.kernel_inception_distance(x, OTHERS),
    "rke": lambda x: gb.vendi_score(x, bandwidth=6.0, order=2.0),
}
OTHERS = gb.Sample(gauss(np.random.default_rng(100), 2000) + 0.5)


@pytest.mark.parametrize("name", SCORES)
def test_exact_duplicates_count_as_one_draw(name):
    """Three in ten rows are copies: the interval is that of groups, not narrower than without."""
    rng = np.random.default_rng(0)
    score, x = SCORES[name], gauss(rng)
    source = np.arange(512)
    source[rng.choice(512, 154, replace=False)] = rng.integers(512, size=154)
    order = rng.permutation(512)
    found = score(x[source][order])
    told = score(gb.Sample(x[source][order], groups=source[order]))
    assert codes(found) & NOTICED == {"duplicates"}
    assert found.reliable
    assert found.stderr == pytest.approx(told.stderr, rel=0.05)
    assert found.value == pytest.approx(told.value, abs=0.5 * told.stderr)  # random halves
    distinct = score(gb.Sample(x[np.unique(source)]))
    assert found.stderr > 0.97 * distinct.stderr
    assert not codes(score(gb.Sample(x[source]))) & NOTICED


def test_equal_rows_of_discrete_features_are_no_copies():
    rng = np.random.default_rng(1)
    found = check_sample("x", rng.integers(4, size=(400, 3)).astype(float))
    assert found.design is None
    assert not found.warnings


def near_copies(rng, share, noise):
    x = gauss(rng, 1000)
    k = int(share * 500)
    x[:k] = x[k : 2 * k] + noise * gauss(rng, k)
    return rng.permutation(x)


def sorted_by_class(rng):
    return np.repeat(2.0 * gauss(rng, 20), 25, axis=0) + gauss(rng, 500)


def augmented(rng):
    """Four alike rows after one another: half of the variance is common."""
    return np.repeat(gauss(rng, 128), 4, axis=0) + gauss(rng, 512)


def mixed_sources(rng, share=0.88):
    """Four rows of each source, anywhere in the file: most of the variance is common."""
    common = np.repeat(gauss(rng, 128), 4, axis=0)
    return rng.permutation(np.sqrt(share) * common + np.sqrt(1.0 - share) * gauss(rng, 512))


@pytest.mark.parametrize(
    ("draw", "code", "reliable"),
    [
        (lambda rng: near_copies(rng, 0.3, 0.02), "near-duplicates", False),
        (lambda rng: near_copies(rng, 0.05, 0.02), "near-duplicates", True),
        (lambda rng: near_copies(rng, 0.9, 0.1), "near-duplicates", False),  # of most rows
        (sorted_by_class, "dependent-rows", False),
        (augmented, "dependent-rows", False),
        (mixed_sources, "dependent-rows", False),
    ],
)
@pytest.mark.parametrize("score", [distance, SCORES["kid"]])
def test_dependent_rows_are_noticed(score, draw, code, reliable):
    """Four samples of four, or two of two: none of these is near the threshold."""
    for seed in range(4 if score is distance else 2):
        found = score(draw(np.random.default_rng(seed)))
        assert code in codes(found)
        assert code in codes(found, "caution" if reliable else "unreliable")
        assert next(w for w in found.warnings if w.code == code).remedy


def test_a_sample_is_taken_at_its_word():
    for draw in (sorted_by_class, augmented, mixed_sources, lambda rng: near_copies(rng, 0.3, 0.0)):
        x = draw(np.random.default_rng(2))
        for score in SCORES.values():
            assert not codes(score(gb.Sample(x))) & NOTICED


# Labels that the rows know nothing of ---------------------------------------------------------


def labelled(rng, kind, alike=0.3):
    """Rows in random order, and the ids of what they share: 4 of a group, 25 of a stratum."""
    ids = rng.permutation(
        np.repeat(np.arange(500 // 4 if kind == "groups" else 20), 4 if kind == "groups" else 25)
    )
    common = gauss(rng, ids.max() + 1)[ids]
    return np.sqrt(alike) * common + np.sqrt(1.0 - alike) * gauss(rng, ids.size), ids


def unrelated(score):
    return [w for w in score.warnings if w.code == "unrelated-labels"]


def test_ids_without_meaning_are_seen_in_two_features():
    """Pairs drawn with replacement left so much noise that nothing was said."""
    rng = np.random.default_rng(6)
    ids = np.repeat(np.arange(500), 2)
    rows = rng.normal(size=(500, 2))[ids] + rng.normal(size=(1000, 2))
    real = gb.Moments(np.zeros(2), 2.0 * np.eye(2))
    assert not unrelated(gb.frechet_distance(gb.Sample(rows, groups=ids), real))
    assert unrelated(gb.frechet_distance(gb.Sample(rows, groups=rng.permutation(ids)), real))


def test_one_group_beside_single_rows_is_seen_from_the_middle_of_all():
    """Seen from its own middle its rows were as unlike as any: 52 of 59 were accused."""
    rng = np.random.default_rng(7)
    ids = np.concatenate([np.zeros(500, dtype=int), np.arange(1, 501)])
    rows = gauss(rng, 1000) + 0.5 * np.outer(ids == 0, rng.normal(size=16))
    assert not unrelated(distance(gb.Sample(rows, groups=ids)))
    assert unrelated(distance(gb.Sample(rows, groups=rng.permutation(ids))))


@pytest.mark.parametrize("kind", ["groups", "strata"])
@pytest.mark.parametrize("name", ["fd", "kid"])
def test_shuffled_labels_are_noticed(kind, name):
    """Of shuffled ids one in 700 passes; rows as alike as these are 20 standard errors from it."""
    score = SCORES[name]
    for seed in range(3):
        rng = np.random.default_rng(seed)
        x, ids = labelled(rng, kind)
        assert not unrelated(score(gb.Sample(x, **{kind: ids})))
    found = [
        unrelated(score(gb.Sample(x, **{kind: np.random.default_rng(seed).permutation(ids)})))
        for seed in range(7)
    ]
    assert sum(map(bool, found)) >= 5  # at least 3 of 7 pass with a probability of 1e-7
    warning = next(one[0] for one in found if one)
    assert warning.severity == "caution"
    assert kind in warning.remedy


def test_labels_in_another_order_than_their_rows_are_unreliable():
    """The rows are in order, the ids are not: an array of another file, or sorted by itself."""
    rng = np.random.default_rng(1)
    ids = np.repeat(np.arange(125), 4)
    x = augmented(rng)[:500]
    assert not distance(gb.Sample(x, groups=ids)).warnings
    (warning,) = unrelated(distance(gb.Sample(x, groups=rng.permutation(ids))))
    assert warning.severity == "unreliable"
    assert "neighbouring generated rows are alike" in warning.message


@pytest.mark.parametrize("shuffled", [False, True])
def test_ids_that_are_all_different_do_not_hide_neighbours_that_are_alike(shuffled):
    """Rows of one source got ids of their own. By chance 3e-7; seen here by 20 standard errors."""
    rng = np.random.default_rng(1)
    ids = rng.permutation(500) if shuffled else np.arange(500)
    x = augmented(rng)[:500]
    (warning,) = distance(gb.Sample(x, groups=ids)).warnings
    assert (warning.code, warning.severity) == ("dependent-rows", "caution")
    assert not distance(gb.Sample(gauss(rng), groups=np.arange(512))).warnings


def test_labels_are_not_blamed_where_little_can_be_seen():
    """Few rows of two features, single rows, one stratum: nothing is known of such ids."""
    rng = np.random.default_rng(2)
    for x, labels in (
        (gauss(rng, 100, 2), {"groups": np.repeat(np.arange(50), 2)}),
        (gauss(rng, 500), {"groups": np.arange(500)}),
        (gauss(rng, 500), {"strata": np.zeros(500, dtype=int)}),
    ):
        real = gb.Moments(np.zeros(x.shape[1]), np.eye(x.shape[1]))
        assert not unrelated(gb.frechet_distance(gb.Sample(x, **labels), real))


def test_strata_are_judged_by_one_row_a_group():
    """Rows of a group are alike, whatever the strata: 73 of 300 such samples were accused.

    H0: at most one in a hundred; 60 samples without an alarm had a probability of 6e-8. Shuffled
    strata of 125 groups, of which none of 300 were seen, are seen in every one.
    """
    real = gb.Moments(np.zeros(16), np.eye(16))
    for seed in range(60):
        rng = np.random.default_rng([4, seed])
        ids = np.repeat(np.arange(15), 4)
        p = rng.dirichlet(np.full(5, 0.5), 15)[ids]
        assert not unrelated(gb.inception_score(gb.Sample(p, groups=ids, strata=ids % 3)))
    for seed in range(5):
        rng = np.random.default_rng([6, seed])
        ids, strata = np.repeat(np.arange(125), 4), np.arange(125) % 20
        common = np.sqrt(0.3) * (gauss(rng, 20)[strata] + gauss(rng, 125))
        x = common[ids] + np.sqrt(0.4) * gauss(rng, 500)
        for given, seen in ((strata, False), (rng.permutation(strata), True)):
            found = gb.frechet_distance(gb.Sample(x, groups=ids, strata=given[ids]), real)
            assert bool(unrelated(found)) == seen


def test_sizes_that_no_encoder_gives_are_said_once_by_every_score():
    factor = 1e30
    x, y = np.random.default_rng(5).normal(size=(2, 200, 4))
    scores = {
        "fd": gb.frechet_distance,
        "energy": lambda x, y: gb.kernel_distance(x, y, kernel="energy"),
        "recall": lambda x, y: gb.precision_recall(x, y).recall,
        "sliced": gb.sliced_distance,
        "vendi": lambda x, y: gb.vendi_score(x),
        "authpct": gb.authpct,
    }
    for name, score in scores.items():
        found = score(gb.Sample(factor * x), factor * y).warnings
        said = [one for one in found if one.code == "extreme-scale"]
        assert len(said) == (2 if name in {"energy", "recall", "sliced"} else 1), name
        assert "extreme-scale" not in codes(score(x, y))
    with refused("standard deviations of", "e+30", "one unit"):
        gb.frechet_distance(factor * x, y)


def test_ids_shared_by_accident_are_noticed():
    """Both files number their rows from 0: only captions make row i of both alike."""
    rng = np.random.default_rng(3)
    captions = gauss(rng)
    ids = np.arange(len(captions))
    fake, real = captions + gauss(rng), captions + gauss(rng)
    for score in (gb.frechet_distance, gb.kernel_inception_distance):
        assert not unrelated(score(gb.Sample(fake, groups=ids), gb.Sample(real, groups=ids)))
        found = [
            unrelated(score(gb.Sample(fake, groups=np.roll(ids, k)), gb.Sample(real, groups=ids)))
            for k in (1, 2, 3)
        ]
        assert any(found)  # each passes in one of 700 cases
        own = gb.Sample(real, groups=ids + len(ids))
        assert not unrelated(score(gb.Sample(fake, groups=ids), own))


@pytest.mark.parametrize("share", [1.0, 0.3, 0.005])
def test_rows_of_the_reference_are_noticed(share):
    """A leak withholds the verdict; it is no distance of 0 without width."""
    rng = np.random.default_rng(3)
    real = gauss(rng, 1000)
    k = int(share * 1000)
    fake = rng.permutation(np.vstack([real[:k], 1.1 * gauss(rng, 1000 - k) + 0.1]))
    for score in (gb.frechet_distance, gb.kernel_inception_distance):
        found = score(fake, real)
        assert "leak" in codes(found, "caution" if share < 0.01 else "unreliable")
        assert found.reliable == (share < 0.01)
        assert found.high > found.low
        told = score(gb.Sample(fake), gb.Sample(real))  # independent, and still not new
        assert "leak" in codes(told)
    ranking = gb.compare({"leaking": fake, "honest": 1.1 * gauss(rng, 1000) + 0.1}, real)
    assert ranking.scores["honest"].reliable
    assert "leak" in codes(ranking.scores["leaking"])


def test_rows_kept_beside_moments_show_leaks_and_parts_merged_twice():
    rng = np.random.default_rng(4)
    real, fake = gauss(rng, 4000), 1.1 * gauss(rng, 2000)
    known, part = (gb.Moments.from_features(x, keep=1000) for x in (real, fake))
    other = gb.Moments.from_features(1.1 * gauss(rng, 2000), keep=1000)
    for clean in (fake, part, part.merge(other)):
        assert gb.frechet_distance(clean, known).warnings == ()
    for leaking in (real[:2000], gb.Moments.from_features(real[1000:3000], keep=1000)):
        assert "leak" in codes(gb.frechet_distance(leaking, known), "unreliable")
    for twice in ((part.merge(part), known), (fake, known.merge(known))):
        assert codes(gb.frechet_distance(*twice), "unreliable") == {"duplicates"}
    counts = gb.Moments.from_features(rng.poisson(0.3, size=(4000, 3)) * 1.0, keep=1000)
    assert "duplicates" not in codes(gb.frechet_distance(counts, gb.Moments([0.3] * 3, np.eye(3))))


@pytest.mark.parametrize(
    "score",
    [
        gb.frechet_distance,
        gb.kernel_inception_distance,
        lambda fake, real: gb.precision_recall(fake, real).precision,
    ],
)
def test_samples_of_the_same_prompts_are_noticed(score):
    """Half of the variance is that of a prompt, which row i of both samples shares."""
    rng = np.random.default_rng(33)
    prompts = gauss(rng)
    fake, real = prompts + gauss(rng), prompts + gauss(rng) + 0.5
    assert "dependent-rows" in codes(score(fake, real), "unreliable")
    assert not codes(score(gb.Sample(fake), real)) & NOTICED
    assert not codes(score(rng.permutation(fake), real)) & NOTICED  # what cannot be seen


def posteriors(k, classes, rng):
    p = rng.dirichlet(np.full(classes, 0.05), k.size)
    p[np.arange(k.size), k] += 4.0
    return p / p.sum(axis=1, keepdims=True)


def test_balanced_posteriors_are_noticed():
    """Ten rows of each of 50 classes, against 500 rows of random ones: 5 samples of each."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        balanced = rng.permutation(np.repeat(np.arange(50), 10))
        p = posteriors(balanced, 50, rng)
        assert "balanced-classes" in codes(gb.inception_score(p), "unreliable")
        assert not codes(gb.inception_score(gb.Sample(p, strata=balanced))) & NOTICED
        random = posteriors(rng.integers(50, size=500), 50, rng)
        assert "balanced-classes" not in codes(gb.inception_score(random))


def test_posteriors_in_the_order_of_their_classes():
    rng = np.random.default_rng(4)
    p = posteriors(np.repeat(np.arange(10), 30), 10, rng)
    assert codes(gb.inception_score(p), "unreliable") & {"dependent-rows", "balanced-classes"}


DISTRIBUTIONS = {
    "normal": gauss,
    "t3": lambda rng: rng.standard_t(3, size=(400, 12)),
    "common t3": lambda rng: gauss(rng, 400) / np.sqrt(rng.chisquare(3, (400, 1)) / 3.0),
    "clusters": lambda rng: (
        (3.0 * gauss(np.random.default_rng(9), 10))[rng.integers(10, size=800)]
        + 0.3 * gauss(rng, 800)
    ),
    "small clusters": lambda rng: (
        gauss(np.random.default_rng(9), 150)[rng.integers(150, size=800)] + 0.6 * gauss(rng, 800)
    ),
    "rectified": lambda rng: np.maximum(gauss(rng, 400, 3) @ gauss(np.random.default_rng(9), 3), 0),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_independent_rows_are_seldom_suspected(name):
    """H0: at most one warning in a hundred; more than so many of 200 have a probability of 1e-6.

    A check that warned in one sample of ten would be seen with a probability of 0.98.
    """
    alarms = 0
    for stream in np.random.SeedSequence(5).spawn(200):
        alarms += bool(
            check_sample("x", DISTRIBUTIONS[name](np.random.default_rng(stream))).warnings
        )
    assert alarms <= binom.isf(1e-6, 200, 0.01)


def test_models_with_the_same_rows_in_two_precisions_are_named():
    rng = np.random.default_rng(2)
    x, y, real = rng.normal(size=(3, 300, 6))
    ranking = gb.compare({"a": x, "b": x.astype("f4"), "c": y}, real)
    (warning,) = (one for one in ranking.warnings if one.code == "same-rows")
    assert re.match("300 of 300 rows of [ab] are also rows of [ab]:", warning.message)
    # Rows that single precision cannot tell apart, or hold, are not the same.
    for large in (1e12 + rng.normal(size=(2, 300, 6)), 1e60 * rng.normal(size=(2, 300, 6))):
        ids = {
            str(k): check_sample("x", one, what="generated").single_ids
            for k, one in enumerate(large)
        }
        assert not shared_rows(ids)


def test_a_copy_in_another_precision_is_a_leak():
    """Its digests are others; those in single precision are not."""
    rng = np.random.default_rng(1)
    real = rng.normal(size=(300, 6))
    for fake, against in [(real.astype("f4"), real), (real, real.astype("f4"))]:
        found = gb.frechet_distance(rng.permutation(fake), against)
        assert "leak" in codes(found, "unreliable")
        assert "leak" in codes(gb.kernel_inception_distance(rng.permutation(fake), against))
    # Rows that single precision cannot tell apart, or hold, are no copies.
    for rows in (real + 1e12, 1e60 * real):
        seen = [check_sample("x", x, what="generated") for x in (rows, real.astype("f4"))]
        assert not leaked(*seen)


@pytest.mark.parametrize(("n", "kinds"), [(75, 6), (100, 10), (200, 8), (300, 20)])
def test_a_few_tight_kinds_of_one_size_are_chance(n, kinds):
    """H0: an alarm has a probability of 1e-6.

    Where only spacings were looked at, 5 to 29 of 200 samples had one: four sets of 50 without any
    had a probability of 3e-7.
    """
    alarms = 0
    for seed in range(50):
        rng = np.random.default_rng([33, n, seed])
        x = (3.0 * rng.normal(size=(kinds, 8)))[rng.integers(kinds, size=n)]
        alarms += bool(check_sample("x", x + 0.1 * rng.normal(size=x.shape)).findings.mates)
    assert not alarms


@pytest.mark.parametrize(("n", "size"), [(200, 10), (200, 20), (512, 4)])
def test_tight_groups_of_one_size_are_seen_all_the_same(n, size):
    for seed in range(5):
        rng = np.random.default_rng([34, n, seed])
        x = np.repeat(3.0 * rng.normal(size=(n // size, 16)), size, axis=0)
        x = rng.permutation(x + 0.5 * rng.normal(size=x.shape))
        assert check_sample("x", x).findings.mates == size - 1


@pytest.mark.parametrize("n", [100, 300])
def test_kinds_that_lie_far_apart_are_no_copies(n):
    """Rows of one kind are neighbours without being copies."""
    for seed in range(5):
        rng = np.random.default_rng([31, n, seed])
        centres = 6.0 * rng.normal(size=(12, 16))
        x = centres[rng.integers(12, size=n)] + rng.normal(size=(n, 16))
        assert "near-duplicates" not in {warning.code for warning in check_sample("x", x).warnings}


def test_one_tight_kind_among_others_is_no_copies():
    """Nine rows of a rare kind are as near to one another as copies are, but too many for that."""
    for seed in range(5):
        rng = np.random.default_rng([32, seed])
        x = rng.normal(size=(400, 8))
        x[:9] = 10.0 + 1e-3 * rng.normal(size=(9, 8))
        assert "near-duplicates" not in {warning.code for warning in check_sample("x", x).warnings}
        x[:9] = rng.normal(size=(9, 8))
        x[:60] = np.repeat(x[:20], 3, axis=0) + 1e-3 * rng.normal(size=(60, 8))
        assert "near-duplicates" in {warning.code for warning in check_sample("x", x).warnings}


@pytest.mark.parametrize(("pairs", "seen"), [(2, True), (1, False)])
def test_near_copies_among_few_rows(pairs, seen):
    """Two of 32 rows that have one: the fit takes their differences for directions of features.

    5 % of the intervals covered, where one such pair leaves all of them right.
    """
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(32, 64))
        x[: 2 * pairs : 2] = x[1 : 2 * pairs : 2] + 0.01 * rng.normal(size=(pairs, 64))
        found = {one.code for one in check_sample("x", x).warnings if one.severity == "unreliable"}
        assert found == ({"near-duplicates"} if seen else set())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [40, 230, 231, 700])
def test_nearest_rows_are_found_in_pieces(n, dtype):
    """As a sort of all distances finds them, whatever number of rows is compared at a time."""
    rows = np.random.default_rng(0).normal(size=(n, 3)).astype(dtype)
    centred = rows - np.median(rows[:CENTRE_ROWS], axis=0)
    norms = np.square(centred).sum(axis=1)
    apart = np.square(centred[:, None] - centred).sum(axis=2)
    relative = np.sort(apart / np.maximum.outer(norms, norms), axis=1)[:, 1 : LARGEST_GROUP + 2]
    found = log_distances(rows, np.arange(n))
    assert found.shape == (n, min(LARGEST_GROUP, n - 3) + 1)
    near = 2e-3 if dtype is np.float32 else 1e-9
    np.testing.assert_allclose(np.exp(2.0 * found), relative, rtol=near, atol=1e-3 * near)


@pytest.mark.parametrize("n", [4, 51])
def test_likeness_is_that_of_unit_rows_half_a_list_apart(n):
    one, two = np.random.default_rng(n).normal(size=(2, n, 3)) + 5.0
    units = [x - x.mean(axis=0) for x in (one, two)]
    units = [x / np.linalg.norm(x, axis=1)[:, None] for x in units]
    alike = (units[0] * units[1]).sum(axis=1)
    apart = (units[0] * np.roll(units[1], n // 2, axis=0)).sum(axis=1)
    noise = np.sqrt((alike.var() + apart.var()) / n)
    expected = (alike.mean() - apart.mean()) / noise, noise
    np.testing.assert_allclose(likeness_z(one, two, least=2), expected)


@pytest.mark.parametrize("size", [7e18, 1e19])
def test_rows_whose_distances_leave_single_precision_are_left_alone(size):
    """Squares of the first still fit, but not a sum of two."""
    rows = np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32)
    rows[7:9] = size
    assert log_distances(rows, np.arange(40)) is None


# --- the same seeds for every prompt --------------------------------------------------------------


def drawn_with_seeds(rng, groups, size, d, share):
    """Half of the variance is the group's, `share` that of the place in it."""
    parts = ((groups, 1, 0.5), (1, size, share), (groups, size, 0.5 - share))
    rows = sum(np.sqrt(v) * rng.normal(size=(a, b, d)) for a, b, v in parts)
    return (rows * np.arange(1, d + 1) ** -0.5).reshape(-1, d), np.repeat(np.arange(groups), size)


def accused(runs, make):
    streams = np.random.SeedSequence(1).spawn(runs)
    pvalues = [shared_places_pvalue(*make(np.random.default_rng(one))) for one in streams]
    return int((np.array(pvalues) <= FALSE_ALARM).sum())


def clips(rng, groups, size, d, kept):
    """Frames that keep a share of the one before: alike in a clip, and nothing across clips."""
    x = rng.normal(size=(groups, size, d))
    for k in range(1, size):
        x[:, k] = kept * x[:, k - 1] + np.sqrt(1.0 - kept**2) * x[:, k]
    return x.reshape(-1, d), np.repeat(np.arange(groups), size)


NOTHING_SHARED = {
    "clips": lambda rng: clips(rng, 60, 16, 16, 0.9),
    "long clips": lambda rng: clips(rng, 20, 50, 16, 0.9),
    "random walks": lambda rng: (
        rng.normal(size=(40, 20, 3)).cumsum(axis=1).reshape(-1, 3),
        np.arange(800) // 20,
    ),
    "normal": lambda rng: drawn_with_seeds(rng, 100, 4, 64, 0.0),
    "one feature, pairs": lambda rng: drawn_with_seeds(rng, 20, 2, 1, 0.0),
    "heavy": lambda rng: (rng.standard_t(2, (200, 8)), np.arange(200) // 4),
    "counts": lambda rng: (rng.poisson(1.0, (200, 8)) * 1.0, np.arange(200) // 4),
    "one-hot": lambda rng: (np.eye(10)[rng.integers(10, size=200)], np.arange(200) // 2),
}


@pytest.mark.parametrize("name", NOTHING_SHARED)
def test_groups_that_share_nothing_are_not_accused(name):
    """H0: at most one in 1,000; one in 15, as of long clips, is seen in 99.9 %.

    Of 4,000 samples each: 1 to 7, at most 0.18 % [0.07, 0.36].
    """
    assert accused(300, NOTHING_SHARED[name]) <= binom.isf(1e-6, 300, FALSE_ALARM)


@pytest.mark.parametrize(("groups", "size", "share"), [(200, 4, 0.01), (50, 20, 0.01)])
def test_common_seeds_are_seen(groups, size, share):
    """Found in 60 of 60: in 95 of 100 at least, at level 0.05."""
    assert accused(60, lambda rng: drawn_with_seeds(rng, groups, size, 64, share)) == 60


@pytest.mark.parametrize("drift", [np.linspace(-1, 1, 12), np.linspace(-1, 1, 12) ** 2])
def test_clips_that_drift_alike_are_not_accused(drift):
    """All of them were, as of shared seeds."""

    def make(rng):
        rows, groups = drawn_with_seeds(rng, 60, 12, 16, 0.0)
        return rows + np.outer(np.tile(drift, 60), rng.normal(size=16)), groups

    assert accused(60, make) == 0


def test_places_whose_order_was_told_are_no_seeds():
    rows, groups = drawn_with_seeds(np.random.default_rng(4), 60, 4, 16, 0.3)
    told = gb.Sample(rows, groups=groups, order=np.tile(np.arange(4), 60))
    assert "shared-seeds" in codes(distance(gb.Sample(rows, groups=groups)))
    assert "shared-seeds" not in codes(distance(told))
    assert "shared-seeds" not in codes(distance(told[:200]))


@pytest.mark.parametrize("score", [gb.frechet_distance, gb.kernel_inception_distance])
def test_they_make_a_score_unreliable(score):
    rng = np.random.default_rng(2)
    real = rng.normal(size=(400, 4))
    rows, groups = drawn_with_seeds(rng, 100, 4, 4, 0.1)
    found = score(gb.Sample(rows, groups=groups), real)
    assert "shared-seeds" in {w.code for w in found.warnings if w.severity == "unreliable"}
    order = np.argsort(groups + rng.random(400), kind="stable")  # nothing can be seen any more
    found = score(gb.Sample(rows[order], groups=groups), real)
    assert "shared-seeds" not in {w.code for w in found.warnings}


def test_unequal_or_few_groups_are_not_judged():
    rng = np.random.default_rng(3)
    rows, groups = drawn_with_seeds(rng, 30, 4, 8, 0.3)
    assert shared_places_pvalue(rows, groups) < 1e-6
    assert shared_places_pvalue(rows[1:], groups[1:]) == 1.0
    assert shared_places_pvalue(rows[:40], groups[:40]) == 1.0
