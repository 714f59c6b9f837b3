"""What `AutoSVC` tries, on which rows, and until when.

Every machine is tried at one good setting on few rows, which also tells how fast it is.  Then
kernels are compared along paths of C on as many rows as the time allows; what lost by far on few
rows is left out.  Grids go on where the best is at their end.  Then the best few meet again, on
twice the rows or, where there are no more, in other folds, because the best of many on three folds
may be lucky; the better half stays each time.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from widemargin.candidates import (
    MACHINES,
    Candidates,
    class_weight_of,
    is_rbf,
    kernel_of,
    machine_of,
)
from widemargin.errors import Message, RareClassWarning, warn_user
from widemargin.pace import Deadline, Pace
from widemargin.progress import FitStopper
from widemargin.scoring import Scorer
from widemargin.selection import (
    Candidate,
    Sample,
    Trial,
    cross_validated,
    pooled,
    ranked,
    stratified,
)

CS = (0.1, 1.0, 10.0, 100.0)
FOLDS = 3
FEW = 1000  # rows of the first look
ROWS = 5000  # rows of the grids, at most
MOST_ROWS = 20_000  # rows of the last comparison, at most
FIRST_SHARE = 0.2  # of the time, for the first look
LEAST_SHARE, MOST_SHARE = 0.35, 0.8  # of the time, for the whole search: the rest is for a fit
FIT_SHARE = 0.8  # of the time that is left, for final fits; the rest is for probabilities
MARGIN = {"additive": 0.03, "kernel": 0.1}  # what is behind by more on few rows is left out
NEAR = 0.02  # compare candidates within this of the best score again
CONTENDERS = 12  # most of them in the first round; then the better half, twice
# Of a typical fit, not of this one: the choice must not depend on the clock.
SECONDS = {"linear": 1.0, "chi2": 3.0, "intersection": 5.0, "rbf": 30.0}
CHEAPER = 0.5  # share of the best's time; then a tie is decided by time
ROUNDS = 3
ROUND_FOLDS = 5
_FIRST_C = {"additive": 1.0, "kernel": 10.0}
_STEP, _MOST_STEPS = 4.0, 3  # factor and number of extensions of gamma's grid
_MOST_C = 1e4


class Look(NamedTuple):
    """Rows, and the folds in which candidates are compared on them."""

    sample: Sample
    parts: list[tuple]

    @property
    def n_rows(self) -> int:
        return len(self.sample.y)


class Search:
    """A search for the machine and the parameters that suit some data.

    Parameters
    ----------
    sample : Sample
        Training data.  X may have missing values and, as a data frame, categories: additive
        kernels learn from them directly, others behind a `TableEncoder`.
    scoring : str or callable
        Score to compare candidates by (`scoring.get_scorer`).
    machines : sequence of {"additive", "kernel"}
    seconds : float
        Time limit of search and final fit.
    parameters : dict
        Parameters of both machines: ``n_jobs``, ``class_weight``, ``random_state``.
    stoppers : sequence of FitStopper
        End the search early.

    Attributes
    ----------
    found : list of Trial
    clock : Deadline
        Of search and final fit.
    untried : dict
        What there was no time for, and the seconds that it would have taken.
    """

    def __init__(
        self,
        sample: Sample,
        scoring: str | Scorer = "accuracy",
        machines: Sequence[str] = MACHINES,
        seconds: float = 60.0,
        parameters: dict[str, Any] | None = None,
        stoppers: Sequence[FitStopper] = (),
    ):
        self.sample, self.scoring, self.machines = sample, scoring, machines
        self.seconds, self.parameters = seconds, {"random_state": 0, **(parameters or {})}
        self.stoppers, self.clock = tuple(stoppers), Deadline(seconds, *stoppers)
        self.seed: int = self.parameters["random_state"]
        self.found: list[Trial] = []
        self.untried: dict[str, float] = {}
        self._candidates = Candidates(sample, scoring, machines, self.parameters)
        self._pace, self._looks = Pace(), dict[tuple, Look]()

    def trials(self) -> Iterator[list[Trial]]:
        """Yield the trials of each candidate; at least one, despite the limit.

        A candidate that rejects the data is left out, with a warning.
        """
        self._check()
        for step in (self._first_look, self._grids, self._at_the_ends, self._rounds):
            for own in step():
                yield own
                if any(stopper.is_over for stopper in self.stoppers):
                    return

    def choice(self) -> list[Trial]:
        """Sort the trials on most rows and, among these, most folds; the choice comes first.

        Candidates with several trials have their last one, which includes the folds of all.  The
        choice is the best, or a much cheaper one that is within a standard error of it.
        """
        if not self.found:
            return []
        last = {_key(t): t for t in sorted(self.found, key=lambda t: t.folds)}
        looks: dict[tuple[int, int], list[Trial]] = {}
        for trial in last.values():
            looks.setdefault((trial.rows, trial.folds), []).append(trial)
        first, *others = sorted(looks, reverse=True)
        order = self._cheaper_first(ranked(looks[first]))
        return [*order, *(trial for look in others for trial in ranked(looks[look]))]

    def _cheaper_first(self, order: list[Trial]) -> list[Trial]:
        """Put the cheapest of those tied with the best first, if it is cheaper by far."""
        best = order[0]
        cost = {id(t): SECONDS[kernel_of(t)] for t in order}
        tied = [t for t in order if t is best or (t.is_tied(best) and not t.unconverged)]
        cheapest = min(tied, key=lambda t: cost[id(t)])
        if cost[id(cheapest)] > CHEAPER * cost[id(best)]:
            return order
        return [cheapest, *(t for t in order if t is not cheapest)]

    def rows_to_train(self, best: Trial, so_far: int = 0) -> int:
        """Return the rows of the next final fit: all, if there is time; 0 if no more are worth it.

        Unless there is time for all rows at worst, the first fit takes a part of the time.  It
        tells more of the pace, and is the model if a later one does not end in time.
        """
        n, left = len(self.sample.y), FIT_SHARE * self.clock.left
        if self.seconds_of(best, n, at_worst=not so_far) <= left:
            return n if so_far < n else 0
        seconds = left if so_far else left / 3
        rows = self.rows_within(seconds, best, n, at_worst=not so_far)
        return rows if rows >= 1.5 * so_far else 0

    def rows_within(self, seconds: float, trial: Trial, most: int, *, at_worst=False) -> int:
        """Return on how many rows a fit of this kernel takes no more than ``seconds``."""
        rows = min(most, len(self.sample.y))
        while rows > FEW and self.seconds_of(trial, rows, at_worst=at_worst) > seconds:
            rows = max(FEW, round(rows / 1.2))
        return rows

    def seconds_of(self, trial: Trial, rows: int, *, at_worst: bool = False) -> float:
        return self._pace.seconds(kernel_of(trial), rows, at_worst=at_worst)

    def note_fit(self, trial: Trial, rows: int, seconds: float) -> None:
        """Note the seconds of a final fit."""
        self._pace.note_fit(kernel_of(trial), rows, seconds)

    def _check(self) -> None:
        """Refuse data on which every candidate would fail."""
        largest = np.unique(self.sample.y, return_counts=True)[1].max()
        if largest < FOLDS:
            raise ValueError(
                f"Too few rows to choose by: the largest class has {largest}, but {FOLDS} are "
                "needed. Choose kernel and C yourself."
            )

    # ------------------------------------------------------------------ looks

    def _look(self, most: int, folds: int = FOLDS, seed: int = 0) -> Look:
        """Return rows and folds; the same ones for the same request."""
        asked = (min(most, len(self.sample.y)), folds, seed)
        if asked not in self._looks:
            with warnings.catch_warnings():
                if self._looks:
                    warnings.simplefilter("ignore", RareClassWarning)  # once is enough
                sample = self.sample.drawn(most, self.seed)
                parts = stratified(sample.X, sample.y, folds, self.seed + seed)
            self._looks[asked] = Look(sample, parts)
        return self._looks[asked]

    def _left(self) -> float:
        """Return the seconds left for the search: the final fit needs the others."""
        most = self.seconds * MOST_SHARE
        if self.found:
            final = self._pace.seconds(kernel_of(self.choice()[0]), len(self.sample.y))
            most = min(most, max(self.seconds - 1.5 * final, self.seconds * LEAST_SHARE))
        return most - self.clock.spent

    def _needed(self, candidate: Candidate, n_Cs: int, look: Look) -> float:
        fits, rows = n_Cs * len(look.parts), len(look.parts[0][0])
        return fits * self._pace.seconds(candidate.settings["kernel"], rows)

    def _has_time(self, candidate: Candidate, Cs: Sequence[float], look: Look) -> bool:
        """Whether there is time for a candidate; if not, note it."""
        needed, left = self._needed(candidate, len(Cs), look), self._left()
        has_time = left > 0 and needed <= left
        name = f"{candidate.name} on {look.n_rows} rows"
        self.untried.pop(name, None)
        if not has_time:
            self.untried[name] = needed
        return has_time

    def _compared(
        self, candidate: Candidate, Cs: Sequence[float], look: Look, seconds: float
    ) -> list[Trial]:
        """Return the trials of a candidate; without those that a limit cut short."""
        clock = Deadline(seconds, *self.stoppers)
        candidate.estimator.set_callbacks(clock)
        try:
            own = cross_validated(candidate, look.sample, Cs, look.parts, self.scoring)
        except ValueError as error:
            if clock.is_over and self.found:  # Ctrl-C may turn into any error
                return []
            warn_user(Message("{name} is left out: {error}", name=candidate.name, error=error))
            return []
        finally:
            candidate.estimator.set_callbacks()
        if clock.is_over and self.found:
            own = [trial for trial in own if not trial.unconverged]
        for trial in own:
            self._pace.note(trial)
        return ranked(own)

    # ------------------------------------------------------------------ steps

    def _first_look(self) -> Iterator[list[Trial]]:
        """Try every machine at one setting, in equal shares of the time for that."""
        look, candidates = self._look(FEW), list(self._candidates.kernels())
        until = Deadline(FIRST_SHARE * self.seconds - self.clock.spent)
        for k, candidate in enumerate(candidates):
            C = _FIRST_C[machine_of(candidate)]
            yield self._kept(
                self._compared(candidate, [C], look, until.left / (len(candidates) - k))
            )

    def _kept(self, own: list[Trial]) -> list[Trial]:
        self.found += own
        return own

    def _grids(self) -> Iterator[list[Trial]]:
        """Compare what is left of the kernels along paths of C, the most promising first."""
        candidates = [c for kernel in self._promising() for c in self._candidates.widths(kernel)]
        look = self._look(self._rows_for(candidates))
        for candidate in candidates:
            if self._has_time(candidate, CS, look):
                yield self._kept(self._compared(candidate, CS, look, self._left()))

    def _promising(self) -> list[Candidate]:
        """Return the kernels that did not lose by far on few rows, the best first.

        A machine is held against all others, a kernel of a machine against those of the same.  Of
        several class weights a kernel keeps the best.
        """
        order = ranked(self.found)
        best = {"all": order[0].score} if order else {}
        for trial in order:
            best.setdefault(machine_of(trial.candidate), trial.score)

        def lost(trial: Trial) -> bool:
            own = trial.score + 2 * trial.standard_error
            machine = machine_of(trial.candidate)
            return own + MARGIN["kernel"] < best["all"] or own + MARGIN["additive"] < best[machine]

        first = {kernel_of(trial): trial for trial in reversed(order)}
        return [trial.candidate for trial in ranked(list(first.values())) if not lost(trial)]

    def _rows_for(self, candidates: list[Candidate]) -> int:
        """Return how many rows of the grids leave half of the time for what follows."""
        rows = min(ROWS, len(self.sample.y))
        while rows > FEW:
            fitted = round(rows * (1 - 1 / FOLDS))
            of_each = (self._pace.seconds(c.settings["kernel"], fitted) for c in candidates)
            if FOLDS * len(CS) * sum(of_each) <= self._left() / 2:
                break
            rows = max(FEW, round(rows / 1.5))
        return rows

    def _last_look(self) -> list[Trial]:
        """Return the trials on most rows, the best first."""
        rows = max((trial.rows for trial in self.found), default=0)
        return ranked(list({_key(t): t for t in self.found if t.rows == rows}.values()))

    def _at_the_ends(self) -> Iterator[list[Trial]]:
        """Extend grids whose best value is at an end: of gamma, and upwards of C.

        Includes kernels within a standard error of the best, which may be behind by chance.
        """
        for _ in range(_MOST_STEPS):
            order = self._last_look()
            if not order:
                return
            near = _best_of_each_kernel(order, order[0].standard_error)
            new = [more for best in near for more in self._beyond(best, order)]
            look = self._look(order[0].rows)
            for candidate, Cs in new:
                if self._has_time(candidate, Cs, look):
                    yield self._kept(self._compared(candidate, Cs, look, self._left()))
            if not new:
                return

    def _beyond(
        self, best: Trial, trials: Sequence[Trial]
    ) -> Iterator[tuple[Candidate, Sequence[float]]]:
        """Return the next candidate and its Cs if a kernel's best value is at an end."""
        if is_rbf(best):
            gammas = sorted({t.candidate.settings["gamma"] for t in trials if is_rbf(t)})
            gamma = best.candidate.settings["gamma"]
            ends = {gammas[0]: gamma / _STEP, gammas[-1]: gamma * _STEP}
            if gamma in ends:
                yield self._candidates.rbf(ends[gamma], class_weight_of(best.candidate)), CS
        if best.C == max(t.C for t in trials if t.candidate is best.candidate) < _MOST_C:
            yield best.candidate, (10 * best.C,)

    def _rounds(self) -> Iterator[list[Trial]]:
        """Compare the best few on twice the rows or in other folds, then the better half of them.

        In other folds of the same rows, scores are means over all folds so far.  An unfinished
        round does not count.
        """
        order = self._last_look()
        contenders = _contenders(order)
        for seed in range(1, ROUNDS + 1):
            if len(contenders) < 2:
                return
            look, more = self._next_look(contenders[0].rows, seed)
            needed = sum(self._needed(t.candidate, 1, look) for t in contenders)
            if needed > self._left():
                self.untried[f"the best {len(contenders)} again on {look.n_rows} rows"] = needed
                return
            again = self._again(contenders, look, more)
            if not again:
                return
            for own in again:
                yield self._kept(own)
            contenders = ranked([t for own in again for t in own])[: (len(contenders) + 1) // 2]

    def _next_look(self, rows: int, seed: int) -> tuple[Look, bool]:
        """Return twice the rows, or other folds of the same ones; and whether they are more."""
        most = min(2 * rows, MOST_ROWS, len(self.sample.y))
        if most > 1.2 * rows:
            return self._look(most), True
        fewest = np.unique(self._look(rows).sample.y, return_counts=True)[1].min()
        return self._look(rows, int(np.clip(fewest, FOLDS, ROUND_FOLDS)), seed), False

    def _again(self, contenders: list[Trial], look: Look, more: bool) -> list[list[Trial]]:
        """Return the trials of all contenders, or nothing if a limit cut them short."""
        again = []
        for candidate in {id(t.candidate): t.candidate for t in contenders}.values():
            own = {t.C: t for t in contenders if t.candidate is candidate}
            trials = self._compared(candidate, list(own), look, self._left())
            if len(trials) < len(own) or any(s.is_over for s in self.stoppers) or self._left() < 0:
                return []
            again.append(trials if more else [pooled(own[t.C], t) for t in trials])
        return again


def _contenders(order: list[Trial]) -> list[Trial]:
    """Return the best few, the best of each kernel that is near among them."""
    near = [trial for trial in order if trial.score >= order[0].score - NEAR]
    first = _best_of_each_kernel(near, NEAR) if near else []
    others = [trial for trial in near if not any(trial is other for other in first)]
    return ranked([*first, *others[: CONTENDERS - len(first)]])


def _best_of_each_kernel(order: Sequence[Trial], near: float) -> list[Trial]:
    """Return the best trial of each kernel whose score is near the overall best."""
    kernels = dict.fromkeys(kernel_of(trial) for trial in order)
    best = (next(t for t in order if kernel_of(t) == k) for k in kernels)
    return [trial for trial in best if trial.score >= order[0].score - near]


def _key(trial: Trial) -> tuple:
    return trial.candidate.name, trial.C, trial.rows
