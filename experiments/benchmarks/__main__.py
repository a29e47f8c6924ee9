"""Print every benchmark as a ratio against the peers and the floor: ``make bench``."""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator

from threadpoolctl import threadpool_limits

from experiments.benchmarks import cases

NAMES = ("moments", "features", "designs", "few", "bias", "inception", "memory")


def timed(
    calls: dict[str, Callable[[], object]], repeats: int, clock: Callable[[], float]
) -> dict[str, tuple[float, object]]:
    """Median seconds and last value of each call; the calls take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    values: dict[str, object] = {}
    for _ in range(repeats):
        for name, call in calls.items():
            start = clock()
            try:
                values[name] = call()
            except (ValueError, ArithmeticError) as error:
                values[name] = f"raises {type(error).__name__}"
            seconds[name].append(clock() - start)
    return {name: (statistics.median(seconds[name]), values[name]) for name in calls}


def show(case: cases.Case, repeats: int, clock: Callable[[], float]) -> None:
    calls: dict[str, Callable[[], object]] = {
        **{f"genbounds {name}": call for name, call in case.ours.items()},
        **case.peers,
    }
    if case.floor is not None:
        calls["floor"] = case.floor
    results = timed(calls, case.repeats or repeats, clock)
    print(f"\n### {case.title}\n")
    if case.truth is not None:
        print(f"True distance {case.truth:.4g}.\n")
    mine = [f"genbounds {name}" for name in case.ours]
    print(
        "| | seconds | " + " | ".join(f"{name} is … × faster" for name in case.ours) + " | value |"
    )
    print("|---|---|" + "---|" * len(mine) + "---|")
    rows = results | {name: (seconds, None) for name, seconds in case.quoted.items()}
    for name, (seconds, value) in rows.items():
        text = name + (f" ({case.floor_text})" if name == "floor" else "")
        ratios = " | ".join(f"{seconds / results[own][0]:.2f}" for own in mine)
        shown = f"{value:.7g}" if isinstance(value, float) else value or ""
        shown = "" if name == "floor" else shown
        print(f"| {text} | {seconds:.3f} | {ratios} | {shown} |", flush=True)


def chosen(names: list[str], d: int) -> Iterator[cases.Case]:
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


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.benchmarks", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(NAMES)}; or all")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3, help="median of so many runs")
    parser.add_argument("--features", type=int, default=2048, metavar="D")
    parser.add_argument(
        "--cpu",
        action="store_true",
        help="processor seconds in place of wall time: for a shared machine, with --threads 1",
    )
    options = parser.parse_args()
    clock = time.process_time if options.cpu else time.perf_counter
    names = options.cases or list(NAMES)
    unknown = sorted(set(names) - set(NAMES))
    if unknown:
        parser.error(f"no case {unknown[0]!r}; there are {', '.join(NAMES)}")
    try:
        import torch

        torch.set_num_threads(options.threads)
    except ImportError:
        print("torch is missing: most peers are skipped", file=sys.stderr)
    with threadpool_limits(options.threads):
        for case in chosen(names, options.features):
            show(case, options.repeats, clock)
    if "memory" in names:
        matrices = cases.streamed_memory(options.features, 20)
        print(f"\nStreamed moments, d = {options.features}: peak {matrices:.2f} d × d matrices.")


if __name__ == "__main__":
    main()
