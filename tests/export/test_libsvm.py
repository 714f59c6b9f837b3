"""`export_libsvm`: LIBSVM decides as we do, and what its format cannot say is refused."""

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_svmlight_file
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from widemargin import AdditiveSVC, KernelSVC, TableEncoder, load
from widemargin.calibration import with_probabilities
from widemargin.export import export_libsvm
from widemargin.kernel.backend import Host

svmutil = pytest.importorskip("libsvm.svmutil")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:kernel=.sigmoid. is not positive semi-definite"),
]


def data(name):
    """Training rows in [0, 1] and other rows to decide about; mostly zeros if it says so."""
    load = {"iris": load_iris, "cancer": load_breast_cancer}.get(name, load_digits)
    X, y = load(return_X_y=True)
    X, y = MinMaxScaler().fit_transform(X)[:900], y[:900]
    if name == "sparse":
        X = sp.csr_array(np.where(X > 0.8, X, 0.0))
    train = np.arange(X.shape[0]) % 3 > 0
    return X[train], y[train], X[~train]


def decide(model, X, path):
    """LIBSVM's labels and decision values, pairs of classes in our order."""
    export_libsvm(model, path)
    label, _, values = svmutil.svm_predict(
        [], sp.csr_matrix(X), svmutil.svm_load_model(str(path)), "-q"
    )
    n = len(model.classes_)
    latest_first = [tuple(sorted(p)) for p in combinations(range(n)[::-1], 2)]
    ours = [latest_first.index(pair) for pair in combinations(range(n), 2)]
    return np.array(label), np.array(values)[:, ours]


def assert_agrees(model, X, path, tolerance=1e-5):
    label, values = decide(model, X, path)
    expected = model.model_.decision(X, Host(1))
    assert np.abs(values - expected).max() <= tolerance * np.abs(expected).max()
    decided = np.full(len(label), True)
    if len(model.classes_) > 2:  # LIBSVM breaks ties of votes by the order of classes
        n_votes = np.sort(np.rint(model.decision_function(X)), axis=1)
        decided = n_votes[:, -1] > n_votes[:, -2]
    assert decided.mean() > 0.95
    np.testing.assert_array_equal(label[decided], model.predict(X)[decided])


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("name", ["cancer", "iris", "digits", "sparse"])
@pytest.mark.parametrize(
    "kernel",
    [
        {"kernel": "rbf", "gamma": 0.5},
        {"kernel": "poly", "gamma": 0.1, "coef0": 0.5, "degree": 2},
        {"kernel": "sigmoid", "gamma": 0.02, "coef0": -0.1},
    ],
    ids=lambda kernel: kernel["kernel"],
)
def test_libsvm_decides_as_the_model(kernel, name, fit_intercept, tmp_path):
    X, y, asked = data(name)
    model = KernelSVC(**kernel, multi_class="ovo", fit_intercept=fit_intercept).fit(X, y)
    assert model.model_.kernel.compressed == (name == "sparse")
    assert_agrees(model, asked, tmp_path / "model")


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("name", ["cancer", "digits", "sparse"])
def test_double_precision_survives_the_text(kernel, name, tmp_path):
    X, y, asked = data(name)
    model = KernelSVC(kernel, C=100, tol=1e-5, multi_class="ovo").fit(X, y)
    assert_agrees(model, asked, tmp_path / "model", tolerance=1e-11)


def test_rows_far_from_zero_keep_their_digits(tmp_path):
    X, y, asked = data("iris")
    model = KernelSVC(gamma=0.5, multi_class="ovo").fit(X + 1000, y)
    assert_agrees(model, asked + 1000, tmp_path / "model")


def test_ijcnn1(data_folder, tmp_path):
    X, y = load_svmlight_file(data_folder / "ijcnn1.trn.bz2")
    model = KernelSVC(gamma=1.0).fit(X[:3000], y[:3000])
    assert_agrees(model, X[3000:6000], tmp_path / "model")


def test_the_decision_value_of_two_classes_is_ours(tmp_path):
    X, y, asked = data("cancer")
    model = KernelSVC().fit(X, np.where(y == 1, 7.0, -3.0))
    label, values = decide(model, asked, tmp_path / "model")
    np.testing.assert_allclose(values[:, 0], model.decision_function(asked), atol=1e-4)
    assert set(label) == {-3, 7}


def test_booleans_become_0_and_1(tmp_path):
    X, y, asked = data("cancer")
    label, _ = decide(KernelSVC().fit(X, y == 1), asked, tmp_path / "model")
    assert set(label) == {0, 1}


def test_zeros_of_centred_rows_are_left_out(tmp_path):
    X, y, _ = data("digits")
    model = KernelSVC(multi_class="ovo").fit(X, y)
    assert model.model_.kernel.centre is not None
    export_libsvm(model, tmp_path / "model")
    lines = (tmp_path / "model").read_text().split("SV\n")[1].splitlines()
    assert sum(line.count(":") for line in lines) == np.count_nonzero(X[model.support_])


def words(X, Z):
    return X @ Z.T


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kernel": "laplacian"}, "kernel='laplacian'.*'rbf', 'poly' or 'sigmoid'"),
        ({"kernel": "chi2"}, "kernel='chi2'"),
        ({"kernel": words}, "kernel=<function words"),
        ({"early": 1}, "early=False"),
        ({"early": 1, "early_prediction": "sum"}, "early=False"),
        ({"multi_class": "ovr"}, "multi_class='ovr' with 3 classes.*multi_class='ovo'"),
    ],
)
def test_refuses_models_that_the_format_cannot_say(changes, message, tmp_path):
    X, y, _ = data("iris")
    path = tmp_path / "model"
    path.write_text("old")
    model = KernelSVC(**{"multi_class": "ovo", **changes}).fit(X, y)
    with pytest.raises(ValueError, match=message):
        export_libsvm(model, path)
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_refuses_precomputed_kernels(tmp_path):
    X, y, _ = data("iris")
    model = KernelSVC("precomputed", multi_class="ovo").fit(X @ X.T, y)
    with pytest.raises(ValueError, match="kernel='precomputed'"):
        export_libsvm(model, tmp_path / "model")


@pytest.mark.parametrize("labels", [["no", "yes"], [0, 1 << 40]])
def test_refuses_labels_that_are_not_small_whole_numbers(labels, tmp_path):
    X, y, _ = data("cancer")
    with pytest.raises(ValueError, match=r"labels \[.*\] are not 32-bit integers"):
        export_libsvm(KernelSVC().fit(X, np.array(labels)[y]), tmp_path / "model")


def test_refuses_other_estimators(tmp_path):
    X, y, _ = data("iris")
    additive = AdditiveSVC().fit(X, y)
    for model in (additive, make_pipeline(StandardScaler(), AdditiveSVC()).fit(X, y)):
        with pytest.raises(ValueError, match=r"no AdditiveSVC.*export to ONNX"):
            export_libsvm(model, tmp_path / "model")


def test_refuses_models_that_are_not_fitted(tmp_path):
    with pytest.raises(NotFittedError):
        export_libsvm(KernelSVC(), tmp_path / "model")


# ------------------------------------------------------------------ behind scalers


class OneFactor(StandardScaler):
    """All features by one factor."""

    def fit(self, X, y=None):
        super().fit(X, y)
        self.scale_ = np.full_like(self.scale_, 0.25)
        return self


@pytest.mark.parametrize(
    ("scaler", "kernel"),
    [
        (OneFactor(), {"kernel": "rbf", "gamma": 0.05}),
        (OneFactor(with_mean=False), {"kernel": "rbf", "gamma": 0.05}),
        (MaxAbsScaler(), {"kernel": "poly", "degree": 2, "coef0": 1.0}),
        (MaxAbsScaler(), {"kernel": "sigmoid", "gamma": 0.02}),
        (StandardScaler(with_mean=False), {"kernel": "poly", "degree": 3}),
    ],
)
def test_scaled_models_are_exported_for_data_as_it_is(scaler, kernel, tmp_path):
    X, y, asked = data("iris")
    X, asked = 7 * X, 7 * asked
    model = make_pipeline(scaler, KernelSVC(**kernel, tol=1e-6)).fit(X, y)
    export_libsvm(model, tmp_path / "model")
    theirs = svmutil.svm_load_model(str(tmp_path / "model"))
    label, _, _ = svmutil.svm_predict([], sp.csr_matrix(asked), theirs, "-q")
    np.testing.assert_array_equal(label, model.predict(asked))
    ours = load(tmp_path / "model").decision_function(asked)
    np.testing.assert_allclose(ours, model.decision_function(asked), atol=1e-9)


@pytest.mark.parametrize(
    ("scaler", "kernel", "said"),
    [
        (StandardScaler(), "rbf", "a factor for every feature"),
        (MaxAbsScaler(), "rbf", "a factor for every feature"),
        (MinMaxScaler(), "poly", "moves zero"),
        (StandardScaler(), "sigmoid", "moves zero"),
        (MinMaxScaler(clip=True), "poly", "clips"),
    ],
)
def test_scalers_that_the_format_cannot_say_are_refused(scaler, kernel, said, tmp_path):
    X, y, _ = data("iris")
    model = make_pipeline(scaler, KernelSVC(kernel)).fit(X, y)
    with pytest.raises(ValueError, match=f"{said}.*Train on data that is scaled.*export to ONNX"):
        export_libsvm(model, tmp_path / "model")
    assert not list(tmp_path.iterdir())


# ------------------------------------------------------------------ probabilities


@pytest.mark.parametrize("labels", [(0, 1), (1, -1), (7, 3)])
def test_sigmoids_of_two_classes_are_those_of_libsvm(labels, tmp_path):
    X, y, asked = data("cancer")
    y = np.array(labels)[y]
    scaled = make_pipeline(OneFactor(), KernelSVC(gamma=0.5, tol=1e-6)).fit(X, y)
    model = with_probabilities(scaled, X, y)
    export_libsvm(model, tmp_path / "model")
    theirs = svmutil.svm_load_model(str(tmp_path / "model"))
    _, _, probability = svmutil.svm_predict([], sp.csr_matrix(asked), theirs, "-q -b 1")
    order = np.argsort(theirs.get_labels())
    expected = model.predict_proba(asked)
    assert expected.min() < 0.1
    np.testing.assert_allclose(np.array(probability)[:, order], expected, atol=1e-6)
    np.testing.assert_allclose(load(tmp_path / "model").predict_proba(asked), expected, atol=1e-6)


def test_other_probabilities_are_refused_in_one_sentence(tmp_path):
    X, y, _ = data("iris")
    fitted = KernelSVC(multi_class="ovo").fit(X, y)
    model = with_probabilities(fitted, X, y)
    with pytest.raises(
        ValueError, match="couples the probabilities of pairs of classes by another"
    ):
        export_libsvm(model, tmp_path / "model")
    export_libsvm(model.estimator_, tmp_path / "model")


def test_steps_that_are_no_scalers_are_named(tmp_path):
    X, y, _ = data("iris")
    model = make_pipeline(SimpleImputer(), KernelSVC()).fit(X, y)
    with pytest.raises(
        ValueError, match="LIBSVM's format cannot express a pipeline with SimpleImputer"
    ):
        export_libsvm(model, tmp_path / "model")


def test_columns_of_numbers_are_exported_and_others_refused(tmp_path):
    X, y, asked = data("cancer")
    table = pa.table(dict(zip(map(str, range(X.shape[1])), X.T.astype(float), strict=True)))
    model = make_pipeline(TableEncoder(scaling=None), KernelSVC(gamma=0.5)).fit(table, y)
    export_libsvm(model, tmp_path / "model")
    found = load(tmp_path / "model").decision_function(asked)
    np.testing.assert_allclose(found, model[-1].decision_function(asked), atol=1e-5)
    gaps = make_pipeline(TableEncoder(), KernelSVC()).fit(np.where(X > 0.9, np.nan, X), y)
    with pytest.raises(ValueError, match="cannot express a pipeline with TableEncoder"):
        export_libsvm(gaps, tmp_path / "model")
