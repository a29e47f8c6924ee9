"""Apache Parquet, one group of rows at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from genbounds._scratch import gather
from genbounds._text import display
from genbounds.files._content import FEATURE_KEYS, LABEL_KEYS, Contents, Stored
from genbounds.files._libraries import AS_NPY, library
from genbounds.files._zip import check_bomb
from genbounds.validation import InputError

_BATCH = 4096
"""Rows that are decoded at a time."""


def parquet_contents(file: IO[bytes], size: int, shown: str) -> Contents:
    """Read the schema of a table: a column of lists, or a numeric column a feature; labels."""
    needed_for = f"{shown}: reading it"
    parquet = library("pyarrow.parquet", extra="parquet", needed_for=needed_for, instead=AS_NPY)
    table = parquet.ParquetFile(file, page_checksum_verification=True)
    names = list(table.schema_arrow.names)
    if len(set(names)) < len(names):
        raise InputError(f"{shown}: has two columns of one name: rename one of them.")
    rows = table.metadata.num_rows
    members: dict[str, Callable[[], Stored]] = {
        field.name: partial(_label_column, parquet, field, rows, file, size, shown)
        for field in table.schema_arrow
    }
    lists = [name for name in FEATURE_KEYS[:2] if name in names]
    for name in lists:
        members[name] = partial(_features, table, [name], size, shown)
    wide = [] if lists else [name for name in names if name not in LABEL_KEYS]
    if not lists:
        members["features"] = partial(_features, table, wide, size, shown)
    return Contents(shown, size, members, columns=wide)


def _features(table: Any, columns: list[str], size: int, shown: str) -> Stored:
    """Check that these columns hold numbers, or lists of them; read the first rows."""
    from pyarrow import types

    schema = table.schema_arrow
    as_lists = len(columns) == 1 and types.is_nested(schema.field(columns[0]).type)
    for name in columns:
        kind = schema.field(name).type
        if as_lists and hasattr(kind, "value_type"):
            kind = kind.value_type
        if not (types.is_floating(kind) or types.is_integer(kind)):
            raise InputError(
                f"{shown}: column {display(name, limit=40)} holds {display(kind, limit=40)}, "
                "not numbers: keep a column of lists `features`, or numeric columns only."
            )
    rows = table.metadata.num_rows
    if rows < 1 or not columns:
        raise InputError(f"{shown}: has {rows} rows and {len(columns)} columns: write it again.")
    batches = table.iter_batches(batch_size=_BATCH, columns=columns)
    blocks = (_block(batch, as_lists, shown) for batch in batches if batch.num_rows)
    first = next(blocks, None)
    if first is None:
        raise InputError(f"{shown}: has {rows} rows announced and none there: write it again.")
    shape = (rows, first.shape[1])
    check_bomb(shown, math.prod(shape) * first.itemsize, size)

    def chunks() -> Iterator[bytes]:
        yield first.tobytes()
        for block in blocks:
            if block.shape[1] != shape[1]:
                raise _ragged(shown)
            yield block.astype(first.dtype, copy=False).tobytes()

    return Stored(
        shown, shape, first.dtype, make=lambda: gather(chunks(), dtype=first.dtype, shape=shape)
    )


def _block(batch: Any, as_lists: bool, shown: str) -> NDArray[Any]:
    """Return one batch of rows as an array (rows, d)."""
    if any(column.null_count for column in batch.columns):
        raise _missing(shown)
    if not as_lists:
        return np.column_stack([column.to_numpy(zero_copy_only=False) for column in batch.columns])
    lists = batch.column(0)
    values = lists.flatten()
    if values.null_count:
        raise _missing(shown)
    # Row lengths are equal exactly if every list starts where equal lists would.
    d, rest = divmod(len(values), len(lists))
    lengths = lists.value_lengths().to_numpy(zero_copy_only=False)
    if rest or (lengths != d).any():
        raise _ragged(shown)
    return np.asarray(values.to_numpy(zero_copy_only=False)).reshape(len(lists), d)


def _label_column(
    parquet: Any, field: Any, rows: int, file: IO[bytes], size: int, shown: str
) -> Stored:
    """Check that a column holds integers or texts."""
    from pyarrow import types

    name, kind = field.name, field.type
    texts = kind.value_type if types.is_dictionary(kind) else kind
    if not (types.is_integer(kind) or types.is_string(texts) or types.is_large_string(texts)):
        raise InputError(
            f"{shown}: column {display(name, limit=40)} holds {display(kind, limit=40)}: "
            "labels are integers or texts, one per row."
        )

    def load() -> NDArray[Any]:
        # The same number or text may fill millions of rows of a small file.
        check_bomb(shown, rows * 8, size, "labels")
        # Kept as codes and a dictionary, however long the texts are.
        table = parquet.ParquetFile(
            file,
            read_dictionary=[] if types.is_integer(kind) else [name],
            page_checksum_verification=True,
        )
        column = table.read(columns=[name]).column(0)
        if column.null_count:
            raise _missing(shown)
        if types.is_integer(kind):
            return np.asarray(column.to_numpy())
        encoded = column.unify_dictionaries().combine_chunks()
        known = np.array(encoded.dictionary.to_pylist())
        check_bomb(shown, rows * known.itemsize, size, "labels")
        return np.asarray(known[encoded.indices.to_numpy()])

    dtype = np.dtype("i8" if types.is_integer(kind) else "U1")
    return Stored(shown, (rows,), dtype, make=load)


def _missing(shown: str) -> InputError:
    return InputError(f"{shown}: has missing values: drop those rows.")


def _ragged(shown: str) -> InputError:
    return InputError(
        f"{shown}: has lists of different lengths: every row needs the same number of features."
    )
