"""Pieces of work on a cluster: what is lost on the way is one line."""

from __future__ import annotations

import pytest

import genbounds as gb
from genbounds.simulate._cluster import run_on

distributed = pytest.importorskip("distributed")


def test_a_connection_that_is_lost_is_one_line():
    def tasks():
        yield (1,)
        raise distributed.comm.CommClosedError("the worker that rows were sent to is gone")

    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0", processes=False
        ) as workers,
        distributed.Client(workers) as client,
        pytest.raises(gb.InputError, match="was lost: call again"),
    ):
        list(run_on(client, abs, tasks(), threads=1, then="call again."))
