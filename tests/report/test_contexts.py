"""The page of a selection with contexts."""

from __future__ import annotations

import numpy as np

import genbounds as gb
from genbounds import report
from tests.report.conftest import HOSTILE


def test_names_are_text_and_every_context_has_its_section():
    def broken(n, rng, context):
        raise RuntimeError(HOSTILE["image"])

    name, other, third = HOSTILE["script"], HOSTILE["override"], HOSTILE["control"]
    arms = {
        name: lambda n, rng, context: rng.normal(size=(n, 2)),
        "b": lambda n, rng, context: rng.normal(context == other, size=(n, 2)),
        "broken": broken,
    }
    real = gb.Moments(np.zeros(2), np.eye(2))
    found = gb.select.run(arms, contexts={other: real, third: real}, limit=100)
    assert found.winners == {other: name, third: None}
    html = report.contexts_page(found).render()
    assert "<script>document" not in html
    assert "<img src=x" not in html
    assert "\u202e" not in html
    assert "Arms that were set aside" in html
    assert "Not certified in all contexts: 1 of 2 decided" in html
    assert "no guarantee" in html


def test_what_holds_in_every_context_is_said_once():
    rng = np.random.default_rng(0)
    real = {name: rng.normal(size=(300, 2)) for name in ("cats", "dogs", "birds")}
    arms = {
        name: lambda n, rng, context, shift=shift: rng.normal(shift, size=(n, 2))
        for name, shift in {"a": 0.0, "b": 3.0}.items()
    }
    html = report.contexts_page(gb.select.run(arms, contexts=real, limit=200)).render()
    assert html.count("at any stopping time") == 1
    assert html.count("the reference is a sample") == 1
    assert "Remarks" not in html
