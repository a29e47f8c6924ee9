"""The studies of contexts: rules as published, worlds as described, tables in their place."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.selection import contexts, prompts
from experiments.selection.prompts import kernel, kernel_ucb, synthetic


def ridge_ucb(world, arrivals, seed, eta):
    """Kernel ridge UCB from its formulas, all plays of an arm at every step."""
    rng = np.random.default_rng([5, seed])
    gram, k = kernel(world.features), world.truth.shape[1]
    plays = [([], []) for _ in range(k)]
    total = 0.0
    for step, context in enumerate(arrivals):
        bounds = []
        for places, values in plays:
            near = gram[context, places]
            inverse = np.linalg.inv(gram[np.ix_(places, places)] + np.eye(len(places)))
            spread = gram[context, context] - near @ inverse @ near
            bounds.append(near @ inverse @ np.array(values) + eta * np.sqrt(spread))
        arm = step if step < k else int(np.argmax(bounds))
        plays[arm][0].append(context)
        plays[arm][1].append(world.value(context, arm, 1, rng)[0])
        total += world.shortfall[context, arm]
    return total


@pytest.mark.parametrize("smooth", [True, False])
def test_kernel_ucb_is_ridge_regression_on_all_plays(smooth):
    world = synthetic(1, smooth=smooth)
    arrivals = np.random.default_rng(0).integers(8, size=80)
    for eta in (1.0, 5.0):
        assert kernel_ucb(world, arrivals, 1, eta) == pytest.approx(
            ridge_ucb(world, arrivals, 1, eta)
        )


def test_a_certified_winner_plays_the_rest():
    """Two arms, one far better: the other is played in the looks alone."""
    world = prompts.World(
        truth=np.array([[0.0, 5.0], [5.0, 0.0]]),
        features=np.eye(2),
        value=lambda c, a, n, rng: world.truth[c, a] + rng.standard_normal(n),
    )
    total, decided, wrong = prompts.certified(world, np.arange(400) % 2, seed=0)
    assert (decided, wrong) == (2, 0)
    assert total == pytest.approx(2 * 20 * 5.0)


def test_errors_are_counted():
    runs = [{"winners": ["a", None]}, {"winners": ["b", "a"]}, {"winners": [None, None]}]
    assert contexts.rate(runs, "a") == "1 of 3: 0.333 [0.008, 0.906]"
    assert contexts.rate(runs, "b").startswith("2 of 3")
