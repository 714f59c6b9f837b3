"""From images to labels: reading, features, and explanations in the image (needs Pillow)."""

from widemargin.vision.centrist import Centrist
from widemargin.vision.codebook import Codebook
from widemargin.vision.pixels import ImageError, as_grey
from widemargin.vision.pyramid import SpatialPyramid, Words
from widemargin.vision.reading import Fault, Images, read_images
from widemargin.vision.sift import DenseSIFT, Patches
from widemargin.vision.visual_words import BagOfVisualWords, icd_words, pmsvm_words

__all__ = [
    "BagOfVisualWords",
    "Centrist",
    "Codebook",
    "DenseSIFT",
    "Fault",
    "ImageError",
    "Images",
    "Patches",
    "SpatialPyramid",
    "Words",
    "as_grey",
    "icd_words",
    "pmsvm_words",
    "read_images",
]
