"""`genbounds modes`: which kinds of rows a model misses, invents, makes too rarely or too often."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import genbounds as gb
from genbounds._text import interval, percent, shown
from genbounds.cli._command import Answer, command
from genbounds.cli._options import LEVEL, SEED, Judging, argument, option
from genbounds.cli._terminal import print_remarks, print_table, progress, say

EXAMPLES = """
genbounds modes real.safetensors gan.safetensors --out results
genbounds modes real.npy a.npy b.npy --json
genbounds modes real.npy gan.npy --images real/ --images gan.zip --out results
genbounds modes photos/ samples/ --encoder dinov2 --out results
"""


@command("REAL FAKE...", EXAMPLES)
def modes(
    files: list[Path] = argument(
        "FILE",
        "Features of the real data, then of one or several models, as for `genbounds score`. "
        "Each model is held against the real data.",
    ),
    *,
    images: list[Path] | None = option(
        "PATH",
        "Folder, archive or array of the images that a file is of, for the page: once for every "
        "file, in their order.",
        show_default="as the files say",
    ),
    level: float = LEVEL,
    seed: int = SEED,
    judging: Judging,
) -> Answer:
    """Find kinds of rows that a model misses, invents, makes too rarely or too often.

    One half of the rows finds regions, the other half is counted: a false claim about any region
    of a model has probability 5 % at most (--level).
    """
    from genbounds.cli._inputs import Models, reads_rows
    from genbounds.cli._pictures import check_images, pictures_for_page
    from genbounds.validation import check_count, check_open_unit

    check_open_unit("--level", level)
    check_count("--seed", seed, minimum=0)
    if len(files) < 2:
        raise gb.InputError("modes takes a file of real data and at least one model; got one file.")
    out = judging.output.out
    check_images(images, out, files=len(files))
    read = Models.read(files, reads_rows("modes"), judging)
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
        show=lambda: _show(found),
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


def _show(found: dict[str, gb.Modes]) -> None:
    for number_of, (name, result) in enumerate(found.items()):
        say(*[""] * (number_of > 0), f"{shown(name)}: {result}")
        rows = [
            (
                region.kind,
                percent(round(region.share_fake, 4)),
                percent(round(region.share_real, 4)),
                interval(region.low, region.high),
                region.pvalue_adjusted,
                ", ".join(map(str, region.rows["fake" if region.low > 1.0 else "real"][:3])),
            )
            for region in result.found
        ]
        if rows:
            columns = ("Kind", "Generated", "Real", "Ratio", "p", "Rows that show it")
            print_table(gb.report.Table(columns, rows))
        print_remarks({}, warnings=result.warnings, verbose=False)
