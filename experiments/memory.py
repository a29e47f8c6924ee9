"""How much memory a process took at its peak."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

STATUS = Path("/proc/self/status")
PEAK = Path("/proc/self/clear_refs")


def peak_gib() -> float:
    """Return the largest resident size of this process so far, in GiB.

    Where the kernel says it, of this program alone: what `getrusage` returns starts, in a child,
    with the size of the process that started it.
    """
    if STATUS.exists():
        lines = STATUS.read_text(encoding="ascii", errors="replace").splitlines()
        (peak,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
        return int(peak) / 2**20  # kB
    taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return taken / (2**30 if sys.platform == "darwin" else 2**20)


def forget_peak() -> bool:
    """Let the peak start again from the present size; return whether the kernel does that."""
    try:
        PEAK.write_text("5", encoding="ascii")
    except OSError:
        return False
    return True
