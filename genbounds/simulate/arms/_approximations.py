"""A kernel arm seen through an order of the Vendi score, or through an approximation of its kernel.

Truncation, random Fourier features (FKEA) and landmarks (Nyström).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.random import Generator

from genbounds.bounds import Facts
from genbounds.simulate.arms._arm import Names, Statistics, SyntheticArm
from genbounds.simulate.arms._bounded import CategoricalArm
from genbounds.simulate.arms._tilting import Tilted
from genbounds.validation import Float, InputError, check_count


class _SeenArm(SyntheticArm):
    """An arm of which something else is looked at; its rows are as they were."""

    arm: SyntheticArm

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
        self.arm, self.order, self.kept, self.frequencies = arm, float(order), kept, frequencies
        detail = "" if kept is None else f", t={kept}"
        detail += "" if frequencies is None else f", {frequencies} frequencies"
        self.name = f"{arm.name}, α={self.order:g}{detail}"

    @cached_property
    def facts(self) -> Facts:
        """True quantities by name."""
        more = {"order": self.order, "kept": self.kept, "frequencies": self.frequencies}
        return dict(self.arm.facts) | {k: v for k, v in more.items() if v is not None}

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
        self.arm, self.landmarks = arm, check_count("landmarks", landmarks)
        self.name = f"{arm.name}, {self.landmarks} landmarks"

    @cached_property
    def facts(self) -> Facts:
        """True quantities by name."""
        return dict(self.arm.facts) | {"landmarks": self.landmarks}

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
