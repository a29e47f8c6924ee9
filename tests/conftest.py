"""Test-wide settings: the same examples at every run, more of them on request."""

from __future__ import annotations

import os

# One thread a process: products here are small, and the threads of several workers spin against
# each other (measured on two cores: a seventh of the processor time). Before NumPy is imported;
# workers and commands started by tests inherit it.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

# A fixed set of examples, so that a red run is red again; HYPOTHESIS_PROFILE=explore searches on.
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.fixture(autouse=True)
def _only_our_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the metrics that a test, or a page of the documentation, registers."""
    from genbounds.estimators import _metric_spec

    monkeypatch.setattr(_metric_spec, "_registry", _metric_spec._registry.new_child())
