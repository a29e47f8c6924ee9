"""Vendi scores: exponential Rényi entropies of a kernel covariance, with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import scipy  # its submodules are loaded at their first use

from genbounds.estimators._expansion import Expansion
from genbounds.estimators._kernels import (
    BANDWIDTH_ROWS,
    Kernel,
    KernelRows,
    PolynomialKernel,
    median_bandwidth,
)
from genbounds.estimators._rke import MINIMUM, Frobenius, frobenius
from genbounds.estimators._vendi_spectrum import (
    Spectrum,
    fourier_features,
    from_features,
    from_gram,
    lanczos_entropy,
    leading,
    nystrom,
)
from genbounds.estimators._vendi_terms import (
    PAIRING_SEED,
    Terms,
    leading_group,
    log_vendi,
    spectral_terms,
)
from genbounds.origins import origin_notes, origin_of
from genbounds.results import Score
from genbounds.validation import (
    Float,
    InputError,
    check_choice,
    check_count,
    check_features,
    check_open_unit,
)

METHODS = ("exact", "truncated", "nystrom", "fkea", "lanczos", "ustat")
ESTIMATORS = ("debiased", "plugin")

LARGE = 2000
"""Above so many rows an open `method` means the truncated statistic, for infinite dimensions."""

DENSE_ROWS = 3000
"""Up to so many rows all eigenvectors are computed; above, leading ones or those of a subsample."""

TERM_ROWS = 1500
"""Rows of the subsample that measures the standard error where eigenvectors are out of reach."""

RESOLVED_RATIO = 4
"""Samples per feature dimension from which a spectrum of order below 2 is debiased."""

SPLIT_RATIO = 64
"""From this many samples per direction on, the error of the second-order term is negligible."""

NEIGHBOURS = 64
"""Eigenvalues beyond a cut that are taken one by one."""

COMPONENTS = {"truncated": 100, "nystrom": 100, "fkea": 1000, "lanczos": 100}
LANDMARKS_PER_COMPONENT = 5
LANCZOS_PROBES, LANCZOS_STEPS = 24, 16


def vendi_score(
    x: Any,
    *,
    kernel: Kernel = "rbf",
    bandwidth: float | None = None,
    order: float = 1.0,
    method: str | None = None,
    estimator: str = "debiased",
    level: float = 0.95,
    components: int | None = None,
    seed: int = 0,
) -> Score:
    """Vendi score: exp of the Rényi entropy of the eigenvalues of the kernel covariance.

    ``(Σ λ_i^α)^(1/(1-α))``; exp of the Shannon entropy for α = 1, 1/λ_max for α = ∞.

    Parameters
    ----------
    x : array_like of shape (n, d)
        Features; rows must be independent.
    kernel : {"rbf", "laplace", "cosine", "polynomial"}, PolynomialKernel or callable
        "rbf" is ``exp(-‖x-y‖²/(2σ²))``, "laplace" ``exp(-‖x-y‖₁/σ)``; a callable takes blocks
        (a, d) and (b, d) and returns (a, b). All are normalised to k(x, x) = 1.
    bandwidth : float, optional
        σ. None: median of the pairwise distances. Scores with different bandwidths measure
        different things.
    order : float
        α in (0, ∞]. Order 2 (RKE) is the recommended one: unbiased at any n for any kernel.
    method : {"exact", "truncated", "nystrom", "fkea", "lanczos", "ustat"}, optional
        "exact": the whole spectrum, from the smaller of the n × n and the feature side.
        "truncated": the leading t eigenvalues, lifted to sum to one. "nystrom": the same from
        random landmarks. "fkea": the kernel of t random frequencies ("rbf", "laplace").
        "lanczos": the empirical score by stochastic Lanczos quadrature. "ustat": order 2 by its
        U-statistic. The last three and large "truncated" never hold an n × n matrix.
        None: "exact", except where that has no limit in n (infinite feature dimension, order
        below 2) and n > 2,000: then "truncated".
    estimator : {"debiased", "plugin"}
        "plugin" is the number that other tools print, from the empirical spectrum as it is.
    level : float
        Coverage of the interval, in (0, 1).
    components : int, optional
        t: eigenvalues kept (100), frequencies (1,000), deflated eigenpairs (100).
    seed : int
        Of landmarks, frequencies and probes.

    Returns
    -------
    Score
        `estimator` names the statistic: scores of different statistics do not compare.

    Raises
    ------
    InputError
        If an argument is not legal or there are too few rows for the method.

    Notes
    -----
    The interval is computed for the logarithm. Influence function and second-order bias of any
    symmetric function of the spectrum: docs/vendi.md. With an infinite feature dimension and an
    order below 2 the score keeps growing with n: "exact" and "lanczos" then give the empirical
    score, whose interval is for samples of this very size.

    References
    ----------
    .. [1] D. Friedman and A. B. Dieng, "The Vendi score", TMLR 2023.
    .. [2] A. Ospanov and F. Farnia, "On the statistical complexity of estimating Vendi scores from
       empirical data", 2024, Definition 2.

    Examples
    --------
    >>> import numpy as np, genbounds as gb
    >>> clusters = np.repeat(np.eye(5), 200, axis=0)
    >>> gb.vendi_score(clusters, kernel="cosine", estimator="plugin").estimator
    'vendi, exact, plugin'
    """
    level = check_open_unit("level", level)
    expansion = vendi_expansion(
        x,
        kernel=kernel,
        bandwidth=bandwidth,
        order=order,
        method=method,
        estimator=estimator,
        components=components,
        seed=seed,
        influences=False,
    )
    notes = origin_notes({"`x`": origin_of(x)})
    return replace(expansion, notes=expansion.notes + tuple(notes)).score(level)


def vendi_expansion(
    x: Any,
    *,
    kernel: Kernel = "rbf",
    bandwidth: float | None = None,
    order: float = 1.0,
    method: str | None = None,
    estimator: str = "debiased",
    components: int | None = None,
    seed: int = 0,
    influences: bool = True,
) -> Expansion:
    """Log Vendi score with its variance and influence, before any level is chosen.

    Takes what `vendi_score` takes (`x`, `kernel`, `bandwidth`, `order`, `method`, `components`,
    `seed`) but the level, and `estimator`, "debiased" or "plugin". With ``influences=False``, for
    one score and no difference, a random part of the rows of a large sample stands for all of them
    in bias and variance.
    """
    order = check_order(order)
    check_choice("estimator", estimator, ESTIMATORS)
    if method is not None:
        check_choice("method", method, METHODS)
    check_count("seed", seed, minimum=0)
    rows = KernelRows(x, kernel, bandwidth)
    limitless = rows.dimension is None and order < 2.0
    if method is None:
        method = "truncated" if limitless and rows.n > LARGE else "exact"
    if components is not None and method in {"exact", "ustat"}:
        raise InputError(f"`components` is not used by method {method!r}.")
    job = _Job(
        rows=rows,
        order=order,
        plugin=estimator == "plugin",
        components=check_count("components", components or COMPONENTS.get(method, 1)),
        seed=seed,
        every_row=influences,
    )
    expansion = _ROUTES[method](job)
    notes = ["interval assumes independent rows"]
    if rows.chosen_by_median:
        notes.append(
            f"bandwidth {rows.bandwidth:.6g} by the median heuristic on these rows, taken as given"
        )
    notes += expansion.notes
    biased = job.plugin and "empirical" not in expansion.estimator
    if biased:
        notes.append("plug-in: bias not removed, so the interval is not centred on the truth")
    if rows.n < 50:
        notes.append(f"only {rows.n} samples: the interval can miss more often")
    return replace(
        expansion,
        estimator=expansion.estimator + (", plugin" if biased else ""),
        statistic=f"{expansion.estimator} of order {order:g}, kernel {rows.label}",
        notes=tuple(notes),
    )


def vendi_metric(
    metric: str, samples: Sequence[Any], options: Mapping[str, Any] | None = None
) -> Callable[..., Expansion]:
    """Return the function that expands any number of models by one and the same statistic.

    Parameters
    ----------
    metric : {"vendi", "rke"}
    samples : sequence of array_like
        Where one bandwidth for all models comes from, if none is given: the reference, or all
        models, each with equally many rows.
    options : mapping, optional
        Keyword arguments of `vendi_score`. "rke" has order 2 and the method "ustat"; "vendi" with
        an infinite feature dimension and an order below 2 is truncated at every n, so that sample
        sizes may differ.
    """
    given = dict(options or {})
    legal = ("kernel", "bandwidth", "order", "method", "components", "seed")
    unknown = [name for name in given if name not in legal]
    if unknown:
        raise InputError(f"`options` must be among {', '.join(legal)}; got {unknown[0]!r}.")
    kernel = given.setdefault("kernel", "rbf")
    note = ""
    if kernel in ("rbf", "laplace") and given.get("bandwidth") is None:
        share = max(2, BANDWIDTH_ROWS // max(len(samples), 1))
        rng = np.random.default_rng(PAIRING_SEED)
        parts = []
        for sample in samples:
            rows = check_features("x", sample)
            parts.append(rows[np.sort(rng.choice(len(rows), min(share, len(rows)), replace=False))])
        if len({part.shape[1] for part in parts}) > 1:
            raise InputError("all models need equally many features; they share one bandwidth.")
        given["bandwidth"] = median_bandwidth(np.concatenate(parts), kernel=kernel)
        note = (
            f"one bandwidth for all, {given['bandwidth']:.6g}, by the median heuristic; "
            "taken as given"
        )
    if metric == "rke":
        for name, value in (("order", 2.0), ("method", "ustat")):
            if given.setdefault(name, value) != value:
                raise InputError(f"metric 'rke' has {name} {value!r}; use metric 'vendi'.")
    elif given.get("method") is None:
        infinite = kernel in ("rbf", "laplace") or (
            callable(kernel) and not isinstance(kernel, PolynomialKernel)
        )
        limitless = infinite and check_order(given.get("order", 1.0)) < 2.0
        given["method"] = "truncated" if limitless else "exact"

    def expand(x: Any, *, estimator: str = "debiased") -> Expansion:
        expansion = vendi_expansion(x, estimator=estimator, **given)
        return replace(expansion, notes=(*expansion.notes, note)) if note else expansion

    return expand


def check_order(order: object) -> float:
    """Return the order as a float in (0, ∞]."""
    if isinstance(order, bool) or not (isinstance(order, Real) and float(order) > 0.0):
        raise InputError(f"`order` must be a number in (0, inf]; got {order!r}.")
    return float(order)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
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
        notes: tuple[str, ...] = (),
    ) -> Expansion:
        return Expansion(
            estimator=name,
            value=value,
            variance=variance,
            degrees_of_freedom=self.n - 1.0 if degrees is None else degrees,
            influence=influence,
            n=self.n,
            log_scale=True,
            lower_limit=0.0,
            upper_limit=math.inf if limit is None else math.log(limit),
            higher_is_better=True,
            notes=notes,
        )


def _exact(job: _Job) -> Expansion:
    rows, n = job.rows, job.n
    if job.order == 2.0 and n >= MINIMUM:
        return replace(_ustat(job), estimator="vendi, exact")
    dimension = rows.dimension
    features = rows.features()
    resolved = job.order >= 2.0 or (
        dimension is not None and n >= RESOLVED_RATIO * min(dimension, n)
    )
    spectrum: Spectrum | None = None
    if features is not None and features.shape[1] < n:
        spectrum, ratio = from_features(features), n / features.shape[1]
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
            else f"{n} samples for {dimension} feature dimensions"
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
            return _tied(job, spectrum.values[:count], tie_variance)
    value, variance, notes = whole.value, whole.variance, tuple[str, ...]()
    if not job.plugin:
        value -= whole.bias
        notes = ("route: second order",)
        if ratio < SPLIT_RATIO and n >= 8 * MINIMUM:
            value, notes = _halved(job, features, value), ("route: third order, by halving",)
    return job.expansion(
        "vendi, exact",
        value,
        variance,
        influence=_full(whole, n),
        limit=dimension,
        notes=notes,
    )


def _tied(job: _Job, values: Float, variance: float) -> Expansion:
    """Order ∞ where the largest eigenvalue is not alone.

    If all of the group are equal, their mean estimates it; if not, it is at most the largest seen,
    which is biased upward. The interval spans both.
    """
    high, low = -math.log(float(values.mean())), -math.log(float(values[0]))
    notes = (
        f"{values.size} eigenvalues cannot be told from the largest: the value lies midway between "
        "all of them equal and the largest as it is; the interval covers both and is conservative",
    )
    return job.expansion(
        "vendi, exact",
        (high + low) / 2.0,
        variance + ((high - low) / 2.0) ** 2,
        limit=job.rows.dimension,
        notes=notes,
    )


def _full(terms: Terms, n: int) -> Float | None:
    return terms.influence if terms.influence.size == n else None


def _spectrum_terms(
    spectrum: Spectrum, n: int, order: float, kept: int | None = None, *, every_row: bool = True
) -> Terms:
    cut = 1 if math.isinf(order) and kept is None else kept
    if cut is not None:  # what lies far beyond the cut acts through its sum alone
        spectrum = spectrum.head(2 * cut + NEIGHBOURS)
    return spectral_terms(
        spectrum.coordinates, spectrum.values, n=n, order=order, kept=kept, every_row=every_row
    )


def _features_terms(
    features: Float, order: float, kept: int | None = None, *, every_row: bool
) -> Terms:
    spectrum = from_features(features)
    return _spectrum_terms(spectrum, len(features), order, kept, every_row=every_row)


def _gram_terms(rows: KernelRows, order: float, kept: int | None = None) -> Terms:
    return _spectrum_terms(from_gram(rows.matrix()), rows.n, order, kept)


def _large_terms(rows: KernelRows, order: float) -> Terms:
    """All eigenvalues, with bias and variance carried over from a subsample."""
    part = _subsample(rows)
    terms = _gram_terms(part, order)
    values = (
        scipy.linalg.eigvalsh(rows.matrix(), check_finite=False, overwrite_a=True)[::-1] / rows.n
    )
    return _scaled(terms, log_vendi(values, order), part.n / rows.n)


def _subsample(rows: KernelRows) -> KernelRows:
    if rows.n <= TERM_ROWS:
        return rows
    rng = np.random.default_rng(PAIRING_SEED)
    return rows.subset(np.sort(rng.choice(rows.n, TERM_ROWS, replace=False)))


def _scaled(terms: Terms, value: float, ratio: float) -> Terms:
    return replace(terms, value=value, bias=terms.bias * ratio, variance=terms.variance * ratio)


def _halves(n: int) -> list[Any]:
    shuffled = np.random.default_rng(PAIRING_SEED).permutation(n)
    return [np.sort(shuffled[k::2]) for k in (0, 1)]


def _halved(job: _Job, features: Float | None, value: float, kept: int | None = None) -> float:
    """One more order: halving the sample multiplies what is left of the bias by four."""
    rest = []
    for half in _halves(job.n):
        terms = (
            _gram_terms(job.rows.subset(half), job.order, kept)
            if features is None
            else _features_terms(features[half], job.order, kept, every_row=job.every_row)
        )
        rest.append(terms.value - terms.bias)
    return (4.0 * value - sum(rest) / 2.0) / 3.0


def _truncated(job: _Job) -> Expansion:
    t, n = job.components, job.n
    notes: tuple[str, ...] = ()
    _enough(job, t)
    features = job.rows.features()
    if features is not None and features.shape[1] < n:
        spectrum = from_features(features)
    elif n <= DENSE_ROWS:
        spectrum = from_gram(job.rows.matrix())
    else:
        spectrum, residual = leading(job.rows, t, job.seed)
        notes += (f"leading eigenpairs by block Krylov, largest residual {residual:.1g}",)
    return _truncated_expansion(job, spectrum, f"vendi, truncated at t={t}", notes)


def _enough(job: _Job, t: int) -> None:
    if not t < job.n:
        raise InputError(
            f"`components` must be below the number of samples; got {t} for {job.n}. "
            "Keep fewer eigenvalues, or draw more samples."
        )


def _truncated_expansion(
    job: _Job, spectrum: Spectrum, name: str, notes: tuple[str, ...]
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


def _nystrom(job: _Job) -> Expansion:
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


def _fkea(job: _Job) -> Expansion:
    t, n, rows = job.components, job.n, job.rows
    if rows.name not in {"rbf", "laplace"}:
        raise InputError(
            f"method 'fkea' needs a shift-invariant kernel ('rbf' or 'laplace'); got {rows.name!r}."
        )
    features = fourier_features(rows, t, job.seed)
    terms = _features_terms(features, job.order, every_row=job.every_row)
    value, notes = terms.value, tuple[str, ...]()
    if not job.plugin and (job.order >= 2.0 or n >= RESOLVED_RATIO * 2 * t):
        value -= terms.bias
        notes = ("route: second order",)
    elif not job.plugin:
        notes = (
            f"n is small for it: {n} samples for {2 * t} feature dimensions, fewer than four each, "
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


def _lanczos(job: _Job) -> Expansion:
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


def _ustat(job: _Job) -> Expansion:
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


def _rke_expansion(job: _Job, square: Frobenius, value: float) -> Expansion:
    relative = square.variance / value**2
    log_value = -math.log(value)
    notes: tuple[str, ...] = ()
    if not job.plugin:
        log_value -= relative / 2.0  # E log U falls short of log E U by that
        notes = ("route: U-statistic",)
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
        notes=notes,
    )


_ROUTES: dict[str, Callable[[_Job], Expansion]] = {
    "exact": _exact,
    "truncated": _truncated,
    "nystrom": _nystrom,
    "fkea": _fkea,
    "lanczos": _lanczos,
    "ustat": _ustat,
}
