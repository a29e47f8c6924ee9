"""Scores as ``torchmetrics.Metric``, for training loops and Lightning.

`FrechetDistance` keeps moments only; `FeatureMetric` keeps the rows and computes any metric.

Not imported with the package: it needs torchmetrics (``pip install 'genbounds[torchmetrics]'``).
"""

from genbounds.torchmetrics._features import FeatureMetric as FeatureMetric
from genbounds.torchmetrics._frechet import FrechetDistance as FrechetDistance
