"""FD∞ and IS∞: what both share."""

from __future__ import annotations

import numpy as np
import pytest

import genbounds as gb

RNG = np.random.default_rng(0)
GROUPS = np.repeat(np.arange(20), 2)


@pytest.mark.parametrize(
    ("title", "score"),
    [
        ("FD∞", lambda x: gb.frechet_distance(x, RNG.normal(size=(40, 3)), estimator="infinity")),
        ("IS∞", lambda x: gb.inception_score(x, estimator="infinity")),
    ],
)
def test_subsets_are_drawn_of_independent_rows_only(title, score):
    rows = RNG.dirichlet(np.ones(3), size=40)
    assumptions = score(gb.Sample(rows)).assumptions
    assert "the plug-in score is linear in 1/N over the subsets" in assumptions
    with pytest.raises(gb.InputError, match=f"^{title} draws subsets of independent rows"):
        score(gb.Sample(rows, groups=GROUPS))
