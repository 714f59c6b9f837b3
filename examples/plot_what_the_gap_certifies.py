"""
What the duality gap certifies
==============================

A fit ends when its duality gap is below ``tol``. The gap is an upper bound: the true distance
from the optimum is never larger. To show this, we fit the same problem to smaller and smaller
tolerances. A fit to a tolerance of a billionth stands for the optimum.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from widemargin import KernelSVC

X, y = make_moons(3000, noise=0.3, random_state=0)
X_test, y_test = make_moons(3000, noise=0.3, random_state=1)
machine = KernelSVC(C=10, gamma=5, levels=0, random_state=0)
optimum = machine.set_params(tol=1e-9).fit(X, y).objective_

# %%
# ``objective_`` is the value that training minimises; ``duality_gap_`` is relative to it.
tolerances = 10.0 ** np.arange(0, -7.5, -0.5)
gaps, distances, scores = [], [], []
for tol in tolerances:
    model = machine.set_params(tol=tol).fit(X, y)
    gaps.append(model.duality_gap_)
    distances.append(max((model.objective_ - optimum) / model.objective_, 1e-12))
    scores.append(model.score(X_test, y_test))

# %%
# The true distance stays below the gap, and the gap below the tolerance. The accuracy is settled
# much earlier, at a gap of about one per cent, so a fit may as well stop there.
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
left.loglog(tolerances, tolerances, color="grey", ls="--", label="asked for: tol")
left.fill_between(tolerances, 1e-12, gaps, color="#e8f0f8")
left.loglog(tolerances, gaps, "o-", color="#c0392b", label="certified: duality_gap_")
left.loglog(tolerances, distances, "s-", color="#1b5e9e", label="true distance from the optimum")
left.set(xlabel="tol", ylabel="relative to the objective", ylim=(1e-8, 3))
left.invert_xaxis()
left.legend(frameon=False)
right.semilogx(tolerances, 100 * np.array(scores), "o-", color="#2e8b57")
right.set(xlabel="tol", ylabel="accuracy on new rows, %", ylim=(89, 93))
right.invert_xaxis()
plt.show()
