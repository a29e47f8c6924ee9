"""Peak memory of a run, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ARMS, ROWS, COLUMNS = 20, 300, 1_024

SCRIPT = """
import json, sys
import numpy as np
from genbounds import select
from genbounds.estimators import FrechetReference, Moments
from genbounds.simulate import GaussianArm

def peak():
    # Not ru_maxrss, which a child inherits from a large parent.
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))

arms, rows, columns, keep = (int(word) for word in sys.argv[1:])
spread = np.arange(1, columns + 1) ** -0.85
lineup = {f"a{i}": GaussianArm(np.zeros(columns), spread * (1 - 0.01 * i)) for i in range(arms)}
reference = Moments(np.zeros(columns), np.diag(spread))
# What one score alone takes, the libraries included.
FrechetReference(reference).estimate(lineup["a0"].draw(rows, np.random.default_rng(0)))
before = peak()
kept = []
if keep:  # the plain way: a matrix an arm
    kept = [np.ones((columns, columns)) for _ in range(arms)]
result = select.run(
    lineup, reference, policy="uniform", batch=50, budget=arms * rows, dtype="float16"
)
for matrix in kept:
    matrix += 1  # where pages that lie idle are taken back, they return
print(json.dumps({"more": peak() - before, "least": min(result.samples.values())}))
"""


def more_than_one_score(*, keep: bool) -> int:
    """Bytes that a run of all arms takes beyond the score of one."""
    command = [sys.executable, "-c", SCRIPT, *map(str, (ARMS, ROWS, COLUMNS, int(keep)))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["least"] == ROWS
    return int(found["more"])


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's /proc")
def test_arms_keep_their_samples_and_no_matrix():
    """Samples of all arms, with the buffers' growth and a reference twice; not 20 d × d matrices.

    Measured: 40 MB beyond one score; samples are 12 MB, a matrix of every arm would be 168 MB.
    """
    samples = ARMS * ROWS * COLUMNS * 2
    limit = 3 * samples + 3 * 8 * COLUMNS**2
    assert more_than_one_score(keep=False) < limit
    assert more_than_one_score(keep=True) > limit  # the control: the limit sees the matrices
