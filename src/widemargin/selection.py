"""Which machine, kernel and C: cross-validation along paths of C with warm starts."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from widemargin.calibration import uncalibrated, with_probabilities
from widemargin.errors import ParameterError, listed
from widemargin.scoring import Scorer, check_scoring, get_scorer
from widemargin.sklearn_private import safe_indexing
from widemargin.warning import IdentifierWarning, RareClassWarning, UnseenWarning, warn_user

_MOST_NAMED = 5  # classes in a warning


def behind_scaler(scaler, machine):
    """The machine itself without a scaler, else a pipeline of the two.

    What makes the data ready may be a pipeline too, of which the machine is then the last step.
    """
    if scaler is None:
        return machine
    before = scaler.steps if isinstance(scaler, Pipeline) else [("scale", scaler)]
    return Pipeline([*before, ("svm", machine)])


@dataclass(frozen=True)
class Candidate:
    """An estimator with `fit_path`, perhaps behind a scaler, and what to call it.

    With ``probability`` its models are calibrated, each by a cross-validation of its own.
    """

    settings: dict[str, Any]
    estimator: Any
    scaler: Any = None
    probability: bool = False

    @property
    def name(self) -> str:
        """The settings in words."""
        shown = {k: f"{v:g}" if isinstance(v, float) else v for k, v in self.settings.items()}
        return ", ".join(f"{k} {v}" for k, v in shown.items())

    def part(self, X, rows: np.ndarray, known: np.ndarray | None = None):
        """Some rows; of a kernel matrix their values with the ``known`` rows (default: rows)."""
        if not get_tags(self.estimator).input_tags.pairwise:
            return safe_indexing(X, rows)
        return X[np.ix_(rows, rows if known is None else known)]

    def fit_path(self, X, y, Cs) -> list:
        """One fitted model or pipeline per C."""
        scaler = None if self.scaler is None else clone(self.scaler).fit(X)
        models = self.estimator.fit_path(X if scaler is None else scaler.transform(X), y, Cs)
        found = [behind_scaler(scaler, model) for model in models]
        return [with_probabilities(m, X, y) for m in found] if self.probability else found

    def unfitted(self, C: float) -> tuple[Any, Any]:
        """Scaler, perhaps None, and machine for one C."""
        scaler = None if self.scaler is None else clone(self.scaler)
        return scaler, clone(self.estimator).set_params(C=C)

    def fit(self, X, y, C: float):
        """The model for one C."""
        return behind_scaler(*self.unfitted(C)).fit(X, y)


@dataclass(frozen=True)
class Trial:
    """One candidate at one C: its score over the folds, and the seconds of its whole path.

    ``unconverged`` counts the folds whose model stopped above its ``tol``: their score is that
    of another model than the one asked for, and may be far from it on either side. ``rows`` were
    looked at, along a ``path`` of so many C.
    """

    candidate: Candidate
    C: float
    score: float
    spread: float
    seconds: float
    folds: int = 1
    unconverged: int = 0
    scoring: str = "accuracy"
    rows: int = 0
    path: int = 1

    @property
    def standard_error(self) -> float:
        """Of the mean over the folds."""
        return self.spread / max(self.folds - 1, 1) ** 0.5


def pooled(first: Trial, second: Trial) -> Trial:
    """Two looks at the same candidate and C as one, on the folds of both."""
    folds = first.folds + second.folds

    def mean(of: Callable[[Trial], float]) -> float:
        return (first.folds * of(first) + second.folds * of(second)) / folds

    score = mean(lambda trial: trial.score)
    square = mean(lambda trial: trial.spread**2 + (trial.score - score) ** 2)
    return replace(
        first,
        score=score,
        spread=square**0.5,
        seconds=first.seconds / first.path + second.seconds / second.path,
        path=1,
        folds=folds,
        unconverged=first.unconverged + second.unconverged,
    )


def tune(
    candidates: Sequence[Candidate],
    X,
    y,
    Cs: Sequence[float],
    *,
    folds: int = 5,
    random_state: int | None = 0,
    scoring: str | Scorer = "accuracy",
    on_fold: Callable[[], object] = lambda: None,
) -> list[Trial]:
    """Cross-validate every candidate along a path of C, the choice first (see `ranked`).

    Parameters
    ----------
    candidates : sequence of Candidate
    X, y : training data
    Cs : sequence of float
    folds : int
        Stratified and shuffled; the same for all candidates.
    random_state : int or None
    scoring : str or callable
        A name that `get_scorer` knows, such as "balanced_accuracy", "roc_auc" or "f1", or a
        function of model, X and y; the larger the better.
    on_fold : callable
        Called whenever a fold of a candidate is done, for all C.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import AdditiveSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> candidates = [Candidate({"kernel": k}, AdditiveSVC(k)) for k in ("chi2", "linear")]
    >>> best = tune(candidates, X, y, [0.1, 1.0], folds=3)[0]
    >>> best.score > 0.9
    True
    """
    y, scorer = np.asarray(y), get_scorer(scoring)
    name = scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "score")
    if isinstance(scoring, str):
        probable = all(candidate.probability for candidate in candidates)
        check_scoring(scoring, np.unique(y), probabilities=probable)
    check_folds(y, folds)
    ascending = sorted(float(C) for C in Cs)
    parts = _stratified(X, y, folds, random_state)
    trials: list[Trial] = []
    for candidate in candidates:
        started = time.perf_counter()
        by_fold = []
        for part in parts:
            by_fold.append(_scores(candidate, X, y, ascending, scorer, *part))
            on_fold()
        found = np.array(by_fold)
        seconds = time.perf_counter() - started
        for C, scores, converged in zip(ascending, *found.transpose(2, 1, 0), strict=True):
            mean, spread = float(scores.mean()), float(scores.std())
            trial = Trial(
                *(candidate, C, mean, spread, seconds),
                folds=len(parts),
                unconverged=int(np.sum(converged == 0)),
                scoring=name,
                rows=len(y),
                path=len(ascending),
            )
            trials.append(trial)
    return ranked(trials)


def check_folds(y: np.ndarray, folds: int) -> None:
    """Raise ValueError where no class has a row for each fold."""
    largest = int(np.unique(y, return_counts=True)[1].max())
    if largest < folds:
        rows = f"{largest} row{'s' * (largest != 1)}"
        raise ParameterError("folds", folds, f"are too many: the largest class has {rows}.")


def _stratified(X, y: np.ndarray, folds: int, random_state) -> list[tuple]:
    """Rows to learn from and to score, with a word on classes that cannot be in every fold."""
    classes, counts = np.unique(y, return_counts=True)
    few = [f"{c!r} ({n})" for c, n in zip(classes.tolist(), counts, strict=True) if n < folds]
    if few:
        warn_user(
            f"Classes with fewer rows than the {folds} folds are not in all of them: "
            f"{listed(few, _MOST_NAMED)}. Join them with others, or leave them out.",
            RareClassWarning,
        )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class")  # scikit-learn's word on it
        return list(StratifiedKFold(folds, shuffle=True, random_state=random_state).split(X, y))


def ranked(trials: Sequence[Trial]) -> list[Trial]:
    """The choice first, then by score; of equals the smaller C, then the earlier candidate.

    The choice is the best, unless it did not converge in every fold and one that did is within a
    standard error of it.
    """
    by_score = sorted(trials, key=lambda t: (-t.score, t.C))
    if not by_score:
        return []
    best = by_score[0]
    if best.unconverged:
        enough = best.score - best.standard_error
        near = (t for t in by_score if not t.unconverged and t.score >= enough)
        best = next(near, best)
    return [best, *(t for t in by_score if t is not best)]


def _scores(candidate: Candidate, X, y, Cs, scorer: Scorer, train, test) -> list[tuple]:
    """For every C the score on the rows ``test``, and whether the fit converged."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # they are counted instead
        warnings.simplefilter("ignore", UnseenWarning)  # a fold need not have every category
        warnings.simplefilter("ignore", IdentifierWarning)  # the last fit asks
        models = candidate.fit_path(candidate.part(X, train), y[train], Cs)
        held_out = candidate.part(X, test, train)
        return [(scorer(model, held_out, y[test]), _converged(model)) for model in models]


def _converged(model) -> bool:
    model = uncalibrated(model)
    machine = model[-1] if isinstance(model, Pipeline) else model
    return machine.converged_


def sample_rows(X, y, most: int, random_state: int | None = 0) -> np.ndarray:
    """Numbers of at most so many rows, drawn class by class where every class has enough."""
    everything = np.arange(X.shape[0])
    if len(everything) <= most:
        return everything
    _, counts = np.unique(y, return_counts=True)
    stratify = y if counts.min() >= 2 and most >= len(counts) else None
    chosen, _ = train_test_split(
        everything, train_size=most, stratify=stratify, random_state=random_state
    )
    return np.sort(chosen)
