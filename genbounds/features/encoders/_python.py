"""``module:function``: a user's own Python as an encoder, or as an arm that generates samples."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from genbounds._text import display
from genbounds.features._encoder import Encoder, FunctionEncoder, evaluating, rgb, stack_images
from genbounds.features._extract import encode
from genbounds.features.encoders._request import Request, file_digest, versions
from genbounds.validation import InputError, as_numpy

if TYPE_CHECKING:
    from genbounds.arms import Arm

_PATTERN = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def is_entry_point(text: str) -> bool:
    """Whether a text has the form ``package.module:name``."""
    return _PATTERN.fullmatch(text) is not None


def entry_point(text: str) -> Any:
    """Import what `text`, ``package.module:name``, names; the working folder comes first.

    Raises
    ------
    InputError
        If it is not of that form, there is no such module or name, or the module is a script that
        ends the program. What the module itself raises while it is imported is passed on.
    """
    if not is_entry_point(text):
        raise InputError(f"{display(text)}: is not of the form module:function.")
    module_name, _, names = text.partition(":")
    here = os.getcwd()
    sys.path.insert(0, here)
    try:
        target = importlib.import_module(module_name)
    except SystemExit as error:  # a script; its exit status would be taken for our answer
        raise InputError(
            f"{display(text)}: the module ends the program when it is imported: put what it runs "
            'as a script below `if __name__ == "__main__":`.'
        ) from error
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # a module that it needs: the user's own problem, with its traceback
        raise InputError(
            f"{display(text)}: there is no module {module_name!r} in this folder or among the "
            "installed packages: run this in the module's folder."
        ) from error
    finally:
        sys.path.remove(here)
    for name in names.split("."):
        try:
            target = getattr(target, name)
        except AttributeError as error:
            raise InputError(f"{display(text)}: the module has no {name!r}.") from error
    return target


@dataclass(frozen=True, slots=True)
class _LiveArm:
    """A user's function, or an object's ``draw``; an encoder makes features of what it returns."""

    sample: Callable[[int, np.random.Generator], Any]
    encoder: Encoder | None

    @property
    def origin(self) -> Mapping[str, str]:
        """Which encoder makes its rows; empty if it returns them itself."""
        return {} if self.encoder is None else self.encoder.description

    def draw(self, n: int, rng: np.random.Generator) -> Any:
        drawn = self.sample(n, rng)
        return drawn if self.encoder is None else encode(self.encoder, drawn)


def live_arm(text: str, encoder: Encoder | None = None) -> Arm:
    """Make an arm of ``module:function``.

    Parameters
    ----------
    text : str
        Names a function of ``(n, rng)``, or an object with such a ``draw``. It returns n new rows
        of features or posteriors; with an encoder, n images (uint8 arrays or Pillow images) or
        texts.
    encoder : Encoder, optional

    Returns
    -------
    Arm

    Raises
    ------
    InputError
        As `entry_point`; or if it names neither.
    """
    target = entry_point(text)
    sample = getattr(target, "draw", target)
    if isinstance(target, type) or not callable(sample):
        raise InputError(
            f"{display(text)}: is neither a function of (n, rng) nor an object with a method "
            "draw(n, rng); if it is a class, name an instance."
        )
    return _LiveArm(sample, encoder)


def no_encoder() -> Encoder:
    """Make what passes rows on that are features already."""

    def stacked(batch: Sequence[Any]) -> NDArray[Any]:
        widths = list(dict.fromkeys(len(row) for row in batch))
        if len(widths) > 1:
            raise InputError(
                f"the input holds rows of {widths[0]} and rows of {widths[1]} features: give files "
                "of one encoder."
            )
        return np.stack(batch)

    return FunctionEncoder(encode=stacked, takes="rows", description={})


def python_encoder(request: Request) -> Encoder:
    """Make an encoder of ``module:function``, or of a `Preprocessing` and a function."""
    target = entry_point(request.model)
    if isinstance(target, Encoder) and not isinstance(target, type):
        request.without_options(of="an encoder of your own")
        return target
    if not callable(target):
        raise InputError(
            f"{display(request.model)}: is neither a function of a list of items nor an encoder."
        )
    own = getattr(target, "preprocessing", None)
    preprocessing = None
    if own is not None or request.overrides:
        preprocessing = request.preprocessing(**({} if own is None else asdict(own)))
        request = replace(request, overrides={})  # they are used
    request.without_options(of="a Python function")

    def encode(batch: Sequence[Any]) -> NDArray[Any]:
        given: Any = list(batch) if preprocessing is None else stack_images(batch)
        with evaluating(target):
            return as_numpy("features", target(given))

    return FunctionEncoder(
        encode=encode,
        preprocessing=preprocessing or _decoded,
        takes="images" if preprocessing is not None else None,
        description={
            "encoder": request.name,
            "weights": _source_digest(target),
            "preprocessing": "its own" if preprocessing is None else preprocessing.describe(),
            "libraries": versions("numpy", "pillow"),
        },
    )


def _source_digest(target: Any) -> str:
    """Return a digest of the file that defines a function, in place of one of its weights."""
    digest = getattr(target, "weights", None)
    if isinstance(digest, str):
        return digest
    module = sys.modules.get(getattr(target, "__module__", "") or "")
    file = getattr(module, "__file__", None)
    if file and Path(file).is_file():
        return f"source {file_digest(Path(file))}"
    text = inspect.getsource(target) if inspect.isfunction(target) else repr(type(target))
    return f"source sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _decoded(item: Any) -> Any:
    """Decode a Pillow image, or a grey one that is an array; leave everything else as it is."""
    from PIL import Image

    if isinstance(item, np.ndarray):
        picture = item.dtype == np.uint8 and (item.ndim == 2 or item.shape[2:] == (1,))
    else:
        picture = isinstance(item, Image.Image)
    return rgb(item) if picture else item
