"""An additive model as a reader sees it: centred terms, a column of the data each, in its units.

The words are those of explainable boosting machines (EBM): a term's mean over the training data is
zero, the intercept has the rest, and importance is the mean of |contribution|.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from widemargin.additive import AdditiveSVC
from widemargin.additive.column_shapes import column_shape
from widemargin.additive.shares import ROUNDING
from widemargin.machine import feature_names
from widemargin.units import SCALERS, Units

NEITHER = "(other)"
"""The category of rows that have none of those that a model knows."""

MISSING = "(missing)"
"""The category of rows that have none at all."""


@dataclass(frozen=True)
class Term:
    """A column of the data: one feature, or the features that its categories were made into."""

    name: str
    features: tuple[int, ...]
    categories: tuple[str, ...] = ()


@dataclass(frozen=True)
class Shape:
    """What a term adds to each score at the values that its column can have.

    Attributes
    ----------
    values : ndarray of shape (n_values,)
        Numbers in the data's units, ascending; or categories.
    scores : ndarray of shape (n_values, n_scores)
    share : ndarray of shape (n_values,)
        How often each occurs in the training data.
    missing : ndarray of shape (n_scores,) or None
        What a missing number adds, if the model has learned that; of categories missing is one.
    """

    values: np.ndarray
    scores: np.ndarray
    share: np.ndarray
    missing: np.ndarray | None = None

    @property
    def seen(self) -> Shape:
        """From the first to the last value that occurs in the training data."""
        if not self.share.any():
            return self
        occurring = np.flatnonzero(self.share)
        part = slice(occurring[0], occurring[-1] + 1)
        return Shape(self.values[part], self.scores[part], self.share[part], self.missing)


def explain(model, names: Sequence[str] | None = None) -> Explanation:
    """A fitted `AdditiveSVC`, or a pipeline of scalers and one, as a sum of terms.

    Parameters
    ----------
    model : AdditiveSVC or Pipeline
        Scalers before it are undone: MinMaxScaler, MaxAbsScaler and StandardScaler.
    names : sequence of str, default=None
        Of the features, where the model does not know better.  Features whose names are a column
        and a category, such as ``job=clerk`` and ``job=smith``, are one term ``job``, if no row of
        the training data has more than one of them and no feature is called ``job``.

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
    if not isinstance(machine, AdditiveSVC):
        raise ValueError(
            f"{type(machine).__name__} is not a sum over features, so it has no shape "
            "functions: use an AdditiveSVC, or a Pipeline of scalers and one."
        )
    check_is_fitted(machine, "model_")
    units = Units.of(model)  # first: what has no units has no columns of those names either
    if names is None:  # a machine behind scalers does not know them
        names = getattr(model, "feature_names_in_", None)
    known = feature_names(machine, names)
    if len(set(known)) < len(known):  # a term is asked for by its name
        twice, _ = Counter(known).most_common(1)[0]
        raise ValueError(f"names has {twice!r} twice; give every feature a name of its own.")
    return Explanation(model, machine, units, tuple(known))


def is_explainable(model) -> bool:
    """Whether `explain` takes a model: additive, and behind nothing but scalers."""
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    known = (*SCALERS, type(None))
    before = all(isinstance(step, known) or step == "passthrough" for step in steps[:-1])
    return before and isinstance(steps[-1], AdditiveSVC)


@dataclass(frozen=True, eq=False)
class Explanation:
    """The terms of a model, and what each adds.

    Scores are those of ``decision_function``: one per class, or that of the second of two.
    """

    model: AdditiveSVC | Pipeline
    machine: AdditiveSVC
    units: Units
    feature_names: tuple[str, ...]

    @property
    def classes(self) -> np.ndarray:
        """The classes that have a score."""
        return self.machine.classes_[self.machine.coding_.scored]

    @property
    def intercept(self) -> np.ndarray:
        """(n_scores,): the mean decision value over the training data."""
        return self.machine.model_.centred_intercept @ self.machine.coding_.readout

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """In the order of their first features."""
        own, taken = self.machine.columns_, set(self.feature_names)
        columns: dict[str, list[int]] = {}
        for j, name in enumerate(self.feature_names):
            column, is_category, _ = name.partition("=")
            alone = not is_category or j in own.categories or j in own.missing or column in taken
            columns.setdefault(f"\0{j}" if alone else column, []).append(j)
        terms: list[Term] = []
        for column, features in columns.items():
            if len(features) > 1 and self._exclude_each_other(features):
                categories = (self.feature_names[j].partition("=")[2] for j in features)
                terms.append(Term(column, tuple(features), tuple(categories)))
            else:
                terms += [Term(self.feature_names[j], (j,), self._known(j)) for j in features]
        return tuple(sorted(terms, key=lambda term: term.features[0]))

    def _known(self, j: int) -> tuple[str, ...]:
        """The categories of one column, missing among them."""
        columns = self.machine.columns_
        if j not in columns.categories:
            return ()
        return (*columns.categories[j], *[MISSING] * (j in columns.missing))

    @property
    def ranked(self) -> list[Term]:
        """The terms by importance, the largest first."""
        order = np.argsort(-self.importances(), kind="stable")
        return [self.terms[k] for k in order]

    def term(self, wanted: int | str) -> Term:
        """A term by its name, by the number or name of one of its features, or by a category."""
        for term in self.terms:
            known = {term.name, *term.features, *(self.feature_names[j] for j in term.features)}
            known |= {f"{term.name}={category}" for category in term.categories}
            if wanted in known:
                return term
        raise ValueError(f"There is no term {wanted!r}; there are {len(self.terms)} of them.")

    def shape(self, term: Term) -> Shape:
        """What a term adds at every value of its column."""
        if len(term.features) > 1:
            return self._categories(term)
        return self._column(term.features[0])

    def contributions(self, X, class_label=None) -> np.ndarray:
        """What each term adds to the decision values of rows, and the intercept last.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            In the data's units, as the model itself takes it.
        class_label : object, default=None
            Only this class; not needed for two classes.

        Returns
        -------
        parts : ndarray of shape (n_samples, n_terms + 1[, n_classes])
            Their sum over axis 1 is ``decision_function(X)``.
        """
        if isinstance(self.model, Pipeline):
            X = self.model[:-1].transform(X)
        parts = self.machine.contributions(X, class_label)
        if len(self.terms) < len(self.feature_names):
            summed = [parts[:, list(term.features)].sum(axis=1) for term in self.terms]
            parts = np.stack([*summed, parts[:, -1]], axis=1)
        return parts

    def importances(self, X=None) -> np.ndarray:
        """The mean of |contribution| of each term, averaged over classes.

        Over the rows of X, in which contributions are centred; by default over the training data,
        from the frequencies that the model holds, rows weighted as in the fit.
        """
        if X is not None:
            parts = self.contributions(X)[:, :-1]
            distance = np.abs(parts - parts.mean(axis=0)).mean(axis=0)
            return distance.reshape(len(self.terms), -1).mean(axis=1)
        by_feature = self.machine.feature_importances_
        return np.array(
            [
                self._importance(self._categories(term))
                if len(term.features) > 1
                else by_feature[term.features[0]]
                for term in self.terms
            ]
        )

    @staticmethod
    def _importance(shape: Shape) -> float:
        return float((shape.share @ np.abs(shape.scores)).mean())

    def _column(self, j: int) -> Shape:
        """One column: numbers in the data's units, or categories."""
        own = column_shape(self.machine.model_, self.machine.columns_, j)
        scores = own.scores @ self.machine.coding_.readout
        missing = None if own.missing is None else own.missing @ self.machine.coding_.readout
        if own.values.dtype != object:
            return Shape(self.units.raw(j, own.values), scores, own.share, missing)
        share = own.share
        if missing is not None:
            scores = np.vstack([scores, missing])
            share = np.append(share, own.missing_share)
        return Shape(np.array(self._known(j), dtype=object), scores, share)

    def _codes(self, j: int) -> np.ndarray:
        """The codes of 0 and 1 in one feature."""
        encoder = self.machine.model_.encoder
        k = self._number(j) if len(encoder.shift) > 1 else 0
        scaled = self.units.scaled(j, np.array([0.0, 1.0]))
        return encoder.codes_of((scaled - encoder.shift[k]) * encoder.factor[k])

    def _exclude_each_other(self, features: list[int]) -> bool:
        """Whether each feature is 0 or 1, and their ones are no more than there are rows."""
        ones, slack = 0.0, len(features) * ROUNDING
        for j in features:
            no, yes = self._codes(j)
            ones += float(self._share(j, yes)) if yes != no else 0.0
            if self._share(j, np.unique([no, yes])).sum() < 1 - slack:
                return False
        return ones <= 1 + slack

    def _categories(self, term: Term) -> Shape:
        """Every category, and the rows that have none of them if there are such."""
        model = self.machine.model_
        off, on, ones = [], [], []
        for j in term.features:
            no, yes = self._codes(j)
            k = self._number(j)
            values = model.feature_function(k) - model.centre[k]
            off.append(values[no])
            on.append(values[yes])
            ones.append(float(self._share(j, yes)) if yes != no else 0.0)
        neither = np.sum(off, axis=0)
        scores = [neither - off_j + on_j for off_j, on_j in zip(off, on, strict=True)]
        names, share = list(term.categories), np.array(ones)
        if (rest := 1 - share.sum()) > len(names) * ROUNDING:
            names.append(NEITHER)
            scores.append(neither)
            share = np.append(share, rest)
        readout = self.machine.coding_.readout
        return Shape(np.array(names, dtype=object), np.array(scores) @ readout, share)

    def _share(self, j: int, code) -> np.ndarray:
        """Shares of codes of one feature in the training data."""
        model = self.machine.model_
        return model.shares.of_feature(self._number(j), model.encoder.n_codes)[code]

    def _number(self, j: int) -> int:
        """The model's feature of a column of numbers."""
        number = self.machine.columns_.features(j).number
        assert number is not None
        return number
