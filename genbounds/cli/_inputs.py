"""From file names to what the estimators take; errors that name the file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from genbounds.features import check_same_encoder, is_media, media_kind
from genbounds.files import (
    Statistics,
    check_comparable,
    display,
    gather,
    read,
    read_features,
    read_metadata,
)
from genbounds.validation import InputError, check_choice

if TYPE_CHECKING:
    from genbounds.cli._encoding import Encoding
    from genbounds.estimators import Expansion, Moments

Options = Mapping[str, Any]

_BLOCK = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A score that the command line can compute.

    Attributes
    ----------
    title : str
    better : str
        "smaller" or "larger".
    posteriors : bool
        Whether its files hold class posteriors instead of features.
    prepare : callable
        Takes the reference (None for a score without one), the metric's own options and the rows
        of the smallest sample (None if unknown), and returns a function of one model's content
        and the name of the estimator.
    referenced : bool
        Whether it is a distance from a reference.
    selectable : bool
        Whether online selection knows it.
    """

    title: str
    better: str
    posteriors: bool
    prepare: Callable[[Any, Options, int | None], Callable[[Any, str], Expansion]]
    referenced: bool = False
    selectable: bool = False


def _fd(reference: Any, options: Options, fewest: int | None) -> Callable[[Any, str], Expansion]:
    from genbounds.estimators import FrechetReference

    prepared = FrechetReference(reference)
    return lambda content, estimator: prepared.expand(content, estimator=estimator)


def _kid(reference: Any, options: Options, fewest: int | None) -> Callable[[Any, str], Expansion]:
    from genbounds.estimators import KernelReference

    prepared = KernelReference(reference)
    return lambda content, estimator: prepared.expand(content, estimator=estimator)


def _is(reference: Any, options: Options, fewest: int | None) -> Callable[[Any, str], Expansion]:
    from genbounds.estimators import inception_expansion

    return lambda content, estimator: inception_expansion(content, estimator=estimator)


def _vendi(metric: str) -> Callable[[Any, Options, int | None], Callable[[Any, str], Expansion]]:
    def prepare(
        reference: Any, options: Options, fewest: int | None
    ) -> Callable[[Any, str], Expansion]:
        from genbounds.estimators import vendi_metric

        expand = vendi_metric(metric, [reference], options, fewest=fewest)
        return lambda content, estimator: expand(content, estimator=estimator)

    return prepare


METRICS: dict[str, Metric] = {
    "fd": Metric(
        title="Fréchet distance",
        better="smaller",
        posteriors=False,
        prepare=_fd,
        referenced=True,
        selectable=True,
    ),
    "kid": Metric(
        title="Kernel Inception distance",
        better="smaller",
        posteriors=False,
        prepare=_kid,
        referenced=True,
        selectable=True,
    ),
    "is": Metric(
        title="Inception score", better="larger", posteriors=True, prepare=_is, selectable=True
    ),
    "vendi": Metric(
        title="Vendi score",
        better="larger",
        posteriors=False,
        prepare=_vendi("vendi"),
        selectable=True,
    ),
    "rke": Metric(
        title="Vendi score of order 2 (RKE)",
        better="larger",
        posteriors=False,
        prepare=_vendi("rke"),
        selectable=True,
    ),
}
"""Scores by the name that `--metric` takes."""

SELECTABLE = tuple(name for name, metric in METRICS.items() if metric.selectable)


def choose_metric(name: str, *, logits: bool, among: Sequence[str] = tuple(METRICS)) -> Metric:
    """Return the metric of that name, refusing options that it would ignore."""
    metric = METRICS[check_choice("--metric", name, among)]
    if logits and not metric.posteriors:
        raise InputError(f"`--logits` is for posteriors; --metric {name} takes features.")
    return metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One file: its path as given, its short unique name, what it holds.

    `content` is an array (n, d), or `Moments` where the file holds statistics; `origin` is what
    the file says about where its features came from.
    """

    path: Path
    name: str
    content: NDArray[Any] | Moments
    origin: Mapping[str, str] = field(default_factory=dict)

    @property
    def n(self) -> int | None:
        """Number of samples; None if the file holds statistics that do not say."""
        return len(self.content) if isinstance(self.content, np.ndarray) else self.content.n


def load(
    paths: Sequence[Path], metric: Metric, *, logits: bool, encoding: Encoding | None = None
) -> list[Input]:
    """Read the files of one run; what is to be encoded is encoded.

    Raises
    ------
    InputError
        As `genbounds.files.read`; or if two files say that different encoders made them.
    """
    if metric.referenced:  # before anything is read: the files may be large
        check_comparable([path for path in paths if not is_media(path)])
    inputs: list[Input] = []
    for given, name in zip(paths, model_names(paths), strict=True):
        path = _encoded(given, name, encoding)
        content: Any
        if metric.posteriors:
            content = read_features(path)
            if logits:
                with blame({"logits": path}):
                    content = softmax(content)
        else:
            content = read(path)
            if isinstance(content, Statistics):
                from genbounds.estimators import Moments

                if not metric.referenced:
                    raise InputError(
                        f"{display(path)} holds statistics; this score needs the features."
                    )
                with inside(path):
                    content = Moments(*content)
        inputs.append(Input(path=given, name=name, content=content, origin=read_metadata(path)))
    check_same_encoder({display(model.path): model.origin for model in inputs})
    return inputs


def _encoded(path: Path, name: str, encoding: Encoding | None) -> Path:
    """Return the file of features that belongs to what was named."""
    if not is_media(path):
        return path
    if encoding is None:
        raise InputError(
            f"{display(path)} is {media_kind(path)}: pass --encoder NAME, or give a file of "
            "features."
        )
    return encoding.features(path, name)


def model_names(paths: Sequence[Path]) -> list[str]:
    """Short names for files: their stems, lengthened by folders where those coincide."""
    stems = [_stem(path) for path in paths]
    names = list(stems)
    for depth in range(2, max((len(path.parts) for path in paths), default=0) + 1):
        counts = Counter(names)
        names = [
            "/".join((*path.parts[-depth:-1], stem)) if counts[name] > 1 else name
            for name, path, stem in zip(names, paths, stems, strict=True)
        ]
    counts = Counter(names)
    names = [
        name + path.suffix if counts[name] > 1 else name
        for name, path in zip(names, paths, strict=True)
    ]
    taken: set[str] = set()
    for index, name in enumerate(names):
        unique, copy = name, 1
        while unique in taken:
            copy += 1
            unique = f"{name} ({copy})"
        taken.add(unique)
        names[index] = unique
    return names


def _stem(path: Path) -> str:
    """Return a file's name without its ending; a folder has none, whatever dots it holds."""
    if path.is_dir():
        return path.name
    return path.stem.removesuffix(".tar") if path.name.endswith(".tar.gz") else path.stem


def softmax(logits: NDArray[Any]) -> NDArray[np.float64]:
    """Softmax of every row, in float64, block by block; a large result is kept on disk."""
    step = max(1, _BLOCK // logits.shape[1])

    def blocks() -> Iterator[bytes]:
        for first in range(0, len(logits), step):
            block = np.array(logits[first : first + step], dtype=np.float64)
            if not np.isfinite(block).all():
                row = first + int(np.flatnonzero(~np.isfinite(block).all(axis=1))[0])
                raise InputError(
                    f"`logits` has NaN or an infinite value in row {row}: drop that row."
                )
            with np.errstate(over="ignore"):  # to minus infinity, whose exponential is right
                block -= block.max(axis=1, keepdims=True)
            np.exp(block, out=block)
            block /= block.sum(axis=1, keepdims=True)
            yield block.tobytes()

    return gather(blocks(), dtype=np.dtype(np.float64), shape=logits.shape)


@contextmanager
def blame(arguments: Mapping[str, Path]) -> Iterator[None]:
    """Name the file instead of the argument of the function that refused it."""
    try:
        yield
    except InputError as error:
        text = str(error)
        named = [name for name in arguments if f"`{name}`" in text]
        if not named:
            raise
        for name in named:
            text = text.replace(f"`{name}`", f"`{display(arguments[name])}`")
        raise InputError(text) from error


@contextmanager
def inside(path: Path) -> Iterator[None]:
    """Name the file in which the refused arrays lie."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{display(path)}: {error}") from error


@contextmanager
def as_options(*names: str) -> Iterator[None]:
    """Name the option instead of the argument that carries its value."""
    try:
        yield
    except InputError as error:
        text = str(error)
        for name in names:
            text = text.replace(f"`{name}`", f"`--{name.replace('_', '-')}`")
        raise InputError(text) from error
