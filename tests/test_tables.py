"""Results in hand: Markdown, LaTeX, HTML, data frames, plots, citations; hostile names."""

from __future__ import annotations

import math
import re
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest

import genbounds as gb
from tests.report.conftest import HOSTILE, make_ranking, make_score

UNRELIABLE = gb.Diagnostic(code="leak", severity="unreliable", message="a leak")


def results():
    ranking = make_ranking(["diffusion", "gan", "vae"])
    return {"score": make_score(2.0), "difference": ranking.differences[0], "ranking": ranking}


KINDS = list(results())


@pytest.fixture
def hostile():
    ranking = make_ranking(list(HOSTILE.values()))
    return replace(
        ranking,
        scores={
            name: replace(score, title=HOSTILE["script"], encoder=HOSTILE["maths"])
            for name, score in ranking.scores.items()
        },
    )


# --- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "value"), [(make_score(2.0), 2.0), (results()["difference"], -0.25)]
)
def test_the_format_is_that_of_the_value(result, value):
    assert f"{result:.2f}" == f"{value:.2f}"
    assert f"{result:10.3e}" == f"{value:10.3e}"
    assert f"{result}" == str(result)


@pytest.mark.parametrize("kind", KINDS)
def test_every_way_out_has_every_number(kind):
    result = results()[kind]
    frame = result.to_frame()
    rows = result.scores.items() if kind == "ranking" else [(None, result)]
    assert len(frame) == len(rows)
    for (name, one), (index, row) in zip(rows, frame.iterrows(), strict=True):
        assert (row["value"], row["low"], row["high"]) == (one.value, one.low, one.high)
        assert row["stderr"] == one.stderr
        if name is not None:
            assert index == name
            assert row["group"] == result.letters[name]
    assert len(result.to_markdown().splitlines()) == 2 + len(rows)
    assert result.to_latex().count("\\\\") == 1 + len(rows)
    assert result._repr_html_().count("<tr>") == 1 + len(rows)
    for text in (result.to_markdown(), result.to_latex(), result._repr_html_()):
        for _, one in rows:
            assert f"{abs(one.value):#.4g}" in text


def test_a_result_of_several_values_is_formatted_line_by_line():
    ranking = results()["ranking"]
    lines = f"{ranking:.1f}".splitlines()
    assert lines == [
        f"{name} {score.value:.1f} [{score.low:.1f}, {score.high:.1f}]"
        for name, score in ranking.scores.items()
    ]
    assert f"{ranking}" == str(ranking)


def test_a_difference_has_its_p_value():
    pair = results()["ranking"].differences[0]
    assert list(pair.to_frame()["p, adjusted"]) == [pair.pvalue_adjusted]
    assert "p, adjusted" in pair.to_markdown()


def test_a_frame_without_pandas_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(gb.InputError, match="pip install pandas"):
        make_score(2.0).to_frame()


def test_unreliable_scores_are_marked_everywhere():
    ranking = results()["ranking"]
    bad = replace(ranking.scores["gan"], warnings=(UNRELIABLE,))
    marked = replace(ranking, scores=ranking.scores | {"gan": bad})
    assert list(marked.to_frame()["reliable"]) == [True, False, True]
    for text in (marked.to_markdown(), marked.to_latex(), marked._repr_html_()):
        assert "Reliable" in text
        assert re.search(r"\bno\b", text)
    assert "stroke-dasharray" in marked._repr_html_()
    assert "unreliable" in bad.citation()
    assert "Reliable" not in ranking.to_markdown()


@pytest.mark.parametrize("values", [(0.2, 7.0), (0.01, 800.0)])
def test_a_logarithmic_plot_has_a_few_plain_numbers(values):
    """As people read them, and none over another; what is on the axis fits below it."""
    from matplotlib.figure import Figure

    ranking = results()["ranking"]
    scores = {str(x): replace(make_score(x), title="A title of a score " * 6) for x in values}
    # The size of a new figure of `plot`.
    axes = Figure(figsize=(6.4, 1.64), layout="constrained").add_subplot()
    replace(ranking, scores=scores, groups=()).plot(axes)
    axes.figure.draw_without_rendering()
    low, high = axes.get_xlim()
    ticks = [tick for tick in axes.xaxis.get_major_ticks() if low <= tick.get_loc() <= high]
    assert 2 <= len(ticks) <= 7
    boxes = sorted((tick.label1.get_window_extent() for tick in ticks), key=lambda box: box.x0)
    assert all(a.x1 < b.x0 for a, b in pairwise(boxes))
    assert all(re.fullmatch(r"[\d\u202f.]+", tick.label1.get_text()) for tick in ticks)
    assert not any(axes.get_xticklabels(minor=True)[k].get_text() for k in range(3))
    label = axes.xaxis.label.get_window_extent()
    assert 0 <= label.x0 < label.x1 <= axes.figure.bbox.x1


# --- names ----------------------------------------------------------------------------------------


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.text = [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        assert not any(key.startswith("on") or key in ("src", "href") for key, _ in attributes)

    def handle_data(self, data):
        self.text.append(data)


def test_names_are_text_in_a_notebook(hostile):
    page = hostile._repr_html_()
    tags = Tags()
    tags.feed(page)
    known = {"table", "caption", "thead", "tbody", "tr", "th", "td", "svg", "g", "line", "circle"}
    assert set(tags.tags) == known
    text = "".join(tags.text)
    for name in ("script", "image", "quotes", "rtl", "emoji", "maths"):
        assert HOSTILE[name] in text
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert "x" * 500 not in page


def test_names_are_text_in_markdown(hostile):
    """Every row has as many cells as the head; nothing of a name is left that Markdown obeys."""
    names = [*HOSTILE.values(), "a|b", "[x](javascript:alert(1))", "# _a_ *b* `c` ~~d~~", "\\|"]
    text = make_ranking(names).to_markdown()
    lines = text.splitlines()
    assert len(lines) == 2 + len(names)
    cells = {len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in lines}
    assert len(cells) == 1
    for line in lines[2:]:
        name = line.split(" | ")[0].removeprefix("| ")
        bare = re.sub(r"\\.|&#\d+;", "", name)
        assert not re.search(r"[<>&\[\]$`*_|~#\\]", bare), line


def test_names_are_text_in_latex(hostile):
    names = [*HOSTILE.values(), r"\input{/etc/passwd}", "100% & $x$ #1 _a^b ~"]
    text = make_ranking(names).to_latex()
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert len(rows) == 1 + len(names)
    for row in rows:
        # What is left of the commands that we write ourselves must hold nothing active.
        bare = re.sub(r"\\text\w+\{\}|\\ldots\{\}|\\[{}&%$#_,]|\$-\$|\$\^\{-?\d+\}\$", "", row)
        bare = bare.removesuffix(r"\\")
        assert bare.count("&") == 5, row
        assert not re.search(r"[\\${}%#_^~]", bare), row


def test_names_in_a_citation_are_one_line(hostile):
    for score in hostile.scores.values():
        line = score.citation()
        assert "\n" not in line
        assert "\x1b" not in line


# --- drawings -------------------------------------------------------------------------------------


def drawings(page: str) -> list[ET.Element]:
    return [ET.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", page)]


def test_every_interval_is_drawn_on_one_scale():
    ranking = results()["ranking"]
    found = drawings(ranking._repr_html_())
    places = [float(svg.find(".//circle").get("cx")) for svg in found]
    assert places == sorted(places)
    assert len(set(places)) == 3
    for svg, score in zip(found, ranking.scores.values(), strict=True):
        line = svg.find(".//line")
        low, high = float(line.get("x1")), float(line.get("x2"))
        assert 0.0 <= low < float(svg.find(".//circle").get("cx")) < high <= 160.0
        assert svg.get("role") == "img"
        assert f"{score.value:#.4g}" in svg.get("aria-label")


@pytest.mark.parametrize(
    ("values", "half"),
    [([0.0, 0.0], 0.0), ([1e-9, 1e9], 0.0), ([1.0, math.inf], 1.0), ([math.nan, 1.0], 1.0)],
)
def test_odd_numbers_are_drawn_too(values, half):
    ranking = make_ranking(["a", "b"])
    scores = {
        name: replace(make_score(1.0), value=value, low=value - half, high=value + half)
        for name, value in zip("ab", values, strict=True)
    }
    odd = replace(ranking, scores=scores)
    assert len(drawings(odd._repr_html_())) == 2
    assert "nan" not in re.sub(r"–", "", odd._repr_html_())


@pytest.mark.parametrize("kind", KINDS)
def test_plots(kind):
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    result = results()[kind]
    assert result.plot(ax) is ax
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert len(names) == (3 if kind == "ranking" else 1)
    low, high = ax.get_ylim()
    assert low > high  # the first on top


def test_plots_make_their_own_axes_and_take_no_name_for_mathematics(hostile):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = ["$\\frac{1$", "plain"]
    ax = make_ranking(names).plot()
    try:
        assert [text.get_text() for text in ax.get_yticklabels()] == names
        ax.figure.canvas.draw()
    finally:
        plt.close(ax.figure)


# --- citations ------------------------------------------------------------------------------------


def test_a_citation_says_how_the_number_was_made():
    rng = np.random.default_rng(0)
    fake, real = rng.normal(size=(2000, 3)), rng.normal(0.3, size=(5000, 3))
    score = gb.frechet_distance(fake, real, level=0.99)
    line = score.citation()
    half = (score.high - score.low) / 2.0
    value, plus = re.match(r"Fréchet distance ([\d.]+) ± ([\d.]+) \(", line).groups()
    assert float(value) == pytest.approx(score.value, abs=0.051 * half)
    assert float(plus) == pytest.approx(half, rel=0.06)
    for part in (
        "99% confidence interval", score.estimator, score.method, "n = 2,000",
        "reference n = 5,000", f"genbounds {gb.__version__}",
    ):  # fmt: skip
        assert part in line
    assert "encoder" not in line
    known = gb.frechet_distance(fake, gb.Moments(np.zeros(3), np.eye(3))).citation()
    assert "reference n" not in known


@pytest.mark.parametrize(
    ("call", "title"),
    [
        (lambda x: gb.kernel_inception_distance(x, x[::-1] + 1.0), "kernel Inception distance"),
        (lambda x: gb.inception_score(np.abs(x) / np.abs(x).sum(1, keepdims=True)), "Inception"),
        (lambda x: gb.vendi_score(x, kernel="cosine", order=2), "Vendi score of order 2"),
        (lambda x: gb.compare({"a": x}, x[::-1] + 1.0).scores["a"], "Fréchet distance"),
    ],
)
def test_every_score_knows_what_it_is(call, title):
    score = call(np.random.default_rng(0).normal(size=(200, 3)))
    assert score.citation().startswith(title)
    assert score.to_dict()["title"] == score.title


def test_the_encoder_is_cited_where_the_files_name_it(tmp_path):
    from genbounds.files import open_features_writer, read_features

    x = np.random.default_rng(0).normal(size=(300, 3)).astype(np.float32)
    for name in ("fake", "real"):
        with open_features_writer(
            tmp_path / f"{name}.safetensors",
            shape=x.shape,
            dtype=x.dtype,
            metadata={"encoder": "timm:some_net"},
        ) as write:
            write(x if name == "fake" else x[::-1] + np.float32(0.1))
    fake, real = (read_features(tmp_path / f"{name}.safetensors") for name in ("fake", "real"))
    assert "encoder timm:some_net" in gb.frechet_distance(fake, real).citation()
    assert "encoder timm:some_net" in gb.compare({"a": fake}, real).scores["a"].citation()


@pytest.mark.parametrize(
    ("value", "half", "text"),
    [
        (3.2149, 0.1371, "3.21 ± 0.14"), (12345.6, 432.1, "12,346 ± 432"), (0.0227, 0.0129,
        "0.023 ± 0.013"), (0.0, 0.012, "0.000 ± 0.012"), (5.0, 0.0, "5.000"),
        (1e-7, 1e-8, "1.000·10⁻⁷ ± 1.0·10⁻⁸"),
    ],
)  # fmt: skip
def test_two_digits_of_the_half_width(value, half, text):
    score = replace(make_score(value), low=value - half, high=value + half, title="")
    assert score.citation().startswith(f"{text} (95%")


def test_the_level_is_printed_as_it_is():
    assert "99.9%" in repr(replace(make_score(1.0), level=0.999))
    assert "99.9%" in repr(replace(results()["ranking"], level=0.999))
    nearly = 1.0 - 1e-12
    assert "99.9999999999%" in repr(replace(make_score(1.0), level=nearly))
