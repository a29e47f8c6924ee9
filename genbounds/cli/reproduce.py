"""`genbounds reproduce`: is a published distance one that chance gives."""

from __future__ import annotations

from pathlib import Path

import genbounds as gb
from genbounds.cli._command import Answer, command
from genbounds.cli._options import LEVEL, ScoreJudging, argument, option
from genbounds.cli._terminal import show

EXAMPLES = """
genbounds reproduce real.npz model.npz --n 50000 --published 2.31
genbounds reproduce real.npy model.npy --n 50000 --published 2.31 \\
  --published-reference-n 50000
genbounds reproduce real.npy model.npy --n 10000
"""


@command("REFERENCE MODEL --n N", EXAMPLES)
def reproduce(
    files: list[Path] = argument(
        "FILE",
        "Features of the real data (the reference) and of the model, in this order, as for "
        "`genbounds score`; statistics (.npz with mu, sigma and n) will do.",
    ),
    *,
    n: int = option("N", "Rows that they generated.", default=...),
    published: float | None = option("V", "The distance they printed."),
    published_reference_n: int | None = option(
        "M", "Rows of their own reference sample.", show_default="they have our reference file"
    ),
    training_sd: float = option(
        "T",
        "Standard deviation of the distance between trainings, where they trained anew.",
        default=0.0,
    ),
    level: float = LEVEL,
    judging: ScoreJudging,
) -> Answer:
    """Say where another laboratory's plug-in distance of the same model falls.

    Exit status 0: the published distance is within what chance does, or none was given; 1: it is
    not, or the samples do not tell.
    """
    from genbounds.cli._inputs import Models, choose_metric
    from genbounds.cli._options import renamed

    spec = choose_metric(judging)
    read = Models.read(files, spec, judging, [1])
    (model,) = read.models.values()
    with renamed({"fake": model.path, "real": files[0]}):
        found = gb.decisions.reproduction(
            model.sample,
            read.real,
            n=n,
            published=published,
            published_reference_n=published_reference_n,
            training_sd=training_sd,
            level=level,
        )
    found = found.warned(*read.warnings, *read.doubts)
    return Answer(
        document=found.to_dict(),
        show=lambda: show(found, verbose=judging.verbose),
        page=lambda: gb.report.reproduction_page(found),
        negative=found.decision in ("not", "inconclusive"),
    )
