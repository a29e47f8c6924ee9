"""Apache Parquet, one group of rows at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.files._content import FEATURE_KEYS
from genbounds.files._display import display
from genbounds.files._errors import optional_library
from genbounds.files._storage import check_bomb, gather
from genbounds.validation import InputError


def parquet_rows(path: Path, shown: str) -> NDArray[Any]:
    """Read a column of lists, or all columns, as an array (rows, d)."""
    parquet = optional_library("pyarrow.parquet", "parquet", "PyArrow", shown)
    from pyarrow import types

    with parquet.ParquetFile(path) as file:
        schema = file.schema_arrow
        lists = [name for name in FEATURE_KEYS[:2] if name in schema.names]
        if len(lists) > 1:
            raise InputError(
                f"{shown}: is ambiguous, it has {' and '.join(lists)}: keep one of them."
            )
        columns = lists or list(schema.names)
        if len(set(schema.names)) < len(schema.names):
            raise InputError(f"{shown}: has two columns of one name: rename one of them.")
        as_lists = bool(lists) and types.is_nested(schema.field(lists[0]).type)
        for name in columns:
            kind = schema.field(name).type
            if as_lists and hasattr(kind, "value_type"):
                kind = kind.value_type
            if not (types.is_floating(kind) or types.is_integer(kind)):
                raise InputError(
                    f"{shown}: column {display(name, limit=40)} holds {display(kind, limit=40)}, "
                    "not numbers: keep a column of lists `features`, or numeric columns only."
                )
        rows = file.metadata.num_rows
        if rows < 1 or not columns:
            raise InputError(
                f"{shown}: has {rows} rows and {len(columns)} columns: write it again."
            )
        batches = file.iter_batches(batch_size=4096, columns=columns)
        blocks = (_block(batch, as_lists, shown) for batch in batches if batch.num_rows)
        first = next(blocks, None)
        if first is None:
            raise InputError(f"{shown}: has {rows} rows announced and none there: write it again.")
        shape = (rows, first.shape[1])
        check_bomb(shown, math.prod(shape) * first.itemsize, path.stat().st_size)

        def chunks() -> Iterator[bytes]:
            yield first.tobytes()
            for block in blocks:
                if block.shape[1] != shape[1]:
                    raise _ragged(shown)
                yield block.astype(first.dtype, copy=False).tobytes()

        return gather(chunks(), dtype=first.dtype, shape=shape)


def _block(batch: Any, as_lists: bool, shown: str) -> NDArray[Any]:
    """One batch of rows as an array (rows, d)."""
    if any(column.null_count for column in batch.columns):
        raise InputError(f"{shown}: has missing values: drop those rows.")
    if not as_lists:
        return np.column_stack([column.to_numpy(zero_copy_only=False) for column in batch.columns])
    lists = batch.column(0)
    values = lists.flatten()
    if values.null_count:
        raise InputError(f"{shown}: has missing values: drop those rows.")
    # Row lengths are equal exactly if every list starts where equal lists would.
    d, rest = divmod(len(values), len(lists))
    lengths = lists.value_lengths().to_numpy(zero_copy_only=False)
    if rest or (lengths != d).any():
        raise _ragged(shown)
    return np.asarray(values.to_numpy(zero_copy_only=False)).reshape(len(lists), d)


def _ragged(shown: str) -> InputError:
    return InputError(
        f"{shown}: has lists of different lengths: every row needs the same number of features."
    )
