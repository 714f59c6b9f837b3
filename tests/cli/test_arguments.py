"""Words of the command line become values, and every option reaches its machine."""

import inspect
import re
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from widemargin import AdditiveSVC, KernelSVC, PowerMean, load, papers
from widemargin.additive.kernels import KERNELS as ADDITIVE_KERNELS
from widemargin.cli import app
from widemargin.cli.making import _KERNELS_OF, ADDITIVE, GENERAL, kernel_name
from widemargin.cli.options import grouped, option
from widemargin.cli.words import UsageError, number_or_text, numbers, with_long_options
from widemargin.data.reading import FORMATS
from widemargin.kernel.kernels import KERNELS as GENERAL_KERNELS

from .helpers import SIGN, TWO, refused, run, run_json, trained, write, write_lines

# ------------------------------------------------------------------ kernels and groups


def test_kernels_are_those_of_the_machines():
    assert (*ADDITIVE_KERNELS, "power_mean", "auto") == ADDITIVE
    general = ("libsvm_linear", "rbf", "poly", "sigmoid", "laplacian", "exp_chi2", "precomputed")
    assert general == GENERAL
    assert tuple(name.removeprefix("exp_").removeprefix("libsvm_") for name in GENERAL) == tuple(
        GENERAL_KERNELS
    )


def test_options_of_a_kernel_are_its_parameters():
    assert _KERNELS_OF["gamma"] == ("rbf", "poly", "sigmoid", "laplacian", "exp_chi2")
    assert _KERNELS_OF["degree"] == ("poly",)
    assert _KERNELS_OF["coef0"] == ("poly", "sigmoid")


def test_help_names_every_kernel():
    printed = re.sub(r"[\s│]+", " ", run("train", "--help").stdout)
    for kernel in ADDITIVE + GENERAL:
        assert f"{kernel}," in printed or f"{kernel};" in printed


def test_help_says_the_defaults_of_the_machines_and_every_format():
    printed = re.sub(r"[\s│]+", " ", run("train", "--help").stdout)
    kernel, additive = KernelSVC(), AdditiveSVC()
    assert kernel.C == additive.C
    assert f"Cost of errors (default: {kernel.C:g})" in printed
    assert f"poly (default: {kernel.degree})" in printed
    assert f"poly and sigmoid (default: {kernel.coef0:g})" in printed
    assert f"to stop at (default: {kernel.tol:g}; additive: {additive.tol:g})" in printed
    assert kernel.gamma == "scale"
    assert "(default: 1 / (features * variance))" in printed
    assert f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]} (default: by the content)" in printed


@dataclass(frozen=True)
class Group:
    a: int = option("-a", "What it is", default=1)
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
        (["--multi-class", "ovo"], {"multi_class": "ovo"}),
        (["-t", "chi2", "--multi-class", "crammer_singer"], {"multi_class": "crammer_singer"}),
        (["-t", "chi2", "--loss", "hinge"], {"loss": "hinge"}),
        (["-t", "chi2", "--rank", "3"], {"rank": 3}),
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
        (["icd-counts"], papers.icd(scaling=None)),
        (["pmsvm"], papers.pmsvm()),
        (["pmsvm", "-p", "-8"], papers.pmsvm(-8)),
        (["pmsvm", "-t", "jensen-shannon"], papers.pmsvm(kernel="jensen_shannon")),
        (["pmsvm-lut", "--rank", "6"], papers.pmsvm_lut(degree=5)),
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
        (["svm-perf"], "--preset svm-perf: not one of icd, icd-counts, pmsvm, pmsvm-lut, dcsvm,"),
        (["icd", "-t", "rbf"], "--kernel rbf: --preset icd takes intersection, chi2,"),
        (["dcsvm", "-t", "chi2"], "--kernel chi2: --preset dcsvm takes libsvm_linear, rbf,"),
        (["icd", "--power", "-2"], "--power cannot be combined with --kernel intersection"),
        (["icd", "-t", "power_mean"], "it needs --power"),
        (["pmsvm", "--gamma", "1"], "--gamma cannot be combined with --kernel power_mean"),
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
        ("0", KernelSVC, "linear"),
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
