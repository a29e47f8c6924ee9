"""Spectra that the tests of the fit share."""

from __future__ import annotations

import numpy as np

import genbounds as gb
from genbounds.estimators import FrechetReference


def power_law(d, exponent=2.0):
    return np.arange(1.0, d + 1.0) ** -exponent


def steep_end(d):
    """Spectrum that falls slowly, and far more steeply from three fifths of its length on."""
    j = np.arange(1.0, d + 1.0)
    return j**-0.5 / (1.0 + (j / (0.6 * d)) ** 16)


def estimate(x, *, lower=None, n=None):
    """Distance to exact moments 0 and ``lower @ lower.T``; with `n` from moments of `x` alone."""
    d = x.shape[1]
    lower = np.eye(d) if lower is None else lower
    cov = lower @ lower.T
    given = x if n is None else gb.Moments(x.mean(axis=0), np.atleast_2d(np.cov(x.T)), n)
    return FrechetReference(gb.Moments(np.zeros(d), (cov + cov.T) / 2)).estimate(given)
