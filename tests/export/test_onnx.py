"""`export_onnx`: the file decides as the model does, and what it cannot say is refused."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_svmlight_file
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, PowerTransformer, StandardScaler

from widemargin import AdditiveSVC, KernelSVC, PowerMean
from widemargin.additive.lookup import PolynomialLookup
from widemargin.export import export_onnx, onnx_graph
from widemargin.kernel.partition import KernelRouter, PointRouter

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.filterwarnings("ignore:kernel=.sigmoid. is not positive semi-definite")

KERNELS = {
    "rbf": {"gamma": 0.5},
    "poly": {"gamma": 0.1, "coef0": 0.5, "degree": 3},
    "sigmoid": {"gamma": 0.02, "coef0": -0.1},
    "laplacian": {"gamma": 0.2},
    "chi2": {"gamma": 0.5},
}


def data(name):
    """Training rows and other ones, in which some values lie outside the training range."""
    load = {"iris": load_iris, "cancer": load_breast_cancer}.get(name, load_digits)
    X, y = load(return_X_y=True)
    X, y = MinMaxScaler().fit_transform(X).astype(np.float32)[:600], y[:600]
    if name == "sparse":
        X = np.where(X > 0.8, X, np.float32(0))
    train = np.arange(len(X)) % 3 > 0
    return X[train], y[train], 1.2 * X[~train]


def decide(model, X, path):
    """Labels and scores of the exported model."""
    export_onnx(model, path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(["label", "scores"], {"X": X})


def assert_agrees(model, X, path, tolerance=3e-5):
    label, scores = decide(model, X, path)
    expected = model.decision_function(X)
    assert scores.shape == expected.shape
    assert np.abs(scores - expected).max() <= tolerance * np.abs(expected).max()
    np.testing.assert_array_equal(label, model.predict(X))


# ---------------------------------------------------------------------- additive models


@pytest.mark.parametrize("name", ["cancer", "iris", "digits", "sparse"])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"kernel": "chi2", "tol": 1e-5},
        {"approximation": "unary"},
        {"kernel": "chi2", "approximation": "unary", "scaling": "percentile"},
        {"kernel": "chi2", "approximation": "fourier"},
        {"kernel": PowerMean(-1), "approximation": "chebyshev", "tol": 0.1},
        {"kernel": PowerMean(-1), "approximation": "pmsvm", "tol": 0.1},
        {"kernel": PowerMean(-1), "approximation": "pmsvm", "tol": 0.1, "n_bins": 50},
        {"multi_class": "crammer_singer"},
        {"multi_class": "crammer_singer", "approximation": "unary"},
        {"kernel": lambda x, y: np.exp(-((x - y) ** 2)), "fit_intercept": False},
    ],
)
def test_additive_models(changes, name, tmp_path):
    X, y, asked = data(name)
    given = sp.csr_array(X) if name == "sparse" and not callable(changes.get("kernel")) else X
    model = AdditiveSVC(random_state=0, **changes).fit(given, y)
    assert isinstance(model.model_.lookup, PolynomialLookup) == (
        changes.get("approximation") == "pmsvm" and "n_bins" not in changes
    )
    assert_agrees(model, asked - np.float32(0.1), tmp_path / "model.onnx")


@pytest.mark.parametrize("approximation", ["spectral", "unary"])
def test_more_classes_than_a_block_holds(approximation, tmp_path):
    X, y, asked = data("digits")
    y = 2 * y + (X.sum(axis=1) > np.median(X.sum(axis=1)))
    model = AdditiveSVC(approximation=approximation, random_state=0).fit(X, y)
    assert len(model.model_.weights) == 2
    assert_agrees(model, asked, tmp_path / "model.onnx")


@pytest.mark.parametrize("n_bins", [1, 2, 7, 8, 256])
def test_values_on_the_thresholds_get_the_very_same_codes(n_bins, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 1025, (300, 2)).astype(np.float32)
    X[0] = 1024  # halves of bins are whole numbers then
    model = AdditiveSVC(
        approximation="unary", scaling=None, binning="uniform", n_bins=n_bins, random_state=0
    ).fit(X, X[:, 0] + 200 * rng.normal(size=300) > 500)
    on = np.repeat(model.model_.encoder.thresholds.astype(np.float32)[:, None], 2, axis=1)
    above, below = np.nextafter(on, np.float32(np.inf)), np.nextafter(on, np.float32(-np.inf))
    assert np.all(model.decision_function(above) != model.decision_function(below))
    assert_agrees(model, np.vstack([on, above, below]), tmp_path / "model.onnx", 1e-6)


# ---------------------------------------------------------------------- kernel models


@pytest.mark.parametrize("name", ["cancer", "iris", "digits", "sparse"])
@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_exact_kernel_models(kernel, multi_class, name, tmp_path):
    X, y, asked = data(name)
    given = sp.csr_array(X) if name == "sparse" and kernel in ("rbf", "poly", "sigmoid") else X
    model = KernelSVC(kernel, **KERNELS[kernel], multi_class=multi_class, fit_intercept=True)
    assert_agrees(model.fit(given, y), asked, tmp_path / "model.onnx")


@pytest.mark.parametrize("kernel", KERNELS)
def test_double_precision(kernel, tmp_path):
    X, y, asked = data("cancer")
    model = KernelSVC(kernel, **KERNELS[kernel], C=10, tol=1e-5).fit(X, y)
    assert_agrees(model, asked, tmp_path / "model.onnx", tolerance=1e-6)


@pytest.mark.parametrize("early_prediction", ["routed", "sum"])
@pytest.mark.parametrize("name", ["cancer", "sparse"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_early_kernel_models(kernel, name, early_prediction, tmp_path):
    X, y, asked = data(name)
    model = KernelSVC(
        kernel, **KERNELS[kernel], early=1, early_prediction=early_prediction, random_state=0
    ).fit(X, y)
    router = PointRouter if kernel in ("rbf", "laplacian") else KernelRouter
    assert isinstance(model.model_.router, router)
    assert_agrees(model, asked, tmp_path / "model.onnx")


# ---------------------------------------------------------------------- pipelines, labels, files


@pytest.mark.parametrize("model", [AdditiveSVC(random_state=0, scaling="minmax"), KernelSVC()])
@pytest.mark.parametrize(
    "scaler",
    [
        MinMaxScaler((-1, 2)),
        MinMaxScaler(clip=True),
        MaxAbsScaler(),
        MaxAbsScaler(clip=True),
        StandardScaler(),
        StandardScaler(with_mean=False),
        StandardScaler(with_std=False),
    ],
    ids=str,
)
def test_pipelines(scaler, model, tmp_path):
    X, y, asked = data("cancer")
    pipeline = make_pipeline(scaler, model).fit(3 * X - 1, y)
    assert_agrees(pipeline, 3 * asked - 1, tmp_path / "model.onnx")


@pytest.mark.parametrize("strategy", ["mean", "median", "constant"])
def test_imputers(strategy, tmp_path):
    X, y, asked = data("cancer")
    X[::5, 3], asked[::3, 5], asked[:, 7] = np.nan, np.nan, np.nan
    imputer = SimpleImputer(strategy=strategy, keep_empty_features=True)
    pipeline = make_pipeline(imputer, MinMaxScaler(), KernelSVC()).fit(X, y)
    assert_agrees(pipeline, asked, tmp_path / "model.onnx")


@pytest.mark.parametrize(
    "imputer", [SimpleImputer(missing_values=0.0), SimpleImputer(add_indicator=True)], ids=str
)
def test_refuses_imputers_that_do_more(imputer, tmp_path):
    X, y, _ = data("iris")
    X[::5, 3] = imputer.missing_values
    with pytest.raises(ValueError, match="or a SimpleImputer of NaN by numbers"):
        export_onnx(make_pipeline(imputer, KernelSVC()).fit(X, y), tmp_path / "model.onnx")


@pytest.mark.filterwarnings("ignore:Feature")
@pytest.mark.parametrize("name", ["iris", "sparse"])
def test_rows_so_far_apart_that_squared_norms_cancel(name, tmp_path):
    X, y, _ = data(name)
    X = 1e12 * X
    model = KernelSVC(gamma=1.0).fit(X, y)
    assert model.model_.kernel.is_far(model.model_.vectors)
    assert model.model_.kernel.compressed == (name == "sparse")
    assert_agrees(model, X, tmp_path / "model.onnx")


@pytest.mark.filterwarnings("ignore:Feature")
def test_rows_for_which_single_precision_is_rough(tmp_path):
    """Predictions are off by little of the margin; sessions in another order of sums are not."""
    X, y, _ = data("iris")
    X = 100 * (X - X.mean(axis=0))
    model = KernelSVC(gamma=0.5).fit(X, y > 0)
    assert model.model_.kernel.dtype == np.float32
    _, scores = decide(model, X, tmp_path / "model.onnx")
    distance = cdist(X.astype(float), X[model.support_].astype(float), "sqeuclidean")
    expected = np.exp(-0.5 * distance) @ model.dual_coef_[0] + model.intercept_
    assert np.abs(scores - expected).max() < 1e-5


def test_a_centre_at_zero(tmp_path):
    X = np.array([[1.0], [-1.0], [1.0], [-1.0]], dtype=np.float32)
    model = KernelSVC("laplacian").fit(X, X[:, 0] > 0)
    assert not model.model_.kernel.centre.any()
    assert_agrees(model, X, tmp_path / "model.onnx")


def test_several_scalers(tmp_path):
    X, y, asked = data("digits")
    pipeline = make_pipeline(StandardScaler(), MinMaxScaler(), AdditiveSVC(random_state=0))
    assert_agrees(pipeline.fit(X, y), asked, tmp_path / "model.onnx")


@pytest.mark.parametrize("estimator", [AdditiveSVC(random_state=0), KernelSVC(gamma=1.0)])
def test_ijcnn1(estimator, data_folder, tmp_path):
    X, y = load_svmlight_file(data_folder / "ijcnn1.trn.bz2", dtype=np.float32)
    model = estimator.fit(X[:3000], y[:3000])
    assert_agrees(model, X[3000:6000].toarray(), tmp_path / "model.onnx")


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (np.array([-1.0, 1.0]), np.int64),
        (np.array([False, True]), np.int64),
        (np.array([3, 9], dtype=np.uint8), np.int64),
        (np.array(["no", "yes Ä"]), object),
        (np.array(["no", "yes"], dtype=object), object),
    ],
)
def test_labels(labels, expected, tmp_path):
    X, y, asked = data("cancer")
    model = AdditiveSVC(random_state=0).fit(X, labels[y])
    label, _ = decide(model, asked, tmp_path / "model.onnx")
    assert label.dtype == expected
    np.testing.assert_array_equal(label, model.predict(asked))


@pytest.mark.parametrize("estimator", [AdditiveSVC(random_state=0), KernelSVC("laplacian")])
@pytest.mark.parametrize("n", [0, 1])
def test_few_rows(n, estimator, tmp_path):
    X, y, asked = data("iris")
    model = estimator.fit(X, y)
    label, scores = decide(model, asked[:n], tmp_path / "model.onnx")
    assert label.shape == (n,)
    assert scores.shape == (n, 3)


def nodes(graph):
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            yield from nodes(attribute.g)


@pytest.mark.parametrize("model", [AdditiveSVC(), KernelSVC("chi2", early=1)])
def test_plain_operations_of_a_fixed_version(model, tmp_path):
    X, y, _ = data("iris")
    export_onnx(model.fit(X, y), tmp_path / "model.onnx")
    proto = onnx.load(tmp_path / "model.onnx")
    assert [(o.domain, o.version) for o in proto.opset_import] == [("", 17)]
    assert {node.domain for node in nodes(proto.graph)} == {""}
    assert proto.producer_name == "widemargin"


# ---------------------------------------------------------------------- refusals


def words(X, Z):
    return X @ Z.T


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (KernelSVC(words), "kernel='words'.*'rbf'"),
        (KernelSVC(early=1, early_prediction="bcm"), "early_prediction='bcm'.*'routed' or 'sum'"),
        (make_pipeline(PowerTransformer(), KernelSVC()), "PowerTransformer.*MinMaxScaler"),
        (make_pipeline(StandardScaler(), LogisticRegression()), "LogisticRegression.*AdditiveSVC"),
    ],
)
def test_refuses_what_plain_operations_cannot_say(model, message, tmp_path):
    X, y, _ = data("iris")
    path = tmp_path / "model.onnx"
    path.write_text("old")
    with pytest.raises(ValueError, match=message):
        export_onnx(model.fit(X, y), path)
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_refuses_precomputed_kernels(tmp_path):
    X, y, _ = data("iris")
    with pytest.raises(ValueError, match="kernel='precomputed'"):
        export_onnx(KernelSVC("precomputed").fit(X @ X.T, y), tmp_path / "model.onnx")


def test_refuses_labels_of_other_types(tmp_path):
    X, y, _ = data("iris")
    model = AdditiveSVC(random_state=0).fit(X, y)
    for classes in ([0.5, 1, 2], [1e300, 1e301, 1e302], [None, "a", "b"]):
        model.classes_ = np.array(classes)
        with pytest.raises(ValueError, match=r"neither whole numbers.*nor text"):
            export_onnx(model, tmp_path / "model.onnx")


def test_refuses_more_numbers_than_a_file_holds(monkeypatch, tmp_path):
    X, y, _ = data("sparse")
    model = KernelSVC().fit(sp.csr_array(X), y)
    monkeypatch.setattr(onnx_graph, "MOST_BYTES", 4 * X.shape[1] * len(model.support_) - 1)
    with pytest.raises(ValueError, match="2 GB at most"):
        export_onnx(model, tmp_path / "model.onnx")


def test_refuses_models_that_are_not_fitted(tmp_path):
    for model in (AdditiveSVC(), make_pipeline(StandardScaler(), KernelSVC())):
        with pytest.raises(NotFittedError):
            export_onnx(model, tmp_path / "model.onnx")


def test_says_what_to_install(monkeypatch, tmp_path):
    X, y, _ = data("iris")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install widemargin\[onnx\]"):
        export_onnx(AdditiveSVC().fit(X, y), tmp_path / "model.onnx")


# ------------------------------------------------------------------ missing values and categories


@pytest.mark.parametrize("approximation", ["spectral", "unary", "pmsvm"])
@pytest.mark.parametrize("kernel", ["chi2", lambda x, y: (1 + x * y) ** 2], ids=["chi2", "square"])
def test_missing_values_are_missing_in_the_file_too(kernel, approximation, tmp_path):
    X, y, new = data("iris")
    rng = np.random.default_rng(0)
    X = np.where(rng.random(X.shape) < [0.2, 0.2, 0, 0.1], np.float32("nan"), X)
    new[:5] = np.nan  # in the third column for the first time
    model = AdditiveSVC(kernel, approximation=approximation, missing="learn", random_state=0)
    model.fit(X, y)
    with pytest.warns(UserWarning, match="contribute nothing"):
        expected = model.decision_function(new)
    labels, scores = decide(model, new, tmp_path / "m.onnx")
    np.testing.assert_allclose(scores, expected, atol=1e-4)
    np.testing.assert_array_equal(labels, model.classes_[expected.argmax(axis=1)])


def people(n=300, seed=0) -> pd.DataFrame:
    """Numbers and categories, some missing in both, and names that need care in a graph."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "v1": rng.integers(20, 70, n).astype(np.float32),  # as results are called
            "job title": rng.choice(["baker", "clerk Ä", "smith", "nan"], n),
            "pay": rng.exponential(1.0, n).astype(np.float32),
            "zip": pd.Categorical(rng.choice([1010, 1020, 8000], n)),
        }
    )
    frame.loc[rng.random(n) < 0.1, "v1"] = np.nan
    frame.loc[rng.random(n) < 0.1, "job title"] = None
    return frame


def labels_of_people(frame) -> np.ndarray:
    rich = (frame["v1"] > 45) | (frame["job title"] == "smith") | (frame["zip"] == 8000)
    return np.where(rich, np.where(frame["pay"] > 2, "very rich", "rich"), "poor")


def run_by_column(path, frame, texts):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    given = {
        c: frame[[c]].astype(object).to_numpy()
        if c in texts
        else frame[[c]].to_numpy(dtype=np.float32)
        for c in frame
    }
    return session.run(["label", "scores"], given)


@pytest.mark.filterwarnings("ignore::widemargin.warning.UnseenWarning")
@pytest.mark.parametrize("two", [False, True])
@pytest.mark.parametrize("kernel", ["chi2", lambda x, y: (1 + x * y) ** 2], ids=["chi2", "square"])
@pytest.mark.parametrize("approximation", ["spectral", "unary", "pmsvm"])
def test_columns_of_frames_are_inputs_of_their_names(approximation, kernel, two, tmp_path):
    frame, new = people(), people(90, seed=1)
    y = labels_of_people(frame)
    new.loc[0, "job title"] = "pilot"  # unknown
    new.loc[1, "pay"] = np.nan  # never missing before
    new["zip"] = new["zip"].astype(object)
    new.loc[2, "zip"] = None
    model = AdditiveSVC(kernel, approximation=approximation, missing="learn", random_state=0)
    model.fit(frame, np.where(y == "poor", 0, 1) if two else y)
    export_onnx(model, tmp_path / "m.onnx")
    texts = new[["job title", "zip"]].astype(object).fillna("")  # "nan" is a category
    label, scores = run_by_column(tmp_path / "m.onnx", new.assign(**texts), texts.columns)
    expected = model.decision_function(new)
    assert scores.shape == expected.shape
    np.testing.assert_allclose(scores, expected, atol=1e-4)
    np.testing.assert_array_equal(label, model.predict(new))


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, ""])
def test_what_is_missing_in_a_column_of_text(missing, tmp_path):
    frame = people().assign(**{"job title": lambda f: f["job title"].replace("nan", "smith")})
    model = AdditiveSVC(missing="learn", random_state=0).fit(frame, labels_of_people(frame))
    export_onnx(model, tmp_path / "m.onnx")
    assert 1 in model.columns_.missing
    row = frame.head(1).astype(object)
    row.loc[0, "job title"] = missing
    _, scores = run_by_column(tmp_path / "m.onnx", row, {"job title", "zip"})
    row.loc[0, "job title"] = None
    np.testing.assert_allclose(scores, model.decision_function(row), atol=1e-4)


@pytest.mark.filterwarnings("ignore::widemargin.warning.UnseenWarning")
@pytest.mark.parametrize("n_numbers", [3, 0])
def test_a_matrix_with_categories_stays_a_matrix(n_numbers, tmp_path):
    X, y, new = data("iris")
    X, new = np.round(3 * X, 1), np.round(3 * new, 1)  # some are new
    new[::7, 3] = np.nan
    chosen = list(range(n_numbers, 4))
    model = AdditiveSVC(categorical_features=chosen, missing="learn", random_state=0).fit(X, y)
    label, scores = decide(model, new, tmp_path / "m.onnx")
    expected = model.decision_function(new)
    np.testing.assert_allclose(scores, expected, atol=1e-4)
    np.testing.assert_array_equal(label, model.predict(new))
    assert decide(model, new[:0], tmp_path / "m.onnx")[1].shape == (0, 3)


def test_text_without_names_has_an_input_for_every_column(tmp_path):
    frame = people()
    frame["job title"] = frame["job title"].replace("nan", "smith")
    X = frame.astype(object).to_numpy()
    model = AdditiveSVC(categorical_features=[1, 3], missing="learn", random_state=0)
    model.fit(X, labels_of_people(frame))
    export_onnx(model, tmp_path / "m.onnx")
    frame.columns = ["x0", "x1", "x2", "x3"]
    _, scores = run_by_column(tmp_path / "m.onnx", frame, {"x1", "x3"})
    np.testing.assert_allclose(scores, model.decision_function(X), atol=1e-4)


def test_names_of_a_matrix_are_in_the_metadata(tmp_path):
    frame, y = load_iris(return_X_y=True, as_frame=True)
    for model in (AdditiveSVC(random_state=0), make_pipeline(MinMaxScaler(), KernelSVC())):
        export_onnx(model.fit(frame, y), tmp_path / "m.onnx")
        (found,) = onnx.load(tmp_path / "m.onnx").metadata_props
        assert (found.key, json.loads(found.value)) == ("columns", frame.columns.tolist())


def test_refuses_columns_called_like_an_output(tmp_path):
    frame = people().rename(columns={"pay": "scores"})
    model = AdditiveSVC(missing="learn", random_state=0)
    model.fit(frame, labels_of_people(people()))
    with pytest.raises(ValueError, match="A column is called 'scores'"):
        export_onnx(model, tmp_path / "m.onnx")
    assert not (tmp_path / "m.onnx").exists()


def test_refuses_scalers_before_categories(tmp_path):
    X, y, _ = data("iris")
    model = make_pipeline(MinMaxScaler(), AdditiveSVC(categorical_features=[3], random_state=0))
    with pytest.raises(ValueError, match="MinMaxScaler before columns of categories"):
        export_onnx(model.fit(np.round(3 * X), y), tmp_path / "m.onnx")
