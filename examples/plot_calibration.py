"""
Probabilities: do they mean what they say?
==========================================

A decision value is a distance, not a probability. :class:`~widemargin.CalibratedSVC` turns it
into a probability, and so does scikit-learn's ``CalibratedClassifierCV``.
:func:`widemargin.plots.plot_reliability` checks both on rows that neither has seen.
"""

import matplotlib.pyplot as plt
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from widemargin import CalibratedSVC, KernelSVC, plots
from widemargin.reliability import reliability

X, y = make_classification(
    6000, n_features=12, n_informative=6, flip_y=0.1, class_sep=0.7, random_state=0
)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, test_size=0.5)
plain = make_pipeline(StandardScaler(), KernelSVC(C=1, random_state=0)).fit(X_train, y_train)
models = {"decision values": plain}
models["CalibratedSVC"] = CalibratedSVC(plain).fit(X_train, y_train)
isotonic = CalibratedClassifierCV(plain, method="isotonic", ensemble=False, cv=5)
models["isotonic, by scikit-learn"] = isotonic.fit(X_train, y_train)

# %%
# Good probabilities lie on the diagonal: of all rows with a probability of 70 %, seven in ten
# belong to the class. A curve of decision values only has to rise. The bars are 95 % intervals.
figure, axes = plt.subplots(1, 3, figsize=(13, 4.6), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    plots.plot_reliability(reliability(model, X_test, y_test), ax=ax)
    title = name
    if name != "decision values":
        loss = brier_score_loss(y_test, model.predict_proba(X_test)[:, 1])
        title = f"{name}, Brier score {loss:.3f}"
    ax.set_title(title)
plt.show()
