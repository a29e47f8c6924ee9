"""The estimators of the Fréchet distance: plug-in, FD∞, and every route of the debiased one."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from genbounds.estimators._expansion import Expansion
from genbounds.estimators._extrapolation import Subsets, extrapolate
from genbounds.estimators.few_samples._both_samples import BothFew, few_samples_both
from genbounds.estimators.few_samples._one_sample import (
    FewSamples,
    few_samples,
    few_samples_from_moments,
)
from genbounds.estimators.frechet._pair import Pair, plugin_value, same_rows
from genbounds.estimators.frechet._sample import FEW_RATIO, SPLIT_RATIO, Sample, moments_of
from genbounds.estimators.frechet._terms import (
    EXACT,
    PART_ROWS,
    PART_WORK,
    SideTerms,
    gaussian_bias,
    gaussian_bias_beyond_second_order,
)
from genbounds.validation import Float, InputError

HEAVY_RATIO = 2.5
"""Rows per direction that the expansion needs when heavy tails or rare features are allowed for: a
bias k times that of Gaussian rows makes n rows as good as n/k."""

WEIGHTED_RATIO = 8
"""Effective samples per direction from which the second order is enough on its own."""

FIT_RATIO = 8
"""Below this many samples per direction of one side, and with the other side better sampled, ..."""

FIT_DIRECTIONS = 100
"""... from so many directions on, the random-matrix routes still err less than the expansion, in
every law tried (docs/few_samples.md): its remainder falls with the rows per direction, the standard
error with the number of directions as well."""

HALVING_NOISE = 1 / 9
"""What halving adds to the variance of the quadratic part, as a share of it: (4 whole - halves)/3
weighs the pairs of rows within a half by 2/3 and the others by 4/3, squared 10/9 on average."""

GROUPS = 5
"""Groups of the delete-group jackknife over the other side when one side has few samples."""


@dataclass(frozen=True, slots=True)
class _Regime:
    """How many samples each side has per direction; infinite for exact moments."""

    fake: float
    real: float

    @classmethod
    def of(cls, fake: Sample, real: Sample) -> _Regime:
        directions = min(fake.directions, real.directions)
        return cls(*(side.effective / directions for side in (fake, real)))

    @property
    def fewest(self) -> float:
        """Of the side with fewer."""
        return min(self.fake, self.real)

    @property
    def most(self) -> float:
        """Of the side with more."""
        return max(self.fake, self.real)

    def by_number(self, fake: Sample, real: Sample) -> tuple[Sample, Sample]:
        """Return both samples, the one with fewer per direction first."""
        return (fake, real) if self.fake <= self.real else (real, fake)


def _expansion(
    estimator: str,
    value: float,
    fake: Sample,
    real: Sample,
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


def _size_notes(fake: Sample, real: Sample) -> tuple[str, ...]:
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


def plugin(fake: Sample, real: Sample, every_row: bool) -> Expansion:
    """Return the biased value with the interval of its linear part."""
    terms = Pair(fake, real).terms(every_row=every_row)
    bias = terms[0].bias + terms[1].bias
    notes: tuple[str, ...] = ()
    if bias > 0.0:
        notes = (
            f"plug-in: bias not removed (about {bias:+.3g} to second order), "
            "so the interval is not centred on the truth",
        )
    return _expansion("plugin", plugin_value(fake, real), fake, real, terms, notes)


def infinity(fake: Sample, real: Sample, subsets: Subsets, every_row: bool) -> Expansion:
    """FD∞: the generated rows extrapolated in 1/N, the reference as it is."""
    if fake.rows is None or fake.n is None:
        raise InputError("`fake` must be features for the estimator 'infinity', not moments.")
    rows, n = fake.rows, fake.n
    pair = Pair(fake, real)
    own, other = pair.terms(every_row=every_row)

    def score(index: NDArray[np.intp]) -> float:
        if index.size == n and not subsets.replace:
            return pair.plugin
        return Pair(Sample(moments_of(fake, index), rows, index), real).plugin

    line = extrapolate(score, n, subsets)
    notes = [
        f"FD∞ as published: {line.sizes.size} sizes from {line.sizes[0]} to {line.sizes[-1]}",
        "its error beyond the first order in 1/N is not covered by the interval",
    ]
    if real.n is not None:
        notes.append("the bias of the reference sample is left in, as published")
    widened = replace(own, variance=own.variance + line.variance)
    return _expansion("infinity", line.value, fake, real, (widened, other), tuple(notes))


def debiased(fake: Sample, real: Sample, every_row: bool) -> Expansion:
    """Remove the bias of both samples by the route that their numbers of rows call for."""
    if same_rows(fake, real):
        note = "both sides are the same rows, at distance 0 from themselves; no interval applies"
        return _expansion("debiased", 0.0, fake, real, (EXACT, EXACT), (note,))
    regime = _Regime.of(fake, real)
    if fake.weights is not None or real.weights is not None:
        return _debiased_weighted(fake, real, regime)
    if regime.fewest < FEW_RATIO:
        return _debiased_few(fake, real, regime, every_row)
    if _fit_first(fake, real, regime):
        found = _debiased_few(fake, real, regime, every_row)
        if not found.doubts:
            return found
    pair = Pair(fake, real)
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
    doubts = _heavy_tails(pair, terms)
    sides = [side for side, ratio in both if _split(side, ratio)]
    if not sides:
        route = f"route: second order{contour}"
        return _expansion("debiased", second_order - rest, fake, real, terms, (route, *doubts))
    # One more order: halving the samples multiplies what is left of the bias by four.
    fakes, reals = (
        side.divided(2).parts if side in sides else (side, side) for side in (fake, real)
    )
    halves = [Pair(*half) for half in zip(fakes, reals, strict=True)]
    value = (4.0 * second_order - _half_value(halves, every_row)) / 3.0 - rest
    one, two = (
        _halved(side_terms, mixed=len(sides) == 2) if side in sides else side_terms
        for side, side_terms in zip((fake, real), terms, strict=True)
    )
    route = f"route: third order, by halving{contour}"
    return _expansion("debiased", value, fake, real, (one, two), (route, *doubts))


def _heavy_tails(pair: Pair, terms: tuple[SideTerms, SideTerms]) -> tuple[str, ...]:
    """Doubt the expansion where fourth moments make its bias much larger than Gaussian rows'."""
    notes = []
    for name, side, one in zip(
        ("generated", "reference"), (pair.fake, pair.real), terms, strict=True
    ):
        if side.rows is None or side.n is None:
            continue
        gaussian = gaussian_bias(0.0, pair.directions[0], side.n)
        excess = (one.bias - side.trace / side.n) / gaussian if gaussian > 0.0 else 1.0
        ratio = side.n / max(excess, 1.0) / max(pair.directions[0].size, 1)
        if ratio < HEAVY_RATIO:
            notes.append(
                f"unreliable: heavy tails or rare features make the bias {excess:.2g} times that "
                f"of Gaussian rows, so that {side.n} {name} rows are as good as {ratio:.2g} per "
                f"direction, where the expansion needs {HEAVY_RATIO}"
            )
    return tuple(notes)


def _halved(terms: SideTerms, *, mixed: bool) -> SideTerms:
    """Add the noise of halving; the `mixed` pairs are weighed unevenly if both sides are halved."""
    uneven = terms.quadratic_variance + (terms.mixed_variance if mixed else 0.0)
    return replace(terms, variance=terms.variance + HALVING_NOISE * uneven)


def _debiased_weighted(fake: Sample, real: Sample, regime: _Regime) -> Expansion:
    """Remove the bias of weighted rows, to second order at every size."""
    pair = Pair(fake, real)
    terms = pair.terms(every_row=True)
    notes = ["route: second order, weighted rows"]
    for name, side in (("generated", fake), ("reference", real)):
        if side.weights is not None:
            notes.append(f"the weighted {name} rows count for {side.effective:.4g} equal ones")
    ratio = regime.fewest
    if ratio < WEIGHTED_RATIO:
        notes.append(
            f"unreliable: {ratio:.2g} effective rows per direction, where the second order needs "
            f"{WEIGHTED_RATIO}"
        )
    value = pair.plugin - terms[0].bias - terms[1].bias
    return _expansion("debiased", value, fake, real, terms, tuple(notes))


def _half_value(halves: list[Pair], every_row: bool) -> float:
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
            bias = sum(term.bias for term in half.terms_alone(every_row=every_row, bias_only=True))
            if costly:
                rest = bias - half.gaussian_bias()
        else:
            bias = half.gaussian_bias() + rest
        values.append(half.plugin - bias)
    return sum(values) / len(values)


def _split(side: Sample, ratio: float) -> bool:
    return side.rows is not None and ratio < SPLIT_RATIO


def _fit_first(fake: Sample, real: Sample, regime: _Regime) -> bool:
    few, other = regime.by_number(fake, real)
    wide = min(fake.directions, real.directions) >= FIT_DIRECTIONS
    known = other.rows is not None or regime.most >= FIT_RATIO
    return few.rows is not None and regime.fewest < FIT_RATIO and wide and known


def _debiased_few(fake: Sample, real: Sample, regime: _Regime, every_row: bool) -> Expansion:
    """Debias where one side, or both, has few samples per direction: random-matrix routes."""
    few, other = regime.by_number(fake, real)
    if few.rows is not None and other.rows is not None and regime.most < FIT_RATIO:
        found = _debiased_both(few, other, fake, real)
        if found is not None:
            return found
    spectrum = _known_spectrum(few, other) if regime.most >= FEW_RATIO else None
    whole = _few(few, other, spectrum)
    own = SideTerms(
        bias=0.0,
        variance=whole.variance,
        degrees_of_freedom=math.inf if few.n is None else few.n - 1.0,
        influence=whole.influence,
    )
    notes = _route_notes(whole)
    if regime.most < FEW_RATIO:
        value, rest, extra = _one_by_one(few, other, whole, regime.most)
    else:
        value, rest = _other_removed(few, other, whole, spectrum)
        if other.rows is not None and regime.fewest >= FEW_RATIO:
            # The expansion holds for the other side, and knows its noise row by row.
            rest = Pair(fake, real).terms_of(other, every_row=every_row)
        extra = ()
    terms = (own, rest) if few is fake else (rest, own)
    return _expansion("debiased", value, fake, real, terms, notes + extra)


def _known_spectrum(few: Sample, other: Sample) -> Float | None:
    """Eigenvalues of the other side's covariance, where few rows do not show all directions."""
    assert few.n is not None
    return other.spectrum if few.n <= other.factor.shape[1] else None


def _route_notes(found: FewSamples | BothFew) -> tuple[str, ...]:
    doubt = "" if found.reliable else "unreliable: "
    return (f"route: {found.route}", *(doubt + note for note in found.notes))


def _other_removed(
    few: Sample, other: Sample, whole: FewSamples, spectrum: Float | None
) -> tuple[float, SideTerms]:
    """Remove and measure what the well-sampled side's noise does to the result.

    A delete-group jackknife over its rows needs no formula; from moments alone, the Gaussian terms.
    """
    if other.n is None:
        return whole.value, EXACT
    if other.rows is None:
        rest = Pair(few, other).terms_of(other, every_row=True)
        return whole.value - rest.bias, rest
    divided = other.divided(GROUPS)
    without = np.array([_few(few, divided.without(k), spectrum).value for k in range(GROUPS)])
    return GROUPS * whole.value - (GROUPS - 1) * float(without.mean()), SideTerms(
        bias=0.0,
        variance=(GROUPS - 1) ** 2 / GROUPS * float(np.var(without, ddof=1)),
        degrees_of_freedom=GROUPS - 1.0,
        influence=None,
    )


def _debiased_both(few: Sample, other: Sample, fake: Sample, real: Sample) -> Expansion | None:
    """Debias two samples that are both few by the equations of both at once."""
    one, two = few.centred(), other.centred()
    found = few_samples_both(
        (one, two),
        (few.factor, other.factor),
        gap=few.mean - other.mean,
        directions=min(fake.directions, real.directions),
    )
    if found is None:
        return None
    terms = tuple(
        SideTerms(
            bias=0.0, variance=variance, degrees_of_freedom=len(rows) - 1.0, influence=influence
        )
        for rows, variance, influence in zip(
            (one, two), found.variances, found.influences, strict=True
        )
    )
    ordered = (terms[0], terms[1]) if few is fake else (terms[1], terms[0])
    return _expansion("debiased", found.value, fake, real, ordered, _route_notes(found))


def _one_by_one(
    few: Sample, other: Sample, whole: FewSamples, ratio: float
) -> tuple[float, SideTerms, tuple[str, ...]]:
    """Remove either side's bias as if it were alone, where moments are all that is known of one.

    Then widen by what that leaves.

    The rest is positive; measured at equal sizes (docs/few_samples.md) it is 5 % of the removed
    bias at three rows per direction, 10 % at two, 18 % at one, and most of it below.
    """
    mirrored = _few(other, few)
    plugin = Pair(few, other).plugin
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


def _few(few: Sample, other: Sample, spectrum: Float | None = None) -> FewSamples:
    """Debias one side; `spectrum`: eigenvalues of the other's covariance, where they are known."""
    assert few.n is not None
    gap = few.mean - other.mean
    if few.rows is None:
        return few_samples_from_moments(
            gap=gap,
            cov=few.moments.cov,
            lower=other.factor,
            n=few.n,
            reference_trace=other.trace,
            reference_spectrum=spectrum,
        )
    centred = few.centred()
    return few_samples(
        centred,
        centred @ other.factor,
        gap=gap,
        reference_trace=other.trace,
        reference_spectrum=spectrum,
    )
