"""Kernel arms: a spectrum in closed form, seen at one order of the Vendi score or by landmarks."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

import numpy as np

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
