"""Features know which encoder made them, and what disagrees is not compared, in Python as well."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import numpy as np
import pytest

import genbounds as gb
from genbounds import files
from genbounds.origins import marked, origin_of
from genbounds.select import FeatureArm
from tests.refusal import refused
from tests.warnings_of import codes

ONE = {"encoder": "timm:x", "weights": "sha256:1", "preprocessing": "{}", "libraries": "torch 1"}
RNG = np.random.default_rng(0)
ROWS = {name: RNG.normal(size=(120, 3)).astype(np.float32) for name in "abc"}


def written(folder, name, suffix, **changed):
    """Return the features of one encoder as the library's reader gives them."""
    path = folder / f"{name}{suffix}"
    rows = ROWS[name]
    origin = ONE | changed
    with files.open_features_writer(
        path, shape=rows.shape, dtype=rows.dtype, metadata=origin
    ) as write:
        write(rows)
    return files.read_features(path)


@pytest.fixture(params=[".safetensors", ".npz"])
def features(request, tmp_path):
    """Two sets of one encoder, and one of another."""
    return (
        written(tmp_path, "a", request.param),
        written(tmp_path, "b", request.param),
        written(tmp_path, "c", request.param, weights="sha256:2"),
    )


def posteriors(x):
    """Return rows that sum to one, marked as `x` is."""
    weights = np.abs(x) + 0.1
    return marked(weights / weights.sum(axis=1, keepdims=True), origin_of(x))


COMPARISONS = {
    "fd": gb.frechet_distance,
    "kid": gb.kernel_inception_distance,
    "ranked by fd": lambda x, y: gb.compare({"x": x}, y),
    "ranked without a reference": lambda x, y: gb.compare({"x": x, "y": y}, metric="rke"),
    "ranked by posteriors": lambda x, y: gb.compare(
        {"x": posteriors(x), "y": posteriors(y)}, metric="is"
    ),
    "moments": lambda x, y: gb.frechet_distance(gb.Moments.from_features(x), y),
    "merged": lambda x, y: gb.Moments.from_features(x).merge(gb.Moments.from_features(y)),
    "updated": lambda x, y: gb.Moments.from_features(x).update(y),
    "updated from nothing": lambda x, y: gb.Moments.empty(3).update(x).update(y),
    "selection": lambda x, y: gb.select.run(
        {"x": FeatureArm(x), "z": FeatureArm(x[::-1])}, y, budget=60
    ),
    "arms of a selection": lambda x, y: gb.select.run(
        {"x": FeatureArm(posteriors(x)), "y": FeatureArm(posteriors(y))}, metric="is", budget=60
    ),
}


@pytest.mark.parametrize("name", COMPARISONS)
def test_what_disagrees_is_refused(features, name):
    one, two, other = features
    compare = COMPARISONS[name]
    compare(one, two)
    with refused("weights", "sha256:1", "np.asarray"):
        compare(one, other)
    compare(one, np.asarray(other))  # the way out that the message names


@pytest.mark.parametrize("field", ["encoder", "weights", "preprocessing"])
def test_each_decisive_field(tmp_path, field):
    one = written(tmp_path, "a", ".safetensors")
    other = written(tmp_path, "b", ".safetensors", **{field: "changed"})
    with refused(field, "changed"):
        gb.compare({"model": one}, other)


def test_parts_know_and_results_do_not(features):
    one, *_ = features
    for part in (one[:5], one[[3, 1]], one[:, :2], one.astype(float), copy.deepcopy(one), one.T):
        assert origin_of(part)["weights"] == "sha256:1"
    for result in (
        one + 1.0, one @ one.T, one.mean(axis=0), np.linalg.svd(one)[0], np.concatenate([one, one]),
        np.asarray(one),
    ):  # fmt: skip
        assert origin_of(result) == {}
    for number in (one.mean(), one.sum(), one.max()):
        assert type(number) is np.float32
    assert not one.flags.writeable
    assert origin_of(pickle.loads(pickle.dumps(one))) == {}  # noqa: S301


def test_scores_are_those_of_plain_arrays(features):
    one, two, _ = features
    marked, plain = gb.frechet_distance(one, two), gb.frechet_distance(ROWS["a"], ROWS["b"])
    assert marked.encoder == "timm:x"
    assert dataclasses.replace(marked, encoder="") == plain


def test_warnings(tmp_path):
    """Where only one side is known, libraries differ or weights are random, the result says so."""
    one = written(tmp_path, "a", ".safetensors")
    newer = written(tmp_path, "b", ".safetensors", libraries="torch 2")
    for fake in (newer, ROWS["b"]):
        (warning,) = gb.compare({"m": fake}, one).warnings
        assert (warning.code, warning.severity) == ("encoder-mismatch", "caution")
    assert gb.compare({"m": ROWS["b"]}, ROWS["a"]).warnings == ()
    random = written(tmp_path, "c", ".safetensors", weights="random, seed 0")
    scores = (
        gb.frechet_distance(random, random[::-1]),
        gb.kernel_inception_distance(random, random[::-1]),
        gb.vendi_score(random),
        gb.inception_score(posteriors(random)),
        gb.compare({"m": random}, random[:50]),
    )
    for score in scores:
        assert "random-weights" in codes(score, "unreliable")
    assert "random-weights" not in codes(gb.frechet_distance(one, newer))


def test_statistics_know_too(tmp_path):
    one = gb.Moments.from_features(written(tmp_path, "a", ".safetensors"))
    one.save(tmp_path / "a-stats.npz")
    again = gb.Moments.load(tmp_path / "a-stats.npz")
    assert again.origin["weights"] == "sha256:1"
    assert pickle.loads(pickle.dumps(again)).origin == again.origin  # noqa: S301
    other = written(tmp_path, "b", ".safetensors", weights="sha256:2")
    with pytest.raises(gb.InputError, match="their weights differ"):
        gb.frechet_distance(other, again)
    assert gb.Moments(np.zeros(3), np.eye(3)).origin == {}


def test_somebody_else_s_metadata(tmp_path):
    """An array of that name that is none of ours is no mark, and no error."""
    for content in (np.arange(3.0), np.array([None]), np.frombuffer(b"[1]", dtype=np.uint8)):
        np.savez(tmp_path / "x.npz", features=ROWS["a"], metadata=content)
        assert files.read_metadata(tmp_path / "x.npz") == {}
        assert type(files.read_features(tmp_path / "x.npz")) is np.ndarray


def test_names_of_files_are_not_features(tmp_path):
    """A file is read first; the message says with what."""
    path = tmp_path / "a.npy"
    np.save(path, ROWS["a"])
    for given in (path, str(path)):
        for call in (gb.frechet_distance, lambda fake, real: gb.compare({"m": fake}, real)):
            with pytest.raises(gb.InputError, match=r"is the name of a file: .*read_features"):
                call(given, ROWS["b"])
