from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from functools import cache

import pytest

from genbounds import report
from genbounds.bounds import catalog
from genbounds.estimators import metric_names, metric_spec
from genbounds.report.page import formula
from genbounds.results import Diagnostic, Score
from genbounds.validation import InputError
from tests.report.conftest import AUDIT, HOSTILE, make_ranking, make_score

POINTS = [
    report.CoveragePoint(
        label=label, n=500, nominal=0.95, measured=p, low=p - 0.01, high=p + 0.01, replications=2000
    )
    for label, p in (("FD", 0.951), ("plug-in", 0.31), ("off", 0.92))
]


DRAWINGS = {
    "rank": lambda names: report.rank_plot(make_ranking(names)),
    "score": lambda names: report.score_plot(make_ranking(names).scores, metric="fd", level=0.95),
    "gaps": lambda names: report.gap_plot(make_ranking(names)),
    "matrix": lambda names: report.difference_matrix(make_ranking(names)),
    "convergence": lambda names: report.convergence_plot(
        {name: [(100, make_score(3.0)), (1000, make_score(2.0))] for name in names}, truth=1.0
    ),
    "samples": lambda names: report.samples_plot(
        {name: 100 * (i + 1) for i, name in enumerate(names)}, best=names[0]
    ),
    "spending": lambda names: report.spending_plot(
        [10, 20, 30], {name: [1, 2 + i, 3 + i] for i, name in enumerate(names)}
    ),
    "coverage": lambda names: report.coverage_plot(POINTS),
    "miss": lambda names: report.miss_plot(AUDIT),
    "claim": lambda names: report.claim_plot(AUDIT[0]),
    "tightness": lambda names: report.tightness_plot(AUDIT),
}
KINDS = list(DRAWINGS)


@cache
def plain(kind):
    return DRAWINGS[kind](["diffusion", "flow", "gan"])


@cache
def nasty(kind):
    return DRAWINGS[kind](list(HOSTILE.values()))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_equal_input_gives_equal_figures(kind):
    assert DRAWINGS[kind](["diffusion", "flow", "gan"]) == plain(kind)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", ["wide", "narrow"])
def test_svg_is_well_formed_and_self_contained(kind, size):
    for figure in (plain(kind), nasty(kind)):
        svg = getattr(figure, size)
        root = ET.fromstring(svg)
        assert root.tag == "svg"
        ids = re.findall(r'\bid="([^"]*)"', svg)
        assert len(ids) == len(set(ids))
        for target in re.findall(r'(?:href="#|url\(#)([^")]*)', svg):
            assert target in ids
        assert "http" not in svg
        for tag in root.iter():
            assert tag.tag not in ("script", "img", "image", "foreignObject")


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_page_s_colours_are_used(kind):
    """A fixed colour would vanish on the other background."""
    for svg in (plain(kind).wide, plain(kind).narrow):
        assert not re.search(r"#[0-9a-fA-F]{6}\b", re.sub(r"url\(#\w+\)", "", svg))
        for text in re.findall(r"<text[^>]*>", svg):
            assert "fill: var(--" in text


def test_a_name_that_reads_like_a_colour_or_an_id_stays():
    for name in ("#1f5fa8", ' id="a"', "url(#b)"):
        figure = report.score_plot({name: make_score(1.0)}, metric="fd", level=0.95)
        assert name in texts(figure.wide)


@pytest.mark.parametrize("kind", KINDS)
def test_alternatives_to_seeing(kind):
    figure = plain(kind)
    assert len(figure.alt) > 40
    assert figure.caption
    assert figure.table.rows
    assert "<title>" in figure.wide  # hover for numbers


def test_wide_and_narrow_have_different_ids():
    for figure in map(plain, KINDS):
        wide, narrow = (set(re.findall(r'id="([^"]*)"', s)) for s in (figure.wide, figure.narrow))
        assert not wide & narrow


def texts(svg: str) -> list[str]:
    return [tag.text or "" for tag in ET.fromstring(svg).iter("text")]


def ticks(svg: str) -> list[str]:
    """Return the labels of the level axis: what is written below it, but for its title."""
    marks = re.findall(r'id="\w*xtick_\d+">.*?<text[^>]*>([^<]*)<', svg, flags=re.DOTALL)
    return [mark for mark in marks if mark]


def shapes(svg: str) -> list[tuple[str, str]]:
    """Return (tip, fill) of every mark that has a tip."""
    return re.findall(r"<title>([^<]*)</title>.*?<use[^>]*fill: var\(--([\w-]+)\)", svg, re.DOTALL)


def between(low: float, value: float, high: float, **other) -> Score:
    return replace(make_score(value), low=low, high=high, **other)


@pytest.mark.slow
def test_a_logarithmic_axis_has_ticks_and_a_place_for_zero():
    """Also where a score is 0; other intervals that reach 0 end in an arrow, and no more."""
    scores = {
        "zero": between(0.0, 0.0, 0.03),
        "reaches zero": between(0.0, 0.05, 0.1),
        "plain": between(0.5, 1.0, 1.5),
        "large": between(30.0, 40.0, 50.0),
    }
    for width in ("wide", "narrow"):
        svg = getattr(report.score_plot(scores, metric="fd", level=0.95), width)
        labels = ticks(svg)
        assert labels[0] == "0"
        assert {"0.1", "1", "10"} <= set(labels)
    near = {"a": between(0.9, 1.0, 1.1), "b": between(18.0, 25.0, 31.0)}
    labels = ticks(report.score_plot(near, metric="fd", level=0.95).wide)
    assert "0" not in labels
    assert len(labels) >= 3
    assert arrows(report.score_plot(near, metric="fd", level=0.95).wide) == 0
    assert arrows(report.score_plot(scores, metric="fd", level=0.95).wide) == 1


@pytest.mark.parametrize("low", [0.0, math.nan])
def test_a_score_of_zero_stands_at_a_tick_with_0(low):
    """Also where it has no interval."""
    scores = {"a": between(0.3, 0.32, 0.34), "b": between(0.001, 0.0014, 0.002)}
    scores["zero"] = between(low, 0.0, low)
    assert ticks(report.score_plot(scores, metric="recall", level=0.95).wide)[0] == "0"


def test_a_caption_explains_arrows_only_where_there_are_some():
    scores = {"a": between(0.0, 0.3, 0.6), "b": between(19.0, 20.0, 21.0)}
    for known, arrow in ((scores, True), ({"b": scores["b"]}, False)):
        figure = report.score_plot(known, metric="fd", level=0.95)
        assert ("arrow" in figure.caption, arrows(figure.wide) > 0) == (arrow, arrow)


def arrows(svg: str) -> int:
    """Count triangles that point left: marks whose path starts at the tip."""
    paths = dict(re.findall(r'<path id="(\w+)" d="([^"]*)"', svg))
    pointing = [name for name, d in paths.items() if re.match(r"M -3\.5 -?0 \nL 3\.5", d)]
    return sum(svg.count(f'href="#{name}"') for name in pointing)


def test_meaning_survives_without_colours(ranking):
    """Filled: may be the best; open: significantly worse; a cross: unreliable."""
    warned = Diagnostic(code="leak", severity="unreliable", message="a leak")
    scores = dict(ranking.scores) | {"gan": replace(ranking.scores["gan"], warnings=(warned,))}
    figure = report.rank_plot(replace(ranking, scores=scores))
    fills = {tip.split(":")[0]: fill for tip, fill in shapes(figure.wide)}
    assert fills == {"diffusion": "accent", "flow": "accent", "gan": "bad", "vae": "paper"}
    assert any(tip.endswith("unreliable") for tip, _ in shapes(figure.wide))
    assert "stroke-dasharray" in figure.wide.split("<title>gan")[0][-3000:]
    assert "Group" in texts(figure.wide)
    assert "Group" not in texts(plain("score").wide)


@pytest.mark.parametrize(("low", "high"), [(0.9, 1.1), (0.3, 3.0), (0.01, 5000.0), (1e-9, 1e9)])
def test_every_logarithmic_axis_has_two_to_seven_ticks(low, high):
    scores = {"a": between(low, low, low), "b": between(high, high, high)}
    labels = ticks(report.score_plot(scores, metric="fd", level=0.95).wide)
    assert 2 <= len(labels) <= 8
    assert len(set(labels)) == len(labels)


def test_shares_add_up_whatever_the_number_of_arms():
    """Two arms in turns are half and half at all times; one that is given up has no share."""
    rounds = 60
    steps = list(range(5, 5 * 2 * rounds + 1, 5))
    turns = {
        "a": [5 * ((i + 2) // 2) for i in range(len(steps))],
        "b": [5 * ((i + 1) // 2) for i in range(len(steps))],
    }
    figure = report.spending_plot(steps, turns)
    assert "50\N{NARROW NO-BREAK SPACE}%" in texts(figure.wide)
    assert len(re.findall("<title>", figure.wide)) == 2
    many = {f"m{i}": [s // 10 for s in steps] for i in range(10)}
    many["m9"] = [min(s // 10, 3) for s in steps]
    many["m0"] = [s - sum(many[f"m{i}"][k] for i in range(1, 10)) for k, s in enumerate(steps)]
    figure = report.spending_plot(steps, many)
    assert len(re.findall("<title>", figure.wide)) == 10
    named_at_the_end = texts(figure.wide)[-1]
    assert "m9" not in named_at_the_end
    ET.fromstring(figure.wide)


def test_rank_plot_shows_order_values_and_letters(ranking):
    figure = report.rank_plot(ranking)
    shown = texts(figure.wide)
    assert [text for text in shown if text in ranking.scores] == list(ranking.scores)
    assert [text for text in shown if text in "abc"] == ["a", "a", "b", "c"]
    assert [row[0].text for row in figure.table.rows] == list(ranking.scores)
    assert [row[1] for row in figure.table.rows] == [s.value for s in ranking.scores.values()]
    marks = re.findall(r"<title>[^<]*</title>.*?<use[^>]* x=\"([0-9.]+)\"", figure.wide, re.DOTALL)
    positions = [float(x) for x in marks]
    assert len(positions) == 4
    assert positions == sorted(positions)


def test_gaps_are_the_simultaneous_intervals_and_not_negative(ranking):
    """Behind the first, whichever way the score is better; coloured where zero is inside."""
    figure = report.gap_plot(ranking)
    first, *others = ranking.scores
    assert [row[0].text for row in figure.table.rows] == others
    for name, (_, value, low, high, tag) in zip(others, figure.table.rows, strict=True):
        pair = ranking.difference(first, name)
        assert (value, low, high) == (-pair.value, -pair.high, -pair.low)
        assert tag.text == ("yes" if low > 0.0 else "no")
    flipped = replace(
        ranking,
        differences=tuple(
            replace(d, value=-d.value, low=-d.high, high=-d.low) for d in ranking.differences
        ),
    )
    assert report.gap_plot(flipped).table == figure.table
    rivals = sum(not ranking.difference(first, name).distinguishable for name in others)
    assert 0 < rivals < len(others)
    assert figure.wide.count("may be as good") == rivals


@pytest.mark.parametrize("metric", metric_names())
def test_every_metric_is_drawn_under_its_title(metric):
    figure = report.score_plot({"a": make_score(1.5)}, metric=metric, level=0.95)
    assert metric_spec(metric).title in texts(figure.wide)


def test_matrix_colours_exactly_the_distinguishable_pairs(ranking):
    svg = report.difference_matrix(ranking).wide
    certain = sum(pair.distinguishable for pair in ranking.differences)
    assert 0 < certain < len(ranking.differences)
    assert svg.count("not significant") == len(ranking.differences) - certain
    assert len(re.findall(r'd="[^"]*"[^>]*fill: var\(--accent\)', svg)) == certain


def test_matrix_lists_the_p_value_of_every_pair(ranking):
    table = report.difference_matrix(ranking).table
    listed = [row[table.columns.index("p, adjusted")] for row in table.rows]
    assert listed == [pair.pvalue_adjusted for pair in ranking.differences]


def growth(*points, level=0.95):
    return [
        (n, replace(make_score(value), low=low, high=high, n=n, level=level))
        for n, value, low, high in points
    ]


def upright(svg: str) -> list[str]:
    """Return the labels of the upright axis: what is written left of it."""
    return re.findall(r"text-anchor: end[^>]*>([^<]*)<", svg)


def test_convergence_has_a_line_for_every_model_and_names_eight():
    series = {
        f"m{i}": growth((100, 2.0 + i, 1.0, 4.0), (200, 1.5 + i, 1.2, 2.0)) for i in range(10)
    }
    figure = report.convergence_plot(series, lines="Model")
    assert figure.table.columns[0] == "Model"
    assert [(row[0].text, *row[1:]) for row in figure.table.rows] == [
        (name, n, s.value, s.low, s.high) for name, points in series.items() for n, s in points
    ]
    assert len(re.findall("<title>m", figure.wide)) == 20
    assert [text for text in texts(figure.wide) if text in series] == [f"m{i}" for i in range(8)]
    band = "opacity: 0.16"
    assert band not in figure.wide  # ten bands would hide one another
    few = report.convergence_plot(dict(list(series.items())[:3]))
    assert few.wide.count(band) == 3
    assert "8" in figure.caption
    assert "95" in figure.caption
    mixed = series | {"m1": growth((100, 1.0, 0.5, 2.0), level=0.9)}
    assert "95" not in report.convergence_plot(mixed).caption


def test_wide_bands_of_small_samples_squeeze_no_line():
    """Negative control: the same band around the largest sample is not shown whole either."""
    figure = report.convergence_plot({"a": growth((50, 1.2, 0.0, 900.0), (500, 1.0, 0.9, 1.1))})
    shown = [float(text) for text in upright(figure.wide)]
    assert max(shown) < 10.0
    assert min(shown) <= 0.9


@pytest.mark.parametrize("zero", [False, True])
def test_models_far_apart_are_drawn_on_a_logarithmic_axis(zero):
    far = {"good": growth((50, 0.0, 0.0, 0.5), (500, 0.1, 0.05, 0.2)),
           "bad": growth((50, 300.0, 200.0, 400.0), (500, 250.0, 240.0, 260.0))}  # fmt: skip
    if zero:
        far["perfect"] = growth((50, 0.0, 0.0, 0.1), (500, 0.0, 0.0, 0.01))
    figure = report.convergence_plot(far)
    assert {"0.1", "1", "10", "100"} <= set(upright(figure.wide))
    ET.fromstring(figure.wide)
    assert "nan" not in figure.wide


@pytest.mark.parametrize("high", [float("inf"), float("nan")])
def test_intervals_without_an_end_have_no_band(high):
    points = growth((50, 1.0, 0.0, high), (100, 1.0, 0.5, high), (200, 1.0, 0.6, 1.5))
    for series in ({"a": points}, {"a": points[:1]}):
        figure = report.convergence_plot(series)
        assert "nan" not in figure.wide
        assert "inf" not in figure.wide.lower().replace("∞", "")


def test_equal_numbers_are_drawn_as_well():
    ET.fromstring(report.convergence_plot({"a": growth((50, 0.0, 0.0, 0.0))}).wide)


@pytest.mark.slow
def test_large_matrix_is_cut_and_says_so():
    figure = report.difference_matrix(make_ranking([f"m{i}" for i in range(45)]))
    assert "5 models" in figure.caption
    assert len(figure.table.rows) == 40 * 39 // 2


def test_hostile_names_are_shown_as_text():
    shown = texts(nasty("rank").wide)
    assert any(text.startswith("<script>") for text in shown)
    assert "שלום עולם" in shown
    assert "🦊 👩\u200d🔬" in shown
    assert max(map(len, shown)) < 40
    assert "\u202e" not in nasty("rank").wide
    tips = [tag.text or "" for tag in ET.fromstring(nasty("rank").wide).iter("title")]
    assert any(tip.startswith(HOSTILE["maths"]) for tip in tips)


def test_infinite_and_zero_values_can_be_drawn():
    odd = {
        "zero": make_score(0.0),
        "infinite": Score(
            value=1.0, low=0.0, high=float("inf"), level=0.95, stderr=float("inf"), n=3,
            estimator="debiased", method="influence",
        ),
        "huge": make_score(1e12),
        "tiny": make_score(1e-12, half=0.0),
    }  # fmt: skip
    for names in (list(odd), ["huge", "tiny"], ["zero"]):
        figure = report.score_plot({n: odd[n] for n in names}, metric="fd", level=0.95)
        assert "nan" not in re.sub(r"<title>.*?</title>", "", figure.wide).lower()


@pytest.mark.nightly
def test_every_formula_of_the_catalogue_can_be_drawn():
    for bound in catalog().values():
        svg = formula(bound.latex)
        assert svg is not None, bound.latex
        ET.fromstring(svg)
        assert "var(--ink)" in svg


def test_what_cannot_be_drawn_is_no_error():
    assert formula(r"\begin{matrix}") is None


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (report.score_plot, {"scores": {}, "metric": "fd", "level": 0.95}),
        (report.convergence_plot, {"series": {}}),
        (report.convergence_plot, {"series": {"a": []}}),
        (report.samples_plot, {"samples": {}}),
        (report.spending_plot, {"steps": [], "spent": {}}),
        (report.spending_plot, {"steps": [1, 2], "spent": {"a": [1]}}),
        (report.coverage_plot, {"points": []}),
        (report.miss_plot, {"rows": []}),
        (report.claim_plot, {"row": {"id": "a", "verdict": "upheld", "by_delta": []}}),
        (report.tightness_plot, {"rows": [{"tightness": None}]}),
        (report.difference_matrix, {"ranking": make_ranking(["alone"])}),
        (report.gap_plot, {"ranking": make_ranking(["alone"])}),
    ],
)
def test_nothing_to_draw_is_refused(function, arguments):
    with pytest.raises(InputError, match="must hold"):
        function(**arguments)


def test_claims_name_the_failure_probabilities_that_are_missed():
    refuted, upheld = report.claim_plot(AUDIT[0]), report.claim_plot(AUDIT[1])
    assert "δ = 10⁻⁸." in refuted.alt
    assert "δ" not in upheld.alt
    assert [row[0] for row in refuted.table.rows] == ["0.2", "0.01", "10⁻⁸"]
    assert [row[2] for row in upheld.table.rows] == [0.0, 0.0, 0.0]


def test_a_name_with_quotes_has_its_tip():
    """matplotlib writes an id with a double quote in single ones."""
    named = {'say "a"': make_score(1.0), "it's": make_score(2.0)}
    svg = report.score_plot(named, metric="fd", level=0.95).wide
    assert svg.count("<title>") == 2
    assert "tip:" not in svg
