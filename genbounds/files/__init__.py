"""Reading feature, posterior and statistics files; writing results.

Large arrays are mapped from disk, or unpacked block by block into an unnamed scratch file, so
that memory does not grow with the number of rows. Nothing is ever unpickled. Every failure is one
`InputError` that names the file, says what is wrong and what to do.
"""

from genbounds.files._content import Statistics
from genbounds.files._display import display
from genbounds.files._read import (
    FORMATS,
    read,
    read_features,
    read_images,
    read_metadata,
    read_statistics,
)
from genbounds.files._storage import check_bomb, gather
from genbounds.files._write import (
    atomic_write,
    check_features_name,
    check_statistics_name,
    open_features_writer,
    write_statistics,
)

__all__ = [
    "FORMATS",
    "Statistics",
    "atomic_write",
    "check_bomb",
    "check_features_name",
    "check_statistics_name",
    "display",
    "gather",
    "open_features_writer",
    "read",
    "read_features",
    "read_images",
    "read_metadata",
    "read_statistics",
    "write_statistics",
]
