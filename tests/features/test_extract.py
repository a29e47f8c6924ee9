"""Extraction: what is written, going on after an interruption, agreement of files."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
import pytest

import genbounds as gb
from genbounds import features, files
from tests.features import toy
from tests.features.conftest import N
from tests.refusal import refused
from tests.scratch import keep_in_memory


@dataclass
class Toy:
    """Channel means, with a failure on demand."""

    takes: str | None = "images"
    description: dict = field(
        default_factory=lambda: {"encoder": "toy", "weights": "none", "preprocessing": "none"}
    )
    fail_at: int | None = None
    batches: list = field(default_factory=list)

    def prepare(self, item):
        return item if isinstance(item, str) else np.asarray(item, dtype=np.float64)

    def encode(self, batch):
        if self.fail_at is not None and len(self.batches) >= self.fail_at:
            raise KeyboardInterrupt
        self.batches.append(len(batch))
        return toy.moments(batch)


def expected(pictures):
    return toy.moments([p.astype(np.float64) for p in pictures])


@pytest.mark.parametrize("suffix", [".safetensors", ".npy", ".npz"])
def test_rows_in_order(media, ordered_by_path, tmp_path, suffix):
    out = tmp_path / f"x{suffix}"
    encoder = Toy()
    result = features.extract(
        features.open_source([media / "folder"]), encoder, out=out, batch=4, block=4
    )
    assert (result.n, result.d, result.resumed) == (N, 6, 0)
    assert encoder.batches == [4, 4, 3]
    assert (files.read_features(out) == expected(ordered_by_path)).all()
    known = files.read_metadata(out)
    assert (known.get("encoder") == "toy") == (suffix != ".npy")
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_threads_change_nothing(media, tmp_path, workers):
    outs = []
    for count in (1, workers):
        outs.append(tmp_path / f"{len(outs)}.safetensors")
        source = features.open_source([media / "shard.tar"])
        features.extract(source, Toy(), out=outs[-1], batch=2, workers=count)
    assert outs[0].read_bytes() == outs[1].read_bytes()


@pytest.mark.parametrize("name", ["folder", "images.zip", "shard.tar", "shard.tar.gz"])
@pytest.mark.parametrize(("fail_at", "target"), [(0, "out"), (2, "both"), (3, "moments")])
def test_interrupted_ends_with_the_same_bytes(media, tmp_path, name, fail_at, target):
    def paths(stem):
        named = {"out": tmp_path / f"{stem}.safetensors", "moments": tmp_path / f"{stem}.npz"}
        return {key: path for key, path in named.items() if target in (key, "both")}

    def go(encoder, stem):
        source = features.open_source([media / name])
        return features.extract(source, encoder, batch=2, block=4, **paths(stem))

    whole = Toy()
    go(whole, "whole")
    with pytest.raises(KeyboardInterrupt):
        go(Toy(fail_at=fail_at), "cut")
    assert not any(path.exists() for path in paths("cut").values())
    rest = Toy()
    result = go(rest, "cut")
    assert result.resumed == fail_at // 2 * 4  # whole blocks of two batches
    assert len(rest.batches) == len(whole.batches) - fail_at // 2 * 2
    for key, path in paths("cut").items():
        assert path.read_bytes() == paths("whole")[key].read_bytes()
    assert sorted(tmp_path.iterdir()) == sorted([*paths("cut").values(), *paths("whole").values()])


def test_a_finished_run_is_not_repeated(media, tmp_path):
    out, moments = tmp_path / "x.safetensors", tmp_path / "x.npz"
    source = features.open_source([media / "folder"])
    features.extract(source, Toy(), out=out, moments=moments)
    encoder = Toy()
    again = features.extract(source, encoder, out=out, moments=moments)
    assert (again.resumed, encoder.batches) == (N, [])
    moments.unlink()
    features.extract(source, encoder, out=out, moments=moments)
    assert encoder.batches == [N]
    encoder.description["weights"] = "others"
    features.extract(source, encoder, out=out)
    assert encoder.batches == [N, N]


@pytest.mark.parametrize("what", ["a row", "a label", "the encoder"])
def test_a_finished_file_that_is_damaged_is_made_again(media, tmp_path, caplog, what):
    """One bit of it: `.safetensors` has no checksum of its own."""
    out = tmp_path / "x.safetensors"
    folder = tmp_path / "images"
    for name in ("a", "b"):
        shutil.copytree(media / "folder", folder / name, symlinks=True)
    source = features.open_source([folder])
    features.extract(source, Toy(), out=out)
    whole = out.read_bytes()
    rows = np.asarray(files.read_features(out))
    places = {
        "a row": whole.index(rows[3].tobytes()),
        "a label": len(whole) - 8,  # the last array of the file
        "the encoder": whole.index(b"toy"),
    }
    content = bytearray(whole)
    content[places[what]] ^= 1
    out.write_bytes(content)
    features.extract(source, Toy(), out=out)
    assert out.read_bytes() == whole


def test_what_a_finished_run_left_behind_goes(media, tmp_path):
    """Killed while it tidied up; blocks that another encoder left are not its own."""
    source, out = features.open_source([media / "folder"]), tmp_path / "x.safetensors"
    parts = tmp_path / "x.safetensors.parts"
    with pytest.raises(KeyboardInterrupt):
        features.extract(source, Toy(fail_at=4), out=out, batch=2, block=2)
    left = shutil.copytree(parts, tmp_path / "left")
    features.extract(source, Toy(), out=out, batch=2, block=2)
    assert not parts.exists()
    shutil.copytree(left, parts)
    (parts / ".genbounds-0.part").write_text("half written")
    encoder = Toy()
    assert features.extract(source, encoder, out=out, batch=2, block=2).resumed == N
    assert encoder.batches == []
    assert not parts.exists()
    other = Toy(description={"encoder": "other"}, fail_at=4)
    with pytest.raises(KeyboardInterrupt):
        features.extract(source, other, out=out, batch=2, block=2)
    before = sorted(parts.iterdir())
    assert features.extract(source, Toy(), out=out, batch=2, block=2).resumed == N
    assert sorted(parts.iterdir()) == before


def test_a_run_that_kept_nothing_leaves_nothing(media, tmp_path):
    """A mistake that is mended (here a damaged image) does not block the next run."""
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("00.png", "03.png"):
        (folder / name).write_bytes((media / "folder" / name).read_bytes())
    (folder / "01.png").write_bytes(b"nothing")
    out = tmp_path / "x.npy"
    with refused("01.png"):
        features.extract(features.open_source([folder]), Toy(), out=out)
    assert list(tmp_path.iterdir()) == [folder]
    (folder / "01.png").unlink()
    (tmp_path / "x.npy.parts").mkdir()
    (tmp_path / "x.npy.parts" / ".genbounds-0.part").write_text("of a run that was killed")
    assert features.extract(features.open_source([folder]), Toy(), out=out).n == 2
    assert sorted(tmp_path.iterdir()) == [folder, out]


@pytest.mark.parametrize("block", [2, 4, 100])
def test_moments_are_those_of_the_rows(media, tmp_path, block):
    source = features.open_source([media / "folder"])
    both = features.extract(
        source, Toy(), out=tmp_path / "x.npy", moments=tmp_path / "x.npz", batch=2, block=block
    )
    alone = features.extract(source, Toy(), moments=tmp_path / "y.npz", batch=2, block=block)
    assert both.n == alone.n == N
    rows = files.read_features(tmp_path / "x.npy")
    for name in ("x.npz", "y.npz"):
        mean, cov, n = files.read_statistics(tmp_path / name)
        assert n == N
        np.testing.assert_allclose(mean, rows.mean(0), rtol=1e-13)
        np.testing.assert_allclose(cov, np.cov(rows, rowvar=False), rtol=1e-12, atol=1e-9)
        # a random part, here all of them: bias and interval of a distance depend on it
        kept = files.read_statistics(tmp_path / name).rows
        np.testing.assert_array_equal(np.unique(kept, axis=0), np.unique(rows, axis=0))
    assert files.read_metadata(tmp_path / "y.npz")["encoder"] == "toy"


def test_features_to_statistics_and_back_to_features(media, tmp_path):
    """Files of features are inputs too; what they say of their encoder is passed on."""
    features.extract(
        features.open_source([media / "folder"]), Toy(), out=tmp_path / "x.safetensors"
    )
    source = features.open_source([tmp_path / "x.safetensors"] * 2)
    result = features.extract(
        source, features.load_encoder("none"), out=tmp_path / "y.npz", batch=3
    )
    rows = files.read_features(tmp_path / "x.safetensors")
    assert (files.read_features(tmp_path / "y.npz") == np.concatenate([rows, rows])).all()
    assert files.read_metadata(tmp_path / "y.npz")["encoder"] == "toy"
    assert result.origin["encoder"] == "toy"


def test_memory_holds_a_block_not_the_sample(tmp_path, monkeypatch):
    """Ten times as many rows: less than one block more of Python memory."""
    import tracemalloc

    keep_in_memory(monkeypatch, 1 << 20)
    block, d = 64, 8_000  # 2 MiB a block
    peaks = []
    for count in (4 * block, 40 * block):
        np.save(tmp_path / "x.npy", np.ones((count, d), dtype=np.float32))
        source = features.open_source([tmp_path / "x.npy"])
        tracemalloc.start()
        features.extract(source, features.load_encoder("none"), out=tmp_path / "y.npy", block=block)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] - peaks[0] < block * d * 4
    assert peaks[1] < 36 * block * d * 4  # the sample would be 40 blocks, float64 twice that


@pytest.mark.parametrize(
    ("function", "subject"),
    [
        ("poisoned", "row 0"),
        ("imaginary", "complex128"),
        ("texts", "<U3"),
    ],
)
def test_bad_encoders(media, tmp_path, function, subject):
    encoder = features.load_encoder(f"tests.features.toy:{function}")
    with refused(subject):
        features.extract(
            features.open_source([media / "folder"]), encoder, out=tmp_path / "x.npy", batch=4
        )


def test_features_must_not_change_form(media, tmp_path):
    class Growing(Toy):
        def encode(self, batch):
            self.batches.append(len(batch))
            return np.zeros((len(batch), 1 + len(self.batches)))

    with refused("3 features", "item 4"):
        features.extract(
            features.open_source([media / "folder"]), Growing(), out=tmp_path / "x.npy", batch=4
        )


@pytest.mark.parametrize(
    ("arguments", "subject"),
    [
        ({"moments": "x.npy"}, "x.npy"),
        ({"out": "x.npy", "batch": 0}, "`batch`"),
        ({"out": "x.npy", "workers": 0}, "`workers`"),
    ],
)
def test_bad_calls(media, tmp_path, monkeypatch, arguments, subject):
    monkeypatch.chdir(tmp_path)
    encoder = Toy()
    with refused(subject):
        features.extract(features.open_source([media / "folder"]), encoder, **arguments)
    assert encoder.batches == []  # nothing was computed in vain


def test_agreement():
    one = {"encoder": "a", "weights": "w", "preprocessing": "p", "libraries": "torch 1"}
    features.check_same_encoder({"x": one, "y": one, "z": {}})
    for key in ("encoder", "weights", "preprocessing"):
        with refused("x", "y", key):
            features.check_same_encoder({"x": one, "z": {}, "y": one | {key: "other"}})
    features.check_same_encoder({"x": one, "y": one | {"libraries": "torch 2"}})


def test_scores_of_folders_are_scores_of_arrays(media, ordered_by_path):
    """In memory and from files: the same rows."""
    rows = features.encode(Toy(), ordered_by_path, batch=4)
    assert (rows == expected(ordered_by_path)).all()
    score = gb.frechet_distance(rows, rows + 1.0)
    assert score.value == gb.frechet_distance(expected(ordered_by_path), rows + 1.0).value


def test_protocol():
    assert isinstance(Toy(), features.Encoder)
    assert not isinstance(MappingProxyType({}), features.Encoder)
