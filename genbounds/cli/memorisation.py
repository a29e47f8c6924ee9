"""`genbounds memorisation`: does a model copy its training data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import genbounds as gb
from genbounds._text import display
from genbounds.cli._command import Answer, command
from genbounds.cli._options import VerboseJudging, argument, option
from genbounds.cli._terminal import print_remarks, print_table, say

EXAMPLES = """
genbounds memorisation gan.npy --train train.npy --heldout heldout.npy
genbounds memorisation gan.npz --train a.npz --heldout b.npz --groups clips
genbounds memorisation g.npy --train t.npy --heldout h.npy \\
  --images g.zip --images t/ --out results
"""

LISTED = 10
"""Suspects that are printed; --json and --out give all."""


@command("FAKE --train FILE --heldout FILE", EXAMPLES)
def memorisation(
    fake: Path = argument("FAKE", "Features of generated samples."),
    *,
    train: Path = option("FILE", "Features of what the model was trained on.", default=...),
    heldout: Path = option(
        "FILE",
        "Features of real samples that it was not trained on: split off at random, best as many "
        "as were trained on.",
        default=...,
    ),
    images: list[Path] | None = option(
        "PATH",
        "Folder, archive or array of the images that a file is of, for the page: given twice, of "
        "the generated and of the training images.",
        show_default="as the files say",
    ),
    level: float = option("L", "Confidence level of the lower bounds.", default=0.95),
    fdr: float = option(
        "Q", "Share of the listed rows that may be wrong, on average.", default=0.1
    ),
    closer: float = option(
        "R",
        "A near copy is at most so many times as far from a real row as from the fifth.",
        default=0.6,
    ),
    judging: VerboseJudging,
) -> Answer:
    """Test whether a model copies its training data; count and list what is copied.

    Exit status 0: the test ran, whatever it found.
    """
    from genbounds.cli._encoding import open_encoder
    from genbounds.cli._inputs import check_widths, read_inputs, reads_rows
    from genbounds.cli._options import renamed
    from genbounds.cli._pictures import check_images, pictures_for_page
    from genbounds.origins import check_same_encoder

    reading, out = judging.reading, judging.output.out
    spec = reads_rows("memorisation")
    check_images(images, out, files=2, each="the generated and once for the training images")
    # How generated rows depend on one another does not matter.
    alone = replace(reading, groups=None, strata=None, iid=True)
    with open_encoder(reading, [train, heldout, fake], out=out) as encoder:
        real = read_inputs(None, [train, heldout], spec, reading, encoder)
        (made,) = read_inputs(None, [fake], spec, alone, encoder)
    inputs = dict(zip(("train", "heldout", "fake"), (*real, made), strict=True))
    check_same_encoder({display(file.path): file.origin for file in inputs.values()})
    pictures = pictures_for_page([made, inputs["train"]], images, out)
    check_widths({file.path: file.shape for file in inputs.values()})
    with renamed({name: file.path for name, file in inputs.items()}):
        samples = {name: file.sample for name, file in inputs.items()}
        found = gb.explain.memorisation(**samples, level=level, fdr=fdr, closer=closer)
    return Answer(
        document=found.to_dict(),
        show=lambda: _show(found, verbose=judging.verbose),
        page=lambda: gb.report.memorisation_page(found, fake=pictures[0], train=pictures[1]),
    )


def _show(found: gb.Memorisation, *, verbose: bool) -> None:
    from genbounds.report._rows import suspect_table

    say(str(found))
    if found.suspects:
        say("")
        print_table(suspect_table(found, LISTED))
        if len(found.suspects) > LISTED:
            say(f"and {len(found.suspects) - LISTED} more (--json, --out)")
    print_remarks(
        {},
        warnings=found.warnings,
        assumptions=found.assumptions if verbose else (),
        verbose=verbose,
    )
