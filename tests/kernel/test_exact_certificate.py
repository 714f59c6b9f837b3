"""The certificate is that of the model, whatever arithmetic found it: an attack's findings."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from widemargin import KernelSVC, load, save
from widemargin.kernel import certificate
from widemargin.kernel.backend import Host
from widemargin.kernel.kernels import DotKernel

from .helpers import Recorder, kernel_matrix, points, svc


def objectives(model, X, y):
    """Primal and dual, by scikit-learn's kernel in double precision and the textbook formulas, and
    the error of a sum of all outputs where the errors of their terms are independent."""
    X = np.asarray(X, dtype=np.float64)
    parameters = {"gamma": model.gamma_, "coef0": model.coef0, "degree": model.degree}
    K = kernel_matrix(model.kernel, X, X[model.support_], **parameters)
    primal = dual = 0.0
    outputs = K @ model.dual_coef_.T + model.intercept_
    for k, coef in enumerate(model.dual_coef_):
        positive = model.classes_[1 if len(model.dual_coef_) == 1 else k]
        target = np.where(y == positive, 1.0, -1.0)
        squared = coef @ outputs[model.support_, k]
        primal += 0.5 * squared + model.C * np.maximum(0, 1 - target * outputs[:, k]).sum()
        dual += np.abs(coef).sum() - 0.5 * squared
    rounding = (
        model.C * np.finfo(float).eps * max(map(np.linalg.norm, K * model.dual_coef_[:, None]))
    )
    return primal, dual, rounding


def assert_honest(model, X, y, tol=1e-3, slack=0.01):
    primal, dual, rounding = objectives(model, X, y)
    assert model.duality_gap_ >= (0.99 * (primal - dual) - 4 * rounding) / primal
    room = slack * tol + 0.5 * tol * (model.kernel == "poly")  # what rounding may hide is counted
    assert model.objective_ == pytest.approx(primal, rel=room)
    assert model.dual_objective_ == pytest.approx(dual, rel=room)
    assert model.duality_gap_ <= tol


def digits():
    X, y = load_digits(return_X_y=True)
    return X, y % 2


def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return 2 * (X - X.min(axis=0)) / np.ptp(X, axis=0) - 1, y


@pytest.mark.filterwarnings("ignore:Feature")
@pytest.mark.parametrize(
    ("data", "parameters"),
    [
        (digits, {"kernel": "poly", "gamma": "auto", "C": 10}),
        (digits, {"kernel": "poly", "gamma": 1.0, "C": 1.0}),
        (cancer, {"gamma": 1.0, "C": 2.0**15}),
        (cancer, {"gamma": 2.0**-15, "C": 2.0**20}),
        (digits, {"C": 100.0}),
        (cancer, {"C": 1000.0, "gamma": 100.0}),
    ],
    ids=["poly", "poly-large", "rbf-large-C", "rbf-wide", "rbf", "rbf-narrow"],
)
def test_the_gap_is_that_of_the_model(data, parameters):
    X, y = data()
    assert_honest(KernelSVC(fit_intercept=False, **parameters).fit(X, y), X, y)


def narrow(n=3000, seed=0):
    """Pairs of near rows far from the centre, where float32 distances are poor."""
    rng = np.random.default_rng(seed)
    X = 3 * rng.choice([-1.0, 1.0], (n // 2, 8))
    X = np.repeat(X, 2, axis=0) + 0.02 * rng.normal(size=(n, 8))
    return X, np.where(rng.random(n) < 0.5, 0, 1)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_what_a_sample_says_is_on_the_safe_side_of_the_truth(n_classes, monkeypatch):
    monkeypatch.setattr(certificate, "EXACT_WORK", 0)
    monkeypatch.setattr(certificate, "SAMPLE", 200)
    for seed in range(5):
        X, y = points(600, n_classes, seed=seed)
        for gamma in (1.0, 30.0):
            model = svc(gamma=gamma, C=20.0).fit(X, y)
            primal, dual, _ = objectives(model, X, y)
            assert model.objective_ >= primal * (1 - 1e-12)
            assert model.dual_objective_ <= dual * (1 + 1e-12)
            assert_honest(model, X, y, slack=0.1)


def test_a_gradient_is_refined_where_rounding_hides_the_gap(monkeypatch):
    monkeypatch.setattr(certificate, "EXACT_WORK", 0)
    refined = []
    original = certificate.Judge.refined
    monkeypatch.setattr(certificate.Judge, "refined", lambda *a: refined.append(0) or original(*a))
    monkeypatch.setattr(DotKernel, "relative_error", lambda self, rows: 0.0)
    X, y = narrow()
    model = svc(gamma=200.0, C=100.0).fit(X, y)
    assert refined
    assert model.model_.kernel.dtype is np.float32
    assert_honest(model, X, y, slack=0.2)


def test_one_demanding_problem_makes_the_whole_model_double():
    X, _ = digits()
    y = load_digits().target
    model = svc("poly", gamma=0.2, C=0.01, tol=1e-4).fit(X[:300], y[:300])
    assert_honest(model, X[:300], y[:300], tol=1e-4)
    assert model.model_.vectors.data.dtype == model.model_.kernel.dtype


# ------------------------------------------------------------------ early models


def test_a_level_that_was_kept_has_a_certificate_of_its_own():
    X, y = points(400)

    interrupt = Recorder(interrupt_at="level 0")
    model = svc(levels=1, on_interrupt="keep", C=50.0).set_callbacks(interrupt)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    router, fitted = model.model_.router, model.model_
    label = router.assign(fitted.kernel.prepare(X), Host())
    gaps, duals = [], 0.0
    target = np.where(y == 1, 1.0, -1.0)
    for c in np.unique(label):
        rows, own = np.flatnonzero(label == c), fitted.cluster == c
        K = kernel_matrix("rbf", X[rows], X[model.support_[own]], gamma=2.0)
        coef = model.dual_coef_[0, own]
        outputs = K @ coef
        squared = coef @ outputs[np.searchsorted(rows, model.support_[own])]
        primal = 0.5 * squared + 50 * np.maximum(0, 1 - target[rows] * outputs).sum()
        dual = np.abs(coef).sum() - 0.5 * squared
        gaps.append((primal - dual) / primal)
        duals += dual
    assert model.duality_gap_ == pytest.approx(max(gaps), rel=1e-6)
    assert model.dual_objective_ == pytest.approx(duals, rel=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_a_row_goes_to_the_same_cluster_alone_and_among_others(kernel):
    X, y = points(600)
    X = X + 1000.0
    model = svc(kernel, levels=1, early=1).fit(X, y)
    alone = np.array([model.decision_function(row[None])[0] for row in X])
    np.testing.assert_allclose(alone, model.decision_function(X), atol=1e-5)


# ------------------------------------------------------------------ numbers out of range


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("scale", [1e-21, 1e-12, 1e7, 1e21])
def test_the_scale_of_the_data_does_not_matter(kernel, scale):
    X, y = points(200)
    expected = SVC(kernel=kernel, C=10.0).fit(X, y).score(X, y)
    model = KernelSVC(kernel, C=10.0, fit_intercept=True).fit(X * scale, y)
    assert model.score(X * scale, y) >= expected - 0.05
    assert model.duality_gap_ <= 1e-3


@pytest.mark.parametrize("scale", [1e-21, 1e-12, 1e7, 1e21])
def test_the_scale_of_the_data_does_not_matter_to_the_laplacian(scale):
    """Its gamma="scale" goes with the square of the data, so it is given here."""
    X, y = points(200)
    expected = svc("laplacian", gamma=3.0).fit(X, y).decision_function(X)
    model = svc("laplacian", gamma=3.0 / scale).fit(X * scale, y)
    assert model.duality_gap_ <= 1e-3
    np.testing.assert_allclose(model.decision_function(X * scale), expected, atol=0.05)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int16])
def test_gamma_scale_is_computed_in_double_precision(dtype):
    X = (1000 * points(100)[0]).astype(dtype)
    y = points(100)[1]
    model = KernelSVC().fit(X, y)
    assert model.gamma_ == pytest.approx(1 / (3 * X.astype(np.float64).var()), rel=1e-9)


def test_gamma_scale_is_refused_where_no_variance_is_left():
    X, y = points(50)
    with pytest.raises(ValueError, match="gamma"):
        KernelSVC().fit(X * 1e-170, y)
    with pytest.raises(ValueError, match="gamma"):
        KernelSVC().fit(X + 1e14, y)


@pytest.mark.parametrize("value", [1e308, 1e160])
def test_sums_that_overflow_are_refused_by_name(value):
    X, y = points(50)
    with pytest.raises(ValueError, match="C="):
        KernelSVC(C=value).fit(X, y)
    with pytest.raises(ValueError, match="weights"):
        KernelSVC().fit(X, y, sample_weight=np.full(50, value))


def _too_large_but_for_the_diagonal(A, B):
    return 1e39 * (A @ B.T) * (len(B) > 64) + (1 + A @ B.T)


def test_kernel_values_that_single_precision_cannot_hold():
    X, y = points(80)
    K = kernel_matrix("rbf", X, gamma=1.0)
    model = KernelSVC("precomputed", C=1e-39).fit(1e40 * K, y)
    plain = KernelSVC("precomputed", C=10.0, tol=1e-6).fit(K, y)
    assert model.model_.kernel.dtype is np.float64
    np.testing.assert_allclose(
        model.decision_function(1e40 * K), plain.decision_function(K), atol=0.1
    )
    with pytest.raises(ValueError, match="too large"):
        KernelSVC(_too_large_but_for_the_diagonal).fit(X, y)


def test_a_prediction_that_overflows_is_an_error_and_no_class(tmp_path):
    X, y = points(80)
    model = KernelSVC("poly", gamma=1.0, degree=5).fit(X, y)
    assert isinstance(model.model_.kernel, DotKernel)
    for fitted in (model, load(save(model, tmp_path / "model") or tmp_path / "model")):
        with pytest.raises(ValueError, match=r"[Rr]ow 1 is too large"):
            fitted.predict(np.vstack([X[:1], np.full((1, 3), 1e80)]))


# ------------------------------------------------------------------ indefinite kernels


def _indefinite(A, B):
    return kernel_matrix("rbf", A, B, gamma=1.0) - 0.5 * kernel_matrix("rbf", A, B, gamma=50.0)


@pytest.mark.parametrize("which", ["matrix", "function", "poly", "sigmoid"])
def test_a_kernel_that_is_not_definite_has_no_certificate(which):
    X, y = points(120)
    X = X - 0.5
    rng = np.random.default_rng(0)
    A = rng.normal(size=(120, 120))
    model, given = {
        "matrix": (KernelSVC("precomputed"), A + A.T),
        "function": (KernelSVC(_indefinite), X),
        "poly": (KernelSVC("poly", coef0=-1.0, gamma=1.0, degree=2), X),
        "sigmoid": (KernelSVC("sigmoid"), X),
    }[which]
    with pytest.warns(UserWarning, match="not positive semi-definite"):
        model.fit(given, y)
    assert np.isnan(model.duality_gap_)
    assert np.isnan(model.objective_)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_does_not_make_a_kernel_indefinite(dtype):
    X, y = points(300)
    K = kernel_matrix("rbf", X, gamma=0.1).astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = KernelSVC("precomputed").fit(K, y)
    assert model.duality_gap_ <= 1e-3
