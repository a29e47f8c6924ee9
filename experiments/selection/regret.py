"""The papers' experiment: average regret and share of optimal picks, for every policy.

python -m experiments.selection.regret main            # 3 encoders and IS, 5 and 20 arms
python -m experiments.selection.regret ablation        # batch, κ, threshold of FD-UCB
python -m experiments.selection.regret joining         # a new model every 200 steps
python -m experiments.selection.regret tables          # again from the runs on disk

Arms: experiments/selection/embeddings.py. ``--dimension 64`` keeps 64 leading eigenvalues of each
covariance (and 64 classes): quick, and smaller norms than the printed ones, which the table says.
Runs are kept in OUT/regret.jsonl; the same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from experiments.selection.embeddings import EMBEDDINGS, Builder, posteriors
from experiments.selection.store import Key, Run, read, study
from genbounds import select
from genbounds.select import DebiasedUcb, FdUcb, FidUcb, IsUcb, NaiveUcb, Policy

STUDIES = ("main", "ablation", "joining")
BATCH, JOIN_EVERY, CLASSES = 5, 200, 1_000
OURS = ("debiased-ucb", "thompson")
PUBLISHED = (
    "naive-ucb M25",
    "naive-ucb O24",
    "fd-ucb as tuned",
    "fd-ucb as printed",
    "fid-ucb as tuned",
    "fid-ucb as printed",
    "is-ucb M25",
    "is-ucb O24",
)

BASELINES: dict[str, Callable[[], str | Policy]] = {
    name: lambda name=name: name for name in ("random", "greedy", "epsilon-greedy")
}
OWN: dict[str, Callable[[], str | Policy]] = {
    "lucb": lambda: "lucb",
    "thompson": lambda: "thompson",
    "debiased-ucb": DebiasedUcb,
}
FD_POLICIES: dict[str, Callable[[], str | Policy]] = {
    **BASELINES,
    "naive-ucb M25": NaiveUcb,
    "naive-ucb O24": lambda: NaiveUcb(source="o24"),
    "fd-ucb as tuned": FdUcb,
    "fd-ucb as printed": lambda: FdUcb(constants="printed"),
    "fid-ucb as tuned": FidUcb,
    "fid-ucb as printed": lambda: FidUcb(constants="printed"),
    **OWN,
}
IS_POLICIES: dict[str, Callable[[], str | Policy]] = {
    **BASELINES,
    "naive-ucb M25": NaiveUcb,
    "naive-ucb O24": lambda: NaiveUcb(source="o24"),
    "is-ucb M25": IsUcb,
    "is-ucb O24": lambda: IsUcb(source="o24"),
    **OWN,
}
ABLATION: dict[str, tuple[Callable[[], str | Policy], int]] = {
    **{f"batch {b}": (FdUcb, b) for b in (1, 5, 20, 50)},
    **{f"κ = {k:g}": (lambda k=k: FdUcb(kappa=k), BATCH) for k in (0.01, 0.1, 0.3, 1.0, 3.0)},
    **{f"M = {m}": (lambda m=m: FdUcb(threshold=m), BATCH) for m in (None, 0.5, 1.0, 2.0, 4.0)},
}
JOINING = ("random", "greedy", "naive-ucb M25", "fd-ucb as tuned", "fid-ucb as tuned", *OURS)


@lru_cache(maxsize=4)
def builder(embedding: str, dimension: int) -> Builder:
    return Builder(embedding, dimension or None)


def one_trial(kind: str, scenario: str, policy: str, trial: int, steps: int, dimension: int) -> Run:
    """Regret and share of optimal picks at some steps of one run.

    Parameters
    ----------
    kind : {"main", "ablation", "joining"}
    scenario : str
        Encoder (or "is") and number of arms, such as "clip 5".
    policy : str
        Of the tables above.
    trial : int
        Seed of arms and samples.
    steps : int
        At a batch of 5; another batch spends the same samples.
    dimension : int
        0: all.
    """
    name, arms = scenario.split()
    batch, joins, chosen = BATCH, None, FD_POLICIES.get(policy)
    if kind == "ablation":
        chosen, batch = ABLATION[policy]
    problem: dict[str, Any]
    if name == "is":
        built, truth = posteriors(int(arms), min(dimension or CLASSES, CLASSES), trial)
        problem, higher = {"arms": built, "metric": "is"}, True
        chosen = IS_POLICIES[policy]
    else:
        make = builder(name, dimension)
        found = make.pretrained(trial) if arms == "5" else make.controlled(trial)
        problem, truth = {"arms": found.arms, "reference": found.reference}, found.truth
        higher = False
    if kind == "joining":
        joins = {arm: JOIN_EVERY * k for k, arm in enumerate(problem["arms"])}
    assert chosen is not None
    start = time.process_time()
    result = select.run(
        **problem, policy=chosen(), batch=batch, budget=BATCH * steps, seed=trial, joins=joins
    )
    seconds = time.process_time() - start
    # Who stops early goes on with the arm that it certified.
    history, taken = result.history, BATCH * steps // batch
    rest = np.full(max(0, taken - history.picks.size), history.names.index(result.best), np.int32)
    history = replace(history, picks=np.concatenate([history.picks, rest]))
    at = np.unique(np.geomspace(max(1, taken // 100), taken, 41).astype(int))
    regret = history.average_regret(truth, higher_is_better=higher)
    ratio = history.optimal_pick_ratio(truth, higher_is_better=higher)
    return {
        "samples": (at * batch).tolist(),
        "regret": regret[at - 1].tolist(),
        "ratio": ratio[at - 1].tolist(),
        "seconds": seconds,
    }


def jobs(options: argparse.Namespace) -> list[Key]:
    """All runs of a study."""
    common = (options.steps, options.dimension)
    trials = range(options.trials)
    found: list[Key] = []
    for kind in STUDIES if options.study == "tables" else [options.study]:
        if kind == "main":
            scenarios = [f"{name} {arms}" for name in (*EMBEDDINGS, "is") for arms in (5, 20)]
            wanted = {
                scenario: IS_POLICIES if scenario.startswith("is") else FD_POLICIES
                for scenario in scenarios
            }
        elif kind == "ablation":
            wanted = {"clip 5": ABLATION}
        else:
            wanted = {f"{name} 5": dict.fromkeys(JOINING) for name in EMBEDDINGS}
        found += [
            (kind, scenario, policy, trial, *common)
            for scenario, policies in wanted.items()
            if options.scenario in scenario
            for policy in policies
            if options.policy in policy
            for trial in trials
        ]
    return found


def interval(values: np.ndarray) -> tuple[float, float]:
    """Mean and half the width of its 95 % Student interval."""
    from scipy.stats import t

    n = values.size
    half = float(t.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n)) if n > 1 else np.nan
    return float(values.mean()), half


def exponent(runs: Sequence[Run], *, draws: int = 2_000) -> tuple[float, float, float]:
    """Slope of log cumulative regret over the last decade of log steps, 95 % bootstrap interval."""
    samples = np.array(runs[0]["samples"], dtype=float)
    late = samples >= samples[-1] / 10
    curves = np.array([run["regret"] for run in runs])[:, late] * samples[late]
    x = np.log(samples[late])

    def slope(mean: np.ndarray) -> float:
        return float(np.polyfit(x, np.log(np.maximum(mean, 1e-300)), 1)[0])

    rng = np.random.default_rng(0)
    picks = rng.integers(len(runs), size=(draws, len(runs)))
    slopes = [slope(curves[pick].mean(axis=0)) for pick in picks]
    low, high = np.quantile(slopes, [0.025, 0.975])
    return slope(curves.mean(axis=0)), float(low), float(high)


def grouped(runs: Mapping[Key, Run]) -> dict[tuple[str, str], dict[str, list[Run]]]:
    """Group runs by study and scenario, then by policy, in the order of trials."""
    groups: dict[tuple[str, str], dict[str, list[Run]]] = {}
    for (kind, scenario, policy, *_), run in runs.items():
        groups.setdefault((kind, scenario), {}).setdefault(policy, []).append(run)
    return groups


def table(kind: str, scenario: str, policies: Mapping[str, list[Run]], dimension: int) -> str:
    """Markdown: regret and share of optimal picks at the end, difference to ours, exponent."""
    name = scenario.split()[0]
    title = f"### {kind}: {scenario} arms"
    if name in EMBEDDINGS:
        norms = builder(name, dimension).norms
        printed = EMBEDDINGS[name].reference
        title += (
            f", d = {builder(name, dimension).d}; reference Tr Σ {norms.trace:.0f} (printed "
            f"{printed.trace:.0f}), √Tr Σ² {norms.root_square:.1f} ({printed.root_square:.1f}), "
            f"‖Σ‖ {norms.operator:.1f} ({printed.operator:.1f})"
        )
    ours = next((policy for policy in OURS if policy in policies), None)
    lines = [
        title,
        "",
        "| policy | average regret | optimal picks | its regret is below debiased-ucb's by "
        "| exponent of regret | processor s |",
        "|---|---|---|---|---|---|",
    ]
    for policy, runs in policies.items():
        regret = np.array([run["regret"][-1] for run in runs])
        ratio = np.array([run["ratio"][-1] for run in runs])
        mean, half = interval(regret)
        share, spread = interval(ratio)
        gain = "–"
        if ours is not None and policy != ours and len(runs) == len(policies[ours]):
            other = np.array([run["regret"][-1] for run in policies[ours]])
            gap, width = interval(other - regret)  # the same trials
            mark = " **wins**" if gap - width > 0.0 else ""
            gain = f"{gap:.3g} ± {width:.2g}{mark}"
        slope, low, high = exponent(runs)
        lines.append(
            f"| {policy} | {mean:.3g} ± {half:.2g} | {share:.0%} ± {spread:.0%} | {gain} "
            f"| {slope:.2f} [{low:.2f}, {high:.2f}] "
            f"| {np.mean([run['seconds'] for run in runs]):.1f} |"
        )
    return "\n".join(lines)


def figure(kind: str, scenario: str, policies: Mapping[str, list[Run]], path: Path) -> None:
    """Average regret and share of optimal picks against samples, with 95 % bands."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    for number, (policy, runs) in enumerate(policies.items()):
        style = "-" if policy in OURS else "--" if policy in PUBLISHED else ":"
        for axis, quantity in zip(axes, ("regret", "ratio"), strict=True):
            curves = np.array([run[quantity] for run in runs])
            mean = curves.mean(axis=0)
            samples = runs[0]["samples"]
            (line,) = axis.plot(samples, mean, style, color=f"C{number % 10}", label=policy)
            if len(runs) > 1:
                half = np.array([interval(column)[1] for column in curves.T])
                axis.fill_between(
                    samples, mean - half, mean + half, color=line.get_color(), alpha=0.12, lw=0
                )
    regrets = any(max(run["regret"]) > 0.0 for runs in policies.values() for run in runs)
    axes[0].set(
        xscale="log",
        yscale="log" if regrets else "linear",
        xlabel="samples",
        ylabel="average regret",
    )
    axes[1].set(xscale="log", xlabel="samples", ylabel="share of optimal picks", ylim=(0, 1))
    figure.suptitle(f"{kind}: {scenario} arms")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper", fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    plt.close(figure)


def main() -> None:
    """Run a study and print its tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("study", choices=(*STUDIES, "tables"))
    parser.add_argument("--steps", type=int, default=1_000, help="T, at a batch of 5")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--dimension", type=int, default=0, help="0: as the encoder")
    parser.add_argument("--scenario", default="", help="only those whose name contains this")
    parser.add_argument("--policy", default="", help="only those whose name contains this")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("out/regret"))
    options = parser.parse_args()
    store = options.out / "regret.jsonl"
    if options.study == "tables":
        known = read(store)
        runs = {job: known[job] for job in jobs(options) if job in known}
    else:
        runs = study(jobs(options), one_trial, out=store, workers=options.jobs)
    for (kind, scenario), policies in grouped(runs).items():
        print(table(kind, scenario, policies, options.dimension) + "\n")
        figure(kind, scenario, policies, options.out / f"{kind}-{scenario.replace(' ', '-')}.svg")
    print(f"{sum(run['seconds'] for run in runs.values()) / 60:.1f} processor minutes in all")


if __name__ == "__main__":
    main()
