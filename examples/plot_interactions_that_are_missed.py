"""
What an additive model misses
=============================

An additive machine cannot know that two columns matter *together*.
:func:`widemargin.missed_pairs` finds such pairs in the errors of the machine. To tell them from
noise, it tests them on other rows than those in which it found them.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from widemargin import AdditiveSVC, missed_pairs, plots

# %%
# Twelve columns: two matter on their own, and two only as a product.
rng = np.random.default_rng(0)
X = pd.DataFrame(rng.uniform(-1, 1, (6000, 12)), columns=[f"column {k}" for k in range(12)])
score = X["column 0"] + np.sin(3 * X["column 1"]) + 2.5 * X["column 4"] * X["column 7"]
y = (score + rng.logistic(0, 0.3, len(X)) > 0).astype(int)
train, test = slice(0, 4000), slice(4000, None)
model = AdditiveSVC(random_state=0).fit(X[train], y[train])
found = missed_pairs(model, X[test], y[test])
for pair in list(found)[:3]:
    print(f"{pair.name}: strength {pair.strength:.3f}, stands out: {pair.stands_out}")

# %%
# One more column tells the machine about the product. Now it is as good as it can be.
told = X.assign(product=X["column 4"] * X["column 7"])
better = AdditiveSVC(random_state=0).fit(told[train], y[train])
before, after = model.score(X[test], y[test]), better.score(told[test], y[test])

# %%
# Left, the pattern that was found: the four corners of a product. Right, how much a column for
# this product improves the machine.
figure, (left, right) = plt.subplots(
    1, 2, figsize=(11, 4.8), layout="constrained", width_ratios=[3, 2]
)
plots.plot_pair(next(iter(found)), model.classes_, ax=left)
bars = right.bar(["columns alone", "and the product"], [100 * before, 100 * after],
                 color=["#8a8f98", "#1b5e9e"])  # fmt: skip
right.bar_label(bars, fmt="%.1f %%", padding=3)
right.set(ylabel="accuracy on new rows, %", ylim=(50, 100))
plt.show()
