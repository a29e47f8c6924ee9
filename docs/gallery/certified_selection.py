"""Find the best of four models with as few samples as possible; stop, and go on later."""

import numpy as np

import genbounds as gb

arms = {
    name: gb.simulate.GaussianArm(np.full(8, mean), np.eye(8))
    for name, mean in {"a": 0.0, "b": 0.3, "c": 0.6, "d": 1.0}.items()
}  # anything with draw(n, rng)
real = gb.Moments(np.zeros(8), np.eye(8))

first = gb.select.run(arms, real, budget=300, record="kept")  # too few: no certificate
again = gb.select.run(arms, real, record="kept")  # goes on with the samples of the first
print(first.best, first.certified, sum(first.samples.values()))
print(again.best, again.certified, again.samples)
assert again.certified
assert again.best == "a"
