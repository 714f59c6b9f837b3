"""Machines whose targets are classes."""

from __future__ import annotations

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from widemargin.categories import is_missing
from widemargin.multiclass import Coding, Targets, every_pair
from widemargin.validation import sample_weights


class MarginClassifier(ClassifierMixin):
    """Turns classes into targets for a `Machine`, and decision values into classes.

    The estimator has ``decision_function`` and the parameters ``multi_class`` and ``class_weight``.
    """

    classes_: np.ndarray
    coding_: Coding
    multi_class: str
    class_weight: dict | str | None

    def predict(self, X):
        """Predict class labels of X."""
        scores = self.decision_function(X)
        return self.classes_[self.coding_.classes(scores)]

    def pair_values(self, X):
        """Values of all pairs of classes, positive for the earlier: differences of scores.

        Of shape (n_samples, n_classes * (n_classes - 1) // 2).
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return -scores[:, None]
        first, second = every_pair(len(self.classes_))
        return scores[:, first] - scores[:, second]

    @property
    def predict_proba(self):
        """Not available: decision values are not probabilities."""
        raise AttributeError(
            f"{type(self).__name__} gives decision values. For probabilities fit "
            "widemargin.CalibratedSVC(model); on the command line, train --probability."
        )

    def _targets(self, X, y, sample_weight) -> Targets:
        """Return the targets without samples of weight 0; at least two classes must remain."""
        only_classes = np.asarray(y).dtype.kind in "biuU"  # never numbers to regress on
        if not only_classes:
            check_one_kind(y)
            check_classification_targets(y)
        weight = sample_weights(sample_weight, X, y, self.class_weight)
        present, n_rows = (weight > 0).nonzero()[0], len(weight)
        if len(present) < n_rows:
            X, y, weight = X[present], np.asarray(y)[present], weight[present]
        classes, label = np.unique(y, return_inverse=True)
        if only_classes and 2 * len(classes) > len(label):
            check_classification_targets(y)  # it warns of many classes
        left_out = " (samples of weight 0 do not count)" if len(present) < n_rows else ""
        self._check_classes(classes, left_out)
        return self._coded_targets(X, classes, label, weight, present)

    def _stored_targets(self, store) -> Targets:
        """Return the targets of a store, which has no samples of weight 0."""
        check_classification_targets(store.classes)
        label, weight = store.labels(), store.weights()
        total = np.bincount(label, weight, len(store.classes))
        factor = sample_weights(total, total[:, None], store.classes, self.class_weight)
        factor[total > 0] /= total[total > 0]
        if np.any(factor[total > 0] == 0):
            raise ValueError(
                "class_weight is 0 for a class of the store, whose rows cannot be left out. Build "
                "a store without them, or use a small weight."
            )
        order = np.flatnonzero(total > 0)[np.argsort(store.classes[total > 0])]
        self._check_classes(store.classes[order])
        index = np.zeros(len(total), dtype=np.int32)
        index[order] = np.arange(len(order))
        if self.class_weight is not None:
            weight *= factor[label]
        present = np.arange(0)  # unused: stores keep every row
        return self._coded_targets(store, store.classes[order], index[label], weight, present)

    def _check_classes(self, classes: np.ndarray, note: str = "") -> None:
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of at least 2 classes, but the data has "
                f"{len(classes)} class: {classes.tolist()!r}{note}."
            )

    def _coded_targets(self, X, classes, label, weight, present) -> Targets:
        if len(label) > np.iinfo(np.int32).max:
            raise ValueError(f"{len(label)} rows are more than the 2^31 - 1 that fit supports.")
        coding = Coding(self.multi_class, len(classes))
        label = label.astype(np.int32, copy=False)
        return Targets(X, weight, present, label, coding, {"classes_": classes, "coding_": coding})


def check_one_kind(y) -> None:
    """Refuse labels that cannot be sorted, because NumPy's error does not say why."""
    labels = np.asarray(y)
    if labels.dtype.kind != "O":
        return
    without = [i for i, label in enumerate(labels) if is_missing(label)]
    if without:
        raise ValueError(
            f"y has no label in {len(without)} of {len(labels)} rows, the first of them row "
            f"{without[0]}. Drop these rows."
        )
    kinds = {type(label).__name__ for label in labels if not isinstance(label, str)}
    if kinds and any(isinstance(label, str) for label in labels):
        raise ValueError(
            f"y mixes text labels with others ({', '.join(sorted(kinds))}). Make all of them text, "
            "or all numbers."
        )
