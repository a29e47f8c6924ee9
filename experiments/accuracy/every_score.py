"""Coverage of every score that is registered, under each way of drawing samples.

    python -m experiments.accuracy.every_score [--replications 200] [--scores 'k*' is]

Rewrites a section of docs/evidence/accuracy.md, score by score; scores that were not asked for stay
as they are there. Features are a mixture of 20 classes in 16 dimensions. The three designs have one
distribution, so that the truth is one number: rows drawn independently, as many rows of each class,
and groups of four rows (a prompt); both samples are drawn alike, and say how.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np

import genbounds as gb
from experiments.record import rate, record_briefly, recorded_rows, stamp, table
from genbounds.estimators import metric_names, metric_spec

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "accuracy.md"
LEVEL = 0.95
CLASSES, D, N = 20, 16, 400
LARGE = 20_000
"""Rows of the samples whose scores tell the truth: fifty times as many, as many of each class."""

TRUTHS = 6
"""So many pairs of them: all replications have their error in common."""
DESIGNS = ("rows", "classes", "groups")

_shape = np.random.default_rng(1)
CENTRES = 1.5 * _shape.normal(size=(CLASSES, D))
MIXING = _shape.normal(size=(D, D)) / np.sqrt(D)
READOUT = _shape.normal(size=(D, 10)) / 3.0


@dataclass(frozen=True)
class Drawn:
    """A sample as it says that it was drawn, and the class of each row."""

    sample: gb.Sample
    classes: Any


def draw(design: str, n: int, rng: np.random.Generator, *, real: bool = False) -> Drawn:
    """Draw a sample; the real one is wider, and a little off."""
    groups, k, noise = None, rng.integers(CLASSES, size=n), rng.normal(size=(n, D))
    if design == "classes":
        k = np.repeat(np.arange(CLASSES), n // CLASSES)
    elif design == "groups":
        prompt = np.arange(n) // 4
        k = rng.integers(CLASSES, size=prompt[-1] + 1)[prompt]
        common = rng.normal(size=(prompt[-1] + 1, D))[prompt]
        noise = np.sqrt(0.6) * common + np.sqrt(0.4) * noise
        groups = prompt + 1_000_000 * real  # prompts of their own
    rows = CENTRES[k] + noise @ MIXING
    if real:
        rows = 1.1 * CENTRES[k] + 0.1 + 1.2 * noise @ MIXING
    strata = k if design == "classes" else None
    return Drawn(gb.Sample(rows, groups=groups, strata=strata), k)


def as_posteriors(rows: Any) -> Any:
    """Class probabilities of a linear classifier."""
    logits = rows @ READOUT
    likely = np.exp(logits - logits.max(axis=1, keepdims=True))
    return likely / likely.sum(axis=1, keepdims=True)


KINDS: dict[str, Callable[[Any], Any]] = {
    "features": lambda rows: rows,
    "posteriors": as_posteriors,
    "values": lambda rows: np.tanh(rows[:, :1]),
}


@dataclass(frozen=True)
class Case:
    """How one score is taken here.

    Attributes
    ----------
    options : dict
        Of the metric; bandwidths are fixed, so that the truth is that of the same kernel.
    own_truth : bool
        The truth is the mean score of samples of these very sizes.
    given: bool
        The truth is for the very reference rows of each replication.
    """

    options: dict[str, Any] = field(default_factory=dict)
    own_truth: bool = False
    given: bool = False


OWN_SIZE = Case(own_truth=True)
CASES = {
    "fd": Case(),
    "kid": Case(),
    "is": Case(),
    "vendi": Case({"kernel": "cosine"}),
    "rke": Case({"bandwidth": 6.0}),
    "cmmd": Case(),
    "kad": Case({"bandwidth": 6.0}),
    "energy": Case(),
    "precision": OWN_SIZE,
    "recall": OWN_SIZE,
    "density": OWN_SIZE,
    "coverage": OWN_SIZE,
    "f_score": OWN_SIZE,
    "clipped-density": OWN_SIZE,
    "clipped-coverage": OWN_SIZE,
    "mind": Case({"directions": 64}),
    "authpct": Case(given=True),
    "mifid": Case({"threshold": 0.99}, own_truth=True),
    "mean": Case(),
}

BY_CLASS, LESS = "fd, by class", "fd, mean less whole"
"""Four classes, each of five of the mixture's: whether all intervals hold the truth together, and
whether that of the difference of the mean over classes and the whole does."""


def estimated(metric: str, fake: gb.Sample, real: gb.Sample) -> Any:
    """Score one pair of samples."""
    spec, case = metric_spec(metric), CASES[metric]
    shown = KINDS[spec.data]
    one, two = (
        gb.Sample(shown(s.features), groups=s.groups, strata=s.strata) for s in (fake, real)
    )
    prepared = spec.prepared(None if spec.reference != "required" else two, case.options)
    return prepared.estimate(one)


def large_truth(metric: str) -> float:
    """Mean score of pairs of large samples: its error is a seventeenth of a sample's."""
    found = []
    for number in range(TRUTHS):
        rng = np.random.default_rng((7, number))
        fake, real = (draw("classes", LARGE, rng, real=real).sample for real in (False, True))
        found.append(estimated(metric, fake, real).score(LEVEL).value)
    return float(np.mean(found))


def moments_of(kinds: slice, *, real: bool) -> gb.Moments:
    """Exact moments of some of the twenty classes."""
    centres, scale = CENTRES[kinds], 1.0
    if real:
        centres, scale = 1.1 * centres + 0.1, 1.2
    spread = np.cov(centres.T, bias=True) + scale**2 * MIXING.T @ MIXING
    return gb.Moments(centres.mean(axis=0), spread)


def pair(design: str, n: int, replication: int) -> tuple[Drawn, Drawn]:
    """Draw both samples of a replication."""
    rng = np.random.default_rng((n, DESIGNS.index(design), replication))
    return draw(design, n, rng), draw(design, n, rng, real=True)


def cell(covers: Any, ratio: float | None, flagged: float) -> str:
    """Say how often intervals covered, with exact limits."""
    hits, tried = int(np.sum(covers)), len(covers)
    text = rate(hits, tried, limits=".0%")
    text += "" if ratio is None else f", {ratio:.2f}"
    return text + (f", flagged {flagged:.0%}" if flagged else "")


def measured(metric: str, design: str, replications: int, truth: float) -> str:
    """Return the cell of one score and design."""
    found, target = [], np.full(replications, truth)
    large = draw("classes", LARGE, np.random.default_rng(7)).sample
    for replication in range(replications):
        fake, real = pair(design, N, replication)
        score = estimated(metric, fake.sample, real.sample).score(LEVEL)
        found.append((score.value, score.stderr, score.low, score.high, score.reliable))
        if CASES[metric].given:
            target[replication] = estimated(metric, large, real.sample).value
    value, stderr, low, high, reliable = np.array(found, dtype=float).T
    known = np.isfinite(low)
    if CASES[metric].own_truth:
        target[:] = value.mean()
    covers = (low <= target) & (target <= high)
    spread = float((value - target).std())
    return cell(covers[known], float(stderr[known].mean() / spread), 1.0 - reliable.mean())


def exact_distance(kinds: slice) -> float:
    """Distance of some of the twenty classes."""
    fake, real = (moments_of(kinds, real=real) for real in (False, True))
    return float(gb.frechet_distance(fake, real).value)


def measured_by_class(design: str, replications: int, *, difference: bool) -> str:
    """Return the cell of four classes, whose intervals must all hold, or of mean less whole."""
    truths = [exact_distance(slice(5 * kind, 5 * kind + 5)) for kind in range(4)]
    less = float(np.mean(truths)) - exact_distance(slice(None))
    covers, reliable = [], []
    for replication in range(replications):
        fake, real = pair(design, 4 * N, replication)
        found = gb.frechet_by_class(
            fake.sample, real.sample, fake.classes // 5, real.classes // 5, level=LEVEL
        )
        scores = [found.classes[kind] for kind in range(4)]
        held = [s.low <= t <= s.high for s, t in zip(scores, truths, strict=True)]
        if difference:
            held = [found.difference.low <= less <= found.difference.high]
        covers.append(all(held))
        reliable.append(found.reliable)
    return cell(covers, None, 1.0 - float(np.mean(reliable)))


def main(argv: list[str] | None = None) -> None:
    """Run the scores that were asked for and rewrite the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--replications", type=int, default=200)
    parser.add_argument("--scores", nargs="*", default=["*"], help="shell patterns of names")
    parser.add_argument("--page", type=Path, default=PAGE, help="whose section is rewritten")
    options = parser.parse_args(argv)
    names = [*metric_names(), BY_CLASS, LESS]
    before = recorded_rows("every-score", key=1, page=options.page)
    lines = {name: before[(name,)] for name in names if (name,) in before}
    for name in names:
        if not any(fnmatch(name, pattern) for pattern in options.scores):
            continue
        if name in (BY_CLASS, LESS):
            cells = [
                measured_by_class(design, options.replications, difference=name == LESS)
                for design in DESIGNS
            ]
        else:
            case = CASES[name]
            truth = np.nan if case.own_truth or case.given else large_truth(name)
            cells = [measured(name, design, options.replications, truth) for design in DESIGNS]
        row = [name, *cells, str(options.replications)]
        lines[name] = table([], [row])[-1]
        print(lines[name], flush=True)
        head = table(["score", *DESIGNS, "replications"], [])
        rows = [lines[one] for one in names if one in lines]
        record_briefly("every-score", stamp(), [*head, *rows], page=options.page)


if __name__ == "__main__":
    main()
