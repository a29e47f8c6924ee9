"""Methods "exact" and "ustat", which approximate nothing.

"exact" takes the whole spectrum, from the smaller of the n × n and the feature side; "ustat", for
order 2, no eigenvalues: it is unbiased at any number of samples.

From fewer samples than twice the feature dimension the eigenvalues of the sample say little one by
one, but together they determine a smooth population spectrum (`_marchenko_pastur`), whose entropy
is the score. Measured, and where it fails: docs/explanation/vendi.md, "Few samples".
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import scipy  # its submodules are loaded at their first use

from genbounds.core.design import Index, row_design
from genbounds.core.estimate import Estimate, SampleError
from genbounds.core.expansion import expand, third_order
from genbounds.core.moments import EPS
from genbounds.diagnostics import Severity, warn_of
from genbounds.estimators.kernels._rke import LEAST_ROWS, frobenius
from genbounds.estimators.spectrum_fit import _root
from genbounds.estimators.spectrum_fit._marchenko_pastur import Functional, RowLaw, fit_spectrum
from genbounds.estimators.vendi import _ceiling as ceiling
from genbounds.estimators.vendi import _expansion as expansion
from genbounds.estimators.vendi import _methods as methods
from genbounds.estimators.vendi._expansion import Spectrum
from genbounds.estimators.vendi._methods import STATISTIC, Job
from genbounds.estimators.vendi._spectrum import from_features, from_gram, leading
from genbounds.results import Method
from genbounds.validation import Float, InputError

ORDERS, SMALL_ORDERS, NEGLIGIBLE = (8, 0.6), (16, 1.0), 0.1
"""From so many samples per dimension on, the bias of third order is left in where it is below
NEGLIGIBLE standard errors. It is taken to be that share of the second-order bias over the samples
per dimension, the most that was measured from order 1 on (experiments/vendi/third_order.py, 0.64
for one distribution); below order 1 it can be more."""

LARGE_ERROR = 0.25
"""Squared relative error of E k² above which its logarithm is far from normal."""


def exact(job: Job) -> Estimate:
    """Score of the whole spectrum."""
    dimension = job.rows.dimension
    if job.order == 2.0 and job.n >= LEAST_ROWS:
        return u_statistic(job, statistic=STATISTIC)
    # Whether the sample's own spectrum can be debiased.
    resolved = job.order >= 2.0 or (
        dimension is not None and job.n >= methods.RESOLVED_RATIO * min(dimension, job.n)
    )
    refusal = ""
    if not resolved and _can_fit(job):
        fitted = fitted_estimate(job)
        if not isinstance(fitted, str):
            return fitted
        refusal = f"; {fitted}, so no spectrum is fitted"
    whole = _Whole(job)
    if not resolved:  # the score of these n rows, where there is no limit to estimate
        why = (
            "the feature dimension is infinite or not known"
            if dimension is None
            else f"{job.n} samples for {dimension} feature dimensions{refusal}"
        )
        warning = warn_of("grows-with-n-because", n=job.n, why=why)
        statistic = f"vendi, empirical at n={job.n}"
        return job.estimate("empirical", statistic, whole.value, whole.error, warnings=(warning,))
    if job.plugin:
        return job.estimate("plug-in", STATISTIC, whole.value, whole.error, limit=dimension)
    if math.isinf(job.order) and whole.spectrum is not None:
        values, coordinates = whole.spectrum.values, whole.spectrum.coordinates
        count, variance = expansion.leading_group(coordinates, values, job.n)
        if count > 1:
            return _tied(job, whole.spectrum, count, variance)
    return _debiased(job, whole)


class _Whole:
    """Plug-in log score of all rows with its error, by the cheapest way to the spectrum.

    Attributes
    ----------
    value : float
    error : SampleError
    noise : float
        Share of random parts of the rows in the variance.
    ratio : float
        Samples per dimension of the spectrum.
    spectrum : Spectrum or None
    features : FeatureRows or None
    gram : ndarray or None
    """

    def __init__(self, job: Job) -> None:
        rows, n = job.rows, job.n
        self.features, self.ratio = job.features(), math.inf
        self.gram: Float | None = None
        self.spectrum: Spectrum | None = None
        if self.features is not None and self.features.d < n:
            self.gram = self.features.gram(job.weights)
            self.spectrum = from_features(self.features, self.gram, job.weights)
            self.ratio = n / self.features.d
        elif n <= methods.DENSE_ROWS:
            self.spectrum, self.ratio = from_gram(rows.matrix(), job.weights), 1.0
        else:
            methods.unweighted(job)
            if math.isinf(job.order):
                self.spectrum, _ = leading(rows, 1, job.seed)
        if self.spectrum is not None:
            self.value, self.error, self.noise = job.expanded(self.spectrum)
            return
        # All eigenvalues of the n × n matrix, without eigenvectors.
        self.error, self.noise = methods.subsample_error(job), 0.0
        matrix = rows.matrix(rows.given.dtype if job.order >= 1.0 else np.float64)
        # The transpose is in LAPACK's order, so that no copy is made.
        values = scipy.linalg.eigvalsh(matrix.T, check_finite=False, overwrite_a=True)[::-1]
        self.value = expansion.log_vendi(values.astype(np.float64) / n, job.order)


def _debiased(job: Job, whole: _Whole) -> Estimate:
    """Remove the bias to second order, and to third where it counts."""
    error, ratio = whole.error, whole.ratio
    method: Method = "second-order"
    value = whole.value - error.bias
    least, share = SMALL_ORDERS if job.order < 1.0 else ORDERS
    third = share * abs(error.bias) / ratio
    counts = ratio < least or third > NEGLIGIBLE * math.sqrt(error.variance)
    design = job.design or row_design(job.n)
    half_of_unit = None
    if counts and job.n >= 8 * LEAST_ROWS:
        half_of_unit = design.halves(np.random.default_rng(expansion.PAIRING_SEED))
    if half_of_unit is not None:  # every stratum has enough units
        halves, values, added = design.rows_of_halves(half_of_unit), [], 7.0 / 9.0 * whole.noise
        for half, spectrum in zip(halves, _half_spectra(job, whole, halves), strict=True):
            form = expansion.SpectralForm(
                spectrum, n=half.size, order=job.order, every_row=job.every_row
            )
            # A half enters the score with an eighth of the weight of the whole: a quarter of the
            # part does.
            part = form.part_rows
            if part is not None and job.design is None:
                part //= 4
            restricted = job.design and job.design.restricted(half)
            of_half, noise = expand(form, restricted, part_rows=part, bias_only=True)
            values.append(form.at.value - of_half.bias)
            added += noise / 36.0
        value, method = third_order(value, values), "third-order"
        error = replace(error, variance=error.variance + added)
    near = near_ceiling(job, value, error.bias, error)
    return job.estimate(method, STATISTIC, value, error, limit=job.rows.dimension, **near)


def near_ceiling(job: Job, value: float, bias: float, error: SampleError) -> dict[str, Any]:
    """Say what an estimate has to say near the largest possible score (`ceiling_interval`)."""
    most = math.log(job.rows.dimension or math.inf)
    # Its noncentral distribution knows nothing of seeds.
    if math.isinf(job.order) or error.seeds is not None:
        return {}
    second = error.quadratic_variance
    interval = ceiling.ceiling_interval(
        value=value, bias=bias, second=second, ceiling=most, n=job.n
    )
    return {} if interval is None else {"own_interval": interval, "details": ceiling.NEAR_CEILING}


def _half_spectra(job: Job, whole: _Whole, halves: tuple[Index, Index]) -> Iterator[Spectrum]:
    features, gram = whole.features, whole.gram
    if features is not None and gram is not None and job.weights is None:
        one, two = (features.subset(half) for half in halves)
        if two.n > features.d:
            first = one.gram()
            yield from_features(one, first)
            yield from_features(two, (features.n * gram - one.n * first) / two.n)
            return
    for half in halves:
        weights = None if job.weights is None else job.weights[half] / job.weights[half].sum()
        if features is None:
            yield from_gram(job.rows.subset(half).matrix(), weights)
        else:
            yield from_features(features.subset(half), None, weights)


def _tied(job: Job, spectrum: Spectrum, count: int, variance: float) -> Estimate:
    """Order ∞ where the largest eigenvalue is not alone.

    If all of the group are equal, their mean estimates it; if not, it is at most the largest seen,
    which is biased upward. The interval spans both.
    """
    values = spectrum.values[:count]
    largest, freedom = float(values[0]), job.n - 1.0
    high, low = -math.log(float(values.mean())), -math.log(largest)
    rng = np.random.default_rng(ceiling.TIE_SEED)
    index = np.sort(rng.choice(job.n, min(job.n, ceiling.TIE_ROWS), replace=False))
    parts = [block[:, :count] for _, block in spectrum.coordinates(index)]
    rows = np.concatenate(parts).astype(np.float64, copy=False)
    excess = ceiling.tie_excess(rows / np.sqrt((rows**2).mean(axis=0)))
    own = float(np.var(rows[:, 0] ** 2, ddof=1)) / largest**2 / job.n
    interval = ceiling.tied_interval(
        largest=largest,
        stderr=math.sqrt(own),
        excess=excess * math.sqrt(len(rows) / job.n),
        degrees=freedom,
    )
    # The excess of a largest eigenvalue is drawn for independent rows.
    severity: Severity = "caution" if job.design is None else "unreliable"
    return job.estimate(
        "second-order",
        STATISTIC,
        (high + low) / 2.0,
        SampleError(variance=variance + ((high - low) / 2.0) ** 2, degrees_of_freedom=freedom),
        limit=job.rows.dimension,
        own_interval=interval,
        warnings=(warn_of("near-tie", severity=severity, eigenvalues=count),),
    )


def u_statistic(job: Job, *, statistic: str = "vendi, ustat") -> Estimate:
    """Score of order 2 (RKE) from the U-statistic of E k(x, x')²."""
    if job.order != 2.0:
        raise InputError(f"method 'ustat' is for order 2; got order {job.order:g}.")
    if job.n < LEAST_ROWS:
        raise InputError(f"method 'ustat' needs at least {LEAST_ROWS} samples; got {job.n}.")
    plugin, debiased, square = frobenius(job.rows, job.design)
    value = plugin if job.plugin else debiased
    if not value > 0.0:
        raise InputError(
            "has no two rows with a positive kernel value: its RKE cannot be told from "
            "infinity. Widen the bandwidth or draw more samples.",
            argument="x",
        )
    square = square.scaled(-1.0 / value)  # of the logarithm
    log_value = -math.log(value)
    near: dict[str, Any] = {}
    if not job.plugin:
        log_value -= square.variance / 2.0  # E log U falls short of log E U by that
        near = near_ceiling(job, log_value, (1.0 - 1.0 / value) / job.n, square)
    noisy = warn_of("noisy-square", error=math.sqrt(square.variance))
    error = SampleError(
        variance=square.variance,
        degrees_of_freedom=square.degrees_of_freedom,
        influence=square.influence,
        seeds=square.seeds,
    )
    return job.estimate(
        "u-statistic",
        statistic,
        log_value,
        error,
        limit=job.rows.dimension,
        warnings=(noisy,) * (square.variance > LARGE_ERROR),
        **near,
    )


# --- few samples: a fitted spectrum ---------------------------------------------------------------

FITTED_ORDER = 0.5
"""Least order of which a fitted spectrum says enough: below, what counts is not seen."""

DOUBT = 0.05
"""Share of the removed bias by which a believed fit is off: measured, see
docs/explanation/vendi.md."""

REFUSED_MISFIT = 1.0
"""Mean squared whitened residual above which the fit is refused; from `MISFIT` on the variance is
inflated. Measured: below 0.7 on network features, mostly above 1 on rows from a few tens of
orthogonal subspaces, which no distribution of independent factors describes."""

UNEQUAL = 0.12
"""Variance of the rows' leverages, beyond noise, above which as much bias may be left as was
removed: rows of norm one that the others span unequally well can lie in subspaces of their own.
Measured: up to 0.11 on images, their network features and mixtures; from 0.13 on rows from spheres
of unequal dimension, but also, without harm, where a few strong directions set every row's scale.
"""


def _can_fit(job: Job) -> bool:
    dimension = job.rows.dimension
    return (
        not job.plugin
        and job.design is None  # its limit theorems are about independent rows
        and dimension is not None
        and job.order >= FITTED_ORDER
        and min(job.n, dimension) <= methods.DENSE_ROWS
        and (job.n <= dimension or job.rows.features() is not None)
    )


def entropy(order: float) -> Functional:
    """Rényi entropy of a spectrum divided by its sum, for a finite order."""

    def functional(spectrum: Float, counts: Float) -> tuple[float, Float]:
        p = spectrum / float(counts @ spectrum)
        if order == 1.0:
            logs = np.log(p)
            value, slope = -float((counts * p) @ logs), -logs
        else:
            power = float(counts @ p**order)
            value = float(np.log(power)) / (1.0 - order)
            slope = order / (1.0 - order) * p ** (order - 1.0) / power
        share = counts * p
        return value, share * (slope - float(share @ slope))

    return functional


def fitted_estimate(job: Job) -> Estimate | str:
    """Score of a smooth spectrum fitted to that of few samples; or why the fit is not believed.

    Parameters
    ----------
    job : Job
        Of a finite order and independent rows of a kernel with a finite feature dimension; with an
        explicit feature map where there are more rows than that.

    Notes
    -----
    The variance is that of the estimator linearised in the rows, each row left out of the resolvent
    that weighs it, plus the posterior variance of what the sample cannot see, both inflated where
    the fit is poor, plus the square of `DOUBT` times the bias removed, or of all of it.
    """
    rows, n, d, order = job.rows, job.n, job.rows.dimension, job.order
    assert d is not None
    features = None
    if n <= d:
        gram = rows.matrix() / n
    else:
        features = np.asarray(rows.features(), np.float64)
        gram = features.T @ features / n
    values, vectors = scipy.linalg.eigh(gram, check_finite=False, overwrite_a=True, driver="evd")
    distinct = _root.distinct_rows(rows.rows)
    kept, rank = _root.kept_ranks(values[::-1], n + 1, d, distinct=distinct + 1)
    values, vectors = values[::-1][:kept], vectors[:, ::-1][:, :kept]
    if features is not None:
        vectors = (features @ vectors) / np.sqrt(n * values)
    fit = fit_spectrum(values, rows=[RowLaw(n)], rank=rank, functional=entropy(order))
    if refusal := _refusal(n, rank, distinct, fit.misfit):
        return refusal
    radii = _root.row_law(values, vectors).radii
    unequal = radii is not None and float(np.var(radii)) > UNEQUAL
    squared = vectors**2
    shift = values[:, None] + fit.points
    left = np.maximum(1.0 - squared @ (values[:, None] / shift), EPS)
    influence = (squared @ (values[:, None] * fit.points / shift**2) / left) @ fit.weights
    influence -= influence.mean()
    removed = fit.value - expansion.log_vendi(values, order)
    doubt = removed if unequal else DOUBT * removed
    sampling = float(influence @ influence) / (n - 1) / n
    error = SampleError(
        variance=(sampling + fit.prior_variance) * fit.inflation + doubt**2,
        degrees_of_freedom=n - 1.0,
        influence=influence,
    )
    fitted = warn_of("fitted-vendi-spectrum", n=n, dimension=d, least=methods.RESOLVED_RATIO)
    # Rows that the others span unequally well: the interval is widened by all of the bias removed.
    unequal_spans = [warn_of("unequal-subspaces")] if unequal else []
    return job.estimate(
        "spectrum-fit", STATISTIC, fit.value, error, limit=d, warnings=(fitted, *unequal_spans)
    )


def _refusal(n: int, rank: int, distinct: int, misfit: float) -> str:
    if n < _root.FEW_ROWS:
        return f"{n} rows are too few for a fit of the spectrum"
    if n < _root.SEEN_SHARE * rank:
        return f"{n} rows show little of {rank} directions"
    if distinct < (1.0 - _root.REPEATED_SHARE) * n:
        return f"{n - distinct} of {n} rows repeat others"
    if misfit > REFUSED_MISFIT:
        return "no smooth spectrum fits the sample's"
    return ""
