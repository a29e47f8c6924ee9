"""Folders of PNG files end in the same scores and ranking as the arrays they were written from."""

from __future__ import annotations

import json

import numpy as np
import pytest

import genbounds as gb
from experiments.digits import folders
from genbounds import cli, files
from genbounds.features import encode, load_encoder

pytest.importorskip("torch")
pytest.importorskip("sklearn")

from tests.experiments.test_digits import TINY

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("folders")]  # networks are trained once


@pytest.fixture(scope="module", autouse=True)
def tiny(tmp_path_factory):
    before = dict(folders.settings)
    folders.settings |= {"cache": tmp_path_factory.mktemp("digits"), "config": TINY}
    yield
    folders.settings |= before


def test_folder_to_ranking(tmp_path):
    content = folders.draw(400)
    content = {name: content[name] for name in ("real", "gaussian", "mixture", "gan-0.5", "gan")}
    for name, pixels in content.items():
        folders.write_folder(tmp_path / name, pixels)
    call = [str(tmp_path / name) for name in content]
    out = tmp_path / "out"
    assert cli.main(["score", *call, "--encoder", folders.ENCODER, "--out", str(out)]) == 0
    found = json.loads((out / "results.json").read_text())
    ranking = folders.array_path(content)
    assert folders.largest_difference(found, ranking) < folders.RTOL
    assert found["ranking"]["groups"] == [list(group) for group in ranking.groups]
    assert found["ranking"]["contenders"] == list(ranking.contenders)
    # With the same batches to the last bit.
    encoder = load_encoder(folders.ENCODER)
    rows = {name: encode(encoder, list(pixels), batch=64) for name, pixels in content.items()}
    for name, expected in rows.items():
        assert (files.read_features(out / "features" / f"{name}.safetensors") == expected).all()
    scores = gb.compare({name: rows[name] for name in rows if name != "real"}, rows["real"]).scores
    for row in found["rows"]:
        assert row["value"] == scores[row["model"]].value
        assert row["high"] == scores[row["model"]].high


def test_a_difference_would_show():
    """Negative control: one grey level on one model is seen."""
    content = folders.draw(300)
    content = {name: content[name] for name in ("real", "mixture")}
    ranking = folders.array_path(content)
    rows = [{"model": "mixture", **ranking.scores["mixture"].to_dict()}]
    assert folders.largest_difference({"rows": rows}, ranking) == 0.0
    brighter = np.minimum(content["mixture"], 254) + np.uint8(1)
    other = folders.array_path(content | {"mixture": brighter})
    assert folders.largest_difference({"rows": rows}, other) > folders.RTOL
