"""Scores by nearest neighbours: precision, recall, density and coverage, and certified ceilings."""

from genbounds.estimators.neighbours._ceiling import Ceiling as Ceiling
from genbounds.estimators.neighbours._ceiling import (
    precision_recall_ceiling as precision_recall_ceiling,
)
from genbounds.estimators.neighbours._precision_recall import PrecisionRecall as PrecisionRecall
from genbounds.estimators.neighbours._precision_recall import estimate_four as estimate_four
from genbounds.estimators.neighbours._precision_recall import precision_recall as precision_recall
from genbounds.estimators.neighbours._reference import NeighbourReference as NeighbourReference
from genbounds.estimators.neighbours._scored import Four as Four
