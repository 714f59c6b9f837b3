"""Random cases for one check until time is up; what fails is shrunk by hypothesis."""

from __future__ import annotations

import time
import traceback
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import sklearn
from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings

import widemargin
from stress import checks
from stress.children import in_child
from stress.problems import Case
from widemargin import AdditiveSVC

CASE_SECONDS = (
    300.0  # after which a case counts as hung; under sanitizers the slowest take two minutes
)
SHRINK_SECONDS = 15.0
_OWN = tuple(str(Path(module.__file__).parent) for module in (widemargin, sklearn))


@dataclass(frozen=True)
class Failure:
    """A broken promise."""

    kind: str  # the first of a kind is shrunk
    lines: list[str]
    said: str
    seed: int = 0

    def __str__(self) -> str:
        return "\n".join([f"# {self.kind} ({self.said}; seed {self.seed})", *self.lines])


@dataclass
class Count:
    """What came of a hunt."""

    cases: int = 0
    refused: int = 0  # by a message of the library's
    failed: int = 0
    failures: list[Failure] = field(default_factory=list)


class _Fails(Exception):  # noqa: N818
    """Tells hypothesis that a case fails."""


class _TimeIsUp(BaseException):
    """Goes through hypothesis, which catches exceptions only."""


def outcome(check: str, case: Case) -> Failure | str:
    """What one case comes to: "passed", "refused", or a failure."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        X, y, w = case.data.arrays()
        try:
            model = case.estimator().fit(X, y, w)
        except (ValueError, TypeError) as error:
            if refuses(error):
                return "refused"
            return _failure(check, case, error, "fit")
        except Exception as error:
            return _failure(check, case, error, "fit")
        if isinstance(model, AdditiveSVC) and not np.all(np.isfinite(model.model_.weights)):
            return "refused"  # a fit that diverged has warned, and predicts nothing
        try:
            checks.CHECKS[check].function(model, X, y, w)
        except Exception as error:
            return _failure(check, case, error, check)
    return "passed"


def refuses(error: Exception) -> bool:
    """Whether the library, or scikit-learn's checks of input, said no on purpose."""
    last = traceback.extract_tb(error.__traceback__)[-1].filename
    return last.startswith(_OWN)


def _failure(check: str, case: Case, error: Exception, where: str) -> Failure:
    said = f"{type(error).__name__}: {error}".replace("\n", " ")
    if isinstance(error, AssertionError) and ":" in str(error):
        fault = str(error).partition(":")[0]
    else:
        place = traceback.extract_tb(error.__traceback__)[-1]
        fault = f"{type(error).__name__} in {Path(place.filename).name}: {place.name}"
    kind = f"{where}: {case.machine.__name__} {case.kernel}: {fault}"
    return Failure(kind, case.lines(check), said[:300])


class Hunt:
    """One seed's cases for one check.

    The text of every case goes to ``trace`` before it is run, for whoever finds this process dead.
    ``isolated`` runs each in a process of its own, so that a crash can be shrunk like any failure.
    """

    def __init__(self, check: str, number: int, trace: Path, *, isolated: bool = False):
        self.check, self.number, self.trace = check, number, trace
        self.outcome = _in_child if isolated else outcome
        self.count = Count()
        self._known: dict[str, Failure | str] = {}
        self._wanted: str | None = None  # the kind that is being shrunk
        self._smallest: Failure | None = None

    def run(self, n_cases: int, seconds: float, kinds: set[str]) -> Count:
        """Up to ``n_cases``; failures of ``kinds`` are not shrunk."""
        self._kinds, self._until = kinds, time.monotonic() + seconds
        strategy = checks.CHECKS[self.check].cases
        options = settings(
            max_examples=n_cases,
            database=None,
            derandomize=False,
            deadline=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
            verbosity=Verbosity.quiet,
        )
        try:
            seed(self.number)(options(given(strategy)(self._try)))()
        except (_Fails, _TimeIsUp):
            if self._smallest is not None:
                self.count.failures.append(self._smallest)
        return self.count

    def _try(self, case: Case) -> None:
        lines = case.lines(self.check)
        key = "\n".join(lines)
        if key not in self._known:
            if self.count.cases and time.monotonic() > self._until:  # one case at least
                raise _TimeIsUp
            self.trace.write_text(key)
            found = self._known[key] = self.outcome(self.check, case)
            if self._wanted is None:
                self._add(found)
        found = self._known[key]
        if isinstance(found, Failure) and found.kind == self._wanted:
            self._smallest = replace(found, seed=self.number)
            raise _Fails

    def _add(self, found: Failure | str) -> None:
        self.count.cases += 1
        self.count.refused += found == "refused"
        if isinstance(found, Failure):
            self.count.failed += 1
            if found.kind in self._kinds:
                self.count.failures.append(replace(found, seed=self.number))
            else:
                self._wanted = found.kind
                self._until = time.monotonic() + SHRINK_SECONDS


# ------------------------------------------------------------------ a process per case


def _in_child(check: str, case: Case) -> Failure | str:
    answer = in_child(lambda: outcome(check, case), CASE_SECONDS)
    return answer.value or died(check, case.lines(check), answer.how)


def died(check: str, lines: list[str], how: str, number: int = 0) -> Failure:
    """The failure of a process that did not come back."""
    return Failure(f"{check}: process lost", lines, how, number)
