"""
Why did it say that? One prediction explained
=============================================

The decision of an additive model is a sum, so writing out this sum explains the decision exactly.
Here we explain the least certain prediction on the breast-cancer data.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from widemargin import AdditiveSVC, explain

data = load_breast_cancer(as_frame=True)
X, X_test, y, y_test = train_test_split(
    data.data, data.target_names[data.target], random_state=1, stratify=data.target
)
model = AdditiveSVC("intersection", random_state=0).fit(X, y)
print(f"accuracy {model.score(X_test, y_test):.3f}")

# %%
# There is one contribution for each row and column, and the intercept comes last. They add up to
# the decision value. If it is positive, it speaks for the second class, "malignant".
parts = model.contributions(X_test)
values = model.decision_function(X_test)
assert np.allclose(parts.reshape(len(X_test), -1).sum(axis=1), values, atol=1e-4)
patient = int(np.abs(values).argmin())

# %%
# The ten columns that matter most for this patient, and the sum of the others. Each bar begins
# where the one above it ends.
own = parts.reshape(len(X_test), -1)[patient]
names = [term.name for term in explain(model).terms]
order = np.argsort(-np.abs(own[:-1]))
shown, others = order[:10], order[10:]
steps = [own[-1], *own[shown], own[others].sum()]
labels = ["on average", *[f"{names[j]} = {X_test.iloc[patient, j]:.4g}" for j in shown]]
labels.append(f"{len(others)} other columns")
ends = np.cumsum(steps)
starts = np.r_[0, ends[:-1]]

figure, ax = plt.subplots(figsize=(9, 5.5), layout="constrained")
colours = np.where(np.array(steps) > 0, "#c0392b", "#1b5e9e")
ax.barh(labels, steps, left=starts, color=colours, height=0.7)
ax.vlines(ends[:-1], np.arange(len(steps) - 1), np.arange(1, len(steps)), color="grey", lw=0.8)
ax.axvline(0, color="black", lw=1)
ax.axvline(ends[-1], color="black", lw=1, ls="--")
ax.text(ends[-1], -0.75, f" decision value {ends[-1]:+.2f}")
ax.set_ylim(len(steps) - 0.4, -1.2)
ax.set_xlim(min(ends.min(), 0) - 0.06, max(ends.max(), 0) + 0.06)
ax.set_xlabel("blue speaks for benign, red for malignant")
ax.set_title(
    f"The least certain patient: {model.predict(X_test)[patient]}, truly {y_test[patient]}"
)
plt.show()
