"""Copies of training rows: exact error rates by enumeration, what is found, what is refused."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

import genbounds as gb
from genbounds.explain._exact import excess, least_visible, listed, over_fitting, upper_tails
from genbounds.explain._nearest import Neighbours, Pool

D = 16


def rows(n, rng, d=D):
    return rng.normal(size=(n, d))


@pytest.fixture(scope="module")
def real():
    rng = np.random.default_rng(0)
    return rows(300, rng), rows(300, rng), rows(300, rng)


@pytest.fixture(scope="module")
def copied(real):
    train, heldout, fresh = real
    rng = np.random.default_rng(1)
    fake = fresh.copy()
    fake[100:140] = train[:40] + 0.05 * rows(40, rng)
    return gb.memorisation(fake, train, heldout)


@pytest.mark.parametrize(
    ("size", "dtype"), [(1e-300, "f8"), (1e-200, "f8"), (1e149, "f8"), (1e-30, "f4")]
)
def test_features_of_any_size_give_the_same_answer(real, size, dtype):
    """Squares of their differences leave the floating type."""
    train, heldout, fake = real
    fake = np.concatenate([fake, train[:40] + 0.05 * rows(40, np.random.default_rng(1))])
    found, usual = (
        gb.memorisation(*((x * c).astype(dtype) for x in (fake, train, heldout)))
        for c in (size, 1.0)
    )
    assert found.copies
    assert (found.copies_low, found.pvalue) == (usual.copies_low, usual.pvalue)
    distances = [np.array([one.distance for one in x.suspects]) for x in (found, usual)]
    assert distances[0] / size == pytest.approx(distances[1], rel=1e-4)


# --- exact probabilities --------------------------------------------------------------------------


@pytest.mark.parametrize("odds", [1, 3])
@pytest.mark.parametrize(("total", "trained", "drawn"), [(9, 4, 5), (12, 10, 7), (7, 1, 3)])
def test_tails_are_those_of_exact_fractions(total, trained, drawn, odds):
    mass = [
        Fraction(math.comb(trained, t) * math.comb(total - trained, drawn - t) * odds**t)
        for t in range(drawn + 1)
    ]
    exact = [float(sum(mass[t:]) / sum(mass)) for t in range(drawn + 1)]
    assert upper_tails(total, trained, drawn, odds) == pytest.approx(exact, rel=1e-12)


def test_far_tails_keep_their_digits():
    exact = Fraction(math.comb(1000, 400), math.comb(2000, 400))
    assert upper_tails(2000, 1000, 400)[-1] == pytest.approx(float(exact), rel=1e-10)


def labellings(total, trained):
    """Yield every way to choose the training rows."""
    for chosen in combinations(range(total), trained):
        labels = np.zeros(total, dtype=bool)
        labels[list(chosen)] = True
        yield labels


@pytest.mark.parametrize(("total", "trained", "hits"), [(12, 6, 9), (11, 3, 8), (11, 8, 10)])
def test_pvalues_are_valid_over_all_labellings(total, trained, hits):
    """P(p ≤ x) ≤ x exactly, for every p-value that occurs."""
    found = np.array(
        [excess(lab[:hits], total, trained, 0.2).pvalue for lab in labellings(total, trained)]
    )
    for x in np.unique(found):
        assert (found <= x * (1.0 + 1e-9)).mean() <= x * (1.0 + 1e-9)
    assert found.min() < 0.3


@pytest.mark.parametrize("copies", [0, 1, 3])
@pytest.mark.parametrize(
    ("total", "trained", "hits", "alpha"), [(11, 5, 8, 0.05), (11, 5, 8, 0.3), (12, 9, 11, 0.3)]
)
def test_the_bound_is_valid_over_all_labellings(total, trained, hits, alpha, copies):
    """Copies are hit first, the labels of all other rows are every possible choice."""
    too_high = [
        excess(np.r_[np.ones(copies, bool), labels[: hits - copies]], total, trained, alpha).low
        > copies
        for labels in labellings(total - copies, trained - copies)
    ]
    assert np.mean(too_high) <= alpha


@pytest.mark.parametrize("copies", [0, 2])
def test_the_list_is_valid_over_all_labellings(copies):
    """Mean share of wrong rows at most `fdr`; ties are the hard case of conformal p-values."""
    total, trained, fdr = 12, 6, 0.3
    closeness = np.array([0.1, 0.1, 0.2, 0.2, 0.3, 0.4, 0.5, 0.5, np.inf, np.inf, np.inf, np.inf])
    usable = np.ones(total, dtype=bool)
    wrong = []
    for labels in labellings(total - copies, trained - copies):
        chosen = listed(closeness, np.r_[np.ones(copies, bool), labels], usable, fdr)
        wrong.append((chosen >= copies).sum() / max(chosen.size, 1))
    assert np.mean(wrong) <= fdr
    assert copies == 0 or min(wrong) < 1.0


def test_the_list_is_benjamini_and_hochbergs():
    """Of conformal p-values, against statsmodels; rows that nothing hits count as well."""
    rng = np.random.default_rng(0)
    trained = rng.random(400) < 0.5
    closeness = np.where(trained & (rng.random(400) < 0.3), 0.1, 1.0) * rng.random(400)
    closeness[rng.random(400) < 0.2] = np.inf
    held = closeness[~trained]
    pvalues = [(1 + (held <= value).sum()) / (held.size + 1) for value in closeness[trained]]
    rejected = multipletests(pvalues, alpha=0.2, method="fdr_bh")[0]
    assert 10 < rejected.sum() < trained.sum()
    chosen = listed(closeness, trained, np.ones(400, dtype=bool), 0.2)
    assert set(chosen) == set(np.flatnonzero(trained)[rejected])


def test_over_fitting_shifts_what_near_copies_must_exceed():
    order = np.r_[np.ones(300, bool), np.zeros(100, bool)]
    odds = over_fitting(order, 2000, 1000)
    assert odds == pytest.approx(310 / 110)
    assert over_fitting(~order, 2000, 1000) == 1.0
    assert over_fitting(order[:0], 2000, 500) == 1.0
    few = np.r_[np.ones(15, bool), np.zeros(5, bool)]
    assert excess(few, 2000, 1000, 0.05).pvalue < 0.05 < excess(few, 2000, 1000, 0.05, odds).pvalue


def test_least_visible_is_the_least_number_that_can_be_significant():
    for total, trained in ((2000, 1000), (1250, 1000), (40, 20)):
        needed = least_visible(total, trained, 0.05)
        assert excess(np.ones(needed, bool), total, trained, 0.05).pvalue <= 0.05
        assert excess(np.ones(needed - 1, bool), total, trained, 0.05).pvalue > 0.05


# --- neighbours -----------------------------------------------------------------------------------


def test_neighbours_are_those_of_distinct_units():
    """Against all distances, sorted, with at most one row of each group."""
    rng = np.random.default_rng(2)
    train, heldout, queries = rows(60, rng, 3), rows(40, rng, 3), rows(20, rng, 3)
    # Large, off centre, and in single precision: distances must not lose digits.
    train, heldout, queries = ((x + 50.0).astype(np.float32) for x in (train, heldout, queries))
    ids = rng.integers(12, size=60), 100 + rng.integers(9, size=40)
    samples = (gb.Sample(x, groups=g) for x, g in zip((train, heldout), ids, strict=True))
    pool = Pool(*samples, np.random.default_rng(0))
    found = Neighbours(queries, pool)
    real, group = np.concatenate([train, heldout]).astype(float), np.concatenate(ids)
    for number, query in enumerate(queries.astype(float)):
        distance = np.linalg.norm(real - query, axis=1)
        least = sorted(distance[group == one].min() for one in np.unique(group))
        assert found.distances[number] == pytest.approx([least[0], least[4]], rel=1e-4)
        nearest = distance.argmin()
        assert pool.trained[pool.unit[found.row[number]]] == (nearest < 60)
        assert pool.source[found.row[number]] == (nearest if nearest < 60 else nearest - 60)


def test_ties_favour_nobody():
    """Each generated row lies just between a training and a held-out row.

    Of 40 such ties 20 ± 3 go to the training row; in the order of the files all or none would.
    """
    one, far = np.eye(80)[:40], 100.0 * np.eye(80)[40:]
    found = gb.memorisation(far, far + one, far - one)
    assert 8 <= found.nearest_trained.sum() <= 32
    assert not found.copies


def test_labels_do_not_move_the_ratios(real):
    train, heldout, fresh = real
    one, two = gb.memorisation(fresh, train, heldout), gb.memorisation(fresh, heldout, train)
    assert one.ratio == pytest.approx(two.ratio, rel=1e-12)
    assert (one.nearest_trained == ~two.nearest_trained).all()


# --- what is found --------------------------------------------------------------------------------


def test_copies_are_found_counted_and_named(copied):
    assert copied.copies
    assert copied.copies_pvalue < 1e-9
    assert 30 <= copied.copies_low <= 40
    assert copied.share_low == copied.copies_low / 300
    named = [(one.fake_row, one.train_row) for one in copied.suspects]
    assert set(named) >= {(100 + row, row) for row in range(40)}
    assert len(named) <= 44
    assert all(one.ratio <= copied.closer and one.hits == 1 for one in copied.suspects)
    assert copied.suspects[0].distance > 0.0
    assert copied.diagnostic.code == "copies"
    assert str(copied).startswith("copies: at least 3")
    assert "have near copies" in str(copied)


@pytest.mark.parametrize(("noise", "limits"), [(0.0, (300, 300)), (1.0, (1, 30)), (None, (1, 250))])
def test_the_bound_counts_near_copies_alone(noise, limits):
    """Rows with as much noise as neighbours are apart, or half-way to one, are mostly none."""
    rng = np.random.default_rng(12)
    train, heldout = rng.normal(size=(2, 300, 24))
    gaps = np.linalg.norm(train[:, None] - train, axis=2)
    np.fill_diagonal(gaps, np.inf)
    other = train[gaps.argsort(axis=1)[np.arange(300), rng.integers(5, size=300)]]
    error = rng.normal(size=train.shape) / np.sqrt(24.0) * np.median(gaps.min(axis=1))
    fake = (train + other) / 2.0 if noise is None else train + noise * error
    found = gb.memorisation(fake, train, heldout)
    near = int((found.ratio <= found.closer).sum())
    assert found.copies_low <= near
    assert limits[0] <= near <= limits[1]
    assert any("rows mixed from a training row and a neighbour" in a for a in found.assumptions)


def test_fresh_rows_are_no_copies(real):
    train, heldout, fresh = real
    found = gb.memorisation(fresh, train, heldout)
    assert not found.copies
    assert (found.copies_low, found.suspects, found.diagnostic) == (0, (), None)
    assert str(found).startswith("no sign of copies")
    # Nor does it matter how generated rows depend on one another.
    often = np.repeat(fresh[:30], 10, axis=0)
    assert not gb.memorisation(often, train, heldout).copies
    grouped = gb.Sample(fresh, groups=np.arange(300) // 10, strata=np.arange(300) % 2)
    assert gb.memorisation(grouped, train, heldout).to_dict() == found.to_dict()


def test_over_fitting_is_told_from_copying():
    """A Gaussian fitted to 100 rows in 40 dimensions depends on these and copies none."""
    rng = np.random.default_rng(4)
    train, heldout = rows(100, rng, 40), rows(100, rng, 40)
    weights = rng.normal(size=(1000, 100)) / 10.0
    found = gb.memorisation(train.mean(axis=0) + weights @ (train - train.mean(axis=0)), train,
                            heldout)  # fmt: skip
    assert found.pvalue < 0.05 < found.copies_pvalue
    assert found.odds > 1.1
    assert str(found).startswith("over-fitted: ")


def test_a_row_copied_a_thousand_times_is_one_hit(real):
    train, heldout, _ = real
    noise = 0.01 * rows(1000, np.random.default_rng(5))
    found = gb.memorisation(train[7] + noise, train, heldout)
    assert found.near.hit == 1
    assert not found.copies
    assert found.copies_pvalue == pytest.approx(0.5)


def test_types_and_units_of_the_features_do_not_matter(real, copied):
    train, heldout, fresh = real
    fake = fresh.copy()
    fake[100:140] = train[:40] + 0.05 * rows(40, np.random.default_rng(1))
    for make in (
        lambda x: x.astype(np.float32),
        lambda x: 1e3 * x + 1e5,
    ):
        found = gb.memorisation(make(fake), make(train), make(heldout))
        assert found.near.trained == copied.near.trained
        assert found.ratio == pytest.approx(copied.ratio, rel=1e-3)


# --- groups and strata ----------------------------------------------------------------------------


def clips(n, frames, rng):
    return np.repeat(rows(n, rng), frames, axis=0) + 0.2 * rows(n * frames, rng)


def test_whole_groups_are_the_units():
    """A generator that is near to five held-in clips hits all of their frames: five hits, not 100.

    Frames taken for independent rows are called no random split.
    """
    rng = np.random.default_rng(6)
    train, heldout = clips(50, 20, rng), clips(50, 20, rng)
    ids = np.repeat(np.arange(50), 20)
    fake = train[:100] + 0.2 * rows(100, rng)
    told = gb.memorisation(
        fake, gb.Sample(train, groups=ids), gb.Sample(heldout, groups=1000 + ids)
    )
    assert (told.near.hit, told.unit, told.train_units) == (5, "group", 50)
    assert "split" not in codes(told)
    assert told.suspects == () or told.suspects[0].train_row < 100
    plain = gb.memorisation(fake, train, heldout)
    assert plain.every.hit > 20
    assert "split" in codes(plain, "unreliable")


def codes(found, severity=None):
    return [one.code for one in found.warnings if severity in (None, one.severity)]


def test_groups_are_refused_where_they_were_split(real):
    train, heldout, fresh = real
    ids = np.arange(300) // 3
    given = gb.Sample(train, groups=ids), gb.Sample(heldout, groups=ids + 50)
    with pytest.raises(gb.InputError, match="`heldout` shares 50 groups"):
        gb.memorisation(fresh, *given)
    with pytest.raises(gb.InputError, match=r"^`train` and `heldout` must both have groups"):
        gb.memorisation(fresh, train, given[1])
    with pytest.raises(gb.InputError, match="`train` has weights"):
        gb.memorisation(fresh, gb.Sample(train, weights=np.ones(300)), heldout)


# --- warnings -------------------------------------------------------------------------------------


def test_files_that_are_one_another_are_named(real):
    train, heldout, fresh = real
    same = gb.memorisation(train[::-1], train, heldout)
    assert codes(same, "unreliable") == ["same-rows"]
    assert same.copies
    leak = gb.memorisation(heldout, train, heldout)
    assert codes(leak, "unreliable") == ["leak", "leak"]
    exchanged = gb.memorisation(train + 0.01, heldout, train)
    assert codes(exchanged, "unreliable") == ["leak"]
    few = gb.memorisation(np.concatenate([fresh, heldout[:1]]), train, heldout)
    assert codes(few, "caution") == ["leak", "few-samples"]
    with pytest.raises(gb.InputError, match="`heldout` holds the same rows as `train`"):
        gb.memorisation(fresh, train, train[::-1])


def test_rows_of_both_files_are_left_out(real):
    train, heldout, fresh = real
    common = np.concatenate([heldout, train[:20]])
    found = gb.memorisation(np.concatenate([fresh, train[:60]]), train, common)
    assert "duplicates" in codes(found, "caution")
    assert (found.train_units, found.heldout_units) == (280, 300)
    assert {one.train_row for one in found.suspects} >= set(range(20, 60))
    assert not {one.train_row for one in found.suspects} & set(range(20))
    half = gb.memorisation(fresh, train, np.concatenate([heldout[:150], train[:150]]))
    assert "duplicates" in codes(half, "unreliable")


def test_repeated_training_rows_count_once(real):
    train, heldout, _ = real
    found = gb.memorisation(train[:50], np.repeat(train, 10, axis=0), heldout)
    assert "duplicates" in codes(found, "caution")
    assert (found.near.hit, found.train_units) == (50, 300)
    assert found.copies


def test_splits_that_are_not_random_are_named(real):
    train, heldout, fresh = real
    assert codes(gb.memorisation(fresh, train, heldout)) == ["few-samples"]
    shifted = gb.memorisation(fresh, train, heldout + 1.0)
    assert "split" in codes(shifted, "unreliable")
    near = np.random.default_rng(7).permutation(train) + 0.01
    assert "split" in codes(gb.memorisation(fresh, train, near), "unreliable")
    classes = np.arange(300) % 3
    told = [gb.Sample(x, strata=classes) for x in (train, heldout)]
    assert "split" not in codes(gb.memorisation(fresh, *told))
    for one_sided in ((told[0], heldout), (train, told[1])):
        found = gb.memorisation(fresh, *one_sided)
        assert sorted(codes(found, "caution")) == ["few-samples", "split"]
        assert found.reliable
    told[1] = gb.Sample(heldout, strata=np.arange(300) // 250)
    assert "split" in codes(gb.memorisation(fresh, *told), "unreliable")


def test_near_twins_and_few_held_out_rows_are_named(real):
    train, heldout, fresh = real
    rng = np.random.default_rng(8)
    crops = [np.repeat(x[:100], 6, axis=0) + 0.01 * rows(600, rng) for x in (train, heldout)]
    mixed = rng.permutation(np.concatenate(crops))
    assert "near-duplicates" in codes(gb.memorisation(fresh, mixed[:600], mixed[600:]))
    few = gb.memorisation(fresh, train, heldout[:40])
    assert few.least_visible > 20
    assert f"fewer than {few.least_visible} copied rows" in few.warnings[-1].message


@pytest.mark.parametrize(("n", "kinds"), [(300, 40), (300, 100), (1000, 100)])
def test_clusters_of_a_distribution_are_no_twins(n, kinds):
    """Six to fifteen rows a cluster: every one of five samples of each was accused."""
    centres = 6.0 * np.random.default_rng(9).normal(size=(kinds, 16))
    for seed in range(5):
        rng = np.random.default_rng([7, seed])
        x, y, z = (centres[rng.integers(kinds, size=n)] + rng.normal(size=(n, 16)) for _ in "xyz")
        assert "near-duplicates" not in codes(gb.memorisation(x, y, heldout=z))


@pytest.mark.parametrize(("sizes", "noise"), [((8, 8), 0.3), ((5, 13), 0.01)])
def test_near_twins_of_one_number_or_very_near_ones_are_named(sizes, noise):
    for seed in range(3):
        rng = np.random.default_rng([7, seed])
        sources = rng.normal(size=(400, 16))
        x = np.repeat(sources, rng.integers(sizes[0], sizes[1] + 1, size=400), axis=0)[:1200]
        x = rng.permutation(x + noise * rng.normal(size=x.shape))
        found = gb.memorisation(rng.normal(size=(600, 16)), x[:600], heldout=x[600:])
        assert "near-duplicates" in codes(found)


# --- refusals, results ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"level": 1.0}, "`level`"),
        ({"fdr": 0}, "`fdr`"),
        ({"closer": 1.5}, "`closer`"),
        ({"train": np.r_[np.zeros((1, D)), np.full((1, D), np.inf)]}, "`train` has an infinite"),
        ({"heldout": np.ones((5, 3))}, "`heldout` has 3 features"),
        ({"fake": np.ones((5, 3))}, "`fake` has 3 features"),
        ({"train": np.eye(D)[:2], "heldout": np.eye(D)[2:4]}, "at least 7 distinct rows"),
        ({"fake": gb.Moments(np.zeros(D), np.eye(D))}, "`fake`"),
        ({"seed": "a"}, "`seed`"),
    ],
)
def test_bad_input_is_one_line(real, change, words):
    train, heldout, fresh = real
    with pytest.raises(gb.InputError) as caught:
        gb.memorisation(**{"fake": fresh, "train": train, "heldout": heldout} | change)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_way_out(copied):
    import matplotlib.pyplot as plt

    document = json.loads(json.dumps(copied.to_dict(), allow_nan=False))
    assert document["pvalue"] == copied.pvalue
    assert document["suspects"][0].keys() == {
        "fake_row", "train_row", "distance", "ratio", "hits",
    }  # fmt: skip
    assert copied.to_frame()["low"].iloc[0] == copied.share_low
    assert "near copies" in copied.to_markdown()
    assert "tabular" in copied.to_latex()
    assert "<table>" in copied._repr_html_()
    edges, trained, heldout = copied.densities()
    assert trained.sum() * 300 + heldout.sum() * 300 == pytest.approx(300)
    assert len(edges) == len(trained) + 1
    ax = copied.plot()
    assert "nearest real row" in ax.get_xlabel()
    plt.close(ax.figure)


def test_the_estimate_is_never_below_the_bound():
    """Few copies among many rows: the bound rests on the nearest hits, where copies stand out."""
    rng = np.random.default_rng(0)
    train, heldout, fresh = rng.normal(size=(3, 500, 32))
    fake = np.concatenate([fresh, train[:40] + 0.1 * rng.normal(size=(40, 32))])
    found = gb.memorisation(fake, train, heldout)
    for part in (found.near, found.every):
        assert part.low <= part.estimate


def test_a_verdict_carries_its_doubts():
    rng = np.random.default_rng(1)
    train, heldout = rng.normal(size=(2, 300, 8))
    exchanged = gb.memorisation(heldout, train, heldout)
    assert not exchanged.reliable
    assert str(exchanged).endswith("; unreliable: see the warnings")


# --- error rates ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.statistical
def test_false_alarms_and_power():
    """Null: alarms at 5 % in 5 % of runs at most, for fresh rows and for rows shrunk to the centre.

    False alarm of the test 1e-6 by the exact binomial gate on 180 runs.
    Power: alarms in 25 % of runs would be seen with probability above 0.999. Copies of 10 % of the
    rows are found in each of 10 runs.
    """
    rng, d = np.random.default_rng([9, 16]), 16
    most = stats.binom.isf(1e-6, 180, 0.05)
    assert stats.binom.sf(most, 180, 0.25) > 0.999
    alarms = np.zeros((3, 3))
    for _ in range(60):
        train, heldout, fresh, other = (rows(100, rng, d) for _ in range(4))
        for kind, fake in enumerate((fresh, 0.5 * other, np.repeat(other[:20], 5, axis=0))):
            found = gb.memorisation(fake, train, heldout)
            alarms[kind] += found.pvalue <= 0.05, found.copies, found.copies_low > 0
    assert (alarms.sum(axis=0) <= most).all()
    for _ in range(10):
        train, heldout, fake = (rows(200, rng, d) for _ in range(3))
        fake[:20] = train[:20] + 0.001 * rows(20, rng, d)
        assert gb.memorisation(fake, train, heldout).copies
