"""Scores of generative models with their bias removed and an interval.

`Moments`, `frechet_distance`, `kernel_inception_distance`, `kernel_distance`, `inception_score`,
`vendi_score`, `sliced_distance`, `precision_recall`, `mean_score`, `sobol_normal`, `compare` and
`convergence` are the everyday names; `SmoothScore`, or `MetricSpec` and `register_metric`, add a
metric; `FrechetReference`, `KernelReference`, `NeighbourReference`, `Estimate`, `SampleError` and
`difference` serve code that scores many models, such as selection.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from genbounds.core.checks import row_ids as row_ids
from genbounds.core.checks import shared_rows as shared_rows
from genbounds.core.difference import EstimateDifference as EstimateDifference
from genbounds.core.difference import difference as difference
from genbounds.core.estimate import EXACT as EXACT
from genbounds.core.estimate import Estimate as Estimate
from genbounds.core.estimate import SampleError as SampleError
from genbounds.core.estimate import heavy_tails as heavy_tails
from genbounds.core.estimate import small_sample as small_sample
from genbounds.core.estimate import student_quantile as student_quantile
from genbounds.core.estimate import welch_degrees_of_freedom as welch_degrees_of_freedom
from genbounds.core.moments import Moments as Moments
from genbounds.core.scale import unit_of as unit_of
from genbounds.estimators import _mean, copies, inception
from genbounds.estimators._across import EncoderRanking as EncoderRanking
from genbounds.estimators._across import across as across
from genbounds.estimators._compare import check_comparable as check_comparable
from genbounds.estimators._compare import compare as compare
from genbounds.estimators._compare import estimate_all as estimate_all
from genbounds.estimators._compare import estimate_each as estimate_each
from genbounds.estimators._compare import prepare_all as prepare_all
from genbounds.estimators._compare import rank as rank
from genbounds.estimators._compare import winner_score as winner_score
from genbounds.estimators._convergence import convergence as convergence
from genbounds.estimators._convergence import growing_scores as growing_scores
from genbounds.estimators._extrapolation import Subsets as Subsets
from genbounds.estimators._mean import mean_score as mean_score
from genbounds.estimators._metric_spec import BUILT_IN
from genbounds.estimators._metric_spec import CustomMetric as CustomMetric
from genbounds.estimators._metric_spec import MetricSpec as MetricSpec
from genbounds.estimators._metric_spec import Prepared as Prepared
from genbounds.estimators._metric_spec import Running as Running
from genbounds.estimators._metric_spec import metric_names as metric_names
from genbounds.estimators._metric_spec import metric_spec as metric_spec
from genbounds.estimators._metric_spec import register_metric as register_metric
from genbounds.estimators._sobol import SobolCache as SobolCache
from genbounds.estimators._sobol import SobolNormal as SobolNormal
from genbounds.estimators._sobol import score_over_scramblings as score_over_scramblings
from genbounds.estimators._sobol import sobol_cache as sobol_cache
from genbounds.estimators._sobol import sobol_normal as sobol_normal
from genbounds.estimators._two_level import TwoLevel as TwoLevel
from genbounds.estimators._two_level import two_level as two_level
from genbounds.estimators.copies import MifidReference as MifidReference
from genbounds.estimators.copies import TrainingRows as TrainingRows
from genbounds.estimators.copies import authpct as authpct
from genbounds.estimators.copies import mifid as mifid
from genbounds.estimators.frechet._by_class import ByClass as ByClass
from genbounds.estimators.frechet._by_class import frechet_by_class as frechet_by_class
from genbounds.estimators.frechet._distance import FD, SFID
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
from genbounds.estimators.inception import RunningInception as RunningInception
from genbounds.estimators.inception import inception_estimate as inception_estimate
from genbounds.estimators.inception import inception_infinity as inception_infinity
from genbounds.estimators.inception import inception_score as inception_score
from genbounds.estimators.inception import inception_splits as inception_splits
from genbounds.estimators.kernels._cross_fitted import CrossedMeans as CrossedMeans
from genbounds.estimators.kernels._cross_fitted import Quadratic as Quadratic
from genbounds.estimators.kernels._cross_fitted import crossed_distances as crossed_distances
from genbounds.estimators.kernels._cross_fitted import crossed_squares as crossed_squares
from genbounds.estimators.kernels._distance import CMMD, ENERGY, KAD, KID
from genbounds.estimators.kernels._distance import KernelReference as KernelReference
from genbounds.estimators.kernels._distance import RunningKid as RunningKid
from genbounds.estimators.kernels._distance import kernel_distance as kernel_distance
from genbounds.estimators.kernels._distance import (
    kernel_inception_distance as kernel_inception_distance,
)
from genbounds.estimators.kernels._pair_kernels import PolynomialKernel as PolynomialKernel
from genbounds.estimators.kernels._pair_kernels import median_bandwidth as median_bandwidth
from genbounds.estimators.kernels._rke import RunningRke as RunningRke
from genbounds.estimators.kernels._rke import squared_kernel_sum as squared_kernel_sum
from genbounds.estimators.neighbours._ceiling import Ceiling as Ceiling
from genbounds.estimators.neighbours._ceiling import (
    precision_recall_ceiling as precision_recall_ceiling,
)
from genbounds.estimators.neighbours._pairs import realism as realism
from genbounds.estimators.neighbours._precision_recall import METRICS
from genbounds.estimators.neighbours._precision_recall import precision_recall as precision_recall
from genbounds.estimators.neighbours._reference import NeighbourReference as NeighbourReference
from genbounds.estimators.neighbours._scored import NeighbourScores as NeighbourScores
from genbounds.estimators.neighbours._scored import PrecisionRecall as PrecisionRecall
from genbounds.estimators.smooth._check import ScoreCheck as ScoreCheck
from genbounds.estimators.smooth._check import check_score as check_score
from genbounds.estimators.smooth._score import SmoothScore as SmoothScore
from genbounds.estimators.smooth._score import kernel_product as kernel_product
from genbounds.estimators.smooth._sliced import MIND
from genbounds.estimators.smooth._sliced import sliced_distance as sliced_distance
from genbounds.estimators.spectrum_fit._few_rows import from_few as from_few
from genbounds.estimators.vendi._conditional import ConditionalVendi as ConditionalVendi
from genbounds.estimators.vendi._conditional import conditional_vendi as conditional_vendi
from genbounds.estimators.vendi._score import RKE, VENDI
from genbounds.estimators.vendi._score import vendi_estimate as vendi_estimate
from genbounds.estimators.vendi._score import vendi_options as vendi_options
from genbounds.estimators.vendi._score import vendi_score as vendi_score

_BUILT_IN = (
    FD,
    KID,
    inception.IS,
    VENDI,
    RKE,
    CMMD,
    KAD,
    ENERGY,
    *METRICS,
    MIND,
    copies.AUTHPCT,
    copies.MIFID,
    _mean.MEAN,
    SFID,
)
BUILT_IN.update({name: spec for spec in _BUILT_IN for name in (spec.name, *spec.aliases)})

if TYPE_CHECKING:
    from genbounds.mixtures import MixtureDistance as MixtureDistance
    from genbounds.mixtures import Potentials as Potentials
    from genbounds.mixtures import frechet_mixture as frechet_mixture
    from genbounds.mixtures import least_distance as least_distance
    from genbounds.mixtures import mixture_estimate as mixture_estimate

_MIXTURES = "MixtureDistance Potentials frechet_mixture least_distance mixture_estimate".split()

# Mixtures are a leaf above: these documented names are looked up there when they are asked for.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _MIXTURES:
            return getattr(import_module("genbounds.mixtures"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# By the names that everybody uses.
fid, kid = frechet_distance, kernel_inception_distance
