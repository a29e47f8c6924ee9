"""Norms of a covariance from 50 images, which M25 Remark 1 calls close to the true ones.

``python -m experiments.selection.norms`` draws samples of 50 rows from Gaussian distributions with
the norms that M25 prints for 5,000 images (Tables 1 to 3), takes the norms of their covariances as
FD-UCB does (plain, and with the threshold of App. C.3), and puts them beside what the paper prints
for 50 images, and what becomes of the bonus.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from experiments.record import crossed, record, stamp, write_data
from experiments.selection.embeddings import EMBEDDINGS, Row, spectrum
from experiments.selection.regret import PAGE
from genbounds.select import Norms, fd_bonus

FROM_50: dict[str, dict[str, Row]] = {
    "inception": {
        "DiT-XL-2": Row(160.0, 20.9, 11.2),
        "ADMG": Row(150.8, 19.4, 10.5),
        "BigGAN": Row(161.8, 22.3, 13.2),
        "RQ-Transformer": Row(164.5, 22.2, 12.7),
        "ADM": Row(182.5, 25.6, 15.2),
        "ImageNet": Row(141.2, 20.2, 8.7),
    },
    "clip": {
        "DiT-XL-2": Row(601.9, 101.4, 48.0),
        "ADMG": Row(566.1, 101.3, 50.4),
        "BigGAN": Row(486.8, 90.8, 54.0),
        "RQ-Transformer": Row(551.7, 99.1, 51.0),
        "ADM": Row(561.8, 100.7, 52.5),
        "ImageNet": Row(573.1, 118.5, 74.1),
    },
    "dinov2": {
        "DiT-XL-2": Row(2085.6, 309.4, 81.4),
        "ADMG": Row(2102.1, 311.4, 79.1),
        "BigGAN": Row(1799.6, 285.4, 110.4),
        "RQ-Transformer": Row(1968.0, 302.5, 91.1),
        "ADM": Row(1988.1, 306.0, 101.0),
        "ImageNet": Row(2095.4, 347.3, 104.3),
    },
}
"""The columns of M25's Tables 1 to 3 that were computed from 50 images."""

NAMES = ("Tr Σ", "√Tr Σ²", "‖Σ‖")


def triple(norms: Norms | Row) -> np.ndarray:
    """Return Tr Σ, √Tr Σ², ‖Σ‖."""
    if isinstance(norms, Row):
        return np.array([norms.trace, norms.root_square, norms.operator])
    return np.array([norms.trace, np.sqrt(norms.trace_of_square), norms.operator])


def bonus(norms: np.ndarray, n: int, root: float) -> float:
    """Bonus of FD-UCB as tuned, δ = 0.05, with the mean at that of the reference."""
    found = Norms(trace=norms[0], trace_of_square=norms[1] ** 2, operator=norms[2])
    return fd_bonus(found, n=n, mean_gap=0.0, reference_trace_root=root, delta=0.05, kappa=1.0,
                    constants="practical")  # fmt: skip


def drawn(values: np.ndarray, n: int, trials: int, seed: int) -> dict[str, np.ndarray]:
    """Norms by kind of covariance, shape (trials, 3)."""
    rng = np.random.default_rng(seed)
    found: dict[str, list[np.ndarray]] = {"plain": [], "threshold": []}
    for _ in range(trials):
        rows = rng.standard_normal((n, values.size)) * np.sqrt(values)
        found["plain"].append(triple(Norms.of_sample(rows)))
        found["threshold"].append(triple(Norms.of_sample(rows, threshold=2.0)))
    return {kind: np.array(norms) for kind, norms in found.items()}


COLUMNS = (
    "encoder", "model", "norm", "5,000 images, printed", "50 images, printed", "50 rows",
    "with threshold", "printed ratio", "ratio here",
)  # fmt: skip


def report(n: int, trials: int, seed: int, *, page: Path) -> list[str]:
    """Return the section; the whole table goes beside the page."""
    rows, ratios = [], []
    for encoder, embedding in EMBEDDINGS.items():
        root = float(np.sqrt(spectrum(embedding.reference, embedding.dimension)).sum())
        for model, printed in {**embedding.models, "ImageNet": embedding.reference}.items():
            found = drawn(spectrum(printed, embedding.dimension), n, trials, seed)
            true = triple(printed)
            paper = triple(FROM_50[encoder][model])
            means = {kind: norms.mean(axis=0) for kind, norms in found.items()}
            for index, name in enumerate(NAMES):
                spread = found["plain"][:, index].std(ddof=1)
                cells = (f"{means['plain'][index]:.4g} ± {spread:.2g}",
                         f"{means['threshold'][index]:.4g}")  # fmt: skip
                rows.append(
                    (encoder, model, name, f"{true[index]:.4g}", f"{paper[index]:.4g}", *cells,
                     f"{paper[index] / true[index]:.2f}",
                     f"{means['plain'][index] / true[index]:.2f}")
                )  # fmt: skip
            exact = bonus(true, n, root)
            ratios.append([bonus(means[kind], n, root) / exact for kind in ("plain", "threshold")])
    off = {
        name: [float(row[7]) for row in rows if row[2] == name] for name in NAMES
    }  # printed from 50 images over printed from 5,000
    spans = ", ".join(f"{name} {min(r):.2g} to {max(r):.2g}" for name, r in off.items())
    low, high = np.min(ratios, axis=0), np.max(ratios, axis=0)
    write_data("norms", COLUMNS, rows, page=page)
    ratio = {(f"{row[0]}, {row[1]}", row[2]): f"{row[7]} / {row[8]}" for row in rows}
    return [
        f"{stamp()} {trials} samples of {n} rows each, seed {seed}; mean ± standard deviation.",
        "",
        f"* Norms from 50 images over those from 5,000, in the paper's own columns: {spans}. Of "
        "Gaussian rows, too, E Tr Σ̂² exceeds Tr Σ² by about (Tr Σ)²/n.",
        f"* The bonus (as tuned, n = {n}) with norms from {n} rows is {low[0]:.2f} to "
        f"{high[0]:.2f} times that with the true ones; with the threshold of App. C.3 "
        f"{low[1]:.2f} to {high[1]:.2f} times. The axes of the rows are those of the covariance, "
        "where the threshold does best.",
        "",
        f"Norm from 50 images over that from 5,000, as printed / of {n} Gaussian rows here "
        "([the norms themselves](data/norms.csv)):",
        "",
        *crossed(ratio, "encoder, model"),
    ]


def main(argv: list[str] | None = None) -> int:
    """Draw, compare, record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=50)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(argv)
    record(
        "norms",
        report(options.n, options.trials, options.seed, page=options.page),
        page=options.page,
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
