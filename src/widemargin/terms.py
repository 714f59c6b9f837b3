"""Explain an additive model by centred terms, one per column of the data, in its units.

The vocabulary is that of explainable boosting machines (EBM): a term's mean over the training data
is zero, the intercept has the rest, and importance is the mean absolute contribution.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from widemargin.additive import AdditiveSVC, AdditiveSVR
from widemargin.additive.explanation import Shape, column_shape, labels_of
from widemargin.machine import feature_names
from widemargin.table_encoder import MISSING, TableEncoder

NEITHER = "(other)"
"""Name of all other categories in tables and pictures."""


@dataclass(frozen=True)
class Term:
    """A column of the data.

    Attributes
    ----------
    name : str
    column : int
        Its index in the data.
    features : tuple of int
        Its features in the machine: several after a `TableEncoder`.
    categories : tuple of str
        Empty for a column of numbers; includes missing.
    """

    name: str
    column: int
    features: tuple[int, ...]
    categories: tuple[str, ...] = ()


def explain(model, names: Sequence[str] | None = None) -> Explanation:
    """Return a fitted additive machine, alone or in a pipeline, as a sum of terms.

    Parameters
    ----------
    model : AdditiveSVC, AdditiveSVR or Pipeline
        A pipeline may begin with a `TableEncoder` and contain MinMaxScaler, MaxAbsScaler and
        StandardScaler; terms are in the units before them.
    names : sequence of str, default=None
        Names of the data's columns, if the model has none.

    Returns
    -------
    explanation : Explanation

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from widemargin import AdditiveSVC, explain
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = make_pipeline(StandardScaler(), AdditiveSVC(random_state=0)).fit(X, y)
    >>> explained = explain(model)
    >>> explained.ranked[0].name
    'petal width (cm)'
    >>> shape = explained.shape(explained.ranked[0])
    >>> round(float(shape.values[0]), 6), round(float(shape.values[-1]), 6)  # in centimetres
    (0.1, 2.5)
    >>> parts = explained.contributions(X)  # of the four terms, and the intercept
    >>> parts.shape, bool(abs(parts.sum(axis=1) - model.decision_function(X)).max() < 1e-5)
    ((150, 5, 3), True)
    """
    machine = model[-1] if isinstance(model, Pipeline) else model
    if not isinstance(machine, AdditiveSVC | AdditiveSVR):
        raise ValueError(
            f"{type(machine).__name__} is not a sum over features, so it has no shape "
            "functions: use an AdditiveSVC or AdditiveSVR, or a Pipeline of scalers and one."
        )
    check_is_fitted(machine, "model_")
    units = Units.of(model)  # first, because it refuses steps without units
    encoder = model[0] if isinstance(model, Pipeline) else None
    encoder = encoder if isinstance(encoder, TableEncoder) else None
    if names is None:  # a machine after scalers has no names
        names = getattr(model, "feature_names_in_", None)
    known = feature_names(encoder or machine, names)
    if len(set(known)) < len(known):  # terms are selected by name
        twice, _ = Counter(known).most_common(1)[0]
        raise ValueError(f"names has {twice!r} twice; give every column a name of its own.")
    return Explanation(model, machine, units, tuple(known), encoder)


def is_explainable(model) -> bool:
    """Whether `explain` accepts a model."""
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    before = steps[1:-1] if isinstance(steps[0], TableEncoder) else steps[:-1]
    known = (*SCALERS, type(None))
    undone = all(isinstance(step, known) or step == "passthrough" for step in before)
    return undone and isinstance(steps[-1], AdditiveSVC | AdditiveSVR)


@dataclass(frozen=True, eq=False)
class Explanation:
    """The terms of a model and their contributions.

    Scores are those of ``decision_function``: one per class, or one for the second of two; or the
    predictions of a regressor, one per target.
    """

    model: AdditiveSVC | AdditiveSVR | Pipeline
    machine: AdditiveSVC | AdditiveSVR
    units: Units
    column_names: tuple[str, ...]
    encoder: TableEncoder | None = None

    @property
    def feature_names(self) -> list[str]:
        """Names of the machine's features."""
        names = np.array(self.column_names, dtype=object)
        return [*(names if self.encoder is None else self.encoder.get_feature_names_out(names))]

    @property
    def classes(self) -> np.ndarray:
        """Classes that have a score, or numbers of a regressor's targets."""
        return self.labels[self.machine.coding_.scored]

    @property
    def labels(self) -> np.ndarray:
        """All classes, or numbers of a regressor's targets."""
        return labels_of(self.machine)

    @property
    def is_of_numbers(self) -> bool:
        """Whether the machine is a regressor."""
        return not hasattr(self.machine, "classes_")

    @property
    def intercept(self) -> np.ndarray:
        """Mean decision value over the training data, (n_scores,)."""
        return self.machine.model_.centred_intercept @ self.machine.coding_.readout

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """Terms in the order of columns."""
        return tuple(self._term(j, name) for j, name in enumerate(self.column_names))

    def _term(self, column: int, name: str) -> Term:
        columns = self.machine.columns_ if self.encoder is None else self.encoder.columns_
        features, numbers = columns.features(column), (column,)
        if self.encoder is not None:
            every = (features.number, *features.categories, features.missing)
            numbers = tuple(feature for feature in every if feature is not None)
        categories = columns.categories.get(column, ())
        missing = [MISSING] * bool(categories and features.missing is not None)
        return Term(name, column, numbers, (*categories, *missing))

    @property
    def ranked(self) -> list[Term]:
        """Return the terms by importance, the largest first."""
        order = np.argsort(-self.importances(), kind="stable")
        return [self.terms[k] for k in order]

    def term(self, wanted: int | str) -> Term:
        """Return a term by the name or number of its column, or by one of its categories."""
        for term in self.terms:
            known = {term.name, term.column}
            known |= {f"{term.name}={category}" for category in term.categories}
            if wanted in known:
                return term
        raise ValueError(f"There is no term {wanted!r} among {len(self.terms)}.")

    def shape(self, term: Term) -> Shape:
        """Return a term's contribution at every value of its column."""
        term = self.terms[term.column]  # the term may come from another fit with other categories
        if self.encoder is None:
            return self._column(term.column, term.categories)
        if term.categories:
            return self._categories(term)
        number, *missing = term.features
        shape = self._column(number)
        return self._beside(shape, number, missing[0]) if missing else shape

    def feature_shape(self, j: int) -> Shape:
        """Return the contribution of a machine's feature at every value."""
        return self.shape(self.terms[j]) if self.encoder is None else self._column(j)

    def contributions(self, X, class_label=None) -> np.ndarray:
        """Return each term's contribution to the decision values of rows, the intercept last.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            In the data's units, as for the model itself.
        class_label : object, default=None
            Only this class, or this target of a regressor; not needed for two classes, or for one
            target.

        Returns
        -------
        parts : ndarray of shape (n_samples, n_terms + 1[, n_classes])
            Their sum over axis 1 is ``decision_function(X)``, or ``predict(X)`` of a regressor.
        """
        if isinstance(self.model, Pipeline):
            X = self.model[:-1].transform(X)
        parts = self.machine.contributions(X, class_label)
        if self.encoder is not None:
            summed = [parts[:, list(term.features)].sum(axis=1) for term in self.terms]
            parts = np.stack([*summed, parts[:, -1]], axis=1)
        return parts

    def importances(self, X=None) -> np.ndarray:
        """Return the mean absolute contribution of each term, averaged over classes.

        Over the rows of X, with contributions centred there; by default over the training data,
        from the frequencies in the model, with the fit's sample weights.
        """
        if X is not None:
            parts = self.contributions(X)[:, :-1]
            distance = np.abs(parts - parts.mean(axis=0)).mean(axis=0)
            return distance.reshape(len(self.terms), -1).mean(axis=1)
        if self.encoder is None:
            return self.machine.feature_importances_
        return np.array([self.shape(term).importance for term in self.terms])

    def _column(self, j: int, categories: Sequence[str] = ()) -> Shape:
        """Return the shape of one feature: numbers in the data's units, or categories."""
        machine = self.machine
        shape = column_shape(machine.model_, machine.columns_, j, machine.coding_.readout)
        if shape.values.dtype != object:
            return replace(shape, values=self.units.raw(j, shape.values))
        scores, share = shape.scores, shape.share
        if shape.missing is not None:
            scores = np.vstack([scores, shape.missing])
            share = np.append(share, shape.missing_share)
        return Shape(np.array(categories, dtype=object), scores, share)

    def _beside(self, shape: Shape, number: int, missing: int) -> Shape:
        """Add the contribution of missing values to the shape of a number."""
        assert self.encoder is not None
        off, on, share = self._switch(missing)
        nearest = int(np.abs(shape.values - self.encoder.fill_[number]).argmin())
        shares = shape.share.copy()
        shares[nearest] = max(shares[nearest] - share, 0.0)
        return Shape(shape.values, shape.scores + off, shares, shape.scores[nearest] + on)

    def _switch(self, j: int) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the contributions of a 0/1 feature at both values, and the share of ones."""
        shape = self._column(j)
        no, yes = (int(np.abs(shape.values - value).argmin()) for value in (0, 1))
        share = 0.0 if no == yes else float(shape.share[yes])
        return shape.scores[no], shape.scores[yes], share

    def _categories(self, term: Term) -> Shape:
        """Return the shape of a column with a feature per category."""
        off, on, share = map(np.array, zip(*map(self._switch, term.features), strict=True))
        scores = off.sum(axis=0) - off + on
        return Shape(np.array(term.categories, dtype=object), scores, share)


# ------------------------------------------------------------------ units


SCALERS = (MinMaxScaler, MaxAbsScaler, StandardScaler)
"""Invertible scalers that act on each column separately."""


@dataclass(frozen=True)
class Units:
    """A machine's input for a value of feature j is ``factor[j] * value + offset[j]``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from widemargin import AdditiveSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> pipeline = make_pipeline(StandardScaler(), AdditiveSVC(random_state=0)).fit(X, y)
    >>> round(float(Units.of(pipeline).raw(0, 0.0)), 2), round(float(X[:, 0].mean()), 2)
    (5.84, 5.84)
    """

    factor: np.ndarray
    offset: np.ndarray

    @classmethod
    def of(cls, model) -> Units:
        """Return the units of a fitted machine or pipeline."""
        steps = model.steps if isinstance(model, Pipeline) else [("", model)]
        n_features = steps[-1][1].n_features_in_
        factor, offset = np.ones(n_features), np.zeros(n_features)
        for _, step in steps[:-1]:
            if step in (None, "passthrough"):
                continue
            of_step, shift = _affine(step)
            factor, offset = factor * of_step, offset * of_step + shift
        return cls(factor, offset)

    def raw(self, feature: int, scaled):
        """Convert to the data's units."""
        return (scaled - self.offset[feature]) / self.factor[feature]


def _affine(scaler) -> tuple:
    """Return factor and offset of a scaler, or of a `TableEncoder` on numbers."""
    if isinstance(scaler, TableEncoder):
        ones = np.ones(scaler.columns_.n_features - len(scaler.factor_))
        shift = -scaler.shift_ * scaler.factor_
        return np.append(scaler.factor_, ones), np.append(shift, 0 * ones)
    if isinstance(scaler, MinMaxScaler):
        return scaler.scale_, scaler.min_
    if isinstance(scaler, MaxAbsScaler):
        return 1 / scaler.scale_, 0.0
    if isinstance(scaler, StandardScaler):
        scale = scaler.scale_ if scaler.with_std else 1.0
        return 1 / scale, -scaler.mean_ / scale if scaler.with_mean else 0.0
    raise ValueError(
        f"{type(scaler).__name__} cannot be converted back to the data's units: before the "
        "machine a pipeline may have a TableEncoder, MinMaxScaler, MaxAbsScaler and "
        "StandardScaler. Explain the last step alone, in its own units."
    )
