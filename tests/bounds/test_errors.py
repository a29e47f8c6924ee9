"""The left sides of statements, and what they cannot exceed, by hand at small numbers."""

from __future__ import annotations

from math import inf, log, sqrt

import mpmath
import numpy as np
import pytest

from genbounds.bounds import catalog

SPECTRA = {
    "sample_spectrum": np.array([[0.6, 0.3, 0.1]]),
    "nystrom_spectrum": np.array([[0.6, 0.3, 0.1]]),
    "fourier_spectrum": np.array([[0.7, 0.3]]),
    "kernel_spectrum": np.array([0.5, 0.3, 0.2]),
    "order": 2.0,
    "kept": 2,
    "frequencies": 2,
}
# The two largest of 0.6, 0.3, 0.1, each with half of 0.1 more; the same of 0.5, 0.3, 0.2.
CUT, CUT_TRUTH = sqrt(0.65**2 + 0.35**2), sqrt(0.6**2 + 0.4**2)
ENTROPY = -0.5 * log(0.5) - 0.3 * log(0.3) - 0.2 * log(0.2)
BELOW, ABOVE = {"sample_mean": np.array([0.2]), "mean": 0.5}, {"running_mean": 0.2, "mean": 0.5}
# Differs from the truth by (0.3, 0.4; 0.4, −0.3), whose eigenvalues are ±1/2.
MATRIX, VARIANCES = np.array([[[1.3, 0.4], [0.4, 1.7]]]), np.array([1.0, 2.0])

ERRORS = {
    "mean-error": (BELOW, 0.3),
    "mean-shortfall": (BELOW, 0.3),
    "running-error": (ABOVE, 0.3),
    "running-shortfall": (ABOVE, 0.3),
    "square-error": ({"mean_square": np.array([0.6])}, 0.4),
    "squared-mean": ({"sample_mean": np.array([-0.3])}, 0.09),
    "mean-product": ({"sample_mean": np.array([-0.3]), "second_mean": np.array([0.5])}, 0.15),
    "squared-norm-error": ({"mean_squared_norm": np.array([1.5]), "trace": 2.1}, 0.6),
    "mean-norm": ({"mean_error_norm": np.array([0.7])}, 0.7),
    "mean-norm-squared": ({"mean_error_norm": np.array([0.7])}, 0.49),
    "covariance-error": ({"covariance": MATRIX, "cov": VARIANCES}, 0.5),
    "raw-covariance-error": ({"raw_covariance": MATRIX, "cov": np.diag(VARIANCES)}, 0.5),
    "distance-error": ({"distance_plugin": np.array([1.2]), "distance": 1.7}, 0.5),
    "distance-excess": ({"distance_plugin": np.array([1.2]), "distance": 1.7}, -0.5),
    "marginal-error": ({"mean_posterior": np.array([0.1, 0.9]), "marginal": 0.4}, [0.3, 0.5]),
    "log-score": ({"log_score": np.array([0.8])}, 0.8),
    "marginal-entropy": ({"marginal": SPECTRA["kernel_spectrum"]}, ENTROPY),
    "spectrum-error": (SPECTRA, sqrt(0.02)),
    "nystrom-error": (SPECTRA, sqrt(0.02)),
    "order-error": (SPECTRA, sqrt(0.46) - sqrt(0.38)),
    "truncated-error": (SPECTRA, CUT - CUT_TRUTH),
    "fkea-error": (SPECTRA, sqrt(0.58) - CUT_TRUTH),
    "collision-error": (SPECTRA | {"n": 11}, (11 * 0.46 - 1) / 10 - 0.38),
    "log-vendi-error": (
        SPECTRA,
        ENTROPY + 0.6 * log(0.6) + 0.3 * log(0.3) + 0.1 * log(0.1),
    ),
}
LIMITS = {
    "unit-range": ({"mean": 0.3}, 0.3),
    "norm-range": ({"radius": 0.7}, 1.4),
    "distance-range": ({"distance_plugin": 1.2}, 1.2),
    "one": ({}, 1.0),
    "unit": ({}, 1.0),
    "log-classes": ({"d": 5}, log(5.0)),
    "log-dimension": ({"d": 5}, log(5.0)),
    "spectrum-range": ({}, sqrt(2.0)),
    "span": ({"d": 4, "order": 2.0}, 0.5),
    "truncated-span": ({"kept": 4, "order": inf}, 0.75),
}
BOUNDS = catalog()


@pytest.mark.parametrize("name", [b for b in BOUNDS if BOUNDS[b].form in ("oracle", "plug-in")])
def test_error_is_what_its_text_says(name):
    known, expected = ERRORS[BOUNDS[name].quantity.name]
    assert np.ravel(BOUNDS[name].error(**known)) == pytest.approx(np.ravel(expected), rel=1e-12)


@pytest.mark.parametrize("name", [name for name in BOUNDS if BOUNDS[name].limit is not None])
def test_limit_is_what_its_text_says(name):
    known, expected = LIMITS[BOUNDS[name].limit.name]
    assert float(BOUNDS[name].most(**known)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("shape", [(3, 3), (2, 1, 1), (2, 1, 3, 3), (1, 2, 1, 1)])
def test_the_operator_norm_is_taken_over_the_last_two_axes(shape):
    half = np.random.default_rng(0).normal(size=shape)
    matrices = half + np.swapaxes(half, -1, -2)
    expected = np.linalg.norm(matrices, 2, axis=(-2, -1))
    truth = np.zeros(shape[-1])
    error = catalog()["o24.covariance"].error(covariance=matrices, cov=truth)
    np.testing.assert_allclose(error, expected, rtol=1e-12)


def test_the_series_near_no_moment_keeps_all_digits():
    """-log(1 - x) - x for a gamma variable of shape 1, on either side of where the series ends."""
    gamma = {"weights": np.ones(1), "shapes": np.ones(1), "scales": np.ones(1)}
    bound = catalog()["m25.sub-exponential-sum"]
    for x in (-0.9e-3, 1e-5, 0.99e-3, 1.01e-3, 0.5):
        with mpmath.workdps(40):
            exact = float(-mpmath.log1p(-mpmath.mpf(x)) - mpmath.mpf(x))
        error = bound.error(**gamma, deviations=np.zeros(1), position=np.array(2.0 * x))
        assert float(error) == pytest.approx(exact, rel=1e-10, abs=0.0)
