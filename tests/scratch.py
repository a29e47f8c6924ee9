"""Where arrays are kept, for tests: what a large file does in earnest, a small one does here."""

from __future__ import annotations

import pytest


def keep_in_memory(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Let arrays of more bytes than `size` go to a scratch file."""
    monkeypatch.setattr("genbounds._process.IN_MEMORY", size)


def read_at_once(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Let files be read in chunks of so many bytes."""
    monkeypatch.setattr("genbounds._process.CHUNK", size)


def compute_at_once(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Let blocks of a dask array be computed together up to so many bytes."""
    monkeypatch.setattr("genbounds._process._AT_ONCE", size)
