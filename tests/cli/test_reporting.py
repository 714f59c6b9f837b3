"""widemargin report."""

from pathlib import Path

import numpy as np
import pytest

from .helpers import files, refused, run, table


@pytest.fixture
def people():
    rng = np.random.default_rng(0)
    age, job = rng.uniform(18, 80, 200).round(1), rng.choice(["clerk", "smith"], 200)
    rich = np.where((age > 40) ^ (rng.random(200) < 0.1), "rich", "poor")
    return table("people.csv", {"age": age, "job": job, "label": rich})


def test_a_page_about_a_model(people):
    run("train", people, "m.safetensors", "-t", "chi2", "-q")
    assert run("report", "m.safetensors", people).stdout == "m.html\n"
    text = Path("m.html").read_text(encoding="utf-8")
    for said in (
        "Report of m.safetensors", "<td>age</td>", "<td>job</td>", "widemargin train people.csv",
        "people.csv", "What age adds", "Pairs that the model misses",
    ):  # fmt: skip
        assert said in text
    assert "Nine in ten" not in text
    run("report", "m.safetensors", people, "-o", "there.html", "--training", people)
    assert "Nine in ten of 20 copies" in Path("there.html").read_text(encoding="utf-8")


def test_svmlight_features_have_their_numbers(iris):
    run("train", iris, "m", "-t", "chi2", "-q")
    run("report", "m", iris)
    text = Path("m.html").read_text(encoding="utf-8")
    assert "feature 1<" in text
    assert "feature 0<" not in text


def test_a_kernel_model(two):
    run("train", two, "m", "-q")
    run("report", "m", two)
    text = Path("m.html").read_text(encoding="utf-8")
    assert "support vectors" in text
    assert "Shapes" not in text
    said = refused("report", "m", two, "--training", two)
    assert said == "--training draws bands for additive models only."


def test_bands_are_for_few_classes():
    four = table("four.csv", {"size": [1, 2, 3, 4] * 10, "label": ["a", "b", "c", "d"] * 10})
    run("train", four, "m", "-t", "chi2", "-q")
    said = refused("report", "m", four, "--training", four)
    assert "draws bands for up to 3 classes; the model has 4" in said


def test_what_is_refused_leaves_no_file(people):
    run("train", people, "m", "-t", "chi2", "-q")
    before = files()
    assert "No such file" in refused("report", "m", people, "-o", "no/where.html", status=1)
    assert "not a widemargin model" in refused("report", people, "m", status=1)
    bare = table("bare.csv", {"age": [20, 30], "job": ["clerk", "smith"]})
    assert "no labels found" in refused("report", "m", bare, status=1)
    assert files() == before | {"bare.csv"}
