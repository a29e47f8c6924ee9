from __future__ import annotations

import math
import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser

import pytest

from genbounds import bounds, report
from genbounds.report import (
    Facts,
    Formula,
    Link,
    Name,
    Notes,
    Page,
    Picture,
    Section,
    Table,
    Tag,
)
from genbounds.results import METHODS, Diagnostic
from genbounds.validation import InputError
from tests.report.conftest import AUDIT, HOSTILE, make_ranking, make_score

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360"
    "0000000002000154a24f5d0000000049454e44ae426082"
)


def everything() -> Page:
    names = list(HOSTILE.values())
    ranking = make_ranking(names)
    page = Page(f"Title {names[0]}", f"Lead {names[1]}", foot=f"Foot {names[2]}")
    page.facts = Facts(
        items=[(names[0], Name(names[3]), names[1]), ("x", 1.5, ""), ("y", Tag("no", "bad"), "")]
    )
    return page.add(
        Section("Scores", [names[0], report.rank_plot(ranking), Notes(items=names[:3])]),
        Section(names[1], [report.difference_matrix(ranking)]),
        Section("Rest", [
            Formula(r"\frac{1}{2}"), Formula(r"\begin{x}<script>"),
            Picture(PIXEL, "a pixel", "one pixel"),
            Table(["Name", "No.", names[0]], [[Name(n), i, n[:80]] for i, n in enumerate(names)]),
            Table(["Link"], [[Link("paper", "https://example.org/x?a=1&b=2")]], names[1]),
        ]),
    )  # fmt: skip


class Outline(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.ids, self.links, self.text = [], [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        named = dict(attributes)
        self.ids += [named["id"]] if "id" in named else []
        self.links += [named[key] for key in ("src", "href", "data", "srcset") if key in named]
        assert not any(key.startswith("on") for key in named)

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def html() -> str:
    return everything().render()


@pytest.fixture(scope="module")
def outline(html) -> Outline:
    parser = Outline()
    parser.feed(html)
    return parser


def test_equal_content_gives_equal_text(html):
    assert everything().render() == html


def test_nothing_is_requested(html, outline):
    for link in outline.links:
        assert link.startswith(("#", "data:")) or link == "https://example.org/x?a=1&b=2"
    assert "http" not in html.replace("http-equiv", "").replace("https://example.org", "")
    assert "@import" not in html
    assert "url(" not in re.sub(r"url\(#\w+\)", "", html)
    assert "default-src 'none'" in html  # and the browser enforces it


def test_only_our_own_script(html, outline):
    assert outline.tags.count("script") == 1
    (script,) = re.findall(r"<script>(.*?)</script>", html, flags=re.DOTALL)
    digest = b64encode(sha256(script.encode()).digest()).decode()
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    assert f"script-src 'sha256-{digest}';" in policy
    assert outline.tags.count("img") == 1


def test_names_are_shown_as_text(outline):
    text = "".join(outline.text)
    for name in ("script", "image", "quotes", "rtl", "emoji", "maths"):
        assert HOSTILE[name] in text
    assert "\x00" not in text
    assert "\u202e" not in text


def test_long_names_are_cut(html):
    assert "x" * 500 not in html


def test_ids_are_unique(outline):
    assert len(outline.ids) == len(set(outline.ids))


def test_headings_figures_and_tables_are_accessible(html, outline):
    assert outline.tags.count("h1") == 1
    assert outline.tags.count("h2") == 3
    assert html.startswith("<!doctype html>")
    assert '<html lang="en">' in html
    assert html.count('role="img"') == 2 * 2 + 1  # both sizes of two figures, one formula
    assert outline.tags.count("details") == 2
    assert 'scope="col"' in html


def test_what_cannot_be_drawn_is_shown_as_written(html):
    assert '<p class="formula"><code>\\begin{x}&lt;script&gt;</code></p>' in html


@pytest.mark.parametrize("href", ["javascript:alert(1)", "http://example.org", "data:text/html,x"])
def test_links_go_nowhere_dangerous(href):
    with pytest.raises(InputError, match="`href`"):
        Link("x", href)


def test_ragged_table_is_refused():
    page = Page("", "").add(Section("", [Table(["a", "b"], [[1, 2], [3]])]))
    with pytest.raises(InputError, match="2 cells each; got one with 1"):
        page.render()


def test_write(tmp_path):
    report.write_page(tmp_path / "new" / "page.html", everything())
    assert (tmp_path / "new" / "page.html").read_text(encoding="utf-8") == everything().render()


def test_thousands_are_set_apart_by_a_space():
    html = Page("x", f"{report.number(1234567)} samples").render()
    assert "1 234 567 samples".replace(" ", "\N{NARROW NO-BREAK SPACE}", 2) in html


UNTRUSTED = Diagnostic(
    code="leak", severity="unreliable", message="rows <b>of</b> the reference", remedy="Drop them."
)
DOUBT = Diagnostic(code="few-samples", severity="caution", message="few samples", remedy="More.")


def texts_of(html: str) -> str:
    parser = Outline()
    parser.feed(html)
    return "".join(parser.text)


def test_score_page_says_who_is_best_by_how_much_and_how_sure(ranking):
    page = report.score_page(ranking.scores, metric="fd", level=0.95, ranking=ranking)
    labels = [label for label, _, _ in page.facts.items]
    assert len(labels) == 4
    values = dict(zip(labels, page.facts.items, strict=True))
    gap = ranking.difference("diffusion", "flow")
    lead = values["Better than the next by"]
    assert lead[1] == report.number(-gap.value)
    assert report.interval(-gap.high, -gap.low) in lead[2]
    assert values["May be the best"][1] == f"{len(ranking.contenders)} of 4"
    assert "flow" in page.lead  # which is not significantly worse
    assert "vae" not in page.lead


def test_leads_of_logarithmic_scores_are_ratios(ranking):
    flipped = replace(
        ranking,
        log_scale=True,
        differences=tuple(
            replace(d, value=-d.value, low=-d.high, high=-d.low) for d in ranking.differences
        ),
    )
    page = report.score_page(flipped.scores, metric="is", level=0.95, ranking=flipped)
    lead = {label: value for label, value, _ in page.facts.items}["Better than the next by"]
    assert lead == f"{report.number(math.exp(0.25))} times"


def test_warnings_are_on_the_page_unreliable_first(ranking):
    """Apart from the assumptions, with the model's name; a mark in the row of the table."""
    scores = dict(ranking.scores)
    for name, warnings in {"gan": (DOUBT, UNTRUSTED), "vae": (DOUBT,)}.items():
        scores[name] = replace(scores[name], warnings=warnings)
    ranked = replace(ranking, scores=scores)
    page = report.score_page(scores, metric="fd", level=0.95, ranking=ranked)
    notes = {block.title: block for s in page.sections for block in s.blocks
             if isinstance(block, Notes)}  # fmt: skip
    warned = notes["Warnings"]
    assert warned.tone == "bad"
    assert [item.split(":")[0] for item in warned.items] == ["unreliable", "caution"]
    assert "(gan)" in warned.items[0]
    assert "(gan, vae)" in warned.items[1]
    assert "rows <b>of</b> the reference" in texts_of(page.render())
    assert notes["What these intervals assume"].items == ["the rows are independent"]
    figure = report.rank_plot(ranked)
    marks = [row[-1].text if row[-1] else "" for row in figure.table.rows]
    assert marks == ["", "", "unreliable", "caution"]
    calm = replace(ranked, scores=ranking.scores)
    assert "Warnings" not in report.rank_plot(calm).table.columns


def test_methods_are_behind_a_fold(ranking):
    page = report.score_page(ranking.scores, metric="fd", level=0.95, ranking=ranking)
    (methods,) = [
        block for s in page.sections for block in s.blocks
        if isinstance(block, Notes) and block.folded and block.title != "Lines for a paper"
    ]  # fmt: skip
    assert methods.items == [
        "diffusion, flow, gan, vae: second-order (bias removed by an expansion in 1/n)"
    ]


def test_a_model_alone_is_compared_with_none():
    page = report.score_page({"gan": make_score(2.0)}, metric="is", level=0.9)
    assert page.title == "Inception score of 1 model"
    assert len(page.sections) == 1
    assert "1 models" not in page.render()


def test_score_page_with_convergence(ranking):
    """Models in the order of the ranking; one that has no growing parts is left out."""
    names = list(ranking.scores)
    points = {name: [(50, make_score(2.0)), (100, ranking.scores[name])] for name in names[:0:-1]}
    page = report.score_page(
        ranking.scores, metric="fd", level=0.95, ranking=ranking, convergence=points
    )
    plain = report.score_page(ranking.scores, metric="fd", level=0.95, ranking=ranking)
    (section,) = [s for s in page.sections if s.title not in {s.title for s in plain.sections}]
    (figure,) = [block for block in section.blocks if isinstance(block, report.Figure)]
    assert [row[0].text for row in figure.table.rows] == [n for n in names[1:] for _ in range(2)]
    alone = report.score_page(
        {"gan": make_score(2.0)}, metric="is", level=0.9, convergence={"gan": points[names[1]]}
    )
    assert len(alone.sections) == 2


def test_audit_page():
    page = report.audit_page({"rows": AUDIT, "seed": 0})
    html = page.render()
    for row in AUDIT:
        assert row["id"] in html
        assert row["id"] not in page.lead
    assert "Counterexample: n\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}10" in html
    text = texts_of(html)
    assert "not refuted" in text
    assert "upheld" not in text.replace("a.upheld", "")


def test_audit_page_explains_its_columns_and_spells_papers_out():
    rows = [AUDIT[0] | {"source": "M25 Lemma 12", "form": "plug-in"}]
    text = texts_of(report.audit_page({"rows": rows, "seed": 0}).render())
    assert "Form plug-in: " in text
    assert "Form oracle" not in text
    assert "Tightness: " in text
    assert "A Multi-Armed Bandit Approach" in text
    assert "Of 1 published inequality," in text


def test_audit_page_of_deterministic_statements():
    row = AUDIT[0] | {"form": "deterministic", "tightness": None}
    row["worst"] = row["worst"] | {"claimed": 0.0, "delta": None, "n": None, "miss": 1.0}
    assert len(report.audit_page({"rows": [row], "seed": 0}).sections) == 2  # nothing to draw


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234.5, "1 234".replace(" ", "\N{NARROW NO-BREAK SPACE}")), (0.012344, "0.01234"),
        (-1.5, "−1.500"), (0.0, "0"), (1e-9, "1.000·10⁻⁹"), (2.5e12, "2.500·10¹²"),
        (float("inf"), "∞"), (float("-inf"), "−∞"), (float("nan"), "–"), (None, "–"), (7, "7"),
        (True, "yes"), (12345, "12 345".replace(" ", "\N{NARROW NO-BREAK SPACE}")), ("x", "x"),
        (9999.96, "10 000".replace(" ", "\N{NARROW NO-BREAK SPACE}")),
    ],
)  # fmt: skip
def test_numbers_as_people_read_them(value, text):
    assert report.number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e-20, "10⁻²⁰"), (0.05, "0.05"), (8.0, "8"), (7 / 3, "2.33333"), (1e6, "10⁶"),
        (1e-20 / 3, "3.33333·10⁻²¹"), (-2.5e12, "−2.5·10¹²"),
    ],
)  # fmt: skip
def test_exact_numbers(value, text):
    assert report.short(value) == text


def test_intervals_of_facts_are_not_broken():
    page = Page("x", "y", facts=Facts(items=[("a", 1.0, "95 % [0, 1.5], and so on, [a b, c]")]))
    assert "95 % [0,\N{NO-BREAK SPACE}1.5], and so on, [a b, c]" in page.render()


def test_sources_are_links_to_the_papers():
    """In the audit's table and on a statement's page; whatever else is a source stays text."""
    rows = [AUDIT[0] | {"source": "M25 Lemma 12"}, AUDIT[1] | {"source": "Robbins (1970)"}]
    html = report.audit_page({"rows": rows, "seed": 0}).render()
    assert '<a href="https://arxiv.org/abs/2406.07451v3" rel="noreferrer">M25 Lemma 12</a>' in html
    assert html.count('<a href="https://') == 1
    bound = bounds.catalog()["v24.nystrom"]
    page = report.statement_page(bound, AUDIT[0]).render()
    assert "https://arxiv.org/abs/2410.21719v1" in page


def test_methods_whose_names_say_little_are_explained():
    """Each of the table in docs/methods.md that has a bias to remove."""
    scores = {method: replace(make_score(1.0), method=method) for method in METHODS[:6]}
    page = report.score_page(scores, metric="fd", level=0.95)
    (notes,) = (
        b for b in page.sections[0].blocks if getattr(b, "title", "").startswith("How each")
    )
    assert all("bias removed" in line for line in notes.items)
    assert len(set(notes.items)) == len(scores)
