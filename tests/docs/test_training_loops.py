"""The classes and lines for Lightning and loggers in the pages, run without any of these installed.

The stand-ins have what the pages touch, with the signatures of the real ones.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import genbounds as gb
from tests.docs.test_snippets import blocks

DOCS = Path(__file__).parents[2] / "docs"
RNG = np.random.default_rng(0)


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def python_block(name: str, word: str) -> str:
    (found,) = [block.body for block in blocks(page(name)) if word in block.body]
    return found


@pytest.fixture
def lightning(monkeypatch) -> ModuleType:
    module = ModuleType("lightning")
    monkeypatch.setitem(sys.modules, "lightning", module)
    return module


# --- loggers --------------------------------------------------------------------------------------


class Logger:
    """Keeps (name, value, step); takes plain floats only, as the strictest of them does."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, float, int]] = []

    def add_scalar(self, tag: str, scalar_value: float, global_step: int | None = None) -> None:
        assert type(scalar_value) is float
        assert global_step is not None
        self.kept.append((tag, scalar_value, global_step))

    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        for name, value in metrics.items():
            self.add_scalar(name, value, step)

    def log(self, data: dict[str, float], step: int | None = None) -> None:
        self.log_metrics(data, step)


@pytest.mark.parametrize(
    ("logger", "name"), [("TensorBoard", "writer"), ("W&B", "wandb"), ("MLflow", "mlflow")]
)
def test_the_line_of_every_logger_logs_the_loop(logger, name):
    """The page's own loop, with its `log` replaced by the line of the table."""
    (line,) = re.findall(rf"^\| {logger},.* \| `(.*)` \|$", page("training_loops.md"), re.MULTILINE)
    body = python_block("training_loops.md", "def log(step, values):")
    kept = Logger()
    log: dict[str, Any] = {name: kept}
    exec(f"def log(step, values):\n    {line}", log)
    rest = body[body.index("monitor = ") :]
    real = RNG.normal(size=(500, 8))
    exec(rest, {"gb": gb, "np": np, "rng": RNG, "real": real, "log": log["log"]})
    assert sorted({name for name, _, _ in kept.kept}) == ["collapsed", "fd", "fd_high", "fd_low"]
    assert sorted({step for _, _, step in kept.kept}) == [1000, 2000, 3000, 4000]
    by = {(name, step): value for name, value, step in kept.kept}
    assert by["fd", 1000] > by["fd_high", 4000] > by["fd", 4000] > by["fd_low", 4000]


# --- Lightning ------------------------------------------------------------------------------------


def test_the_callback_stops_on_collapse(lightning):
    lightning.Callback = object
    space: dict[str, Any] = {"gb": gb}
    exec(python_block("training_loops.md", "class StopOnCollapse"), space)
    widths = iter([1.1, 1.1, 3.0])
    callback = space["StopOnCollapse"](
        lambda module: next(widths) * RNG.normal(size=(600, 3)), RNG.normal(size=(2000, 3)), looks=3
    )
    logged: list[dict[str, float]] = []
    module = SimpleNamespace(log_dict=logged.append)
    trainer = SimpleNamespace(sanity_checking=True, global_step=0, should_stop=False)
    callback.on_validation_epoch_end(trainer, module)
    assert logged == []  # the check before training is no look
    trainer.sanity_checking = False
    stops = []
    for step in (100, 200, 300):
        trainer.global_step = step
        callback.on_validation_epoch_end(trainer, module)
        stops.append(trainer.should_stop)
    assert stops == [False, False, True]
    assert all(values["fd_low"] < values["fd"] < values["fd_high"] for values in logged)
    assert callback.monitor.track().verdict == "collapsed"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:FrechetDistance:UserWarning")
def test_the_module_logs_every_epoch(lightning):
    torch = pytest.importorskip("torch")
    pytest.importorskip("genbounds.torchmetrics")

    class LightningModule(torch.nn.Module):
        device = torch.device("cpu")

        def log_dict(self, dictionary: dict[str, float]) -> None:
            logged.append(dictionary)

    logged: list[dict[str, float]] = []
    lightning.LightningModule = LightningModule
    space: dict[str, Any] = {}
    exec("from genbounds.torchmetrics import FrechetDistance", space)
    exec(python_block("training_loops.md", "class Generator"), space)
    real = torch.as_tensor(RNG.normal(size=(300, 3)))
    model = space["Generator"](lambda latents: 1.5 * latents, torch.nn.Identity(), 3)
    model.trainer = SimpleNamespace(
        datamodule=SimpleNamespace(real_images=lambda: iter(real.split(100)))
    )
    model.on_fit_start()
    for _ in range(2):
        latents = torch.as_tensor(RNG.normal(size=(400, 3)))
        for number, batch in enumerate(latents.split(100)):
            model.validation_step(batch, number)
        model.on_validation_epoch_end()
        expected = gb.frechet_distance(
            gb.Moments.from_features(1.5 * latents.numpy(), keep=2048),
            gb.Moments.from_features(real.numpy(), keep=2048),
        )
        assert logged[-1]["fid/value"] == pytest.approx(expected.value, rel=1e-9)
    assert len(logged) == 2
