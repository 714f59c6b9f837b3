"""Numbers and one class on the command line: train, predict, evaluate, info, export."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score
from sklearn.svm import LinearSVR

from widemargin import AdditiveSVR, KernelSVC, KernelSVR, NuSVC, NuSVR, OneClassSVM, load

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


def test_nu_instead_of_c_and_epsilon(numbers):
    for words in (["-s", 4], ["--task", "numbers", "--nu", 0.5]):
        model, _ = trained(numbers, *words, "-g", 0.1, "-c", 3)
        assert isinstance(model, NuSVR)
        assert (model.nu, model.C) == (0.5, 3)
    found = run_json("evaluate", numbers, "m")
    within = np.mean(np.abs(Y - model.predict(X)) <= model.epsilon_[0])
    assert found["share within epsilon"] == pytest.approx(within)
    run("export", "m", "model.libsvm")
    assert read_lines("model.libsvm")[0] == "svm_type nu_svr"
    classes = write("classes.txt", X, (Y > 2).astype(int))
    for words in (["-s", 1, "-n", 0.3], ["--nu", 0.3]):
        model, _ = trained(classes, *words, "-g", 0.1)
        assert isinstance(model, NuSVC)
        assert (model.nu, model.gamma) == (0.3, 0.1)
    run("export", "m", "model.libsvm")
    assert read_lines("model.libsvm")[0] == "svm_type nu_svc"
    run("predict", classes, "model.libsvm", "theirs", "-q")
    np.testing.assert_array_equal(np.array(read_lines("theirs"), dtype=int), model.predict(X))
    assert "infeasible" in run("train", classes, "--nu", 1, status=1).stderr
    assert "--C cannot be combined with --nu" in refused("train", classes, "--nu", 0.3, "-c", 1)
    assert "-s 5: write one of LIBSVM's" in refused("train", classes, "-s", 5)


# ------------------------------------------------------------------ additive machines


def test_additive_machines_of_numbers(numbers):
    model, _ = trained(
        numbers, "--task", "numbers", "-t", "intersection", "--loss", "epsilon_insensitive",
        "--epsilon", 0.2, "-c", 2,
    )  # fmt: skip
    assert isinstance(model, AdditiveSVR)
    assert (model.loss, model.epsilon, model.C) == ("epsilon_insensitive", 0.2, 2)
    run("predict", numbers, "m", "out", "-q")
    predicted = np.array(read_lines("out"), dtype=float)
    np.testing.assert_allclose(predicted, model.predict(X), rtol=1e-5)
    found = run_json("evaluate", numbers, "m")
    assert found["R2"] == pytest.approx(r2_score(Y, predicted), rel=1e-5)
    run("predict", numbers, "m", "parts", "--output", "contributions", "-q")
    names, *rows = (line.split("\t") for line in read_lines("parts"))
    assert names == [*(f"feature {j}" for j in range(1, 11)), "intercept"]
    np.testing.assert_allclose(np.array(rows, dtype=float).sum(axis=1), predicted, rtol=1e-4)
    for words in (["info", "m"], ["plot", "m", "p.png"], ["export", "m", "m.json"]):
        assert run(*words).stdout
    squared, _ = run("train", numbers, "-t", "chi2", "-v", 5).stdout.splitlines()
    assert 0 < float(squared.split()[-1]) < np.var(Y)
    trained(numbers, "-s", 2)
    assert "needs an additive model" in refused(
        "predict", numbers, "m", "--output", "contributions"
    )


def test_a_store_of_numbers(numbers):
    run("store", numbers, "blocks", "-q")
    said = run("train", "blocks", "m", "-t", "intersection").stderr
    assert "--task numbers" in said
    assert isinstance(load("m"), AdditiveSVR)
    stored, plain = (run_json("evaluate", data, "m")["R2"] for data in ("blocks", numbers))
    assert stored == pytest.approx(plain, rel=1e-5)


@pytest.mark.parametrize(("solver", "loss"), [(11, "squared_"), (12, "squared_"), (13, "")])
def test_linear_regression_as_liblinear_has_it(solver, loss):
    X = np.random.default_rng(0).integers(0, 30, (300, 4)) / 30  # as fine as the bins
    y = X @ [1.0, -2.0, 0.5, 3.0] + np.random.default_rng(1).normal(size=300) / 10
    data = write("linear.txt", X, y)
    model, _ = trained(data, "-s", solver, "-c", 0.5, "-p", 0.05, "-e", 1e-6)
    theirs = LinearSVR(
        C=0.5, epsilon=0.05, loss=f"{loss}epsilon_insensitive", fit_intercept=False, tol=1e-8,
        max_iter=1_000_000,
    ).fit(X, y)  # fmt: skip
    np.testing.assert_allclose(model.predict(X), theirs.predict(X), atol=2e-4)
    assert "is --kernel linear, not rbf" in refused("train", data, "-s", solver, "-t", "rbf")


# ------------------------------------------------------------------ cross-validation


def test_tuning_of_numbers(numbers):
    said = run("tune", numbers, "m", "-t", "rbf,linear", "-c", "0.1,1", "-v", 3, "--epsilon", 0.2,
               "--task", "numbers")  # fmt: skip
    assert "r2" in said.stdout
    assert load("m").epsilon == 0.2
    found = run_json("tune", numbers, "m", "-t", "rbf,linear", "-c", "0.1,1", "-v", 3)
    scores = [trial["r2"] for trial in found["trials"]]
    assert len(scores) == 4
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > 0.3
    assert "one-class" in refused("tune", numbers, "m", "--task", "one-class")
    assert "--scoring f1: of numbers" in refused("tune", numbers, "m", "--scoring", "f1")
    assert "--probability" in refused("tune", numbers, "m", "--probability")
    by_error = run("train", numbers, "-v", 3, "--scoring", "neg_mean_absolute_error").stdout
    assert float(by_error.splitlines()[0].split()[-1]) < 0


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
    classes = write("classes.txt", X, Y > 2)
    for words, said in (
        (["--probability"], "--probability cannot be combined with --task numbers"),
        (["--weight", "1=2"], "--weight cannot be combined with --task numbers"),
        (["--multi-class", "ovr"], "--multi-class cannot be combined with --task numbers"),
        (["--preset", "dcsvm"], "--preset dcsvm cannot be combined with --task numbers"),
        (["--kernel", "chi2", "--loss", "hinge"], "loss"),
        (["--kernel", "chi2", "--multi-class", "ovr"], "--multi-class cannot be combined"),
        (["-v", 3, "--scoring", "roc_auc"], "--scoring roc_auc: of numbers, use r2"),
        (["--nu", "0.5", "--epsilon", 1], "--epsilon cannot be combined with --nu"),
        (["--nu", "0.5", "-s", 3], "--nu cannot be combined with -s 3"),
        (["--nu", "0.5", "-t", "chi2"], "--nu cannot be combined with --kernel chi2"),
        (["-s", "2"], "-s 2 is --task one-class, not numbers"),
    ):
        assert said in refused("train", numbers, "--task", "numbers", *words)
    assert "--epsilon cannot be" in refused("train", numbers, "--epsilon", 1, "--task", "classes")
    assert "--task many: not one of" in refused("train", numbers, "--task", "many")
    one_class = refused("train", numbers, "--task", "one-class", "--kernel", "chi2")
    assert "--kernel chi2: --task one-class takes libsvm_linear, rbf" in one_class
    assert "--scoring r2: not one of accuracy" in refused(
        "train", classes, "-v", 3, "--scoring", "r2"
    )
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
