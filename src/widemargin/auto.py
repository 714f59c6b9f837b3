"""`AutoSVC` and `AutoSVR`: the machine and its parameters that suit the data, in limited time."""

from __future__ import annotations

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from widemargin.calibration import CalibratedSVC
from widemargin.candidates import MACHINES
from widemargin.choice import LAST_SHARE, Choice, without
from widemargin.classifier import check_one_kind
from widemargin.errors import (
    ChoiceWarning,
    LostClassWarning,
    Message,
    Parameter,
    ParameterError,
    listed,
    warn_user,
)
from widemargin.pace import Deadline
from widemargin.regressor import numeric_targets
from widemargin.scoring import check_scoring
from widemargin.search import Search
from widemargin.selection import Sample, behind_scaler

SMALL_CLASS = 0.2  # part of an even share of the rows, below which accuracy says little of a class
CALIBRATION_ROWS = 5000
CALIBRATION_SHARE = 0.1  # of the time


class AutoSVC(ClassifierMixin, Choice):
    """The most accurate of our machines, chosen by cross-validation within a time limit.

    `fit` compares linear, chi2 and intersection kernels of `AdditiveSVC` and, behind several
    preparations of the columns, RBF kernels of `KernelSVC` along paths of C, on at most 5,000 rows.
    It goes on where a model of the scores expects most; the best few meet again on more rows or in
    other folds; the choice is trained on all rows.

    Parameters
    ----------
    max_seconds : float, default=60
        Time limit of `fit`.  Where it is short, candidates are compared on fewer rows, and the
        choice is trained on as many rows as the time allows.
    scoring : str, callable or None, default=None
        What to maximise: a name such as "accuracy", "balanced_accuracy", "roc_auc" or "f1", or a
        function of model, X and y.  None is the accuracy, or the balanced accuracy if a class has
        less than a fifth of an even share of the rows (10 % of two classes); a warning says so.
    machines : sequence of {"additive", "kernel"}, default=("additive", "kernel")
        "additive": `AdditiveSVC`, which explains itself; "kernel": `KernelSVC`.
    class_weight : dict, "balanced" or None, default=None
        Multiplies C by class.  With None and a score in which all classes count the same,
        "balanced" is tried too.
    n_jobs : int or None, default=None
        Threads.
    random_state : int, RandomState or None, default=None
        Seed of rows, folds and machines.
    verbose : int, default=0
        1 reports each candidate, to the logger "widemargin" where logging is set up, else to the
        terminal.

    Attributes
    ----------
    best_estimator_ : AdditiveSVC, KernelSVC or Pipeline
        The choice, trained on all rows, or on as many as the time allows.
    best_params_ : dict
        Its settings.
    best_score_ : float
        Its mean score over the folds.
    calibrated_estimator_ : CalibratedSVC
        ``best_estimator_`` with probabilities, fitted out of fold to at most 5,000 rows.  Not if a
        class has a single row.
    trials_ : list of dict
        What was tried: settings, C, score, standard_error, seconds (of all C of a candidate), rows
        and folds; the choice first.  ``pandas.DataFrame(trials_)`` is a table.
    untried_ : dict
        What there was no time for, and the seconds that it would have taken.
    ranking_ : list of Trial
        ``trials_`` as `widemargin.selection` has them.
    trained_on_ : str
        The rows of the final fit, in words.
    scoring_ : str or callable
        The score that was maximised.
    seconds_ : float
        Of `fit`.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if X was a data frame.

    See Also
    --------
    AutoSVR : The same for targets that are numbers.
    widemargin.save : Writes ``calibrated_estimator_``, or ``best_estimator_`` if there is none.

    Notes
    -----
    Labels are those of the decision values.  With Ctrl-C, or when a callback asks for the end, the
    best so far is trained on all rows; the same at the limit.  A second Ctrl-C raises
    KeyboardInterrupt.  Callbacks hear a task "candidate" after each candidate and "choice" after
    the last, whose trials are ``context.trials``; scikit-learn passes the tasks of the final fit to
    those that have a ``max_propagation_depth``.

    With enough time the result is determined by data and ``random_state``; what a limit cuts short
    depends on the speed of the machine.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import AutoSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> auto = AutoSVC(max_seconds=10, random_state=0).fit(X, y)
    >>> bool(auto.score(X, y) > 0.9)
    True
    >>> auto.predict_proba(X[:5]).shape
    (5, 3)
    """

    calibrated_estimator_: CalibratedSVC

    def __init__(
        self,
        max_seconds=60,
        *,
        scoring=None,
        machines=MACHINES,
        class_weight=None,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.max_seconds = max_seconds
        self.scoring = scoring
        self.machines = machines
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # ------------------------------------------------------------------ before the search

    def _check_scoring(self) -> None:
        if isinstance(self.scoring, str):
            check_scoring(self.scoring)
        elif self.scoring is not None and not callable(self.scoring):
            raise ParameterError("scoring", self.scoring, "must be a name, a function or None.")

    def _sample(self, X, y, weight) -> Sample:
        check_one_kind(y)
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise ValueError(
                f"AutoSVC needs samples of at least 2 classes, but the data has "
                f"{len(self.classes_)} class: {self.classes_.tolist()!r}."
            )
        return Sample(X, y, weight)

    def _score_for(self, sample: Sample):
        """Return the score to maximise on these classes."""
        if isinstance(self.scoring, str):
            check_scoring(self.scoring, self.classes_)
        if self.scoring is not None:
            return self.scoring
        share = _shares(sample, self.classes_)
        if share.min() >= SMALL_CLASS / len(share):
            return "accuracy"
        warn_user(
            Message(
                "Class {label!r} has {share:.2g} % of the rows, so the balanced accuracy decides; "
                "the accuracy would hardly count this class. Set {scoring} to choose yourself.",
                label=self.classes_.tolist()[share.argmin()],
                share=100 * share.min(),
                scoring=Parameter("scoring", python="scoring"),
            ),
            ChoiceWarning,
        )
        return "balanced_accuracy"

    def _machine_parameters(self) -> dict:
        return {**super()._machine_parameters(), "class_weight": self.class_weight}

    # ------------------------------------------------------------------ after the fit

    def _finish(self, search: Search) -> None:
        """Fit probabilities to some of the rows, out of fold; tell of classes never predicted."""
        if hasattr(self, "calibrated_estimator_"):
            del self.calibrated_estimator_
        best = self.ranking_[0]
        seconds = max(CALIBRATION_SHARE * search.seconds, search.clock.left) / 5
        most = search.rows_within(seconds, best, CALIBRATION_ROWS)
        X, y, weight, _ = search.sample.drawn(most, search.seed)
        self._warn_of_lost_classes(X)
        scaler, machine = best.candidate.unfitted(best.C)
        machine.set_callbacks(Deadline(max(search.clock.left, LAST_SHARE * search.seconds)))
        unfitted = CalibratedSVC(behind_scaler(scaler, machine), random_state=search.seed)
        try:
            with without(UserWarning):  # the fit on all rows has warned
                found = unfitted.calibrate(self.best_estimator_, X, y, weight)
        except ValueError as error:
            self._why_uncalibrated = str(error)
            return
        machine.set_callbacks()
        self.calibrated_estimator_ = found

    def _warn_of_lost_classes(self, X) -> None:
        predicted = {*self.best_estimator_.predict(X).tolist()}
        lost = [repr(label) for label in self.classes_.tolist() if label not in predicted]
        if lost:
            warn_user(
                f"Never predicted for training rows: class {listed(lost, 5)}. If these rows "
                'matter, use scoring="balanced_accuracy" or class_weight="balanced".',
                LostClassWarning,
            )

    def _guess(self, sample: Sample) -> tuple[str, float] | None:
        """Return the name of a guess, and its score where that is known."""
        score = None
        if self.scoring_ == "accuracy":
            score = float(_shares(sample, self.classes_).max())
        elif self.scoring_ == "balanced_accuracy":
            score = 1 / len(self.classes_)
        elif isinstance(self.scoring_, str):
            score = {"roc_auc": 0.5}.get(self.scoring_)
        return None if score is None else ("the majority class", score)

    # ------------------------------------------------------------------ prediction

    def predict(self, X):
        """Predict class labels of X."""
        X = self._checked(X)
        return self.best_estimator_.predict(X)

    def decision_function(self, X):
        """Return decision values of X, of shape (n_samples,) or (n_samples, n_classes)."""
        X = self._checked(X)
        return self.best_estimator_.decision_function(X)

    def _has_probabilities(self) -> bool:
        if hasattr(self, "best_estimator_") and not hasattr(self, "calibrated_estimator_"):
            raise AttributeError(self._why_uncalibrated)
        return True

    @available_if(_has_probabilities)
    def predict_proba(self, X):
        """Return probabilities of the classes, of shape (n_samples, n_classes)."""
        X = self._checked(X)
        return self.calibrated_estimator_.predict_proba(X)


class AutoSVR(RegressorMixin, Choice):
    """The most accurate of our regressors, chosen by cross-validation within a time limit.

    What `AutoSVC` does for classes: `fit` compares linear, chi2 and intersection kernels of
    `AdditiveSVR` and RBF kernels of `KernelSVR` by R2, whatever the unit of the targets.

    Parameters
    ----------
    max_seconds : float, default=60
        Time limit of `fit`.
    scoring : callable or None, default=None
        A function of model, X and y to maximise, whose values are of the order of 1.  None is R2.
    machines : sequence of {"additive", "kernel"}, default=("additive", "kernel")
        "additive": `AdditiveSVR`, which explains itself; "kernel": `KernelSVR`.
    n_jobs, random_state, verbose
        As for `AutoSVC`.

    Attributes
    ----------
    best_estimator_ : AdditiveSVR, KernelSVR or Pipeline
        The choice, trained on all rows, or on as many as the time allows.
    best_params_, best_score_, trials_, untried_, ranking_, trained_on_, scoring_, seconds_, \
n_features_in_, feature_names_in_
        As for `AutoSVC`.

    See Also
    --------
    AutoSVC : The same for classes, where more is said.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from widemargin import AutoSVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> auto = AutoSVR(max_seconds=10, random_state=0).fit(X[:300], y[:300])
    >>> bool(auto.score(X[300:], y[300:]) > 0.4)
    True
    """

    def __init__(
        self,
        max_seconds=60,
        *,
        scoring=None,
        machines=MACHINES,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.max_seconds = max_seconds
        self.scoring = scoring
        self.machines = machines
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_scoring(self) -> None:
        if self.scoring is not None and not callable(self.scoring):
            raise ParameterError("scoring", self.scoring, "must be a function or None (R2).")

    def _check_numbers(self, y) -> np.ndarray:
        """Check y for `check_X_y`."""
        return numeric_targets(column_or_1d(y, warn=True))

    def _sample(self, X, y, weight) -> Sample:
        return Sample(X, y, weight, is_of_numbers=True)

    def _score_for(self, sample: Sample):
        return "r2" if self.scoring is None else self.scoring

    def _guess(self, sample: Sample) -> tuple[str, float] | None:
        return ("the mean of the targets", 0.0) if self.scoring_ == "r2" else None

    def predict(self, X):
        """Predict the target of each row."""
        X = self._checked(X)
        return self.best_estimator_.predict(X)


def _shares(sample: Sample, classes: np.ndarray) -> np.ndarray:
    """Return the share of each class in the weight of all rows."""
    counts = np.bincount(np.searchsorted(classes, sample.y), sample.weight, len(classes))
    return counts / counts.sum()
