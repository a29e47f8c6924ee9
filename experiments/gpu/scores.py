"""Every score, comparison and selection with tensors of the card as input.

They compute on the host (docs/evidence/experiments.md says so); what is measured is the whole call,
copy included, and checked is that a float32 tensor gives what its float64 copy in NumPy gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import genbounds as gb
from experiments.gpu.bench import Bench, Row
from genbounds.estimators import frechet_infinity
from genbounds.simulate import FrechetArm, GaussianArm, UniformArm, coverage, frechet_scores

# The public functions promise the same value for whichever kind of array; private are only the
# draws of the simulations, so that both sides are given the same random numbers.
from genbounds.simulate.arms._frechet import White, draw_white


@dataclass(frozen=True, kw_only=True)
class Call:
    """A path, what it is given (tensors on the card), and how many rows that is.

    No rows: as many as a selection drew.
    """

    path: str
    work: Callable[..., Any]
    given: tuple[Any, ...]
    rows: int


def score_rows(bench: Bench) -> Iterator[Row]:
    """Run every path once on the card's tensors and once on float64 arrays."""
    for call in (*distances(bench), *diversities(bench), *decisions(bench)):
        seconds, found = bench.once(lambda c=call: c.work(*c.given))
        exact = call.work(*(tensor.double().cpu().numpy() for tensor in call.given))
        rows = call.rows or found.total_samples
        yield Row(
            path=call.path, where="host", seconds=seconds, rate=rows / seconds,
            unit="rows/s", error=largest_gap(numbers(found), numbers(exact)),
        )  # fmt: skip
    yield lanczos_row(bench)
    yield from simulation_rows(bench)


def numbers(result: Any) -> np.ndarray:
    """Return every figure of a score, ranking or selection that must not depend on the array."""
    if isinstance(result, gb.Score):
        return np.array([result.value, result.low, result.high])
    if isinstance(result, gb.Moments):
        return np.concatenate([result.mean, result.cov.ravel()])
    scores = result.scores  # of a ranking or a selection; unlike orders would show as well
    drawn = getattr(result, "samples", {})
    return np.concatenate([*(numbers(score) for score in scores.values()), [*drawn.values()]])


def largest_gap(found: np.ndarray, exact: np.ndarray) -> float:
    """Return the largest difference, relative to the largest figure."""
    return float(np.abs(found - exact).max() / max(np.abs(exact).max(), 1e-12))


def samples(bench: Bench) -> tuple[Any, Any]:
    """Return generated and real features on the card."""
    real = bench.torch.cat(list(bench.batches(bench.size.scored)))
    generator = bench.torch.Generator(bench.device).manual_seed(2)
    noise = bench.torch.randn(real.shape, generator=generator, device=bench.device)
    return real.flip(0) * 1.05 + 0.1 * noise, real


def distances(bench: Bench) -> Iterator[Call]:
    """Fréchet distances by every method and interval, FD∞, KID."""
    fake, real = samples(bench)
    n, few, pairs = bench.size.scored, bench.size.few, bench.size.pairs
    fd = gb.frechet_distance

    def weighted(x: Any, y: Any) -> gb.Score:
        return fd(gb.Sample(x, weights=np.linspace(1.0, 2.0, len(x))), y)

    for path, work, given in (
        ("moments of features", lambda x: gb.Moments.from_features(x), (fake,)),
        ("FD, plug-in", lambda x, y: fd(x, y, estimator="plugin"), (fake, real)),
        (f"FD, debiased, n = {n:,}", fd, (fake, real)),
        ("FD, few generated samples", fd, (fake[:few], real)),
        ("FD, few real samples", fd, (fake, real[:few])),
        ("FD, few of both", fd, (fake[:few], real[:few])),
        ("FD, weighted rows", weighted, (fake, real)),
        ("FD, moments", lambda x, y: fd(x, gb.Moments.from_features(y)), (fake, real)),
        ("FD∞", lambda x, y: frechet_infinity(x, y), (fake, real)),
        ("KID", gb.kernel_inception_distance, (fake[:pairs], real[:pairs])),
    ):
        yield Call(path=path, work=work, given=given, rows=sum(len(x) for x in given))


def diversities(bench: Bench) -> Iterator[Call]:
    """Inception scores and Vendi scores by every method."""
    torch, size = bench.torch, bench.size
    generator = torch.Generator(bench.device).manual_seed(3)
    logits = torch.randn(size.scored, size.classes, generator=generator, device=bench.device)
    posteriors = (3.0 * logits).double().softmax(dim=1)
    for estimator in ("debiased", "plugin", "infinity"):
        yield Call(
            path=f"IS, {estimator}", rows=size.scored, given=(posteriors,),
            work=lambda p, e=estimator: gb.inception_score(p, estimator=e),
        )  # fmt: skip
    rows = torch.randn(size.dense, 64, generator=generator, device=bench.device)
    for name, options in {
        "exact": {"method": "exact", "estimator": "plugin"},
        "truncated": {"method": "truncated"},
        "Nyström": {"method": "nystrom"},
        "FKEA": {"method": "fkea"},
        "Lanczos": {"method": "lanczos"},
        "RKE": {"method": "ustat", "order": 2.0},
    }.items():
        yield Call(
            path=f"Vendi, {name}", rows=size.dense, given=(rows,),
            work=lambda x, o=options: gb.vendi_score(x, bandwidth=8.0, **o),
        )  # fmt: skip


class _TensorArm:
    """An arm whose draws are tensors on the card; the same rows for every kind of array."""

    def __init__(self, like: Any, shift: float) -> None:
        self.like, self.shift = like, shift

    def draw(self, n: int, rng: np.random.Generator) -> Any:
        rows = rng.standard_normal((n, 4)).astype(np.float32) + np.float32(self.shift)
        if isinstance(self.like, np.ndarray):
            return rows.astype(float)
        import torch

        return torch.from_numpy(rows).to(self.like.device)


def decisions(bench: Bench) -> Iterator[Call]:
    """Rankings by every metric, and a certified selection over arms that draw tensors."""
    fake, real = samples(bench)
    narrow = slice(0, min(bench.size.d, 64))
    n = bench.size.pairs
    two, target = (fake[:n, narrow], fake[:n, narrow] * 1.2), real[:n, narrow]
    for metric in ("fd", "kid", "vendi", "rke"):
        yield Call(
            path=f"compare, {metric}", given=(*two, target), rows=3 * n,
            work=lambda a, b, y, m=metric: gb.compare({"a": a, "b": b}, y, metric=m),
        )  # fmt: skip
    posteriors = tuple((c * fake[:n, narrow]).double().softmax(dim=1) for c in (1.0, 2.0))
    yield Call(
        path="compare, is", given=posteriors, rows=2 * n,
        work=lambda a, b: gb.compare({"a": a, "b": b}, metric="is"),
    )  # fmt: skip

    def selection(like: Any) -> Any:
        arms = {"near": _TensorArm(like, 0.2), "far": _TensorArm(like, 1.0)}
        return gb.select.run(arms, gb.Moments(np.zeros(4), np.eye(4)), batch=20, budget=4_000)

    yield Call(path="selection, arms draw tensors", given=(real[:2],), work=selection, rows=0)


def lanczos_row(bench: Bench) -> Row:
    """Vendi at a size at which no n × n matrix fits; its value was checked above at a smaller."""
    n = bench.size.lanczos
    generator = bench.torch.Generator(bench.device).manual_seed(1)
    rows = bench.torch.randn(n, 64, generator=generator, device=bench.device)
    seconds, _ = bench.once(lambda: gb.vendi_score(rows, method="lanczos", bandwidth=8.0))
    return Row(
        path=f"Vendi, Lanczos, {n:,} points", where="host", seconds=seconds, rate=n / seconds,
        unit="rows/s",
    )  # fmt: skip


def simulation_rows(bench: Bench) -> Iterator[Row]:
    """Coverage studies: Fréchet distances on the card, a bound's on the host."""
    d, replications = min(bench.size.d, 64), bench.size.replications
    spectrum = np.linspace(0.1, 2.0, d)
    arm = FrechetArm(GaussianArm(np.zeros(d), np.diag(spectrum)), 1.0, np.eye(d))
    n = 20 * d
    work = lambda: frechet_scores(arm, n, replications, device=str(bench.device))  # noqa: E731
    seconds, _ = bench.timed(work, repeats=1)
    white = draw_white(d, n, 20, np.random.default_rng(0))
    there = White(
        *(bench.torch.from_numpy(x).to(bench.device) for x in (white.mean, white.triangle))
    )
    host, card = arm.engine(), arm.engine(str(bench.device))
    exact = host.debiased(host.evaluate(white, n, debias=True), n)
    found = card.debiased(card.evaluate(there, n, debias=True), n)
    yield Row(
        path=f"coverage of the distance's interval, d = {d}", where=bench.device.type,
        seconds=seconds, rate=replications / seconds, unit="replications/s",
        error=largest_gap(found, exact),
    )  # fmt: skip
    bound = gb.bounds.catalog()["m25.empirical-bernstein"]
    seconds, _ = bench.once(lambda: coverage(bound, UniformArm(), 64, 0.05, replications, 0))
    yield Row(
        path="coverage of one bound", where="host", seconds=seconds, rate=replications / seconds,
        unit="replications/s",
    )  # fmt: skip
