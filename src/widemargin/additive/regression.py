"""`AdditiveSVR`: parameters and prediction; `AdditiveMachine` fits."""

from __future__ import annotations

import numpy as np

from widemargin.additive.explanation import ExplanationMixin
from widemargin.additive.machine import AdditiveMachine
from widemargin.losses import TUBES, Loss
from widemargin.multiclass import Targets
from widemargin.regressor import MarginRegressor, powers_of_two
from widemargin.validation import check_choice, check_number


class AdditiveSVR(ExplanationMixin, MarginRegressor, AdditiveMachine):
    """Support vector regression with additive kernels, at the cost of a linear SVM.

    Predicts a sum of one learned function per feature, in the target's unit, with the machine of
    `AdditiveSVC`.  Several targets (columns of y) are learned 16 at a time.

    Parameters
    ----------
    kernel : str, PowerMean or callable, default="auto"
        As in `AdditiveSVC`.
    C : float, default=1.0
        Weight of the losses, see ``C_unit``.
    epsilon : float, default=0.0
        Half the width of the tube, in the target's unit; smaller errors have no loss.
    loss : {"squared_epsilon_insensitive", "epsilon_insensitive"}, \
default="squared_epsilon_insensitive"
        The squared excess of an error over epsilon, which estimates the mean of the target, or the
        excess itself, which is less sensitive to outliers.
    approximation, rank, n_bins, binning, scaling, missing, categorical_features
        As in `AdditiveSVC`.
    fit_intercept : bool, default=True
        Learn an intercept: the weighted median of the target, plus the weight of a constant
        (hence regularised) feature.
    C_unit : {"diagonal", "raw"}, default="diagonal"
        "diagonal" divides C by the mean of k(x, x) and, with "epsilon_insensitive", multiplies it
        by the target's spread (its median distance from its median), so that C = 1 is a sensible
        start for any number of features and any unit of the target.  "raw" is LIBLINEAR's C, with
        its intercept (``-B 1``) and without the median.
    tol : float, default=1e-2
        Relative duality gap at which every target stops.  The fit scales targets by their
        spread, so it does not depend on their unit.  See `AdditiveSVC` for tables without a gap.
    stopping, visits, max_iter, max_seconds, warm_start, n_jobs, random_state, verbose
        As in `AdditiveSVC`.

    Attributes
    ----------
    coding_ : Numbers
        Centre and scale that the fit uses for each target.
    n_iter_, converged_, kernel_, rank_, model_, columns_, history_, n_features_in_, \
feature_names_in_, label_name_
        As in `AdditiveSVC`.
    duality_gap_ : float
        Largest relative duality gap among the targets; see `AdditiveSVC`.
    objective_ : float
        Sum of the primal objectives, in the square of the target's unit.
    violation_ : float
        Largest violation of the optimality conditions, of targets divided by their scale.
    intercept_ : ndarray of shape (n_outputs,)
    C_ : float
        C in the kernel's unit, of targets divided by their scale.
    feature_importances_ : ndarray of shape (n_features_in_,)
        The mean of |contribution| of each feature over the training data, in the target's unit.

    See Also
    --------
    AdditiveSVC : Classification with the same machine.

    References
    ----------
    C.-H. Ho and C.-J. Lin, "Large-scale Linear Support Vector Regression", JMLR 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from widemargin import AdditiveSVR
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = AdditiveSVR(C=0.1, random_state=0).fit(X[:300], y[:300])
    >>> bool(model.score(X[300:], y[300:]) > 0.45)
    True
    >>> grid, g = model.shape_function("bmi")  # what the body mass index adds to the prediction
    >>> bool(g[-1] > g[0] + 40)
    True
    """

    def __init__(
        self,
        kernel="auto",
        *,
        C=1.0,
        epsilon=0.0,
        loss="squared_epsilon_insensitive",
        approximation="spectral",
        rank="auto",
        n_bins="auto",
        binning="auto",
        scaling="auto",
        missing="error",
        categorical_features="from_dtype",
        fit_intercept=True,
        C_unit="diagonal",
        tol=1e-2,
        stopping="gap",
        visits=4,
        max_iter=1000,
        max_seconds=None,
        warm_start=False,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.kernel = kernel
        self.C = C
        self.epsilon = epsilon
        self.loss = loss
        self.approximation = approximation
        self.rank = rank
        self.n_bins = n_bins
        self.binning = binning
        self.scaling = scaling
        self.missing = missing
        self.categorical_features = categorical_features
        self.fit_intercept = fit_intercept
        self.C_unit = C_unit
        self.tol = tol
        self.stopping = stopping
        self.visits = visits
        self.max_iter, self.max_seconds = max_iter, max_seconds
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_params(self) -> None:
        super()._check_params()
        check_choice("loss", self.loss, tuple(TUBES))
        check_number("epsilon", self.epsilon, low=0, finite=True)

    def predict(self, X):
        """Predict the targets of X.

        Parameters
        ----------
        X : array-like, sparse matrix of shape (n_samples, n_features), or BlockStore
            Values outside the training range are clipped to it.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        outputs = self._outputs(X)
        return self.coding_.scores(outputs)

    def _loss(self, targets: Targets) -> Loss:
        assert targets.value is not None
        enough = 2 * np.abs(targets.value).max(axis=0)  # a wider tube holds all targets, too
        with np.errstate(over="ignore"):
            return TUBES[self.loss](np.minimum(self.epsilon / targets.coding.scale, enough))

    def _is_centred(self) -> bool:
        return self.fit_intercept and self.C_unit == "diagonal"

    def _scale(self, typical: np.ndarray) -> np.ndarray:
        if self.C_unit == "diagonal":  # the unit of C
            return typical
        return np.full(len(typical), powers_of_two(typical).max())  # one C for all targets

    def _raw_C(self, targets: Targets) -> float:
        linear = self.loss == "epsilon_insensitive"  # C grows with the targets only if squared
        return float(self.C / targets.coding.scale[0] if linear else self.C)
