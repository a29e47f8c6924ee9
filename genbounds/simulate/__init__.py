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
from genbounds.simulate.arms._approximations import NystromArm, VendiArm
from genbounds.simulate.arms._arm import SyntheticArm
from genbounds.simulate.arms._bounded import CategoricalArm, SphereArm
from genbounds.simulate.arms._covariance import SkewedArm, StudentArm
from genbounds.simulate.arms._frechet import FrechetArm
from genbounds.simulate.arms._gaussian import GaussianArm
from genbounds.simulate.arms._kernels import CircleArm, RbfArm, SphereClustersArm, vendi_truth
from genbounds.simulate.arms._mixtures import MixtureArm
from genbounds.simulate.arms._posteriors import DirichletArm
from genbounds.simulate.arms._scalars import BernoulliArm, BetaArm, GammaArm, UniformArm
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
