"""The study of every score covers every score, with one truth for all designs."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.accuracy import every_score
from genbounds.estimators import metric_names


def test_every_registered_score_has_a_case():
    assert {*every_score.CASES, "sfid"} == set(metric_names())  # fd, of other rows


@pytest.mark.parametrize("real", [False, True])
def test_all_designs_have_one_distribution(real):
    """Means of 40,000 rows agree within 6 standard errors of the noisiest design, by groups."""
    means = [
        every_score.draw(design, 40_000, np.random.default_rng(3), real=real).sample.features
        for design in every_score.DESIGNS
    ]
    bound = 6.0 * means[0].std(axis=0) * np.sqrt(2.0 * 4.0 / 40_000)
    for rows in means[1:]:
        assert (abs(rows.mean(axis=0) - means[0].mean(axis=0)) < bound).all()
        assert rows.std(axis=0) == pytest.approx(means[0].std(axis=0), rel=0.1)


def test_scores_that_were_not_asked_for_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(every_score, "LARGE", 400)
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- every-score: begin -->\n| kid | a | b | c | 7 |\n<!-- every-score: end -->\n"
    )
    every_score.main(["--replications", "2", "--scores", "mean", "is", "--page", str(page)])
    rows = [line.split("|")[1].strip() for line in page.read_text().splitlines() if "|" in line]
    assert rows == ["score", "---", "kid", "is", "mean"]
    assert "| kid | a | b | c | 7 |" in page.read_text()
