"""Estimates with known errors."""

from __future__ import annotations

import numpy as np

from genbounds.estimators import EXACT, Estimate, SampleError


def normal_estimates(values, root):
    """Estimates whose errors are ``root @ z``, with z shared by all of them."""
    size = max(200, 2 * root.shape[1])
    found = []
    for value, row in zip(values, root, strict=True):
        influence = np.zeros(size)
        influence[: 2 * row.size] = np.concatenate([row, -row]) * np.sqrt(size * (size - 1) / 2.0)
        reference = SampleError(n=size, variance=float(row @ row), influence=influence)
        found.append(Estimate(value=float(value), sample=EXACT, reference=reference))
    return found


def known(value, variance, **more):
    """Return an estimate with an independent error."""
    return Estimate(value=value, sample=SampleError(n=1000, variance=variance), **more)
