"""Files of experiments: what they may say, and what is wrong in them."""

from dataclasses import asdict, replace

import pytest
from benchmarks import prepared
from benchmarks.competitors.optional import MissingPackageError
from benchmarks.experiments import plan
from benchmarks.experiments.__main__ import main
from benchmarks.experiments.measures import MEASURES
from benchmarks.experiments.plan import Cell
from benchmarks.methods import METHODS, make
from pretended_fits import DIGITS, experiment


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


def test_easy_is_a_method_that_hands_on_seed_threads_and_seconds(digits):
    X, y, X_test, y_test = digits
    model = make("easy", {"seconds": 1.0}, seed=3, threads=2).fit(X, y)
    assert (model.max_seconds, model.random_state, model.n_jobs) == (1.0, 3, 2)
    assert model.score(X_test, y_test) > 0.8


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
    assert main(["icd_table5", "--again", "usps"]) == 2
    assert "--again 'usps': there are ICD, " in capsys.readouterr().err
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
