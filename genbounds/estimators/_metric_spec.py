"""What a metric is: a `MetricSpec`, whose `prepare` takes a reference and options; all by name.

It returns a `Prepared`, which scores any number of models alike. Each score has its description
beside it, and `genbounds.estimators` lists them. `register_metric` adds one of your own
(docs/extending.md).
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from genbounds._text import quoted
from genbounds.core.estimate import Estimate, SampleError
from genbounds.core.moments import Moments
from genbounds.samples import features_of
from genbounds.validation import Float, InputError, check_choice

if TYPE_CHECKING:
    from genbounds.estimators.smooth._score import SmoothScore

Rows = NDArray[Any]


class Running(Protocol):
    """A plug-in score of a sample that grows."""

    @property
    def n(self) -> int:
        """Rows taken up."""

    @property
    def nbytes(self) -> int:
        """Memory held."""

    def add(self, rows: Rows) -> None:
        """Take up rows of shape (b, d)."""

    def loss(self) -> float:
        """Plug-in score of all rows so far, turned so that small is good; -inf before two."""


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
    reference: Any = None  # of a metric, which stands above what describes it
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


def prepared_by(
    reference_class: Callable[..., Any],
    reference: Any,
    options: Mapping[str, Any],
    models: Sequence[Any],
    *,
    follow: Callable[[Any], Running] | None = None,
    **words: Any,
) -> Prepared:
    """Prepare by a class: with all but the next three arguments given, the `prepare` of a metric.

    Parameters
    ----------
    reference_class : callable
        From reference and options to an object with `estimate` and `d`, the reference's features.
    reference, options, models
        As in `Prepare`.
    follow : callable, optional
        From that object to a plug-in score that follows a growing sample.
    **words
        What else its `Prepared` says.
    """
    prepared = reference_class(reference, **options)
    running = None if follow is None else lambda columns: follow(prepared)
    return Prepared(estimate=prepared.estimate, columns=prepared.d, follow=running, **words)


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
    statistics : tuple of str
        What files call that mean and that covariance.
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
    statistics: tuple[str, str] = ("mu", "sigma")
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
                "compare samples of one size with gb.compare (genbounds score)."
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
        if options is not None and not isinstance(options, Mapping):
            raise InputError(
                f"must be a dict of names and values; got {quoted(options)}.", "options"
            )
        given = dict(options or {})
        unknown = [name for name in given if name not in self.options]
        if unknown:
            legal = ", ".join(self.options)
            which = f"must be among: {legal}" if legal else "must be empty: it takes none"
            raise InputError(f"of metric {self.name!r} {which}; got {unknown[0]!r}.", "options")
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
        return replace(_spec_of(self.name, prepared), higher_is_better=self.higher_is_better)


def _spec_of(name: str, prepared: Prepared) -> MetricSpec:
    """Describe a metric that holds its own reference."""
    return MetricSpec(
        name=name, title=name, prepare=lambda reference, options, models: prepared, reference="none"
    )


BUILT_IN: dict[str, MetricSpec] = {}
"""By their names and aliases; `genbounds.estimators` fills it."""

_registry = ChainMap({}, BUILT_IN)

_NAME = re.compile(r"(?!-|help$)[^\s:]+")
"""On the command line `--metric help` lists the metrics, and `module:name` is a user's own."""


def register_metric(spec: MetricSpec | SmoothScore) -> MetricSpec:
    """Make a metric known by its name to `compare` and selection.

    The command line takes it as ``--metric module:name``, whether it is registered or not.

    Parameters
    ----------
    spec : MetricSpec or SmoothScore

    Returns
    -------
    MetricSpec

    Raises
    ------
    InputError
        If it is no metric; or if the name, or an alias, is that of another one or none that the
        command line could take. One of your own may be registered again, as a cell of a notebook
        that is run twice does.
    """
    if not isinstance(spec, MetricSpec) and hasattr(spec, "spec"):
        spec = spec.spec()
    if not isinstance(spec, MetricSpec):
        raise InputError(f"must be a SmoothScore or a MetricSpec; got {quoted(spec)}.", "spec")
    for name in (spec.name, *spec.aliases):
        given: object = name  # callers are not type-checked
        if not (isinstance(given, str) and given.isprintable() and _NAME.fullmatch(given)):
            raise InputError(
                "must be a text without spaces and colons that does not begin with '-' and is not "
                f"'help'; got {quoted(name)}.",
                argument="name",
            )
        known = _registry.get(name)
        if known is not None and (known.name != spec.name or known.name in BUILT_IN):
            raise InputError(f"a metric named {name!r} is registered already.")
    _registry.update(dict.fromkeys((spec.name, *spec.aliases), spec))
    return spec


def metric_names() -> tuple[str, ...]:
    """Names of all metrics, without aliases."""
    return tuple(dict.fromkeys(spec.name for spec in _registry.values()))


def metric_spec(metric: Any) -> MetricSpec:
    """Return the description of a metric.

    Parameters
    ----------
    metric : str, MetricSpec, SmoothScore, CustomMetric or callable
        A name or alias; or a function from rows to an `Estimate`, which holds its own reference.

    Raises
    ------
    InputError
        If no metric has that name.
    """
    if isinstance(metric, MetricSpec):
        return metric
    if hasattr(metric, "spec"):  # one of your own
        own: MetricSpec = metric.spec()
        return own
    if isinstance(metric, str):
        # FID, KID, IS are written so; a metric of one's own may have capitals of its own.
        for name in (metric, metric.lower()):
            if name in _registry:
                return _registry[name]
    if callable(metric):

        def estimate(rows: Rows, *, estimator: str = "debiased") -> Estimate:
            score: Estimate = metric(features_of(rows))
            return score

        name = getattr(metric, "__name__", type(metric).__name__)
        return _spec_of(name, Prepared(estimate=estimate))
    return _registry[check_choice("metric", metric, _registry)]
