"""What computes on the card itself: its ceilings, encoders, streamed moments."""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import genbounds as gb
from genbounds.features import encode, extract, load_encoder, open_source


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much work each path gets."""

    product: int = 8192
    copy: int = 1 << 28
    rows: int = 1_000_000
    d: int = 2048
    batch: int = 10_000
    checked: int = 20_000
    scored: int = 16_384
    few: int = 1_024
    images: int = 512
    side: int = 128
    pairs: int = 8_192
    dense: int = 2_048
    classes: int = 1_000
    lanczos: int = 100_000
    replications: int = 10_000


SMALL = Size(
    product=64, copy=1 << 12, rows=600, d=8, batch=100, checked=300, scored=200, few=6, images=8,
    side=16, pairs=150, dense=150, classes=10, lanczos=150, replications=50,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Row:
    """One path's line."""

    path: str
    where: str
    seconds: float
    rate: float
    unit: str
    ceiling: float | None = None
    error: float | None = None

    def cells(self) -> tuple[str, ...]:
        """Return the line's cells."""
        share = "" if self.ceiling is None else f"{100 * self.rate / self.ceiling:.0f} %"
        error = "" if self.error is None else f"{self.error:.1e}"
        return (
            self.path, self.where, f"{self.seconds:.3g} s", f"{self.rate:.3g} {self.unit}", share,
            error,
        )  # fmt: skip


class Bench:
    """The card, how fast it can be, and the paths that compute on it, one method each."""

    def __init__(self, device: str, size: Size) -> None:
        import torch

        self.torch, self.device, self.size = torch, torch.device(device), size
        self.ceilings: dict[str, float] = {}

    def timed(self, work: Callable[[], Any], *, repeats: int = 3) -> tuple[float, Any]:
        """Best time of a few, after one run that warms up, and the last value."""
        value = work()
        best = float("inf")
        for _ in range(repeats):
            self.wait()
            start = time.perf_counter()
            value = work()
            self.wait()
            best = min(best, time.perf_counter() - start)
        return best, value

    def once(self, work: Callable[[], Any]) -> tuple[float, Any]:
        """Time of one run, for what takes long or has nothing to warm up."""
        self.wait()
        start = time.perf_counter()
        value = work()
        self.wait()
        return time.perf_counter() - start, value

    def wait(self) -> None:
        """Let the card finish."""
        if self.device.type == "cuda":
            self.torch.cuda.synchronize()

    def rows(self) -> Iterator[Row]:
        """Measure everything."""
        yield from self.ceiling_rows()
        yield from self.encoder_rows()
        yield self.extraction_row()
        yield from self.moment_rows()

    def ceiling_rows(self) -> Iterator[Row]:
        """Matrix products in three precisions and a copy: what the card can do."""
        torch, n = self.torch, self.size.product
        for name in ("float64", "float32", "bfloat16"):
            a = torch.ones(n, n, dtype=getattr(torch, name), device=self.device)
            seconds, _ = self.timed(lambda a=a: a @ a)
            self.ceilings[name] = 2.0 * n**3 / seconds
            yield Row(
                path=f"matrix product, {name}", where=self.device.type, seconds=seconds,
                rate=self.ceilings[name] / 1e12, unit="Tflop/s",
            )  # fmt: skip
        source = torch.ones(self.size.copy // 4, device=self.device)
        target = torch.empty_like(source)
        seconds, _ = self.timed(lambda: target.copy_(source))
        self.ceilings["copy"] = 2.0 * self.size.copy / seconds
        yield Row(
            path="copy", where=self.device.type, seconds=seconds,
            rate=self.ceilings["copy"] / 1e9, unit="GB/s",
        )  # fmt: skip

    def encoder_rows(self) -> Iterator[Row]:
        """Encode, with the error that half precision causes in features and in FD."""
        rng = np.random.default_rng(0)
        side = self.size.side
        images = list(rng.integers(0, 256, (self.size.images, side, side, 3), dtype=np.uint8))
        other = [255 - image for image in images]
        with tempfile.TemporaryDirectory() as folder:
            path, flops = self._network(Path(folder))
            exact = load_encoder(f"torchscript:{path}", preprocessing={"size": side})
            few = slice(0, 8)
            expected = encode(exact, images[few])
            reference: float | None = None
            for precision in ("float32", "bfloat16", "float16"):
                if precision == "float16" and self.device.type == "cpu":
                    continue
                encoder: Any = load_encoder(
                    f"torchscript:{path}", device=str(self.device), precision=precision,
                    preprocessing={"size": side},
                )  # fmt: skip
                prepared = [encoder.prepare(image) for image in images]
                seconds, x = self.timed(lambda e=encoder, p=prepared: e.encode(p))
                y = encode(encoder, other)
                fd = gb.frechet_distance(y[:, :4], x[:, :4], estimator="plugin").value
                reference = fd if reference is None else reference
                yield Row(
                    path=f"encoder, {precision} (FD moves by {abs(fd / reference - 1):.1e})",
                    where=self.device.type, seconds=seconds,
                    rate=flops * len(images) / seconds / 1e12, unit="Tflop/s",
                    ceiling=self.ceilings["float32" if precision == "float32" else "bfloat16"]
                    / 1e12,
                    error=float(np.abs(x[few] - expected).max() / np.abs(expected).max()),
                )  # fmt: skip

    def extraction_row(self) -> Row:
        """From a file of images to a file of features: decoding, resizing, encoding, writing."""
        side = self.size.side
        rng = np.random.default_rng(1)
        images = rng.integers(0, 256, (self.size.images, side, side, 3), dtype=np.uint8)
        with tempfile.TemporaryDirectory() as folder:
            path, _ = self._network(Path(folder))
            np.save(Path(folder) / "images.npy", images)
            source = open_source([Path(folder) / "images.npy"])
            written = []
            for device in (str(self.device), "cpu"):
                encoder = load_encoder(
                    f"torchscript:{path}", device=device, preprocessing={"size": side // 2}
                )
                out = Path(folder) / f"{len(written)}.npy"
                seconds, _ = self.once(lambda e=encoder, o=out: extract(source, e, out=o))
                written.append((seconds, np.load(out)))
        (seconds, found), (_, expected) = written
        return Row(
            path=f"features of {len(images):,} images, resized, file to file",
            where=f"host and {self.device.type}", seconds=seconds, rate=len(images) / seconds,
            unit="images/s", error=float(np.abs(found - expected).max() / np.abs(expected).max()),
        )  # fmt: skip

    def _network(self, folder: Path) -> tuple[Path, float]:
        """Write a network like the trunk of an image model; return its work an image too."""
        torch = self.torch
        nn = torch.nn
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)
            width, side, flops, layers = 3, self.size.side, 0.0, []
            for wide in (64, 128, 256, 512):
                layers += [nn.Conv2d(width, wide, 3, stride=2, padding=1), nn.ReLU()]
                side = -(-side // 2)
                flops += 2.0 * 9 * width * wide * side * side
                layers += [nn.Conv2d(wide, wide, 3, padding=1), nn.ReLU()]
                flops += 2.0 * 9 * wide * wide * side * side
                width = wide
            network = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten()).eval()
        path = folder / "network.pt"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            example = torch.zeros(2, 3, self.size.side, self.size.side)
            torch.jit.save(torch.jit.trace(network, example), str(path))
        return path, flops

    def batches(self, count: int) -> Iterator[Any]:
        """Yield correlated rows made on the card, the same at every call."""
        torch, size = self.torch, self.size
        generator = torch.Generator(self.device).manual_seed(0)
        scale = torch.linspace(0.1, 2.0, size.d, device=self.device)
        for start in range(0, count, size.batch):
            n = min(size.batch, count - start)
            z = torch.randn(n, size.d, generator=generator, device=self.device)
            yield 3.0 + z * scale + 0.1 * z.roll(1, dims=1)

    def moment_rows(self) -> Iterator[Row]:
        """Streamed moments in float64, and the distance with its interval from them."""
        try:
            from genbounds.torchmetrics import FrechetDistance
        except ImportError as error:
            print(f"skipped the streamed moments: {error}", file=sys.stderr)
            return
        size = self.size
        metric = FrechetDistance(d=size.d, compute_with_cache=False).to(self.device)

        def stream(count: int) -> Any:
            metric.reset()
            for rows in self.batches(count):
                metric.update(rows, real=True)
            return metric.moments("real")

        seconds, _ = self.timed(lambda: stream(size.rows), repeats=1)
        found = stream(size.checked)
        exact = gb.Moments.empty(size.d)
        for rows in self.batches(size.checked):
            exact.update(rows)
        yield Row(
            path=f"moments of {size.rows:,} × {size.d}, streamed", where=self.device.type,
            seconds=seconds, rate=2.0 * size.rows * size.d**2 / seconds / 1e12, unit="Tflop/s",
            ceiling=self.ceilings["float64"] / 1e12,
            error=float(np.abs(found.cov - exact.cov).max() / np.abs(exact.cov).max()),
        )  # fmt: skip
        for rows in self.batches(size.rows):
            metric.update(rows + 0.01, real=False)
        with warnings.catch_warnings():  # that fourth moments are those of a Gaussian
            warnings.simplefilter("ignore", UserWarning)
            seconds, value = self.timed(metric.compute, repeats=1)
        print({name: float(number) for name, number in value.items()}, file=sys.stderr)
        yield Row(
            path=f"FD with interval from moments, d = {size.d}", where="host", seconds=seconds,
            rate=1.0 / seconds, unit="1/s",
        )  # fmt: skip
