"""Missing values, categories and names of columns in ONNX files."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from widemargin import AdditiveSVC, KernelSVC
from widemargin.export import export_onnx

from .onnx_helpers import data, decide, onnx, onnxruntime


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


@pytest.mark.filterwarnings("ignore::widemargin.errors.UnseenWarning")
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


@pytest.mark.filterwarnings("ignore::widemargin.errors.UnseenWarning")
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
