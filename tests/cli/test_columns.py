"""Columns of a table on the command line: what is said of them, and remembered."""

import re

import numpy as np
import pytest

from widemargin import load

from .helpers import files, read_lines, refused, run, run_json, table, write_lines

RNG = np.random.default_rng(0)
N = 300
AGE, JOB = RNG.integers(20, 70, N), RNG.choice(["smith", "clerk", "baker"], N)
RICH = np.where((AGE > 45) | (JOB == "clerk"), "rich", "poor")


@pytest.fixture
def people() -> dict:
    return {"id": [f"p{i}" for i in range(N)], "age": AGE, "job": JOB, "label": RICH}


def test_training_says_how_columns_were_taken(people):
    path = table("a.csv", people)
    taken = "columns: 1 numeric, 1 categorical (job 3), 1 dropped (id)\n"
    for words in (["train", "-t", "chi2"], ["tune", "-t", "chi2", "-c", "1"], ["easy"]):
        said = run(*words, path, "--drop", "id").stderr
        assert said.startswith("reading a.csv\n" * (words == ["easy"]) + taken)
        assert "columns" not in run(*words, path, "--drop", "id", "-q").stderr


def test_all_columns_that_are_refused_are_named_at_once(people):
    days = [f"2024-01-{1 + i % 28:02d}" for i in range(N)]
    path = table("a.csv", people | {"day": days, "a note": [f"n{i}" for i in range(N)]})
    said = refused("train", path, "-t", "chi2", status=1)
    assert said.startswith("a.csv: column 'id': 300 different texts")
    drop = "--drop 'id,day,a note'"
    assert said.endswith(f". Also, 'day', 'a note' are refused; {drop} drops all of them")
    run("train", path, "-t", "chi2", "--drop", "id,day,a note")


@pytest.mark.parametrize("kernel", ["rbf", "chi2"])
def test_dates_are_numbers_where_they_are_asked_for(kernel, people):
    del people["id"]
    people["day"] = [f"2024-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(N)]
    path = table("a.csv", people)
    said = refused("train", path, "-t", kernel, status=1)
    assert said.endswith(
        "column 'day' holds dates. Use --numeric day to read them as days since 1970, or --drop day"
    )
    run("train", path, "m", "-t", kernel, "--numeric", "day", "--scale", "minmax")
    assert run_json("evaluate", path, "m")["accuracy"] > 0.8


@pytest.mark.parametrize("kernel", ["rbf", "chi2"])
def test_a_column_that_numbers_rows_is_asked_about_once(kernel, people):
    people["id"] = range(N)
    said = run("train", table("a.csv", people), "m", "-t", kernel, "--scale", "minmax").stderr
    assert said.count("Different in every row: 'id'.") == 1
    assert "with --drop id when the table is read." in said


def test_names_with_commas_are_quoted_in_lists(people):
    del people["id"]
    path = table("a.tsv", {"town, region": JOB, **people}, "\t")
    said = run("train", path, "m", "-t", "chi2", "--format", "tsv").stderr
    assert said.startswith('columns: 1 numeric, 2 categorical ("town, region" 3, job 3)\n')
    assert '"town, region", age, job\n' in run("info", "m").stdout


def test_suspicious_columns_are_refused_with_options(people):
    said = refused("train", table("a.csv", people), status=1)
    assert said == (
        "a.csv: column 'id': 300 different texts in 300 rows, too many to be categories. Leave it "
        "out with --drop id, or keep it with --categorical id"
    )
    people["age"] = [*people["age"][:-1], "?"]
    said = refused("train", table("b.csv", people), "--drop", "id", status=1)
    assert "column 'age': 299 of its 300 values are numbers, but '?' in row 300 is not" in said
    assert "Use --na '?' if" in said
    assert said.endswith("--categorical age if all of them are categories, or --drop age")
    assert files() == {"a.csv", "b.csv"}
    said = run("train", "b.csv", "--drop", "id", "--na", "?").stderr
    assert "1 values missing (age 1)" in said


def test_prediction_needs_none_of_the_options_again(people):
    people["zip"] = RNG.choice(["01", "1"], N)
    path = table("a.csv", people)
    words = ["--drop", "id", "--categorical", "zip", "--na", "?", "-t", "chi2"]
    run("train", path, "m", *words)
    names = ["age", "job", "zip"]
    assert load("m").feature_names_in_.tolist() == names
    assert run("predict", path, "m").stderr.startswith("Accuracy = ")  # and no word of id
    assert run_json("evaluate", path, "m")["accuracy"] > 0.9
    lines = run("info", "m").stdout.splitlines()
    facts = dict(re.split(r"  +", line, maxsplit=1) for line in lines)
    assert (facts["dropped"], facts["missing values"]) == ("id", "?")
    assert facts["columns"] == ", ".join(names)
    people["age"] = ["?", *people["age"][1:]]
    said = run("predict", table("b.csv", people), "m").stderr
    assert "Missing values in columns that had none in the training data contribute nothing" in said
    assert "'age' in 1 row." in said


def test_names_with_commas_are_quoted(people):
    people["a,b"] = people.pop("id")
    rows = zip(*people.values(), strict=True)
    with open("a.csv", "w") as file:
        file.write('age,job,label,"a,b"\n' + "".join(",".join(map(str, r)) + "\n" for r in rows))
    said = refused("train", "a.csv", status=1)
    assert "Leave it out with --drop '\"a,b\"'" in said
    run("train", "a.csv", "m", "--drop", '"a,b"')
    assert "no such column" in refused("train", "a.csv", "--drop", "a,b", status=1)
    assert "--drop 'a,,b'" in refused("train", "a.csv", "--drop", "a,,b")


def test_options_of_columns_are_for_tables_and_for_learning(people, iris):
    said = refused("train", iris, "--drop", "id", status=1)
    assert "--drop id has no meaning for svmlight" in said
    path = table("a.csv", people)
    run("scale", path, "out", "-s", "factors", "--drop", "id")
    assert "--restore reads the factors" in refused("scale", path, "-r", "factors", "--drop", "id")
    run("scale", path, "again", "-r", "factors")
    assert read_lines("out") == read_lines("again")
    assert "No such option" in run("predict", path, "m", "--drop", "id", status=2).stderr


def test_the_way_out_of_an_index_without_a_name_is_one():
    write_lines("a.csv", ",x,label", *(f"{k},{k % 3},{k % 2}" for k in range(12)))
    said = refused("train", "a.csv", status=1)
    assert "a column has no name" in said
    assert """Use --drop '""'""" in said
    run("train", "a.csv", "--drop", '""')
    assert "made by" in run("info", "a.csv.safetensors").stdout
    assert run("predict", "a.csv", "a.csv.safetensors", "out").stderr == ""
