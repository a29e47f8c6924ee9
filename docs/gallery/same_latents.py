"""Two models that got the same latents: their common noise cancels, and small differences show."""

import numpy as np

import genbounds as gb

rng = np.random.default_rng(0)
latents = rng.normal(size=(2000, 8))
models = {"old": 1.10 * latents, "new": 1.08 * latents}  # row i from the same latent in both
real = gb.Moments(np.zeros(8), np.eye(8))

for paired in (False, True):
    pair = gb.compare(models, real, paired=paired).difference("old", "new")
    print(f"paired={paired}: {pair.value:+.4f} [{pair.low:+.4f}, {pair.high:+.4f}]")
assert pair.distinguishable
