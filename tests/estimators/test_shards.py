"""Shards and dask arrays under every score: the value of one array, in a bounded memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import genbounds as gb
from genbounds import files
from tests.refusal import refused
from tests.scratch import compute_at_once, keep_in_memory, read_at_once

N, D = 600, 5
RNG = np.random.default_rng(0)
REAL = RNG.normal(size=(700, D)).astype(np.float32)
FAKE = RNG.normal(0.2, 1.0, size=(N, D)).astype(np.float32)
POSTERIORS = (np.exp(FAKE) / np.exp(FAKE).sum(axis=1, keepdims=True)).astype(np.float32)
PROMPTS = np.arange(N) // 3

SCORES = {
    "frechet": lambda fake, real: gb.frechet_distance(fake, real),
    "plugin": lambda fake, real: gb.frechet_distance(fake, real, estimator="plugin"),
    "infinity": lambda fake, real: gb.frechet_distance(fake, real, estimator="infinity"),
    "moments": lambda fake, real: gb.frechet_distance(fake, gb.Moments.from_features(real)),
    "kid": lambda fake, real: gb.kernel_inception_distance(fake, real),
    "cmmd": lambda fake, real: gb.kernel_distance(fake, real, kernel="cmmd"),
    "energy": lambda fake, real: gb.kernel_distance(fake, real, kernel="energy"),
    "vendi": lambda fake, real: gb.vendi_score(fake),
    "cosine": lambda fake, real: gb.vendi_score(fake, kernel="cosine"),
    "fkea": lambda fake, real: gb.vendi_score(fake, method="fkea", components=50),
    "lanczos": lambda fake, real: gb.vendi_score(fake, method="lanczos", components=20),
    "rke": lambda fake, real: gb.vendi_score(fake, order=2.0),
    "sliced": lambda fake, real: gb.sliced_distance(fake, real, directions=20),
    "neighbours": lambda fake, real: gb.precision_recall(fake, real).precision,
    "compared": lambda fake, real: gb.compare({"a": fake, "b": 1.1 * FAKE}, real).scores["a"],
    "groups": lambda fake, real: gb.frechet_distance(gb.Sample(fake, groups=PROMPTS), real),
    "strata": lambda fake, real: gb.frechet_distance(gb.Sample(fake, strata=PROMPTS % 4), real),
    "inception": lambda probs, _: gb.inception_score(probs),
}


def samples(name):
    return (POSTERIORS if name == "inception" else FAKE), REAL


@pytest.fixture(autouse=True)
def from_disk(monkeypatch):
    """Keep nothing in memory that is larger than some rows."""
    keep_in_memory(monkeypatch, 1000)
    compute_at_once(monkeypatch, 4000)
    read_at_once(monkeypatch, 1500)


def as_shards(folder, rows):
    folder.mkdir()
    for k, piece in enumerate(np.array_split(rows, 4)):
        np.save(folder / f"{k}.npy", piece)
    found = files.read_features(f"{folder}/*.npy")
    assert isinstance(found, np.memmap)
    return found


@pytest.mark.parametrize("name", SCORES)
def test_shards_have_the_score_of_one_array(tmp_path, name):
    fake, real = samples(name)
    shards = as_shards(tmp_path / "fake", fake), as_shards(tmp_path / "real", real)
    assert SCORES[name](*shards) == SCORES[name](fake, real)


def as_dask(rows, computed, chunk=97):
    """Return the rows as a dask array that remembers which of them were computed, and how often."""
    array = pytest.importorskip("dask.array")
    places = array.arange(len(rows), chunks=chunk)

    def block(numbers):
        computed[numbers] += 1
        return rows[numbers]

    return array.map_blocks(
        block, places, dtype=rows.dtype, new_axis=1, chunks=(places.chunks[0], (rows.shape[1],)),
        meta=np.empty((0, 0), rows.dtype),
    )  # fmt: skip


@pytest.mark.parametrize("name", SCORES)
def test_a_dask_array_has_the_score_of_one_array_and_is_computed_once(name):
    fake, real = samples(name)
    computed = np.zeros(len(fake), dtype=int)
    theirs = np.zeros(len(real), dtype=int)
    found = SCORES[name](as_dask(fake, computed), as_dask(real, theirs))
    expected = SCORES[name](fake, real)
    if name == "moments":  # of blocks, whose products are rounded to single precision
        assert found.value == pytest.approx(expected.value, rel=1e-5)
    else:
        assert found == expected
    assert set(computed) == {1}
    assert set(theirs) <= {0, 1}


def test_moments_of_a_dask_array_are_summed_up_where_it_is_computed(monkeypatch):
    """No rows come here but those that are kept; every block is computed once."""
    array = pytest.importorskip("dask.array")
    rows, computed = FAKE.astype(float), np.zeros(N, dtype=int)
    expected = gb.Moments.from_features(rows, keep=100, seed=4)

    def gathered(x):
        raise AssertionError("all rows were gathered")

    monkeypatch.setattr("genbounds.validation.computed", gathered)
    for given in (as_dask(rows, computed), as_dask(rows, computed, 1)):
        found = gb.Moments.from_features(given, keep=100, seed=4)
        np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(found.cov, expected.cov, rtol=1e-12, atol=1e-15)
        assert found.n == N
        assert (found.rows == expected.rows).all()
    assert set(computed) == {2}
    columns = gb.Moments.from_features(array.from_array(rows, chunks=(250, 2)))
    np.testing.assert_allclose(columns.cov, expected.cov, rtol=1e-12, atol=1e-15)
    assert columns.rows is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda block: np.where(block == FAKE[450, 1], np.nan, block), "row 450"),
        (lambda block: block[:-1], "blocks that hold"),
        (lambda block: block.astype(complex), "real numbers"),
        (lambda block: 1 / 0, "division by zero"),
    ],
)
def test_what_is_wrong_with_a_block_is_one_line(change, words):
    array = pytest.importorskip("dask.array")
    rows = array.from_array(FAKE, chunks=(100, D)).map_blocks(change, meta=FAKE[:0])
    with refused("x", words):
        gb.Moments.from_features(rows)


@pytest.mark.slow
def test_moments_are_summed_up_on_a_cluster():
    distributed = pytest.importorskip("distributed")
    array = pytest.importorskip("dask.array")
    rows = FAKE.astype(float)
    expected = gb.Moments.from_features(rows, keep=64)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, processes=True
        ) as cluster,
        distributed.Client(cluster),
    ):
        found = gb.Moments.from_features(array.from_array(rows, chunks=(50, D)), keep=64)
        with refused("x", "row 7"):
            gb.Moments.from_features(
                array.from_array(rows, chunks=(50, D)).map_blocks(
                    lambda block, block_info=None: (
                        block
                        if block_info[0]["chunk-location"][0]
                        else np.where(np.arange(50)[:, None] == 7, np.nan, block)
                    ),
                    meta=rows[:0],
                )
            )
    np.testing.assert_allclose(found.cov, expected.cov, rtol=1e-12, atol=1e-15)
    assert (found.rows == expected.rows).all()


def test_a_sample_of_a_dask_array_is_computed_once_for_all_scores():
    computed = np.zeros(N, dtype=int)
    sample = gb.Sample(as_dask(FAKE, computed), groups=PROMPTS)
    assert gb.frechet_distance(sample, REAL) == SCORES["groups"](FAKE, REAL)
    gb.kernel_inception_distance(sample, REAL)
    assert set(computed) == {1}


@pytest.mark.parametrize("chunk", [1, 200, N])
def test_blocks_of_any_size_are_gathered(chunk):
    computed = np.zeros(N, dtype=int)
    assert gb.frechet_distance(as_dask(FAKE, computed, chunk), REAL) == SCORES["frechet"](
        FAKE, REAL
    )


def test_dask_arrays_that_cannot_be_scored_are_refused():
    array = pytest.importorskip("dask.array")
    rows = array.from_array(FAKE, chunks=(97, 2))
    assert gb.frechet_distance(rows, REAL) == SCORES["frechet"](FAKE, REAL)
    with refused("fake", "compute_chunk_sizes"):
        gb.frechet_distance(rows[rows[:, 0] > 0.0], REAL)

    def fails(block):
        raise RuntimeError("no such GPU")

    with refused("fake", "no such GPU"):
        gb.frechet_distance(rows.map_blocks(fails, meta=FAKE[:0]), REAL)
    with refused("fake", "dask"):  # another shape than was said
        gb.frechet_distance(rows.map_blocks(lambda block: block[:-1], dtype=np.float32), REAL)
    shorter = array.from_array(FAKE, chunks=(97, FAKE.shape[1])).map_blocks(
        lambda block: block[:-1], meta=FAKE[:0]
    )
    with refused("fake", "announced"):
        gb.frechet_distance(shorter, REAL)
    with refused("fake", "(n, d)"):
        gb.frechet_distance(rows[:, 0], REAL)


@pytest.mark.parametrize("metric", ["fd", "kid"])
def test_a_mixture_computes_dask_arrays_once(metric):
    """Both scores need rows for folds and for the models' own scores."""
    half = N // 2
    computed = [
        np.zeros(half, dtype=int),
        np.zeros(half, dtype=int),
        np.zeros(len(REAL), dtype=int),
    ]
    parts = [FAKE[:half], 2.0 * FAKE[half : 2 * half], REAL]
    a, b, real = (as_dask(*pair) for pair in zip(parts, computed, strict=True))
    found = gb.mixture({"a": a, "b": b}, real, metric=metric)
    assert (
        found.to_dict() == gb.mixture({"a": parts[0], "b": parts[1]}, REAL, metric=metric).to_dict()
    )
    assert all(set(counts) == {1} for counts in computed)


LIMITED = """
import json, resource, sys
import numpy as np
import genbounds as gb
from genbounds import files

# Of its own: what is mapped from a file the system can drop.
resource.setrlimit(resource.RLIMIT_DATA, (400 << 20, 400 << 20))
real = files.read_features(sys.argv[1] + "/real.npy")
if sys.argv[2] == "control":
    fake = np.concatenate([np.load(f"{sys.argv[1]}/fake-{k:02}.npy") for k in range(12)])
elif sys.argv[2] == "dask":
    import dask, dask.array as da
    from pytest import MonkeyPatch
    from tests.scratch import compute_at_once
    compute_at_once(MonkeyPatch(), 1 << 26)
    dask.config.set(scheduler="synchronous")
    load = dask.delayed(np.load)
    blocks = [load(f"{sys.argv[1]}/fake-{k:02}.npy") for k in range(12)]
    fake = da.concatenate([da.from_delayed(x, (35_000, 256), np.float32) for x in blocks])
else:
    fake = files.read_features(f"{sys.argv[1]}/fake-*.npy")
name, options = json.loads(sys.argv[3])
samples = (fake, real) if name == "frechet_distance" else (fake,)
print(repr(getattr(gb, name)(*samples, **options)))
"""
LARGE = {
    "frechet": ("frechet_distance", {}),
    "cosine": ("vendi_score", {"kernel": "cosine"}),
    "order 2": ("vendi_score", {"kernel": "cosine", "order": 2.0}),
    "fkea": ("vendi_score", {"method": "fkea", "components": 8, "bandwidth": 4.0}),
}


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Return a folder with 410 MiB of shards, their rows as one array, and the reference."""
    folder = tmp_path_factory.mktemp("large")
    rng = np.random.default_rng(0)
    np.save(folder / "real.npy", rng.random(size=(10_000, 256), dtype=np.float32))
    whole = rng.random(size=(420_000, 256), dtype=np.float32)
    for k, rows in enumerate(np.split(whole, 12)):
        np.save(folder / f"fake-{k:02}.npy", rows)
    return folder, whole, np.load(folder / "real.npy")


def scored(folder, how, score="frechet"):
    command = [sys.executable, "-c", LIMITED, str(folder), how, json.dumps(LARGE[score])]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's limits")
@pytest.mark.parametrize(("how", "score"), [("dask", "frechet"), *(("shards", s) for s in LARGE)])
def test_what_is_larger_than_the_memory_is_scored(large, how, score):
    folder, fake, real = large
    if how == "dask":
        pytest.importorskip("dask.array")
    done = scored(folder, how, score)
    assert done.returncode == 0, done.stderr
    name, options = LARGE[score]
    samples = (fake, real) if name == "frechet_distance" else (fake,)
    assert done.stdout.strip() == repr(getattr(gb, name)(*samples, **options))


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's limits")
def test_the_same_rows_in_memory_are_too_many(large):
    """Negative control of the test above."""
    done = scored(large[0], "control")
    assert done.returncode != 0
    assert "MemoryError" in done.stderr or "Unable to allocate" in done.stderr
