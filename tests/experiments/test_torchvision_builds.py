"""Torchvision as far as it is there: importable for the libraries that ask for it."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version

from tests.features.conftest import missing

CODE = """
import sys
if "without" in sys.argv:
    real = __import__("importlib.util").util.find_spec
    import experiments.torchvision_builds as builds
    builds.find_spec = lambda name: None if name == "torchvision" else real(name)
from experiments.torchvision_builds import make_importable
make_importable()
make_importable()
import torchvision.models.inception
print(torchvision.__spec__.loader is not None)
"""


def imported(*arguments):
    command = [sys.executable, "-W", "error", "-c", CODE, *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_torchvision_of_any_build_is_imported():
    for package in ("torch", "torchvision"):
        try:
            version(package)
        except PackageNotFoundError as error:
            missing(str(error))
    assert imported() == "True"


def test_without_one_there_are_empty_modules():
    assert imported("without") == "False"
