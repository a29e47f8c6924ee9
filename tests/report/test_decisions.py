"""The pages of decisions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import genbounds as gb
from genbounds import report
from tests.report.conftest import HOSTILE

RNG = np.random.default_rng(0)
REAL, OLD, NEW = (scale * RNG.normal(size=(400, 3)) for scale in (1.0, 1.2, 1.25))


@pytest.fixture(scope="module")
def verdict():
    return gb.gate(NEW, OLD, REAL, margin="30%")


@pytest.mark.parametrize("equivalence", [False, True])
def test_gate_page_answers_first(equivalence):
    found = gb.gate(NEW, OLD, REAL, margin=0.4, equivalence=equivalence)
    page = report.gate_page(found).render()
    assert page.index(found.decision) < page.index("<svg")
    assert "Margin" in page
    figure = report.gate_plot(found)
    assert "margin 0.4000" in figure.alt
    assert figure.wide.count("<title>") == 1


@pytest.mark.parametrize("equivalence", [False, True])
@pytest.mark.parametrize(
    ("decision", "before"), [("pass", "not "), ("fail", ""), ("inconclusive", "it may be ")]
)
def test_gate_facts_say_what_was_shown_not_what_was_asked(verdict, decision, before, equivalence):
    page = report.gate_page(replace(verdict, decision=decision, equivalence=equivalence))
    remark = page.facts.items[0][2]
    assert remark == f"{before}worse{' or better' * equivalence} by more than the margin"


def test_gate_facts_have_no_negative_worse(verdict):
    better = replace(verdict, worse_by=-0.5, low=-0.75, high=-0.25)
    label, value, remark = report.gate_page(better).facts.items[1]
    assert (label, value) == ("Better by", 0.5)
    assert remark.startswith("[0.2500, 0.7500]")


def test_targets_are_shown_as_they_were_given():
    """Not "0.3000": those digits were not measured."""
    wide, power = gb.plan(OLD, REAL, half_width=0.3), gb.plan((OLD, NEW), REAL, gap=0.3)
    assert [report.plan_page(plan).facts.items[1][1] for plan in (wide, power)] == ["0.3", "0.3"]
    figure = report.reference_plot(power)
    assert "the difference of both models in Fréchet distance" in figure.caption


def test_names_are_text(verdict):
    for name in list(HOSTILE.values())[:3]:
        scores = dict(zip((name, "b"), verdict.scores.values(), strict=True))
        page = report.gate_page(replace(verdict, candidate=name, baseline="b", scores=scores))
        html = page.render()
        assert "<script>alert" not in html
        assert "\u202e" not in html


def test_plan_pages():
    wide = gb.plan(OLD, REAL, half_width=0.3)
    html = report.plan_page(wide).render()
    assert "More reference samples" in html
    never = gb.plan(OLD, REAL, half_width=0.01)
    html = report.plan_page(never).render()
    assert "no number suffices" in html
    assert "Reference samples" in html
    power = gb.plan((OLD, NEW), REAL, gap=0.3)
    assert "power" in report.plan_plot(power).alt
    exact = gb.plan(OLD, gb.Moments(np.zeros(3), np.eye(3)), half_width=0.3)
    assert report.reference_plot(exact) is None


def test_the_page_of_a_certified_mixture_names_arms_as_text():
    name, other = list(HOSTILE.values())[:2]

    def broken(n, rng):
        raise RuntimeError(other)

    arms = {
        name: lambda n, rng: rng.normal(size=(n, 3)),
        "b": lambda n, rng: rng.normal(size=(n, 3)),
    }
    found = gb.select.run(
        arms | {"broken": broken}, REAL, metric="kad", target="mixture", tolerance=9.0
    )
    html = report.mixture_selection_page(found).render()
    assert "Arms that were set aside" in html
    assert "<script>alert" not in html + found._repr_html_()
    assert "\u202e" not in html + str(found)


def test_leads_are_sentences_with_the_title_of_the_metric(verdict):
    pages = [
        (report.gate_page(verdict), ("Fail: ", "Inconclusive: ", "Pass: ")),
        (report.plan_page(gb.plan(OLD, REAL, half_width=0.3)), "Fréchet distance ± 0.3 "),
        (report.plan_page(gb.plan((OLD, NEW), REAL, gap=0.3)), "A difference of 0.3 in Fréchet"),
        (
            report.mixture_page(gb.mixture({"a": OLD, "b": NEW}, REAL)),
            "Kernel Inception distance of",
        ),
    ]
    for page, starts in pages:
        assert page.lead.startswith(starts)
        assert page.lead.endswith(".")
        assert not {"fd", "kid"} & set(page.lead.split())
