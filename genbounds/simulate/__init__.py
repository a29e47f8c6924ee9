"""Synthetic arms with known truth, coverage studies, and the audit of the catalogue."""

from __future__ import annotations

from genbounds.simulate._arms import SyntheticArm
from genbounds.simulate._audit import AuditReport, AuditRow, CellResult, audit
from genbounds.simulate._bounded import CategoricalArm, CircleArm, SphereArm
from genbounds.simulate._coverage import Coverage, Interval, coverage, interval_coverage
from genbounds.simulate._frechet import FrechetArm
from genbounds.simulate._gaussian import GaussianArm, SkewedArm, StudentArm
from genbounds.simulate._kernels import NystromArm, VendiArm
from genbounds.simulate._posteriors import DirichletArm
from genbounds.simulate._scalars import BernoulliArm, BetaArm, GammaArm, UniformArm
from genbounds.simulate._scores import FrechetScores, frechet_scores
from genbounds.simulate._spectra import EMBEDDING_NORMS, matched_spectrum
from genbounds.simulate._workers import Workers

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
    "Interval",
    "NystromArm",
    "SkewedArm",
    "SphereArm",
    "StudentArm",
    "SyntheticArm",
    "UniformArm",
    "VendiArm",
    "Workers",
    "audit",
    "coverage",
    "frechet_scores",
    "interval_coverage",
    "matched_spectrum",
]
