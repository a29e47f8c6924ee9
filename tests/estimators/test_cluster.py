"""Scores of dask arrays on a cluster: its workers take the pairs of rows, the value stays."""

from __future__ import annotations

import operator
import time

import numpy as np
import pytest

import genbounds as gb
from genbounds import _cluster, _scratch
from genbounds._cluster import active_client, run_on, sum_on
from genbounds._scratch import computed, is_from_dask, is_mapped
from genbounds.core import moments as _moments
from genbounds.core import tiles as _tiles
from genbounds.estimators.vendi._spectrum import FeatureRows
from genbounds.validation import InputError
from tests.refusal import refused

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
array = pytest.importorskip("dask.array")

N, D = 600, 5
RNG = np.random.default_rng(0)
REAL = RNG.normal(size=(700, D))
FAKE = RNG.normal(0.2, 1.0, size=(N, D))
PROMPTS = np.arange(N) // 3


def laplace(a, b):
    return np.exp(-np.abs(a[:, None] - b).sum(axis=2))


STEEP = gb.estimators.PolynomialKernel(degree=12, offset=1.0)


REFERENCE = gb.Moments(np.zeros(600), 1.2 * np.eye(600))


def wide(x):
    """15 features: so few rows a feature that the third order is removed, by halving."""
    return np.concatenate([x, x[:, ::-1] ** 2, x[:, 2:3] * x], axis=1)


# With the number of pairs of parts that workers take: the model has 2 parts and the reference 3, so
# that these are 3 and 6 within them and 6 between. What has one part alone stays here.
SCORES = {
    "kid": (15, lambda fake, real: gb.kernel_inception_distance(fake, real)),
    "cmmd": (15, lambda fake, real: gb.kernel_distance(fake, real, kernel="cmmd")),
    "energy": (15, lambda fake, real: gb.kernel_distance(fake, real, kernel="energy")),
    "plug-in": (15, lambda fake, real: gb.kernel_distance(fake, real, estimator="plugin")),
    "groups": (44, lambda x, y: gb.kernel_distance(gb.Sample(x, groups=PROMPTS), y, kernel="rbf")),
    "mixture": (28, lambda x, y: gb.mixture({"a": x, "b": 2.0 * x[::-1]}, y, metric="kid")),
    "an array": (21, lambda x, y: gb.compare({"a": x, "b": 2.0 * FAKE}, y, metric="kid")),
    "rke": (3, lambda fake, _: gb.vendi_score(fake, order=2.0, method="ustat")),
    "rke, cosine": (4, lambda x, _: gb.vendi_score(x, kernel="cosine", order=2.0, method="ustat")),
    "polynomial": (3, lambda x, _: gb.vendi_score(x, kernel=STEEP, order=2.0, method="ustat")),
    "function": (3, lambda x, _: gb.vendi_score(x, kernel=laplace, order=2.0, method="ustat")),
    "weights": (3, lambda x, _: gb.vendi_score(gb.Sample(x, weights=1.0 + PROMPTS), order=2.0)),
    "lanczos": (120, lambda _, real: gb.vendi_score(real, method="lanczos", components=20)),
    # Of parts: the moments and the influence of every row, those of groups without the latter.
    "fd": (10, lambda fake, real: gb.frechet_distance(fake, real)),
    "fd, halves": (10, lambda x, y: gb.frechet_distance(wide(x), wide(y))),
    "fd, compared": (17, lambda x, y: gb.compare({"a": x, "b": 2.0 * x}, y, metric="fd")),
    "fd, an array": (6, lambda _, y: gb.frechet_distance(FAKE, y, estimator="plugin")),
    "fd, groups": (8, lambda x, y: gb.frechet_distance(gb.Sample(x, groups=PROMPTS), y)),
    "fd, strata": (8, lambda x, y: gb.frechet_distance(gb.Sample(x, strata=PROMPTS % 9), y)),
    "fd, weights": (8, lambda x, y: gb.frechet_distance(gb.Sample(x, weights=1 + PROMPTS), y)),
    # Products of features, of 2 parts.
    "fkea": (2, lambda fake, _: gb.vendi_score(fake, method="fkea", components=20)),
    "cosine": (2, lambda fake, _: gb.vendi_score(fake, kernel="cosine")),
    "cosine, weights": (
        2,
        lambda x, _: gb.vendi_score(gb.Sample(x, weights=1.0 + PROMPTS), kernel="cosine"),
    ),
}


def cluster(**options):
    return distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", **options
    )


@pytest.fixture(scope="module")
def workers():
    """Two workers in this process, which start at once."""
    with cluster(processes=False) as found:
        yield found


@pytest.fixture
def client(workers):
    with distributed.Client(workers) as found:
        yield found


@pytest.fixture
def tiles(monkeypatch):
    """Take parts of 201 rows or more; return how many of them, or pairs, were sent to workers."""
    monkeypatch.setattr(_tiles, "SINGLE_ROWS", 200)
    monkeypatch.setattr(_moments, "BLOCK_BYTES", 8 * D * 30)
    sent = []

    def run_on(client, function, tasks, **options):
        for index, result in _run_on(client, function, tasks, **options):
            sent.append(index)
            yield index, result

    def sum_on(client, function, add, tasks, **options):
        tasks = list(tasks)
        sent.extend(tasks)
        return _sum_on(client, function, add, tasks, **options)

    _run_on, _sum_on = _tiles.run_on, _tiles.sum_on
    monkeypatch.setattr(_tiles, "run_on", run_on)
    monkeypatch.setattr(_tiles, "sum_on", sum_on)
    return sent


def numbers(found):
    """All floating-point numbers of a result, by where they stand."""

    def walk(at, where):
        if isinstance(at, dict):
            for key, value in at.items():
                yield from walk(value, f"{where}/{key}")
        elif isinstance(at, (list, tuple)):
            for key, value in enumerate(at):
                yield from walk(value, f"{where}/{key}")
        elif isinstance(at, float):
            yield where, at

    return dict(walk(found.to_dict(), ""))


@pytest.mark.parametrize("name", SCORES)
def test_a_cluster_gives_the_score_of_one_machine(client, tiles, name):
    count, score = SCORES[name]
    expected = score(FAKE, REAL)
    assert not tiles
    found = score(array.from_array(FAKE, chunks=(97, D)), array.from_array(REAL, chunks=(97, D)))
    assert len(tiles) == count
    assert numbers(found) == pytest.approx(numbers(expected), rel=1e-9, abs=1e-12)


def test_a_part_of_the_rows_is_summed_up_on_a_cluster(client, tiles):
    rows = computed(array.from_array(FAKE, chunks=(97, D)))
    index = np.random.default_rng(1).permutation(N)
    features = FeatureRows.of(rows).subset(index[:500])
    for found, chosen in (
        (features, index[:500]),
        (features.subset(np.arange(0, 500, 2)), index[:500:2]),
    ):
        np.testing.assert_allclose(
            found.gram(), FeatureRows.of(FAKE[chosen]).gram(), rtol=1e-12, atol=1e-14
        )
    assert len(tiles) == 2  # those of one alone stay here


@pytest.mark.slow
def test_processes_of_their_own_give_the_score_of_one_machine(tiles, monkeypatch):
    """In single precision, which is chosen by the size of the sample, not by that of its parts."""
    monkeypatch.setattr(_tiles, "SINGLE_ROWS", 4096)
    monkeypatch.setattr(_moments, "BLOCK_BYTES", 1 << 25)
    fake, real = (
        RNG.normal(shift, size=(n, 64)).astype(np.float32) for shift, n in ((0.1, 8200), (0, 9000))
    )

    def block(k):
        return np.random.default_rng(k).normal(size=(7_000, 600)).astype(np.float32)

    wide = np.concatenate([block(0), block(1)])
    expected = gb.kernel_distance(fake, real, kernel="cmmd")
    other = gb.compare({"a": wide}, REFERENCE, metric="fd")
    with cluster(processes=True) as found, distributed.Client(found):
        found = gb.kernel_distance(array.from_array(fake), array.from_array(real), kernel="cmmd")
        assert len(tiles) == 10
        assert numbers(found) == pytest.approx(numbers(expected), rel=1e-9)
        blocks = [array.from_delayed(dask.delayed(block)(k), (7_000, 600), "f4") for k in (0, 1)]
        found = gb.compare({"a": array.concatenate(blocks)}, REFERENCE, metric="fd")
        assert len(tiles) == 10 + 2 + 3  # moments, and the influence of every row
    # Products in single precision, whose rounding depends on the number of threads.
    assert numbers(found) == pytest.approx(numbers(other), rel=1e-5, abs=1e-5)


def test_without_a_client_the_caller_does_the_work(tiles):
    """As dask computes the array in its threads."""
    rows = array.from_array(FAKE, chunks=(97, D))
    assert active_client() is None
    assert gb.kernel_inception_distance(rows, REAL) == gb.kernel_inception_distance(FAKE, REAL)
    assert not tiles


DONE: list[int] = []
"""Numbers that `noted`, which is sent by name, was called with by workers of this process."""


def noted(k, bad=-1):
    time.sleep(0.01 * (k == 0))  # others are faster than the first one
    DONE.append(k)
    return [k / (k != bad)]


def test_a_connection_that_is_lost_is_one_line(client):
    def tasks():
        yield (1,)
        raise distributed.comm.CommClosedError("the worker that rows were sent to is gone")

    with pytest.raises(InputError, match="was lost: call again"):
        sum_on(client, abs, operator.add, tasks(), threads=1, then="call again.")
    with pytest.raises(InputError, match="was lost: call again"):
        list(run_on(client, abs, tasks(), threads=1, then="call again."))


@pytest.mark.parametrize("count", [1, 2, 5, 20])
def test_sums_are_added_up_in_the_order_of_the_tasks(client, count):
    """And tasks, whose rows workers hold, are made as workers come to them."""
    DONE.clear()

    def tasks():
        for k in range(count):
            assert k - len(DONE) <= _cluster._AHEAD_PER_THREAD * 2
            yield (k,)

    found = sum_on(client, noted, lambda a, b: [a, b], tasks(), threads=1, then="")
    order = {1: [0], 2: [[0], [1]], 5: [[[[0], [1]], [[2], [3]]], [4]]}
    assert found == order.get(count, found)
    assert sorted(DONE) == list(range(count))


def test_the_first_task_that_fails_ends_a_sum(client):
    DONE.clear()
    tasks = ((k, 3) for k in range(1000))
    with pytest.raises(ZeroDivisionError):
        sum_on(client, noted, list.__add__, tasks, threads=1, then="")
    assert len(DONE) < 100


def test_a_piece_of_work_asks_no_others(client):
    """It would hold the thread that they wait for."""
    assert active_client() is client
    assert client.submit(active_client, pure=False).result() is None


@pytest.mark.parametrize("in_memory", [1 << 26, 1000])
def test_a_sample_is_known_for_one_of_dask(monkeypatch, in_memory):
    monkeypatch.setattr(_scratch, "_IN_MEMORY", in_memory)
    for chunks in ((97, D), -1):
        rows = computed(array.from_array(FAKE, chunks=chunks))
        assert (rows == FAKE).all()
        assert is_from_dask(rows)
        assert is_from_dask(rows[3:100])
        assert not is_from_dask(rows[[1, 2]])
        assert is_mapped(rows) == (in_memory == 1000)
    assert not is_from_dask(FAKE)


def test_what_a_worker_refuses_is_one_line(client, tiles):
    rows = array.from_array(FAKE, chunks=(97, D))
    with refused("kernel", "NaN"):
        gb.vendi_score(
            rows,
            kernel=lambda a, b: a @ b.T + np.where(len(a) > 110, np.nan, 5.0),
            order=2.0,
            method="ustat",
        )


def test_a_row_that_cannot_be_used_has_its_number(client, tiles):
    rows = np.where(np.arange(N)[:, None] == 450, np.nan, FAKE)
    with refused("fake", "NaN in row 450"):
        gb.frechet_distance(array.from_array(rows, chunks=(97, D)), REAL)
    assert tiles


def test_workers_with_other_versions_leave_the_work_here(client, tiles, monkeypatch):
    """All they have to do then is to compute the array."""
    there = np.__version__
    monkeypatch.setattr("genbounds._cluster.versions", lambda: {"numpy": "1.0"})
    rows = array.from_array(FAKE, chunks=(97, D))
    for score in (gb.frechet_distance, gb.kernel_inception_distance):
        with pytest.warns(UserWarning, match=f"numpy {there} there, 1.0 here"):
            found = score(rows, REAL)
        assert found == score(FAKE, REAL)
    assert not tiles
