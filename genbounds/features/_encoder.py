"""What an encoder is; from an image to the numbers it takes, with a resize that does not alias."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from genbounds.validation import InputError, check_choice, check_count, check_positive

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


# --- from an image to numbers ---------------------------------------------------------------------

Fit = Literal["stretch", "crop"]
FITS: tuple[Fit, ...] = ("stretch", "crop")
INTERPOLATIONS = ("bicubic", "bilinear", "lanczos")
_SIXTEEN_BITS = ("I;16", "I;16L", "I;16B", "I;16N")


@dataclass(frozen=True, slots=True, kw_only=True)
class Preprocessing:
    """How images become arrays of shape (channels, height, width).

    Attributes
    ----------
    size : int or None
        Height and width of the result; None leaves every image as it is.
    fit : {"stretch", "crop"}
        "stretch" resizes both sides to `size`, as the Fréchet inception distance does. "crop"
        resizes the shorter side to `resize`, then cuts out the centre, as classifiers do.
    resize : int or None
        The shorter side before the crop; `size` by default.
    interpolation : {"bicubic", "bilinear", "lanczos"}
    channels : {3, 1}
        RGB or grey.
    white : float
        The number that stands for white before `mean` and `std`: 1 or 255.
    mean, std : tuple of float
        Of each channel, or one for all of them; the result is (x - mean) / std.

    Notes
    -----
    Pillow resizes every channel as a floating-point image. Its filters widen with the reduction,
    so that detail finer than the new pixels is averaged instead of aliased, and nothing is rounded
    to whole grey levels in between: of the usual image libraries this is the combination that
    changes Fréchet distances least (Parmar, Zhang & Zhu 2022, "On Aliased Resizing and Surprising
    Subtleties in GAN Evaluation", CVPR). What overshoots [0, 255] is clipped.

    An alpha channel is dropped, an orientation tag ignored, of an animation the first frame taken,
    as the usual tools do; 16-bit grey images keep their precision.
    """

    size: int | None = None
    fit: Fit = "stretch"
    resize: int | None = None
    interpolation: str = "bicubic"
    channels: int = 3
    white: float = 1.0
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        for name, side in {"size": self.size, "resize": self.resize}.items():
            if side is not None:
                check_count(name, side)
        check_choice("fit", self.fit, FITS)
        check_choice("interpolation", self.interpolation, INTERPOLATIONS)
        if self.channels not in (1, 3):
            raise InputError(f"`channels` must be 3 (colour) or 1 (grey); got {self.channels!r}.")
        check_positive("white", self.white)
        for name, values in {"mean": self.mean, "std": self.std}.items():
            if len(values) not in (1, self.channels) or not np.isfinite(values).all():
                raise InputError(
                    f"`{name}` must be one number, or one for each of the {self.channels} channels;"
                    f" got {values!r}."
                )
        for value in self.std:
            check_positive("std", value)
        if self.resize is not None and (self.size is None or self.resize < self.size):
            raise InputError(f"`resize` must be at least `size`; got {self.resize!r}.")

    def describe(self) -> str:
        """Return one line of JSON, equal for equal preprocessing."""
        return json.dumps(asdict(self), sort_keys=True)

    def __call__(self, image: Any) -> NDArray[np.float32]:
        """Preprocess one Pillow image or uint8 array (h, w), (h, w, 1) or (h, w, 3).

        Returns
        -------
        ndarray of shape (channels, height, width)
            float32.

        Raises
        ------
        InputError
            If it is neither.
        """
        planes = self._resized(_planes(image, self.channels))
        shape = (-1, 1, 1)
        mean = np.asarray(self.mean, dtype=np.float32).reshape(shape)
        std = np.asarray(self.std, dtype=np.float32).reshape(shape)
        return (planes / np.float32(255.0 / self.white) - mean) / std

    def _resized(self, planes: list[NDArray[np.float32]]) -> NDArray[np.float32]:
        height, width = planes[0].shape
        if self.size is None:
            return np.stack(planes)
        target = self.size, self.size
        if self.fit == "crop":
            shorter = self.resize or self.size
            # The longer side rounds down, as it does in torchvision and timm.
            long = int(shorter * max(height, width) / min(height, width))
            target = (shorter, long) if height <= width else (long, shorter)
        resized = np.stack([self._resize(plane, target) for plane in planes])
        if self.fit == "crop":
            top, left = (round((side - self.size) / 2.0) for side in target)
            resized = resized[:, top : top + self.size, left : left + self.size]
        return resized

    def _resize(self, plane: NDArray[np.float32], target: tuple[int, int]) -> NDArray[np.float32]:
        if plane.shape == target:
            return plane
        from PIL import Image

        method = Image.Resampling[self.interpolation.upper()]
        image = Image.fromarray(plane).resize((target[1], target[0]), resample=method)
        clipped: NDArray[np.float32] = np.asarray(image, dtype=np.float32).clip(0.0, 255.0)
        return clipped


def as_picture(image: Any) -> Any:
    """Return a Pillow image, or a uint8 array (h, w), (h, w, 1) or (h, w, 3), as a Pillow image."""
    from PIL import Image

    if isinstance(image, np.ndarray):
        if image.dtype != np.uint8 or not (
            image.ndim == 2 or (image.ndim == 3 and image.shape[2] in (1, 3))
        ):
            raise InputError(
                f"an image must be a uint8 array of shape (h, w), (h, w, 1) or (h, w, 3); "
                f"got {image.dtype} of shape {image.shape}."
            )
        image = Image.fromarray(image[:, :, 0] if image.shape[2:] == (1,) else image)
    if not isinstance(image, Image.Image):
        raise InputError(
            f"an image must be a Pillow image or an array; got {type(image).__name__}."
        )
    return image


def rgb(image: Any) -> NDArray[np.uint8]:
    """Decode an image of any mode to red, green and blue, shape (h, w, 3)."""
    pixels = np.stack(_planes(image, 3), axis=2)
    return np.asarray(pixels.round().astype(np.uint8))


def _planes(image: Any, channels: int) -> list[NDArray[np.float32]]:
    """Return the channels of an image as float32 arrays with values from 0 to 255."""
    image = as_picture(image)
    if image.mode in _SIXTEEN_BITS:  # Pillow's own conversion would clip at 255
        grey = np.asarray(image).astype(np.float32) / np.float32(257.0)
        return [grey] * channels
    if image.mode in ("I", "F"):
        raise InputError(
            "has 32-bit pixel values, and no value for white: save the image with 8 or 16 bits."
        )
    pixels = np.asarray(image.convert("RGB" if channels == 3 else "L"), dtype=np.float32)
    return [pixels] if channels == 1 else [pixels[:, :, index].copy() for index in range(3)]


def stack_images(batch: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """Return preprocessed images as one array (n, c, h, w)."""
    sizes = {image.shape[1:] for image in batch}
    if len(sizes) > 1:
        (h1, w1), (h2, w2), *_ = sorted(sizes)
        raise InputError(
            f"the images differ in size ({w1} × {h1} and {w2} × {h2} pixels): "
            "give the size to resize them to, as `genbounds features --size` takes it."
        )
    return np.stack(batch)
