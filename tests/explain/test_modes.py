"""Kinds of rows: counts against other programs, claims against the truth."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest
from scipy import stats
from scipy.stats.contingency import odds_ratio
from statsmodels.stats.multitest import multipletests

import genbounds as gb
from genbounds.core.design import row_design
from genbounds.explain._exact import BASE, NOTED, OTHER, fisher, holm, ratio_interval
from genbounds.explain._modes import KINDS, _divided, _kind, _side, _tested, find_cells

CENTRES = 8.0 * np.eye(6)


def draw(n, rng, shares):
    """Rows of six kinds, far apart, with the given shares; returns their kinds too."""
    kind = rng.choice(6, n, p=np.asarray(shares) / np.sum(shares))
    return CENTRES[kind] + rng.normal(size=(n, 6)), kind


@pytest.fixture(scope="module")
def found():
    """Kind 0 is missing, 1 halved, 2 doubled, 5 invented."""
    rng = np.random.default_rng(1)
    real, of_real = draw(3000, rng, [1, 1, 1, 1, 1, 0])
    fake, of_fake = draw(4000, rng, [0, 0.5, 2, 1, 1, 0.5])
    return gb.modes(gb.Sample(fake), gb.Sample(real)), of_fake, of_real


# --- counts --------------------------------------------------------------------------------------

TABLES = [(0, 250, 12, 250), (60, 900, 30, 1000), (30, 1000, 60, 900), (7, 8, 1, 9), (3, 40, 2, 50)]


@pytest.mark.parametrize("counts", TABLES)
def test_fisher_and_odds_are_those_of_scipy(counts):
    k, n, k0, n0 = counts
    table = [[k, n - k], [k0, n0 - k0]]
    expected = stats.fisher_exact(table, alternative="greater").pvalue
    assert fisher(*counts) == pytest.approx(expected, rel=1e-9)
    error = 0.01
    low, high = ratio_interval(*counts, error)
    known = odds_ratio(table)
    odds = [
        known.confidence_interval(1.0 - NOTED * error, alternative="greater").low,
        known.confidence_interval(1.0 - OTHER * error, alternative="less").high,
    ]
    u = stats.beta.isf(BASE * error, k0 + 1, n0 - k0)
    # At the base share that is worst for each end.
    expected_low = min(odds[0] / (1.0 + p * (odds[0] - 1.0)) for p in (0.0, u))
    expected_high = max(odds[1] / (1.0 + p * (odds[1] - 1.0)) for p in (0.0, u))
    assert low == pytest.approx(expected_low, rel=1e-6)
    assert high == pytest.approx(expected_high, rel=1e-6)


def test_holm_is_that_of_statsmodels():
    p = [0.03, 0.001, 0.2, 0.001, 0.8]
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1])
    assert holm([]) == []


def coverage(interval, n, n0):
    """Exact coverage of the ratio, at its worst over a grid of shares."""
    ends = np.array([[interval(k, n, k0, n0) for k0 in range(n0 + 1)] for k in range(n + 1)])
    worst = 1.0
    for p in (0.02, 0.1, 0.3, 0.6, 0.95):
        for p0 in (0.02, 0.1, 0.3, 0.6, 0.95):
            inside = (ends[..., 0] <= p / p0) & (p / p0 <= ends[..., 1])
            weights = np.outer(
                stats.binom.pmf(np.arange(n + 1), n, p), stats.binom.pmf(np.arange(n0 + 1), n0, p0)
            )
            worst = min(worst, float((weights * inside).sum()))
    return worst


def test_the_interval_covers_every_ratio():
    """By enumeration of all counts. Half of the error is noticed."""
    assert coverage(lambda *counts: ratio_interval(*counts, 0.3), 5, 6) >= 0.7
    assert coverage(lambda *counts: ratio_interval(*counts, 0.9), 5, 6) < 0.7


def test_nothing_counted_says_nothing():
    assert ratio_interval(0, 50, 0, 60, 0.05) == (0.0, math.inf)
    assert ratio_interval(50, 50, 60, 60, 0.05) == (0.0, math.inf)


# --- regions -------------------------------------------------------------------------------------


def test_kinds_are_named_and_shown(found):
    result, of_fake, of_real = found
    seen = {}
    for region in result.found:
        side, labels = ("fake", of_fake) if region.low > 1.0 else ("real", of_real)
        kinds = labels[list(region.rows[side])]
        assert (kinds == kinds[0]).all()
        seen.setdefault(int(kinds[0]), region)
    assert {kind: region.kind for kind, region in seen.items()} == {
        0: "missing", 1: "rare", 2: "over", 5: "invented"
    }  # fmt: skip
    for kind, ratio in ((0, 0.0), (1, 0.5), (2, 2.0)):
        assert seen[kind].low <= ratio <= seen[kind].high
    assert seen[5].high == math.inf
    assert seen[0].rows["fake"] == ()
    assert result.reliable
    # A large kind may be cut into several cells.
    assert re.fullmatch(
        r"\d regions differ \(95\u202f%\): 1 missing, \d rare, \d over and \d invented", str(result)
    )


def test_every_kind_is_significant(found):
    rng = np.random.default_rng(2)
    equal = gb.modes(*(gb.Sample(rng.normal(size=(200, 3))) for _ in "ab"))
    assert "even" in {region.kind for region in equal.regions}
    result, *_ = found
    assert {region.kind for region in result.regions} <= set(KINDS)
    for region in (*result.regions, *equal.regions):
        assert region.pvalue <= region.pvalue_adjusted <= 1.0
        assert region.low <= region.ratio <= region.high
        if region.kind != "even":
            assert region.pvalue_adjusted <= 0.05
            assert region.low > 1.0 or region.high < 1.0
    kinds = [region.kind == "even" for region in result.regions]
    assert kinds == sorted(kinds)


@pytest.mark.parametrize(
    ("fake", "real", "low", "high", "kind"),
    [
        (0.0, 0.05, 0.0, 0.4, "missing"),
        (0.0, 0.05, 0.0, 0.6, "rare"),  # not surely less than a half
        (0.02, 0.05, 0.1, 0.45, "rare"),  # some are there
        (0.05, 0.0, 2.5, math.inf, "invented"),
        (0.05, 0.0, 1.5, math.inf, "over"),
        (0.05, 0.02, 2.1, 9.0, "over"),
    ],
)
def test_what_the_words_mean(fake, real, low, high, kind):
    assert _kind(fake, real, low, high) == kind


def test_a_result_is_plain_and_repeats(found):
    result, *_ = found
    document = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert document["regions"][0]["kind"] == result.regions[0].kind
    assert "missing" in result.to_markdown()
    assert "<svg" in result._repr_html_()
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(200, 3)), rng.normal(size=(150, 3)) + 1.0
    assert gb.modes(x, y).to_dict() == gb.modes(x, y).to_dict()
    assert gb.modes(x, y).to_dict() != gb.modes(x, y, seed=1).to_dict()


def test_counted_rows_do_not_decide_what_the_regions_are():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(200, 4)), rng.normal(size=(160, 4))
    halves = np.arange(0, 200, 2), np.arange(0, 160, 2)
    cells = find_cells(x, y, halves, 0)
    x[1::2], y[1::2] = 5.0, -5.0
    for before, after in zip(cells, find_cells(x, y, halves, 0), strict=True):
        assert before.more == after.more
        for part, same, half in zip(before.parts, after.parts, halves, strict=True):
            assert (part[half] == same[half]).all()


def test_scale_does_not_matter():
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(200, 4)) + 1.0, rng.normal(size=(160, 4))
    small = gb.modes(gb.Sample(x), gb.Sample(y)).to_dict()
    for scale in (2.0**-400, 2.0**400):
        assert gb.modes(gb.Sample(scale * x), gb.Sample(scale * y)).to_dict() == small


def test_constant_features_differ_from_others():
    rng = np.random.default_rng(4)
    result = gb.modes(gb.Sample(np.ones((100, 3))), gb.Sample(rng.normal(size=(200, 3))))
    assert "invented" in {region.kind for region in result.found}
    assert gb.modes(gb.Sample(np.ones((100, 3))), gb.Sample(np.ones((90, 3)))).found == ()


# --- groups and strata ---------------------------------------------------------------------------


def test_groups_stay_together_and_count_once():
    rng = np.random.default_rng(5)
    of_fake, of_real = rng.integers(60, size=300), rng.integers(30, 90, size=400)
    sides = {
        "fake": _side("fake", gb.Sample(rng.normal(size=(300, 2)), groups=of_fake)),
        "real": _side("real", gb.Sample(rng.normal(size=(400, 2)), groups=of_real)),
    }
    discovery, counted = _divided(*(side.design for side in sides.values()), rng)
    found = set(of_fake[discovery[0]]) | set(of_real[discovery[1]])
    groups = [*of_fake[counted[0]], *of_real[counted[1]]]
    assert len(set(groups)) == len(groups)  # one row of each, in one sample
    assert not found & set(groups)
    assert len(groups) >= 35  # nothing else is lost
    result = gb.modes(*(gb.Sample(s.rows, groups=g) for s, g in zip(
        sides.values(), (of_fake, of_real), strict=True)))  # fmt: skip
    assert result.counted_fake + result.counted_real <= 90
    assert any("every group counts the same" in text for text in result.assumptions)


def test_strata_are_halved_each():
    rng = np.random.default_rng(6)
    strata = np.repeat(np.arange(5), 20)
    side = _side("fake", gb.Sample(rng.normal(size=(100, 2)), strata=strata))
    (of_fake, _), (counted, _) = _divided(side.design, side.design, rng)
    assert np.bincount(strata[of_fake]).tolist() == [10] * 5
    assert np.bincount(strata[counted]).tolist() == [10] * 5


@pytest.mark.parametrize(
    ("fake", "words"),
    [
        (np.ones((39, 3)), "at least 40"),
        (np.ones((100, 2)), "2 features and `real` has 3"),
        (np.full((100, 3), np.nan), "NaN"),
        (gb.Sample(np.ones((100, 3)), weights=np.ones(100)), "weights"),
        (gb.Sample(np.ones((100, 3)), groups=np.arange(100) // 5), "20 independent groups"),
        (gb.Sample(np.ones((100, 3)), strata=np.arange(100) // 3), "stratum"),
        (gb.Moments(np.zeros(3), np.eye(3)), "fake"),
    ],
)
def test_refuses(fake, words):
    real = np.random.default_rng(0).normal(size=(100, 3))
    with pytest.raises(gb.InputError, match=words):
        gb.modes(fake, real)


@pytest.mark.parametrize("options", [{"level": 1.0}, {"level": 0}, {"seed": -1}, {"seed": 0.5}])
def test_refuses_options(options):
    x = np.random.default_rng(0).normal(size=(100, 3))
    with pytest.raises(gb.InputError, match=next(iter(options))):
        gb.modes(x, x + 1.0, **options)


def test_dependent_rows_are_named():
    rng = np.random.default_rng(0)
    x, y = np.repeat(rng.normal(size=(100, 5)), 3, axis=0), rng.normal(size=(300, 5))
    result = gb.modes(x, y)
    assert "duplicates" in {warning.code for warning in result.warnings}
    assert result.counted_fake == 50  # copies are one draw
    leak = gb.modes(y[:200], y)
    assert not leak.reliable


# --- error rate ----------------------------------------------------------------------------------


def low_pvalues(runs, draw_both, *, split=True):
    """Count runs in which the region that differs most at discovery has a p-value of 5 %.

    Without a `split` the rows that found it are counted.
    """
    count = 0
    for run in range(runs):
        fake, real = draw_both(np.random.default_rng([run, 1]))
        sides = _side("fake", fake), _side("real", real)
        designs = (side.design or row_design(len(side.rows)) for side in sides)
        discovery, counted = _divided(*designs, np.random.default_rng(run))
        cells = find_cells(sides[0].rows, sides[1].rows, discovery, run)
        (region,) = _tested(cells[:1], counted if split else discovery, 0.05)
        count += region.pvalue <= 0.05
    return count


RUNS = 40
MOST = int(stats.binom.isf(1e-6, RUNS, 0.05))


@pytest.mark.statistical
def test_the_counted_rows_are_fresh():
    """Of 40 p-values more than `MOST` = 11 are at most 5 % with probability 1e-6 or less.

    Power: 1 - 1e-7 against counting the discovery rows: about 70 % of the p-values are then so low.
    """

    def same(rng):
        return gb.Sample(rng.normal(size=(120, 4))), gb.Sample(rng.normal(size=(160, 4)))

    assert low_pvalues(RUNS, same) <= MOST
    assert low_pvalues(RUNS, same, split=False) > MOST


@pytest.mark.statistical
def test_copies_need_their_groups():
    """As above; half of the groups stand in both samples.

    Power: 1 - 1e-8 against copies that are not told, where about three of four p-values are so low.
    """

    def copies(rng, *, told):
        centres = rng.normal(size=(150, 3))
        found = []
        for first in (0, 50):
            group = np.repeat(np.arange(first, first + 100), 8)
            x = centres[group] + 0.01 * rng.normal(size=(800, 3))
            found.append(gb.Sample(x, groups=group if told else None))
        return tuple(found)

    assert low_pvalues(RUNS, lambda rng: copies(rng, told=True)) <= MOST
    assert low_pvalues(RUNS, lambda rng: copies(rng, told=False)) > MOST
