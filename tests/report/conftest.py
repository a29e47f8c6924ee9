"""Results as the rest of the library makes them, and hostile names."""

from __future__ import annotations

import math
from itertools import combinations

import pytest

from genbounds.results import Diagnostic, Difference, Ranking, Score

HOSTILE = {
    "script": "<script>document.title='owned'</script>",
    "image": "<img src=x onerror=\"document.title='owned'\">",
    "quotes": "a\"b'c`d&amp;",
    "long": "x" * 10_000,
    "rtl": "שלום עולם",
    "override": "abc\u202egpj.exe",
    "emoji": "🦊 👩\u200d🔬",
    "maths": r"$\frac{1$ @@0@@ {{ 7*7 }} {% raw %}",
    "control": "a\nb\x00c\x1b[31m",
    "surrogate": "\udcff",
}


def make_score(
    value: float, *, half: float = 0.2, n: int = 500, warnings: tuple[Diagnostic, ...] = ()
) -> Score:
    return Score(
        value=value,
        low=max(value - half, 0.0),
        high=value + half,
        level=0.95,
        stderr=half / 1.96,
        n=n,
        estimator="debiased",
        method="second-order",
        warnings=warnings,
        assumptions=("the rows are independent",),
    )


def make_ranking(names: list[str]) -> Ranking:
    scores = {name: make_score(1.0 + 0.25 * i**2) for i, name in enumerate(names)}
    differences = []
    for a, b in combinations(names, 2):
        gap = scores[a].value - scores[b].value
        half = 2 * math.hypot(scores[a].stderr, scores[b].stderr)
        differences.append(
            Difference(
                better=a,
                worse=b,
                value=gap,
                low=gap - half,
                high=gap + half,
                stderr=half / 2,
                pvalue=0.04,
                pvalue_adjusted=0.05,
            )
        )
    return Ranking(
        metric="fd",
        level=0.95,
        scores=scores,
        differences=tuple(differences),
        groups=(tuple(names[:2]), *((name,) for name in names[2:])),
        assumptions=("independent samples",),
    )


def make_row(name: str, verdict: str, miss: float, tightness: float | None) -> dict:
    cells = [
        {
            "arm": "gaussian(0, 1)", "n": 10, "d": 1, "delta": delta, "claimed": delta,
            "miss": miss * delta, "miss_low": 0.9 * miss * delta, "miss_high": 2.0 * delta,
            "evidence": "monte-carlo", "refutes": verdict == "refuted" and delta < 1e-3,
        }
        for delta in (0.2, 0.01, 1e-8)
    ]  # fmt: skip
    return {
        "by_delta": cells,
        "checks": [{"kind": "units", "claim": "s² & s", "holds": miss < 0.5, "found": "1 < 2"}],
        "id": name,
        "claim": "x ≤ y",
        "source": "a paper, Lemma 1",
        "form": "oracle",
        "verdict": verdict,
        "cells": 12,
        "worst": {
            "arm": "gaussian(0, 1)", "n": 10, "d": 1, "delta": 0.05, "claimed": 0.05,
            "miss": miss, "miss_low": 0.9 * miss, "miss_high": 1.1 * miss + 1e-3,
        },
        "tightness": tightness,
        "counterexample": "n = 10" if verdict == "refuted" else None,
    }  # fmt: skip


AUDIT = [
    make_row("a.refuted", "refuted", 0.3, 0.7),
    make_row("a.upheld", "upheld", 0.0, 1.4),
    make_row("a.vacuous", "vacuous", 0.0, 300.0),
    make_row("a.unknown", "upheld", 1e-9, None),
]


@pytest.fixture
def ranking() -> Ranking:
    return make_ranking(["diffusion", "flow", "gan", "vae"])


@pytest.fixture
def hostile_ranking() -> Ranking:
    return make_ranking(list(HOSTILE.values()))
