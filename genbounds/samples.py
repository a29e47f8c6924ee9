"""A sample with the way in which it was drawn."""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from typing import Any

import numpy as np
import scipy  # its submodules are loaded at their first use
from numpy.typing import NDArray

from genbounds._process import is_dask_array
from genbounds._series import Series, in_blocks
from genbounds._text import quoted
from genbounds.origins import origin_of
from genbounds.validation import Float, InputError, as_floats, as_numpy, check_features

CHANCE = 1e-6
"""Probability with which random class counts are taken as fixed ones."""

LARGEST_COPY = 100_000_000
"""Bytes of features up to which a sample has its own copy."""


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Features or posteriors whose rows are not simply independent draws.

    Accepted wherever features are: by every score, `compare`, selection, convergence.

    Parameters
    ----------
    features : array_like of shape (n, d)
        NumPy or torch, any floating type.
    groups : array_like of shape (n,), optional
        Integers or strings. Rows with one id depend on one another (images of one prompt, frames of
        one clip, crops of one photograph). The same id in two samples means that they share it:
        models that were given the same prompts, or a reference that has them too. Ids that are all
        different say that rows are independent; a caution, if neighbours are alike.
    seeds : array_like of shape (n,), optional
        Integers or strings, beside `groups`: a second factor that crosses them, as the same seeds
        for every prompt do. Two rows then depend on one another if they share a group or a seed.
        Shared seeds that are not told are seen only in rows that are in the order of their seeds.
    strata : array_like of shape (n,), optional
        Integers or strings. How many rows each class has was fixed beforehand (50 images of every
        class), so that only the rows within a class vary. A group lies within one stratum.
    shares : mapping, "equal" or "reference", optional
        With `strata`: the share that each class has in the population, whatever numbers were drawn,
        to any scale; "reference": that of the reference's strata. Rows get the weights that make it
        so, and no others may be given.
    weights : array_like of shape (n,), optional
        Non-negative, to any scale: importance weights, or how often a row stands for others.
    order : array_like of shape (n,), optional
        Finite numbers: the place of each row in its series (frames of a video, steps of a chain);
        with `groups`, within its group. Neighbours are then taken to be alike: blocks of them
        become the groups, as long as it takes by their autocorrelation, and are shared with no
        other sample. Twenty groups or more stay as they are. Not with seeds, strata or weights.

    Raises
    ------
    InputError
        If a shape or a type is not legal, or `shares` are not of the classes in `strata`. When it
        is scored: if a group has rows in two strata, a stratum has a single group (or row), there
        are fewer than two groups or seeds, or seeds do not cross the groups.

    Notes
    -----
    Bias, variance and degrees of freedom follow from which rows could have come out differently if
    the study were repeated (docs/sampling.md).

    Examples
    --------
    >>> import numpy as np, genbounds as gb
    >>> rng = np.random.default_rng(0)
    >>> prompt = np.repeat(np.arange(100), 4)
    >>> x = rng.normal(size=(100, 3))[prompt] + 0.1 * rng.normal(size=(400, 3))
    >>> real = gb.Moments(np.zeros(3), np.eye(3))
    >>> alone = gb.frechet_distance(x, real)
    >>> told = gb.frechet_distance(gb.Sample(x, groups=prompt), real)
    >>> told.stderr > alone.stderr
    True
    """

    features: Any
    groups: Any = field(default=None, kw_only=True)
    seeds: Any = field(default=None, kw_only=True)
    strata: Any = field(default=None, kw_only=True)
    shares: Any = field(default=None, kw_only=True)
    weights: Any = field(default=None, kw_only=True)
    order: InitVar[Any] = field(default=None, kw_only=True)
    _checksum: int | None = field(default=None, init=False, repr=False)
    # The blocks that `groups` are, if they come from an order; places in it are alike by right.
    series: Series | None = field(default=None, init=False, repr=False)
    in_order: bool = field(default=False, init=False, repr=False)

    def __post_init__(self, order: Any) -> None:
        if isinstance(self.features, Sample):
            raise InputError("is a Sample already; pass its features.", argument="features")
        rows = check_features("features", self.features, minimum=0)
        if is_dask_array(self.features):  # once for all scores
            self._set(features=rows)
        self._keep_as_it_is()
        n = len(rows)
        for name in ("groups", "seeds", "strata"):
            given = getattr(self, name)
            if given is not None:
                self._set(**{name: check_labels(name, given, n)})
        if self.seeds is not None and (self.groups is None or self.strata is not None):
            raise InputError("cross groups: pass groups as well, and no strata.", argument="seeds")
        if self.weights is not None:
            self._set(weights=check_weights("weights", self.weights, n))
        if self.shares is not None:
            self._set(weights=weights_at(self.shares, self.strata, self.weights))
        if order is None:
            return
        for name in ("seeds", "strata", "shares", "weights"):
            if getattr(self, name) is not None:
                raise InputError(f"takes no `{name}` beside it: leave one out.", argument="order")
        groups, series = in_blocks(rows, order, self.groups)
        self._set(groups=groups, series=series, in_order=True)

    def _set(self, **values: Any) -> None:
        """Set what is not set by hand: a sample is frozen."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _keep_as_it_is(self) -> None:
        """Copy an array that its owner may change, or note what it holds if that is much."""
        given = self.features
        if not isinstance(given, np.ndarray) or isinstance(_owner(given), (np.memmap, mmap.mmap)):
            return
        if given.nbytes <= LARGEST_COPY:
            self._set(features=given.copy())
        else:
            self._set(_checksum=_checksum(given))

    def check_unchanged(self, name: str) -> None:
        """Refuse features that are no longer what was passed; `name`: of the argument."""
        if self._checksum is not None and _checksum(self.features) != self._checksum:
            raise InputError(
                "has features that were changed since genbounds.Sample was made of them: make it "
                "anew.",
                argument=name,
            )

    @property
    def labels(self) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:
        """Groups and strata."""
        return self.groups, self.strata

    @property
    def labelled(self) -> bool:
        """Whether it has groups or strata."""
        return self.groups is not None or self.strata is not None

    def units_per_stratum(self) -> NDArray[np.intp]:
        """Return how many groups (rows, without groups) each of ``np.unique(strata)`` has."""
        _, stratum = np.unique(self.strata, return_inverse=True)
        if self.groups is not None:
            _, unit = np.unique(self.groups, return_inverse=True)
            stratum = np.unique(np.stack([stratum, unit]), axis=1)[0]
        return np.bincount(stratum)

    def at_shares(self, shares: Mapping[Any, float]) -> Sample:
        """Return the same rows at other shares of their classes."""
        return Sample(self.features, groups=self.groups, strata=self.strata, shares=shares)

    def __len__(self) -> int:
        return len(self.features)

    @property
    def origin(self) -> Mapping[str, str]:
        """Which encoder made the features, as far as they say."""
        return origin_of(self.features)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the features."""
        return tuple(self.features.shape)

    def __getitem__(self, rows: Any) -> Sample:
        """Return some of the rows, with what is known of them."""
        labels = {name: getattr(self, name) for name in ("groups", "seeds", "strata", "weights")}
        kept = {name: ids[rows] for name, ids in labels.items() if ids is not None}
        shares = self.shares if self.weights is None else None
        part = Sample(self.features[rows], shares=shares, **kept)
        part._set(series=self.series, in_order=self.in_order)
        return part


def _owner(array: NDArray[Any]) -> Any:
    """Return whose memory an array is a view of."""
    owner: Any = array
    while isinstance(owner, np.ndarray) and owner.base is not None and type(owner) is not np.memmap:
        owner = owner.base
    return owner


def _checksum(array: NDArray[Any]) -> int:
    """Exclusive or of all entries: one pass at the speed of memory."""
    kind = f"u{array.dtype.itemsize}"
    if array.dtype.itemsize > 8:
        return hash(array.sum())
    return sum(
        int(np.bitwise_xor.reduce(array[start : start + 4096].view(kind), axis=None)) * (start + 1)
        for start in range(0, len(array), 4096)
    )


def too_even(counts: NDArray[Any]) -> bool:
    """Whether class counts are more even than independent draws would leave them.

    By Pearson's statistic of equal probabilities, which unequal ones only make larger; wrongly with
    a probability of at most 1e-6.
    """
    n, classes = int(counts.sum()), counts.size
    if classes < 3 or n < 2 * classes:
        return False
    statistic = float(((counts - n / classes) ** 2).sum()) * classes / n
    return bool(scipy.special.chdtr(classes - 1.0, statistic) <= CHANCE)


def balanced(counts: NDArray[Any]) -> bool:
    """Whether class counts are those of a balanced design.

    Equal numbers of every class are no accident, nor are nearly equal ones of many classes (some
    images may have failed); others may be as random as the rows.
    """
    if counts.size < 2 or counts.min() < 2:
        return False
    return int(np.ptp(counts)) <= 1 or too_even(counts)


def class_pairs(
    fake: NDArray[Any] | None, real: NDArray[Any] | None
) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Name rows of one class alike in both samples, if the numbers of the classes are the same.

    Then the classes of one sample were taken from the other: what their numbers add to the noise
    is the same in both. None where equal numbers may be chance.
    """
    if fake is None or real is None or not np.array_equal(np.sort(fake), np.sort(real)):
        return None
    counts = np.unique(real, return_counts=True)[1]
    # Of independent draws, n_c agrees with probability 1/√(4π n_c) or so in all but one class.
    if np.prod((4.0 * np.pi * np.sort(counts)[:-1]) ** -0.5) > CHANCE:
        return None
    one, two = (np.argsort(np.argsort(labels, kind="stable")) for labels in (fake, real))
    return one, two


def go_across(groups: NDArray[Any], classes: NDArray[Any]) -> bool:
    """Whether a group has rows of several classes, which are then no strata."""
    _, first, group = np.unique(groups, return_index=True, return_inverse=True)
    return bool((classes[first][group] != classes).any())


def refuse_weights(name: str, x: Any, why: str) -> None:
    """Refuse a weighted sample where weights have no meaning."""
    if isinstance(x, Sample) and x.weights is not None:
        raise InputError(f"has weights{why}", argument=name)


def features_of(x: Any) -> Any:
    """Return the features of a `Sample`, and anything else as it is."""
    return x.features if isinstance(x, Sample) else x


def converted(name: str, x: Any) -> Any:
    """Return features as an array, computed or converted once for all that follows.

    A `Sample` stays as it is: it has done so.
    """
    return x if isinstance(x, Sample) else check_features(name, x)


def check_labels(name: str, labels: Any, n: int) -> NDArray[Any]:
    """Return one integer or string per row."""
    array = as_numpy(name, labels)
    kind = array.dtype.kind
    if array.shape != (n,):
        fault = f"must have shape ({n},), one id per row; got shape {array.shape}"
    elif kind in "iuUb":
        return array
    elif kind == "O" and all(isinstance(label, str) for label in array):
        return array.astype(str)
    elif kind == "f" and (array == np.floor(array)).all() and (np.abs(array) < 2.0**53).all():
        return array.astype(np.int64)  # whole numbers, as tables often hold them
    else:
        lost = kind == "O" or (kind == "f" and np.isnan(array).any())
        missing = " (an id is missing)" if lost else ""
        fault = f"must hold integers or strings{missing}; got dtype {array.dtype}"
    raise InputError(f"{fault}.", argument=name)


def weights_at(shares: Any, strata: NDArray[Any] | None, weights: Any) -> Float | None:
    """Return the weights of rows whose classes have these shares; None for "reference"."""
    if strata is None:
        raise InputError("needs `strata`, the class of every row.", argument="shares")
    if weights is not None:
        reason = "gives every row its weight: leave out `weights`."
        raise InputError(reason, argument="shares")
    if isinstance(shares, str) and shares == "reference":
        return None
    names, of_row, counts = np.unique(strata, return_inverse=True, return_counts=True)
    if isinstance(shares, str) and shares == "equal":
        shares = dict.fromkeys(names.tolist(), 1.0)
    if not isinstance(shares, Mapping):
        raise InputError(
            f"must be a mapping from classes to shares, 'equal' or 'reference'; got "
            f"{quoted(shares)}.",
            argument="shares",
        )
    unlike = sorted(set(shares) ^ set(names.tolist()), key=str)
    if unlike:
        lacks = "no share" if unlike[0] in names else "no row"
        raise InputError(f"has {lacks} of class {quoted(unlike[0])}.", argument="shares")
    found = as_floats("shares", [shares[name] for name in names.tolist()])
    if not (np.isfinite(found).all() and (found > 0.0).all()):
        raise InputError("must be finite and above 0.", argument="shares")
    return check_weights("shares", (found / found.max() / counts)[of_row], of_row.size)


def check_weights(name: str, weights: Any, n: int) -> Float:
    """Return weights of n rows, divided by their sum."""
    w = np.array(as_floats(name, weights))
    if w.shape != (n,):
        fault = f"must have shape ({n},), one weight per row; got {w.shape}"
    elif not (np.isfinite(w).all() and (w >= 0.0).all()):
        fault = "must be finite and non-negative"
    elif int((w > 0.0).sum()) < 2:
        fault = "must be positive for at least 2 rows"
    else:
        w /= w.max()  # a sum of huge weights would overflow
        normalised: Float = w / w.sum()
        return normalised
    raise InputError(f"{fault}.", argument=name)
