"""The true scores that the study of recipes judges by."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from experiments.accuracy import coverage, recipes


def test_the_true_kid_is_that_of_all_first_three_moments_averaged_over_seeds():
    def direct(shift):
        return coverage.kernel_truth(
            SimpleNamespace(
                mean=np.full(4, shift), cov=np.eye(4),
                reference_mean=np.zeros(4), reference_cov=np.eye(4),
            )
        )  # fmt: skip

    assert recipes.kernel_truth(0.3, 0.0, 4) == pytest.approx(direct(0.3), rel=1e-12)
    nodes, weights = np.polynomial.hermite_e.hermegauss(20)
    averaged = sum(w * direct(0.3 + 0.1 * z) for z, w in zip(nodes, weights, strict=True))
    averaged /= weights.sum()
    assert recipes.kernel_truth(0.3, 0.1, 4) == pytest.approx(averaged, rel=1e-12)
