"""Synthetic arms with known truth, coverage studies, and the audit of the catalogue."""

from __future__ import annotations

from genbounds.simulate._arms import SyntheticArm
from genbounds.simulate._audit import AuditReport, AuditRow, CellResult, audit
from genbounds.simulate._bounded import BallArm, CategoricalArm, CircleArm, SphereArm
from genbounds.simulate._coverage import Coverage, Interval, coverage, interval_coverage
from genbounds.simulate._families import (
    TRUNCATIONS,
    equal_scores,
    flipped_scores,
    graded_scores,
    plugin_bias,
    truncated_generators,
)
from genbounds.simulate._frechet import FrechetArm
from genbounds.simulate._gaussian import GaussianArm, SkewedArm, StudentArm
from genbounds.simulate._kernels import (
    NystromArm,
    RbfArm,
    SphereClustersArm,
    VendiArm,
    vendi_truth,
)
from genbounds.simulate._mixtures import MixtureArm, NormalisedArm, RectifiedArm
from genbounds.simulate._posteriors import DirichletArm, LogisticArm, class_mixture
from genbounds.simulate._replay import ReplayArm
from genbounds.simulate._scalars import BernoulliArm, BetaArm, GammaArm, UniformArm
from genbounds.simulate._scores import FrechetScores, frechet_scores
from genbounds.simulate._spectra import (
    EMBEDDING_NORMS,
    embedding_spectrum,
    isotropic_spectrum,
    low_rank_spectrum,
    matched_spectrum,
    power_law_spectrum,
    spiked_spectrum,
)
from genbounds.simulate._workers import Workers

__all__ = [
    "EMBEDDING_NORMS",
    "TRUNCATIONS",
    "AuditReport",
    "AuditRow",
    "BallArm",
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
    "LogisticArm",
    "MixtureArm",
    "NormalisedArm",
    "RbfArm",
    "RectifiedArm",
    "ReplayArm",
    "SkewedArm",
    "SphereArm",
    "SphereClustersArm",
    "StudentArm",
    "SyntheticArm",
    "UniformArm",
    "VendiArm",
    "Workers",
    "audit",
    "class_mixture",
    "coverage",
    "embedding_spectrum",
    "equal_scores",
    "flipped_scores",
    "frechet_scores",
    "graded_scores",
    "interval_coverage",
    "isotropic_spectrum",
    "low_rank_spectrum",
    "matched_spectrum",
    "plugin_bias",
    "power_law_spectrum",
    "spiked_spectrum",
    "truncated_generators",
    "vendi_truth",
]
