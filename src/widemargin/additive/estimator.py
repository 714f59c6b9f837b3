"""`AdditiveSVC`: parameters, classes and prediction; `AdditiveMachine` fits."""

from __future__ import annotations

from widemargin.additive.explanation import ExplanationMixin
from widemargin.additive.machine import AdditiveMachine
from widemargin.classifier import MarginClassifier
from widemargin.losses import LOSSES, Loss
from widemargin.validation import check_choice


class AdditiveSVC(ExplanationMixin, MarginClassifier, AdditiveMachine):
    """Support vector classification with additive kernels, at the cost of a linear SVM.

    The kernel is a sum over features of one scalar kernel, k(x, y) = sum_j k(x_j, y_j).  Values
    are quantised to bins, the scalar kernel is factorised on the bins, and the dual is solved by
    coordinate descent on look-up tables, 16 classes at a time.

    Parameters
    ----------
    kernel : str, PowerMean or callable, default="auto"
        "intersection", "chi2", "hellinger", "jensen_shannon", "linear", ``PowerMean(p)`` with p
        in [-inf, 0], or a vectorised function of two arrays (symmetric, and zero at k(0, y) for
        sparse data).  "auto" is the intersection kernel up to 127 features and on mixed columns,
        "linear" on normalised texts, and "chi2" on counts, histograms and images (of fewer
        features than rows).
    C : float, default=1.0
        Weight of the losses, per unit of the mean kernel diagonal (see ``C_unit``).
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
    approximation : str, default="spectral"
        How to factorise the kernel: "spectral" (best factor for the data's bins:
        kernel PCA per feature, after Perronnin, Sanchez and Liu, CVPR 2010),
        "chebyshev" (PmSVM-LUT), "pmsvm" (PmSVM's three nodes, values not binned), "unary" (ICD's
        tables, exact on the bins) or "fourier" (Vedaldi and Zisserman).
    rank : int or "auto", default="auto"
        Numbers per bin.  "auto" takes the smallest of 1, 2, 3, 4, 8, 12, 16 whose weighted
        relative error is below 0.1 %, or 16 if none is (kernels with a kink, such as the
        intersection); 3 for the published methods.  Training time grows with the rank.
    n_bins : int or "auto", default="auto"
        Number of bins, at most 65,535.  "auto": 255; 100 with ``scaling="percentile"``; with
        ``scaling=None`` and whole numbers of any type, one for each number up to the largest or, if
        that exceeds 4,095, for each number that occurs.
    binning : {"auto", "uniform", "floor", "exact"}, default="auto"
        Placement of bins.  "auto": at the distinct values if there are at most ``n_bins``, else
        half by quantiles and half evenly in sqrt(t); "uniform": equal steps up to the largest
        value, values rounded to the nearest; "floor": the same, values rounded down (PmSVM-LUT,
        eq. 18), so that those below the first step are lost; "exact": one bin per distinct value.
    scaling : {"auto", "global", "minmax", "percentile", None}, default="auto"
        Scaling of raw values: "global" divides all features by one number, "minmax"
        maps each feature to [0, 1], "percentile" is ICD's rule (eq. 13; zeros count only if
        some values are negative), None uses values as they are.  "auto" is "global" for
        non-negative data whose columns typically start at zero and whose maxima stay within 100
        times their median, and "minmax" otherwise.
    missing : {"error", "learn"}, default="error"
        Whether a missing value (NaN, None, NA, null) is an error, or gets a contribution that is
        learned for each column with missing training values.  In other columns it contributes
        nothing, with a warning that names them.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Columns of categories, each of which gets its own contribution: "from_dtype" selects
        categorical and text columns of data frames; else a list of names or positions, or a mask;
        None selects none.  Categories are compared as text, and missing is one of them; those
        unknown in training contribute nothing, with a warning.
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
    fit_intercept : bool, default=True
        Learn an intercept, as the weight of a constant (hence regularised) feature.
    class_weight : dict, "balanced" or None, default=None
        Multiplies the sample weights by class.
    C_unit : {"diagonal", "raw"}, default="diagonal"
        "diagonal" divides C by the mean of k(x, x), so that C = 1 is a sensible start for any
        number of features; "raw" is the papers' C.
    tol : float, default=1e-2
        Relative duality gap at which every binary problem stops.  The tables "chebyshev" and
        "pmsvm" are not symmetric, so the iteration minimises no objective: there ``tol`` is
        LIBLINEAR's bound on the projected gradient.  Below 1e-4 the arithmetic is double precision.
    stopping : {"gap", "violation"}, default="gap"
        What ``tol`` bounds: the relative duality gap, or LIBLINEAR's violation of the optimality
        conditions (the papers' stop).
    visits : int, default=4
        Samples that a sweep moved are visited again before the next one, up to this many visits in
        all.  1 means plain sweeps, as in the papers; stores of several blocks always have these.
    max_iter : int, default=1000
        Most sweeps over the data.
    max_seconds : float or None, default=None
        Time limit.  A fit that exceeds it ends after the sweep, with its current model and a
        ConvergenceWarning.
    warm_start : bool, default=False
        Keep the dual variables and start the next fit on the same rows from them.
    n_jobs : int or None, default=None
        Threads, over batches of 16 classes and over blocks of rows in prediction.  Spare threads
        share the features of long dense rows (342 or more at rank 3, 64 at rank 16), in teams of
        2, 4, 8 or 16, at most one per core, and certificates.  Other sweeps have one thread per
        batch.  Results do not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the sweeps' order.
    verbose : int, default=0
        1 reports each fit's summary, 2 each sweep: to the logger "widemargin" where logging is set
        up, else to the terminal.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coding_ : Coding
        How outputs become scores of classes.
    n_iter_ : int
        Sweeps of the slowest batch (0 where a warm start was within ``tol`` already); visits to
        samples that moved, between two sweeps, are not counted.
    duality_gap_ : float
        Largest relative duality gap among the binary problems.  That of "chebyshev" and "pmsvm" is
        the gap of the fit's dual variables in the problem that "spectral" solves on the same bins:
        a bound for the machine with these variables and symmetric tables, which differs from the
        learned one by the error of the tables (`approximation_error`).
    converged_ : bool
        Whether the fit is within ``tol``.
    objective_ : float
        Sum of the primal objectives, of the problems whose gap is ``duality_gap_``.
    violation_ : float
        Largest violation of the optimality conditions (LIBLINEAR's projected gradient).
    intercept_ : ndarray of shape (n_outputs,)
    kernel_ : str, PowerMean or callable
        The kernel, by name where ``kernel="auto"`` has chosen it.
    C_ : float
        C in the kernel's unit.
    rank_ : int
        Numbers per bin (0 for "unary").
    model_ : AdditiveModel
        The arrays that prediction uses.
    columns_ : Columns
        Columns with categories or missing values, and their features in the model.
    feature_importances_ : ndarray of shape (n_features,)
        Mean absolute contribution of each feature over the training data.
    history_ : list of list of dict
        Per batch of classes, one record per sweep: ``active`` samples in it, those visited
        ``again`` after it, and the seconds since the first began.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        If X was a data frame, or the command line's table.
    label_name_ : str
        If y was a named series, or a column of such a table.

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
    >>> bool(model.score(X[1000:], y[1000:]) > 0.92)
    True
    >>> bool(model.duality_gap_ <= 1e-2)
    True

    Columns of categories and missing values, as data frames have them:

    >>> import pandas as pd
    >>> people = pd.DataFrame({"job": ["smith", "clerk", "smith", None], "age": [50, 31, None, 28]})
    >>> model = AdditiveSVC(missing="learn", random_state=0).fit(people, [1, 0, 1, 0])
    >>> model.predict(pd.DataFrame({"job": ["smith"], "age": [None]}))
    array([1])
    """

    def __init__(
        self,
        kernel="auto",
        *,
        C=1.0,
        loss="squared_hinge",
        approximation="spectral",
        rank="auto",
        n_bins="auto",
        binning="auto",
        scaling="auto",
        missing="error",
        categorical_features="from_dtype",
        multi_class="ovr",
        fit_intercept=True,
        class_weight=None,
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
        self.loss = loss
        self.approximation = approximation
        self.rank = rank
        self.n_bins = n_bins
        self.binning = binning
        self.scaling = scaling
        self.missing = missing
        self.categorical_features = categorical_features
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
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
        check_choice("loss", self.loss, tuple(LOSSES))
        check_choice("multi_class", self.multi_class, ("ovr", "crammer_singer"))

    def _loss(self, targets) -> Loss:
        return LOSSES[self.loss]

    def decision_function(self, X):
        """Signed distances to the decision surface, up to the norm of the weights.

        Parameters
        ----------
        X : array-like, sparse matrix of shape (n_samples, n_features), or BlockStore
            Values outside the training range are clipped to it.  A store must have the bins of the
            one that the model was fitted to, and its categories and columns with missing values.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            One column for two classes, positive for ``classes_[1]``.
        """
        outputs = self._outputs(X)
        return self.coding_.scores(outputs)
