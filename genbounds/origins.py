"""Where features came from, and whether two sets of them may be compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.results import Diagnostic, caution, unreliable
from genbounds.validation import InputError

DECISIVE = ("encoder", "weights", "preprocessing")
"""Features that differ in one of these live in different spaces."""

NOTED = ("precision", "libraries")
"""Features that differ in these are close; how close docs/experiments.md measures."""

RANDOM = "random"
"""How the digest of weights that were never trained begins."""

UNKNOWN: Mapping[str, str] = {}


class FeatureArray(np.ndarray[Any, np.dtype[Any]]):
    """Features that know where they came from, as the files that `genbounds features` writes do.

    Rows and columns taken from it know as well; what NumPy computes from it is a plain array.
    ``np.asarray`` takes the mark away.

    Attributes
    ----------
    origin : mapping of str to str
        ``encoder``, ``weights``, ``preprocessing``, ``precision``, ``libraries``.
    """

    origin: Mapping[str, str] = UNKNOWN

    def __array_finalize__(self, parent: Any) -> None:
        """Take over the mark of what this is a part of."""
        self.origin = getattr(parent, "origin", UNKNOWN)

    def __array_wrap__(
        self, array: NDArray[Any], context: Any = None, return_scalar: bool = False
    ) -> Any:
        """Return results of arithmetic as plain arrays: they are no longer what was encoded."""
        return array[()] if return_scalar else array


def marked(array: NDArray[Any], origin: Mapping[str, str]) -> NDArray[Any]:
    """Return `array` as it is where `origin` says nothing decisive, else with that mark."""
    if not any(origin.get(field) for field in DECISIVE):
        return array
    view = array.view(FeatureArray)
    view.origin = dict(origin)
    return view


def origin_of(thing: object) -> Mapping[str, str]:
    """Return what features, moments or an arm know of their origin; empty if nothing."""
    origin = getattr(thing, "origin", UNKNOWN)
    return origin if isinstance(origin, Mapping) else UNKNOWN


def check_same_encoder(origins: Mapping[str, Mapping[str, str]]) -> None:
    """Refuse features from different encoders, weights or preprocessing.

    Parameters
    ----------
    origins : mapping of str to mapping
        For every file its metadata; empty where it carries none.

    Raises
    ------
    InputError
        If two files say that they were made differently; names both.
    """
    for field in DECISIVE:
        known = {name: origin[field] for name, origin in origins.items() if origin.get(field)}
        (first, value), *others = known.items() or [("", "")]
        for name, other in others:
            if other != value:
                raise InputError(
                    f"{first} and {name} do not compare: their {field} differ "
                    f"({_short(value)}; {_short(other)}). Encode both alike. If the numbers are "
                    "the same all the same, take the mark away: np.asarray(...), or a .npy file."
                )


def origin_warnings(origins: Mapping[str, Mapping[str, str]]) -> list[Diagnostic]:
    """Return what a reader must know about where the features came from, by their `origins`."""
    found = []
    known = [name for name, origin in origins.items() if origin.get("encoder")]
    unknown = [name for name in origins if name not in known]
    if known and unknown:
        found.append(
            caution(
                "encoder-mismatch",
                f"{', '.join(unknown)} does not say which encoder made it, {', '.join(known)} "
                "does: whether they compare was not checked",
                "Make the features of both with `genbounds features`.",
            )
        )
    for name in NOTED:
        values = {origin[name] for origin in origins.values() if origin.get(name)}
        if len(values) > 1:
            found.append(
                caution(
                    "encoder-mismatch", f"the features' {name} differ: {'; '.join(sorted(values))}"
                )
            )
    if any(origin.get("weights", "").startswith(RANDOM) for origin in origins.values()):
        found.append(
            unreliable(
                "random-weights",
                "the encoder's weights are random: these scores mean nothing",
                "Pass trained weights.",
            )
        )
    return found


def _short(text: str, limit: int = 90) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
