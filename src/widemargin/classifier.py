"""A machine whose targets are classes."""

from __future__ import annotations

import numpy as np
from sklearn.base import ClassifierMixin

from widemargin.machine import Machine
from widemargin.multiclass import Coding


class MarginClassifier(ClassifierMixin, Machine):
    """Classes from decision values.

    A subclass has ``decision_function``, ``classes_`` and a parameter ``multi_class``.
    """

    classes_: np.ndarray
    multi_class: str

    def predict(self, X):
        """Class labels of X."""
        scores = self.decision_function(X)
        return self.classes_[Coding.of(self).classes(scores)]
