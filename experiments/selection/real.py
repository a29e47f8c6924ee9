"""Selection among real models: the digits generators, or any feature files.

python -m experiments.selection.real
python -m experiments.selection.real --reference real.npy --files model_a.npy model_b.npy …
python -m experiments.selection.real --metric is --files classes_a.npy classes_b.npy …

Samples to a certificate, and average regret of every policy within T steps of 5 samples. The target
is the distance to the reference set itself: its moments are taken as known. With ``--metric is`` it
is the Inception score of the file, whose rows are posteriors (sums of 1). Digits are drawn anew
in every run; files are shuffled in every run and read without replacement, so that their runs are
no independent repeats of the models. Runs are kept in OUT, and the same command goes on
where it was stopped. The digits are recorded in docs/evidence/selection.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.digits.train import DEFAULT_CACHE, prepare
from experiments.record import record, stamp, table
from experiments.selection.regret import (
    BATCH,
    FD_POLICIES,
    IS_POLICIES,
    after_stopping,
    interval,
)
from experiments.selection.store import Run, add_workers, study, workers_of
from genbounds import inception_score, select
from genbounds.arms import Arm
from genbounds.estimators import FrechetReference, Moments
from genbounds.files import read_features
from genbounds.samples import Sample
from genbounds.select import FeatureArm

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "selection.md"
CERTIFYING = ("uniform", "elimination", "lucb")
POOL = 20_000
"""Images of every generator that its true distance is taken from."""

LOOK_BATCH = 50
"""Samples a step on the way to a certificate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """Models to choose from.

    Attributes
    ----------
    rows : dict of str to ndarray
        Features that the true distances are taken from.
    live : dict of str to Arm
        Models that can be drawn anew; empty for files.
    reference : Moments or None
        None for the Inception score, of which more is better.
    truth : dict of str to float
    """

    rows: dict[str, NDArray[Any]]
    live: dict[str, Arm]
    reference: Moments | None
    truth: dict[str, float]

    @property
    def metric(self) -> str:
        """The score that is to be optimal."""
        return "is" if self.reference is None else "fd"

    @property
    def best(self) -> str:
        """The model with the smallest distance, or the largest Inception score."""
        choose = max if self.reference is None else min
        return choose(self.truth, key=self.truth.__getitem__)

    def arms(self) -> dict[str, Arm]:
        """Arms of one run; those of files start at their first row.

        The target is the score of the file itself: whether it is sorted by class does not matter.
        """
        return self.live or {name: FeatureArm(Sample(x)) for name, x in self.rows.items()}


@cache
def models(source: str) -> Models:
    """Return the models.

    Parameters
    ----------
    source : str
        The folder of the trained digits; or the reference's file and those of the models, one a
        line; an empty first line for the Inception score.
    """
    live: dict[str, Arm] = {}
    paths = source.split("\n")
    if not paths[0]:
        posteriors = {Path(path).stem: read_features(path) for path in paths[1:]}
        scores = {name: inception_score(x).value for name, x in posteriors.items()}
        return Models(rows=posteriors, live=live, reference=None, truth=scores)
    if len(paths) == 1:
        digits = prepare(source)
        live |= {name: arm for name, arm in digits.arms().items() if not arm.control}
        real = digits.reference()
        rows = {
            name: arm.draw(POOL, np.random.default_rng([0, number]))
            for number, (name, arm) in enumerate(live.items())
        }
    else:
        real = read_features(paths[0])
        rows = {Path(path).stem: read_features(path) for path in paths[1:]}
    moments = Moments.from_features(real)
    reference = Moments(moments.mean, moments.cov, n=None)
    prepared = FrechetReference(reference)
    return Models(
        rows=rows,
        live=live,
        reference=reference,
        truth={name: prepared.estimate(x, influences=False).value for name, x in rows.items()},
    )


def certificate(source: str, policy: str, confidence: float, seed: int) -> Run:
    """Return samples and outcome of one run to a certificate."""
    found = models(source)
    start = time.process_time()
    selection = select.run(
        found.arms(),
        found.reference,
        metric=found.metric,
        policy=policy,
        confidence=confidence,
        batch=LOOK_BATCH,
        seed=seed,
    )
    right = selection.best == found.best
    return {
        "outcome": ("right" if right else "wrong") if selection.certified else "open",
        "samples": selection.total_samples,
        "seconds": time.process_time() - start,
    }


def regret(source: str, policy: str, steps: int, seed: int) -> Run:
    """Average regret and share of optimal picks of one run with a budget."""
    found = models(source)
    start = time.process_time()
    selection = select.run(
        found.arms(),
        found.reference,
        metric=found.metric,
        policy=(IS_POLICIES if found.reference is None else FD_POLICIES)[policy](),
        batch=BATCH,
        budget=BATCH * steps,
        seed=seed,
    )
    history = after_stopping(selection, steps)
    higher = found.reference is None
    return {
        "regret": float(history.average_regret(found.truth, higher_is_better=higher)[-1]),
        "ratio": float(history.optimal_pick_ratio(found.truth, higher_is_better=higher)[-1]),
        "seconds": time.process_time() - start,
    }


def certificates(found: Mapping[str, list[Run]]) -> list[str]:
    """Table of samples to a certificate."""
    uniform = np.array([run["samples"] for run in found["uniform"]])
    rows = []
    for policy, runs in found.items():
        samples = np.array([run["samples"] for run in runs])
        outcomes = [run["outcome"] for run in runs]
        share = samples / uniform
        rows.append(
            [
                policy,
                ", ".join(str(outcomes.count(kind)) for kind in ("right", "wrong", "open")),
                f"{np.median(samples):,.0f} ({samples.min():,} – {samples.max():,})",
                f"{np.median(share):.0%} ({share.min():.0%} – {share.max():.0%})",
            ]
        )
    heads = ("policy", "right, wrong, open", "samples in all (range)", "share of uniform (range)")
    return table(heads, rows)


def regrets(found: Mapping[str, list[Run]]) -> list[str]:
    """Table of regret."""
    rows = []
    for policy, runs in found.items():
        mean, half = interval(np.array([run["regret"] for run in runs]))
        share, spread = interval(np.array([run["ratio"] for run in runs]))
        rows.append([policy, f"{mean:.3g} ± {half:.2g}", f"{share:.0%} ± {spread:.0%}"])
    return table(("policy", "average regret", "optimal picks"), rows)


def main() -> None:
    """Run both studies, print their tables and record those of the digits."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--metric", choices=("fd", "is"), default="fd", help="is: with --files")
    parser.add_argument("--files", nargs="*", default=[], help="features of the models")
    parser.add_argument("--reference", help="features of the real images, with --files")
    parser.add_argument("--cache", type=Path, default=DEFAULT_CACHE, help="of the digits")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--steps", type=int, default=1_000, help="T, at a batch of 5")
    parser.add_argument("--confidence", type=float, default=0.95)
    add_workers(parser)
    parser.add_argument("--out", type=Path, default=Path("out/real"))
    parser.add_argument("--page", type=Path, default=PAGE, help="whose section is rewritten")
    options = parser.parse_args()
    inception = options.metric == "is"
    if inception and (options.reference or not options.files):
        parser.error("--metric is takes --files of posteriors, and no --reference")
    if not inception and bool(options.files) != bool(options.reference):
        parser.error("--files and --reference go together")
    source = "\n".join(
        [options.reference or "", *options.files] if options.files else [str(options.cache)]
    )
    policies = IS_POLICIES if inception else FD_POLICIES
    seeds = range(options.runs)

    def runs(work: Any, *arguments: Any) -> list[Run]:
        jobs = [(source, *arguments, seed) for seed in seeds]
        store = options.out / f"{work.__name__}.jsonl"
        return list(study(jobs, work, out=store, workers=workers_of(options)).values())

    stopped = {policy: runs(certificate, policy, options.confidence) for policy in CERTIFYING}
    spent = {policy: runs(regret, policy, options.steps) for policy in policies}
    truth = sorted(models(source).truth.items(), key=lambda item: item[1], reverse=inception)
    shown = ", ".join(f"{name} {value:.3g}" for name, value in truth)
    seconds = sum(run["seconds"] for found in (stopped, spent) for r in found.values() for run in r)
    lines = [
        f"{stamp()} {options.runs} runs, confidence {options.confidence:.0%}; "
        f"{seconds / 60:.0f} processor minutes.",
        f"{'Inception scores' if inception else 'Distances'}: {shown}.",
        "",
        *certificates(stopped),
        "",
        f"T = {options.steps:,} steps of {BATCH}:",
        "",
        *regrets(spent),
    ]
    print("\n".join(lines))
    if not options.files:
        record("samples-digits", lines, page=options.page)


if __name__ == "__main__":
    main()
