"""Independent references: textbook formulas in high precision, sharing no code with the library."""

from __future__ import annotations

import mpmath
import numpy as np


def frechet_mpmath(mean_a, cov_a, mean_b, cov_b, digits=50):
    """Dowson & Landau (1982) with mpmath's symmetric eigensolver; covariances may be singular."""
    with mpmath.workdps(digits):
        a, b = (mpmath.matrix(np.asarray(cov).tolist()) for cov in (cov_a, cov_b))
        values, vectors = mpmath.eigsy(a)
        d = len(values)
        root = vectors * mpmath.diag([mpmath.sqrt(max(value, 0)) for value in values]) * vectors.T
        product = root * b * root
        product = (product + product.T) / 2
        trace_root = sum(mpmath.sqrt(max(v, 0)) for v in mpmath.eigsy(product, eigvals_only=True))
        gap = sum(
            (mpmath.mpf(float(x)) - mpmath.mpf(float(y))) ** 2
            for x, y in zip(mean_a, mean_b, strict=True)
        )
        trace = sum(a[i, i] + b[i, i] for i in range(d))
        return float(gap + trace - 2 * trace_root)


def frechet_features(x, y):
    """The same from features in float64: singular values of one centred sample on the other."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    a = (x - x.mean(0)) / np.sqrt(len(x) - 1)
    b = (y - y.mean(0)) / np.sqrt(len(y) - 1)
    # nuclear norm of the cross-product: Tr (Σ_a Σ_b)^(1/2) = ‖a bᵀ‖_*
    nuclear = np.linalg.norm(a @ b.T, "nuc")
    gap = x.mean(0) - y.mean(0)
    return gap @ gap + (a**2).sum() + (b**2).sum() - 2 * nuclear


def log_inception_mpmath(probs, digits=40):
    """Mean Kullback-Leibler divergence from the mean posterior."""
    with mpmath.workdps(digits):
        rows = [[mpmath.mpf(float(v)) for v in row] for row in probs]
        rows = [[v / sum(row) for v in row] for row in rows]
        n = len(rows)
        marginal = [sum(column) / n for column in zip(*rows, strict=True)]
        total = mpmath.mpf(0)
        for row in rows:
            total += sum(p * mpmath.log(p / q) for p, q in zip(row, marginal, strict=True) if p > 0)
        return float(total / n)
