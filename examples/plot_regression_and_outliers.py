"""
Regression that outliers do not move
====================================

A support vector machine for numbers ignores errors up to ``epsilon``. The cost of a larger error
is proportional to its size, not to its square, so a broken sensor hardly moves the model. Left,
:class:`~widemargin.KernelSVR` on one column; right, what :class:`~widemargin.AdditiveSVR` learned
from the ten columns of the diabetes data.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.kernel_ridge import KernelRidge

from widemargin import AdditiveSVR, KernelSVR

# %%
# A curve with a little noise, and a sensor that sticks at 3 now and then.
rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 10, 250))
y = np.sin(x) + x / 10 + rng.normal(0, 0.1, x.size)
broken = (rng.random(x.size) < 0.15) & (x > 2)
y[broken] = 3
grid = np.linspace(0, 10, 400)
squares = KernelRidge(kernel="rbf", gamma=0.5, alpha=0.1).fit(x[:, None], y)
machine = KernelSVR(C=10, gamma=0.5, epsilon=0.2).fit(x[:, None], y)
print(f"support vectors: {len(machine.support_)} of {x.size}, gap {machine.duality_gap_:.1e}")

# %%
# Ten columns, one curve each. These are the four that matter most.
data = load_diabetes(as_frame=True, scaled=False)
additive = AdditiveSVR("intersection", C=0.3, random_state=0).fit(data.data, data.target)
order = np.argsort(-additive.feature_importances_)[:4]

figure, panels = plt.subplot_mosaic("aa01;aa23", figsize=(13, 5.5), layout="constrained")
ax = panels["a"]
ax.scatter(x[~broken], y[~broken], s=12, color="#8a8f98", label="rows")
ax.scatter(x[broken], y[broken], s=16, color="#c0392b", marker="x", label="broken sensor")
ax.plot(grid, squares.predict(grid[:, None]), color="#e08214", lw=2, label="least squares")
found = machine.predict(grid[:, None])
ax.fill_between(grid, found - 0.2, found + 0.2, color="#1b5e9e", alpha=0.18, label="epsilon")
ax.plot(grid, found, color="#1b5e9e", lw=2.5, label="KernelSVR")
ax.plot(grid, np.sin(grid) + grid / 10, "k--", lw=1, label="truth")
ax.legend(frameon=False, ncols=3, loc="lower center")
ax.set(ylim=(-2, 3.4), xlabel="x")
for k, column in enumerate(order):
    values, adds = additive.shape_function(column)
    panel = panels[str(k)]
    panel.plot(values, adds, color="#2e8b57", lw=2)
    panel.axhline(0, color="grey", lw=0.8)
    panel.set_title(data.data.columns[column])
figure.suptitle("Left: a robust curve. Right: what adds to the progress of diabetes")
plt.show()
