"""What the tables of the Vendi studies are made of."""

from __future__ import annotations

import numpy as np

from experiments.vendi import spread


def test_spread_in_percent():
    """Values 9, 10, 11: a standard deviation of 1, that is 10 %, known to 1/√4 of itself."""
    assert spread.percent(np.array([9.0, 10.0, 11.0])) == "10 ± 5"
