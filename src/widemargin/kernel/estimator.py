"""`KernelSVC`: parameters, classes and prediction; `KernelMachine` fits."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted

from widemargin.classifier import MarginClassifier
from widemargin.errors import LostClassWarning, Message, Parameter, warn_user
from widemargin.kernel.attributes import SvcAttributes, refusing_others
from widemargin.kernel.backend import Host
from widemargin.kernel.linear_fit import LinearFit
from widemargin.kernel.parameters import KernelParameters
from widemargin.kernel.problems import MULTI_CLASS, Variables, binary_problems
from widemargin.multiclass import Targets
from widemargin.validation import check_bool, check_choice

FIRST_LOOK, LOOKED_AT = 64, 1000  # rows of a class that may be predicted nowhere


class KernelSVC(SvcAttributes, MarginClassifier, KernelParameters, LinearFit):
    """Support vector classification with any kernel, exact or early, by divide and conquer.

    Solves min 1/2 a'Qa - e'a over 0 <= a <= C, y'a = 0, to a certified duality gap.  Large problems
    are divided into clusters, whose solutions start the whole one (DC-SVM); an early model stops
    there and predicts by routing each row to its cluster.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        "rbf", "linear", "poly", "sigmoid", "laplacian", "chi2" (exponential, for histograms),
        "precomputed", or a function K(X, Z) that returns an array or a sparse matrix of shape
        (len(X), len(Z)).  With ``n_jobs`` it is called from several threads.  Rows that are not
        numbers (a list of texts, series or graphs) are passed as an array of objects.
    C : float, default=1.0
    gamma : "scale", "auto" or float, default="scale"
        1 / (n_features * X.var()), 1 / n_features, or a number.
    degree : int, default=3
    coef0 : float, default=0.0
    levels : int or "auto", default="auto"
        Levels of division below the whole problem: ``branching ** levels`` clusters at the
        lowest.  0 solves the problem directly.  "auto" divides to clusters of about 2,000 rows,
        unless much of the kernel lies between clusters and kernel values are expensive (many
        features).
    branching : int, default=4
    clustering : {"auto", "kmeans", "kernel_kmeans", "plain_kernel_kmeans", "random"}, \
            default="auto"
        How a level divides the rows: k-means in input space; DC-SVM's two-step kernel k-means, with
        centres in feature space, which have norm 1 where all rows have it; the same with plain
        means as centres, as the paper prints it; or at random, for comparison (no early model: new
        rows would have no cluster).  "auto" is "kmeans" for rbf and laplacian, where near means
        similar and no kernel values are needed, and "kernel_kmeans" for other kernels.  Clusters of
        more than twice the average size are split, so there are some more than
        ``branching ** level``.
    sample_size : int, default=1000
        Rows that the clustering of a level samples, at least (20 for each centre of "kmeans").
    early : bool or int, default=False
        Stop at this level and predict by routing (DC-SVM eq. 11); True is the level whose
        clusters hold about 8,000 rows.
    early_prediction : {"routed", "sum", "bcm"}, default="routed"
        How an early model combines its clusters: eq. 11, eq. 10, or a Bayesian committee machine
        (slow; for comparison).
    fit_intercept : bool or "auto", default="auto"
        Fit a free intercept, as SVC does, on the whole problem (not on the levels below).
        "auto" is True, or False for an early model, which cannot have one.  That of
        kernel="linear" is penalised: a constant feature.
    multi_class : {"ovo", "ovr"}, default="ovo"
        One problem per pair of classes, which vote (ties go to the larger sum of decision values),
        or one per class against all others.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        What ``decision_function`` returns of pairs of several classes: a score for each class, or
        the value of each pair.
    break_ties : bool, default=True
        Whether a tie of the pairs' votes goes to the larger sum of decision values, or (as SVC has
        it by default) to the first of the classes.
    class_weight : dict, "balanced" or None, default=None
    tol : float, default=1e-3
        Relative duality gap of every binary problem, certified in double precision.  Kernel values
        are double from the start below 1e-4 and in problems on up to 2,048 rows, and wherever
        single precision turns out too coarse.
    level_tol : float, default=1e-2
        Likewise of the clusters of a level that only starts the next one, where it is above
        ``tol``; the level of an early model is solved to ``tol``.
    max_iter : int, default=100_000
        Blocks of up to 1,024 variables per problem (128 on up to 2,048 rows); -1 is no limit.
    max_seconds : float or None, default=None
        A fit that takes longer ends at the next epoch, with its current model, its ``duality_gap_``
        and a ConvergenceWarning.
    cache_size : float or "auto", default="auto"
        Megabytes for kernel rows; "auto" is a quarter of the memory of the machine or container,
        at most half of what is free.  A cache that holds the kernel matrix four times changes
        nothing; a smaller one changes the way to the optimum, within ``tol``.
    checkpoint : path or None, default=None
        A folder for finished clusters.  A killed fit continues from it, with the same data,
        parameters and version only.  Only one fit at a time can use it.
    warm_start : bool, default=False
        Start from the variables of the last fit on the same data and kernel, by this estimator
        or by a clone of it: a grid over C then runs along a path.
    on_interrupt : {"raise", "keep"}, default="raise"
        What Ctrl-C during the whole problem does: raise KeyboardInterrupt, or keep the model of
        the last finished level, with a warning.
    record_levels : bool or "exact", default=False
        Measure in `levels_` the distance of each level from the final solution (for an early model,
        only the objective and Theorem 1's bound).  True samples 1,000 rows; "exact" sums the kernel
        over all pairs of rows, which can take long, and only then are the bounds exact.
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
        Rows that are support vectors of any binary problem, by class.
    n_support_ : ndarray of shape (n_classes,)
    support_vectors_ : ndarray or CSR array of shape (n_support, n_features)
        In the precision of the model; of a precomputed kernel, of shape (0, 0).
    dual_coef_ : ndarray or CSR array of shape (n_outputs, n_support) or (n_classes - 1, n_support)
        Label times dual variable.  Where pairs of classes vote, those of a support vector against
        each of the other classes in their order.  As in SVC, the second of two classes is positive,
        and of several the earlier class of a pair.
    intercept_ : ndarray of shape (n_outputs,)
        With the same signs.
    class_weight_ : ndarray of shape (n_classes,)
    shape_fit_ : tuple of int
        Shape of the training data.
    fit_status_ : int
        0 where ``converged_``, else 1.
    coef_ : ndarray or CSR array of shape (n_outputs, n_features)
        Of a linear kernel.
    gamma_ : float
    duality_gap_ : float
        Largest relative gap of the binary problems (for an early model, of the clusters' own), in
        double precision; NaN for a kernel that is not positive semi-definite.
    converged_ : bool
        Whether that is within ``tol``, or there is no gap to tell.
    objective_, dual_objective_ : float
        Sums over the binary problems; for an early model of the clusters' own (NaN and a sum).
    n_iter_ : ndarray of shape (n_outputs,)
        Blocks of each problem; of pairs that are solved in a group, those of its slowest.
    levels_ : list of Level
        One record per level, the lowest first; the whole problem is level 0.
    history_ : list of list of dict
        Per binary problem, what every block of the whole problem left (every 16th at most, on up
        to 2,048 rows): duality gap and dual objective of the active variables, how many these
        are, kernel rows computed so far, seconds since the problem was begun (those of the levels
        before it are in `levels_`).  Pairs of classes of up to 128 rows each are solved in groups.
        These come before the other pairs, each with one list: sums over its pairs, every 0.1 s,
        where one that is not solved yet counts as it is at zero.
    model_ : KernelModel
        The arrays that prediction uses.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Where X was a data frame, or the command line's table.
    label_name_ : str
        Where y was a named series, or a column of such a table.

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

    @refusing_others
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
        clustering="auto",
        sample_size=1000,
        early=False,
        early_prediction="routed",
        fit_intercept="auto",
        multi_class="ovo",
        decision_function_shape="ovr",
        break_ties=True,
        class_weight=None,
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
        self.C = C
        self.gamma = gamma
        self.degree, self.coef0 = degree, coef0
        self.levels, self.branching = levels, branching
        self.clustering, self.sample_size = clustering, sample_size
        self.early, self.early_prediction = early, early_prediction
        self.fit_intercept = fit_intercept
        self.multi_class = multi_class
        self.decision_function_shape, self.break_ties = decision_function_shape, break_ties
        self.class_weight = class_weight
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
        check_choice("multi_class", self.multi_class, MULTI_CLASS)
        check_choice("decision_function_shape", self.decision_function_shape, MULTI_CLASS)
        check_bool("break_ties", self.break_ties)

    def _problems(self, targets: Targets) -> list[Variables]:
        grouped = not self.record_levels  # it measures the first pair of classes
        upper = self.C * targets.weight
        how = {"grouped": grouped, "has_offset": self._has_intercept()}
        return binary_problems(targets.label, targets.coding, upper, **how)

    def _solve(self, training, start):
        dual = super()._solve(training, start)
        self._tell_lost_classes(training)
        return dual

    def _tell_lost_classes(self, training) -> None:
        """Warn of classes that are not predicted for any of their first `LOOKED_AT` training rows.

        Each such row is on the wrong side in some problem, so a variable is at its bound.
        """
        targets, coding = training.targets, training.targets.coding
        place = np.searchsorted(targets.present, self.support_)
        largest = np.abs(self.model_.coef.values).max(axis=1, initial=0.0)
        least_C = float(np.min(getattr(self, "C_", self.C)))
        wrong = place[largest >= (1 - 1e-9) * least_C * targets.weight[place]]
        n_rows, n_wrong = (
            np.bincount(label, minlength=coding.n_classes)
            for label in (targets.label, targets.label[wrong])
        )
        for number in np.flatnonzero(n_rows == n_wrong):
            rows = np.flatnonzero(targets.label == number)[:LOOKED_AT]
            few = (rows[:FIRST_LOOK], rows[FIRST_LOOK:])  # the first nearly always suffice
            looks = (
                self.model_.decision(targets.X[r], Host(1), coding.scores) for r in few if len(r)
            )
            if not any(np.any(coding.classes(scores) == number) for scores in looks):
                name = self.classes_[number : number + 1].tolist()[0]
                warn_user(
                    Message(
                        "Class {name!r} is predicted for none of its {n} training rows. "
                        "Increase {C}, or set {weight}.",
                        name=name,
                        n=n_rows[number],
                        C=Parameter("C"),
                        weight=Parameter("class_weight", "balanced"),
                    ),
                    LostClassWarning,
                )

    def decision_function(self, X):
        """Decision values.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Or kernel values with the training rows for ``kernel="precomputed"``; or a `BlockStore`
            of values, which is read block by block.

        Returns
        -------
        scores : ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_outputs)
            One column for two classes, positive for ``classes_[1]``.  Several classes have a score
            each; with ``decision_function_shape="ovo"``, pairs of them have a value each, positive
            for the earlier class.
        """
        check_is_fitted(self, "model_")
        coding = self.coding_

        if coding.votes and self.decision_function_shape == "ovo":
            return self.pair_values(X)
        return self._of_rows(X, lambda model, rows, host: model.scores(rows, coding, host))

    def pair_values(self, X):
        """Values of all pairs of classes, positive for the earlier.

        Of shape (n_samples, n_classes * (n_classes - 1) // 2): of the machines of pairs, or
        differences of scores.
        """
        check_is_fitted(self, "model_")
        if not self.coding_.votes:
            return super().pair_values(X)

        def values(model, rows, host: Host) -> np.ndarray:
            return self._signed(model.in_double().decision(rows, host))

        return self._of_rows(X, values)

    def predict(self, X):
        """Class labels of X.

        They are those of double precision, whatever the precision of decision values.
        """
        check_is_fitted(self, "model_")
        coding = self.coding_

        def first_of_most(outputs: np.ndarray) -> np.ndarray:
            """Return the first of the classes with most votes: a score is votes plus less than a
            third."""
            return coding.classes(np.rint(coding.scores(outputs)))

        def classes(model, rows, host: Host) -> np.ndarray:
            if coding.votes and not self.break_ties:
                return model.in_double().decision(rows, host, first_of_most)
            return model.classes(rows, coding, host)

        return self.classes_[self._of_rows(X, classes)]
