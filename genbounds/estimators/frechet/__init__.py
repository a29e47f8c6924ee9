"""The Fréchet distance: from moments alone, or from rows with its bias removed and an interval.

`_distance` has the public functions and the reference that scores any number of models, `_by_class`
the distance of every class. `_debias` chooses the method by the number of samples per dimension: a
spectrum fit for few, the expansion in 1/n for more. `_sample` prepares one sample, `_form` is its
first and second order, `_pair` joins two and makes the estimate. `_gaussian`: closed forms, and a
sample of which only mean and covariance are known. `_running` follows a sample that grows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from genbounds.estimators._metric_spec import MetricSpec, Prepared
from genbounds.estimators.frechet._by_class import ByClass as ByClass
from genbounds.estimators.frechet._by_class import frechet_by_class as frechet_by_class
from genbounds.estimators.frechet._distance import ESTIMATORS
from genbounds.estimators.frechet._distance import FrechetReference as FrechetReference
from genbounds.estimators.frechet._distance import frechet_distance as frechet_distance
from genbounds.estimators.frechet._distance import frechet_infinity as frechet_infinity
from genbounds.estimators.frechet._form import gaussian_bias as gaussian_bias
from genbounds.estimators.frechet._form import transport_from_sums as transport_from_sums
from genbounds.estimators.frechet._gaussian import (
    gaussian_bias_beyond_second_order as gaussian_bias_beyond_second_order,
)
from genbounds.estimators.frechet._gaussian import (
    gaussian_influence_variance as gaussian_influence_variance,
)
from genbounds.estimators.frechet._running import RunningFrechet as RunningFrechet
from genbounds.estimators.frechet._sample import FEW_RATIO as FEW_RATIO
from genbounds.estimators.frechet._sample import SPLIT_RATIO as SPLIT_RATIO


def _prepare(reference: Any, options: Mapping[str, Any], models: Sequence[Any]) -> Prepared:
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


FD = MetricSpec(
    name="fd",
    title="Fréchet distance",
    summary="Fréchet distance of means and covariances (FID); `fid` is the same",
    unit="squared feature units",
    prepare=_prepare,
    moments=True,
    estimators=ESTIMATORS,
    aliases=("fid",),
)

SFID = replace(
    FD,
    name="sfid",
    title="Fréchet distance of spatial features",
    summary="The same of spatial features; of files of statistics `mu_s` and `sigma_s`",
    statistics=("mu_s", "sigma_s"),
    aliases=(),
)
