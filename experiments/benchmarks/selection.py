"""Cost of online selection, against the plain way in the same run.

python -m experiments.benchmarks.selection [step products study is kernel memory trial]
    [--dimension 2048]

The plain way, written here from the published description: a d × d covariance for every arm that a
batch updates by one outer product a row, `scipy.linalg.sqrtm` of its product with the reference
covariance for the score, a symmetric eigenproblem for the norm in the bonus. For the Inception
score: all posteriors of the arm at every step, class by class variances from scratch.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import scipy

from experiments.memory import peak_gib
from experiments.record import exact_limits
from experiments.selection import store
from genbounds import select
from genbounds.estimators import Moments, metric_spec
from genbounds.select import Certificate, FdUcb, Greedy, IsUcb, State

BATCH = 5
PUBLISHED_FD, PUBLISHED_IS = 14.7, 3.1e-3
"""Seconds a step, quoted for the published code: d = 2,048 and n about 1,000; 1,000 classes."""

POLICIES = ("greedy", "fd-ucb", "fid-ucb", "naive-ucb", "debiased-ucb", "lucb")


def spectrum(d: int) -> np.ndarray:
    """Variances with the trace and the norm of Inception features (M25, Table 1)."""
    return 10.7 * np.arange(1, d + 1) ** -0.85


class Gaussian:
    """N(shift e₁, s² diag(spectrum)), float32."""

    def __init__(self, d: int, shift: float, scale: float) -> None:
        self._sd = (np.sqrt(spectrum(d)) * scale).astype(np.float32)
        self._shift = np.float32(shift)

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return `n` rows."""
        rows = rng.standard_normal((n, self._sd.size), dtype=np.float32)
        rows *= self._sd
        rows[:, 0] += self._shift
        return rows


def lineup(arms: int, d: int) -> dict[str, Gaussian]:
    """Arms that differ in mean and in spread."""
    return {f"a{i}": Gaussian(d, 0.25 * i, 1.0 - 0.01 * i) for i in range(arms)}


def state_of(rows: np.ndarray, metric: str, reference: Moments | np.ndarray | None) -> State:
    """State of a run with one arm, as its policy sees it."""
    prepared = metric_spec(metric).prepared(reference)
    return State(
        available=np.ones(1, dtype=bool),
        index=np.full(1, -np.inf),
        rows=[rows],
        certificate=Certificate(1, (100_000,), error=0.05, top=1, tolerance=0.0),
        metric=prepared,
        batch=BATCH,
        horizon=1_000,
        error=0.05,
        rng=np.random.default_rng(0),
    )


def our_steps(
    policy: FdUcb | IsUcb | Greedy, rows: np.ndarray, first: int, state: State
) -> list[float]:
    """Seconds of each step from `first` rows on: the policy's index of the arm that was pulled."""
    seconds = []
    for end in range(first, len(rows) + 1, BATCH):
        state.rows[0] = rows[:end]
        start = time.perf_counter()
        policy.index(state, 0)
        seconds.append(time.perf_counter() - start)
    return seconds[1:]  # the first one catches up


def plain_fd_step(rows: np.ndarray, n: int, reference: Moments) -> float:
    """Seconds of one step of the plain way at n rows."""
    x = rows[:n].astype(np.float64)
    mean, cov = x.mean(axis=0), np.cov(x, rowvar=False, bias=True)
    start = time.perf_counter()
    for row in rows[n : n + BATCH].astype(np.float64):
        gap = row - mean
        cov = cov * (n / (n + 1.0)) + np.outer(gap, gap) * (n / (n + 1.0) ** 2)
        mean = mean + gap / (n + 1.0)
        n += 1
    root = scipy.linalg.sqrtm(cov @ reference.cov)
    score = np.square(mean - reference.mean).sum() + np.trace(cov + reference.cov)
    score -= 2.0 * np.trace(np.real(root))
    norm = np.linalg.eigvalsh(cov)[-1]
    seconds = time.perf_counter() - start
    assert np.isfinite(score + norm)
    return seconds


def plain_is_step(p: np.ndarray) -> float:
    """Seconds of one step of the plain way with all posteriors."""
    start = time.perf_counter()
    n, classes = p.shape
    log = np.log(4.0 * classes * 1_000 / 0.05)
    mean = p.mean(axis=0)
    entropies = -(p * np.log(p)).sum(axis=1)
    reach = np.sqrt(2.0 * p.var(axis=0, ddof=1) * log / n) + 7.0 * log / (3.0 * (n - 1))
    optimistic = np.empty(classes)
    for j in range(classes):
        gap = np.exp(-1.0) - mean[j]
        step = reach[j] if abs(gap) >= reach[j] else abs(gap)
        optimistic[j] = mean[j] + np.sign(gap) * step
    score = -(optimistic * np.log(optimistic)).sum() - entropies.mean()
    score += np.sqrt(2.0 * entropies.var(ddof=1) * log / n)
    seconds = time.perf_counter() - start
    assert np.isfinite(score)
    return seconds


def bench_step(options: argparse.Namespace) -> None:
    """One step of FD-UCB at a given number of rows."""
    d, n = options.dimension, options.rows
    reference = Moments(np.zeros(d), np.diag(spectrum(d)))
    first = n - n // 10
    rows = Gaussian(d, 0.5, 0.95).draw(n + n // 10, np.random.default_rng(0))
    state = state_of(rows[:first], "fd", reference)
    ours = our_steps(FdUcb(), rows, first, state)
    plain = min(plain_fd_step(rows, n, reference) for _ in range(options.repeats))
    print(f"FD-UCB step, d = {d:,}, n = {first:,} … {len(rows):,}, batch {BATCH}")
    print(f"  genbounds  mean {np.mean(ours):.4f} s, largest {max(ours):.3f} s")
    print(f"  plain way  {plain:.2f} s: ratio of means {plain / np.mean(ours):.0f}")
    if d == 2048:
        print(f"  published code {PUBLISHED_FD} s (quoted): {PUBLISHED_FD / np.mean(ours):.0f} ×")


def bench_products(options: argparse.Namespace) -> None:
    """Processor time of a step that follows a score, against the products of its batch.

    As plain products: the batch times the root of the reference's covariance, and twice times the
    directions that the arm's rows span, of which there are as many as rows. Of 40 steps one
    decomposes, as in the long run.
    """
    d, n = options.dimension, options.rows
    reference = Moments(np.zeros(d), np.diag(spectrum(d)))
    first = n - n // 10
    rows = Gaussian(d, 0.5, 0.95).draw(n + n // 10, np.random.default_rng(0))
    batch = rows[:BATCH].astype(np.float64)
    root, vectors = (np.random.default_rng(1).normal(size=(d, k)) for k in (d, min(n, d)))
    repeats = 20
    start = time.process_time()
    for _ in range(repeats):
        batch @ root, batch @ vectors, batch @ vectors
    products = (time.process_time() - start) / repeats
    for policy in (Greedy(), FdUcb()):
        state = state_of(rows[:first], "fd", reference)
        state.rows[0] = rows[:first]
        policy.index(state, 0)  # catches up
        start = time.process_time()
        steps = len(our_steps(policy, rows, first, state))
        busy = (time.process_time() - start) / (steps + 1)
        print(
            f"{policy.name} step, d = {d:,}, n = {first:,} … {len(rows):,}, batch {BATCH}: mean "
            f"{1e3 * busy:.1f} processor ms; products {1e3 * products:.1f} ms: "
            f"{busy / products:.1f} ×"
        )


def one_run(growth: float, seed: int) -> store.Run:
    """Run 20 arms with 64 features, of which a0 is the best, to a certificate."""
    reference = Moments(np.zeros(64), np.diag(spectrum(64)))
    start = time.process_time()
    found = select.run(lineup(20, 64), reference, batch=50, seed=seed, growth=growth)
    return {
        "certified": found.certified,
        "wrong": found.certified and found.best != "a0",
        "samples": found.total_samples,
        "seconds": time.process_time() - start,
    }


def bench_study(options: argparse.Namespace) -> None:
    """Time of a study of runs of 20 arms with 64 features to their certificates."""
    jobs = [(options.growth, seed) for seed in range(options.runs)]
    start = time.perf_counter()
    runs = store.study(jobs, one_run, out=None, workers=store.workers_of(options)).values()
    seconds = time.perf_counter() - start
    n, wrong = len(runs), sum(run["wrong"] for run in runs)
    low, high = exact_limits(wrong, n)
    print(f"{n:,} runs of 20 arms, d = 64, batch 50, growth {options.growth}, {options.jobs} jobs")
    mean = {key: np.mean([run[key] for run in runs]) for key in ("seconds", "samples")}
    print(
        f"  {seconds / 60:.1f} min; a run {mean['seconds']:.2f} processor s and "
        f"{mean['samples']:,.0f} samples"
    )
    print(
        f"  {sum(run['certified'] for run in runs):,} certified, {wrong} of {n:,} wrong "
        f"({low:.1%} to {high:.1%})"
    )


def bench_is(options: argparse.Namespace) -> None:
    """One step of IS-UCB at 1,000 classes."""
    n, classes = 1_000, 1_000
    p = np.random.default_rng(0).dirichlet(np.full(classes, 0.05), n + 1_000) + 1e-12
    p /= p.sum(axis=1, keepdims=True)
    ours = our_steps(IsUcb(), p, n, state_of(p[:n], "is", None))
    plain = min(plain_is_step(p[:n]) for _ in range(options.repeats))
    typical = statistics.median(ours)
    print(f"IS-UCB step, {classes:,} classes, batch {BATCH}, n = {n:,}")
    print(f"  genbounds  median {1e3 * typical:.3f} ms")
    print(f"  plain way  {1e3 * plain:.1f} ms: ratio {plain / typical:.0f}")
    print(f"  published code {1e3 * PUBLISHED_IS} ms (quoted): {PUBLISHED_IS / typical:.0f} ×")


def bench_kernel(options: argparse.Namespace) -> None:
    """One step of greedy selection by KID and RKE: the running score, and that of all rows."""
    d, n = options.dimension, options.rows
    rng = np.random.default_rng(0)
    reference = Gaussian(d, 0.0, 1.0).draw(2 * n, rng)
    rows = Gaussian(d, 0.5, 0.95).draw(n + n // 10, rng)
    for name in ("kid", "rke"):
        state = state_of(rows[:n], name, reference)
        ours = our_steps(Greedy(), rows, n, state)
        start = time.perf_counter()
        state.metric.plugin_loss(rows)
        plain = time.perf_counter() - start
        typical = statistics.median(ours)
        print(f"{name} step, d = {d:,}, n = {n:,} … {len(rows):,}, {2 * n:,} reference rows")
        print(f"  genbounds  median {1e3 * typical:.2f} ms")
        print(f"  all rows   {1e3 * plain:.1f} ms: ratio {plain / typical:.0f}")


def bench_memory(options: argparse.Namespace) -> None:
    """Peak memory of a run whose 20 arms hold `per_arm` samples each, in a process of its own."""
    for dtype in options.dtype:
        command = [sys.executable, "-m", "experiments.benchmarks.selection", "--one"]
        command += [json.dumps([dtype, options.dimension, options.per_arm])]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        result = json.loads(done.stdout.strip().splitlines()[-1])
        print(
            f"20 arms × {result['least']:,} samples × {options.dimension:,}, kept as {dtype}: peak "
            f"{result['peak']:.2f} GiB, scores included; {result['seconds']:.0f} s",
            flush=True,
        )
    size = 8 * options.dimension**2 * 20 / 2**30
    print(f"the plain way: a float64 d × d matrix for each of 20 arms {size:.2f} GiB, and features")


def one_memory(dtype: str, d: int, per_arm: int) -> None:
    """Fill 20 arms, score each, and print the peak memory of this process as JSON."""
    start = time.perf_counter()
    result = select.run(
        lineup(20, d),
        Moments(np.zeros(d), np.diag(spectrum(d))),
        batch=100,
        budget=20 * per_arm,
        first_look=per_arm,  # so that no arm is settled before all have so many
        limit=per_arm,
        dtype=dtype,
    )
    seconds = time.perf_counter() - start
    document = {"peak": peak_gib(), "seconds": seconds, "least": min(result.samples.values())}
    print(json.dumps(document))


def bench_trial(options: argparse.Namespace) -> None:
    """Trials at the papers' protocol: T steps of 5 samples, 20 arms."""
    d = options.dimension
    reference = Moments(np.zeros(d), np.diag(spectrum(d)))
    names = options.policy or POLICIES
    print(f"trial: T = {options.steps:,}, batch {BATCH}, 20 arms, d = {d:,}")
    for name in names:
        start, busy = time.perf_counter(), time.process_time()
        result = select.run(
            lineup(20, d), reference, policy=name, batch=BATCH, budget=BATCH * options.steps
        )
        seconds, busy = time.perf_counter() - start, time.process_time() - busy
        print(
            f"  {name:<14} {seconds:7.1f} s ({busy:.1f} processor seconds), most samples of an arm "
            f"{max(result.samples.values()):,}",
            flush=True,
        )


CASES: dict[str, Callable[[argparse.Namespace], None]] = {
    "step": bench_step,
    "products": bench_products,
    "study": bench_study,
    "is": bench_is,
    "kernel": bench_kernel,
    "memory": bench_memory,
    "trial": bench_trial,
}


def main(argv: list[str] | None = None) -> int:
    """Run cases and print what they took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=list(CASES), metavar="CASE")
    parser.add_argument("--dimension", type=int, default=2048)
    parser.add_argument("--rows", type=int, default=1_000, help="of the step benchmark")
    parser.add_argument("--runs", type=int, default=20, help="of the study")
    store.add_workers(parser)
    parser.add_argument("--growth", type=float, default=1.25, help="of the looks of the study")
    parser.add_argument("--steps", type=int, default=1_000, help="of the trial")
    parser.add_argument("--per-arm", type=int, default=5_000, help="samples, of the memory run")
    parser.add_argument(
        "--dtype",
        nargs="*",
        choices=("float32", "float16"),
        default=["float16"],
        help="of the samples in the memory run",
    )
    parser.add_argument("--policy", nargs="*", choices=POLICIES, help="of the trial")
    parser.add_argument("--repeats", type=int, default=1, help="of the plain way; the best counts")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.one:
        one_memory(*json.loads(options.one))
        return 0
    unknown = [case for case in options.cases if case not in CASES]
    if unknown:
        parser.error(f"unknown case {unknown[0]!r}; there are {', '.join(CASES)}")
    for case in options.cases:
        CASES[case](options)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
