"""How Vendi scores behave: in n, under truncation and bandwidth, and from few samples.

``python -m experiments.vendi`` runs all parts on distributions of known spectrum and on digits, and
rewrites its section and picture of docs/evidence/experiments.md. V24, Figs. 1-3, ask the same
questions.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import genbounds as gb
from experiments.record import PAGE, picture, record, stamp, write_data
from experiments.vendi.coverage import Digits, NetworkDigits, digits, moment_spectrum
from genbounds.estimators import median_bandwidth
from genbounds.simulate import RbfArm, SphereClustersArm, vendi_truth

WEIGHTS = 1.0 / np.arange(1, 31)
CLUSTERS = SphereClustersArm(tuple(WEIGHTS / WEIGHTS.sum()), (1,) * 30)
GAUSS = RbfArm((2.0, 1.0, 1.0, 0.5), 2.0)
KEPT, FREQUENCIES = 30, 100


@dataclass(frozen=True)
class Line:
    """One statistic by one method on one distribution: a row of the table of convergence."""

    law: str
    arm: Any
    kernel: str
    method: str
    order: float
    bandwidth: float | None = None
    spectrum: np.ndarray | None = None

    @property
    def given(self) -> dict[str, Any]:
        """Arguments of `vendi_score`."""
        components = {"truncated": KEPT, "nystrom": KEPT, "fkea": FREQUENCIES}.get(self.method)
        given: dict[str, Any] = {"kernel": self.kernel, "order": self.order, "method": self.method}
        if self.bandwidth is not None:
            given["bandwidth"] = self.bandwidth
        return given | ({} if components is None else {"components": components})

    @property
    def truth(self) -> str:
        """Score of the distribution, where it is known and is what the method estimates."""
        if self.spectrum is None or self.method == "fkea":
            return "–"
        kept = self.given.get("components")
        return f"{vendi_truth(self.spectrum, self.order, kept):.4g}"


METHODS = {
    "cosine": (*(("exact", order) for order in (0.5, 1.0, 2.0, math.inf)), ("truncated", 1.0)),
    "rbf": (
        ("exact", 0.5),
        ("exact", 1.0),
        ("exact", 1.5),
        ("ustat", 2.0),
        ("exact", math.inf),
        ("lanczos", 1.0),
        ("fkea", 1.0),
        ("truncated", 1.0),
        ("nystrom", 1.0),
    ),
}


def lines() -> Iterator[Line]:
    """Every method and order that applies, on two distributions for each kernel."""
    network = NetworkDigits()
    sigma = median_bandwidth(network.draw(1000, np.random.default_rng(2)))
    for kernel, law, arm, bandwidth, spectrum in (
        ("cosine", "30 uneven clusters", CLUSTERS, None, CLUSTERS.spectrum),
        ("cosine", "digits, network", network, None, moment_spectrum()),
        ("rbf", "Gaussian d=4", GAUSS, GAUSS.bandwidth, GAUSS.spectrum),
        ("rbf", "digits, network", network, sigma, None),
    ):
        for method, order in METHODS[kernel]:
            yield Line(law, arm, kernel, method, order, bandwidth, spectrum)


Curves = dict[str, list[gb.Score]]


def convergence(
    studied: Iterable[Line], sizes: Sequence[int], seed: int, *, name: str, page: Path
) -> tuple[list[str], Curves]:
    """Score growing parts of one sample; return where they stand and the curves of the picture.

    The table, `name`, goes beside the page.

    The picture shows the RBF kernel where no spectrum is known.
    """
    rows, curves = [], Curves()
    for line in studied:
        sample = line.arm.draw(max(sizes), np.random.default_rng(seed))
        scores = [gb.vendi_score(sample[:n], **line.given) for n in sizes]
        method = f"{line.method}, order {line.order:g}"
        cells = [f"{s.value:.4g} ± {(s.high - s.low) / 2:.2g}" for s in scores]
        rows.append([line.law, line.kernel, method, *cells, line.truth])
        if line.kernel == "rbf" and line.spectrum is None:
            curves[method] = scores
        print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    head = [
        "distribution",
        "kernel",
        "method",
        *(f"n = {n:,}" for n in sizes),
        "distribution's own",
    ]
    write_data(name, head, rows, page=page)
    return [f"[All scores](data/{name}.csv)."], curves


def dial(n: int, seed: int, *, page: Path) -> str:
    """Scores of samples of the first 1, 2, … classes of digits, by truncation and by bandwidth."""
    from sklearn.datasets import load_digits

    classes = load_digits().target
    rng = np.random.default_rng(seed)
    counts = (1, 2, 3, 5, 7, 10)
    samples = {}
    for count in counts:
        pool = np.flatnonzero(classes < count)
        samples[count] = digits()[rng.choice(pool, n)] + 0.05 * rng.standard_normal((n, 64))
    sigma = median_bandwidth(samples[max(counts)])
    kept = [t for t in (5, 10, 30, 100, 300) if t < n]

    def row(name: str, **given: Any) -> list[str]:
        scores = [gb.vendi_score(x, **given).value for x in samples.values()]
        values = np.diff(scores) > 0.0
        growth = scores[-1] / scores[0]
        return [
            name,
            *(f"{s:.4g}" for s in scores),
            f"{growth:.2f}",
            "yes" if all(values) else "no",
        ]

    by_truncation = [
        row(f"order 1, {t} kept", bandwidth=sigma, method="truncated", components=t) for t in kept
    ]
    by_truncation.append(row("order 1, empirical", bandwidth=sigma, method="exact"))
    by_truncation.append(row("order 2", bandwidth=sigma, order=2.0))
    by_bandwidth = [
        row(f"order {order:g}, σ = {factor:g} × median", bandwidth=factor * sigma, **given)
        for order, given in (
            (1.0, {"method": "truncated", "components": kept[-2]}),
            (2.0, {"order": 2.0}),
        )
        for factor in (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
    ]
    head = [*(f"{count} classes" for count in counts), "last / first", "grows throughout"]
    write_data("vendi-dial", ["", *head], [*by_truncation, *by_bandwidth], page=page)
    return "[All scores](data/vendi-dial.csv)."


class PowerLaw:
    """Gaussian rows in 128 dimensions with variances 1/j."""

    scales = np.arange(1, 129) ** -0.5

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw `n` of them."""
        return rng.standard_normal((n, 128)) * self.scales

    def spectrum(self) -> np.ndarray:
        """Second moments of the directions of 100,000 of them; off the diagonal they are 0."""
        x = self.draw(100_000, np.random.default_rng(3))
        return np.sort((x**2 / (x**2).sum(axis=1, keepdims=True)).mean(axis=0))[::-1]


def few_samples(replications: int, seed: int, *, page: Path) -> str:
    """Errors of the log score from fewer rows than twice the dimension, plug-in and fitted."""
    pixels = digits() / np.linalg.norm(digits(), axis=1, keepdims=True)
    spheres = SphereClustersArm((0.5, 0.3, 0.2), (20, 40, 60))
    laws: tuple[tuple[str, Any, np.ndarray], ...] = (
        ("digits, network", NetworkDigits(), moment_spectrum()),
        ("digits, pixels", Digits(), np.linalg.eigvalsh(pixels.T @ pixels / len(pixels))),
        ("Gaussian, power law", PowerLaw(), PowerLaw().spectrum()),
        ("3 spheres", spheres, spheres.spectrum),
    )
    rows = []
    for law, arm, spectrum in laws:
        d = arm.draw(2, np.random.default_rng(0)).shape[1]
        for n in (d // 2, d, 3 * d // 2):
            for order in (0.5, 1.0):
                rows.append(_few_row(law, arm, spectrum, n, order, replications, seed))
                print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    head = [
        "distribution",
        "D",
        "n",
        "order",
        "plug-in",
        "fitted",
        "error of the fit",
        "its spread",
    ]
    write_data("vendi-few", [*head, "stated", "covered", "refused"], rows, page=page)
    return "[All errors](data/vendi-few.csv)."


def _few_row(
    law: str,
    arm: Any,
    spectrum: np.ndarray,
    n: int,
    order: float,
    replications: int,
    seed: int,
) -> list[str]:
    truth = vendi_truth(spectrum[spectrum > 0.0], order)
    rng = np.random.default_rng(seed)
    plain, fitted = [], []
    for _ in range(replications):
        x = arm.draw(n, rng)
        given: dict[str, Any] = {"kernel": "cosine", "order": order}
        plain.append(math.log(gb.vendi_score(x, estimator="plugin", **given).value / truth))
        score = gb.vendi_score(x, **given)
        if score.method == "spectrum-fit":
            covers = score.low <= truth <= score.high
            fitted.append((math.log(score.value / truth), score.stderr / score.value, covers))
    name = [law, str(x.shape[1]), str(n), f"{order:g}", f"{np.mean(plain):+.3f}", str(len(fitted))]
    refused = f"{1 - len(fitted) / replications:.0%}"
    if len(fitted) < 2:
        return [*name, "–", "–", "–", "–", refused]
    error, stated, covered = np.array(fitted, float).T
    figures = [f"{error.mean():+.3f}", f"{error.std(ddof=1):.3f}", f"{stated.mean():.3f}"]
    return [*name, *figures, f"{covered.mean():.0%}", refused]


def paint(axes: Any, sizes: Sequence[int], curves: Curves, *, rows: str, title: str) -> None:
    """Draw scores with their intervals against the number of rows."""
    for name, scores in curves.items():
        values = np.array([s.value for s in scores])
        errors = [values - [s.low for s in scores], [s.high for s in scores] - values]
        axes.errorbar(sizes, values, yerr=errors, marker="o", ms=3, lw=1, capsize=2, label=name)
    axes.set(xscale="log", yscale="log", xlabel=f"number of {rows}", ylabel="Vendi score")
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.set_title(f"{title}, RBF kernel, 95 % intervals", fontsize=9)


def main(argv: list[str] | None = None) -> int:
    """Run all parts and record them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[125, 250, 500, 1000, 2000])
    parser.add_argument("--dial", type=int, default=1000, help="images of a step of the dial")
    parser.add_argument(
        "--few", type=int, default=60, help="samples of each distribution of few rows"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", type=Path, default=PAGE, help="document with the section")
    options = parser.parse_args(argv)
    converged, curves = convergence(
        lines(), options.sizes, options.seed, name="vendi-growth", page=options.page
    )
    dialled = dial(options.dial, options.seed, page=options.page)
    few = few_samples(options.few, options.seed, page=options.page)
    labels = {"rows": "images", "title": "Digits through a network"}
    image = picture(
        "vendi-convergence",
        lambda axes: paint(axes, options.sizes, curves, **labels),
        page=options.page,
    )
    out = [
        stamp(),
        f"Growing parts of one sample, seed {options.seed}: score ± half of its 95 % interval. "
        f"{KEPT} eigenvalues kept, {FREQUENCIES} frequencies.",
        "",
        *converged,
        "",
        image,
        "",
        f"The dial, by truncation and by bandwidth: {options.dial:,} noisy digits of the first "
        f"classes, RBF kernel. {dialled}",
        "",
        f"Few samples, cosine kernel: mean error of the log score over {options.few} samples. "
        f"{few}",
    ]
    record("vendi", out, page=options.page)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
