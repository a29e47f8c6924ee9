"""The page of `genbounds modes`: names and pictures of somebody else's rows."""

from __future__ import annotations

import numpy as np
import pytest

import genbounds as gb
from genbounds import report
from genbounds.features.thumbnails import Pictures
from tests.report.conftest import HOSTILE


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(0)
    real = rng.normal(size=(200, 2)) + 8.0 * rng.integers(2, size=(200, 1))
    return gb.modes(gb.Sample(rng.normal(size=(200, 2))), gb.Sample(real))


def test_hostile_names_are_text(found):
    for name in HOSTILE.values():
        real = Pictures(names=[name] * 200, contents=np.zeros((200, 4, 4)))
        fake = Pictures(names=[name] * 200, problem=f"{name} is gone")
        page = report.modes_page({name: found}, fake={name: fake}, real=real).render()
        assert page.count("<script>") == 1  # our own
        assert page.count("<img") == page.count('<img src="data:image/png;base64,') > 0
        assert 'onerror="' not in page
        assert "Pictures that are not at hand" in page


def test_without_pictures_rows_have_numbers(found):
    page = report.modes_page({"gan": found}).render()
    assert f"<code>row {found.found[0].rows['real'][0]}</code>" in page
    assert "<img" not in page


@pytest.mark.parametrize("uri", ["javascript:alert(1)", "data:image/svg+xml;base64,PHN2Zz4="])
def test_only_pictures_are_pictures(uri):
    with pytest.raises(gb.InputError, match="JPEG or PNG"):
        report.Examples("title", [("name", uri)])
