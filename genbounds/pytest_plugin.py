"""Pytest fixture `genbounds_gate`: a test that fails where a model has become worse.

pytest loads this module at every start; the library is imported by the test that asks for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from genbounds.decisions import Verdict


class GateFixture(Protocol):
    """What the fixture is: `genbounds.gate` that fails the test."""

    def __call__(
        self,
        candidate: Any,
        baseline: Any,
        reference: Any = None,
        *,
        inconclusive: str = "fail",
        **settings: Any,
    ) -> Verdict:
        """Hold `candidate` against `baseline`; `settings` are those of `genbounds.gate`."""


@pytest.fixture
def genbounds_gate() -> GateFixture:
    """Return `genbounds.gate`, failing the test with one line unless the gate passes."""
    from genbounds import gate
    from genbounds.validation import check_choice

    def call(
        candidate: Any,
        baseline: Any,
        reference: Any = None,
        *,
        inconclusive: str = "fail",
        **settings: Any,
    ) -> Verdict:
        check_choice("inconclusive", inconclusive, ("fail", "pass"))
        verdict = gate(candidate, baseline, reference, **settings)
        if not verdict.accepted(inconclusive):
            pytest.fail(str(verdict), pytrace=False)
        return verdict

    return call
