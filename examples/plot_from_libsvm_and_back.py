"""
From LIBSVM's files and back
============================

We read a text file in LIBSVM's format and write a model in LIBSVM's format, so a program that
calls svm-predict works as before. Models that LIBSVM trained can be loaded as they are.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from widemargin import KernelSVC, load, read
from widemargin.data import write_svmlight
from widemargin.export import export_libsvm

# %%
# Two columns of the wine data, so that we can draw what happens.
wine = load_wine()
X = StandardScaler().fit_transform(wine.data[:, [0, 6]])
folder = Path(tempfile.mkdtemp())
write_svmlight(folder / "wine.txt", X, wine.target)
print((folder / "wine.txt").read_text().splitlines()[0])

# %%
# Read it, train, and write the model as svm-train would.
data = read(folder / "wine.txt")
model = KernelSVC(C=5, gamma=0.5, random_state=0).fit(data.X, data.y)
export_libsvm(model, folder / "wine.model")
text = (folder / "wine.model").read_text().splitlines()
print(*text[:9], sep="\n")

# %%
# ``load`` reads models of LIBSVM, also old ones, and predicts as LIBSVM does. The two predictions
# can differ in one case only: if each class has one vote, LIBSVM takes the first class, and our
# model the one with the larger margins.
again = load(folder / "wine.model")
a, b = np.meshgrid(np.linspace(-2.6, 2.8, 250), np.linspace(-2, 3.2, 250))
grid = np.c_[a.ravel(), b.ravel()]
ours, theirs = (machine.predict(grid).reshape(a.shape) for machine in (model, again))
print(f"equal on {np.mean(ours == theirs):.2%} of {grid.shape[0]:,} points")

# %%
# Left, the model file. Right, the machine that it describes. Rings are support vectors; each is a
# line of the file.
figure, (left, right) = plt.subplots(
    1, 2, figsize=(11, 5), layout="constrained", width_ratios=[2, 3]
)
left.axis("off")
shown = [*text[:9], *text[9:17], f"... {len(text) - 17} lines more"]
left.text(0, 1, "\n".join(line[:44] for line in shown), family="monospace", fontsize=8.5, va="top",
          transform=left.transAxes)  # fmt: skip
right.contourf(a, b, theirs, [-0.5, 0.5, 1.5, 2.5], colors=["#cfe0f1", "#fbe0c3", "#d3ead9"])
for k, colour in enumerate(["#1b5e9e", "#e08214", "#2e8b57"]):
    right.scatter(*X[wine.target == k].T, s=18, color=colour, label=f"class {k}")
right.scatter(*X[model.support_].T, s=60, facecolors="none", edgecolors="black", linewidths=0.8)
right.set(xlabel="alcohol", ylabel="flavanoids")
right.legend(frameon=False)
plt.show()
