"""
Linear, additive and RBF in two dimensions
==========================================

Three machines, three problems. A linear machine draws a straight line. An additive machine adds a
curve of one column to a curve of the other: its border can bend, but it cannot see that two
columns matter *together*. An RBF machine can, but takes longer and has no curves that explain it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_circles, make_moons
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from widemargin import AdditiveSVC, KernelSVC

# %%
# Two moons, a ring around a disc, and a chessboard of four squares, on which neither column alone
# says anything.
rng = np.random.default_rng(0)
corners = rng.uniform(-1, 1, (400, 2))
problems = {
    "two moons": make_moons(400, noise=0.22, random_state=0),
    "a ring": make_circles(400, noise=0.12, factor=0.5, random_state=0),
    "a chessboard": (corners, (corners[:, 0] * corners[:, 1] > 0).astype(int)),
}
machines = {
    "linear": AdditiveSVC("linear", C=10, random_state=0),
    "additive (intersection)": AdditiveSVC("intersection", random_state=0),
    "RBF": make_pipeline(MinMaxScaler(), KernelSVC(C=10, gamma=8, random_state=0)),
}

# %%
# Colours are decision values: the deeper the colour, the surer the machine. The black line is its
# border between the classes.
figure, rows = plt.subplots(3, 3, figsize=(9, 9), layout="constrained")
for axes, (problem, (X, y)) in zip(rows, problems.items(), strict=True):
    low, high = X.min(axis=0) - 0.2, X.max(axis=0) + 0.2
    a, b = np.meshgrid(np.linspace(low[0], high[0], 150), np.linspace(low[1], high[1], 150))
    for ax, (name, machine) in zip(axes, machines.items(), strict=True):
        machine.fit(X, y)
        values = machine.decision_function(np.c_[a.ravel(), b.ravel()]).reshape(a.shape)
        ax.contourf(a, b, np.tanh(values), 21, cmap="RdBu", vmin=-1.3, vmax=1.3)
        ax.contour(a, b, values, [0], colors="black", linewidths=1.5)
        colours = np.where(y == 1, "#1b5e9e", "#b2332d")
        ax.scatter(*X.T, s=9, c=colours, edgecolors="white", linewidths=0.3)
        ax.set(xticks=[], yticks=[], title=f"{name}: {machine.score(X, y):.0%}")
    axes[0].set_ylabel(problem, fontsize=12)

# %%
# The additive machine can draw the ring, because the equation of a circle is a sum, x² + y². The
# chessboard is a product, and there it can only guess. :func:`widemargin.missed_pairs` tells
# whether some data has such a product.
