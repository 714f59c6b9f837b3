"""predict, evaluate and info with models that LIBSVM and LIBLINEAR have trained."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from .helpers import (
    IRIS,
    SIGN,
    SPECIES,
    TWO,
    read_lines,
    refused,
    run,
    run_json,
    write,
    write_lines,
)

svmutil = pytest.importorskip("libsvm.svmutil")
liblinear = pytest.importorskip("liblinear.liblinearutil")


@pytest.fixture
def model(iris):
    X, y = sp.csr_matrix(IRIS), SPECIES.astype(float)
    svmutil.svm_save_model("iris.model", svmutil.svm_train(y, X, "-q -g 0.1"))
    return svmutil.svm_load_model("iris.model")


def test_predict_says_what_svm_predict_says(iris, model, capsys):
    label, (accuracy, *_), _ = svmutil.svm_predict(SPECIES, sp.csr_matrix(IRIS), model)
    (line,) = capsys.readouterr().out.splitlines()
    assert run("predict", iris, "iris.model", "out").stdout == f"{line}\n"
    assert read_lines("out") == [f"{v:g}" for v in label]
    assert run_json("evaluate", iris, "iris.model")["accuracy"] == accuracy / 100
    header = run("predict", iris, "iris.model", "--output", "decision").stdout.splitlines()[0]
    assert header == "0\t1\t2"


def test_features_that_the_model_has_not_seen_count(model):
    """They make rows of an RBF model more distant."""
    wide = np.hstack([IRIS, IRIS])
    path = write("wide.txt", wide, SPECIES)
    label, _, _ = svmutil.svm_predict([], sp.csr_matrix(wide), model, "-q")
    result = run("predict", path, "iris.model", "out")
    assert result.stderr == ""
    assert read_lines("out") == [f"{v:g}" for v in label]


def test_tables_and_arrays_are_taken_by_position(model):
    np.savez("iris.npz", X=IRIS, y=SPECIES)
    found = run_json("evaluate", "iris.npz", "iris.model")
    _, (accuracy, *_), _ = svmutil.svm_predict(SPECIES, sp.csr_matrix(IRIS), model, "-q")
    assert found["accuracy"] == accuracy / 100


def test_liblinear_models(two):
    X, y = sp.csr_matrix(TWO), SIGN.astype(float)
    theirs = liblinear.train(y, X, "-q -s 0 -B 1")
    liblinear.save_model("two.model", theirs)
    label, _, _ = liblinear.predict([], X, theirs, "-q")
    run("predict", two, "two.model", "out")
    assert read_lines("out") == [f"{v:g}" for v in label]
    facts = run("info", "two.model").stdout
    assert "LIBLINEAR L2R_LR" in facts
    assert run_json("info", "two.model") == {
        "kind": "LIBLINEAR L2R_LR",
        "labels": theirs.get_labels(),
        "n_features": 4,
        "probabilities": True,
    }


def test_kernel_values(capsys):
    """Of a precomputed kernel, with the serial number that LIBSVM wants and without."""
    K = TWO @ TWO[::2].T
    rows = [{0: 1 + k // 2, **dict(enumerate(own, 1))} for k, own in enumerate(K.tolist())]
    problem = svmutil.svm_problem(SIGN[::2].tolist(), rows[::2], isKernel=True)
    theirs = svmutil.svm_train(problem, svmutil.svm_parameter("-q -t 4"))
    svmutil.svm_save_model("two.model", theirs)
    label, _, _ = svmutil.svm_predict(SIGN.tolist(), rows, theirs)
    (line,) = capsys.readouterr().out.splitlines()
    bare = [{j: v for j, v in row.items() if j} for row in rows]
    write_lines("rows.txt", *map(_line, SIGN, rows))
    write_lines("bare.txt", *map(_line, SIGN, bare))
    for name in ("rows.txt", "bare.txt"):
        assert run("predict", name, "two.model", "out").stdout == f"{line}\n"
        assert read_lines("out") == [f"{v:g}" for v in label]
    assert run_json("info", "two.model")["kind"] == "LIBSVM c_svc, precomputed"


def _line(label, row):
    return " ".join([f"{label:g}", *(f"{j}:{value!r}" for j, value in row.items())])


def test_info(model):
    found = run_json("info", "iris.model")
    assert found["kind"] == "LIBSVM c_svc, rbf"
    assert found["support_vectors"] == model.get_nr_sv()
    printed = run("info", "iris.model").stdout
    assert "labels           0, 1, 2" in printed


def test_what_they_cannot_do_is_refused(iris, model):
    assert "this one is LibsvmSVC" in refused("predict", iris, "iris.model", "--output",
                                              "contributions")  # fmt: skip
    assert "LibsvmSVC" in refused("plot", "iris.model")
    assert "LibsvmSVC" in refused("export", "iris.model", "x.onnx", status=1)
    Path("cut.model").write_text(Path("iris.model").read_text()[:-40])
    assert "support vector" in refused("predict", iris, "cut.model", status=1)
