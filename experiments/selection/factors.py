"""How FD-UCB's regret depends on the number of models G, the batch b and D₁ (M25 (14) to (17)).

``python -m experiments.selection.factors`` varies one of them at a time on Gaussian arms in two
dimensions, one with the reference's mean and the others a gap away, and fits the power with which
the regret after T steps grows, beside that of the theorem's own sum, logarithms left out. An upper
bound is not contradicted by a smaller power.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from experiments.record import record, stamp, table
from experiments.selection.regret import PAGE, interval
from genbounds import select
from genbounds.estimators import Moments
from genbounds.select import FdUcb
from genbounds.simulate import GaussianArm

BASE = {"models": 4, "batch": 5, "scale": 1.0}
"""G, b, and the standard deviation of the reference, to which D₁ is proportional."""

VARIED: Mapping[str, tuple[float, ...]] = {
    "models": (2, 4, 8),
    "batch": (1, 5, 25),
    "scale": (0.5, 1.0, 2.0),
}
TITLES = {"models": "G", "batch": "b", "scale": "D₁"}
POLICIES: dict[str, Callable[[], FdUcb]] = {
    "as tuned": FdUcb,
    "as printed": lambda: FdUcb(constants="printed"),
}
GAP, D = 1.5, 2


def factors(scale: float) -> tuple[float, float, float]:
    """D₁, D₂ and D₃ of M25 (15) to (17); all arms have Σ = I."""
    trace_root, trace, square, operator = D * scale, float(D), math.sqrt(D), 1.0
    first = trace_root * (operator**2 * (trace / operator + 1.0)) ** 0.25
    second = (GAP + trace_root) * math.sqrt(square + operator) + trace
    return first, second, square + operator


def bound(models: int, batch: int, scale: float, steps: int) -> float:
    """Return the sum (14) with constants one, without logarithms but that of its last term."""
    first, second, third = factors(scale)
    share = models / batch
    return (
        first * share**0.25 * steps**0.75
        + second * share**0.5 * steps**0.5
        + third * share * math.log(steps)
    )


def played(models: int, batch: int, scale: float, policy: str, steps: int, seed: int) -> float:
    """Regret after so many steps of one run."""
    reference = Moments(np.zeros(D), scale**2 * np.eye(D))
    arms = {
        f"a{k}": GaussianArm(np.r_[0.0 if k == 0 else GAP, 0.0], np.ones(D)) for k in range(models)
    }
    spread = D * (1.0 - scale) ** 2
    truth = {name: spread + (0.0 if name == "a0" else GAP**2) for name in arms}
    found = select.run(
        arms, reference, policy=POLICIES[policy](), batch=batch, budget=batch * steps, seed=seed
    )
    return float(found.history.average_regret(truth)[-1] * steps)


def power(x: list[float], y: list[float]) -> float:
    """Slope of log y in log x."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def report(steps: int, trials: int, seed: int) -> list[str]:
    """Return the section."""
    rows, fits = [], []
    for policy in POLICIES:
        for name, values in VARIED.items():
            found, claimed, shown = [], [], []
            for value in values:
                setting = BASE | {name: value}
                runs = np.array(
                    [
                        played(**setting, policy=policy, steps=steps, seed=seed + trial)
                        for trial in range(trials)
                    ]
                )
                mean, half = interval(runs)
                sum_ = bound(**setting, steps=steps)
                d1 = factors(setting["scale"])[0]
                shown.append(d1 if name == "scale" else float(value))
                found.append(runs)
                claimed.append(sum_)
                most = GAP**2 * steps
                rows.append(
                    (policy, TITLES[name], f"{shown[-1]:.3g}", f"{mean:.4g} ± {half:.2g}",
                     f"{mean / most:.0%}", f"{sum_:.4g}")
                )  # fmt: skip
            slopes = np.array(
                [power(shown, [max(r[trial], 1e-9) for r in found]) for trial in range(trials)]
            )
            mean, half = interval(slopes)
            fits.append((policy, TITLES[name], f"{mean:.2f} ± {half:.2g}",
                         f"{power(shown, claimed):.2f}"))  # fmt: skip
    return [
        f"{stamp()} T = {steps:,}, {trials} trials, seed {seed}; d = {D}, gap of the scores "
        f"{GAP**2:g}, else G = {BASE['models']}, b = {BASE['batch']}, Σ_r = I; 95 % intervals.",
        "",
        *table(("FD-UCB", "varied", "power of the regret", "power of the sum (14)"), fits),
        "",
        *table(
            ("FD-UCB", "varied", "at", f"regret after {steps:,} steps", "of the largest possible",
             "sum (14), constants one"),
            rows,
        ),
    ]  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    """Play, fit, record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--trials", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(argv)
    lines = report(options.steps, options.trials, options.seed)
    record("factors", lines, page=options.page)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
