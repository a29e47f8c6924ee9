"""Two samples of a Fréchet distance together: roots, plug-in value, and the error of that."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # its submodules are loaded at their first use
from numpy.typing import NDArray

from genbounds.core.design import Index
from genbounds.core.estimate import EXACT, SampleError
from genbounds.core.linalg import (
    checked_roots,
    congruence,
    gram_roots,
    is_lower,
    lower_solve,
    lower_times,
    singular_values,
)
from genbounds.core.two_samples import (
    Between,
    SharedError,
    Side,
    mixed_square,
    shared_bias,
    shared_error,
    shared_units,
    with_mixed_term,
)
from genbounds.estimators.frechet._expansion import (
    PAIRING_SEED,
    FrechetRows,
    Kernel,
    Rows,
    gaussian_bias,
    gaussian_mixed_square,
    positive_roots,
    product_type,
    rows_error,
    transport_roots,
)
from genbounds.estimators.frechet._known_moments import (
    FourthMoments,
    bias_beyond_second_order,
    moments_error,
)
from genbounds.estimators.frechet._sample import FrechetSample
from genbounds.validation import Float

LENDER_RATIO = 4
"""Samples per dimension from which rows lend their fourth moments to a sample without rows."""

LENT_ROWS = 4096


def lends(sample: FrechetSample, directions: int) -> bool:
    """Whether a sample has rows enough to lend its fourth moments to one without rows."""
    return sample.rows is not None and sample.effective >= LENDER_RATIO * directions


class Pair:
    """Generated and reference sample together: the quantities that depend on both."""

    def __init__(self, fake: FrechetSample, real: FrechetSample) -> None:
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
        """Positive roots s (r,), and the projections (d, r) of the rows of either sample to w.

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
        """Errors due to either sample, each corrected for the noise of the other."""
        errors = self.errors_alone(every_row=every_row)
        if self.fake.n is None or self.real.n is None:
            return errors
        share = 2.0 * self._mixed_square()
        corrected = with_mixed_term(errors, share)
        # From moments alone the first order is free of the other's noise: the mixed term is added.
        one, two = (
            replace(error, variance=error.variance + share, mixed_variance=share)
            if side.some_rows is None
            else other
            for side, error, other in zip((self.fake, self.real), errors, corrected, strict=True)
        )
        return one, two

    def _mixed_square(self) -> float:
        """Σ M_IJ² of the mixed term -2 h(x, y), h the kernel of either sample."""
        fake, real = self.fake, self.real
        if fake.some_rows is None or real.some_rows is None:
            assert fake.n is not None
            assert real.n is not None
            product = float((fake.moments.cov * real.moments.cov).sum())
            kernel = Kernel(np.zeros(fake.d), self.directions[0])
            return gaussian_mixed_square(kernel, product) / (fake.n * real.n)
        return mixed_square(*self._sides(), self._between())

    def _between(self) -> Between:
        """-h(x, y); the means of two samples do not enter each other's covariance."""
        roots = self.directions[0]
        samples = (self.fake.some_rows, self.real.some_rows)
        kinds = [product_type(rows, roots) for rows in samples if rows is not None]
        kernel = Kernel(np.zeros(self.fake.d), roots, np.result_type(*kinds))

        def between(one: Rows, i: Index, two: Rows, j: Index) -> Float:
            return -kernel.cross(one, i, two, j)

        return between

    def errors_alone(
        self, *, every_row: bool, bias_only: bool = False
    ) -> tuple[SampleError, SampleError]:
        """Errors due to either sample, as if the estimate of the other were the truth."""
        one, two = (
            self.error_of(side, every_row=every_row, bias_only=bias_only)
            for side in (self.fake, self.real)
        )
        return one, two

    def error_of(
        self, side: FrechetSample, *, every_row: bool, bias_only: bool = False
    ) -> SampleError:
        """Error due to one of both samples, as if the estimate of the other were the truth."""
        if side.n is None:
            return EXACT
        roots = self.directions[0]
        other = self.real if side is self.fake else self.fake
        transport = roots if bias_only else transport_roots(roots, side.effective, other.effective)
        if side.rows is None and side.moments.rows is None:
            error, _ = self.moments_error(side)
            return error
        error = rows_error(
            self.form_of(side, transport), side.design, every_row=every_row, bias_only=bias_only
        )
        if side.rows is None:  # a part of the rows cannot be halved: Gaussian beyond second order
            trace = side.trace / side.n
            ratio = (error.bias - trace) / (gaussian_bias(side.trace, roots, side.n) - trace)
            rest = bias_beyond_second_order(roots, side.n, ratio)
            error = replace(error, bias=error.bias + rest)
        return error

    def _sides(self) -> tuple[Side, Side]:
        """Both samples with what their rows tell to second order."""
        roots = self.directions[0]
        one, two = (
            Side(self.form_of(sample, roots), sample.design) for sample in (self.fake, self.real)
        )
        return one, two

    @cached_property
    def common(self) -> NDArray[Any] | None:
        """Names of the units that both samples share; None if they share fewer than two."""
        common = shared_units(self.fake.design, self.real.design)
        return None if common is None or common.size < 2 else common

    def shared(self) -> tuple[tuple[SampleError, SampleError], SharedError, float] | None:
        """Errors of two samples that share units, and their curvature; None if they do not."""
        common = self.common
        if common is None:
            return None
        errors = self.errors_alone(every_row=True)
        shared = shared_error(self._sides(), errors, common, self._between())
        return errors, shared, self._joint_curvature(errors, shared)

    def bias(self, *, every_row: bool) -> float:
        """Second-order bias of both samples, and of the units that they share."""
        errors = self.errors_alone(every_row=every_row, bias_only=True)
        alone = errors[0].bias + errors[1].bias
        if self.common is None:
            return alone
        return alone + shared_bias(self._sides(), self.common, self._between())

    def _joint_curvature(
        self, errors: tuple[SampleError, SampleError], shared: SharedError
    ) -> float:
        """Σ G_I G_J M_IJ over different units, G_I the step of a unit through both samples."""
        sums = []
        for side, step in zip(self._sides(), shared.steps, strict=True):
            assert side.design is not None
            assert isinstance(side.form, FrechetRows)
            total = side.form.weighted()
            design = side.design
            weights = design.weights * (np.sqrt(design.factor) * step)[design.unit]
            for positions, block in side.form.blocks(None):
                total.add(block, weights[positions])
            sums.append(total)
        x, y = sums
        whole = x.square() + y.square() - 2.0 * x.inner(y)
        # The pairs of a unit with itself, on average over the units.
        bias = errors[0].bias + errors[1].bias + shared.bias
        return whole - bias * float(shared.steps[0] @ shared.steps[0]) / shared.steps[0].size

    def moments_error(self, side: FrechetSample) -> tuple[SampleError, FourthMoments]:
        """Error due to a sample known by its moments only, and whose fourth moments it has."""
        assert side.n is not None
        roots, fake_projection, real_projection = self.directions
        generated = side is self.fake
        return moments_error(
            gap=self.gap if generated else -self.gap,
            cov=side.moments.cov,
            projection=fake_projection if generated else real_projection,
            roots=roots,
            n=side.n,
            other=(self.real if generated else self.fake).effective,
            rows=self._fourth_rows(side),
        )

    def _fourth_rows(self, side: FrechetSample) -> tuple[Float, Float] | None:
        """Rows that lend their fourth moments to a sample of which only moments are known.

        Those of the other sample, carried over by the transport map, which leaves their w as they
        are; None if it has too few.
        """
        roots, fake_projection, real_projection = self.directions
        generated = side is self.fake
        own, other = fake_projection, real_projection
        if not generated:
            own, other = other, own
        lender = self.real if generated else self.fake
        if not lends(lender, roots.size):
            return None
        assert lender.rows is not None
        assert lender.n is not None
        rng = np.random.default_rng(PAIRING_SEED)
        chosen = rng.choice(lender.n, min(lender.n, LENT_ROWS), replace=False)
        w = lender.rows_at(chosen) @ other
        # P Pᵀ cov P Pᵀ is the covariance that the directions can have.
        return w @ (side.moments.cov @ own).T, w

    def form_of(self, side: FrechetSample, transport: Float) -> FrechetRows:
        """Rows of one of both samples, with the kernel of the quadratic part."""
        rows = side.some_rows
        assert rows is not None
        roots, fake_projection, real_projection = self.directions
        generated = side is self.fake
        return FrechetRows(
            rows,
            side.index,
            n=side.n,
            mean=side.mean,
            trace=side.trace,
            kernel=Kernel(
                self.gap if generated else -self.gap,
                roots,
                product_type(rows, roots),
                transport=transport,
                empirical=not side.independent,
            ),
            projection=fake_projection if generated else real_projection,
        )

    def gaussian_bias(self) -> float:
        """Second-order bias for Gaussian rows, of both samples."""
        return sum(
            gaussian_bias(side.trace, self.roots, side.n)
            for side in (self.fake, self.real)
            if side.n is not None
        )


def plugin_value(fake: FrechetSample, real: FrechetSample) -> float:
    """Plug-in distance; the samples are put in order, so that swapping them changes no bit."""
    if _order(fake) > _order(real):
        fake, real = real, fake
    return Pair(fake, real).plugin


def _order(side: FrechetSample) -> tuple[float, float, float]:
    return side.trace, float(side.mean @ side.mean), math.inf if side.n is None else float(side.n)
