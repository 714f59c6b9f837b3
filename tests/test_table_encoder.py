"""`TableEncoder`: columns of a table as numbers, by name, with categories, gaps and dates."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder
from sklearn.utils.estimator_checks import parametrize_with_checks

from widemargin import KernelSVC, TableEncoder
from widemargin.errors import IdentifierWarning, UnseenWarning

BY_NAME = "columns are found by their names, wherever they stand"


@parametrize_with_checks(
    [TableEncoder(), TableEncoder(scaling=None, sparse_output=True)],
    expected_failed_checks=lambda _: {"check_dataframe_column_names_consistency": BY_NAME},
)
def test_sklearn(estimator, check):
    check(estimator)


def people(n=120, seed=0):
    """A frame of numbers, gaps, categories, booleans and dates."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 60, n).astype(float),
            "job": rng.choice(["clerk", "smith", None], n),
            "male": rng.random(n) < 0.5,
            "pay": rng.normal(size=n),
            "since": np.datetime64("2020-01-01") + rng.integers(0, 900, n).astype("m8[D]"),
            "code": rng.integers(0, 4, n),
        }
    )
    frame.loc[::7, "age"] = np.nan
    frame.loc[3, "since"] = pd.NaT
    return frame


def make_encoder(**more):
    return TableEncoder(["job", "code"], date_features=["since"], **more)


KINDS = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "pyarrow": lambda frame: pl.from_pandas(frame).to_arrow(),
    "categories": lambda frame: frame.astype({"job": "category"}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_numbers_are_those_of_scikit_learn(kind):
    frame = people()
    found = make_encoder(sparse_output=False).fit_transform(KINDS[kind](frame))
    days = (frame["since"] - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
    numbers = np.column_stack([frame["age"], frame["male"], frame["pay"], days]).astype(float)
    filled = np.where(np.isnan(numbers), np.nanmean(numbers, axis=0), numbers)
    expected = [
        MinMaxScaler().fit_transform(filled),
        frame[["age"]].isna(),
        OneHotEncoder(sparse_output=False).fit_transform(frame[["job"]].astype(object)),
        frame[["since"]].isna(),
        OneHotEncoder(sparse_output=False).fit_transform(frame[["code"]]),
    ]
    np.testing.assert_allclose(found, np.hstack(expected).astype(float), rtol=0, atol=1e-11)


def test_names_say_where_a_column_comes_from():
    names = make_encoder().fit(people()).get_feature_names_out()
    assert names.tolist() == [
        "age", "male", "pay", "since", "age=(missing)", "job=clerk", "job=smith", "job=(missing)",
        "since=(missing)", "code=0", "code=1", "code=2", "code=3",
    ]  # fmt: skip
    assert TableEncoder().fit(np.zeros((3, 2))).get_feature_names_out().tolist() == ["x0", "x1"]


@pytest.mark.parametrize("fitted", KINDS)
@pytest.mark.parametrize("new", KINDS)
def test_columns_are_found_by_name_in_frames_of_every_library(fitted, new):
    frame = people()
    encoder = make_encoder().fit(KINDS[fitted](frame))
    shuffled = frame[["pay", "since", "code", "male", "job", "age"]].assign(other="x")
    expected = make_encoder(sparse_output=encoder.sparse_output_).fit_transform(frame)
    np.testing.assert_array_equal(encoder.transform(KINDS[new](shuffled)), expected)


def test_a_missing_column_is_named():
    encoder = make_encoder().fit(people())
    with pytest.raises(ValueError, match=r"X lacks the columns 'job'.*'age', 'male'"):
        encoder.transform(people().drop(columns="job"))


def test_what_only_new_data_has_is_said_and_counts_as_nothing():
    frame = people()
    encoder = make_encoder(sparse_output=False).fit(frame)
    new = frame.iloc[:2].assign(job=["baker", "smith"], pay=[np.nan, 0.0])
    with pytest.warns(UnseenWarning) as seen:
        found = pd.DataFrame(encoder.transform(new), columns=encoder.get_feature_names_out())
    said = [str(one.message) for one in seen]
    assert "'job' in 1 row, first 'baker'" in said[0]
    assert "count as the mean of their column: 'pay' in 1 row" in said[1]
    assert found.filter(like="job=").to_numpy().tolist() == [[0, 0, 0], [0, 1, 0]]
    scaled = (frame["pay"].mean() - frame["pay"].min()) / np.ptp(frame["pay"])
    assert found["pay"][0] == pytest.approx(scaled)


def test_numbers_and_text_mean_the_same():
    """Numbers that come as text are parsed; a number of a category is known by its text."""
    frame = pd.DataFrame({"n": [1.0, 2.5, 4.0], "c": pd.Categorical(["1", "2", "2"])})
    encoder = TableEncoder().fit(frame)
    texts = pl.DataFrame({"n": ["1", "2.5", "4.0"], "c": [1, 2, 2]})
    np.testing.assert_array_equal(encoder.transform(texts), encoder.transform(frame))
    with pytest.raises(ValueError, match="row 2, column 'n': 'two' is not a number"):
        encoder.transform(pl.DataFrame({"n": ["1", "two"], "c": ["1", "1"]}))
    mixed = pd.DataFrame({"m": ["1", "2", "3", "4", "5", "6", "7", "8", "9", "?"]})
    with pytest.raises(ValueError, match=r"9 of its 10 values are numbers, but '\?' in row 10"):
        TableEncoder().fit(mixed)


def test_dates_are_refused_unless_they_are_asked_for():
    with pytest.raises(ValueError, match=r"times in column 'since'.*date_features of wide"):
        TableEncoder().fit(people())
    by_dtype = TableEncoder(["job", "code"], date_features="from_dtype").fit_transform(people())
    np.testing.assert_array_equal(by_dtype, make_encoder().fit_transform(people()))


@pytest.mark.parametrize(
    "values",
    [
        pd.to_datetime(["2026-11-18", "2026-11-20"]),
        pd.to_datetime(["2026-11-18", "2026-11-20"]).tz_localize("UTC").tz_convert("Asia/Tokyo"),
        [datetime.date(2026, 11, 18), datetime.date(2026, 11, 20)],
        ["2026-11-18", "2026-11-20T00:00:00"],
        [20775.0, 20777.0],
    ],
    ids=["times", "zone", "dates", "text", "days"],
)
def test_dates_of_every_type_are_days(values):
    fitted = pd.DataFrame({"when": pd.to_datetime(["2026-11-17", "2026-11-27"])})
    encoder = TableEncoder(date_features=["when"], scaling=None).fit(fitted)
    assert encoder.transform(pd.DataFrame({"when": values})).ravel().tolist() == [20775, 20777]
    array = np.array(values, dtype=object).reshape(-1, 1)
    encoder = TableEncoder(date_features=[0], scaling=None).fit(array)
    assert encoder.transform(array).ravel().tolist() == [20775, 20777]


def test_what_is_no_date_is_named():
    with pytest.raises(ValueError, match="row 2, column 'when': 'soon' is not a date"):
        TableEncoder(date_features=["when"]).fit(pd.DataFrame({"when": ["2026-11-18", "soon"]}))


def test_a_column_that_numbers_rows_is_asked_about():
    frame = people().assign(number=np.arange(120), place=np.arange(120) / 7)
    with pytest.warns(IdentifierWarning, match=r"Different in every row: 'number'\..*\['number'\]"):
        make_encoder().fit(frame)


@pytest.mark.parametrize("scaling", ["minmax", None])
def test_sparse_and_dense_output_hold_the_same(scaling):
    frame = people()
    dense = make_encoder(sparse_output=False, scaling=scaling).fit(frame)
    sparse = make_encoder(sparse_output=True, scaling=scaling).fit(frame)
    found = sparse.transform(frame)
    assert sp.issparse(found)
    np.testing.assert_array_equal(found.toarray(), dense.transform(frame))
    many = pd.DataFrame({"a": np.repeat([*"abcdef"], 8), "b": np.ones(48)})
    assert sp.issparse(TableEncoder().fit_transform(many))
    assert isinstance(TableEncoder().fit_transform(many[["b"]]), np.ndarray)


def test_sparse_rows_keep_their_zeros():
    X = np.array([[0.0, -4.0], [np.nan, 0.0], [6.0, 2.0], [0.0, 0.0]])
    found = TableEncoder().fit_transform(sp.csr_array(X))
    expected = [[0, -1, 0], [1 / 3, 0, 1], [1, 0.5, 0], [0, 0, 0]]
    np.testing.assert_allclose(found.toarray(), expected)
    dense = TableEncoder(sparse_output=False).fit_transform(sp.csr_array(X))
    np.testing.assert_array_equal(dense, found.toarray())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_single_precision_stays(dtype):
    X = np.random.default_rng(0).random((9, 3)).astype(dtype)
    assert TableEncoder().fit_transform(X).dtype == dtype


def test_columns_without_values_or_spread_are_zero():
    X = np.array([[1e308, np.nan, 7.0], [-1e308 / 2, np.nan, 7.0]])
    np.testing.assert_allclose(TableEncoder().fit_transform(X), [[1, 0, 0, 1], [0, 0, 0, 1]])


def test_set_output_names_columns():
    found = make_encoder(sparse_output=False).set_output(transform="pandas").fit_transform(people())
    assert list(found.columns[:2]) == ["age", "male"]
    assert clone(make_encoder()).get_params() == make_encoder().get_params()


def test_parameters_are_checked():
    for wrong in ({"scaling": "max"}, {"sparse_output": 1}, {"date_features": 3}):
        with pytest.raises((ValueError, TypeError), match=next(iter(wrong))):
            TableEncoder(**wrong).fit(people())
    with pytest.raises(ValueError, match="date_features: there is no column 'when'"):
        TableEncoder(date_features=["when"]).fit(people())


def test_it_stands_before_a_machine():
    frame = people()
    y = (frame["pay"] > 0) ^ (frame["job"] == "smith")
    model = make_pipeline(make_encoder(), KernelSVC(C=100.0, gamma=2.0)).fit(frame, y)
    assert model.score(frame[frame.columns[::-1]], y) > 0.9


@pytest.mark.parametrize("scaling", ["minmax", None])
@pytest.mark.parametrize("rows", [7, 50])
def test_chunks_are_learned_as_the_whole(scaling, rows):
    frame = people()
    whole, chunked = (make_encoder(scaling=scaling) for _ in range(2))
    expected = whole.fit_transform(frame)
    for begin in range(0, len(frame), rows):
        chunked.partial_fit(frame.iloc[begin : begin + rows, ::-1] if begin else frame[:rows])
    assert chunked.get_feature_names_out().tolist() == whole.get_feature_names_out().tolist()
    np.testing.assert_array_equal(chunked.transform(frame), expected)
    assert chunked.fit(frame[:20]).columns_ == make_encoder().fit(frame[:20]).columns_
    with pytest.raises(ValueError, match="X has 2 features, but TableEncoder is expecting 3"):
        TableEncoder().partial_fit(np.ones((2, 3))).partial_fit(np.ones((2, 2)))


@pytest.mark.parametrize("sparse_output", [True, False])
def test_rows_are_decoded(sparse_output):
    frame = people()
    encoder = make_encoder(sparse_output=sparse_output).fit(frame)
    found = encoder.inverse_transform(encoder.transform(frame)).to_pandas()
    for name in ("age", "male", "pay"):
        np.testing.assert_allclose(found[name], frame[name].astype(float))
    days = (frame["since"] - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
    np.testing.assert_allclose(found["since"], days)
    assert found["job"].astype(object).where(found["job"].notna(), None).tolist() == [
        None if job != job else job for job in frame["job"]
    ]
    assert abs(encoder.transform(found) - encoder.transform(frame)).max() < 1e-12
