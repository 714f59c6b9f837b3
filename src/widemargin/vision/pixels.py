"""One image: encoded bytes, or an array of any kind, as grey pixels."""

from __future__ import annotations

import io

import numpy as np

from widemargin.errors import Message, Parameter

try:
    from PIL import Image, ImageOps
except ImportError:  # pragma: no cover
    raise ImportError("widemargin.vision needs Pillow: pip install widemargin[vision]") from None

FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
"""Formats that are decoded; Pillow knows others, some of which start programs."""
MAX_PIXELS = 1 << 25
LONGEST = 1 << 16
"""The longest side that images can be reduced to."""
_SIXTEEN_BITS = 65535


class ImageError(ValueError):
    """An image, or a folder of them, that cannot be read; the message names it."""


def decode(content: bytes, max_pixels: int = MAX_PIXELS) -> np.ndarray:
    """Return the grey pixels of an encoded image, turned upright as its EXIF says.

    Colours become their luminance, 16-bit values are divided by 257, transparency is ignored, and
    of several frames the first is read.  The size is checked before any pixel is decoded.

    Raises
    ------
    ImageError
        If the content is not an image, or is damaged, truncated or too large.
    """
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            width, height = image.size
            if width * height > max_pixels:
                raise ImageError(_too_large(width, height, max_pixels))
            return _grey(ImageOps.exif_transpose(image))
    except (ImageError, MemoryError):
        raise
    except Image.UnidentifiedImageError:
        kinds = ", ".join(FORMATS)
        raise ImageError(f"it is not an image of a known format ({kinds})") from None
    except Exception as error:  # decoders of damaged files raise errors of any type
        said = " ".join(str(error).split())[:200] or type(error).__name__
        raise ImageError(f"it is damaged ({said})") from None


def _too_large(width: int, height: int, max_pixels: int) -> Message:
    return Message(
        "it has {width} x {height} pixels, but {limit} is the limit",
        width=width,
        height=height,
        limit=Parameter("max_pixels", max_pixels),
    )


def _grey(image: Image.Image) -> np.ndarray:
    if image.mode.startswith("I"):
        values = np.asarray(image)
        if values.size and (values.min() < 0 or values.max() > _SIXTEEN_BITS):
            raise ImageError("its pixels have more than 16 bits")
        return as_grey(values.astype(np.uint16))
    if image.mode == "F":
        raise ImageError("its pixels are floating-point numbers")
    if image.mode not in ("L", "RGB"):
        image = image.convert("RGB")
    return np.asarray(image if image.mode == "L" else image.convert("L"))


def as_grey(image: np.ndarray) -> np.ndarray:
    """Return an array as grey pixels from 0 to 255 (uint8).

    Parameters
    ----------
    image : array of shape (height, width) or (height, width, 3 or 4)
        Of bytes, 16-bit integers, booleans, or floating-point numbers from 0 to 1.

    Examples
    --------
    >>> as_grey(np.array([[0, 65535]], dtype=np.uint16)), as_grey(np.array([[0.5]]))
    (array([[  0, 255]], dtype=uint8), array([[128]], dtype=uint8))
    """
    image = np.asarray(image)
    if not (image.ndim == 2 or (image.ndim == 3 and image.shape[2] in (3, 4))) or not image.size:
        raise ImageError(
            f"An image has the shape (height, width) or (height, width, 3 or 4), not {image.shape}."
        )
    pixels = _bytes(image)
    if pixels.ndim == 2:
        return pixels
    return np.asarray(Image.fromarray(np.ascontiguousarray(pixels[..., :3])).convert("L"))


def _bytes(image: np.ndarray) -> np.ndarray:
    if image.dtype == np.uint8:
        return image
    if image.dtype == np.bool_:
        return np.where(image, 255, 0).astype(np.uint8)
    if image.dtype == np.uint16:
        return ((image.astype(np.uint32) + 128) // 257).astype(np.uint8)
    if image.dtype.kind == "f" and np.all((image >= 0) & (image <= 1)):
        return np.rint(255 * image).astype(np.uint8)
    raise ImageError(
        f"Pixels of type {image.dtype} from {image.min()} to {image.max()} are not known; use "
        "uint8, uint16, or floating-point numbers from 0 to 1."
    )


def reduced(image: np.ndarray, longest_side: int | None) -> np.ndarray:
    """Return grey pixels at most ``longest_side`` high and wide; smaller images stay.

    >>> reduced(np.zeros((100, 50), dtype=np.uint8), 20).shape
    (20, 10)
    """
    height, width = image.shape
    if longest_side is None or max(height, width) <= longest_side:
        return image
    factor = longest_side / max(height, width)
    return resized(image, (max(1, round(height * factor)), max(1, round(width * factor))))


def resized(image: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Return grey pixels of another height and width."""
    size = (shape[1], shape[0])
    return np.asarray(Image.fromarray(image).resize(size, Image.Resampling.BICUBIC))
