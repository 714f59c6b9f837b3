"""Choose machine, kernel and parameters for any data, within a time limit.

Candidates are compared on a sample of the rows, by cross-validation along paths of C.  A grid is
extended if its best value is at its end.  Then the best of each kernel are compared on more rows,
because a kernel that wins on a few thousand rows need not win on all.  Without more rows, the best
few are compared again in other folds, because the best of many on three folds may be lucky.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler

from widemargin.additive import AdditiveSVC
from widemargin.additive.frames import is_frame
from widemargin.errors import IdentifierWarning, Message, warn_user
from widemargin.kernel import KernelSVC
from widemargin.progress import FitStopper
from widemargin.scoring import check_scoring
from widemargin.selection import Candidate, Trial, behind_scaler, pooled, ranked, sample_rows, tune
from widemargin.table_encoder import TableEncoder

CS = (0.1, 1.0, 10.0, 100.0)
FOLDS = 3
ROWS = 5000  # rows of the first comparison
MORE = 4  # times as many rows for the second one
NEAR = 0.02  # compare candidates within this of the best score again
CONTENDERS = 12  # most of them in the first round of other folds; then the better half, twice
ROUNDS = 3
ROUND_FOLDS = 5
EARLY_FROM = 200_000  # from this many rows on, an RBF model is early
SEARCH_SHARE = 0.5  # of the time; the rest is for the final fit
_ADDITIVE = ("linear", "chi2", "intersection")
_WIDTHS = (0.25, 1.0, 4.0)  # in units of gamma="scale"
_STEP, _MOST_STEPS = 4.0, 3  # factor and number of extensions of gamma's grid
_MOST_C = 1e4


class Deadline(FitStopper):
    """A time limit; as a scikit-learn callback, it ends fits when it is over.

    They keep their current solution, and warn of its gap.  It is also over once one of ``others``
    is.

    Examples
    --------
    >>> Deadline(60.0).is_over
    False
    """

    def __init__(self, seconds: float, *others: FitStopper):
        self._until, self._others = time.monotonic() + seconds, others

    @property
    def left(self) -> float:
        return self._until - time.monotonic()

    @property
    def is_over(self) -> bool:
        return self.left <= 0 or any(other.is_over for other in self._others)


@dataclass(frozen=True)
class Easy:
    """The search for a model of some data.

    Attributes
    ----------
    X, y : training data
        X may have missing values and, as a data frame, categories: additive kernels learn from
        them directly, others behind a `TableEncoder`.
    scoring : str
        Score to compare candidates by (`scoring.get_scorer`).
    seconds : float
        Time limit of search and final fit; a fit that exceeds it keeps its current solution.
    parameters : dict
        Parameters of both machines: ``n_jobs``, ``class_weight``, ``random_state``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(Easy(X, y, seconds=30.0).fit().score(X, y) > 0.9)
    True
    """

    X: Any
    y: np.ndarray
    scoring: str = "accuracy"
    seconds: float = 600.0
    parameters: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "y", np.asarray(self.y)
        )  # a pandas series would be indexed by its labels

    def trials(self, *stoppers: FitStopper) -> Iterator[list[Trial]]:
        """Yield the trials of each candidate, the best C first; at least one, despite the limit.

        A candidate that rejects the data is left out, with a warning.  ``stoppers`` can end the
        search early.
        """
        clock = Deadline(SEARCH_SHARE * self.seconds, *stoppers)
        self._check()
        rows = sample_rows(self.X, self.y, ROWS)
        found: list[Trial] = []
        for candidate in self._first_candidates():
            if found and clock.is_over:
                return
            trials = self._compared(candidate, CS, rows, clock)
            found += trials
            yield trials
        if found:
            for trials in self._at_the_ends(found, rows, clock):
                found += trials
                yield trials
            more, finalists = self._more_rows(found, len(rows), clock)
            if len(more):
                for trial in finalists:
                    yield self._compared(trial.candidate, (trial.C,), more, clock)
            else:
                yield from self._in_rounds(found, rows, clock)

    def choice(self, trials: Sequence[Trial]) -> list[Trial]:
        """Sort the trials on most rows and, among these, most folds; the choice comes first.

        Candidates with several trials have their last one, which includes the folds of all.
        """
        last = {(id(t.candidate), t.C, t.rows): t for t in sorted(trials, key=lambda t: t.folds)}
        looks: dict[tuple[int, int], list[Trial]] = {}
        for trial in last.values():
            looks.setdefault((trial.rows, trial.folds), []).append(trial)
        return [trial for look in sorted(looks, reverse=True) for trial in ranked(looks[look])]

    def fit(self):
        """Return the choice trained on all rows, as the command ``easy`` does, without output."""
        clock = Deadline(self.seconds)
        found = [trial for trials in self.trials() for trial in trials]
        if not found:
            raise ValueError("No candidate could be trained on this data.")
        best = self.choice(found)[0]
        chosen = self.last(best, clock.left)
        scaler, machine = chosen.unfitted(best.C)
        machine.set_callbacks(clock)
        machine.fit(self.X if scaler is None else scaler.fit_transform(self.X), self.y)
        return behind_scaler(scaler, machine.set_callbacks())

    def last(self, best: Trial, seconds: float) -> Candidate:
        """Return the candidate for all rows: early if an exact model would exceed ``seconds``.

        The time of exact kernel models grows with the square of the number of rows.
        """
        machine = best.candidate.estimator
        of_one = best.seconds / (best.folds * best.path)
        growth = (self.X.shape[0] / (best.rows * (1 - 1 / FOLDS))) ** 2
        if not _is_rbf(best) or machine.early or of_one * growth <= seconds:
            return best.candidate
        return replace(best.candidate, estimator=clone(machine).set_params(early=True))

    def _check(self) -> None:
        """Refuse data on which every candidate would fail."""
        classes, counts = np.unique(self.y, return_counts=True)
        check_scoring(self.scoring, classes)
        if counts.max() < FOLDS:
            raise ValueError(
                f"Too few rows to choose by: the largest class has {counts.max()}, but {FOLDS} are "
                "needed. Choose kernel and C yourself."
            )

    def _first_candidates(self) -> Iterator[Candidate]:
        for kernel in _ADDITIVE:
            machine = AdditiveSVC(kernel, missing="learn", **self._common)
            yield Candidate({"kernel": kernel}, machine)
        scale = self._scale()
        for factor in _WIDTHS:
            yield self._rbf(factor * scale)

    @property
    def _common(self) -> dict[str, Any]:
        return {"random_state": 0, **self.parameters}

    def _rbf(self, gamma: float) -> Candidate:
        settings = {"kernel": "rbf", "gamma": float(f"{gamma:.3g}")}
        early = self.X.shape[0] >= EARLY_FROM
        machine = KernelSVC("rbf", gamma=settings["gamma"], early=early, **self._common)
        return Candidate(settings, machine, self._scaler())

    @cached_property
    def _has_gaps(self) -> bool:
        return bool(np.isnan(self.X.data if sp.issparse(self.X) else self.X).any())

    def _scaler(self):
        """Return the scaler or encoder of X for general kernels."""
        if is_frame(self.X) or self._has_gaps:
            return TableEncoder()
        return MaxAbsScaler() if sp.issparse(self.X) else MinMaxScaler()

    def _scale(self) -> float:
        """Return gamma="scale" of the scaled data."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IdentifierWarning)  # the final fit warns
            scaled = self._scaler().fit_transform(self.X)
        mean = scaled.mean()
        square = (scaled.multiply(scaled) if sp.issparse(scaled) else np.square(scaled)).mean()
        return 1 / (scaled.shape[1] * max(float(square - mean**2), 1e-12))

    def _compared(
        self,
        candidate: Candidate,
        Cs: Sequence[float],
        rows: np.ndarray,
        clock: Deadline,
        *,
        folds: int = FOLDS,
        seed: int = 0,
    ) -> list[Trial]:
        how: dict[str, Any] = {"folds": folds, "random_state": seed, "scoring": self.scoring}
        X, y = candidate.part(self.X, rows), self.y[rows]
        candidate.estimator.set_callbacks(clock)
        try:
            return tune([candidate], X, y, Cs, **how)
        except ValueError as error:
            warn_user(Message("{name} is left out: {error}", name=candidate.name, error=error))
            return []
        finally:
            candidate.estimator.set_callbacks()

    def _at_the_ends(
        self, found: Sequence[Trial], rows: np.ndarray, clock: Deadline
    ) -> Iterator[list[Trial]]:
        """Extend grids whose best value is at an end: of gamma, and upwards of C.

        Includes kernels within a standard error of the best, which may be behind by chance.
        """
        trials = list(found)
        for _ in range(_MOST_STEPS):
            order = ranked(trials)
            near = _best_of_each_kernel(order, order[0].standard_error)
            new = [more for best in near for more in self._beyond(best, trials)]
            for candidate, Cs in new:
                if clock.is_over:
                    return
                own = self._compared(candidate, Cs, rows, clock)
                trials += own
                yield own
            if not new:
                return

    def _beyond(
        self, best: Trial, trials: Sequence[Trial]
    ) -> Iterator[tuple[Candidate, Sequence[float]]]:
        """Return the next candidate and its Cs if a kernel's best value is at an end."""
        if _is_rbf(best):
            gammas = sorted({t.candidate.settings["gamma"] for t in trials if _is_rbf(t)})
            gamma = best.candidate.settings["gamma"]
            ends = {gammas[0]: gamma / _STEP, gammas[-1]: gamma * _STEP}
            if gamma in ends:
                yield self._rbf(ends[gamma]), CS
        if best.C == max(t.C for t in trials if t.candidate is best.candidate) < _MOST_C:
            yield best.candidate, (10 * best.C,)

    def _more_rows(
        self, found: Sequence[Trial], n_rows: int, clock: Deadline
    ) -> tuple[np.ndarray, list[Trial]]:
        """Return a larger sample and the best of each kernel; nothing without more rows or time."""
        rows = sample_rows(self.X, self.y, MORE * ROWS)
        finalists = _best_of_each_kernel(ranked(found), NEAR)
        growth = (len(rows) / n_rows) ** 2  # growth of an RBF model's time; others grow less
        needed = sum(trial.seconds / trial.path for trial in finalists) * growth
        if len(rows) < 2 * n_rows or len(finalists) < 2 or needed > clock.left:
            return rows[:0], []
        return rows, finalists

    def _in_rounds(
        self, found: Sequence[Trial], rows: np.ndarray, clock: Deadline
    ) -> Iterator[list[Trial]]:
        """Compare the best few in other folds, then the better half of them, and so on.

        Scores are means over all folds so far.  An unfinished round does not count.
        """
        order = ranked(found)
        near = [trial for trial in order if trial.score >= order[0].score - NEAR]
        contenders = near[:CONTENDERS]
        _, counts = np.unique(self.y[rows], return_counts=True)
        folds = int(np.clip(counts.min(), FOLDS, ROUND_FOLDS))
        for seed in range(1, ROUNDS + 1):
            # fits use 4/5 of the rows instead of 2/3, and time grows with the square
            needed = sum(1.5 * folds * t.seconds / (t.path * t.folds) for t in contenders)
            if len(contenders) < 2 or needed > clock.left:
                return
            again = []
            for candidate in {id(t.candidate): t.candidate for t in contenders}.values():
                own = {t.C: t for t in contenders if t.candidate is candidate}
                trials = self._compared(candidate, list(own), rows, clock, folds=folds, seed=seed)
                again.append([pooled(own[trial.C], trial) for trial in trials])
            if clock.is_over:
                return
            yield from again
            contenders = ranked([t for own in again for t in own])[: (len(contenders) + 1) // 2]


def _best_of_each_kernel(order: Sequence[Trial], near: float) -> list[Trial]:
    """Return the best trial of each kernel whose score is near the overall best."""
    kernels = dict.fromkeys(trial.candidate.settings["kernel"] for trial in order)
    best = (next(t for t in order if t.candidate.settings["kernel"] == k) for k in kernels)
    return [trial for trial in best if trial.score >= order[0].score - near]


def _is_rbf(trial: Trial) -> bool:
    return trial.candidate.settings["kernel"] == "rbf"
