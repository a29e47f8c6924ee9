"""`genbounds modes`: which kinds of rows a model misses, invents, makes too rarely or too often."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from genbounds._text import interval, number, percent, shown
from genbounds.cli._input import Drawing, Input
from genbounds.cli._models import doubts_of, files_named, read_models, reads_rows
from genbounds.cli._options import (
    AsJson,
    Device,
    EncoderName,
    Groups,
    Iid,
    Level,
    Out,
    Precision,
    Seed,
    Strata,
    Weights,
)
from genbounds.cli._pictures import check_images, pictures_for_page
from genbounds.cli._terminal import (
    interruptible,
    keep,
    keep_page,
    print_json,
    print_remarks,
    print_table,
    progress,
    say,
)
from genbounds.validation import InputError, check_count, check_open_unit

if TYPE_CHECKING:
    from genbounds.explain import Modes
    from genbounds.features.thumbnails import Pictures

EXAMPLES = """Examples:

\b
genbounds modes real.safetensors gan.safetensors --out results
genbounds modes real.npy a.npy b.npy --json
genbounds modes real.npy gan.npy --images photos/ --images gan-samples.zip --out results
genbounds modes photos/ samples/ --encoder timm:vit_small_patch14_dinov2 --out results
"""

READ_AS = reads_rows("modes")


# Long because every option is declared in its signature.
def modes(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            help="Features of the real data, then of one or several models, as for "
            "`genbounds score`. Each model is held against the real data.",
            show_default=False,
        ),
    ],
    images: Annotated[
        list[Path] | None,
        typer.Option(
            "--images",
            metavar="PATH",
            help="Folder, archive or array of the images that a file is of, for the page: once "
            "for every file, in their order.",
            show_default="as the files say",
        ),
    ] = None,
    level: Level = 0.95,
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
) -> None:
    """Find kinds of rows that a model misses, invents, makes too rarely or too often.

    One half of the rows finds regions, the other half is counted: a false claim about any region
    of a model has probability 5 % at most (--level).
    """
    check_open_unit("--level", level)
    check_count("--seed", seed, minimum=0)
    if len(files) < 2:
        raise InputError("modes takes a file of real data and at least one model; got one file.")
    check_images(images, out, files=len(files))
    drawing = Drawing(groups=groups, strata=strata, iid=iid)
    how = {"weights": weights, "device": device, "precision": precision}
    with interruptible("run the same command again."):
        real, *models = read_models(
            files[1:], files[0], READ_AS, logits=False, drawing=drawing, encoder=encoder, how=how,
            out=out,
        )  # fmt: skip
        pictures = pictures_for_page([real, *models], images, out)
        found: dict[str, Modes] = {}
        with progress("models") as advance:
            for done, model in enumerate(models):
                advance(done, len(models), model.name)
                with files_named({model.name: model}, real):
                    found[model.name] = _of_model(model, real, level=level, seed=seed)
        document = _document(found, level=level, seed=seed)
        keep(out, document)
        if out is not None:
            keep_page(out, _page(found, models, pictures))
    if as_json:
        print_json(document)
    else:
        _print(found)


def _of_model(model: Input, real: Input, *, level: float, seed: int) -> Modes:
    from genbounds.explain import modes as modes_of

    try:
        found = modes_of(model.sample, real.sample, level=level, seed=seed)
    except InputError as error:
        raise error.of_model(model.name) if error.argument == "fake" else error from error
    doubts = doubts_of(READ_AS, {model.name: model}, real)[model.name]
    return replace(found, warnings=tuple(dict.fromkeys((*doubts, *found.warnings))))


def _document(found: dict[str, Modes], *, level: float, seed: int) -> dict[str, Any]:
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


def _page(found: dict[str, Modes], models: list[Input], pictures: list[Pictures]) -> Any:
    from genbounds.report import modes_page

    real, *others = pictures
    fake = {model.name: held for model, held in zip(models, others, strict=True)}
    return modes_page(found, fake=fake, real=real)


def _print(found: dict[str, Modes]) -> None:
    for number_of, (name, result) in enumerate(found.items()):
        say(*[""] * (number_of > 0), f"{shown(name)}: {result}")
        rows = [
            (
                region.kind,
                percent(round(region.share_fake, 4)),
                percent(round(region.share_real, 4)),
                interval(region.low, region.high),
                number(region.pvalue_adjusted),
                ", ".join(map(str, region.rows["fake" if region.low > 1.0 else "real"][:3])),
            )
            for region in result.found
        ]
        if rows:
            columns = ("Kind", "Generated", "Real", "Ratio", "p", "Rows that show it")
            print_table(columns, rows, numeric=("Generated", "Real", "p"))
        print_remarks({}, warnings=result.warnings, verbose=False)
