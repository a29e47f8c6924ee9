"""Test-wide settings: the same examples at every run, more of them on request."""

from __future__ import annotations

import os

from hypothesis import settings

# A fixed set of examples, so that a red run is red again; HYPOTHESIS_PROFILE=explore searches on.
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))
