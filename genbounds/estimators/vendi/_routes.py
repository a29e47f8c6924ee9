"""The methods of the Vendi score: each makes an expansion of a job."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy  # its submodules are loaded at their first use

from genbounds.estimators._expansion import Expansion, Law
from genbounds.estimators.kernels._kernels import KernelRows
from genbounds.estimators.kernels._rke import MINIMUM, Frobenius, frobenius
from genbounds.estimators.vendi._ceiling import TIE_ROWS, TIE_SEED, TieLaw, ceiling_law, tie_excess
from genbounds.estimators.vendi._few_samples import FittedScore, fitted_score
from genbounds.estimators.vendi._spectrum import (
    FeatureRows,
    Spectrum,
    fourier_features,
    from_features,
    from_gram,
    lanczos_entropy,
    leading,
    nystrom,
)
from genbounds.estimators.vendi._terms import (
    PAIRING_SEED,
    Terms,
    leading_group,
    log_vendi,
    spectral_bias,
    spectral_terms,
)
from genbounds.validation import Float, InputError

DENSE_ROWS = 3000
"""Up to so many rows all eigenvectors are computed; above, leading ones or those of a subsample."""

TERM_ROWS = 1500
"""Rows of the subsample that measures the standard error where eigenvectors are out of reach."""

RESOLVED_RATIO = 2
"""Samples per feature dimension from which the sample's own spectrum of order below 2 is debiased;
from fewer a spectrum is fitted."""

FITTED_ORDER = 0.5
"""Least order of which a fitted spectrum says enough: below, what counts is not seen."""

SPLIT_RATIO, THIRD = 8, 0.6
SMALL_ORDER_RATIO, SMALL_ORDER_THIRD = 16, 1.0
NEGLIGIBLE = 0.1
"""From so many samples per direction on, the bias of third order is left in where it is below this
share of a standard error. It is taken to be THIRD of the second-order bias over the samples per
direction, the most that was measured from order 1 on (experiments/vendi/third_order.py, 0.64 on one
law); below order 1 it can be more."""

NEIGHBOURS = 64
"""Eigenvalues beyond a cut that are taken one by one."""

AT_CEILING = (
    "the score is near the largest that the feature dimension allows, where its law is not normal: "
    "the interval is that of a noncentral chi-square"
)

LANDMARKS_PER_COMPONENT = 5
LANCZOS_PROBES, LANCZOS_STEPS = 64, 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a route needs to know."""

    rows: KernelRows
    order: float
    plugin: bool
    components: int
    seed: int
    every_row: bool

    @property
    def n(self) -> int:
        n: int = self.rows.n
        return n

    def expansion(
        self,
        name: str,
        value: float,
        variance: float,
        *,
        influence: Float | None = None,
        limit: float | None = None,
        degrees: float | None = None,
        law: Law | None = None,
        notes: tuple[str, ...] = (),
    ) -> Expansion:
        return Expansion(
            estimator=name,
            value=value,
            variance=variance,
            degrees_of_freedom=self.n - 1.0 if degrees is None else degrees,
            influence=influence,
            n=self.n,
            law=law,
            log_scale=True,
            lower_limit=0.0,
            upper_limit=math.inf if limit is None else math.log(limit),
            higher_is_better=True,
            notes=notes,
        )


def _exact(job: Job) -> Expansion:
    rows, n = job.rows, job.n
    if job.order == 2.0 and n >= MINIMUM:
        return replace(_ustat(job), estimator="vendi, exact")
    dimension = rows.dimension
    features = _features(job)
    resolved = job.order >= 2.0 or (
        dimension is not None and n >= RESOLVED_RATIO * min(dimension, n)
    )
    refusal = ""
    if not resolved and _can_fit(job):
        fit = fitted_score(rows, job.order)
        if not fit.refusal:
            return _fitted(job, fit)
        refusal = f"; {fit.refusal}, so no spectrum is fitted"
    spectrum: Spectrum | None = None
    gram: Float | None = None
    if features is not None and features.d < n:
        gram = features.gram()
        spectrum, ratio = from_features(features, gram), n / features.d
    elif n <= DENSE_ROWS:
        spectrum, ratio = from_gram(rows.matrix()), 1.0
    if spectrum is not None:
        whole = _spectrum_terms(spectrum, n, job.order, every_row=job.every_row)
    elif math.isinf(job.order):
        spectrum, _ = leading(rows, 1, job.seed)
        whole, ratio = _spectrum_terms(spectrum, n, job.order), math.inf
    else:
        whole, ratio = _large_terms(rows, job.order), math.inf
    if not resolved:
        why = (
            "the feature dimension is infinite or not known"
            if dimension is None
            else f"{n} samples for {dimension} feature dimensions{refusal}"
        )
        note = (
            f"empirical score of {n} samples ({why}): it grows with n, so it compares only with "
            "scores of equally many samples, and the interval is for those; "
            "method 'truncated' or order 2 have a limit"
        )
        return job.expansion(
            f"vendi, empirical at n={n}",
            whole.value,
            whole.variance,
            influence=_full(whole, n),
            notes=(note,),
        )
    if math.isinf(job.order) and spectrum is not None and not job.plugin:
        count, tie_variance = leading_group(spectrum.coordinates, spectrum.values, n)
        if count > 1:
            return _tied(job, spectrum, count, tie_variance)
    value, variance, notes = whole.value, whole.variance, tuple[str, ...]()
    law: Law | None = None
    if not job.plugin:
        value -= whole.bias
        notes = ("route: second order",)
        if _third_order_counts(job.order, ratio, whole) and n >= 8 * MINIMUM:
            value, added = _halved(job, features, gram, value, whole.noise)
            variance += added
            notes = ("route: third order, by halving",)
        if dimension is not None and math.isfinite(job.order):
            law = ceiling_law(
                value=value,
                bias=whole.bias,
                second=whole.second,
                ceiling=math.log(dimension),
                n=n,
            )
    return job.expansion(
        "vendi, exact",
        value,
        variance,
        influence=_full(whole, n),
        limit=dimension,
        law=law,
        notes=notes + (() if law is None else (AT_CEILING,)),
    )


def _third_order_counts(order: float, ratio: float, whole: Terms) -> bool:
    least, share = (SPLIT_RATIO, THIRD) if order >= 1.0 else (SMALL_ORDER_RATIO, SMALL_ORDER_THIRD)
    third = share * abs(whole.bias) / ratio
    return ratio < least or third > NEGLIGIBLE * math.sqrt(whole.variance)


def _can_fit(job: Job) -> bool:
    dimension = job.rows.dimension
    return (
        not job.plugin
        and dimension is not None
        and job.order >= FITTED_ORDER
        and min(job.n, dimension) <= DENSE_ROWS
        and (job.n <= dimension or job.rows.features() is not None)
    )


def _fitted(job: Job, fit: FittedScore) -> Expansion:
    dimension = job.rows.dimension
    notes: tuple[str, ...] = (
        "route: spectrum fit",
        f"few samples: {job.n} for {dimension} feature dimensions; the score is that of a smooth "
        "spectrum fitted to the sample's (docs/vendi.md, Few samples)",
    )
    if fit.unequal:
        notes += (
            "the rows may lie in subspaces of their own, of which the fit sees too little: the "
            "interval is widened by all of the bias removed",
        )
    return job.expansion(
        "vendi, exact",
        fit.value,
        fit.variance,
        influence=fit.influence,
        limit=dimension,
        notes=notes,
    )


def _tied(job: Job, spectrum: Spectrum, count: int, variance: float) -> Expansion:
    """Order ∞ where the largest eigenvalue is not alone.

    If all of the group are equal, their mean estimates it; if not, it is at most the largest seen,
    which is biased upward. The interval spans both.
    """
    values = spectrum.values[:count]
    high, low = -math.log(float(values.mean())), -math.log(float(values[0]))
    rng = np.random.default_rng(TIE_SEED)
    index = np.sort(rng.choice(job.n, min(job.n, TIE_ROWS), replace=False))
    parts = [block[:, :count] for _, block in spectrum.coordinates(index)]
    rows = np.concatenate(parts).astype(np.float64, copy=False)
    excess = tie_excess(rows / np.sqrt((rows**2).mean(axis=0)))
    own = float(np.var(rows[:, 0] ** 2, ddof=1)) / float(values[0]) ** 2 / job.n
    notes = (
        f"{values.size} eigenvalues cannot be told from the largest: the value lies midway between "
        "all of them equal and the largest as it is; the interval covers both",
    )
    return job.expansion(
        "vendi, exact",
        (high + low) / 2.0,
        variance + ((high - low) / 2.0) ** 2,
        limit=job.rows.dimension,
        law=TieLaw(
            largest=float(values[0]),
            stderr=math.sqrt(own),
            excess=excess * math.sqrt(len(rows) / job.n),
            degrees=job.n - 1.0,
        ),
        notes=notes,
    )


def _features(job: Job) -> FeatureRows | None:
    """Feature map, with products in float32 where the rows are and no power of λ below one is."""
    if job.rows.name == "cosine":
        rows = FeatureRows(job.n, job.rows.width, job.rows.dtype, job.rows.unit_rows)
    else:
        features = job.rows.features()
        if features is None:
            return None
        rows = FeatureRows.of(features)
    return rows if job.order >= 1.0 else rows.double()


def _full(terms: Terms, n: int) -> Float | None:
    return terms.influence if terms.influence.size == n else None


def _spectrum_terms(
    spectrum: Spectrum, n: int, order: float, kept: int | None = None, *, every_row: bool = True
) -> Terms:
    spectrum = _as_far_as_it_counts(spectrum, order, kept)
    return spectral_terms(
        spectrum.coordinates, spectrum.values, n=n, order=order, kept=kept, every_row=every_row
    )


def _as_far_as_it_counts(spectrum: Spectrum, order: float, kept: int | None = None) -> Spectrum:
    """Leave out what lies far beyond a cut, which acts through its sum alone."""
    cut = 1 if math.isinf(order) and kept is None else kept
    return spectrum if cut is None else spectrum.head(2 * cut + NEIGHBOURS)


def _features_terms(
    features: FeatureRows, order: float, kept: int | None = None, *, every_row: bool
) -> Terms:
    spectrum = from_features(features)
    return _spectrum_terms(spectrum, features.n, order, kept, every_row=every_row)


def _gram_terms(rows: KernelRows, order: float, kept: int | None = None) -> Terms:
    return _spectrum_terms(from_gram(rows.matrix()), rows.n, order, kept)


def _large_terms(rows: KernelRows, order: float) -> Terms:
    """All eigenvalues, with bias and variance carried over from a subsample."""
    part = _subsample(rows)
    terms = _gram_terms(part, order)
    matrix = rows.matrix(rows.dtype if order >= 1.0 else np.float64)
    # The transpose is in LAPACK's order, so that no copy is made.
    values = scipy.linalg.eigvalsh(matrix.T, check_finite=False, overwrite_a=True)[::-1]
    values = values.astype(np.float64) / rows.n
    return _scaled(terms, log_vendi(values, order), part.n / rows.n)


def _subsample(rows: KernelRows) -> KernelRows:
    if rows.n <= TERM_ROWS:
        return rows
    rng = np.random.default_rng(PAIRING_SEED)
    return rows.subset(np.sort(rng.choice(rows.n, TERM_ROWS, replace=False)))


def _scaled(terms: Terms, value: float, ratio: float) -> Terms:
    return replace(
        terms,
        value=value,
        bias=terms.bias * ratio,
        variance=terms.variance * ratio,
        second=terms.second * ratio**2,
    )


def _halves(n: int) -> list[Any]:
    shuffled = np.random.default_rng(PAIRING_SEED).permutation(n)
    return [np.sort(shuffled[k::2]) for k in (0, 1)]


def _halved(
    job: Job, features: FeatureRows | None, gram: Float | None, value: float, noise: float
) -> tuple[float, float]:
    """One more order: halving the sample multiplies what is left of the bias by four.

    Returns the value, and what parts of the rows add to its variance beyond `noise`, their share in
    that of `value`.
    """
    rest, added = 0.0, 7.0 / 9.0 * noise
    for whole, n in _half_spectra(job, features, gram):
        spectrum = _as_far_as_it_counts(whole, job.order)
        plugin, bias, own = spectral_bias(
            spectrum.coordinates, spectrum.values, n=n, order=job.order, every_row=job.every_row
        )
        rest += (plugin - bias) / 2.0
        added += own / 36.0
    return (4.0 * value - rest) / 3.0, added


def _half_spectra(
    job: Job, features: FeatureRows | None, gram: Float | None
) -> Iterator[tuple[Spectrum, int]]:
    halves = _halves(job.n)
    if features is None:
        for half in halves:
            yield from_gram(job.rows.subset(half).matrix()), half.size
        return
    one, two = (features.subset(half) for half in halves)
    if gram is None or two.n <= features.d:
        for part in (one, two):
            yield from_features(part), part.n
        return
    first = one.gram()
    yield from_features(one, first), one.n
    yield from_features(two, (features.n * gram - one.n * first) / two.n), two.n


def _truncated(job: Job) -> Expansion:
    t, n = job.components, job.n
    notes: tuple[str, ...] = ()
    _enough(job, t)
    features = _features(job)
    if features is not None and features.d < n:
        spectrum = from_features(features)
    elif n <= DENSE_ROWS:
        spectrum = from_gram(job.rows.matrix())
    else:
        spectrum, residual = leading(job.rows, t, job.seed)
        notes += (f"leading eigenpairs by block Krylov, largest residual {residual:.1g}",)
    return _truncated_expansion(job, spectrum, f"vendi, truncated at t={t}", notes)


def _enough(job: Job, t: int) -> None:
    if not t < job.n:
        raise InputError(
            f"`components` must be below the number of samples; got {t} for {job.n}. "
            "Keep fewer eigenvalues, or draw more samples."
        )


def _truncated_expansion(
    job: Job, spectrum: Spectrum, name: str, notes: tuple[str, ...]
) -> Expansion:
    t, n = job.components, job.n
    kept = min(t, spectrum.values.size)
    if kept < t:
        notes += (f"only {kept} eigenvalues are positive; the others of the {t} kept are 0",)
    terms = _spectrum_terms(
        spectrum, n, job.order, t if kept == t else None, every_row=job.every_row
    )
    value, variance = terms.value, terms.variance
    if not job.plugin:
        value -= terms.bias
        notes += ("route: second order",)
    if n < 10 * t:
        variance += terms.bias**2 / 4.0
        notes += (
            f"n is small for it: {n} samples for {t} eigenvalues, fewer than ten each; bias can be "
            "left, so the interval is widened by half of what was removed",
        )
    return job.expansion(name, value, variance, influence=_full(terms, n), limit=t, notes=notes)


def _nystrom(job: Job) -> Expansion:
    t, n = job.components, job.n
    _enough(job, t)
    landmarks = min(LANDMARKS_PER_COMPONENT * t, n)
    spectrum, trace = nystrom(job.rows, landmarks, job.seed)
    note = (
        f"{landmarks} landmarks capture {trace:.1%} of the trace; the leading {t} eigenvalues "
        "are lifted to sum to one (V24, Def. 2), which keeps the score meaningful; "
        f"each eigenvalue is low by at most {1.0 - trace:.2g}, all together, and the interval does "
        "not cover that"
    )
    return _truncated_expansion(job, spectrum, f"vendi, nystrom, truncated at t={t}", (note,))


def _fkea(job: Job) -> Expansion:
    t, n, rows = job.components, job.n, job.rows
    if rows.name not in {"rbf", "laplace"}:
        raise InputError(
            f"method 'fkea' needs a shift-invariant kernel ('rbf' or 'laplace'); got {rows.name!r}."
        )
    features = fourier_features(rows, t, job.seed)
    if job.order < 1.0:
        features = features.double()
    terms = _features_terms(features, job.order, every_row=job.every_row)
    value, notes = terms.value, tuple[str, ...]()
    if not job.plugin and (job.order >= 2.0 or n >= RESOLVED_RATIO * 2 * t):
        value -= terms.bias
        notes = ("route: second order",)
    elif not job.plugin:
        notes = (
            f"n is small for it: {n} samples for {2 * t} feature dimensions, fewer than two each, "
            "so that bias is left in: compare only with scores of equally many samples",
        )
    notes += (
        f"score of the kernel made of these {t} frequencies, to which the interval is conditional; "
        "the kernel's own score is larger",
    )
    return job.expansion(
        f"vendi, fkea with {t} frequencies, seed {job.seed}",
        value,
        terms.variance,
        influence=_full(terms, n),
        limit=2 * t,
        notes=notes,
    )


def _lanczos(job: Job) -> Expansion:
    rows, n = job.rows, job.n
    if math.isinf(job.order):
        raise InputError("method 'lanczos' is for finite orders; order inf needs one eigenvalue.")
    part = _subsample(rows)
    terms = _gram_terms(part, job.order)
    estimate = lanczos_entropy(
        rows,
        order=job.order,
        deflated=min(job.components, n // 4),
        probes=LANCZOS_PROBES,
        steps=min(LANCZOS_STEPS, n),
        seed=job.seed,
    )
    variance = terms.variance * part.n / n + estimate.stderr**2 + estimate.bracket**2
    notes = (
        f"empirical score of {n} samples: it compares only with scores of equally many samples",
        f"error of the log score from {LANCZOS_PROBES} probes {estimate.stderr:.2g}, from "
        f"quadrature {estimate.bracket:.2g}, both in the interval",
    )
    return job.expansion(f"vendi, empirical at n={n}", estimate.value, variance, notes=notes)


def _ustat(job: Job) -> Expansion:
    if job.order != 2.0:
        raise InputError(f"method 'ustat' is for order 2; got order {job.order:g}.")
    if job.n < MINIMUM:
        raise InputError(f"method 'ustat' needs at least {MINIMUM} samples; got {job.n}.")
    square = frobenius(job.rows)
    value = square.plugin if job.plugin else square.value
    if not value > 0.0:
        raise InputError(
            "`x` has no two rows with a positive kernel value: its RKE cannot be told from "
            "infinity. Widen the bandwidth or draw more samples."
        )
    return _rke_expansion(job, square, value)


def _rke_expansion(job: Job, square: Frobenius, value: float) -> Expansion:
    relative = square.variance / value**2
    log_value = -math.log(value)
    notes: tuple[str, ...] = ()
    law: Law | None = None
    if not job.plugin:
        log_value -= relative / 2.0  # E log U falls short of log E U by that
        notes = ("route: U-statistic",)
        if job.rows.dimension is not None:
            law = ceiling_law(
                value=log_value,
                bias=(1.0 - 1.0 / value) / job.n,
                second=square.second / value**2,
                ceiling=math.log(job.rows.dimension),
                n=job.n,
            )
            notes += () if law is None else (AT_CEILING,)
    if relative > 0.25:
        notes += (
            f"n is small for it: relative error {math.sqrt(relative):.0%} of E k(x, x')²; "
            "the interval on the log scale can miss more often",
        )
    return job.expansion(
        "vendi, ustat",
        log_value,
        relative,
        influence=-2.0 * (square.projection - square.value) / value,
        limit=job.rows.dimension,
        law=law,
        notes=notes,
    )


ROUTES: dict[str, Callable[[Job], Expansion]] = {
    "exact": _exact,
    "truncated": _truncated,
    "nystrom": _nystrom,
    "fkea": _fkea,
    "lanczos": _lanczos,
    "ustat": _ustat,
}
