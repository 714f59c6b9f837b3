"""tune and easy."""

import re
import sys
import time

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.preprocessing import MinMaxScaler

import widemargin.cli
from widemargin import AdditiveSVC, AutoSVC, KernelSVC, load
from widemargin.calibration import machine_within
from widemargin.cli import choosing
from widemargin.cli.options import Output, Source, Wanted
from widemargin.cli.progress import FitBar

from .helpers import (
    IRIS,
    SIGN,
    SPARSE,
    SPECIES,
    TWO,
    files,
    is_picture,
    run,
    run_json,
    table,
    write,
    write_lines,
)


def folds_by_hand(estimator, X, y, folds: int, seed: int = 0) -> float:
    cv = StratifiedKFold(folds, shuffle=True, random_state=seed)
    return cross_val_score(estimator, X, y, cv=cv).mean()


def test_tune_finds_what_an_exhaustive_search_finds(iris):
    # Tight, so that a model along a path is the one that is fitted alone.
    words = ["-t", "chi2,rbf", "-g", "0.01,1", "-c", "0.01,1,100", "-v", 3, "-e", 1e-8]
    found = run_json("tune", iris, "m", *words)
    machines = {
        ("chi2", None): AdditiveSVC("chi2", tol=1e-8, max_iter=10**5, random_state=0),
        ("rbf", 0.01): KernelSVC(gamma=0.01, tol=1e-8, random_state=0),
        ("rbf", 1.0): KernelSVC(gamma=1.0, tol=1e-8, random_state=0),
    }
    accuracy = {
        (kernel, gamma, C): folds_by_hand(machine.set_params(C=C), SPARSE, SPECIES, 3)
        for (kernel, gamma), machine in machines.items()
        for C in (0.01, 1.0, 100.0)
    }
    trials = {(t["kernel"], t.get("gamma"), t["C"]): t["accuracy"] for t in found["trials"]}
    assert trials == pytest.approx(accuracy)
    best = found["best"]
    assert best["accuracy"] == max(trials.values())
    assert best["C"] == min(C for (_, _, C), a in trials.items() if a == best["accuracy"])
    assert found["trials"][0] == best
    assert set(best) - {"gamma"} == {"kernel", "C", "accuracy", "spread", "folds", "unconverged",
                                      "rows", "path_seconds"}  # fmt: skip

    fitted = load(found["model"])
    assert best["C"] == fitted.C
    alone = machines[best["kernel"], best.get("gamma")].set_params(C=best["C"])
    expected = alone.fit(SPARSE, SPECIES).decision_function(SPARSE)
    np.testing.assert_array_equal(fitted.decision_function(SPARSE), expected)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_seed_of_tune_is_that_of_its_folds(iris, seed):
    found = run_json("tune", iris, "-t", "rbf", "-c", "1", "-v", 4, "--seed", seed)
    assert found["best"]["accuracy"] == pytest.approx(
        folds_by_hand(KernelSVC(), SPARSE, SPECIES, 4, seed)
    )


def test_of_equals_tune_takes_the_smaller_c():
    write("a.txt", np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0), np.repeat([1, 2], 20))
    found = run_json("tune", "a.txt", "-c", "100,1,10", "-t", "chi2,rbf", "-v", 2)
    assert all(trial["accuracy"] == 1 for trial in found["trials"])
    assert [t["C"] for t in found["trials"]] == [1, 1, 10, 10, 100, 100]
    assert (found["best"]["C"], found["best"]["kernel"]) == (1, "chi2")


def test_tune_leaves_out_what_fails_and_draws_a_picture():
    write("a.txt", TWO - 5, SIGN)  # exp_chi2 takes no negative values
    result = run("tune", "a.txt", "m", "-t", "exp_chi2,rbf", "-c", "1,10", "--plot", "a.png", "-v",
                 2)  # fmt: skip
    (warning,) = [line for line in result.stderr.splitlines() if line.startswith("warning")]
    assert "kernel exp_chi2 is left out" in warning
    assert "Negative" in warning
    assert "kernel rbf: " in result.stderr
    assert "exp_chi2" not in result.stdout
    assert "best: kernel rbf" in result.stdout
    assert load("m").kernel == "rbf"
    assert is_picture("a.png")


def test_tune_takes_powers_scaling_and_some_of_the_rows(iris):
    found = run_json("tune", iris, "-t", "power_mean", "-p", "-1,-4", "-c", "1", "--rows", 60,
                     "--scale", "minmax", "-v", 2, "--seed", 3)  # fmt: skip
    assert sorted(t["power"] for t in found["trials"]) == [-4, -1]
    scaler, machine = load("iris.safetensors")
    assert isinstance(scaler, MinMaxScaler)
    assert (machine.kernel.p, machine.random_state) == (found["best"]["power"], 3)
    assert machine.fit_record_.n_rows == 150
    assert all(round(30 * t["accuracy"] * 2, 6).is_integer() for t in found["trials"])


def test_quiet_tuning_prints_nothing(iris):
    assert run("tune", iris, "-q", "-t", "chi2", "-c", "1").output == ""
    assert load("iris.safetensors").kernel == "chi2"


def string_labels(y) -> np.ndarray:
    return np.array(["setosa", "versicolor", "virginica"])[y]


def write_for_easy(kind: str) -> tuple[str, str]:
    """Training and test files with the same rows, in one of several forms."""
    order = np.random.default_rng(0).permutation(150)
    X, y, parts = IRIS[order], SPECIES[order], {"train": slice(100), "test": slice(100, 150)}
    for part, rows in parts.items():
        if kind == "dense":
            np.savez(f"{part}.npz", X=X[rows], y=y[rows])
        elif kind == "sparse":
            write(f"{part}.txt", X[rows], y[rows])
        elif kind == "strings":
            lines = (
                f"{label} {' '.join(f'{j + 1}:{v}' for j, v in enumerate(row))}"
                for row, label in zip(X[rows], string_labels(y[rows]), strict=True)
            )
            write_lines(f"{part}.txt", *lines)
        else:
            columns = {f"x{j}": X[rows, j] for j in range(4)}
            table(f"{part}.csv", {**columns, "kind": string_labels(y[rows])})
    suffix = {"dense": "npz", "csv": "csv"}.get(kind, "txt")
    return f"train.{suffix}", f"test.{suffix}"


@pytest.mark.parametrize("kind", ["dense", "sparse", "strings", "csv"])
def test_easy_chooses_trains_on_all_rows_and_reports(kind):
    train, test = write_for_easy(kind)
    words = ["--label", "kind"] if kind == "csv" else []
    found = run_json("easy", train, test, *words)
    name = f"{train.removesuffix('.txt')}.safetensors"
    assert found["model"] == name
    kernels = {(t["kernel"], t.get("gamma")) for t in found["trials"]}
    assert len(kernels) >= 6
    assert {kernel for kernel, _ in kernels} == {"linear", "chi2", "intersection", "rbf"}
    assert found["best"] == found["trials"][0]
    most = max(t["folds"] for t in found["trials"])  # those of fewer folds may be there by chance
    met = [t["accuracy"] for t in found["trials"] if t["folds"] == most]
    assert found["best"]["accuracy"] == max(met) > 0.9
    machine = machine_within(load(name).estimator_)
    assert machine.fit_record_.n_rows == 100
    assert found["best"]["C"] == machine.C
    assert found["test"]["rows"] == 50
    assert found["test"]["accuracy"] > 0.9
    again = run_json("evaluate", test, name, *words)
    assert again["accuracy"] == found["test"]["accuracy"]
    assert again["confusion"] == found["test"]["confusion"]
    labels = [c["label"] for c in again["classes"]]
    assert labels == (
        [0, 1, 2] if kind in ("dense", "sparse") else sorted(string_labels([0, 1, 2]))
    )


def test_easy_without_a_test_and_with_another_model(iris):
    result = run("easy", iris, "--model", "m")
    assert "trained on all 150 rows: m\n" in result.stdout
    assert re.search(r"best of \d\d on 150 rows", result.stdout)
    assert "confusion" not in result.stdout
    assert result.stderr.startswith(
        "reading iris.txt\n"
        "comparing kernels on 150 rows, then training the best on all, for 10 minutes at most\n"
    )
    first = [line for line in result.stderr.splitlines() if "; 3 folds, " in line]
    assert sum("kernel rbf, gamma" in line for line in first) > 5
    assert {8, 13, 18} == {int(n) for n in re.findall(r"; (\d+) folds, ", result.stderr)} - {3}
    assert files() == {"iris.txt", "m"}
    quiet = run("easy", iris, iris, "-q")
    assert quiet.stderr == ""
    assert quiet.stdout.startswith("accuracy")  # what was asked for, and no more


def test_the_progress_of_the_last_fit_of_easy_is_shown(iris, monkeypatch):
    seen = []
    began = FitBar.on_fit_task_begin
    monkeypatch.setattr(
        FitBar,
        "on_fit_task_begin",
        lambda self, machine, task: seen.append(type(machine)) or began(self, machine, task),
    )
    run("easy", iris, "--model", "m")
    assert {*seen} == {type(machine_within(load("m").estimator_))}


def test_easy_says_once_which_classes_are_rare_and_what_a_star_is():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 4)), rng.choice(["a", "b"], 90)
    y[0] = "rare"
    table("rare.csv", {**{f"x{j}": X[:, j] for j in range(4)}, "label": y})
    said = run("easy", "rare.csv").stderr
    assert said.count("Classes with fewer rows") == 1
    assert "n_splits" not in said
    assert said.count("\n* in some folds") == ("%*" in said)


def test_easy_says_a_word_before_it_imports_anything_heavy(iris, monkeypatch):
    monkeypatch.setitem(sys.modules, "widemargin.cli.choosing", None)
    monkeypatch.delattr(widemargin.cli, "choosing", raising=False)
    assert run("easy", iris, status=1).stderr.startswith("reading iris.txt\nerror: ")
    assert run("easy", iris, "-q", status=1).stderr.startswith("error: ")


def test_easy_chooses_a_machine_that_suits_the_data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 2))
    write("xor.txt", X, np.where(X.prod(axis=1) > 0, 1, -1))  # no sum over features can tell
    assert run_json("easy", "xor.txt")["best"]["kernel"] == "rbf"


def test_the_time_of_easy_begins_with_the_command(iris, monkeypatch):
    """Not with the end of imports, for which a busy machine may wait half a minute."""
    given = []

    class Searched(Exception):  # noqa: N818
        pass

    def fit(auto, X, y):
        given.append(auto.max_seconds)
        raise Searched

    monkeypatch.setattr(AutoSVC, "fit", fit)
    began = time.monotonic() - 30
    with pytest.raises(Searched):
        choosing.easy(iris, None, None, Wanted(), Source(), Output(), began)
    assert 540 < given[0] < 571
