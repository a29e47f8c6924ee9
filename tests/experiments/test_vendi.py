"""The Vendi and Sobol studies, every path at a tiny size, on pages of their own."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.sobol import variance_ratio
from experiments.vendi import __main__ as vendi
from experiments.vendi import coverage, large, spread
from genbounds.simulate import SphereClustersArm
from tests.experiments.conftest import section


@pytest.fixture
def small(monkeypatch):
    """Only 2,000 rows for the truth of the network's features."""
    rows = coverage.NetworkDigits().draw(2000, np.random.default_rng(0))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    spectrum = np.linalg.eigvalsh(rows.T @ rows / 2000)[::-1]
    for module in (coverage, vendi):
        monkeypatch.setattr(module, "moment_spectrum", lambda: spectrum)


def table_rows(page, name):
    lines = section(page, name).splitlines()
    return [line.split("|")[1:-1] for line in lines if line.startswith("|")]


@pytest.mark.nightly
@pytest.mark.slow
def test_every_study_of_coverage_runs(page, small):
    studies = list(coverage.studies())
    assert all(study.share <= 12 for study in studies)
    assert coverage.main(["--replications", "12", "--page", str(page)]) == 0
    rows = table_rows(page, "vendi-coverage")[2:]
    assert len(rows) == len(studies)
    truths = {row[0].strip(): float(row[3]) for row in rows}
    assert truths["10 equal clusters, cosine, order 1, n=500"] == 10.0
    assert 1.0 < min(truths.values()) < max(truths.values()) < 300.0


@pytest.mark.slow
def test_large_samples_are_scored_by_what_can(page, small):
    assert large.main(["--sizes", "60", "150", "--page", str(page)]) == 0
    rows = table_rows(page, "vendi-large")[2:]
    assert len(rows) == sum(map(large.affordable, vendi.lines())) == 16
    assert not any(
        row[1].strip() == "rbf" and row[2].strip().startswith(("exact", "lanczos", "truncated"))
        for row in rows
    )


@pytest.mark.slow
def test_convergence_and_dials_run(page, small, monkeypatch):
    monkeypatch.setattr(vendi, "CLUSTERS", SphereClustersArm((0.5, 0.5), (1, 1)))
    monkeypatch.setattr(vendi, "KEPT", 3)
    monkeypatch.setattr(vendi, "FREQUENCIES", 5)
    given = ["--sizes", "40", "80", "--dial", "120", "--few", "2", "--page", str(page)]
    assert vendi.main(given) == 0
    rows = table_rows(page, "vendi")
    assert len([row for row in rows if "±" in row[3]]) == len(list(vendi.lines()))
    assert (page.parent / "images" / "vendi-convergence.svg").exists()
    two = next(row for row in rows if "uneven" in row[0] and "order 2" in row[2])
    assert float(two[-1]) == 2.0


@pytest.mark.slow
def test_spreads_run(page, small, monkeypatch):
    monkeypatch.setattr(vendi, "CLUSTERS", SphereClustersArm((0.5, 0.5), (1, 1)))
    monkeypatch.setattr(vendi, "KEPT", 3)
    monkeypatch.setattr(vendi, "FREQUENCIES", 5)
    assert spread.main(["--sizes", "20", "40", "--samples", "3", "--page", str(page)]) == 0
    rows = table_rows(page, "vendi-spread")
    assert len([row for row in rows if "±" in row[3]]) == len(list(vendi.lines()))


def test_spread_in_percent():
    """Values 9, 10, 11: a standard deviation of 1, that is 10 %, known to 1/√4 of itself."""
    assert spread.percent(np.array([9.0, 10.0, 11.0])) == "10 ± 5"


def test_variance_ratios_run(page):
    given = ["--runs", "3", "--points", "64", "--latents", "2", "8", "--page", str(page)]
    assert variance_ratio.main(given) == 0
    rows = table_rows(page, "ratios")[2:]
    assert [row[0].strip() for row in rows] == ["2", "2", "8", "8"]
    first = rows[0][2].split()
    assert float(first[0]) > 0.0
