"""The fit of `AdditiveSVC` and `AdditiveSVR`, independent of parameters' defaults."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from widemargin.additive.batches import (
    BatchTask,
    Dual,
    fit_record,
    make_batches,
    precision,
    solve_batches,
)
from widemargin.additive.columns import Columns, Parts
from widemargin.additive.frames import check_chosen, read_new, read_training
from widemargin.additive.gram import is_cheaper, on_matrix
from widemargin.additive.learn import Approximation, Settings, learn, learn_stored
from widemargin.additive.model import AdditiveModel, BinShares
from widemargin.additive.problem import LANES, Layout, SharedProblem
from widemargin.additive.solver import Stopping
from widemargin.additive.store import BlockStore
from widemargin.engine import Threads
from widemargin.errors import (
    CONVERGING,
    Message,
    NegativeWarning,
    Parameter,
    ParameterError,
    warn_user,
)
from widemargin.losses import Loss
from widemargin.machine import Machine, near, recorded
from widemargin.multiclass import Targets
from widemargin.progress import Progress, log, progress_of
from widemargin.stored import check_store_input
from widemargin.validation import (
    check_bool,
    check_choice,
    check_max_seconds,
    check_n_jobs,
    check_number,
    check_sums,
    column_name,
)

MISSING = ("error", "learn")
STOPPINGS = ("gap", "violation")
OF_HISTOGRAMS = ("chi2", "hellinger", "jensen_shannon")  # kernels for amounts
INTERCEPT_SHARE = 0.1
"""The constant feature's share of the mean kernel diagonal.  A larger share frees the intercept
but couples all samples, which costs sweeps."""


@dataclass(frozen=True)
class TrainingSet:
    """Everything that does not depend on C, computed once for a path over C."""

    columns: Columns
    learned: Approximation
    diagonal: np.ndarray  # k(x, x) of each sample
    targets: Targets
    shares: BinShares  # of codes by feature
    X: object
    y: object


class AdditiveMachine(Machine):
    """Coordinate descent on look-up tables, for targets that a mixin derives from y.

    Attributes are the parameters that `AdditiveSVC` and `AdditiveSVR` share.  They also have
    ``_loss``, a loss by its name that suits the targets.
    """

    _stored_targets: Callable[[BlockStore], Targets]
    _loss: Callable[[Targets], Loss]
    kernel: Any
    loss: str
    approximation: str
    rank: Any
    n_bins: Any
    binning: str
    scaling: str | None
    missing: str
    categorical_features: Any
    fit_intercept: bool
    C_unit: str
    tol: float
    stopping: str
    visits: int
    max_iter: int
    warm_start: bool
    random_state: Any
    verbose: Any
    columns_: Columns
    model_: AdditiveModel
    n_iter_ = recorded("n_iter")
    violation_ = recorded("violation")

    @property
    def converged_(self) -> bool:
        """Whether the fit is within ``tol`` of its optimum."""
        return bool((self.duality_gap_ if self._by_gap() else self.violation_) <= self.tol)

    def _by_gap(self) -> bool:
        return self.stopping == "gap" and self.model_.tables.symmetric

    def _stopping(self) -> Stopping:
        return Stopping(self.tol, self.max_iter, self.visits, self.stopping == "gap")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing == "learn"
        tags.input_tags.positive_only = self.scaling in ("global", None)
        return tags

    def _check_params(self) -> None:
        self._settings().check()
        check_number("C", self.C, above=0)
        if not np.isfinite(self.C):
            raise ParameterError("C", self.C, "must be finite.")
        check_choice("missing", self.missing, MISSING)
        check_chosen("categorical_features", self.categorical_features)
        check_choice("C_unit", self.C_unit, ("diagonal", "raw"))
        check_number("tol", self.tol, above=0)
        check_choice("stopping", self.stopping, STOPPINGS)
        check_number("visits", self.visits, low=1, high=100, integer=True)
        check_number("max_iter", self.max_iter, low=1, integer=True)
        check_max_seconds(self.max_seconds)
        check_bool("fit_intercept", self.fit_intercept)
        check_bool("warm_start", self.warm_start)
        check_n_jobs(self.n_jobs)
        if not isinstance(self.verbose, bool):
            check_number("verbose", self.verbose, low=0)

    def _settings(self) -> Settings:
        return Settings(
            self.kernel, self.approximation, self.rank, self.n_bins, self.binning, self.scaling
        )

    def _prepare(self, X, y, sample_weight, *, several: bool = False) -> TrainingSet:
        """Validate, encode and factorise: all work that does not depend on C."""
        if isinstance(X, BlockStore):
            return self._prepare_stored(X, y, sample_weight)
        matrix, labels, categories = read_training(self, X, y)
        targets = self._targets(matrix, labels, sample_weight)
        check_sums(self.C, targets.weight, 1.0)
        columns = Columns.of(targets.X, categories)
        values, marks = columns.parts(targets.X)
        learned = learn(values, targets.weight, self._settings(), marks)
        warn_of_negative(learned)
        shares = BinShares.of(learned.codes, targets.weight)
        given = X if categories else matrix  # callbacks may predict it
        return TrainingSet(columns, learned, learned.diagonal(), targets, shares, given, labels)

    def _parts(self, X) -> Parts:
        """Check data and split it into numbers and indicators."""
        return self.columns_.parts(read_new(self, X, self.columns_))

    def _outputs(self, X) -> np.ndarray:
        """Return the model's outputs for data or a store, (n_rows, n_outputs)."""
        check_is_fitted(self, "model_")
        if isinstance(X, BlockStore):
            if X.columns != self.columns_:
                raise ValueError(
                    "The store has other categories, or missing values in other columns, than the "
                    "data of the model. Predict the data that the store was built from."
                )
            return self.model_.decision_of_codes(X.codes, X.encoder, self.n_jobs)
        values, marks = self._parts(X)
        return self.model_.decision(values, self.n_jobs, marks)

    def _prepare_stored(self, store: BlockStore, y, sample_weight) -> TrainingSet:
        """Prepare a store, whose rows are already coded."""
        check_store_input(self, store, y, sample_weight)
        self._check_columns(store)
        targets = self._stored_targets(store)
        check_sums(self.C, targets.weight, 1.0)
        learned = learn_stored(store, targets.weight, self._settings())
        shares = BinShares.of(learned.codes, targets.weight)
        diagonal = learned.diagonal()
        return TrainingSet(store.columns, learned, diagonal, targets, shares, store, None)

    def _check_columns(self, store: BlockStore) -> None:
        """Refuse parameters for columns that differ from the store's."""
        wanted = self.categorical_features
        agrees = isinstance(wanted, str) or (wanted is None and not store.columns.categories)
        if not agrees:
            raise ParameterError(
                "categorical_features",
                wanted,
                ": the store {folder!r} has categorical columns of its own. Leave it at "
                "'from_dtype'.",
                folder=str(store.folder),
            )
        if store.columns.missing and self.missing != "learn":
            column = column_name(self, min(store.columns.missing))
            raise ValueError(
                f"The store {str(store.folder)!r} has missing values, the first in column "
                f"{column}. Fit it with missing='learn'."
            )

    def _solve(self, training: TrainingSet, start: Dual | None) -> Dual:
        """Minimise, starting from the dual variables of another fit if given."""
        started = time.perf_counter()
        C, shared = self._shared_problem(training)
        start = near(start or self._warm_start(training), C)
        targets, n_outputs = training.targets, training.targets.coding.n_outputs
        weights = shared.model_tables.weights(n_outputs)
        executor = self._executor()
        if isinstance(executor, Threads) and is_cheaper(shared, n_outputs):
            shared = on_matrix(shared, training.learned.tables, executor)
        tasks = make_batches(
            shared,
            targets.by_output,
            start=None if start is None else start.grown(C, shared.layout.dtype),
            seed=check_random_state(self.random_state).randint(np.iinfo(np.int32).max),
            stopping=self._stopping(),
        )
        context = self._init_callback_context(max_subtasks=len(tasks), sequential_subtasks=False)
        context.call_on_fit_task_begin(estimator=self, X=training.X, y=training.y)
        progress = progress_of(self, context, training.X, training.y)
        watch = partial(_BatchWatch, self, training, len(tasks), progress)
        solutions = solve_batches(tasks, weights, executor, watch)
        bias = np.concatenate([solution.bias.ravel() for solution in solutions])
        for name, value in self._fitted(training, shared, weights, bias).items():
            setattr(self, name, value)
        seconds = time.perf_counter() - started
        self.fit_record_ = fit_record(solutions, shared, seconds, targets.coding.objective_unit)
        self.C_ = C
        coef = [solution.coef for solution in solutions]
        dual = Dual(coef, C, targets.coding.multi_class, targets.label, targets.present)
        if self.warm_start:
            self._dual = dual
        context.call_on_fit_task_end(
            estimator=self, X=training.X, y=training.y, reconstruction_attributes=dict
        )
        self._report()
        return dual

    def _shared_problem(self, training: TrainingSet) -> tuple[float, SharedProblem]:
        """Return the problem that all outputs share, with C in the kernel's unit."""
        targets = training.targets
        mean = float(np.average(training.diagonal, weights=targets.weight))
        scaled = self.C_unit == "diagonal" and mean > 0
        largest = float(training.diagonal.max(initial=0.0))
        check_sums(self.C, targets.weight, largest, mean if scaled else 1.0)
        C = self.C / mean if scaled else self._raw_C(targets)
        bias_value = 0.0
        if self.fit_intercept:
            bias_value = np.sqrt(INTERCEPT_SHARE * mean) if scaled else 1.0
        c = C * targets.weight
        layout = Layout(
            lanes=1 if targets.coding.n_outputs == 1 else LANES,
            dtype=precision(self.tol, c, training.diagonal, targets.sizes),
            simplex=targets.coding.multi_class == "crammer_singer",
        )
        return C, SharedProblem.of(
            training.learned,
            layout,
            label=targets.target_row,
            c=c,
            kernel_diagonal=training.diagonal,
            bias_value=bias_value,
            loss=self._loss(targets),
        )

    def _raw_C(self, targets: Targets) -> float:
        """Return C of the targets that the solver sees, for a kernel without a unit."""
        return float(self.C)

    def _fitted(self, training: TrainingSet, shared: SharedProblem, weights, bias) -> dict:
        """Return the attributes that prediction needs; change weights to the targets' unit."""
        coding = training.targets.coding
        intercept = shared.bias_value * bias[: coding.n_outputs].astype(np.float64)
        intercept = coding.in_their_unit(weights, intercept)
        tables, shares = shared.model_tables, training.shares
        model = AdditiveModel.of(training.learned, tables, weights, intercept, shares)
        return {
            **training.targets.fitted,
            "columns_": training.columns,
            "model_": model,
            "intercept_": model.intercept,
            "kernel_": training.learned.kernel,
            "rank_": model.tables.rank,
        }

    def _report(self) -> None:
        by_gap = self._by_gap()
        what = "relative duality gap" if by_gap else "projected gradient violation"
        reached = self.duality_gap_ if by_gap else self.violation_
        if self.verbose > 0:
            seconds = self.fit_record_.seconds
            log("%d sweeps in %.2f s, %s %.2g", self.n_iter_, seconds, what, reached)
        if not np.all(np.isfinite(self.model_.intercept)) or not np.isfinite(reached):
            warn_user(
                f"{type(self).__name__} diverged after {self.n_iter_} sweeps: tables that are not "
                'symmetric have no objective. Decrease C, or use approximation="spectral".',
                ConvergenceWarning,
            )
        elif not self.converged_:
            used_up = self.n_iter_ >= self.max_iter
            sweeps = f"{self.n_iter_} sweep{'s' * (self.n_iter_ != 1)}"
            warn_user(
                Message(
                    "{machine} stopped after {sweeps} with a {what} of {reached:.2g}, above the "
                    "tolerance of {tol:g}. {advice}",
                    machine=type(self).__name__,
                    sweeps=sweeps,
                    what=what,
                    reached=reached,
                    tol=float(self.tol),
                    advice=CONVERGING if used_up else self._why_stopped(),
                ),
                ConvergenceWarning,
            )

    def _warm_start(self, training: TrainingSet) -> Dual | None:
        """Return the dual variables of the last fit, if they match this one."""
        dual = getattr(self, "_dual", None)
        if not self.warm_start or dual is None:
            return None
        targets = training.targets
        shape = (len(targets.label), targets.coding.n_outputs)
        if dual.coef.shape != shape or dual.multi_class != targets.coding.multi_class:
            changed = (
                "classes changed, or multi_class did"
                if targets.value is None
                else "targets changed"
            )
            warn_user(f"warm_start=True, but the number of rows or {changed}: starting afresh.")
            return None
        return dual


def warn_of_negative(learned) -> None:
    """Warn that negative columns are shifted, because kernels of histograms compare amounts."""
    n_negative = int(np.count_nonzero(learned.encoder.shift < 0))
    if n_negative and learned.kernel in OF_HISTOGRAMS:
        warn_user(
            Message(
                "{kernel} is for amounts, and {n} columns have negative values: each of these has "
                "been shifted to start at 0. Use {other} if the features are not amounts.",
                kernel=Parameter("kernel", learned.kernel),
                n=n_negative,
                other=Parameter("kernel", "intersection"),
            ),
            NegativeWarning,
        )


class _BatchWatch:
    """Reports the epochs of one batch to scikit-learn's callbacks."""

    def __init__(
        self,
        estimator: AdditiveMachine,
        training: TrainingSet,
        n_batches: int,
        fit: Progress,
        task: BatchTask,
    ):
        self._estimator, self._training, self._n_batches = estimator, training, n_batches
        self._task = task
        self._progress = fit.task(f"batch {task.number}", task.number, task.stopping.max_iter)

    def epoch(self, state=None, gap=None) -> bool:
        if self._estimator.verbose > 1:
            log("batch %d of %d: sweep done", self._task.number + 1, self._n_batches)
        # Callbacks can score an unfinished model only if one batch holds all outputs.
        fitted = (lambda: self._fitted(state)) if self._n_batches == 1 else None
        return self._progress.epoch(fitted, gap)

    def end(self) -> bool:
        return self._progress.end()

    def _fitted(self, problem) -> dict:
        """Return a copy for the callbacks, because the problem's weights will change."""
        weights, bias = self._task.model_weights(problem), problem.bias.ravel()
        return self._estimator._fitted(self._training, problem.shared, weights, bias)
