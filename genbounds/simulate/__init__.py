"""Synthetic arms with known truth, coverage studies, and the audit of the catalogue."""

from __future__ import annotations

from genbounds.simulate._coverage import Coverage, IntervalLike, coverage, interval_coverage
from genbounds.simulate._scores import FrechetScores, frechet_scores
from genbounds.simulate._spectra import (
    EMBEDDING_NORMS,
    embedding_spectrum,
    matched_spectrum,
    power_law_spectrum,
)
from genbounds.simulate._workers import Workers
from genbounds.simulate.arms import (
    BernoulliArm,
    BetaArm,
    CategoricalArm,
    CircleArm,
    DirichletArm,
    FrechetArm,
    GammaArm,
    GaussianArm,
    MixtureArm,
    NystromArm,
    RbfArm,
    SkewedArm,
    SphereArm,
    SphereClustersArm,
    StudentArm,
    SyntheticArm,
    UniformArm,
    VendiArm,
    vendi_truth,
)
from genbounds.simulate.auditing import AuditReport, AuditRow, CellResult, audit

__all__ = [
    "EMBEDDING_NORMS",
    "AuditReport",
    "AuditRow",
    "BernoulliArm",
    "BetaArm",
    "CategoricalArm",
    "CellResult",
    "CircleArm",
    "Coverage",
    "DirichletArm",
    "FrechetArm",
    "FrechetScores",
    "GammaArm",
    "GaussianArm",
    "IntervalLike",
    "MixtureArm",
    "NystromArm",
    "RbfArm",
    "SkewedArm",
    "SphereArm",
    "SphereClustersArm",
    "StudentArm",
    "SyntheticArm",
    "UniformArm",
    "VendiArm",
    "Workers",
    "audit",
    "coverage",
    "embedding_spectrum",
    "frechet_scores",
    "interval_coverage",
    "matched_spectrum",
    "power_law_spectrum",
    "vendi_truth",
]
