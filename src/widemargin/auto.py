"""`AutoSVC`: the machine, kernel and parameters that suit the data, within a time limit."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from widemargin.additive.frames import FROM_DTYPE, is_frame, read_training
from widemargin.calibration import CalibratedSVC
from widemargin.candidates import MACHINES
from widemargin.classifier import check_one_kind
from widemargin.errors import (
    ChoiceWarning,
    IdentifierWarning,
    LostClassWarning,
    Message,
    Parameter,
    ParameterError,
    listed,
    warn_user,
)
from widemargin.pace import Deadline
from widemargin.progress import FitStopper, log
from widemargin.scoring import check_scoring
from widemargin.search import Search
from widemargin.selection import Sample, Trial, behind_scaler
from widemargin.sklearn_private import callbacks_of, safe_indexing
from widemargin.validation import check_n_jobs, check_number, check_X, check_X_y, sample_weights

SMALL_CLASS = 0.2  # part of an even share of the rows, below which accuracy says little of a class
CALIBRATION_ROWS = 5000
CALIBRATION_SHARE = 0.1  # of the time
_LAST_SHARE = 0.1  # of the time, which a final fit has at least


class AutoSVC(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """The most accurate of our machines, chosen by cross-validation within a time limit.

    `fit` compares linear, chi2 and intersection kernels of `AdditiveSVC` and RBF kernels of
    `KernelSVC` along paths of C, on at most 5,000 rows.  Grids go on where the best is at their
    end; the best few meet again on more rows or in other folds; the choice is trained on all rows.

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
    widemargin.save : Writes ``best_estimator_``, the pipeline or machine that `widemargin.load`
        returns; ``save(auto.calibrated_estimator_, path)`` keeps the probabilities too.

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

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Choose a model and train it.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Text and categorical columns of a frame are categories; NaN and None are missing values.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of rows, in fits and scores; 0 is the same as leaving the row out.

        Returns
        -------
        self : AutoSVC
        """
        self._check_params()
        clock = Deadline(self.max_seconds)
        sample = self._read(X, y, sample_weight)
        self.scoring_ = self._score_for(sample)
        search = self._search(sample, clock.left)
        context = self._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=self, X=X, y=y)
        self._try_all(search, context)
        self._set_results(search)
        _told(self, context, "choice", self.ranking_[:1])
        self._train(search, context)
        self._calibrate(search)
        self.seconds_ = self.max_seconds - clock.left
        context.call_on_fit_task_end(estimator=self, X=X, y=y, reconstruction_attributes=dict)
        self._warn_of_poor_choice(sample)
        return self

    # ------------------------------------------------------------------ before the search

    def _check_params(self) -> None:
        check_number("max_seconds", self.max_seconds, above=0)
        check_n_jobs(self.n_jobs)
        known = not isinstance(self.machines, str) and {*self.machines} <= {*MACHINES}
        if not (known and len(self.machines)):
            raise ParameterError("machines", self.machines, f"must be one of {MACHINES!r} or both.")
        if isinstance(self.scoring, str):
            check_scoring(self.scoring)
        elif self.scoring is not None and not callable(self.scoring):
            raise ParameterError("scoring", self.scoring, "must be a name, a function or None.")

    def _read(self, X, y, sample_weight) -> Sample:
        """Check the data, and set what `fit` learns of its columns and classes."""
        matrix = X
        if is_frame(X):
            with _without(IdentifierWarning):  # the final fit warns
                _, labels, _ = read_training(_Columns(self), X, y)
            validate_data(self, X, reset=True, skip_check_array=True)
        else:
            matrix, labels = check_X_y(self, X, y)
        labels = np.asarray(labels)
        check_one_kind(labels)
        check_classification_targets(labels)
        weight = None if sample_weight is None else sample_weights(sample_weight, matrix)
        if weight is not None and not np.all(weight):
            rows = np.flatnonzero(weight)
            matrix, labels, weight = safe_indexing(matrix, rows), labels[rows], weight[rows]
        self.classes_ = np.unique(labels)
        if len(self.classes_) < 2:
            raise ValueError(
                f"AutoSVC needs samples of at least 2 classes, but the data has "
                f"{len(self.classes_)} class: {self.classes_.tolist()!r}."
            )
        return Sample(matrix, labels, weight)

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

    def _search(self, sample: Sample, seconds: float) -> Search:
        seed = self.random_state
        if not isinstance(seed, (int, np.integer)):
            seed = check_random_state(seed).randint(2**31 - 1)
        parameters = {
            "class_weight": self.class_weight,
            "n_jobs": self.n_jobs,
            "random_state": int(seed),
        }
        stoppers = [callback for callback in callbacks_of(self) if isinstance(callback, FitStopper)]
        return Search(sample, self.scoring_, self.machines, seconds, parameters, stoppers)

    # ------------------------------------------------------------------ search and fit

    def _try_all(self, search: Search, context) -> None:
        """Run the search to its end, or until Ctrl-C or a callback ends it."""
        try:
            for own in search.trials():
                if self.verbose and own:
                    log("%s: %.4f", own[0].candidate.name, own[0].score)
                if own and _told(self, context, "candidate", own):
                    break
        except KeyboardInterrupt:
            if not search.found:
                raise
        except Exception:  # NumPy may turn Ctrl-C into any error
            if not (search.found and any(stopper.is_over for stopper in search.stoppers)):
                raise
        if not search.found:
            if any(stopper.is_over for stopper in search.stoppers):
                raise KeyboardInterrupt
            raise ValueError("No candidate could be trained on this data.")

    def _set_results(self, search: Search) -> None:
        self.ranking_, self.untried_ = search.choice(), search.untried
        self.trials_ = [_record(trial) for trial in self.ranking_]
        best = self.ranking_[0]
        self.best_params_ = {**best.candidate.settings, "C": best.C}
        self.best_score_ = best.score

    def _train(self, search: Search, context) -> None:
        """Fit the choice to all rows, or to more and more of them while there is time."""
        best, n = self.ranking_[0], len(search.sample.y)
        waiting = [stopper for stopper in search.stoppers if not stopper.is_over]
        so_far, rows = 0, search.rows_to_train(best)
        while rows:
            clock = Deadline(max(search.clock.left, _LAST_SHARE * search.seconds), *waiting)
            told = (IdentifierWarning,) if so_far else ()
            with _without(LostClassWarning, *told):
                fitted = self._fitted(search.sample.drawn(rows, search.seed), clock, context)
            if clock.is_over and so_far:
                break
            self.best_estimator_, so_far = fitted, rows
            search.note_fit(best, rows, clock.spent)
            rows = 0 if clock.is_over else search.rows_to_train(best, so_far)
        needed = f"all would take about {search.seconds_of(best, n):.0f} s"
        of_all = f"{so_far} of {n} rows: {needed}" if so_far < n else f"all {n} rows"
        self.trained_on_ = f"trained on {of_all}"

    def _fitted(self, sample: Sample, clock: Deadline, context):
        """Fit the choice; `fit`'s callbacks hear the tasks of this fit."""
        best = self.ranking_[0]
        scaler, machine = best.candidate.unfitted(best.C)
        rows = sample.X if scaler is None else scaler.fit_transform(sample.X)
        machine.set_callbacks(clock)
        task = context.subcontext(task_name="fit of the choice")
        with task.propagate_callback_context(machine):
            machine.fit(rows, sample.y, **sample.weights())
        machine.set_callbacks()
        return behind_scaler(scaler, machine)

    def _calibrate(self, search: Search) -> None:
        """Fit probabilities to some of the rows, out of fold; tell of classes never predicted."""
        if hasattr(self, "calibrated_estimator_"):
            del self.calibrated_estimator_
        best = self.ranking_[0]
        seconds = max(CALIBRATION_SHARE * search.seconds, search.clock.left) / 5
        most = search.rows_within(seconds, best, CALIBRATION_ROWS)
        X, y, weight = search.sample.drawn(most, search.seed)
        self._warn_of_lost_classes(X)
        scaler, machine = best.candidate.unfitted(best.C)
        machine.set_callbacks(Deadline(max(search.clock.left, _LAST_SHARE * search.seconds)))
        unfitted = CalibratedSVC(behind_scaler(scaler, machine), random_state=search.seed)
        try:
            with _without(UserWarning):  # the fit on all rows has warned
                found = unfitted.calibrate(self.best_estimator_, X, y, weight)
        except ValueError as error:
            self._why_uncalibrated = str(error)
            return
        machine.set_callbacks()
        self.calibrated_estimator_ = found

    # ------------------------------------------------------------------ what the choice is worth

    def _warn_of_lost_classes(self, X) -> None:
        predicted = {*self.best_estimator_.predict(X).tolist()}
        lost = [repr(label) for label in self.classes_.tolist() if label not in predicted]
        if lost:
            warn_user(
                f"Never predicted for training rows: class {listed(lost, 5)}. If these rows "
                'matter, use scoring="balanced_accuracy" or class_weight="balanced".',
                LostClassWarning,
            )

    def _warn_of_poor_choice(self, sample: Sample) -> None:
        guess = self._guess(sample)
        best = self.ranking_[0]
        if guess is not None and best.score - best.standard_error <= guess:
            warn_user(
                f"The choice is no better than the majority class: {self._scored(best)}, where "
                f"that has {_in_words(self.scoring_, guess)}. The features may not tell the "
                "classes.",
                ChoiceWarning,
            )

    def _guess(self, sample: Sample) -> float | None:
        """Return the score of the largest class, where it is known."""
        if self.scoring_ == "accuracy":
            return float(_shares(sample, self.classes_).max())
        if self.scoring_ == "balanced_accuracy":
            return 1 / len(self.classes_)
        return {"roc_auc": 0.5}.get(self.scoring_) if isinstance(self.scoring_, str) else None

    def _scored(self, trial: Trial) -> str:
        error = "" if trial.folds < 2 else f" (standard error {trial.standard_error:.2g})"
        return f"{_in_words(trial.scoring, trial.score)}{error}"

    def explain_choice(self) -> str:
        """Return in words what was chosen, before what, on which rows, and what was not tried."""
        check_is_fitted(self)
        best = self.ranking_[0]
        where = f"{best.folds} folds of {best.rows:,} rows"
        said = [f"{_name(best)}: {self._scored(best)} in {where}, of {len(self.ranking_)} trials."]
        alike = [t for t in self.ranking_[1:] if (t.rows, t.folds) == (best.rows, best.folds)]
        if alike:
            second = alike[0]
            said.append(f"Next: {_name(second)}, {self._scored(second)}.")
            if second.score > best.score:
                said.append("That is within a standard error, and the choice is much cheaper.")
            elif second.is_tied(best):
                said.append("That is within a standard error: they may be equally good.")
        said += [f"It is {self.trained_on_}."]
        said += [
            f"Not tried for lack of time: {name} (about {seconds:.2g} s)."
            for name, seconds in self.untried_.items()
        ]
        return " ".join([*said, f"All of it took {self.seconds_:.1f} s."])

    # ------------------------------------------------------------------ prediction

    def _checked(self, X):
        """Check rows, and the names of their columns."""
        check_is_fitted(self, "best_estimator_")
        if not is_frame(X):
            return check_X(self, X, reset=False)
        validate_data(self, X, reset=False, skip_check_array=True)
        return X

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


class _Columns:
    """Takes what a reading of columns sets, in the name of another estimator."""

    categorical_features = FROM_DTYPE

    def __init__(self, estimator: AutoSVC):
        self._estimator = estimator

    def __sklearn_tags__(self):
        return self._estimator.__sklearn_tags__()


def _told(auto: AutoSVC, context, name: str, own: list[Trial]) -> bool:
    """Tell the callbacks of some trials; return whether one of them asks to stop."""
    task = context.subcontext(task_name=name)
    task.trials = own
    task.call_on_fit_task_begin(estimator=auto)
    return task.call_on_fit_task_end(estimator=auto)


@contextmanager
def _without(*categories: type[Warning]) -> Iterator[None]:
    with warnings.catch_warnings():
        for category in categories:
            warnings.simplefilter("ignore", category)
        yield


def _record(trial: Trial) -> dict[str, Any]:
    measured = {name: getattr(trial, name) for name in ("C", "score", "standard_error")}
    facts = {name: getattr(trial, name) for name in ("seconds", "rows", "folds", "unconverged")}
    return {**trial.candidate.settings, **measured, **facts}


def _shares(sample: Sample, classes: np.ndarray) -> np.ndarray:
    """Return the share of each class in the weight of all rows."""
    counts = np.bincount(np.searchsorted(classes, sample.y), sample.weight, len(classes))
    return counts / counts.sum()


def _name(trial: Trial) -> str:
    return f"{trial.candidate.name}, C {trial.C:g}"


def _in_words(scoring, score: float) -> str:
    if isinstance(scoring, str) and scoring.endswith("accuracy"):
        return f"{scoring.replace('_', ' ')} {100 * score:.2f} %"
    return f"{scoring if isinstance(scoring, str) else 'score'} {score:.4f}"
