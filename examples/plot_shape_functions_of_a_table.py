"""
Curves of a table with categories and gaps
==========================================

A bank has a table of its customers: age, income, job, and for some of them how long they have
been customers. :class:`~widemargin.AdditiveSVC` learns from this table without any preparation.
It learns one curve per column. We made the table ourselves, so we can compare the curves with the
truth.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from widemargin import AdditiveSVC, plots

# %%
# The truth: people in mid-life pay back, income helps up to a point, and some jobs are safer than
# others. A missing value means that the customer is new, which is a bad sign.
rng = np.random.default_rng(0)
n = 6000
jobs = np.array(["clerk", "doctor", "driver", "farmer", "smith", "writer"])
worth = np.array([0.2, 1.2, -0.3, 0.5, 0.1, -1.2])
age, income = rng.uniform(18, 80, n), rng.gamma(3, 15, n)
job, known = rng.integers(len(jobs), size=n), rng.uniform(0, 20, n)
is_new = rng.random(n) < 0.2
truth = {
    "age": lambda value: 1.5 - ((value - 48) / 18) ** 2,
    "income": lambda value: 1.6 * np.tanh((value - 40) / 15),
    "known": lambda value: 0.08 * (value - 10),
}
score = truth["age"](age) + truth["income"](income) + worth[job]
score += np.where(is_new, -1.0, truth["known"](known))
pays = np.where(score + rng.logistic(0, 0.7, n) > 0, "pays", "fails")
table = pd.DataFrame(
    {"age": age, "income": income, "job": jobs[job], "known": np.where(is_new, np.nan, known)}
)
table.head()

# %%
# One call, with no preparation. Text is a category, and ``missing="learn"`` gives a missing value
# a contribution of its own.
model = AdditiveSVC("intersection", missing="learn", C=0.05, random_state=0).fit(table, pays)
print(f"accuracy {model.score(table, pays):.3f}, gap {model.duality_gap_:.1e}")

# %%
# The grey bars below each curve show how frequent its values are: without data, the model cannot
# know the curve. The dashed line is the truth, up to a factor and a constant.
figure, axes = plt.subplots(2, 2, figsize=(10, 7), layout="constrained")
for ax, name in zip(axes.flat, table, strict=True):
    plots.plot_shape(model, name, ax=ax)
    if name in truth:
        grid, learned = model.shape_function(name)
        seen = np.isfinite(grid.astype(float)) & (grid.astype(float) < 120)
        grid, learned = grid[seen].astype(float), learned[seen]
        true = truth[name](grid)
        slope, level = np.polyfit(true, learned, 1)
        ax.plot(grid, slope * true + level, "k--", lw=1, label="truth")
        ax.legend(frameon=False)
figure.suptitle("What each column says about 'pays'")
plt.show()
