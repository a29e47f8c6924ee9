"""`genbounds gate`: may a candidate replace a baseline."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import genbounds as gb
from genbounds.cli._command import Answer, command
from genbounds.cli._options import Scoring, argument, choice, flag, option
from genbounds.cli._terminal import show

EXAMPLES = """
genbounds gate real.npy gan-old.npy gan-new.npy --margin 2%
genbounds gate real.npy old.npz new.npy --margin 0.5 --inconclusive pass
genbounds gate real.npz old.npz new.npz --margin 2% --groups prompts
genbounds gate old.npy new.npy --metric is --margin 1% --equivalence
"""

INCONCLUSIVE = "fail|pass"


@command("[REFERENCE] BASELINE CANDIDATE --margin M|P%", EXAMPLES)
def gate(
    files: list[Path] = argument(
        "FILE",
        "Features of the real data (the reference), of the baseline and of the candidate, in "
        "this order, as for `genbounds score`; for fd the baseline may be a file of statistics "
        "(.npz with mu, sigma and n). For is, vendi, rke and mean only the baseline and the "
        "candidate.",
    ),
    *,
    margin: str = option(
        "M|P%",
        "By how much the candidate may be worse: a number in units of the score, or a share of "
        "the baseline's score, such as 2%.",
        default=...,
    ),
    equivalence: bool = flag("The candidate must not be better by more than that either."),
    inconclusive: str = choice(
        INCONCLUSIVE,
        "Exit status where the samples do not tell: fail (1) or pass (0).",
        default="fail",
    ),
    judging: Scoring,
) -> Answer:
    """Decide whether a candidate is worse than a baseline by no more than a margin.

    Exit status 0: it passes; 1: it fails, or the samples do not tell (--inconclusive).
    """
    from genbounds.cli._inputs import Models, choose_metric
    from genbounds.validation import check_choice

    level, verbose = judging.level, judging.verbose
    spec = choose_metric(judging)
    check_choice("--inconclusive", inconclusive, INCONCLUSIVE.split("|"))
    wanted = gb.decisions.Margin.of(margin)
    gb.decisions.check_gate(wanted, level=level, equivalence=equivalence)
    read = Models.read(files, spec, judging, [2])
    read = replace(read, models=dict(reversed(read.models.items())))  # the candidate first
    with read.named():
        verdict = gb.decisions.decide(
            read.estimates()[0],
            margin=wanted,
            metric=spec.name,
            level=level,
            equivalence=equivalence,
            warnings=read.warnings,
        )
    scores = {name: replace(score, assumptions=()) for name, score in verdict.scores.items()}
    return Answer(
        document=verdict.to_dict(),
        show=lambda: show(verdict, scores=scores, assumptions=verbose, verbose=verbose),
        page=lambda: gb.report.gate_page(verdict),
        negative=not verdict.accepted(inconclusive),
    )
