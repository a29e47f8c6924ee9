"""Names and habits: what people type works."""

from __future__ import annotations

import genbounds as gb


def test_select_takes_the_reference_first_as_score_does(run, zoo):
    real, good, bad = (zoo / f"{name}.npy" for name in ("real", "good", "bad"))
    named = run("select", "--reference", real, good, bad, "--json")
    first = run("select", real, good, bad, "--json")
    assert first.code == named.code == 0
    assert first.out == named.out
    without = run("select", zoo / "p_good.npy", zoo / "p_bad.npy", "--metric", "IS", "--json")
    assert set(without.json["samples"]) == {"p_good", "p_bad"}


def test_metrics_in_any_case(run, zoo):
    rows = [
        run("score", zoo / "real.npy", zoo / "good.npy", "--metric", name, "--json").out
        for name in ("fd", "FD", "FID")
    ]
    assert rows[0] == rows[1] == rows[2]
    assert gb.estimators.metric_spec("KID").name == "kid"
