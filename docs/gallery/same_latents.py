"""Two models that got the same latents: their common noise cancels, and small differences show."""

import numpy as np

import genbounds as gb

rng = np.random.default_rng(0)
latents = rng.normal(size=(2000, 8))
old, new = 1.10 * latents, 1.08 * latents  # row i from the same latent in both
real = gb.Moments(np.zeros(8), np.eye(8))
ids = np.arange(2000)  # the same id in two samples: they share the latent

apart = gb.compare({"old": old, "new": new}, real)
shared = gb.compare({"old": gb.Sample(old, groups=ids), "new": gb.Sample(new, groups=ids)}, real)
for name, ranking in {"as if apart": apart, "shared latents": shared}.items():
    pair = ranking.difference("old", "new")
    print(f"{name}: {pair.value:+.4f} [{pair.low:+.4f}, {pair.high:+.4f}], p = {pair.pvalue:.2g}")
assert pair.distinguishable
