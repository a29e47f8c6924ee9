"""The Fréchet distance from moments, and a random part of the rows, that processes merge."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar
from zlib import crc32

import numpy as np
import torch

from genbounds.core.moments import check_keep
from genbounds.estimators import Moments, frechet_distance
from genbounds.features import Encoder
from genbounds.files import Statistics
from genbounds.torchmetrics._two_samples import TwoSamples
from genbounds.validation import InputError, check_choice, check_count, check_flag


class FrechetDistance(TwoSamples):
    """Debiased Fréchet distance with its interval, from merged moments.

    Parameters
    ----------
    encoder : callable, torch module or genbounds.features.Encoder, optional
        Turns what `update` is given into features (n, d); without one it is given features. One of
        `genbounds.features.load_encoder` takes uint8 images (n, 3, h, w) and scales them as it
        was trained; any other gets the images as they are.
    d : int
        Number of features.
    estimator : {"debiased", "plugin"}
    level : float
        Coverage of the interval.
    keep : int
        How many rows of each sample, chosen at random, are kept for their fourth moments. 0: those
        of a Gaussian distribution are taken, which a caution says.
    reset_real_features : bool
        Whether `reset` forgets the real samples as well. False keeps them through all epochs.
    **kwargs
        Of ``torchmetrics.Metric``.

    Attributes
    ----------
    result : Score or None
        What `compute` found last, with its warnings.

    Notes
    -----
    The state of a sample is one vector: n, the mean and the sum of squares and products about the
    mean, in float64. Processes (and batches) are merged by Chan, Golub & LeVeque's update, so that
    the result does not depend on how samples are spread over devices, up to rounding.

    Beside it `keep` rows are kept, because bias and interval depend on fourth moments: 2,048 rows
    of 2,048 features take as much memory as the covariance, 34 MB. Every row has a random key, and
    those with the least keys stay: the same for all sizes of batches, others where the samples are
    spread over other processes. For all rows take `FeatureMetric`.

    Calling the metric is `update`: no batch has a distance of its own.
    """

    _of_real: ClassVar[tuple[str, ...]] = ("real", "real_rows")
    higher_is_better: ClassVar[bool] = False
    plot_lower_bound: ClassVar[float] = 0.0
    _title = "Fréchet distance"

    def __init__(
        self,
        encoder: Callable[[Any], Any] | Encoder | None = None,
        *,
        d: int,
        estimator: str = "debiased",
        level: float = 0.95,
        keep: int = 2048,
        reset_real_features: bool = True,
        **kwargs: Any,
    ) -> None:
        check_choice("estimator", estimator, ("debiased", "plugin"))
        super().__init__(
            encoder,
            estimator=estimator,
            level=level,
            reset_real_features=reset_real_features,
            **kwargs,
        )
        self.d = check_count("d", d)
        check_keep(keep)
        empty = torch.zeros(1 + d + d * d, dtype=torch.float64)
        none = torch.full((keep, 1 + d), math.inf, dtype=torch.float64)
        for name in ("real", "fake"):
            self.add_state(name, default=empty.clone(), dist_reduce_fx=_merge)
            self.add_state(f"{name}_rows", default=none.clone(), dist_reduce_fx=_least_keys)

    def update(self, samples: Any, real: bool) -> None:
        """Absorb a batch: features (n, d), or what the encoder turns into them.

        Raises
        ------
        InputError
            If the features have another shape, or are not finite, or `real` is no truth value.
        """
        real = check_flag("real", real)
        rows = self._features(samples, self.d).to(self.real.device, torch.float64)
        if len(rows) == 0:
            return
        mean = rows.mean(dim=0)
        centred = rows - mean
        count = rows.new_tensor([len(rows)])
        batch = torch.cat([count, mean, (centred.T @ centred).flatten()])
        name = "real" if real else "fake"
        self._keep(f"{name}_rows", rows, before=round(getattr(self, name)[0].item()))
        setattr(self, name, _merge(torch.stack([getattr(self, name), batch])))

    def _keep(self, name: str, rows: Any, *, before: int) -> None:
        """Draw keys for the rows, which come after `before` others; keep those with the least."""
        stream = np.random.PCG64(crc32(name.encode())).advance(before)
        keys = torch.as_tensor(np.random.Generator(stream).random(len(rows))).to(rows)
        kept = getattr(self, name)
        fresh = keys < kept[:, 0].max() if len(kept) else torch.zeros_like(keys, dtype=torch.bool)
        if fresh.any():
            keyed = torch.cat([keys[:, None], rows], dim=1)
            setattr(self, name, _least_keys([kept, keyed[fresh]]))

    def compute(self) -> dict[str, float]:
        """Return the distance: ``{"value": …, "low": …, "high": …, "reliable": 1.0 or 0.0}``.

        Raises
        ------
        InputError
            If there are fewer than two samples of a kind.
        """
        real, fake = (self.moments(name) for name in ("real", "fake"))
        return self._numbers(
            frechet_distance(fake, real, estimator=self.estimator, level=self.level)
        )

    def moments(self, side: str) -> Moments:
        """Return mean, covariance and n of one `side`, "real" or "fake", on this process."""
        check_choice("side", side, ("real", "fake"))
        state = getattr(self, side).cpu().numpy()
        n = round(state[0])
        if n < 2:
            raise InputError(f"at least 2 {side} samples are needed; there are {n}.")
        cov = state[1 + self.d :].reshape(self.d, self.d) / (n - 1)
        kept = getattr(self, f"{side}_rows").cpu().numpy()
        rows = kept[np.isfinite(kept[:, 0]), 1:]
        return Moments.from_statistics(
            Statistics(state[1 : 1 + self.d], cov, n, rows if len(rows) else None)
        )


def _least_keys(states: Any) -> Any:
    """Return the rows with the least keys, their first entries, as many as the first state has."""
    rows = torch.cat([*states])
    return rows[torch.argsort(rows[:, 0], stable=True)[: len(states[0])]]


def _merge(states: Any) -> Any:
    """Merge the states (k, 1 + d + d²) of k samples into one."""
    counts = states[:, 0]
    total = counts.sum()
    if total == 0:
        return states[0].clone()
    d = round((states.shape[1] - 0.75) ** 0.5 - 0.5)  # of 1 + d + d²
    means, scatters = states[:, 1 : 1 + d], states[:, 1 + d :]
    mean = (counts / total) @ means
    gaps = means - mean
    between = (gaps * counts[:, None]).T @ gaps
    return torch.cat([total[None], mean, scatters.sum(dim=0) + between.flatten()])
