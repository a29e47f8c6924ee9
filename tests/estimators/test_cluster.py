"""Scores of dask arrays: their blocks are computed where dask computes, the score is made here."""

from __future__ import annotations

import numpy as np
import pytest

import genbounds as gb
from tests.refusal import refused

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
array = pytest.importorskip("dask.array")

N, D = 600, 5
RNG = np.random.default_rng(0)
REAL = RNG.normal(size=(700, D))
FAKE = RNG.normal(0.2, 1.0, size=(N, D))
PROMPTS = np.arange(N) // 3

SCORES = {
    "kid": lambda fake, real: gb.kernel_inception_distance(fake, real),
    "groups": lambda x, y: gb.kernel_distance(gb.Sample(x, groups=PROMPTS), y, kernel="rbf"),
    "mixture": lambda x, y: gb.mixture({"a": x, "b": 2.0 * x[::-1]}, y, metric="kid"),
    "rke": lambda fake, _: gb.vendi_score(fake, order=2.0, method="ustat"),
    "fd": lambda fake, real: gb.frechet_distance(fake, real),
    "fd, compared": lambda x, y: gb.compare({"a": x, "b": 2.0 * x}, y, metric="fd"),
    "fd, weights": lambda x, y: gb.frechet_distance(gb.Sample(x, weights=1 + PROMPTS), y),
    "is": lambda x, _: gb.inception_score(abs(x) / abs(x).sum(axis=1, keepdims=True)),
}


@pytest.fixture(scope="module")
def client():
    """Two workers in this process, which start at once."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", processes=False
        ) as workers,
        distributed.Client(workers) as found,
    ):
        yield found


@pytest.mark.parametrize("name", SCORES)
def test_a_dask_array_has_the_score_of_an_array(client, name):
    fake, real = (array.from_array(x, chunks=(97, D)) for x in (FAKE, REAL))
    assert SCORES[name](fake, real) == SCORES[name](FAKE, REAL)


def test_without_a_client_as_well():
    rows = array.from_array(FAKE, chunks=(97, D))
    assert gb.kernel_inception_distance(rows, REAL) == gb.kernel_inception_distance(FAKE, REAL)


def test_a_row_that_cannot_be_used_has_its_number(client):
    rows = np.where(np.arange(N)[:, None] == 450, np.nan, FAKE)
    with refused("fake", "NaN in row 450"):
        gb.frechet_distance(array.from_array(rows, chunks=(97, D)), REAL)
