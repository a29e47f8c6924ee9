"""Calls leave the process as it was: warning filters, BLAS threads, signal handlers, files."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import genbounds as gb
from genbounds import features
from genbounds.cli import main


def blas() -> dict[str, int]:
    return {
        library["filepath"]: library["num_threads"]
        for library in threadpool_info()
        if library["user_api"] == "blas"
    }


def state() -> dict[str, object]:
    return {
        "filters": list(warnings.filters),
        "blas": blas(),
        "signals": [signal.getsignal(getattr(signal, name)) for name in ("SIGINT", "SIGTERM")],
        "switches": np.geterr(),
    }


def sobol() -> None:
    gb.sobol_normal(3, rng=0, balanced=False).draw(5)


def coverage() -> None:
    bound = gb.bounds.catalog()["o24.hoeffding"]
    gb.simulate.coverage(bound, gb.simulate.BernoulliArm(0.5), 10, 0.1, 50, 0)


def selection() -> None:
    arms = {f"{k}": gb.simulate.GaussianArm(np.full(3, k), np.eye(3)) for k in (0.0, 2.0)}
    gb.select.run(arms, np.random.default_rng(0).normal(size=(200, 3)), budget=400)


def page() -> None:
    score = gb.frechet_distance(np.eye(3)[[0, 1, 2] * 20], np.eye(3)[[0, 1, 1] * 20] + 0.1)
    gb.report.score_page({"a": score}, metric="fd", level=0.95).render()


def command() -> None:
    assert main(["bounds", "o24.hoeffding"]) == 0


CALLS = [sobol, coverage, selection, page, command]


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_one_call_leaves_no_trace(call):
    call()  # whatever is imported by the first call may add its own
    before = state()
    call()
    assert state() == before


@pytest.mark.parametrize("call", [sobol, coverage], ids=lambda call: call.__name__)
def test_calls_that_overlap_leave_no_trace(call):
    call()
    before = state()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            for task in [threads.submit(call) for _ in range(40)]:
                task.result()
    finally:
        sys.setswitchinterval(interval)
    assert state() == before


SMALL_AND_LARGE = """
import numpy as np, scipy.linalg
from threadpoolctl import threadpool_info
import genbounds as gb

def most():
    return max(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")

seen = set()

def record(module, name):
    function = getattr(module, name)
    def recorded(*given, **options):
        seen.add((name, most()))
        return function(*given, **options)
    setattr(module, name, recorded)

record(np, "einsum")  # every score sums squares with it, as the trial of the order of draws does
record(scipy.linalg, "eigh")

x, y = np.random.default_rng(0).normal(size=(2, 200, 4))
arms = {name: lambda n, rng: rng.normal(size=(n, 4)) for name in "ab"}
large = np.ones((1100, 1000)) * np.arange(1100.0)[:, None]
# Few rows of many features: their products are small, though a covariance would be large.
wide = np.random.default_rng(1).normal(size=(2, 30, 7000))
for call, name, threads in (
    (lambda: gb.frechet_distance(x, y), "eigh", 1),
    (lambda: gb.frechet_distance(*wide), "einsum", 1),
    (lambda: gb.select.run(arms, y, batch=50, budget=400), "eigh", 1),
    (lambda: gb.kernel_inception_distance(gb.Sample(x), gb.Sample(x + 1.0)), "einsum", 1),
    (lambda: gb.kernel_inception_distance(gb.Sample(large), gb.Sample(large + 1.0)), "einsum", 2),
):
    seen.clear()
    call()
    found = {count for spied, count in seen if spied == name}
    assert (found, most()) == ({threads}, 2), (threads, seen, most())
"""


def test_small_scores_take_one_thread_and_large_ones_all():
    """With the threads of two OpenBLAS side by side they took ten times as long."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-c", SMALL_AND_LARGE], env=environment, check=True)


class Size:
    """An encoder of images that keeps to their size."""

    takes = "images"
    description = {"encoder": "size"}  # noqa: RUF012

    def prepare(self, item):
        return item

    def encode(self, batch):
        return np.array([[*image.size, 1.0] for image in batch])


def test_images_are_decoded_by_several_threads_without_a_trace(tmp_path):
    """Filters of Python's own, set and put back for every image, stayed after some runs."""
    from PIL import Image

    pixels = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    (tmp_path / "images").mkdir()
    for number in range(400):
        Image.fromarray(pixels).save(tmp_path / "images" / f"{number}.png")
    before = list(warnings.filters)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        source = features.open_source([tmp_path / "images"])
        features.extract(source, Size(), batch=50, out=tmp_path / "x.npy", workers=8)
    finally:
        sys.setswitchinterval(interval)
    assert warnings.filters == before


def test_filters_are_changed_in_one_place_only():
    package = Path(gb.__file__).parent
    users = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if re.search(r"catch_warnings|filterwarnings\(|simplefilter\(", path.read_text("utf-8"))
    }
    assert users == {"_process.py"}


def test_overlapping_filters_of_python_itself_stay():
    """Negative control: what the test above is there for."""

    def ignored():
        context = warnings.catch_warnings()
        context.__enter__()
        warnings.simplefilter("ignore", UserWarning)
        return context

    before = list(warnings.filters)
    try:
        first, second = ignored(), ignored()
        first.__exit__(None, None, None)
        second.__exit__(None, None, None)
        assert warnings.filters != before
    finally:
        warnings.filters[:] = before
