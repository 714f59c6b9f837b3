"""What both machines are: scikit-learn classifiers with decision values and a path over C."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.callback import CallbackSupportMixin


class Training(NamedTuple):
    """What a model remembers of its fit."""

    rows: int  # of positive weight
    seconds: float


class MarginClassifier(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Classes from decision values, and models for several C.

    A subclass has ``decision_function``, ``classes_``, a parameter ``C`` and ``_check_params``.
    """

    _training: Training

    def predict(self, X):
        """Class labels of X."""
        scores = self.decision_function(X)
        best = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[best]

    def _fit_along(self, Cs, prepare: Callable, solve: Callable, **changes) -> list:
        """One model per C: ``prepare(first)`` once, then ``solve(model, prepared, last)``."""
        models: list = []
        prepared = None
        for C in Cs:
            model = clone(self).set_params(C=C, **changes)
            model._check_params()
            if prepared is None:
                prepared = prepare(model)
            else:
                model.n_features_in_ = models[0].n_features_in_
                if hasattr(models[0], "feature_names_in_"):
                    model.feature_names_in_ = models[0].feature_names_in_
            solve(model, prepared, models[-1] if models else None)
            models.append(model)
        return models
