"""Vendi scores: exponential Rényi entropies of a kernel covariance, with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any

import numpy as np

from genbounds import validation
from genbounds._process import threads_for
from genbounds._text import quoted
from genbounds.core.checks import check_sample, drawn
from genbounds.core.estimate import Estimate, bias_left, small_sample
from genbounds.estimators._metric_spec import MetricSpec, Prepared
from genbounds.estimators.kernels._kernel_rows import check_kernel, inspect_kernel, kernel_rows
from genbounds.estimators.kernels._pair_kernels import BANDWIDTH_ROWS, Kernel, median_bandwidth
from genbounds.estimators.kernels._rke import LEAST_ROWS, RunningRke, squared_kernel_sum
from genbounds.estimators.vendi import _methods as methods
from genbounds.estimators.vendi._exact import exact, u_statistic
from genbounds.estimators.vendi._expansion import PAIRING_SEED
from genbounds.results import Score
from genbounds.samples import features_of
from genbounds.validation import InputError

METHODS: dict[str, Callable[[methods.Job], Estimate]] = {
    "exact": exact,
    "truncated": methods.truncated,
    "nystrom": methods.nystrom,
    "fkea": methods.random_features,
    "lanczos": methods.lanczos,
    "ustat": u_statistic,
}
ESTIMATORS = ("debiased", "plugin")

LARGE = 2000
"""Above so many rows an open `method` means the truncated statistic, for infinite dimensions."""

RADIAL = ("rbf", "laplace")
"""Kernels with a bandwidth, whose feature dimension is infinite."""

COMPONENTS = {"truncated": 100, "nystrom": 100, "fkea": 1000, "lanczos": 100}


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
    landmarks: int | None = None,
    seed: int = 0,
) -> Score:
    """Vendi score: exp of the Rényi entropy of the eigenvalues of the kernel covariance.

    ``(Σ λ_i^α)^(1/(1-α))``; exp of the Shannon entropy for α = 1, 1/λ_max for α = ∞.

    Parameters
    ----------
    x : array_like of shape (n, d) or Sample
        Features; a `Sample` says how rows depend on one another or are weighted.
    kernel : {"rbf", "laplace", "cosine", "polynomial"}, PolynomialKernel, callable, "precomputed"
        "rbf" is ``exp(-‖x-y‖²/(2σ²))``, "laplace" ``exp(-‖x-y‖₁/σ)``; a callable takes blocks
        (a, d) and (b, d) and returns (a, b). "precomputed": `x` is the kernel matrix itself, of
        shape (n, n), of samples that need no features. All are normalised to k(x, x) = 1.
    bandwidth : float, optional
        σ. None: median of the pairwise distances. Scores with different bandwidths measure
        different things.
    order : float
        α in (0, ∞]. Order 2 (RKE) is the recommended one: unbiased at any n for any kernel.
    method : {"exact", "truncated", "nystrom", "fkea", "lanczos", "ustat"}, optional
        "exact": the whole spectrum, of the kernel matrix or of the feature covariance.
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
    landmarks : int, optional
        Rows that "nystrom" draws, at least t. None: 5 t, nearer to the truncated score. As many
        as `components`: the published method [2]_, for numbers that compare with published ones.
    seed : int
        Of landmarks, frequencies and probes.

    Returns
    -------
    Score
        `method` says how it was computed, warnings what it can be compared with.

    Raises
    ------
    InputError
        If an argument is not legal or there are too few rows for the method.

    Notes
    -----
    The interval is computed for the logarithm. Influence function and second-order bias of any
    symmetric function of the spectrum: docs/explanation/vendi.md, with what replaces the normal
    interval near the largest possible score and for a tied largest eigenvalue. With an infinite
    feature dimension and an order below 2 the score keeps growing with n: "exact" and "lanczos"
    then give the empirical score, whose interval is for samples of this very size.

    References
    ----------
    .. [1] D. Friedman and A. B. Dieng, "The Vendi score", TMLR 2023.
    .. [2] A. Ospanov and F. Farnia, "On the statistical complexity of estimating Vendi scores from
       empirical data", 2024, Definition 2.

    Examples
    --------
    >>> import numpy as np, genbounds as gb
    >>> clusters = np.repeat(np.eye(5), 200, axis=0)
    >>> round(gb.vendi_score(clusters, kernel="cosine", estimator="plugin").value, 6)
    5.0
    """
    level = validation.check_open_unit("level", level)
    found = vendi_estimate(
        x,
        kernel=kernel,
        bandwidth=bandwidth,
        order=order,
        method=method,
        estimator=estimator,
        components=components,
        landmarks=landmarks,
        seed=seed,
        influences=False,
    )
    return found.made_from(x=x).score(level)


def vendi_estimate(
    x: Any,
    *,
    kernel: Kernel = "rbf",
    bandwidth: float | None = None,
    order: float = 1.0,
    method: str | None = None,
    estimator: str = "debiased",
    components: int | None = None,
    landmarks: int | None = None,
    seed: int = 0,
    influences: bool = True,
) -> Estimate:
    """Log Vendi score with its variance and influence, before any level is chosen.

    Takes what `vendi_score` takes (`x`, `kernel`, `bandwidth`, `order`, `method`, `components`,
    `landmarks`, `seed`) but the level, and `estimator`, "debiased" or "plugin". With
    ``influences=False``, for one score and no difference, a random part of the rows of a large
    sample stands for all of them in bias and variance.
    """
    order = check_order(order)
    validation.check_choice("estimator", estimator, ESTIMATORS)
    check_settings(method, components, landmarks, seed)
    if isinstance(kernel, str) and kernel == "precomputed":
        seen, kernel = inspect_kernel("x", x)
    else:
        seen = check_sample("x", x, crossed=True)
    design = seen.design
    rows = kernel_rows(seen.rows, kernel, bandwidth)
    limitless = rows.dimension is None and order < 2.0
    if method is None:
        method = "truncated" if limitless and rows.n > LARGE else "exact"
    if components is not None and method in {"exact", "ustat"}:
        raise InputError(f"is not used by method {method!r}.", argument="components")
    job = methods.Job(
        rows=rows,
        order=order,
        plugin=estimator == "plugin",
        components=COMPONENTS.get(method, 1) if components is None else components,
        seed=seed,
        landmarks=landmarks,
        every_row=influences,
        design=None if design is None or design.independent else design,
    )
    with threads_for(float(rows.n) ** 3):
        found = METHODS[method](job)
    assumptions = [drawn(design)]
    if rows.chosen_by_median:
        assumptions.append(
            f"the bandwidth, {rows.bandwidth:.6g} by the median heuristic on these rows, is fixed"
        )
    biased = job.plugin and found.method != "empirical"
    return replace(
        found,
        sample=replace(found.sample, units=seen.drawing.labels, row_ids=seen.single_ids),
        statistic=f"{found.statistic} of order {order:g}, kernel {rows.label}",
        warnings=(
            *seen.warnings,
            *found.warnings,
            *([bias_left()] if biased else []),
            *small_sample(rows.n, units=seen.drawing.free_units),
        ),
        assumptions=(*assumptions, *found.assumptions),
    )


def check_settings(method: Any, components: Any, landmarks: Any, seed: Any) -> None:
    """Check what says how a score is computed, whatever the sample."""
    if method is not None:
        validation.check_choice("method", method, METHODS)
    validation.check_count("seed", seed, minimum=0)
    for name, count in (("components", components), ("landmarks", landmarks)):
        if count is not None:
            validation.check_count(name, count)
    if landmarks is not None and method != "nystrom":
        raise InputError("is used by method 'nystrom' only.", argument="landmarks")


LARGEST_ORDER = 64.0
"""Such a power of 1/65,000, the spectrum of as many different rows, is still a float."""


def check_order(order: object) -> float:
    """Return the order as a float: up to `LARGEST_ORDER`, or infinite."""
    number = math.nan if isinstance(order, bool) or not isinstance(order, Real) else float(order)
    if 0.0 < number <= LARGEST_ORDER or number == math.inf:
        return number
    near = ", from which larger ones differ by less than 2 % of the logarithm" * (number > 1.0)
    raise InputError(
        f"must be a number in (0, {LARGEST_ORDER:g}], or inf{near}; got {quoted(order)}.",
        argument="order",
    )


OPTIONS = ("kernel", "bandwidth", "order", "method", "components", "landmarks", "seed")


def vendi_options(
    metric: str,
    samples: Sequence[Any],
    options: Mapping[str, Any] | None = None,
    *,
    smallest: int | None = None,
) -> tuple[dict[str, Any], str]:
    """Complete the options that all models share, with a note on what was chosen for them.

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
    smallest : int, optional
        Rows of the smallest model, where all are known: a truncation keeps fewer eigenvalues than
        that.

    Returns
    -------
    tuple of dict and str
        Keyword arguments of `vendi_score`, bandwidth and method among them; the note, or "".

    Raises
    ------
    InputError
        If an option is unknown or not legal for the metric, or samples differ in width.
    """
    given = (RKE if metric == "rke" else VENDI).checked(None, options)
    kernel = given.setdefault("kernel", "rbf")
    if not (isinstance(kernel, str) and kernel == "precomputed"):
        check_kernel(kernel, given.get("bandwidth"))
    order, components = check_order(given.get("order", 1.0)), given.get("components")
    check_settings(given.get("method"), components, given.get("landmarks"), given.get("seed", 0))
    radial, notes = kernel in RADIAL, []
    if radial and given.get("bandwidth") is None:
        given["bandwidth"] = _common_bandwidth(metric, samples, kernel)
        notes.append(
            f"one bandwidth for all, {given['bandwidth']:.6g}, by the median heuristic; "
            "taken as given"
        )
    if metric == "rke":
        for name, value in (("order", 2.0), ("method", "ustat")):
            if given.setdefault(name, value) != value:
                raise InputError(f"metric 'rke' has {name} {value!r}; use metric 'vendi'.")
    elif given.get("method") is None:
        limitless = (radial or callable(kernel)) and order < 2.0
        given["method"] = "truncated" if limitless else "exact"
        open_ended = limitless and components is None
        if open_ended and smallest is not None and 1 < smallest <= COMPONENTS["truncated"]:
            given["components"] = smallest - 1
            notes.append(
                f"truncated at t={smallest - 1} for all: the smallest sample has {smallest} rows"
            )
    return given, "; ".join(notes)


def _common_bandwidth(metric: str, samples: Sequence[Any], kernel: str) -> float:
    """Bandwidth by the median heuristic, of equally many rows of each sample."""
    if not samples:
        raise InputError(
            f"is needed by metric {metric!r}: all models are scored with one bandwidth, which "
            "comes from its rows (in Python `options` may give a `bandwidth` instead).",
            argument="reference",
        )
    share = max(2, BANDWIDTH_ROWS // len(samples))
    rng = np.random.default_rng(PAIRING_SEED)
    parts = []
    for sample in samples:
        rows = validation.check_features("x", features_of(sample), minimum=0)
        part = rows[np.sort(rng.choice(len(rows), min(share, len(rows)), replace=False))]
        # Whoever scores the model refuses its bad rows, and names them.
        parts.append(part[np.isfinite(part).all(axis=1)])
    if len({part.shape[1] for part in parts}) > 1:
        raise InputError("all models need equally many features; they share one bandwidth.")
    return median_bandwidth(np.concatenate(parts), kernel=kernel)


def _prepare(
    metric: str, reference: Any, options: Mapping[str, Any], models: Sequence[Any]
) -> Prepared:
    """Prepare one of the two; the reference is there for the bandwidth only."""
    samples = list(models)
    if reference is not None:
        samples = [reference]
        validation.check_finite("real", validation.check_features("real", features_of(reference)))
    smallest = min((len(model) for model in models if hasattr(model, "__len__")), default=None)
    given, note = vendi_options(metric, samples, options, smallest=smallest)
    kernel, radial = given["kernel"], given["kernel"] in RADIAL
    pair_sum = partial(squared_kernel_sum, kernel=kernel, bandwidth=given.get("bandwidth"))
    # A spectrum of order below 2 is debiased only where the samples fill the feature
    # dimension; an infinite one is truncated, which takes more rows than components.
    below = given.get("order", 1.0) < 2.0
    kept = options.get("components") or COMPONENTS["truncated"]

    def estimate(x: Any, *, estimator: str = "debiased") -> Estimate:
        found = vendi_estimate(x, estimator=estimator, **given)
        return replace(found, details=(*found.details, note)) if note else found

    return Prepared(
        estimate=estimate,
        follow=(lambda columns: RunningRke(pair_sum)) if metric == "rke" else None,
        columns=None if reference is None else np.shape(reference)[1],
        samples_per_dimension=8 if below and not radial else 0,
        minimum=kept + 1 if below and radial else LEAST_ROWS,
    )


def _all_empirical(estimates: Iterable[Estimate]) -> str | None:
    """From few samples a spectrum is fitted, unless it is refused: then for no model."""
    empirical = {estimate.method == "empirical" for estimate in estimates}
    return "plugin" if len(empirical) == 2 else None


VENDI = MetricSpec(
    name="vendi",
    title="Vendi score",
    summary="Vendi score: effective number of different samples, of any order",
    prepare=partial(_prepare, "vendi"),
    higher_is_better=True,
    reference="optional",
    options=OPTIONS,
    common_estimator=_all_empirical,
)

RKE = replace(
    VENDI,
    name="rke",
    title="Vendi score of order 2 (RKE)",
    summary="Vendi score of order 2, unbiased at any number of samples",
    prepare=partial(_prepare, "rke"),
)
