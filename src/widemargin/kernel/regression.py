"""`KernelSVR`: parameters, targets that are numbers, and prediction; `KernelMachine` fits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.utils.validation import check_is_fitted

from widemargin.kernel.attributes import SvcAttributes, refusing_others
from widemargin.kernel.backend import Host
from widemargin.kernel.parameters import KernelParameters
from widemargin.kernel.problems import Variables, number_problems
from widemargin.multiclass import Targets
from widemargin.regressor import MarginRegressor
from widemargin.validation import check_number


class KernelSVR(SvcAttributes, MarginRegressor, KernelParameters):
    """Support vector regression with any kernel, exact or early, by divide and conquer.

    Minimises 1/2 |w|^2 + C sum_i max(0, |y_i - f(x_i)| - epsilon) with f(x) = w'x + b, to a
    certified duality gap, with one dual variable per row: the kernel matrix is as large as that of
    `KernelSVC`.  Large problems are divided into clusters, whose solutions start the whole one; an
    early model stops there and predicts by routing each row to its cluster.

    Targets are centred at their median and divided by their spread inside, and C and epsilon with
    them: the model is the same, and ``tol`` means the same for dollars and millimetres.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        As for `KernelSVC`.  "linear" is solved by kernel values too, with a free intercept.
    C : float, default=1.0
        In the unit of the targets, as in scikit-learn's SVR.
    epsilon : float, default=0.1
        Errors up to this do not count; in the unit of the targets.
    gamma, degree, coef0
        As for `KernelSVC`.
    levels, branching, clustering, sample_size, early, early_prediction
        As for `KernelSVC`.
    fit_intercept : bool or "auto", default="auto"
        Fit a free intercept on the whole problem.  "auto" is True; that of an early model is the
        median of the targets.  False: f(0) = 0 for a linear kernel, and targets are not centred.
    tol, level_tol, max_iter, max_seconds, cache_size, checkpoint, warm_start, on_interrupt, \
            record_levels, n_jobs, random_state, verbose
        As for `KernelSVC`.

    Attributes
    ----------
    support_ : ndarray of shape (n_support,)
        Rows that are support vectors of any output, in ascending order.
    n_support_ : ndarray of shape (1,)
    support_vectors_ : ndarray or CSR array of shape (n_support, n_features)
        In the precision of the model; of a precomputed kernel, of shape (0, 0).
    dual_coef_ : ndarray or CSR array of shape (n_outputs, n_support)
        Positive for rows above the model, at most C times the row's weight in size.
    intercept_ : ndarray of shape (n_outputs,)
    coef_ : ndarray or CSR array of shape (n_outputs, n_features)
        Of a linear kernel.
    gamma_, shape_fit_, fit_status_, n_iter_, converged_, levels_
        As for `KernelSVC`.
    duality_gap_ : float
        Largest relative gap of the outputs' problems, in double precision.
    objective_, dual_objective_ : float
        Sums over the outputs, in the square of the targets' unit.
    history_ : list of list of dict
        As for `KernelSVC`, with objectives of scaled targets.  So are those of ``levels_``.
    coding_ : Numbers
        Centre and scale of each output's targets in the fit.
    model_ : KernelModel
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where X was a data frame.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from widemargin import KernelSVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = KernelSVR(C=100, epsilon=10).fit(X[:300], y[:300])
    >>> bool(model.score(X[300:], y[300:]) > 0.45)
    True
    >>> bool(model.duality_gap_ <= 1e-3)
    True
    """

    @refusing_others
    def __init__(
        self,
        kernel="rbf",
        *,
        C=1.0,
        epsilon=0.1,
        gamma="scale",
        degree=3,
        coef0=0.0,
        levels="auto",
        branching=4,
        clustering="auto",
        sample_size=1000,
        early=False,
        early_prediction="routed",
        fit_intercept="auto",
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
        self.C, self.epsilon = C, epsilon
        self.gamma = gamma
        self.degree, self.coef0 = degree, coef0
        self.levels, self.branching = levels, branching
        self.clustering, self.sample_size = clustering, sample_size
        self.early, self.early_prediction = early, early_prediction
        self.fit_intercept = fit_intercept
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
        check_number("epsilon", self.epsilon, low=0, finite=True)

    def _problems(self, targets: Targets) -> list[Variables]:
        assert targets.value is not None
        scale = targets.coding.scale
        upper = self.C * targets.weight[:, None] / scale
        problems = number_problems(targets.value, upper, self.epsilon / scale)
        return [replace(problem, has_offset=self._has_intercept()) for problem in problems]

    def predict(self, X):
        """Predict the target of each row, in double precision.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Or kernel values with the training rows for ``kernel="precomputed"``; or a `BlockStore`
            of values, which is read block by block.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            As y was in ``fit``.
        """
        check_is_fitted(self, "model_")
        finish = self.coding_.scores

        def numbers(model, rows, host: Host) -> np.ndarray:
            return model.in_double().decision(rows, host, finish)

        return self._of_rows(X, numbers)
