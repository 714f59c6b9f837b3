"""Options that a command cannot use are refused: one line that names them, and no file."""

import pytest

from .helpers import files, refused, run, trained


@pytest.mark.parametrize(
    ("option", "kernel"),
    [
        *((option, "chi2") for option in ("--gamma", "--degree", "--coef0", "--early",
                                          "--cache-size", "--power")),
        *((option, "rbf") for option in ("--degree", "--coef0", "--loss", "--rank", "--power")),
        ("--gamma", "precomputed"), ("--coef0", "laplacian"), ("--degree", "sigmoid"),
        ("--gamma", "linear"), ("--power", "linear"), ("--scale", "precomputed"),
    ],
)  # fmt: skip
def test_options_that_a_machine_does_not_have_are_refused(two, option, kernel):
    value = {"--loss": "hinge", "--scale": "minmax"}.get(option, "1")
    message = refused("train", two, "-t", kernel, option, value)
    assert message.startswith(option)
    assert f"cannot be combined with --kernel {kernel}." in message
    assert files() == {"two.txt"}


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["-c", "0"], "--C 0.0"), (["-c", "-1"], "--C -1.0"), (["-c", "nan"], "--C nan"),
        (["-c", "inf", "-t", "chi2"], "--C inf"), (["-g", "0"], "--gamma 0.0"),
        (["-t", "poly", "-d", "-1"], "--degree -1"), (["-t", "poly", "-r", "nan"], "--coef0 nan"),
        (["-e", "0"], "--tol 0.0"), (["-m", "0"], "--cache-size 0.0"),
        (["--early", "0"], "--early 0"), (["--early", "soon"], "--early soon"),
        (["--early", "1", "--intercept"], "--intercept needs"),
        (["--max-iter", "0"], "--max-iter 0"),
        (["-j", "0"], "--jobs 0"), (["-t", "chi2", "--loss", "log"], "--loss log"),
        (["-t", "chi2", "--rank", "0"], "--rank 0"),
        (["--multi-class", "crammer_singer"], "--multi-class crammer_singer"),
        (["-t", "chi2", "--multi-class", "ovo"], "--multi-class ovo"),
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
        (["--Cs", "1:10"], "--Cs"), (["-c", "1,x"], "--Cs"), (["-c", "0,1"], "--Cs 0.0"),
        (["-c", "1:10:0"], "--Cs"), (["-c", "-1:10:3"], "--Cs"), (["-c", "0:1:2"], "--Cs"),
        (["-c", ""], "--Cs"), (["-g", "0"], "--gammas 0.0"), (["-p", "-1"], "--powers"),
        (["-t", "chi2", "-g", "1"], "--gammas"), (["-t", "power_mean", "-p", "2"], "p=2"),
        (["-t", "rbf,none"], "--kernels none"), (["-t", ""], "--kernels"),
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
