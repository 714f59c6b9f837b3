"""stress/ finds nothing in a few hundred cases, and finds what is broken on purpose."""

import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import reference
import stress.__main__ as program
from hypothesis import strategies as st
from kernel.helpers import kernel_matrix
from stress import checks, hunt, report, truth
from stress.data import LAYOUTS, Data
from stress.hunt import Hunt
from stress.problems import Case

from widemargin import AdditiveSVC, KernelSVC

ROOT = Path(__file__).parents[1]
MINUTES = os.environ.get("WIDEMARGIN_STRESS_MINUTES")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")]


@pytest.mark.parametrize(
    "names",
    [
        pytest.param([name for name in checks.CHECKS if name != "memory"], id="all"),
        pytest.param(["memory"], id="memory", marks=pytest.mark.memory),
    ],
)
def test_no_promise_is_broken(names):
    """Always the same cases; for longer, and at random, with WIDEMARGIN_STRESS_MINUTES."""
    how = ["--minutes", MINUTES, "--seed", str(os.getpid())] if MINUTES else ["--cases", "40"]
    command = [sys.executable, "-m", "stress", "--jobs", "2", *how, *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| all |" in done.stdout


# ------------------------------------------------------------------ that it can fail


def only(check, monkeypatch, function=None, **case):
    """A check has one kind of case only: a few rows, and what is said here."""
    rows = st.integers(2, 40).map(lambda n: Data(rows=n, noise=1.0))
    parameters = {"kernel": "rbf", "max_iter": 1, "random_state": 0, "C": 1000.0, **case}
    cases = st.builds(Case, st.just(KernelSVC), st.just(parameters), rows)
    function = function or checks.CHECKS[check].function
    monkeypatch.setitem(checks.CHECKS, check, checks.Check(function, cases))


def hunted(check, tmp_path):
    (failure,) = Hunt(check, 1, tmp_path / "case").run(20, 60.0, set()).failures
    return failure


FOUND = {  # by long runs, and mended since
    "norms hid a gap of variables up to 1e12": (
        "certificate",
        Data(rows=36, classes=4, seed=117, zeros=0.5, scale=100.0, signed=False, weights="extreme"),
        {"kernel": "rbf", "gamma": "auto"},
    ),
    "squared norms near the largest number of single precision": (
        "convergence",
        Data(rows=3, seed=6, scale=1e13, uneven=1e6),
        {"kernel": "sigmoid", "gamma": "auto"},
    ),
    "rows in single precision decided by three times the error that is typical of it": (
        "onnx",
        Data(rows=10, scale=100.0, signed=False),
        {"kernel": "rbf", "gamma": "auto"},
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("what", FOUND)
def test_what_was_found_once_is_right(what):
    check, data, parameters = FOUND[what]
    X, y, w = data.arrays()
    model = KernelSVC(
        fit_intercept=False, max_iter=100, multi_class="ovr", random_state=0, **parameters
    ).fit(X, y, w)
    checks.CHECKS[check].function(model, X, y, w)


def test_a_gap_that_is_claimed_too_small_is_found_and_reproduced(monkeypatch, tmp_path):
    true = KernelSVC.duality_gap_
    wrong = property(lambda model: true.fget(model) / 3)
    monkeypatch.setattr(KernelSVC, "duality_gap_", wrong)
    only("certificate", monkeypatch, fit_intercept=True)
    failure = hunted("certificate", tmp_path)
    assert "gap claimed too small" in failure.kind
    with pytest.raises(AssertionError, match="gap claimed too small"):
        run(failure.lines)
    monkeypatch.setattr(KernelSVC, "duality_gap_", true)
    run(failure.lines)


def run(lines):
    """A reproduction, as if it were pasted."""
    assert len(lines) == 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec("\n".join(lines), {})


def test_an_input_that_is_written_to_is_found_and_reproduced(monkeypatch, tmp_path):
    true = KernelSVC.fit

    def fit(model, X, y, sample_weight=None):
        true(model, X, y, sample_weight)
        if len(y) > 5:
            X[0, 0] += 1
        return model

    monkeypatch.setattr(KernelSVC, "fit", fit)
    only("inputs", monkeypatch)
    failure = hunted("inputs", tmp_path)
    assert "an input was written to" in failure.kind
    assert "rows=6" in failure.lines[0]  # the smallest
    with pytest.raises(AssertionError, match="an input was written to"):
        run(failure.lines)
    monkeypatch.setattr(KernelSVC, "fit", true)
    run(failure.lines)


def test_an_exception_of_numpy_is_a_failure_and_a_refusal_is_none(monkeypatch, tmp_path):
    only("inputs", monkeypatch, C=-1.0)
    count = Hunt("inputs", 1, tmp_path / "case").run(20, 60.0, set())
    assert (count.refused, count.failed) == (count.cases, 0)
    monkeypatch.setattr(KernelSVC, "_check_params", lambda model: np.linalg.inv(np.zeros((2, 2))))
    failure = hunted("inputs", tmp_path)
    assert "fit: KernelSVC rbf: LinAlgError" in failure.kind
    with pytest.raises(np.linalg.LinAlgError):
        run(failure.lines)


def test_a_crash_is_found_and_shrunk(monkeypatch, capsys):
    def crash(model, X, y, w=None):
        if len(y) > 7:
            os.kill(os.getpid(), signal.SIGTERM)

    only("inputs", monkeypatch, crash)
    totals = program.run(program.for_minutes(["inputs"], 0.05, 1, 0), ["inputs"], 1)
    failure, *_ = totals.by_check["inputs"].failures  # the first is shrunk
    assert failure.kind == "inputs: process lost"
    assert f"exit {-signal.SIGTERM}" in failure.said
    assert "Data(noise=1.0)" in failure.lines[0]  # 8 rows are the default
    assert "\n".join(failure.lines) in capsys.readouterr().out


def test_ctrl_c_leaves_what_was_counted():
    def interrupted():
        yield from program.for_cases(["gamma"], 3, 0)
        raise KeyboardInterrupt

    totals = program.run(interrupted(), ["gamma"], 1)
    assert totals.by_check["gamma"].cases == 3


def test_a_hang_is_found(monkeypatch):
    monkeypatch.setattr(program, "CASE_SECONDS", 1.0)
    only("inputs", monkeypatch, lambda model, X, y, w=None: time.sleep(100))
    totals = program.run(program.for_minutes(["inputs"], 0.02, 1, 0), ["inputs"], 1)
    assert [f.said for f in totals.by_check["inputs"].failures] == ["hung"]


# ------------------------------------------------------------------ the truth


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("multi_class", ["ovr", "crammer_singer"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_truth_is_that_of_the_references_formulas(loss, multi_class):
    X, y, w = Data(rows=30, classes=3, weights="copies").arrays()
    settings = {"loss": loss, "multi_class": multi_class, "tol": 1e-5, "warm_start": True}
    model = AdditiveSVC("chi2", random_state=0, **settings).fit(X, y, w)
    found = truth.truths(truth.problem_of(model, X, y, w))
    K, c, squared = reference.gram(model, X), model.C_ * w, loss == "squared_hinge"
    if multi_class == "ovr":
        primal = reference.primal(K, model._dual.coef, reference.signs(y), c, squared)
        dual = reference.dual(K, model._dual.coef, c, squared)
    else:
        primal = reference.crammer_singer_primal(K, model._dual.coef, y, c, squared)
        dual = reference.crammer_singer_dual(K, model._dual.coef, y, c, squared)
    assert sum(t.primal for t in found) == pytest.approx(np.sum(primal), rel=1e-9)
    assert sum(t.gap for t in found) == pytest.approx(np.sum(primal - dual), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian", "chi2", "sigmoid"])
def test_kernel_values_are_scikit_learns(kernel):
    X = Data(rows=20, signed=False).arrays()[0]
    model = KernelSVC(kernel, coef0=0.5, degree=2)
    model.gamma_ = 0.7
    expected = kernel_matrix(kernel, X, gamma=0.7, coef0=0.5, degree=2)
    found = truth.kernel_matrix(model, X).astype(np.float64)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


# ------------------------------------------------------------------ the rest of the program


@pytest.mark.parametrize("layout", LAYOUTS)
def test_data_are_the_same_in_every_layout(layout):
    X, y, w = Data(rows=9, zeros=0.5, layout=layout, weights="zeros").arrays()
    plain = Data(rows=9, zeros=0.5, weights="zeros").arrays()
    np.testing.assert_array_equal(truth.dense(X), plain[0])
    np.testing.assert_array_equal(y, plain[1])
    np.testing.assert_array_equal(w, plain[2])
    assert set(y[w > 0]) == {0, 1}


def test_counts_are_written_where_a_document_keeps_them(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    report.write(page, report.Totals({"order": hunt.Count(1200, 7, 0)}), "an hour")
    text = page.read_text()
    assert "| order | 1,200 | 7 | 0 |" in text
    assert "an hour" in text
    assert "old" not in text
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    page.write_text("nothing")
    with pytest.raises(ValueError, match="has no place for the counts"):
        report.write(page, report.Totals({}), "")


# ------------------------------------------------------------------ commands


def test_a_command_that_is_killed_loses_nothing(tmp_path):
    from stress.commands import Runs

    runs = Runs(tmp_path, 0, ["predict"])
    assert runs.disturbed("predict", signal.SIGKILL) == ""
    runs.expected["predict"] = b"something else"
    assert "written something else" in runs.disturbed("predict", signal.SIGKILL)
