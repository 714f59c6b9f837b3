"""
Rows unlike the others
======================

:class:`~widemargin.OneClassSVM` learns where rows usually are, without labels. ``nu`` is the
largest share of the training rows that it puts outside, so a larger ``nu`` draws a tighter line.
The shades are the score of a place; the line is where the score is the offset.
"""

import matplotlib.pyplot as plt
import numpy as np

from widemargin import OneClassSVM

# %%
# Two groups of rows, and two dozen that belong to neither.
rng = np.random.default_rng(0)
groups = np.vstack([rng.normal([-2, 0], [0.5, 1.2], (300, 2)), rng.normal([2, 1], 0.7, (300, 2))])
X = np.vstack([groups, rng.uniform(-5, 5, (24, 2))])
models = [OneClassSVM(nu=nu, gamma=0.15).fit(X) for nu in (0.05, 0.15, 0.4)]
for model in models:
    share = np.mean(model.predict(X) < 0)
    print(f"nu {model.nu:g}: {share:.3f} outside, gap {model.duality_gap_:.1e}")

# %%
# The same rows under three values of nu.
side = np.linspace(-5, 5, 150)
places = np.stack(np.meshgrid(side, side), axis=-1)
figure, axes = plt.subplots(1, 3, figsize=(13, 4.6), sharey=True, layout="constrained")
for ax, model in zip(axes, models, strict=True):
    score = model.score_samples(places.reshape(-1, 2)).reshape(150, 150)
    outside = model.predict(X) < 0
    ax.contourf(side, side, score, levels=12, cmap="Blues", alpha=0.8)
    ax.contour(side, side, score, levels=model.offset_, colors="#1b5e9e", linewidths=2.5)
    ax.scatter(*X[~outside].T, s=8, color="#4d545e", label="like the others")
    ax.scatter(*X[outside].T, s=26, color="#c0392b", marker="x", label="unlike the others")
    ax.set(title=f"nu = {model.nu:g}", aspect="equal")
axes[0].legend(loc="lower left")
plt.show()
