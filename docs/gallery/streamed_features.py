"""Features that do not fit in memory: moments batch by batch, merged between workers."""

import numpy as np

import genbounds as gb

rng = np.random.default_rng(0)


def worker(batches: int) -> gb.Moments:
    moments = gb.Moments.empty(16, keep=500)  # rows for the interval
    for _ in range(batches):
        moments.update(rng.normal(size=(256, 16)))  # here: encoder(generator(...))
    return moments


fake = worker(10).merge(worker(6))
real = gb.Moments(np.zeros(16), np.eye(16))  # exactly known
score = gb.frechet_distance(fake, real)
print(fake.n, score)
assert score.low <= 0.0 <= score.high
