"""The page of `genbounds memorisation`."""

from __future__ import annotations

import numpy as np

import genbounds as gb
from genbounds import report


def page_of(copies, rng):
    train, heldout, fake = rng.normal(size=(3, 200, 8))
    fake[:copies] = train[:copies] + 0.001 * rng.normal(size=(copies, 8))
    found = gb.memorisation(fake, train, heldout)
    return found, report.memorisation_page(found).render()


def test_the_page_answers_first_and_lists_what_is_reproduced():
    found, page = page_of(150, np.random.default_rng(0))
    assert page.index("copies: at least") < page.index("<svg")
    assert f"at least {found.copies_low}" in page
    assert "What is reproduced" in page
    assert "the nearest 100 of them" in page
    assert len(found.suspects) > 100
    figure = report.ratio_plot(found)
    assert f"{found.near.trained} were trained on" in figure.alt


def test_a_page_without_copies_lists_nothing():
    found, page = page_of(0, np.random.default_rng(1))
    assert not found.copies
    assert "no sign of copies" in page
    assert "What is reproduced" not in page
