"""
Early models and their clusters
===============================

:class:`~widemargin.KernelSVC` divides the rows into clusters, solves each on its own, and begins
the whole problem with what they found. An *early* model stops before the whole: each new row is
decided by the machine of its own cluster.
"""

import matplotlib.pyplot as plt
import numpy as np

from widemargin import KernelSVC

# %%
# Two spirals, which take many straight pieces to separate.
rng = np.random.default_rng(0)
turn = np.sqrt(rng.uniform(0.05, 1, 4000)) * 3 * np.pi
side = rng.integers(2, size=4000)
X = np.c_[np.cos(turn + np.pi * side), np.sin(turn + np.pi * side)] * turn[:, None] / 9.5
X += rng.normal(0, 0.045, X.shape)
settings = {"C": 10, "gamma": 20, "random_state": 0, "record_levels": True}
exact = KernelSVC(levels=2, **settings).fit(X, side)
early = KernelSVC(early=2, **settings).fit(X, side)

# %%
# ``levels_`` records each level. From 16 clusters to the whole, the support vectors become those
# of the final solution.
for level in exact.levels_:
    print(
        f"{level.n_clusters:3} clusters: {level.n_support} support vectors, "
        f"{level.precision:.0%} of them final, {level.recall:.0%} of the final ones found"
    )

# %%
# Top, the levels: each colour is a cluster, and a dark ring marks a support vector. Bottom, the
# decisions of the early model, with seams between clusters, beside those of the exact one.
a, b = np.meshgrid(np.linspace(-1.2, 1.2, 240), np.linspace(-1.2, 1.2, 240))
figure, axes = plt.subplots(2, 3, figsize=(12, 8), layout="constrained")
for ax, level in zip(axes[0], exact.levels_, strict=True):
    label = np.zeros(len(X)) if level.label is None else level.label
    support = level.alpha > 0
    ax.scatter(*X.T, s=7, c=label % 20, cmap="tab20", alpha=0.6)
    ax.scatter(*X[support].T, s=14, facecolors="none", edgecolors="black", linewidths=0.6)
    words = "the whole" if level.n_clusters == 1 else f"{level.n_clusters} clusters"
    ax.set_title(f"{words}: {support.sum()} support vectors")
values = [model.decision_function(np.c_[a.ravel(), b.ravel()]) for model in (early, exact)]
for ax, value, name in zip(axes[1], values, ["early, 16 clusters", "exact"], strict=False):
    ax.contourf(a, b, np.tanh(value.reshape(a.shape)), 21, cmap="RdBu", vmin=-1.3, vmax=1.3)
    ax.contour(a, b, value.reshape(a.shape), [0], colors="black", linewidths=1.2)
    ax.set_title(name)
differ = (values[0] > 0) != (values[1] > 0)
axes[1, 2].contourf(a, b, differ.reshape(a.shape), [0.5, 1], colors=["#e08214"])
axes[1, 2].scatter(*X.T, s=2, c="lightgrey", zorder=0)
axes[1, 2].set_title(f"where the two differ: {differ.mean():.1%} of the square")
for ax in axes.flat:
    ax.set(xticks=[], yticks=[], xlim=(-1.2, 1.2), ylim=(-1.2, 1.2), aspect="equal")
plt.show()
