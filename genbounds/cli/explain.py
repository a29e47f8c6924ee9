"""`genbounds memorisation` and `modes`: which rows a model copies, misses or invents."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import genbounds as gb
from genbounds._text import display, shown
from genbounds.cli import _options as opt
from genbounds.cli._command import Answer, command, renamed
from genbounds.cli._terminal import print_remarks, print_table, progress, say

MEMORISATION_EXAMPLES = """
genbounds memorisation gan.npy --train train.npy --heldout heldout.npy
genbounds memorisation gan.npz --train a.npz --heldout b.npz --groups clips
genbounds memorisation g.npy --train t.npy --heldout h.npy \\
  --images g.zip --images t/ --out results
"""

LISTED = 10
"""Suspects that are printed; --json and --out give all."""


@command("FAKE --train FILE --heldout FILE", MEMORISATION_EXAMPLES)
def memorisation(
    fake: Path = opt.argument("FAKE", "Features of generated samples."),
    *,
    train: Path = opt.option("FILE", "Features of what the model was trained on.", default=...),
    heldout: Path = opt.option(
        "FILE",
        "Features of real samples that it was not trained on: split off at random, best as many "
        "as were trained on.",
        default=...,
    ),
    images: list[Path] | None = opt.images_option(
        "twice, of the generated and of the training images"
    ),
    level: float = opt.option("L", "Confidence level of the lower bounds.", default=0.95),
    fdr: float = opt.option(
        "Q", "Share of the listed rows that may be wrong, on average.", default=0.1
    ),
    closer: float = opt.option(
        "R",
        "A near copy is at most so many times as far from a real row as from the fifth.",
        default=0.6,
    ),
    judging: opt.VerboseJudging,
) -> Answer:
    """Test whether a model copies its training data; count and list what is copied.

    Exit status 0: the test ran, whatever it found.
    """
    from genbounds.cli._inputs import check_widths, read_inputs, reads_rows
    from genbounds.cli._media import check_images, open_encoder, pictures_for_page
    from genbounds.origins import check_same_encoder

    reading, out = judging.reading, judging.output.out
    spec = reads_rows("memorisation", judging)
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
        show=lambda: _show_memorisation(found, verbose=judging.verbose),
        page=lambda: gb.report.memorisation_page(found, fake=pictures[0], train=pictures[1]),
    )


def _show_memorisation(found: gb.Memorisation, *, verbose: bool) -> None:
    from genbounds.report._rows import suspect_table

    say(str(found))
    if found.suspects:
        say("")
        print_table(suspect_table(found, LISTED))
    if len(found.suspects) > LISTED:
        say(f"and {len(found.suspects) - LISTED} more (--json, --out)")
    print_remarks({}, found if verbose else replace(found, assumptions=()), verbose=verbose)


# --- modes ----------------------------------------------------------------------------------------

MODES_EXAMPLES = """
genbounds modes real.safetensors gan.safetensors --out results
genbounds modes real.npy a.npy b.npy --json
genbounds modes real.npy gan.npy --images real/ --images gan.zip --out results
genbounds modes photos/ samples/ --encoder dinov2 --out results
"""


@command("REAL FAKE...", MODES_EXAMPLES)
def modes(
    files: list[Path] = opt.argument(
        "FILE",
        "The real data, then one or several models, each held against them; as for `genbounds "
        "score`.",
    ),
    *,
    images: list[Path] | None = opt.images_option("once for every file, in their order"),
    level: float = opt.LEVEL,
    seed: int = opt.SEED,
    judging: opt.Judging,
) -> Answer:
    """Find kinds of rows that a model misses, invents, makes too rarely or too often.

    One half of the rows finds regions, the other half is counted: a false claim about any region
    of a model has probability 5 % at most (--level).
    """
    from genbounds.cli._inputs import Models, reads_rows
    from genbounds.cli._media import check_images, pictures_for_page
    from genbounds.validation import check_count, check_open_unit

    check_open_unit("--level", level)
    check_count("--seed", seed, minimum=0)
    if len(files) < 2:
        raise gb.InputError("modes takes a file of real data and at least one model; got one file.")
    out = judging.output.out
    check_images(images, out, files=len(files))
    read = Models.read(files, reads_rows("modes", judging), judging)
    pictures = pictures_for_page(read.inputs, images, out)
    found: dict[str, gb.Modes] = {}
    with progress("models") as advance:
        for done, (name, model) in enumerate(read.models.items()):
            advance(done, len(read.models), name)
            with read.named(name):
                result = gb.explain.modes(model.sample, read.real, level=level, seed=seed)
            warnings = dict.fromkeys((*model.doubts, *result.warnings))
            found[name] = replace(result, warnings=tuple(warnings))
    return Answer(
        document=_document(found, level=level, seed=seed),
        show=lambda: _show_modes(found),
        page=lambda: gb.report.modes_page(
            found, fake=dict(zip(found, pictures[1:], strict=True)), real=pictures[0]
        ),
    )


def _document(found: dict[str, gb.Modes], *, level: float, seed: int) -> dict[str, Any]:
    """Return all regions as one list, and what is known of each model."""
    documents = {name: result.to_dict() for name, result in found.items()}
    regions = [
        {"model": name, **region}
        for name, document in documents.items()
        for region in document.pop("regions")
    ]
    return {
        "level": level,
        "seed": seed,
        "regions": regions,
        "rows": [{"model": name, **document} for name, document in documents.items()],
    }


def _show_modes(found: dict[str, gb.Modes]) -> None:
    from genbounds.report._rows import region_table

    for number_of, (name, result) in enumerate(found.items()):
        say(*[""] * (number_of > 0), f"{shown(name)}: {result}")
        if result.found:
            print_table(region_table(result, result.found), without=["Region"])
        print_remarks({}, warnings=result.warnings, verbose=False)
