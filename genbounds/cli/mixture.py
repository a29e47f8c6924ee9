"""`genbounds mixture`: which mixture of models is best, and does it beat every single one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from genbounds._text import interval, number, percent, shown
from genbounds.cli._input import Drawing
from genbounds.cli._inputs import choose_metric
from genbounds.cli._models import (
    doubts_of,
    files_named,
    metric_options,
    read_models,
    split_reference,
)
from genbounds.cli._options import (
    AsJson,
    Bandwidth,
    Device,
    EncoderName,
    Groups,
    Iid,
    Level,
    Out,
    Precision,
    Reference,
    Seed,
    Strata,
    Verbose,
    Weights,
    offer,
)
from genbounds.cli._terminal import (
    interruptible,
    keep,
    keep_page,
    print_json,
    print_remarks,
    print_table,
    say,
)
from genbounds.estimators import metric_spec
from genbounds.mixtures import MIXTURE_METRICS, Mixture, check_mixture
from genbounds.mixtures import mixture as find_mixture

EXAMPLES = """Examples:

\b
genbounds mixture real.npy gan.npy diffusion.npy vae.npy
genbounds mixture real.npy gan.npz diffusion.npz --metric cmmd --groups prompts --out results
genbounds mixture gan.npy diffusion.npy --metric rke --reference real.npy --json
"""

NEGATIVE = 1
METRICS = "|".join(MIXTURE_METRICS)


def mixture(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            help="Features of the real data (the reference), then of two models or more, as for "
            "`genbounds score`. For rke every file is a model.",
            show_default=False,
        ),
    ],
    reference: Reference = None,
    metric: Annotated[
        str,
        typer.Option(
            "--metric",
            metavar="NAME",
            autocompletion=offer(METRICS),
            help="Score by which the models are judged: one of those listed below.",
        ),
    ] = "kid",
    bandwidth: Bandwidth = None,
    level: Level = 0.95,
    folds: Annotated[
        int | None,
        typer.Option(
            "--folds",
            metavar="J",
            help="Parts of the rows, between which weights are judged. Not for fd.",
            show_default="5",
        ),
    ] = None,
    seed: Seed = 0,
    encoder: EncoderName = None,
    weights: Weights = None,
    device: Device = "cpu",
    precision: Precision = "float32",
    groups: Groups = None,
    strata: Strata = None,
    iid: Iid = False,
    out: Out = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Find the mixture of models with the best score, and whether it beats every single model.

    Exit status 0: it does, at the confidence level; 1: that is not certified.
    """
    spec = choose_metric(metric)
    with files_named({}, None):
        check_mixture(spec, level=level, folds=folds, seed=seed)
    chosen = metric_options(spec, {"bandwidth": bandwidth})
    reference, models = split_reference(files, reference, spec, None)
    drawing = Drawing(groups=groups, strata=strata, iid=iid)
    how = {"weights": weights, "device": device, "precision": precision}
    with interruptible("run the same command again."):
        inputs = read_models(
            models,
            reference,
            spec,
            logits=False,
            drawing=drawing,
            encoder=encoder,
            how=how,
            out=out,
        )
        known = inputs.pop(0) if reference is not None else None
        read = {one.name: one for one in inputs}
        with files_named(read, known):
            found = find_mixture(
                {name: one.sample for name, one in read.items()},
                None if known is None else known.sample,
                metric=spec.name,
                level=level,
                folds=folds,
                seed=seed,
                options=chosen,
            )
        doubts = [doubt for every in doubts_of(spec, read, known).values() for doubt in every]
        found = found.warned(*dict.fromkeys(doubts))
        keep(out, found.to_dict())
        if out is not None:
            from genbounds.report import mixture_page

            keep_page(out, mixture_page(found))
    if as_json:
        print_json(found.to_dict())
    else:
        _print(found, title=spec.title, verbose=verbose)
    if not found.certified:
        raise typer.Exit(NEGATIVE)


def _print(found: Mixture, *, title: str, verbose: bool) -> None:
    better = "larger" if metric_spec(found.metric).higher_is_better else "smaller"
    say(f"{title} ({better} is better), {percent(found.level)} confidence intervals", "")
    rows = [("mixture", "", found.score)]
    rows += [
        (shown(name), percent(round(found.weights[name], 3)), found.scores[name])
        for name in sorted(found.weights, key=lambda name: -found.weights[name])
    ]
    print_table(
        ["Model", "Share", "Score", "Interval"],
        [
            (name, share, number(score.value), interval(score.low, score.high))
            for name, share, score in rows
        ],
        numeric=("Share", "Score"),
    )
    say("", f"{found.verdict}.")
    print_remarks(
        {"mixture": found.score},
        warnings=(),
        assumptions=(),
        verbose=verbose,
    )
