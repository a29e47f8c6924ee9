"""Critical values compared: planned looks, exact; union bound; normal-mixture sequence.

python -m experiments.selection.boundaries

The cost of a boundary is critical value squared times the mean overshoot of the sample size: a
geometric grid with ratio g is overshot by (g - 1) / log g on average, a sequence that is watched at
every sample by nothing (but it has to be evaluated at every sample).
"""

from __future__ import annotations

import math

import numpy as np

from genbounds.select import critical_value, look_sizes


def mixture(v: np.ndarray, *, error: float, tuned_for: float) -> np.ndarray:
    """One-sided normal-mixture boundary as a z-value at v = n / first look.

    Waudby-Smith et al. (2021, arXiv 2103.06476), one-sided form, with 1/ρ² = `tuned_for`.
    """
    scaled = v / tuned_for
    inside = 1.0 + np.sqrt(scaled + 1.0) / (2.0 * error)
    return np.sqrt(2.0 * (scaled + 1.0) / scaled * np.log(inside))


def main() -> None:
    from scipy.special import ndtri

    ratio = 500
    print(f"first look 100, last {100 * ratio:,}; cost = critical² × overshoot\n")
    print("| error | growth | looks | order 1 | order 2 (used) | union bound |")
    print("|---|---|---|---|---|---|")
    for error in (0.05, 0.05 / 4, 0.05 / 19):
        for growth in (1.1, 1.25, 1.5, 2.0):
            sizes = look_sizes(100, 100 * ratio, growth=growth)
            values = [
                critical_value(error, sizes),
                critical_value(error, sizes, order=2),
                -float(ndtri(error / len(sizes))),
            ]
            overshoot = (growth - 1.0) / math.log(growth)
            cells = " | ".join(f"{c:.3f} (cost {c * c * overshoot:.1f})" for c in values)
            print(f"| {error:.4f} | {growth} | {len(sizes)} | {cells} |")
    v = np.array([1.0, 2.0, 5.0, 10.0, 30.0, 100.0, 500.0])
    print("\ncost of the mixture, watched at every sample, by n / first look\n")
    print("| error | tuned for | " + " | ".join(f"{x:g}" for x in v) + " |")
    print("|---" * (v.size + 2) + "|")
    for error in (0.05, 0.05 / 4, 0.05 / 19):
        for tuned_for in (1.0, 3.0, 10.0, 100.0):
            cost = mixture(v, error=error, tuned_for=tuned_for) ** 2
            cells = " | ".join(f"{c:.1f}" for c in cost)
            print(f"| {error:.4f} | {tuned_for:g} | {cells} |")


if __name__ == "__main__":
    main()
