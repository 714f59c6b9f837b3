"""Explain a fitted additive model: shape functions, contributions, errors of the tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from widemargin.additive.batches import Dual
from widemargin.additive.codes import encode
from widemargin.additive.columns import Columns, Parts
from widemargin.additive.frames import read_new
from widemargin.additive.model import AdditiveModel
from widemargin.additive.source import Values
from widemargin.additive.tables import ApproximationError, compare
from widemargin.errors import ParameterError
from widemargin.validation import check_number, column_name


def shape_errors(
    model: AdditiveModel, values: Values, coef: np.ndarray, features
) -> list[ApproximationError]:
    """Compare a model's g_j with the exact sum_i coef_i k(t, x_ij) over its training data."""
    # On the model's bins, which represent every training value.
    codes = encode(values, model.encoder).toarray()
    t = model.encoder.representatives[1:]
    gram = model.tables.kernel(t[:, None], t[None, :])
    errors = []
    for j in features:
        mass = np.zeros((model.encoder.n_codes, coef.shape[1]))
        np.add.at(mass, codes[:, j], coef)
        seen = np.bincount(codes[:, j], minlength=len(mass))[1:, None]
        learned = model.feature_function(j)[1:]
        errors.append(compare(learned, gram @ mass[1:], seen * np.ones(mass.shape[1])))
    return errors


class ExplanationMixin:
    """The explaining methods of additive machines, which set these attributes in `fit`."""

    coding_: Any  # Coding or Numbers
    n_features_in_: int
    model_: AdditiveModel
    columns_: Columns
    _parts: Callable[..., Parts]
    _dual: Dual

    def shape_function(self, feature, class_label=None):
        """Return the learned g_j over the feature's range, centred: how it moves the decision.

        Its mean over the training data is zero: above it, a value speaks for the class more than
        that feature does on average.

        Parameters
        ----------
        feature : int or str
            Column number, or its name if the model was fitted on a data frame.
        class_label : object, default=None
            Which class; not needed for two classes, where it is ``classes_[1]``.  Of a regressor,
            which column of y; not needed for one.

        Returns
        -------
        grid : ndarray of shape (n_values,)
            Raw values of the feature, ascending; a value between two belongs to one of them.  For a
            column of categories, their texts.  If missing values contribute, they come last,
            as NaN or None.
        values : ndarray of shape (n_values,)
            g_j at those values, less its mean.
        """
        check_is_fitted(self, "model_")
        j = self._feature_number(feature)
        shape = column_shape(self.model_, self.columns_, j)
        grid, values = shape.values, shape.scores
        if shape.missing is not None:
            nothing = None if grid.dtype == object else np.nan
            grid = np.concatenate([grid, np.array([nothing], dtype=grid.dtype)])
            values = np.vstack([values, shape.missing])
        return grid, self._of_class(values, class_label)

    def contributions(self, X, class_label=None):
        """Return what each feature adds to each row's decision value, above its average.

        Contributions have a mean of zero over the training data, rows weighted as in the fit; the
        intercept has the rest: the mean decision value.  `widemargin.explain` groups
        indicators of one column and uses the data's units.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        class_label : object, default=None
            Return only this class (two classes: ``classes_[1]`` is the default), or this column
            of a regressor's y.

        Returns
        -------
        parts : ndarray of shape (n_samples, n_features + 1[, n_classes])
            The last column is the intercept, so that ``parts.sum(axis=1)`` is the decision value,
            or the prediction of a regressor.
        """
        check_is_fitted(self, "model_")
        values, marks = self._parts(X)
        outputs = np.arange(self.model_.n_outputs)
        several = self._has_several_scores
        one_of_many = class_label is not None and several
        if one_of_many:
            outputs = self._of_class(outputs, class_label)[None]
        parts = self.columns_.by_column(self.model_.contributions(values, outputs, marks))
        if one_of_many:
            return parts[..., 0]
        return parts if several else self._of_class(parts, class_label)

    @property
    def feature_importances_(self):
        """Mean absolute contribution of each feature over the training data and all outputs.

        In units of decision values or targets, from the frequencies in the model: exact, except
        with ``approximation="pmsvm"``, which rounds values to a grid.
        """
        check_is_fitted(self, "model_")
        model, readout = self.model_, self.coding_.readout
        if not self.columns_.are_features:
            every = range(self.n_features_in_)
            shapes = (column_shape(model, self.columns_, j, readout) for j in every)
            return np.array([shape.importance for shape in shapes])
        cells = model.at_cells(model.shares.feature, model.shares.code) @ readout
        return model.shares.mean_distance(cells, model.centre @ readout).mean(axis=1)

    @property
    def _has_several_scores(self) -> bool:
        return len(labels_of(self)[self.coding_.scored]) > 1

    def _of_class(self, values, class_label):
        """Select one class, or one target of a regressor, on the last axis."""
        labels = labels_of(self)
        if class_label is None and self._has_several_scores:
            raise ValueError(f"class_label is needed: one of {labels.tolist()}.")
        label = labels[-1] if class_label is None else class_label
        numbers = np.flatnonzero(labels == label)
        if len(numbers) != 1:
            raise ParameterError("class_label", class_label, f"is not in {labels.tolist()}.")
        return self.coding_.score_of(values, int(numbers[0]))

    def _feature_number(self, feature) -> int:
        if isinstance(feature, str):
            names = list(getattr(self, "feature_names_in_", []))
            if not names:
                raise ValueError(
                    f"feature {feature!r} is not among the feature names: this machine was fitted "
                    "on an array, without any. As the last step of a pipeline it has them in "
                    "widemargin.explain(pipeline): explained.shape(explained.term(name))."
                )
            if feature not in names:
                raise ValueError(f"feature {feature!r} is not among the feature names.")
            return names.index(feature)
        check_number("feature", feature, low=0, high=self.n_features_in_ - 1, integer=True)
        return int(feature)

    def approximation_error(self, X=None, features=None):
        """Return errors of the tables against the kernel, or against the exact g_j of this model.

        Parameters
        ----------
        X : array-like or sparse matrix, default=None
            The training data of a model fitted with ``warm_start=True`` (which keeps the dual
            variables).  Without it, the tables are compared on all pairs of bins.
        features : sequence of int, default=None
            With X: the features j whose g_j(t) = sum_i a_i y_i k(t, x_ij) is compared with the
            table's, on the bins' grid (PmSVM-LUT, Tables 1 and 2).  All by default, except
            columns of categories, which have no grid.

        Returns
        -------
        error : ApproximationError, or list of ApproximationError, one per feature
        """
        check_is_fitted(self, "model_")
        if X is None:
            return self.model_.tables.error(self.model_.frequency)
        if not hasattr(self, "_dual"):
            raise ValueError("The exact g_j needs the dual variables: fit with warm_start=True.")
        X = read_new(self, X, self.columns_)
        dual = self._dual
        if X.shape[0] <= dual.present.max():
            raise ValueError("X must be the rows that the model was fitted on.")
        columns = self.columns_.numbers if features is None else features
        numbers = [self.columns_.features(int(j)).number for j in columns]
        if None in numbers:
            name = column_name(self, int(columns[numbers.index(None)]))
            raise ValueError(f"features: column {name} has categories and no grid.")
        values = self.columns_.parts(X[dual.present]).values
        return shape_errors(self.model_, values, dual.coef, numbers)


def labels_of(machine) -> np.ndarray:
    """Return the classes of a machine, or the numbers of a regressor's targets."""
    classes = getattr(machine, "classes_", None)
    return np.arange(machine.model_.n_outputs) if classes is None else classes


@dataclass(frozen=True)
class Shape:
    """A term's contribution to each score at the values of its column.

    Attributes
    ----------
    values : ndarray of shape (n_values,)
        Numbers in the data's units, ascending; or categories.
    scores : ndarray of shape (n_values, n_scores)
    share : ndarray of shape (n_values,)
        Frequency of each value in the training data.
    missing : ndarray of shape (n_scores,) or None
        Contribution of a missing number, if the model learned one.
    """

    values: np.ndarray
    scores: np.ndarray
    share: np.ndarray
    missing: np.ndarray | None = None

    @property
    def seen(self) -> Shape:
        """Return the shape from the first to the last value that occurs in the training data."""
        if not self.share.any():
            return self
        occurring = np.flatnonzero(self.share)
        part = slice(occurring[0], occurring[-1] + 1)
        return Shape(self.values[part], self.scores[part], self.share[part], self.missing)

    @property
    def missing_share(self) -> float:
        """Share of missing values in the training data."""
        return max(1.0 - float(self.share.sum()), 0.0)

    @property
    def importance(self) -> float:
        """Mean absolute contribution over the training data and the scores."""
        total = self.share @ np.abs(self.scores)
        if self.missing is not None:
            total = total + self.missing_share * np.abs(self.missing)
        return float(total.mean())


def column_shape(
    model: AdditiveModel, columns: Columns, column: int, readout: np.ndarray | None = None
) -> Shape:
    """Return the shape of a column, as the model sees its numbers, centred over the training data.

    The coding's ``readout`` turns outputs into scores; without one, scores are outputs.
    """
    features = columns.features(column)
    present = [
        j for j in (features.number, features.missing, *features.categories) if j is not None
    ]
    centre = model.centre[present].sum(axis=0)
    missing, missing_share = None, 0.0
    if features.missing is not None:
        missing = model.feature_function(features.missing)[-1] - centre
        missing_share = float(_shares(model, features.missing)[-1])
    if features.number is None:
        # Absent indicators add nothing.
        on = [model.feature_function(j)[-1] for j in features.categories]
        scores = np.array(on).reshape(-1, model.n_outputs) - centre
        share = np.array([_shares(model, j)[-1] for j in features.categories])
        values = np.array(columns.categories[column], dtype=object)
    else:
        codes, scores = model.shape(features.number)
        share = _shares(model, features.number)
        share[0] = max(share[0] - missing_share, 0.0)  # missing numbers are absent
        share = share[codes]
        scores = scores + model.centre[features.number] - centre
        values = model.encoder.grid(features.number)[codes]
    if readout is not None:
        scores, missing = scores @ readout, None if missing is None else missing @ readout
    return Shape(values, scores, share, missing)


def _shares(model: AdditiveModel, feature: int) -> np.ndarray:
    return model.shares.of_feature(feature, model.encoder.n_codes)
