"""`OneClassSVM`: parameters, the scale of its margin, and prediction; `KernelMachine` fits."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from widemargin.kernel.attributes import SvcAttributes, refusing_others
from widemargin.kernel.backend import Host
from widemargin.kernel.few_rows import FewRows
from widemargin.kernel.parameters import KernelParameters
from widemargin.kernel.problems import Variables
from widemargin.kernel.solver import SolverSettings
from widemargin.kernel.training import TrainingSet
from widemargin.kernel.warm_start import Dual
from widemargin.multiclass import Numbers, Targets
from widemargin.resources import one_blas_thread
from widemargin.sklearn_private import count_samples
from widemargin.stored import Store
from widemargin.validation import check_number, sample_weights, weighted_quantile

Scorer = Callable[[Any], np.ndarray]  # rows in, a score for each out
SAMPLE = 1000  # rows that tell the margin before the fit
ROUGHLY = 1e-2  # relative gap of their problem
NEAR = 1e-6  # of the offset: decision values of rows on the boundary
SCORED = 10_000  # rows that tell the margin of an early model


class OneClassSVM(SvcAttributes, OutlierMixin, KernelParameters):
    """Support vector machine of one class: which rows are unlike the others.

    Minimises 1/2 a'Ka over 0 <= a_i <= 1, sum a = nu n, to a certified duality gap: the names, the
    scale and the optimum are those of scikit-learn's `OneClassSVM`.  Large problems are divided
    into clusters, whose solutions start the whole one; an early model stops there and predicts by
    routing each row to its cluster.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        As for `KernelSVC`.
    nu : float, default=0.5
        In (0, 1]: at most this share of the training rows is outside, and at least this share are
        support vectors.  A fit takes kernel values of that share of the rows with all others.
    gamma, degree, coef0
        As for `KernelSVC`.
    levels, branching, clustering, sample_size, early, early_prediction
        As for `KernelSVC`.
    tol, level_tol, max_iter, max_seconds, cache_size, checkpoint, warm_start, on_interrupt, \
            record_levels, n_jobs, random_state, verbose
        As for `KernelSVC`.

    Attributes
    ----------
    offset_ : ndarray of shape (1,)
        What scores are compared with: ``decision_function`` is ``score_samples`` minus it.  Of an
        early model, the score that a share ``nu`` of (up to 10,000) training rows are below.
    support_, n_support_, support_vectors_, dual_coef_, coef_
        As scikit-learn's `OneClassSVM` has them.
    intercept_ : ndarray of shape (1,)
        Minus ``offset_``.
    duality_gap_ : float
        Relative to ``objective_``, in double precision.
    objective_, dual_objective_ : float
        1/2 a'Ka plus the rows' sum of max(0, offset - score), which is positive and what is
        minimised but for the constant nu n offset; and the dual one.
    gamma_, shape_fit_, fit_status_, n_iter_, converged_, levels_, history_, model_
        As for `KernelSVR`.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where X was a data frame.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import OneClassSVM
    >>> X = np.vstack([np.random.default_rng(0).normal(size=(200, 2)), [[9, 9]]])
    >>> model = OneClassSVM(nu=0.1, gamma=0.1).fit(X)
    >>> model.predict([[0, 0], [9, 9]])
    array([ 1, -1])
    >>> bool(np.mean(model.predict(X) < 0) <= 0.1)
    True
    """

    C = 1.0  # the bound of a variable, by which LIBSVM scales the problem
    fit_intercept = "auto"

    @refusing_others
    def __init__(
        self,
        kernel="rbf",
        *,
        nu=0.5,
        gamma="scale",
        degree=3,
        coef0=0.0,
        levels="auto",
        branching=4,
        clustering="auto",
        sample_size=1000,
        early=False,
        early_prediction="routed",
        tol=1e-3,
        level_tol=1e-2,
        max_iter=100_000,
        max_seconds=None,
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
        self.nu = nu
        self.gamma = gamma
        self.degree, self.coef0 = degree, coef0
        self.levels, self.branching = levels, branching
        self.clustering, self.sample_size = clustering, sample_size
        self.early, self.early_prediction = early, early_prediction
        self.tol, self.level_tol = tol, level_tol
        self.max_iter, self.max_seconds = max_iter, max_seconds
        self.cache_size = cache_size
        self.checkpoint = checkpoint
        self.warm_start = warm_start
        self.on_interrupt = on_interrupt
        self.record_levels = record_levels
        self.n_jobs, self.random_state = n_jobs, random_state
        self.verbose = verbose

    def _check_params(self) -> None:
        super()._check_params()
        check_number("nu", self.nu, above=0, high=1)

    def fit(self, X, y=None, sample_weight=None):
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            As for `KernelSVC`, stores and kernel matrices too.
        y : ignored
        sample_weight : array-like of shape (n_samples,), default=None
            The bound of a row's variable: 2 is the same as two copies, 0 the same as leaving the
            row out.

        Returns
        -------
        self : OneClassSVM
        """
        return super().fit(X, None, sample_weight)

    def fit_path(self, X, y, Cs, sample_weight=None):
        """Not available: there is no C."""
        raise AttributeError("OneClassSVM has nu instead of C: fit(warm_start=True) for each nu.")

    def _targets(self, X, y, sample_weight) -> Targets:
        weight = sample_weights(sample_weight, X)
        present = (weight > 0).nonzero()[0]
        if len(present) < len(weight):
            X, weight = X[present], weight[present]
        return self._scaled(Targets(X, weight, present, np.zeros(len(weight), np.int32), None, {}))

    def _stored_targets(self, store) -> Targets:
        weight = store.weights()
        label = np.zeros(len(weight), np.int32)
        return self._scaled(Targets(store, weight, np.arange(0), label, None, {}))

    def _scaled(self, targets: Targets, margin: float = 1.0) -> Targets:
        """With a coding that makes the margin 1 inside, and the variables add up to 1 / margin."""
        scale = np.array([float(self.nu * targets.weight.sum()) * margin])
        coding = Numbers(-scale, scale)
        return replace(targets, coding=coding, fitted={"coding_": coding})

    def _prepare(self, X, y, sample_weight, *, several: bool = False) -> TrainingSet:
        y = None if isinstance(X, Store) else np.zeros(count_samples(X), dtype=np.int64)
        return super()._prepare(X, y, sample_weight, several=several)

    def _solve(self, training: TrainingSet, start: Dual | None) -> Dual:
        with one_blas_thread():
            margin, score = self._sampled(training)
            training = replace(training, targets=self._scaled(training.targets, margin), y=None)
            whole = self.levels == "auto" and not self.early and self.checkpoint is None
            if whole and not self.warm_start and len(training.data.levels) > SAMPLE:
                start = self._start(training, score)
        dual = super()._solve(training, start)
        if self.model_.router is not None:
            self._set_offset(training)
        return dual

    def _start(self, training: TrainingSet, score: Scorer) -> Dual:
        """The rows that some others score least, at their bounds, as many as the sum takes."""
        (problem,) = self._problems(training.targets)
        order = np.argsort(score(training.data.levels.rows), kind="stable")
        before = np.cumsum(problem.upper[order]) - problem.upper[order]
        alpha = np.empty(len(order))
        alpha[order] = np.clip(problem.total - before, 0, problem.upper[order])
        return Dual([alpha], self.C)

    def _sampled(self, training: TrainingSet) -> tuple[float, Scorer]:
        """The offset of some of the rows, with variables that add up to 1, and their scores.

        The offset of all rows is near it.  Levels, which have no constraint, are solved with it.
        """
        n = len(training.data.levels)
        some = np.unique(np.linspace(0, n - 1, min(n, SAMPLE)).astype(np.int64))
        data = training.data.levels[some].in_double().in_memory()
        share = training.targets.weight[some] / training.targets.weight[some].sum()
        with training.host as host:
            scores = host.product(data.kernel, data.rows, data.rows, share[:, None])
        mean = float(share @ scores[:, 0])
        guess = max(mean, 1e-3 * float(share @ data.kernel.diagonal(data.rows)))
        problem = _one_class(share / (self.nu * guess), 1 / guess)
        with closing(FewRows(data, Host().memory)) as few:
            limits = SolverSettings(ROUGHLY, max_iter=1000)
            found = few.solve(problem, np.zeros(len(some)), limits, lambda gap: False)
        margin = guess * (1 - float(found.offset[0]))

        def score(rows: Any) -> np.ndarray:
            support = np.flatnonzero(found.alpha)
            given, coef = training.data.levels, found.alpha[support, None]
            vectors = given.rows[some[support]]
            with training.host as host:
                return host.product(given.kernel, rows, vectors, coef)[:, 0]

        return (margin if margin > 0.01 * guess else guess), score

    def _problems(self, targets: Targets) -> list[Variables]:
        scale = float(targets.coding.scale[0])
        total = float(self.nu * targets.weight.sum()) / scale
        problem = _one_class(targets.weight / scale, total)
        return [replace(problem, has_offset=self._has_intercept())]

    def _set_offset(self, training: TrainingSet) -> None:
        """That of an early model, from the scores of training rows."""
        n = len(training.targets.weight)
        some = np.unique(np.linspace(0, n - 1, min(n, SCORED)).astype(np.int64))
        host = Host(effective_n_jobs(self.n_jobs))
        plain = replace(self.model_, intercept=np.zeros(1))
        score = plain.in_double().decision(training.targets.X[some], host)[:, 0]
        offset = weighted_quantile(score, training.targets.weight[some], float(self.nu))
        self.model_ = replace(self.model_, intercept=np.array([-offset]))

    @property
    def offset_(self) -> np.ndarray:
        return -self.intercept_

    def decision_function(self, X):
        """How far each row's score is above the offset: negative for rows unlike the others.

        Within 1e-6 of the offset, where free support vectors are but for rounding, it is 0.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Or kernel values with the training rows for ``kernel="precomputed"``; or a `BlockStore`
            of values, which is read block by block.

        Returns
        -------
        decision : ndarray of shape (n_samples,)
        """
        check_is_fitted(self, "model_")
        near = NEAR * float(np.abs(self.offset_[0]))

        def above(outputs: np.ndarray) -> np.ndarray:
            return np.where(np.abs(outputs[:, 0]) <= near, 0.0, outputs[:, 0])

        def numbers(model, rows, host: Host) -> np.ndarray:
            return model.in_double().decision(rows, host, above)

        return self._of_rows(X, numbers)

    def score_samples(self, X):
        """Sums of each row's kernel values with the support vectors, times their coefficients."""
        return self.decision_function(X) + self.offset_

    def predict(self, X):
        """1 for rows like the training rows, those on the boundary included; -1 for others."""
        return np.where(self.decision_function(X) >= 0, 1, -1)


def _one_class(upper: np.ndarray, total: float) -> Variables:
    n = len(upper)
    given = (np.arange(n), np.ones(n), np.full(n, -1.0), upper)
    return Variables(*given, has_offset=True, total=total)
