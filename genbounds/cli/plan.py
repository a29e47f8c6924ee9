"""`genbounds plan`: how many samples are needed."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import genbounds as gb
from genbounds.cli._command import Answer, command
from genbounds.cli._options import Planning, argument, option
from genbounds.cli._terminal import show

EXAMPLES = """
genbounds plan real.npy pilot.npy --half-width 0.5
genbounds plan real.npy gan-a.npy gan-b.npy --gap 0.3 --power 0.9
genbounds plan real.npz a.npz b.npz --groups prompts --gap 0.3 --out results
genbounds plan probs.npy --metric is --half-width 0.1
genbounds plan real.npy gan.npy vae.npy diffusion.npy --confidence 0.95
"""


@command(
    "[REFERENCE] PILOT... --half-width H | --gap G | --confidence C",
    EXAMPLES,
)
def plan(
    files: list[Path] = argument(
        "FILE",
        "Features of the real data (the reference) that will be used, then a pilot: samples of "
        "one model, of two that are to be told apart, or of all from which `genbounds select` is "
        "to find the best; as for `genbounds score`. For is, vendi, rke and mean only the pilot.",
    ),
    *,
    half_width: str | None = option(
        "H|P%",
        "Half the width that the interval may have: a number in units of the score, or a share "
        "of the pilot's score, such as 10%.",
    ),
    gap: str | None = option(
        "G|P%",
        "Difference of two models that is to be found, as for --half-width; a share is of the "
        "first pilot's score.",
    ),
    confidence: float | None = option(
        "C", "Confidence with which `genbounds select` is to certify the best of the models."
    ),
    power: float = option(
        "P",
        "Probability with which the difference is found, or the best is certified.",
        default=0.8,
    ),
    tolerance: float = option(
        "E",
        "With --confidence: as for select. A model counts as best if no other is better by more "
        "than this.",
        default=0.0,
    ),
    limit: int | None = option(
        "N",
        "With --confidence: the most samples that a model can give. For models that are files: "
        "the rows of the shortest.",
    ),
    judging: Planning,
) -> Answer:
    """Say how many samples you need: for a narrow interval, to find a difference or the best model.

    Exit status 0: so many; 1: no number suffices with this reference, or (with --confidence) not
    with that probability.
    """
    from genbounds.cli._inputs import Models, choose_metric
    from genbounds.cli._options import renamed
    from genbounds.report._decisions import width_table
    from genbounds.report._selections import pilot_table
    from genbounds.select._plan import plan_selection
    from genbounds.validation import check_confidence, check_power

    level, verbose = judging.level, judging.verbose
    spec = choose_metric(judging)
    spec.check_growing("planning")
    if sum(target is not None for target in (half_width, gap, confidence)) != 1:
        raise gb.InputError("pass one target: --half-width, --gap or --confidence.")
    if confidence is None and (tolerance or limit is not None):
        name = "--tolerance" if tolerance else "--limit"
        raise gb.InputError("is for --confidence: leave it out.", argument=name)
    if confidence is None:
        gb.decisions.check_targets(half_width=half_width, gap=gap, power=power, level=level)
    else:
        check_confidence("confidence", confidence)
        check_power(power)
    counts = [1, 2] if confidence is None else []
    read = Models.read(files, spec, judging, counts, least=2)
    pilot = {"pilot": next(iter(read.models.values())).path}
    found: Any
    with renamed(pilot), read.named():
        estimates, prepared = read.estimates()
        what = estimates, read.samples, prepared
        if confidence is None:
            found = gb.decisions.plan_from(
                *what, half_width=half_width, gap=gap, power=power, level=level
            )
            table, page = width_table(found), partial(gb.report.plan_page, found)
        else:
            found = plan_selection(
                *what, confidence=confidence, power=power, tolerance=tolerance, limit=limit
            )
            table, page = pilot_table(found), partial(gb.report.selection_plan_page, found)
    return Answer(
        document=found.to_dict(),
        show=lambda: show(found, table, verbose=verbose),
        page=page,
        negative=not found.feasible,
    )
