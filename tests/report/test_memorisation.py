"""The page of `genbounds memorisation`."""

from __future__ import annotations

import numpy as np

import genbounds as gb
from genbounds import report
from genbounds.features.thumbnails import Pictures
from tests.report.conftest import HOSTILE


def page_of(copies, rng):
    train, heldout, fake = rng.normal(size=(3, 200, 8))
    fake[:copies] = train[:copies] + 0.001 * rng.normal(size=(copies, 8))
    found = gb.memorisation(fake, train, heldout)
    return found, report.memorisation_page(found).render()


def test_the_page_answers_first_and_lists_what_is_reproduced():
    found, page = page_of(150, np.random.default_rng(0))
    assert page.index("Copies: at least") < page.index("<svg")
    assert f"at least {found.copies_low}" in page
    assert "What is reproduced" in page
    assert "the nearest 100 of them" in page
    assert len(found.suspects) > 100
    figure = report.ratio_plot(found)
    assert f"{found.near.trained} were trained on" in figure.alt


def test_a_page_without_copies_lists_nothing():
    found, page = page_of(0, np.random.default_rng(1))
    assert not found.copies
    assert "No sign of copies" in page
    assert "What is reproduced" not in page


def copied(pictures=30):
    """Return a result with 30 copies, and pictures of some rows, all of them different."""
    rng = np.random.default_rng(2)
    train, heldout, fake = rng.normal(size=(3, 200, 8))
    fake[:30] = train[100:130] + 0.001 * rng.normal(size=(30, 8))
    contents = rng.random(size=(200, 4, 4))
    sides = {
        name: Pictures(
            names=[f"{name} {row}" for row in range(200)],
            contents=contents[::step],
            numbers={row: row for row in range(pictures)} if name == "fake" else None,
        )
        for name, step in (("fake", 1), ("train", -1))
    }
    return gb.memorisation(fake, train, heldout), sides


def test_pictures_stand_beside_what_they_reproduce():
    found, sides = copied()
    (shown,) = [
        block
        for section in report.memorisation_page(found, **sides).sections
        for block in section.blocks
        if isinstance(block, report.Examples)
    ]
    assert shown.paired
    pairs = list(zip(shown.items[::2], shown.items[1::2], strict=True))
    assert len(pairs) == 24  # of the 30, nearest first, as in the table
    for (fake, train), one in zip(pairs, found.suspects, strict=False):
        assert fake == (f"fake {one.fake_row}", sides["fake"].of([one.fake_row])[one.fake_row])
        assert train == (
            f"train {one.train_row}",
            sides["train"].of([one.train_row])[one.train_row],
        )
    page = report.memorisation_page(found, **sides).render()
    assert page.count("<img") == 48
    assert page.count('<figure class="examples paired">') == 1


def test_what_has_no_picture_keeps_its_name():
    found, sides = copied(pictures=10)
    page = report.memorisation_page(found, **sides).render()
    named = sum(one.fake_row >= 10 for one in found.suspects[:24])
    assert page.count("<code>fake ") == named > 0
    assert page.count("<img") == 48 - named
    assert f"; {named} of 24 pictures are missing or damaged (generated)<" in page


def test_without_pictures_the_page_says_why_or_nothing():
    found, _ = copied()
    gone = Pictures(problem="the folder is gone")
    assert "Pictures that are not at hand" not in report.memorisation_page(found).render()
    page = report.memorisation_page(found, fake=gone, train=gone).render()
    assert "the folder is gone" in page
    assert '<figure class="examples' not in page


def test_hostile_names_are_text():
    found, sides = copied()
    for name in HOSTILE.values():
        fake = Pictures(names=[name] * 200, contents=sides["fake"].contents)
        train = Pictures(names=[name] * 200, problem=f"{name} is gone")
        page = report.memorisation_page(found, fake=fake, train=train).render()
        assert page.count("<script>") == 1  # our own
        assert page.count("<img") == page.count('<img src="data:image/png;base64,') == 24
        assert 'onerror="' not in page
