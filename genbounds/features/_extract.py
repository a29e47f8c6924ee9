"""Extraction: a source through an encoder into files, block by block, so that it can resume."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import reduce
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds import files
from genbounds._tables import AsJson
from genbounds._text import display, quoted
from genbounds.core.moments import KEPT
from genbounds.estimators import Moments
from genbounds.features._encoder import Encoder, Kind
from genbounds.features.sources import Given, Item, Source, item_names
from genbounds.origins import PART_KEY, PICTURES, Part, origin_warnings
from genbounds.validation import InputError, as_numpy, check_count, check_finite

_log = logging.getLogger("genbounds.features")

Progress = Callable[[int, int | None, str], None]
BLOCK = 4096
"""Rows kept at a time: what an interruption loses at most, and what memory must hold."""
SOURCE = "source"
"""The metadata that say where the items are: paths as a JSON list."""
_VERSION = 6
"""Of what files hold: results of another version are made again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction(AsJson):
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
        Every reason not to trust them, and files that were replaced.
    """

    out: Path | None
    moments: Path | None
    n: int
    d: int
    resumed: int
    origin: dict[str, str]
    notes: tuple[str, ...]


def extract(
    source: Source,
    encoder: Encoder,
    *,
    out: str | os.PathLike[str] | None = None,
    moments: str | os.PathLike[str] | None = None,
    batch: int = 64,
    block: int | None = None,
    workers: int | None = None,
    part: tuple[int, int] | None = None,
    replace: bool = True,
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
    part : tuple of int, optional
        ``(i, k)``: of k shares of the items, in their order and whole batches each, only the i-th,
        from 1. A list of the files of all parts is one sample (`genbounds.files.read`), with the
        rows, labels and names of a run without parts.
    replace : bool
        Whether what another run has written (another input, encoder or batch) is replaced. If not,
        it is refused; a file that does not say where it is from, such as ``.npy``, is replaced, and
        `notes` says so.
    progress : callable, optional
        Told the number of rows done, of all rows (None if unknown) and a remark.

    Returns
    -------
    Extraction

    Raises
    ------
    InputError
        If an item cannot be read or encoded (it is named), the input changes meanwhile, a file
        cannot be written, another run writes the same file, the folder of finished blocks
        belongs to another run, or a file does and `replace` is False.

    Notes
    -----
    Finished blocks wait in a folder beside the result, called like it with ``.parts``. The same
    call goes on after the last of them and ends with the same bytes as without the interruption,
    because blocks hold whole batches and so every batch is the same. Each block is stamped with
    what decides its rows; one that is damaged is computed again.

    Sub-folders of images become ``labels`` in `out`, unless that is ``.npy``; what a file of
    features or images says of its groups and strata is kept likewise. So are the names of the
    images (``items``), and where they lie, seen from the folder of `out` (``source``, in the
    metadata): pages show them as pictures.
    """
    if out is None and moments is None:
        raise InputError("no output: give `out`, `moments` or both.")
    if out is not None:
        files.check_name(out, "features")
    if moments is not None:
        files.check_name(moments, "statistics")
    if encoder.takes not in (None, source.kind):
        name = encoder.description.get("encoder", "the encoder")
        raise InputError(f"{display(name)} encodes {encoder.takes}; the input holds {source.kind}.")
    batch = check_count("batch", batch)
    block = BLOCK if block is None else check_count("block", block)
    block = -(-max(block, 2) // batch) * batch
    return _Job(
        source=source,
        encoder=encoder,
        out=None if out is None else Path(out),
        moments=None if moments is None else Path(moments),
        batch=batch,
        block=block,
        workers=min(os.cpu_count() or 1, 8) if workers is None else check_count("workers", workers),
        replace=replace,
        progress=progress or (lambda done, total, remark: None),
        part=None if part is None else _share(source, part, batch, out),
    ).run()


def _share(source: Source, part: object, batch: int, out: str | os.PathLike[str] | None) -> Part:
    """Return the part of the items that is asked for."""
    if out is not None and Path(out).suffix.lower() == ".npy":
        fault = (
            "is not told by a .npy file, and the parts could not be checked: write .safetensors "
            "or .npz"
        )
    elif not isinstance(part, tuple) or len(part) != 2:
        fault = f"must be (i, k), two whole numbers; got {quoted(part)}"
    elif (number := check_count("part", part[0])) > (of := check_count("part", part[1])):
        fault = f"asks for share {number} of {of}: the last is {of}"
    elif source.count is None:
        fault = (
            "needs to know how many items there are, which a packed archive does not say: unpack "
            ".tar.gz to .tar"
        )
    else:
        share = Part.share(number, of, count=source.count, batch=batch)
        if share.start < share.stop:
            return share
        made = f"{source.count} make {-(-source.count // batch)} batches of {batch}"
        fault = f"{number} of {of} has no items: {made}. Use fewer parts"
    raise InputError(f"{fault}.", argument="part")


def encode(encoder: Encoder, items: Iterable[Any], *, batch: int = 64) -> NDArray[Any]:
    """Encode, by `encoder`, `items` in memory, `batch` at a time: images (Pillow, uint8) or texts.

    Returns
    -------
    ndarray of shape (n, d)
    """
    kind: Kind = encoder.takes or "images"
    source = Given(list(items), kind=kind, label="the model's output")
    if not source.count:
        raise InputError("there is nothing to encode.")
    batches = _encoded_batches(source, encoder, batch=batch, workers=1)
    return np.concatenate(list(batches))


@dataclass(kw_only=True)
class _Job:
    """One run: what is asked for, and the digest of everything that decides the result."""

    source: Source
    encoder: Encoder
    out: Path | None
    moments: Path | None
    batch: int
    block: int
    workers: int
    replace: bool
    progress: Progress
    part: Part | None
    replaced: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.targets = [target for target in (self.out, self.moments) if target is not None]
        self.origin = {**self.source.origin(), **self.encoder.description}
        facts = self.source.survey()
        self.pictures = {PICTURES: json.dumps(facts)} if facts else {}
        part = self.part
        self.items = slice(0, None) if part is None else slice(part.start, part.stop)
        self.count = self.source.count if part is None else part.stop - part.start
        self.stamp = {} if part is None else {PART_KEY: str(part)}
        self.fingerprint = self.source.fingerprint()
        plan = [
            _VERSION, self.fingerprint, sorted(self.origin.items()), self.batch, self.block,
            self.out is None, *self.stamp.values(),
        ]  # fmt: skip
        self.run_id = hashlib.sha256(json.dumps(plan).encode()).hexdigest()

    def run(self) -> Extraction:
        """Do what an earlier run of the same job has not done."""
        if (finished := self._finished()) is not None:
            if not any(_parts_of(target).exists() for target in self.targets):
                return finished
        with ExitStack() as locks:
            for target in self.targets:
                locks.enter_context(files.locked(_parts_of(target), use=display(target)))
            # Another run may have finished before this one got the lock.
            if (finished := self._finished()) is None:
                if not self.replace:
                    self._check_replaced()
                return self._go_on()
            for target in self.targets:  # that run may have been killed while it tidied up
                remove_own(_parts_of(target), self.run_id)
            return finished

    def _check_replaced(self) -> None:
        """Refuse files of another run; note those that do not say what they are."""
        for path in filter(Path.is_file, self.targets):
            run = _metadata_of(path).get("run")
            if run is None:
                self.replaced.append(f"{display(path)}: what was there before is replaced.")
            elif run != self.run_id:
                raise InputError(
                    f"{display(path)}: holds the result of another run (another input, encoder or "
                    "batch): delete it, or write elsewhere."
                )

    def _go_on(self) -> Extraction:
        """Encode what is not encoded yet, then write the results."""
        parts = _parts_of(self.targets[0])
        kept = (
            StoredBlocks(parts, self.run_id, self.block)
            if self.out
            else RunningMoments(parts, self.run_id)
        )
        resumed = kept.rows
        self.progress(resumed, self.count, "")
        for rows in self._blocks(resumed):
            kept.add(rows)
        least = 2 if self.moments else 1
        if kept.rows < least:
            raise InputError(f"the input holds {kept.rows} items: at least {least} are needed.")
        if self.source.fingerprint() != self.fingerprint:
            files.clear(parts)
            raise InputError(
                "the input was changed while it was encoded: wait until it is written, then run "
                "this again."
            )
        stored = self.origin | self.pictures | self.stamp | {"run": self.run_id}
        if self.out is not None and isinstance(kept, StoredBlocks):
            kept.assemble(self.out, stored | _whereabouts(self.source, self.out), self._labels())
        if self.moments is not None:
            kept.moments().save(self.moments, metadata=stored)
        result = self._result(kept.rows, kept.d, resumed)
        files.clear(parts)
        return result

    def _labels(self) -> dict[str, NDArray[Any]]:
        """Return the labels and the names of the items, once all have been read."""
        labels = self.source.labels()
        if names := self.source.names():
            labels[files.ITEMS_KEY] = item_names(names)
        return {name: values[self.items] for name, values in labels.items()}

    def _result(self, n: int, d: int, resumed: int) -> Extraction:
        warnings = origin_warnings({"the input": self.origin | self.pictures})
        return Extraction(
            out=self.out,
            moments=self.moments,
            n=n,
            d=d,
            resumed=resumed,
            origin=self.origin,
            notes=(*self.replaced, *(warning.message for warning in warnings)),
        )

    def _finished(self) -> Extraction | None:
        """Return the result of an earlier run of the same job, if all of its files are there."""
        n = d = 0
        for path in self.targets:
            if (self.origin | {"run": self.run_id}).items() - _metadata_of(path).items():
                return None
            try:
                content = files.read(path)
                if isinstance(content, files.Statistics):
                    n, d = content.n or 0, len(content.mean)
                else:
                    n, d = content.shape
                    files.label_arrays(path, n)  # damaged as well?
            except InputError:
                _log.warning("%s: is damaged: computed again.", display(path))
                return None
        return self._result(n, d, resumed=n)

    def _blocks(self, done: int) -> Iterator[NDArray[Any]]:
        """Yield blocks of features after the first `done` rows; the last may be shorter."""
        held: list[NDArray[Any]] = []
        rows = done
        for features in _encoded_batches(
            self.source,
            self.encoder,
            start=self.items.start + done,
            stop=self.items.stop,
            batch=self.batch,
            workers=self.workers,
        ):
            held.append(features)
            rows += len(features)
            self.progress(rows, self.count, "")
            if (rows - done) % self.block == 0:
                yield np.concatenate(held)
                held.clear()
        if held:
            yield np.concatenate(held)


def _metadata_of(path: Path) -> dict[str, str]:
    """Return what a file says of itself; nothing if it is gone, damaged or another program's."""
    try:
        return files.read_metadata(path)
    except InputError:
        return {}


def _encoded_batches(
    source: Source,
    encoder: Encoder,
    *,
    start: int = 0,
    stop: int | None = None,
    batch: int,
    workers: int,
) -> Iterator[NDArray[Any]]:
    """Yield the features (rows, d) of one batch of items after the other.

    Parameters
    ----------
    source, encoder
    start, stop : int
        Numbers of the first item, and of the first that is left out.
    batch : int
        Items in a batch; the last may have fewer.
    workers : int
        Threads that prepare items.

    Raises
    ------
    InputError
        If an item cannot be prepared (it is named), or the encoder returns something else than
        finite features of one number and type.
    """
    first, before = start, None
    # Two batches ahead: one waits while the encoder is busy with the other.
    with closing(_prepared(source, encoder, start, stop, workers, ahead=2 * batch)) as prepared:
        while items := list(islice(prepared, batch)):
            features = _encode(encoder, items)
            form = features.shape[1], features.dtype
            if before is not None and form != before:
                raise InputError(
                    f"the encoder returned {form[0]} features of {form[1]} for the batch at item "
                    f"{first}, and {before[0]} of {before[1]} before: it must not change."
                )
            check_finite("features", features.astype(np.float64, copy=False), first_row=first)
            yield features
            first, before = first + len(items), form


def _encode(encoder: Encoder, items: list[Any]) -> NDArray[Any]:
    features = as_numpy("features", encoder.encode(items))
    if features.dtype.kind not in "fiub":  # a cast would drop the imaginary part, or read texts
        raise InputError(
            f"the encoder returned {display(features.dtype, limit=60)}: it must return real "
            "numbers."
        )
    if features.ndim != 2 or len(features) != len(items) or features.shape[1] < 1:
        raise InputError(
            f"the encoder returned shape {features.shape} for {len(items)} items: "
            "it must return one row of features for each."
        )
    narrow = features.dtype.kind == "f" and features.dtype.itemsize <= 8
    return features if narrow else features.astype(np.float64)


def _prepared(
    source: Source, encoder: Encoder, start: int, stop: int | None, workers: int, *, ahead: int
) -> Generator[Any, None, None]:
    """Yield prepared items in order; other threads prepare up to `ahead` of them beforehand."""

    def prepare(item: Item) -> Any:
        try:
            return encoder.prepare(source.decode(item.content))
        except InputError as error:
            raise InputError(f"{item.label}: {error}") from error

    items = islice(source.items(start), None if stop is None else stop - start)
    if workers == 1 or source.kind in ("rows", "texts"):  # too little work for threads
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


def _whereabouts(source: Source, out: Path) -> dict[str, str]:
    """Say where the items lie, seen from the folder of the features: both may be moved together."""
    if not source.inputs or source.kind == "rows":
        return {}
    folder = os.path.abspath(out.parent)
    try:
        paths = [os.path.relpath(path, folder) for path in source.inputs]
    except ValueError:  # on another drive
        paths = [os.path.abspath(path) for path in source.inputs]
    return {SOURCE: json.dumps(paths)}


def _parts_of(target: Path) -> Path:
    """Return the folder beside a result in which finished blocks wait for it."""
    return target.with_name(target.name + ".parts")


_log = logging.getLogger("genbounds.features")


# --- what is kept until it is finished, in a folder beside the result -----------------------------


class StoredBlocks:
    """Blocks of features, a file each, stamped with their run.

    Parameters
    ----------
    folder : Path
    run : str
        What decides every row of the result.
    block : int
        Rows of every block but the last.

    Raises
    ------
    InputError
        If the folder holds blocks of another run.
    """

    def __init__(self, folder: Path, run: str, block: int) -> None:
        self._folder, self._run = folder, run
        self._count = self.d = 0
        for path in map(self._path, count()):
            rows = _kept(path, run, "blocks", files.read_features)
            # A short block is the last of a run that was stopped before it wrote its result.
            if rows is None or len(rows) != block:
                break
            self._count += 1
            self.d = rows.shape[1]
        self.rows = self._count * block

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:08d}.safetensors"

    def _blocks(self) -> Iterator[NDArray[Any]]:
        for number in range(self._count):
            yield files.read_features(self._path(number))

    def add(self, rows: NDArray[Any]) -> None:
        """Keep one more block."""
        path, stamp = self._path(self._count), {"run": self._run}
        with files.open_features_writer(
            path, shape=rows.shape, dtype=rows.dtype, metadata=stamp
        ) as write:
            write(rows)
        self._count += 1
        self.rows += len(rows)
        self.d = rows.shape[1]

    def assemble(
        self, out: Path, metadata: Mapping[str, str], labels: Mapping[str, NDArray[Any]]
    ) -> None:
        """Write all blocks as one file of features."""
        dtype, shape = files.read_features(self._path(0)).dtype, (self.rows, self.d)
        with files.open_features_writer(
            out, shape=shape, dtype=dtype, metadata=metadata, labels=labels
        ) as write:
            for rows in self._blocks():
                write(rows)

    def moments(self) -> Moments:
        """Return the statistics of all rows."""
        blocks = self._blocks()
        return reduce(_merged, blocks, _merged(None, next(blocks)))


class RunningMoments:
    """The statistics of everything so far, in one file that is stamped with its run.

    Raises
    ------
    InputError
        If the folder holds statistics of another run.
    """

    def __init__(self, folder: Path, run: str) -> None:
        self._path, self._run = folder / "moments.npz", run
        self._total: Moments | None = _kept(self._path, run, "statistics", Moments.load)
        self.rows = self.d = 0
        if self._total is not None:
            self.rows, self.d = self._total.n or 0, self._total.d

    def add(self, rows: NDArray[Any]) -> None:
        """Take one more block into account."""
        self._total = _merged(self._total, rows)
        self.rows, self.d = self.rows + len(rows), rows.shape[1]
        if self.rows > 1:  # one row has no covariance, and is the whole input
            self._total.save(self._path, metadata={"run": self._run})

    def moments(self) -> Moments:
        """Return the statistics of all rows."""
        assert self._total is not None
        return self._total


def _kept(path: Path, run: str, what: str, read: Callable[[Path], Any]) -> Any:
    """Return what a file of this run holds; None if there is none, or it is damaged."""
    if not path.is_file():
        return None
    try:
        stamp, content = files.read_metadata(path), read(path)
    except InputError:
        _log.warning("%s: is damaged: computed again.", display(path))
        return None
    if stamp.get("run") != run:
        raise InputError(
            f"{display(path.parent)}: holds {what} of another run (another input, encoder or "
            "batch): repeat that run, delete the folder, or write elsewhere."
        )
    return content


def _merged(total: Moments | None, rows: NDArray[Any]) -> Moments:
    """Add the moments of a block, rounded as a file would hold them.

    A run that was interrupted reads them from a file and must end with the same bytes.
    """
    part = Moments.from_features(rows, keep=KEPT)
    merged = part if total is None else total.merge(part)
    if merged.n is None or merged.n < 2:
        return merged
    return Moments.from_statistics(files.Statistics(merged.mean, merged.cov, merged.n, merged.rows))


def remove_own(folder: Path, run: str) -> None:
    """Remove what `run` kept in a locked folder, and what was half written there."""
    for path in (*folder.glob("*.safetensors"), *folder.glob("*.npz")):
        if _metadata_of(path).get("run") == run:
            path.unlink()
    for path in folder.glob(".genbounds-*.part"):
        path.unlink()
