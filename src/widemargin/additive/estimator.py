"""`AdditiveSVC`: the scikit-learn face of what lies below it."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from widemargin.additive.batches import (
    BatchSolution,
    BatchTask,
    Dual,
    fit_record,
    make_batches,
    precision,
    solve_batches,
)
from widemargin.additive.explanation import ExplanationMixin
from widemargin.additive.learn import Approximation, Settings, learn
from widemargin.additive.model import AdditiveModel
from widemargin.additive.problem import LANES, Layout, SharedProblem
from widemargin.additive.solver import Stopping
from widemargin.additive.source import Values
from widemargin.classifier import MarginClassifier
from widemargin.losses import LOSSES
from widemargin.multiclass import Coding
from widemargin.progress import log, progress_of
from widemargin.validation import (
    check_bool,
    check_choice,
    check_n_jobs,
    check_number,
    check_X,
    check_X_y,
    labelled,
    sample_weights,
)
from widemargin.warning import warn_user

INTERCEPT_SHARE = 0.1
"""The constant feature's share of the mean kernel diagonal.  A larger one lets the intercept
move more freely but couples all samples, which costs sweeps."""


@dataclass(frozen=True)
class TrainingSet:
    """Everything that does not depend on C: what a path over C computes once."""

    learned: Approximation
    classes: np.ndarray
    label: np.ndarray
    weight: np.ndarray  # of each sample, class weights included
    diagonal: np.ndarray  # k(x, x) of each sample
    present: np.ndarray  # rows of positive weight
    X: object
    y: object

    def coding(self, multi_class: str) -> Coding:
        return Coding(multi_class, len(self.classes))


class AdditiveSVC(ExplanationMixin, MarginClassifier):
    """Support vector classification with additive kernels, at the cost of a linear SVM.

    The kernel is a sum over features of one scalar kernel, k(x, y) = sum_j k(x_j, y_j).  Values
    are quantised to bins, the scalar kernel is factorised on the bins, and the dual is solved by
    coordinate descent on look-up tables, 16 classes at a time.

    Parameters
    ----------
    kernel : str, PowerMean or callable, default="intersection"
        "intersection", "chi2", "hellinger", "jensen_shannon", "linear", ``PowerMean(p)`` with p
        in [-inf, 0], or a vectorised function of two arrays (symmetric, and zero at k(0, y) for
        sparse data).
    C : float, default=1.0
        Weight of the losses, per unit of the mean kernel diagonal (see ``C_unit``).
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
    approximation : str, default="spectral"
        How the kernel becomes a pair of tables: "spectral" (best factor for the bins at hand),
        "chebyshev" (PmSVM-LUT), "chebyshev_linear" (its nodes placed in x, for study), "pmsvm"
        (PmSVM's three nodes, values not binned), "unary" (ICD's tables, exact on the bins) or
        "fourier" (Vedaldi and Zisserman).
    rank : int or "auto", default="auto"
        Numbers per bin.  "auto" takes the smallest of 1, 2, 3, 4, 8, 12, 16 whose weighted
        relative error is below 0.1 %, or 16 where none is (kernels with a kink, such as the
        intersection); 3 for the published methods.  Training time grows with the rank.
    n_bins : int or "auto", default="auto"
        Number of bins, at most 65,535.  "auto": 255, or as many as an integer histogram needs
        with ``scaling=None``, or 100 with ``scaling="percentile"``.
    binning : {"auto", "uniform", "log", "exact"}, default="auto"
        Where the bins lie.  "auto": at the distinct values if there are at most ``n_bins``, else
        half by quantiles and half evenly in sqrt(t); "uniform" (PmSVM-LUT); "log": equal ratios;
        "exact": one bin per distinct value, however many.
    scaling : {"auto", "global", "minmax", "percentile", None}, default="auto"
        How raw values reach the kernel: "global" divides all features by one number, "minmax"
        maps each feature to [0, 1], "percentile" is ICD's rule (eq. 13), None uses values as
        they are.  "auto" is "global" for non-negative data whose columns typically start at zero
        and whose maxima stay within 100 times their median, and "minmax" otherwise.
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
    fit_intercept : bool, default=True
        Learn an intercept, as the weight of a constant (hence regularised) feature.
    class_weight : dict, "balanced" or None, default=None
        Multiplies the sample weights by class.
    C_unit : {"diagonal", "raw"}, default="diagonal"
        "diagonal" divides C by the mean of k(x, x), so that C = 1 is a sensible start whatever
        the number of features; "raw" is the papers' C.
    tol : float, default=1e-3
        Relative duality gap at which every binary problem stops.  The tables "chebyshev" and
        "pmsvm" are not symmetric, so the iteration minimises no objective and has no gap: there
        ``tol`` is LIBLINEAR's bound on the projected gradient.  Below 1e-4 the arithmetic is
        double precision.
    max_iter : int, default=1000
        Sweeps over the data.
    warm_start : bool, default=False
        Keep the dual variables and start the next fit on the same rows from them.
    n_jobs : int or None, default=None
        Threads, over batches of 16 classes and over blocks of rows in prediction.  Results do
        not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the sweeps' order.
    verbose : int, default=0
        1 reports each fit's summary, 2 each sweep: to the logger "widemargin" where logging is set
        up, else to the terminal.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_iter_ : int
        Sweeps of the slowest batch (0 where a warm start was within ``tol`` already).
    duality_gap_ : float
        Largest relative duality gap among the binary problems (NaN without symmetric tables).
    objective_ : float
        Sum of the primal objectives (NaN without symmetric tables).
    violation_ : float
        Largest violation of the optimality conditions (LIBLINEAR's projected gradient).
    intercept_ : ndarray of shape (n_outputs,)
    C_ : float
        C in the kernel's own unit.
    rank_ : int
        Numbers per bin (0 for "unary").
    model_ : AdditiveModel
        The arrays that prediction uses.
    history_ : list of list of dict
        Per batch of classes, one record per sweep.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)

    See Also
    --------
    AdditiveMap : The same tables as a transformer.
    widemargin.papers : Estimators set as the papers say.

    References
    ----------
    J. Wu, "A Fast Dual Method for HIK SVM Learning", ECCV 2010 (ICD).
    J. Wu, "Power Mean SVM for Large Scale Visual Classification", CVPR 2012 (PmSVM).
    H. Yang and J. Wu, "Practical Large Scale Classification with Additive Kernels", ACML 2012
    (PmSVM-LUT).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from widemargin import AdditiveSVC
    >>> X, y = load_digits(return_X_y=True)
    >>> model = AdditiveSVC("chi2", random_state=0).fit(X[:1000], y[:1000])
    >>> bool(model.score(X[1000:], y[1000:]) > 0.93)
    True
    >>> bool(model.duality_gap_ <= 1e-3)
    True
    """

    def __init__(
        self,
        kernel="intersection",
        *,
        C=1.0,
        loss="squared_hinge",
        approximation="spectral",
        rank="auto",
        n_bins="auto",
        binning="auto",
        scaling="auto",
        multi_class="ovr",
        fit_intercept=True,
        class_weight=None,
        C_unit="diagonal",
        tol=1e-3,
        max_iter=1000,
        warm_start=False,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.kernel = kernel
        self.C = C
        self.loss = loss
        self.approximation = approximation
        self.rank = rank
        self.n_bins = n_bins
        self.binning = binning
        self.scaling = scaling
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.C_unit = C_unit
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = self.scaling in ("global", None)
        return tags

    # ------------------------------------------------------------------ fitting

    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Any real or integer dtype; never copied to float64.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of 2 is the same as two copies, a weight of 0 as absence.

        Returns
        -------
        self : AdditiveSVC
        """
        self._check_params()
        training = self._prepare(X, y, sample_weight)
        return self._solve(training, self._warm_start(training), keep_dual=self.warm_start)

    def fit_path(self, X, y, Cs, sample_weight=None):
        """Fit one model per value of C, each started from the one before.

        Codes and tables are computed once.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        Cs : sequence of float
            Values of C, best in ascending order.

        Returns
        -------
        models : list of AdditiveSVC
            Fitted copies of this estimator, in the order of ``Cs``.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from widemargin import AdditiveSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> [m.C for m in AdditiveSVC(random_state=0).fit_path(X, y, [0.1, 1.0])]
        [0.1, 1.0]
        """
        models = self._fit_along(
            Cs,
            lambda model: model._prepare(X, y, sample_weight),
            lambda model, training, last: model._solve_managed(training, last and last._dual),
        )
        if not self.warm_start:
            for model in models:
                del model._dual
        return models

    @with_callbacks
    def _solve_managed(self, training, start):
        return self._solve(training, start, keep_dual=True)

    def _check_params(self) -> None:
        self._settings().check()
        check_number("C", self.C, above=0)
        if not np.isfinite(self.C):
            raise ValueError(f"C={self.C!r} must be finite.")
        check_choice("loss", self.loss, ("squared_hinge", "hinge"))
        check_choice("multi_class", self.multi_class, ("ovr", "crammer_singer"))
        check_choice("C_unit", self.C_unit, ("diagonal", "raw"))
        check_number("tol", self.tol, above=0)
        check_number("max_iter", self.max_iter, low=1, integer=True)
        check_bool("fit_intercept", self.fit_intercept)
        check_bool("warm_start", self.warm_start)
        check_n_jobs(self.n_jobs)
        if not isinstance(self.verbose, bool):
            check_number("verbose", self.verbose, low=0)

    def _settings(self) -> Settings:
        return Settings(
            self.kernel, self.approximation, self.rank, self.n_bins, self.binning, self.scaling
        )

    def _prepare(self, X, y, sample_weight) -> TrainingSet:
        """Validate, encode and factorise: all that does not depend on C."""
        X, y = check_X_y(self, X, y)
        data = labelled(self, X, y, sample_weights(sample_weight, X, y, self.class_weight))
        learned = learn(Values.of(data.X), data.weight, self._settings())
        return TrainingSet(
            learned,
            data.classes,
            data.label,
            data.weight,
            learned.diagonal(),
            data.present,
            X,
            y,
        )

    def _solve(self, training: TrainingSet, start: Dual | None, *, keep_dual: bool):
        """Minimise, from the dual variables of another fit if there are any."""
        started = time.perf_counter()
        C, shared = self._shared_problem(training)
        coding = training.coding(self.multi_class)
        weights = shared.tables.weights(coding.n_outputs)
        tasks = make_batches(
            shared,
            coding,
            # The variables grow with C, bounded ones exactly so.
            start=None if start is None else start.coef * (C / start.C),
            seed=check_random_state(self.random_state).randint(np.iinfo(np.int32).max),
            stopping=Stopping(self.tol, self.max_iter),
        )
        context = self._init_callback_context(max_subtasks=len(tasks), sequential_subtasks=False)
        context.call_on_fit_task_begin(estimator=self, X=training.X, y=training.y)
        fit = _FitWatch(self, training, context, len(tasks))
        solutions = solve_batches(tasks, weights, self._executor(), fit.batch)
        bias = np.concatenate([solution.bias.ravel() for solution in solutions])
        for name, value in self._fitted(training, shared, weights, bias).items():
            setattr(self, name, value)
        self.fit_record_ = fit_record(solutions, shared, time.perf_counter() - started)
        self.C_ = C
        if keep_dual:
            coef = np.hstack([solution.coef for solution in solutions])
            self._dual = Dual(coef, C, self.multi_class, training.label, training.present)
        context.call_on_fit_task_end(
            estimator=self, X=training.X, y=training.y, reconstruction_attributes=dict
        )
        self._report(solutions)
        return self

    def _shared_problem(self, training: TrainingSet) -> tuple[float, SharedProblem]:
        """C in the kernel's own unit, and what all classes have in common."""
        mean = float(np.average(training.diagonal, weights=training.weight))
        scaled = self.C_unit == "diagonal" and mean > 0
        C = self.C / mean if scaled else float(self.C)
        bias_value = 0.0
        if self.fit_intercept:
            bias_value = np.sqrt(INTERCEPT_SHARE * mean) if scaled else 1.0
        c = C * training.weight
        layout = Layout(
            lanes=1 if training.coding(self.multi_class).n_outputs == 1 else LANES,
            dtype=precision(self.tol, c, training.diagonal),
            simplex=self.multi_class == "crammer_singer",
        )
        return C, SharedProblem.of(
            training.learned,
            layout,
            label=training.label,
            c=c,
            kernel_diagonal=training.diagonal,
            bias_value=bias_value,
            loss=LOSSES[self.loss],
        )

    def _fitted(self, training: TrainingSet, shared: SharedProblem, weights, bias) -> dict:
        """The attributes that prediction needs."""
        n_outputs = training.coding(self.multi_class).n_outputs
        intercept = shared.bias_value * bias[:n_outputs].astype(np.float64)
        model = AdditiveModel.of(training.learned, shared.tables, weights, intercept)
        return {
            "classes_": training.classes,
            "model_": model,
            "intercept_": model.intercept,
            "rank_": model.tables.rank,
        }

    @property
    def violation_(self) -> float:
        return self.fit_record_.violation

    def _report(self, solutions: list[BatchSolution]) -> None:
        symmetric = self.model_.tables.symmetric
        converged = all(solution.outcome.converged for solution in solutions)
        what = "relative duality gap" if symmetric else "projected gradient violation"
        reached = self.duality_gap_ if symmetric else self.violation_
        if self.verbose > 0:
            seconds = self.fit_record_.seconds
            log("%d sweeps in %.2f s, %s %.2g", self.n_iter_, seconds, what, reached)
        if not np.all(np.isfinite(self.model_.intercept)) or not np.isfinite(reached):
            warn_user(
                f"AdditiveSVC diverged after {self.n_iter_} sweeps: tables that are not symmetric "
                'have no objective. Decrease C, or use approximation="spectral".',
                ConvergenceWarning,
            )
        elif not converged and self.n_iter_ >= self.max_iter:
            warn_user(
                f"AdditiveSVC stopped after max_iter={self.max_iter} sweeps with a {what} of "
                f"{reached:.2g}, above tol={self.tol:g}. Increase max_iter, decrease C, or accept "
                "a larger tol.",
                ConvergenceWarning,
            )

    def _warm_start(self, training: TrainingSet) -> Dual | None:
        """The dual variables of the last fit, if they suit this one."""
        dual = getattr(self, "_dual", None)
        if not self.warm_start or dual is None:
            return None
        shape = (len(training.label), training.coding(self.multi_class).n_outputs)
        if dual.coef.shape != shape or dual.multi_class != self.multi_class:
            warn_user(
                "warm_start=True, but the number of rows or classes changed, or multi_class did: "
                "starting afresh."
            )
            return None
        return dual

    # ------------------------------------------------------------------ prediction

    def decision_function(self, X):
        """Signed distances to the decision surface, up to the norm of the weights.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Values outside the training range are clipped to it.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            One column for two classes, positive for ``classes_[1]``.
        """
        check_is_fitted(self, "model_")
        X = check_X(self, X, reset=False)
        return Coding.of(self).scores(self.model_.decision(Values.of(X), self.n_jobs))


class _FitWatch:
    """Tells scikit-learn's callbacks of the batches of a fit."""

    def __init__(self, estimator: AdditiveSVC, training: TrainingSet, context, n_batches: int):
        self.estimator, self.training, self.n_batches = estimator, training, n_batches
        self.progress = progress_of(estimator, context, training.X, training.y)

    def batch(self, task: BatchTask) -> _BatchWatch:
        return _BatchWatch(self, task)


class _BatchWatch:
    """Tells them of the epochs of one batch."""

    def __init__(self, fit: _FitWatch, task: BatchTask):
        self._fit, self._task = fit, task
        self._progress = fit.progress.task(
            f"batch {task.number}", task.number, task.stopping.max_iter
        )

    def epoch(self, state=None) -> bool:
        fit = self._fit
        if fit.estimator.verbose > 1:
            log("batch %d of %d: sweep done", self._task.number + 1, fit.n_batches)
        # A model in the making can be scored only where one batch holds all classes.
        return self._progress.epoch((lambda: self._fitted(state)) if fit.n_batches == 1 else None)

    def end(self) -> bool:
        return self._progress.end()

    def _fitted(self, problem) -> dict:
        """What the callbacks may keep: the problem's weights will change."""
        fit = self._fit
        weights = problem.weights.reshape(-1, *problem.shared.tables.block_shape).copy()
        return fit.estimator._fitted(fit.training, problem.shared, weights, problem.bias.ravel())
