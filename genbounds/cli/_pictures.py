"""Pictures of rows for the pages: of `--images`, or of what a file says that it was made from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import genbounds as gb
from genbounds.cli._inputs import Input

if TYPE_CHECKING:
    from genbounds.features.thumbnails import Pictures


def check_images(
    images: Sequence[Path] | None, out: Path | None, *, files: int, each: str = "every file"
) -> None:
    """Refuse pictures that no page would show, or not one source for each file.

    Raises
    ------
    InputError
    """
    if not images:
        return
    if len(images) != files:
        raise gb.InputError(
            f"is given once for {each}, {files} times; got {len(images)}.", "--images"
        )
    if out is None:
        raise gb.InputError("is for the page: add --out.", "--images")


def pictures_for_page(
    inputs: Sequence[Input], images: Sequence[Path] | None, out: Path | None
) -> list[Pictures]:
    """Find the pictures of every file; none without a page.

    Call it before anything is computed: images that do not fit are a mistake in the command.

    Raises
    ------
    InputError
        If images that were named do not fit.
    """
    if out is None:
        return []
    from genbounds.features.thumbnails import pictures_of

    found = []
    where: list[Path | None] = [*images] if images else [None] * len(inputs)
    for file, path in zip(inputs, where, strict=True):
        pictures = pictures_of(file.path, file.shape[0], path)
        if path is not None and pictures.problem:
            raise gb.InputError(f"{pictures.problem.removesuffix('.')}.", "--images")
        found.append(pictures)
    return found
