"""The Inception score.

`_score` has the public functions, `_estimate` the steps from posteriors to an estimate, `_rows` the
mathematics: influence and quadratic part of every row.
"""

from genbounds.estimators.inception._estimate import inception_estimate as inception_estimate
from genbounds.estimators.inception._metric import IS as IS
from genbounds.estimators.inception._running import RunningInception as RunningInception
from genbounds.estimators.inception._score import inception_infinity as inception_infinity
from genbounds.estimators.inception._score import inception_score as inception_score
from genbounds.estimators.inception._score import inception_splits as inception_splits
