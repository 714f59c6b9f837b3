"""Select machine, kernel and C by cross-validation along warm-started paths of C."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from widemargin.calibration import uncalibrated, with_probabilities
from widemargin.errors import (
    IdentifierWarning,
    LostClassWarning,
    NegativeWarning,
    ParameterError,
    RareClassWarning,
    UnseenWarning,
    listed,
    warn_user,
)
from widemargin.scoring import Scorer, check_scoring, get_scorer
from widemargin.sklearn_private import safe_indexing

_KEPT_VALUES = 1 << 23  # of training rows behind scalers, per fold
_OF_RARE = 5  # rows of each class in a sample, at least, if there are as many
_MOST_NAMED = 5  # classes in a warning
_OF_FINAL_FIT = (IdentifierWarning, LostClassWarning, NegativeWarning)  # warnings it gives too


def behind_scaler(scaler, machine):
    """Return the machine, or a pipeline of scaler and machine.

    The scaler may be a pipeline, which is then extended by the machine.
    """
    if scaler is None:
        return machine
    before = scaler.steps if isinstance(scaler, Pipeline) else [("scale", scaler)]
    return Pipeline([*before, ("svm", machine)])


def rows_of(X, rows: np.ndarray, known: np.ndarray | None = None):
    """Return some rows; of a kernel matrix, their values with ``known`` rows."""
    return safe_indexing(X, rows) if known is None else X[np.ix_(rows, known)]


class Sample(NamedTuple):
    """Rows with their targets and, unless all are 1, their weights."""

    X: Any
    y: np.ndarray
    weight: np.ndarray | None = None
    is_of_numbers: bool = False  # its targets, which are classes else

    def weights(self) -> dict[str, np.ndarray]:
        """Return the weights as the argument of a fit or a score; or nothing."""
        return {} if self.weight is None else {"sample_weight": self.weight}

    def taken(self, rows: np.ndarray, known: np.ndarray | None = None) -> Sample:
        """Return some rows; of a kernel matrix, values with ``known`` rows."""
        X = rows_of(self.X, rows, known)
        weight = None if self.weight is None else self.weight[rows]
        return self._replace(X=X, y=self.y[rows], weight=weight)

    def drawn(self, most: int, random_state: int | None = 0) -> Sample:
        """Return about so many of the rows; of classes, in proportion, and more of rare ones."""
        if len(self.y) <= most:
            return self
        if self.is_of_numbers:
            rng = np.random.default_rng(random_state)
            return self.taken(np.sort(rng.choice(len(self.y), most, replace=False)))
        drawn = sample_rows(self.X, self.y, most, random_state)
        classes, counts = np.unique(self.y[drawn], return_counts=True)
        enough = set(classes[counts >= _OF_RARE].tolist())
        rare = [np.flatnonzero(self.y == c)[:_OF_RARE] for c in {*self.y.tolist()} - enough]
        return self.taken(np.unique(np.concatenate([drawn, *rare])))


class Fold:
    """Rows to fit and rows to score of a sample, as scalers make them.

    Candidates that share a scaler share what it made, as long as all that is kept is small.
    """

    def __init__(self, sample: Sample, train: np.ndarray, test: np.ndarray, pairwise: bool = False):
        self.sample, self._train, self._test = sample, train, test
        self._pairwise, self.preparing = pairwise, 0.0  # seconds that scalers took
        self._kept = dict[Any, tuple[Any, Sample, Sample]]()

    @property
    def n_train(self) -> int:
        return len(self._train)

    def parts(self) -> tuple[Sample, Sample]:
        """Return the rows to fit and the rows to score, as they are."""
        known = self._train if self._pairwise else None
        return self.sample.taken(self._train, known), self.sample.taken(self._test, known)

    def behind(self, scaler) -> tuple[Any, Sample, Sample]:
        """Return the scaler, fitted to the rows to fit, and both parts as it makes them."""
        if scaler is None:
            return None, *self.parts()
        if scaler not in self._kept:
            started = time.perf_counter()
            train, test = self.parts()
            fitted = clone(scaler).fit(train.X, train.y)
            train, test = (part._replace(X=fitted.transform(part.X)) for part in (train, test))
            if (1 + len(self._kept)) * train.X.size > _KEPT_VALUES:
                self._kept.clear()
            self._kept[scaler] = fitted, train, test
            self.preparing += time.perf_counter() - started
        return self._kept[scaler]


@dataclass(frozen=True)
class Candidate:
    """An estimator with `fit_path`, optionally behind a scaler, with its settings.

    With ``probability`` every model is calibrated by cross-validation.
    """

    settings: dict[str, Any]
    estimator: Any
    scaler: Any = None
    probability: bool = False

    @property
    def name(self) -> str:
        """The settings as text."""
        shown = {k: f"{v:g}" if isinstance(v, float) else v for k, v in self.settings.items()}
        return ", ".join(f"{k} {v}" for k, v in shown.items())

    @property
    def is_pairwise(self) -> bool:
        return get_tags(self.estimator).input_tags.pairwise

    def part(self, X, rows: np.ndarray):
        """Return some rows; of a kernel matrix, their values with each other."""
        return rows_of(X, rows, rows if self.is_pairwise else None)

    def unfitted(self, C: float) -> tuple[Any, Any]:
        """Return the scaler (or None) and the machine for one C."""
        scaler = None if self.scaler is None else clone(self.scaler)
        return scaler, clone(self.estimator).set_params(C=C)

    def fit(self, X, y, C: float):
        """Fit the model for one C."""
        return behind_scaler(*self.unfitted(C)).fit(X, y)


@dataclass(frozen=True)
class Trial:
    """One candidate at one C: its score over the folds, and the seconds of the whole path.

    ``unconverged`` counts the folds whose model stopped above its ``tol``: their score is that
    of another model than the one asked for, and may be far from it on either side. ``rows`` were
    looked at, along a ``path`` of so many C; some of the seconds went into ``preparing`` columns.
    ``by_fold`` has the scores whose mean ``score`` is.
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
    preparing: float = 0.0
    by_fold: tuple[float, ...] = ()

    @property
    def standard_error(self) -> float:
        """Standard error of the mean over the folds."""
        return self.spread / max(self.folds - 1, 1) ** 0.5

    def is_tied(self, best: Trial) -> bool:
        """Whether the best is ahead by no more than the standard error of that, fold by fold."""
        if len(self.by_fold) != len(best.by_fold) or self.folds < 2:
            return False
        ahead = np.subtract(best.by_fold, self.by_fold)
        return bool(ahead.mean() <= ahead.std() / (len(ahead) - 1) ** 0.5)


def pooled(first: Trial, second: Trial) -> Trial:
    """Merge two trials of the same candidate and C, over the folds of both."""
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
        preparing=first.preparing / first.path + second.preparing / second.path,
        folds=folds,
        unconverged=first.unconverged + second.unconverged,
        by_fold=first.by_fold + second.by_fold,
    )


def tune(
    candidates: Sequence[Candidate],
    X,
    y,
    Cs: Sequence[float],
    *,
    folds: int = 5,
    random_state: int | None = 0,
    scoring: str | Scorer | None = None,
    on_fold: Callable[[], object] = lambda: None,
) -> list[Trial]:
    """Cross-validate every candidate along a path of C; return trials, the choice first.

    Parameters
    ----------
    candidates : sequence of Candidate
        All classifiers, or all regressors.
    X, y : training data
    Cs : sequence of float
    folds : int
        Stratified by class and shuffled; the same for all candidates.
    random_state : int or None
    scoring : str, callable or None, default=None
        A name for `get_scorer`, such as "balanced_accuracy", "roc_auc" or "f1", or a
        function of model, X and y; larger is better.  None is "accuracy", or "r2" of regressors.
    on_fold : callable
        Called after every fold of a candidate, for all C.

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
    y = np.asarray(y)
    numbers = any(is_regressor(candidate.estimator) for candidate in candidates)
    scoring = scoring or ("r2" if numbers else "accuracy")
    if isinstance(scoring, str):
        probable = all(candidate.probability for candidate in candidates)
        classes = None if numbers else np.unique(y)
        check_scoring(scoring, classes, probabilities=probable, numbers=numbers)
    check_folds(y, folds, numbers=numbers)
    pairwise, trials = any(c.is_pairwise for c in candidates), list[Trial]()
    parts = folds_of(Sample(X, y, is_of_numbers=numbers), folds, random_state, pairwise)
    for candidate in candidates:
        trials += cross_validated(candidate, parts, Cs, scoring, on_fold)
    return ranked(trials)


def cross_validated(
    candidate: Candidate,
    folds: Sequence[Fold],
    Cs: Sequence[float],
    scoring: str | Scorer = "accuracy",
    on_fold: Callable[[], object] = lambda: None,
) -> list[Trial]:
    """Return the trials of one candidate along a path of C."""
    scorer, ascending = get_scorer(scoring), sorted(float(C) for C in Cs)
    name = scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "score")
    started, before = time.perf_counter(), sum(fold.preparing for fold in folds)
    by_fold = []
    whole = candidate.probability or not isinstance(scoring, str)
    for fold in folds:
        by_fold.append(_scores(candidate, fold, ascending, scorer, whole))
        on_fold()
    found = np.array(by_fold)
    seconds = time.perf_counter() - started
    rows = len(folds[0].sample.y)
    preparing = sum(fold.preparing for fold in folds) - before
    facts: dict[str, Any] = {"folds": len(folds), "rows": rows, "path": len(Cs)}
    facts["preparing"] = preparing
    return [
        Trial(
            *(candidate, C, float(scores.mean()), float(scores.std()), seconds),
            unconverged=int(np.sum(converged == 0)),
            by_fold=tuple(scores.tolist()),
            scoring=name,
            **facts,
        )
        for C, scores, converged in zip(ascending, *found.transpose(2, 1, 0), strict=True)
    ]


def check_folds(y: np.ndarray, folds: int, *, numbers: bool = False) -> None:
    """Raise ValueError if no class has a row for each fold, or there are too few numbers."""
    if numbers:
        if len(y) < folds:
            raise ParameterError("folds", folds, f"are too many: there are {len(y)} rows.")
        return
    largest = int(np.unique(y, return_counts=True)[1].max())
    if largest < folds:
        rows = f"{largest} row{'s' * (largest != 1)}"
        raise ParameterError("folds", folds, f"are too many: the largest class has {rows}.")


def folds_of(sample: Sample, n: int, random_state, pairwise: bool = False) -> list[Fold]:
    """Return folds, of classes in proportion; warn of classes that some of them lack."""
    y, splitter = sample.y, KFold(n, shuffle=True, random_state=random_state)
    if not sample.is_of_numbers:
        splitter = StratifiedKFold(n, shuffle=True, random_state=random_state)
        classes, counts = np.unique(y, return_counts=True)
        few = [f"{c!r} ({m})" for c, m in zip(classes.tolist(), counts, strict=True) if m < n]
        if few:
            warn_user(
                f"Classes with fewer rows than the {n} folds are not in all of them: "
                f"{listed(few, _MOST_NAMED)}. Join them with others, or leave them out.",
                RareClassWarning,
            )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class")  # replaced by that above
        return [Fold(sample, train, test, pairwise) for train, test in splitter.split(y, y)]


def ranked(trials: Sequence[Trial]) -> list[Trial]:
    """Sort trials: the choice first, then by score, C and order of candidates.

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


def _scores(candidate: Candidate, fold: Fold, Cs, scorer: Scorer, whole: bool) -> list[tuple]:
    """Return for every C the score on the rows left out, and whether the fit converged.

    Scored are machines on what their scaler made or, where that could matter, ``whole`` pipelines
    on the rows as they are.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # counted instead
        warnings.simplefilter("ignore", UnseenWarning)  # folds may lack categories
        for category in _OF_FINAL_FIT:
            warnings.simplefilter("ignore", category)
        scaler, train, test = fold.behind(candidate.scaler)
        models = candidate.estimator.fit_path(train.X, train.y, Cs, **train.weights())
        if whole:
            train, test = fold.parts()
            models = [behind_scaler(scaler, model) for model in models]
        if candidate.probability:
            models = [with_probabilities(model, train.X, train.y) for model in models]
        return [(scorer(m, test.X, test.y, **test.weights()), _converged(m)) for m in models]


def _converged(model) -> bool:
    model = uncalibrated(model)
    machine = model[-1] if isinstance(model, Pipeline) else model
    return machine.converged_


def sample_rows(X, y, most: int, random_state: int | None = 0) -> np.ndarray:
    """Return at most ``most`` row indices, stratified if every class has enough rows."""
    everything = np.arange(X.shape[0])
    if len(everything) <= most:
        return everything
    _, counts = np.unique(y, return_counts=True)
    stratify = y if counts.min() >= 2 and most >= len(counts) else None
    chosen, _ = train_test_split(
        everything, train_size=most, stratify=stratify, random_state=random_state
    )
    return np.sort(chosen)
