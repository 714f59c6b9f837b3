"""How much time there is, and how long fits take."""

from __future__ import annotations

import time

import numpy as np

from widemargin.progress import FitStopper
from widemargin.selection import Trial

# Seconds of a typical fit, for what was not measured.
TYPICAL = {"linear": 1.0, "chi2": 3.0, "intersection": 5.0, "rbf": 30.0}


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
        self._began, self._others = time.monotonic(), others
        self._until = self._began + seconds

    @property
    def spent(self) -> float:
        return time.monotonic() - self._began

    @property
    def left(self) -> float:
        return self._until - time.monotonic()

    @property
    def is_over(self) -> bool:
        return self.left <= 0 or any(other.is_over for other in self._others)


class Pace:
    """Seconds of a fit, by kernel and number of rows, from the fits so far."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[int, list[float]]] = {}

    def note(self, trial: Trial) -> None:
        rows = round(trial.rows * (1 - 1 / trial.folds))
        seconds = (trial.seconds - trial.preparing) / (trial.folds * trial.path)
        self.note_fit(trial.candidate.settings["kernel"], rows, seconds)

    def note_fit(self, kernel: str, rows: int, seconds: float) -> None:
        self._seen.setdefault(kernel, {}).setdefault(rows, []).append(seconds)

    def seconds(self, kernel: str, rows: int, *, at_worst: bool = False) -> float:
        """Return the expected seconds of one fit; those of RBF grow with the square of the rows.

        Of a kernel that was not seen they follow from others.
        Where fits on two numbers of rows were seen, they tell how the time grows, unless the
        seconds ``at_worst`` are asked for.
        """
        by_rows = {n: float(np.mean(times)) for n, times in self._seen.get(kernel, {}).items()}
        if not by_rows:
            others = (self.seconds(k, rows) * TYPICAL[kernel] / TYPICAL[k] for k in self._seen)
            return max(others, default=0.0)
        most, least = max(by_rows), min(by_rows)
        power = 2.0 if kernel == "rbf" else 1.0
        if most >= 2 * least and by_rows[least] > 0 and not at_worst:
            seen = np.log(by_rows[most] / by_rows[least]) / np.log(most / least)
            power = float(np.clip(seen, 1.0, power))
        return by_rows[most] * (rows / most) ** power
