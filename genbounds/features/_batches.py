"""Items to features, one batch after the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.features._encoder import Encoder
from genbounds.features.sources import Item, Source
from genbounds.files import display
from genbounds.validation import InputError, as_numpy, check_finite


def encoded_batches(
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
