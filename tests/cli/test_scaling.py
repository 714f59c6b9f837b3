"""scale, against scikit-learn's scalers."""

import numpy as np
import pytest
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from widemargin import read

from .helpers import (
    IRIS,
    SIGN,
    TWO,
    read_lines,
    run,
    table,
    write,
    write_lines,
)


def scaled(*words) -> np.ndarray:
    run("scale", *words, "scaled.txt")
    return read("scaled.txt").X.toarray()


@pytest.mark.parametrize(
    ("words", "scaler"),
    [
        ((), MinMaxScaler((-1, 1))),
        (("-l", "0", "-u", "2"), MinMaxScaler((0, 2))),
        (("--method", "maxabs"), MaxAbsScaler()),
        (("--method", "standard"), StandardScaler()),
    ],
)
def test_scale_and_restore(iris, words, scaler):
    test = write("test.txt", TWO[:20] + 1, SIGN[:20])
    first = scaled(iris, *words, "-s", "factors")
    rounding = {"rtol": 1e-14, "atol": 0.0 if "--method" in words else 5e-16}  # svm-scale's formula
    np.testing.assert_allclose(first, scaler.fit(IRIS).transform(IRIS), **rounding)
    again = scaled(test, "-r", "factors")
    np.testing.assert_allclose(again, scaler.transform(read(test).X.toarray()), **rounding)
    assert [line.split()[0] for line in read_lines("scaled.txt")] == [str(s) for s in SIGN[:20]]


def test_scale_keeps_zero_based_features_and_queries():
    write_lines("train.txt", "1 qid:1 0:1 1:4", "2 qid:2 0:3 1:8")
    write_lines("test.txt", "1 qid:7 1:6")
    run("scale", "train.txt", "out", "--method", "maxabs", "-s", "factors")
    assert read_lines("out") == ["1 qid:1 0:0.3333333333333333 1:0.5", "2 qid:2 0:1 1:1"]
    assert run("scale", "test.txt", "-r", "factors").stdout == "1 qid:7 1:0.75\n"


def test_scale_of_a_table_without_labels():
    table("a.csv", {"a": [1, 2], "b": [4, 8]})
    printed = run("scale", "a.csv", "--label", "none", "--method", "maxabs").stdout
    assert printed == "0 1:0.5 2:0.5\n0 1:1 2:1\n"
