"""Defaults from a file of TOML."""

from pathlib import Path

import pytest

from widemargin import load

from .helpers import IRIS, SIGN, TWO, files, refused, run, run_json, table, trained, write


def config(text: str, name: str = "widemargin.toml") -> Path:
    Path(name).write_text(text)
    return Path(name)


def test_defaults_from_the_current_folder(two):
    config('[train]\nkernel = "chi2"\nC = 10\ntol = 1e-2\nintercept = false\njobs = 1\n'
           'weight = ["1=5", "-1=2"]\nmax-iter = 77\nmulti_class = "crammer_singer"\n')  # fmt: skip
    machine, _ = trained(two)
    assert (machine.kernel, machine.C, machine.tol, machine.n_jobs) == ("chi2", 10.0, 0.01, 1)
    assert machine.fit_intercept is False
    assert machine.class_weight == {1: 5.0, -1: 2.0}
    assert (machine.max_iter, machine.multi_class) == (77, "crammer_singer")


def test_the_command_line_wins(two):
    config('[train]\nkernel = "chi2"\nC = 10\nintercept = false\nseed = 3\nweight = "1=5"\n')
    machine, _ = trained(two, "-t", "linear", "-c", "2", "--intercept", "-w-1", "4")
    assert (machine.kernel, machine.C, machine.fit_intercept) == ("linear", 2.0, True)
    assert (machine.random_state, machine.class_weight) == (3, {-1: 4.0})


def test_other_files_of_defaults(two, monkeypatch):
    config("[train]\nC = 1\n")
    second, third = config("[train]\nC = 2\n", "b.toml"), config("[train]\nC = 3\n", "c.toml")

    def c(*words) -> float:
        run(*words, "train", two, "m", "-q")
        return load("m").C

    assert c() == 1
    assert c("--config", second) == 2
    monkeypatch.setenv("WIDEMARGIN_CONFIG", str(third))
    assert c() == 3
    assert c("--config", second) == 2
    monkeypatch.chdir("/")
    assert "widemargin" in run("--version").stdout


def test_defaults_of_every_kind(two):
    config('[train]\nquiet = true\nkernel = 0\nweight = "balanced"\n'
           '[predict]\noutput = "decision"\n'
           '[tune]\nkernels = ["chi2", "linear"]\nCs = [1, 10]\nfolds = 2\nplot = "a.png"\n'
           '[scale]\nmethod = "maxabs"\n')  # fmt: skip
    assert run("train", two, "m").output == ""
    assert (load("m").kernel, load("m").class_weight) == ("linear", "balanced")
    assert run("predict", two, "m").stdout.startswith("1\n")
    trials = run_json("tune", two)["trials"]
    assert sorted((t["kernel"], t["C"]) for t in trials) == [
        ("chi2", 1), ("chi2", 10), ("linear", 1), ("linear", 10)]  # fmt: skip
    assert Path("a.png").exists()
    biggest = [float(v.split(":")[1]) for v in run("scale", two).stdout.split() if ":" in v]
    assert max(biggest) == 1
    assert min(biggest) > 0


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[trian]\nC = 1\n", "'trian' is not a command"),
        ("C = 1\n", "'C' is not a command"),
        ("[train]\ncost = 1\n", "train has no option 'cost'"),
        ("[info]\nC = 1\n", "info has no option 'C'"),
        ("[train]\nfit_intercept = true\n", "no option 'fit_intercept'"),
        ('[train]\ndata = "two.txt"\n', "no option 'data'"),
        ("[train\n", "not valid TOML"),
        ("[train]\nC = \n", "not valid TOML"),
    ],
)
def test_files_of_defaults_that_make_no_sense_are_refused(two, text, named):
    config(text)
    message = refused("train", two)
    assert "widemargin.toml" in message
    assert named in message
    assert files() == {"two.txt", "widemargin.toml"}


def test_a_file_that_is_no_text_is_refused(two):
    Path("widemargin.toml").write_bytes(b"\xff\xfe\x00")
    assert "not valid TOML" in refused("train", two)


@pytest.mark.parametrize("text", ["C = 'much'", "seed = 1.5", "folds = 1", "kernel = 'x'"])
def test_bad_values_of_defaults_are_misuse(two, text):
    config(f"[train]\n{text}\n")
    run("train", two, status=2)
    assert files() == {"two.txt", "widemargin.toml"}


def test_a_file_of_defaults_that_is_not_there(two):
    assert "none.toml: No such file" in refused("--config", "none.toml", "train", two, status=1)


def test_defaults_of_other_commands_do_not_matter(iris):
    config("[tune]\nfolds = 3\n")
    assert run_json("train", iris)["rows"] == len(IRIS)


def test_a_format_from_defaults():
    write("a.txt", TWO, SIGN)
    config('[train]\nformat = "csv"\n')
    refused("train", "a.txt", status=1)
    run("train", "a.txt", "--format", "svmlight")


def test_a_list_of_names_may_have_commas_in_them():
    data = table("a.csv", {"y": [0, 1, 0, 1], '"a,b"': [1, 2, 3, 4], "c": [5, 6, 7, 9]})
    config('[train]\ndrop = ["a,b"]\n')
    machine, _ = trained(data, "-t", "chi2")
    assert machine.feature_names_in_.tolist() == ["c"]


def test_an_option_of_two_numbers(two):
    config("[scale]\nlabels = [0, 5]\n")
    labels = {line.split()[0] for line in run("scale", two).stdout.splitlines()}
    assert labels == {"0", "5"}
    config("[scale]\nlabels = 5\n")
    run("scale", two, status=2)
