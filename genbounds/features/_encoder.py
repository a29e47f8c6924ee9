"""The protocol of encoders."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from numpy.typing import NDArray

Kind = Literal["images", "texts", "files", "rows"]
KINDS: tuple[Kind, ...] = ("images", "texts", "files", "rows")


@contextmanager
def evaluating(encoder: Any) -> Iterator[None]:
    """Keep a torch network, or that of a bound method, in evaluation mode, then put it back.

    In training mode batch normalisation would take each batch's own statistics, and learn them.
    """
    torch = sys.modules.get("torch")
    network = getattr(encoder, "__self__", encoder)
    known = torch is not None and isinstance(network, torch.nn.Module)
    trained = [part for part in network.modules() if part.training] if known else []
    for part in trained:
        part.training = False
    try:
        yield
    finally:
        for part in trained:
            part.training = True


@runtime_checkable
class Encoder(Protocol):
    """Turns images, texts or files into rows of features.

    Attributes
    ----------
    takes : {"images", "texts", "files"} or None
        What its items are: Pillow images (or uint8 arrays), strings, or paths. None: whatever the
        input holds.
    description : mapping of str to str
        What decides the features: ``encoder`` (its name), ``weights`` (a digest), ``preprocessing``
        and ``libraries`` (versions). Stored with the features; files that differ in one of the
        first three are not compared.
    """

    @property
    def takes(self) -> Kind | None:
        """What kind of item it encodes; None if it does not say."""
        ...

    @property
    def description(self) -> Mapping[str, str]:
        """What decides its features, by name."""
        ...

    def prepare(self, item: Any) -> Any:
        """Prepare one item (decode, resize, …); called from several threads."""
        ...

    def encode(self, batch: Sequence[Any]) -> NDArray[Any]:
        """Return the features, shape (len(batch), d), of prepared items."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionEncoder:
    """An `Encoder` made of functions.

    Attributes
    ----------
    encode : callable
        From prepared items to features (n, d).
    takes, description
        As of any `Encoder`.
    preprocessing : callable or None
        What prepares one item; None: it is taken as it is.
    """

    encode: Callable[[Sequence[Any]], NDArray[Any]]
    takes: Kind | None
    description: Mapping[str, str]
    preprocessing: Callable[[Any], Any] | None = None

    def prepare(self, item: Any) -> Any:
        """Prepare one item."""
        return item if self.preprocessing is None else self.preprocessing(item)
