"""Probabilities of classes: a sigmoid for each pair of them, coupled.

Sigmoids are fitted to decision values of rows that were left out of the fit (Platt 1999).  Those of
all pairs that a class is in give its probability in closed form (Price, Knerr, Personnaz and
Dreyfus 1995), which ONNX can express.  Each sigmoid is cautious, and many of them together more so
than the rows justify: an exponent, fitted to the same rows, sharpens the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, logsumexp
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags, indexable
from sklearn.utils.validation import check_is_fitted, column_or_1d

from widemargin.multiclass import every_pair, pairs_of
from widemargin.sklearn_private import safe_indexing, safe_split, sigmoid_of

FOLDS = 5
LEAST = 1e-7  # probability of a pair's class
EXPONENTS = (0.1, 20.0)  # the least and the largest
_AT_ONCE = 1 << 22  # values of pairs


class CalibratedSVC(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """A machine with probabilities.

    `predict` returns the labels of the machine.  A class of larger weight (``class_weight``) is
    predicted more often; its probability remains the share of such rows that belong to it.

    Parameters
    ----------
    estimator : AdditiveSVC, KernelSVC or a Pipeline that ends in one
    random_state : int, default=0
        Seed of the five folds.

    Attributes
    ----------
    estimator_ : the estimator, fitted to all rows
    classes_ : ndarray of shape (n_classes,)
    slope_, offset_ : ndarray of shape (n_classes * (n_classes - 1) // 2,)
        For a pair of classes with decision value v, the earlier class has the probability
        1 / (1 + exp(slope v + offset)).
    exponent_ : float
        Exponent of the coupled probabilities; 1 for two classes.

    References
    ----------
    D. Price, S. Knerr, L. Personnaz and G. Dreyfus, "Pairwise Neural Network Classifiers with
    Probabilistic Outputs", NIPS 1994.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import CalibratedSVC, KernelSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CalibratedSVC(KernelSVC()).fit(X, y)
    >>> model.predict_proba(X[:1]).round(1)
    array([[1., 0., 0.]])
    """

    def __init__(self, estimator, *, random_state=0):
        self.estimator = estimator
        self.random_state = random_state

    def fit(self, X, y, sample_weight=None):
        """Fit the machine to all rows, and probabilities to rows that were left out."""
        X, y, sample_weight = indexable(X, y, sample_weight)
        return self.calibrate(_fitted(self.estimator, X, y, sample_weight), X, y, sample_weight)

    def predict(self, X):
        """Class labels of X, as the machine decides."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.predict(X)

    def decision_function(self, X):
        """Decision values of the machine."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.decision_function(X)

    def predict_proba(self, X):
        """Probabilities of ``classes_``, of shape (n_samples, n_classes)."""
        check_is_fitted(self, "estimator_")
        parts = [self._logarithms(values) for values in _pair_values(self.estimator_, X)]
        powers = np.exp(self.exponent_ * np.concatenate(parts))
        return powers / powers.sum(axis=1, keepdims=True)

    @property
    def classes_(self) -> np.ndarray:
        return self.estimator_.classes_

    @property
    def n_features_in_(self) -> int:
        return self.estimator_.n_features_in_

    @property
    def feature_names_in_(self) -> np.ndarray:
        return self.estimator_.feature_names_in_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    def calibrate(self, fitted, X, y, sample_weight=None) -> CalibratedSVC:
        """Give a fitted model probabilities, by fits to folds of these rows."""
        self.estimator_, y = fitted, column_or_1d(y)
        label, weight, rows = _numbered(fitted.classes_, y, sample_weight)
        models = list(self._left_out(X, y, sample_weight, label, rows))
        in_pairs = np.empty((len(label), len(fitted.classes_) - 1))  # of each row's class
        for model, part, test in models:
            begin = 0
            for values in _pair_values(model, part):
                these = test[begin : begin + len(values)]
                pairs = np.stack([pairs_of(k, len(fitted.classes_)) for k in label[these]])
                in_pairs[these] = np.take_along_axis(values, pairs, axis=1)
                begin += len(values)
        self._fit_sigmoids(in_pairs, label, weight)
        self.exponent_ = 1.0
        if len(fitted.classes_) > 2:
            logs = np.empty((len(label), len(fitted.classes_)))
            for model, part, test in models:
                logs[test] = np.concatenate(
                    [self._logarithms(v) for v in _pair_values(model, part)]
                )
            self.exponent_ = _exponent(logs, label, weight)
        return self

    def _left_out(self, X, y, sample_weight, label, rows) -> Iterator[tuple[Any, Any, np.ndarray]]:
        """Yield the model of each fold, the rows left out of its fit, and their indices."""
        unfitted = clone(self.estimator)
        if "checkpoint" in machine_within(unfitted).get_params():
            machine_within(unfitted).set_params(checkpoint=None)  # it is of the fit on all rows
        n = min(FOLDS, int(np.bincount(label).min()))
        folds = StratifiedKFold(n, shuffle=True, random_state=self.random_state)
        for train, test in folds.split(label, label):
            part, labels = safe_split(unfitted, X, y, rows[train])
            weight = None if sample_weight is None else np.asarray(sample_weight)[rows[train]]
            model = _fitted(unfitted, part, labels, weight)
            yield model, safe_split(unfitted, X, y, rows[test], rows[train])[0], test

    def _fit_sigmoids(self, in_pairs: np.ndarray, label: np.ndarray, weight: np.ndarray) -> None:
        sigmoids = []
        for first, second in zip(*every_pair(in_pairs.shape[1] + 1), strict=True):
            is_first, is_second = label == first, label == second
            values = np.concatenate([in_pairs[is_first, second - 1], in_pairs[is_second, first]])
            truth = np.repeat([1, 0], [is_first.sum(), is_second.sum()])
            weights = np.concatenate([weight[is_first], weight[is_second]])
            sigmoids.append(sigmoid_of(values, truth, weights))
        self.slope_, self.offset_ = np.array(sigmoids, dtype=np.float64).T

    def _logarithms(self, values: np.ndarray) -> np.ndarray:
        """Return logarithms of the probabilities, before the exponent and up to a common factor."""
        first = np.clip(expit(-(values * self.slope_ + self.offset_)), LEAST, 1 - LEAST)
        n_classes, begin = len(self.classes_), 0
        total = np.full((len(values), n_classes), 2.0 - n_classes)
        for number in range(n_classes - 1):
            end = begin + n_classes - 1 - number
            total[:, number] += (1 / first[:, begin:end]).sum(axis=1)
            total[:, number + 1 :] += 1 / (1 - first[:, begin:end])
            begin = end
        return -np.log(total)


def with_probabilities(fitted, X, y) -> CalibratedSVC:
    """Calibrate a model that is fitted to these rows."""
    return CalibratedSVC(clone(fitted)).calibrate(fitted, X, y)


def uncalibrated(model):
    """Return the model inside a calibrated one, or the model itself."""
    return model.estimator_ if isinstance(model, CalibratedSVC) else model


def machine_within(model):
    """Return the machine at the end of a pipeline, or the model itself."""
    return model[-1] if isinstance(model, Pipeline) else model


def _fitted(unfitted, X, y, sample_weight):
    if sample_weight is None:
        return clone(unfitted).fit(X, y)
    is_pipeline = isinstance(unfitted, Pipeline)
    name = f"{unfitted.steps[-1][0]}__sample_weight" if is_pipeline else "sample_weight"
    with config_context(enable_metadata_routing=False):  # the weights are for the machine only
        return clone(unfitted).fit(X, y, **{name: sample_weight})


def _numbered(classes: np.ndarray, y, sample_weight) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return class index, weight and row index of the rows with a positive weight."""
    weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    rows = np.flatnonzero(weight > 0)
    label = np.searchsorted(classes, y[rows])
    if np.bincount(label, minlength=len(classes)).min() < 2:
        raise ValueError(
            "Probabilities need two rows or more of every class: one has a single row, which "
            "cross-validation cannot leave out."
        )
    return label, weight[rows], rows


def _pair_values(model, X) -> Iterator[np.ndarray]:
    """Yield the values of all pairs of classes, positive for the earlier, block by block."""
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    machine, n_classes = machine_within(model), len(model.classes_)
    size = max(1, 2 * _AT_ONCE // (n_classes * (n_classes - 1)))
    for begin in range(0, max(n, 1), size):
        part = X if n <= size else safe_indexing(X, slice(begin, begin + size))
        yield machine.pair_values(part if machine is model else model[:-1].transform(part))


def _exponent(logs: np.ndarray, label: np.ndarray, weight: np.ndarray) -> float:
    """Return the exponent of maximum likelihood; labels are smoothed by one row in all."""
    n_rows, n_classes = logs.shape
    logs = logs - logs.max(axis=1, keepdims=True)
    of_label, total = logs[np.arange(n_rows), label], logs.sum(axis=1)
    doubt = 1 / (n_rows + 2)
    expected = (1 - doubt) * of_label + doubt * (total - of_label) / (n_classes - 1)

    def loss(exponent: float) -> float:
        return float(weight @ (logsumexp(exponent * logs, axis=1) - exponent * expected))

    return float(minimize_scalar(loss, bounds=EXPONENTS, method="bounded").x)
