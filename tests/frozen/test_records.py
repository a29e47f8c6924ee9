"""Documents, signatures, warnings and random streams are what they were."""

from __future__ import annotations

import importlib
import json
import math
from typing import Any

import pytest

from tests.frozen.records import RECORDS, path_of

RTOL = 1e-4
"""Numbers are kept to six digits; another processor rounds the ends of intervals otherwise."""


def differences(found: Any, kept: Any, where: str = "") -> list[str]:
    """Return the places in which two documents differ."""
    if isinstance(found, dict) and isinstance(kept, dict):
        names = sorted(found.keys() | kept.keys())
        missing = [f"{where}/{k}" for k in names if (k in found) != (k in kept)]
        both = [k for k in names if k in found and k in kept]
        return missing + [x for k in both for x in differences(found[k], kept[k], f"{where}/{k}")]
    if isinstance(found, list) and isinstance(kept, list):
        if len(found) != len(kept):
            return [f"{where}: {len(kept)} entries, now {len(found)}"]
        pairs = enumerate(zip(found, kept, strict=True))
        return [x for k, (a, b) in pairs for x in differences(a, b, f"{where}/{k}")]
    if isinstance(found, float) and isinstance(kept, (int, float)) and not isinstance(kept, bool):
        # What should be 0 is rounding: it has no digits to compare.
        alike = math.isclose(found, kept, rel_tol=RTOL, abs_tol=1e-9)
        return [] if alike else [f"{where}: {kept}, now {found}"]
    return [] if found == kept else [f"{where}: {kept!r}, now {found!r}"]


@pytest.mark.parametrize("name", RECORDS)
def test_record(name, tmp_path):
    """Changed on purpose? ``python -m tests.frozen``, and the reason into the CHANGELOG."""
    kept = json.loads(path_of(name).read_text(encoding="utf-8"))
    found = json.loads(json.dumps(RECORDS[name](tmp_path)))
    assert differences(found, kept) == []


def test_every_documented_import_works():
    for path in json.loads(path_of("imports").read_text(encoding="utf-8")):
        module, _, name = path.partition(":")
        try:
            loaded = importlib.import_module(module)
        except ImportError as error:  # what it glues to is not installed
            if str(error.name or "").startswith("genbounds"):
                raise
            continue
        assert not name or hasattr(loaded, name), path


def test_a_change_of_any_kind_is_seen():
    kept = {"a": [1.0, {"b": "x", "c": True}], "d": 2}
    for found in (
        {"a": [1.001, {"b": "x", "c": True}], "d": 2},
        {"a": [1.0, {"b": "y", "c": True}], "d": 2},
        {"a": [1.0, {"b": "x"}], "d": 2},
        {"a": [1.0], "d": 2},
        {"a": [1.0, {"b": "x", "c": False}], "d": 2},
        {"a": [1.0, {"b": "x", "c": True}], "d": 3},
        {"a": [1.0, {"b": "x", "c": True}], "d": 2, "e": None},
    ):
        assert len(differences(found, kept)) == 1
    assert differences(kept, kept) == []
