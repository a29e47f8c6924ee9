"""`genbounds plan`: how many samples are needed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from genbounds._text import number, percent
from genbounds.cli._input import Drawing
from genbounds.cli._inputs import choose_metric, renamed
from genbounds.cli._models import files_named, metric_options, read_models, split_reference
from genbounds.cli._options import (
    AsJson,
    Bandwidth,
    Device,
    EncoderName,
    Groups,
    Iid,
    Kernel,
    Level,
    Logits,
    Metric,
    Order,
    Out,
    Precision,
    Reference,
    ReferenceExact,
    ReferenceN,
    Strata,
    Verbose,
    Weights,
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
from genbounds.decisions import check_targets, plan_from
from genbounds.estimators import estimate_each, prepare_all
from genbounds.validation import InputError

EXAMPLES = """Examples:

\b
genbounds plan real.npy pilot.npy --half-width 0.5
genbounds plan real.npy gan-a.npy gan-b.npy --gap 0.3 --power 0.9
genbounds plan real.npy gan-a.npz gan-b.npz --groups prompts --gap 0.3 --out results
genbounds plan probs.npy --metric is --half-width 0.1
"""

NEGATIVE = 1


# Long because every option is declared in its signature.
def plan(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            help="Features of the real data (the reference) that will be used, then a pilot: "
            "samples of one model, or of two that are to be told apart; as for `genbounds score`. "
            "For is, vendi, rke and mean only the pilot.",
            show_default=False,
        ),
    ],
    half_width: Annotated[
        float | None,
        typer.Option(
            "--half-width",
            metavar="H",
            help="Half the width that the interval may have, in units of the score.",
            show_default=False,
        ),
    ] = None,
    gap: Annotated[
        float | None,
        typer.Option(
            "--gap",
            metavar="G",
            help="Difference of two models that is to be found.",
            show_default=False,
        ),
    ] = None,
    power: Annotated[
        float, typer.Option("--power", metavar="P", help="Probability with which it is found.")
    ] = 0.8,
    reference: Reference = None,
    metric: Metric = "fd",
    kernel: Kernel = None,
    bandwidth: Bandwidth = None,
    order: Order = None,
    level: Level = 0.95,
    encoder: EncoderName = None,
    weights: Weights = None,
    device: Device = "cpu",
    precision: Precision = "float32",
    logits: Logits = False,
    groups: Groups = None,
    strata: Strata = None,
    iid: Iid = False,
    reference_n: ReferenceN = None,
    reference_exact: ReferenceExact = False,
    out: Out = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Say how many samples an interval, or finding a difference, takes.

    Exit status 0: so many; 1: no number suffices with this reference.
    """
    spec = choose_metric(metric, logits=logits)
    spec.check_growing("planning")
    if (half_width is None) == (gap is None):
        raise InputError("pass one target: --half-width or --gap.")
    with files_named({}, None):
        check_targets(half_width=half_width, gap=gap, power=power, level=level)
    chosen = metric_options(spec, {"kernel": kernel, "bandwidth": bandwidth, "order": order})
    real, models = split_reference(files, reference, spec, [1, 2])
    drawing = Drawing(
        groups=groups,
        strata=strata,
        iid=iid,
        reference_n=reference_n,
        reference_exact=reference_exact,
    )
    how = {"weights": weights, "device": device, "precision": precision}
    with interruptible("run the same command again."):
        inputs = read_models(
            models, real, spec, logits=logits, drawing=drawing, encoder=encoder, how=how, out=out
        )
        known = inputs.pop(0) if real is not None else None
        named = {one.name: one for one in inputs}
        samples = {name: one.sample for name, one in named.items()}
        pilot = {"pilot": next(iter(named.values())).path}
        with renamed(pilot), files_named(named, known):
            prepared = prepare_all(spec, samples, None if known is None else known.sample, chosen)
            found = plan_from(
                estimate_each(spec, prepared, samples),
                samples,
                prepared,
                half_width=half_width,
                gap=gap,
                power=power,
                level=level,
            )
        keep(out, found.to_dict())
        if out is not None:
            from genbounds.report import plan_page

            keep_page(out, plan_page(found))
    if as_json:
        print_json(found.to_dict())
    else:
        say(str(found), "")
        rows = found.rows()
        columns = ("n", "Half-width", *["Power"] * (found.gap is not None))
        table = [
            (number(n), number(width), *([] if chance is None else [percent(round(chance, 3))]))
            for n, width, chance in rows
        ]
        print_table(columns, table, numeric=columns)
        print_remarks({}, warnings=found.warnings, assumptions=found.assumptions, verbose=verbose)
    if not found.feasible:
        raise typer.Exit(NEGATIVE)
