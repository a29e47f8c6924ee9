"""Kernel arms: a spectrum in closed form and its Vendi scores, at one order or by landmarks."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from genbounds.bounds import Facts
from genbounds.simulate._arms import Statistics, SyntheticArm
from genbounds.simulate._bounded import CategoricalArm
from genbounds.validation import Float, InputError, check_count


class VendiArm(SyntheticArm):
    """A kernel law together with the order α, and what is kept of the spectrum.

    Parameters
    ----------
    law : SyntheticArm
        Knows its ``kernel_spectrum`` and draws ``sample_spectrum``.
    order : float
        α ≥ 1, infinity included.
    kept : int, optional
        Truncation t, at most d.
    frequencies : int, optional
        Random Fourier frequencies; `law` must then be a `CategoricalArm`, whose classes are
        taken as whole numbers: with ω uniform on (−π, π), E cos(ω(x−y)) = [x = y] exactly.
    """

    def __init__(
        self,
        law: SyntheticArm,
        *,
        order: float,
        kept: int | None = None,
        frequencies: int | None = None,
    ) -> None:
        if not order >= 1.0:
            raise InputError(f"`order` must be at least 1; got {order!r}.")
        if kept is not None and check_count("kept", kept) > law.d:
            raise InputError(f"`kept` must be at most d = {law.d}; got {kept!r}.")
        if frequencies is not None:
            check_count("frequencies", frequencies)
            if not isinstance(law, CategoricalArm):
                raise InputError("`frequencies` needs a CategoricalArm.")
        self.law, self.order, self.kept, self.frequencies = law, float(order), kept, frequencies
        detail = "" if kept is None else f", t={kept}"
        detail += "" if frequencies is None else f", {frequencies} frequencies"
        self.name = f"{law.name}, α={self.order:g}{detail}"

    @cached_property
    def facts(self) -> Facts:
        """True quantities by name."""
        extra: dict[str, float] = {"order": self.order}
        if self.kept is not None:
            extra["kept"] = self.kept
        if self.frequencies is not None:
            extra["frequencies"] = self.frequencies
        return dict(self.law.facts) | extra

    def draw(self, n: int, rng: np.random.Generator) -> Float:
        """Return `n` rows of features."""
        return self.law.draw(n, rng)

    def statistics(
        self, names: Collection[str], n: int, replications: int, rng: np.random.Generator
    ) -> Statistics:
        """Draw spectra of K/n, and of its Fourier approximation."""
        wanted = set(names)
        out: Statistics = {}
        if "sample_spectrum" in wanted:
            out = self.law.statistics(["sample_spectrum"], n, replications, rng)
        if "fourier_spectrum" in wanted:
            shares = self.law.statistics(["mean_vector"], n, replications, rng)["mean_vector"]
            out["fourier_spectrum"] = self._fourier(shares, rng)
        return out

    def size(self, names: Collection[str], n: int) -> int:
        """Numbers held for each replication."""
        return self.law.size(names, n) + 3 * self.d * (self.frequencies or 0)

    def _fourier(self, shares: Float, rng: np.random.Generator) -> Float:
        """Eigenvalues of the FKEA kernel matrix over n, from the class shares (k, d)."""
        omega = rng.uniform(-np.pi, np.pi, (len(shares), 1, int(self.frequencies or 1)))
        angle = omega * np.arange(self.d)[None, :, None]
        features = np.concatenate([np.cos(angle), np.sin(angle)], axis=2)
        features *= np.sqrt(shares[:, :, None] / omega.shape[2])
        gram = features @ np.swapaxes(features, 1, 2)
        return np.maximum(np.linalg.eigvalsh(gram)[:, ::-1], 0.0)


class NystromArm(SyntheticArm):
    """A kernel law whose sample spectrum is approximated from landmarks (Nyström).

    Parameters
    ----------
    law : SyntheticArm
        Draws rows of features with φ(x)ᵀφ(y) = k(x, y); knows its ``kernel_spectrum``.
    landmarks : int
        t; the first t rows of a sample, which are random ones.

    Notes
    -----
    With P the projection onto the features of the landmarks, K_nt K_tt⁺ K_tn = ΦPΦᵀ: its
    eigenvalues over n are those of P C_n P, and its trace over n is Tr P C_n.
    """

    def __init__(self, law: SyntheticArm, landmarks: int) -> None:
        self.law, self.landmarks = law, check_count("landmarks", landmarks)
        self.name = f"{law.name}, {self.landmarks} landmarks"

    @cached_property
    def facts(self) -> Facts:
        """True quantities by name."""
        return dict(self.law.facts) | {"landmarks": self.landmarks}

    def draw(self, n: int, rng: np.random.Generator) -> Float:
        """Return `n` rows of features."""
        return self.law.draw(n, rng)

    def statistics(
        self, names: Collection[str], n: int, replications: int, rng: np.random.Generator
    ) -> Statistics:
        """Draw the approximate spectrum, and what the landmarks leave out of the trace."""
        if isinstance(self.law, CategoricalArm):
            spectrum = self._of_classes(self.law.probabilities, n, replications, rng)
        else:
            spectrum = self._of_features(n, replications, rng)
        out = {
            "nystrom_spectrum": np.sort(spectrum, axis=1)[:, ::-1],
            "nystrom_residual": np.maximum(1.0 - spectrum.sum(axis=1), 0.0),
        }
        return {name: out[name] for name in names if name in out}

    def _of_classes(
        self, probabilities: Float, n: int, replications: int, rng: np.random.Generator
    ) -> Float:
        """Shares of the classes that some landmark belongs to; the others are lost."""
        t = min(self.landmarks, n)
        seen = rng.multinomial(t, probabilities, replications)
        rest = rng.multinomial(n - t, probabilities, replications)
        return np.where(seen > 0, (seen + rest) / n, 0.0)

    def _of_features(self, n: int, replications: int, rng: np.random.Generator) -> Float:
        rows = self.law.draw(replications * n, rng).reshape(replications, n, -1)
        _, values, axes = np.linalg.svd(rows[:, : self.landmarks], full_matrices=False)
        # Directions that rounding alone has put among those of the landmarks do not count.
        kept = values > 1e-7 * values[:, :1]
        inside = (rows @ np.swapaxes(axes, 1, 2)) * kept[:, None, :]
        found = np.linalg.eigvalsh(np.swapaxes(inside, 1, 2) @ inside / n)
        out = np.zeros((replications, self.d))
        out[:, : found.shape[1]] = np.maximum(found, 0.0)
        return out

    def size(self, names: Collection[str], n: int) -> int:
        """Numbers held for each replication."""
        return 3 * self.d if isinstance(self.law, CategoricalArm) else 3 * n * self.d


class RbfArm(SyntheticArm):
    """Rows N(0, diag(scales²)) under the kernel exp(−‖x−y‖²/(2 bandwidth²)).

    Parameters
    ----------
    scales : array_like of shape (d,)
        Standard deviations, positive.
    bandwidth : float
        σ of the kernel, positive.

    Notes
    -----
    In one dimension with a = 1/(4s²), b = 1/(2σ²), c = √(a² + 2ab), A = a + b + c the eigenvalues
    of the covariance operator are √(2a/A) (b/A)^k, k = 0, 1, … (H. Zhu, C. Williams, R. Rohwer and
    M. Morciniec, 1998); in more, all their products.
    """

    def __init__(self, scales: ArrayLike, bandwidth: float) -> None:
        values = np.atleast_1d(np.array(scales, dtype=np.float64))
        if values.ndim != 1 or not ((values > 0.0).all() and np.isfinite(values).all()):
            raise InputError("`scales` must be positive and finite, shape (d,).")
        if not 0.0 < bandwidth < np.inf:
            raise InputError(f"`bandwidth` must be positive and finite; got {bandwidth!r}.")
        self.scales: Float = values
        self.bandwidth = float(bandwidth)
        self.name = f"rbf(d={values.size}, bandwidth={self.bandwidth:g})"

    def _geometric(self) -> tuple[Float, Float]:
        """Largest eigenvalue and ratio of neighbours in every dimension."""
        a, b = 1.0 / (4.0 * self.scales**2), 1.0 / (2.0 * self.bandwidth**2)
        total = a + b + np.sqrt(a * a + 2.0 * a * b)
        return np.sqrt(2.0 * a / total), b / total

    @cached_property
    def spectrum(self) -> Float:
        """All eigenvalues above 1e-14, largest first."""
        values: Float = np.ones(1)
        for largest, ratio in zip(*self._geometric(), strict=True):
            powers = np.arange(int(np.ceil(-34.0 / np.log(ratio))) + 1)
            values = np.outer(values, largest * ratio**powers).ravel()
            values = values[values > 1e-14]
        return np.sort(values)[::-1]

    def vendi(self, order: float) -> float:
        """Vendi score of the law, of any order: a product of geometric laws, no truncation."""
        _check_order(order)
        first, ratio = self._geometric()
        if np.isinf(order):
            return float(np.prod(1.0 / first))
        if order == 1.0:
            entropy = -np.log(first) - ratio / (1.0 - ratio) * np.log(ratio)
            return float(np.exp(entropy.sum()))
        logs = order * np.log(first) - np.log1p(-(ratio**order))
        return float(np.exp(logs.sum() / (1.0 - order)))

    @cached_property
    def facts(self) -> Facts:
        """True quantities by name; the spectrum is infinite and not among them."""
        return {
            "families": frozenset({"gaussian"}),
            "d": self.scales.size,
            "mean": np.zeros(self.scales.size),
            "cov": self.scales**2,
        }

    def draw(self, n: int, rng: np.random.Generator) -> Float:
        """Return `n` rows, shape (n, d)."""
        return rng.standard_normal((n, self.scales.size)) * self.scales


class SphereClustersArm(SyntheticArm):
    """Clusters in orthogonal subspaces, each uniform on its own unit sphere; cosine kernel.

    Parameters
    ----------
    probabilities : array_like of shape (k,)
        Of the clusters.
    dimensions : sequence of int
        Of their subspaces. A cluster of probability p and dimension m has m eigenvalues p/m; with
        m = 1 it is a pair of opposite points, which the kernel squared cannot tell from one.
    """

    def __init__(self, probabilities: ArrayLike, dimensions: Collection[int]) -> None:
        p = np.array(probabilities, dtype=np.float64)
        sizes = [check_count("dimensions", m) for m in dimensions]
        if not (p.shape == (len(sizes),) and (p >= 0.0).all() and abs(p.sum() - 1.0) < 1e-9):
            raise InputError("`probabilities` must be one non-negative number a cluster, sum one.")
        self.probabilities: Float = p / p.sum()
        self.dimensions = np.array(sizes)
        self.name = f"{len(sizes)} spheres (d={sum(sizes)})"

    @cached_property
    def spectrum(self) -> Float:
        """All eigenvalues, largest first."""
        values = np.repeat(self.probabilities / self.dimensions, self.dimensions)
        return np.sort(values)[::-1]

    def vendi(self, order: float) -> float:
        """Vendi score of the law, of any order."""
        return vendi_truth(self.spectrum, order)

    @cached_property
    def facts(self) -> Facts:
        """True quantities by name."""
        d = int(self.dimensions.sum())
        return {
            "families": frozenset({"bounded", "kernel"}),
            "d": d,
            "mean": np.zeros(d),
            "cov": np.repeat(self.probabilities / self.dimensions, self.dimensions),
            "centred": True,
            "radius": 1.0,
            "trace": 1.0,
            "kernel_spectrum": self.spectrum,
        }

    def draw(self, n: int, rng: np.random.Generator) -> Float:
        """Return `n` rows of norm one, shape (n, d)."""
        label = rng.choice(self.dimensions.size, n, p=self.probabilities)
        owner = np.repeat(np.arange(self.dimensions.size), self.dimensions)
        rows = np.where(owner == label[:, None], rng.standard_normal((n, owner.size)), 0.0)
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def vendi_truth(spectrum: ArrayLike, order: float, kept: int | None = None) -> float:
    """Vendi score of a spectrum.

    Parameters
    ----------
    spectrum : array_like of shape (k,)
        Eigenvalues, largest first, sum one.
    order : float
        α in (0, ∞], 1 and ∞ included.
    kept : int, optional
        Truncated to so many eigenvalues and lifted to sum one (V24, Definition 2).

    Returns
    -------
    float
        (Σ λ^α)^{1/(1−α)}, exp of the entropy at α = 1, 1/λ_max at ∞.

    Raises
    ------
    InputError
        If `order` is not positive.
    """
    _check_order(order)
    p = np.asarray(spectrum, dtype=np.float64)
    if kept is not None:
        p = np.pad(p[:kept], (0, max(kept - p.size, 0)))
        p = p + (1.0 - p.sum()) / kept
    p = p[p > 0.0]
    if np.isinf(order):
        return float(1.0 / p.max())
    if order == 1.0:
        return float(np.exp(-(p * np.log(p)).sum()))
    return float((p**order).sum() ** (1.0 / (1.0 - order)))


def _check_order(order: float) -> None:
    if not order > 0.0:
        raise InputError(f"`order` must be a number in (0, inf]; got {order!r}.")
