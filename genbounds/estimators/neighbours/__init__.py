"""Scores by nearest neighbours: precision, recall and their like, and certified ceilings."""

from genbounds.estimators.neighbours._pairs import Neighbours as Neighbours
from genbounds.estimators.neighbours._pairs import framing as framing
from genbounds.estimators.neighbours._pairs import nearest_rows as nearest_rows
from genbounds.estimators.neighbours._precision_recall import METRICS as METRICS
from genbounds.estimators.neighbours._precision_recall import (
    neighbour_estimates as neighbour_estimates,
)
from genbounds.estimators.neighbours._scored import share_interval as share_interval
