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


Pair = Callable[[np.ndarray, np.ndarray], float]


def kernel_inception_distances(subsets: int = 100, size: int = 1000) -> dict[str, Pair]:
    """KID as the mean over random subsets, each tool's own default."""
    found: dict[str, Pair] = {}
    if (fidelity := load("torch_fidelity.metric_kid")) is not None:
        import torch

        def of_features(x: np.ndarray, y: np.ndarray) -> float:
            options = {"kid_subsets": subsets, "kid_subset_size": min(size, len(x), len(y))}
            told = fidelity.kid_features_to_metric(
                torch.from_numpy(x), torch.from_numpy(y), verbose=False, **options
            )
            return float(told["kernel_inception_distance_mean"])

        found["torch-fidelity"] = of_features
    if (metrics := load("torchmetrics.image.kid")) is not None:
        import torch

        def collected(x: np.ndarray, y: np.ndarray) -> float:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                kid = metrics.KernelInceptionDistance(
                    feature=torch.nn.Identity(),
                    subsets=subsets,
                    subset_size=min(size, len(x), len(y)),
                )
            kid.update(torch.from_numpy(x), real=False)
            kid.update(torch.from_numpy(y), real=True)
            return float(kid.compute()[0])

        found["torchmetrics"] = collected
    if (clean := load("cleanfid.fid")) is not None:
        found["clean-fid"] = lambda x, y: clean.kernel_distance(
            y, x, num_subsets=subsets, max_subset_size=size
        )
    return found


def cmmds() -> dict[str, Pair]:
    """CMMD by clip-mmd, a torch translation of the authors' program: its two ways."""
    if (published := load("clip_mmd.calculation")) is None:
        return {}
    import torch

    def directions(rows: np.ndarray) -> Any:
        return torch.nn.functional.normalize(torch.from_numpy(rows))

    return {
        "clip-mmd, whole matrices": lambda x, y: float(published.mmd(directions(x), directions(y))),
        "clip-mmd, blocks (its default)": lambda x, y: published.mmd_efficient(
            directions(x), directions(y), low_mem=True, coeff_bs=256
        ),
    }


def kernel_audio_distances(bandwidth: float | None) -> dict[str, Pair]:
    """KAD as its paper writes it: kadtk, the authors' package, needs TensorFlow and NumPy 1."""
    if load("torch") is None:
        return {}
    import torch

    def kernel(x: Any, y: Any) -> Any:
        squares = (x * x).sum(1)[:, None] + (y * y).sum(1)[None, :] - 2.0 * (x @ y.T)
        return torch.exp(squares / (-2.0 * bandwidth**2))

    def within(x: Any) -> Any:
        return kernel(x, x).fill_diagonal_(0.0).sum() / (len(x) * (len(x) - 1))

    def whole(x: np.ndarray, y: np.ndarray) -> float:
        one, two = torch.from_numpy(x), torch.from_numpy(y)
        return float(100.0 * (within(one) + within(two) - 2.0 * kernel(one, two).mean()))

    return {"torch, whole matrices": whole}


def energy_distances() -> dict[str, Pair]:
    """Energy distance by whole matrices of distances (scipy's own is for numbers alone)."""
    from scipy.spatial.distance import cdist

    found: dict[str, Pair] = {
        "scipy's cdist, whole matrices": lambda x, y: float(
            2.0 * cdist(x, y).mean() - cdist(x, x).mean() - cdist(y, y).mean()
        )
    }
    if load("torch") is not None:
        import torch

        def whole(x: np.ndarray, y: np.ndarray) -> float:
            one, two = torch.from_numpy(x), torch.from_numpy(y)
            distance = torch.cdist
            means = [distance(*pair).mean() for pair in ((one, two), (one, one), (two, two))]
            return float(2.0 * means[0] - means[1] - means[2])

        found["torch's cdist, whole matrices"] = whole
    return found


def sliced_distances() -> dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], float]]:
    """Squared sliced Wasserstein distance in given directions, in both precisions."""
    if (ot := load("ot")) is None:
        return {}

    def sliced(x: np.ndarray, y: np.ndarray, theta: np.ndarray) -> float:
        return float(ot.sliced_wasserstein_distance(x, y, projections=theta) ** 2)

    return {
        "POT": lambda x, y, theta: sliced(x.astype("f8"), y.astype("f8"), theta),
        "POT, single precision": lambda x, y, theta: sliced(x, y, theta.astype("f4")),
    }


def means() -> dict[str, Callable[[np.ndarray], float | str]]:
    """Mean of a column; its interval by the bootstrap (BCa, 9,999 resamples)."""
    from scipy.stats import bootstrap

    def resampled(values: np.ndarray) -> str:
        found = bootstrap((values,), np.mean, batch=100, rng=0).confidence_interval
        return f"{values.mean():.7g} [{found.low:.4g}, {found.high:.4g}]"

    return {"numpy": lambda values: float(values.mean()), "scipy's bootstrap": resampled}


def precisions_and_recalls(k: int) -> dict[str, Callable[[np.ndarray, np.ndarray], str]]:
    """Precision and recall by torch-fidelity: its default, and its way that saves memory."""
    if (fidelity := load("torch_fidelity.metric_prc")) is None:
        return {}
    import torch

    def of_features(x: np.ndarray, y: np.ndarray, *, saving: bool) -> str:
        found = fidelity.prc_features_to_metric(
            torch.from_numpy(x),
            torch.from_numpy(y),
            prc_neighborhood=k,
            prc_batch_size=10_000,
            save_cpu_ram=saving,
            verbose=False,
        )
        return f"{found['precision']:.7g}, {found['recall']:.7g}"

    return {
        "torch-fidelity": lambda x, y: of_features(x, y, saving=False),
        "torch-fidelity, save_cpu_ram": lambda x, y: of_features(x, y, saving=True),
    }
