"""What every refusal of bad input has in common."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from genbounds.validation import InputError


@contextmanager
def refused(*subjects: str) -> Iterator[None]:
    """One printable line that names these: a file, an item, an argument, a value.

    What else it says stands in the catalogues of error lines (`tests/files/test_refusals.py`,
    `tests/features/test_refusals.py`), so that a better sentence changes one place.
    """
    with pytest.raises(InputError) as caught:
        yield
    text = str(caught.value)
    assert not any(unicodedata.category(character) in ("Cc", "Cs") for character in text), repr(
        text
    )
    for subject in subjects:
        assert subject in text, text
