"""Value, gradient and Hessian of a score in the weights of its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from genbounds.core.design import Design
from genbounds.validation import Float, InputError

if TYPE_CHECKING:
    from torch import Tensor

Weighted = Callable[..., Any]
"""From the weights of every sample, tensors that sum to one each, to a scalar tensor."""

STEP = 0.5
"""Of a secant: half-way to a sample in which half of the units are left out."""


def weighted_function(function: Callable[..., Any], rows: list[Float]) -> Weighted:
    """Return a function of the weights alone, for these rows of one sample or of two."""
    import torch

    tensors = [torch.from_numpy(np.array(part, dtype=np.float64)) for part in rows]
    prepare = getattr(function, "of_rows", None)
    if prepare is not None:
        return cast(Weighted, prepare(*tensors))

    def weighted(*weights: Any) -> Any:
        pairs = zip(tensors, weights, strict=True)
        return function(*(argument for pair in pairs for argument in pair))

    return weighted


class _Score:
    """F(u) with its gradient; every sample's weights are divided by their sum."""

    def __init__(self, weighted: Weighted, sizes: Sequence[int]) -> None:
        self.weighted, self.sizes = weighted, list(sizes)

    def __call__(self, u: Tensor) -> Tensor:
        import torch

        value = self.weighted(*(part / part.sum() for part in u.split(self.sizes)))
        if not isinstance(value, torch.Tensor) or value.numel() != 1:
            raise InputError("must return one number, as a torch tensor.", argument="function")
        if value.dtype != torch.float64:
            raise InputError(
                f"returns {value.dtype}; rows and weights are float64: keep them so.",
                argument="function",
            )
        if not value.isfinite():
            raise InputError(f"returns {value.item()} for these rows.", argument="function")
        return value.reshape(())

    def slope(self, u: Float, *, twice: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        """Return u as a tensor, F(u) and ∇F(u); `twice`: which can be differentiated again."""
        import torch

        at = torch.tensor(u, dtype=torch.float64, requires_grad=True)
        value = self(at)
        if not value.requires_grad:
            raise InputError(
                "returns a number without a gradient: compute it from the weights, in torch, "
                "without .item(), .detach() or NumPy.",
                argument="function",
            )
        (g,) = torch.autograd.grad(value, at, create_graph=twice)
        if not g.isfinite().all():
            raise InputError(
                "has a gradient in the weights that is not finite at these rows (a root of 0, a "
                "logarithm of 0?).",
                argument="function",
            )
        return at, value, g


class HessianSlopes:
    """Exact derivatives, by differentiating the gradient."""

    def __init__(self, score: _Score, u: Float) -> None:
        self._at, value, self._g = score.slope(u, twice=True)
        self.value = float(value.detach())

    @property
    def gradient(self) -> Float:
        """∇F."""
        out: Float = self._g.detach().numpy()
        return out

    def product(self, direction: Float) -> Float:
        """H times a direction."""
        import torch

        if not self._g.requires_grad:  # linear in the weights
            return np.zeros_like(direction)
        (out,) = torch.autograd.grad(
            self._g,
            self._at,
            torch.from_numpy(direction),
            retain_graph=True,
            allow_unused=True,
            materialize_grads=True,
        )
        found: Float = out.numpy()
        if not np.isfinite(found).all():
            raise InputError(
                "has second derivatives in the weights that are not finite (equal eigenvalues?).",
                argument="function",
            )
        return found


class SecantSlopes:
    """Differences of gradients, for scores that are piecewise linear in the weights.

    Their Hessian is zero almost everywhere and their gradient jumps; how they curve from one sample
    to the next is what differs between gradients, and the mean of these is the gradient.
    """

    def __init__(self, score: _Score, u: Float, *, step: float = STEP) -> None:
        self._score, self._u, self._step = score, u, step
        self.value = float(score.slope(u)[1].detach())
        self._sum, self._count = np.zeros_like(u), 0

    @property
    def gradient(self) -> Float:
        """The mean of ∇F over all that was looked at."""
        return self._sum / max(self._count, 1)

    def product(self, direction: Float) -> Float:
        """H times a direction."""
        moved = self._u > 0.0
        largest = float(np.abs(direction[moved] / self._u[moved]).max(initial=0.0))
        if largest == 0.0:
            return np.zeros_like(direction)
        # Weights stay positive; a direction may have any length.
        t = min(self._step, 0.9 / largest)
        ahead, behind = (
            self._score.slope(self._u + sign * t * direction)[2].numpy() for sign in (1.0, -1.0)
        )
        self._sum += ahead + behind
        self._count += 2
        out: Float = (ahead - behind) / (2.0 * t)
        return out


Slopes = HessianSlopes | SecantSlopes
"""A score at the weights of the sample: value, gradient, products with the Hessian."""


def slopes(
    weighted: Weighted, designs: Sequence[Design], *, derivative: str, step: float = STEP
) -> Slopes:
    """Return the derivatives of a score at the weights of its samples."""
    score = _Score(weighted, [design.n for design in designs])
    u = np.concatenate([design.weights for design in designs])
    if derivative == "secant":
        return SecantSlopes(score, u, step=step)
    return HessianSlopes(score, u)
