"""Scores of generative models with their bias removed and an interval.

`Moments`, `frechet_distance`, `kernel_inception_distance`, `inception_score`, `vendi_score`,
`sobol_normal`, `compare` and `convergence` are the everyday names; `FrechetReference`,
`KernelReference`, `inception_expansion`, `growing_scores`, `Expansion` and `difference` serve code
that scores many models, such as selection.
"""

from genbounds.estimators._compare import METRICS as METRICS
from genbounds.estimators._compare import compare as compare
from genbounds.estimators._compare import expand_all as expand_all
from genbounds.estimators._compare import metric_expansion as metric_expansion
from genbounds.estimators._compare import rank as rank
from genbounds.estimators._convergence import convergence as convergence
from genbounds.estimators._convergence import growing_scores as growing_scores
from genbounds.estimators._expansion import Expansion as Expansion
from genbounds.estimators._expansion import difference as difference
from genbounds.estimators._expansion import difference_stderr as difference_stderr
from genbounds.estimators._expansion import student_quantile as student_quantile
from genbounds.estimators._extrapolation import Subsets as Subsets
from genbounds.estimators._inception import inception_expansion as inception_expansion
from genbounds.estimators._inception import inception_infinity as inception_infinity
from genbounds.estimators._inception import inception_score as inception_score
from genbounds.estimators._inception import inception_splits as inception_splits
from genbounds.estimators._moments import Moments as Moments
from genbounds.estimators._resampling import Bootstrap as Bootstrap
from genbounds.estimators._resampling import Jackknife as Jackknife
from genbounds.estimators._sobol import SobolCache as SobolCache
from genbounds.estimators._sobol import SobolNormal as SobolNormal
from genbounds.estimators._sobol import score_over_scramblings as score_over_scramblings
from genbounds.estimators._sobol import sobol_cache as sobol_cache
from genbounds.estimators._sobol import sobol_normal as sobol_normal
from genbounds.estimators.frechet import FEW_RATIO as FEW_RATIO
from genbounds.estimators.frechet import SPLIT_RATIO as SPLIT_RATIO
from genbounds.estimators.frechet import FrechetReference as FrechetReference
from genbounds.estimators.frechet import frechet_distance as frechet_distance
from genbounds.estimators.frechet import frechet_infinity as frechet_infinity
from genbounds.estimators.frechet import gaussian_bias as gaussian_bias
from genbounds.estimators.frechet import (
    gaussian_bias_beyond_second_order as gaussian_bias_beyond_second_order,
)
from genbounds.estimators.frechet import transport_from_sums as transport_from_sums
from genbounds.estimators.kernels import KernelReference as KernelReference
from genbounds.estimators.kernels import PolynomialKernel as PolynomialKernel
from genbounds.estimators.kernels import kernel_inception_distance as kernel_inception_distance
from genbounds.estimators.kernels import median_bandwidth as median_bandwidth
from genbounds.estimators.kernels import squared_kernel_sum as squared_kernel_sum
from genbounds.estimators.vendi import vendi_expansion as vendi_expansion
from genbounds.estimators.vendi import vendi_metric as vendi_metric
from genbounds.estimators.vendi import vendi_options as vendi_options
from genbounds.estimators.vendi import vendi_score as vendi_score
