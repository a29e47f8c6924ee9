"""Flip bits of stores and inputs: ``python -m tests.fuzz.flips --flips 10000`` (``make fuzz``).

What is kept by a run has checksums: a flip ends in the true result or in one line. So it does in
``.npz``, ``.pt``, in ``.safetensors`` of ours, in archives of PNG images and in ``.parquet`` with
checksums of its pages. ``.npy`` and ``.safetensors`` of others are not checked: there a flip may
also give other numbers, of the same shape.
"""

from __future__ import annotations

import argparse
import io
import logging
import random
import shutil
import tarfile
import tempfile
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from genbounds import InputError, features, files, select
from genbounds.bounds import catalog
from genbounds.simulate import GaussianArm, coverage

ROWS = np.random.default_rng(0).normal(size=(40, 6))


class Broken(AssertionError):
    """Another result, a traceback, or an error of several lines."""


@dataclass(frozen=True)
class Target:
    """Something that is kept: made once, damaged, then used again.

    Attributes
    ----------
    make : callable
        Makes it in a folder.
    use : callable
        Uses what is in a folder; returns the result.
    damage : str
        Pattern of the files in which bits are flipped.
    checked : bool
        Whether the format has a checksum.
    """

    make: Callable[[Path], Any]
    use: Callable[[Path], Any]
    damage: str
    checked: bool = True


def _study(folder: Path) -> Any:
    arm = GaussianArm([0.0], [[1.0]])
    return coverage(catalog()["o24.gaussian-mean"], arm, 8, 0.05, 40, 3, out=folder)


def _selection(folder: Path) -> Any:
    rng = np.random.default_rng(1)
    real = rng.normal(size=(120, 3))
    arms = {f"{k}": select.FeatureArm(k + rng.normal(size=(120, 3))) for k in (0.0, 0.5)}
    return select.run(arms, real, batch=50, budget=220, record=folder / "record").to_dict()


class _Mean:
    """An encoder that a run can be stopped in."""

    takes = "images"
    description = {"encoder": "mean"}  # noqa: RUF012

    def __init__(self, batches: int = 10**9) -> None:
        self.left = batches

    def prepare(self, item: Any) -> Any:
        return np.asarray(item, dtype=np.float64)

    def encode(self, batch: Any) -> Any:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return np.array([[image.mean(), image.std()] for image in batch])


def _extraction(folder: Path, *, batches: int = 10**9, moments: bool = False) -> Any:
    if not (folder / "images").exists():
        (folder / "images").mkdir()
        rng = np.random.default_rng(2)
        for number in range(8):
            pixels = rng.integers(0, 256, (3, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / "images" / f"{number}.png")
    target = {"moments": folder / "x.npz"} if moments else {"out": folder / "x.safetensors"}
    source = features.open_source([folder / "images"])
    try:
        features.extract(source, _Mean(batches), batch=2, block=2, workers=1, **target)  # type: ignore[arg-type]
    except KeyboardInterrupt:
        return None
    content = files.read(next(iter(target.values())))
    if isinstance(content, files.Statistics):
        return content.mean.tolist(), content.cov.tolist(), content.n
    return content.tolist()


def _input(suffix: str, write: Callable[[Path], None], *, checked: bool) -> Target:
    return Target(
        make=lambda folder: write(folder / f"x{suffix}"),
        use=lambda folder: np.asarray(files.read(folder / f"x{suffix}")).tolist(),
        damage=f"x{suffix}",
        checked=checked,
    )


def _statistics(folder: Path) -> Any:
    content = files.read_statistics(folder / "x.npz")
    return content.mean.tolist(), content.cov.tolist(), content.n


def _save_torch(path: Path) -> None:
    import torch

    torch.save(torch.from_numpy(ROWS), path)


def _save_parquet(path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table({f"f{k}": column for k, column in enumerate(ROWS.T)})
    parquet.write_table(table, path, write_page_checksum=True)


def _save_safetensors(path: Path) -> None:
    with files.open_features_writer(path, shape=ROWS.shape, dtype=ROWS.dtype) as write:
        write(ROWS)


def _pictures() -> dict[str, bytes]:
    rng, found = np.random.default_rng(2), {}
    for number in range(4):
        content = io.BytesIO()
        Image.fromarray(rng.integers(0, 256, (3, 3), dtype=np.uint8)).save(content, "PNG")
        found[f"{number % 2}/{number}.png"] = content.getvalue()
    return found


def _zip(folder: Path) -> None:
    with zipfile.ZipFile(folder / "x.zip", "w") as archive:
        for name, content in _pictures().items():
            archive.writestr(zipfile.ZipInfo(name), content)


def _tar(folder: Path) -> None:
    _tar_as(folder / "x.tar", "w")


def _packed_tar(folder: Path) -> None:
    _tar_as(folder / "x.tar.gz", "w:gz")


def _tar_as(path: Path, mode: Any) -> None:
    with tarfile.open(path, mode) as archive:
        for name, content in _pictures().items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def _images(folder: Path) -> Any:
    """Use images as an extraction does."""
    source = features.open_source([next(folder.glob("x.*"))])
    features.extract(source, _Mean(), batch=2, out=folder / "y.npz", workers=1)
    classes = files.read_labels(folder / "y.npz").strata
    return files.read(folder / "y.npz").tolist(), np.asarray(classes).tolist()


TARGETS = {
    "store of a study": Target(_study, _study, "coverage.sqlite"),
    "record of a selection": Target(_selection, _selection, "record/*"),
    "blocks of features": Target(
        lambda folder: _extraction(folder, batches=3), _extraction, "x.safetensors.parts/0*"
    ),
    "running statistics": Target(
        lambda folder: _extraction(folder, batches=3, moments=True),
        lambda folder: _extraction(folder, moments=True),
        "x.npz.parts/*.npz",
    ),
    "finished features": Target(_extraction, _extraction, "x.safetensors"),
    "finished statistics": Target(
        lambda folder: _extraction(folder, moments=True),
        lambda folder: _extraction(folder, moments=True),
        "x.npz",
    ),
    "statistics .npz": Target(
        lambda folder: files.write_statistics(
            folder / "x.npz", ROWS.mean(0), np.cov(ROWS.T), len(ROWS)
        ),
        _statistics,
        "x.npz",
    ),
    "images .zip": Target(_zip, _images, "x.zip"),
    "images .tar": Target(_tar, _images, "x.tar"),
    "images .tar.gz": Target(_packed_tar, _images, "x.tar.gz"),
    "features .npz": _input(".npz", lambda path: np.savez(path, features=ROWS), checked=True),
    "features .npz, packed": _input(
        ".npz", lambda path: np.savez_compressed(path, features=ROWS), checked=True
    ),
    "features .npy": _input(".npy", lambda path: np.save(path, ROWS), checked=False),
    "features .safetensors": _input(".safetensors", _save_safetensors, checked=True),
    "features .pt": _input(".pt", _save_torch, checked=True),
    "features .parquet": _input(".parquet", _save_parquet, checked=True),
}


def flip(folder: Path, pattern: str, rng: random.Random) -> str:
    """Flip one bit of one of the files; return which."""
    path = rng.choice(sorted(folder.glob(pattern)))
    content = bytearray(path.read_bytes())
    bit = rng.randrange(8 * len(content))
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)
    return f"{path.name}, bit {bit}"


def outcome(target: Target, made: Path, truth: Any, rng: random.Random) -> str:
    """Flip one bit of a copy and use it: "true", "refused" or "other numbers"."""
    with tempfile.TemporaryDirectory(dir=made.parent) as name:
        folder = Path(name) / "copy"
        shutil.copytree(made, folder)
        where = flip(folder, target.damage, rng)
        try:
            found = target.use(folder)
        except InputError as error:
            if any(unicodedata.category(letter) in ("Cc", "Cs", "Cf") for letter in str(error)):
                raise Broken(f"{where}: {error!r}") from error
            return "refused"
        except Exception as error:
            raise Broken(f"{where}: {type(error).__name__}: {error}") from error
    if found == truth:
        return "true"
    if target.checked or np.shape(found) != np.shape(truth):
        raise Broken(f"{where}: another result")
    return "other numbers"


def run(flips: int, seed: int) -> dict[str, Counter[str]]:
    """Flip so many bits, in all targets in turn."""
    rng = random.Random(seed)
    counts = {key: Counter[str]() for key in TARGETS}
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").exists() else None) as name:
        made, truths = {}, {}
        for number, (key, target) in enumerate(TARGETS.items()):
            made[key] = Path(name) / f"{number}"
            made[key].mkdir()
            target.make(made[key])
            with tempfile.TemporaryDirectory(dir=name) as copy:
                truths[key] = target.use(shutil.copytree(made[key], Path(copy) / "copy"))
        for number in range(flips):
            key = list(TARGETS)[number % len(TARGETS)]
            try:
                counts[key][outcome(TARGETS[key], made[key], truths[key], rng)] += 1
            except Broken as error:
                raise Broken(f"{key}: {error}") from error
    return counts


def table(counts: dict[str, Counter[str]]) -> str:
    """Return the counts as lines."""
    ways = ("true", "refused", "other numbers")
    lines = io.StringIO()
    print(f"{'':<24}{'flips':>8}", *(f"{way:>14}" for way in ways), file=lines)
    for key, count in counts.items():
        print(f"{key:<24}{count.total():>8}", *(f"{count[way]:>14}" for way in ways), file=lines)
    return lines.getvalue()


def main() -> int:
    """Parse the options and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.flips", description=__doc__)
    parser.add_argument("--flips", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    # A line for each flip that is noticed would bury the table; in a test the logger is shared.
    logging.getLogger("genbounds").setLevel(logging.ERROR)
    try:
        counts = run(options.flips, options.seed)
    except Broken as error:
        print(f"a wrong answer: {error}")
        return 1
    print(table(counts), end="")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
