"""Scores by nearest neighbours: precision, recall and their like, and certified ceilings."""

from genbounds.estimators.neighbours._ceiling import (
    precision_recall_ceiling as precision_recall_ceiling,
)
from genbounds.estimators.neighbours._ceiling_result import Ceiling as Ceiling
from genbounds.estimators.neighbours._frame import Frame as Frame
from genbounds.estimators.neighbours._metrics import METRICS as METRICS
from genbounds.estimators.neighbours._pairs import Neighbours as Neighbours
from genbounds.estimators.neighbours._pairs import nearest_rows as nearest_rows
from genbounds.estimators.neighbours._precision_recall import (
    neighbour_estimates as neighbour_estimates,
)
from genbounds.estimators.neighbours._precision_recall import precision_recall as precision_recall
from genbounds.estimators.neighbours._realism import realism as realism
from genbounds.estimators.neighbours._reference import NeighbourReference as NeighbourReference
from genbounds.estimators.neighbours._result import TITLES as TITLES
from genbounds.estimators.neighbours._result import NeighbourScores as NeighbourScores
from genbounds.estimators.neighbours._result import PrecisionRecall as PrecisionRecall
from genbounds.estimators.neighbours._shares import ShareInterval as ShareInterval
