"""Reading feature, posterior and statistics files; writing results.

Large arrays are copied or unpacked, block by block, into an unnamed scratch file and mapped from
there: memory does not grow with the number of rows, and what another program does to a file
meanwhile changes no result. Nothing is ever unpickled. Every failure is one `InputError` that names
the file, says what is wrong and what to do.
"""

# What the rest of the package needs of files; not part of the interface.
from genbounds._scratch import gather as gather
from genbounds._text import display as display
from genbounds.files._content import ITEMS_KEY as ITEMS_KEY
from genbounds.files._content import Contents as Contents
from genbounds.files._content import Labels, Statistics
from genbounds.files._content import check_bomb as check_bomb
from genbounds.files._content import labels_named as labels_named
from genbounds.files._content import labels_of as labels_of
from genbounds.files._foreign import SAFE as SAFE
from genbounds.files._foreign import library as library
from genbounds.files._open import FORMATS
from genbounds.files._open import contents_of as contents_of
from genbounds.files._open import open_at_once as open_at_once
from genbounds.files._open import read_header as read_header
from genbounds.files._open import reason_of as reason_of
from genbounds.files._open import shards_of as shards_of
from genbounds.files._plain import KNOWN_PACKS as KNOWN_PACKS
from genbounds.files._plain import open_zip as open_zip
from genbounds.files._read import image_count as image_count
from genbounds.files._read import label_arrays as label_arrays
from genbounds.files._read import (
    read,
    read_features,
    read_images,
    read_labels,
    read_metadata,
    read_statistics,
)
from genbounds.files._read import stream_images as stream_images
from genbounds.files._write import atomic_write as atomic_write
from genbounds.files._write import check_name as check_name
from genbounds.files._write import clear as clear
from genbounds.files._write import locked as locked
from genbounds.files._write import open_features_writer, write_statistics
from genbounds.files._write import written_aside as written_aside

__all__ = [
    "FORMATS",
    "Labels",
    "Statistics",
    "open_features_writer",
    "read",
    "read_features",
    "read_images",
    "read_labels",
    "read_metadata",
    "read_statistics",
    "write_statistics",
]
