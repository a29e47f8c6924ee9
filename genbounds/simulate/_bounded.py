"""Arms with bounded rows: the sphere, and one-hot rows whose kernel spectrum is known."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from genbounds.bounds import Facts
from genbounds.simulate._arms import Statistics, SyntheticArm
from genbounds.validation import Float, InputError, check_count


class SphereArm(SyntheticArm):
    """Uniform law on the sphere of a given radius; d = 1 is a fair sign.

    Parameters
    ----------
    d : int
        Dimension.
    radius : float
        Norm of every row.
    """

    def __init__(self, d: int, radius: float = 1.0) -> None:
        self._d = check_count("d", d)
        if not 0.0 < radius < np.inf:
            raise InputError(f"`radius` must be positive and finite; got {radius!r}.")
        self.radius = float(radius)
        self.name = f"sphere(d={self._d}, radius={self.radius:g})"

    @cached_property
    def facts(self) -> Facts:
        """True quantities by name; the kernel is the normalised inner product."""
        variance = self.radius**2 / self._d
        return {
            "families": frozenset({"bounded", "kernel"}),
            "d": self._d,
            "mean": np.zeros(self._d),
            "centred": True,
            "radius": self.radius,
            "trace": self.radius**2,
            "operator": variance,
            "effective_rank": float(self._d),
            "cov": np.full(self._d, variance),
            # Coordinates of the sphere have moment generating functions below those of
            # N(0, radius²/d), hence the ψ₂ constant of a Gaussian serves.
            "kappa": (8.0 / 3.0) ** 0.5,
            "kernel_spectrum": np.full(self._d, 1.0 / self._d),
        }

    def draw(self, n: int, rng: np.random.Generator) -> Float:
        """Return `n` rows, shape (n, d)."""
        rows = rng.standard_normal((n, self._d))
        return np.asarray(self.radius * rows / np.linalg.norm(rows, axis=1, keepdims=True))

    def statistics(
        self, names: Collection[str], n: int, replications: int, rng: np.random.Generator
    ) -> Statistics:
        """Draw sample quantities; the kernel spectrum comes from the d × d side."""
        wanted = set(names)
        if "sample_spectrum" not in wanted:
            return super().statistics(names, n, replications, rng)
        raw = super().statistics(["raw_covariance"], n, replications, rng)["raw_covariance"]
        spectrum = np.linalg.eigvalsh(raw / self.radius**2)[:, ::-1]
        return {"sample_spectrum": np.maximum(spectrum, 0.0)}


class BallArm(SyntheticArm):
    """Uniform law in the ball of a given radius; d = 1 is the uniform law on [−radius, radius].

    Parameters
    ----------
    d : int
        Dimension.
    radius : float
        Largest norm.
    """

    def __init__(self, d: int, radius: float = 1.0) -> None:
        self._d = check_count("d", d)
        if not 0.0 < radius < np.inf:
            raise InputError(f"`radius` must be positive and finite; got {radius!r}.")
        self.radius = float(radius)
        self.name = f"ball(d={self._d}, radius={self.radius:g})"

    @cached_property
    def facts(self) -> Facts:
        """True quantities by name."""
        variance = self.radius**2 / (self._d + 2)
        return {
            "families": frozenset({"bounded"}),
            "d": self._d,
            "mean": np.zeros(self._d),
            "centred": True,
            "radius": self.radius,
            "trace": self._d * variance,
            "operator": variance,
            "effective_rank": float(self._d),
            "cov": np.full(self._d, variance),
            # d coordinates of the sphere in d + 2 dimensions, so that its constant serves.
            "kappa": (8.0 / 3.0) ** 0.5,
        }

    def draw(self, n: int, rng: np.random.Generator) -> Float:
        """Return `n` rows, shape (n, d)."""
        rows = rng.standard_normal((n, self._d))
        rows *= self.radius / np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows * rng.random((n, 1)) ** (1.0 / self._d))


class CategoricalArm(SyntheticArm):
    """One-hot rows. With the kernel k(x, y) = [x = y] the spectrum is the class probabilities.

    Parameters
    ----------
    probabilities : array_like of shape (d,)
        Class probabilities.
    name : str, optional
        Label in reports.
    """

    def __init__(self, probabilities: ArrayLike, *, name: str | None = None) -> None:
        p = np.array(probabilities, dtype=np.float64)
        if not (p.ndim == 1 and (p >= 0.0).all() and abs(p.sum() - 1.0) < 1e-9):
            raise InputError("`probabilities` must be non-negative and sum to one.")
        self.probabilities: Float = p / p.sum()
        self.name = name or f"one-hot(d={p.size}, largest {p.max():g})"

    @cached_property
    def facts(self) -> Facts:
        """True quantities by name."""
        p = self.probabilities
        return {
            "families": frozenset({"bounded", "kernel"}),
            "d": p.size,
            "mean": p,
            "centred": False,
            "radius": 1.0,
            "trace": float(1.0 - p @ p),
            "kernel_spectrum": np.sort(p)[::-1],
        }

    def draw(self, n: int, rng: np.random.Generator) -> Float:
        """Return `n` rows, shape (n, d)."""
        return np.eye(self.probabilities.size)[
            rng.choice(self.probabilities.size, n, p=self.probabilities)
        ]

    def statistics(
        self, names: Collection[str], n: int, replications: int, rng: np.random.Generator
    ) -> Statistics:
        """Draw the class counts, which are sufficient."""
        return self.from_shares(names, rng.multinomial(n, self.probabilities, replications) / n)

    def from_shares(self, names: Collection[str], mean: Float) -> Statistics:
        """Compute the quantities `names` from class shares `mean`, shape (replications, d)."""
        table = {
            "mean_vector": mean,
            "mean_error_norm": np.linalg.norm(mean - self.probabilities, axis=1),
            "sample_spectrum": np.sort(mean, axis=1)[:, ::-1],
        }
        return {name: table[name] for name in names if name in table}

    def size(self, names: Collection[str], n: int) -> int:
        """Numbers held for each replication."""
        return 3 * self.probabilities.size


class CircleArm(SyntheticArm):
    """Uniform angles with the kernel exp(κ(cos(x−y) − 1)), of infinite rank, by its features.

    Parameters
    ----------
    concentration : float
        κ, in (0, 4].

    Notes
    -----
    k(x, y) = Σ_m e^(−κ) I_m(κ) e^(im(x−y)): the eigenvalues are e^(−κ) I_m(κ), m = 0, ±1, ….
    Rows are the features of the first 24 harmonics; what is left out is below 1e-15.
    """

    _HARMONICS = 24

    def __init__(self, concentration: float) -> None:
        if not 0.0 < concentration <= 4.0:
            raise InputError(f"`concentration` must lie in (0, 4]; got {concentration!r}.")
        self.concentration = float(concentration)
        self.name = f"circle kernel(concentration {self.concentration:g})"

    @cached_property
    def _eigenvalues(self) -> Float:
        from scipy.special import ive

        return np.asarray(ive(np.arange(self._HARMONICS + 1.0), self.concentration))

    @cached_property
    def facts(self) -> Facts:
        """True quantities by name."""
        spectrum = np.r_[self._eigenvalues[0], np.repeat(self._eigenvalues[1:], 2)]
        return {
            "families": frozenset({"bounded", "kernel"}),
            "d": spectrum.size,
            "radius": 1.0,
            "kernel_spectrum": spectrum,
        }

    def draw(self, n: int, rng: np.random.Generator) -> Float:
        """Return `n` rows of features, shape (n, 49)."""
        angle = rng.uniform(-np.pi, np.pi, (n, 1)) * np.arange(1.0, self._HARMONICS + 1.0)
        root = np.sqrt(2.0 * self._eigenvalues[1:])
        first = np.full((n, 1), np.sqrt(self._eigenvalues[0]))
        return np.concatenate([first, root * np.cos(angle), root * np.sin(angle)], axis=1)
