"""
Photographs by their visual words
=================================

scikit-learn comes with two photographs, a temple and a flower. We cut both into tiles and train a
machine on the tiles of their left halves. It then tells, for each tile of the right halves, which
photograph the tile is from. :mod:`widemargin.vision` counts visual words in each tile, and the
intersection kernel compares the counts.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_images
from sklearn.pipeline import make_pipeline

from widemargin import AdditiveSVC
from widemargin.vision import BagOfVisualWords, Codebook, DenseSIFT, SpatialPyramid

SIDE = 40
photographs = [photo[:400, :640] for photo in load_sample_images().images]


def tiles(photo):
    """Tiles of a photograph, row after row."""
    return [
        photo[i : i + SIDE, j : j + SIDE]
        for i in range(0, photo.shape[0], SIDE)
        for j in range(0, photo.shape[1], SIDE)
    ]


X = [tile for photo in photographs for tile in tiles(photo)]
rows, columns = 400 // SIDE, 640 // SIDE
y = np.repeat(["temple", "flower"], rows * columns)
left = np.tile(np.arange(columns) < columns // 2, 2 * rows)

# %%
# A tile becomes the counts of 60 words: how many of its patches resemble each of 60 typical
# patches.
bag = BagOfVisualWords(
    DenseSIFT(step=6, sides=(16,)),
    Codebook(60, method="kmeans", random_state=0),
    SpatialPyramid((1,)),
)
model = make_pipeline(bag, AdditiveSVC("intersection", random_state=0))
model.fit([X[k] for k in np.flatnonzero(left)], y[left])
values = model.decision_function(X)
score = np.mean((values > 0) == (y == "temple"), where=~left)
print(f"accuracy on the right halves: {score:.1%}")

# %%
# The machine takes blue tiles for the temple and red tiles for the flower. It was trained on the
# tiles to the left of the line.
figure, axes = plt.subplots(1, 2, figsize=(13, 4.6), layout="constrained")
for ax, photo, own in zip(axes, photographs, np.split(values, 2), strict=True):
    ax.imshow(photo.mean(axis=2), cmap="Greys_r")
    shown = np.tanh(own.reshape(rows, columns))
    ax.imshow(shown, cmap="RdBu", vmin=-1, vmax=1, alpha=0.45, extent=(0, 640, 400, 0))
    ax.axvline(320, color="white", lw=2)
    ax.set(xticks=[], yticks=[])
axes[0].set_title("temple")
axes[1].set_title("flower")
figure.suptitle(f"{score:.0%} of the tiles on the right are recognised")
plt.show()
