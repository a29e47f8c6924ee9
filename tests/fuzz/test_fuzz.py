"""Every reader against twenty thousand damaged files, and estimators against extreme numbers."""

from __future__ import annotations

import math
import random
import re
import resource
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import genbounds as gb
from genbounds import files
from genbounds.features.sources import ARCHIVES, IMAGES, TEXTS
from tests.fuzz import harness
from tests.fuzz.mutations import mutate
from tests.fuzz.seeds import ARRAYS, MAKERS, Payload, scratch, seeds

INPUTS = {
    ".npy": 5_000, ".npz": 5_000, ".safetensors": 5_000, ".pt": 2_000, ".parquet": 1_500,
    ".zip": 1_000, ".tar": 1_000, ".tgz": 1_000, ".txt": 500, ".jsonl": 500,
    ".png": 500, ".jpg": 300, ".gif": 300, ".bmp": 300, ".webp": 300, ".tif": 300, ".ppm": 300,
}  # fmt: skip
READ_TYPES = {
    b"F64", b"F32", b"F16", b"BF16", b"BOOL",
    b"I64", b"I32", b"I16", b"I8", b"U64", b"U32", b"U16", b"U8",
}  # fmt: skip
NEEDS = {".pt": "torch", ".parquet": "pyarrow.parquet"}


def require(suffix):
    if suffix in NEEDS:
        pytest.importorskip(NEEDS[suffix])


def test_every_format_has_seeds():
    assert set(MAKERS) == set(INPUTS)
    assert set(ARRAYS) == set(files.FORMATS)
    others = {".tar.gz": ".tgz", ".jpeg": ".jpg", ".tiff": ".tif", ".pgm": ".ppm"}
    media = {others.get(ending, ending) for ending in (*IMAGES, *ARCHIVES, *TEXTS)}
    assert set(MAKERS) == {*ARRAYS, *media}
    assert sum(INPUTS.values()) >= 20_000


@pytest.fixture
def shelf():
    with scratch() as folder:
        yield Path(folder)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", INPUTS)
def test_seeds(suffix, shelf):
    require(suffix)
    outcomes = [harness.probe(shelf / f"x{suffix}", data) for data in seeds(suffix)]
    assert {"read", "refused"} == set(outcomes)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", INPUTS)
def test_damaged_files(suffix, shelf):
    """Result or one clear error; no code run, no hang, memory bounded. Same files at every run."""
    require(suffix)
    rng = random.Random(suffix)
    counts = {"read": 0, "refused": 0}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(INPUTS[suffix]):
        data = mutate(suffix, rng)
        try:
            counts[harness.probe(shelf / f"x{suffix}", data)] += 1
        except harness.Broken as error:
            pytest.fail(f"{error}\ninput: {data[:2000]!r}")
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 300_000, f"{grown} kB"
    assert min(counts.values()) > INPUTS[suffix] // 200, counts  # both ways are really walked


def test_safetensors_are_accepted_as_by_their_own_library(tmp_path):
    """Ours reads the header itself: what one refuses and the other takes would be a way in."""
    import safetensors

    def taken(call):
        try:
            return bool(call()) or True
        except (gb.InputError, safetensors.SafetensorError):
            return False

    def theirs():
        with safetensors.safe_open(path, framework="numpy") as file:
            list(file.keys())

    rng, path, both = random.Random("header"), tmp_path / "x.safetensors", {True: 0, False: 0}
    for _ in range(1_000):
        data = mutate(".safetensors", rng) or b"x"
        if set(re.findall(rb'"dtype": ?"([^"]*)"', data)) - READ_TYPES:
            continue  # ours leaves such an array alone until somebody asks for it
        if b"genbounds.sha256." in data:
            continue  # ours wants the arrays as well whose digests a file holds
        path.write_bytes(data)
        ours = taken(lambda: files.read_metadata(path))
        if not re.search(rb'"(\w+)":.*"\1":\{', data):  # theirs takes the last of two, ours neither
            assert ours == taken(theirs), data
        both[ours] += 1
    assert min(both.values()) > 100, both


def test_harness_sees_each_offence(shelf, monkeypatch):
    """Negative controls: a reader that raises, warns, runs a pickle, or answers nonsense."""
    import pickle

    good, path = seeds(".npy")[0], shelf / "x.npy"

    def broken(reader):
        monkeypatch.setattr(files, "read", reader)
        with pytest.raises(harness.Broken) as caught:
            harness.probe(path, good)
        return str(caught.value)

    def raises(path):
        raise KeyError("x")

    def warns(path):
        warnings.warn("x", stacklevel=1)

    def unpickles(path):
        pickle.loads(pickle.dumps(np.ones((2, 2))))  # noqa: S301
        return np.ones((2, 2))

    class Loud(gb.InputError):  # the class itself prints one line, whatever it quotes
        def __str__(self):
            return f"{path}: first line\nsecond line"

    def shouts(path):
        raise Loud("")

    def anonymous(path):
        raise gb.InputError("something is wrong")

    assert broken(raises).startswith("KeyError")
    assert broken(warns).startswith("UserWarning")
    assert "pickle.find_class" in broken(unpickles)
    assert "message" in broken(shouts)
    assert "does not name the file" in broken(anonymous)
    assert "shape (3,)" in broken(lambda path: np.ones(3))


def test_payload_would_be_noticed(tmp_path, monkeypatch):
    import pickle

    monkeypatch.chdir(tmp_path)
    pickle.loads(pickle.dumps(Payload()))  # noqa: S301
    assert (tmp_path / "unpickled").is_dir()


# --- numbers -------------------------------------------------------------------------------------

FLOATS = [
    hnp.arrays(dtype, hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=12))
    for dtype in (np.float16, np.float32, np.float64)
]


def either(call):
    """A sound score, or `InputError`; never a warning, another exception, or nan."""
    try:
        score = call()
    except gb.InputError:
        return
    assert all(map(math.isfinite, (score.value, score.low, score.high))), score
    assert score.low <= score.value <= score.high, score


def two_of_three_rows(one, two):
    x = np.zeros((3, 7), dtype=np.float32)
    x[0, 4], x[1, 0] = one, two
    return x


# What the samples do not show of the spectrum: a variance that once rounded to below 0.
@example(
    x=two_of_three_rows(6.8168437e16, 6.3425354e16), y=two_of_three_rows(6.8168432e16, 6.342535e16)
)
@settings(max_examples=100)
@given(x=st.one_of(FLOATS), y=st.one_of(FLOATS))
def test_scores_of_any_floats(x, y):
    """Any bits in any floating type: infinities, NaN, subnormals, the largest numbers."""
    either(lambda: gb.frechet_distance(x, y))
    either(lambda: gb.frechet_distance(x, x[::-1], estimator="plugin"))
    either(lambda: gb.inception_score(x))
    for kernel in ("rbf", "cosine", "laplace"):
        either(lambda kernel=kernel: gb.vendi_score(x, kernel=kernel, order=2.0))
    either(lambda: gb.vendi_score(x, order=1.0))


@pytest.mark.slow
@settings(max_examples=100)
@given(
    x=hnp.arrays(
        np.float64,
        st.tuples(st.integers(8, 12), st.integers(1, 3)),
        elements=st.one_of(
            st.floats(-1e3, 1e3), st.sampled_from([0.0, 1.0, 1e12, -1e12, 1e-12, 5e-324])
        ),
    )
)
def test_scores_of_ordinary_and_odd_floats(x):
    either(lambda: gb.frechet_distance(x, 1.5 * x[::-1] + 1.0))
    for order in (1.0, 2.0):
        either(lambda order=order: gb.vendi_score(x, order=order))


if sys.platform == "darwin":  # there ru_maxrss counts bytes
    pytestmark = pytest.mark.skip(reason="memory is measured in Linux's units")
