"""Value, gradient and Hessian of a score in the weights of its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from genbounds.core.design import Design, sums_by
from genbounds.core.estimate import SampleError, Tails
from genbounds.core.two_samples import shared_units
from genbounds.validation import Float, InputError, seeded

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


def _require(fine: bool, text: str) -> None:
    """Refuse a function that returns what cannot be used."""
    if not fine:
        raise InputError(text, argument="function")


class Slopes:
    """A score at the weights of its samples: value, gradient, products with the Hessian.

    "hessian": exact derivatives, by differentiating the gradient. "secant": differences of
    gradients, for scores that are piecewise linear in the weights. Their Hessian is zero almost
    everywhere and their gradient jumps; how they curve from one sample to the next is what differs
    between gradients, and the mean of these, over all that was looked at, is the gradient.
    """

    def __init__(
        self, weighted: Weighted, designs: Sequence[Design], *, derivative: str, step: float = STEP
    ) -> None:
        self._weighted, self._sizes = weighted, [design.n for design in designs]
        self._u: Float = np.concatenate([design.weights for design in designs])
        self._step = step if derivative == "secant" else 0.0
        self._at, value, self._g = self._slope(self._u, twice=not self._step)
        self.value = float(value.detach())
        self._sum, self._count = np.zeros_like(self._u), 0  # of gradients at the ends of secants

    @property
    def gradient(self) -> Float:
        """∇F."""
        if not self._step:
            return np.asarray(self._g.detach().numpy())
        return self._sum / max(self._count, 1)

    def _slope(self, u: Float, *, twice: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        """Return u as a tensor, F(u) and ∇F(u); `twice`: which can be differentiated again.

        The weights of every sample are divided by their sum.
        """
        import torch

        at = torch.tensor(u, dtype=torch.float64, requires_grad=True)
        value = self._weighted(*(part / part.sum() for part in at.split(self._sizes)))
        one = isinstance(value, torch.Tensor) and value.numel() == 1
        _require(one, "must return one number, as a torch tensor.")
        _require(
            value.dtype == torch.float64,
            f"returns {value.dtype}; rows and weights are float64: keep them so.",
        )
        _require(bool(value.isfinite()), f"returns {value.item()} for these rows.")
        _require(
            value.requires_grad,
            "returns a number without a gradient: compute it from the weights, in torch, "
            "without .item(), .detach() or NumPy.",
        )
        value = value.reshape(())
        (g,) = torch.autograd.grad(value, at, create_graph=twice)
        _require(
            bool(g.isfinite().all()),
            "has a gradient in the weights that is not finite at these rows (a root of 0, a "
            "logarithm of 0?).",
        )
        return at, value, g

    def product(self, direction: Float) -> Float:
        """H times a direction."""
        if self._step:
            return self._secant(direction)
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
        _require(
            bool(np.isfinite(found).all()),
            "has second derivatives in the weights that are not finite (equal eigenvalues?).",
        )
        return found

    def _secant(self, direction: Float) -> Float:
        moved = self._u > 0.0
        largest = float(np.abs(direction[moved] / self._u[moved]).max(initial=0.0))
        if largest == 0.0:
            return np.zeros_like(direction)
        # Weights stay positive; a direction may have any length.
        t = min(self._step, 0.9 / largest)
        ahead, behind = (self._slope(self._u + s * direction)[2].numpy() for s in (t, -t))
        self._sum += ahead + behind
        self._count += 2
        return np.asarray((ahead - behind) / (2.0 * t))


class Steps:
    """P of one sample or of two: how the units of their designs move the weights.

    Units of two samples that have a name in common are one unit. `units` has for each sample the
    numbers of its units among those of all samples; `blocks` the samples that are probed together,
    because they share units.
    """

    def __init__(self, designs: Sequence[Design]) -> None:
        self.designs = list(designs)
        self.shared = len(self.designs) == 2 and shared_units(*self.designs, least=1) is not None
        every = range(len(self.designs))
        self.blocks = [list(every)] if self.shared else [[k] for k in every]
        ends = np.cumsum([design.units for design in self.designs])
        numbers = np.arange(ends[-1])
        if self.shared:
            labels = [np.asarray(design.labels) for design in self.designs]
            numbers = np.unique(np.concatenate(labels), return_inverse=True)[1]
        self.size = int(numbers.max()) + 1
        self.units = np.split(numbers, ends[:-1])

    def spread(self, s: Float) -> Float:
        """P s: from one number per unit to one per row."""
        return np.concatenate(
            [
                design.weights * design.off_mean(np.sqrt(design.own_factor) * s[units])[design.unit]
                for design, units in zip(self.designs, self.units, strict=True)
            ]
        )

    def gather(self, z: Float) -> list[Float]:
        """P' z: from one number per row to one per unit of each sample."""
        parts = np.split(z, np.cumsum([design.n for design in self.designs])[:-1])
        return [
            np.sqrt(design.own_factor)
            * design.deviations(sums_by(design.unit, design.weights * part, design.units))
            for design, part in zip(self.designs, parts, strict=True)
        ]

    def merged(self, values: Sequence[Float], samples: Sequence[int]) -> Float:
        """Sum over these samples, by unit, which is the last axis of all values."""
        out = np.zeros((*values[samples[0]].shape[:-1], self.size))
        for k in samples:
            out[..., self.units[k]] += values[k]
        return out

    def signs(self, samples: Sequence[int], rng: np.random.Generator) -> Float:
        """Return a random sign for every unit of these samples; 0 for the others."""
        s = np.zeros(self.size)
        for k in samples:
            s[self.units[k]] = rng.integers(0, 2, size=self.units[k].size) * 2.0 - 1.0
        return s


class _Probed:
    """What the probes of one block of samples tell of M."""

    def __init__(
        self, steps: Steps, block: list[int], found: Slopes, probes: int, rng: np.random.Generator
    ) -> None:
        self.steps, self.block, self.count = steps, block, probes * len(block)
        signs = np.stack([steps.signs(block, rng) for _ in range(self.count)])
        every = [steps.gather(found.product(steps.spread(s)) / 2.0) for s in signs]
        images = [np.stack(of_sample) for of_sample in zip(*every, strict=True)]  # Ms of each probe
        merged = steps.merged(images, block)
        own = (signs * merged).mean(axis=0)
        square = float((merged**2).sum()) / self.count - float(own @ own)
        self.off_diagonal = max(square, 0.0) / (1.0 - 1.0 / self.count)
        others = [image for k, image in enumerate(images) if k not in block]
        self.crossed = sum(float((image**2).sum()) for image in others) / self.count
        self.diagonal, self.pairs = {}, {}
        for k in block:
            of_units = signs[:, steps.units[k]]
            self.diagonal[k] = (of_units * images[k]).mean(axis=0)
            self.pairs[k] = (images[k] - of_units * self.diagonal[k]).ravel()

    def errors(self, units: Sequence[Any], crossed: float) -> tuple[float, list[SampleError]]:
        """Return the variance due to this block of samples, and the error of each of them.

        `units`: leave-one-out influences of the units of every sample, half the Hessian times them,
        and M_II; `crossed`: sum of the squares of M_IJ over units of different blocks.
        """
        loo, _, diagonal = units
        moved, bent, own = (self.steps.merged(values, self.block) for values in units)
        second, mixed = 2.0 * self.off_diagonal, 2.0 * crossed
        noise = second / self.count
        # M_II is known up to noise, which the squares would count as variance.
        first = max(float(moved @ moved) - 2.0 * noise, 0.0)
        variance = max(first - second - mixed, min(second + mixed, first)) + noise
        lost = (1.0 - 1.0 / self.steps.units[self.block[0]].size) ** 1.5  # of a mean of cubes
        bend = float(moved @ bent) - float(moved**2 @ own)
        errors = []
        for k in self.block:
            design, first_of_block = self.steps.designs[k], k == self.block[0]
            influence = sqrt(design.units * (design.units - 1.0)) * loo[k]
            errors.append(
                SampleError(
                    n=design.n,
                    variance=variance if len(self.block) == 1 else float(loo[k] @ loo[k]),
                    degrees_of_freedom=design.degrees_of_freedom,
                    influence=influence,
                    units=design.labels,
                    bias=float(diagonal[k].sum()),
                    curvature=bend if first_of_block else 0.0,
                    skewness=lost * float((moved**3).sum()) if first_of_block else 0.0,
                    quadratic_variance=(second + noise) / len(self.block),
                    mixed_variance=mixed,
                    pairs=self.pairs[k],
                    tails=Tails.of(influence),
                )
            )
        return variance, errors


@np.errstate(over="ignore", invalid="ignore")  # refused with its interval
def expand(
    weighted: Weighted,
    designs: Sequence[Design],
    *,
    derivative: str = "hessian",
    probes: int = 16,
    seed: int = 0,
) -> tuple[float, list[SampleError], float]:
    """Expand a score to second order in the independent units of one sample or of two.

    Parameters
    ----------
    weighted : callable
        From the weights of every sample (float64 tensors that sum to one) to a scalar tensor.
    designs : sequence of Design
    derivative : {"hessian", "secant"}
    probes : int
        Random sign vectors for each sample.
    seed : int
        Of these.

    Returns
    -------
    value : float
        F at the weights of the designs: the plug-in, with its bias.
    errors : list of SampleError
    shared_variance : float
        What units that both samples share add to the variance.
    """
    found = Slopes(weighted, designs, derivative=derivative)
    steps = Steps(designs)
    rng = seeded(seed, "signs")
    probed = [_Probed(steps, block, found, probes, rng) for block in steps.blocks]
    by_sample = {k: values for part in probed for k, values in part.diagonal.items()}
    crossed = float(np.mean([part.crossed for part in probed]))
    loo, diagonal = [], []
    for k, linear in enumerate(steps.gather(found.gradient)):  # as in `core.expansion`
        design, own = designs[k], by_sample[k]
        one = linear / np.sqrt(design.own_factor)
        own = own + design.ratio_bias(one, design.alone(own))
        diagonal.append(own)
        loo.append(np.sqrt(design.residual_factor) * design.deviations(one - 2.0 * own))
    along = steps.merged(loo, range(len(loo)))
    # As long as signs are: the step of a secant must not depend on the unit of the score.
    length = float(np.linalg.norm(along)) / sqrt(steps.size) or 1.0
    bent = steps.gather(length * found.product(steps.spread(along / length)) / 2.0)
    variances, errors = [], []
    for part in probed:
        variance, of_block = part.errors((loo, bent, diagonal), crossed)
        variances.append(variance)
        errors += of_block
    shared = sum(variances) - sum(error.variance for error in errors) if steps.shared else 0.0
    return found.value, errors, shared
