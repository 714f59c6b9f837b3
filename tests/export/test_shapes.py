"""`export_shapes`: the JSON holds the whole model, strictly."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

import widemargin
from widemargin import AdditiveSVC, AdditiveSVR, KernelSVC, TableEncoder
from widemargin.export import export_shapes, shape_functions


def strictly(path):
    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)


def decision(shapes, X):
    """Intercepts plus every feature's value at the nearest point of its grid."""
    scores = np.tile(shapes["intercepts"], (len(X), 1))
    for feature in shapes["features"]:
        x = X[:, feature["index"]]
        nearest = np.abs(np.subtract.outer(x, feature["grid"])).argmin(axis=1)
        scores += np.array(feature["values"])[:, nearest].T
    return scores


@pytest.mark.parametrize("n_classes", [2, 10])
@pytest.mark.parametrize(
    "changes",
    [{}, {"approximation": "unary"}, {"multi_class": "crammer_singer"}],
    ids=["spectral", "unary", "crammer_singer"],
)
def test_the_shapes_add_up_to_the_decision(changes, n_classes, tmp_path):
    X, y = load_digits(return_X_y=True)
    model = AdditiveSVC("chi2", random_state=0, **changes).fit(X, y % n_classes)
    export_shapes(model, tmp_path / "shapes.json")
    shapes = strictly(tmp_path / "shapes.json")
    expected = model.decision_function(X).reshape(len(X), -1)
    np.testing.assert_allclose(decision(shapes, X), expected, atol=1e-4)
    assert shapes["classes"] == list(range(n_classes))
    assert shapes["outputs"] == ([1] if n_classes == 2 else list(range(10)))
    assert shapes["widemargin"] == widemargin.__version__


@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
@pytest.mark.parametrize("approximation", ["spectral", "pmsvm"])
def test_the_shapes_are_those_of_the_model(load, approximation):
    X, y = load(return_X_y=True, as_frame=True)
    model = AdditiveSVC("chi2", approximation=approximation, tol=0.01, random_state=0).fit(X, y)
    shapes = shape_functions(model)
    assert [feature["name"] for feature in shapes["features"]] == list(X.columns)
    for feature in shapes["features"]:
        for label, values in zip(shapes["outputs"], feature["values"], strict=True):
            grid, expected = model.shape_function(feature["name"], label)
            np.testing.assert_array_equal(feature["grid"], grid)
            np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize("scaler", [MinMaxScaler(), MaxAbsScaler(), StandardScaler()])
def test_shapes_of_a_scaled_model_are_those_of_the_data(scaler, tmp_path):
    X, y = load_digits(return_X_y=True)
    X = X[:, (X > 0).sum(axis=0) > 20]  # scaling stretches the bins of the others
    model = make_pipeline(scaler, AdditiveSVC("chi2", random_state=0)).fit(X, y)
    export_shapes(model, tmp_path / "shapes.json")
    shapes = strictly(tmp_path / "shapes.json")
    np.testing.assert_allclose(decision(shapes, X), model.decision_function(X), atol=1e-4)
    for feature in shapes["features"]:
        column = X[:, feature["index"]]
        assert feature["grid"][0] == pytest.approx(column.min(), abs=1e-6)
        assert feature["grid"][-1] == pytest.approx(column.max(), rel=0.05)


def test_terms_are_the_columns_of_the_data():
    rng = np.random.default_rng(0)
    job, size = rng.integers(0, 3, 200), rng.random(200)
    X = pd.DataFrame({"size": size, "job": np.array(["a", "b", "c"])[job]})
    model = make_pipeline(TableEncoder(), AdditiveSVC(random_state=0)).fit(X, job == 1)
    shapes = shape_functions(model)
    assert [(t["name"], t["features"], t["categories"]) for t in shapes["terms"]] == [
        ("size", [0], []), ("job", [1, 2, 3], ["a", "b", "c"])]  # fmt: skip
    assert shapes["terms"][1]["importance"] > shapes["terms"][0]["importance"] > 0
    assert [f["name"] for f in shapes["features"]] == ["size", "job=a", "job=b", "job=c"]


def test_text_labels_and_features_without_names(tmp_path):
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica — Ä"], dtype=object)
    export_shapes(AdditiveSVC(random_state=0).fit(X, names[y]), tmp_path / "shapes.json")
    shapes = strictly(tmp_path / "shapes.json")
    assert shapes["outputs"] == names.tolist()
    assert [feature["name"] for feature in shapes["features"]] == [None] * 4


def test_refuses_a_model_that_diverged(tmp_path):
    model = AdditiveSVC(random_state=0).fit(*load_iris(return_X_y=True))
    model.model_ = replace(model.model_, weights=np.full_like(model.model_.weights, np.inf))
    with pytest.raises(ValueError, match=r"diverged.*decrease C"):
        export_shapes(model, tmp_path / "shapes.json")
    assert list(tmp_path.iterdir()) == []


def test_refuses_what_is_no_sum_over_features(tmp_path):
    model = KernelSVC().fit(*load_iris(return_X_y=True))
    with pytest.raises(ValueError, match=r"KernelSVC is not a sum over features.*AdditiveSVC"):
        export_shapes(model, tmp_path / "shapes.json")
    with pytest.raises(NotFittedError):
        export_shapes(AdditiveSVC(), tmp_path / "shapes.json")


def test_categories_and_missing_values_are_those_of_their_column():
    X = pd.DataFrame(
        {"age": [31.0, np.nan, 60.0, 44.0] * 9, "job": ["smith", "clerk", None, "smith"] * 9}
    )
    model = AdditiveSVC(missing="learn", random_state=0).fit(X, [0, 1, 1, 0] * 9)
    shapes = json.loads(json.dumps(shape_functions(model), allow_nan=False))
    age, job = shapes["features"]
    assert (age["name"], job["name"], job["missing"]) == ("age", "job", None)
    assert job["grid"] == ["clerk", "smith", "(missing)"]
    parts = model.contributions(X)
    assert age["missing"] == pytest.approx([parts[1, 0]], abs=1e-6)
    assert job["values"][0] == pytest.approx(parts[[1, 0, 2], 1], abs=1e-6)
    assert [term["name"] for term in shapes["terms"]] == ["age", "job"]
    assert [term["features"] for term in shapes["terms"]] == [[0], [1]]
    assert shapes["terms"][1]["categories"] == ["clerk", "smith", "(missing)"]
    sizes = [term["importance"] for term in shapes["terms"]]
    assert sizes == pytest.approx(np.abs(parts[:, :2]).mean(axis=0), abs=1e-6)


@pytest.mark.parametrize("n_targets", [1, 3])
def test_the_shapes_of_numbers_add_up_to_the_prediction(n_targets, tmp_path):
    X, y = load_digits(return_X_y=True)
    y = 100.0 * np.stack([y, y**2, -y][:n_targets], axis=1)
    model = AdditiveSVR("chi2", random_state=0).fit(X, y)
    export_shapes(model, tmp_path / "shapes.json")
    shapes = strictly(tmp_path / "shapes.json")
    np.testing.assert_allclose(decision(shapes, X), model.predict(X), atol=0.1)
    assert shapes["classes"] == []
    assert shapes["outputs"] == list(range(n_targets))
