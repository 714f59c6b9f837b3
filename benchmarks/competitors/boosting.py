"""Today's machines for tables: boosted trees, and boosted additive models."""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from benchmarks.competitors.optional import needed

TREES = 200


def boosted_trees(learning_rate: float = 0.1, seed: int = 0):
    """scikit-learn's HistGradientBoosting, as many trees as `lightgbm`.

    Its own stopping needs two rows of every class, which shuttle does not have.
    """
    return HistGradientBoostingClassifier(
        learning_rate=learning_rate, max_iter=TREES, early_stopping=False, random_state=seed
    )


def boosted_additive(learning_rate: float = 0.1, seed: int = 0):
    """The same without interactions: an additive model, as AdditiveSVC's are."""
    machine = boosted_trees(learning_rate, seed)
    return machine.set_params(interaction_cst="no_interactions")


def ebm(learning_rate: float = 0.015, interactions: float = 0, seed: int = 0, threads: int = 1):
    """Explainable boosting (interpret): additive, with its best pairs where they are asked for.

    Of labels that are floats it would predict the text ("1.0"), so that none were right: it learns
    their numbers.
    """
    glassbox = needed("interpret.glassbox", "interpret-core")

    class EBM(glassbox.ExplainableBoostingClassifier):  # type: ignore[name-defined]
        def fit(self, X, y):
            self.labels_, numbers = np.unique(y, return_inverse=True)
            return super().fit(X, numbers)

        def predict(self, X):
            return self.labels_[super().predict(X)]

    return EBM(
        learning_rate=learning_rate, interactions=interactions, random_state=seed, n_jobs=threads
    )


def lightgbm(learning_rate: float = 0.1, trees: int = TREES, seed: int = 0, threads: int = 1):
    """LightGBM with its own defaults but for the number of trees."""
    package = needed("lightgbm", "lightgbm")
    return package.LGBMClassifier(
        learning_rate=learning_rate,
        n_estimators=trees,
        random_state=seed,
        n_jobs=threads,
        verbose=-1,
    )
