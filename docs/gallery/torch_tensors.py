"""Torch tensors as they come from a network, in half precision; nothing is copied by hand."""

import torch

import genbounds as gb

generator = torch.Generator().manual_seed(0)
fake = torch.randn(1000, 32, generator=generator).half()
real = 1.1 * torch.randn(2000, 32, generator=generator)
print(gb.frechet_distance(fake, real))
