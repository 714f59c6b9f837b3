"""scikit-learn's own contract, for every kernel.

The sample-weight checks compare to 1e-7, which asks for a tight tolerance (double precision).
Some checks fit noise with the hinge or Crammer-Singer's loss, where coordinate descent reaches
such a tolerance only after very many sweeps, and so does a polynomial of unscaled data: the
ConvergenceWarning is right, and let pass here.
"""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from widemargin import (
    AdditiveMap,
    AdditiveSVC,
    AdditiveSVR,
    CalibratedSVC,
    KernelSVC,
    KernelSVR,
    NuSVC,
    NuSVR,
    OneClassSVM,
    PowerMean,
)

pytestmark = pytest.mark.slow

MATRIX, FOLDS = "KernelSVC(kernel='precomputed'", "CalibratedSVC("
EXPECTED = [
    ("KernelSVC(kernel='chi2'", "check_class_weight_classifiers", "its data are negative"),
    (MATRIX, "check_estimators_nan_inf", "its rows have another number of columns"),
    (MATRIX, "check_classifiers_one_label_sample_weights", "its matrix is not symmetric"),
    (FOLDS, "check_sample_weight_equivalence_on_dense_data", "copies fall into other folds"),
    (FOLDS, "check_sample_weight_equivalence_on_sparse_data", "copies fall into other folds"),
]


@pytest.mark.filterwarnings("ignore:.*not positive semi-definite")
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
        KernelSVC("poly", tol=1e-13, max_iter=1000),
        KernelSVC("laplacian", tol=1e-13),
        KernelSVR(tol=1e-13),
        KernelSVR("linear", fit_intercept=False, tol=1e-13),
        NuSVC(tol=1e-13),
        NuSVR(tol=1e-13),
        OneClassSVM(tol=1e-15),
        KernelSVC("linear", tol=1e-13),
        KernelSVC("sigmoid", tol=1e-13),
        KernelSVC("chi2", tol=1e-13),
        KernelSVC("precomputed", tol=1e-13),
        CalibratedSVC(KernelSVC()),
        AdditiveMap("chi2"),
        AdditiveMap(),
    ],
    expected_failed_checks=lambda estimator: {
        name: reason for of, name, reason in EXPECTED if repr(estimator).startswith(of)
    },
)
def test_sklearn(estimator, check):
    check(estimator)
