"""Kills and flipped bits, a few of each; `make fuzz` does two hundred and ten thousand."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from tests.fuzz import flips, kills


@pytest.mark.slow
def test_flipped_bits():
    """The true result or one line; other numbers only where the format has no checksum."""
    counts = flips.run(40 * len(flips.TARGETS), seed=1)
    for name, count in counts.items():
        assert count.total() == 40
        if flips.TARGETS[name].checked:
            assert count["other numbers"] == 0
    assert counts["features .npz"]["refused"] > 30
    assert counts["features .npy"]["other numbers"] > 30  # the harness sees what nothing checks


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_kills():
    """Every command of those that keep something, killed twice."""
    ends = kills.run(8, 0, lambda text: None)
    assert ends.total() - ends["finished before"] >= 8


def test_a_loss_is_seen(monkeypatch):
    """Negative control: a format without checksums that is said to have them."""
    unchecked = flips.TARGETS["features .npy"]
    monkeypatch.setattr(flips, "TARGETS", {"kept": replace(unchecked, checked=True)})
    with pytest.raises(flips.Broken, match="another result"):
        flips.run(200, seed=0)
