"""From images to labels: reading, features, and explanations in the image (needs Pillow)."""

from widemargin.vision.centrist import Centrist
from widemargin.vision.codebook import Codebook
from widemargin.vision.explanation import ImageExplanation, explain_image
from widemargin.vision.page import write_image_report
from widemargin.vision.picture import plot_heat
from widemargin.vision.pixels import ImageError, as_grey
from widemargin.vision.pyramid import SpatialPyramid, Words
from widemargin.vision.reading import Fault, Images, read_images
from widemargin.vision.sift import DenseSIFT, Patches
from widemargin.vision.visual_words import BagOfVisualWords, icd_words, pmsvm_words
from widemargin.vision.windows import Detections, WindowDetector

__all__ = [
    "BagOfVisualWords",
    "Centrist",
    "Codebook",
    "DenseSIFT",
    "Detections",
    "Fault",
    "ImageError",
    "ImageExplanation",
    "Images",
    "Patches",
    "SpatialPyramid",
    "WindowDetector",
    "Words",
    "as_grey",
    "explain_image",
    "icd_words",
    "plot_heat",
    "pmsvm_words",
    "read_images",
    "write_image_report",
]
