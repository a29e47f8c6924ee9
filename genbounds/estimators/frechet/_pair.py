"""Two samples of a Fréchet distance together: roots, plug-in value, its error, and the estimate.

Debiased from four samples per dimension on by the expansion in 1/n: second order, and third order
by halving the samples that are not large; for rows, groups, strata, weights and shared units alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy  # its submodules are loaded at their first use
from numpy.typing import NDArray

from genbounds.core import two_samples
from genbounds.core.checks import drawing_warnings, drawn
from genbounds.core.design import Design
from genbounds.core.estimate import EXACT, Estimate, SampleError, heavy_tails, small_sample
from genbounds.core.expansion import HALVING_NOISE, expand, halved, third_order, with_mixed_term
from genbounds.core.moments import EPS, is_narrow
from genbounds.core.two_samples import LEAST_PAIRS, MOST_PAIRS, PAIR_WORK, SharedError
from genbounds.diagnostics import warn_of
from genbounds.estimators.frechet import _gaussian
from genbounds.estimators.frechet._form import (
    PART_ROWS,
    PART_WORK,
    FrechetForm,
    RootHessian,
    gaussian_bias,
)
from genbounds.estimators.frechet._sample import (
    FEW_RATIO,
    PAIRING_SEED,
    SIDES,
    SINGLE_WIDTH,
    SPLIT_RATIO,
    FrechetSample,
    directions_of,
)
from genbounds.results import Diagnostic, Method
from genbounds.validation import Float

LENDER_RATIO = 4
"""Samples per dimension from which rows lend their fourth moments to a sample without rows."""

LENT_ROWS = 4096

PART_NOISE_FACTOR = 20 / 9
"""Noise of the estimate over that of the bias: the third order takes 4/3 of the bias off and adds
1/3 of that of a half, whose noise from equally many rows has twice the standard deviation."""

ROOT_RTOL = 1e-10
"""Accepted relative rounding error of a sum of square roots of eigenvalues."""

EFFECTIVE_RATIO = 3.3
"""Samples per dimension that the expansion needs when dependence, heavy tails or rare features are
allowed for: a bias k times that of independent Gaussian rows makes n rows as good as n/k."""

LARGEST_REMAINDER = 0.4
"""Standard errors of bias that may be left after the third order. Where the bias is k times that of
Gaussian rows, about k - 1 times the third-order correction is left: the remainder of heavy tails
falls more slowly with n than halving takes it to. Rows of Student's t with 4 and 5 degrees of
freedom, which cover too seldom, are above it, those with 8 below (docs/evidence/accuracy.md)."""

OF_STDERR = 4.0
"""One over the share of a standard error that an unknown bias may have in an interval."""


@dataclass(frozen=True)
class PairError:
    """Second-order bias of a distance, and the error due to either sample.

    Attributes
    ----------
    errors : sequence of SampleError
        In the order (generated, reference).
    bias : float
        Of both samples, and of the units that they share.
    shared : SharedError or None
        What units that stand in both samples do.
    shared_variance : float
        What they add to the variances of both samples; negative where noise cancels.
    """

    errors: Sequence[SampleError]
    bias: float
    shared: SharedError | None = None
    shared_variance: float = 0.0


def lends(sample: FrechetSample, directions: int) -> bool:
    """Whether a sample has rows enough to lend its fourth moments to one without rows."""
    return sample.rows is not None and sample.effective >= LENDER_RATIO * directions


class Directions(NamedTuple):
    """In which both samples vary, from Lᵀ Σ L = U diag(s²) Uᵀ.

    Attributes
    ----------
    singular : ndarray
        All s, the singular values of Aᵀ L with Σ = A Aᵀ, accurate to rounding of the largest one.
    roots : ndarray of shape (r,)
        Those beyond rounding.
    projections : tuple of ndarray of shape (d, r)
        From the rows of either sample to w, P with Pᵀ cov P = 1: L U / s for the generated rows,
        Σ L U / s² for the reference rows.
    """

    singular: Float
    roots: Float
    projections: tuple[Float, Float]


class FrechetPair:
    """Generated and reference sample together: the quantities that depend on both.

    Parameters
    ----------
    fake, real : FrechetSample
    every_row : bool
        Whether the influence of every row is wanted. If not, random parts of a large sample stand
        for all of it (the same at every call), with their noise in the variance.
    """

    def __init__(self, fake: FrechetSample, real: FrechetSample, *, every_row: bool = True) -> None:
        self.fake, self.real = fake, real
        self.samples = fake, real
        self.every_row = every_row
        self.gap: Float = fake.mean - real.mean
        self.rank = min(side.mean.size if side.n is None else side.n - 1 for side in self.samples)
        self.designs = fake.design, real.design
        self.common = None
        if fake.design is not None and real.design is not None:
            self.common = two_samples.shared_units(*self.designs)

    # Roots and directions -------------------------------------------------------------------------

    def plugin(self, roots: Float | None = None) -> float:
        """Plug-in distance, never negative; `roots`: the singular values, by `directions`.

        From `roots_alone` where nothing else is wanted of the pair.
        """
        total = float((self.directions.singular if roots is None else roots).sum())
        value = float(self.gap @ self.gap) + self.fake.trace + self.real.trace - 2.0 * total
        return max(value, 0.0)

    @cached_property
    def roots_alone(self) -> Float:
        """The same without eigenvectors, from the smaller Gram matrix with these eigenvalues."""
        return self._eigen(vectors=False)[0]

    def _eigen(self, *, vectors: bool) -> tuple[Float, Any]:
        """Singular values of Aᵀ L, and the ascending eigenvalues of Lᵀ Σ L with its eigenvectors.

        Rounding, about ``EPS * largest`` on each eigenvalue, is ``EPS * largest / (2 root)`` on its
        root. Where it is not negligible in their sum, from the factors instead.
        """
        fake, lower = self.fake, self.real.factor
        if not vectors and fake.rows is not None and (fake.n or 0) <= lower.shape[1]:
            projected = fake.factor.T @ lower
            product = projected @ projected.T
        elif lower is self.real.triangle:  # d³ flops where plain products take 4 d³
            product, _ = scipy.linalg.lapack.dsygst(fake.cov.T, lower, itype=2, lower=1)
        else:
            product = lower.T @ (fake.cov @ lower)
        found = scipy.linalg.eigh(
            product,
            driver="evd" if vectors else None,
            eigvals_only=not vectors,
            check_finite=False,
            overwrite_a=True,
        )
        values = (found[0] if vectors else found)[::-1][: self.rank]
        roots: Float = np.sqrt(np.clip(values, 0.0, None))
        rounding = 4.0 * EPS * float(np.max(values[:1], initial=0.0))
        error = np.minimum(rounding / (2.0 * np.maximum(roots, EPS)), np.sqrt(rounding))
        if not np.linalg.norm(error) <= ROOT_RTOL * roots.sum():
            product = fake.factor.T @ lower
            roots = np.asarray(np.linalg.svd(product, compute_uv=False), dtype=np.float64)
        return roots, found

    @cached_property
    def directions(self) -> Directions:
        """In which both samples vary beyond rounding."""
        singular, (values, vectors) = self._eigen(vectors=True)
        lower = self.real.factor
        roots = np.sqrt(np.clip(values, 0.0, None))
        positive = roots > math.sqrt(roots.size * EPS) * roots.max(initial=0.0)
        if not positive.all():
            roots, vectors = roots[positive], vectors[:, positive]
        if lower is self.real.triangle:  # half the flops, and Σ L U / s² = L⁻ᵀ U without rounding
            blas = scipy.linalg.blas
            one = blas.dtrmm(1.0, lower, vectors / roots, lower=1)
            two = blas.dtrsm(1.0, lower, vectors, lower=1, trans_a=1)
        else:
            one = lower @ (vectors / roots)
            two = self.fake.cov @ one / roots
        return Directions(singular, roots, (one, two))

    # Bias and error -------------------------------------------------------------------------------

    def expand(self) -> PairError:
        """Second-order bias and error of both samples, each freed of the noise of the other."""
        errors = [self.error_of(0), self.error_of(1)]
        bias = errors[0].bias + errors[1].bias
        if self.common is not None:
            return self._with_shared_units(errors, self.common)
        if self.fake.n is None or self.real.n is None:
            return PairError(errors, bias)
        # Σ M_IJ² over units of one sample and of the other.
        if len(self.forms) < 2:
            product = float((self.fake.cov * self.real.cov).sum())
            hessian = RootHessian(self.directions.roots)
            square = _gaussian.gaussian_square(hessian, product) / (self.fake.n * self.real.n)
        elif not (self.fake.independent and self.real.independent):
            square = two_samples.mixed_square((self.forms[0], self.forms[1]), self.designs)
        else:
            most = int(np.clip(PAIR_WORK // self.forms[0].width ** 2, LEAST_PAIRS, MOST_PAIRS))
            blocks = []
            for k, form in self.forms.items():
                rng = np.random.default_rng(PAIRING_SEED + k)
                blocks.append(form.block(rng.integers(form.rows_at_hand, size=most)))
            at = np.arange(most)
            products = form.across(blocks[0], at, blocks[1], at)
            square = float(np.mean(products**2)) / (self.fake.n * self.real.n)
        freed = with_mixed_term(errors, 2.0 * square)
        for k, (side, error) in enumerate(zip(self.samples, errors, strict=True)):
            if side.some_rows is None:  # the first order of moments alone is free of that noise
                more = error.variance + 2.0 * square
                freed[k] = replace(error, variance=more, mixed_variance=2.0 * square)
        return PairError(freed, bias)

    def bias(self) -> float:
        """Second-order bias alone, as in `expand`."""
        own = sum(self.error_of(k, bias_only=True).bias for k in (0, 1))
        if self.common is None:
            return own
        return own + two_samples.shared_bias(
            (self.forms[0], self.forms[1]), self.designs, self.common
        )

    def error_of(self, k: int, *, bias_only: bool = False) -> SampleError:
        """Error due to sample k (0: generated), as if the estimate of the other were the truth."""
        side = self.samples[k]
        if side.n is None:
            return EXACT
        if side.some_rows is None:
            _, roots, projections = self.directions
            rows = self._fourth_rows(k)
            return _gaussian.moments_error(side, self.samples[1 - k], roots, projections[k], rows)
        form = self.forms[k]
        every_row = self.every_row or self.common is not None
        error, _ = expand(
            form,
            side.design,
            part_rows=None if every_row else form.part_rows,
            noise_factor=PART_NOISE_FACTOR,
            bias_only=bias_only,
        )
        if side.rows is None:  # a part of the rows cannot be halved: Gaussian beyond second order
            roots, trace = self.directions.roots, side.trace / side.n
            ratio = (error.bias - trace) / (gaussian_bias(side.trace, roots, side.n) - trace)
            rest = _gaussian.bias_beyond_second_order(roots, side.n, ratio)
            error = replace(error, bias=error.bias + rest)
        return error

    @cached_property
    def forms(self) -> dict[int, FrechetForm]:
        """Of either sample, 0 and 1, that has rows: influence and kernel of the quadratic part.

        H is in the precision in which products of rows with directions are formed.
        """
        _, roots, projections = self.directions
        wide = max(self.gap.size, roots.size) >= SINGLE_WIDTH
        rows = [side.some_rows for side in self.samples if side.some_rows is not None]
        single = wide and all(map(is_narrow, rows))
        hessian = RootHessian(roots, np.dtype(np.float32 if single else np.float64))
        return {
            k: FrechetForm(side, self.samples[1 - k], hessian, projections[k], generated=k == 0)
            for k, side in enumerate(self.samples)
            if side.some_rows is not None and side.n is not None
        }

    # Both samples ---------------------------------------------------------------------------------

    def _with_shared_units(self, errors: Sequence[SampleError], common: NDArray[Any]) -> PairError:
        """Error of two samples that share units of these names."""
        forms = self.forms[0], self.forms[1]
        shared = two_samples.shared_error(forms, self.designs, errors, common)
        bias = errors[0].bias + errors[1].bias + shared.bias
        curvature = _joint_curvature(forms, self.designs, shared, bias)
        more = shared.variance - errors[0].variance - errors[1].variance
        joint = [
            replace(error, influence=influence, curvature=bend)
            for error, influence, bend in zip(
                errors, shared.influences, (curvature, 0.0), strict=True
            )
        ]
        return PairError(joint, bias, shared, more)

    # Samples of which only moments are known ------------------------------------------------------

    def _fourth_rows(self, k: int) -> tuple[Float, Float] | None:
        """Rows that lend their fourth moments to a sample of which only moments are known.

        Those of the other sample, carried over by the transport map, which leaves their w as they
        are; None if it has too few.
        """
        side, lender = self.samples[k], self.samples[1 - k]
        _, roots, projections = self.directions
        if not lends(lender, roots.size):
            return None
        assert lender.n is not None
        rng = np.random.default_rng(PAIRING_SEED)
        chosen = rng.choice(lender.n, min(lender.n, LENT_ROWS), replace=False)
        w = lender.rows_at(chosen) @ projections[1 - k]
        # P Pᵀ cov P Pᵀ is the covariance that the directions can have.
        return w @ (side.cov @ projections[k]).T, w

    def gaussian_bias(self, roots: Float) -> float:
        """Second-order bias for Gaussian rows with these singular values, of both samples."""
        return sum(
            gaussian_bias(side.trace, roots, side.n) for side in self.samples if side.n is not None
        )


def _joint_curvature(
    forms: tuple[FrechetForm, FrechetForm],
    designs: tuple[Design | None, Design | None],
    shared: SharedError,
    bias: float,
) -> float:
    """Σ G_I G_J M_IJ over different units, G_I the step of a unit through both samples."""
    sums = []
    for form, design, step in zip(forms, designs, shared.steps, strict=True):
        assert design is not None
        total = form.weighted()
        weights = design.weights * (np.sqrt(design.own_factor) * step)[design.unit]
        for positions, block in form.blocks(None):
            total.add(block, weights[positions])
        sums.append(total)
    x, y = sums
    whole = x.square() + y.square() - 2.0 * x.inner(y)
    # The pairs of a unit with itself, on average over the units.
    return whole - bias * float(shared.steps[0] @ shared.steps[0]) / shared.steps[0].size


def plugin_value(fake: FrechetSample, real: FrechetSample) -> float:
    """Plug-in distance; the samples are put in order, so that swapping them changes no bit."""
    if _order(fake) > _order(real):
        fake, real = real, fake
    pair = FrechetPair(fake, real)
    return pair.plugin(pair.roots_alone)


def _order(side: FrechetSample) -> tuple[float, float, float]:
    return side.trace, float(side.mean @ side.mean), math.inf if side.n is None else float(side.n)


# --- From four samples per dimension on: second order, and third order by halving -----------------


def debias_by_expansion(pair: FrechetPair, directions: int) -> Estimate:
    """Take off the bias of second order, and of third order where a sample is not large."""
    samples, roots = pair.samples, pair.directions.roots
    expanded, plain = pair.expand(), pair.plugin()
    errors, shared, shared_variance = expanded.errors, expanded.shared, expanded.shared_variance
    # The bias that one independent Gaussian row would have: of the root alone, and of everything.
    gaussian_root = gaussian_bias(0.0, roots, 1.0)
    gaussian = gaussian_root + float(roots.sum())
    heaviest, small, excess = 1.0, [False, False], {}
    for k, (side, error) in enumerate(zip(samples, errors, strict=True)):
        if side.rows is None or side.n is None:
            continue
        tails = times = 1.0  # the bias over that: by tails, and by tails and dependence
        if roots.size:
            tails = (side.effective * error.row_bias - side.trace) / gaussian_root
            times = max(side.n * error.bias / gaussian, 1.0)
        heaviest, excess[k] = max(heaviest, tails), (side.n, times)
        rows = side.n if side.independent else side.n / times
        small[k] = rows / directions < max(SPLIT_RATIO, EFFECTIVE_RATIO * tails)
    few, doubts = min(side.effective for side in samples) / directions, []
    if few < FEW_RATIO:  # says all: too few even if rows were independent
        doubts = [warn_of("few-per-dimension", ratio=few, least=FEW_RATIO)]
    elif not all(side.independent for side in samples):
        for k, (n, times) in excess.items():
            ratio = n / times / max(roots.size, 1)
            if ratio < EFFECTIVE_RATIO:
                doubt = warn_of(
                    "tails-as-few" if samples[k].independent else "dependent-as-few",
                    times=times,
                    n=n,
                    name=SIDES[k],
                    ratio=ratio,
                    least=EFFECTIVE_RATIO,
                )
                doubts.append(doubt)
    if shared is not None and any(small):  # a unit in both lies in the same half of both
        small = [True, True]
    halves = _halves(pair, small) if any(small) else None
    value = second_order = plain - expanded.bias
    if halves is not None:
        value = third_order(second_order, _half_values(halves))
        if shared is None:
            errors = [
                halved(error, both=all(small)) if is_small else error
                for error, is_small in zip(errors, small, strict=True)
            ]
        else:
            shared_variance += HALVING_NOISE * shared.quadratic_variance
    estimate = make_estimate(
        "second-order" if halves is None else "third-order",
        value,
        samples,
        errors,
        shared_variance=shared_variance,
        warnings=tuple(doubts),
        # The covariances of a design are not those of a plug-in.
        plugin=plain if all(design is None for design in pair.designs) else None,
    )
    # What heavy tails leave of the bias; an interval down to 0 covers a small distance even so.
    left, stderr = (heaviest - 1.0) * abs(value - second_order), estimate.stderr
    if left <= LARGEST_REMAINDER * stderr or value <= 2.0 * stderr:
        return estimate
    return estimate.warned(warn_of("tail-bias", times=heaviest, left=left, stderr=stderr))


def _halves(pair: FrechetPair, small: list[bool]) -> list[FrechetPair] | None:
    """Random halves of the units of the small samples; None where a stratum has too few units.

    Shared units go into the same half of either sample.
    """
    parts: list[tuple[FrechetSample, ...]] = []
    joint, named = pair.common is not None, None
    for sample, is_small in zip(pair.samples, small, strict=True):
        design = sample.design
        if not is_small:
            parts.append((sample, sample))
        elif design is None or (design.independent and not joint):
            parts.append(sample.halves())
        else:
            half = design.halves(np.random.default_rng(PAIRING_SEED), named)
            if half is None:
                return None
            if joint and design.labels is not None:
                named = design.labels, half
            parts.append(sample.halves(half))
    return [
        FrechetPair(one, two, every_row=pair.every_row) for one, two in zip(*parts, strict=True)
    ]


def _half_values(halves: list[FrechetPair]) -> list[float]:
    """Plug-in less second-order bias of both halves.

    For large samples only the first half pays for eigenvectors: the second differs from it in the
    Gaussian part of the bias, a function of the eigenvalues, and takes the rest from it.
    """
    first, second = halves
    bias = first.bias()
    values = [first.plugin() - bias]
    costly = not first.every_row and any(
        side.n is not None and side.n > PART_ROWS and side.n * side.mean.size**2 > PART_WORK
        for side in first.samples
    )
    if costly:
        rest = bias - first.gaussian_bias(first.directions.singular)
        roots = second.roots_alone
        values.append(second.plugin(roots) - second.gaussian_bias(roots) - rest)
    else:
        values.append(second.plugin() - second.bias())
    return values


# --- the estimate that every method ends in -------------------------------------------------------


def make_estimate(
    method: Method,
    value: float,
    samples: tuple[FrechetSample, FrechetSample],
    errors: Sequence[SampleError],
    *,
    warnings: tuple[Diagnostic, ...] = (),
    assumptions: tuple[str, ...] = (),
    **words: Any,
) -> Estimate:
    """Join the errors of both samples, given in the order (generated, reference).

    `warnings`, `assumptions` and other `words` of an `Estimate` are those of the method.
    """
    lent_already = any(warning.code == "moments-only" for warning in warnings)
    assumed = ["features have finite eighth moments"]
    own: list[SampleError] = []
    lent: list[Diagnostic] = []
    small: list[Diagnostic] = []
    for k, (name, sample, error) in enumerate(zip(SIDES, samples, errors, strict=True)):
        units = None if sample.design is None else sample.design.labels
        own.append(replace(error, n=sample.n, units=units))
        if sample.n is None:
            assumed.append(f"the {name} moments are taken as exactly known")
            continue
        assumed.append(f"{drawn(sample.design)} ({name})")
        small += small_sample(sample.effective, name=name, units=sample.free_units)
        if sample.some_rows is None and not lent_already:
            lender = lends(samples[1 - k], directions_of(*samples))
            source = f"of the {SIDES[1 - k]} samples" if lender else "of a Gaussian distribution"
            lent.append(warn_of("fourth-moments", name=name, source=source))
    if all(sample.n is None for sample in samples):
        assumed = ["both moments are taken as exactly known: no sampling error"]
    generated, reference = (sample.moments for sample in samples)
    if generated is not None and not generated.size_known:
        small.append(warn_of("generated-size-unknown"))
    seen = drawing_warnings(*(sample.seen for sample in samples))
    found = Estimate(
        title="Fréchet distance",
        method=method,
        value=value,
        sample=own[0],
        reference=own[1],
        lower_limit=0.0,
        warnings=(*seen, *warnings, *lent, *small),
        assumptions=(*assumed, *assumptions),
        **words,
    )
    found = found.warned(*heavy_tails(found))
    known = reference is None or reference.size_known
    return found if known else _unknown_size(found, samples)


def _unknown_size(found: Estimate, samples: tuple[FrechetSample, FrechetSample]) -> Estimate:
    """Say from how many reference rows on the interval would hold, where m is unknown."""
    pair = FrechetPair(*samples)
    rate = gaussian_bias(samples[1].trace, pair.directions.roots, 1)
    needed = OF_STDERR * rate / found.stderr if found.stderr > 0.0 else np.inf
    what = (
        f"interval holds if they were {needed:,.0f} or more"
        if np.isfinite(needed)
        else "bias of its samples is left in"
    )
    warning = warn_of("reference-size-unknown", what=what)
    return replace(found, missing_rate=rate).warned(warning)
