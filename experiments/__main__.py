"""Do all experiments still run? Each by its documented command, at its smallest size.

``make experiments`` (or ``python -m experiments``) copies the repository to a folder of its own,
so that no page or figure of yours is touched, runs there what the table below lists, one command
after the other, and ends with status 1 if one failed. It measures nothing. What a script skips
here (no CUDA card, a library that is missing) it says, and so does the last column.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
COPIED = ("genbounds", "experiments", "docs", "tests")
SCRATCH = ROOT / ".cache" / "experiments"


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A module and the arguments that make it small.

    Attributes
    ----------
    statuses : tuple of int
        Exit statuses of a run that went as it should: 1 as well where the script also judges a
        figure (a speed), which means nothing at this size.
    """

    module: str
    arguments: str = ""
    statuses: tuple[int, ...] = (0,)

    @property
    def command(self) -> str:
        """Return what one types after ``python -m``."""
        return f"experiments.{self.module} {self.arguments}".strip()


TRIALS = (
    Trial(module="accuracy.coverage", arguments="--replications 4 --jobs 1"),
    Trial(module="accuracy.hard_laws", arguments="--replications 1 --jobs 1"),
    Trial(module="accuracy.sampling", arguments="--replications 1 --jobs 1"),
    Trial(module="accuracy.labels", arguments="--runs 1"),
    Trial(module="accuracy.coincidences", arguments="--runs 3"),
    Trial(module="accuracy.repeats", arguments="--runs 2"),
    Trial(module="accuracy.unequal_groups", arguments="--runs 2"),
    Trial(module="accuracy.fitted_maps", arguments="--runs 2"),
    Trial(module="accuracy.crossed_seeds", arguments="--runs 2"),
    Trial(module="accuracy.series", arguments="--runs 2"),
    Trial(module="accuracy.ends", arguments="--runs 2"),
    Trial(module="accuracy.two_levels", arguments="--runs 2 --digits 2 --pool 600"),
    Trial(module="accuracy.encoders_and_prompts", arguments="--runs 2"),
    Trial(module="accuracy.below_range", arguments="--runs 2 --planted 2"),
    Trial(module="accuracy.gates", arguments="--replications 2"),
    Trial(module="accuracy.reproductions", arguments="--replications 1"),
    Trial(module="accuracy.planning", arguments="--replications 1 --cells 'd = 64, one score'"),
    Trial(module="accuracy.error", arguments="--cells 'gauss 64*' --effort 0.01 --jobs 1"),
    Trial(
        module="accuracy.large",
        arguments="--features 16 --samples 200 --replications 8 --jobs 1 --out out/large",
    ),
    Trial(module="accuracy.any_score", arguments="--replications 2"),
    Trial(module="accuracy.neighbours", arguments="--replications 2 --jobs 1"),
    Trial(module="accuracy.copies", arguments="--replications 1 --jobs 1 --cells 'AuthPct*'"),
    Trial(module="accuracy.every_score", arguments="--replications 2 --scores mean authpct"),
    Trial(module="accuracy.ceilings", arguments="--replications 1"),
    Trial(module="accuracy.sanity_checks", arguments="--repeats 1 --rows 100"),
    Trial(module="accuracy.mixtures", arguments="--runs 1 --sizes 4x40"),
    Trial(module="accuracy.tracking", arguments="--curves 1 --runs 1"),
    Trial(module="accuracy.recipes", arguments="--values 1 --runs 1"),
    Trial(module="benchmarks", arguments="moments few --features 64 --repeats 1 --threads 1"),
    Trial(
        module="benchmarks",
        arguments="scores --rows 200 --columns 8 --repeats 1 --threads 1",
    ),
    Trial(module="benchmarks.copies", arguments="--rows 300"),
    Trial(module="benchmarks.hard"),
    Trial(module="benchmarks.neighbours", arguments="--rows 300 --columns 8"),
    Trial(
        module="benchmarks.selection",
        arguments="step products study --dimension 16 --rows 40 --repeats 1 --runs 1",
    ),
    Trial(module="benchmarks.shards", arguments="--rows 2000 --features 8"),
    Trial(
        module="benchmarks.simulation",
        arguments="--sizes 64 --seconds 0.01 --repeats 1",
        statuses=(0, 1),
    ),
    Trial(module="benchmarks.vendi", arguments="cosine"),
    Trial(
        module="benchmarks.workers",
        arguments="--features 16 --replications 8 --pieces 4 --most 1",
    ),
    Trial(module="digits.table", arguments="--n 500 --sheet sheet.png"),
    Trial(module="digits.folders", arguments="--n 1000"),
    Trial(module="digits.convergence", arguments="--replications 2 --sizes 100 300 --truth 2000"),
    Trial(module="digits.picks", arguments="--steps 40 --pool 500"),
    Trial(module="digits.prediction", arguments="--runs 2 --pool 256 --truth 2000"),
    Trial(module="digits.sobol_latents", arguments="--models 1 --n 400 --runs 3 --points 64"),
    Trial(module="digits.demo", arguments="--jobs 1"),
    Trial(module="embeddings", arguments="--small --n 16"),
    Trial(module="selection.contexts", arguments="errors --runs 1 --control 1"),
    Trial(module="selection.contexts", arguments="pooled --runs 2"),
    Trial(module="selection.prompts", arguments="--runs 2 --plays 400 --pool 3000"),
    Trial(module="digits.by_class", arguments="--pool 4000"),
    Trial(module="selection.mixtures", arguments="errors --runs 2 --worlds specialists"),
    Trial(module="selection.mixtures_elsewhere", arguments="--runs 1 --only 'line*'"),
    Trial(
        module="selection.published_mixtures",
        arguments="--runs 1 --budget-runs 1 --budgets 1700 --only 'two specialists'",
    ),
    Trial(module="explain.memorisation", arguments="--runs 1 --cells 'modes, d = 8'"),
    Trial(module="explain.memorisation", arguments="--near --runs 1"),
    Trial(module="explain.modes", arguments="--runs 1 --power 1 --only '*n = 500'"),
    Trial(module="findings", arguments="--replications 20"),
    Trial(module="findings.seeds", arguments="--seeds 2 --replications 20"),
    Trial(module="gpu"),
    Trial(module="gpu", arguments="--device cpu --small"),
    Trial(module="papers"),
    Trial(module="photographs.pool", arguments="picture.jpg --out pool"),
    Trial(module="photographs.demo", arguments="--crops 20"),
    Trial(module="photographs.coverage", arguments="pool --runs 2 --ratio 1"),
    Trial(module="planted", arguments="--only o24.gaussian-mean --replications 20"),
    Trial(module="sample_size", arguments="--sizes 100"),
    Trial(module="selection.boundaries"),
    Trial(module="selection.dependent", arguments="certificates --runs 1"),
    Trial(module="selection.dependent", arguments="unchecked --runs 1"),
    Trial(module="selection.dependent", arguments="seen --runs 1"),
    Trial(
        module="selection.error_rate",
        arguments="certificates --runs 1 --scenario 'Gaussian, 2 tied, d=8'",
    ),
    Trial(module="selection.error_rate", arguments="few-samples --runs 1"),
    Trial(module="selection.error_rate", arguments="heavy-tails --runs 1"),
    Trial(module="selection.error_rate", arguments="rank-flip --runs 1"),
    Trial(module="selection.large", arguments="--runs 1 --dimension 16"),
    Trial(module="selection.planning", arguments="--runs 1 --cells '*Student*'"),
    Trial(module="selection.factors", arguments="--steps 20 --trials 2"),
    Trial(module="selection.noise", arguments="--steps 20 --trials 2 --pool 500"),
    Trial(module="selection.norms", arguments="--n 10 --trials 2"),
    Trial(module="selection.real", arguments="--runs 1 --steps 20"),
    Trial(module="selection.regret", arguments="main --dimension 8 --trials 1 --steps 20 --jobs 2"),
    Trial(module="selection.regret", arguments="ablation --dimension 8 --trials 1 --steps 20"),
    Trial(module="selection.regret", arguments="joining --dimension 8 --trials 1 --steps 20"),
    Trial(module="selection.regret", arguments="digits --trials 1 --steps 20 --policy random"),
    Trial(module="selection.regret", arguments="tables --dimension 8 --trials 1 --steps 20"),
    Trial(module="selection.sample_size", arguments="--runs 1 --scenario '3 arms, graded by 50%'"),
    Trial(module="sobol.variance_ratio", arguments="--runs 3 --points 64"),
    Trial(module="text", arguments="--n 40"),
    Trial(module="text.growth", arguments="--sizes 50 100"),
    Trial(module="vendi", arguments="--sizes 125 250 --dial 120 --few 10"),
    Trial(module="vendi.large", arguments="--sizes 60 120"),
    Trial(module="vendi.spread", arguments="--sizes 60 120 --samples 2"),
    Trial(module="vendi.coverage", arguments="--replications 4"),
    Trial(module="vendi.third_order", arguments="--samples 2 --orders 1"),
)


def scripts() -> list[str]:
    """Return the modules under experiments/ that are commands, without this one."""
    found = []
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        parts = path.relative_to(Path(__file__).parent).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__main__" else parts
        if parts and 'if __name__ == "__main__"' in path.read_text(encoding="utf-8"):
            found.append(".".join(parts))
    return found


def copy(to: Path) -> None:
    """Copy what the scripts read and write; what an earlier trial left is removed."""
    ignored = shutil.ignore_patterns("__pycache__", "_build", "generated")
    for name in COPIED:
        shutil.rmtree(to / name, ignore_errors=True)
        shutil.copytree(ROOT / name, to / name, ignore=ignored)


def run(trial: Trial, where: Path, limit: float) -> tuple[str, float, str]:
    """Run one command; return how it went, the seconds, and what it said if that matters."""
    import shlex

    command = [sys.executable, "-m", f"experiments.{trial.module}", *shlex.split(trial.arguments)]
    # One thread unless told otherwise: on a machine with other work, threads that wait for each
    # other made selection on digits twenty times slower.
    environment = {"OMP_NUM_THREADS": "1"} | os.environ | {"PYTHONPATH": str(where)}
    start = time.perf_counter()
    try:
        done = subprocess.run(
            command, cwd=where, env=environment, capture_output=True, text=True, timeout=limit,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "TOO LONG", time.perf_counter() - start, f"more than {limit:g} s"
    seconds = time.perf_counter() - start
    said = (done.stdout + done.stderr).strip().splitlines()
    if done.returncode not in trial.statuses:
        return "FAILED", seconds, f"status {done.returncode}: {' / '.join(said[-3:])}"
    skipped = [line for line in said if line.startswith(("skipped", "nothing to measure"))]
    return ("skipped in part" if skipped else "ran"), seconds, "; ".join(skipped)[:200]


def main(argv: list[str] | None = None) -> int:
    """Run every trial whose name is asked for."""
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("only", nargs="*", metavar="MODULE", help="such as digits.folders; all")
    parser.add_argument("--scratch", type=Path, default=SCRATCH, help="where the copy goes")
    parser.add_argument("--limit", type=float, default=1200.0, help="seconds for each command")
    options = parser.parse_args(argv)
    known = {trial.module for trial in TRIALS}
    if unknown := sorted((set(options.only) | set(scripts())) - known):
        parser.error(f"nothing says how to make {', '.join(unknown)} small: see TRIALS")
    copy(options.scratch)
    failed = 0
    for trial in TRIALS:
        if options.only and trial.module not in options.only:
            continue
        outcome, seconds, remark = run(trial, options.scratch.resolve(), options.limit)
        failed += outcome in ("FAILED", "TOO LONG")
        print(f"{seconds:6.1f} s  {outcome:15s}  {trial.command}", flush=True)
        if remark:
            print(f"{'':27s}{remark}", flush=True)
    print(f"{failed} failed" if failed else "every script runs")
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
