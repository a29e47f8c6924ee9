"""How many different things does a model make? Vendi scores of three orders see a collapse."""

import numpy as np

import genbounds as gb

rng = np.random.default_rng(0)
centres = np.eye(10)


def draw(shares):
    return centres[rng.choice(10, size=2000, p=shares)]


even = np.full(10, 0.1)
collapsed = np.array([0.82] + [0.02] * 9)
for name, shares in {"even": even, "collapsed": collapsed}.items():
    rows = draw(shares)
    scores = [gb.vendi_score(rows, kernel="cosine", order=order) for order in (1.0, 2.0, np.inf)]
    print(name, *(f"{score.value:.2f} [{score.low:.2f}, {score.high:.2f}]" for score in scores))
assert scores[1].high < 2.0
