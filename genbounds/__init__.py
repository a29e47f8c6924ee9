"""genbounds: the statistics of judging generative models."""

from genbounds import bounds as bounds
from genbounds import estimators as estimators
from genbounds import features as features
from genbounds import select as select
from genbounds import simulate as simulate
from genbounds.estimators import Moments as Moments
from genbounds.estimators import compare as compare
from genbounds.estimators import frechet_distance as frechet_distance
from genbounds.estimators import inception_score as inception_score
from genbounds.estimators import kernel_inception_distance as kernel_inception_distance
from genbounds.estimators import score_over_scramblings as score_over_scramblings
from genbounds.estimators import sobol_cache as sobol_cache
from genbounds.estimators import sobol_normal as sobol_normal
from genbounds.estimators import vendi_score as vendi_score
from genbounds.results import Diagnostic as Diagnostic
from genbounds.results import Difference as Difference
from genbounds.results import Ranking as Ranking
from genbounds.results import Score as Score
from genbounds.samples import Sample as Sample
from genbounds.validation import InputError as InputError

__version__ = "0.1.0"
