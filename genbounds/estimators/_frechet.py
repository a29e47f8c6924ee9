"""Fréchet distance between two sets of features: plug-in, and with its bias removed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # its submodules are loaded at their first use
from numpy.typing import NDArray

from genbounds.estimators._expansion import Expansion
from genbounds.estimators._extrapolation import Subsets, extrapolate
from genbounds.estimators._few_samples import (
    FewSamples,
    few_samples,
    few_samples_from_moments,
)
from genbounds.estimators._frechet_terms import (
    EXACT,
    PAIRING_SEED,
    PART_ROWS,
    PART_WORK,
    SideTerms,
    gaussian_bias,
    gaussian_bias_beyond_second_order,
    gaussian_terms,
    positive_roots,
    sample_terms,
)
from genbounds.estimators._frechet_weighted import (
    check_weights,
    weighted_moments,
    weighted_terms,
)
from genbounds.estimators._linalg import (
    checked_roots,
    congruence,
    factor,
    gram_roots,
    singular_values,
)
from genbounds.estimators._moments import Moments, row_blocks
from genbounds.estimators._resampling import (
    Interval,
    Jackknife,
    bootstrap_score,
    check_interval,
    jackknife_score,
)
from genbounds.results import Score
from genbounds.validation import (
    Float,
    InputError,
    check_choice,
    check_features,
    check_finite,
    check_open_unit,
    check_same_dimension,
)

ESTIMATORS = ("debiased", "plugin", "infinity")

LARGEST_TRACE = 1e40
"""Of both covariances together; its inverse is the smallest. High powers of lengths are formed."""

NEGLIGIBLE_TRACE = 1e-60
"""Of one covariance beside the other: its square roots are then beyond double precision."""

FEW_RATIO = 4
"""Below this many samples per direction the expansion in 1/n fails: random-matrix routes."""

SPLIT_RATIO = 64
"""From this many samples per direction on, the error of the second-order term is negligible."""

WEIGHTED_RATIO = 8
"""Effective samples per direction from which the second order is enough on its own."""

GROUPS = 5
"""Groups of the delete-group jackknife over the other side when one side has few samples."""


def frechet_distance(
    fake: Any,
    real: Any,
    *,
    estimator: str = "debiased",
    level: float = 0.95,
    interval: Interval = "influence",
    weights: Any = None,
    reference_weights: Any = None,
) -> Score:
    """Fréchet distance (squared, as in FID tables) between two sets of features.

    ``‖μ - μ_r‖² + Tr[Σ + Σ_r - 2 (Σ Σ_r)^(1/2)]``; covariances have divisor n - 1.

    Parameters
    ----------
    fake, real : array_like of shape (n, d) or Moments
        Generated and reference features, NumPy or torch, any floating type; or their moments.
        Rows must be independent. ``Moments(..., n=None)`` is exactly known.
    estimator : {"debiased", "plugin", "infinity"}
        "debiased" removes the bias of both samples by a route chosen from the numbers of samples
        and features (named in `Score.notes`); "plugin" is the usual biased number; "infinity" is
        FD∞ as published (`frechet_infinity` has its options).
    level : float
        Coverage of the interval, in (0, 1).
    interval : {"influence", "jackknife", "bootstrap"} or Jackknife or Bootstrap
        How the interval is made. The default needs one estimate and is the one whose coverage is
        measured in docs/accuracy.md; the others recompute the estimate, for comparison.
    weights, reference_weights : array_like of shape (n,) and (m,), optional
        Non-negative weights of the rows, to any scale: importance weights, or how often a row
        stands for others. The bias is then removed to second order.

    Returns
    -------
    Score
        Squared feature units. `notes` says what the interval assumes and whether to trust it.

    Raises
    ------
    InputError
        If a shape, a type or a value is not legal: fewer than 2 samples, different numbers of
        features, NaN or infinite entries, a covariance that is not positive semidefinite.

    Notes
    -----
    Second-order expansion and influence function: docs/frechet.md. With fewer than 4 samples per
    direction: docs/few_samples.md. The root is never taken of a non-symmetric product: values are
    real at every sample size.

    References
    ----------
    .. [1] D. C. Dowson and B. V. Landau, "The Fréchet distance between multivariate normal
       distributions", J. Multivariate Analysis 12, 1982.
    .. [2] M. Heusel et al., "GANs trained by a two time-scale update rule converge to a local Nash
       equilibrium", NeurIPS 2017 (the FID).

    Examples
    --------
    >>> import numpy as np, genbounds as gb
    >>> rng = np.random.default_rng(0)
    >>> score = gb.frechet_distance(rng.normal(size=(2000, 4)), rng.normal(0.5, size=(2000, 4)))
    >>> bool(score.low < 1.0 < score.high)
    True
    """
    level = check_open_unit("level", level)
    check_choice("estimator", estimator, ESTIMATORS)
    plan = check_interval(interval)
    reference = FrechetReference(real, weights=reference_weights)
    expansion = reference.expand(fake, estimator=estimator, influences=False, weights=weights)
    if plan is not None and not (weights is None and reference_weights is None):
        raise InputError("weighted rows have the interval 'influence' only.")
    if plan is None:
        return expansion.score(level)
    samples = (_resampled_rows("fake", fake), _resampled_rows("real", real))

    def estimate(rows: Sequence[NDArray[Any] | None]) -> float:
        one, two = rows
        again = reference if two is samples[1] else FrechetReference(two)
        kept = fake if one is None else one
        return again.expand(kept, estimator=estimator, influences=False).value

    if isinstance(plan, Jackknife):
        return jackknife_score(expansion, estimate, samples, plan, level)
    for name, rows in zip(("fake", "real"), samples, strict=True):
        if rows is not None and len(rows) < FEW_RATIO * rows.shape[1]:
            raise InputError(
                f"`{name}` has {len(rows)} rows for {rows.shape[1]} features: the bootstrap "
                f"repeats rows and needs {FEW_RATIO} a feature. Use the default interval."
            )
    sides = (_empirical(given) for given in (fake, real))
    empirical = FrechetReference(next(sides))
    return bootstrap_score(expansion, estimate, samples, empirical.plugin(next(sides)), plan, level)


def _resampled_rows(name: str, x: Any) -> NDArray[Any] | None:
    """Rows to resample; None where the moments are exact."""
    if not isinstance(x, Moments):
        return check_features(name, x)
    if x.n is not None:
        raise InputError(
            f"`{name}` is given by its moments, which cannot be resampled: pass the features, or "
            "use the default interval."
        )
    return None


def _empirical(x: Any) -> Moments:
    """Exact moments of the law that puts equal weight on every row."""
    if isinstance(x, Moments):
        return x
    moments = Moments.from_features(x)
    assert moments.n is not None
    return Moments(moments.mean, moments.cov * (1.0 - 1.0 / moments.n))


def frechet_infinity(
    fake: Any, real: Any, *, level: float = 0.95, subsets: Subsets | None = None
) -> Score:
    """FD∞ as published: plug-in distances of random subsets, extrapolated linearly in 1/N.

    Parameters
    ----------
    fake : array_like of shape (n, d)
        The pool; n >= 20.
    real : array_like of shape (m, d) or Moments
        Its own bias is left in, as published.
    level : float
    subsets : Subsets, optional
        Number of sizes, smallest size, spacing, replacement, repeats.

    Returns
    -------
    Score
        `stderr` joins the sampling error of the pool and the scatter about the line.

    Raises
    ------
    InputError
        As `frechet_distance`; or if the pool is too small, or `subsets` not legal.

    References
    ----------
    .. [1] M. J. Chong and D. Forsyth, "Effectively unbiased FID and Inception Score and where to
       find them", CVPR 2020, §3.3 and §4.3.
    """
    level = check_open_unit("level", level)
    reference = FrechetReference(real)
    expansion = reference.expand(fake, estimator="infinity", subsets=subsets, influences=False)
    return expansion.score(level)


class FrechetReference:
    """A reference prepared once, against which any number of models can be scored.

    Parameters
    ----------
    real : array_like of shape (m, d) or Moments
    weights : array_like of shape (m,), optional
        Of the reference rows.

    Notes
    -----
    Holds a factor ``cov = L @ L.T`` of the reference covariance, and of those of its two random
    halves where they are needed. Each model then costs its covariance, one symmetric eigenproblem
    of size at most d and the products for its terms.
    """

    def __init__(self, real: Any, *, weights: Any = None) -> None:
        self._side = _side("real", real, weights)

    @property
    def d(self) -> int:
        """Number of features."""
        return self._side.d

    @property
    def n(self) -> int | None:
        """Reference samples; None if the moments are exactly known."""
        return self._side.n

    @property
    def moments(self) -> Moments:
        """Mean and covariance of the reference."""
        return self._side.moments

    @property
    def factor(self) -> Float:
        """L of shape (d, r) with ``cov = L @ L.T``, r the numerical rank."""
        return self._side.factor

    def plugin(self, fake: Any) -> float:
        """Plug-in distance of `fake`, biased upward; never negative."""
        return _plugin_value(self._fake(fake), self._side)

    def expand(
        self,
        fake: Any,
        *,
        estimator: str = "debiased",
        subsets: Subsets | None = None,
        influences: bool = True,
        weights: Any = None,
    ) -> Expansion:
        """Estimate with its variance and influences, before any level is chosen.

        `fake` and `estimator` are those of `frechet_distance`, `subsets` those of
        `frechet_infinity`. With ``influences=False``, for one score and no difference, a random
        part of the rows of a large sample stands for all in bias and variance (docs/frechet.md).
        `weights` are those of the generated rows.
        """
        side = self._fake(fake, weights)
        check_choice("estimator", estimator, ESTIMATORS)
        if estimator == "plugin":
            return _plugin(side, self._side, influences)
        if estimator == "infinity":
            if side.weights is not None or self._side.weights is not None:
                raise InputError("FD∞ draws equally weighted subsets: use 'debiased' with weights.")
            return _infinity(side, self._side, subsets or Subsets(), influences)
        return _debiased(side, self._side, influences)

    def _fake(self, fake: Any, weights: Any = None) -> _Side:
        side = _side("fake", fake, weights)
        check_same_dimension("fake", side.d, "real", self._side.d)
        _check_scale(side, self._side)
        return side


def _check_scale(fake: _Side, real: _Side) -> None:
    """Refuse features so large or small that powers of them, which errors consist of, overflow.

    What is rounded to zero, traces of squares below 1e-308, is at distance zero all the same.
    """
    gap = fake.mean - real.mean
    total = fake.trace + real.trace + float(gap @ gap)
    if total != 0.0 and not 1.0 / LARGEST_TRACE <= total <= LARGEST_TRACE:
        raise InputError(
            f"`fake` and `real` are of a size ({math.sqrt(total):.3g}) whose higher powers leave "
            "the range of double precision: multiply the features of both by a common number "
            "c; the distance is then c² times as large."
        )
    small, large = sorted((fake.trace, real.trace))
    if 0.0 < small < NEGLIGIBLE_TRACE * large:
        raise InputError(
            f"`fake` and `real` have variances of {fake.trace:.3g} and {real.trace:.3g} in all: "
            "beside the larger one the smaller side is constant, and its error is not to be had. "
            "Pass it as Moments(mean, zeros of shape (d, d), n)."
        )


class _Side:
    """One sample, or exact moments: mean, covariance, its factor, and its random halves."""

    def __init__(
        self,
        moments: Moments,
        rows: NDArray[Any] | None = None,
        index: NDArray[np.intp] | None = None,
        parts: tuple[_Side, ...] = (),
        weights: Float | None = None,
    ) -> None:
        self.moments = moments
        self.rows = rows
        self.index = index
        self.parts = parts
        self.weights = weights

    @property
    def n(self) -> int | None:
        return self.moments.n

    @property
    def effective(self) -> float:
        """Kish's effective number of rows, 1 / Σ w²; infinite for exact moments."""
        if self.weights is not None:
            return 1.0 / float(self.weights @ self.weights)
        return math.inf if self.n is None else float(self.n)

    @property
    def d(self) -> int:
        return self.moments.d

    @property
    def mean(self) -> Float:
        return self.moments.mean

    @cached_property
    def trace(self) -> float:
        return float(np.trace(self.moments.cov))

    @cached_property
    def factor(self) -> Float:
        """L of shape (d, r) with cov = L Lᵀ; from the rows themselves where there are few."""
        if self.rows is not None and self.n is not None and self.n <= self.d:
            if self.weights is not None:
                scale = np.sqrt(self.weights / (1.0 - float(self.weights @ self.weights)))
                return self.centred().T * scale
            return self.centred().T / math.sqrt(self.n - 1)
        return factor(self.moments.cov)

    @property
    def directions(self) -> int:
        """Dimensions that the sample has to fill: the rank of the covariance, where it shows."""
        if self.n is not None and self.n <= self.d:
            return self.d
        return max(int(self.factor.shape[1]), 1)

    def centred(self) -> Float:
        assert self.rows is not None
        rows = self.rows if self.index is None else self.rows[self.index]
        return np.array(rows, dtype=np.float64) - self.mean

    def terms(
        self,
        *,
        gap: Float,
        projection: Float,
        roots: Float,
        every_row: bool,
        bias_only: bool = False,
    ) -> SideTerms:
        assert self.n is not None
        if self.rows is None:
            return gaussian_terms(
                gap=gap, cov=self.moments.cov, projection=projection, roots=roots, n=self.n
            )
        if self.weights is not None:
            return weighted_terms(
                self.rows,
                self.weights,
                mean=self.mean,
                gap=gap,
                projection=projection,
                roots=roots,
            )
        return sample_terms(
            self.rows,
            self.index,
            mean=self.mean,
            trace=self.trace,
            gap=gap,
            projection=projection,
            roots=roots,
            every_row=every_row,
            bias_only=bias_only,
        )

    def without(self, k: int) -> _Side:
        """Every part but part `k`."""
        kept = [part for i, part in enumerate(self.parts) if i != k]
        moments = kept[0].moments
        for part in kept[1:]:
            moments = moments.merge(part.moments)
        index = np.sort(np.concatenate([part.index for part in kept if part.index is not None]))
        return _Side(moments, self.rows, index)

    def divided(self, parts: int) -> _Side:
        """Divide the same sample at random into `parts` equal groups."""
        assert self.rows is not None
        assert self.index is None
        if len(self.parts) == parts:
            return self
        return _Side(self.moments, self.rows, None, _divide("rows", self.rows, parts))


class _FewRows(_Side):
    """A sample of no more rows than features: its covariance is formed only where it is used."""

    def __init__(self, name: str, rows: NDArray[Any]) -> None:
        self.rows, self.index, self.parts, self.weights = rows, None, (), None
        with np.errstate(invalid="ignore", over="ignore"):  # `check_finite` says it better
            block: Float = np.array(rows, dtype=np.float64)
        check_finite(name, block)
        self._mean: Float = block.mean(axis=0)
        block -= self._mean
        self._centred = block

    @cached_property
    def moments(self) -> Moments:  # type: ignore[override]
        return Moments.from_features(self.rows)

    @property
    def n(self) -> int:
        return int(self._centred.shape[0])

    @property
    def d(self) -> int:
        return int(self._centred.shape[1])

    @property
    def mean(self) -> Float:
        return self._mean

    @cached_property
    def trace(self) -> float:
        return float(np.vdot(self._centred, self._centred)) / (self.n - 1)

    def centred(self) -> Float:
        return self._centred


def _moments_of(rows: NDArray[Any], index: NDArray[np.intp]) -> Moments:
    moments = Moments.empty(rows.shape[1])
    for _, block in row_blocks(rows, index):
        moments.absorb_block(block)
    return moments


def _divide(name: str, rows: NDArray[Any], parts: int) -> tuple[_Side, ...]:
    """Moments of random groups of equal size, in one pass over all rows."""
    n, d = rows.shape
    label = np.random.default_rng(PAIRING_SEED).permutation(np.arange(n) % parts)
    moments = [Moments.empty(d) for _ in range(parts)]
    for positions, block in row_blocks(rows):
        check_finite(name, block, first_row=int(positions[0]))
        for k, group in enumerate(moments):
            chosen = block[label[positions] == k]
            if chosen.size:
                group.absorb_block(chosen)
    return tuple(_Side(group, rows, np.flatnonzero(label == k)) for k, group in enumerate(moments))


def _side(name: str, x: Any, weights: Any = None) -> _Side:
    label = "weights" if name == "fake" else "reference_weights"
    if isinstance(x, Moments):
        if weights is not None:
            raise InputError(f"`{label}` are for rows; `{name}` is given by its moments.")
        _ = x.cov  # at least two samples
        return _Side(x)
    rows = check_features(name, x)
    n, d = rows.shape
    if weights is not None:
        checked = check_weights(label, weights, n)
        return _Side(weighted_moments(name, rows, checked), rows, weights=checked)
    if n <= d:
        return _FewRows(name, rows)
    if FEW_RATIO * d <= n < SPLIT_RATIO * d:  # its halves will be wanted: one pass for all
        halves = _divide(name, rows, 2)
        return _Side(halves[0].moments.merge(halves[1].moments), rows, None, halves)
    moments = Moments.empty(d)
    for positions, block in row_blocks(rows):
        check_finite(name, block, first_row=int(positions[0]))
        moments.absorb_block(block)
    return _Side(moments, rows)


def _order(side: _Side) -> tuple[float, float, float]:
    return side.trace, float(side.mean @ side.mean), math.inf if side.n is None else float(side.n)


class _Pair:
    """Generated and reference sample together: the quantities that depend on both."""

    def __init__(self, fake: _Side, real: _Side) -> None:
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
            product, _ = congruence(self.fake.moments.cov, lower)
            roots, accurate = gram_roots(product, rank=rank)
        if accurate:
            return roots
        return singular_values(self.fake.factor.T @ lower)

    @cached_property
    def plugin(self) -> float:
        value = self.gap @ self.gap + self.fake.trace + self.real.trace - 2.0 * self.roots.sum()
        return max(float(value), 0.0)

    @cached_property
    def spectrum(self) -> tuple[Float, Float, Float]:
        """Eigenvalues, ascending, and eigenvectors of Lᵀ Σ L; Σ L."""
        product, moved = congruence(self.fake.moments.cov, self.real.factor)
        values, vectors = scipy.linalg.eigh(
            product, driver="evd", check_finite=False, overwrite_a=True
        )
        return values, vectors, moved

    @cached_property
    def directions(self) -> tuple[Float, Float, Float]:
        """Positive roots s (r,), and the projections (d, r) of either side's rows to w.

        Both projections are P with Pᵀ cov P = 1, from Lᵀ Σ L = U diag(s²) Uᵀ: L U / s for the
        generated rows, Σ L U / s² for the reference rows.
        """
        values, vectors, moved = self.spectrum
        roots = np.sqrt(np.clip(values, 0.0, None))
        kept = positive_roots(roots)
        if not kept.all():
            roots, vectors = roots[kept], vectors[:, kept]
        vectors = vectors / roots
        real_projection = moved @ vectors
        real_projection /= roots
        return roots, self.real.factor @ vectors, real_projection

    def terms(self, *, every_row: bool, bias_only: bool = False) -> tuple[SideTerms, SideTerms]:
        """Second-order terms of the generated and of the reference sample."""
        fake, real = self.fake, self.real
        if fake.n is None and real.n is None:
            return EXACT, EXACT
        roots, fake_projection, real_projection = self.directions
        one = two = EXACT
        if fake.n is not None:
            one = fake.terms(
                gap=self.gap,
                projection=fake_projection,
                roots=roots,
                every_row=every_row,
                bias_only=bias_only,
            )
        if real.n is not None:
            two = real.terms(
                gap=-self.gap,
                projection=real_projection,
                roots=roots,
                every_row=every_row,
                bias_only=bias_only,
            )
        return one, two

    def gaussian_bias(self) -> float:
        """Second-order bias for Gaussian rows, of both samples."""
        return sum(
            gaussian_bias(side.trace, self.roots, side.n)
            for side in (self.fake, self.real)
            if side.n is not None
        )


@dataclass(frozen=True, slots=True)
class _Regime:
    """How many samples each side has per direction; infinite for exact moments."""

    fake: float
    real: float

    @classmethod
    def of(cls, fake: _Side, real: _Side) -> _Regime:
        directions = min(fake.directions, real.directions)
        return cls(*(side.effective / directions for side in (fake, real)))


def _expansion(
    estimator: str,
    value: float,
    fake: _Side,
    real: _Side,
    terms: tuple[SideTerms, SideTerms],
    notes: tuple[str, ...],
) -> Expansion:
    one, two = terms
    return Expansion(
        estimator=estimator,
        value=value,
        variance=one.variance,
        degrees_of_freedom=one.degrees_of_freedom,
        influence=one.influence,
        reference_variance=two.variance,
        reference_degrees_of_freedom=two.degrees_of_freedom,
        reference_influence=two.influence,
        curvature=one.curvature,
        reference_curvature=two.curvature,
        n=fake.n,
        n_reference=real.n,
        lower_limit=0.0,
        notes=notes + _size_notes(fake, real),
    )


def _size_notes(fake: _Side, real: _Side) -> tuple[str, ...]:
    notes: list[str] = []
    if fake.n is None and real.n is None:
        return ("both moments are taken as exactly known: no sampling error",)
    notes.append("interval assumes independent rows with finite eighth moments")
    for name, side in (("generated", fake), ("reference", real)):
        if side.n is None:
            notes.append(f"{name} moments are taken as exactly known")
        elif side.rows is None:
            notes.append(
                f"{name} rows not given: bias and variance use the Gaussian fourth moments"
            )
        if side.effective < 50:
            notes.append(
                f"only {side.effective:.4g} {name} samples: the interval can miss more often"
            )
    return tuple(notes)


def _same_rows(fake: _Side, real: _Side) -> bool:
    a, b = fake.rows, real.rows
    if a is None or b is None or a.shape != b.shape:
        return False
    if fake.weights is not None or real.weights is not None:
        return False
    return np.array_equal(a[:1], b[:1]) and np.array_equal(a, b)


def _plugin_value(fake: _Side, real: _Side) -> float:
    """Plug-in distance; the sides are put in order, so that swapping them changes no bit."""
    if _order(fake) > _order(real):
        fake, real = real, fake
    return _Pair(fake, real).plugin


def _plugin(fake: _Side, real: _Side, every_row: bool) -> Expansion:
    terms = _Pair(fake, real).terms(every_row=every_row)
    bias = terms[0].bias + terms[1].bias
    notes: tuple[str, ...] = ()
    if bias > 0.0:
        notes = (
            f"plug-in: bias not removed (about {bias:+.3g} to second order), "
            "so the interval is not centred on the truth",
        )
    return _expansion("plugin", _plugin_value(fake, real), fake, real, terms, notes)


def _infinity(fake: _Side, real: _Side, subsets: Subsets, every_row: bool) -> Expansion:
    if fake.rows is None or fake.n is None:
        raise InputError("`fake` must be features for the estimator 'infinity', not moments.")
    rows = fake.rows
    line = extrapolate(
        lambda index: _Pair(_Side(_moments_of(rows, index), rows, index), real).plugin,
        fake.n,
        subsets,
    )
    own, other = _Pair(fake, real).terms(every_row=every_row)
    notes = [
        f"FD∞ as published: {line.sizes.size} sizes from {line.sizes[0]} to {line.sizes[-1]}",
        "its error beyond the first order in 1/N is not covered by the interval",
    ]
    if real.n is not None:
        notes.append("the bias of the reference sample is left in, as published")
    widened = replace(own, variance=own.variance + line.variance)
    return _expansion("infinity", line.value, fake, real, (widened, other), tuple(notes))


def _debiased(fake: _Side, real: _Side, every_row: bool) -> Expansion:
    if _same_rows(fake, real):
        note = "both sides are the same rows, at distance 0 from themselves; no interval applies"
        return _expansion("debiased", 0.0, fake, real, (EXACT, EXACT), (note,))
    regime = _Regime.of(fake, real)
    if fake.weights is not None or real.weights is not None:
        return _debiased_weighted(fake, real, regime)
    if min(regime.fake, regime.real) < FEW_RATIO:
        return _debiased_few(fake, real, regime)
    pair = _Pair(fake, real)
    terms = pair.terms(every_row=every_row)
    second_order = pair.plugin - terms[0].bias - terms[1].bias
    both = ((fake, regime.fake), (real, regime.real))
    # Moments alone cannot be halved: the rest of their bias, for Gaussian rows, by the contour.
    rest = sum(
        gaussian_bias_beyond_second_order(pair.roots, side.n)
        for side, ratio in both
        if side.rows is None and side.n is not None and ratio < SPLIT_RATIO
    )
    contour = " and contour" if rest else ""
    sides = [side for side, ratio in both if _split(side, ratio)]
    if not sides:
        route = f"route: second order{contour}"
        return _expansion("debiased", second_order - rest, fake, real, terms, (route,))
    # One more order: halving the samples multiplies what is left of the bias by four.
    fakes, reals = (
        side.divided(2).parts if side in sides else (side, side) for side in (fake, real)
    )
    halves = [_Pair(*half) for half in zip(fakes, reals, strict=True)]
    value = (4.0 * second_order - _half_value(halves, every_row)) / 3.0 - rest
    route = f"route: third order, by halving{contour}"
    return _expansion("debiased", value, fake, real, terms, (route,))


def _debiased_weighted(fake: _Side, real: _Side, regime: _Regime) -> Expansion:
    """Remove the bias of weighted rows, to second order at every size."""
    pair = _Pair(fake, real)
    terms = pair.terms(every_row=True)
    notes = ["route: second order, weighted rows"]
    for name, side in (("generated", fake), ("reference", real)):
        if side.weights is not None:
            notes.append(f"the weighted {name} rows count for {side.effective:.4g} equal ones")
    ratio = min(regime.fake, regime.real)
    if ratio < WEIGHTED_RATIO:
        notes.append(
            f"unreliable: {ratio:.2g} effective rows per direction, where the second order needs "
            f"{WEIGHTED_RATIO}"
        )
    value = pair.plugin - terms[0].bias - terms[1].bias
    return _expansion("debiased", value, fake, real, terms, tuple(notes))


def _half_value(halves: list[_Pair], every_row: bool) -> float:
    """Mean over both halves of the plug-in less its second-order bias.

    For large samples only the first half pays for eigenvectors: the second differs from it in the
    Gaussian part of the bias, a function of the eigenvalues, and takes the rest from it.
    """
    costly = not every_row and any(
        side.n is not None and side.n > PART_ROWS and side.n * side.d**2 > PART_WORK
        for side in (halves[0].fake, halves[0].real)
    )
    values, rest = [], 0.0
    for k, half in enumerate(halves):
        if k == 0 or not costly:
            bias = sum(term.bias for term in half.terms(every_row=every_row, bias_only=True))
            if costly:
                rest = bias - half.gaussian_bias()
        else:
            bias = half.gaussian_bias() + rest
        values.append(half.plugin - bias)
    return sum(values) / len(values)


def _split(side: _Side, ratio: float) -> bool:
    return side.rows is not None and ratio < SPLIT_RATIO


def _debiased_few(fake: _Side, real: _Side, regime: _Regime) -> Expansion:
    """Debias where one side, or both, has few samples per direction: random-matrix routes."""
    few, other = (fake, real) if regime.fake <= regime.real else (real, fake)
    whole = _few(few, other)
    own = SideTerms(
        bias=0.0,
        variance=whole.variance,
        degrees_of_freedom=math.inf if few.n is None else few.n - 1.0,
        influence=whole.influence,
    )
    doubt = "" if whole.reliable else "unreliable: "
    notes = (f"route: {whole.route}", *(doubt + note for note in whole.notes))
    ratio = max(regime.fake, regime.real)
    if ratio < FEW_RATIO:
        value, rest, extra = _both_few(few, other, whole, ratio)
    else:
        value, rest = _other_removed(few, other, whole)
        extra = ()
    terms = (own, rest) if few is fake else (rest, own)
    return _expansion("debiased", value, fake, real, terms, notes + extra)


def _other_removed(few: _Side, other: _Side, whole: FewSamples) -> tuple[float, SideTerms]:
    """Remove and measure what the well-sampled side's noise does to the result.

    A delete-group jackknife over its rows needs no formula; from moments alone, the Gaussian terms.
    """
    if other.n is None:
        return whole.value, EXACT
    if other.rows is None:
        pair = _Pair(few, other)
        roots, _, projection = pair.directions
        rest = other.terms(gap=-pair.gap, projection=projection, roots=roots, every_row=True)
        return whole.value - rest.bias, rest
    divided = other.divided(GROUPS)
    without = np.array([_few(few, divided.without(k)).value for k in range(GROUPS)])
    return GROUPS * whole.value - (GROUPS - 1) * float(without.mean()), SideTerms(
        bias=0.0,
        variance=(GROUPS - 1) ** 2 / GROUPS * float(np.var(without, ddof=1)),
        degrees_of_freedom=GROUPS - 1.0,
        influence=None,
    )


def _both_few(
    few: _Side, other: _Side, whole: FewSamples, ratio: float
) -> tuple[float, SideTerms, tuple[str, ...]]:
    """Remove either side's bias as if it were alone; widen by what that leaves.

    The rest is positive; measured at equal sizes (docs/few_samples.md) it is 5 % of the removed
    bias at three rows per direction, 10 % at two, 18 % at one, and most of it below.
    """
    mirrored = _few(other, few)
    plugin = _Pair(few, other).plugin
    value = whole.value + mirrored.value - plugin
    removed = max(plugin - value, 0.0)
    unresolved = removed * 0.2 / ratio if ratio >= 1.0 else max(removed, value)
    rest = SideTerms(
        bias=0.0,
        variance=mirrored.variance + unresolved**2,
        degrees_of_freedom=math.inf if other.n is None else other.n - 1.0,
        influence=mirrored.influence,
    )
    note = (
        "unreliable: both samples have fewer than four rows per direction; a positive bias of "
        f"about {unresolved:.2g} may be left, by which the interval is widened"
    )
    return value, rest, (note,)


def _few(few: _Side, other: _Side) -> FewSamples:
    assert few.n is not None
    gap = few.mean - other.mean
    if few.rows is None:
        return few_samples_from_moments(
            gap=gap,
            cov=few.moments.cov,
            lower=other.factor,
            n=few.n,
            reference_trace=other.trace,
        )
    centred = few.centred()
    return few_samples(centred, centred @ other.factor, gap=gap, reference_trace=other.trace)
