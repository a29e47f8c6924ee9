"""A generator seen through the encoder: an arm that scores, rankings and selection can use."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from experiments.digits.data import Images
from experiments.digits.encoder import Encoder
from experiments.digits.generators import Generator
from genbounds.validation import check_choice, check_rng

Output = Literal["features", "posteriors"]
OUTPUTS: tuple[Output, ...] = ("features", "posteriors")


@dataclass(frozen=True, slots=True, kw_only=True)
class DigitsArm:
    """Draws new images from a generator and returns what the encoder makes of them.

    Attributes
    ----------
    name : str
    description : str
        One line for a reader who does not know the model.
    generator : Generator
    encoder : Encoder
    output : {"features", "posteriors"}
        What `draw` returns: features for the Fréchet distance, posteriors for the Inception score.
    control : bool
        Whether this is no honest contender but shows what the scores cannot see.
    """

    name: str
    description: str
    generator: Generator
    encoder: Encoder
    output: Output = "features"
    control: bool = False

    def images(self, n: int, rng: np.random.Generator | int) -> Images:
        """Draw `n` new images (n, 8, 8), float32 in [0, 1]."""
        return self.generator.sample(n, check_rng(rng))

    def draw(self, n: int, rng: np.random.Generator | int) -> NDArray[Any]:
        """Draw `n` new rows: features (n, 64), float32, or posteriors (n, 10), float64."""
        return encode(self.encoder, self.images(n, rng), self.output)

    def with_output(self, output: Output) -> DigitsArm:
        """Return the same arm with another output."""
        check_choice("output", output, OUTPUTS)
        return replace(self, output=output)


def encode(encoder: Encoder, images: Images, output: Output) -> NDArray[Any]:
    """Return features or posteriors of images."""
    check_choice("output", output, OUTPUTS)
    return encoder.features(images) if output == "features" else encoder.posteriors(images)
