"""Estimators set as each paper says, for reproduction.

Each function returns an unfitted estimator; keyword arguments override single settings.

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

    A fit gives the same bits every time, as the paper promises.  Its samples come in the order of
    a fixed seed, anew in each sweep as in LIBLINEAR; the paper prints the order of the file.  It
    prints no stopping rule (it builds on LIBLINEAR); here the relative duality gap is 0.1 %.

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

    p = -1 is the paper's chi-square, p = -8 its histogram intersection.  The paper prints the
    hinge; its released program uses the squared hinge, and so does this.  ``loss="hinge"`` is
    the printed one.
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
    """PmSVM-LUT (Yang and Wu 2012): Chebyshev nodes, degree 2, tables of 1000 uniform bins.

    The nodes lie in ln(x + 0.05), where the paper does not say; ``approximation=
    "chebyshev_linear"`` places them in x.  Values are rounded to their bin, not floored, so
    that none below 0.001 is lost.
    """
    defaults = {
        "kernel": PowerMean(p),
        "approximation": "chebyshev",
        "rank": degree + 1,
        "n_bins": 1000,
        "binning": "uniform",
        "scaling": "global",
        "C": 0.01,
        "loss": "squared_hinge",
        "tol": LIBLINEAR_TOL,
    }
    return _preset(defaults, changes)


def dcsvm(**changes) -> KernelSVC:
    """DC-SVM (Hsieh, Si and Dhillon 2014): 256, 64, 16 and 4 clusters, then the whole problem.

    Clusters come from 1,000 sampled rows.  C and gamma were cross-validated per data set (C = 32,
    gamma = 32 for covtype); both are left to the caller, with features scaled to [0, 1].  The
    paper's tolerance of 1e-3 is LIBSVM's, on the gradient; here it is the relative duality gap.
    There is no intercept, as in the paper.
    """
    defaults = {"levels": 4, "branching": 4, "sample_size": 1000, "tol": 1e-3}
    return KernelSVC(**{**defaults, "fit_intercept": False, **changes})


def dcsvm_early(**changes) -> KernelSVC:
    """DC-SVM (early): stops at the level with 64 clusters and routes each row to its cluster."""
    return dcsvm(**{"early": 3, **changes})
