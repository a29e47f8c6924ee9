"""What the metrics of training loops share: two samples, an encoder, flat results, a plot."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torchmetrics import Metric
from torchmetrics.utilities import rank_zero_warn

from genbounds.features import Encoder
from genbounds.features._encoder import evaluating
from genbounds.results import Score
from genbounds.validation import InputError, check_open_unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


class TwoSamples(Metric):  # type: ignore[misc]
    """States `real` and `fake`, and calls that only absorb."""

    is_differentiable: ClassVar[bool] = False
    full_state_update: ClassVar[bool] = False
    _of_real: ClassVar[tuple[str, ...]] = ("real",)

    real: Any
    fake: Any
    _title: str
    """What the values are."""

    def __init__(
        self,
        encoder: Callable[[Any], Any] | Encoder | None,
        *,
        estimator: str,
        level: float,
        reset_real_features: bool,
        **kwargs: Any,
    ) -> None:
        # An earlier name of it.
        reset_real_features = kwargs.pop("reset_real", reset_real_features)
        super().__init__(**kwargs)
        self.encoder = encoder
        self.estimator = estimator
        self.level = check_open_unit("level", level)
        self.reset_real_features = reset_real_features
        self.result: Score | None = None
        self._told: set[tuple[str, str]] = set()

    def _features(self, samples: Any, columns: int | None) -> Any:
        """Encode a batch and check what comes out: rows of `columns` finite numbers, if known."""
        if self.encoder is not None:
            # The metric is a part of the model that is trained, and so is the encoder.
            with torch.no_grad(), evaluating(self.encoder):
                samples = _encoded(samples, self.encoder, self.device)
        shape = tuple(getattr(samples, "shape", ()))
        if not (isinstance(samples, torch.Tensor) and len(shape) == 2) or (
            columns is not None and shape[1] != columns
        ):
            wanted = f"(n, {'d' if columns is None else columns})"
            raise InputError(f"features must be a tensor of shape {wanted}; got {shape}.")
        rows = samples.detach()
        if not torch.isfinite(rows).all():
            raise InputError("the features have NaN or infinite values: fix the encoder.")
        return rows

    def forward(self, *args: Any, **kwargs: Any) -> None:
        """Absorb a batch as `update` does, and return nothing.

        The score of one batch alone would be mostly bias. What torchmetrics does here for other
        metrics, scoring the batch and merging it afterwards, would count the real samples twice.
        """
        self.update(*args, **kwargs)

    def reset(self) -> None:
        """Forget what was absorbed; the real samples only with `reset_real_features`."""
        held = {name: getattr(self, name) for name in self._of_real}
        # Lists are emptied, not replaced.
        held = {name: list(x) if isinstance(x, list) else x for name, x in held.items()}
        super().reset()
        if not self.reset_real_features:
            for name, state in held.items():
                setattr(self, name, state)

    def set_dtype(self, dst_type: Any) -> TwoSamples:
        """Stay in the precision of the states: less would lose the covariance."""
        return self

    def _numbers(self, score: Score) -> dict[str, float]:
        """Make what every logger takes: floats by name; the whole score stays in `result`.

        A kind of warning is said once, not at every epoch, and by one process.
        """
        self.result = score
        for warning in score.warnings:
            kind = warning.code, warning.severity
            if kind not in self._told:
                self._told.add(kind)
                rank_zero_warn(f"{type(self).__name__}: {warning}", UserWarning)
        return {
            "value": float(score.value),
            "low": float(score.low),
            "high": float(score.high),
            "reliable": float(score.reliable),
        }

    def plot(
        self,
        val: Mapping[str, float] | Sequence[Mapping[str, float]] | None = None,
        ax: Axes | None = None,
    ) -> tuple[Figure | SubFigure, Axes]:
        """Draw a score with its interval, or the scores of several epochs.

        Parameters
        ----------
        val : mapping or sequence of mappings, optional
            What `compute` returned, once or at every epoch; its result now by default.
        ax : matplotlib.axes.Axes, optional
            A new figure's by default.

        Returns
        -------
        figure, axes
            As the plots of torchmetrics return them. A cross is an unreliable score.
        """
        import matplotlib.pyplot as plt
        from matplotlib.ticker import MaxNLocator

        found = self.compute() if val is None else val
        results = [found] if isinstance(found, Mapping) else list(found)
        figure, axes = plt.subplots(layout="constrained") if ax is None else (ax.figure, ax)
        for epoch, result in enumerate(results):
            value, low, high = (float(result[name]) for name in ("value", "low", "high"))
            known = math.isfinite(low) and math.isfinite(high)
            trusted = bool(result["reliable"])
            axes.errorbar(
                epoch,
                value,
                yerr=[[value - low], [high - value]] if known else None,
                fmt="o" if trusted else "X",
                color="C0" if trusted else "C3",
                capsize=3,
            )
        axes.plot([float(result["value"]) for result in results], color="C0", zorder=1)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("epoch")
        axes.set_ylabel(self._title)
        return figure, axes


def _encoded(samples: Any, encoder: Callable[[Any], Any] | Encoder, device: Any) -> Any:
    """Return the features of a batch."""
    if isinstance(encoder, Encoder):
        prepared = [encoder.prepare(item) for item in _items(samples)]
        return torch.as_tensor(encoder.encode(prepared)).to(device)
    try:
        return encoder(samples)
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, TypeError) as error:
        if isinstance(samples, torch.Tensor) and not samples.is_floating_point():
            raise InputError(
                f"the encoder does not take {samples.dtype} images: scale them as it was trained "
                "(for many: images.float() / 255), or pass an encoder of "
                "genbounds.features.load_encoder, which does."
            ) from error
        raise


def _items(samples: Any) -> list[Any]:
    """Return the items of a batch as encoders of `genbounds.features` take them.

    Their own preprocessing scales and resizes images, which only integers from 0 to 255 leave no
    doubt about.
    """
    if not isinstance(samples, torch.Tensor):
        return list(samples)
    if samples.dtype != torch.uint8 or samples.ndim != 4 or samples.shape[1] not in (1, 3):
        raise InputError(
            "images must be uint8 (0 to 255) of shape (n, 3, h, w) or (n, 1, h, w): the encoder "
            f"scales them itself; got {samples.dtype} of shape {tuple(samples.shape)}."
        )
    return list(samples.permute(0, 2, 3, 1).cpu().numpy())
