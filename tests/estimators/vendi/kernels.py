"""Kernels as the library takes them, each with its matrix from scikit-learn."""

from __future__ import annotations

import numpy as np
from sklearn.metrics.pairwise import (
    cosine_similarity,
    laplacian_kernel,
    polynomial_kernel,
    rbf_kernel,
)

from genbounds.estimators import PolynomialKernel


def features(seed=0, n=150, d=6):
    return np.random.default_rng(seed).normal(size=(n, d)) * np.linspace(2.0, 0.5, d)


def normalised_polynomial(x, **given):
    matrix = polynomial_kernel(x, **given)
    root = np.sqrt(np.diagonal(matrix))
    return matrix / np.outer(root, root)


def user_kernel(a, b):
    return (1.0 + a @ b.T) ** 2


KERNELS = {
    "rbf": ({"kernel": "rbf", "bandwidth": 1.7}, lambda x: rbf_kernel(x, gamma=0.5 / 1.7**2)),
    "laplace": (
        {"kernel": "laplace", "bandwidth": 4.0},
        lambda x: laplacian_kernel(x, gamma=0.25),
    ),
    "cosine": ({"kernel": "cosine"}, cosine_similarity),
    "polynomial": ({"kernel": "polynomial"}, normalised_polynomial),
    "homogeneous": (
        {"kernel": PolynomialKernel(degree=2, gamma=0.3, offset=0.0)},
        lambda x: normalised_polynomial(x, degree=2, gamma=0.3, coef0=0.0),
    ),
    "callable": (
        {"kernel": user_kernel},
        lambda x: normalised_polynomial(x, degree=2, gamma=1.0, coef0=1.0),
    ),
}
