"""
Find objects in windows
=======================

Handwritten digits are pasted over two photographs, and a machine is to find the fours. Its windows
slide over the whole image: integral histograms of visual words give the counts in a window, and
the machine's tables what each count adds, so a window costs look-ups only. Windows in which the
machine sees a four by mistake are shown to it again: these hard negatives are mostly other digits,
which random windows seldom hit.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Rectangle
from sklearn.datasets import load_digits, load_sample_images

from widemargin.vision import (
    BagOfVisualWords,
    Codebook,
    DenseSIFT,
    SpatialPyramid,
    WindowDetector,
    as_grey,
)

SIDE, SOUGHT = 48, 4
digits, numbers = load_digits(return_X_y=True)
photographs = [as_grey(photo) for photo in load_sample_images().images]


def pasted(rng):
    """A piece of a photograph with nine digits, and the boxes of the fours."""
    photo = photographs[rng.integers(2)]
    top, left = (rng.integers(0, n - 240) for n in photo.shape)
    image = photo[top : top + 240, left : left + 240].astype(float)
    boxes = []
    for cell in range(9):
        k = rng.choice(np.flatnonzero((numbers == SOUGHT) == (rng.random() < 0.25)))
        ink = np.kron(digits[k].reshape(8, 8) / 16, np.ones((6, 6)))
        row, column = (80 * np.array(divmod(cell, 3)) + rng.integers(0, 80 - SIDE, 2)).tolist()
        place = np.s_[row : row + SIDE, column : column + SIDE]
        image[place] = (1 - ink) * image[place] + 255 * ink
        if numbers[k] == SOUGHT:
            boxes.append((row, column, row + SIDE, column + SIDE))
    return image.astype(np.uint8), np.array(boxes, dtype=float).reshape(-1, 4)


rng = np.random.default_rng(0)
training = [pasted(rng) for _ in range(40)]
test = [pasted(rng) for _ in range(20)]
bag = BagOfVisualWords(
    DenseSIFT(4, sides=(16, 24)), Codebook(60), SpatialPyramid((1, 2, 3), overlap=False)
)

# %%
# A window counts as found if it covers half of a four or more: its overlap with the four's box is
# more than a half of their union.


def overlap(box, other):
    first, last = np.maximum(box[:2], other[:2]), np.minimum(box[2:], other[2:])
    common = np.clip(last - first, 0, None).prod()
    return common / (2 * SIDE**2 - common)


def judged(finder):
    """The fours that were found, and the windows that hold none."""
    found, wrong = 0, 0
    for image, boxes in test:
        windows = finder.detect(image).boxes
        hits = np.array([[overlap(w, box) > 0.5 for box in boxes] for w in windows], dtype=bool)
        hits = hits.reshape(len(windows), len(boxes))
        found += hits.any(axis=0).sum()
        wrong += (~hits.any(axis=1)).sum()
    return found, wrong


n_fours = sum(len(boxes) for _, boxes in test)
for rounds in (0, 3):
    finder = WindowDetector((SIDE, SIDE), bag, rounds=rounds)
    finder.fit([image for image, _ in training], [boxes for _, boxes in training])
    found, wrong = judged(finder)
    print(f"{finder.n_negatives_[-1]} negatives: {found} of {n_fours} fours, {wrong} other windows")

# %%
# Green boxes are what the last machine finds in six new images; fours have a dashed white box.
figure, axes = plt.subplots(2, 3, figsize=(10, 7), layout="constrained")
for ax, (image, boxes) in zip(axes.flat, test, strict=False):
    ax.imshow(image, cmap="gray", vmin=0, vmax=255)
    for box, style in [(b, ("white", "--", 4)) for b in boxes] + [
        (b, ("limegreen", "-", 2)) for b in finder.detect(image).boxes
    ]:
        colour, line, width = style
        place = (box[1], box[0])
        ax.add_patch(Rectangle(place, SIDE, SIDE, fill=False, ec=colour, ls=line, lw=width))
    ax.set(xticks=[], yticks=[])
figure.suptitle(f"{found} of {n_fours} fours found, {wrong} windows without one")
plt.show()
