"""`genbounds mixture`: which mixture of models is best, and does it beat every single one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import genbounds as gb
from genbounds._text import percent
from genbounds.cli._command import Answer, command
from genbounds.cli._options import (
    LEVEL,
    REFERENCE,
    SEED,
    KernelOptions,
    VerboseJudging,
    argument,
    bandwidth_option,
    metric_option,
    mixture_metrics,
    option,
)
from genbounds.cli._terminal import print_remarks, print_table, say

EXAMPLES = """
genbounds mixture real.npy gan.npy diffusion.npy vae.npy
genbounds mixture real.npz a.npz b.npz --metric cmmd --groups prompts
genbounds mixture gan.npy vae.npy --metric rke --reference real.npy --json
"""


@command("[REFERENCE] MODEL MODEL...", EXAMPLES)
def mixture(
    files: list[Path] = argument(
        "FILE",
        "Features of the real data (the reference), then of two models or more, as for "
        "`genbounds score`. For rke every file is a model.",
    ),
    *,
    reference: Path | None = REFERENCE,
    metric: str = metric_option(mixture_metrics, "kid"),
    bandwidth: float | None = bandwidth_option(),
    level: float = LEVEL,
    folds: int | None = option(
        "J", "Parts of the rows, between which weights are judged. Not for fd.", show_default="5"
    ),
    seed: int = SEED,
    judging: VerboseJudging,
) -> Answer:
    """Find the mixture of models with the best score, and whether it beats every single model.

    Exit status 0: it does, at the confidence level; 1: that is not certified.
    """
    from genbounds.cli._inputs import Models, choose_metric
    from genbounds.mixtures import check_mixture

    options = KernelOptions(bandwidth=bandwidth)
    judging = replace(judging, reference=reference, metric=metric, options=options, level=level)
    spec = choose_metric(judging)
    check_mixture(spec, level=level, folds=folds, seed=seed)
    read = Models.read(files, spec, judging, least=2)
    with read.named():
        found = gb.mixture(
            read.samples,
            read.real,
            metric=spec.name,
            level=level,
            folds=folds,
            seed=seed,
            options=read.options,
        ).warned(*read.doubts)
    return Answer(
        document=found.to_dict(),
        show=lambda: _show(found, spec, verbose=judging.verbose),
        page=lambda: gb.report.mixture_page(found),
        negative=not found.certified,
    )


def _show(found: gb.Mixture, spec: gb.estimators.MetricSpec, *, verbose: bool) -> None:
    from genbounds.report._selections import share_table

    better = "larger" if spec.higher_is_better else "smaller"
    say(f"{spec.title} ({better} is better), {percent(found.level)} confidence intervals", "")
    print_table(share_table(found))
    say("", f"{found.verdict}.")
    print_remarks({"mixture": found.score}, verbose=verbose)
