"""Run tests as other processors compute: ``python -m tests.processors [PYTEST ARGUMENT ...]``.

OpenBLAS takes another kernel for each kind of processor, and NumPy other loops: sums are formed in
another order, so that numbers differ in their last digits. What passes on one processor alone
promises more than it holds. Every kernel below runs on any x86-64 machine of the last ten years.
Where it is not OpenBLAS that computes (macOS, MKL) or the machine is another, this says so and
runs nothing.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys

# What is made of products of matrices, eigenvalues and long sums, once more on one of two kernels,
# and golden values on both; with arguments (nightly: all tests) what they name runs on both. Tests
# of arguments, files, records and policies pass on every processor or on none.
KERNELS = {
    "Haswell": (
        "golden",
        "frozen",
        *(f"estimators/{name}" for name in ("frechet", "inception", "kernels", "spectrum_fit")),
        "estimators/test_moments.py",
        "estimators/test_sampling.py",
        "decisions/test_parts.py",
        "select/test_mixture.py",
        "select/test_ucb.py",
    ),
    "Sandybridge": (
        "golden",
        *(f"estimators/{name}" for name in ("copies", "neighbours", "smooth", "vendi")),
        "estimators/test_crossed.py",
        "estimators/test_mean.py",
        "bounds/test_exact.py",
        "bounds/test_tails.py",
        "decisions/test_mixture.py",
        "simulate/test_numerics.py",
        "simulate/test_truths.py",
    ),
}
QUICK = ["-m", "not slow and not statistical and not nightly"]


def wide_features() -> str:
    """Loops of NumPy for AVX-512 that this machine has; others may not be named."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    return " ".join(
        name
        for name in __cpu_dispatch__
        if __cpu_features__[name] and (name == "X86_V4" or name.startswith("AVX512"))
    )


def kernels_in_use(environment: dict[str, str]) -> set[str]:
    """Kernels that NumPy and SciPy load in this environment."""
    code = (
        "import numpy, scipy.linalg, threadpoolctl as t\n"
        "print(*{i['architecture'] for i in t.threadpool_info() if i['internal_api']=='openblas'})"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return set(run.stdout.split())


def main(arguments: list[str]) -> int:
    """Return the exit status: 0 if the tests pass on every kernel, or none can be chosen here."""
    if platform.machine() not in ("x86_64", "AMD64"):
        print(f"tests.processors: {platform.machine()} has other kernels; nothing to run")
        return 0
    for kernel, names in KERNELS.items():
        tests = arguments or [*(f"tests/{name}" for name in names), *QUICK]
        environment = os.environ | {
            "OPENBLAS_CORETYPE": kernel,
            "NPY_DISABLE_CPU_FEATURES": wide_features(),
        }
        used = kernels_in_use(environment)
        if used != {kernel}:  # it would be the same run once more
            print(f"tests.processors: {kernel} was asked for, {used or 'no OpenBLAS'} computes")
            continue
        print(
            f"as {kernel} computes, without {environment['NPY_DISABLE_CPU_FEATURES'] or 'change'}"
        )
        command = [sys.executable, "-m", "pytest", "-q", "-n", os.environ.get("JOBS", "auto")]
        code = subprocess.run([*command, *tests], env=environment).returncode
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
