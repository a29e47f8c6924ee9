"""Pytest fixture `genbounds_gate`: a test that fails where a model has become worse.

pytest loads this module at every start; the library is imported by the test that asks for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from genbounds.decisions import Verdict


@pytest.fixture
def genbounds_gate() -> Callable[..., Verdict]:
    """Return `genbounds.gate`, failing the test with one line unless the gate passes.

    It takes the arguments of `genbounds.gate`, and `inconclusive`: "fail" or "pass".
    """
    from genbounds import gate
    from genbounds.validation import check_choice

    def call(*samples: Any, inconclusive: str = "fail", **settings: Any) -> Verdict:
        check_choice("inconclusive", inconclusive, ("fail", "pass"))
        verdict = gate(*samples, **settings)
        if not verdict.accepted(inconclusive):
            pytest.fail(str(verdict), pytrace=False)
        return verdict

    return call
