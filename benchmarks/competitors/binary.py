"""What the two-class competitors share: labels in, signs to learn from, classes out."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data


class BinaryMachine(ClassifierMixin, BaseEstimator):
    """A classifier of two classes; more are left to ``OneVsRestClassifier``.

    A subclass has ``_fit(X, signs)``, with dense X and signs of -1 and 1, and ``_decide(X)``.
    """

    def fit(self, X, y):
        X, y = validate_data(self, X, y, dtype=np.float64)
        self.classes_, code = np.unique(y, return_inverse=True)
        if len(self.classes_) != 2:
            raise ValueError(
                f"{type(self).__name__} separates two classes and y has {len(self.classes_)}: "
                "wrap it in OneVsRestClassifier."
            )
        self._fit(X, 2.0 * code - 1.0)
        return self

    def decision_function(self, X):
        check_is_fitted(self)
        return self._decide(validate_data(self, X, dtype=np.float64, reset=False))

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > 0).astype(int)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
