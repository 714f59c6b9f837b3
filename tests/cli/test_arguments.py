"""Every option reaches its machine or is refused; defaults come from a file."""

import inspect
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest
import typer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from widemargin import AdditiveSVC, KernelSVC, PowerMean, load, papers
from widemargin.additive.kernels import KERNELS as ADDITIVE_KERNELS
from widemargin.cli import app
from widemargin.cli.arguments import UsageError, number_or_text, numbers, with_long_options
from widemargin.cli.groups import grouped
from widemargin.cli.machines import _KERNELS_OF, ADDITIVE, GENERAL, kernel_name
from widemargin.kernel.kernels import KERNELS as GENERAL_KERNELS

from .helpers import IRIS, SIGN, TWO, files, refused, run, run_json, write, write_lines


def trained(*words):
    """The machine of a model that train wrote, and its scaler."""
    run("train", *words, "m", "-q")
    model = load("m")
    return (model[-1], model[0]) if isinstance(model, Pipeline) else (model, None)


# ------------------------------------------------------------------ kernels and groups


def test_kernels_are_those_of_the_machines():
    assert (*ADDITIVE_KERNELS, "power_mean", "auto") == ADDITIVE
    assert GENERAL == ("rbf", "poly", "sigmoid", "laplacian", "exp_chi2", "precomputed")
    assert set(GENERAL) == {k if k not in ADDITIVE else f"exp_{k}" for k in GENERAL_KERNELS}


def test_options_of_a_kernel_are_its_parameters():
    assert _KERNELS_OF["gamma"] == ("rbf", "poly", "sigmoid", "laplacian", "exp_chi2")
    assert _KERNELS_OF["degree"] == ("poly",)
    assert _KERNELS_OF["coef0"] == ("poly", "sigmoid")


def test_help_names_every_kernel():
    printed = re.sub(r"[\s│]+", " ", run("train", "--help").stdout)
    for kernel in ADDITIVE + GENERAL:
        assert f"{kernel}," in printed or f"{kernel};" in printed


@dataclass(frozen=True)
class Group:
    a: Annotated[int, typer.Option("-a")] = 1
    hidden: str = "as it is"

    def __post_init__(self):
        if self.a < 0:
            raise UsageError("-a is negative.")


def test_a_group_is_its_options():
    called = []

    def command(*, b: int = 2, group: Group, c: int):
        """What it does."""
        called.append((b, group, c))

    spread = grouped(command)
    assert list(inspect.signature(spread).parameters) == ["b", "a", "c"]
    assert spread.__doc__ == "What it does."
    spread(b=3, a=5, c=7)
    assert called == [(3, Group(5), 7)]
    with pytest.raises(UsageError):
        spread(b=3, a=-5, c=7)


# ------------------------------------------------------------------ options of train


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-c", "2.5"], {"C": 2.5}),
        (["--C", "2.5"], {"C": 2.5}),
        (["-g", "0.3"], {"gamma": 0.3}),
        (["-t", "poly", "-d", "2"], {"kernel": "poly", "degree": 2}),
        (["-t", "poly", "-r", "-0.5"], {"coef0": -0.5}),
        (["-t", "3", "-g", "0.01", "--coef0", "1"], {"kernel": "sigmoid", "coef0": 1.0}),
        (["-e", "0.01"], {"tol": 0.01}),
        (["-m", "12.5"], {"cache_size": 12.5}),
        (["-w1", "5"], {"class_weight": {1: 5.0}}),
        (["-w-1", "0.5", "-w1", "2"], {"class_weight": {-1: 0.5, 1: 2.0}}),
        (["-w+1", "2e1"], {"class_weight": {1: 20.0}}),
        (["--weight", "-1=3", "--weight", "1=1"], {"class_weight": {-1: 3.0, 1: 1.0}}),
        (["--weight", "balanced"], {"class_weight": "balanced"}),
        (["--early", "1"], {"early": 1}),
        (["--early", "auto"], {"early": True}),
        (["--levels", "2"], {"levels": 2}),
        (["--multi-class", "ovo"], {"multi_class": "ovo"}),
        (["-t", "chi2", "--multi-class", "crammer_singer"], {"multi_class": "crammer_singer"}),
        (["-t", "chi2", "--loss", "hinge"], {"loss": "hinge"}),
        (["-t", "chi2", "--rank", "3"], {"rank": 3}),
        (["-t", "chi2", "--approximation", "unary"], {"approximation": "unary"}),
        (["-t", "power_mean", "-p", "-4"], {"kernel": PowerMean(-4)}),
        (["--intercept"], {"fit_intercept": True}),
        (["--no-intercept"], {"fit_intercept": False}),
        (["-t", "chi2", "--no-intercept"], {"fit_intercept": False}),
        (["--max-iter", "500"], {"max_iter": 500}),
        (["--seed", "7"], {"random_state": 7}),
        (["--jobs", "2"], {"n_jobs": 2}),
        (["-j", "1"], {"n_jobs": 1}),
    ],
)
def test_options_of_train_reach_the_machine(two, words, expected):
    machine, _ = trained(two, *words)
    default = type(machine)().get_params()
    assert {name: getattr(machine, name) for name in expected} == expected
    expected = {"n_jobs": -1, "random_state": 0, "missing": "learn", **expected}
    changed = {name for name, value in machine.get_params().items() if value != default[name]}
    assert changed <= expected.keys() | {"kernel", "gamma"}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["icd"], papers.icd()),
        (["icd", "-c", "0.1", "--loss", "hinge"], papers.icd(C=0.1, loss="hinge")),
        (["pmsvm"], papers.pmsvm()),
        (["pmsvm", "-p", "-8"], papers.pmsvm(-8)),
        (["pmsvm", "-t", "jensen-shannon"], papers.pmsvm(kernel="jensen_shannon")),
        (["pmsvm-lut", "--rank", "6"], papers.pmsvm_lut(degree=5)),
        (["pmsvm-lut", "--approximation", "chebyshev_linear"],
         papers.pmsvm_lut(approximation="chebyshev_linear")),
        (["dcsvm", "-c", "32", "-g", "32"], papers.dcsvm(C=32, gamma=32)),
        (["dcsvm", "-t", "poly", "-d", "3"], papers.dcsvm(kernel="poly")),
        (["dcsvm-early", "--early", "2"], papers.dcsvm_early(early=2)),
    ],
)  # fmt: skip
def test_presets_are_those_of_the_papers(words, expected):
    write("a.txt", TWO - TWO.min(axis=0), SIGN)
    machine, _ = trained("a.txt", "--preset", *words)
    expected.set_params(random_state=0)
    if isinstance(expected, AdditiveSVC):  # the command line reads tables
        expected.set_params(missing="learn")
    assert type(machine) is type(expected)
    assert machine.get_params() == expected.get_params()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["svm-perf"], "--preset svm-perf: not one of icd, pmsvm, pmsvm-lut, dcsvm, dcsvm-early."),
        (["icd", "-t", "rbf"], "--kernel rbf: --preset icd takes intersection, chi2,"),
        (["dcsvm", "-t", "chi2"], "--kernel chi2: --preset dcsvm takes rbf, poly,"),
        (["icd", "--power", "-2"], "--power has no meaning with --kernel intersection"),
        (["icd", "-t", "power_mean"], "it needs --power"),
        (["pmsvm", "--gamma", "1"], "--gamma has no meaning with --kernel power_mean"),
    ],
)
def test_what_a_preset_is_not_is_refused(two, words, message):
    assert message in refused("train", two, "--preset", *words)


def test_options_change_the_model(two):
    """And not only what it says of itself."""
    plain = trained(two)[0].decision_function(TWO)
    for words in (["-c", "9"], ["-g", "2"], ["-w1", "5"], ["--no-intercept"]):
        assert not np.allclose(trained(two, *words)[0].decision_function(TWO), plain)


@pytest.mark.parametrize(
    ("word", "machine", "kernel"),
    [
        *((name, AdditiveSVC, name) for name in ADDITIVE if name != "power_mean"),
        *((name, KernelSVC, name) for name in ("rbf", "poly", "laplacian")),
        ("exp_chi2", KernelSVC, "chi2"),
        ("exp-chi2", KernelSVC, "chi2"),
        ("jensen-shannon", AdditiveSVC, "jensen_shannon"),
        ("0", AdditiveSVC, "linear"),
        ("1", KernelSVC, "poly"),
        ("2", KernelSVC, "rbf"),
        ("3", KernelSVC, "sigmoid"),
    ],
)
def test_kernels_by_name_and_by_number(two, word, machine, kernel):
    found, _ = trained(two, "-t", word)
    assert (type(found), found.kernel) == (machine, kernel)


def test_the_names_of_all_kernels():
    assert [kernel_name(name) for name in ADDITIVE + GENERAL] == [*ADDITIVE, *GENERAL]
    assert kernel_name("4") == "precomputed"
    for word in ("5", "-1", "gauss", "", "RBF"):
        with pytest.raises(UsageError, match="not one of intersection"):
            kernel_name(word)


@pytest.mark.parametrize(
    ("word", "kind"),
    [("none", None), ("minmax", MinMaxScaler), ("maxabs", MaxAbsScaler),
     ("standard", StandardScaler)],
)  # fmt: skip
def test_scaling_is_kept_in_the_model(two, word, kind):
    machine, scaler = trained(two, "--scale", word)
    assert type(scaler) is (kind or type(None))
    if kind is not None:
        by_hand = kind().fit(TWO)
        np.testing.assert_allclose(scaler.transform(TWO), by_hand.transform(TWO), rtol=1e-12)
        expected = KernelSVC().fit(by_hand.transform(TWO), SIGN).decision_function(TWO)
        np.testing.assert_allclose(machine.decision_function(TWO), expected, rtol=1e-5, atol=1e-6)


def test_folds_take_the_options_too(two):
    accuracy = [
        run_json("train", two, "-v", 5, *words)["cross_validation"]["accuracy"]
        for words in (["-g", "1e-6", "-c", "1e-3", "-w1", "1e-3"], ["-g", "1"])
    ]
    assert accuracy[0] == 0.5 < accuracy[1]


def test_weights_of_labels_that_are_text():
    labels = np.where(SIGN > 0, "x01", "b01")
    write_lines("a.txt", *(f"{y} 1:{x[0]} 2:{x[1]}" for y, x in zip(labels, TWO, strict=True)))
    machine, _ = trained("a.txt", "-wx01", "3", "-wb01", "2")
    assert machine.class_weight == {"x01": 3.0, "b01": 2.0}


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("option", "kernel"),
    [
        *((option, "chi2") for option in ("--gamma", "--degree", "--coef0", "--levels", "--early",
                                          "--cache-size", "--power")),
        *((option, "rbf") for option in ("--degree", "--coef0", "--loss", "--rank",
                                         "--approximation", "--power")),
        ("--gamma", "precomputed"), ("--coef0", "laplacian"), ("--degree", "sigmoid"),
        ("--gamma", "linear"), ("--power", "linear"), ("--scale", "precomputed"),
    ],
)  # fmt: skip
def test_options_that_a_machine_does_not_have_are_refused(two, option, kernel):
    value = {"--loss": "hinge", "--approximation": "unary", "--scale": "minmax"}.get(option, "1")
    message = refused("train", two, "-t", kernel, option, value)
    assert message.startswith(option)
    assert f"no meaning with --kernel {kernel}." in message
    assert files() == {"two.txt"}


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["-c", "0"], "--C 0.0"), (["-c", "-1"], "--C -1.0"), (["-c", "nan"], "--C nan"),
        (["-c", "inf", "-t", "chi2"], "--C inf"), (["-g", "0"], "--gamma 0.0"),
        (["-t", "poly", "-d", "-1"], "--degree -1"), (["-t", "poly", "-r", "nan"], "--coef0 nan"),
        (["-e", "0"], "--tol 0.0"), (["-m", "0"], "--cache-size 0.0"),
        (["--levels", "-1"], "--levels -1"),
        (["--early", "0"], "--early 0"), (["--early", "soon"], "--early soon"),
        (["--early", "1", "--intercept"], "--intercept needs"),
        (["--max-iter", "0"], "--max-iter 0"),
        (["-j", "0"], "--jobs 0"), (["-t", "chi2", "--loss", "log"], "--loss log"),
        (["-t", "chi2", "--rank", "0"], "--rank 0"),
        (["--multi-class", "crammer_singer"], "--multi-class crammer_singer"),
        (["-t", "chi2", "--multi-class", "ovo"], "--multi-class ovo"),
        (["-t", "chi2", "--approximation", "none"], "--approximation none"),
        (["-t", "power_mean"], "--power"), (["-t", "power_mean", "-p", "1"], "p=1"),
        (["-t", "gauss"], "--kernel gauss"), (["--scale", "log"], "--scale log"),
        (["-w7", "2"], "--weight 7=2"), (["-w1", "2", "-w-1", "2", "-w0", "1"], "--weight 0=1"),
        (["-w1", "-2"], "--weight 1=-2"), (["--weight", "1=nan"], "--weight 1=nan"),
        (["--weight", "1"], "--weight 1"), (["--weight", "=2"], "--weight =2"),
        (["--weight", "balanced", "-w1", "2"], "--weight balanced"),
    ],
)  # fmt: skip
def test_bad_values_are_misuse(two, words, named):
    assert named in refused("train", two, *words)
    assert files() == {"two.txt"}


@pytest.mark.parametrize(
    "words",
    [["-c", "x"], ["-d", "1.5"], ["-v", "1"], ["-v", "x"], ["--nothing"], ["-w1"], ["-w1", "x"],
     ["--json=1"], ["-c"], ["a", "b"]],
)  # fmt: skip
def test_what_the_parser_refuses_is_misuse_too(two, words):
    result = run("train", two, *words, status=2)
    assert "─ Error ─" in result.stderr
    assert files() == {"two.txt"}


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--Cs", "1:10"], "--Cs"), (["-c", "1,x"], "--Cs"), (["-c", "0,1"], "--C 0.0"),
        (["-c", "1:10:0"], "--Cs"), (["-c", "-1:10:3"], "--Cs"), (["-c", "0:1:2"], "--Cs"),
        (["-c", ""], "--Cs"), (["-g", "0"], "--gamma 0.0"), (["-t", "chi2", "-g", "1"], "--gammas"),
        (["-p", "-1"], "--powers"), (["-t", "power_mean", "-p", "2"], "p=2"),
        (["-t", "rbf,none"], "--kernel none"), (["-t", ""], "--kernel"),
        (["-t", "rbf,precomputed"], "rbf,precomputed"), (["-w5", "1"], "--weight 5=1"),
        (["--multi-class", "ovo"], "chi2"), (["--scale", "x"], "--scale x"),
        (["-t", "precomputed", "--scale", "minmax"], "--scale minmax"),
    ],
)  # fmt: skip
def test_tune_refuses_what_it_cannot_use(two, words, named):
    assert named in refused("tune", two, *words)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["predict", "--output", "colours"], "--output colours"),
        (["predict", "--output", "contributions"], "needs an additive model"),
        (["predict", "--json"], "--json"),
        (["predict", "-", "--json"], "--json"),
        (["predict", "--class", "1"], "--class"),
        (["predict", "-j", "0"], "--jobs 0"),
        (["predict", "--format", "x"], "--format x"),
        (["evaluate", "-j", "0"], "--jobs 0"),
    ],
)
def test_predict_refuses_what_it_cannot_use(two, words, named):
    trained(two)
    command, *rest = words
    assert named in refused(command, two, "m", *rest)


def test_contributions_of_many_classes_need_one_that_is_there(iris):
    run("train", iris, "m", "-t", "chi2")
    words = ["predict", iris, "m", "--output", "contributions"]
    assert "needs --class, one of 0, 1, 2" in refused(*words)
    assert "--class 3: not one of 0, 1, 2" in refused(*words, "--class", "3")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["m", "--what", "love"], "--what love"),
        (["m", "--features", "5"], "--features 5: no such feature; there are 4, 1 to 4"),
        (["m", "--features", "1,width"], "--features width"),
        (["m", "--what", "importance", "--features", "1"], "--features"),
        (["m", "--what", "convergence", "--data", "two.txt"], "--data"),
        (["m", "m.txt"], "matplotlib cannot draw"),
        (["rbf", "--what", "shapes"], "needs an additive model"),
        (["rbf", "--what", "importance"], "needs an additive model"),
        (["factors"], "not a model"),
    ],
)
def test_plot_refuses_what_it_cannot_use(two, words, named):
    run("train", two, "m", "-t", "chi2")
    run("train", two, "rbf", "--max-iter", "10")
    run("scale", two, "out", "-s", "factors")
    before = files()
    result = run("plot", *words, status=2)
    assert named in result.stderr
    assert files() == before


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--method", "none"], "--method none"), (["--method", "log"], "log"),
        (["-l", "1", "-u", "1"], "--lower 1"), (["-l", "2"], "--lower 2"),
        (["-u", "nan"], "--upper nan"), (["--method", "maxabs", "-l", "0"], "--lower"),
        (["-r", "factors", "-u", "2"], "--restore"), (["-r", "factors", "-s", "f"], "--restore"),
        (["-r", "factors", "--method", "maxabs"], "--restore"), (["-r", "m"], "--restore m"),
    ],
)  # fmt: skip
def test_scale_refuses_what_it_cannot_use(two, words, named):
    trained(two)
    run("scale", two, "out", "-s", "factors")
    assert named in refused("scale", two, *words)


def test_export_and_others_refuse_what_is_no_model(two):
    trained(two)
    run("scale", two, "out", "-s", "factors")
    assert "--to html" in refused("export", "m", "x", "--to", "html")
    assert "not a model" in refused("export", "factors", "x.onnx")
    assert "not a model" in refused("predict", two, "factors")
    assert "not a model" in refused("evaluate", two, "factors")
    assert "shape functions" in refused("export", "m", "x.json", status=1)


# ------------------------------------------------------------------ words to values


@pytest.mark.parametrize(
    ("words", "long"),
    [
        (["-w1", "5"], ["--weight", "1=5"]),
        (["-w-1", "0.5"], ["--weight", "-1=0.5"]),
        (["-w1", "-5"], ["--weight", "1=-5"]),
        (["-wcat", "1e-3"], ["--weight", "cat=1e-3"]),
        (["-w1", "data.txt"], ["-w1", "data.txt"]),
        (["-w1"], ["-w1"]),
        (["--weight", "1=5"], ["--weight", "1=5"]),
        (["-w=1", "5"], ["-w=1", "5"]),
    ],
)
def test_weights_in_libsvm_s_way(words, long):
    assert with_long_options(["train", *words, "x"]) == ["train", *long, "x"]


def test_main_takes_weights_in_libsvm_s_way(two, monkeypatch):
    monkeypatch.setattr("sys.argv", ["widemargin", "train", "-q", str(two), "m", "-w-1", "4"])
    with pytest.raises(SystemExit) as stop:
        app.main()
    assert stop.value.code == 0
    assert load("m").class_weight == {-1: 4.0}


def test_ranges_of_numbers():
    assert numbers("1", "x") == [1.0]
    assert numbers("0.5,2,1e3", "x") == [0.5, 2.0, 1000.0]
    assert numbers("0.0001:0.1:4", "x") == [0.0001, 0.001, 0.01, 0.1]
    assert numbers("-8:-0.5:3", "x") == [-8.0, -2.0, -0.5]
    assert numbers("5:50:1", "x") == [5.0]
    assert numbers("100:1:3", "x") == [100.0, 10.0, 1.0]


def test_labels_are_numbers_where_they_can_be():
    assert [number_or_text(word) for word in ("1", "-1", "1.5", "a")] == [1, -1, 1.5, "a"]
    assert type(number_or_text("1")) is int


# ------------------------------------------------------------------ defaults from a file


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
