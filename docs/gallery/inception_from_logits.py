"""Inception score from a classifier's logits, with the bias that few samples bring."""

import numpy as np

import genbounds as gb

rng = np.random.default_rng(0)
logits = 4.0 * rng.normal(size=(5000, 100))
probs = np.exp(logits - logits.max(axis=1, keepdims=True))
probs /= probs.sum(axis=1, keepdims=True)

for n in (200, 1000, 5000):
    plain = gb.inception_score(probs[:n], estimator="plugin").value
    score = gb.inception_score(probs[:n])
    interval = f"[{score.low:.2f}, {score.high:.2f}]"
    print(f"n={n}: plain {plain:.2f}, debiased {score.value:.2f} {interval}")
