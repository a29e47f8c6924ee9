"""Parts of an extraction, made on several machines, are one sample: that of a single run."""

from __future__ import annotations

import numpy as np
import pytest

import genbounds as gb
from genbounds import features, files
from tests.features.conftest import N
from tests.features.test_extract import Toy
from tests.refusal import refused

KINDS = ["folder", "images.zip", "shard.tar", "samples.npz"]


def extracted(source, out, part=None, **options):
    features.extract(features.open_source(source), Toy(), out=out, part=part, **options)
    return out


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(("batch", "k", "suffix"), [(2, 4, ".npz"), (64, 1, ".safetensors")])
def test_the_parts_are_one_run(media, tmp_path, name, suffix, batch, k):
    whole = extracted([media / name], tmp_path / f"whole{suffix}", batch=batch)
    parts = [
        extracted([media / name], tmp_path / f"part-{i}{suffix}", (i, k), batch=batch)
        for i in range(k, 0, -1)
    ]
    assert (files.read_features(parts) == files.read_features(whole)).all()
    single, several = (files.label_arrays(named, N) for named in (whole, parts))
    assert sorted(single) == sorted(several)
    assert all((single[label] == several[label]).all() for label in single)
    known = files.read_metadata(whole)
    own = files.read_metadata(parts)
    assert own == {key: known[key] for key in known if key != "run"}
    sizes = [len(files.read_features(part)) for part in parts]
    assert max(sizes) - min(sizes) <= 2 * batch
    if k > 1:
        with refused("missing"):
            files.read_features(parts[1:])


@pytest.mark.parametrize(("batch", "k"), [(2, 4), (3, 2), (4, 2)])
def test_the_parts_have_the_batches_of_one_run(media, tmp_path, batch, k):
    """Of rows that were encoded together with others the last digits depend on these."""
    whole, shared = Toy(), []
    source = features.open_source([media / "folder"])
    features.extract(source, whole, out=tmp_path / "whole.npz", batch=batch)
    for i in range(1, k + 1):
        encoder = Toy()
        out = tmp_path / f"{i}.npz"
        features.extract(source, encoder, out=out, batch=batch, part=(i, k))
        shared += encoder.batches
    assert shared == whole.batches


def test_several_inputs_are_shared_out_as_one(media, tmp_path):
    inputs = [media / "samples.npz", media / "shard.tar"]
    whole = extracted(inputs, tmp_path / "whole.npz", batch=2)
    parts = [extracted(inputs, tmp_path / f"{i}.npz", (i, 3), batch=2) for i in (1, 2, 3)]
    found = files.read_features(tmp_path / "[123].npz")
    assert (found == files.read_features(whole)).all()
    assert len(found) == 2 * N
    assert len({len(files.read_features(part)) for part in parts}) > 1


def test_a_part_goes_on_after_an_interruption(media, tmp_path):
    arguments = {"out": tmp_path / "cut.npz", "batch": 1, "block": 2, "part": (2, 2)}
    whole = extracted([media / "folder"], tmp_path / "whole.npz", (2, 2), batch=1, block=2)
    source = features.open_source([media / "folder"])
    with pytest.raises(KeyboardInterrupt):
        features.extract(source, Toy(fail_at=3), **arguments)
    encoder = Toy()
    found = features.extract(source, encoder, **arguments)
    assert (found.resumed, len(encoder.batches)) == (2, 4)
    assert whole.read_bytes() == (tmp_path / "cut.npz").read_bytes()
    again = features.extract(source, Toy(fail_at=0), **arguments)
    assert again.resumed == again.n


def test_the_moments_of_parts_merge(media, tmp_path):
    source = features.open_source([media / "folder"])
    for i in (1, 2):
        features.extract(source, Toy(), moments=tmp_path / f"{i}.npz", part=(i, 2), batch=1)
    merged = gb.Moments.load(tmp_path / "1.npz").merge(gb.Moments.load(tmp_path / "2.npz"))
    whole = gb.Moments.from_features(
        files.read_features(extracted([media / "folder"], tmp_path / "x.npy"))
    )
    assert merged.n == len(merged.rows) == N
    assert np.allclose(merged.cov, whole.cov)


@pytest.mark.parametrize(
    ("name", "part", "out", "words"),
    [
        ("folder", (3, 2), "x.npz", ("part", "share 3 of 2")),
        ("folder", (0, 2), "x.npz", ("part",)),
        ("folder", "1/2", "x.npz", ("part",)),
        ("folder", (1, 20), "x.npz", ("part", "fewer parts")),
        ("folder", (1, 2), "x.npy", ("part", ".safetensors")),
        ("shard.tar.gz", (1, 2), "x.npz", ("part", ".tar")),
    ],
)
def test_parts_that_cannot_be_are_refused(media, tmp_path, name, part, out, words):
    with refused(*words):
        extracted([media / name], tmp_path / out, part, batch=1)
    assert not list(tmp_path.iterdir())


def test_one_part_alone_is_no_sample(media, tmp_path):
    parts = [extracted([media / "folder"], tmp_path / f"{i}.npz", (i, 2), batch=1) for i in (1, 2)]
    whole = extracted([media / "folder"], tmp_path / "whole.npz", batch=1)
    one, both = files.read_features(parts[0]), files.read_features(parts)
    rows = files.read_features(whole)
    codes = {w.code for w in gb.frechet_distance(one, rows).warnings if w.severity == "unreliable"}
    assert "part-of-sample" in codes
    for complete in (both, rows):
        codes = {w.code for w in gb.frechet_distance(complete, rows).warnings}
        assert "part-of-sample" not in codes
    merged = gb.Moments.from_features(one).merge(
        gb.Moments.from_features(files.read_features(parts[1]))
    )
    assert "part" not in merged.origin
    assert merged.origin["encoder"] == one.origin["encoder"]
