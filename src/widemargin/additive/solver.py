"""Dual coordinate descent (Algorithm 1 of ICD, PmSVM and PmSVM-LUT): the outer loop.

Sweeps in random order over the active samples, with shrinking; a stop is confirmed by a pass over
all samples at fixed weights.  The problem defines the sweep.

A few samples have far to go while the others wait.  So after a sweep the samples that moved are
visited again, and again those that moved again, which saves nearly a fifth of all visits
(benchmarks/results/fewer_visits.md).

Samples may come in blocks, of which only a few fit in memory.  A sweep then draws groups of blocks,
different in every sweep, and visits a group's samples in random order.  One block at a time (Yu,
Hsieh, Chang and Lin, KDD 2010) takes ten times as many sweeps; groups of four take about as many as
in memory without second visits, which several blocks do not get
(benchmarks/results/out_of_core.md).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np

from widemargin import _core
from widemargin.additive.problem import DualProblem
from widemargin.engine import Control
from widemargin.losses import N_SUMS, PG_MAX, PG_MIN, Certificate

_REOPEN = 20  # sweeps between visits of shrunk samples
_FEWER = 0.9  # if more than this share of the active samples moved, sweep over all instead
_LANES: int = _core.LANES


@dataclass(frozen=True)
class Stopping:
    """When to stop, and how often samples that keep moving are visited from sweep to sweep."""

    tol: float
    max_iter: int
    visits: int = 4
    by_gap: bool = True  # else by LIBLINEAR's rule; tables without a gap always are


@dataclass
class Outcome:
    """How a minimisation ended: the certificate, and a record of every sweep.

    ``needs_double``: the problem's sums say it is solved and the judge's certificate says it is
    not, so only double precision can improve it.
    """

    certificate: Certificate
    n_iter: int
    converged: bool  # whether the certificate is within tol
    history: list[dict] = field(default_factory=list)
    needs_double: bool = False


def minimise(
    problem: DualProblem,
    stopping: Stopping,
    rng: np.random.Generator,
    control: Control,
    judge: Callable[[], Certificate] | None = None,
    own_first: bool = False,
) -> Outcome:
    """Sweep until every problem of the batch is within ``tol`` of its optimum.

    Symmetric tables: the relative duality gap, unless ``stopping`` asks for LIBLINEAR's rule on the
    projected gradient, which all others have.  Both are first estimated from the values met during
    a sweep and then measured at fixed weights over all samples, shrunk ones included.

    A ``judge`` measures in double precision what the problem measures in single precision.  If
    only the problem's measure is within ``tol``, the outcome says `needs_double`.  ``own_first``
    tells that the judge's costs far more, so that it is for what the problem takes for solved.
    """
    samples, tol, started = ActiveSamples(problem), stopping.tol, time.perf_counter()
    by_gap = problem.symmetric and stopping.by_gap
    worthwhile = tol  # measure when the estimate is below this
    last = np.inf  # estimate
    history: list[dict] = []
    certificate = None
    if problem.started:  # it may be optimal already
        certificate = measure(problem, control)
        if _distance(certificate, by_gap) <= tol:
            certificate = judge() if judge else certificate
            solved = _distance(certificate, by_gap) <= tol
            return Outcome(certificate, 0, solved, history, needs_double=not solved)

    for epoch in range(1, stopping.max_iter + 1):
        n_active, account = len(samples.active), samples.sweep(rng, control)
        swept = Certificate.from_account(account, problem.n_problems)
        if not np.all(np.isfinite(account)):  # only tables without an objective can diverge
            return Outcome(judge() if judge else swept, epoch, False, history)
        estimate = _distance(swept, by_gap, certificate)
        seconds = time.perf_counter() - started
        record = {"epoch": epoch, "active": n_active, "estimate": estimate, "seconds": seconds}
        history.append(record)
        halted = control.epoch(problem, estimate)
        ends = halted or epoch == stopping.max_iter
        if estimate <= worthwhile or ends:
            certificate = judge() if judge and not own_first else measure(problem, control)
            if judge and own_first and (ends or _distance(certificate, by_gap) <= tol):
                certificate = judge()
            measured = _distance(certificate, by_gap)
            primal, dual = float(certificate.primal.sum()), float(certificate.dual.sum())
            history[-1].update(measured=measured, primal=primal, dual=dual)
            if measured <= tol or halted:
                return Outcome(certificate, epoch, measured <= tol, history)
            if judge and _distance(measure(problem, control), by_gap) <= tol:
                return Outcome(certificate, epoch, False, history, needs_double=True)
            # The estimate was optimistic: require a smaller one before the next measurement.
            worthwhile = 0.8 * min(worthwhile, estimate)
            samples.reopen()
        elif epoch % _REOPEN == 0:
            samples.reopen()
        else:
            samples.shrink(account)
        if problem.symmetric and stopping.visits > 1 and epoch < stopping.max_iter:
            # The next sweep may be the last if the estimate keeps falling at this rate.
            nearly = estimate * min(estimate, last) <= worthwhile * last
            times = 1 if nearly else stopping.visits - 1
            record["again"] = samples.visit_again(times, rng, control)
        last = estimate
    assert certificate is not None
    return Outcome(certificate, stopping.max_iter, False, history)


def measure(problem: DualProblem, control: Control) -> Certificate:
    """Pass over all samples at fixed weights."""
    return Certificate.from_account(measured_sums([problem], control), problem.n_problems)


def measured_sums(problems: Iterable[DualProblem], control: Control) -> np.ndarray:
    """Return the sums of such a pass, over one problem after another."""
    account = np.zeros((N_SUMS, _LANES))
    for problem in problems:
        _add_sums(problem, account, control)
    return account


def _add_sums(problem: DualProblem, account: np.ndarray, control: Control) -> None:
    for dual in problem.duals([(k,) for k in range(len(problem.cuts) - 1)]):
        begin = 0
        while begin < dual.n_rows:
            control.check()
            begin = dual.certify(begin, account)


class ActiveSamples:
    """The samples that sweeps visit, and LIBLINEAR's bounds for shrinking."""

    def __init__(self, problem: DualProblem):
        self._problem = problem
        # The outcome of each sample's last visit.
        self._status = np.zeros(problem.n_rows, dtype=np.uint8)
        self._moved = np.zeros(0, dtype=np.int32)  # samples that moved in the last sweep
        self.reopen()

    def reopen(self) -> None:
        """Activate all samples; none may leave in the next sweep."""
        self.active = np.arange(self._problem.n_rows, dtype=np.int32)
        self._status[:] = 0
        self._bounds = self._no_bounds()

    @property
    def state(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the active samples and the bounds, for `resume`."""
        return self.active, self._bounds

    def resume(self, state: tuple[np.ndarray, np.ndarray]) -> None:
        """Continue from this state."""
        self.active, self._bounds = state

    def sweep(self, rng: np.random.Generator, control: Control) -> np.ndarray:
        """Visit the active samples in random order; return the sums."""
        account = self._visit(self.active, self._bounds, rng, control)
        self._moved = self._moved_samples()
        return account

    def _moved_samples(self) -> np.ndarray:
        """Return the samples that moved in the last visit."""
        return np.flatnonzero(self._status == _core.MOVED).astype(np.int32)

    def visit_again(self, times: int, rng: np.random.Generator, control: Control) -> int:
        """Visit the samples that moved again, while they keep moving; return the number of visits.

        Does nothing with several blocks, which would be read again.
        """
        samples, visits = self._moved, 0
        if len(self._problem.cuts) > 2 or len(samples) > _FEWER * len(self.active):
            return 0
        for _ in range(times):
            self._visit(samples, self._no_bounds(), rng, control)
            visits += len(samples)
            samples = self._moved_samples()
        self._status[:] = 0
        return visits

    def _visit(
        self, samples: np.ndarray, bounds: np.ndarray, rng: np.random.Generator, control: Control
    ) -> np.ndarray:
        """Visit samples in random order, in slices that can be interrupted.

        Does not load blocks without any of them.
        """
        account = np.zeros((N_SUMS, _LANES))
        ends = samples.searchsorted(self._problem.cuts.astype(samples.dtype)).tolist()
        cuts = self._problem.cuts.tolist()
        blocks = [k for k in rng.permutation(len(cuts) - 1).tolist() if ends[k] < ends[k + 1]]
        n = self._problem.at_once
        groups = [blocks[i : i + n] for i in range(0, len(blocks), n)]
        for group, dual in zip(groups, self._problem.duals(groups), strict=True):
            first = list(accumulate((cuts[k + 1] - cuts[k] for k in group), initial=0))
            chosen = [
                samples[ends[k] : ends[k + 1]] + np.int32(at - cuts[k])  # numbers within the group
                for k, at in zip(group, first, strict=False)
            ]
            rows = np.concatenate(chosen)
            order, begin = _core.shuffled(rows, int(rng.integers(1 << 63))), 0
            status = np.zeros(dual.n_rows, dtype=np.uint8)
            while begin < len(order):
                control.check()
                begin = dual.sweep(order, begin, bounds, status, account)
            for k, at in zip(group, first, strict=False):
                self._status[cuts[k] : cuts[k + 1]] = status[at : at + cuts[k + 1] - cuts[k]]
        return account

    def shrink(self, account: np.ndarray) -> None:
        """Drop the samples at rest in the last sweep; its extremes bound the next sweep."""
        left = self.active.compress(self._status.take(self.active) != _core.RESTS)
        if len(left) == 0:  # none would move: visit all again
            left = np.arange(self._problem.n_rows, dtype=np.int32)
        self.active = left
        self._status[:] = 0
        n = self._problem.n_problems
        high, low = account[PG_MAX, :n], account[PG_MIN, :n]
        self._bounds = self._no_bounds()
        # An extreme on the wrong side of 0 bounds nothing.
        self._bounds[0, :n] = np.where(high > 0, high, np.inf)
        self._bounds[1, :n] = np.where(low < 0, low, -np.inf)

    def _no_bounds(self) -> np.ndarray:
        """Return bounds that no gradient passes; empty lanes (gradient 0) always rest."""
        bounds = np.full((2, _LANES), -np.inf)
        bounds[0, : self._problem.n_problems] = np.inf
        return bounds


def _distance(certificate: Certificate, by_gap: bool, last: Certificate | None = None) -> float:
    """Return the largest relative gap or violation.

    A sweep over a shrunk set misses the losses of samples that rest at their upper bound, so the
    gap is also measured against the last full objective.
    """
    if not by_gap:
        return float(certificate.violation.max())
    primal = certificate.primal if last is None else np.maximum(certificate.primal, last.primal)
    with np.errstate(over="ignore"):  # sums met during a sweep may be negative
        return float((certificate.gap / np.maximum(primal, np.finfo(np.float64).tiny)).max())
