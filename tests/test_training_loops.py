"""What training loops do with the metrics: log, warn, plot, gather, feed images."""

from __future__ import annotations

import json
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import genbounds as gb
from experiments.benchmarks.peers import load
from genbounds.validation import InputError

torch = pytest.importorskip("torch")
if load("torchmetrics") is None:  # with torch-fidelity beside it, it asks for torchvision
    pytest.skip("torchmetrics is not installed", allow_module_level=True)
import matplotlib.pyplot as plt  # noqa: E402

from genbounds.torchmetrics import FeatureMetric, FrechetDistance  # noqa: E402

D = 4
RNG = np.random.default_rng(0)
REAL, FAKE = RNG.normal(size=(400, D)), 1.3 * RNG.normal(size=(300, D))
QUIET = pytest.mark.filterwarnings("ignore:FrechetDistance|FeatureMetric:UserWarning")


def made(name, *, real=REAL, fake=FAKE, **options):
    """Return a fed metric; of statistics alone where it is named so."""
    if name == "moments":
        metric = FrechetDistance(d=D, keep=0, **options)
    else:
        metric = FeatureMetric(metric=name, **options)
    if name not in ("is", "vendi"):
        metric.update(torch.as_tensor(real), real=True)
    else:
        fake = np.abs(fake) / np.abs(fake).sum(axis=1, keepdims=True)
    metric.update(torch.as_tensor(fake), real=False)
    return metric


NAMES = ("moments", "kid", "is")


@QUIET
@pytest.mark.parametrize("name", NAMES)
def test_results_are_flat_and_of_floats(name):
    found = made(name).compute()
    assert list(found) == ["value", "low", "high", "reliable"]
    assert all(type(number) is float for number in found.values())
    assert json.loads(json.dumps(found)) == found
    assert found["low"] <= found["value"] <= found["high"]


# --- warnings -------------------------------------------------------------------------------------


def epochs(metric, fakes):
    """Return what is warned of at every epoch."""
    said = []
    for fake in fakes:
        metric.update(torch.as_tensor(fake), real=False)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            metric.compute()
        said.append([str(one.message) for one in caught])
        metric.reset()
    return said


def test_a_kind_of_warning_is_said_once():
    """Not at every epoch; the numbers in its text change, the kind does not."""
    metric = FeatureMetric(metric="fd", estimator="plugin", reset_real_features=False)
    metric.update(torch.as_tensor(REAL), real=True)
    doubled = np.repeat(FAKE[:150], 2, axis=0)
    first, second, third, fourth = epochs(metric, [FAKE, FAKE[:200], doubled, doubled])
    assert [line.split(":")[:2] for line in first] == [["FeatureMetric", " caution"]]
    assert second == []
    assert third  # of another kind
    assert fourth == []
    assert any(one.severity == "caution" for one in metric.result.warnings)  # it still holds


def test_only_the_first_process_warns(monkeypatch):
    from torchmetrics.utilities.prints import rank_zero_only

    monkeypatch.setattr(rank_zero_only, "rank", 1)
    metric = made("fd", estimator="plugin")
    metric.compute()  # a warning would be an error
    assert metric.result.warnings


# --- plots ----------------------------------------------------------------------------------------


@QUIET
@pytest.mark.parametrize("name", ["moments", "kid"])
def test_plot(name):
    metric = made(name)
    figure, axes = metric.plot()
    assert axes.get_ylabel() == ("Fréchet distance" if name == "moments" else metric.spec.title)
    (bar,) = axes.containers
    assert bar.lines[0].get_xydata().tolist() == [[0.0, metric.compute()["value"]]]
    plt.close(figure)


def test_plot_of_epochs_into_given_axes():
    """Values at 0, 1, ...; an unreliable one is a cross; one without an interval has no bar."""
    found = [
        {"value": 3.0, "low": 2.0, "high": 5.0, "reliable": 1.0},
        {"value": 2.0, "low": 1.5, "high": 2.5, "reliable": 0.0},
        {"value": 1.0, "low": float("nan"), "high": float("nan"), "reliable": 1.0},
    ]
    figure, axes = plt.subplots()
    assert FrechetDistance(d=2).plot(found, axes) == (figure, axes)
    marks = [bar.lines[0] for bar in axes.containers]
    assert [mark.get_xydata().tolist() for mark in marks] == [[[0, 3]], [[1, 2]], [[2, 1]]]
    assert [mark.get_marker() for mark in marks] == ["o", "X", "o"]
    ends = [segment[:, 1].tolist() for bar in axes.containers for lines in bar.lines[2]
            for segment in lines.get_segments()]  # fmt: skip
    assert ends == [[2.0, 5.0], [1.5, 2.5]]
    plt.close(figure)


# --- names that torchmetrics gives ----------------------------------------------------------------


@pytest.mark.parametrize("argument", ["reset_real_features", "reset_real"])
def test_real_samples_stay_on_request_under_both_names(argument):
    for keep in (False, True):
        for metric in (FrechetDistance(d=D, **{argument: not keep}),
                       FeatureMetric(**{argument: not keep})):  # fmt: skip
            assert metric.reset_real_features is not keep
            metric.update(torch.as_tensor(REAL), real=True)
            metric.reset()
            held = metric.real[0].item() if isinstance(metric, FrechetDistance) else metric.real
            assert bool(held) is keep


# --- a simulated gather ---------------------------------------------------------------------------


def gathered(parts):
    """Let the first of `parts`, which are processes, compute what all of them hold.

    torchmetrics asks a function for the list of one state of all processes; here the states of the
    others are at hand.
    """
    names = list(parts[0]._reductions)
    asked = iter(
        [
            [torch.cat(state) if isinstance(state, list) else state for state in states]
            for states in ([getattr(part, name) for part in parts] for name in names)
        ]
    )
    first = parts[0]
    first.dist_sync_fn = lambda state, group: next(asked)
    first.distributed_available_fn = lambda: True
    return first.compute()


@QUIET
@pytest.mark.parametrize("name", ["moments", "kid"])
def test_unequal_shares_of_three_processes_are_merged(name):
    shares = [(slice(0, 37), slice(0, 250)), (slice(37, 40), slice(250, 300)),
              (slice(40, 400), slice(300, 300))]  # fmt: skip
    parts = []
    for real, fake in shares[:2]:
        parts.append(made(name, real=REAL[real], fake=FAKE[fake]))
    last = made(name, real=REAL[shares[2][0]], fake=FAKE[:1])
    parts.append(last)
    expected = made(name, fake=np.concatenate([FAKE, FAKE[:1]])).compute()
    found = gathered(parts)
    for key, number in expected.items():
        np.testing.assert_allclose(found[key], number, rtol=1e-9, err_msg=key)
    # Afterwards its own state is back.
    own = parts[0].real
    assert (own[0].item() if name == "moments" else len(own[0])) == 37


@QUIET
def test_groups_and_strata_are_gathered_with_their_rows():
    groups, strata = np.arange(300) // 3, np.repeat([0, 1], 150)
    rows = FAKE + strata[:, None]
    parts = []
    for part in (slice(0, 90), slice(90, 300)):
        one = FeatureMetric(metric="kid")
        one.update(torch.as_tensor(REAL), real=True) if not parts else None
        one.update(torch.as_tensor(rows[part]), groups=groups[part], strata=strata[part])
        parts.append(one)
    # As the real sync does for a process without real rows.
    parts[1].real, parts[1].real_labels = [parts[1].fake[0][:0]], [parts[1].fake_labels[0][:0]]
    found = gathered(parts)
    told = gb.Sample(rows, groups=groups, strata=strata)
    expected = gb.kernel_inception_distance(told, REAL)
    for key in ("value", "low", "high"):
        np.testing.assert_allclose(found[key], getattr(expected, key), rtol=1e-9)
    plain = gb.kernel_inception_distance(gb.Sample(rows), REAL)
    assert found["high"] != pytest.approx(plain.high, rel=1e-3)  # the labels matter


# --- images ---------------------------------------------------------------------------------------


class Network(torch.nn.Module):
    """Takes scaled images only, as convolutions do."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Conv2d(3, D, 2)

    def forward(self, images):
        return self.layer(images).mean(dim=(2, 3))


def images(n=6, dtype=torch.uint8):
    pixels = torch.from_numpy(RNG.integers(0, 256, size=(n, 3, 5, 7)))
    return pixels.to(dtype)


@pytest.mark.parametrize("metric", [FrechetDistance(Network(), d=D), FeatureMetric(Network())])
def test_integers_that_a_network_does_not_take_are_one_line(metric):
    with pytest.raises(InputError, match=r"does not take torch.uint8 images: scale") as caught:
        metric.update(images(), real=True)
    assert "\n" not in str(caught.value)
    metric.update(images().float() / 255, real=True)


def test_other_errors_of_a_network_stay():
    with pytest.raises(RuntimeError, match="channels"):
        FeatureMetric(Network()).update(torch.zeros(2, 7, 5, 5), real=True)


def test_networks_that_take_integers_get_them():
    seen = []
    metric = FeatureMetric(lambda x: seen.append(x.dtype) or x.float().mean(dim=(2, 3)))
    metric.update(images(), real=True)
    assert seen == [torch.uint8]


def encoder():
    """Return an encoder of ours: it scales to [-1, 1] and takes the mean colours of the top."""
    scale = gb.features.Preprocessing(size=None, mean=(0.5,), std=(0.5,))
    return SimpleNamespace(
        takes="images",
        description={"encoder": "colours"},
        prepare=scale,
        encode=lambda batch: np.stack(batch)[:, :, 0].mean(axis=2),
    )


def test_an_encoder_of_ours_scales_images_itself():
    assert isinstance(encoder(), gb.features.Encoder)
    metric = FeatureMetric(encoder())
    given = images()
    metric.update(given, real=True)
    expected = (given.float() / 127.5 - 1.0)[:, :, 0].mean(dim=2)
    torch.testing.assert_close(metric.real[0], expected)
    FeatureMetric(encoder()).update([np.zeros((5, 5), np.uint8)] * 2)  # as well as pictures


@pytest.mark.parametrize("given", [images(dtype=torch.float32), images()[0], images()[:, :2]])
def test_anything_else_is_refused_by_it(given):
    with pytest.raises(InputError, match=r"uint8 \(0 to 255\) of shape \(n, 3, h, w\)"):
        FeatureMetric(encoder()).update(given)


def test_training_does_not_reach_the_encoder():
    """Batch normalisation by each batch's own statistics would make any two samples alike."""
    network = torch.nn.Sequential(torch.nn.BatchNorm1d(3), torch.nn.Dropout(0.5))
    rng = np.random.default_rng(2)
    real, fake = (torch.tensor(rng.normal(size=(200, 3)) + s, dtype=torch.float32) for s in (0, 2))
    found = {}
    for training in (False, True):
        model = torch.nn.ModuleDict({"fid": FeatureMetric(network), "rest": torch.nn.Dropout()})
        model.train(training)
        for rows, is_real in ((real, True), (fake, False)):
            model["fid"].update(rows, real=is_real)
        found[training] = model["fid"].compute()["value"]
        assert model["rest"].training is network[0].training is training
    assert found[True] == found[False] == pytest.approx(12.0, rel=0.2)
    assert network[0].running_mean.tolist() == [0.0] * 3
    # Negative control: what it was.
    assert abs(network.train()(real).mean()) < 0.1
