"""Memory does not grow with the number of rows."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

MEMORY_PROBE = """
import re, sys
import numpy as np
from genbounds import files

def peak():  # kB; unlike ru_maxrss it is not inherited from the parent process
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])

before = peak()
if sys.argv[1] == "control":
    x = np.ones((30_000, 1_000))
else:
    x = files.read_features(sys.argv[1])
    assert isinstance(x, np.memmap), type(x)
total = sum(float(x[i : i + 1000, 0].sum()) for i in range(0, 3000, 1000))
print((peak() - before) * 1024)
"""


def peak_growth(argument) -> int:
    command = [sys.executable, "-c", MEMORY_PROBE, str(argument)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("kind", ["npy", "npz", "npz-compressed"])
def test_memory_does_not_grow_with_n(tmp_path, kind):
    # 240 MB of features; reading them may take a tenth of that.
    n, d = 30_000, 1_000
    path = tmp_path / f"big.{kind[:3]}"
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (n, d)}
    )
    if kind == "npy":
        with path.open("wb") as file:
            file.write(header.getvalue())
            file.truncate(len(header.getvalue()) + n * d * 8)  # sparse
    else:
        rows = np.random.default_rng(0).integers(0, 3, size=(1000, d)).astype(np.float64)
        compression = zipfile.ZIP_DEFLATED if kind.endswith("compressed") else zipfile.ZIP_STORED
        with (
            zipfile.ZipFile(path, "w", compression, compresslevel=1) as archive,
            archive.open("features.npy", "w") as member,
        ):
            member.write(header.getvalue())
            for _ in range(n // 1000):
                member.write(rows.tobytes())
    assert peak_growth(path) < n * d * 8 / 3


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_memory_probe_sees_an_array_that_is_held():
    """Negative control of the test above."""
    assert peak_growth("control") > 200_000_000
