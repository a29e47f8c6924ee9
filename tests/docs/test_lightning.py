"""The classes of the page on training loops under Lightning itself (`make lightning`)."""

from __future__ import annotations

import numpy as np
import pytest

import genbounds as gb
from tests.docs.test_training_loops import python_block
from tests.features.conftest import missing

try:
    import lightning
except ImportError:
    lightning = None
torch = pytest.importorskip("torch")

RNG = np.random.default_rng(0)
REAL = RNG.normal(size=(300, 3)).astype(np.float32)
LATENTS = RNG.normal(size=(200, 3)).astype(np.float32)
pytestmark = pytest.mark.filterwarnings("ignore")  # Lightning's advice on loaders and loggers


def trained(callbacks=()):
    """Train the page's class for two epochs; return it and what it logged after each."""
    from genbounds.torchmetrics import FrechetDistance

    space = {"FrechetDistance": FrechetDistance}
    exec(python_block("training_loops.md", "class Generator"), space)

    class Module(space["Generator"]):  # type: ignore[name-defined, misc]
        logged: list = []  # noqa: RUF012

        def training_step(self, batch, batch_idx):
            return self.generator(batch).square().mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.generator.parameters(), lr=0.1)

        def log_dict(self, values, **options):
            super().log_dict(values, **options)
            self.logged.append(values)

    class Data(lightning.LightningDataModule):
        def train_dataloader(self):
            return torch.utils.data.DataLoader(torch.as_tensor(LATENTS), batch_size=50)

        val_dataloader = train_dataloader

        def real_images(self):
            return iter(torch.as_tensor(REAL).split(100))

    torch.manual_seed(0)
    encoder = torch.nn.BatchNorm1d(3)  # in training mode it would whiten every batch
    module = Module(torch.nn.Linear(3, 3), encoder, 3)
    module.logged.clear()
    trainer = lightning.Trainer(
        accelerator="cpu", max_epochs=2, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0,
        callbacks=list(callbacks),
    )  # fmt: skip
    trainer.fit(module, datamodule=Data())
    return module, trainer


def test_the_module_logs_the_score_of_every_epoch():
    if lightning is None:
        missing("lightning is not installed (make lightning installs it)")
    module, trainer = trained()
    assert len(module.logged) == 2
    encoder = module.fid.encoder
    assert encoder.running_mean.abs().max() == 0.0  # training has not reached it
    with torch.no_grad():
        fake = module.generator(torch.as_tensor(LATENTS)).numpy()
    scale = float(1.0 / np.sqrt(1.0 + encoder.eps))
    expected = gb.frechet_distance(
        gb.Moments.from_features(scale * fake, keep=2048),
        gb.Moments.from_features(scale * REAL, keep=2048),
    )
    assert module.logged[-1]["fid/value"] == pytest.approx(expected.value, rel=1e-4)
    assert float(trainer.callback_metrics["fid/value"]) == pytest.approx(expected.value, rel=1e-4)


def test_the_callback_ends_the_training():
    if lightning is None:
        missing("lightning is not installed (make lightning installs it)")
    space = {"gb": gb}
    exec(python_block("training_loops.md", "class StopOnCollapse"), space)
    widths = iter([1.1, 6.0])
    callback = space["StopOnCollapse"](
        lambda module: next(widths) * RNG.normal(size=(600, 3)), RNG.normal(size=(2000, 3)), looks=2
    )
    _, trainer = trained([callback])
    assert trainer.should_stop
    assert callback.monitor.track().verdict == "collapsed"
    assert {"fd", "fd_low", "fd_high"} <= set(trainer.callback_metrics)
