"""The Fréchet distance: from moments alone, or from rows with its bias removed and an interval.

`_distance` has the public functions, `_by_class` that of every class.
`_reference` scores any number of models against one reference.
`_strategies` chooses the method by the number of samples per dimension: `_by_fit` for few,
`_by_expansion` for more, `_by_design` for groups, strata and shared units; all end in `_outcome`.
`_sample` prepares one sample and `_pair` joins two. `_expansion` is the mathematics of the
expansion in 1/n, `_known_moments` a sample of which only mean and covariance are known.
"""

from genbounds.estimators.frechet._by_class import ByClass as ByClass
from genbounds.estimators.frechet._by_class import frechet_by_class as frechet_by_class
from genbounds.estimators.frechet._distance import frechet_distance as frechet_distance
from genbounds.estimators.frechet._distance import frechet_infinity as frechet_infinity
from genbounds.estimators.frechet._gaussian import gaussian_bias as gaussian_bias
from genbounds.estimators.frechet._gaussian import (
    gaussian_bias_beyond_second_order as gaussian_bias_beyond_second_order,
)
from genbounds.estimators.frechet._gaussian import transport_from_sums as transport_from_sums
from genbounds.estimators.frechet._known_moments import (
    gaussian_influence_variance as gaussian_influence_variance,
)
from genbounds.estimators.frechet._metric import FD as FD
from genbounds.estimators.frechet._reference import FrechetReference as FrechetReference
from genbounds.estimators.frechet._running import RunningFrechet as RunningFrechet
from genbounds.estimators.frechet._sample import FEW_RATIO as FEW_RATIO
from genbounds.estimators.frechet._sample import SPLIT_RATIO as SPLIT_RATIO
