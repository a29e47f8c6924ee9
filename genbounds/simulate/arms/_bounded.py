"""Arms with bounded rows: uniform on the sphere, and one-hot."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from genbounds.bounds import Facts
from genbounds.simulate.arms import _tilting as tilting
from genbounds.simulate.arms._arm import Names, Statistics, SyntheticArm, check_shares
from genbounds.simulate.arms._tilting import Tilted
from genbounds.validation import Float, check_count, check_positive


class SphereArm(SyntheticArm):
    """Uniform distribution on the sphere of a given radius; d = 1 is a fair sign.

    Parameters
    ----------
    d : int
        Dimension.
    radius : float
        Norm of every row.
    """

    def __init__(self, d: int, radius: float = 1.0) -> None:
        self._d = check_count("d", d)
        self.radius = check_positive("radius", radius)
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

    def draw(self, n: int, rng: Generator) -> Float:
        """Return `n` rows, shape (n, d)."""
        rows = rng.standard_normal((n, self._d))
        return np.asarray(self.radius * rows / np.linalg.norm(rows, axis=1, keepdims=True))

    def tilted(self, names: Names, n: int, count: int, rng: Generator) -> Tilted | None:
        """Draw towards one direction; no tilt is known for the kernel spectrum."""
        return None if "sample_spectrum" in names else super().tilted(names, n, count, rng)

    def tilted_rows(self, n: int, count: int, rng: Generator) -> tuple[Float, Float]:
        """Draw the rows of a sample towards one direction, uniform and integrated out."""
        d = self._d

        def spread(kappa: float) -> float:
            return float(tilting.log_direction_mean(np.asarray(kappa), d))

        def cost(kappa: float) -> float:
            slope = (spread(kappa * 1.0001) - spread(kappa * 0.9999)) / (2e-4 * kappa)
            return n * (kappa * slope - spread(kappa))

        kappas = [0.0, *tilting.strengths(cost, low=1e-6, high=200.0)]
        rows = tilting.draw_parts(
            kappas, count, rng, lambda kappa, k: _towards(kappa, k, n, d, rng)
        )
        length = np.linalg.norm(rows.sum(axis=1), axis=1)
        ratios = [
            tilting.log_direction_mean(kappa * length, d) - n * spread(kappa) for kappa in kappas
        ]
        return self.radius * rows, tilting.mixture_weights(ratios)


def _towards(kappa: float, k: int, n: int, d: int, rng: Generator) -> Float:
    """Von Mises–Fisher rows of shape (k, n, d), one random direction for each of the k samples."""
    if kappa == 0.0 or k == 0:
        return tilting.random_directions(k * n, d, rng).reshape(k, n, d)
    if d == 1:
        sign = np.where(rng.random((k, n)) < 1.0 / (1.0 + math.exp(-2.0 * kappa)), 1.0, -1.0)
        return (sign * np.where(rng.random((k, 1)) < 0.5, 1.0, -1.0))[:, :, None]
    from scipy.stats import vonmises_fisher

    axis = np.eye(d)[0]
    rows = np.asarray(vonmises_fisher(axis, kappa).rvs(k * n, random_state=rng)).reshape(k, n, d)
    # The reflection that carries the axis to the direction: the distribution about the axis,
    # which is symmetric, stays as it is.
    normal = tilting.random_directions(k, d, rng) - axis
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    return np.asarray(rows - 2.0 * (rows @ normal[:, :, None]) * normal[:, None, :])


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
        self.probabilities = p = check_shares("probabilities", probabilities)
        self.name = name or f"one-hot(d={p.size}, largest {p.max():g})"

    @cached_property
    def facts(self) -> Facts:
        """True quantities by name."""
        p = self.probabilities
        return {
            "families": frozenset({"bounded", "kernel", "classes"}),
            "d": p.size,
            "mean": p,
            "centred": False,
            "radius": 1.0,
            "trace": float(1.0 - p @ p),
            "kernel_spectrum": np.sort(p)[::-1],
        }

    def draw(self, n: int, rng: Generator) -> Float:
        """Return `n` rows, shape (n, d)."""
        d = self.probabilities.size
        return np.eye(d)[rng.choice(d, n, p=self.probabilities)]

    def statistics(self, names: Names, n: int, replications: int, rng: Generator) -> Statistics:
        """Draw the class counts, which are sufficient."""
        return self._from_shares(names, rng.multinomial(n, self.probabilities, replications) / n)

    def _from_shares(self, names: Names, mean: Float) -> Statistics:
        """Compute the quantities `names` from class shares `mean`, shape (replications, d)."""
        table = {
            "mean_vector": mean,
            "mean_error_norm": np.linalg.norm(mean - self.probabilities, axis=1),
            "sample_spectrum": np.sort(mean, axis=1)[:, ::-1],
        }
        return {name: table[name] for name in names if name in table}

    def size(self, names: Names, n: int) -> int:
        """Numbers held for each replication."""
        return 3 * self.probabilities.size

    def tilted(self, names: Names, n: int, count: int, rng: Generator) -> Tilted:
        """Make one class, drawn at random and integrated out, more or less likely."""
        p = self.probabilities
        d = p.size
        # new[j, i]: probability of class j in the i-th tilt, if it is the class that is tilted.
        lists = [tilting.tilted_probabilities(float(value), n) for value in p]
        depth = min(map(len, lists))
        new = np.array([tilts[:depth] for tilts in lists])

        def draw(tilt: int | None, k: int) -> Float:
            if tilt is None:
                return np.asarray(rng.multinomial(n, p, k), dtype=np.float64)
            chosen = rng.integers(d, size=k)
            q = new[chosen, tilt]
            chances = np.tile(p, (k, 1)) * ((1.0 - q) / (1.0 - p[chosen]))[:, None]
            chances[np.arange(k), chosen] = q
            return np.asarray(rng.multinomial(n, chances), dtype=np.float64)

        def log_ratio(tilt: int | None, counts: Float) -> Float:
            if tilt is None:
                return np.zeros(count)
            q = new[:, tilt]
            each = counts * np.log(q / p) + (n - counts) * np.log((1.0 - q) / (1.0 - p))
            return np.asarray(np.logaddexp.reduce(each, axis=1) - math.log(d))

        tilts = [None, *range(depth)]
        counts = tilting.draw_parts(tilts, count, rng, draw)
        return Tilted(
            statistics=self._from_shares(names, counts / n),
            log_weights=tilting.mixture_weights([log_ratio(tilt, counts) for tilt in tilts]),
        )
