"""From images to labels: reading, features, and explanations in the image (needs Pillow)."""

from widemargin.vision.pixels import ImageError, as_grey
from widemargin.vision.reading import Fault, Images, read_images

__all__ = [
    "Fault",
    "ImageError",
    "Images",
    "as_grey",
    "read_images",
]
