"""Two sides of a Fréchet distance together: roots, plug-in value, and the terms of its error."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
import scipy  # its submodules are loaded at their first use

from genbounds.estimators._estimate import EXACT, SampleError
from genbounds.estimators._linalg import (
    checked_roots,
    congruence,
    gram_roots,
    is_lower,
    lower_solve,
    lower_times,
    singular_values,
)
from genbounds.estimators.frechet._expansion import gaussian_bias, positive_roots
from genbounds.estimators.frechet._mixed import with_mixed_term
from genbounds.estimators.frechet._sample import Sample
from genbounds.validation import Float


class Pair:
    """Generated and reference sample together: the quantities that depend on both."""

    def __init__(self, fake: Sample, real: Sample) -> None:
        self.fake, self.real = fake, real
        self.gap: Float = fake.mean - real.mean

    @property
    def narrow(self) -> bool:
        """Whether the generated sample has fewer rows than the reference has directions."""
        n = self.fake.n
        return self.fake.rows is not None and n is not None and n <= self.real.factor.shape[1]

    @cached_property
    def roots(self) -> Float:
        """Singular values s of Aᵀ L, accurate to rounding of the largest one.

        From Lᵀ Σ L, or the smaller Gram matrix with the same non-zero eigenvalues.
        """
        lower = self.real.factor
        rank = min(side.n - 1 if side.n is not None else side.d for side in (self.fake, self.real))
        if "spectrum" in self.__dict__:
            roots, accurate = checked_roots(self.spectrum[0], rank=rank)
        elif self.narrow:
            projected = self.fake.factor.T @ lower
            roots, accurate = gram_roots(projected @ projected.T, rank=rank)
        else:
            product = congruence(self.fake.moments.cov, lower)
            roots, accurate = gram_roots(product, rank=rank)
        if accurate:
            return roots
        return singular_values(self.fake.factor.T @ lower)

    @cached_property
    def plugin(self) -> float:
        value = self.gap @ self.gap + self.fake.trace + self.real.trace - 2.0 * self.roots.sum()
        return max(float(value), 0.0)

    @cached_property
    def spectrum(self) -> tuple[Float, Float]:
        """Eigenvalues, ascending, and eigenvectors of Lᵀ Σ L."""
        values, vectors = scipy.linalg.eigh(
            congruence(self.fake.moments.cov, self.real.factor),
            driver="evd",
            check_finite=False,
            overwrite_a=True,
        )
        return values, vectors

    @cached_property
    def directions(self) -> tuple[Float, Float, Float]:
        """Positive roots s (r,), and the projections (d, r) of either side's rows to w.

        Both projections are P with Pᵀ cov P = 1, from Lᵀ Σ L = U diag(s²) Uᵀ: L U / s for the
        generated rows, Σ L U / s² for the reference rows.
        """
        values, vectors = self.spectrum
        roots = np.sqrt(np.clip(values, 0.0, None))
        kept = positive_roots(roots)
        if not kept.all():
            roots, vectors = roots[kept], vectors[:, kept]
        lower = self.real.factor
        if is_lower(lower):  # half the flops, and Σ L U / s² = L⁻ᵀ U without its rounding
            return roots, lower_times(lower, vectors / roots), lower_solve(lower, vectors)
        vectors = vectors / roots
        fake_projection = lower @ vectors
        return roots, fake_projection, self.fake.moments.cov @ fake_projection / roots

    def errors(self, *, every_row: bool) -> tuple[SampleError, SampleError]:
        """Second-order terms of both samples, each corrected for the noise of the other."""
        fake, real = self.fake, self.real
        terms = self.errors_alone(every_row=every_row)
        if fake.n is None or real.n is None:
            return terms
        roots, *projections = self.directions
        return with_mixed_term(
            fake, real, terms, roots=roots, projections=(projections[0], projections[1])
        )

    def errors_alone(
        self, *, every_row: bool, bias_only: bool = False
    ) -> tuple[SampleError, SampleError]:
        """Second-order terms of either sample, as if the estimate of the other were the truth."""
        one, two = (
            self.error_of(side, every_row=every_row, bias_only=bias_only)
            for side in (self.fake, self.real)
        )
        return one, two

    def error_of(self, side: Sample, *, every_row: bool, bias_only: bool = False) -> SampleError:
        """Second-order terms of one of both samples, as if the other's estimate were the truth."""
        if side.n is None:
            return EXACT
        roots, fake_projection, real_projection = self.directions
        generated = side is self.fake
        return side.error(
            gap=self.gap if generated else -self.gap,
            projection=fake_projection if generated else real_projection,
            roots=roots,
            other=(self.real if generated else self.fake).effective,
            every_row=every_row,
            bias_only=bias_only,
        )

    def gaussian_bias(self) -> float:
        """Second-order bias for Gaussian rows, of both samples."""
        return sum(
            gaussian_bias(side.trace, self.roots, side.n)
            for side in (self.fake, self.real)
            if side.n is not None
        )


def same_rows(fake: Sample, real: Sample) -> bool:
    """Whether both sides are the same rows in the same order."""
    a, b = fake.rows, real.rows
    if a is None or b is None or a.shape != b.shape:
        return False
    if fake.weights is not None or real.weights is not None:
        return False
    return np.array_equal(a[:1], b[:1]) and np.array_equal(a, b)


def plugin_value(fake: Sample, real: Sample) -> float:
    """Plug-in distance; the sides are put in order, so that swapping them changes no bit."""
    if _order(fake) > _order(real):
        fake, real = real, fake
    return Pair(fake, real).plugin


def _order(side: Sample) -> tuple[float, float, float]:
    return side.trace, float(side.mean @ side.mean), math.inf if side.n is None else float(side.n)
