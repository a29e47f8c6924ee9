"""The page of a training run."""

from __future__ import annotations

import pytest

from genbounds import report
from genbounds.decisions import track_estimates
from tests.decisions.made import known
from tests.report.test_page import Outline, texts_of
from tests.warnings_of import caution, unreliable


def page_of(values, **options):
    estimates = {1000 * (t + 1): known(value, 0.01) for t, value in enumerate(values)}
    doubt = caution("few-samples", "few <b>samples</b>")
    estimates[1000] = estimates[1000].warned(doubt)
    return report.track_page(track_estimates(estimates, metric="fd", **options))


@pytest.fixture(scope="module")
def html():
    return page_of([9.0, 5.0, 1.0, 3.0]).render()


def test_it_says_what_to_do_first(html):
    text = texts_of(html).replace("\u202f", " ")
    assert "Collapsed: step 4 000 is worse than step 3 000 (95 %, all looks together)." in text
    assert "Keep step 3 000. Corrected for having been chosen, its interval is [" in text
    assert "corrected for the choice" in text
    assert "few <b>samples</b>" in text
    assert "(step 1 000)" in text


def test_it_is_the_same_each_time(html):
    assert page_of([9.0, 5.0, 1.0, 3.0]).render() == html


def test_it_is_accessible(html):
    parser = Outline()
    parser.feed(html)
    assert len(parser.ids) == len(set(parser.ids))
    assert html.count('role="img"') == 2
    assert "4 step" in html.replace("\u202f", " ")


@pytest.mark.slow
@pytest.mark.parametrize(
    "values", [[1.0], [0.0, 0.0], [-1.0, 0.0, 5.0], [1e6, 1.0, 1e-3], [1.0] * 60]
)
def test_any_run_can_be_drawn(values):
    assert "Is training still improving?" in page_of(values).render()


def test_an_unreliable_look_is_drawn_as_such():
    estimates = {t: known(float(5 - t), 0.01) for t in range(3)}
    estimates[2] = estimates[2].warned(unreliable("leak", "a leak"))
    page = report.track_page(track_estimates(estimates, metric="fd"))
    assert "the run or its last score is unreliable" in texts_of(page.render())
    all_of = {t: one.warned(unreliable("leak", "a leak")) for t, one in estimates.items()}
    page = report.track_page(track_estimates(all_of, metric="fd"))
    assert "Keep" not in texts_of(page.render())
