"""
A path over C
=============

How strongly should errors be punished? ``fit_path`` fits the model for a list of values of C.
Each fit starts from the solution of the one before.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.datasets import make_moons

from widemargin import KernelSVC

X, y = make_moons(600, noise=0.35, random_state=3)
X_test, y_test = make_moons(4000, noise=0.35, random_state=4)
Cs = np.logspace(-1.5, 4, 12)
machine = KernelSVC(gamma=10, random_state=0)

# %%
# The same models twice: first each on its own, then along the path.
start = time.perf_counter()
for C in Cs:
    clone(machine).set_params(C=C).fit(X, y)
alone = time.perf_counter() - start
start = time.perf_counter()
models = machine.fit_path(X, y, Cs)
path = time.perf_counter() - start
print(f"one by one {alone:.2f} s, along the path {path:.2f} s")

# %%
# With a small C the border is smooth. With a large C the machine learns the noise by heart: it
# gets better on the training rows and worse on new ones.
train = 100 * np.array([model.score(X, y) for model in models])
test = 100 * np.array([model.score(X_test, y_test) for model in models])
best = int(np.argmax(test))
figure, panels = plt.subplot_mosaic("ccc;012", figsize=(10, 8), layout="constrained")
ax = panels["c"]
ax.semilogx(Cs, train, "o-", color="grey", label="training rows")
ax.semilogx(Cs, test, "o-", color="#1b5e9e", label="new rows")
ax.plot(Cs[best], test[best], "o", ms=15, mfc="none", mec="#c0392b", mew=2)
ax.set(xlabel="C", ylabel="accuracy, %")
ax.legend(frameon=False)
a, b = np.meshgrid(np.linspace(-2.2, 3.2, 200), np.linspace(-2, 2.3, 200))
for k, own in enumerate([0, best, len(Cs) - 1]):
    values = models[own].decision_function(np.c_[a.ravel(), b.ravel()]).reshape(a.shape)
    panel = panels[str(k)]
    panel.contourf(a, b, np.tanh(values), 21, cmap="RdBu", vmin=-1.3, vmax=1.3)
    panel.contour(a, b, values, [0], colors="black", linewidths=1.2)
    panel.scatter(
        *X.T, s=7, c=np.where(y, "#1b5e9e", "#b2332d"), edgecolors="white", linewidths=0.3
    )
    panel.set(xticks=[], yticks=[], title=f"C = {Cs[own]:.2g}: {test[own]:.1f} % on new rows")
plt.show()
