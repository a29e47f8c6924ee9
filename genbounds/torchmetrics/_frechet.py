"""The Fréchet distance from moments that processes merge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import torch

from genbounds.estimators import Moments, frechet_distance
from genbounds.features import Encoder
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
    the result does not depend on how samples are spread over devices, up to rounding. No features
    are kept; the interval takes their fourth moments for those of a Gaussian distribution. Where
    that matters, take `FeatureMetric`, or write the features and use
    `genbounds.frechet_distance`.

    Calling the metric is `update`: no batch has a distance of its own.
    """

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
        empty = torch.zeros(1 + d + d * d, dtype=torch.float64)
        for name in ("real", "fake"):
            self.add_state(name, default=empty.clone(), dist_reduce_fx=_merge)

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
        setattr(self, name, _merge(torch.stack([getattr(self, name), batch])))

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
        scatter = state[1 + self.d :].reshape(self.d, self.d)
        return Moments(state[1 : 1 + self.d], scatter / (n - 1), n)


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
