"""An arm together with a reference, so that its Fréchet distance is known."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from genbounds.bounds import Facts
from genbounds.simulate.arms._arm import Names, Outcomes, Statistics, SyntheticArm, Tilted
from genbounds.simulate.arms._engine import FrechetEngine, draw_white
from genbounds.simulate.arms._gaussian import GaussianArm
from genbounds.validation import Float, InputError

# A lattice that reaches tails of 1e-30 in both directions and is fine enough for the accuracy that
# `FrechetArm.outcomes` states: 600 means by 294 variances.
_LATTICE_REACH = 12.0  # standard errors
_LATTICE_MEANS = 300
_LATTICE_RATIO = 1.5  # of the tail probabilities of neighbouring variances
_LATTICE_VARIANCES = 146  # down to 1e-26

_FROM_ENGINE = {"distance_plugin", "sample_mean_gap", "sample_trace_root"}
_DISTANCE = {*_FROM_ENGINE, "covariance_error"}


class FrechetArm(SyntheticArm):
    """Features with known mean and covariance against fixed reference moments.

    Parameters
    ----------
    features : SyntheticArm
        Its facts hold ``mean`` and ``cov``.
    reference_mean : array_like of shape (d,)
        A scalar is repeated.
    reference_cov : array_like of shape (d, d) or (d,)
        Reference covariance, or its diagonal.
    name : str, optional
        Label in reports.

    Notes
    -----
    FD = ‖μ−μ_r‖² + Tr Σ + Tr Σ_r − 2 Tr (Σ_r^{1/2} Σ Σ_r^{1/2})^{1/2}; the plug-in FD_n has the
    sample mean and the sample covariance with divisor n in their place.
    """

    def __init__(
        self,
        features: SyntheticArm,
        reference_mean: ArrayLike,
        reference_cov: ArrayLike,
        *,
        name: str | None = None,
    ) -> None:
        d = features.d
        if "cov" not in features.facts:
            raise InputError(f"`features` ({features.name}) does not know its covariance.")
        cov = np.atleast_1d(np.asarray(reference_cov, dtype=np.float64))
        if cov.shape not in {(d,), (d, d)}:
            raise InputError(f"`reference_cov` must have shape ({d}, {d}) or ({d},).")
        self.features = features
        self.reference_mean: Float = np.full(d, reference_mean, dtype=np.float64)
        values, vectors = np.linalg.eigh(np.diag(cov) if cov.ndim == 1 else cov)
        if values.min() < 0.0:
            raise InputError("`reference_cov` must be positive semi-definite.")
        self.reference_values: Float = values
        self.reference_root: Float = (vectors * np.sqrt(values)) @ vectors.T
        self.name = name or f"{features.name} against a reference"

    @cached_property
    def facts(self) -> Facts:
        """True quantities by name: those of the features and the distance."""
        gap, cov = self._gap, self._cov
        return dict(self.features.facts) | {
            "mean_gap": float(np.linalg.norm(gap)),
            "reference_definite": bool(self.reference_values.min() > 0.0),
            "reference_root_trace": float(np.sqrt(self.reference_values).sum()),
            "reference_trace": float(self.reference_values.sum()),
            "reference_operator": float(self.reference_values.max()),
            "reference_cov": self.reference_root @ self.reference_root,
            "trace_root": float(self._trace_root(cov[None])[0]),
            "product_trace": float(np.trace(self.reference_root @ cov @ self.reference_root)),
            "distance": float(self._distance(gap[None], cov[None])[0]),
        }

    @property
    def _gap(self) -> Float:
        """μ − μ_r, shape (d,)."""
        return np.broadcast_to(self.features.facts["mean"], (self.d,)) - self.reference_mean

    @property
    def _cov(self) -> Float:
        """Covariance of the features, shape (d, d)."""
        cov = np.asarray(self.features.facts["cov"])
        return np.diag(cov) if cov.ndim == 1 else cov

    @property
    def d(self) -> int:
        """Number of features."""
        return self.features.d

    def draw(self, n: int, rng: Generator) -> Float:
        """Return `n` rows of features, shape (n, d)."""
        return self.features.draw(n, rng)

    def statistics(self, names: Names, n: int, replications: int, rng: Generator) -> Statistics:
        """Draw sample quantities; see `SyntheticArm.statistics`."""
        if {*names} <= _FROM_ENGINE and isinstance(self.features, GaussianArm) and n > 1:
            return self._from_engine(names, n, replications, rng)
        out = self.features.statistics(_with_moments(names), n, replications, rng)
        return self._with_distances(names, out)

    def reduce(self, names: Names, rows: Float) -> Statistics:
        """Compute sample quantities from raw samples; see `SyntheticArm.reduce`."""
        return self._with_distances(names, self.features.reduce(_with_moments(names), rows))

    def _with_distances(self, names: Names, out: Statistics) -> Statistics:
        """Add what follows from the sample mean and covariance."""
        if set(names) & _DISTANCE:
            gap, cov = out["mean_vector"] - self.reference_mean, out["covariance"]
            out["sample_mean_gap"] = np.linalg.norm(gap, axis=1)
            out["covariance_error"] = np.abs(_eigenvalues(cov - self._cov)).max(axis=1)
            out["distance_plugin"] = self._distance(gap, cov)
            out["sample_trace_root"] = self._trace_root(cov)
        return {name: out[name] for name in names if name in out}

    def engine(self, device: str | None = None) -> FrechetEngine:
        """Prepare distances of many Gaussian samples at once, on NumPy or on a torch `device`.

        Raises
        ------
        InputError
            If the features are not Gaussian.
        """
        if not isinstance(self.features, GaussianArm):
            raise InputError(f"`features` ({self.features.name}) must be a GaussianArm.")
        reference = self.reference_root, self.reference_values
        return FrechetEngine(self.features, self._gap, *reference, device=device)

    @cached_property
    def _engine(self) -> FrechetEngine:
        return self.engine()

    def _from_engine(self, names: Names, n: int, replications: int, rng: Generator) -> Statistics:
        white = draw_white(self.d, n, replications, rng)
        parts = self._engine.evaluate(white, n, debias=False)
        scale = (n - 1.0) / n  # from divisor n − 1 to n
        table = {
            "sample_mean_gap": lambda: np.sqrt(parts.gap),
            "sample_trace_root": lambda: np.sqrt(scale) * parts.roots.sum(axis=1),
            "distance_plugin": lambda: self._engine.plugin(parts, scale=scale),
        }
        return {name: np.asarray(table[name]()) for name in names}

    def tilted(self, names: Names, n: int, count: int, rng: Generator) -> Tilted | None:
        """Tilt the features; Gaussian ones also along the gap of the means."""
        if not isinstance(self.features, GaussianArm) or set(names) & {"running_mean", "rows"}:
            return super().tilted(names, n, count, rng)
        drawn = self.features.tilted(_with_moments(names), n, count, rng, gap=self._gap)
        if drawn is None:
            return None
        return replace(drawn, statistics=self._with_distances(names, drawn.statistics))

    def tilted_rows(self, n: int, count: int, rng: Generator) -> tuple[Float, Float] | None:
        """Rows of tilted features."""
        return self.features.tilted_rows(n, count, rng)

    def outcomes(self, names: Names, n: int) -> Outcomes | None:
        """Lattice over sample mean and sample variance for one Gaussian feature.

        Each point stands for a rectangle with its exact probability. From one rectangle to the
        next a tail changes by a factor of at most 1.6 along the mean and 1.5 along the variance,
        so that the probability of a region with a monotone edge, which passes within half a
        rectangle of the points beside it, is right within a factor 2.5. ``mean_deviation``, no
        function of the two, is put at its largest possible value, the standard deviation with
        divisor n.
        """
        if self.d > 1 or "gaussian" not in self.features.facts["families"] or n < 2:
            return None
        variance = self.features.facts["variance"]
        z, z_weight = _mean_lattice()
        scatter, scatter_weight = _scatter_lattice(n)
        mean_error = np.repeat(z, scatter.size) * np.sqrt(variance / n)
        covariance = np.tile(scatter, z.size) * variance / n
        out = {
            "mean_vector": (mean_error + self.features.facts["mean"])[:, None],
            "covariance": covariance[:, None, None],
            "mean_error_norm": np.abs(mean_error),
            "mean_deviation": np.sqrt(covariance),
        }
        return Outcomes(
            statistics=self._with_distances(names, out),
            probabilities=np.outer(z_weight, scatter_weight).ravel(),
            accuracy=1.5,
            lower_only="mean_deviation" in names,
        )

    def size(self, names: Names, n: int) -> int:
        """Numbers held for each replication."""
        return self.features.size([*names, "covariance"], n) + 4 * self.d**2

    def plugin_distance(self, means: Float, covariances: Float) -> Float:
        """FD of `means` and `covariances`, shapes (k, d) and (k, d, d), from the reference."""
        return self._distance(means - self.reference_mean, covariances)

    def _distance(self, gap: Float, cov: Float) -> Float:
        """FD of each mean gap (k, d) and covariance (k, d, d); at least 0."""
        trace = np.trace(cov, axis1=1, axis2=2) + self.reference_values.sum()
        squared = np.square(gap).sum(axis=1)
        return np.asarray(np.maximum(squared + trace - 2.0 * self._trace_root(cov), 0.0))

    def _trace_root(self, cov: Float) -> Float:
        """Tr (Σ Σ_r)^{1/2} of each covariance (k, d, d)."""
        inner = _eigenvalues(self.reference_root @ cov @ self.reference_root)
        return np.asarray(np.sqrt(np.maximum(inner, 0.0)).sum(axis=1))


def _eigenvalues(matrices: Float) -> Float:
    """Of symmetric matrices, (k, d, d); a lattice at d = 1 has 175,000 of them."""
    if matrices.shape[-1] == 1:
        return matrices[..., 0]
    return np.asarray(np.linalg.eigvalsh(matrices))


def _with_moments(names: Names) -> list[str]:
    """`names` and the moments that their distances, if there are any, follow from."""
    moments = ["mean_vector", "covariance"] if set(names) & _DISTANCE else []
    return [*dict.fromkeys((*names, *moments))]


def _mean_lattice() -> tuple[Float, Float]:
    """Means in standard errors and their probabilities; upper tails mirrored to keep digits."""
    from scipy.special import ndtr

    edges = np.linspace(0.0, _LATTICE_REACH, _LATTICE_MEANS + 1)
    half = ndtr(-edges[:-1]) - ndtr(-edges[1:])
    middle = 0.5 * (edges[:-1] + edges[1:])
    return np.r_[-middle[::-1], middle], np.r_[half[::-1], half]


def _scatter_lattice(n: int) -> tuple[Float, Float]:
    """χ² variables of n − 1 degrees of freedom and their probabilities, both tails alike."""
    from scipy.stats import chi2

    edge = 0.5 * _LATTICE_RATIO ** -np.arange(_LATTICE_VARIANCES + 1.0)
    share = np.r_[edge[:-1] - edge[1:], edge[-1]]
    inside = np.r_[np.sqrt(edge[:-1] * edge[1:]), edge[-1]]
    scatter = np.r_[chi2.ppf(inside, n - 1), chi2.isf(inside, n - 1)]
    return scatter, np.r_[share, share]
