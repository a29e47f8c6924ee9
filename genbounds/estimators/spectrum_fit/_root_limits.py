"""How wrong the trace of the root of two covariances can be, whatever spectrum was fitted to it.

The map (Σ, Σ_r) ↦ Tr √(Lᵀ Σ L), Σ_r = L Lᵀ, is jointly concave, so that samples make it too small
on average; and it is at most √(Tr Σ Tr Σ_r) (Cauchy–Schwarz). The truth lies between these two up
to the noise of the samples, also where a fit is poor. Derivation: docs/explanation/few_samples.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from genbounds.validation import Float


@dataclass(frozen=True, slots=True)
class RootLimits:
    """Between what the trace of the root lies.

    Attributes
    ----------
    low : float
        That of the samples themselves.
    high : float
        The root of the product of both traces.
    """

    low: float
    high: float

    @classmethod
    def of(cls, values: Float, *, traces: tuple[float, float]) -> RootLimits:
        """Limits from the positive eigenvalues of Lᵀ Σ̂ L and both traces."""
        low = float(np.sqrt(values).sum())
        return cls(low, max(math.sqrt(traces[0]) * math.sqrt(traces[1]), low))

    def hold(self, trace: float) -> float:
        """Return the nearest trace within the limits."""
        return min(max(trace, self.low), self.high)

    def errors(
        self,
        trace: float,
        *,
        fitted: Sequence[float],
        plugin: Sequence[float],
        inflation: float,
        doubts: Sequence[float],
    ) -> tuple[list[float], bool]:
        """Variances of the distance due to each sample, no larger than the limits admit.

        A standard error of doubt is at most the distance to the farther limit: to the plug-in where
        the trace is too large, to the smallest distance with these traces where it is
        too small.

        Parameters
        ----------
        trace : float
            The estimate; may lie outside the limits.
        fitted : sequence of float
            Variance by the influences of the fitted root, of each sample.
        plugin : sequence of float
            The same by those of the plug-in; needed only for a poor fit.
        inflation : float
            Factor on `fitted` for a poor fit; 1 for a good one.
        doubts : sequence of float
            Other variances, of what the samples do not show.

        Returns
        -------
        variances : list of float
        by_plugin : bool
            Whether the fit was so poor that its own influences mean nothing, and the noise is that
            of the plug-in.
        """
        allowed = (2.0 * max(trace - self.low, self.high - trace)) ** 2
        by_plugin = inflation > 1.0 and math.fsum(fitted) > math.fsum(plugin) + allowed
        sampling = plugin if by_plugin else fitted
        extra = [
            (inflation - 1.0) * own + doubt for own, doubt in zip(sampling, doubts, strict=True)
        ]
        total = math.fsum(extra)
        share = min(1.0, allowed / total) if total > 0.0 else 1.0
        return [own + share * more for own, more in zip(sampling, extra, strict=True)], by_plugin
