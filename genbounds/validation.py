"""One checker per kind of argument: name, what is legal, what was received.

Every comparison is written so that NaN fails it. Code behind these checks trusts its input.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from numbers import Integral, Real
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from genbounds._errors import InputError as InputError
from genbounds._process import computed, is_dask_array, scratch_folder
from genbounds._text import display, quoted, said_by

Float = NDArray[np.float64]


LARGEST_ENTRY = 1e150
"""Squares of larger numbers, summed, are beyond double precision."""


TORCH_FLOATS = ("torch.float16", "torch.float32", "torch.float64")
"""Floating types of torch that NumPy has as well."""

POSTERIOR_ATOL = 2.0**-8
"""Posteriors may miss a sum of one by what bfloat16 rounds away; they are then renormalised."""


def check_open_unit(name: str, value: object) -> float:
    """Return `value` as a float if it is a real number in (0, 1)."""
    try:
        number = float(value) if isinstance(value, Real) else math.nan
    except OverflowError:  # of a huge integer
        number = math.inf
    if 0.0 < number < 1.0:
        return number
    hint = f" For {number:g} % pass {number / 100.0:g}." if 50.0 <= number < 100.0 else ""
    raise InputError(f"must be a real number in (0, 1); got {quoted(value)}.{hint}", argument=name)


def check_confidence(name: str, value: object) -> float:
    """Return a confidence for which critical values exist: from 1e-6 to 1 - 1e-9."""
    number = check_open_unit(name, value)
    if not 1e-6 <= number <= 1.0 - 1e-9:
        raise InputError(f"must lie between 1e-6 and 1 - 1e-9; got {quoted(value)}.", argument=name)
    return number


def check_power(value: object) -> float:
    """Return a probability of success to plan for: at least 0.5."""
    number = check_open_unit("power", value)
    if number < 0.5:
        raise InputError(f"must be at least 0.5; got {value!r}.", argument="power")
    return number


def check_not_negative(name: str, value: object) -> float:
    """Return `value` as a float if it is a finite number of at least 0."""
    if isinstance(value, bool) or not (isinstance(value, Real) and 0.0 <= float(value) < math.inf):
        raise InputError(f"must be a finite number of at least 0; got {quoted(value)}.", name)
    return float(value)


def check_positive(name: str, value: Any, *, most: float = sys.float_info.max) -> float:
    """Return `value` as a float if it is a positive, finite number of at most `most`."""
    legal = isinstance(value, Real) and not isinstance(value, bool)
    if not (legal and 0.0 < value <= most):
        limit = f" of at most {most:g}" if most < sys.float_info.max else ""
        raise InputError(f"must be a positive, finite number{limit}; got {quoted(value)}.", name)
    return float(value)


def check_count(name: str, value: object, *, minimum: int = 1) -> int:
    """Return `value` as an int if it is a whole number of at least `minimum`."""
    if isinstance(value, bool) or not (isinstance(value, Integral) and int(value) >= minimum):
        raise InputError(
            f"must be a whole number of at least {minimum}; got {quoted(value)}.", name
        )
    return int(value)


def check_flag(name: str, value: object) -> bool:
    """Return `value` if it is True or False; a text would count as True."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"must be True or False; got {quoted(value)}.", argument=name)
    return bool(value)


def check_choice(name: str, value: object, choices: Collection[str]) -> str:
    """Return `value` if it is one of `choices`."""
    if not (isinstance(value, str) and value in choices):
        legal, hint = ", ".join(map(repr, choices)), meant(value, choices)
        raise InputError(f"must be one of {legal}; got {quoted(value)}.{hint}", argument=name)
    return value


def meant(value: object, choices: Collection[str]) -> str:
    """Return the question whether the choice that reads most like a value was meant, or ""."""
    from difflib import get_close_matches

    close = get_close_matches(value.lower(), choices, 1) if isinstance(value, str) else []
    return f" Did you mean {close[0]!r}?" if close else ""


def as_numpy(name: str, x: Any) -> NDArray[Any]:
    """View an array or a torch tensor as NumPy without a copy where possible.

    A tensor on an accelerator is copied to the host; float16 stays, narrower types and bfloat16,
    which NumPy does not have, become float32. An array of dask is computed, a large one by blocks
    of rows into a scratch file.

    Raises
    ------
    InputError
        If NumPy cannot hold it, or a mask hides entries.
    """
    if type(x) is np.ndarray:
        return x
    if any((base.__module__, base.__name__) == ("torch", "Tensor") for base in type(x).__mro__):
        return _tensor_as_numpy(name, x)
    if is_dask_array(x):
        kept = f"kept in {scratch_folder()} (TMPDIR)"
        with refused(name, f"is a dask array that cannot be computed and {kept}: "):
            return computed(x)
    with refused(name, "is not a rectangular array of numbers: "):
        array = np.asarray(x)
    if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x):
        raise InputError("has masked entries: drop those rows first.", argument=name)
    return array


def as_floats(name: str, x: Any) -> Float:
    """View real numbers as float64, copied where needed; refuse other types, complex ones too."""
    array = as_numpy(name, x)
    if array.dtype.kind not in "fiub":
        kind = display(array.dtype, limit=100)
        raise InputError(f"must hold real numbers; got dtype {kind}.", argument=name)
    return np.asarray(array, dtype=np.float64)


def _tensor_as_numpy(name: str, x: Any) -> NDArray[Any]:
    # Sparse, quantised, without data; a subclass of somebody else.
    with refused(name, "is a tensor that NumPy cannot hold (", "): pass a dense one"):
        x = x.detach().cpu()
        if x.is_floating_point() and str(x.dtype) not in TORCH_FLOATS:
            x = x.float()
        return np.asarray(x.numpy(force=True))


def check_features(name: str, x: Any, *, minimum: int = 2) -> NDArray[Any]:
    """Check an (n, d) array of real numbers with n >= `minimum`; keeps its floating type.

    Finiteness is checked by whoever reads the rows, block by block (`check_finite`).
    """
    first = x[0] if isinstance(x, (list, tuple)) and x else x
    # Of its type: a table may have a column of that name.
    if getattr(type(x), "quasi_random", False) is True:
        fault = (
            "comes from quasi-random points, whose rows are not independent: an interval "
            "for independent rows is invalid. Use `score_over_scramblings`, or pass "
            "np.asarray(...) and ignore the interval"
        )
    elif isinstance(first, (str, os.PathLike)):
        what = "is the name of a file" if first is x else "holds names of files"
        fault = (
            f"{what}: read it first, with genbounds.files.read_features(...) or, for statistics, "
            "genbounds.Moments.load(...)"
        )
    else:
        array = x if type(x) is np.ndarray else as_numpy(name, x)
        if array.dtype.kind not in "fiub":
            what = f"dtype {array.dtype}" if array.ndim else f"an object of type {type(x).__name__}"
            fault = (
                f"must hold real numbers; got {display(what, limit=100)}. "
                "Pass a float array of shape (n, d), one row per sample"
            )
        elif array.ndim != 2:
            fault = f"must have shape (n, d), one row per sample; got shape {array.shape}"
        elif array.shape[1] < 1:
            fault = f"has no features: its shape is {array.shape}"
        elif len(array) < minimum:
            fault = f"needs at least {minimum} samples (rows); got {len(array)}"
        elif array.dtype.kind == "f":
            return array
        else:
            long = array.dtype.itemsize == 8 and array.size
            largest = max(int(array.min()), int(array.max()), key=abs) if long else 0
            if abs(largest) <= LARGEST_INTEGER:
                return array.astype(np.float64)
            fault = (
                f"has the integer {largest}, which float64 cannot hold exactly: subtract a common "
                "number from all features"
            )
    raise InputError(f"{fault}.", argument=name)


LARGEST_INTEGER = 1 << 53
"""Integers up to here are floats without loss."""


def check_finite(name: str, block: Float, *, first_row: int = 0) -> None:
    """Refuse NaN and infinity, and what has no finite square, naming the first such row."""
    # One pass without a mask: the product is finite unless an entry's square is not.
    flat = block.reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(flat @ flat):
            return
        large = np.abs(block) > block.dtype.type(LARGEST_ENTRY)  # that may be beyond its type
    infinite = ~np.isfinite(block)
    bad = np.flatnonzero((infinite if infinite.any() else large).any(axis=1))
    if not bad.size:
        return
    what = f"entries beyond {LARGEST_ENTRY:g}"
    remedy = ", whose squares overflow: divide all samples by a common number"
    if infinite.any():
        what = "NaN" if np.isnan(block[bad[0]]).any() else "an infinite value"
        remedy = ": drop the row, or fix the encoder that made it"
    raise InputError(f"has {what} in row {first_row + bad[0]}{remedy}.", argument=name)


def check_same_dimension(name_a: str, d_a: int, name_b: str, d_b: int) -> None:
    """Refuse two samples with a different number of features."""
    if d_a != d_b:
        raise InputError(
            f"has {d_a} features and `{name_b}` has {d_b}: both must come from the same encoder.",
            argument=name_a,
        )


def removed_interval() -> InputError:
    """Return the refusal of resampled intervals of earlier releases; remove it in the next one."""
    return InputError(
        "may be left out: intervals by jackknife and bootstrap were removed, which cover no "
        "better and take many times as long. Resample with scipy.stats.bootstrap if you must.",
        argument="interval",
    )


def check_installed(purpose: str, extra: str, *modules: str) -> None:
    """Refuse to go on without modules that only an extra of the package brings."""
    missing = [name for name in modules if not _is_installed(name)]
    if missing:
        raise InputError(f"{purpose} needs {', '.join(missing)}: {how_to_install(extra)}.")


def how_to_install(extra: str) -> str:
    """Return the command that installs an extra of the package."""
    return f"pip install 'genbounds[{extra}]' (from a checkout: pip install '.[{extra}]')"


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def check_rng(rng: object) -> np.random.Generator:
    """Make a Generator of a seed, a SeedSequence or a Generator."""
    if isinstance(rng, np.random.Generator):
        return rng
    if isinstance(rng, np.random.SeedSequence):
        return np.random.default_rng(rng)
    return np.random.default_rng(check_count("rng", rng, minimum=0))


def seeded(seed: int, purpose: str) -> np.random.Generator:
    """Make a Generator of a seed, one stream for each purpose.

    Users seed their own data with 0 as well: divided by the numbers that made the rows, parts of
    them would not be random.
    """
    return np.random.default_rng([seed, crc32(purpose.encode())])


@contextmanager
def calling(argument: str, name: str) -> Iterator[None]:
    """Have errors about an `argument` say `name`, which is what the caller calls it."""
    try:
        yield
    except InputError as error:
        if error.argument != argument or error.model:
            raise
        raise error.about(name) from error


@contextmanager
def about_model(model: str) -> Iterator[None]:
    """Have errors say of which model's sample they are."""
    try:
        yield
    except InputError as error:
        raise error.of_model(model) from error


@contextmanager
def refused(argument: str, before: str, after: str = "") -> Iterator[None]:
    """Turn what an array of somebody else raises into one line, its reason between two texts."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as error:  # also of a worker of dask, or the disk
        reason = said_by(error) or type(error).__name__
        raise InputError(f"{before}{reason}{after}.", argument=argument) from error


@contextmanager
def blamed(argument: str, of: str = "") -> Iterator[None]:
    """Turn whatever a user's function raises, or its exit, into one line."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        what, whose = said_by(error), f"of {display(of)} " if of else ""
        raise InputError(
            f"{whose}fails: {type(error).__name__}{': ' + what if what else ''}.", argument=argument
        ) from error
