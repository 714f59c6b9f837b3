"""The examples of LIBSVM's README, line by line, with another name of the program.

LIBSVM itself, by its Python package, says what must come out where the problem is the same. Ours
differs in what -e means and in its gamma; a row or two may fall otherwise.
"""

import shlex
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from widemargin import load

from .helpers import IRIS, SPECIES, read_lines, run, write

svmutil = pytest.importorskip("libsvm.svmutil")

LABELS = np.array([1, -2, 4])[SPECIES]  # which the example of weights names
HALF = np.arange(len(LABELS)) % 2 == 0
COMMANDS = {"svm-scale": "scale", "svm-train": "train", "svm-predict": "predict"}
NEAR = 2  # rows of 75


@pytest.fixture(autouse=True)
def data(folder):
    """The files that the README speaks of; those for training are scaled already."""
    write("train", IRIS[HALF], LABELS[HALF])
    write("test", IRIS[~HALF], LABELS[~HALF])
    run("scale", "-s", "factors", "train", "data_file")
    run("scale", "-r", "factors", "test", "test_file")


def shell(line: str):
    """What the line prints, with our name for its program."""
    command, _, out = line.partition(" > ")
    program, *words = shlex.split(command)
    result = run(COMMANDS[program], *words)
    if out:
        Path(out).write_text(result.stdout)
    return result


def rows(name):
    y, X = svmutil.svm_read_problem(name, return_scipy=True)
    return np.array(y), sp.csr_matrix(X)


def theirs(words: str):
    y, X = rows("data_file")
    return svmutil.svm_train(y, X, f"-q {words}")


def accuracy_of(line: str) -> tuple[int, int]:
    """From svm-predict's line, which must be as it prints it."""
    percent, counts = line.split(" (")[:2]
    n, m = map(int, counts.rstrip(")").split("/"))
    assert line == f"{percent} ({n}/{m}) (classification)"
    assert percent == f"Accuracy = {100 * n / m:g}%"
    return n, m


def assert_same_accuracy(model, capsys, words=""):
    y, X = rows("test_file")
    capsys.readouterr()
    svmutil.svm_predict(y, X, model, words)
    expected, m = accuracy_of(capsys.readouterr().out.splitlines()[-1])
    found, same = accuracy_of(run("predict", "test_file", "data_file.model", "out").stdout.strip())
    assert m == same == 75
    assert abs(found - expected) <= NEAR


def test_scaling():
    shell("svm-scale -l -1 -u 1 -s range train > train.scale")
    shell("svm-scale -r range test > test.scale")
    low, high = IRIS[HALF].min(axis=0), IRIS[HALF].max(axis=0)
    lines = [f"{j + 1} {low[j]:.17g} {high[j]:.17g}" for j in range(4)]
    assert Path("range").read_text() == "\n".join(["x", "-1 1", *lines, ""])
    _, X = rows("test.scale")
    expected = -1 + 2 * (IRIS[~HALF] - low) / (high - low)
    np.testing.assert_allclose(X.toarray(), expected, atol=1e-12)


def test_training(capsys):
    shell("svm-train -s 0 -c 5 -t 2 -g 0.5 -e 0.1 data_file")
    assert (load("data_file.safetensors").C, load("data_file.safetensors").gamma) == (5, 0.5)
    assert_same_accuracy(theirs("-s 0 -c 5 -t 2 -g 0.5 -e 0.1"), capsys)


def test_regression():
    shell("svm-train -s 3 -p 0.1 -t 0 data_file")
    model = load("data_file.safetensors")
    assert (type(model).__name__, model.epsilon, model.kernel) == ("KernelSVR", 0.1, "linear")


def test_weights(capsys):
    shell("svm-train -s 0 -c 10 -g 0.25 -w1 1 -w-2 5 -w4 2 data_file")
    assert load("data_file.safetensors").class_weight == {1: 1.0, -2: 5.0, 4: 2.0}
    assert_same_accuracy(theirs("-s 0 -c 10 -g 0.25 -w1 1 -w-2 5 -w4 2"), capsys)


def test_cross_validation(capfd):
    found = shell("svm-train -s 0 -c 100 -g 0.1 -v 5 data_file").stdout.splitlines()[0]
    theirs("-s 0 -c 100 -g 0.1 -v 5")
    expected = capfd.readouterr().out.splitlines()[-1]
    words = "Cross Validation Accuracy = "
    assert found.startswith(words)
    assert expected.startswith(words)
    ours, libsvm = (float(line.removeprefix(words).rstrip("%")) for line in (found, expected))
    assert abs(ours - libsvm) <= 100 * 3 / 75  # other folds


def test_probabilities(capsys):
    shell("svm-train -s 0 -b 1 data_file")
    printed = shell("svm-predict -b 1 test_file data_file.model output_file").stdout
    found, m = accuracy_of(printed.strip())
    header, *lines = read_lines("output_file")
    assert header == "labels -2 1 4"
    table = np.array([line.split() for line in lines], dtype=float)
    assert table.shape == (m, 4)
    np.testing.assert_allclose(table[:, 1:].sum(axis=1), 1, atol=1e-5)
    plain = shell("svm-predict test_file data_file.model plain_file").stdout
    assert accuracy_of(plain.strip()) == (found, m)  # labels are the machine's, unlike LIBSVM's
    y, X = rows("test_file")
    model = theirs("-s 0 -b 1 -g 1")  # our gamma, 1 / (features * variance), is near that
    _, _, p = svmutil.svm_predict(y, X, model, "-q -b 1")
    order = np.argsort(model.get_labels())
    assert np.corrcoef(np.array(p)[:, order].ravel(), table[:, 1:].ravel())[0, 1] > 0.95
    assert abs(found - np.sum(table[:, 0] == y)) == 0
