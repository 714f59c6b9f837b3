"""Pictures of one class, and of the pairs that a model misses."""

import numpy as np
import pytest

from widemargin import plots

from .helpers import refused, run, table, write


@pytest.fixture
def drawn(monkeypatch):
    """The figures that the commands have drawn, by the names of the functions."""
    seen = {}

    def remembering(name, real):
        def draw(*arguments, **more):
            seen[name] = real(*arguments, **more)
            return seen[name]

        return draw

    for name in ("plot_shapes", "plot_pairs"):
        monkeypatch.setattr(plots, name, remembering(name, getattr(plots, name)))
    return seen


@pytest.fixture
def crossed():
    """A table whose label is whether two columns have the same sign."""
    X = np.random.default_rng(0).uniform(-1, 1, (600, 3)).round(4)
    same = np.where(X[:, 0] * X[:, 2] > 0, "same", "other")
    data = table("crossed.csv", {**dict(zip("abc", X.T, strict=True)), "label": same})
    run("train", data, "m", "-t", "intersection", "-q")
    return data


def test_one_class_of_several(iris, drawn):
    run("train", iris, "m", "-t", "chi2", "-q")
    run("plot", "m", "a.png", "--class", "2", "--features", "1")
    (axis,) = drawn["plot_shapes"].axes
    assert axis.get_ylabel() == "contribution to 2"
    assert len(axis.lines) == 2  # the curve, and zero
    assert refused("plot", "m", "--class", "7") == "--class 7: not one of 0, 1, 2."


def test_pairs_are_printed_and_drawn(crossed, drawn):
    printed = run("plot", "m", "pairs.svg", "--what", "pairs", "--data", crossed).stdout
    header, first, *others, verdict, path = printed.splitlines()
    assert header.split("  ")[0] == "pair"
    assert first.startswith("a \N{MULTIPLICATION SIGN} c")
    assert first.endswith("yes")
    assert all(line.endswith("no") for line in others)
    assert verdict.startswith("A sum over columns cannot see these interactions: ")
    assert path == "pairs.svg"
    axis = drawn["plot_pairs"].axes[0]
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("a", "c")
    assert "rows of same than the model says" in axis.get_title()
    run("plot", "m", "p.png", "--what", "pairs", "--data", crossed, "--class", "other")
    assert "rows of other than the model says" in drawn["plot_pairs"].axes[0].get_title()


def test_pairs_that_explain_nothing_are_no_rows(drawn):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2000, 3)).round(4)
    y = (X.sum(axis=1) + rng.normal(0, 0.5, 2000) > 0).astype(int)
    data = table("sums.csv", {**dict(zip("abc", X.T, strict=True)), "label": y})
    run("train", data, "m", "-t", "intersection", "-q")
    printed = run("plot", "m", "pairs.png", "--what", "pairs", "--data", data).stdout
    assert "0.00 %" not in printed
    *_, verdict, path = printed.splitlines()
    assert verdict == (
        "No pair of columns stands out from the noise: a general kernel has little to gain here."
    )
    assert path == "pairs.png"
    assert drawn["plot_pairs"].axes  # a picture was asked for


def test_what_pairs_need(crossed):
    X = np.random.default_rng(0).uniform(-1, 1, (50, 1))
    write("one.txt", X, np.sign(X.ravel()))
    run("train", "one.txt", "one", "-t", "chi2", "-q")
    refusals = {
        (
            "m",
            "--what",
            "pairs",
        ): "--what pairs needs labelled rows, preferably new ones: pass them with --data.",
        ("m", "--what", "pair"): "--what pair: not one of shapes, importance, pairs, convergence.",
        ("m", "--what", "pairs", "--features", "a", "--data", crossed): (
            "--features cannot be combined with --what pairs."
        ),
        ("m", "--what", "importance", "--class", "same"): (
            "--class cannot be combined with --what importance."
        ),
    }
    for words, said in refusals.items():
        assert refused("plot", *words) == said
    one = refused("plot", "one", "--what", "pairs", "--data", "one.txt", status=1)
    assert one == "The model has only one column, so there are no pairs."
    unlabelled = table("unlabelled.csv", {name: [0.1, 0.2, 0.3] for name in "abc"})
    said = refused("plot", "m", "--what", "pairs", "--data", unlabelled, status=1)
    assert said.startswith("unlabelled.csv: no labels found.")
