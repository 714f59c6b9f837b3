"""Which columns have categories: by dtype, by name or number, and what is refused."""

from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.utils import get_tags

from widemargin import AdditiveSVC, KernelSVC, TableEncoder

svc = partial(AdditiveSVC, "intersection", missing="learn", random_state=0)


@pytest.mark.parametrize(
    ("given", "columns"),
    [
        (None, []),
        ("from_dtype", [1]),
        (["code"], [0]),
        (np.array(["code", "word"]), [0, 1]),
        ([1], [1]),
        ([-1, 0], [0, 2]),
        ([True, True, False], [0, 1]),
        (np.array([False, False, False]), []),
        ([], []),
    ],
)
def test_which_columns_are_categories(given, columns):
    X = pd.DataFrame({"code": [1, 2, 1, 2], "word": list("aabb"), "flag": [True, False] * 2})
    if 1 not in columns:
        X["word"] = [1.5, 2.5, 3.5, 4.5]
    model = AdditiveSVC(categorical_features=given).fit(X, [0, 1, 0, 1])
    assert list(model.columns_.categories) == columns


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("auto", "must be 'from_dtype', None, a list of names"),
        (7, "must be 'from_dtype', None, a list of names"),
        ([1.5], "must be 'from_dtype', None, a list of names"),
        ([[1]], "must be 'from_dtype', None, a list of names"),
        (["sex"], r"there is no column 'sex'; X has \['code', 'word'\]"),
        ([2], "there is no column 2 among 2"),
        ([True], "is a mask of 1 columns, but X has 2"),
    ],
)
def test_columns_that_are_not_there_are_named(given, said):
    X = pd.DataFrame({"code": [1, 2, 1, 2], "word": list("aabb")})
    with pytest.raises(ValueError, match=f"categorical_features.*{said}"):
        AdditiveSVC(categorical_features=given).fit(X, [0, 1, 0, 1])


def test_arrays_have_categories_only_where_they_are_named():
    X = np.array([[1.0, 5.0], [2.0, 6.0], [1.0, 7.0], [np.nan, 8.0]])
    model = svc(categorical_features=[0]).fit(X, [0, 1, 0, 1])
    assert model.columns_.categories == {0: ("1", "2")}
    assert model.predict(X).tolist() == [0, 1, 0, 1]
    words = np.array([["a", 5.0], ["b", 6.0], ["a", 7.0], ["b", 8.0]], dtype=object)
    model = svc(categorical_features=[0]).fit(words, [0, 1, 0, 1])
    assert model.predict(words).tolist() == [0, 1, 0, 1]
    for refused in (words, words.astype(str)):
        with pytest.raises(ValueError):
            svc().fit(refused, [0, 1, 0, 1])
    with pytest.raises(ValueError, match="has no names of columns"):
        svc(categorical_features=["a"]).fit(X, [0, 1, 0, 1])
    with pytest.raises(ValueError, match="make it dense"):
        svc(categorical_features=[0]).fit(sp.csr_array(X), [0, 1, 0, 1])


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ([str(i) for i in range(100)], r"all of its values are numbers\. Use X\.astype\(\{'a': fl"),
        (
            [*map(str, range(99)), "?"],
            r"'\?' in row 100 is not\. Use X\['a'\]\.replace\('\?', Non",
        ),
        (
            [f"id{i}" for i in range(100)],
            r"100 different texts in 100 rows.*X\.drop\(columns='a",
        ),
    ],
)
def test_text_that_is_not_likely_to_be_categories_is_refused_until_it_is_declared(column, said):
    X = pd.DataFrame({"a": pd.array(column, dtype="str")})
    y = np.arange(100) % 2
    with pytest.raises(ValueError, match=f"column 'a': .*{said}"):
        AdditiveSVC().fit(X, y)
    assert AdditiveSVC().fit(X.astype("category"), y).score(X, y) == 1


def test_what_missing_may_be():
    with pytest.raises(ValueError, match=r"missing='drop' is not known\. Use one of 'error', 'l"):
        AdditiveSVC(missing="drop").fit(np.eye(4), [0, 0, 1, 1])
    assert get_tags(svc()).input_tags.allow_nan
    assert not get_tags(AdditiveSVC()).input_tags.allow_nan
    assert not get_tags(KernelSVC()).input_tags.allow_nan


def arrow_columns():
    texts = ["b", None, "a", "b", "c", "a"]
    twice = pa.DictionaryArray.from_arrays(
        pa.array([2, None, 0, 1, 3, 0]), ["a", "b", "b", "c", "d"]
    )
    chunks = [pa.array(texts[:2]).dictionary_encode(), pa.array(texts[2:]).dictionary_encode()]
    return {
        "text": pa.chunked_array([texts[:4], texts[4:]]),
        "large": pa.chunked_array([pa.array(texts, pa.large_string())]),
        "dictionary": pa.chunked_array(chunks),
        "twice": pa.chunked_array([twice]),
        "numbers": pa.chunked_array(
            [pa.array([2.0, None, 1.0, 2.0, 3.5, 1.0]).dictionary_encode()]
        ),
        "nothing": pa.chunked_array([pa.array([None] * 6, pa.string())]),
    }


@pytest.mark.parametrize("name", ["text", "large", "dictionary", "twice", "numbers", "nothing"])
def test_texts_of_arrow_are_those_of_their_values_one_by_one(name):
    column = arrow_columns()[name]
    values = np.array(column.to_pylist(), dtype=object)[:, None]
    of_arrow, of_values = (
        TableEncoder(categorical_features=[0], sparse_output=False).fit(X)
        for X in (pa.table({"a": column}), values)
    )
    assert of_arrow.columns_.categories == of_values.columns_.categories
    np.testing.assert_array_equal(
        of_arrow.transform(pa.table({"a": column})), of_values.transform(values)
    )
