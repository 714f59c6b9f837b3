"""Probabilities are scikit-learn's, whoever does the cross-validation, and survive a file."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from widemargin import AdditiveSVC, KernelSVC, load, save
from widemargin.calibration import calibrated, out_of_fold, uncalibrated, with_probabilities
from widemargin.persistence.container import read_container, write_container

MACHINES = {
    "additive": lambda: AdditiveSVC("chi2", random_state=0),
    "kernel": lambda: KernelSVC(gamma=0.1, random_state=0),
    "pipeline": lambda: make_pipeline(MinMaxScaler(), KernelSVC(random_state=0)),
}
each_machine = pytest.mark.parametrize("machine", MACHINES)
each_method = pytest.mark.parametrize("method", ["sigmoid", "isotonic"])


def data(name):
    load_rows = {"two": load_breast_cancer, "three": load_iris}[name]
    X, y = load_rows(return_X_y=True)
    return X[::2] / X.max(axis=0), np.array(["b", "a", "c"])[y[::2]]


@each_machine
@each_method
@pytest.mark.parametrize("classes", ["two", "three"])
def test_they_are_those_of_scikit_learn(machine, method, classes):
    X, y = data(classes)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    theirs = CalibratedClassifierCV(MACHINES[machine](), method=method, cv=folds, ensemble=False)
    expected = theirs.fit(X, y).predict_proba(X)
    decisions = out_of_fold(MACHINES[machine](), X, y)
    ours = calibrated(MACHINES[machine]().fit(X, y), decisions, y, method)
    np.testing.assert_array_equal(ours.predict_proba(X), expected)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    if method == "sigmoid":
        found = with_probabilities(MACHINES[machine]().fit(X, y), X, y)
        np.testing.assert_array_equal(found.predict_proba(X), expected)


@each_machine
@each_method
@pytest.mark.parametrize("classes", ["two", "three"])
def test_they_survive_a_file(machine, method, classes, tmp_path):
    X, y = data(classes)
    model = CalibratedClassifierCV(MACHINES[machine](), method=method, ensemble=False).fit(X, y)
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    assert isinstance(again, CalibratedClassifierCV)
    assert (again.method, again.ensemble) == (method, False)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    inner = uncalibrated(again)
    assert type(inner) is type(MACHINES[machine]())
    assert again.n_features_in_ == X.shape[1]
    save(again, tmp_path / "n")
    assert (tmp_path / "n").read_bytes() == (tmp_path / "m").read_bytes()


def test_sparse_rows_and_precomputed_kernels():
    X, y = data("three")
    sparse = with_probabilities(KernelSVC(gamma=0.5).fit(sp.csr_array(X), y), sp.csr_array(X), y)
    given = with_probabilities(KernelSVC("precomputed").fit(X @ X.T, y), X @ X.T, y)
    for model, rows in ((sparse, sp.csr_array(X)), (given, X @ X.T)):
        np.testing.assert_allclose(model.predict_proba(rows).sum(axis=1), 1)


def test_a_class_of_a_single_row_is_refused():
    X, y = data("three")
    y[0] = "d"
    with pytest.raises(ValueError, match="two rows or more of every class"):
        out_of_fold(AdditiveSVC(), X, y)


@pytest.mark.parametrize("model", [AdditiveSVC(), KernelSVC()])
def test_plain_machines_say_how_to_get_them(model):
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match=r"CalibratedClassifierCV\(model, ensemble=False\)"):
        model.predict_proba([[1.0]])


def test_ensembles_and_temperatures_are_not_saved(tmp_path):
    X, y = data("two")
    for changes in ({"ensemble": True}, {"ensemble": False, "method": "temperature"}):
        model = CalibratedClassifierCV(AdditiveSVC(), **changes).fit(X, y)
        with pytest.raises(TypeError, match="ensemble=False with method='sigmoid' or 'isotonic'"):
            save(model, tmp_path / "m")
    assert not list(tmp_path.iterdir())


# ------------------------------------------------------------------ every byte is checked


def unchecked(fields, arrays) -> None:
    """What `write_container` asks before a file gets its name."""


def damaged(path, method, change, *, header=False):
    X, y = data("three")
    machine = AdditiveSVC("chi2", random_state=0)
    save(CalibratedClassifierCV(machine, method=method, ensemble=False).fit(X, y), path)
    fields, arrays = read_container(path)
    content, held = dict(fields.content), dict(arrays._arrays)
    change(content if header else held)
    content.pop("format")
    write_container(path, content, held, unchecked)
    with pytest.raises(ValueError) as error:
        load(path)
    return str(error.value)


def setting(name, index, value):
    def change(arrays):
        arrays[f"calibration/{name}"] = arrays[f"calibration/{name}"].copy()
        arrays[f"calibration/{name}"][index] = value

    return change


@pytest.mark.parametrize(
    ("method", "change", "said"),
    [
        ("sigmoid", setting("slope", 0, np.nan), "'calibration/slope' holds values"),
        ("sigmoid", lambda a: a.pop("calibration/offset"), "'calibration/offset' is missing"),
        ("isotonic", setting("probability", 0, -0.1), "must be from 0 to 1"),
        ("isotonic", setting("probability", 0, 1.0), "not descend"),
        ("isotonic", setting("decision", 0, 1e9), "must ascend"),
        ("isotonic", setting("start", 1, 0), "must ascend"),
        ("isotonic", setting("start", -1, 0), "must ascend from 0"),
    ],
)  # fmt: skip
def test_arrays_of_curves_are_checked(tmp_path, method, change, said):
    assert said in damaged(tmp_path / "m", method, change)


def test_curves_have_the_shape_of_the_classes(tmp_path):
    def shorter(arrays):
        arrays["calibration/slope"] = arrays["calibration/slope"][:2]

    assert "has the shape (2,)" in damaged(tmp_path / "m", "sigmoid", shorter)


def test_fields_of_curves_are_checked(tmp_path):
    def other(header):
        header["calibration"] = {"method": "temperature"}

    assert "one of sigmoid, isotonic" in damaged(tmp_path / "m", "sigmoid", other, header=True)


def test_factors_of_a_scaling_have_no_probabilities(tmp_path):
    save(MinMaxScaler().fit([[0.0], [1.0]]), tmp_path / "m")
    fields, arrays = read_container(tmp_path / "m")
    content = {**fields.content, "calibration": {"method": "sigmoid"}}
    content.pop("format")
    write_container(tmp_path / "m", content, arrays._arrays, unchecked)
    with pytest.raises(ValueError, match="is for classifiers"):
        load(tmp_path / "m")
