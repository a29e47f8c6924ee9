"""Print every benchmark as a ratio against the peers and the floor: ``make bench``."""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from threadpoolctl import threadpool_limits

from experiments import memory
from experiments.benchmarks import cases, scores

FRECHET = ("moments", "features", "designs", "few", "bias", "inception", "memory")
NAMES = (*FRECHET, *scores.CASES)


@dataclass(frozen=True, slots=True)
class Measured:
    """Median seconds, largest growth of memory in GiB (NaN: not known) and last value of a call."""

    seconds: float
    gib: float
    value: object


def measured(
    calls: dict[str, Callable[[], object]], repeats: int, clock: Callable[[], float]
) -> dict[str, Measured]:
    """Measure every call `repeats` times; the calls take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    grown: dict[str, list[float]] = {name: [] for name in calls}
    values: dict[str, object] = {}
    for _ in range(repeats):
        for name, call in calls.items():
            before = memory.peak_gib() if memory.forget_peak() else math.nan
            start = clock()
            try:
                values[name] = call()
            except (ValueError, ArithmeticError) as error:
                values[name] = f"raises {type(error).__name__}"
            seconds[name].append(clock() - start)
            grown[name].append(memory.peak_gib() - before)
    return {
        name: Measured(statistics.median(seconds[name]), max(grown[name]), values[name])
        for name in calls
    }


def show(case: cases.Case, repeats: int, clock: Callable[[], float]) -> None:
    calls: dict[str, Callable[[], object]] = {
        **{f"genbounds {name}": call for name, call in case.ours.items()},
        **case.peers,
    }
    if case.floor is not None:
        calls["floor"] = case.floor
    results = measured(calls, case.repeats or repeats, clock)
    print(f"\n### {case.title}\n")
    if case.truth is not None:
        print(f"True distance {case.truth:.4g}.\n")
    mine = [f"genbounds {name}" for name in case.ours]
    ratios = " | ".join(f"{name} is … × faster" for name in case.ours)
    print(f"| | seconds | GiB | {ratios} | value |")
    print("|---|---|---|" + "---|" * len(mine) + "---|")
    quoted = {name: Measured(seconds, math.nan, None) for name, seconds in case.quoted.items()}
    for name, found in (results | quoted).items():
        text = name + (f" ({case.floor_text})" if name == "floor" else "")
        ratios = " | ".join(f"{found.seconds / results[own].seconds:.3g}" for own in mine)
        value = found.value
        shown = f"{value:.7g}" if isinstance(value, float) else value or ""
        shown = "" if name == "floor" else shown
        gib = "" if math.isnan(found.gib) else f"{found.gib:.2f}"
        print(f"| {text} | {found.seconds:.3f} | {gib} | {ratios} | {shown} |", flush=True)


def chosen(names: list[str], d: int, rows: int, columns: int) -> Iterator[cases.Case]:
    if "moments" in names:
        yield from cases.from_moments(d)
    if "few" in names:
        yield from cases.from_features(d, 500)
    if "inception" in names:
        yield from cases.inception(50_000, 1000)
    if "bias" in names:
        yield from cases.bias_removal(d, 20_000)
    if "features" in names:
        yield from cases.from_features(d, 50_000, repeats=1)
    if "designs" in names:
        yield from cases.designs(d, 50_000, repeats=1)
    for name in scores.CASES:
        if name in names:
            yield scores.CASES[name](rows, columns)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.benchmarks", description=__doc__)
    parser.add_argument(
        "cases",
        nargs="*",
        metavar="CASE",
        help=f"of {', '.join(NAMES)}; scores: the last {len(scores.CASES)}; none named: all",
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3, help="median of so many runs")
    parser.add_argument("--features", type=int, default=2048, metavar="D")
    parser.add_argument("--rows", type=int, default=10_000, help="of the cases of `scores`")
    parser.add_argument("--columns", type=int, default=512, help="of the cases of `scores`")
    parser.add_argument(
        "--cpu",
        action="store_true",
        help="processor seconds in place of wall time: for a shared machine, with --threads 1",
    )
    options = parser.parse_args()
    clock = time.process_time if options.cpu else time.perf_counter
    names = options.cases or list(NAMES)
    if "scores" in names:
        names = [name for name in names if name != "scores"] + list(scores.CASES)
    unknown = sorted(set(names) - set(NAMES))
    if unknown:
        parser.error(f"no case {unknown[0]!r}; there are {', '.join(NAMES)} and scores")
    try:
        import torch

        torch.set_num_threads(options.threads)
    except ImportError:
        print("torch is missing: most peers are skipped", file=sys.stderr)
    with threadpool_limits(options.threads):
        for case in chosen(names, options.features, options.rows, options.columns):
            show(case, options.repeats, clock)
    if "memory" in names:
        matrices = cases.streamed_memory(options.features, 20)
        print(f"\nStreamed moments, d = {options.features}: peak {matrices:.2f} d × d matrices.")


if __name__ == "__main__":
    main()
