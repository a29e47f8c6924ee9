"""Any score that is a smooth function of weighted rows, by differentiation in the weights."""

from genbounds.estimators.smooth._score import SmoothReference as SmoothReference
from genbounds.estimators.smooth._score import SmoothScore as SmoothScore
from genbounds.estimators.smooth._sliced import Sliced as Sliced
from genbounds.estimators.smooth._sliced import sliced_score as sliced_score
