"""Which of these generators is best, by how much, and how sure are we.

``python -m experiments.digits.demo --out out/demo`` trains real generators of real digits (once),
scores and ranks them, checks that the intervals cover, lets the online selection find the best
model, puts five published inequalities on trial, and writes ``report.html`` and ``results.json``.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import genbounds as gb
from experiments.digits.arm import encode
from experiments.digits.by_class import cosines, real_by_class, select_by_class, sorted_by_class
from experiments.digits.data import CLASSES, SIDE, Images
from experiments.digits.progress import bars
from experiments.digits.train import DEFAULT_CACHE, Digits, prepare
from genbounds import report
from genbounds.bounds import catalog
from genbounds.estimators import FrechetReference, growing_scores
from genbounds.features.thumbnails import Pictures
from genbounds.files import atomic_write
from genbounds.report._scores import remarks
from genbounds.report.blocks import Block
from genbounds.select import ContextSelection, Selection
from genbounds.simulate import AuditReport, Coverage, audit, interval_coverage

SEED = 2026
LEVEL = 0.95
LOOKED_AT = 2_000
"""Images a model among which copies of training images are looked for."""
POOL = 25_600
"""Images drawn from each generator; the coverage check cuts them into disjoint samples."""
STRIP = 12
"""Images of each model that are shown."""
OFFLINE = 20_000
"""Images a model of the offline evaluation that the selection is measured against."""
EVERYDAY = 1_000
"""Images a model of the ranking shown first: what somebody in a hurry would draw."""
COVERAGE_N = 512
"""Images of one interval in the coverage check: eight a feature."""
CERTIFYING = ("lucb", "uniform")
POLICIES = (*CERTIFYING, "greedy", "fd-ucb")
POLICY_WORDS = {
    "lucb": "draws from the leader and from the model most likely to overtake it, until their "
    "intervals are apart",
    "uniform": "draws from every model in turn, until the leader's interval is apart",
    "greedy": "draws from whichever model has the best score so far; it says nothing of certainty",
    "fd-ucb": "draws from the model with the lowest optimistic bound on its distance, as published",
}
BY_CLASS = 10_000
"""Images of each generator that are sorted into digits."""
MODES_N = 2_000
"""Images a model in which kinds of digits are counted."""
SHOWN = 3
"""Kinds of digits of each model that are shown by pictures."""
BATCH = 50
"""Images a step of the selection."""
STATEMENTS = (
    "o24.gaussian-mean",
    "m25.empirical-bernstein",
    "m25.mean-norm",
    "m25.trace-root-perturbation",
    "repaired.gaussian-mean",
)


@dataclass(frozen=True)
class Findings:
    """Everything the page shows."""

    copies: dict[str, gb.Memorisation]
    everyday: gb.Ranking
    everyday_is: gb.Ranking
    offline: gb.Ranking
    convergence: dict[str, Sequence[tuple[int, gb.Score]]]
    convergence_arm: str
    truth: dict[str, float]
    coverage: dict[str, Coverage]
    selections: dict[str, Selection]
    by_class: ContextSelection
    mixture: gb.Mixture
    modes: dict[str, gb.Modes]
    pictures: dict[str, Pictures]
    trial: AuditReport

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {
            "copies": {name: found.to_dict() for name, found in self.copies.items()},
            "everyday": self.everyday.to_dict(),
            "everyday_is": self.everyday_is.to_dict(),
            "offline": self.offline.to_dict(),
            "coverage": {name: result.to_dict() for name, result in self.coverage.items()},
            "selections": {name: run.to_dict() for name, run in self.selections.items()},
            "by_class": self.by_class.to_dict(),
            "mixture": self.mixture.to_dict(),
            "modes": {name: result.to_dict() for name, result in self.modes.items()},
            "audit": self.trial.to_dict(),
        }


def main(argv: list[str] | None = None) -> int:
    """Run the demo and write its page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out") / "demo")
    parser.add_argument("--cache", type=Path, default=DEFAULT_CACHE)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(argv)
    started = time.perf_counter()

    _say(f"generators of real digits (trained once, kept in {options.cache})")
    with bars() as progress:
        digits = prepare(options.cache, progress=progress)
    findings = examine(digits, jobs=options.jobs)
    page = build_page(digits, findings)

    options.out.mkdir(parents=True, exist_ok=True)
    atomic_write(options.out / "results.json", json.dumps(findings.to_dict(), indent=1))
    atomic_write(options.out / "ranking.svg", standalone(report.rank_plot(findings.everyday)))
    report.write_page(options.out / "report.html", page)
    _say(f"{page.lead} ({time.perf_counter() - started:.0f} s)")
    print((options.out / "report.html").resolve())
    return 0


def examine(digits: Digits, *, jobs: int = 1) -> Findings:
    """Do all the statistics of the page."""
    arms = digits.arms()
    real = digits.reference()
    pools = {}
    for number, (name, arm) in enumerate(arms.items()):
        _say(f"{POOL} images of {name}")
        pools[name] = arm.images(POOL, np.random.default_rng([SEED, number]))
    features = {name: encode(digits.encoder, pool, "features") for name, pool in pools.items()}

    _say("rankings")
    everyday = gb.compare({name: x[:EVERYDAY] for name, x in features.items()}, real, level=LEVEL)
    posteriors = {
        name: encode(digits.encoder, pool[:EVERYDAY], "posteriors") for name, pool in pools.items()
    }
    everyday_is = gb.compare(posteriors, metric="is", level=LEVEL)
    offline = gb.compare({name: x[:OFFLINE] for name, x in features.items()}, real, level=LEVEL)

    _say("copies of training images")
    train = encode(digits.encoder, digits.split.generator_images, "features")
    copies = {
        name: gb.memorisation(x[:LOOKED_AT], train, real, level=LEVEL)
        for name, x in features.items()
    }
    everyday, everyday_is, offline = (
        naming_copies(ranking, copies) for ranking in (everyday, everyday_is, offline)
    )

    contenders = {name: arm for name, arm in arms.items() if not arm.control}
    leader = next(name for name in offline.scores if name in contenders)
    _say("coverage of the intervals")
    # The real digits are the fixed target here: no second set of them is to be had.
    target = gb.Moments(*_moments(real))
    truth = {name: gb.frechet_distance(x, target).value for name, x in features.items()}
    coverage = {name: _coverage(x, target, truth[name]) for name, x in features.items()}
    convergence = {
        estimator: growing_scores(
            features[leader][:OFFLINE],
            lambda rows, estimator=estimator: gb.frechet_distance(
                rows, target, estimator=estimator
            ),
        )
        for estimator in ("plugin", "debiased")
    }

    selections: dict[str, Selection] = {}
    for policy in POLICIES:
        _say(f"online selection, {policy}")
        selections[policy] = gb.select.run(
            contenders,
            real,
            policy=policy,
            confidence=LEVEL,
            batch=BATCH,
            # Policies that never stop get what the certified one took.
            budget=None
            if policy in CERTIFYING or not selections
            else selections[POLICIES[0]].total_samples,
            seed=SEED,
        )
    _say("a generator for each digit, and the best mixture")
    made = sorted_by_class(
        {
            name: (
                features[name][:BY_CLASS],
                encode(digits.encoder, pools[name][:BY_CLASS], "posteriors"),
            )
            for name in contenders
        }
    )
    by_class = select_by_class(
        cosines(made, real_by_class(digits)),
        contexts=list(range(CLASSES)),
        metric="mean",
        confidence=LEVEL,
        seed=SEED,
    )
    mixture = gb.mixture(
        {name: features[name][:EVERYDAY] for name in contenders},
        real,
        metric="fd",
        level=LEVEL,
        seed=SEED,
    )
    _say("kinds of digits")
    modes = {
        name: gb.modes(features[name][:MODES_N], real, level=LEVEL, seed=SEED)
        for name in contenders
    }
    _say("five inequalities on trial")
    trial = audit(STATEMENTS, quick=True, seed=SEED, jobs=jobs)
    return Findings(
        copies=copies,
        everyday=everyday,
        everyday_is=everyday_is,
        offline=offline,
        convergence=convergence,
        convergence_arm=leader,
        truth=truth,
        coverage=coverage,
        selections=selections,
        by_class=by_class,
        mixture=mixture,
        modes=modes,
        pictures={name: Pictures(contents=pools[name][:MODES_N]) for name in contenders},
        trial=trial,
    )


def naming_copies(ranking: gb.Ranking, found: Mapping[str, gb.Memorisation]) -> gb.Ranking:
    """Put a warning on the score of every model that copies its training images."""
    scores = {
        name: score
        if (doubt := found[name].diagnostic) is None
        else replace(score, warnings=(*score.warnings, doubt))
        for name, score in ranking.scores.items()
    }
    return replace(ranking, scores=scores)


def _moments(x: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    moments = gb.Moments.from_features(x)
    return moments.mean, moments.cov


def _coverage(pool: NDArray[Any], target: gb.Moments, truth: float) -> Coverage:
    """Score every disjoint sample of the pool; count intervals that hold the pool's distance.

    The truth is the debiased distance of the whole pool, fifty times as large as a sample:
    its error is a seventh of an interval's and costs half a percent of coverage.
    """
    reference = FrechetReference(target)
    samples = iter(np.split(pool, len(pool) // COVERAGE_N))
    return interval_coverage(
        lambda sample: reference.estimate(sample).score(LEVEL),
        lambda rng: next(samples),
        truth,
        replications=len(pool) // COVERAGE_N,
        seed=SEED,
        level=LEVEL,
    )


def build_page(digits: Digits, found: Findings) -> report.Page:
    """Lay the findings out."""
    arms = digits.arms()
    run, uniform = (found.selections[policy] for policy in CERTIFYING)
    offline = [name for name in found.offline.scores if not arms[name].control]
    agrees = run.best == offline[0]
    saved = 1.0 - run.total_samples / uniform.total_samples
    state = "certified" if run.certified else "not certified"
    rival = "needs" if uniform.certified else "gets none with"
    hits, tried = _total_coverage(found.coverage)
    page = report.Page(
        title="Which of these generators of digits is best?",
        lead=(
            f"{run.best} is the best of {len(offline)} generators: {state} at "
            f"{report.percent(LEVEL)} from "
            f"{report.number(run.total_samples)} images in all, where uniform sampling {rival} "
            f"{report.number(uniform.total_samples)} for the same certificate; an offline "
            f"evaluation with {report.number(OFFLINE)} images of each model "
            f"{'finds the same' if agrees else f'finds {offline[0]}'}.{_out_of_the_running(found)}"
        ),
        foot=f"Made by genbounds {gb.__version__}, experiments/digits/demo.py, seed {SEED}.",
        facts=report.Facts(
            items=[
                ("Best", report.Name(run.best), f"{state} at {report.percent(LEVEL)}"),
                (
                    "Images drawn",
                    run.total_samples,
                    f"{report.percent(round(saved, 2))} fewer than uniform sampling",
                ),
                (
                    "Intervals that covered",
                    report.percent(round(hits / tried, 3)),
                    f"of {report.number(tried)}, nominal 95 %",
                ),
            ]
        ),
    )
    models = report.Table(
        columns=("Model", "What it is", "FD, offline", "IS, quick look", "Training images copied"),
        rows=[
            (
                report.Name(name),
                arms[name].description,
                found.offline.scores[name].value,
                found.everyday_is.scores[name].value,
                _copied(found.copies[name]),
            )
            for name in sorted(found.offline.scores, key=lambda name: arms[name].control)
        ],
        caption=f"Best Fréchet distance from {OFFLINE:,} images first; the control, which copies "
        "training images, last",
    )
    page.add(
        report.Section(
            "The models",
            [
                "Ten classes of 8 × 8 handwritten digits. Every model was trained on the same 600 "
                "real images; 897 others are the reference; 300 more trained the classifier whose "
                "64 features and class posteriors the scores are computed from.",
                *_strips(digits),
                models,
            ],
        ),
        report.Section(
            f"A quick look: {EVERYDAY:,} images of each",
            [
                report.rank_plot(found.everyday),
                *_copies(found),
                report.difference_matrix(found.everyday),
                report.rank_plot(found.everyday_is),
                *remarks(found.everyday.scores, assumptions=found.everyday.assumptions)[:2],
            ],
        ),
        report.Section(
            "Why the bias has to go",
            [
                f"The distance of {found.convergence_arm} to the real digits by the number of "
                "images (the 897 themselves are the target here and in the next check): the "
                "usual plug-in number falls as images are added, the debiased one "
                "stays where it is.",
                report.convergence_plot(
                    found.convergence, truth=found.truth[found.convergence_arm]
                ),
            ],
        ),
        report.Section(
            "Are the intervals honest?",
            [
                f"Every model's {POOL:,} images were cut into {POOL // COVERAGE_N} samples of "
                f"{COVERAGE_N}; the share of their 95 % intervals that hold the distance of the "
                "whole:",
                report.coverage_plot(
                    [
                        report.CoveragePoint(
                            label=name,
                            n=COVERAGE_N,
                            nominal=LEVEL,
                            measured=result.coverage,
                            low=1.0 - result.miss_high,
                            high=1.0 - result.miss_low,
                            replications=result.replications,
                        )
                        for name, result in found.coverage.items()
                    ]
                ),
            ],
        ),
        _selection_section(found),
        _by_class_section(found.by_class),
        _mixture_section(found.mixture),
        _modes_section(digits, found),
        report.Section(
            "Five inequalities on trial",
            [
                report.miss_plot(found.trial.to_dict()["rows"]),
                report.Table(
                    columns=("Statement", "Claim", "Verdict", "Counterexample"),
                    rows=[
                        (
                            report.Code(row["id"]),
                            catalog()[row["id"]].claim,
                            report.verdict(row["verdict"]),
                            row["counterexample"] or "",
                        )
                        for row in found.trial.to_dict()["rows"]
                    ],
                ),
            ],
        ),
    )
    return page


def _out_of_the_running(found: Findings) -> str:
    """Name every model that scores better than the best, but copies its training images."""
    best = found.selections[POLICIES[0]].best
    names = list(found.offline.scores)
    ahead = [name for name in names[: names.index(best)] if found.copies[name].copies]
    return "".join(
        f" The distance of {name} is smaller, but it copies training images and was no candidate."
        for name in ahead
    )


def _copied(found: gb.Memorisation) -> report.Tag:
    if found.copies:
        return report.Tag(f"at least {found.copies_low} of {found.train_n}", "bad")
    return report.Tag("not significant", "good")


def _copies(found: Findings) -> list[str | report.Figure]:
    """Name every model that copies its training images; show the first by the distance."""
    guilty = [name for name in found.everyday.scores if found.copies[name].copies]
    if not guilty:
        return []
    lines = [f"{name} ({found.copies[name]})" for name in guilty]
    return [
        "The Fréchet distance measures likeness to the data, not the making of anything new: a "
        "model that hands out its training images does well by it. Held-out images tell (crosses "
        f"above): of {LOOKED_AT:,} images of each model, near copies are significant in "
        f"{'; '.join(lines)}.",
        report.ratio_plot(found.copies[guilty[0]]),
    ]


def _selection_section(found: Findings) -> report.Section:
    run = found.selections[POLICIES[0]]
    steps, spent = report.spending(run)
    return report.Section(
        "Finding the best model with few images",
        [
            report.Table(
                columns=("Policy", "Best", "Certified", "Images"),
                rows=[
                    (
                        name,
                        report.Name(selection.best),
                        report.Tag("yes", "good")
                        if selection.certified
                        else report.Tag("no", "open"),
                        selection.total_samples,
                    )
                    for name, selection in found.selections.items()
                ],
                caption=f"Confidence {report.percent(LEVEL)}. The first two stop by themselves, "
                "the others get as many images as the first. The offline habit: "
                f"{report.number(OFFLINE * len(run.samples))}.",
            ),
            report.Notes(
                items=[f"{name}: {POLICY_WORDS[name]}" for name in found.selections],
                title="The policies",
            ),
            report.samples_plot(run.samples, best=run.best),
            report.spending_plot(steps, spent),
            report.Notes(items=run.notes, title="What the answer assumes"),
        ],
    )


def _by_class_section(found: ContextSelection) -> report.Section:
    """Say which generator is best at which digit, as far as that is certified."""
    winners, scores = found.winners, found.recommended_scores
    decided = sum(winner is not None for winner in winners.values())
    rows = []
    for digit, winner in winners.items():
        score = scores[str(digit)]
        rows.append(
            (
                report.Name(str(digit)),
                report.Tag("undecided", "open") if winner is None else report.Name(winner),
                ", ".join(found.undecided.get(digit, ())) or "–",
                report.Name(found.recommended[digit] or "–"),
                score.value,
                report.interval(score.low, score.high),
                found.contexts[digit].total_samples,
            )
        )
    columns = ("Digit", "Winner", "Undecided", "Recommended", "Its score", "Interval", "Images")
    return report.Section(
        "Which generator for which digit?",
        [
            f"{decided} of {len(winners)} digits have a certified winner, all of them right "
            f"together at {report.percent(found.confidence)}. An image is of the digit that the "
            "classifier sees in it. Its score is the cosine between its features and the mean of "
            "the real ones of that digit, as CLIPScore has it for a prompt: it tells how typical "
            "single images are, not how varied. Images were drawn until a digit was decided or a "
            "generator had no more of it; the recommendation is then an estimate.",
            report.Table(columns=columns, rows=rows),
        ],
    )


def _mixture_section(found: gb.Mixture) -> report.Section:
    """Say what share of each generator makes the best mixture, and how much it gains."""
    score = found.score
    return report.Section(
        "Would several generators together be better?",
        [
            f"{found}. It gains at least {report.number(found.gain_low)} "
            f"({report.percent(found.level)}; a negative number: it may be worse).",
            report.Table(
                columns=("Model", "Share", "FD"),
                rows=[
                    (
                        "the mixture",
                        "",
                        f"{report.number(score.value)} {report.interval(score.low, score.high)}",
                    ),
                    *(
                        (
                            report.Name(name),
                            report.percent(round(share, 3)),
                            f"{report.number(alone.value)} "
                            f"{report.interval(alone.low, alone.high)}",
                        )
                        for name, share in sorted(found.weights.items(), key=lambda row: -row[1])
                        for alone in [found.scores[name]]
                    ),
                ],
                caption=f"From {EVERYDAY:,} images of each, shares found on some of them and "
                "judged on others",
            ),
        ],
    )


def _modes_section(digits: Digits, found: Findings) -> report.Section:
    """Show the kinds of digits that each model misses or makes too often, as pictures."""
    real = Pictures(contents=digits.split.reference_images)
    kinds = [kind for kind in gb.explain.KINDS if kind != "even"]
    blocks: list[Block] = [
        f"Half of {MODES_N:,} images of each model, and half of the real ones, found kinds of "
        "digits whose shares look different; the other halves were counted. For each model a "
        f"false claim has probability {report.percent(round(1.0 - LEVEL, 12))} at most.",
        report.Table(
            columns=("Model", *kinds),
            rows=[
                (
                    report.Name(name),
                    *(sum(region.kind == kind for region in result.found) for kind in kinds),
                )
                for name, result in found.modes.items()
            ],
            caption="Number of regions",
        ),
    ]
    for name, result in found.modes.items():
        blocks += [
            f"{name}: {result}.",
            *report.region_examples(result, found.pictures[name], real, SHOWN),
        ]
    return report.Section("What does each model miss?", blocks)


def _total_coverage(coverage: Mapping[str, Coverage]) -> tuple[int, int]:
    tried = sum(result.replications for result in coverage.values())
    return tried - sum(result.misses for result in coverage.values()), tried


def _strips(digits: Digits) -> list[report.Picture]:
    """Return some real images, and some of every model, a row of each."""
    rows = {"real": digits.split.reference_images[:STRIP]}
    rows |= {
        name: arm.images(STRIP, np.random.default_rng(SEED)) for name, arm in digits.arms().items()
    }
    return [
        report.Picture(strip(images), alt=f"{len(images)} images: {name}", caption=name)
        for name, images in rows.items()
    ]


def strip(images: Images) -> bytes:
    """Return images of values in [0, 1] in a row, as a PNG; what lies between them is clear.

    So few that each is seen on a phone, and no ground of its own on a dark page.
    """
    from PIL import Image

    grey = np.zeros((SIDE, len(images) * (SIDE + 1) - 1, 2), dtype=np.uint8)
    for k, image in enumerate(images):
        place = grey[:, k * (SIDE + 1) :][:, :SIDE]
        place[..., 0] = np.rint(255.0 * np.clip(image, 0.0, 1.0))
        place[..., 1] = 255
    png = io.BytesIO()
    Image.fromarray(grey).save(png, "PNG")
    return png.getvalue()


def standalone(figure: report.Figure) -> str:
    """Return the picture as an SVG file of its own, with the light theme's colours."""
    colours = {
        "ink": "#1b1f24",
        "muted": "#57606a",
        "grid": "#d8dee4",
        "paper": "#ffffff",
        "accent": "#0b6bcb",
        "good": "#1a7f37",
        "bad": "#cf222e",
        "open": "#9a6700",
        **{
            f"series-{i}": colour
            for i, colour in enumerate(
                (
                    "#0b6bcb",
                    "#bf5700",
                    "#1a7f37",
                    "#8250df",
                    "#cf222e",
                    "#0a7c86",
                    "#9a6700",
                    "#57606a",
                )
            )
        },
    }
    svg = figure.wide
    for role, colour in colours.items():
        svg = svg.replace(f"var(--{role})", colour)
    root = '<svg style="background: #ffffff; font-family: sans-serif"'
    if "xmlns=" not in svg:
        root += ' xmlns="http://www.w3.org/2000/svg"'
    svg = svg.replace("<svg", root, 1)
    return svg


def _say(text: str) -> None:
    print(f"demo: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
