"""The comparison with scikit-learn's machines: fair, true, and a page that a browser can show."""

import signal
from dataclasses import replace

import pytest
from benchmarks import comparison
from benchmarks.comparison import DATA, GRIDS, MACHINES, Fit, Outcome, average_ranks, compare, main
from benchmarks.comparison_page import comparison_page, write_comparison
from browser import assert_readable
from html_outline import Outline
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC


def outcome(data, machine, accuracy=0.9, **changes) -> Outcome:
    parameter = "C" if "SVC" in machine else "learning_rate"
    fit = Fit(parameter, 0.1, accuracy, 0.25, 0.001, 100, 0.005 if "SVC" in machine else None)
    return Outcome(data, machine, (replace(fit, **changes), fit))


def pretended(data=DATA) -> list[Outcome]:
    return [outcome(d, m, 0.9 + 0.01 * k) for d in data for k, m in enumerate(MACHINES)]


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(comparison, "DATA", {"iris": load_iris})


def test_every_machine_is_tuned_on_training_rows_and_scored_on_the_others(small):
    heard = []
    found = {o.machine: o for o in compare(1, heard.append)}
    assert heard == [f"iris, {machine}" for machine in MACHINES]
    X, y = load_iris(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)
    grid = {"svc__C": list(GRIDS["C"])}
    peer = GridSearchCV(make_pipeline(StandardScaler(), SVC()), grid, cv=3).fit(X, y)
    (fit,) = found["SVC"].fits
    assert (fit.parameter, fit.value) == ("C", peer.best_params_["svc__C"])
    assert fit.accuracy == peer.score(X_test, y_test)
    assert fit.rows == len(y_test)
    assert {o.fits[0].parameter for o in found.values()} == {"C", "learning_rate"}
    assert found["KernelSVC"].worst_gap <= 1e-3
    assert found["LinearSVC"].worst_gap > 0
    assert found["HistGradientBoosting"].worst_gap is None


def test_figures_are_of_all_splits():
    found = outcome("iris", "SVC", 0.8, fit_seconds=0.75, gap=0.01)
    assert found.accuracy == pytest.approx(80)
    assert replace(found, fits=(*found.fits, *outcome("iris", "SVC", 1.0).fits)).spread > 9
    assert found.median("fit_seconds") == 0.5
    assert found.worst_gap == 0.01
    assert found.microseconds_per_row == pytest.approx(10)


def test_the_end_of_a_grid_is_marked():
    assert outcome("iris", "SVC").tuned == "C 0.1"
    assert outcome("iris", "SVC", value=1000.0).tuned.endswith("*")
    assert outcome("iris", "SVC", value=0.001).tuned.endswith("*")


def test_ranks_are_of_data_that_all_machines_have_ended():
    unfinished = [outcome("wine", "AdditiveSVC", 1.0)]
    ranks = average_ranks(pretended(["iris"]) + unfinished)
    assert list(ranks.values()) == [5, 4, 3, 2, 1]
    assert average_ranks(unfinished) == {}


def test_the_page_says_what_was_measured():
    text = comparison_page(pretended())
    found = Outline(text)
    assert found.headings == ["widemargin: a quick comparison", "Overview", *DATA,
                              "How it was measured", "Environment"]  # fmt: skip
    assert "Test rows wrong on wine: AdditiveSVC 10.00 %, KernelSVC 9.00 %" in text
    assert "<td>94.00</td>" in text
    assert "<td>5.0e-03</td>" in text
    assert "Interrupted" not in text
    assert "scikit-learn" in text


def test_a_part_is_a_page_too():
    text = comparison_page(pretended()[:2])
    Outline(text)
    assert "Interrupted: 2 of 20" in text
    assert "average rank" not in text


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_a_browser_on_a_phone(tmp_path, scheme):
    page = write_comparison(pretended(), tmp_path)
    seen = assert_readable(page, width=360, scheme=scheme, folder=tmp_path)
    assert "How it was measured" in seen.text


def test_a_table_and_a_page_of_all_machines(small, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(comparison, "GRIDS", {"C": (1.0, 10.0), "learning_rate": (0.1, 0.2)})
    assert main(tmp_path / "new", 2) == 0
    printed = capsys.readouterr()
    _, _, *rows, page = printed.out.splitlines()
    assert [row.split(" | ")[:2] for row in rows] == [["| iris", name] for name in MACHINES]
    assert page == str(tmp_path / "new" / "index.html")
    assert "iris, 2 splits" in (tmp_path / "new" / "index.html").read_text(encoding="utf-8")
    assert len(printed.err.splitlines()) == 1 + len(MACHINES)


@pytest.mark.parametrize(("machine", "n_done"), [("AdditiveSVC", 0), ("LinearSVC", 2)])
def test_ctrl_c_keeps_what_is_done(small, machine, n_done, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(comparison, "GRIDS", {"C": (1.0, 10.0)})
    monkeypatch.setitem(MACHINES, machine, lambda: signal.raise_signal(signal.SIGINT))
    assert main(tmp_path, 1) == 130
    assert f"interrupted after {n_done} of {len(MACHINES)} machines." in capsys.readouterr().err
    assert (tmp_path / "index.html").exists() == (n_done > 0)
