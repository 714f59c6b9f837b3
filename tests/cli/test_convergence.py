"""Fits that did not converge are told of, not averaged in silence."""

from widemargin import load, selection
from widemargin.cli.trials import reservation
from widemargin.selection import Candidate, Trial

from .helpers import IRIS, SPECIES, run, run_json, write

SHORT = ["--max-iter", "1", "-e", "1e-6"]


def test_cross_validation_says_how_many_folds_did_not_converge(iris):
    result = run("train", iris, "-t", "chi2", "-v", 3, *SHORT)
    assert "unconverged  3" in result.stdout
    (line,) = result.stderr.splitlines()
    assert line.startswith("warning: 3 of 3 folds did not converge")
    assert "--max-iter" in line
    found = run_json("train", iris, "-t", "chi2", "-v", 3, *SHORT)
    assert found["cross_validation"]["unconverged"] == 3
    assert run("train", iris, "-t", "chi2", "-v", 3).stderr == ""


def test_tune_marks_what_did_not_converge_and_says_what_to_do(iris):
    result = run("tune", iris, "-t", "chi2", "-c", "1,10", "-v", 3, *SHORT)
    header, *rows = result.stdout.splitlines()[:3]
    assert header.split()[-2:] == ["not", "converged"]
    assert all("*" in row and row.endswith("3 of 3") for row in rows)
    assert "\n* in some folds the fit did not converge" in result.stdout
    assert "Increase --max-iter" in result.stdout
    (said,) = [line for line in result.stderr.splitlines() if "nothing that converged" in line]
    assert said.startswith("warning: kernel chi2, C")
    best = run_json("tune", iris, "-t", "chi2", "-c", "1,10", "-v", 3, *SHORT)["best"]
    assert best["unconverged"] == 3


def test_a_table_of_converged_trials_has_no_marks(iris):
    result = run("tune", iris, "-t", "chi2", "-c", "1,10", "-v", 3)
    assert "*" not in result.stdout
    assert "converged" not in result.output


def test_tune_passes_over_what_did_not_converge_and_says_so(monkeypatch):
    """A large C that needs many sweeps, and a small one that is nearly as good."""
    measured = selection._scores

    def a_little_better_unconverged(*args):
        (small, _), (_, converged) = found = measured(*args)
        return found if converged else [found[0], (small + 0.001, converged)]

    monkeypatch.setattr(selection, "_scores", a_little_better_unconverged)
    write("a.txt", IRIS, SPECIES)
    words = ["-t", "chi2", "-c", "0.3,1000000", "-v", 3, "-e", "1e-3", "--max-iter", 60]
    found = run_json("tune", "a.txt", "m", *words)
    by_C = {t["C"]: t for t in found["trials"]}
    assert by_C[1e6]["unconverged"] == 3
    assert by_C[0.3]["unconverged"] == 0
    assert by_C[1e6]["accuracy"] > by_C[0.3]["accuracy"]
    assert found["best"]["C"] == load("m").C == 0.3
    (said,) = [ln for ln in run("tune", "a.txt", "m", *words).stderr.splitlines() if "before" in ln]
    assert "is chosen before kernel chi2, C 1e+06" in said


def test_better_scores_on_other_rows_are_no_doubt():
    """`easy` compares the best again on more rows, where scores may be lower."""
    few, many = (
        Trial(Candidate({"kernel": "rbf"}, None), 1.0, score, 0.0, 1.0, folds=3, rows=rows)
        for score, rows in ((0.95, 5000), (0.94, 20_000))
    )
    assert reservation([many, few]) is None
