"""The work itself: items to features, block by block, so that it can stop and go on."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.estimators import Moments
from genbounds.features._encoder import Encoder, Kind
from genbounds.features.sources import Given, Item, Source
from genbounds.files import (
    atomic_write,
    check_features_name,
    check_statistics_name,
    display,
    open_features_writer,
    read_features,
    read_metadata,
    read_statistics,
    write_statistics,
)
from genbounds.origins import origin_warnings
from genbounds.validation import InputError, check_count, check_finite

Progress = Callable[[int, int | None, str], None]
_PLAN = "plan.json"
BLOCK = 4096
"""Rows kept at a time: what an interruption loses at most, and what memory must hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """What an extraction wrote.

    Attributes
    ----------
    out : Path or None
        The file of features.
    moments : Path or None
        The file of statistics.
    n, d : int
        Rows and features.
    resumed : int
        How many rows were there already, from an interrupted run or a finished one.
    origin : dict of str to str
        Encoder, weights, preprocessing, precision and versions, as stored with the features.
    notes : tuple of str
        Every reason not to trust them.
    """

    out: Path | None
    moments: Path | None
    n: int
    d: int
    resumed: int
    origin: dict[str, str]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {
            "out": None if self.out is None else str(self.out),
            "moments": None if self.moments is None else str(self.moments),
            "n": self.n,
            "d": self.d,
            "resumed": self.resumed,
            "origin": self.origin,
            "notes": list(self.notes),
        }


def extract(
    source: Source,
    encoder: Encoder,
    *,
    out: str | os.PathLike[str] | None = None,
    moments: str | os.PathLike[str] | None = None,
    batch: int = 64,
    block: int | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Extraction:
    """Encode everything in a source; write features, statistics or both.

    Parameters
    ----------
    source : Source
        See `open_source`.
    encoder : Encoder
        See `load_encoder`.
    out : path-like, optional
        ``.safetensors`` (which also says how the features were made), ``.npy``, or ``.npz`` with
        the array called ``reps``, as dgm-eval reads it.
    moments : path-like, optional
        ``.npz`` with ``mu``, ``sigma`` and ``n``, as pytorch-fid reads it. Without `out` no
        features are kept.
    batch : int
        Items that go through the encoder at once.
    block : int
        Rows kept at a time, rounded up to whole batches: what an interruption loses at most, and
        what memory must hold. 4,096 by default.
    workers : int, optional
        Threads that decode and resize; as many as processors (at most eight) by default. The
        result does not depend on it.
    progress : callable, optional
        Told the number of rows done, of all rows (None if nobody knows) and a remark.

    Returns
    -------
    Extraction

    Raises
    ------
    InputError
        If an item cannot be read or encoded (it is named), a file cannot be written, or the folder
        of finished blocks belongs to another run.

    Notes
    -----
    Finished blocks wait in a folder beside the result, called like it with ``.parts``. The same
    call goes on after the last of them and ends with the same bytes as without the interruption,
    because blocks hold whole batches and so every batch is the same.
    """
    if out is None and moments is None:
        raise InputError("nowhere to write to: name `out`, `moments` or both.")
    if out is not None:
        check_features_name(out)
    if moments is not None:
        check_statistics_name(moments)
    _check_kind(source, encoder)
    batch = check_count("batch", batch)
    block = BLOCK if block is None else check_count("block", block)
    block = -(-max(block, 2) // batch) * batch
    origin = {**source.origin(), **encoder.description}
    job = _Job(
        source=source,
        encoder=encoder,
        out=None if out is None else Path(out),
        moments=None if moments is None else Path(moments),
        batch=batch,
        block=block,
        workers=min(os.cpu_count() or 1, 8) if workers is None else check_count("workers", workers),
        progress=progress or (lambda done, total, remark: None),
        origin=origin,
    )
    return job.run()


def encode(encoder: Encoder, items: Iterable[Any], *, batch: int = 64) -> NDArray[Any]:
    """Encode, by `encoder`, `items` in memory, `batch` at a time: images (Pillow, uint8) or texts.

    Returns
    -------
    ndarray of shape (n, d)
    """
    kind: Kind = encoder.takes or "images"
    source = Given(items, kind=kind, label="the model's output")
    if not source.count:
        raise InputError("there is nothing to encode.")
    return np.concatenate(list(_batches(source, encoder, start=0, batch=batch, workers=1)))


def _check_kind(source: Source, encoder: Encoder) -> None:
    if encoder.takes not in (None, source.kind):
        name = encoder.description.get("encoder", "the encoder")
        raise InputError(f"{name} takes {encoder.takes}; the input holds {source.kind}.")


# --- one run ------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class _Job:
    source: Source
    encoder: Encoder
    out: Path | None
    moments: Path | None
    batch: int
    block: int
    workers: int
    progress: Progress
    origin: dict[str, str]
    run_id: str = field(init=False)
    """A digest of everything that decides the result."""

    def __post_init__(self) -> None:
        plan = [
            self.source.fingerprint(), sorted(self.origin.items()), self.batch, self.block,
            self.out is None,
        ]  # fmt: skip
        self.run_id = hashlib.sha256(json.dumps(plan).encode()).hexdigest()

    @property
    def parts(self) -> Path:
        """Where finished blocks wait."""
        target = self.out or self.moments
        assert target is not None
        return target.with_name(target.name + ".parts")

    def run(self) -> Extraction:
        done = self._finished()
        if done is not None:
            return done
        self._claim_parts()
        try:
            return self._go_on()
        finally:
            if not self._has_blocks():
                shutil.rmtree(self.parts, ignore_errors=True)

    def _go_on(self) -> Extraction:
        """Do what is left to do."""
        kept: _Blocks | _Running = (
            _Blocks(self.parts, self.block) if self.out else _Running(self.parts)
        )
        resumed = kept.rows
        self.progress(resumed, self.source.count, "")
        for rows in self._blocks(resumed):
            kept.add(rows)
        if kept.rows < (2 if self.moments else 1):
            raise InputError(f"statistics need at least 2 items; the input holds {kept.rows}.")
        stored = self.origin | {"run": self.run_id}
        if self.out is not None and isinstance(kept, _Blocks):
            kept.assemble(self.out, stored)
        if self.moments is not None:
            total = kept.moments()
            write_statistics(self.moments, total.mean, total.cov, total.n, metadata=stored)
        result = self._result(kept.rows, kept.d, resumed)
        shutil.rmtree(self.parts, ignore_errors=True)
        return result

    def _has_blocks(self) -> bool:
        return self.parts.is_dir() and any(path.name != _PLAN for path in self.parts.iterdir())

    def _result(self, n: int, d: int, resumed: int) -> Extraction:
        return Extraction(
            out=self.out,
            moments=self.moments,
            n=n,
            d=d,
            resumed=resumed,
            origin=self.origin,
            notes=tuple(warning.message for warning in origin_warnings({"": self.origin})),
        )

    def _finished(self) -> Extraction | None:
        """Return what an earlier run of the same job left, if it left everything."""
        shape: tuple[int, ...] | None = None
        for path in (self.out, self.moments):
            if path is None:
                continue
            with suppress(InputError):
                if path.is_file() and read_metadata(path).get("run") == self.run_id:
                    if path == self.out:
                        shape = read_features(path).shape
                    else:
                        mean, _, n = read_statistics(path)
                        shape = (n or 0, len(mean))
                    continue
            return None
        return None if shape is None else self._result(shape[0], shape[1], resumed=shape[0])

    def _claim_parts(self) -> None:
        plan = self.parts / _PLAN
        text = json.dumps({"run": self.run_id, "origin": self.origin}, indent=1, sort_keys=True)
        if not self._has_blocks():
            atomic_write(plan, text)
            return
        try:
            same = plan.read_text(encoding="utf-8") == text
        except (OSError, ValueError):
            same = False
        if not same:
            raise InputError(
                f"{display(self.parts)}: holds blocks of another run (another input, encoder or "
                "batch): repeat that run, delete the folder, or write elsewhere."
            )

    def _blocks(self, start: int) -> Iterator[NDArray[Any]]:
        """Yield blocks of features from row `start` on; the last may be shorter."""
        held: list[NDArray[Any]] = []
        rows = start
        for features in _batches(
            self.source, self.encoder, start=start, batch=self.batch, workers=self.workers
        ):
            held.append(features)
            rows += len(features)
            self.progress(rows, self.source.count, "")
            if (rows - start) % self.block == 0:
                yield np.concatenate(held)
                held.clear()
        if held:
            yield np.concatenate(held)


def _batches(
    source: Source, encoder: Encoder, *, start: int, batch: int, workers: int
) -> Iterator[NDArray[Any]]:
    """Yield the features of one batch after the other."""
    first = start
    form: tuple[int, np.dtype[Any]] | None = None
    held: list[Any] = []

    def flush() -> NDArray[Any]:
        nonlocal first, form
        features = np.asarray(encoder.encode(held))
        if features.ndim != 2 or len(features) != len(held) or features.shape[1] < 1:
            raise InputError(
                f"the encoder returned shape {features.shape} for {len(held)} items: "
                "it must return one row of features for each."
            )
        if features.dtype.kind != "f":
            features = features.astype(np.float64)
        now = (features.shape[1], features.dtype)
        if form is not None and form != now:
            raise InputError(
                f"the encoder returned {now[0]} features of {now[1]} for the batch at item {first},"
                f" and {form[0]} of {form[1]} before: it must not change."
            )
        form = now
        check_finite("features", features.astype(np.float64, copy=False), first_row=first)
        first += len(held)
        held.clear()
        return features

    for prepared in _prepared(source, encoder, start, workers=workers, ahead=2 * batch):
        held.append(prepared)
        if len(held) == batch:
            yield flush()
    if held:
        yield flush()


def _prepared(
    source: Source, encoder: Encoder, start: int, *, workers: int, ahead: int
) -> Iterator[Any]:
    """Yield prepared items in order, a few of them made ahead by other threads."""

    def prepare(item: Item) -> Any:
        try:
            return encoder.prepare(source.decode(item.content))
        except InputError as error:
            raise InputError(f"{item.label}: {error}") from error

    items = source.items(start)
    if workers == 1 or source.kind in ("rows", "texts"):  # nothing there for threads to do
        yield from map(prepare, items)
        return
    pool = ThreadPoolExecutor(workers, thread_name_prefix="genbounds-prepare")
    waiting: deque[Future[Any]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(prepare, item))
            if len(waiting) >= ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


# --- what is kept until the end -----------------------------------------------------------------


class _Blocks:
    """Blocks of features, a file each."""

    def __init__(self, folder: Path, block: int) -> None:
        self._folder = folder
        self._block = block
        self._count = 0
        while (path := self._path(self._count)).is_file():
            # A block is written whole or not at all; a short one is the last.
            rows = len(read_features(path))
            if rows != block:
                path.unlink()
                break
            self._count += 1
        self.rows = self._count * block

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:08d}.npy"

    @property
    def d(self) -> int:
        return int(read_features(self._path(0)).shape[1])

    def add(self, rows: NDArray[Any]) -> None:
        buffer = io.BytesIO()
        np.save(buffer, rows, allow_pickle=False)
        atomic_write(self._path(self._count), buffer.getvalue())
        self._count += 1
        self.rows += len(rows)

    def _each(self) -> Iterator[NDArray[Any]]:
        for number in range(self._count):
            yield read_features(self._path(number))

    def assemble(self, out: Path, metadata: Mapping[str, str]) -> None:
        first = read_features(self._path(0))
        with open_features_writer(
            out, shape=(self.rows, first.shape[1]), dtype=first.dtype, metadata=metadata
        ) as write:
            for rows in self._each():
                write(rows)

    def moments(self) -> Moments:
        total: Moments | None = None
        for rows in self._each():
            total = _absorbed(total, rows)
        assert total is not None
        return total


class _Running:
    """The statistics of everything so far, in one file."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "moments.npz"
        self._total: Moments | None = None
        if self._path.is_file():
            self._total = Moments.load(self._path)

    @property
    def rows(self) -> int:
        return 0 if self._total is None else self._total.n or 0

    @property
    def d(self) -> int:
        return 0 if self._total is None else self._total.d

    def add(self, rows: NDArray[Any]) -> None:
        self._total = _absorbed(self._total, rows)
        if self.rows > 1:  # one row has no covariance, and is the whole input
            self._total.save(self._path)

    def moments(self) -> Moments:
        assert self._total is not None
        return self._total


def _absorbed(total: Moments | None, rows: NDArray[Any]) -> Moments:
    """Add a block's moments, by way of what a file would hold: reading it back changes nothing."""
    part = Moments.from_features(rows)
    merged = part if total is None else total.merge(part)
    if merged.n is None or merged.n < 2:
        return merged
    return Moments(merged.mean, merged.cov, merged.n)
