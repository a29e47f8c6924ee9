"""`genbounds gate`: may a candidate replace a baseline."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

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
    Kernel,
    Level,
    Logits,
    Metric,
    Neighbours,
    Order,
    Out,
    Precision,
    Reference,
    ReferenceExact,
    ReferenceN,
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
    say,
)
from genbounds.decisions import Margin, check_gate, decide
from genbounds.estimators import estimate_each, prepare_all
from genbounds.origins import origin_warnings
from genbounds.validation import check_choice

EXAMPLES = """Examples:

\b
genbounds gate real.npy gan-old.npy gan-new.npy --margin 2%
genbounds gate real.npy baseline.npz gan-new.npy --margin 0.5 --inconclusive pass
genbounds gate real.npy gan-old.npz gan-new.npz --groups prompts --margin 2% --out results
genbounds gate old-probs.npy new-probs.npy --metric is --margin 1% --equivalence
"""

NEGATIVE = 1
INCONCLUSIVE = "fail|pass"


# Long because every option is declared in its signature.
def gate(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            help="Features of the real data (the reference), of the baseline and of the candidate, "
            "in this order, as for `genbounds score`; for fd the baseline may be a file of "
            "statistics (.npz with mu, sigma and n). For is, vendi, rke and mean only the "
            "baseline and the candidate.",
            show_default=False,
        ),
    ],
    margin: Annotated[
        str,
        typer.Option(
            "--margin",
            metavar="M|P%",
            help="By how much the candidate may be worse: a number in units of the score, or a "
            "share of the baseline's score, such as 2%.",
            show_default=False,
        ),
    ],
    reference: Reference = None,
    metric: Metric = "fd",
    equivalence: Annotated[
        bool,
        typer.Option(
            "--equivalence", help="The candidate must not be better by more than that either."
        ),
    ] = False,
    inconclusive: Annotated[
        str,
        typer.Option(
            "--inconclusive",
            metavar=INCONCLUSIVE,
            autocompletion=offer(INCONCLUSIVE),
            help="Exit status where the samples do not tell: fail (1) or pass (0).",
        ),
    ] = "fail",
    kernel: Kernel = None,
    bandwidth: Bandwidth = None,
    order: Order = None,
    k: Neighbours = None,
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
    """Decide whether a candidate is worse than a baseline by no more than a margin.

    Exit status 0: it passes; 1: it fails, or the samples do not tell (--inconclusive).
    """
    spec = choose_metric(metric, logits=logits)
    check_choice("--inconclusive", inconclusive, INCONCLUSIVE.split("|"))
    chosen = metric_options(
        spec, {"kernel": kernel, "bandwidth": bandwidth, "order": order, "k": k}
    )
    real, models = split_reference(files, reference, spec, [2])
    drawing = Drawing(
        groups=groups,
        strata=strata,
        iid=iid,
        reference_n=reference_n,
        reference_exact=reference_exact,
    )
    how = {"weights": weights, "device": device, "precision": precision}
    with files_named({}, None):
        wanted = Margin.of(margin)
        check_gate(wanted, level=level, equivalence=equivalence)
    with interruptible("run the same command again."):
        inputs = read_models(
            models, real, spec, logits=logits, drawing=drawing, encoder=encoder, how=how, out=out
        )
        known = inputs.pop(0) if real is not None else None
        named = {one.name: one for one in reversed(inputs)}  # the candidate first
        samples = {name: one.sample for name, one in named.items()}
        doubts = doubts_of(spec, named, known)
        with files_named(named, known):
            prepared = prepare_all(spec, samples, None if known is None else known.sample, chosen)
            found = estimate_each(spec, prepared, samples)
            verdict = decide(
                {name: estimate.warned(*doubts[name]) for name, estimate in found.items()},
                margin=wanted,
                metric=spec.name,
                level=level,
                equivalence=equivalence,
                warnings=origin_warnings({one.name: one.origin for one in inputs}),
            )
        keep(out, verdict.to_dict())
        if out is not None:
            from genbounds.report import gate_page

            keep_page(out, gate_page(verdict))
    if as_json:
        print_json(verdict.to_dict())
    else:
        say(str(verdict))
        if verbose:
            scores = {
                name: replace(score, assumptions=()) for name, score in verdict.scores.items()
            }
            print_remarks(
                scores, warnings=verdict.warnings, assumptions=verdict.assumptions, verbose=True
            )
    if not verdict.accepted(inconclusive):
        raise typer.Exit(NEGATIVE)
