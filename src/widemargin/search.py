"""What `AutoSVC` and `AutoSVR` try, on which rows, and until when.

Every machine is tried at one good setting on few rows, which also tells how fast it is; what lost
by far is left out.  Then families of kernels, and the settings that a model of their scores expects
most of, are compared along paths of C on as many rows as the time allows.  Then the best few meet
again, on twice the rows or, where there are no more, in other folds, because the best of many on
three folds may be lucky; the better half stays each time.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from widemargin.candidates import MACHINES, Candidates, Family, kernel_of, machine_of
from widemargin.errors import Message, RareClassWarning, warn_user
from widemargin.pace import TYPICAL, Deadline, Pace
from widemargin.progress import FitStopper
from widemargin.score_model import CS, Tried
from widemargin.scoring import Scorer
from widemargin.selection import (
    Candidate,
    Fold,
    Sample,
    Trial,
    cross_validated,
    folds_of,
    pooled,
    ranked,
)

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
CHEAPER = 0.5  # share of the best's typical time; then a tie is decided by time
ROUNDS = 3
ROUND_FOLDS = 5
_FIRST_C = {"additive": 1.0, "kernel": 10.0}
MOST_SETTINGS = 40  # paths of C that are compared on the same rows, at most
SETTINGS_SHARE = 0.7  # of the time of the search after the first look; the rest is for rounds


class Look(NamedTuple):
    """Rows, and the folds in which candidates are compared on them."""

    sample: Sample
    folds: list[Fold]

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
        self._first: list[tuple[Trial, Family]] = []  # of the first look
        self._pace = Pace()
        self._asked: tuple[int, int, int] | None = None  # rows, folds and seed of the last look

    def trials(self) -> Iterator[list[Trial]]:
        """Yield the trials of each candidate; at least one, despite the limit.

        A candidate that rejects the data is left out, with a warning.
        """
        self._check()
        for step in (self._first_look, self._best_settings, self._rounds):
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
        cost = {id(t): TYPICAL[kernel_of(t)] for t in order}  # the clock must not decide
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
        n, who = len(self.sample.y), "n_samples ="
        if not self.sample.is_of_numbers:
            n, who = np.unique(self.sample.y, return_counts=True)[1].max(), "the largest class has"
        if n < FOLDS:
            raise ValueError(
                f"Too few rows to choose by: {who} {n}, but {FOLDS} are needed. Choose kernel "
                "and C yourself."
            )

    # ------------------------------------------------------------------ looks

    def _look(self, most: int, folds: int = FOLDS, seed: int = 0) -> Look:
        """Return rows and folds; the last ones are kept."""
        asked = (min(most, len(self.sample.y)), folds, seed)
        if asked != self._asked:
            with warnings.catch_warnings():
                if self._asked is not None:
                    warnings.simplefilter("ignore", RareClassWarning)  # once is enough
                sample = self.sample.drawn(most, self.seed)
                self._now = Look(sample, folds_of(sample, folds, self.seed + seed))
            self._asked = asked
        return self._now

    def _left(self) -> float:
        """Return the seconds left for the search: the final fit needs the others."""
        most = self.seconds * MOST_SHARE
        if self.found:
            final = self._pace.seconds(kernel_of(self.choice()[0]), len(self.sample.y))
            most = min(most, max(self.seconds - 1.5 * final, self.seconds * LEAST_SHARE))
        return most - self.clock.spent

    def _needed(self, candidate: Candidate, n_Cs: int, look: Look) -> float:
        fits, rows = n_Cs * len(look.folds), look.folds[0].n_train
        return fits * self._pace.seconds(candidate.settings["kernel"], rows)

    def _has_time(
        self, candidate: Candidate, Cs: Sequence[float], look: Look, seconds: float
    ) -> bool:
        """Whether there is time for a candidate; if not, note it."""
        needed = self._needed(candidate, len(Cs), look)
        if 0 < seconds >= needed:
            return True
        self._not_tried(candidate, look, needed)
        return False

    def _not_tried(self, candidate: Candidate, look: Look, seconds: float) -> None:
        self.untried[f"{candidate.name} on {look.n_rows} rows"] = seconds

    def _compared(
        self, candidate: Candidate, Cs: Sequence[float], look: Look, seconds: float
    ) -> list[Trial]:
        """Return the trials of a candidate; without those that a limit cut short."""
        clock = Deadline(seconds, *self.stoppers)
        candidate.estimator.set_callbacks(clock)
        try:
            own = cross_validated(candidate, look.folds, Cs, self.scoring)
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
        look, families = self._look(FEW), list(self._candidates.kernels())
        until = Deadline(FIRST_SHARE * self.seconds - self.clock.spent)
        for k, family in enumerate(families):
            candidate, C = self._candidates.make(family), _FIRST_C[machine_of(family)]
            Cs, seconds = self._candidates.Cs(family, [C]), until.left / (len(families) - k)
            own = self._kept(self._compared(candidate, Cs, look, seconds))
            if own:
                self._first.append((own[0], family))
            else:
                self._not_tried(candidate, look, max(seconds, self._needed(candidate, 1, look)))
            yield own

    def _kept(self, own: list[Trial]) -> list[Trial]:
        self.found += own
        return own

    def _best_settings(self) -> Iterator[list[Trial]]:
        """Compare all families along paths of C, then what a model of their scores expects."""
        kernels = self._promising()
        families = [*kernels, *(v for kernel in kernels for v in self._candidates.variants(kernel))]
        look, until = self._look(self._rows_for(families)), Deadline(self._left() * SETTINGS_SHARE)
        has_width = [family["kernel"] == "rbf" for family in families]
        tried = Tried(has_width)
        for _ in range(MOST_SETTINGS):
            place = tried.next_place()
            if place is None:
                return
            family = families[place.family]
            candidate = self._candidates.make(family, 4.0**place.width)
            Cs = self._candidates.Cs(family, place.Cs)
            own = []
            if self._has_time(candidate, Cs, look, until.left):
                own = self._compared(candidate, Cs, look, until.left)
            if len(own) < len(Cs):
                tried.leave_out(place.family)
            else:
                by_C = sorted(own, key=lambda trial: trial.C)
                tried.note(place, [t.score for t in by_C], [t.standard_error for t in by_C])
            if own:
                yield self._kept(own)

    def _promising(self) -> list[Family]:
        """Return the kernels that did not lose by far on few rows, the best first.

        A machine is held against all others, a kernel of a machine against those of the same.  Of
        several class weights a kernel keeps the best.
        """
        order = sorted(self._first, key=lambda first: -first[0].score)
        best = {"all": order[0][0].score} if order else {}
        for trial, family in order:
            best.setdefault(machine_of(family), trial.score)

        def lost(trial: Trial, family: Family) -> bool:
            own = trial.score + 2 * trial.standard_error
            others = best[machine_of(family)]
            return own + MARGIN["kernel"] < best["all"] or own + MARGIN["additive"] < others

        first = {kernel_of(trial): (trial, family) for trial, family in reversed(order)}
        left = [both for both in first.values() if not lost(*both)]
        return [family for _, family in sorted(left, key=lambda first: -first[0].score)]

    def _rows_for(self, families: list[Family]) -> int:
        """Return how many rows leave time for a path of C of each family."""
        rows = min(ROWS, len(self.sample.y))
        while rows > FEW:
            fitted = round(rows * (1 - 1 / FOLDS))
            of_each = (self._pace.seconds(family["kernel"], fitted) for family in families)
            if FOLDS * len(CS) * sum(of_each) <= self._left() * SETTINGS_SHARE:
                break
            rows = max(FEW, round(rows / 1.5))
        return rows

    def _last_look(self) -> list[Trial]:
        """Return the trials on most rows, the best first."""
        rows = max((trial.rows for trial in self.found), default=0)
        return ranked(list({_key(t): t for t in self.found if t.rows == rows}.values()))

    def _rounds(self) -> Iterator[list[Trial]]:
        """Compare the best few on twice the rows or in other folds, then the better half of them.

        In other folds of the same rows, scores are means over all folds so far.  As many take part
        as there is time for.  An unfinished round does not count.
        """
        order = self._last_look()
        contenders = _contenders(order)
        for seed in range(1, ROUNDS + 1):
            if len(contenders) < 2:
                return
            look, more = self._next_look(contenders[0].rows, seed)
            needed = np.cumsum([self._needed(t.candidate, 1, look) for t in contenders])
            few = int(np.searchsorted(needed, self._left(), side="right"))
            if few < 2:
                self.untried[f"the best 2 again on {look.n_rows} rows"] = float(needed[1])
                return
            contenders = contenders[:few]
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
        fewest = len(self.sample.y)
        if not self.sample.is_of_numbers:
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
