"""Data in all its forms: other features than in training, tables, labels, kernel values."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedKFold, cross_val_score

from widemargin import AdditiveSVC, KernelSVC, load, save
from widemargin.errors import UnseenWarning

from .helpers import (
    IRIS,
    SIGN,
    SPECIES,
    TWO,
    read_lines,
    refused,
    run,
    run_json,
    table,
    write,
    write_lines,
)


def decisions(data, *words) -> np.ndarray:
    printed = run("predict", data, "m", "--output", "decision", *words).stdout
    return np.array([line.split("\t") for line in printed.splitlines()[1:]], dtype=float).squeeze()


# ------------------------------------------------------------------ other features


def test_features_that_a_test_lacks_are_zero(iris):
    run("train", iris, "m")
    X = IRIS.copy()
    X[:, 2:] = 0
    write("short.txt", X[:, :2], SPECIES)
    expected = load("m").decision_function(sp.csr_array(X))
    np.testing.assert_allclose(decisions("short.txt"), expected, rtol=1e-8)


@pytest.mark.parametrize("kernel", ["rbf", "chi2"])
def test_features_that_a_model_has_not_seen_are_left_out_with_a_warning(two, kernel):
    run("train", two, "m", "-t", kernel)
    write("wide.txt", np.hstack([TWO, np.ones((100, 3))]), SIGN)
    result = run("predict", "wide.txt", "m")
    (warning,) = [line for line in result.stderr.splitlines() if line.startswith("warning: ")]
    assert "wide.txt: 300 values of features above 4" in warning
    assert result.stdout == run("predict", two, "m").stdout


def test_a_zero_of_an_unseen_feature_needs_no_warning(two):
    run("train", two, "m")
    write_lines("a.txt", "1 1:3 9:0")
    assert "warning" not in run("predict", "a.txt", "m").output


def test_a_test_without_feature_0_counts_as_training_did():
    write("train.txt", IRIS, SPECIES, zero_based=True)
    X = IRIS.copy()
    X[:, 0] = 0
    write_lines(
        "test.txt", *(f"0 {' '.join(f'{j}:{row[j]}' for j in (1, 2, 3))}" for row in X.tolist())
    )
    run("train", "train.txt", "m")
    expected = load("m").decision_function(sp.csr_array(X))
    np.testing.assert_allclose(decisions("test.txt"), expected, rtol=1e-8)


def test_feature_0_is_refused_where_training_counted_from_1(iris):
    run("train", iris, "m")
    write_lines("a.txt", "1 0:3 1:2")
    assert "index 0 occurs" in refused("predict", "a.txt", "m", status=1)


def test_dense_data_must_have_the_same_number_of_features(iris):
    run("train", iris, "m")
    np.savez("a.npz", X=IRIS[:, :3], y=SPECIES)
    assert "3 features" in refused("predict", "a.npz", "m", status=1)


@pytest.mark.parametrize("kernel", ["laplacian", "exp_chi2"])
def test_kernels_that_take_dense_data_only_get_it(iris, kernel):
    run("train", iris, "m", "-t", kernel)
    machine = KernelSVC(kernel.removeprefix("exp_"), random_state=0).fit(IRIS, SPECIES)
    np.testing.assert_allclose(decisions(iris), machine.decision_function(IRIS), rtol=1e-8)
    assert run_json("tune", iris, "-t", kernel, "-c", "1", "-v", 2)["best"]["kernel"] == kernel


def test_sparse_data_too_large_to_fill_in_is_refused():
    write_lines("a.txt", "1 1:1", "-1 2000000000:1")
    for words in (["--scale", "minmax"], ["-t", "laplacian"]):
        message = refused("train", "a.txt", *words, status=1)
        assert "2 x 2000000000 values are too many for a dense" in message


# ------------------------------------------------------------------ tables


@pytest.fixture
def people():
    rng = np.random.default_rng(0)
    age, job = rng.integers(20, 70, 120), rng.choice(["smith", "clerk", "baker"], 120)
    rich = np.where((age > 45) | (job == "clerk"), "rich", "poor")
    return {"age": age, "job": job, "label": rich}


@pytest.mark.parametrize("kernel", ["rbf", "chi2"])
@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_columns_of_a_table_are_found_by_name(people, kernel, ending):
    delimiter = {"csv": ",", "tsv": "\t"}[ending]
    train = table(f"train.{ending}", people, delimiter)
    extra = {"height": people["age"] * 2}
    shuffled = {name: people[name] for name in ("label", "job", "age")} | extra
    other = table("other.csv", shuffled, ";")
    run("train", train, "m", "-t", kernel, "--scale", "minmax")
    np.testing.assert_array_equal(decisions(train), decisions(other))
    assert run_json("evaluate", other, "m")["accuracy"] > 0.9


def test_contributions_have_the_names_of_columns(people):
    run("train", table("a.csv", people), "m", "-t", "chi2")
    printed = run("predict", "a.csv", "m", "--output", "contributions", "--class", "rich").stdout
    assert printed.splitlines()[0].split("\t") == ["age", "job", "intercept"]


def test_unknown_categories_count_as_none_with_a_warning(people):
    run("train", table("a.csv", people), "m")
    table("b.csv", {"age": [50, 30], "job": ["king", "clerk"]})
    result = run("predict", "b.csv", "m", "--output", "decision")
    assert "are ignored: 'job' in 1 row, first 'king'" in result.stderr
    rows = pd.DataFrame({"age": [50, 30], "job": ["king", "clerk"]})
    with pytest.warns(UnseenWarning):
        known = load("m").decision_function(rows)
    assert result.stdout.split() == ["rich", *(f"{value:.9g}" for value in known)]


@pytest.mark.parametrize("words", [(), ("--label", "none")])
def test_tables_without_labels_can_be_predicted_but_not_evaluated(people, words):
    run("train", table("a.csv", people), "m")
    del people["label"]
    table("b.csv", people)
    result = run("predict", "b.csv", "m", *words)
    assert result.stderr == ""
    assert set(result.stdout.split()) == {"rich", "poor"}
    assert set(run_json("predict", "b.csv", "m", "out", *words)) == {"out", "rows", "seconds"}
    assert "b.csv: no labels found" in refused("evaluate", "b.csv", "m", *words, status=1)


def test_an_npz_file_without_labels_has_no_column_to_name():
    np.savez("a.npz", X=np.eye(4))
    assert refused("train", "a.npz", status=1) == "a.npz: no labels found. Save them in it as y."


def test_features_beyond_those_of_a_model_that_counts_from_0():
    write_lines("zero.txt", *["0 0:1 1:2", "1 0:3 1:1"] * 3)
    write_lines("one.txt", *["0 1:1 2:2", "1 1:3 2:1"] * 3)
    run("train", "zero.txt", "m", "-q")
    said = run("evaluate", "one.txt", "m").stderr
    assert said.endswith("which the model has not seen, are left out. The model counts from 0.\n")


def test_training_needs_labels(people):
    table("a.csv", people)
    for command in ("train", "tune", "easy"):
        message = refused(command, "a.csv", "--label", "none", status=1)
        assert "a.csv: no labels found" in message
    del people["label"]
    table("b.csv", people)
    assert "b.csv" in refused("train", "b.csv", status=1)


def test_the_label_s_column_by_name_and_by_position(people):
    people["verdict"] = people.pop("label")
    table("a.csv", people)
    for label in ("verdict", "2", "-1"):
        run("train", "a.csv", "m", "--label", label)
        assert load("m").classes_.tolist() == ["poor", "rich"]
    assert "'nothing'" in refused("train", "a.csv", "--label", "nothing", status=1)


def test_a_format_overrules_detection():
    write_lines("a.txt", "label,x", "1,2", "2,3", "1,1", "2,4")
    run("train", "a.txt", "m", "--format", "csv")
    assert load("m").n_features_in_ == 1
    refused("train", "a.txt", "m", "--format", "svmlight", status=1)
    assert "not one of svmlight, csv" in refused("train", "a.txt", "--format", "word")


# ------------------------------------------------------------------ labels


def test_labels_may_be_text():
    words = np.array(["no", "yes", "1"])[SPECIES]
    write_lines("a.txt", *(f"{w} 1:{x[2]} 2:{x[3]}" for w, x in zip(words, IRIS, strict=True)))
    run("train", "a.txt", "m")
    result = run("predict", "a.txt", "m")
    assert set(result.stdout.split()) == {"no", "yes", "1"}
    assert result.stderr.startswith("Accuracy = 9")
    # Where only the label 1 occurs it looks like a number, but is the same label.
    write_lines("b.txt", *read_lines("a.txt")[100:])
    correct = result.stdout.split()[100:].count("1")
    assert run_json("predict", "b.txt", "m", "out")["accuracy"] == correct / 50 > 0.5
    assert run_json("evaluate", "b.txt", "m")["accuracy"] == correct / 50


def test_labels_of_which_the_model_knows_none_are_no_labels(two):
    run("train", two, "m")
    write("a.txt", TWO, np.zeros(100))
    result = run("predict", "a.txt", "m")
    assert result.stderr == ""
    assert result.stdout == run("predict", two, "m").stdout


def test_text_cannot_be_compared_with_numbers(two):
    run("train", two, "m")
    write_lines("a.txt", *(line.replace("-1 ", "? ") for line in read_lines(two)))
    result = run("predict", "a.txt", "m")
    assert result.stderr == ""
    assert result.stdout == run("predict", two, "m").stdout
    assert "a.txt: the labels are text" in refused("evaluate", "a.txt", "m", status=1)


# ------------------------------------------------------------------ arrays


def test_parts_of_an_npz_file():
    np.savez("a.npz", X_train=TWO[::2], y_train=SIGN[::2], X_test=TWO[1::2], y_test=SIGN[1::2])
    run("train", "a.npz", "m", "--split", "train")
    machine = KernelSVC(random_state=0).fit(TWO[::2], SIGN[::2])
    np.testing.assert_allclose(
        decisions("a.npz", "--split", "test"), machine.decision_function(TWO[1::2]), rtol=1e-8
    )
    found = run_json("evaluate", "a.npz", "m", "--split", "test")
    assert found["accuracy"] == machine.score(TWO[1::2], SIGN[1::2])
    assert "X_other" in refused("train", "a.npz", "--split", "other", status=1)
    assert run("train", "a.npz", "m").stderr == ""
    said = "warning: a.npz: X_train is read. --split test reads X_test.\n"
    assert run("evaluate", "a.npz", "m").stderr == said
    assert said in run("predict", "a.npz", "m").stderr
    assert run("evaluate", "a.npz", "m", "--split", "train").stderr == ""


def test_a_model_from_python_predicts_files(iris):
    save(AdditiveSVC("chi2", random_state=0).fit(IRIS, SPECIES), "m")
    expected = load("m").decision_function(IRIS)
    np.testing.assert_allclose(decisions(iris), expected, rtol=1e-6)
    np.savez("a.npz", X=IRIS)
    np.testing.assert_allclose(decisions("a.npz"), expected, rtol=1e-8)


# ------------------------------------------------------------------ kernel values


def write_kernel(name: str, K: np.ndarray, y, serial) -> None:
    """As LIBSVM has it: 0:serial 1:K(x, x1) ... L:K(x, xL)."""
    rows = zip(y, serial, K, strict=True)
    write_lines(
        name,
        *(f"{label} 0:{s} " + " ".join(f"{j + 1}:{v:.17g}" for j, v in enumerate(row))
          for label, s, row in rows),
    )  # fmt: skip


@pytest.fixture
def kernel_values():
    """Files of kernel values of 50 rows, and of 50 others with them."""
    train, test = TWO[::2], TWO[1::2]
    write_kernel("train.txt", rbf_kernel(train, gamma=0.5), SIGN[::2], range(1, 51))
    write_kernel("test.txt", rbf_kernel(test, train, gamma=0.5), SIGN[1::2], [7] * 50)
    return train, test


@pytest.mark.parametrize("kernel", ["4", "precomputed"])
def test_kernel_values_in_libsvm_s_format(kernel_values, kernel):
    train, test = kernel_values
    machine = KernelSVC("precomputed", tol=1e-6).fit(rbf_kernel(train, gamma=0.5), SIGN[::2])
    assert run_json("train", "train.txt", "m", "-t", kernel, "-e", 1e-6)["features"] == 50
    expected = machine.decision_function(rbf_kernel(test, train, gamma=0.5))
    np.testing.assert_allclose(decisions("test.txt"), expected, rtol=1e-7)
    # The same as with the kernel itself.
    direct = KernelSVC(gamma=0.5, tol=1e-6).fit(train, SIGN[::2]).decision_function(test)
    np.testing.assert_allclose(decisions("test.txt"), direct, atol=1e-4)
    assert run_json("evaluate", "test.txt", "m")["accuracy"] == np.mean(
        np.sign(expected) == SIGN[1::2]
    )


def test_cross_validation_and_tuning_take_rows_and_columns_of_kernel_values(kernel_values):
    train, _ = kernel_values
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    direct = cross_val_score(KernelSVC(gamma=0.5, C=2), train, SIGN[::2], cv=folds)
    found = run_json("train", "train.txt", "-t", "4", "-v", 3, "-c", 2)
    assert found["cross_validation"]["accuracy"] == pytest.approx(direct.mean())
    tuned = run_json("tune", "train.txt", "m", "-t", "precomputed", "-c", "2,20", "-v", 3)
    assert {t["C"]: t["accuracy"] for t in tuned["trials"]}[2] == pytest.approx(direct.mean())
    assert load("m").n_features_in_ == 50
    some = run_json("tune", "train.txt", "-t", "precomputed", "-c", "2", "-v", 3, "--rows", 30)
    assert 0.5 < some["best"]["accuracy"] <= 1


def test_kernel_values_without_serial_numbers(kernel_values):
    train, _ = kernel_values
    train = np.round(16 * train) / 16
    K = train @ train.T  # of few digits, so that text holds it to the last bit
    np.savez("a.npz", X=K, y=SIGN[::2])
    write("a.txt", K, SIGN[::2])
    expected = KernelSVC("precomputed").fit(K, SIGN[::2])
    for name in ("a.npz", "a.txt"):
        run("train", name, "m", "-t", "precomputed")
        np.testing.assert_array_equal(load("m").model_.coef.values, expected.model_.coef.values)


def test_a_kernel_value_of_zero_may_be_left_out_of_the_last_column():
    write_lines("a.txt", "1 0:1 1:1", "-1 0:2 2:1", "1 0:3 1:0.5")
    message = refused("train", "a.txt", "-t", "4", status=1)
    assert "not symmetric" in message  # read as three columns, of which the last is empty


def test_kernel_values_must_be_square():
    write_lines("a.txt", "1 0:1 1:1 2:0", "-1 0:2 1:0 2:1", "1 0:3 1:0 2:0 4:1")
    assert "square" in refused("train", "a.txt", "-t", "4", status=1)


# ------------------------------------------------------------------ memory


def test_max_bytes_of_data_and_models():
    write("iris", TWO, SIGN)
    assert "iris: its rows take" in refused("train", "iris", "m", "--max-bytes", "99", status=1)
    run("train", "iris", "m", "-q", "--max-bytes", "1000000")
    for words in (
        ["info", "m"],
        ["export", "m", "m.txt"],
        ["predict", "iris", "m"],
        ["evaluate", "iris", "m"],
        ["plot", "m"],
    ):
        said = refused(*words, "--max-bytes", "99", status=1)
        assert "--max-bytes 99 is the limit" in said
    run("scale", "iris", "scaled", "-s", "factors")
    assert "--max-bytes 99" in refused(
        "scale", "iris", "-r", "factors", "--max-bytes", 99, status=1
    )
    run("info", "m", "--max-bytes", "0", status=2)
