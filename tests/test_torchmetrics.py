"""The metric for training loops: the same numbers, alone, in batches and over two processes."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import genbounds as gb
from experiments.benchmarks.peers import load
from genbounds.validation import InputError

torch = pytest.importorskip("torch")
if load("torchmetrics") is None:  # with torch-fidelity beside it, it asks for torchvision
    pytest.skip("torchmetrics is not installed", allow_module_level=True)

from genbounds.torchmetrics import FrechetDistance  # noqa: E402

D = 5
RNG = np.random.default_rng(0)
REAL = 100.0 + RNG.normal(size=(900, D)) @ RNG.normal(size=(D, D))
FAKE = 100.3 + RNG.normal(size=(700, D))


def reference(level=0.95, fake=FAKE, real=REAL):
    return gb.frechet_distance(
        gb.Moments.from_features(fake), gb.Moments.from_features(real), level=level
    )


def feed(metric, rows, *, real, batch=64):
    for start in range(0, len(rows), batch):
        metric.update(torch.from_numpy(rows[start : start + batch]), real=real)


def assert_is(found, score, *, rtol=1e-9):
    # Two routes to float64 moments whose mean is 100 standard deviations from zero.
    for name in ("value", "low", "high"):
        np.testing.assert_allclose(
            float(found[name]), getattr(score, name), rtol=rtol, err_msg=name
        )


@pytest.mark.parametrize("batch", [1, 7, 64, 10_000])
def test_the_library_s_numbers(batch):
    metric = FrechetDistance(d=D)
    feed(metric, REAL, real=True, batch=batch)
    feed(metric, FAKE, real=False, batch=batch)
    assert_is(metric.compute(), reference())


def test_options_reach_the_estimator():
    for options in ({"level": 0.5}, {"estimator": "plugin"}):
        metric = FrechetDistance(d=D, **options)
        feed(metric, REAL, real=True)
        feed(metric, FAKE, real=False)
        sides = gb.Moments.from_features(FAKE), gb.Moments.from_features(REAL)
        assert_is(metric.compute(), gb.frechet_distance(*sides, **options))


def test_an_encoder():
    metric = FrechetDistance(lambda images: images.flatten(1)[:, :D], d=D)
    images = torch.from_numpy(np.hstack([REAL, FAKE.repeat(2, axis=0)[:900]])).reshape(900, 2, D)
    metric.update(images, real=True)
    metric.update(images + 1.0, real=False)
    np.testing.assert_allclose(float(metric.compute()["value"]), D, rtol=0.05)


def test_reset_keeps_the_real_side_on_request():
    for keep in (False, True):
        metric = FrechetDistance(d=D, reset_real=not keep)
        feed(metric, REAL, real=True)
        feed(metric, FAKE, real=False)
        metric.reset()
        feed(metric, FAKE[:300], real=False)
        if keep:
            assert_is(metric.compute(), reference(fake=FAKE[:300]))
        else:
            with pytest.raises(InputError, match="the real side needs at least 2 samples"):
                metric.compute()


def test_copies_and_files():
    metric = FrechetDistance(d=D)
    metric.persistent(True)
    feed(metric, REAL, real=True)
    feed(metric, FAKE, real=False)
    other = FrechetDistance(d=D)
    other.persistent(True)
    other.load_state_dict(metric.state_dict())
    other.update(torch.from_numpy(FAKE[:0]), real=False)  # an empty batch changes nothing
    for twin in (copy.deepcopy(metric), pickle.loads(pickle.dumps(metric)), other):  # noqa: S301
        assert_is(twin.compute(), reference())


@pytest.mark.parametrize("keep", [False, True])
def test_calling_it_is_update(keep):
    """Counted once, on both sides, whatever `reset` keeps."""
    metric = FrechetDistance(d=D, reset_real=not keep)
    for start in range(0, 900, 100):
        assert metric(torch.from_numpy(REAL[start : start + 100]), real=True) is None
        assert metric(torch.from_numpy(FAKE[start : start + 100]), real=False) is None
    assert (metric.real[0].item(), metric.fake[0].item()) == (900.0, 700.0)
    assert_is(metric.compute(), reference())


def test_a_training_loop():
    """As a LightningModule uses it: a submodule, sides fed in turn, logged and reset by epoch."""

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.generator = torch.nn.Linear(2, D)
            self.fid = FrechetDistance(d=D, reset_real=False)

        def on_fit_start(self):
            feed(self.fid, REAL, real=True)

        def validation_step(self, batch):
            self.fid.update(batch, real=False)

        def on_validation_epoch_end(self):
            logged = {f"fid/{name}": number for name, number in self.fid.compute().items()}
            self.fid.reset()
            return logged

    model = Model().to(torch.float16)
    model.on_fit_start()
    for rows in (FAKE, FAKE[:300] + 1.0):  # epochs
        for start in range(0, len(rows), 64):
            model.validation_step(torch.from_numpy(rows[start : start + 64]))
        logged = model.on_validation_epoch_end()
        assert all(number.ndim == 0 for number in logged.values())  # what a logger takes
        found = {name.removeprefix("fid/"): number for name, number in logged.items()}
        assert_is(found, reference(fake=rows))
    assert all("fid" not in name for name in model.state_dict())  # checkpoints stay small


def test_in_a_collection():
    """Two metrics fed together; their figures do not collide."""
    from torchmetrics import MetricCollection

    both = MetricCollection(
        {"plug-in": FrechetDistance(d=D, estimator="plugin"), "fid": FrechetDistance(d=D)}
    )
    both.update(torch.from_numpy(REAL), real=True)
    both(torch.from_numpy(FAKE), real=False)
    found = both.compute()
    assert len(found) == 6
    assert_is({name: found[f"fid_{name}"] for name in ("value", "low", "high")}, reference())
    assert found["plug-in_value"] > found["fid_value"]


def test_merge_state():
    """Metrics of two jobs merged."""
    metric = FrechetDistance(d=D, reset_real=False)
    feed(metric, REAL, real=True)
    parts = [FrechetDistance(d=D) for _ in range(2)]
    for part, rows in zip(parts, (FAKE[:200], FAKE[200:]), strict=True):
        feed(part, rows, real=False)
        metric.merge_state(part)
    assert_is(metric.compute(), reference())


def test_precision_is_not_lost():
    """Half-precision features, and `.half()` on the whole module, leave float64 sums."""
    metric = FrechetDistance(d=D).half()
    metric.set_dtype(torch.float16)
    rows = {True: REAL.astype(np.float32), False: FAKE.astype(np.float32)}
    for real, x in rows.items():
        feed(metric, x, real=real)
    assert_is(metric.compute(), reference(fake=rows[False], real=rows[True]))


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (torch.zeros(3, D + 1), r"shape \(n, 5\); got \(3, 6\)"),
        (torch.zeros(D), "got"),
        ([[0.0] * D], "must be a tensor"),
        (torch.full((3, D), torch.nan), "NaN or infinite"),
    ],
)
def test_bad_features(samples, message):
    with pytest.raises(InputError, match=message):
        FrechetDistance(d=D).update(samples, real=True)


def test_bad_options():
    for options, name in (({"d": 0}, "d"), ({"d": 2, "level": 1.0}, "level")):
        with pytest.raises(InputError, match=f"`{name}`"):
            FrechetDistance(**options)
    with pytest.raises(InputError, match="`estimator`"):
        FrechetDistance(d=2, estimator="infinity")


def worker(rank, address, results):
    torch.distributed.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    try:
        metric = FrechetDistance(d=D)
        cut = 150  # unequal shares, and the second process has no real samples at all
        feed(metric, FAKE[:cut] if rank == 0 else FAKE[cut:], real=False)
        if rank == 0:
            feed(metric, REAL, real=True)
        found = {name: float(number) for name, number in metric.compute().items()}
        own = metric.fake[0].item()  # after the sync its own state is back
        results.put((rank, found, own))
    finally:
        torch.distributed.destroy_process_group()


def test_two_processes(tmp_path):
    """Both processes return what one would have computed from all samples."""
    context = torch.multiprocessing.get_context("spawn")
    results = context.Queue()
    address = f"file://{tmp_path / 'rendezvous'}"
    workers = [context.Process(target=worker, args=(rank, address, results)) for rank in range(2)]
    for process in workers:
        process.start()
    found = dict(
        (rank, (score, own)) for rank, score, own in (results.get(timeout=120) for _ in workers)
    )
    for process in workers:
        process.join(60)
        assert process.exitcode == 0
    assert found[0][0] == found[1][0]
    assert_is(found[0][0], reference())
    assert [found[rank][1] for rank in range(2)] == [150, 550]
