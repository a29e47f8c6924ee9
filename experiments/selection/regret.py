"""The papers' experiment: average regret and share of optimal picks, for every policy.

python -m experiments.selection.regret main            # 3 encoders and IS, 5 and 20 arms
python -m experiments.selection.regret ablation        # batch, κ, threshold of FD-UCB
python -m experiments.selection.regret joining         # a new model every 200 steps
python -m experiments.selection.regret full --trials 3  # 5 arms, all directions and classes
python -m experiments.selection.regret digits          # IS, the digits' generators
python -m experiments.selection.regret tables          # again from the runs on disk

Arms: experiments/selection/embeddings.py. ``--dimension 64`` keeps 64 leading eigenvalues of each
covariance (and 64 classes): quick, and smaller norms than the printed ones, which the table says.
Runs are kept in OUT/regret.jsonl; the same command goes on where it was stopped. A whole study is
recorded in docs/evidence/regret.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments import record
from experiments.selection.embeddings import EMBEDDINGS, Builder, posteriors
from experiments.selection.store import Key, Run, add_workers, read, study, workers_of
from genbounds import inception_score, select
from genbounds.select import (
    DebiasedUcb,
    FdUcb,
    FidUcb,
    History,
    IsUcb,
    NaiveUcb,
    Policy,
    Selection,
)

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "regret.md"
STUDIES = ("main", "ablation", "joining", "full", "digits")
LINE_UPS = ("main", "full", "digits")
"""Studies of policies, whose claims are judged."""

BATCH, JOIN_EVERY, CLASSES = 5, 200, 1_000
DIGITS_POOL = 20_000
"""Images behind the true score of each generator of digits."""
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


@lru_cache(maxsize=1)
def digits() -> tuple[dict[str, Any], dict[str, float]]:
    """Return the generators of digits as arms, and their Inception scores."""
    from experiments.digits.train import prepare

    arms = {name: arm for name, arm in prepare().arms("posteriors").items() if not arm.control}
    return arms, {
        name: inception_score(arm.draw(DIGITS_POOL, 0)).value for name, arm in arms.items()
    }


def one_trial(kind: str, scenario: str, policy: str, trial: int, steps: int, dimension: int) -> Run:
    """Regret and share of optimal picks at some steps of one run.

    Parameters
    ----------
    kind : {"main", "ablation", "joining", "full", "digits"}
    scenario : str
        Encoder (or "is", or "digits") and number of arms, such as "clip 5".
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
    elif name == "digits":
        built, truth = digits()
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
    taken = BATCH * steps // batch
    history = after_stopping(result, taken)
    at = np.unique(np.geomspace(max(1, taken // 100), taken, 41).astype(int))
    regret = history.average_regret(truth, higher_is_better=higher)
    ratio = history.optimal_pick_ratio(truth, higher_is_better=higher)
    return {
        "samples": (at * batch).tolist(),
        "regret": regret[at - 1].tolist(),
        "ratio": ratio[at - 1].tolist(),
        "seconds": seconds,
    }


def after_stopping(result: Selection, steps: int) -> History:
    """Return the picks of all `steps`: who stops early goes on with the arm that it certified."""
    history = result.history
    rest = np.full(max(0, steps - history.picks.size), history.names.index(result.best), np.int32)
    return replace(history, picks=np.concatenate([history.picks, rest]))


def jobs(options: argparse.Namespace) -> list[Key]:
    """All runs of a study."""
    common = (options.steps, options.dimension)
    trials = range(options.trials)
    found: list[Key] = []
    for kind in STUDIES if options.study == "tables" else [options.study]:
        if kind in ("main", "full"):
            sizes = (5, 20) if kind == "main" else (5,)
            scenarios = [f"{name} {arms}" for name in (*EMBEDDINGS, "is") for arms in sizes]
            wanted = {
                scenario: IS_POLICIES if scenario.startswith("is") else FD_POLICIES
                for scenario in scenarios
            }
        elif kind == "digits":
            wanted = {"digits 9": IS_POLICIES}
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


def exponent(runs: Sequence[Run], *, draws: int = 2_000) -> tuple[float, float, float] | None:
    """Slope of log cumulative regret over the last decade of log steps, 95 % bootstrap interval.

    None where there is no regret at the beginning of that decade, as before a second model joins.
    """
    samples = np.array(runs[0]["samples"], dtype=float)
    late = samples >= samples[-1] / 10
    curves = np.array([run["regret"] for run in runs])[:, late] * samples[late]
    x = np.log(samples[late])
    if not (curves.mean(axis=0) > 0.0).all():
        return None

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


def lead(policies: Mapping[str, list[Run]], policy: str) -> tuple[float, float]:
    """How much more regret than `debiased-ucb` a policy has: paired mean, half its interval."""
    ours, theirs = (
        np.array([run["regret"][-1] for run in policies[name]]) for name in (OURS[0], policy)
    )
    return interval(theirs - ours)


def verdict(main: Mapping[str, Mapping[str, list[Run]]]) -> list[str]:
    """Sentences about the claims: ours against every other policy, FD-UCB against its rivals."""
    below, doubtful, pairs = [], [], 0
    for scenario, policies in main.items():
        for policy in policies:
            if policy in OURS or policy == "lucb" or OURS[0] not in policies:
                continue
            pairs += 1
            gap, width = lead(policies, policy)
            text = f"{policy} on {scenario} ({gap:+.2g} ± {width:.2g})"
            if gap < 0.0:
                below.append(text)
            elif gap <= width:
                doubtful.append(text)
    lines = [
        f"* Of {pairs} pairs of a scenario and a published or naive policy, debiased-ucb has the "
        f"smaller average regret in {pairs - len(below)}"
        + (f"; not against {', '.join(below)}." if below else ".")
        + (f" Within the interval of zero: {', '.join(doubtful)}." if doubtful else "")
    ]
    lines += _claims(main, "fd-ucb", ("as tuned", "as printed"))
    lines += _claims(main, "is-ucb", ("M25", "O24"))
    return lines


def _claims(
    main: Mapping[str, Mapping[str, list[Run]]], name: str, variants: Sequence[str]
) -> list[str]:
    """Where one of the papers' policies beats the rivals that they name, and where it does not."""
    lines = []
    for variant in variants:
        policy = f"{name} {variant}"
        for rival in ("naive-ucb M25", "greedy", "random"):
            sides: dict[str, list[str]] = {"better": [], "worse": [], "undecided": []}
            for scenario, policies in main.items():
                if policy not in policies or rival not in policies:
                    continue
                one, two = (
                    np.array([run["regret"][-1] for run in policies[key]])
                    for key in (policy, rival)
                )
                gap, width = interval(two - one)
                side = "undecided" if not abs(gap) > width else "better" if gap > 0 else "worse"
                sides[side].append(scenario)
            found = "; ".join(f"{side} on {', '.join(at)}" for side, at in sides.items() if at)
            if found:
                lines.append(f"* {policy} against {rival}: {found}.")
    return lines


COLUMNS = (
    "study", "scenario", "policy", "average regret", "optimal picks",
    "its regret exceeds debiased-ucb's by", "exponent of regret",
)  # fmt: skip


def rows_of(kind: str, scenario: str, policies: Mapping[str, list[Run]]) -> list[list[str]]:
    """Regret and share of optimal picks at the end, difference to ours, exponent: `COLUMNS`."""
    rows = []
    for policy, runs in policies.items():
        regret = np.array([run["regret"][-1] for run in runs])
        ratio = np.array([run["ratio"][-1] for run in runs])
        mean, half = interval(regret)
        share, spread = interval(ratio)
        excess = "–"
        if policy != OURS[0] and OURS[0] in policies:
            gap, width = lead(policies, policy)
            excess = f"{gap:.3g} ± {width:.2g}"
        found = exponent(runs)
        slope = "–" if found is None else "{:.2f} [{:.2f}, {:.2f}]".format(*found)
        rows.append(
            [kind, scenario, policy, f"{mean:.3g} ± {half:.2g}", f"{share:.0%} ± {spread:.0%}",
             excess, slope]
        )  # fmt: skip
    return rows


def tables(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return what the page shows of these rows: regret, and its exponent where there is one."""
    cells = {}
    for row in rows:
        _, scenario, policy, regret, _, _, slope = row
        power = slope.partition(" ")[0]
        cells[policy, scenario] = regret if power == "–" else f"{regret}; {power}"
    return record.crossed(cells, "policy")


def ending(kind: str, scenarios: Iterable[str], dimension: int) -> str:
    """Return what is said below a table: the norms of the references, where the rest is."""
    parts = []
    for name in dict.fromkeys(scenario.split()[0] for scenario in scenarios):
        if name in EMBEDDINGS:
            norms, printed = builder(name, dimension).norms, EMBEDDINGS[name].reference
            parts.append(
                f"{name}, d = {builder(name, dimension).d}: {norms.trace:.0f} "
                f"({printed.trace:.0f}), {norms.root_square:.1f} ({printed.root_square:.1f}), "
                f"{norms.operator:.1f} ({printed.operator:.1f})"
            )
    norms_of = f"Tr Σ, √Tr Σ², ‖Σ‖ of the reference (printed): {'; '.join(parts)}. "
    data = "[Optimal picks, differences to `debiased-ucb`, intervals of exponents]"
    return f"{norms_of if parts else ''}{data}(data/regret-{kind}.csv)."


MARKERS = "osd^v<>x+*PXhp"


def colour(number: int) -> tuple[float, ...]:
    """One of twenty colours."""
    import matplotlib

    found: tuple[float, ...] = matplotlib.colormaps["tab20"](number)
    return found


def curves(
    axes: Any, title: str, policies: Mapping[str, list[Run]], highlight: Sequence[str]
) -> None:
    """Average regret against samples, with 95 % bands; no logarithm of one that begins at 0."""
    scale = "log"
    for number, (policy, runs) in enumerate(policies.items()):
        found = np.array([run["regret"] for run in runs])
        samples, mean = runs[0]["samples"], found.mean(axis=0)
        scale = scale if (mean > 0.0).all() else "linear"
        style = "-" if policy in highlight else "--"
        (line,) = axes.plot(samples, mean, style, color=colour(number), label=policy)
        if len(runs) > 1:
            half = np.array([interval(column)[1] for column in found.T])
            axes.fill_between(
                samples, mean - half, mean + half, color=line.get_color(), alpha=0.12, lw=0
            )
    axes.set(title=title, xscale=scale, yscale=scale, xlabel="samples", ylabel="average regret")
    if scale == "linear":
        axes.set_ylim(bottom=0.0)
    axes.legend(fontsize=6, ncols=2)


def ratios(axes: Any, main: Mapping[str, Mapping[str, list[Run]]]) -> None:
    """Draw the average regret of every policy over that of `debiased-ucb`, a column a scenario."""
    seen: dict[str, list[tuple[int, float]]] = {}
    for column, policies in enumerate(main.values()):
        ours = interval(np.array([run["regret"][-1] for run in policies[OURS[0]]]))[0]
        for policy, runs in policies.items():
            value = interval(np.array([run["regret"][-1] for run in runs]))[0]
            if policy != OURS[0] and ours > 0.0:
                seen.setdefault(policy, []).append((column, value / ours))
    for number, (policy, points) in enumerate(seen.items()):
        x, y = zip(*points, strict=True)
        axes.plot(
            x, y, MARKERS[number % len(MARKERS)], color=colour(number), label=policy, ms=4, lw=0
        )
    axes.axhline(1.0, color="black", lw=1)
    axes.set(yscale="log", ylabel="average regret / that of debiased-ucb")
    axes.set_xticks(range(len(main)), list(main), rotation=30)
    axes.legend(fontsize=6, ncols=2, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def report(
    groups: Mapping[tuple[str, str], Mapping[str, list[Run]]],
    options: argparse.Namespace,
    *,
    pictures: bool,
) -> dict[str, list[str]]:
    """Lines for the page, by study; `pictures` and whole tables are put beside it if wanted."""
    sections: dict[str, list[str]] = {}
    for kind in STUDIES:
        found = {scenario: runs for (one, scenario), runs in groups.items() if one == kind}
        if not found:
            continue
        every = [run for policies in found.values() for runs in policies.values() for run in runs]
        trials = sorted({len(runs) for policies in found.values() for runs in policies.values()})
        lines = [
            f"{record.stamp()} T = {options.steps:,}, batch {BATCH}, "
            f"{' or '.join(map(str, trials))} trials, "
            f"{options.dimension or 'all'} directions or classes of each distribution; "
            f"{sum(run['seconds'] for run in every) / 60:.0f} processor minutes.",
            "",
        ]
        if kind in LINE_UPS:
            lines += [*verdict(found), ""]
        if pictures and kind not in ("full", "digits"):
            scenario, policies = next(iter(found.items()))
            show = partial(curves, title=f"{scenario} arms", policies=policies, highlight=OURS)
            if kind == "main":
                show = partial(ratios, main=found)
            lines += [record.picture(f"regret-{kind}", show, page=options.page), ""]
        rows = [row for name, policies in found.items() for row in rows_of(kind, name, policies)]
        if pictures:
            record.write_data(f"regret-{kind}", COLUMNS, rows, page=options.page)
        sections[kind] = [*lines, *tables(rows), "", ending(kind, found, options.dimension)]
    return sections


def main() -> None:
    """Run a study, print its tables and record them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("study", choices=(*STUDIES, "tables"))
    parser.add_argument("--steps", type=int, default=1_000, help="T, at a batch of 5")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--dimension", type=int, default=0, help="0: as the encoder")
    parser.add_argument("--scenario", default="", help="only those whose name contains this")
    parser.add_argument("--policy", default="", help="only those whose name contains this")
    add_workers(parser)
    parser.add_argument("--out", type=Path, default=Path("out/regret"))
    parser.add_argument("--page", type=Path, default=PAGE, help="whose section is rewritten")
    options = parser.parse_args()
    store = options.out / "regret.jsonl"
    if options.study == "tables":
        known = read(store)
        runs = {job: known[job] for job in jobs(options) if job in known}
    else:
        runs = study(jobs(options), one_trial, out=store, workers=workers_of(options))
    whole = not options.scenario and not options.policy
    for kind, lines in report(grouped(runs), options, pictures=whole).items():
        print("\n".join(lines) + "\n")
        if whole:
            record.record(f"regret-{kind}", lines, page=options.page)


if __name__ == "__main__":
    main()
