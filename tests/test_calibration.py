"""Probabilities of classes: pairs of them, coupled; on the machine's labels; survive a file."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize_scalar
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV, _sigmoid_calibration
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

from widemargin import AdditiveSVC, CalibratedSVC, KernelSVC, load, save
from widemargin.calibration import uncalibrated, with_probabilities
from widemargin.persistence.container import read_container, write_container

MACHINES = {
    "additive": lambda: AdditiveSVC("chi2", random_state=0),
    "crammer_singer": lambda: AdditiveSVC(multi_class="crammer_singer", random_state=0),
    "pairs": lambda: KernelSVC(gamma=0.1),
    "each": lambda: KernelSVC(gamma=0.1, multi_class="ovr"),
    "pipeline": lambda: make_pipeline(MinMaxScaler(), KernelSVC(random_state=0)),
}
each_machine = pytest.mark.parametrize("machine", MACHINES)


def data(name):
    load_rows = {"two": load_breast_cancer, "three": load_iris}[name]
    X, y = load_rows(return_X_y=True)
    return X[::2] / X.max(axis=0), np.array(["b", "a", "c"])[y[::2]]


@each_machine
def test_two_classes_have_scikit_learns_sigmoid(machine):
    X, y = data("two")
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    theirs = CalibratedClassifierCV(MACHINES[machine](), cv=folds, ensemble=False).fit(X, y)
    ours = CalibratedSVC(MACHINES[machine]()).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)


@each_machine
def test_several_classes_are_pairs_coupled_by_the_textbook(machine):
    X, y = data("three")
    model = CalibratedSVC(MACHINES[machine]()).fit(X, y)
    classes, folds = model.classes_, StratifiedKFold(5, shuffle=True, random_state=0)
    left_out = np.empty((len(X), 3))
    for train, test in folds.split(X, y):
        left_out[test] = pair_values(MACHINES[machine]().fit(X[train], y[train]), X[test])
    sigmoids = []
    for k, (i, j) in enumerate(combinations(range(3), 2)):
        own = (y == classes[i]) | (y == classes[j])
        sigmoids.append(
            _sigmoid_calibration(left_out[own, k], (y[own] == classes[i]) * 1, np.ones(own.sum()))
        )

    def coupled(values, exponent):
        r = np.full((len(values), 3, 3), np.nan)
        for k, (i, j) in enumerate(combinations(range(3), 2)):
            r[:, i, j] = expit(-(values[:, k] * sigmoids[k][0] + sigmoids[k][1]))
            r[:, j, i] = 1 - r[:, i, j]
        p = (1 / (np.nansum(1 / r, axis=2) - 1)) ** exponent
        return p / p.sum(axis=1, keepdims=True)

    def loss(exponent):
        right = (y[:, None] == classes) * 1.0
        doubt = 1 / (len(y) + 2)
        target = right * (1 - doubt) + (1 - right) * doubt / 2
        return -(target * np.log(coupled(left_out, exponent))).sum()

    best = minimize_scalar(loss, bounds=(0.1, 20), method="bounded").x
    assert model.exponent_ == pytest.approx(best, rel=1e-3)
    expected = coupled(pair_values(model.estimator_, X), model.exponent_)
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-5)


def pair_values(model, X):
    machine = model if not hasattr(model, "steps") else model[-1]
    if machine.coding_.votes:
        return model.set_params(**shaped(model, "ovo")).decision_function(X)
    scores = model.decision_function(X)
    return np.stack([scores[:, i] - scores[:, j] for i, j in combinations(range(3), 2)], axis=1)


def shaped(model, shape):
    return {f"{'kernelsvc__' if hasattr(model, 'steps') else ''}decision_function_shape": shape}


SETS = {  # and what share of LIBSVM's loss ours is at most, with some room
    "iris": (lambda: load_iris(return_X_y=True), 0.9),
    "digits": (lambda: [part[:600] for part in load_digits(return_X_y=True)], 0.6),
    "noise": (
        lambda: make_classification(600, 12, n_informative=8, n_classes=5, random_state=2),
        1,
    ),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*probability.*:FutureWarning")
@pytest.mark.parametrize("name", SETS)
def test_the_log_loss_is_not_above_libsvms(name):
    make, most = SETS[name]
    (X, y), losses = make(), []
    X = X / X.std(axis=0).clip(0.1)
    for seed in range(4):
        rows = np.random.default_rng(seed).permutation(len(y))
        train, test = rows[::2], rows[1::2]
        for model in (CalibratedSVC(KernelSVC()), SVC(probability=True, random_state=0)):
            probability = model.fit(X[train], y[train]).predict_proba(X[test])
            losses.append(log_loss(y[test], probability))
    assert sum(losses[::2]) <= (most + 0.01) * sum(losses[1::2])


@each_machine
@pytest.mark.parametrize("classes", ["two", "three"])
def test_labels_are_the_machines(machine, classes):
    X, y = data(classes)
    model = CalibratedSVC(MACHINES[machine]()).fit(X, y)
    alone = MACHINES[machine]().fit(X, y)
    np.testing.assert_array_equal(model.predict(X), alone.predict(X))
    np.testing.assert_array_equal(model.decision_function(X), alone.decision_function(X))
    found = with_probabilities(alone, X, y)
    np.testing.assert_array_equal(found.predict_proba(X), model.predict_proba(X))


@each_machine
@pytest.mark.parametrize("classes", ["two", "three"])
def test_they_survive_a_file(machine, classes, tmp_path):
    X, y = data(classes)
    model = CalibratedSVC(MACHINES[machine]()).fit(X, y)
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    assert isinstance(again, CalibratedSVC)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert type(uncalibrated(again)) is type(MACHINES[machine]())
    assert again.n_features_in_ == X.shape[1]
    save(again, tmp_path / "n")
    assert (tmp_path / "n").read_bytes() == (tmp_path / "m").read_bytes()


@each_machine
@pytest.mark.parametrize("classes", ["two", "three"])
def test_onnx_has_the_same(machine, classes, tmp_path):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    from widemargin.export import export_onnx

    X, y = data(classes)
    X = X.astype(np.float32)
    model = CalibratedSVC(MACHINES[machine]()).fit(X, y)
    export_onnx(model, tmp_path / "m.onnx")
    session = runtime.InferenceSession(tmp_path / "m.onnx")
    names = ["label", "probabilities"]
    label, found = session.run(names, {"X": X})
    np.testing.assert_allclose(found, model.predict_proba(X), atol=1e-5)
    np.testing.assert_array_equal(label, model.predict(X))


def test_sparse_rows_precomputed_kernels_and_objects():
    X, y = data("three")
    sparse = CalibratedSVC(KernelSVC(gamma=0.5)).fit(sp.csr_array(X), y)
    given = CalibratedSVC(KernelSVC("precomputed")).fit(X @ X.T, y)
    for model, rows in ((sparse, sp.csr_array(X)), (given, X @ X.T)):
        np.testing.assert_allclose(model.predict_proba(rows).sum(axis=1), 1)
    words = ["aa", "ab", "b", "bb", "abc", "bbb"]

    def shared(a, b):
        return np.array([[len(set(p) & set(q)) for q in b] for p in a], dtype=float)

    model = CalibratedSVC(KernelSVC(shared)).fit(words, [0, 0, 1, 1, 0, 1])
    assert model.predict_proba(words).shape == (6, 2)


def test_parts_of_the_rows_have_the_same(monkeypatch):
    X, y = data("three")
    model = CalibratedSVC(KernelSVC()).fit(X, y)
    whole = model.predict_proba(X)
    monkeypatch.setattr("widemargin.calibration._AT_ONCE", 21)
    np.testing.assert_allclose(model.predict_proba(X), whole, atol=1e-6)
    again = CalibratedSVC(KernelSVC()).fit(X, y)
    np.testing.assert_allclose(again.predict_proba(X), whole, atol=1e-4)


def test_rows_of_weight_zero_do_not_count():
    X, y = data("three")
    weight = np.where(np.arange(len(y)) % 3, 2.0, 0.0)
    weight[y == "c"] = 0
    model = CalibratedSVC(make_pipeline(MinMaxScaler(), KernelSVC())).fit(X, y, weight)
    assert list(model.classes_) == ["a", "b"]
    assert model.predict_proba(X).shape == (len(y), 2)


def test_class_weights_move_labels_and_not_probabilities():
    shape = {"n_redundant": 0, "n_clusters_per_class": 1, "class_sep": 0.5, "weights": [0.9]}
    X, y = make_classification(600, 2, flip_y=0.1, random_state=0, **shape)
    model = CalibratedSVC(KernelSVC(C=0.1, class_weight="balanced")).fit(X, y)
    probability = model.predict_proba(X)
    assert np.sum(model.predict(X)) > 1.3 * np.sum(probability.argmax(axis=1))
    assert probability[:, 1].mean() == pytest.approx(np.mean(y), abs=0.05)


def test_a_class_of_a_single_row_is_refused():
    X, y = data("three")
    y[0] = "d"
    with pytest.raises(ValueError, match="two rows or more of every class"):
        CalibratedSVC(AdditiveSVC()).fit(X, y)


@pytest.mark.parametrize("model", [AdditiveSVC(), KernelSVC()])
def test_plain_machines_say_how_to_get_them(model):
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match=r"widemargin\.CalibratedSVC\(model\)"):
        model.predict_proba([[1.0]])


def test_scikit_learns_calibration_works_and_is_not_saved(tmp_path):
    X, y = data("two")
    model = CalibratedClassifierCV(AdditiveSVC()).fit(X, y)
    assert model.predict_proba(X).shape == (len(y), 2)
    with pytest.raises(TypeError, match="fit a CalibratedSVC instead"):
        save(model, tmp_path / "m")
    assert not list(tmp_path.iterdir())


# ------------------------------------------------------------------ every byte is checked


def unchecked(fields, arrays) -> None:
    """What `write_container` asks before a file gets its name."""


def damaged(path, change, *, header=False):
    X, y = data("three")
    save(CalibratedSVC(AdditiveSVC("chi2", random_state=0)).fit(X, y), path)
    fields, arrays = read_container(path)
    content, held = dict(fields.content), dict(arrays._arrays)
    change(content if header else held)
    content.pop("format")
    write_container(path, content, held, unchecked)
    with pytest.raises(ValueError) as error:
        load(path)
    return str(error.value)


def not_a_number(arrays):
    arrays["calibration/slope"] = np.full(3, np.nan)


def shorter(arrays):
    arrays["calibration/slope"] = arrays["calibration/slope"][:2]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (not_a_number, "'calibration/slope' holds values"),
        (lambda a: a.pop("calibration/intercept"), "'calibration/intercept' is missing"),
        (shorter, "has the shape (2,)"),
    ],
)
def test_arrays_are_checked(tmp_path, change, said):
    assert said in damaged(tmp_path / "m", change)


@pytest.mark.parametrize("exponent", [0.0, 21, "large", None])
def test_the_exponent_is_checked(tmp_path, exponent):
    def other(header):
        header["calibration"] = {"exponent": exponent}

    assert "exponent" in damaged(tmp_path / "m", other, header=True)


def test_factors_of_a_scaling_have_no_probabilities(tmp_path):
    save(MinMaxScaler().fit([[0.0], [1.0]]), tmp_path / "m")
    fields, arrays = read_container(tmp_path / "m")
    content = {**fields.content, "calibration": {"exponent": 1.0}}
    content.pop("format")
    write_container(tmp_path / "m", content, arrays._arrays, unchecked)
    with pytest.raises(ValueError, match="is for classifiers"):
        load(tmp_path / "m")
