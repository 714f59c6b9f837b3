"""What `AutoSVC` and `AutoSVR` share: a search, a final fit of its choice, and words about it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from widemargin.additive.frames import FROM_DTYPE, is_frame, read_training
from widemargin.candidates import MACHINES
from widemargin.errors import (
    ChoiceWarning,
    IdentifierWarning,
    LostClassWarning,
    ParameterError,
    warn_user,
)
from widemargin.pace import Deadline
from widemargin.progress import FitStopper, log
from widemargin.search import Search
from widemargin.selection import Sample, Trial, behind_scaler
from widemargin.sklearn_private import callbacks_of, safe_indexing
from widemargin.validation import check_n_jobs, check_number, check_X, check_X_y, sample_weights

LAST_SHARE = 0.1  # of the time, which a final fit has at least


class Choice(CallbackSupportMixin, BaseEstimator):
    """Chooses a machine by cross-validation within a time limit, and trains it.

    A subclass has the parameters ``max_seconds``, ``scoring``, ``machines``, ``n_jobs``,
    ``random_state`` and ``verbose``; it reads targets, names the score, and says what a guess
    would score.
    """

    max_seconds: float
    scoring: Any
    machines: Any
    n_jobs: int | None
    random_state: Any
    verbose: int
    _sample: Callable[[Any, Any, Any], Sample]  # checks the targets
    _score_for: Callable[[Sample], Any]
    _guess: Callable[[Sample], tuple[str, float] | None]

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
        self : estimator
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
        self._finish(search)
        self.seconds_ = self.max_seconds - clock.left
        context.call_on_fit_task_end(estimator=self, X=X, y=y, reconstruction_attributes=dict)
        self._warn_of_poor_choice(sample)
        return self

    def _check_params(self) -> None:
        check_number("max_seconds", self.max_seconds, above=0)
        check_n_jobs(self.n_jobs)
        known = not isinstance(self.machines, str) and {*self.machines} <= {*MACHINES}
        if not (known and len(self.machines)):
            raise ParameterError("machines", self.machines, f"must be one of {MACHINES!r} or both.")
        self._check_scoring()

    def _check_scoring(self) -> None:
        """Refuse a score that is none for these targets."""
        raise NotImplementedError

    # ------------------------------------------------------------------ before the search

    def _read(self, X, y, sample_weight) -> Sample:
        """Check the data, and set what `fit` learns of its columns and targets."""
        matrix = X
        if is_frame(X):
            with without(IdentifierWarning):  # the final fit warns
                _, targets, _ = read_training(_Columns(self), X, y)
            validate_data(self, X, reset=True, skip_check_array=True)
        else:
            matrix, targets = check_X_y(self, X, y)
        targets = np.asarray(targets)
        weight = None if sample_weight is None else sample_weights(sample_weight, matrix)
        if weight is not None and not np.all(weight):
            rows = np.flatnonzero(weight)
            matrix, targets, weight = safe_indexing(matrix, rows), targets[rows], weight[rows]
        return self._sample(matrix, targets, weight)

    def _machine_parameters(self) -> dict[str, Any]:
        """Return parameters of this estimator that its machines have too."""
        return {"n_jobs": self.n_jobs}

    def _search(self, sample: Sample, seconds: float) -> Search:
        seed = self.random_state
        if not isinstance(seed, (int, np.integer)):
            seed = check_random_state(seed).randint(2**31 - 1)
        parameters = {**self._machine_parameters(), "random_state": int(seed)}
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
            clock = Deadline(max(search.clock.left, LAST_SHARE * search.seconds), *waiting)
            told = (IdentifierWarning,) if so_far else ()
            with without(LostClassWarning, *told):
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
        rows = sample.X if scaler is None else scaler.fit_transform(sample.X, sample.y)
        machine.set_callbacks(clock)
        task = context.subcontext(task_name="fit of the choice")
        with task.propagate_callback_context(machine):
            machine.fit(rows, sample.y, **sample.weights())
        machine.set_callbacks()
        return behind_scaler(scaler, machine)

    def _finish(self, search: Search) -> None:
        """Do what the choice needs after its fit."""

    # ------------------------------------------------------------------ what the choice is worth

    def _warn_of_poor_choice(self, sample: Sample) -> None:
        found, best = self._guess(sample), self.ranking_[0]
        if found is not None and best.score - best.standard_error <= found[1]:
            warn_user(
                f"The choice is no better than {found[0]}: {self._scored(best)}, where that has "
                f"{_in_words(self.scoring_, found[1])}. The features may not tell the targets.",
                ChoiceWarning,
            )

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


class _Columns:
    """Takes what a reading of columns sets, in the name of another estimator."""

    categorical_features = FROM_DTYPE

    def __init__(self, estimator: Choice):
        self._estimator = estimator
        if hasattr(estimator, "_check_numbers"):
            self._check_numbers = estimator._check_numbers

    def __sklearn_tags__(self):
        return self._estimator.__sklearn_tags__()


def _told(auto: Choice, context, name: str, own: list[Trial]) -> bool:
    """Tell the callbacks of some trials; return whether one of them asks to stop."""
    task = context.subcontext(task_name=name)
    task.trials = own
    task.call_on_fit_task_begin(estimator=auto)
    return task.call_on_fit_task_end(estimator=auto)


@contextmanager
def without(*categories: type[Warning]) -> Iterator[None]:
    """Ignore warnings of some categories."""
    with warnings.catch_warnings():
        for category in categories:
            warnings.simplefilter("ignore", category)
        yield


def _record(trial: Trial) -> dict[str, Any]:
    measured = {name: getattr(trial, name) for name in ("C", "score", "standard_error")}
    facts = {name: getattr(trial, name) for name in ("seconds", "rows", "folds", "unconverged")}
    return {**trial.candidate.settings, **measured, **facts}


def _name(trial: Trial) -> str:
    return f"{trial.candidate.name}, C {trial.C:g}"


def _in_words(scoring, score: float) -> str:
    if isinstance(scoring, str) and scoring.endswith("accuracy"):
        return f"{scoring.replace('_', ' ')} {100 * score:.2f} %"
    return f"{scoring if isinstance(scoring, str) else 'score'} {score:.4f}"
