"""An encoder as it was asked for: its name and its options."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from genbounds.features._preprocessing import Preprocessing
from genbounds.features.encoders._weights import file_digest
from genbounds.files import display, library
from genbounds.origins import RANDOM
from genbounds.validation import InputError

PRECISIONS = ("float32", "bfloat16", "float16")
SEED = 0
"""Of untrained weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One encoder as it was asked for.

    Attributes
    ----------
    name : str
        In full, as in ``timm:resnet50``.
    model : str
        What stands after the family: a model, a file or ``module:function``.
    weights : Path or None
        A file, or a folder to look into; None: the libraries' own caches.
    random : bool
        Whether untrained weights were asked for.
    path : Path or None
        The file of weights that was found; None where they are random, or part of the model.
    device, precision : str
    overrides : dict
        Fields of `Preprocessing` that replace those of the model.
    """

    name: str
    model: str
    weights: Path | None = None
    random: bool = False
    device: str = "cpu"
    precision: str = "float32"
    overrides: dict[str, Any] = field(default_factory=dict)
    path: Path | None = None

    @property
    def digest(self) -> str:
        """What stands for the weights in a file of features."""
        return f"{RANDOM}, seed {SEED}" if self.path is None else file_digest(self.path)

    def library(self, module: str, extra: str = "encoders") -> Any:
        """Import what the encoder needs, or say how to get it."""
        return library(module, extra=extra, needed_for=self.name)

    def unknown(self, listing: str) -> InputError:
        """Return the error of a name that a library does not know."""
        return InputError(f"{self.name}: there is no such model; {listing} in Python lists them.")

    def file(self) -> Path:
        """Return the file that the name holds, which has the weights in it."""
        path = Path(self.model)
        if not path.is_file():
            raise InputError(f"{display(path)}: no such file: save the model there.")
        if self.weights is not None or self.random:
            raise InputError(f"{display(path)}: has its own weights: leave --weights out.")
        return path

    def preprocessing(self, **defaults: Any) -> Preprocessing:
        """Return the model's own preprocessing, with what the user asked for in its place."""
        known = {field.name for field in fields(Preprocessing)}
        if unknown := set(self.overrides) - known:
            raise InputError(
                f"`preprocessing` has no {', '.join(sorted(unknown))}: it has {', '.join(known)}."
            )
        if "size" in self.overrides and "resize" not in self.overrides:
            # The model's margin for the crop belongs to its own size.
            defaults = {key: value for key, value in defaults.items() if key != "resize"}
        return Preprocessing(**(defaults | self.overrides))

    def without_options(self, *, of: str) -> None:
        """Refuse what this kind of encoder would ignore."""
        ignored = {
            "--weights": self.weights is not None or self.random,
            "--precision": self.precision != "float32",
            "preprocessing (--size, --fit, …)": bool(self.overrides),
        }
        for option, given in ignored.items():
            if given:
                raise InputError(f"{self.name}: {option} is not used by {of}: leave it out.")
