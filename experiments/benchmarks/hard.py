"""Hard inputs: what this library and the usual tools answer, beside the truth.

``python -m experiments.benchmarks.hard`` rewrites the tables of docs/evidence/comparison.md; a peer
that is not installed is left out, with a message (`make bench` installs them). The truth is the
plug-in distance in 120 decimal digits.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import mpmath
import numpy as np

import genbounds as gb
from experiments.benchmarks import peers
from experiments.record import record

DIGITS = 120
PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "comparison.md"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two samples; `truth` is None where no number is the right answer."""

    name: str
    fake: np.ndarray
    real: np.ndarray
    defined: bool = True

    @property
    def truth(self) -> float | None:
        """Plug-in distance (divisor n - 1) of the samples as they are."""
        return exact_distance(self.fake, self.real) if self.defined else None


def exact_distance(fake: np.ndarray, real: np.ndarray) -> float:
    """Fréchet distance of two samples in `DIGITS` decimal digits, rounded at the end."""
    with mpmath.workdps(DIGITS):
        (mean_a, cov_a), (mean_b, cov_b) = (_moments(rows) for rows in (fake, real))
        values, vectors = mpmath.eigsy(cov_b)
        root = vectors * mpmath.diag([mpmath.sqrt(max(v, 0)) for v in values]) * vectors.T
        product = root * cov_a * root
        values = mpmath.eigsy((product + product.T) / 2, eigvals_only=True)
        gap = mean_a - mean_b
        d = cov_a.rows
        traces = sum(cov_a[j, j] + cov_b[j, j] for j in range(d))
        roots = sum(mpmath.sqrt(max(v, 0)) for v in values)
        return max(float((gap.T * gap)[0] + traces - 2 * roots), 0.0)


def _moments(rows: np.ndarray) -> tuple[mpmath.matrix, mpmath.matrix]:
    n = len(rows)
    x = mpmath.matrix(rows.astype(np.float64).tolist())
    mean = mpmath.matrix([sum(x[i, j] for i in range(n)) / n for j in range(x.cols)])
    centred = mpmath.matrix(n, x.cols)
    for i in range(n):
        for j in range(x.cols):
            centred[i, j] = x[i, j] - mean[j]
    return mean, centred.T * centred / (n - 1)


def pairs() -> list[Pair]:
    """Return the inputs that break things."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 4)), rng.normal(size=(50, 4)) * 1.2 + 0.1
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    condition = turn * np.array([1.0, 1e-3, 1e-6, 1e-8])  # of the covariance: 1e16
    constant_x, constant_y = x.copy(), y.copy()
    constant_x[:, 1] = constant_y[:, 1] = 3.0
    outlier = x.copy()
    outlier[0, 0] = 1e12
    nan, infinite = x.copy(), x.copy()
    nan[3, 2], infinite[3, 2] = np.nan, np.inf
    half = np.clip(x * 3e4, -6e4, 6e4).astype(np.float16)
    return [
        Pair("two rows", x[:2], y),
        Pair("two rows in both samples", x[:2], y[:2]),
        Pair("one feature", x[:, :1], y[:, :1]),
        Pair("a constant feature", constant_x, constant_y),
        Pair("all rows alike", np.ones((10, 4)), y),
        Pair("every row ten times", np.repeat(x, 10, axis=0), y),
        Pair("rank one", np.outer(x[:, 0], [1.0, 2.0, 3.0, 4.0]), np.outer(y[:, 0], np.ones(4))),
        Pair("condition number 1e16", x @ condition.T, y @ condition.T),
        Pair("fewer rows than features", rng.normal(size=(6, 16)), rng.normal(size=(8, 16))),
        Pair("identical sets", x, x.copy()),
        Pair("scale 1e-150", x * 1e-150, y * 1e-150),
        Pair("scale 1e150", x * 1e150, y * 1e150),
        Pair("mean 1e6, float32", (x + 1e6).astype(np.float32), (y + 1e6).astype(np.float32)),
        Pair("one outlier of 1e12", outlier, y),
        Pair("float16 near its end", half, (y * 1e4).astype(np.float16)),
        Pair("one row", x[:1], y, defined=False),
        Pair("a NaN", nan, y, defined=False),
        Pair("an infinity", infinite, y, defined=False),
    ]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call gave: a number, or the name of what it raised; and whether it warned."""

    value: float | None
    raised: str = ""
    warned: bool = False

    def against(self, truth: float | None, scale: float) -> str:
        """Judge the answer in a few words; errors are relative to the larger of truth and scale."""
        if self.raised:
            return f"refused ({self.raised})"
        assert self.value is not None
        marks = ", with a warning" if self.warned else ""
        if math.isnan(self.value) or math.isinf(self.value):
            return f"{self.value}{marks}"
        if truth is None:
            return f"**{self.value:.4g}**{marks}"
        error = abs(self.value - truth) / max(abs(truth), scale)
        if error < 1e-9:
            return f"right{marks}"
        if error < 1e-3:
            return f"error {error:.0e}{marks}"
        return f"**{self.value:.4g}**{marks}"


def ask(call: Callable[[], float]) -> Answer:
    """Call, and keep whatever comes of it."""
    with (
        warnings.catch_warnings(record=True) as caught,
        contextlib.redirect_stdout(io.StringIO()),
    ):
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            value = float(call())
        except Exception as error:
            return Answer(None, raised=type(error).__name__)
    return Answer(value, warned=bool(caught))


def spread(pair: Pair) -> float:
    """Sum of the variances of both samples together, whose rounding a distance cannot beat."""
    with np.errstate(all="ignore"):
        rows = np.concatenate([pair.fake, pair.real]).astype(np.float64)
        return float(np.var(rows, axis=0).sum())


def table() -> list[str]:
    """Print every pair against every tool."""
    tools = {
        "genbounds": lambda x, y: gb.frechet_distance(x, y, estimator="plugin").value,
        **peers.feature_distances(),
    }
    lines = [
        "| input | truth | " + " | ".join(tools) + " |",
        "|---|---|" + "---|" * len(tools),
    ]
    for pair in pairs():
        truth = pair.truth
        cells = [
            ask(lambda call=call, pair=pair: call(pair.fake, pair.real)).against(
                truth, 1e-3 * spread(pair)
            )
            for call in tools.values()
        ]
        shown = "none" if truth is None else f"{truth:.4g}"
        lines.append(f"| {pair.name} | {shown} | " + " | ".join(cells) + " |")
    return lines


def exact_vendi(rows: np.ndarray, order: float) -> float:
    """Vendi score of normalised rows under the linear kernel, in `DIGITS` decimal digits."""
    with mpmath.workdps(DIGITS):
        x = mpmath.matrix(rows.astype(np.float64).tolist())
        for i in range(x.rows):
            norm = mpmath.sqrt(sum(x[i, j] ** 2 for j in range(x.cols)))
            for j in range(x.cols):
                x[i, j] /= norm
        shares = [v for v in mpmath.eigsy(x.T * x / x.rows, eigvals_only=True) if v > 0]
        if order == 1.0:
            return float(mpmath.exp(-sum(v * mpmath.log(v) for v in shares)))
        if math.isinf(order):
            return float(1 / max(shares))
        return float(sum(v**order for v in shares) ** (1 / (1 - mpmath.mpf(order))))


def vendi_table() -> list[str]:
    """Empirical Vendi scores with the cosine kernel: ours against vendi-score's `score_X`."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 4))
    zero, nan = x.copy(), x.copy()
    zero[3], nan[3, 2] = 0.0, np.nan
    cases = [
        ("order 1", x, 1.0, True),
        ("order 2", x, 2.0, True),
        ("order infinity", x, math.inf, True),
        ("order 1, scale 1e-150", x * 1e-150, 1.0, True),
        ("order 1, scale 1e160", x * 1e160, 1.0, True),
        ("order 1, all rows alike", np.ones((10, 4)), 1.0, True),
        ("order 1, a zero row", zero, 1.0, False),
        ("order 1, a NaN", nan, 1.0, False),
    ]
    tools: dict[str, Callable[[np.ndarray, float], float]] = {
        "genbounds": lambda x, q: (
            gb.vendi_score(x, kernel="cosine", order=q, method="exact", estimator="plugin").value
        )
    }
    if (vendi := peers.load("vendi_score.vendi")) is not None:
        tools["vendi-score"] = lambda x, q: vendi.score_X(x, q="inf" if math.isinf(q) else q)
    lines = ["| input | truth | " + " | ".join(tools) + " |", "|---|---|" + "---|" * len(tools)]
    for name, rows, order, defined in cases:
        truth = exact_vendi(rows, order) if defined else None
        cells = [
            ask(lambda call=call, rows=rows, order=order: call(rows, order)).against(truth, 1.0)
            for call in tools.values()
        ]
        lines.append(
            f"| {name} | {'none' if truth is None else f'{truth:.4g}'} | {' | '.join(cells)} |"
        )
    return lines


def main(argv: list[str] | None = None) -> int:
    """Compute both tables and put them into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--print", action="store_true", help="leave the page as it is")
    options = parser.parse_args(argv)
    tables = [*table(), "", *vendi_table()]
    if options.print:
        print("\n".join(tables))
        return 0
    record("hard", tables, page=PAGE)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
