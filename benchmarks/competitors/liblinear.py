"""LIBLINEAR, alone and behind feature maps."""

from __future__ import annotations

from sklearn.svm import LinearSVC


def liblinear(C: float = 1.0, loss: str = "squared_hinge", tol: float = 0.1, seed: int = 0):
    """LIBLINEAR as the papers ran it: ``-s 1 -e 0.1``, no bias (Hsieh et al., ICML 2008).

    Dual coordinate descent on the squared hinge, one class against the others, at most 1,000
    sweeps.  scikit-learn's LinearSVC is this program.
    """
    return LinearSVC(C=C, loss=loss, tol=tol, dual=True, fit_intercept=False, random_state=seed)
