"""Numbers and one class on the command line: train, predict, evaluate, info, export."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score

from widemargin import KernelSVC, KernelSVR, OneClassSVM, load

from .helpers import read_lines, refused, run, run_json, table, trained, write

X, Y = (array[:200] for array in load_diabetes(return_X_y=True))
X, Y = 20 * X, Y / 50


@pytest.fixture
def numbers():
    return write("numbers.txt", X, Y)


def test_numbers_that_are_not_whole_are_told_by_the_labels(numbers):
    said = run("train", numbers, "m").stderr
    assert "labels are numbers that are not whole: --task numbers" in said
    assert isinstance(load("m"), KernelSVR)
    whole = write("whole.txt", X, np.round(Y))
    run("train", whole, "m")
    assert isinstance(load("m"), KernelSVC)
    assert isinstance(trained(whole, "--task", "numbers")[0], KernelSVR)


@pytest.mark.parametrize("words", [["-s", 3, "-p", 0.2], ["--task", "numbers", "--epsilon", 0.2]])
def test_options_of_numbers(numbers, words):
    model, _ = trained(numbers, *words, "-c", 3, "-g", 0.1, "-e", 1e-4)
    assert (model.epsilon, model.C, model.gamma, model.tol) == (0.2, 3, 0.1, 1e-4)


def test_predictions_and_their_errors(numbers):
    model, _ = trained(numbers, "-g", 0.1)
    said = run("predict", numbers, "m", "out").stdout
    predicted = np.array(read_lines("out"), dtype=float)
    np.testing.assert_allclose(predicted, model.predict(X), rtol=1e-5)
    squared, correlation = said.splitlines()
    assert squared == f"Mean squared error = {mean_squared_error(Y, predicted):g} (regression)"
    expected = np.corrcoef(Y, predicted)[0, 1] ** 2
    assert float(correlation.split()[4]) == pytest.approx(expected, rel=1e-4)
    found = run_json("evaluate", numbers, "m")
    assert found["RMSE"] == pytest.approx(mean_squared_error(Y, predicted) ** 0.5, rel=1e-5)
    assert found["MAE"] == pytest.approx(mean_absolute_error(Y, predicted), rel=1e-5)
    assert found["R2"] == pytest.approx(r2_score(Y, predicted), rel=1e-5)
    within = np.mean(np.abs(Y - model.predict(X)) <= model.epsilon)
    assert found["share within epsilon"] == pytest.approx(within)
    assert "RMSE" in run("evaluate", numbers, "m").stdout


def test_cross_validation_prints_libsvm_s_lines(numbers):
    squared, correlation = run("train", numbers, "-v", 5, "-s", 3).stdout.splitlines()
    assert squared.startswith("Cross Validation Mean squared error = ")
    assert correlation.startswith("Cross Validation Squared correlation coefficient = ")
    assert 0 < float(squared.split()[-1]) < np.var(Y)


def test_a_table_and_a_scaler(tmp_path):
    columns = {f"x{j}": column for j, column in enumerate(X.T[:4])} | {"price": Y}
    data = table("prices.csv", columns)
    run("train", data, "m", "--label", "price", "--scale", "standard", "-q")
    assert run_json("evaluate", data, "m")["R2"] > 0.3
    assert "KernelSVR" in run("info", "m").stdout
    assert "classes" not in run("info", "m").stdout


def test_one_class(numbers):
    for words in (["-s", 2, "-n", 0.2], ["--task", "one-class", "--nu", 0.2]):
        model, _ = trained(numbers, *words, "-g", 0.1)
        assert isinstance(model, OneClassSVM)
        assert (model.nu, model.gamma) == (0.2, 0.1)
    run("predict", numbers, "m", "out", "-q")
    assert np.mean(np.array(read_lines("out"), dtype=int) < 0) <= 0.2
    run("predict", numbers, "m", "out", "--output", "decision", "-q")
    np.testing.assert_allclose(
        np.array(read_lines("out"), dtype=float), model.decision_function(X), rtol=1e-5, atol=1e-6
    )
    assert "Use predict" in refused("evaluate", numbers, "m")
    signs = write("signs.txt", X, model.predict(X))
    assert run("predict", signs, "m", "out").stdout.startswith("Accuracy = 100% (200/200)")


def test_what_goes_with_classes_only_is_refused(numbers):
    for words, said in (
        (["--probability"], "--probability cannot be combined with --task numbers"),
        (["--weight", "1=2"], "--weight cannot be combined with --task numbers"),
        (["--multi-class", "ovr"], "--multi-class cannot be combined with --task numbers"),
        (["--kernel", "chi2"], "--kernel chi2: --task numbers takes libsvm_linear, rbf"),
        (["--preset", "dcsvm"], "--preset dcsvm: --task numbers takes"),
        (["--nu", "0.5"], "--nu cannot be combined with --task numbers"),
        (["-s", "2"], "-s 2 is --task one-class, not numbers"),
    ):
        assert said in refused("train", numbers, "--task", "numbers", *words)
    assert "--epsilon cannot be" in refused("train", numbers, "--epsilon", 1, "--task", "classes")
    assert "--task many: not one of" in refused("train", numbers, "--task", "many")
    assert "--folds cannot be" in refused("train", numbers, "-s", 2, "-v", 5)
    assert "--C cannot be" in refused("train", numbers, "-s", 2, "-c", 5)


def test_exports_for_libsvm(numbers):
    trained(numbers, "-g", 0.1)
    run("export", "m", "model.libsvm", "--to", "libsvm")
    assert "epsilon_svr" in read_lines("model.libsvm")[0]
    run("predict", numbers, "model.libsvm", "theirs", "-q")
    run("predict", numbers, "m", "ours", "-q")
    theirs, ours = (np.array(read_lines(name), dtype=float) for name in ("theirs", "ours"))
    np.testing.assert_allclose(theirs, ours, rtol=1e-4)
