"""`widemargin.sklearn`: scikit-learn's classes in name, parameters and optimum, and the patch."""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
import sklearn.svm
from scipy import sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits, load_iris, make_classification

from widemargin.sklearn import SVC, SVR, LinearSVC, patch, unpatch

THEIRS, THEIR_LINEAR = sklearn.svm.SVC, sklearn.svm.LinearSVC
X, Y = load_iris(return_X_y=True)


@pytest.fixture
def patched():
    patch()
    yield
    unpatch()


def test_the_patch_is_put_and_taken_back():
    patch()
    assert sklearn.svm.SVC is SVC
    assert sklearn.svm.LinearSVC is LinearSVC
    unpatch()
    assert sklearn.svm.LinearSVC is THEIR_LINEAR
    assert sklearn.svm.SVC is THEIRS
    unpatch()
    assert sklearn.svm.SVC is THEIRS


@pytest.mark.parametrize("how", [["{script}"], ["-m", "script"]])
def test_a_program_runs_with_our_classes(how, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nfrom sklearn.svm import SVC\n"
        "label = SVC().fit([[0.0], [1.0]], [0, 1]).predict([[2.0]])\n"
        "print(__name__, SVC.__module__, sys.argv[1:], label)"
    )
    how = [part.format(script=script) for part in how]
    found = subprocess.run(
        [sys.executable, "-m", "widemargin.sklearn", *how, "-a", "b"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert found.stdout == "__main__ widemargin.sklearn.svc ['-a', 'b'] [1]\n"


def test_without_a_program_the_usage_is_told():
    run = [sys.executable, "-m", "widemargin.sklearn"]
    nothing = subprocess.run(run, capture_output=True, text=True, check=False)
    assert nothing.returncode == 1
    assert "SCRIPT" in nothing.stderr
    asked = subprocess.run([*run, "--help"], capture_output=True, text=True, check=True)
    assert "SCRIPT" in asked.stdout


def test_parameters_and_attributes_are_theirs():
    assert SVC().get_params() == THEIRS().get_params()
    assert isinstance(SVC(), THEIRS)
    ours, theirs = SVC().fit(X, Y), THEIRS().fit(X, Y)
    assert set(vars(ours)) == set(vars(theirs))
    for name in ("support_", "_n_support", "dual_coef_", "intercept_", "n_iter_", "_gamma"):
        assert np.asarray(getattr(ours, name)).dtype == np.asarray(getattr(theirs, name)).dtype
        assert np.shape(getattr(ours, name)) == np.shape(getattr(theirs, name))
    again = pickle.loads(pickle.dumps(ours))
    np.testing.assert_array_equal(again.decision_function(X), ours.decision_function(X))
    assert not hasattr(clone(ours), "support_")


@pytest.mark.parametrize("C", [0.03, 1.0, 1000.0])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_decisions_are_theirs(kernel, C, layout):
    digits, labels = load_digits(n_class=4, return_X_y=True)
    data = layout(digits[:200] / 16)
    how = {"kernel": kernel, "C": C, "tol": 1e-6, "class_weight": {0: 1.5}}
    ours, theirs = (kind(**how).fit(data, labels[:200]) for kind in (SVC, THEIRS))
    rows = layout(digits[200:] / 16)
    np.testing.assert_allclose(
        ours.decision_function(rows), theirs.decision_function(rows), atol=1e-3
    )
    np.testing.assert_array_equal(ours.predict(rows), theirs.predict(rows))


def test_the_limit_of_double_precision_ends_no_fit_early():
    """Rounding left so much of the intercept's constraint that nothing else was done any more."""
    data, labels = make_classification(
        300, 8, n_informative=5, n_classes=3, flip_y=0.1, random_state=1
    )
    data = (data - data.mean(axis=0)) / data.std(axis=0)
    rows = np.random.default_rng(0).permutation(300)[:200]
    how = {"kernel": "linear", "C": 10, "tol": 1e-6}
    ours, theirs = (kind(**how).fit(data[rows], labels[rows]) for kind in (SVC, THEIRS))
    assert ours.fit_status_ == 0
    np.testing.assert_allclose(
        ours.decision_function(data), theirs.decision_function(data), atol=1e-4
    )


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"kernel": "sigmoid"}, "kernel='sigmoid' is not positive semi-definite"),
        ({"max_iter": 3}, "max_iter=3 counts LIBSVM's iterations"),
        ({"C": np.inf}, "C=inf has no dual with bounds"),
        ({"gamma": 0.0}, "gamma=0 makes all rows alike"),
        ({"kernel": lambda a, b: -a @ b.T}, "not positive semi-definite on these data"),
    ],
)
def test_what_is_scikit_learns_is_said_once(parameters, reason):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        ours = SVC(**parameters).fit(X, Y)
    assert [reason in str(w.message) for w in told if w.category is UserWarning] == [True]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = THEIRS(**parameters).fit(X, Y)
    np.testing.assert_array_equal(ours.dual_coef_, theirs.dual_coef_)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_a_fit_is_silent():
    wide = X * [1, 1000, 1, 1]  # which KernelSVC warns of
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SVC().fit(wide, Y)


def test_other_classes_of_scikit_learn_take_it(patched):
    from sklearn.ensemble import BaggingClassifier
    from sklearn.model_selection import GridSearchCV
    from sklearn.multiclass import OneVsRestClassifier

    data, labels = make_classification(200, random_state=0)
    search = GridSearchCV(sklearn.svm.SVC(), {"C": [0.1, 1]}, cv=2).fit(data, labels)
    assert type(search.best_estimator_) is SVC
    assert (
        BaggingClassifier(sklearn.svm.SVC(), random_state=0).fit(data, labels).score(data, labels)
        > 0.8
    )
    assert OneVsRestClassifier(sklearn.svm.SVC()).fit(X, Y).score(X, Y) > 0.9


# ------------------------------------------------------------------ SVR


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    "how", [{}, {"kernel": "linear"}, {"kernel": "poly", "coef0": 1.0, "C": 9.0}]
)
def test_svr_has_scikit_learns_parameters_attributes_and_optimum(how, sparse):
    X, y = load_diabetes(return_X_y=True)
    X, y, weight = X[:200] * (X[:200] > 0), y[:200] / 50, np.linspace(0, 2, 200)
    data = sp.csr_array(X) if sparse else X
    assert SVR().get_params() == sklearn.svm.SVR().get_params()
    ours, theirs = (kind(**how).fit(data, y, weight) for kind in (SVR, sklearn.svm.SVR))
    assert set(vars(theirs)) <= set(vars(ours))
    np.testing.assert_allclose(ours.predict(data), theirs.predict(data), atol=5e-3)
    assert ours.dual_coef_.shape[0] == 1
    assert type(ours.n_iter_) is type(theirs.n_iter_)
    again = pickle.loads(pickle.dumps(ours))
    np.testing.assert_array_equal(again.predict(data), ours.predict(data))


def test_svr_leaves_to_scikit_learn_what_only_libsvm_does():
    X, y = load_diabetes(return_X_y=True)
    for parameters in ({"max_iter": 3}, {"kernel": "sigmoid"}, {"gamma": 0.0}):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            SVR(**parameters).fit(X[:50], y[:50])
        assert "This fit is scikit-learn's own" in str(caught[0].message)


# ------------------------------------------------------------------ LinearSVC


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("scaling", [None, 1.0, 5.0])
def test_the_weights_are_liblinears(layout, loss, scaling):
    weight = np.random.default_rng(0).integers(0, 3, size=len(X))
    how = {
        "loss": loss,
        "C": 0.3,
        "tol": 1e-8,
        "fit_intercept": scaling is not None,
        "intercept_scaling": scaling or 1.0,
        "class_weight": {0: 2.0},
        "max_iter": 100_000,
        "dual": True,
    }
    data = layout(X - X.mean(axis=0))
    ours = LinearSVC(**how).fit(data, Y, sample_weight=weight)
    theirs = THEIR_LINEAR(random_state=0, **how).fit(data, Y, sample_weight=weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)
    np.testing.assert_array_equal(ours.predict(data), theirs.predict(data))
    assert set(vars(ours)) == set(vars(theirs))
    assert isinstance(ours.n_iter_, int)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("C", [0.1, 1e4])
def test_the_squared_hinge_of_few_features_takes_few_sweeps(C, layout):
    data, labels = make_classification(400, 30, n_informative=9, flip_y=0.1, random_state=0)
    model = LinearSVC(C=C).fit(layout(data * (abs(data) > 1.5)), labels)
    assert model.n_iter_ <= 5


def test_linear_parameters_are_theirs():
    assert LinearSVC().get_params() == THEIR_LINEAR().get_params()
    two = LinearSVC().fit(X[:100], Y[:100])
    assert two.coef_.shape == (1, 4)
    assert two.decision_function(X).shape == (150,)


@pytest.mark.filterwarnings("ignore:Liblinear failed to converge")
@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"penalty": "l1"}, "penalty='l1' has no dual with bounds"),
        ({"multi_class": "crammer_singer"}, "trains all classes together"),
        ({"max_iter": 999, "C": 1e-3}, "max_iter=999 counts LIBLINEAR's iterations"),
    ],
)
def test_what_is_liblinears_is_said(parameters, reason):
    with pytest.warns(UserWarning, match=reason):
        ours = LinearSVC(random_state=0, **parameters).fit(X, Y)
    theirs = THEIR_LINEAR(random_state=0, **parameters).fit(X, Y)
    np.testing.assert_array_equal(ours.coef_, theirs.coef_)


def test_what_liblinear_does_not_know_is_refused():
    with pytest.raises(ValueError, match="Unsupported set of arguments"):
        LinearSVC(loss="hinge", dual=False).fit(X, Y)
    with pytest.raises(ValueError, match="only one class"):
        LinearSVC().fit(X[:10], Y[:10])
