"""Third-order bias of Vendi scores against what the method expects: ``-m …third_order``.

``python -m experiments.vendi.third_order`` prints for eight distributions what halving removes
beyond the second order, over the second-order bias divided by the samples per dimension, with its
standard error, and both in standard errors of the score. One minute.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from unittest import mock

import numpy as np

from experiments.vendi.coverage import Digits, NetworkDigits
from genbounds.estimators import vendi_estimate
from genbounds.estimators.vendi import _exact
from genbounds.simulate import SphereClustersArm

COSINE = {"kernel": "cosine", "influences": False}

Draw = Callable[[int, np.random.Generator], np.ndarray]


def laws() -> Iterator[tuple[str, int, Draw]]:
    """Name, dimension and draws of each."""
    centres = 2.0 * np.random.default_rng(0).standard_normal((20, 96))

    def power(exponent: float, clusters: bool = False) -> Draw:
        scales = np.arange(1, 97) ** -exponent

        def draw(n: int, rng: np.random.Generator) -> np.ndarray:
            rows = rng.standard_normal((n, 96))
            return scales * (rows + centres[rng.integers(20, size=n)] if clusters else rows)

        return draw

    yield "power law ½, 20 clusters", 96, power(0.5, clusters=True)
    yield "power law 1", 96, power(1.0)
    yield "power law ¼", 96, power(0.25)
    yield "network features", 128, NetworkDigits().draw
    yield "digits", 64, Digits().draw
    yield "3 spheres", 90, SphereClustersArm((0.5, 0.3, 0.2), (15, 30, 45)).draw
    weights = np.arange(1, 61) ** -0.5
    yield (
        "60 uneven clusters",
        60,
        SphereClustersArm(tuple(weights / weights.sum()), (1,) * 60).draw,
    )
    yield "Student t, 3", 64, lambda n, rng: rng.standard_t(3, size=(n, 64))


def measured(draw: Draw, n: int, ratio: int, order: float, samples: int) -> tuple[float, ...]:
    """Return removed over expected, its error, and both over the standard error."""
    removed, expected, stderr = np.empty((3, samples))
    rng = np.random.default_rng(1)
    for i in range(samples):
        x = draw(n, rng)
        plugin = vendi_estimate(x, order=order, estimator="plugin", **COSINE).value
        with mock.patch.object(_exact, "_third_order_counts", return_value=False):
            second = vendi_estimate(x, order=order, **COSINE)
        with mock.patch.object(_exact, "_third_order_counts", return_value=True):
            third = vendi_estimate(x, order=order, **COSINE)
        removed[i] = third.value - second.value
        expected[i] = (second.value - plugin) / ratio
        stderr[i] = second.stderr
    share = removed.mean() / expected.mean()
    error = removed.std() / math.sqrt(samples) / abs(expected.mean())
    return share, error, removed.mean() / stderr.mean(), expected.mean() / stderr.mean()


def main(argv: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=25)
    parser.add_argument("--orders", type=float, nargs="*", default=[0.5, 1.0, 3.0, math.inf])
    options = parser.parse_args(argv)
    print("| distribution | n/d | order | share removed | in standard errors | expected |")
    print("|---|---|---|---|---|---|")
    for name, d, draw in laws():
        for ratio in (8, 13):
            for order in options.orders:
                share, error, own, bound = measured(draw, ratio * d, ratio, order, options.samples)
                print(
                    f"| {name} | {ratio} | {order:g} | {share:.2f} ± {error:.2f} | {own:.3f} "
                    f"| {bound:.3f} |",
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
