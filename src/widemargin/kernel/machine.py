"""How kernel machines fit: all of it but the parameters and the targets."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import replace
from functools import lru_cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from widemargin.digest import digest
from widemargin.engine import Threads
from widemargin.errors import AT_LIMIT, CONVERGING, STALLED, Message, warn_user
from widemargin.kernel.attributes import coefficients, intercepts, iterations
from widemargin.kernel.backend import MOST_ROWS, Backend, Host
from widemargin.kernel.certificate import is_definite
from widemargin.kernel.checkpoint import Checkpoint, NoCheckpoint
from widemargin.kernel.divide import (
    AUTO_STRIDE,
    Division,
    FitState,
    Plan,
    Services,
    TrainingRows,
    certify_level,
    divide_and_conquer,
    support_of,
    with_levels,
)
from widemargin.kernel.exact import KernelRows
from widemargin.kernel.input import choose_gamma, read_data
from widemargin.kernel.kernels import FAR, DotKernel, make_kernel
from widemargin.kernel.lazy_rows import LazyRows, in_memory
from widemargin.kernel.model import KernelModel
from widemargin.kernel.precision import Prepared, in_range, predicts_in_single
from widemargin.kernel.problems import Variables
from widemargin.kernel.solver import SolverSettings
from widemargin.kernel.spread import Spread
from widemargin.kernel.tasks import PathRows
from widemargin.kernel.training import TrainingSet
from widemargin.kernel.warm_start import Dual, Duals
from widemargin.machine import FitRecord, Machine, near, recorded
from widemargin.multiclass import Numbers, Targets
from widemargin.progress import log, progress_of
from widemargin.resources import LEAST_MEMORY, free_memory, one_blas_thread, total_memory
from widemargin.stored import Store, StoredMatrix
from widemargin.validation import check_sums, median

EARLY_ROWS = 8000
CACHE_SHARE = 0.25  # of the machine's memory, which does not depend on other processes
FREE_SHARE = 0.5  # of what is free, at most
_NOT_IDENTITY = ("n_jobs", "verbose", "checkpoint", "cache_size", "warm_start", "on_interrupt")


def _seed(random_state) -> int:
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


_first_of = lru_cache(64)(_seed)  # of a number: such a generator takes longer than a small fit


class KernelMachine(Machine):
    """Divide and conquer on the problems that a subclass makes of its targets.

    Attributes are the parameters of `KernelSVC`.
    """

    kernel: Any
    gamma: Any
    degree: int
    coef0: float
    levels: Any
    branching: int
    sample_size: int
    clustering: str
    early: Any
    early_prediction: str
    fit_intercept: Any
    tol: float
    level_tol: float
    max_iter: int
    model_: Any
    cache_size: Any
    checkpoint: Any
    warm_start: bool
    on_interrupt: str
    record_levels: Any
    random_state: Any
    verbose: Any
    n_iter_: np.ndarray
    support_: np.ndarray
    coding_: Any  # Coding or Numbers
    dual_objective_ = recorded("dual_objective")

    _problems: Callable[[Targets], list[Variables]]
    _stored_targets: Callable[[Store], Targets]
    _keep_support: Callable[[Any, np.ndarray], None]

    @property
    def converged_(self) -> bool:
        """Whether the fit came within ``tol``; true if there is no gap."""
        return not self.duality_gap_ > self.tol

    def __sklearn_clone__(self):
        """Clones for a warm start share the last variables, so that a grid search reuses them."""
        copy = super().__sklearn_clone__()
        if self.warm_start:
            copy._duals = self._remembered()
        return copy

    def _remembered(self) -> Duals:
        if not hasattr(self, "_duals"):
            self._duals = Duals()
        return self._duals

    def _prepare(self, X, y, sample_weight, *, several: bool = False) -> TrainingSet:
        """Validate the data and choose the kernel; keep kernel rows if several C follow."""
        X, y, targets, given = read_data(self, X, y, sample_weight)
        check_sums(self.C, targets.weight, 1.0, targets.unit)
        gamma = choose_gamma(self, targets.X, given)
        typical = self.C / targets.unit * median(targets.weight)
        executor = self._executor()
        host, path = self._host(executor), None
        make = partial(self._made, host, X, targets, gamma)
        with one_blas_thread():
            kernel, rows, diagonal = in_range(make, gamma, typical, self.tol)
            check_sums(self.C, targets.weight, float(diagonal.max()), targets.unit)
            levels = whole = KernelRows.of_data(kernel, rows, X, targets.present)
        cache_bytes = self._cache_bytes(len(rows))
        if several and targets.coding.votes:
            path = PathRows(cache_bytes / targets.coding.n_outputs)
        elif several:
            whole = KernelRows(*host.share_rows(whole.kernel, rows, cache_bytes), whole.exact)
        data = TrainingRows(levels, whole, path)
        return TrainingSet(data, gamma, targets, host, executor, several, X, y)

    def _host(self, executor: Threads | Executor) -> Backend:
        """Return the backend of the fit: the seam for another one."""
        n_threads = effective_n_jobs(self.n_jobs)
        return Host(n_threads) if isinstance(executor, Threads) else Spread(n_threads, executor)

    def _has_intercept(self) -> bool:
        return not self.early if self.fit_intercept == "auto" else bool(self.fit_intercept)

    def _made(self, host: Backend, X, targets: Targets, gamma: float, dtype: type) -> Prepared:
        most = float(self.C / targets.unit * targets.weight.max(initial=0.0))
        kernel = make_kernel(self.kernel, gamma, self.coef0, self.degree, targets.X, dtype, most)
        if isinstance(X, StoredMatrix):
            rows: Any = LazyRows.on_disk(kernel, X)
        else:
            rows = host.rows(kernel, X, targets.present)
        diagonal = kernel.diagonal(rows)
        if not np.isfinite(diagonal).all():
            row = targets.present[np.flatnonzero(~np.isfinite(diagonal))[0]]
            raise ValueError(
                f"kernel={self.kernel!r} overflows: k(x, x) is not finite at row {row}. Scale the "
                "features, or decrease gamma or degree."
            )
        return Prepared(kernel, rows, diagonal)

    def _solve(self, training: TrainingSet, start: Dual | None) -> Dual:
        """Fit, starting from the variables of another C if given; return the new ones."""
        with self._checkpoint(training) as checkpoint, one_blas_thread():
            return self._solve_parts(training, start, checkpoint)

    def _solve_parts(
        self, training: TrainingSet, start: Dual | None, checkpoint: Checkpoint | NoCheckpoint
    ) -> Dual:
        """Solve the parts of the fit that are not in the checkpoint."""
        started = time.perf_counter()
        problems = self._problems(training.targets)
        key = self._key(training) if self.warm_start else ""
        start = near(start or (self._remembered().get(key) if self.warm_start else None), self.C)
        start = start if start and start.fits(problems) else None
        plan = self._plan(training, problems, checkpoint.seed, warm=start is not None)
        state = FitState(
            start.grown(self.C, problems) if start else [np.zeros(len(p)) for p in problems]
        )
        context = self._init_callback_context(max_subtasks=len(plan.solved_levels))
        context.call_on_fit_task_begin(estimator=self, X=training.X, y=training.y)
        progress = progress_of(self, context, training.X, training.y)
        services = Services(training.host, training.executor, checkpoint, progress)
        division = Division(training.data, problems, plan, services)
        try:
            self._divide(state, division, training)
        except KeyboardInterrupt:
            if self.on_interrupt == "raise" or state.router is None:
                raise
            self._fall_back(state)
        if not state.solutions and state.levels[-1].level != plan.early:
            certify_level(state, division)
        self._keep(training, problems, state)
        certificate = self._is_certificate(training, problems, state)
        seconds = time.perf_counter() - started
        self._record(state, training.targets, seconds, is_certificate=certificate)
        self.n_iter_ = iterations(problems, state, training.targets.coding)
        dual = Dual([alpha.copy() for alpha in state.alphas], float(self.C))
        if self.warm_start:
            self._remembered().put(key, dual)
        context.call_on_fit_task_end(
            estimator=self, X=training.X, y=training.y, reconstruction_attributes=dict
        )
        self._report(stopped=state.stopped, rounding=state.rounding)
        return dual

    def _divide(self, state: FitState, division: Division, training: TrainingSet) -> None:
        """Solve the problems of the division, or those that a subclass makes of them."""
        divide_and_conquer(state, division)

    def _checkpoint(self, training: TrainingSet) -> Checkpoint | NoCheckpoint:
        """Return the checkpoint, with a new seed or that of the continued fit."""
        given = self.random_state
        seed = _first_of(given) if type(given) is int else _seed(given)
        if self.checkpoint is None:
            return NoCheckpoint(seed)
        folder = Path(self.checkpoint)
        if training.along_path:  # each C is a separate fit
            folder = folder / f"C={float(self.C)!r}"  # all digits: two values, two folders
        return Checkpoint(folder, self._identity(training), seed)

    def _fall_back(self, state: FitState) -> None:
        """Return the model of the last finished level, after Ctrl-C."""
        state.solutions.clear()
        state.stopped = True
        warn_user(
            f"Interrupted: the model is that of level {state.levels[-1].level}, with "
            f"{state.levels[-1].n_clusters} clusters.",
            ConvergenceWarning,
        )

    def _plan(
        self, training: TrainingSet, problems: list[Variables], seed: int, *, warm: bool
    ) -> Plan:
        data = training.data.levels
        early = self._early_level(len(data))
        cache_bytes = self._cache_bytes(len(data))
        plan = Plan(
            levels=0,
            stride=AUTO_STRIDE if self.levels == "auto" and early is None else 1,
            branching=int(self.branching),
            sample_size=int(self.sample_size),
            early=early,
            seed=seed,
            settings=SolverSettings(float(self.tol), self._most_steps(), cache_bytes),
            level_tol=float(self.level_tol),
            record=self.record_levels,
            clustering=self.clustering,
        )
        if early is not None:
            levels = early if self.levels == "auto" else max(int(self.levels), early)
        elif warm:
            levels = 0  # the variables of the last fit are a better start than clusters
        elif self.levels == "auto":
            return with_levels(plan, data.kernel, data.rows, problems, training.host)
        else:
            levels = int(self.levels)
        return replace(plan, levels=levels) if levels else plan

    def _identity(self, training: TrainingSet) -> dict[str, str]:
        parameters = {k: v for k, v in self.get_params().items() if k not in _NOT_IDENTITY}
        name, values = self._kernel_identity(training)
        described = [f"{k}={digest(v)}" for k, v in sorted({**parameters, "kernel": name}.items())]
        return {
            "data": training.data_digest(),
            "parameters": digest(*described),
            "kernel values": values,
            "version": version("widemargin"),
        }

    def _kernel_identity(self, training: TrainingSet) -> tuple[str, str]:
        """Return the name of a kernel that parameters define; for a function, a digest of its
        values."""
        if callable(self.kernel):
            return "function", training.kernel_values_digest()
        return self.kernel, "by name"

    def _key(self, training: TrainingSet) -> str:
        """Return what a warm start must share: everything but C and the way of solving."""
        names = ("degree", "coef0", "fit_intercept")
        same = [getattr(self, name) for name in names] + [*self._kernel_identity(training)]
        same.append(bool(self.record_levels))  # its pairs are not grouped
        coding = training.targets.coding
        return digest(training.data_digest(), training.gamma, coding.multi_class, *same)

    def _keep(self, training: TrainingSet, problems: list[Variables], state: FitState) -> None:
        """Set the fitted model, exact or of the last level."""
        data = training.data.levels
        assert data.exact is not None
        support = support_of(state, problems, len(data))
        label = training.targets.label
        support = support[np.argsort(label[support], kind="stable")]  # by class
        coef = coefficients(training.targets, problems, state.alphas, support)
        early = not state.solutions
        kernel, router = data.kernel, state.router
        rows = in_memory(data.rows[support])
        single = kernel.dtype == np.float32
        if single and (state.double or not predicts_in_single(kernel, rows, coef)):
            double = data[support].in_double().in_memory()
            kernel, rows = double.kernel, double.rows
            router = router and router.in_double()
        if isinstance(kernel, DotKernel) and kernel.far != FAR:  # as a file of the model has it
            kernel = replace(kernel, far=FAR)
        for name, value in training.targets.fitted.items():
            setattr(self, name, value)
        self.gamma_ = training.gamma
        intercept = intercepts(problems, state.solutions, coef.n_outputs)
        if isinstance(coding := training.targets.coding, Numbers):
            coef = replace(coef, values=coef.values * coding.scale)
            intercept = coding.centre + coding.scale * intercept
        self.model_ = KernelModel(
            kernel=kernel,
            vectors=kernel.vectors(rows, np.arange(len(support))),
            coef=coef,
            intercept=intercept,
            router=router if early else None,
            cluster=state.label[support] if early and state.label is not None else None,
            combination=self.early_prediction,
            noise=training.targets.unit / float(self.C),
        )
        self._keep_support(training, support)
        self.levels_ = state.levels

    def _is_certificate(
        self, training: TrainingSet, problems: list[Variables], state: FitState
    ) -> bool:
        """Whether the gap is a bound: only if the kernel is positive semi-definite."""
        data = training.data.levels
        definite = data.kernel.definite
        if definite is None:
            pairs = zip(problems, state.solutions, strict=False)
            curved = all(p.least_quadratic(s) >= 0 for p, s in pairs)
            support = np.sort(np.searchsorted(training.targets.present, self.support_))
            definite = curved and is_definite(data, support, training.host)
        if not definite:
            warn_user(
                f"kernel={self.kernel!r} is not positive semi-definite on these data: the solution "
                "need not be the best, and there is no duality gap."
            )
        return definite

    def _record(
        self, state: FitState, targets: Targets, seconds: float, *, is_certificate: bool
    ) -> None:
        """Keep the record of the fit; objectives are those of unscaled targets."""
        solutions, squares = state.solutions, np.ones(len(state.solutions))
        if isinstance(targets.coding, Numbers):
            squares = targets.coding.scale**2
        last = None if solutions else state.levels[-1]
        gap = last.gap if last else max(s.relative_gap for s in solutions)
        primal = math.nan if last else float(squares @ [s.primal for s in solutions])
        dual = last.objective if last else float(squares @ [s.dual for s in solutions])
        if last and isinstance(targets.coding, Numbers):  # a sum over outputs
            dual = dual * squares[0] if len(squares) == 1 else math.nan
        if not (math.isfinite(gap) and not math.isinf(dual)):
            raise ValueError(
                f"kernel={self.kernel!r} overflows: the objective is not finite. Scale the "
                "features or the kernel, or decrease C, gamma or degree."
            )
        self.fit_record_ = FitRecord(
            n_rows=len(targets.weight),
            seconds=seconds,
            n_iter=max(state.n_iter, 1),
            gap=gap if is_certificate else math.nan,
            objective=primal if is_certificate else math.nan,
            dual_objective=dual,
            history=[s.history for s in solutions],
        )

    def _report(self, *, stopped: bool, rounding: float = 0.0) -> None:
        if self.verbose > 0:
            for level in (level for level in self.levels_ if level.level > 0):
                seconds = level.seconds_clustering + level.seconds_training
                numbers = (level.level, level.n_clusters, seconds, level.n_support)
                log("level %d: %d clusters, %.1f s, %d support vectors", *numbers)
            record = self.fit_record_
            found = (len(self.support_), record.seconds, record.gap)
            log("%d support vectors, %.2f s, relative duality gap %.2g", *found)
        if not self.converged_:
            advice = CONVERGING if max(self.n_iter_) >= self._most_steps() else STALLED
            advice = AT_LIMIT if rounding > 0.5 * self.duality_gap_ else advice
            warn_user(
                Message(
                    "{name} stopped with a relative duality gap of {gap:.2g}, above the "
                    "tolerance of {tol:g}. {advice}",
                    name=type(self).__name__,
                    gap=self.duality_gap_,
                    tol=float(self.tol),
                    advice=self._why_stopped() if stopped else advice,
                ),
                ConvergenceWarning,
            )

    def _most_steps(self) -> int:
        return np.iinfo(np.int32).max if self.max_iter == -1 else int(self.max_iter)

    def _early_level(self, n: int) -> int | None:
        if not self.early:
            return None
        if not isinstance(self.early, (bool, np.bool_)):
            return int(self.early)
        return max(1, round(np.log(max(n / EARLY_ROWS, 1)) / np.log(self.branching)))

    def _cache_bytes(self, n_rows: int) -> float:
        if self.cache_size != "auto":
            return min(1e6 * float(self.cache_size), 1e15)
        if n_rows <= MOST_ROWS:  # so their kernel values fit on every machine
            return CACHE_SHARE * LEAST_MEMORY
        return min(CACHE_SHARE * total_memory(), FREE_SHARE * free_memory())
