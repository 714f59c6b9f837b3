"""Estimators with each paper's settings, for reproduction.

Each function returns an unfitted estimator; keyword arguments override single settings.
docs/papers.md maps the papers' equations to the code and lists the differences.

>>> from widemargin import papers
>>> papers.pmsvm().C
0.01
"""

from __future__ import annotations

from widemargin.additive.estimator import AdditiveSVC
from widemargin.additive.kernels import PowerMean
from widemargin.kernel.estimator import KernelSVC

LIBLINEAR_TOL = 0.1


def _preset(defaults: dict, changes: dict) -> AdditiveSVC:
    return AdditiveSVC(**{"C_unit": "raw", "fit_intercept": False, **defaults, **changes})


def icd(**changes) -> AdditiveSVC:
    """ICD (Wu 2010): intersection kernel on 100 quantised levels, squared hinge, C = 0.001.

    The quantisation is eq. 13: from the least value to the 97.5th percentile, above which values
    are clipped.  Where the least value is zero, zeros do not count for the percentile.  Natural
    histograms of counts up to 4,095, also from text, are kept exact with ``scaling=None``, and
    every count has its own T, whether training saw it or not.

    A fit gives the same bits every time, as the paper promises.  A fixed seed draws the order of
    samples, again for each sweep as in LIBLINEAR; the paper takes the order of the file.  Samples
    that a sweep moved are visited up to three more times, in the presets below too, so there are
    fewer sweeps than in the papers.  This paper gives no stopping rule (it builds on LIBLINEAR);
    here the relative duality gap is 0.1 %.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from widemargin import papers
    >>> X, y = load_digits(return_X_y=True)
    >>> T = papers.icd(scaling=None).fit(X, y).shape_function(20, 3)  # of pixel 20, for a three
    >>> [int(k) for k in T[0]]
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]
    """
    defaults = {
        "kernel": "intersection",
        "approximation": "unary",
        "scaling": "percentile",
        "C": 1e-3,
        "loss": "squared_hinge",
        "tol": 1e-3,
        "random_state": 0,
    }
    return _preset(defaults, changes)


def pmsvm(p: float = -1.0, **changes) -> AdditiveSVC:
    """PmSVM (Wu 2012): power mean p, nodes .01/.06/.75, C = 0.01, data in [0, 1].

    p = -1 is the paper's chi-square, p = -8 its histogram intersection: the first is faster, the
    second more accurate (sec. 5.5).  The paper prints the hinge (eq. 3); its released program uses
    the squared hinge, and so does this function.  ``loss="hinge"`` is the printed loss.

    M_p(0.01, x) is taken to be 0.01 for every x, as in sec. 4.4, which gets worse as p approaches
    0; other kernels (``kernel="jensen_shannon"``) are evaluated there.  Zeros are absent:
    where the paper replaces 0^p by 0.001^p, M_p(0, y) is 0.  Values at prediction are clipped to
    those of training.  The stop is LIBLINEAR's, at 0.1.

    Examples
    --------
    >>> from widemargin import papers
    >>> papers.pmsvm(-8, loss="hinge").kernel
    PowerMean(p=-8)
    """
    defaults = {
        "kernel": PowerMean(p),
        "approximation": "pmsvm",
        "scaling": "global",
        "C": 0.01,
        "loss": "squared_hinge",
        "tol": LIBLINEAR_TOL,
    }
    return _preset(defaults, changes)


def pmsvm_lut(p: float = -1.0, degree: int = 2, **changes) -> AdditiveSVC:
    """PmSVM-LUT (Yang and Wu 2012): Chebyshev nodes, degree 2, tables of 1000 floored bins.

    The loss is the hinge, which the paper names and prints (eq. 5); ``loss="squared_hinge"`` is
    that of PmSVM's released program.  Values go to the entry floor(1000 x) of the tables (eq. 18),
    so those below 0.001 are lost; ``binning="uniform"`` rounds them instead and loses none.

    The paper places its nodes on "a closed interval" (eq. 16) and does not say of what.  Here it is
    that of ln(x + 0.05), the variable of the polynomials, where the largest error of g_j is near
    PmSVM's or below it, as in the paper's Tables 1 and 2.  Placed in x (`benchmarks/nodes.py`) it
    is up to four times as large on even data.

    Examples
    --------
    >>> from widemargin import papers
    >>> papers.pmsvm_lut(degree=5).rank
    6
    """
    defaults = {
        "kernel": PowerMean(p),
        "approximation": "chebyshev",
        "rank": degree + 1,
        "n_bins": 1000,
        "binning": "floor",
        "scaling": "global",
        "C": 0.01,
        "loss": "hinge",
        "tol": LIBLINEAR_TOL,
    }
    return _preset(defaults, changes)


def dcsvm(**changes) -> KernelSVC:
    """DC-SVM (Hsieh, Si and Dhillon 2014): 256, 64, 16 and 4 clusters, then the whole problem.

    Clusters come from two-step kernel k-means on 1,000 sampled rows.  The paper prefers balanced
    ones and does not say how it gets them: here those of more than twice the average size are
    split, so that there are more (on ijcnn1 some 350 instead of 256).
    Centres have the norm of rows, 1 for kernels of distances: otherwise the rows of a narrow kernel
    that resemble no sampled row (58 % of covtype's at gamma = 32) would all be in one cluster.
    ``clustering="plain_kernel_kmeans"`` has the paper's plain means.

    C and gamma were cross-validated per data set (C = 32, gamma = 32 for covtype); both are left
    to the caller, with features scaled to [0, 1].  The paper's tolerance of 1e-3 is LIBSVM's, on
    the gradient; here it is the relative duality gap, of every level.
    There is no intercept, as in the paper.
    """
    defaults = {
        "levels": 4,
        "branching": 4,
        "clustering": "kernel_kmeans",
        "sample_size": 1000,
        "tol": 1e-3,
        "level_tol": 1e-3,
    }
    return KernelSVC(**{**defaults, "fit_intercept": False, **changes})


def dcsvm_early(**changes) -> KernelSVC:
    """DC-SVM (early): stops at the level with 64 clusters and routes each row to its cluster."""
    return dcsvm(**{"early": 3, **changes})
