"""Metrics for training loops: the same numbers, alone, in batches and over two processes."""

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

from genbounds.torchmetrics import FeatureMetric, FrechetDistance  # noqa: E402

# What it says of a score: tests/test_training_loops.py.
pytestmark = pytest.mark.filterwarnings("ignore:FrechetDistance|FeatureMetric:UserWarning")

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
    # Two ways to float64 moments whose mean is 100 standard deviations from zero.
    for name in ("value", "low", "high"):
        np.testing.assert_allclose(
            float(found[name]), getattr(score, name), rtol=rtol, err_msg=name
        )
    assert float(found["reliable"]) == score.reliable


@pytest.mark.parametrize("batch", [7, 10_000])
def test_the_library_s_numbers(batch):
    metric = FrechetDistance(d=D, keep=0)
    feed(metric, REAL, real=True, batch=batch)
    feed(metric, FAKE, real=False, batch=batch)
    assert_is(metric.compute(), reference())


def test_options_reach_the_estimator():
    for options in ({"level": 0.5}, {"estimator": "plugin"}):
        metric = FrechetDistance(d=D, keep=0, **options)
        feed(metric, REAL, real=True)
        feed(metric, FAKE, real=False)
        sides = gb.Moments.from_features(FAKE), gb.Moments.from_features(REAL)
        assert_is(metric.compute(), gb.frechet_distance(*sides, **options))


# --- rows kept for their fourth moments ----------------------------------------------------------


def loaded(x, keep, batch, side=True):
    metric = FrechetDistance(d=x.shape[1], keep=keep)
    feed(metric, x, real=side, batch=batch)
    return metric


def positions(metric, x, side="real"):
    """Return which rows of `x` a metric keeps."""
    rows = metric.moments(side).rows
    found = [int(np.flatnonzero((x == row).all(axis=1))[0]) for row in rows]
    assert len(set(found)) == len(found)
    return sorted(found)


def test_of_a_small_sample_all_rows_are_kept_and_no_caution_is_said():
    metric = FrechetDistance(d=D)
    feed(metric, REAL, real=True)
    feed(metric, FAKE, real=False)
    found = metric.compute()
    assert positions(metric, REAL) == list(range(900))
    assert positions(metric, FAKE, "fake") == list(range(700))
    assert metric.result.warnings == ()
    whole = gb.frechet_distance(gb.Sample(FAKE), gb.Sample(REAL))
    # From all rows the bias is removed to third order, from moments to second.
    assert found["value"] == pytest.approx(whole.value, abs=0.1 * whole.stderr)
    assert metric.result.stderr == pytest.approx(whole.stderr, rel=0.05)


def test_the_interval_is_right_where_features_are_not_gaussian():
    """Rectified features: from Gaussian fourth moments it is a third too short."""
    rng = np.random.default_rng(3)
    weights = rng.normal(size=(12, 8))
    x, y = (np.maximum(s * rng.normal(size=(4000, 12)) @ weights, 0.0) for s in (1.1, 1.0))
    whole = gb.frechet_distance(gb.Sample(x), gb.Sample(y))
    short = {}
    for keep in (0, 1000):
        metric = FrechetDistance(d=8, keep=keep)
        feed(metric, x, real=False)
        feed(metric, y, real=True)
        metric.compute()
        short[keep] = metric.result.stderr / whole.stderr
    assert short[0] < 0.75
    assert short[1000] == pytest.approx(1.0, abs=0.1)


def test_the_kept_rows_are_a_random_part_whatever_the_batches():
    x = np.arange(3000.0)[:, None] + [[0.0, 0.5]]
    kept = positions(loaded(x, 300, 64), x)
    assert len(kept) == 300
    assert kept == positions(loaded(x, 300, 1000), x)
    # Null: a random 300 of 3,000. Halves and evens hold 150 ± 8.2; limits of false alarm 1e-6 each.
    for share in (np.array(kept) < 1500, np.array(kept) % 2 == 0):
        assert abs(int(share.sum()) - 150) < 41


def test_rows_of_two_jobs_are_merged_and_reset_with_the_real_samples():
    x = np.arange(2000.0)[:, None] + [[0.0, 0.5]]
    metric = FrechetDistance(d=2, keep=200, reset_real_features=False)
    feed(metric, x[:1500], real=True)
    metric.merge_state(loaded(x[1500:], 200, 64))
    kept = np.array(positions(metric, x))
    assert kept.size == 200
    assert 10 < int((kept >= 1500).sum()) < 100  # 50 ± 5.8; beyond with probability below 1e-6
    metric.reset()
    assert positions(metric, x) == kept.tolist()


@pytest.mark.parametrize("keep", [-1, 63, 1.5])
def test_keep_is_none_or_enough(keep):
    with pytest.raises(InputError, match="`keep` must be"):
        FrechetDistance(d=D, keep=keep)


def test_an_encoder():
    metric = FrechetDistance(lambda images: images.flatten(1)[:, :D], d=D, keep=0)
    images = torch.from_numpy(np.hstack([REAL, FAKE.repeat(2, axis=0)[:900]])).reshape(900, 2, D)
    metric.update(images, real=True)
    metric.update(images + 1.0, real=False)
    np.testing.assert_allclose(float(metric.compute()["value"]), D, rtol=0.05)


def test_reset_keeps_the_real_samples_on_request():
    for keep in (False, True):
        metric = FrechetDistance(d=D, keep=0, reset_real_features=not keep)
        feed(metric, REAL, real=True)
        feed(metric, FAKE, real=False)
        metric.reset()
        feed(metric, FAKE[:300], real=False)
        if keep:
            assert_is(metric.compute(), reference(fake=FAKE[:300]))
        else:
            with pytest.raises(InputError, match="at least 2 real samples"):
                metric.compute()


def test_copies_and_files():
    metric = FrechetDistance(d=D, keep=0)
    metric.persistent(True)
    feed(metric, REAL, real=True)
    feed(metric, FAKE, real=False)
    other = FrechetDistance(d=D, keep=0)
    other.persistent(True)
    other.load_state_dict(metric.state_dict())
    other.update(torch.from_numpy(FAKE[:0]), real=False)  # an empty batch changes nothing
    for twin in (copy.deepcopy(metric), pickle.loads(pickle.dumps(metric)), other):  # noqa: S301
        assert_is(twin.compute(), reference())


@pytest.mark.parametrize("keep", [False, True])
def test_calling_it_is_update(keep):
    """Counted once, on both sides, whatever `reset` keeps."""
    metric = FrechetDistance(d=D, keep=0, reset_real_features=not keep)
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
            self.fid = FrechetDistance(d=D, keep=0, reset_real_features=False)

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
        assert all(type(number) is float for number in logged.values())  # what a logger takes
        found = {name.removeprefix("fid/"): number for name, number in logged.items()}
        assert_is(found, reference(fake=rows))
    assert all("fid" not in name for name in model.state_dict())  # checkpoints stay small


def test_in_a_collection():
    """Two metrics fed together; their figures do not collide."""
    from torchmetrics import MetricCollection

    both = MetricCollection(
        {
            "plug-in": FrechetDistance(d=D, keep=0, estimator="plugin"),
            "fid": FrechetDistance(d=D, keep=0),
        }
    )
    both.update(torch.from_numpy(REAL), real=True)
    both(torch.from_numpy(FAKE), real=False)
    found = both.compute()
    assert len(found) == 8
    assert_is({name.removeprefix("fid_"): number for name, number in found.items()}, reference())
    assert found["plug-in_value"] > found["fid_value"]


def test_merge_state():
    """Metrics of two jobs merged."""
    metric = FrechetDistance(d=D, keep=0, reset_real_features=False)
    feed(metric, REAL, real=True)
    parts = [FrechetDistance(d=D, keep=0) for _ in range(2)]
    for part, rows in zip(parts, (FAKE[:200], FAKE[200:]), strict=True):
        feed(part, rows, real=False)
        metric.merge_state(part)
    assert_is(metric.compute(), reference())


def test_precision_is_not_lost():
    """Half-precision features, and `.half()` on the whole module, leave float64 sums."""
    metric = FrechetDistance(d=D, keep=0).half()
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
        FrechetDistance(d=D, keep=0).update(samples, real=True)


def test_bad_options():
    for options, name in (({"d": 0}, "d"), ({"d": 2, "level": 1.0}, "level")):
        with pytest.raises(InputError, match=f"`{name}`"):
            FrechetDistance(**options)
    with pytest.raises(InputError, match="`estimator`"):
        FrechetDistance(d=2, estimator="infinity")


# --- any metric, from the rows --------------------------------------------------------------------


POSTERIORS = RNG.dirichlet(np.full(D, 0.2), size=700)


# Of posteriors, without a reference, of four scores: all others are given as these are.
@pytest.mark.slow
@pytest.mark.parametrize("metric", ["is", "rke", "recall"])
def test_every_metric_is_that_of_the_library(metric):
    spec = gb.estimators.metric_spec(metric)
    fake = POSTERIORS if spec.data == "posteriors" else FAKE
    real = None if spec.reference == "none" else REAL
    found = FeatureMetric(metric=metric, level=0.9)
    if real is not None:
        feed(found, real, real=True)
    feed(found, fake, real=False, batch=100)
    expected = gb.compare({"fake": fake}, real, metric=metric, level=0.9).scores["fake"]
    assert_is(found.compute(), expected, rtol=1e-12)
    assert found.higher_is_better == spec.higher_is_better


def test_options_and_estimators_of_any_metric():
    found = FeatureMetric(metric="kid", options={"degree": 2}, estimator="plugin")
    feed(found, REAL, real=True)
    feed(found, FAKE, real=False)
    expected = gb.kernel_inception_distance(FAKE, REAL, degree=2, estimator="plugin")
    assert_is(found.compute(), expected, rtol=1e-12)


def test_the_reference_is_prepared_once_for_all_epochs():
    prepared = []

    def prepare(reference, options, models):
        prepared.append(len(reference))
        return spec.prepare(reference, options, models)

    spec = gb.estimators.metric_spec("kid")
    counted = gb.estimators.MetricSpec(name="counted", title="counted", prepare=prepare)
    metric = FeatureMetric(metric=counted, reset_real_features=False)
    feed(metric, REAL[:600], real=True)
    for rows in (FAKE[:300], FAKE[300:]):
        feed(metric, rows, real=False)
        assert_is(metric.compute(), gb.kernel_inception_distance(rows, REAL[:600]), rtol=1e-12)
        metric.reset()
    feed(metric, REAL[600:], real=True)
    feed(metric, FAKE, real=False)
    assert_is(metric.compute(), gb.kernel_inception_distance(FAKE, REAL), rtol=1e-12)
    assert prepared == [600, 900]


def test_rows_in_copies_files_merged_and_half_precision():
    metric = FeatureMetric(lambda images: images.flatten(1), metric="fd").half()
    rows = torch.from_numpy(FAKE).reshape(-1, 1, D)
    metric.update(torch.from_numpy(REAL).reshape(-1, D, 1), real=True)
    metric.update(rows[:300])
    metric.update(rows[:0])
    expected = gb.frechet_distance(FAKE, REAL)
    other = FeatureMetric(lambda images: images.flatten(1), metric="fd")
    other.update(rows[300:])
    metric.merge_state(other)
    for twin in (metric, copy.deepcopy(metric)):
        assert_is(twin.compute(), expected, rtol=1e-3)  # rows merge in another order
    plain = FeatureMetric()
    feed(plain, REAL, real=True)
    plain.update(torch.from_numpy(FAKE).bfloat16())
    plain.compute()
    again = pickle.loads(pickle.dumps(plain))  # noqa: S301
    assert {name: float(x) for name, x in again.compute().items()} == {
        name: float(x) for name, x in plain.compute().items()
    }


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: FeatureMetric(metric="best"), "`metric` must be one of"),
        (lambda: FeatureMetric(estimator="best"), "`estimator`"),
        (lambda: FeatureMetric(level=2.0), "`level`"),
        (lambda: FeatureMetric().update(torch.zeros(3)), "shape"),
        (lambda: FeatureMetric(metric="is").update(torch.ones(3, 1), real=True), "no real"),
        (lambda: FeatureMetric().compute(), "no generated samples"),
    ],
)
@pytest.mark.filterwarnings("ignore:The ``compute`` method:UserWarning")
def test_bad_calls_of_any_metric(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_real_samples_that_are_missing_and_rows_of_another_width():
    metric = FeatureMetric()
    feed(metric, FAKE, real=False)
    with pytest.raises(InputError, match="needs real samples"):
        metric.compute()
    with pytest.raises(InputError, match=r"shape \(n, 5\); got \(3, 2\)"):
        metric.update(torch.zeros(3, 2), real=True)


def test_groups_and_strata_of_batches():
    rng = np.random.default_rng(0)
    strata, groups = np.repeat(np.arange(10), 20), np.arange(200) // 2
    rows, real = rng.normal(size=(200, 3)) + strata[:, None], rng.normal(size=(300, 3)) + 4.5
    metric = FeatureMetric(metric="kid", reset_real_features=False)
    metric.update(torch.as_tensor(real), real=True)
    for _ in range(2):  # the second epoch keeps the real samples, and what is known of them
        metric.reset()
        for part in np.split(np.arange(200), 4):
            labels = {"groups": torch.as_tensor(groups[part]), "strata": strata[part]}
            metric.update(torch.as_tensor(rows[part]), **labels)
        told = gb.Sample(rows, groups=groups, strata=strata)
        assert_is(metric.compute(), gb.kernel_inception_distance(told, real), rtol=1e-9)
    with pytest.raises(InputError, match="`groups` must be 3 integers"):
        metric.update(torch.zeros(3, 3), groups=[0, 1])
    metric.update(torch.zeros(3, 3))
    with pytest.raises(InputError, match="some batches"):
        metric.compute()


# --- over processes ------------------------------------------------------------------------------


def worker(rank, address, results):
    torch.distributed.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    try:
        moments, rows = FrechetDistance(d=D, keep=0), FeatureMetric()
        cut = 150  # unequal shares, and the second process has no real samples at all
        found = []
        for metric in (moments, rows):
            feed(metric, FAKE[:cut] if rank == 0 else FAKE[cut:], real=False)
            if rank == 0:
                feed(metric, REAL, real=True)
            found.append({name: float(number) for name, number in metric.compute().items()})
        # After the sync the states of its own are back.
        own = moments.fake[0].item(), sum(len(part) for part in rows.fake)
        results.put((rank, found, own))
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.slow
def test_two_processes(tmp_path):
    """Both processes return what one would have computed from all samples."""
    context = torch.multiprocessing.get_context("spawn")
    results = context.Queue()
    address = f"file://{tmp_path / 'rendezvous'}"
    workers = [context.Process(target=worker, args=(rank, address, results)) for rank in range(2)]
    for process in workers:
        process.start()
    found = dict(
        (rank, (score, own)) for rank, score, own in (results.get(timeout=400) for _ in workers)
    )
    for process in workers:
        process.join(60)
        assert process.exitcode == 0
    assert found[0][0] == found[1][0]
    moments, rows = found[0][0]
    assert_is(moments, reference())
    assert_is(rows, gb.frechet_distance(FAKE, REAL), rtol=1e-9)
    assert [found[rank][1] for rank in range(2)] == [(150, 150), (550, 550)]


@pytest.mark.parametrize("real", ["fake", 1, None])
def test_real_is_true_or_false(real):
    """A text would count as true, and generated samples as real ones."""
    for metric in (FrechetDistance(d=D, keep=0), FeatureMetric("kid")):
        with pytest.raises(gb.InputError, match="`real` must be True or False"):
            metric.update(torch.zeros(3, D), real)
