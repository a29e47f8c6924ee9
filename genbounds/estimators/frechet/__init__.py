"""The Fréchet distance: from moments alone, or from rows with its bias removed and an interval.

`_distance` has the public functions and the reference that scores any number of models, by the
method that the number of samples per dimension calls for; `_by_class` the distance of every class.
`_sample` prepares one sample, `_form` is its first and second order, `_pair` joins two, expands the
distance in 1/n and makes the estimate; `_few` fits a spectrum to few samples. `_gaussian`: closed
forms, and a sample of which only mean and covariance are known. `_running`: one that grows.
"""

from genbounds.estimators.frechet._by_class import ByClass as ByClass
from genbounds.estimators.frechet._by_class import frechet_by_class as frechet_by_class
from genbounds.estimators.frechet._distance import FD as FD
from genbounds.estimators.frechet._distance import SFID as SFID
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
