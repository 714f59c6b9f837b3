"""What was saved comes back in every bit, and can be used as before."""

import json
import os
from copy import copy
from dataclasses import replace
from importlib.metadata import version

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.svm import SVC

import widemargin
from widemargin import AdditiveMap, AdditiveSVC, KernelSVC, load, save
from widemargin.persistence import read_header

from .cases import (
    ADDITIVE,
    CASES,
    KERNEL,
    PIPELINES,
    SCALERS,
    classes,
    fitted,
    framed,
    matrix_kernel,
    product_kernel,
    rows,
)
from .sameness import assert_same, assert_same_estimator


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def outputs(model, X):
    """Decision values; of a regression, predictions."""
    return getattr(model, "decision_function", model.predict)(X)


def again(model, path, **options):
    save(model, path)
    return load(path, **options)


# ------------------------------------------------------------------ every kind of model


@pytest.mark.parametrize("name", CASES)
def test_every_bit_comes_back(name, path):
    model, case = fitted(name)
    loaded = again(model, path, kernel=case.kernel)
    assert_same_estimator(model, loaded)
    assert_same(outputs(model, case.X), outputs(loaded, case.X))
    assert_same(model.predict(case.X), loaded.predict(case.X))


@pytest.mark.parametrize("name", CASES)
def test_a_loaded_model_saves_to_the_same_file(name, path):
    model, case = fitted(name)
    loaded = again(model, path, kernel=case.kernel)
    first = path.read_bytes()
    save(loaded, path)
    assert path.read_bytes() == first


@pytest.mark.parametrize("name", CASES)
def test_a_loaded_model_and_its_clone_fit_to_the_same(name, path):
    model, case = fitted(name)
    loaded = again(model, path, kernel=case.kernel)
    expected = outputs(model, case.X)
    for unfitted in (clone(loaded), loaded):
        refitted = type(case)(unfitted, case.X, case.y).fit()
        assert_same(outputs(refitted, case.X), expected)


def test_the_kinds_are_what_their_names_say():
    """The cases above are worth something only while they cover the kinds of models."""

    def kinds(of):
        return {name: fitted(name)[0] for name in of}

    additive, kernel = kinds(ADDITIVE), kinds(KERNEL)
    assert {m.model_.lanes for m in additive.values()} == {1, 16}
    assert {m.model_.weights.dtype.name for m in additive.values()} == {"float32", "float64"}
    assert any(hasattr(m.model_.lookup, "rank") for m in additive.values())
    assert any(m.model_.offset is not None for m in additive.values())
    assert any(len(m.model_.weights) > 1 for m in additive.values())
    assert any(len(m.model_.encoder.shift) > 1 for m in additive.values())
    assert any(m.model_.encoder.n_codes > 256 for m in additive.values())
    assert any(m.model_.tables.left is not m.model_.tables.right for m in additive.values())
    routers = {(type(m.model_.router).__name__, m.model_.combination) for m in kernel.values()}
    assert {
        (router, how)
        for router in ("PointRouter", "KernelRouter")
        for how in ("routed", "sum", "bcm")
    } <= routers
    vectors = {type(m.model_.vectors).__name__ for m in kernel.values()}
    assert vectors == {"DenseRows", "CompressedRows", "GivenRows", "MatrixRows"}
    assert {np.dtype(m.model_.kernel.dtype).name for m in kernel.values()} == {"float32", "float64"}
    assert any(m.levels_ for m in kernel.values())


# ------------------------------------------------------------------ uses of a loaded model


@pytest.mark.parametrize("name", ["chi2", "icd", "pmsvm", "unary of two", "bools", "user function"])
def test_a_loaded_additive_model_explains_itself(name, path):
    model, case = fitted(name)
    loaded = again(model, path, kernel=case.kernel)
    label = model.classes_[-1]
    for feature in range(4):
        assert_same(
            model.shape_function(feature, label), loaded.shape_function(feature, label), name
        )
    assert_same(model.contributions(case.X, label), loaded.contributions(case.X, label))
    assert model.approximation_error() == loaded.approximation_error()
    with pytest.raises(ValueError, match="warm_start=True"):  # dual variables are not stored
        loaded.approximation_error(case.X)


def test_features_keep_their_names(path):
    model, case = fitted("feature names")
    loaded = again(model, path)
    assert_same(
        model.shape_function("größe", 1), loaded.shape_function("größe", 1), "of a named feature"
    )
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.predict(case.X[case.X.columns[::-1]])


def test_an_additive_model_needs_its_function_only_to_fit(path):
    model, case = fitted("user function")
    loaded = again(model, path)
    assert_same(model.decision_function(case.X), loaded.decision_function(case.X))
    assert "product_kernel" in repr(loaded.kernel)
    for use in (lambda: loaded.fit(case.X, case.y), loaded.approximation_error):
        with pytest.raises(TypeError, match=r"product_kernel.*load\(path, kernel=function\)"):
            use()


def test_a_kernel_model_needs_its_function(path):
    model, _ = fitted("matrix function")
    save(model, path)
    with pytest.raises(ValueError, match=r"matrix_kernel.*load\(path, kernel=function\)"):
        load(path)


@pytest.mark.parametrize("name", ["chi2", "rbf", "standard"])
def test_a_function_for_a_model_that_has_none_is_refused(name, path):
    save(fitted(name)[0], path)
    with pytest.raises(ValueError, match="kernel= is for models trained with a function"):
        load(path, kernel=product_kernel)


def test_a_function_that_is_none_is_refused(path):
    save(fitted("matrix function")[0], path)
    with pytest.raises(ValueError, match="kernel=123 is not known"):
        load(path, kernel=123)


# ------------------------------------------------------------------ scalers and pipelines


@pytest.mark.parametrize("name", SCALERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("frame", [False, True])
def test_scalers_alone(name, dtype, frame, path):
    X = (5 * rows() - 1).astype(dtype)
    X = framed(X) if frame else X
    scaler = SCALERS[name]().fit(X)
    loaded = again(scaler, path)
    assert_same_estimator(scaler, loaded)
    scaled = scaler.transform(X.copy())
    assert_same(scaled, loaded.transform(X.copy()))
    assert_same(scaler.inverse_transform(scaled.copy()), loaded.inverse_transform(scaled.copy()))
    assert_same(scaler.get_feature_names_out(), loaded.get_feature_names_out())
    assert_same_estimator(scaler.partial_fit(X), loaded.partial_fit(X))


def test_a_scaler_of_weighted_rows(path):
    scaler = StandardScaler().fit(rows(), sample_weight=np.linspace(0, 1, len(rows())))
    assert_same_estimator(scaler, again(scaler, path))


def test_a_scaler_of_rows_with_gaps(path):
    X = rows().copy()
    X[3, 1] = np.nan
    scaler = StandardScaler().fit(X)
    assert np.size(scaler.n_samples_seen_) == 4
    assert_same_estimator(scaler, again(scaler, path))


def test_a_scaler_that_saw_nothing_in_a_column_is_refused(path):
    X = rows().copy()
    X[:, 1] = np.nan
    with pytest.warns(RuntimeWarning, match="All-NaN"):
        scaler = MinMaxScaler().fit(X)
    with pytest.raises(ValueError, match="min_ is not finite"):
        save(scaler, path)
    assert not path.exists()


@pytest.mark.parametrize("name", PIPELINES)
def test_pipelines_keep_their_steps(name, path):
    model, case = fitted(name)
    loaded = again(model, path)
    assert [(n, type(s)) for n, s in loaded.steps] == [(n, type(s)) for n, s in model.steps]
    assert_same(model.decision_function(case.X[:1]), loaded.decision_function(case.X[:1]))


# ------------------------------------------------------------------ the header


@pytest.mark.parametrize("name", ["chi2", "rbf", "standard"])
def test_notes_are_kept(name, path):
    notes = {"data": "Größe.csv", "rows": [1, 2.5, None, True], "more": {"deep": {}}}
    save(fitted(name)[0], path, notes=notes)
    assert read_header(path).notes == notes
    save(fitted(name)[0], path)
    assert read_header(path).notes == {}


def test_the_header_says_what_it_is(path):
    model, _ = fitted("chi2")
    save(model, path)
    header = read_header(path)
    assert (header.format, header.kinds, header.n_features) == (1, ("AdditiveSVC",), 4)
    assert header.package == version("widemargin")
    assert header.classes == model.classes_.tolist()
    assert header.feature_names is None
    expected = replace(model.fit_record_, history=[], violation=header.record.violation)
    assert expected.n_rows == 60
    assert repr(header.record) == repr(expected)  # there are NaN in it
    content = header.content
    assert (content["format"], content["kind"], content["n_features"]) == (1, "AdditiveSVC", 4)
    assert content["training"]["rows"] == 60
    assert json.loads(json.dumps(content)) == content


def test_the_header_of_a_pipeline_has_the_features_of_its_first_step(path):
    frame = pd.DataFrame(load_iris().data, columns=["a", "b", "c", "d"])
    machine = KernelSVC(random_state=0)
    save(make_pipeline(MinMaxScaler(), machine).fit(frame, load_iris().target), path)
    header = read_header(path)
    assert header.kinds == ("MinMaxScaler", "KernelSVC")
    assert (header.n_features, header.feature_names) == (4, ["a", "b", "c", "d"])
    assert (header.classes, header.record.n_rows) == ([0, 1, 2], 150)


def test_the_header_of_a_scaler_has_no_classes_and_no_fit(path):
    save(MinMaxScaler().fit(load_iris().data), path)
    header = read_header(path)
    assert (header.kinds, header.n_features) == (("MinMaxScaler",), 4)
    assert (header.classes, header.record) == (None, None)


def test_an_infinite_gap_is_a_number_again(path):
    model, _ = fitted("chi2")
    model = copy(model)
    model.fit_record_ = replace(model.fit_record_, gap=float("inf"))
    save(model, path)
    assert read_header(path).content["training"]["gap"] == "inf"
    assert read_header(path).record.gap == float("inf")


@pytest.mark.parametrize(
    "notes",
    [{"x": float("nan")}, {"x": {1, 2}}, {1: "a", "1": "b"}, {"x": np.zeros(3)}],
    ids=["nan", "set", "one name twice", "array"],
)
def test_notes_that_are_not_json_are_refused(notes, path):
    with pytest.raises((ValueError, TypeError)):
        save(fitted("chi2")[0], path, notes=notes)
    assert os.listdir(path.parent) == []


def test_where_a_fit_wrote_its_checkpoints_is_not_told(path, tmp_path):
    model = KernelSVC(checkpoint=str(tmp_path / "checkpoint")).fit(rows(), classes(rows()))
    assert again(model, path).checkpoint is None
    assert b'checkpoint\\":null' in path.read_bytes().replace(b" ", b"")


@pytest.mark.parametrize("state", [np.random.RandomState(0), np.random.mtrand._rand])
def test_the_state_of_a_generator_is_not_kept(state, path):
    model = AdditiveSVC(random_state=state).fit(rows(), classes(rows()))
    assert again(model, path).random_state is None


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    "model",
    [
        AdditiveSVC(),
        KernelSVC(),
        StandardScaler(),
        make_pipeline(AdditiveSVC()),
        make_pipeline(StandardScaler(), KernelSVC()),
    ],
    ids=lambda m: str(m).replace("\n", ""),
)
def test_a_model_that_is_not_fitted_is_refused(model, path):
    with pytest.raises(NotFittedError):
        save(model, path)
    assert not path.exists()


class Heir(AdditiveSVC):
    """A subclass may hold anything."""


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (SVC(), "SVC"),
        (RobustScaler(), "RobustScaler"),
        (AdditiveMap(), "AdditiveMap"),
        (Heir(), "Heir"),
        (None, "NoneType"),
        (make_pipeline(MinMaxScaler(), LogisticRegression()), "LogisticRegression"),
        (make_pipeline(FunctionTransformer(), AdditiveSVC()), "FunctionTransformer"),
        (make_pipeline(AdditiveSVC(), KernelSVC()), "AdditiveSVC"),
        (make_pipeline(make_pipeline(MinMaxScaler()), AdditiveSVC()), "Pipeline"),
        (Pipeline([("nothing", "passthrough"), ("svc", AdditiveSVC())]), "str"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_estimators_that_are_unknown_are_refused_by_name(model, name, path):
    X, y = rows(), classes(rows())
    if hasattr(model, "fit") and not (isinstance(model, Pipeline) and name == "AdditiveSVC"):
        model.fit(X, y)
    with pytest.raises(TypeError, match=name):
        save(model, path)
    assert not path.exists()


@pytest.mark.parametrize("name", ["chi2", "icd", "rbf", "early bcm, poly", "standard"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_model_that_diverged_is_refused(name, value, path):
    model, _ = fitted(name)
    machine = model[-1] if isinstance(model, Pipeline) else model
    intercept = machine.model_.intercept
    before = intercept[0]
    try:
        intercept[0] = value
        with pytest.raises(ValueError, match=r"diverged.*intercept"):
            save(model, path)
    finally:
        intercept[0] = before
    assert not path.exists()


def test_labels_that_cannot_be_stored_are_refused(path):
    model = AdditiveSVC().fit(rows(), classes(rows()).astype(np.float16))
    with pytest.raises(TypeError, match="float16"):
        save(model, path)


def test_parameters_that_cannot_be_stored_are_refused(path):
    model, case = fitted("rbf")
    other = clone(model).set_params(class_weight={(0, 1): 2.0, 0: 1, 1: 1, 2: 1})
    other.fit(case.X, case.y)
    with pytest.raises(TypeError, match=r"\(0, 1\)"):
        save(other, path)
    other = clone(model).fit(case.X, case.y).set_params(n_jobs=5000)
    with pytest.raises(TypeError, match="n_jobs=5000"):
        save(other, path)


def test_sparse_vectors_of_a_function_are_refused(path):
    X, y = CASES["compressed rbf"]().X, CASES["compressed rbf"]().y
    model = KernelSVC(matrix_kernel).fit(X, y)
    with pytest.raises(TypeError, match="support vectors of a kernel function"):
        save(model, path)


def test_every_public_machine_is_saved_and_no_class_derived_from_one(tmp_path):
    class NewSVC(AdditiveSVC):
        pass

    public = [getattr(widemargin, name) for name in widemargin.__all__]
    machines = [c for c in public if isinstance(c, type) and hasattr(c, "fit_path")]
    assert len(machines) == 7
    for machine in machines:
        model = machine(random_state=0).fit(rows(), np.arange(len(rows())) % 3)
        save(model, tmp_path / "model")
        assert type(load(tmp_path / "model")) is machine
    derived = NewSVC(random_state=0).fit(rows(), np.arange(len(rows())) % 3)
    with pytest.raises(TypeError, match="not NewSVC"):
        save(derived, tmp_path / "model")
