"""
AutoSVC: what it tries, and why it chooses
==========================================

Which kernel, which gamma, which C, and are all columns worth the same?
:class:`~widemargin.AutoSVC` answers by cross-validation, within a time limit that you set. A
callback hears of each candidate and draws the search.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from widemargin import AutoSVC

X, y = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
X = np.hstack([X, 16 * rng.random((len(X), 40))])  # forty columns that tell nothing
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=400, random_state=0)


class Listener:
    """Keeps the trials in the order of the search."""

    def __init__(self):
        self.trials = []

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        if context.task_name == "candidate":
            self.trials.append(context.trials)


listener = Listener()
auto = AutoSVC(max_seconds=9, random_state=0, n_jobs=1).set_callbacks(listener)
auto.fit(X_train, y_train)
print(auto.explain_choice())
print(f"on new rows: {auto.score(X_test, y_test):.3f}")

# %%
# Left: each path of C in its turn, from the first look at one setting to the rounds in which the
# best meet again. Right: the RBF kernels among them. Where columns are weighted, noise counts less.
kinds = {"additive kernels": "#7f8c8d", "RBF": "#1b5e9e", "RBF, columns weighted": "#c0392b"}


def kind(trial):
    settings = trial.candidate.settings
    if settings["kernel"] != "rbf":
        return "additive kernels"
    return "RBF, columns weighted" if "weighted" in settings.get("columns", "") else "RBF"


figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
for name, colour in kinds.items():
    own = [
        (step, 100 * trial.score)
        for step, trials in enumerate(listener.trials)
        for trial in trials
        if kind(trial) == name
    ]
    left.plot(*np.transpose(own or [(np.nan, np.nan)]), "o", ms=5, color=colour, label=name)
best = np.maximum.accumulate([100 * max(t.score for t in own) for own in listener.trials])
left.step(range(len(best)), best, where="post", color="black", lw=1, label="best so far")
left.set(xlabel="candidate", ylabel="accuracy in the folds, %", ylim=(best[-1] - 20, best[-1] + 1))
left.legend(frameon=False, loc="lower right")

rbf = [t for own in listener.trials for t in own if kind(t) != "additive kernels"]
markers = {"RBF": "o", "RBF, columns weighted": "s"}
for name, marker in markers.items():
    own = [t for t in rbf if kind(t) == name]
    places = right.scatter(
        [t.candidate.settings["gamma"] for t in own],
        [t.C for t in own],
        c=[100 * t.score for t in own],
        marker=marker,
        s=70,
        cmap="viridis",
        vmin=best[-1] - 10,
        vmax=best[-1],
        edgecolors="white",
        label=name,
    )
chosen = auto.ranking_[0]
if kind(chosen) != "additive kernels":
    at = chosen.candidate.settings["gamma"], chosen.C
    right.plot(*at, "o", ms=16, mfc="none", mec="black", mew=1.5)
right.set(xscale="log", yscale="log", xlabel="gamma", ylabel="C", title="the ring is the choice")
right.legend(frameon=False)
figure.colorbar(places, label="accuracy in the folds, %")
plt.show()
