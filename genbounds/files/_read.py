"""One way in for every format."""

from __future__ import annotations

import json
import os
import stat
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.files._content import FEATURE_KEYS, METADATA_KEY, Statistics, as_features, pick
from genbounds.files._display import display
from genbounds.files._errors import naming_damage, reason_of
from genbounds.files._npy import npz_members, read_npy
from genbounds.files._parquet import parquet_rows
from genbounds.files._pt import torch_tensors
from genbounds.files._safetensors import read_header, safetensors_arrays
from genbounds.origins import marked
from genbounds.validation import InputError

FORMATS = (".npy", ".npz", ".safetensors", ".pt", ".parquet")


def read(path: str | os.PathLike[str]) -> NDArray[Any] | Statistics:
    """Read a file of features (or posteriors), or of statistics: whichever it holds.

    Parameters
    ----------
    path : path-like
        ``.npy``; ``.npz``, ``.safetensors`` or ``.pt`` with an array called ``features``, ``reps``,
        ``feats`` or ``arr_0``, or with the statistics ``mu``, ``sigma`` and, where known, ``n``; a
        ``.pt`` that is one tensor; ``.parquet`` with a column of lists ``features`` or ``reps``, or
        with numeric columns only, one a feature.

    Returns
    -------
    ndarray of shape (n, d) or Statistics
        An array is read-only and may be mapped from disk; its dtype is the file's. Its values
        (NaN, infinity, sums of posteriors) are checked by whoever computes with them. Where the
        file says which encoder made it, so does the array (`FeatureArray`): estimators refuse two
        that disagree.

    Raises
    ------
    InputError
        If the file is missing, unreadable, damaged, pickled, of another format, or holds
        something else.
    """
    content = _read(path)
    return content if isinstance(content, Statistics) else marked(content, read_metadata(path))


def _read(path: str | os.PathLike[str]) -> NDArray[Any] | Statistics:
    shown = display(path)
    suffix = _check_file(path, shown)
    with naming_damage(shown):
        if suffix == ".npy":
            return as_features(shown, read_npy(Path(path), shown))
        if suffix == ".npz":
            with zipfile.ZipFile(path) as archive:
                return pick(shown, npz_members(Path(path), archive, shown))
        if suffix == ".safetensors":
            return pick(shown, safetensors_arrays(Path(path), shown))
        if suffix == ".pt":
            content = torch_tensors(Path(path), shown)
            if isinstance(content, dict):
                return pick(shown, content)
            return as_features(shown, content())
        return as_features(shown, parquet_rows(Path(path), shown))


def read_features(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Read an (n, d) array of features or posteriors. See `read` for the formats.

    Parameters
    ----------
    path : path-like

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


def read_statistics(path: str | os.PathLike[str]) -> Statistics:
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
    content = read(path)
    if not isinstance(content, Statistics):
        raise InputError(
            f"{display(path)}: holds features of shape {content.shape}, not statistics: "
            "it needs the arrays mu (d,) and sigma (d, d), and n where known."
        )
    return content


def read_images(path: str | os.PathLike[str]) -> NDArray[np.uint8]:
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
        As `read`; and if the array has another shape or type.
    """
    shown = display(path)
    suffix = _check_file(path, shown)
    array: NDArray[Any] | None = None
    with naming_damage(shown):
        if suffix == ".npy":
            array = read_npy(Path(path), shown)
        elif suffix == ".npz":
            with zipfile.ZipFile(path) as archive:
                members = npz_members(Path(path), archive, shown)
                found = [key for key in FEATURE_KEYS if key in members]
                array = members[found[0]]() if len(found) == 1 else None
    if (
        array is None
        or array.dtype != np.uint8
        or not (array.ndim == 3 or (array.ndim == 4 and array.shape[3] in (1, 3)))
        or array.size == 0
    ):
        what = "no array" if array is None else f"{array.dtype} of shape {array.shape}"
        raise InputError(
            f"{shown}: holds {what} where images are needed: uint8 of shape (n, h, w), "
            "(n, h, w, 1) or (n, h, w, 3), in .npy or .npz (arr_0)."
        )
    array.flags.writeable = False
    return array


def read_metadata(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read what a file says about where its features came from.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    dict of str to str
        As `open_features_writer` and `write_statistics` stored it; empty where there is none.

    Raises
    ------
    InputError
        If the file is missing, unreadable, damaged or of another format.
    """
    shown = display(path)
    suffix = _check_file(path, shown)
    content: object = {}
    with naming_damage(shown):
        if suffix == ".safetensors":
            safetensors_arrays(Path(path), shown)
            content = read_header(Path(path))[0].get("__metadata__", {})
        elif suffix == ".npz":
            with zipfile.ZipFile(path) as archive:
                members = npz_members(Path(path), archive, shown)
                if METADATA_KEY in members:
                    # Somebody else's member of that name is none of ours.
                    with suppress(InputError, ValueError):
                        content = json.loads(members[METADATA_KEY]().tobytes().decode())
    mapping = content.items() if isinstance(content, dict) else ()
    return {key: value for key, value in mapping if isinstance(value, str)}


def _check_file(path: str | os.PathLike[str], shown: str) -> str:
    """Refuse what cannot be a file of ours before it is opened; return its suffix."""
    try:
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            raise InputError(f"{shown}: is a folder: give the file inside it.")
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"{shown}: is not a regular file: save it to disk first.")
        suffix = Path(path).suffix.lower()
        suffix = ".pt" if suffix == ".pth" else suffix
        if suffix not in FORMATS:
            kind = f"`{display(suffix, limit=20)}` files are" if suffix else "a name without ending"
            raise InputError(
                f"{shown}: {kind if suffix else kind + ' is'} not read: "
                f"convert it to one of {', '.join(FORMATS)} (pickles are never loaded)."
            )
        if status.st_size == 0:
            raise InputError(f"{shown}: the file is empty: write it again.")
        with open(path, "rb"):
            pass
    except FileNotFoundError:
        raise InputError(f"{shown}: no such file: check the path.") from None
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"{shown}: cannot be read: {reason_of(error)}.") from error
    return suffix
