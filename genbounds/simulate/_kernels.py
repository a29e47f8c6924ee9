"""Kernel arms: a spectrum in closed form, seen at one order of the Vendi score."""

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
