"""The Fréchet distance as a ``torchmetrics.Metric``, for training loops and Lightning.

Not imported with the package: it needs torchmetrics (``pip install 'genbounds[torchmetrics]'``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torchmetrics import Metric

from genbounds.estimators import Moments, frechet_distance
from genbounds.validation import InputError, check_choice, check_count, check_open_unit


class FrechetDistance(Metric):  # type: ignore[misc]
    """Debiased Fréchet distance with its interval, from merged moments.

    Parameters
    ----------
    encoder : callable or torch module, optional
        Turns what `update` is given into features (n, d); without one it is given features.
    d : int
        Number of features.
    estimator : {"debiased", "plugin"}
    level : float
        Coverage of the interval.
    reset_real : bool
        Whether `reset` forgets the real side as well. False keeps it through all epochs.
    **kwargs
        Of ``torchmetrics.Metric``.

    Notes
    -----
    A side's state is one vector: n, the mean and the sum of squares and products about the mean,
    in float64. Processes (and batches) are merged by Chan, Golub & LeVeque's update, so that the
    result does not depend on how samples are spread over devices, up to rounding. No features are
    kept; the interval takes their fourth moments for those of a Gaussian law. Where that matters,
    write the features and use `genbounds.frechet_distance`.

    Calling the metric is `update`: no batch has a distance of its own.
    """

    is_differentiable: ClassVar[bool] = False
    higher_is_better: ClassVar[bool] = False
    full_state_update: ClassVar[bool] = False
    plot_lower_bound: ClassVar[float] = 0.0

    real: Any
    fake: Any

    def __init__(
        self,
        encoder: Callable[[Any], Any] | None = None,
        *,
        d: int,
        estimator: str = "debiased",
        level: float = 0.95,
        reset_real: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.encoder = encoder
        self.d = check_count("d", d)
        self.estimator = check_choice("estimator", estimator, ("debiased", "plugin"))
        self.level = check_open_unit("level", level)
        self.reset_real = reset_real
        empty = torch.zeros(1 + d + d * d, dtype=torch.float64)
        for side in ("real", "fake"):
            self.add_state(side, default=empty.clone(), dist_reduce_fx=_merge)

    def update(self, samples: Any, real: bool) -> None:
        """Absorb a batch: features (n, d), or what the encoder turns into them.

        Raises
        ------
        InputError
            If the features have another shape, or are not finite.
        """
        if self.encoder is not None:
            with torch.no_grad():
                samples = self.encoder(samples)
        if not isinstance(samples, torch.Tensor) or samples.ndim != 2 or samples.shape[1] != self.d:
            shape = tuple(getattr(samples, "shape", ()))
            raise InputError(f"features must be a tensor of shape (n, {self.d}); got {shape}.")
        rows = samples.detach().to(self.real.device, torch.float64)
        if len(rows) == 0:
            return
        if not torch.isfinite(rows).all():
            raise InputError("the features have NaN or infinite values: mend the encoder.")
        mean = rows.mean(dim=0)
        centred = rows - mean
        count = rows.new_tensor([len(rows)])
        batch = torch.cat([count, mean, (centred.T @ centred).flatten()])
        side = "real" if real else "fake"
        setattr(self, side, _merge(torch.stack([getattr(self, side), batch])))

    def forward(self, *args: Any, **kwargs: Any) -> None:
        """Absorb a batch as `update` does, and return nothing.

        The distance of one batch alone would be mostly bias. What torchmetrics does here for other
        metrics, scoring the batch and merging it afterwards, would count the real side twice.
        """
        self.update(*args, **kwargs)

    def compute(self) -> dict[str, Any]:
        """Return the distance and its interval: ``{"value": …, "low": …, "high": …}``.

        Raises
        ------
        InputError
            If a side has fewer than two samples.
        """
        real, fake = (self.moments(side) for side in ("real", "fake"))
        score = frechet_distance(fake, real, estimator=self.estimator, level=self.level)
        found = {"value": score.value, "low": score.low, "high": score.high}
        return {
            name: torch.tensor(number, dtype=torch.float64, device=self.real.device)
            for name, number in found.items()
        }

    def moments(self, side: str) -> Moments:
        """Return the mean, covariance and n of one side, "real" or "fake", on this process."""
        check_choice("side", side, ("real", "fake"))
        state = getattr(self, side).cpu().numpy()
        n = round(state[0])
        if n < 2:
            raise InputError(f"the {side} side needs at least 2 samples; it has {n}.")
        scatter = state[1 + self.d :].reshape(self.d, self.d)
        return Moments(state[1 : 1 + self.d], scatter / (n - 1), n)

    def reset(self) -> None:
        """Forget what was absorbed; the real side only with `reset_real`."""
        real = self.real
        super().reset()
        if not self.reset_real:
            self.real = real

    def set_dtype(self, dst_type: Any) -> FrechetDistance:
        """Stay in float64: sums in less lose the covariance."""
        return self


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
