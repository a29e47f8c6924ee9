"""The demo as a user runs it, and what it promises."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy import stats

from experiments.digits import demo

CACHE = Path(__file__).parents[2] / ".cache" / "digits"


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    assert demo.main(["--out", str(folder), "--cache", str(CACHE), "--jobs", "1"]) == 0
    return folder


@pytest.fixture(scope="module")
def results(out):
    return json.loads((out / "results.json").read_text())


@pytest.mark.nightly
@pytest.mark.slow
def test_the_selection_certifies_the_offline_winner_with_fewer_images(results):
    certified, uniform = results["selections"]["lucb"], results["selections"]["uniform"]
    honest = [name for name in results["offline"]["scores"] if name != "memoriser"]
    assert certified["certified"]
    assert uniform["certified"]
    assert certified["best"] == uniform["best"] == honest[0]
    spent = [sum(run["samples"].values()) for run in (certified, uniform)]
    assert spent[0] < spent[1]
    assert spent[1] < demo.OFFLINE * len(honest)


@pytest.mark.nightly
@pytest.mark.slow
def test_the_memoriser_fools_the_distance_and_is_named(out, results):
    for ranking in ("offline", "everyday"):
        name, score = next(iter(results[ranking]["scores"].items()))
        assert name == "memoriser"
        assert "copies" in [warning["code"] for warning in score["warnings"]]
    copied = {name: found["copies_low"] for name, found in results["copies"].items()}
    assert copied["memoriser"] >= 540
    assert all(copied[name] == 0 for name in ("gaussian", "gan", "vae", "diffusion"))
    assert f"memoriser (copies: at least {copied['memoriser']}" in (out / "report.html").read_text()


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.statistical
def test_the_intervals_cover(results):
    """Null: true coverage at least 0.92 (nominal 0.95, real features, truth from 50 samples more).

    False alarm 1e-6 by the exact binomial gate on 550 intervals. Power: a true coverage of 0.80,
    what plug-in intervals have here, is caught with probability above 0.999.
    """
    tried = sum(row["replications"] for row in results["coverage"].values())
    missed = sum(row["misses"] for row in results["coverage"].values())
    assert stats.binom.sf(missed - 1, tried, 0.08) > 1e-6
    assert stats.binom.sf(int(0.2 * tried) - 1, tried, 0.08) < 1e-6


@pytest.mark.nightly
@pytest.mark.slow
def test_the_page_says_which_generator_for_which_digit_and_what_a_mixture_gains(out, results):
    page = (out / "report.html").read_text()
    assert sorted(results["by_class"]["winners"]) == [str(digit) for digit in range(10)]
    assert any(results["by_class"]["winners"].values())
    assert "memoriser" not in results["by_class"]["recommended"].values()
    assert "Which generator for which digit?" in page
    assert sum(results["mixture"]["weights"].values()) == pytest.approx(1.0)
    gain = float(re.search(r"It gains at least ([0-9.]+)", page)[1].rstrip("."))
    assert gain == pytest.approx(results["mixture"]["gain_low"], rel=1e-3)


@pytest.mark.nightly
@pytest.mark.slow
def test_the_trial_turns_out_as_known(results):
    verdicts = {row["id"]: row["verdict"] for row in results["audit"]["rows"]}
    assert verdicts == {
        "o24.gaussian-mean": "refuted",
        "m25.empirical-bernstein": "upheld",
        "m25.mean-norm": "refuted",
        "m25.trace-root-perturbation": "upheld",
        "repaired.gaussian-mean": "upheld",
    }


@pytest.mark.nightly
@pytest.mark.slow
def test_the_page_shows_both_numbers_and_loads_nothing(out, results):
    page = (out / "report.html").read_text()
    for policy in ("lucb", "uniform"):
        total = sum(results["selections"][policy]["samples"].values())
        assert f"{total:,}".replace(",", "\u202f") in page
    assert "<script src" not in page
    assert 'href="http' not in page
    assert (out / "ranking.svg").read_text().startswith("<svg")


def test_a_strip_has_no_ground_of_its_own():
    """It is dark where the page is, and few enough images to be seen on a phone."""
    picture = np.asarray(Image.open(io.BytesIO(demo.strip(np.full((3, 8, 8), 0.4)))))
    assert picture.shape == (8, 26, 2)
    between = [8, 17]
    assert not picture[:, between, 1].any()
    shown = np.delete(picture, between, axis=1)
    assert (shown[..., 0] == 102).all()
    assert (shown[..., 1] == 255).all()
    assert 360 / (demo.STRIP * 9) > 2  # pixels of the screen to a pixel
