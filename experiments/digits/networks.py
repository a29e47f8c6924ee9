"""What the encoder and the three network generators share: seeding, training, evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
# Told the share of the work that is done, from 0 to 1.
Report = Callable[[float], None]

# Rows that go through a network at once: small enough for the cache, large enough to be quick.
BLOCK = 2048


@contextmanager
def seeded_training(rng: np.random.Generator) -> Iterator[None]:
    """Initialise networks from `rng`; on leaving, everything global is as it was.

    One thread: these networks are too small for more, and sums then have one order, so that the
    trained weights do not depend on how many threads the caller allows.
    """
    import torch

    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        # Not `torch.manual_seed`, which would seed an accelerator too.
        torch.default_generator.manual_seed(int(rng.integers(2**63)))
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)


def perceptron(*widths: int) -> Any:
    """Return a stack of linear layers with SiLU between them."""
    from torch import nn

    layers: list[Any] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.SiLU()]
    return nn.Sequential(*layers[:-1])


def normal(rng: np.random.Generator, *shape: int) -> Any:
    """Return a tensor of standard normal numbers drawn by NumPy."""
    import torch

    return torch.from_numpy(rng.standard_normal(shape, dtype=np.float32))


def follow(average: Any, network: Any, *, decay: float) -> None:
    """Move the weights of `average` a little towards those of `network`."""
    import torch

    with torch.no_grad():
        for kept, current in zip(average.parameters(), network.parameters(), strict=True):
            kept.lerp_(current, 1.0 - decay)


def apply(function: Callable[..., Any], *inputs: Array) -> Array:
    """Apply a function of tensors to arrays, block by block and without gradients."""
    import torch

    with torch.no_grad():
        blocks = [
            function(*(torch.tensor(x[i : i + BLOCK]) for x in inputs))
            for i in range(0, len(inputs[0]), BLOCK)
        ]
    return np.asarray(torch.cat(blocks).numpy())


def weights(network: Any) -> dict[str, Array]:
    """Return a network's parameters as named arrays."""
    return {name: tensor.numpy() for name, tensor in network.state_dict().items()}


def with_weights(build: Callable[[], Any], arrays: Mapping[str, Array]) -> Any:
    """Build a network ready for use, with named arrays as its parameters."""
    import torch

    with torch.device("meta"):  # no random initial weights: torch's own generator stays untouched
        network = build()
    parameters = {name: torch.tensor(array) for name, array in arrays.items()}
    network.load_state_dict(parameters, assign=True)
    return network.eval().requires_grad_(False)
