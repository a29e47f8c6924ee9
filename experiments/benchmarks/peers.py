"""The tools people use, as far as they are installed: the function that each spends its time in."""

from __future__ import annotations

import contextlib
import importlib
import io
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from experiments.torchvision_builds import make_importable


def load(module: str) -> Any | None:
    """Import a peer's module; None, with a message, where it is missing."""
    make_importable()
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            return importlib.import_module(module)
    except ImportError as error:
        print(f"skipped {module}: {error}", file=sys.stderr)
        return None


Statistics = tuple[np.ndarray, np.ndarray]
Distance = Callable[[Statistics, Statistics], float]


def distances() -> dict[str, Distance]:
    """Fréchet distance from (mean, covariance) by each peer."""
    found: dict[str, Distance] = {}
    if (fid := load("pytorch_fid.fid_score")) is not None:
        found["pytorch-fid"] = lambda a, b: fid.calculate_frechet_distance(*a, *b)
    if (clean := load("cleanfid.fid")) is not None:
        found["clean-fid"] = lambda a, b: clean.frechet_distance(*a, *b)
    if (metrics := load("torchmetrics.image.fid")) is not None:
        import torch

        found["torchmetrics"] = lambda a, b: float(
            metrics._compute_fid(*(torch.from_numpy(part) for part in (*a, *b)))
        )
    if (fidelity := load("torch_fidelity.metric_fid")) is not None:
        found["torch-fidelity"] = lambda a, b: fidelity.fid_statistics_to_metric(
            {"mu": a[0], "sigma": a[1]}, {"mu": b[0], "sigma": b[1]}, False
        )["frechet_inception_distance"]
    return found


def feature_distances(batch: int = 5000) -> dict[str, Callable[[np.ndarray, np.ndarray], float]]:
    """Fréchet distance from features; torchmetrics takes them in batches of `batch` rows."""
    found: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {}
    known = distances()

    def from_statistics(distance: Distance) -> Callable[[np.ndarray, np.ndarray], float]:
        # As all of them do: mean in the features' type, covariance by np.cov.
        return lambda x, y: distance(
            *((np.mean(z, axis=0), np.cov(z, rowvar=False)) for z in (x, y))
        )

    def in_mean_type(distance: Distance) -> Distance:
        return lambda a, b: distance(
            (a[0].astype(a[1].dtype), a[1]), (b[0].astype(b[1].dtype), b[1])
        )

    for name, distance in known.items():
        if name != "torchmetrics":
            found[name] = from_statistics(in_mean_type(distance))
    if (metrics := load("torchmetrics.image.fid")) is not None:
        import torch

        def streamed(x: np.ndarray, y: np.ndarray) -> float:
            features = torch.nn.Identity()
            features.num_features = x.shape[1]
            fid = metrics.FrechetInceptionDistance(feature=features)
            fid.set_dtype(torch.float64)
            for rows, real in ((x, False), (y, True)):
                for start in range(0, len(rows), batch):
                    fid.update(torch.from_numpy(rows[start : start + batch]), real=real)
            return float(fid.compute())

        found["torchmetrics"] = streamed
    return found


def inception_scores() -> dict[str, Callable[[np.ndarray], float]]:
    """Inception score from logits, ten splits."""
    found: dict[str, Callable[[np.ndarray], float]] = {}
    if (fidelity := load("torch_fidelity.metric_isc")) is not None:
        import torch

        found["torch-fidelity"] = lambda logits: fidelity.isc_features_to_metric(
            torch.from_numpy(logits)
        )["inception_score_mean"]
    if (metrics := load("torchmetrics.image.inception")) is not None:
        import torch

        def streamed(logits: np.ndarray) -> float:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                score = metrics.InceptionScore(feature=torch.nn.Identity())
            score.update(torch.from_numpy(logits))
            return float(score.compute()[0])

        found["torchmetrics"] = streamed
    return found
