"""Is the model still improving? One score per checkpoint, and which steps are significant."""

from itertools import pairwise

import numpy as np

import genbounds as gb

rng = np.random.default_rng(0)
real = rng.normal(size=(4000, 8))
checkpoints = {
    f"{epoch:2d} epochs": rng.normal(2.0 / epoch, 1.0, size=(1000, 8)) for epoch in (1, 2, 4, 8, 16)
}

ranking = gb.compare(checkpoints, real)
names = list(checkpoints)
for earlier, later in pairwise(names):
    step = ranking.difference(earlier, later)
    word = "better" if step.distinguishable else "not distinguishable"
    print(f"{earlier} to {later}: {step.value:+.3f} [{step.low:+.3f}, {step.high:+.3f}] {word}")
