"""`KernelSVC`: the scikit-learn face of kernels, partition, divide and solver."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
from joblib import effective_n_jobs
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from widemargin.classifier import MarginClassifier
from widemargin.digest import digest
from widemargin.kernel.backend import Host
from widemargin.kernel.checkpoint import Checkpoint, NoCheckpoint
from widemargin.kernel.divide import (
    FitState,
    Plan,
    Services,
    TrainingRows,
    auto_levels,
    divide_and_conquer,
)
from widemargin.kernel.kernels import (
    KERNELS,
    Kernel,
    ShiftedKernel,
    make_kernel,
    traits_of,
    weighted_variance,
)
from widemargin.kernel.model import COMBINATIONS, KernelModel
from widemargin.kernel.problems import MULTI_CLASS, Variables, binary_problems
from widemargin.kernel.solver import SolverSettings
from widemargin.kernel.warm_start import Dual, Duals
from widemargin.machine import FitRecord
from widemargin.multiclass import Coding
from widemargin.progress import log, progress_of
from widemargin.resources import free_memory
from widemargin.validation import (
    Labelled,
    check_bool,
    check_choice,
    check_n_jobs,
    check_number,
    check_number_or_auto,
    check_unscaled,
    check_X,
    check_X_y,
    labelled,
    sample_weights,
)
from widemargin.warning import warn_user

EARLY_ROWS = 8000
DOUBLE_BELOW = 1e-4  # of tol: single precision certifies no tighter gaps
CACHE_SHARE = 0.5  # of the free memory
LARGEST = 1e30  # gamma and coef0 that single precision can work with
_NOT_IDENTITY = ("n_jobs", "verbose", "checkpoint", "cache_size", "warm_start", "on_interrupt")


@dataclass(frozen=True)
class TrainingSet:
    """All of a fit that does not depend on C."""

    rows: TrainingRows
    gamma: float
    constant: float  # of the kernel, for the intercept
    targets: Labelled
    host: Host  # with memory for kernel rows that is handed on along a path
    X: object
    y: object

    def data_digest(self) -> str:
        t = self.targets
        return digest(self.X, t.label, t.classes, t.weight, t.present)


class KernelSVC(MarginClassifier):
    """Support vector classification with any kernel, exact or early, by divide and conquer.

    Solves min 1/2 a'Qa - e'a over 0 <= a <= C, without a bias, to a certified duality gap.  Large
    problems are divided into clusters whose solutions start the whole one (DC-SVM); an early
    model stops there and predicts by routing each row to its cluster.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        "rbf", "poly", "sigmoid", "laplacian", "chi2" (exponential, for histograms),
        "precomputed", or a function K(X, Z) that returns an array of shape (len(X), len(Z)).  It
        is called from several threads if ``n_jobs`` says so.
    C : float, default=1.0
    gamma : "scale", "auto" or float, default="scale"
        1 / (n_features * X.var()), 1 / n_features, or a number.
    degree : int, default=3
    coef0 : float, default=0.0
    levels : int or "auto", default="auto"
        Levels of division below the whole problem: ``branching ** levels`` clusters at the
        lowest.  0 solves the problem directly.  "auto" divides to clusters of about 4,000 rows,
        unless much of the kernel lies between clusters and kernel values are expensive (many
        features).
    branching : int, default=4
    sample_size : int, default=1000
        Rows that the clustering of a level samples, at least.
    early : bool or int, default=False
        Stop at this level and predict by routing (DC-SVM eq. 11); True is the level whose
        clusters hold about 8,000 rows.
    early_prediction : {"routed", "sum", "bcm"}, default="routed"
        How an early model combines its clusters: eq. 11, eq. 10, or a Bayesian committee machine
        (slow; for comparison).
    fit_intercept : bool, default=False
        Add a penalised constant to the kernel of the whole problem (not of the levels below).
    multi_class : {"ovr", "ovo"}, default="ovr"
        One problem per class, or one per pair of classes, which vote.
    class_weight : dict, "balanced" or None, default=None
    tol : float, default=1e-3
        Relative duality gap of every binary problem.  Below 1e-4 all is double precision, which
        polynomial kernels with very large values need at prediction too.
    max_iter : int, default=100_000
        Blocks of up to 1,024 variables per problem.
    cache_size : float or "auto", default="auto"
        Megabytes for kernel rows; "auto" is half of the memory that is free.
    checkpoint : path or None, default=None
        A folder for finished clusters.  A fit that was killed goes on from there, with the same
        data, parameters and version only.
    warm_start : bool, default=False
        Start from the variables of the last fit on the same data and kernel, by this estimator
        or by a clone of it: a grid over C then runs along a path.
    on_interrupt : {"raise", "keep"}, default="raise"
        What Ctrl-C during the whole problem does: raise KeyboardInterrupt, or keep the model of
        the last finished level, with a warning.
    record_levels : bool, default=False
        Measure in `levels_` how near each level came to the final solution (of an early model, the
        objective and the bound only).
    n_jobs : int or None, default=None
        Threads.  Results do not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the clustering.
    verbose : int, default=0
        1 reports each fit's summary, to the logger "widemargin" where logging is set up, else to
        the terminal.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    support_ : ndarray of shape (n_support,)
        Rows that are support vectors of any binary problem.
    dual_coef_ : ndarray of shape (n_outputs, n_support)
        Label times dual variable.
    intercept_ : ndarray of shape (n_outputs,)
    gamma_ : float
    duality_gap_ : float
        Largest relative gap of the binary problems (for an early model, of the clusters' own).
    objective_, dual_objective_ : float
        Sums over the binary problems; for an early model of the clusters' own (NaN and a sum).
    n_iter_ : int
        Blocks of the slowest problem.
    levels_ : list of Level
        One record per level, the lowest first.
    history_ : list of list of dict
        Per binary problem, what every block of the whole problem left: duality gap and dual
        objective of the active variables, how many these are, kernel rows computed so far.
    model_ : KernelModel
        The arrays that prediction uses.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)

    References
    ----------
    C.-J. Hsieh, S. Si and I. S. Dhillon, "A Divide-and-Conquer Solver for Kernel Support Vector
    Machines", ICML 2014 (DC-SVM).
    I. Steinwart, D. Hush and C. Scovel, "Training SVMs without Offset", JMLR 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from widemargin import KernelSVC
    >>> X, y = load_digits(return_X_y=True)
    >>> model = KernelSVC(C=10).fit(X[:1000], y[:1000])
    >>> bool(model.score(X[1000:], y[1000:]) > 0.95)
    True
    >>> bool(model.duality_gap_ <= 1e-3)
    True
    """

    def __init__(
        self,
        kernel="rbf",
        *,
        C=1.0,
        gamma="scale",
        degree=3,
        coef0=0.0,
        levels="auto",
        branching=4,
        sample_size=1000,
        early=False,
        early_prediction="routed",
        fit_intercept=False,
        multi_class="ovr",
        class_weight=None,
        tol=1e-3,
        max_iter=100_000,
        cache_size="auto",
        checkpoint=None,
        warm_start=False,
        on_interrupt="raise",
        record_levels=False,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.kernel = kernel
        self.C = C
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.levels = levels
        self.branching = branching
        self.sample_size = sample_size
        self.early = early
        self.early_prediction = early_prediction
        self.fit_intercept = fit_intercept
        self.multi_class = multi_class
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.checkpoint = checkpoint
        self.warm_start = warm_start
        self.on_interrupt = on_interrupt
        self.record_levels = record_levels
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        traits = traits_of(self.kernel)
        tags.input_tags.sparse = traits.sparse
        tags.input_tags.pairwise = traits.pairwise
        tags.input_tags.positive_only = traits.non_negative
        return tags

    def __sklearn_clone__(self):
        """Clones for a warm start share the last variables, which is how a grid search hands on."""
        copy = super().__sklearn_clone__()
        if self.warm_start:
            copy._duals = self._remembered()
        return copy

    def _remembered(self) -> Duals:
        if not hasattr(self, "_duals"):
            self._duals = Duals()
        return self._duals

    # ------------------------------------------------------------------ fitting

    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Or the (n_samples, n_samples) kernel matrix for ``kernel="precomputed"``.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies C; 2 is the same as two copies, 0 as absence.

        Returns
        -------
        self : KernelSVC
        """
        self._check_params()
        self._solve(self._prepare(X, y, sample_weight), None, self.checkpoint)
        return self

    def fit_path(self, X, y, Cs, sample_weight=None):
        """Fit one model per value of C, each started from the one before.

        Kernel rows are computed once, as far as the cache holds them.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        Cs : sequence of float
            Values of C, best in ascending order.

        Returns
        -------
        models : list of KernelSVC
            Fitted copies of this estimator, in the order of ``Cs``.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from widemargin import KernelSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> [m.C for m in KernelSVC().fit_path(X, y, [0.1, 1.0])]
        [0.1, 1.0]
        """
        last: Dual | None = None

        def solve(model, training, _):
            nonlocal last
            folder = self.checkpoint  # each C is a fit of its own
            if folder is not None:
                folder = Path(folder) / f"C={model.C:g}"
            last = model._solve_managed(training, last, folder)

        return self._fit_along(
            Cs, lambda model: model._prepare(X, y, sample_weight, shared=True), solve
        )

    @with_callbacks
    def _solve_managed(self, training, start, checkpoint):
        return self._solve(training, start, checkpoint)

    def _check_params(self) -> None:
        if not callable(self.kernel):
            check_choice("kernel", self.kernel, KERNELS)
        check_number("C", self.C, above=0, finite=True)
        if isinstance(self.gamma, str):
            check_choice("gamma", self.gamma, ("scale", "auto"))
        else:
            check_number("gamma", self.gamma, above=0, high=LARGEST, finite=True)
        check_number("degree", self.degree, low=0, high=2**31 - 1, integer=True)
        check_number("coef0", self.coef0, low=-LARGEST, high=LARGEST, finite=True)
        check_number_or_auto("levels", self.levels, low=0, high=20, integer=True)
        check_number("branching", self.branching, low=2, integer=True)
        check_number("sample_size", self.sample_size, low=2, integer=True)
        if not isinstance(self.early, (bool, np.bool_)):
            check_number("early", self.early, low=1, high=20, integer=True)
        check_choice("early_prediction", self.early_prediction, COMBINATIONS)
        if self.early_prediction == "bcm" and traits_of(self.kernel).pairwise:
            raise ValueError(
                "early_prediction='bcm' needs kernel values between support vectors, which a "
                "precomputed matrix does not bring to predict. Use 'routed' or 'sum'."
            )
        check_bool("fit_intercept", self.fit_intercept)
        if self.fit_intercept and self.early:
            raise ValueError(
                "fit_intercept=True needs the whole problem, which an early model does not solve. "
                "Use early=False or fit_intercept=False."
            )
        check_choice("multi_class", self.multi_class, MULTI_CLASS)
        check_number("tol", self.tol, above=0)
        check_number("max_iter", self.max_iter, low=1, integer=True)
        check_number_or_auto("cache_size", self.cache_size, above=0, finite=True)
        if self.checkpoint is not None and not isinstance(self.checkpoint, (str, os.PathLike)):
            raise TypeError(f"checkpoint must be a path or None, got {self.checkpoint!r}.")
        check_bool("warm_start", self.warm_start)
        check_choice("on_interrupt", self.on_interrupt, ("raise", "keep"))
        check_bool("record_levels", self.record_levels)
        check_n_jobs(self.n_jobs)
        if not isinstance(self.verbose, bool):
            check_number("verbose", self.verbose, low=0)
        if not traits_of(self.kernel).definite:
            warn_user(
                f"The {self.kernel} kernel is not positive definite: the duality gap is no "
                "certificate."
            )

    def _prepare(self, X, y, sample_weight, *, shared: bool = False) -> TrainingSet:
        """Validate and choose the kernel; keep kernel rows for several C where asked."""
        X, y = check_X_y(self, X, y)
        self._check_kernel_input(X)
        weight = sample_weights(sample_weight, X, y, self.class_weight)
        given = sample_weights(sample_weight, X)
        targets = labelled(self, X, y, weight)
        given = given[targets.present]
        gamma = self._gamma(targets.X, given)
        dtype = np.float64 if self.tol < DOUBLE_BELOW else np.float32
        kernel = make_kernel(self.kernel, gamma, self.coef0, self.degree, targets.X, dtype)
        rows = kernel.training_rows(X, targets.present)
        diagonal = self._finite_diagonal(kernel, rows, targets.present)
        whole, whole_rows, constant = kernel, rows, 0.0
        if self.fit_intercept:
            constant = max(float(np.average(diagonal, weights=given)), 1e-12)
            whole = ShiftedKernel(kernel, constant)
        host = Host(effective_n_jobs(self.n_jobs))
        if shared:
            whole, whole_rows = host.share_rows(whole, rows, self._cache_bytes())
        together = TrainingRows(kernel, rows, whole, whole_rows)
        return TrainingSet(together, gamma, constant, targets, host, X, y)

    def _finite_diagonal(self, kernel: Kernel, rows, present: np.ndarray) -> np.ndarray:
        diagonal = kernel.diagonal(rows)
        if not np.all(np.isfinite(diagonal)):
            row = present[np.flatnonzero(~np.isfinite(diagonal))[0]]
            raise ValueError(
                f"kernel={self.kernel!r} overflows: k(x, x) is not finite at row {row}. Scale the "
                "features, or decrease gamma or degree."
            )
        return diagonal

    def _solve(self, training: TrainingSet, start: Dual | None, folder) -> Dual:
        """Fit, from the variables of another C if there are any; returns those of this one."""
        started = time.perf_counter()
        targets = training.targets
        coding = Coding(self.multi_class, len(targets.classes))
        problems = binary_problems(targets.label, coding, self.C * targets.weight)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        checkpoint: Checkpoint | NoCheckpoint = NoCheckpoint()
        if folder is not None:
            checkpoint = Checkpoint(folder, self._identity(training), seed)
            seed = checkpoint.seed
        key = self._key(training) if self.warm_start else ""
        start = start or (self._remembered().get(key) if self.warm_start else None)
        plan = self._plan(training, seed, warm=start is not None)
        state = FitState(
            start.grown(self.C, problems) if start else [np.zeros(len(p)) for p in problems]
        )
        n_parts = plan.levels + (plan.early is None)
        context = self._init_callback_context(max_subtasks=n_parts)
        context.call_on_fit_task_begin(estimator=self, X=training.X, y=training.y)
        progress = progress_of(self, context, training.X, training.y)
        services = Services(training.host, self._executor(), checkpoint, progress)
        try:
            divide_and_conquer(state, training.rows, problems, plan, services)
        except KeyboardInterrupt:
            if self.on_interrupt == "raise" or state.router is None:
                raise
            self._fall_back(state)
        self._keep(training, problems, state)
        self._record(state, len(training.rows.rows), time.perf_counter() - started)
        dual = Dual([alpha.copy() for alpha in state.alphas], float(self.C))
        if self.warm_start:
            self._remembered().put(key, dual)
        context.call_on_fit_task_end(
            estimator=self, X=training.X, y=training.y, reconstruction_attributes=dict
        )
        self._report(stopped=state.stopped)
        return dual

    def _fall_back(self, state: FitState) -> None:
        """On the last finished level, after Ctrl-C."""
        state.solutions.clear()
        state.stopped = True
        warn_user(
            f"Interrupted: the model is that of level {state.levels[-1].level}, with "
            f"{state.levels[-1].n_clusters} clusters.",
            ConvergenceWarning,
        )

    def _plan(self, training: TrainingSet, seed: int, *, warm: bool) -> Plan:
        rows = training.rows
        early = self._early_level(len(rows.rows))
        plan = Plan(
            levels=0,
            branching=int(self.branching),
            sample_size=int(self.sample_size),
            early=early,
            seed=seed,
            settings=SolverSettings(float(self.tol), int(self.max_iter), self._cache_bytes()),
            record=bool(self.record_levels),
        )
        if early is not None:
            levels = early if self.levels == "auto" else max(int(self.levels), early)
        elif warm:
            levels = 0  # the variables of the last fit are a better start than clusters
        elif self.levels == "auto":
            levels = auto_levels(rows.kernel, rows.rows, plan, training.host)
        else:
            levels = int(self.levels)
        return replace(plan, levels=levels)

    def _identity(self, training: TrainingSet) -> dict[str, str]:
        parameters = {k: v for k, v in self.get_params().items() if k not in _NOT_IDENTITY}
        described = [f"{k}={digest(v)}" for k, v in sorted(parameters.items())]
        return {
            "data": training.data_digest(),
            "parameters": digest(*described),
            "version": version("widemargin"),
        }

    def _key(self, training: TrainingSet) -> str:
        """What a warm start must have in common: all but C and the way of solving."""
        names = ("kernel", "degree", "coef0", "multi_class", "fit_intercept")
        same = [getattr(self, name) for name in names]
        return digest(training.data_digest(), training.gamma, *same)

    def _keep(self, training: TrainingSet, problems: list[Variables], state: FitState) -> None:
        """The fitted model, exact or of the last level."""
        kernel, rows = training.rows.kernel, training.rows.rows
        coef = np.zeros((len(rows), len(problems)))
        for k, (variables, alpha) in enumerate(zip(problems, state.alphas, strict=True)):
            coef[variables.row, k] = alpha * variables.sign
        support = np.flatnonzero(coef.any(axis=1))
        early = not state.solutions
        # A level that was kept has been solved without an intercept.
        constant = 0.0 if early else training.constant
        self.classes_, self.gamma_ = training.targets.classes, training.gamma
        self.model_ = KernelModel(
            kernel=kernel,
            vectors=kernel.vectors(rows, support),
            coef=np.ascontiguousarray(coef[support]),
            intercept=constant * coef.sum(axis=0),
            router=state.router if early else None,
            cluster=state.label[support] if early and state.label is not None else None,
            combination=self.early_prediction,
            noise=1 / float(self.C),
        )
        self.support_ = training.targets.present[support]
        self.dual_coef_ = self.model_.coef.T
        self.intercept_ = self.model_.intercept
        self.levels_ = state.levels

    def _record(self, state: FitState, n_rows: int, seconds: float) -> None:
        solutions = state.solutions
        last = None if solutions else state.levels[-1]
        self.fit_record_ = FitRecord(
            n_rows=n_rows,
            seconds=seconds,
            n_iter=max(state.n_iter, 1),
            gap=last.gap if last else max(s.relative_gap for s in solutions),
            objective=float("nan") if last else float(sum(s.primal for s in solutions)),
            dual_objective=last.objective if last else float(sum(s.dual for s in solutions)),
            history=[s.history for s in solutions],
        )

    @property
    def dual_objective_(self) -> float:
        return self.fit_record_.dual_objective

    def _report(self, *, stopped: bool) -> None:
        if self.verbose > 0:
            for level in self.levels_:
                seconds = level.seconds_clustering + level.seconds_training
                numbers = (level.level, level.n_clusters, seconds, level.n_support)
                log("level %d: %d clusters, %.1f s, %d support vectors", *numbers)
            record = self.fit_record_
            found = (len(self.support_), record.seconds, record.gap)
            log("%d support vectors, %.2f s, relative duality gap %.2g", *found)
        if self.duality_gap_ > self.tol:
            way_out = "Increase max_iter, decrease C, or accept a larger tol."
            warn_user(
                f"KernelSVC stopped with a relative duality gap of {self.duality_gap_:.2g}, above "
                f"tol={self.tol:g}. {'It was told to stop.' if stopped else way_out}",
                ConvergenceWarning,
            )

    def _check_kernel_input(self, X) -> None:
        traits = traits_of(self.kernel)
        if traits.pairwise:
            if X.shape[0] != X.shape[1]:
                raise ValueError(
                    f"Precomputed matrix must be a square matrix, got shape {X.shape}."
                )
            if not np.allclose(X, X.T, rtol=1e-5, atol=1e-8 * np.abs(X).max()):
                i, j = np.argwhere(~np.isclose(X, X.T, rtol=1e-5, atol=1e-8 * np.abs(X).max()))[0]
                raise ValueError(
                    f"The precomputed kernel matrix is not symmetric: {X[i, j]:g} at ({i}, {j}), "
                    f"{X[j, i]:g} at ({j}, {i})."
                )
            return
        if traits.non_negative and np.min(X) < 0:
            row, column = np.argwhere(np.asarray(X) < 0)[0]
            raise ValueError(
                f"kernel={self.kernel!r} needs non-negative data, but X is negative at row {row}, "
                f"column {column}."
            )
        if traits.ours and not traits.non_negative:
            check_unscaled(self, X)

    def _gamma(self, X, weight: np.ndarray) -> float:
        if not isinstance(self.gamma, str):
            return float(self.gamma)
        if self.gamma == "auto" or "gamma" not in traits_of(self.kernel).parameters:
            return 1.0 / X.shape[1]
        variance = weighted_variance(X, weight / weight.sum())
        return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0

    def _early_level(self, n: int) -> int | None:
        if not self.early:
            return None
        if not isinstance(self.early, (bool, np.bool_)):
            return int(self.early)
        return max(1, round(np.log(max(n / EARLY_ROWS, 1)) / np.log(self.branching)))

    def _cache_bytes(self) -> float:
        if self.cache_size != "auto":
            return min(1e6 * float(self.cache_size), 1e15)
        return CACHE_SHARE * free_memory()

    # ------------------------------------------------------------------ prediction

    def decision_function(self, X):
        """Decision values.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Or kernel values with the training rows for ``kernel="precomputed"``.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            One column for two classes, positive for ``classes_[1]``.
        """
        check_is_fitted(self, "model_")
        X = check_X(self, X, reset=False)
        outputs = self.model_.decision(X, Host(effective_n_jobs(self.n_jobs)))
        return Coding.of(self).scores(outputs)
