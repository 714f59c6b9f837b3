"""The runner of experiments: what its files may say, what it runs and keeps."""

import json
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict, replace
from math import inf

import numpy as np
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from benchmarks import data, prepared
from benchmarks.competitors.optional import MissingPackageError
from benchmarks.experiments import plan, process
from benchmarks.experiments.__main__ import _wanted, main, summary
from benchmarks.experiments.cell import load, run
from benchmarks.experiments.environment import describe
from benchmarks.experiments.measures import MEASURES
from benchmarks.experiments.plan import Cell, Experiment, Method
from benchmarks.experiments.runner import EXTENSIONS, Runner, line
from benchmarks.experiments.schedule import Schedule
from benchmarks.experiments.store import SCHEMA, Results
from benchmarks.methods import METHODS, make

DIGITS = Cell("here", "digits", "ICD", "ICD", {"C": 0.001}, "test", rows=300, test_rows=100)


def experiment(**changes) -> Experiment:
    method = Method("LIBLINEAR", "LIBLINEAR", tune={"C": [0.1, 1.0, 10.0]})
    return replace(Experiment("here", "A title", "A paper", ["digits"], [method]), **changes)


class Pretended:
    """Fits that cost nothing: the accuracy is a function of the parameters."""

    def __init__(self, accuracy=lambda parameters: 0.5, status="done"):
        self.accuracy, self.status, self.cells = accuracy, status, []

    def __call__(self, cell, limit):
        self.cells.append(cell)
        if self.status != "done":
            return {"status": self.status, "message": "pretended"}
        figures = dict.fromkeys(("fit_seconds", "fit_megabytes", "predict_seconds"), 1.0)
        return {"status": "done", "message": "", "accuracy": self.accuracy(cell.parameters),
                **figures, "details": {"gap": 0.25}}  # fmt: skip


def ran(tmp_path, fit, wanted=None, jobs=1, budget=inf, **options):
    """The rows of an experiment whose fits are pretended."""
    results = Results(tmp_path / "here.parquet")
    runner = Runner(wanted or experiment(), results, lambda text: None, fit=fit, **options)
    schedule = Schedule([runner], jobs, budget)
    schedule.run()
    results.collect()
    return schedule.rows(runner)


# ------------------------------------------------------------------ the files


@pytest.mark.parametrize("name", plan.names())
def test_every_file_names_what_exists(name):
    wanted = plan.read(name)
    assert set(wanted.measure) <= set(MEASURES)
    for source in wanted.data:
        assert callable(prepared.reader(source))
    for method in wanted.methods:
        assert method.use in METHODS
        first = {key: values[0] for key, values in method.tune.items()}
        for settings in method.settings():
            try:
                make(method.use, settings | first, seed=3, threads=1)
            except MissingPackageError as error:
                pytest.skip(str(error))


def test_the_papers_tables_are_whole():
    """25 settings of four methods, less those that the paper did not finish."""
    assert len(plan.read("dcsvm_table7").published) == 100
    assert len(plan.read("dcsvm_table9").published) == 73
    assert len(plan.read("dcsvm_table10").published) == 75
    table = plan.read("dcsvm_table7")
    found = table.printed("LIBSVM", "ijcnn1_dense", {"C": 64.0, "gamma": 2.0})
    assert found == {"accuracy": 98.3, "seconds": 59.8}
    assert table.printed("LIBSVM", "ijcnn1_dense", {"C": 63.0, "gamma": 2.0}) == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rows = 3\nrow = 4", "unknown key 'row'"),
        ("limit = 0", "limit = 0: use seconds above 0"),
        ("[[method]]\nname = 'ICD'\nC = 1", "unknown key 'C'"),
        ("", "no .*method"),
        ("[[method]]\nuse = 'ICD'", "without a name"),
        (
            "[[method]]\nname = 'a'\nvary = {C = [1]}\ntune = {C = [1, 2]}",
            "both varies and tunes C",
        ),
        ("[[method]]\nname = 'a'\ntune = {C = [1]}", "tune.C takes two positive numbers"),
        ("published = [{method = 'b', accuracy = 1}]\n[[method]]\nname = 'a'", "no fit for .*'b'"),
        ("reasons = [{method = 'b', why = 'x'}]\n[[method]]\nname = 'a'", "no fit for the reason"),
    ],
)
def test_slips_in_a_file_are_named(tmp_path, text, said):
    if text and "method" not in text:
        text += "\n[[method]]\nname = 'ICD'"
    head = "title = 't'\nsource = 's'\ndata = ['digits']\n"
    (tmp_path / "slip.toml").write_text(head + text)
    with pytest.raises(ValueError, match=f"slip.toml: .*{said}"):
        plan.read("slip", tmp_path)


def test_an_experiment_that_is_not_there_and_the_list(capsys):
    assert main(["no_such_table"]) == 2
    assert "There is no experiment 'no_such_table'; there are" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["icd_table5", "--limit", "0"])
    assert "--limit 0: use a number of seconds above 0." in capsys.readouterr().err
    for wrong in (["--budget", "0"], ["--jobs", "0"]):
        with pytest.raises(SystemExit):
            main(["icd_table5", *wrong])
        assert f"{wrong[0]} 0: use " in capsys.readouterr().err
    assert main([]) == 0
    assert "icd_table5 " in capsys.readouterr().out


def test_quick_keeps_the_methods_and_cuts_the_rest():
    whole = experiment(seeds=[0, 1], repeats=3, limit=900.0)
    varied = replace(whole.methods[0], vary={"tol": [0.1, 0.2, 0.3, 0.4]})
    quick = plan.quickened(replace(whole, methods=[varied]))
    assert (quick.rows, quick.test_rows, quick.seeds, quick.repeats) == (1000, 1000, [0], 1)
    assert quick.methods[0].vary == {"tol": [0.1, 0.4]}
    assert quick.limit == plan.QUICK_LIMIT
    assert plan.quickened(replace(whole, rows=50)).rows == 50


def test_a_fit_is_named_by_all_that_decides_it():
    assert DIGITS.key == Cell(**asdict(DIGITS)).key
    changes = [{"seed": 1}, {"rows": 301}, {"parameters": {"C": 0.002}}, {"stage": "tune"},
               {"scale": [0, 1]}, {"threads": 2}, {"repeat": 1}]  # fmt: skip
    assert len({replace(DIGITS, **change).key for change in changes} | {DIGITS.key}) == 8


# ------------------------------------------------------------------ tuning


def near(best):
    return lambda parameters: 1 - abs(np.log10(parameters["C"] / best)) / 100


def test_the_best_value_within_a_grid_is_taken(tmp_path):
    fit = Pretended(near(1.0))
    rows = ran(tmp_path, fit)
    assert [cell.stage for cell in fit.cells] == ["tune"] * 3 + ["test"]
    assert rows[0]["parameters"] == {"C": 1.0}
    assert rows[0]["details"] == {"gap": 0.25}


@pytest.mark.parametrize("best", [1e-3, 1e4])
def test_a_grid_goes_on_until_its_best_value_is_not_its_last(tmp_path, best):
    fit = Pretended(near(best))
    rows = ran(tmp_path, fit)
    assert rows[0]["parameters"]["C"] == pytest.approx(best)
    tried = [cell.parameters["C"] for cell in fit.cells if cell.stage == "tune"]
    assert min(tried) < 0.9 * best < 1.1 * best < max(tried)
    assert len(tried) == len(set(tried))  # none twice
    assert "at_end_of_grid" not in rows[0]["details"]


def test_a_grid_does_not_go_on_for_ever_and_says_so(tmp_path):
    fit = Pretended(lambda parameters: 1 - 1 / parameters["C"])
    rows = ran(tmp_path, fit)
    assert rows[0]["details"]["at_end_of_grid"] == ["C"]
    assert len(fit.cells) == 3 + EXTENSIONS + 1


def test_quick_runs_do_not_extend(tmp_path):
    fit = Pretended(near(1e4))
    rows = ran(tmp_path, fit, extend=False)
    assert rows[0]["parameters"] == {"C": 10.0}
    assert rows[0]["details"]["at_end_of_grid"] == ["C"]


def test_of_equals_the_smaller_is_taken_and_failures_are_never_best(tmp_path):
    flat = replace(experiment().methods[0], tune={"C": [10.0, 0.1, 1.0]})
    rows = ran(tmp_path, Pretended(), experiment(methods=[flat]), extend=False)
    assert rows[0]["parameters"] == {"C": 0.1}

    class Partly(Pretended):
        def __call__(self, cell, limit):
            if cell.parameters["C"] != 1.0:
                return {"status": "timeout", "message": ""}
            return super().__call__(cell, limit)

    (tmp_path / "b").mkdir()
    rows = ran(tmp_path / "b", Partly(lambda parameters: 0.01))
    assert rows[0]["parameters"] == {"C": 1.0}


def test_rows_that_tune_are_training_rows():
    wanted = replace(DIGITS, stage="tune", rows=None, test_rows=None)
    X, _, held, _ = load(wanted)
    train, _, test, _ = data.digits()
    known = {row.tobytes() for row in train}
    assert len(X) + len(held) == len(train)
    assert all(row.tobytes() in known for row in held)
    assert not {row.tobytes() for row in X} & {row.tobytes() for row in held}
    assert len(load(replace(wanted, stage="test"))[2]) == len(test)


def test_scaling_is_that_of_the_training_rows():
    X, _, X_test, _ = load(replace(DIGITS, scale=[0, 1]))
    assert (X.min(), X.max()) == (0, 1)
    assert X_test.min() >= 0
    assert X_test.max() <= 1


# ------------------------------------------------------------------ what is kept


def test_a_second_run_fits_nothing_and_finds_the_same(tmp_path):
    first = ran(tmp_path, Pretended(near(1.0)), experiment(seeds=[0, 1], repeats=2))
    again = Pretended()
    second = ran(tmp_path, again, experiment(seeds=[0, 1], repeats=2))
    assert again.cells == []
    assert len(first) == 4
    assert second == first


def test_a_run_that_ended_in_the_middle_goes_on_there(tmp_path):
    class Interrupted(Pretended):
        def __call__(self, cell, limit):
            if len(self.cells) == 2:
                raise KeyboardInterrupt
            return super().__call__(cell, limit)

    with pytest.raises(KeyboardInterrupt):
        ran(tmp_path, Interrupted(near(1.0)))
    fit = Pretended(near(1.0))
    ran(tmp_path, fit)
    assert [cell.parameters["C"] for cell in fit.cells] == [10.0, 1.0]


@pytest.mark.parametrize(("status", "again"), [("failed", 1), ("missing", 1), ("timeout", 0)])
def test_what_failed_is_tried_again_and_what_ran_out_of_time_is_not(tmp_path, status, again):
    plain = experiment(methods=[Method("ICD", "ICD")], limit=10.0)
    assert ran(tmp_path, Pretended(status=status), plain)[0]["status"] == status
    fit = Pretended()
    ran(tmp_path, fit, plain)
    assert len(fit.cells) == again
    longer = Pretended()
    ran(tmp_path, longer, replace(plain, limit=20.0))
    assert len(longer.cells) == 1 - again  # a longer time is another chance


def test_results_are_parquet_with_their_origin_and_the_papers_figures(tmp_path):
    wanted = experiment(published=[{"method": "LIBLINEAR", "accuracy": 91.0}])
    rows = ran(tmp_path, Pretended(near(1.0)), wanted)
    table = pq.read_table(tmp_path / "here.parquet")
    types = {f.name: str(f.type) for f in table.schema}
    assert types == {k: v.replace("float64", "double") for k, v in SCHEMA.items()}
    kept = {row["key"]: row for row in table.to_pylist()}[rows[0]["key"]]
    assert json.loads(kept["published"]) == {"accuracy": 91.0}
    assert json.loads(kept["packages"])["numpy"] == np.__version__
    for name in ("machine", "cores", "python", "commit", "when"):
        assert kept[name], name
    assert kept["seed"] == 0
    assert "| digits | LIBLINEAR | C=1.0 | 100.00 | 91.0 | 1.00 | 1 |" in summary(rows)


def test_a_file_with_other_columns_is_refused(tmp_path):
    import pyarrow as pa

    pq.write_table(pa.table({"key": ["a"]}), tmp_path / "here.parquet")
    with pytest.raises(ValueError, match="has other columns: move it away"):
        Results(tmp_path / "here.parquet")


def test_the_commit_is_that_of_the_tree():
    assert len(describe()["commit"].rstrip("+")) == 40


def test_fits_are_lines_of_a_journal_until_the_run_ends(tmp_path):
    results = Results(tmp_path / "here.parquet")
    results.keep(DIGITS, {"status": "done", "accuracy": 0.5, "limit": 1.0})
    assert not results.path.exists()
    with open(results.journal, "a") as file:
        file.write('{"key": "half a l')  # of a machine that was switched off
    again = Results(tmp_path / "here.parquet")
    assert again.find(DIGITS, 1.0)["accuracy"] == 0.5
    other = replace(DIGITS, seed=1)
    again.keep(other, {"status": "done", "accuracy": 0.75, "limit": 1.0})
    assert again.collect() == results.path
    assert not results.journal.exists()
    assert len(Results(tmp_path / "here.parquet").rows) == 2


def test_without_pyarrow_the_journal_is_what_is_kept(tmp_path, monkeypatch):
    results = Results(tmp_path / "here.parquet")
    results.keep(DIGITS, {"status": "done", "limit": 1.0})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert results.collect() == results.journal
    assert Results(tmp_path / "here.parquet").find(DIGITS, 1.0)["status"] == "done"
    monkeypatch.undo()
    assert Results(tmp_path / "here.parquet").collect() == results.path


# ------------------------------------------------------------------ side by side


class Together(Pretended):
    """Fits that wait until as many as are expected run at once."""

    def __init__(self, number):
        super().__init__(near(1.0))
        self.barrier, self.now, self.most = threading.Barrier(number), 0, 0

    def __call__(self, cell, limit):
        self.now += 1
        self.most = max(self.most, self.now)
        with suppress(threading.BrokenBarrierError):
            self.barrier.wait(1)
        self.now -= 1
        return super().__call__(cell, limit)


def test_fits_run_side_by_side_with_the_same_results(tmp_path):
    (tmp_path / "one").mkdir()
    wanted = experiment(seeds=[0, 1, 2])
    fit = Together(3)
    many = ran(tmp_path, fit, wanted, jobs=3)
    assert (fit.most, len(fit.cells)) == (3, 6)
    one = ran(tmp_path / "one", Pretended(near(1.0)), wanted)
    for a, b in zip(many, one, strict=True):
        assert (a["key"], a["accuracy"]) == (b["key"], b["accuracy"])


def test_a_fit_waits_for_as_many_threads_as_it_has(tmp_path):
    fit = Together(2)
    ran(tmp_path, fit, experiment(seeds=[0, 1, 2, 3], threads=2), jobs=3)
    assert fit.most == 1
    fit = Together(2)
    (tmp_path / "wide").mkdir()
    ran(tmp_path / "wide", fit, experiment(threads=8), jobs=4)  # wider than all: alone
    assert (fit.most, len(fit.cells)) == (1, 4)


def test_first_lines_come_first(tmp_path):
    wanted = experiment(methods=[Method("ICD", "ICD"), *experiment().methods], seeds=[0, 1])
    fit = Pretended(lambda parameters: 0.5)
    ran(tmp_path, fit, wanted)
    assert [c.method for c in fit.cells[:2]] == ["ICD", "ICD"]


def test_when_the_budget_is_spent_fits_are_killed_forgotten_and_run_again(tmp_path, monkeypatch):
    ended = threading.Event()

    class Slow(Pretended):
        def __call__(self, cell, limit):
            if self.cells:
                assert ended.wait(10)
                return {"status": "killed", "message": "SIGKILL"}
            return super().__call__(cell, limit)

    results = Results(tmp_path / "here.parquet")
    wanted = experiment(methods=[Method("ICD", "ICD")], seeds=[0, 1, 2])
    runner = Runner(wanted, results, lambda text: None, fit=Slow())
    started = time.monotonic()
    schedule = Schedule([runner], 1, 0.3, stop=ended.set)
    assert not schedule.run()
    assert time.monotonic() - started < 5
    assert schedule.open_lines() == 1
    assert [row["seed"] for row in results.rows.values()] == [0]
    fit = Pretended()
    assert len(ran(tmp_path, fit, wanted)) == 3
    assert [cell.seed for cell in fit.cells] == [1, 2]


def test_a_budget_ends_real_processes(tmp_path):
    slow = Method("PWLSGD", "PWLSGD", {"passes": 1_000_000})
    wanted = experiment(methods=[slow], seeds=[0, 1])
    runner = Runner(wanted, Results(tmp_path / "here.parquet"), lambda text: None)
    started = time.monotonic()
    assert not Schedule([runner], 2, 0.5).run()
    assert time.monotonic() - started < 20
    assert not process._running
    assert not runner.results.rows


def test_grids_of_which_no_fit_ended_are_not_extended(tmp_path):
    fit = Pretended(status="timeout")
    assert ran(tmp_path, fit)[0]["status"] == "timeout"
    assert len(fit.cells) == 3 + 1


def test_names_come_in_their_order_and_all_is_the_rest():
    first = plan.names()[-1]
    assert _wanted([first, "all"]) == [first, *plan.names()[:-1]]
    assert _wanted(["icd_C", "icd_C"]) == ["icd_C"]


def test_a_prepared_set_is_the_set(tmp_path, monkeypatch):
    path = prepared.keep("digits", tmp_path)
    monkeypatch.setenv("WIDEMARGIN_PREPARED", str(tmp_path))
    with monkeypatch.context() as without:
        without.setattr(data.digits, "__code__", (lambda: None).__code__)
        found = prepared.load("digits")
    for a, b in zip(found, data.digits(), strict=True):
        np.testing.assert_array_equal(a, b)
    monkeypatch.setattr(prepared, "made_by", lambda name: "another")
    with pytest.raises(ValueError, match=r"digits\.npz is from other code"):
        prepared.load("digits")
    assert prepared.keep("digits", tmp_path) == path


def test_a_prepared_set_may_be_sparse(tmp_path, monkeypatch):
    X = sp.csr_matrix([[0, 2.5], [1.5, 0]])
    monkeypatch.setattr(data, "digits", lambda: (X, [1, 2], X[:1], [1]))
    monkeypatch.setattr(prepared, "made_by", lambda name: "this")
    prepared.keep("digits", tmp_path)
    monkeypatch.setenv("WIDEMARGIN_PREPARED", str(tmp_path))
    found = prepared.load("digits")
    np.testing.assert_array_equal(found[0].toarray(), X.toarray())
    np.testing.assert_array_equal(found[2].toarray(), [[0, 2.5]])


# ------------------------------------------------------------------ processes


@pytest.mark.memory
def test_a_fit_is_measured_in_a_process_of_its_own():
    found = process.fit(replace(DIGITS, measure=["gap", "iterations"]), limit=60.0)
    assert found["status"] == "done", found["message"]
    assert found["accuracy"] > 0.8
    assert found["fit_seconds"] > 0
    assert found["peak_megabytes"] > 50
    assert found["fit_megabytes"] < found["peak_megabytes"]
    assert found["details"]["gap"] < 1e-3
    assert found["train_rows"] == 300


def test_where_memory_cannot_be_measured_the_rest_is(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.experiments.cell.forget_peak", lambda: False)
    found = run(replace(DIGITS, parameters={"C": 0.001}), limit=60.0)
    assert found["fit_megabytes"] is None
    assert found["accuracy"] > 0.8
    kept = Results(tmp_path / "here.parquet")
    assert "MB" not in line(kept.keep(DIGITS, found | {"status": "done", "limit": 1.0}))
    kept.collect()


def test_a_fit_that_takes_too_long_is_killed():
    slow = replace(DIGITS, method="PWLSGD", use="PWLSGD", parameters={"passes": 10_000})
    found = process.fit(replace(slow, rows=None), limit=0.2)
    assert found == {"status": "timeout", "message": "killed after 0.2 s"}


def test_a_fit_that_fails_says_why():
    found = process.fit(replace(DIGITS, parameters={"C": -1.0}), limit=60.0)
    assert found["status"] == "failed"
    assert "C" in found["message"]


@pytest.mark.parametrize(
    ("code", "error", "status"),
    [
        (-9, "", "killed"),
        (1, "FileNotFoundError: [Errno 2] No such file: 'mnist.npz'", "missing"),
        (1, "", "failed"),
    ],
)
def test_ends_of_processes_are_told_apart(code, error, status):
    assert process._outcome(code, "", error, 1.0)["status"] == status


def test_a_competitor_that_is_not_installed_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    found = process.fit(replace(DIGITS, method="LightGBM", use="LightGBM", parameters={}), 60.0)
    assert found["status"] == "missing"
    assert "needs lightgbm: pip install lightgbm" in found["message"]


def test_measures_of_kernel_machines():
    parameters = {"C": 4.0, "gamma": 0.001, "levels": 1, "branching": 4, "random_state": 0}
    cell = Cell("here", "digits", "KernelSVC", "KernelSVC", parameters, "test", rows=300,
                test_rows=50, measure=["levels", "support", "dual"])  # fmt: skip
    details = run(cell, limit=60.0)["details"]
    assert details["levels"][0]["n_clusters"] >= 2
    assert details["support_vectors"] > 10
    assert details["dual_objective"] > 0


def test_the_dual_objective_of_a_peer_is_ours():
    from benchmarks.experiments.measures import _dual
    from sklearn.datasets import make_classification

    X, y = make_classification(200, random_state=0)
    cell = replace(DIGITS, parameters={"C": 2.0, "gamma": 0.05})
    one = make("random partition", {"C": 2.0, "gamma": 0.05, "parts": 1}, 0, 1).fit(X, y)
    ours = make("DC-SVM", {"C": 2.0, "gamma": 0.05, "levels": 0}, 0, 1).fit(X, y)
    found = [_dual(model, X, y, cell)["dual_objective"] for model in (one, ours)]
    assert found[0] == pytest.approx(found[1], rel=2e-3)


def test_support_vectors_that_were_found_and_those_that_were_not():
    X, y, *_ = data.digits()
    X, y = X[:300] / 16, y[:300] < 5
    cell = replace(DIGITS, use="DC-SVM", parameters={"C": 2.0, "gamma": 0.1})
    exact = make("DC-SVM", cell.parameters | {"levels": 0, "tol": 1e-6}, 0, 1).fit(X, y)
    assert MEASURES["found"](exact, X, y, cell) == {"precision": 1.0, "recall": 1.0}
    exact.support_ = np.append(exact.support_[::2], np.setdiff1d(range(300), exact.support_)[:5])
    some = MEASURES["found"](exact, X, y, cell)
    assert some["recall"] == pytest.approx(0.5, abs=0.01)
    assert 0.9 < some["precision"] < 1
    cascade = make("CascadeSVM", cell.parameters | {"parts": 4}, 0, 1).fit(X, y)
    layers = MEASURES["layers"](cascade, X, y, cell)["layers"]
    assert len(layers) == 3  # of 4, 2 and 1 parts
    assert layers[0]["support_vectors"] > layers[-1]["support_vectors"]
    assert layers[0]["precision"] < layers[-1]["precision"]


def test_the_dual_objective_of_libsvms_polynomial_is_ours():
    X, y, *_ = data.digits()
    X, y = X[:200] / 16, y[:200] < 5
    cell = replace(DIGITS, parameters={"C": 0.01, "gamma": 0.5})
    theirs = make("LIBSVM polynomial", cell.parameters, 0, 1).fit(X, y)
    coef, support = theirs.dual_coef_[0], X[theirs.support_]
    kernel = (0.5 * support @ support.T) ** 3
    value = np.abs(coef).sum() - coef @ kernel @ coef / 2
    assert MEASURES["dual"](theirs, X, y, cell)["dual_objective"] == pytest.approx(value)


def test_errors_of_shapes_are_of_the_features_counted_from_one():
    from benchmarks.experiments.measures import _shape_errors

    X, y, *_ = data.digits()
    model = make("PmSVM-LUT", {"warm_start": True}, 0, 1).fit(X, y == 0)
    found = _shape_errors(model, X, y, replace(DIGITS, features=[20, 30]))["errors"]
    expected = model.approximation_error(X, [19, 29])
    assert found["20"]["relative_max"] == expected[0].relative_max
    assert found["30"]["mean"] == expected[1].mean
