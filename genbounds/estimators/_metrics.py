"""Every metric, described once: `compare`, selection, the command line and the page read it here.

A metric is a `MetricSpec`. Its `prepare` takes a reference and options and returns a `Prepared`,
which scores any number of models alike. `register_metric` adds one of your own
(docs/extending.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from genbounds.estimators._estimate import Estimate, SampleError
from genbounds.estimators._mean import mean_estimate
from genbounds.estimators._moments import Moments
from genbounds.estimators.copies import MifidReference, TrainingRows
from genbounds.estimators.frechet import FrechetReference
from genbounds.estimators.inception import inception_estimate
from genbounds.estimators.incremental import (
    Running,
    RunningFrechet,
    RunningInception,
    RunningKid,
    RunningRke,
)
from genbounds.estimators.kernels import KernelReference, squared_kernel_sum
from genbounds.estimators.neighbours import TITLES, NeighbourReference, neighbour_estimates
from genbounds.estimators.smooth import SmoothReference, SmoothScore, sliced_score
from genbounds.estimators.vendi import vendi_metric, vendi_options
from genbounds.samples import features_of
from genbounds.validation import Float, InputError, check_choice

Rows = NDArray[Any]

MINIMUM_PAIRWISE = 8
"""Rows below which the variance of a U-statistic of pairs is not estimated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """One metric with its reference and options: scores any number of models alike.

    Attributes
    ----------
    estimate : callable
        ``estimate(x, estimator="debiased")`` to the `Estimate` of one model.
    spec : MetricSpec or None
        The metric; filled in by `MetricSpec.prepared`.
    plugin : callable or None
        Rows to the plug-in value, turned so that small is good; None: from `estimate`.
    follow : callable or None
        From the number of columns to a plug-in score that follows a growing sample (`Running`);
        None: it is computed from all rows at each step.
    columns : int or None
        Features that rows must have; None for any number.
    samples_per_dimension, minimum : int
        No score is defined below `minimum` rows. Selection first looks at an arm after
        ``max(100, samples_per_dimension * d, 2 * minimum)`` rows.
    few_samples_per_dimension : float or None
        The same for arms that cannot give so many; None if there is no estimate from fewer.
    reference : FrechetReference or None
        For policies that need its moments.
    sampled_reference : bool
        Whether the target is the score against the population behind a reference sample.
    """

    estimate: Callable[..., Estimate]
    spec: MetricSpec | None = None
    plugin: Callable[[Rows], float] | None = None
    follow: Callable[[int], Running] | None = None
    columns: int | None = None
    samples_per_dimension: int = 0
    few_samples_per_dimension: float | None = None
    minimum: int = 2
    reference: FrechetReference | None = None
    sampled_reference: bool = False

    @property
    def name(self) -> str:
        """Name of the metric."""
        return "" if self.spec is None else self.spec.name

    def plugin_loss(self, rows: Rows) -> float:
        """Plug-in value of the rows, turned so that small is good."""
        if self.plugin is not None:
            return self.plugin(rows)
        return self.estimate(rows, estimator="plugin").loss


Prepare = Callable[[Any, Mapping[str, Any], Sequence[Any]], Prepared]
"""From the reference (or None), options, and the models as far as they are known beforehand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSpec:
    """Description of a metric: what it is called, what it needs and how to prepare it.

    Attributes
    ----------
    name : str
        As in ``metric="fd"``.
    title : str
        As in a table.
    prepare : callable
        ``prepare(reference, options, models)`` to a `Prepared`.
    summary : str
        One line for help texts.
    unit : str
        Of the value; empty where it has none.
    higher_is_better : bool
    data : {"features", "posteriors", "values"}
        What a row is; "values": one number, for which files may have one dimension.
    reference : {"required", "optional", "none"}
        "optional": only for what all models share, such as a bandwidth.
    moments : bool
        Whether a mean and a covariance will do for either sample.
    estimators : tuple of str
    options : tuple of str
        Names of the options that `prepare` takes.
    aliases : tuple of str
        Other names that users try.
    fixed_size : bool
        Whether the score is one of samples of their very sizes, from which nothing follows for
        more: selection and planning refuse it.
    common_estimator : callable or None
        From the estimates of all models to the estimator with which to score all of them again, or
        None: where a metric is defined differently for some sample sizes.
    """

    name: str
    title: str
    prepare: Prepare
    summary: str = ""
    unit: str = ""
    higher_is_better: bool = False
    data: Literal["features", "posteriors", "values"] = "features"
    reference: Literal["required", "optional", "none"] = "required"
    moments: bool = False
    estimators: tuple[str, ...] = ("debiased", "plugin")
    options: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    fixed_size: bool = False
    common_estimator: Callable[[Iterable[Estimate]], str | None] | None = None

    def check_growing(self, purpose: str) -> None:
        """Refuse a metric of one sample size for a `purpose` that takes several."""
        if self.fixed_size:
            raise InputError(
                f"metric {self.name!r} depends on the sample size, and {purpose} takes several: "
                "compare samples of one size with gb.compare (genbounds score).",
            )

    def prepared(
        self, reference: Any, options: Mapping[str, Any] | None = None, models: Sequence[Any] = ()
    ) -> Prepared:
        """Check `reference` and `options`, and prepare; `models` as far as they are known.

        Raises
        ------
        InputError
            As `checked`.
        """
        given = self.checked(reference, options)
        return replace(self.prepare(reference, given, models), spec=self)

    def checked(self, reference: Any, options: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return `options` as a dictionary.

        Raises
        ------
        InputError
            If the reference is missing, or of no use, or an option is unknown.
        """
        if reference is None and self.reference == "required":
            raise InputError(f"metric {self.name!r} needs a reference: pass features of real data.")
        if reference is not None and self.reference == "none":
            raise InputError(f"metric {self.name!r} takes no reference; pass None.")
        if isinstance(reference, Moments) and not self.moments:
            raise InputError(
                f"the reference is given by its moments; metric {self.name!r} needs its features."
            )
        given = dict(options or {})
        unknown = [name for name in given if name not in self.options]
        if unknown:
            legal = ", ".join(self.options)
            which = f"must be among: {legal}" if legal else "must be empty: it takes none"
            raise InputError(
                f"of metric {self.name!r} {which}; got {unknown[0]!r}.", argument="options"
            )
        return given


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomMetric:
    """A score of your own: value, influence function, bias correction.

    Attributes
    ----------
    name : str
    value : callable
        Rows (n, d) to the plug-in score.
    influence : callable
        Rows to the influence of each of them on the score, (n,): the derivative of the score in
        the weight of a row. It is centred here; its variance over n is that of the score.
    bias : callable or None
        Rows to what `value` is too large by on average; None: unbiased to order 1/n.
    higher_is_better : bool
    samples_per_dimension : int
        Selection first looks at an arm after ``max(100, samples_per_dimension * d)`` rows.

    Examples
    --------
    The variance of the first feature, whose plug-in (divisor n) is too small by its n-th part:

    >>> import numpy as np
    >>> import genbounds as gb
    >>> spread = gb.select.CustomMetric(
    ...     name="spread",
    ...     value=lambda x: float(x[:, 0].var()),
    ...     influence=lambda x: (x[:, 0] - x[:, 0].mean()) ** 2,
    ...     bias=lambda x: -float(x[:, 0].var()) / len(x),
    ...     higher_is_better=True,
    ... )
    >>> x = np.random.default_rng(0).normal(size=(500, 1))
    >>> bool(np.isclose(spread(x).value, x.var(ddof=1), rtol=1e-5))
    True
    """

    name: str
    value: Callable[[Rows], float]
    influence: Callable[[Rows], Any]
    bias: Callable[[Rows], float] | None = None
    higher_is_better: bool = False
    samples_per_dimension: int = 0

    def __call__(self, rows: Rows, *, estimator: str = "debiased") -> Estimate:
        """Value with its variance; the bias is removed unless `estimator` is "plugin"."""
        rows = features_of(rows)
        n = rows.shape[0]
        influence: Float = np.asarray(self.influence(rows), dtype=np.float64)
        if influence.shape != (n,):
            raise InputError(
                f"of metric {self.name!r} must return one number per row, shape ({n},); "
                f"got shape {influence.shape}.",
                argument="influence",
            )
        influence = influence - influence.mean()
        value = float(self.value(rows))
        if self.bias is not None and estimator != "plugin":
            value -= float(self.bias(rows))
        return Estimate(
            title=self.name,
            estimator=estimator,
            value=value,
            sample=SampleError(
                n=n,
                variance=float(influence @ influence) / (n - 1) / n,
                degrees_of_freedom=n - 1.0,
                influence=influence,
            ),
            higher_is_better=self.higher_is_better,
        )

    def spec(self) -> MetricSpec:
        """Describe it as every other metric is."""
        prepared = Prepared(estimate=self, samples_per_dimension=self.samples_per_dimension)
        return MetricSpec(
            name=self.name,
            title=self.name,
            prepare=lambda reference, options, models: prepared,
            higher_is_better=self.higher_is_better,
            reference="none",
        )


def _frechet(reference: Any, options: Mapping[str, Any], models: Sequence[Any]) -> Prepared:
    prepared = FrechetReference(reference)
    return Prepared(
        estimate=prepared.estimate,
        plugin=prepared.plugin,
        follow=lambda columns: RunningFrechet(prepared),
        columns=prepared.d,
        # The noise of a sampled reference cancels row by row from four rows per feature on.
        samples_per_dimension=2 if prepared.n is None else 4,
        few_samples_per_dimension=0.5 if prepared.serves_few_samples else None,
        reference=prepared,
        sampled_reference=prepared.n is not None,
    )


def _kernel(kernel: str) -> Prepare:
    """Kernel distances, KID among them."""

    def prepare(reference: Any, options: Mapping[str, Any], models: Sequence[Any]) -> Prepared:
        prepared = KernelReference(reference, kernel=kernel, **options)
        return Prepared(
            estimate=prepared.estimate,
            follow=lambda columns: RunningKid(prepared),
            columns=prepared.d,
            minimum=MINIMUM_PAIRWISE,
            sampled_reference=True,
        )

    return prepare


def _inception(reference: Any, options: Mapping[str, Any], models: Sequence[Any]) -> Prepared:
    return Prepared(estimate=inception_estimate, follow=RunningInception, samples_per_dimension=5)


def _mean(reference: Any, options: Mapping[str, Any], models: Sequence[Any]) -> Prepared:
    bounds = options.get("bounds")

    def estimate(x: Any, estimator: str = "debiased") -> Estimate:
        return mean_estimate(x, estimator=estimator, bounds=bounds)

    return Prepared(estimate=estimate, columns=1)


def _vendi(metric: str) -> Prepare:
    """Vendi scores; the reference is there for the bandwidth only."""

    def prepare(reference: Any, options: Mapping[str, Any], models: Sequence[Any]) -> Prepared:
        kernel = options.get("kernel", "rbf")
        radial = isinstance(kernel, str) and kernel in ("rbf", "laplace")
        samples = list(models) if reference is None else [reference]
        if radial and not samples and options.get("bandwidth") is None:
            raise InputError(
                f"metric {metric!r} needs a reference, or a `bandwidth` in `options`: all models "
                "must be scored with one bandwidth."
            )
        sizes = [len(model) for model in models if hasattr(model, "__len__")]
        smallest = min(sizes, default=None)
        given, _ = vendi_options(metric, samples, options, smallest=smallest)

        def pair_sum(one: Rows, two: Rows) -> float:
            return squared_kernel_sum(
                one, two, kernel=given["kernel"], bandwidth=given.get("bandwidth")
            )

        # A spectrum of order below 2 is debiased only where the samples fill the feature
        # dimension; an infinite one is truncated, which takes more rows than components.
        below = metric == "vendi" and options.get("order", 1.0) < 2.0
        components = 100 if options.get("components") is None else int(options["components"])
        return Prepared(
            estimate=vendi_metric(metric, samples, options, smallest=smallest),
            follow=(lambda columns: RunningRke(pair_sum)) if metric == "rke" else None,
            columns=None if reference is None else np.shape(reference)[1],
            samples_per_dimension=8 if below and not radial else 0,
            minimum=components + 1 if below and radial else MINIMUM_PAIRWISE,
        )

    return prepare


def _all_empirical(estimates: Iterable[Estimate]) -> str | None:
    """From few samples a spectrum is fitted, unless it is refused: then for no model."""
    empirical = {estimate.method == "empirical" for estimate in estimates}
    return "plugin" if len(empirical) == 2 else None


def _neighbours(name: str) -> Prepare:
    """One of precision, recall, density, coverage and the F-score."""

    def prepare(reference: Any, options: Mapping[str, Any], models: Sequence[Any]) -> Prepared:
        prepared = NeighbourReference(reference, **options)

        def estimate(x: Any, *, estimator: str = "debiased") -> Estimate:
            check_choice("estimator", estimator, ("debiased", "plugin"))
            return replace(neighbour_estimates(prepared, x)[name], estimator=estimator)

        return Prepared(
            estimate=estimate,
            columns=prepared.d,
            minimum=prepared.minimum,
            sampled_reference=True,
        )

    return prepare


def _authpct(reference: Any, options: Mapping[str, Any], models: Sequence[Any]) -> Prepared:
    prepared = TrainingRows(reference)
    return Prepared(estimate=prepared.estimate, columns=prepared.d)


def _mifid(reference: Any, options: Mapping[str, Any], models: Sequence[Any]) -> Prepared:
    prepared = MifidReference(reference, **options)
    return Prepared(
        estimate=prepared.estimate,
        columns=prepared.d,
        samples_per_dimension=4,
        sampled_reference=True,
    )


def _sliced(reference: Any, options: Mapping[str, Any], models: Sequence[Any]) -> Prepared:
    return _smooth(sliced_score(**options)).prepare(reference, {}, models)


def _smooth(score: SmoothScore) -> MetricSpec:
    """Describe a `SmoothScore` as every other metric is."""
    if score.name in _built_in:
        raise InputError(
            f"{score.name!r} is the name of another metric: choose another.", argument="name"
        )

    def prepare(reference: Any, options: Mapping[str, Any], models: Sequence[Any]) -> Prepared:
        prepared = SmoothReference(score, reference)
        return Prepared(
            estimate=prepared.estimate,
            columns=prepared.d,
            minimum=MINIMUM_PAIRWISE,
            sampled_reference=score.needs_reference,
        )

    return MetricSpec(
        name=score.name,
        title=score.name,
        prepare=prepare,
        higher_is_better=score.higher_is_better,
        reference="required" if score.needs_reference else "none",
    )


VENDI_OPTIONS = ("kernel", "bandwidth", "order", "method", "components", "seed")

_registry: dict[str, MetricSpec] = {}
_built_in: frozenset[str] = frozenset()


def register_metric(spec: MetricSpec | SmoothScore) -> MetricSpec:
    """Make a metric known by its name to `compare`, selection, the command line and the page.

    Parameters
    ----------
    spec : MetricSpec or SmoothScore

    Returns
    -------
    MetricSpec

    Raises
    ------
    InputError
        If the name, or an alias, is that of another metric. One of your own may be registered
        again, as a cell of a notebook that is run twice does.
    """
    if isinstance(spec, SmoothScore):
        spec = _smooth(spec)
    for name in (spec.name, *spec.aliases):
        known = _registry.get(name)
        if known is not None and (known.name != spec.name or known.name in _built_in):
            raise InputError(f"a metric named {name!r} is registered already.")
    for name in (spec.name, *spec.aliases):
        _registry[name] = spec
    return spec


def metric_names() -> tuple[str, ...]:
    """Names of all metrics, without aliases."""
    return tuple(dict.fromkeys(spec.name for spec in _registry.values()))


def metric_spec(metric: Any, *, argument: str = "metric") -> MetricSpec:
    """Return the description of a metric.

    Parameters
    ----------
    metric : str, MetricSpec, SmoothScore, CustomMetric or callable
        A name or alias; or a function from rows to an `Estimate`, which holds its own reference.
    argument : str
        What to call it in an error.

    Raises
    ------
    InputError
        If no metric has that name.
    """
    if isinstance(metric, MetricSpec):
        return metric
    if isinstance(metric, CustomMetric):
        return metric.spec()
    if isinstance(metric, SmoothScore):
        return _smooth(metric)
    if isinstance(metric, str) and metric in _registry:
        return _registry[metric]
    if callable(metric):
        return _function_spec(metric)
    return _registry[check_choice(argument, metric, metric_names())]


def _function_spec(function: Callable[[Rows], Estimate]) -> MetricSpec:
    def estimate(rows: Rows, *, estimator: str = "debiased") -> Estimate:
        return function(features_of(rows))

    name = getattr(function, "__name__", type(function).__name__)
    prepared = Prepared(estimate=estimate)
    return MetricSpec(
        name=name,
        title=name,
        prepare=lambda reference, options, models: prepared,
        reference="none",
    )


for _spec in (
    MetricSpec(
        name="fd",
        title="Fréchet distance",
        summary="Fréchet distance of means and covariances (FID); `fid` is the same",
        unit="squared feature units",
        prepare=_frechet,
        moments=True,
        estimators=("debiased", "plugin", "infinity"),
        aliases=("fid",),
    ),
    MetricSpec(
        name="kid",
        title="Kernel Inception distance",
        summary="kernel Inception distance: squared MMD, polynomial kernel, all pairs",
        prepare=_kernel("polynomial"),
        options=("degree", "gamma", "offset"),
    ),
    MetricSpec(
        name="is",
        title="Inception score",
        summary="Inception score: confidence and variety of class probabilities",
        prepare=_inception,
        higher_is_better=True,
        data="posteriors",
        reference="none",
        estimators=("debiased", "plugin", "infinity"),
    ),
    MetricSpec(
        name="vendi",
        title="Vendi score",
        summary="Vendi score: effective number of different samples, of any order",
        prepare=_vendi("vendi"),
        higher_is_better=True,
        reference="optional",
        options=VENDI_OPTIONS,
        common_estimator=_all_empirical,
    ),
    MetricSpec(
        name="rke",
        title="Vendi score of order 2 (RKE)",
        summary="Vendi score of order 2, unbiased at any number of samples",
        prepare=_vendi("rke"),
        higher_is_better=True,
        reference="optional",
        options=VENDI_OPTIONS,
    ),
    MetricSpec(
        name="cmmd",
        title="CMMD",
        summary="squared MMD of rows of length one, RBF kernel of bandwidth 10, × 1000",
        prepare=_kernel("cmmd"),
        options=("bandwidth",),
    ),
    MetricSpec(
        name="kad",
        title="Kernel audio distance",
        summary="kernel audio distance: squared MMD, RBF kernel of median width, × 100",
        prepare=_kernel("kad"),
        options=("bandwidth",),
    ),
    MetricSpec(
        name="energy",
        title="Energy distance",
        summary="energy distance: squared MMD with the kernel -‖x-y‖, no parameters",
        unit="feature units",
        prepare=_kernel("energy"),
    ),
    *(
        MetricSpec(
            name=name,
            title=TITLES[name],
            summary=summary,
            prepare=_neighbours(name),
            higher_is_better=True,
            options=("k", "splits", "seed"),
            fixed_size=True,
        )
        for name, summary in (
            ("precision", "share of generated rows in a neighbourhood of a real one"),
            ("recall", "share of real rows in a neighbourhood of a generated one"),
            ("density", "generated rows per neighbourhood of a real one, over k"),
            ("coverage", "share of neighbourhoods of real rows that hold a generated one"),
            ("f_score", "harmonic mean of precision and recall"),
        )
    ),
    MetricSpec(
        name="mind",
        title="Sliced Wasserstein distance (MIND)",
        summary="sliced Wasserstein distance along 1,000 random lines (needs torch)",
        unit="squared feature units",
        prepare=_sliced,
        options=("directions", "seed"),
    ),
    MetricSpec(
        name="authpct",
        title="AuthPct",
        summary="percentage of rows that are no near copies of a training row (the reference)",
        unit="%",
        prepare=_authpct,
        higher_is_better=True,
    ),
    MetricSpec(
        name="mifid",
        title="MIFID",
        summary="Fréchet distance over the mean cosine distance to the nearest training row",
        unit="squared feature units",
        prepare=_mifid,
        options=("threshold",),
    ),
    MetricSpec(
        name="mean",
        title="Mean",
        summary="mean of one value per sample, such as CLIPScore",
        prepare=_mean,
        higher_is_better=True,
        data="values",
        reference="none",
        options=("bounds",),
    ),
):
    register_metric(_spec)
_built_in = frozenset(metric_names())
