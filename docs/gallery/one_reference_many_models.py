"""Statistics of the real data once, in a file; then any number of models."""

import numpy as np

import genbounds as gb
from genbounds.estimators import FrechetReference

rng = np.random.default_rng(0)
gb.Moments.from_features(rng.normal(size=(5000, 32))).save("real.npz")

reference = FrechetReference(gb.Moments.load("real.npz"))  # decomposed once
for scale in (1.0, 1.1, 1.2):
    features = scale * rng.normal(size=(1000, 32))
    score = reference.estimate(features).score(0.95)
    print(f"scale {scale}: {score.value:.3f} [{score.low:.3f}, {score.high:.3f}]")
