"""Arms whose kernel has a spectrum in closed form, and with it the Vendi score of every order.

Below them kernel arms seen through an order of the score, or through an approximation of their
kernel: truncation, random Fourier features (FKEA), landmarks (Nyström).
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from genbounds.bounds import Facts, truncate
from genbounds.simulate.arms._arm import Names, Statistics, SyntheticArm, Tilted, shares_of
from genbounds.simulate.arms._bounded import CategoricalArm
from genbounds.simulate.arms._covariance import GaussianArm
from genbounds.validation import Float, InputError, check_count, check_positive


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

    def draw(self, n: int, rng: Generator) -> Float:
        """Return `n` rows of features, shape (n, 49)."""
        angle = rng.uniform(-np.pi, np.pi, (n, 1)) * np.arange(1.0, self._HARMONICS + 1.0)
        root = np.sqrt(2.0 * self._eigenvalues[1:])
        first = np.full((n, 1), np.sqrt(self._eigenvalues[0]))
        return np.concatenate([first, root * np.cos(angle), root * np.sin(angle)], axis=1)


class RbfArm(GaussianArm):
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
        self.scales: Float = values
        self.bandwidth = check_positive("bandwidth", bandwidth)
        name = f"rbf(d={values.size}, bandwidth={self.bandwidth:g})"
        super().__init__(0.0, values**2, name=name)

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
            powers = np.arange(int(np.ceil(-34.0 / np.log(ratio))))  # ratio^k > 2e-15
            values = np.outer(values, largest * ratio**powers).ravel()
            values = values[values > 1e-14]
        return np.sort(values)[::-1]

    def vendi(self, order: float) -> float:
        """Vendi score of the distribution, of any order: a product of geometric series."""
        _check_order(order)
        first, ratio = self._geometric()
        if np.isinf(order):
            return float(np.prod(1.0 / first))
        if order == 1.0:
            entropy = -np.log(first) - ratio / (1.0 - ratio) * np.log(ratio)
            return float(np.exp(entropy.sum()))
        logs = order * np.log(first) - np.log1p(-(ratio**order))
        return float(np.exp(logs.sum() / (1.0 - order)))


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
        sizes = [check_count("dimensions", m) for m in dimensions]
        self.probabilities = shares_of("probabilities", probabilities, len(sizes))
        self.dimensions = np.array(sizes)
        self.name = f"{len(sizes)} spheres (d={sum(sizes)})"

    @cached_property
    def spectrum(self) -> Float:
        """All eigenvalues, largest first."""
        values = np.repeat(self.probabilities / self.dimensions, self.dimensions)
        return np.sort(values)[::-1]

    def vendi(self, order: float) -> float:
        """Vendi score of the distribution, of any order."""
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

    def draw(self, n: int, rng: Generator) -> Float:
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
        p = truncate(np.pad(p, (0, max(kept - p.size, 0))), kept)
    p = p[p > 0.0]
    if np.isinf(order):
        return float(1.0 / p.max())
    if order == 1.0:
        return float(np.exp(-(p * np.log(p)).sum()))
    return float((p**order).sum() ** (1.0 / (1.0 - order)))


def _check_order(order: float) -> None:
    if not order > 0.0:
        raise InputError(f"`order` must be a number in (0, inf]; got {order!r}.")


# --- kernel arms of which something else is looked at -----------------------------------------


class _SeenArm(SyntheticArm):
    """An arm of which something else is looked at; `more` are further facts, None is none."""

    def __init__(self, arm: SyntheticArm, name: str, **more: float | None) -> None:
        self.arm, self.name = arm, name
        self._more = {name: value for name, value in more.items() if value is not None}

    @cached_property
    def facts(self) -> Facts:
        """True quantities by name."""
        return dict(self.arm.facts) | self._more

    def draw(self, n: int, rng: Generator) -> Float:
        """Return `n` rows of features."""
        return self.arm.draw(n, rng)


class VendiArm(_SeenArm):
    """A kernel arm together with the order α, and what is kept of the spectrum.

    Parameters
    ----------
    arm : SyntheticArm
        Knows its ``kernel_spectrum`` and draws ``sample_spectrum``.
    order : float
        α ≥ 1, infinity included.
    kept : int, optional
        Truncation t, at most d.
    frequencies : int, optional
        Random Fourier frequencies; `arm` must then be a `CategoricalArm`, whose classes are
        taken as whole numbers: with ω uniform on (−π, π), E cos(ω(x−y)) = [x = y] exactly.
    """

    def __init__(
        self,
        arm: SyntheticArm,
        *,
        order: float,
        kept: int | None = None,
        frequencies: int | None = None,
    ) -> None:
        if not order >= 1.0:
            raise InputError(f"`order` must be at least 1; got {order!r}.")
        if kept is not None and check_count("kept", kept) > arm.d:
            raise InputError(f"`kept` must be at most d = {arm.d}; got {kept!r}.")
        if frequencies is not None:
            check_count("frequencies", frequencies)
            if not isinstance(arm, CategoricalArm):
                raise InputError("`frequencies` needs a CategoricalArm.")
        detail = "" if kept is None else f", t={kept}"
        detail += "" if frequencies is None else f", {frequencies} frequencies"
        name = f"{arm.name}, α={float(order):g}{detail}"
        self.frequencies = frequencies
        super().__init__(arm, name, order=float(order), kept=kept, frequencies=frequencies)

    def statistics(self, names: Names, n: int, replications: int, rng: Generator) -> Statistics:
        """Draw spectra of K/n, and of its Fourier approximation."""
        out: Statistics = {}
        if "sample_spectrum" in names:
            out = self.arm.statistics(["sample_spectrum"], n, replications, rng)
        if "fourier_spectrum" in names:
            shares = self.arm.statistics(["mean_vector"], n, replications, rng)["mean_vector"]
            out["fourier_spectrum"] = self._fourier(shares, rng)
        return out

    def size(self, names: Names, n: int) -> int:
        """Numbers held for each replication."""
        return self.arm.size(names, n) + 3 * self.d * (self.frequencies or 0)

    def tilted(self, names: Names, n: int, count: int, rng: Generator) -> Tilted | None:
        """Tilt the kernel arm; no tilt is known for its Fourier approximation."""
        return None if self.frequencies else self.arm.tilted(names, n, count, rng)

    def _fourier(self, shares: Float, rng: Generator) -> Float:
        """Eigenvalues of the FKEA kernel matrix over n, from the class shares (k, d)."""
        omega = rng.uniform(-np.pi, np.pi, (len(shares), 1, int(self.frequencies or 1)))
        angle = omega * np.arange(self.d)[None, :, None]
        features = np.concatenate([np.cos(angle), np.sin(angle)], axis=2)
        features *= np.sqrt(shares[:, :, None] / omega.shape[2])
        gram = features @ np.swapaxes(features, 1, 2)
        return np.maximum(np.linalg.eigvalsh(gram)[:, ::-1], 0.0)


class NystromArm(_SeenArm):
    """A kernel arm whose sample spectrum is approximated from landmarks (Nyström).

    Parameters
    ----------
    arm : SyntheticArm
        Draws rows of features with φ(x)ᵀφ(y) = k(x, y); knows its ``kernel_spectrum``.
    landmarks : int
        t; the first t rows of a sample, which are random ones.

    Notes
    -----
    With P the projection onto the features of the landmarks, K_nt K_tt⁺ K_tn = ΦPΦᵀ: its
    eigenvalues over n are those of P C_n P, and its trace over n is Tr P C_n.
    """

    def __init__(self, arm: SyntheticArm, landmarks: int) -> None:
        self.landmarks = check_count("landmarks", landmarks)
        super().__init__(arm, f"{arm.name}, {landmarks} landmarks", landmarks=landmarks)

    def statistics(self, names: Names, n: int, replications: int, rng: Generator) -> Statistics:
        """Draw the approximate spectrum, and what the landmarks leave out of the trace."""
        if isinstance(self.arm, CategoricalArm):
            spectrum = self._of_classes(self.arm.probabilities, n, replications, rng)
        else:
            spectrum = self._of_features(n, replications, rng)
        out = {
            "nystrom_spectrum": np.sort(spectrum, axis=1)[:, ::-1],
            "nystrom_residual": np.maximum(1.0 - spectrum.sum(axis=1), 0.0),
        }
        return {name: out[name] for name in names if name in out}

    def _of_classes(self, probabilities: Float, n: int, replications: int, rng: Generator) -> Float:
        """Shares of the classes that some landmark belongs to; the others are lost."""
        t = min(self.landmarks, n)
        landmarks = rng.multinomial(t, probabilities, replications)
        others = rng.multinomial(n - t, probabilities, replications)
        return np.where(landmarks > 0, (landmarks + others) / n, 0.0)

    def _of_features(self, n: int, replications: int, rng: Generator) -> Float:
        rows = self.arm.draw(replications * n, rng).reshape(replications, n, -1)
        _, values, axes = np.linalg.svd(rows[:, : self.landmarks], full_matrices=False)
        # Directions that rounding alone has put among those of the landmarks do not count.
        spanned = values > 1e-7 * values[:, :1]
        inside = (rows @ np.swapaxes(axes, 1, 2)) * spanned[:, None, :]
        eigenvalues = np.linalg.eigvalsh(np.swapaxes(inside, 1, 2) @ inside / n)
        spectra = np.zeros((replications, self.d))
        spectra[:, : eigenvalues.shape[1]] = np.maximum(eigenvalues, 0.0)
        return spectra

    def size(self, names: Names, n: int) -> int:
        """Numbers held for each replication."""
        return 3 * self.d if isinstance(self.arm, CategoricalArm) else 3 * n * self.d
