"""Bias, variance and influence of any smooth score of weighted rows, by differentiation.

A score is F(u), with u the weights of the rows of one sample or of two; g and H are its gradient
and its Hessian. A design of sampling (`genbounds.core.design`) is nothing but the covariance
of u if the study were repeated: column I of P is how the independent unit I moves the weights. With
the first-order part G = P'g and the second-order part M = P'HP/2,

    bias = tr M,    variance = Σ_I (G_I - 2 f_I^½ M_II)² - 2 Σ_{I≠J} M_IJ²,

f_I = r/(r-1) for a stratum of r equal units, and unequal ones make the score a ratio: what
`core.expansion` does with kernels h that are derived by hand. M is never formed. For random signs s
one product with the Hessian gives B = Ms: s'B is an unbiased estimate of tr M, s_I B_I of M_II, and
|B|² of the sum of all M_IJ². The variance of s'B is that of the quadratic part itself, so that m
probes add the share 1/m of it. Derivation: docs/explanation/any_score.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from genbounds.core.design import Design, sums_by
from genbounds.core.estimate import SampleError, Tails
from genbounds.core.two_samples import shared_units
from genbounds.estimators.smooth._slopes import Slopes, Weighted, slopes
from genbounds.validation import Float, seeded


class Steps:
    """P of one sample or of two: how the units of their designs move the weights.

    Units of two samples that have a name in common are one unit. `units` has for each sample the
    numbers of its units among those of all samples.
    """

    def __init__(self, designs: Sequence[Design]) -> None:
        self.designs = list(designs)
        self.shared = len(self.designs) == 2 and shared_units(*self.designs, least=1) is not None
        if self.shared:
            labels = np.concatenate([np.asarray(design.labels) for design in self.designs])
            names, numbers = np.unique(labels, return_inverse=True)
            self.size = names.size
            self.units = np.split(numbers, [self.designs[0].units])
        else:
            ends = np.cumsum([design.units for design in self.designs])
            self.size = int(ends[-1])
            self.units = np.split(np.arange(self.size), ends[:-1])

    @property
    def blocks(self) -> list[list[int]]:
        """Samples that are probed together: those that share units."""
        every = list(range(len(self.designs)))
        return [every] if self.shared else [[k] for k in every]

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
        """Sum over these samples, by unit."""
        out = np.zeros(self.size)
        for k in samples:
            out[self.units[k]] += values[k]
        return out

    def signs(self, samples: Sequence[int], rng: np.random.Generator) -> Float:
        """Return a random sign for every unit of these samples; 0 for the others."""
        s = np.zeros(self.size)
        for k in samples:
            s[self.units[k]] = rng.integers(0, 2, size=self.units[k].size) * 2.0 - 1.0
        return s


@dataclass(frozen=True)
class _Probed:
    """What the probes of one block of samples tell of M."""

    diagonal: dict[int, Float]
    off_diagonal: float
    crossed: float
    pairs: dict[int, Float]
    count: int


def _probe(
    steps: Steps, block: list[int], found: Slopes, probes: int, rng: np.random.Generator
) -> _Probed:
    others = [k for k in range(len(steps.units)) if k not in block]
    signs, images, crossed = [], [], 0.0
    count = probes * len(block)
    for _ in range(count):
        s = steps.signs(block, rng)
        image = [half / 2.0 for half in steps.gather(found.product(steps.spread(s)))]
        signs.append(s)
        images.append(image)
        crossed += sum(float(image[k] @ image[k]) for k in others) / count
    diagonal = {
        k: np.mean([s[steps.units[k]] * b[k] for s, b in zip(signs, images, strict=True)], axis=0)
        for k in block
    }
    merged = [steps.merged(image, block) for image in images]
    own = np.mean([s * b for s, b in zip(signs, merged, strict=True)], axis=0)
    square = float(np.mean([b @ b for b in merged])) - float(own @ own)
    pairs = {
        k: np.concatenate(
            [b[k] - s[steps.units[k]] * diagonal[k] for s, b in zip(signs, images, strict=True)]
        )
        for k in block
    }
    return _Probed(diagonal, max(square, 0.0) / (1.0 - 1.0 / count), crossed, pairs, count)


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
    found = slopes(weighted, designs, derivative=derivative)
    steps = Steps(designs)
    rng = seeded(seed, "signs")
    probed = [_probe(steps, block, found, probes, rng) for block in steps.blocks]
    diagonal = {k: values for part in probed for k, values in part.diagonal.items()}
    crossed = float(np.mean([part.crossed for part in probed]))
    linear = steps.gather(found.gradient)
    loo = []
    for k, design in enumerate(designs):  # as in `core.expansion`
        one = linear[k] / np.sqrt(design.own_factor)
        diagonal[k] += design.ratio_bias(one, design.alone(diagonal[k]))
        loo.append(np.sqrt(design.residual_factor) * design.deviations(one - 2.0 * diagonal[k]))
    along = steps.merged(loo, range(len(loo)))
    # As long as signs are: the step of a secant must not depend on the unit of the score.
    length = float(np.linalg.norm(along)) / sqrt(steps.size) or 1.0
    image = steps.gather(found.product(steps.spread(along / length)))
    bent = [length * half / 2.0 for half in image]
    variances, errors = [], []
    for block, part in zip(steps.blocks, probed, strict=True):
        variance, of_block = _errors_of_block(block, part, steps, (loo, bent), crossed)
        variances.append(variance)
        errors += of_block
    shared = sum(variances) - sum(error.variance for error in errors) if steps.shared else 0.0
    return found.value, errors, shared


def _errors_of_block(
    block: list[int],
    part: _Probed,
    steps: Steps,
    linear: tuple[list[Float], list[Float]],
    crossed: float,
) -> tuple[float, list[SampleError]]:
    """Return the variance due to a block of samples, and the error of each of them.

    `linear`: leave-one-out influences of the units of every sample, and half the Hessian times
    them; `crossed`: sum of the squares of M_IJ over units of different blocks.
    """
    loo, bent = linear
    moved, own = steps.merged(loo, block), steps.merged(diagonal_of(part, steps), block)
    second, mixed = 2.0 * part.off_diagonal, 2.0 * crossed
    noise = second / part.count
    # M_II is known up to noise, which the squares would count as variance.
    first = max(float(moved @ moved) - 2.0 * noise, 0.0)
    variance = max(first - second - mixed, min(second + mixed, first)) + noise
    lost = (1.0 - 1.0 / steps.units[block[0]].size) ** 1.5  # of a mean of cubes
    bend = float(moved @ steps.merged(bent, block)) - float(moved**2 @ own)
    errors = []
    for k in block:
        design, first_of_block = steps.designs[k], k == block[0]
        influence = sqrt(design.units * (design.units - 1.0)) * loo[k]
        errors.append(
            SampleError(
                n=design.n,
                variance=variance if len(block) == 1 else float(loo[k] @ loo[k]),
                degrees_of_freedom=design.degrees_of_freedom,
                influence=influence,
                units=design.labels,
                bias=float(part.diagonal[k].sum()),
                curvature=bend if first_of_block else 0.0,
                skewness=lost * float((moved**3).sum()) if first_of_block else 0.0,
                quadratic_variance=(second + noise) / len(block),
                mixed_variance=mixed,
                pairs=part.pairs[k],
                tails=Tails.of(influence),
            )
        )
    return variance, errors


def diagonal_of(part: _Probed, steps: Steps) -> list[Float]:
    """Return M_II of every sample's units; zeros for samples of other blocks."""
    return [part.diagonal.get(k, np.zeros(units.size)) for k, units in enumerate(steps.units)]
