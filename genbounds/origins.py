"""Where features came from, and whether two sets of them may be compared."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds._pictures import PICTURES, picture_warnings
from genbounds._text import display
from genbounds.diagnostics import warn_of
from genbounds.results import Diagnostic
from genbounds.validation import InputError

DECISIVE = ("encoder", "weights", "preprocessing")
"""Features that differ in one of these live in different spaces."""

NOTED = ("precision", "libraries")
"""Features that differ in these are close; docs/evidence/experiments.md measures how close."""

RANDOM = "random"
"""The digest of untrained weights begins with this word."""

PART_KEY = "part"
"""The metadata that say which items of its input a file of features holds: "2/3 …"."""

STAMPS = ("run", PART_KEY)
"""What belongs to one file, not to its features: the run that made it, and which part of its items
it holds."""

UNKNOWN: Mapping[str, str] = {}


class FeatureArray(np.ndarray[Any, np.dtype[Any]]):
    """An array of features that carries its file's metadata: which encoder made it, and how.

    Rows and columns taken from it carry them too; what NumPy computes from it is a plain array.
    ``np.asarray`` drops them.

    Attributes
    ----------
    origin : mapping of str to str
        ``encoder``, ``weights``, ``preprocessing``, ``precision``, ``libraries``.
    """

    origin: Mapping[str, str] = UNKNOWN

    def __array_finalize__(self, parent: Any) -> None:
        """Take over the metadata of the array that this is a part of."""
        self.origin = getattr(parent, "origin", UNKNOWN)

    def __array_wrap__(
        self, array: NDArray[Any], context: Any = None, return_scalar: bool = False
    ) -> Any:
        """Return results of arithmetic as plain arrays: they are no longer what was encoded."""
        return array[()] if return_scalar else array


def marked(array: NDArray[Any], origin: Mapping[str, str]) -> NDArray[Any]:
    """Return `array` with metadata; a plain array if they do not name its encoder."""
    if not any(origin.get(field) for field in DECISIVE):
        return array
    view = array.view(FeatureArray)
    view.origin = dict(origin)
    return view


def origin_of(thing: object) -> Mapping[str, str]:
    """Return the metadata of features, moments or an arm; empty if there are none."""
    origin = getattr(thing, "origin", UNKNOWN)
    return origin if isinstance(origin, Mapping) else UNKNOWN


def together(one: Mapping[str, str], other: Mapping[str, str]) -> Mapping[str, str]:
    """Return the metadata of two samples in one: what belongs to one file of them is left out."""
    if not one or not other:
        return one or other
    own = {*STAMPS, *({PICTURES} if one.get(PICTURES) != other.get(PICTURES) else ())}
    return {key: value for key, value in one.items() if key not in own}


def check_same_encoder(origins: Mapping[str, Mapping[str, str]]) -> None:
    """Refuse features from different encoders, weights or preprocessing.

    Parameters
    ----------
    origins : mapping of str to mapping
        Metadata of every file or array, by the name that errors call it; may be empty.

    Raises
    ------
    InputError
        If two of them differ in encoder, weights or preprocessing; names both.
    """
    for field in DECISIVE:
        known = {name: origin[field] for name, origin in origins.items() if origin.get(field)}
        (first, value), *others = known.items() or [("", "")]
        for name, other in others:
            if other != value:
                raise InputError(
                    f"{first} and {name} cannot be compared: their {field} differ "
                    f"({_unlike(value, other)}): use one encoder for both. If the features are "
                    "compatible, drop the metadata with np.asarray(...) or a .npy file."
                )


def _unlike(one: str, other: str) -> str:
    """Return two metadata that differ as an error shows them: of JSON only what differs."""
    try:
        fields, others = json.loads(one), json.loads(other)
        both = (fields, others), (others, fields)
        one, other = (
            json.dumps({key: value for key, value in mine.items() if theirs.get(key) != value})
            for mine, theirs in both
        )
    except (AttributeError, RecursionError, ValueError):  # a digest, or somebody else's text
        pass
    return f"{display(one, limit=90)}; {display(other, limit=90)}"


def origin_warnings(origins: Mapping[str, Mapping[str, str]]) -> list[Diagnostic]:
    """Return warnings about `origins`, the metadata of every file by its name."""
    found = []
    known = [name for name, origin in origins.items() if origin.get("encoder")]
    unknown = [name for name in origins if name not in known]
    if known and unknown:
        found.append(warn_of("encoder-unknown", unknown=", ".join(unknown), known=", ".join(known)))
    for name in NOTED:
        values = {origin[name] for origin in origins.values() if origin.get(name)}
        if len(values) > 1:
            shown = "; ".join(display(value) for value in sorted(values))
            found.append(warn_of("metadata-differ", name=name, values=shown))
    # "2/3 ...": one of several parts of an extraction.
    said = {name: origin.get(PART_KEY) for name, origin in origins.items()}
    parts = [name for name, part in said.items() if part and not part.startswith("1/1 ")]
    if parts:
        found.append(warn_of("one-part", parts=", ".join(parts)))
    if any(origin.get("weights", "").startswith(RANDOM) for origin in origins.values()):
        found.append(warn_of("random-weights"))
    if any(PICTURES in origin for origin in origins.values()):
        found += picture_warnings(origins)
    return found
