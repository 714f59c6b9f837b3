"""scikit-learn's own contract, with no expected failures.

The sample-weight checks compare to 1e-7, which asks for a tight tolerance (double precision).
Some checks fit noise with the hinge or Crammer-Singer's loss, where coordinate descent reaches
such a tolerance only after very many sweeps, and so does a polynomial of unscaled data: the
ConvergenceWarning is right, and let pass here.
"""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from widemargin import AdditiveMap, AdditiveSVC, AdditiveSVR, KernelSVC, KernelSVR, PowerMean

pytestmark = pytest.mark.slow


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [
        AdditiveSVC(tol=1e-17),
        AdditiveSVC(PowerMean(-8.0), approximation="unary", tol=1e-17),
        AdditiveSVC("chi2", loss="hinge", tol=1e-12, max_iter=2000),
        AdditiveSVC("chi2", multi_class="crammer_singer", tol=1e-12, max_iter=2000),
        AdditiveSVR(tol=1e-17),
        AdditiveSVR("chi2", loss="epsilon_insensitive", epsilon=0.1, tol=1e-12, max_iter=2000),
        KernelSVC(tol=1e-13),
        KernelSVC(
            "poly", coef0=1.0, fit_intercept=True, multi_class="ovo", tol=1e-13, max_iter=1000
        ),
        KernelSVC("laplacian", tol=1e-13),
        KernelSVR(tol=1e-13),
        KernelSVR("linear", fit_intercept=False, tol=1e-13),
        AdditiveMap("chi2"),
        AdditiveMap(),
    ]
)
def test_sklearn(estimator, check):
    check(estimator)
