"""Coverage of distances across encoders, and of diversity and distances given the prompts.

``python -m experiments.accuracy.encoders_and_prompts`` (some 15 minutes) records two tables in
docs/evidence/encoders_and_prompts.md. Encoders are networks of eight latents, whose moments come
from a million draws; prompts and outputs are Gaussian, and every kernel has a closed form.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

import genbounds as gb
from experiments.record import rate, record, stamp, table
from genbounds.validation import Float

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "encoders_and_prompts.md"
LATENTS, ROWS, DRAWS = 8, 2000, 400_000
WEIGHTS = np.random.default_rng(21)
WIDE = WEIGHTS.normal(size=(LATENTS, 8)) * 2.0
BOUNDED = WEIGHTS.normal(size=(LATENTS, 12)) / 3.0
FIRST, SECOND = WEIGHTS.normal(size=(LATENTS, 32)) / 2.8, WEIGHTS.normal(size=(32, 16))
ENCODERS: dict[str, Callable[[Float], Float]] = {
    "wide": lambda z: z @ WIDE,
    "bounded": lambda z: np.tanh(z @ BOUNDED + 0.3),
    "rectified": lambda z: np.maximum(z @ FIRST, 0.0) @ SECOND,
}
MODELS: dict[str, tuple[float, float]] = {"a": (1.15, 0.25), "b": (1.2, 0.2)}
"""Scale and shift of the latents."""

PROMPTS, OUTPUTS = 3, 4
MAP = np.random.default_rng(31).normal(size=(OUTPUTS, PROMPTS)) * 0.8
WIDTHS = {"bandwidth": 2.5, "prompt_bandwidth": 2.0}
LAWS: dict[str, tuple[float, float, float]] = {
    "real": (1.0, 1.0, 0.0),
    "generated": (0.8, 0.8, 0.4),
}
"""Of outputs given their prompt: factor of the map, noise, and shift."""


def latents(rng: np.random.Generator, n: int, model: str) -> Float:
    """Draw what a model hands to every encoder."""
    scale, shift = MODELS.get(model, (1.0, 0.0))
    rows: Float = scale * rng.normal(size=(n, LATENTS)) + shift
    return rows


def of_encoders(runs: int) -> list[list[str]]:
    """Return a line for every scale, and one for the difference of both models."""
    rng = np.random.default_rng(1)
    moments = {
        name: {
            model: gb.Moments.from_features(encode(latents(rng, DRAWS, model)))
            for model in (*MODELS, "real")
        }
        for name, encode in ENCODERS.items()
    }
    exact = {
        name: {model: gb.Moments(m.mean, m.cov) for model, m in every.items()}
        for name, every in moments.items()
    }
    distances = {
        model: np.array([gb.frechet_distance(m[model], m["real"]).value for m in exact.values()])
        for model in MODELS
    }
    halves = np.mean(
        [
            [
                gb.frechet_distance(x[::2], x[1::2], estimator="plugin").value
                for encode in ENCODERS.values()
                for x in [encode(z)]
            ]
            for z in (latents(rng, ROWS, "real") for _ in range(100))
        ],
        axis=0,
    )
    numbers = {"wide": 0.5, "bounded": 0.01, "rectified": 0.5}
    scales: dict[str, str | dict[str, float]] = {"log": "log", "floor": "floor", "numbers": numbers}
    a = distances["a"]
    truth = {
        "log": float(np.exp(np.log(a).mean())),
        "floor": float((a / halves).mean()),
        "numbers": float((a / list(numbers.values())).mean()),
    }
    ratio = float(np.log(a / distances["b"]).mean())
    hits, alone = dict.fromkeys((*scales, "a against b"), 0), 0
    for _ in range(runs):
        drawn = {model: latents(rng, ROWS, model) for model in (*MODELS, "real")}
        fakes = {name: {m: f(drawn[m]) for m in MODELS} for name, f in ENCODERS.items()}
        real = {name: f(drawn["real"]) for name, f in ENCODERS.items()}
        for name, scale in scales.items():
            found = gb.across(fakes, real, scale=scale)
            score = found.scores["a"]
            hits[name] += score.low <= truth[name] <= score.high
            if name == "log":
                gap = found.difference("a", "b")
                hits["a against b"] += (
                    gap.low <= (ratio if gap.better == "a" else -ratio) <= gap.high
                )
                each = [ranking.scores["a"] for ranking in found.by_encoder.values()]
                error = np.sqrt(sum((s.stderr / s.value) ** 2 for s in each)) / len(each)
                alone += abs(np.log(score.value / truth["log"])) <= 1.96 * error
    lines = [[name, rate(count, runs)] for name, count in hits.items()]
    return [*lines, ["log, as if encoders were independent", rate(alone, runs)]]


def outputs(rng: np.random.Generator, texts: Float, law: str) -> Float:
    """Draw an output for every row of prompts."""
    factor, noise, shift = LAWS[law]
    rows: Float = texts @ (factor * MAP).T + shift + noise * rng.normal(size=(len(texts), OUTPUTS))
    return rows


def expected(power: int, one: str, two: str, *, both: bool = True) -> float:
    """E k_T^power k_X^power of independent pairs of two laws; of prompts alone unless `both`."""
    covariance = np.zeros((PROMPTS + OUTPUTS,) * 2)
    for law in (one, two):
        factor, noise, _ = LAWS[law]
        joint = np.vstack([np.eye(PROMPTS), factor * MAP])
        covariance += joint @ joint.T
        covariance[PROMPTS:, PROMPTS:] += noise**2 * np.eye(OUTPUTS)
    mean = np.r_[np.zeros(PROMPTS), np.full(OUTPUTS, LAWS[one][2] - LAWS[two][2])]
    widths = np.r_[np.full(PROMPTS, 2.0), np.full(OUTPUTS, 2.5)]
    if not both:
        covariance, mean, widths = covariance[:PROMPTS, :PROMPTS], mean[:PROMPTS], widths[:PROMPTS]
    squares = np.diag(widths**2 / power)
    inside = np.linalg.solve(squares + covariance, mean)
    scale = np.linalg.det(np.eye(len(mean)) + np.linalg.solve(squares, covariance))
    return float(scale**-0.5 * np.exp(-0.5 * mean @ inside))


def of_prompts(runs: int) -> list[list[str]]:
    """Return a line for every number of prompts and of outputs of each."""
    diversity = expected(2, "generated", "generated", both=False) / expected(
        2, "generated", "generated"
    )
    distance = (
        expected(1, "generated", "generated")
        + expected(1, "real", "real")
        - 2.0 * expected(1, "generated", "real")
    )
    lines = []
    for prompts, each in ((50, 1), (50, 4), (200, 1), (200, 4), (500, 1)):
        rng, hits = np.random.default_rng([prompts, each]), [0, 0, 0]
        for _ in range(runs):
            texts = np.repeat(rng.normal(size=(prompts, PROMPTS)), each, axis=0)
            x, y, twin = (outputs(rng, texts, law) for law in ("generated", "real", "real"))
            score = gb.conditional_vendi(x, texts, **WIDTHS).conditional
            apart, same = (
                gb.kernel_distance(one, y, kernel="rbf", prompts=texts, **WIDTHS)
                for one in (x, twin)
            )
            for place, (found, truth) in enumerate(
                ((score, diversity), (apart, distance), (same, 0.0))
            ):
                hits[place] += found.low <= truth <= found.high
        lines.append([f"{prompts} × {each}", *(rate(count, runs) for count in hits)])
    return lines


def main(argv: list[str] | None = None) -> int:
    """Record both tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(argv)
    head = f"{stamp()} {options.runs} runs a line."
    lines = table(["scale", "covered"], of_encoders(options.runs))
    record("encoders", [f"{head} n = m = {ROWS:,}.", "", *lines], page=options.page)
    columns = ["prompts × outputs", "conditional Vendi, order 2", "joint distance", "of equals"]
    record("prompts", [head, "", *table(columns, of_prompts(options.runs))], page=options.page)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
