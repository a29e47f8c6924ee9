"""Scores by nearest neighbours: precision, recall and their like, and certified ceilings."""

from genbounds.estimators.neighbours._precision_recall import (
    neighbour_estimates as neighbour_estimates,
)
