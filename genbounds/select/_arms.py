"""Arms made of what users have: recorded features, a function, or a generator and an encoder.

An arm needs `draw(n, rng)` only. What else a run looks for, and uses where it is there:

* ``origin``: which encoder made its rows (`genbounds.origins`);
* ``total_rows``: how many rows it has in all, if it is finite;
* ``digest()``: a text that changes whenever its rows would, for the record of a run;
* ``skip(n, rng)``: go on behind the n rows that an earlier run has had.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.core.checks import LIKENESS_LIMIT, likeness_z
from genbounds.diagnostics import RULES, warn_of
from genbounds.estimators import Moments
from genbounds.origins import origin_of
from genbounds.results import Diagnostic
from genbounds.samples import Sample, features_of, refuse_weights
from genbounds.select._independence import order_effect
from genbounds.validation import InputError, as_numpy

BLOCK_BYTES = 2**24
"""A memory map is read in blocks of about this size."""


ORDER_ROWS = 10_000
"""Rows of a file whose order is looked at."""

ORDER_ERROR = 1e-6
"""Probability with which that of independent rows is taken for more than chance."""


def rows_in_all(arm: Any) -> float:
    """Return how many rows an arm has; infinite unless it says."""
    return float(getattr(arm, "total_rows", math.inf))


class FeatureArm:
    """The rows of an array in random order, each once; then it is exhausted.

    Parameters
    ----------
    rows : array_like of shape (n, d) or Sample
        Recorded features or posteriors; a memory map is read a batch at a time. Groups of a
        `Sample` come one after another; of its strata each batch has its share.

    Attributes
    ----------
    origin : mapping of str to str
        Which encoder made them, as far as their file said: a run refuses arms that disagree.
    total_rows : int
        Rows that it has in all.
    labelled : bool
        Whether groups or strata come with its rows.
    """

    def __init__(self, rows: Any) -> None:
        self._sample = rows if isinstance(rows, Sample) else None
        if self._sample is not None and self._sample.seeds is not None:
            raise InputError("has seeds, which a selection does not take.", argument="rows")
        refuse_weights("rows", rows, ": draw rows in proportion to them beforehand.")
        rows = features_of(rows)
        if getattr(rows, "ndim", None) != 2:
            rows = as_numpy("rows", rows)
        if rows.ndim != 2:
            raise InputError(f"must have shape (n, d); got shape {rows.shape}.", argument="rows")
        self._rows: NDArray[Any] = rows
        self.origin = origin_of(rows)
        self.total_rows = len(rows)
        self.labelled = self._sample is not None and self._sample.labelled
        self._order: NDArray[np.int64] | None = None
        self._drawn = 0

    def draw(self, n: int, rng: np.random.Generator) -> Any:
        """Return the next `n` rows, or fewer at the end; `rng` as for every arm."""
        order = self._order_of(rng)
        chosen = order[self._drawn : self._drawn + n]
        self._drawn += len(chosen)
        rows = np.asarray(self._rows[chosen])
        if self._sample is None or not self.labelled:
            return rows
        groups, strata = (
            None if labels is None else labels[chosen] for labels in self._sample.labels
        )
        return Sample(rows, groups=groups, strata=strata)

    def skip(self, n: int, rng: np.random.Generator) -> None:
        """Go on behind the `n` rows that an earlier run with this `rng` has had."""
        self._order_of(rng)
        self._drawn = n

    def doubt(self) -> Diagnostic | None:
        """Say what the order of its rows shows: drawn at random, they would not show it any more.

        Nothing of a `Sample`, which says how its rows were drawn.
        """
        if self._sample is not None or self._rows.dtype.kind not in "fiub":
            return None
        with np.errstate(invalid="ignore"):  # what is not finite is refused where it is drawn
            z, _ = likeness_z(self._rows[:-1], self._rows[1:])
        if z >= LIKENESS_LIMIT:
            return warn_of("alike-in-order", whose="", z=z)
        first = np.asarray(self._rows[:ORDER_ROWS])
        if not (first.size and np.isfinite(first).all()):
            return None
        found = order_effect(first, None, error=ORDER_ERROR)
        return None if found is None else replace(found, remedy=RULES["alike-in-order"].remedy)

    def digest(self) -> str:
        """Return a text that changes whenever a row or its label does."""
        digest = digest_of(self._rows)
        if self._sample is None or not self._sample.labelled:
            return digest
        labels = str([None if ids is None else ids.tolist() for ids in self._sample.labels])
        return f"{digest} {hashlib.blake2b(labels.encode(), digest_size=16).hexdigest()}"

    def _order_of(self, rng: np.random.Generator) -> NDArray[np.int64]:
        if self._order is None:
            self._order = rng.permutation(len(self._rows))
            if self._sample is not None:
                self._order = _in_design(self._order, self._sample)
        return self._order


def _in_design(order: NDArray[np.int64], sample: Sample) -> NDArray[np.int64]:
    """Bring rows in random order into one of which every beginning is drawn as the whole was.

    Rows of a group stay together; strata take turns in proportion to their sizes.
    """
    if sample.groups is not None:
        _, group = np.unique(sample.groups[order], return_inverse=True)
        first = np.full(group.max() + 1, len(order))
        np.minimum.at(first, group, np.arange(len(order)))
        order = order[np.argsort(first[group], kind="stable")]
    if sample.strata is not None:
        _, stratum = np.unique(sample.strata[order], return_inverse=True)
        by_stratum = np.argsort(stratum, kind="stable")
        sizes = np.bincount(stratum)
        start = np.repeat(np.cumsum(sizes) - sizes, sizes)
        turn = (np.arange(len(order)) - start + 0.5) / np.repeat(sizes, sizes)
        order = order[by_stratum[np.argsort(turn, kind="stable")]]
    return order


@dataclass(frozen=True, slots=True)
class FunctionArm:
    """A plain function as an arm.

    Attributes
    ----------
    draw : callable
        ``draw(n, rng)`` returns n fresh independent rows, (n, d).
    origin : mapping of str to str
        What is known of the encoder.
    """

    draw: Callable[[int, np.random.Generator], Any]
    origin: Mapping[str, str] = field(default_factory=dict)


class EncodedArm:
    """A generative model and an encoder: what is generated is encoded at once.

    Parameters
    ----------
    generate : callable
        ``generate(n, rng)`` returns n fresh independent samples, of whatever kind.
    encode : callable
        Takes what `generate` returns to features, (n, d).

    Examples
    --------
    >>> import numpy as np
    >>> from genbounds.select import EncodedArm
    >>> noise = lambda n, rng: rng.normal(size=(n, 8, 8))
    >>> arm = EncodedArm(noise, lambda images: images.mean(axis=2))
    >>> arm.draw(3, np.random.default_rng(0)).shape
    (3, 8)
    """

    def __init__(
        self, generate: Callable[[int, np.random.Generator], Any], encode: Callable[[Any], Any]
    ) -> None:
        for name, given in (("generate", generate), ("encode", encode)):
            if not callable(given):
                raise InputError(f"must be a callable; got {type(given).__name__}.", argument=name)
        self._generate, self._encode = generate, encode

    def draw(self, n: int, rng: np.random.Generator) -> Any:
        """Return the features of `n` fresh samples, drawn by `rng`."""
        return self._encode(self._generate(n, rng))


def digest_of(thing: Any) -> str:
    """Return a text that tells two arrays, or two `Moments`, apart; empty for None.

    Numbers count, not their type: the same features in float32 and float64 have one digest.
    """
    if thing is None:
        return ""
    if isinstance(thing, Moments):
        parts = [digest_of(np.atleast_2d(thing.mean)), digest_of(thing.cov), str(thing.n)]
        return hashlib.blake2b("".join(parts).encode(), digest_size=16).hexdigest()
    rows = np.atleast_2d(as_numpy("rows", thing))
    found = hashlib.blake2b(str(rows.shape).encode(), digest_size=16)
    step = max(1, BLOCK_BYTES // (8 * max(1, rows.shape[1])))
    for start in range(0, len(rows), step):
        block = np.ascontiguousarray(rows[start : start + step], dtype=np.float64)
        found.update(block.data)
    return found.hexdigest()
