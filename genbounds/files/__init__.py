"""Reading feature, posterior and statistics files; writing results.

Large arrays are copied or unpacked, block by block, into an unnamed scratch file and mapped from
there: memory does not grow with the number of rows, and what another program does to a file
meanwhile changes no result. Nothing is ever unpickled. Every failure is one `InputError` that names
the file, says what is wrong and what to do.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds._process import gather as gather
from genbounds._text import display as display
from genbounds.files._content import ITEMS_KEY as ITEMS_KEY
from genbounds.files._content import LABEL_KEYS, Labels, Statistics
from genbounds.files._content import USUAL_LABELS as USUAL_LABELS
from genbounds.files._content import Contents as Contents
from genbounds.files._content import check_bomb as check_bomb
from genbounds.files._formats import KNOWN_PACKS as KNOWN_PACKS
from genbounds.files._formats import SAFE as SAFE
from genbounds.files._formats import library as library
from genbounds.files._formats import open_zip as open_zip
from genbounds.files._open import FORMATS, Path, Paths
from genbounds.files._open import atomic_write as atomic_write
from genbounds.files._open import contents_of as contents_of
from genbounds.files._open import read_header as read_header
from genbounds.files._open import reason_of as reason_of
from genbounds.files._open import shards_of as shards_of
from genbounds.files._open import written_aside as written_aside
from genbounds.files._write import check_name as check_name
from genbounds.files._write import clear as clear
from genbounds.files._write import locked as locked
from genbounds.files._write import open_features_writer, write_statistics
from genbounds.validation import InputError

# Imports under their own name are for the rest of the package, and no part of the interface.
__all__ = [
    "FORMATS",
    "Labels",
    "Statistics",
    "open_features_writer",
    "read",
    "read_features",
    "read_images",
    "read_labels",
    "read_metadata",
    "read_statistics",
    "write_statistics",
]

_log = logging.getLogger("genbounds.files")


def read(path: Paths) -> NDArray[Any] | Statistics:
    """Read a file of features (or posteriors), or of statistics: whichever it holds.

    Parameters
    ----------
    path : path-like or list of path-like
        A file; a list of files, or a pattern such as ``"real-*.npy"``: shards of one sample, whose
        rows follow one another in the order of the list, or of their names with numbers by value,
        x-2 before x-10 (the parts of an extraction in that of their items).
        ``.npy``; ``.npz``, ``.safetensors`` or ``.pt`` with an array called ``features``, ``reps``,
        ``feats`` or ``arr_0``, or with the statistics ``mu``, ``sigma`` and, where known, ``n``; a
        ``.pt`` that is one tensor; ``.parquet`` with a column of lists ``features`` or ``reps``, or
        with numeric columns, one per feature (other than ``groups``, ``strata`` and ``labels``,
        which `read_labels` reads).

    Returns
    -------
    ndarray of shape (n, d) or Statistics
        An array is read-only, and mapped from a private copy on disk (in ``TMPDIR``, else in
        ``/var/tmp``) beyond 64 MiB; its dtype is the file's. Its values (NaN, infinity, sums of
        posteriors) are checked by whoever computes with them. Where the file says which encoder
        made it, so does the array (`FeatureArray`): estimators refuse two that disagree.

    Raises
    ------
    InputError
        If the file is missing, unreadable, damaged, pickled, of another format, changed while it
        is read, or holds something else; if shards differ in width, type, encoder or in whether
        they have labels, if one has NaN or infinity or is named twice, or if parts are missing.
    """
    with contents_of(path) as contents:
        return contents.read()


def read_features(path: Paths) -> NDArray[Any]:
    """Read an (n, d) array of features or posteriors. See `read` for the formats.

    Parameters
    ----------
    path : path-like or list of path-like

    Returns
    -------
    ndarray of shape (n, d)
        As `read`.

    Raises
    ------
    InputError
        As `read`; and if the file holds statistics.
    """
    content = read(path)
    if isinstance(content, Statistics):
        raise InputError(
            f"{display(path)}: holds statistics (mu, sigma) where features are needed: "
            "pass the file of the features themselves."
        )
    return content


def read_statistics(path: Paths) -> Statistics:
    """Read mean, covariance and, where known, n. See `read` for the formats.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    Statistics

    Raises
    ------
    InputError
        As `read`; and if the file holds features.
    """
    with contents_of(path) as contents:
        features = contents.features
        if features is not None:
            raise InputError(
                f"{contents.shown}: holds features of shape {features.shape}, not statistics: "
                "it needs the arrays mu (d,) and sigma (d, d), and n where known."
            )
        return contents.statistics()


def read_labels(path: Paths, *, groups: str | None = None, strata: str | None = None) -> Labels:
    """Read which group and which stratum each row of a file of features belongs to.

    Parameters
    ----------
    path : path-like or list of path-like
        ``.npz``, ``.safetensors``, ``.parquet`` or ``.pt``, as `read` takes it. An id that occurs
        in two shards is one group.
    groups : str, optional
        Name of the array (in ``.parquet`` the column) of groups; ``groups`` by default, if it is
        there.
    strata : str, optional
        Name of the array of strata; by default ``strata``, or ``labels`` if there is none, or
        none at all.

    Returns
    -------
    Labels
        ``groups`` and ``strata``: arrays (n,) of integers or texts, or None. In a
        ``.safetensors`` file, which has no texts, an array of integers stands for the names in
        its metadata ``<array>.names`` (a JSON list), as `open_features_writer` writes it.

    Raises
    ------
    InputError
        As `read`; and if an array that was asked for is not there, has another length than the
        features, or holds neither integers nor texts.
    """
    with contents_of(path) as contents:
        found = []
        for asked, usual in zip((groups, strata), USUAL_LABELS.values(), strict=True):
            names = [name for name in usual if name in contents.arrays]
            names = names if asked is None else [asked]
            found.append(contents.label(names[0]) if names else None)
        return Labels(*found)


def label_arrays(path: Paths, n: int) -> dict[str, NDArray[Any]]:
    """Return ``groups``, ``strata``, ``labels`` and ``items`` beside n rows or images, by name.

    What other programs keep under these names and is not one integer or text per row is left out,
    with a message.
    """
    found = {}
    with contents_of(path) as contents:
        for name in (*LABEL_KEYS, ITEMS_KEY):
            if name not in contents.arrays:
                continue
            try:
                found[name] = contents.label(name, n)
            except InputError as error:
                _log.warning("%s It is not kept.", error)
        if "labels" not in found and "arr_1" in contents.arrays:
            with suppress(InputError):  # guided-diffusion's samplers: the class of each image
                contents.images()
                found["labels"] = contents.label("arr_1", n)
    return found


def read_images(path: Path) -> NDArray[np.uint8]:
    """Read an array of images from ``.npy``, or from ``.npz`` under a name that features have.

    Samplers leave such files: guided diffusion, for one, an ``arr_0`` of 50,000 images.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    ndarray of shape (n, h, w), (n, h, w, 1) or (n, h, w, 3)
        uint8, read-only; it may be mapped from disk.

    Raises
    ------
    InputError
        As `read`; and if the array has another shape or type, or its images are larger than
        Pillow takes them.
    """
    with contents_of(path) as contents:
        array: NDArray[np.uint8] = contents.images().load()
        array.flags.writeable = False
        return array


def stream_images(path: Path, start: int = 0) -> Iterator[NDArray[np.uint8]]:
    """Yield the images that `read_images` reads, from number `start` on, one in memory."""
    with contents_of(path) as contents:
        stored = contents.images()
        if stored.fortran or stored.make or stored.blocks:  # they do not lie one after the other
            yield from stored.load()[start:]
            return
        shape = stored.shape[1:]
        for number, content in enumerate(stored.pieces(math.prod(shape), start), start=start):
            if len(content) != math.prod(shape):
                raise ValueError(f"image {number} is cut off")
            yield np.frombuffer(content, dtype=np.uint8).reshape(shape)


def image_count(path: Path) -> int:
    """Return how many images `read_images` would read, by the header of the file alone."""
    with contents_of(path) as contents:
        return contents.images().shape[0]


def read_metadata(path: Paths) -> dict[str, str]:
    """Read what a file says about where its features came from.

    Parameters
    ----------
    path : path-like or list of path-like

    Returns
    -------
    dict of str to str
        As `open_features_writer` and `write_statistics` stored it; empty where there is none. Of
        several files what all of them say.

    Raises
    ------
    InputError
        If the file is missing, unreadable, damaged or of another format; of several as `read`.
    """
    return read_header(path).origin
