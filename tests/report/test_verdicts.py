"""A refutation that is limited to tiny failure probabilities says so in its first word."""

from __future__ import annotations

import pytest

from genbounds.report.wording import verdict_text


@pytest.mark.parametrize(
    ("verdict", "refuted_from", "said"),
    [
        ("refuted", 0.2, "refuted"),
        ("refuted", 0.05, "refuted"),
        ("refuted", 1e-6, "refuted (only at δ ≤ 1e-06)"),
        ("refuted", None, "refuted"),
        ("upheld", None, "not refuted"),
        ("vacuous", None, "vacuous"),
    ],
)
def test_verdicts_at_first_sight(verdict, refuted_from, said):
    assert verdict_text(verdict, refuted_from) == said
