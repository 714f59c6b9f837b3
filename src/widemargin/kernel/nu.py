"""`NuSVC` and `NuSVR`: parameters, and the place of the search in a fit."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from widemargin.errors import warn_user
from widemargin.kernel.attributes import refusing_others
from widemargin.kernel.backend import Host
from widemargin.kernel.divide import Division, FitState, divide_and_conquer
from widemargin.kernel.estimator import KernelSVC
from widemargin.kernel.exact import KernelRows
from widemargin.kernel.few_rows import FewRows
from widemargin.kernel.machine import KernelMachine
from widemargin.kernel.nu_search import ROUGH, ByC, ByEpsilon, Search
from widemargin.kernel.problem import Solution
from widemargin.kernel.problems import Variables
from widemargin.kernel.regression import KernelSVR
from widemargin.kernel.solver import SolverSettings
from widemargin.kernel.training import TrainingSet
from widemargin.validation import check_number

SAMPLE = 1000  # rows that tell the parameter before the fit


class NuFit(KernelMachine):
    """A `KernelMachine` of nu: it searches C or epsilon, on the whole problem."""

    nu: float
    levels, branching, clustering, sample_size, level_tol = 0, 4, "auto", 1000, 1e-2
    early, early_prediction, fit_intercept = False, "routed", True
    checkpoint, warm_start, on_interrupt, record_levels = None, False, "raise", False

    def _prepare(self, X, y, sample_weight, *, several: bool = False) -> TrainingSet:
        return super()._prepare(X, y, sample_weight, several=True)  # fits share kernel rows

    def _divide(self, state: FitState, division: Division, training: TrainingSet) -> None:
        search, data = self._search(division.problems, training), division.data.whole
        services, settings = division.services, division.plan.settings
        if services.backend.are_few(len(data)):
            task = services.progress.task("level 0")
            found, solutions = self._searched(
                search, data, settings, lambda gap: state.should_stop(task, gap)
            )
            task.end()
        else:
            if len(search.base) == 1:
                self._start(search, training)

            def solve(problems, starts, tol, wanted) -> list[Solution]:
                state.alphas[:] = starts
                plan = replace(division.plan, settings=replace(settings, tol=tol))
                divide_and_conquer(state, replace(division, problems=problems, plan=plan))
                return state.solutions

            found, solutions = search.run(solve, settings.tol)
        state.alphas[:], state.solutions = [s.alpha for s in solutions], solutions
        state.levels.clear()
        state.double |= all(s.double for s in solutions)
        state.n_iter = max(s.n_iter for s in solutions)
        state.stopped |= any(s.stopped for s in solutions)
        if search.is_hopeless:
            warn_user(
                f"nu={self.nu:g} is too small for these data: the classes overlap by more, and "
                "the margin is 0 at the optimum. Increase nu.",
                ConvergenceWarning,
            )
        division.problems[:] = found if isinstance(search, ByC) else search.base
        self._keep_place(search, training)

    def _searched(
        self,
        search: Search,
        data: KernelRows,
        settings: SolverSettings,
        on_step: Callable[[float], bool] = lambda gap: False,
    ) -> tuple[list[Variables], list[Solution]]:
        """Search on few rows, whose kernel values all fits share."""
        memory, several = Host().memory, len(search.base) > 1 or search.base[0].group is not None
        with closing(FewRows(data, memory, search.base if several else ())) as few:

            def solve(problems, starts, tol, wanted) -> list[Solution]:
                how, nothing = (replace(settings, tol=tol), on_step), Solution(np.empty(0), 0, 0, 0)
                each = zip(problems, starts, wanted, strict=True)
                return [few.solve(v, a, *how) if more else nothing for v, a, more in each]

            return search.run(solve, settings.tol)

    def _start(self, search: Search, training: TrainingSet) -> None:
        """Move the search to where it ends on some of the rows."""
        (whole,) = search.base
        some = np.unique(np.linspace(0, len(whole) - 1, SAMPLE).astype(np.int64))
        share = float(whole.upper.sum() / whole.upper[some].sum())
        own = replace(whole[some], row=np.arange(len(some)))
        if isinstance(search, ByEpsilon):  # as flexible as on all rows
            own = replace(own, upper=own.upper * share)
        data = training.data.levels[whole.row[some]].in_double().in_memory()
        try:
            small = self._search([own], training)
            self._searched(small, data, SolverSettings(ROUGH, max_iter=1000))
        except ValueError:  # the sample need not have enough of both classes
            return
        search.place = small.place - (np.log(share) if isinstance(search, ByC) else 0.0)
        search.slope = small.slope

    def _search(self, base: list[Variables], training: TrainingSet) -> Search:
        raise NotImplementedError

    def _keep_place(self, search, training: TrainingSet) -> None:
        raise NotImplementedError


class NuSVC(NuFit, KernelSVC):
    """Support vector classification whose C follows from the share of support vectors, nu.

    Minimises 1/2 |w|^2 - nu rho + sum_i max(0, rho - y_i f(x_i)) / n, where rho is the margin, to a
    certified duality gap, as scikit-learn's `NuSVC` does: at most a share nu of the training rows
    misses the margin, and at least this share are support vectors.  Divided by rho, the model is
    that of `KernelSVC` with C = 1 / (n rho), and so are its attributes: the fit searches this C for
    every pair of classes.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        As for `KernelSVC`.  "linear" is solved by kernel values too, with a free intercept.
    nu : float, default=0.5
        In (0, 1], and at most twice the share of the smaller class of each pair.
    gamma, degree, coef0, decision_function_shape, break_ties, class_weight
        As for `KernelSVC`.
    tol : float, default=1e-3
        Relative duality gap of every pair's problem, the constraint of nu included.
    max_iter, max_seconds, cache_size, n_jobs, random_state, verbose
        As for `KernelSVC`; ``max_iter`` counts those of each fit of the search.

    Attributes
    ----------
    C_ : ndarray of shape (n_outputs,)
        The C of each pair of classes, before sample and class weights.
    duality_gap_, objective_, dual_objective_ : float
        As for `KernelSVC` with ``C_``; an upper and a lower bound.
    classes_, support_, n_support_, support_vectors_, dual_coef_, intercept_, class_weight_, \
            coef_, shape_fit_, fit_status_, gamma_, n_iter_, converged_, history_, model_
        As for `KernelSVC`.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where X was a data frame.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import NuSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NuSVC(nu=0.2).fit(X, y)
    >>> bool(len(model.support_) >= 0.2 * len(X))
    True
    """

    C, multi_class = 1.0, "ovo"

    @refusing_others
    def __init__(
        self,
        kernel="rbf",
        *,
        nu=0.5,
        gamma="scale",
        degree=3,
        coef0=0.0,
        decision_function_shape="ovr",
        break_ties=True,
        class_weight=None,
        tol=1e-3,
        max_iter=100_000,
        max_seconds=None,
        cache_size="auto",
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.kernel = kernel
        self.nu = nu
        self.gamma = gamma
        self.degree, self.coef0 = degree, coef0
        self.decision_function_shape, self.break_ties = decision_function_shape, break_ties
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter, self.max_seconds = max_iter, max_seconds
        self.cache_size = cache_size
        self.n_jobs, self.random_state = n_jobs, random_state
        self.verbose = verbose

    def _check_params(self) -> None:
        super()._check_params()
        check_number("nu", self.nu, above=0, high=1)

    def fit_path(self, X, y, Cs, sample_weight=None):
        """Not available: there is no C."""
        raise AttributeError("NuSVC has nu instead of C: fit one for each nu.")

    def _is_linear(self) -> bool:
        return False

    def _search(self, base: list[Variables], training: TrainingSet) -> Search:
        data = training.data.levels
        return ByC(base, float(self.nu), float(data.kernel.diagonal(data.rows).mean()) or 1.0)

    def _keep_place(self, search: ByC, training: TrainingSet) -> None:
        self.C_ = 1 / search.ends.mixed(search.ends.multiplier)


class NuSVR(NuFit, KernelSVR):
    """Support vector regression whose epsilon follows from the share of rows outside, nu.

    Minimises 1/2 |w|^2 + C (nu n epsilon + sum_i max(0, |y_i - f(x_i)| - epsilon)) over f and
    epsilon, to a certified duality gap, as scikit-learn's `NuSVR` does: at most a share nu of the
    training rows is outside the tube, and at least this share are support vectors.  The model is
    that of `KernelSVR` with this epsilon, which the fit searches for every target.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        As for `KernelSVR`.
    nu : float, default=0.5
        In (0, 1].
    C : float, default=1.0
        In the unit of the targets, as in scikit-learn's NuSVR.
    gamma, degree, coef0
        As for `KernelSVC`.
    tol : float, default=1e-3
        Relative duality gap of every target's problem, the constraint of nu included.
    max_iter, max_seconds, cache_size, n_jobs, random_state, verbose
        As for `KernelSVC`; ``max_iter`` counts those of each fit of the search.

    Attributes
    ----------
    epsilon_ : ndarray of shape (n_outputs,)
        The epsilon of each target, in its unit.
    duality_gap_, objective_, dual_objective_ : float
        Bounds of the problem above, in the square of the targets' unit.
    support_, n_support_, support_vectors_, dual_coef_, intercept_, coef_, shape_fit_, \
            fit_status_, gamma_, n_iter_, converged_, history_, coding_, model_
        As for `KernelSVR`.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where X was a data frame.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from widemargin import NuSVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = NuSVR(C=100, nu=0.3).fit(X, y)
    >>> outside = abs(y - model.predict(X)) > 1.01 * model.epsilon_
    >>> bool(outside.mean() <= 0.3)
    True
    """

    epsilon = 0.0  # of the problems that the search begins with

    @refusing_others
    def __init__(
        self,
        kernel="rbf",
        *,
        nu=0.5,
        C=1.0,
        gamma="scale",
        degree=3,
        coef0=0.0,
        tol=1e-3,
        max_iter=100_000,
        max_seconds=None,
        cache_size="auto",
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.kernel = kernel
        self.nu, self.C = nu, C
        self.gamma = gamma
        self.degree, self.coef0 = degree, coef0
        self.tol = tol
        self.max_iter, self.max_seconds = max_iter, max_seconds
        self.cache_size = cache_size
        self.n_jobs, self.random_state = n_jobs, random_state
        self.verbose = verbose

    def _check_params(self) -> None:
        super()._check_params()
        check_number("nu", self.nu, above=0, high=1)

    def _search(self, base: list[Variables], training: TrainingSet) -> Search:
        return ByEpsilon(base, float(self.nu))

    def _keep_place(self, search: ByEpsilon, training: TrainingSet) -> None:
        epsilon = search.ends.mixed(search.ends.multiplier)
        self.epsilon_ = epsilon * training.targets.coding.scale
