"""Data frames whose columns are no numbers: machines that do not take them name the way out."""

import json
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from persistence.damage import Parts

from widemargin import AdditiveSVC, KernelSVC, load, save
from widemargin.persistence import read_header

Y = [0, 1, 0, 1]
DAYS = pd.date_range("2026-01-01", periods=4)

each_machine = pytest.mark.parametrize("machine", [AdditiveSVC, KernelSVC])
numbers_only = pytest.mark.parametrize(
    "machine",
    [partial(AdditiveSVC, categorical_features=None), KernelSVC],
    ids=["Additive", "Kernel"],
)
each_library = pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])


def frame(**columns) -> pd.DataFrame:
    return pd.DataFrame({"age": [31.0, 25.0, 60.0, 44.0], **columns})


TIMES = {
    "days": frame(when=DAYS),
    "days only": frame(when=DAYS)[["when"]],
    "with a zone": frame(when=DAYS.tz_localize("UTC")),
    "durations": frame(when=DAYS - DAYS[0]),
    "durations only": frame(when=DAYS - DAYS[0])[["when"]],
    "of polars": pl.from_pandas(frame(when=DAYS)),
}


@each_machine
@pytest.mark.parametrize("X", TIMES.values(), ids=TIMES)
def test_times_are_refused_by_the_name_of_their_column(machine, X):
    with pytest.raises(ValueError, match=r"dates or times in column 'when'\. Turn them into num"):
        machine().fit(X, Y)


@each_machine
def test_times_are_refused_at_prediction_too(machine):
    model = machine().fit(frame(when=[1, 2, 3, 4]), Y)
    with pytest.raises(ValueError, match="dates or times in column 'when'"):
        model.predict(frame(when=DAYS))
    with pytest.raises(ValueError, match="dates or times in all of its columns"):
        machine().fit(np.array(DAYS)[:, None], Y)


@each_machine
def test_the_na_of_pandas_among_objects_is_named(machine):
    model = machine().fit(frame(kids=[1, 2, 3, 4]), Y)
    row = frame(kids=[1, 2, 3, 4]).iloc[:1].assign(kids=pd.NA)  # of dtype object
    with pytest.raises(ValueError, match=r"NA among objects in column 'kids'.*astype\('Float64'\)"):
        model.predict(row)
    with pytest.raises(ValueError, match="NA among objects"):
        machine().fit(np.array([[1], [2], [3], [pd.NA]], dtype=object), Y)


@numbers_only
@each_library
def test_columns_of_text_are_named(machine, library):
    X = library.DataFrame({"age": [1, 2, 3, 4], "sex": list("mfmf"), "job": list("xyxy")})
    with pytest.raises(ValueError, match="text or other objects in columns 'sex', 'job'"):
        machine().fit(X, Y)


@numbers_only
@pytest.mark.parametrize("kind", ["category", "string", object])
def test_every_kind_of_text_is_named(machine, kind):
    X = frame(sex=pd.Series(list("mfmf"), dtype=kind))
    with pytest.raises(ValueError, match="in column 'sex'"):
        machine().fit(X, Y)


@numbers_only
def test_many_columns_of_text_are_counted(machine):
    X = frame(**{f"c{i}": list("mfmf") for i in range(12)})
    with pytest.raises(ValueError, match=r"columns 'c0', .*'c9' and 2 more"):
        machine().fit(X, Y)


@each_machine
def test_numbers_as_objects_are_numbers_still(machine):
    X = frame(pay=pd.Series([1, 2.5, "3", 4], dtype=object), n=pd.array([1, 2, 3, 4], "Int64"))
    expected = machine(random_state=0).fit(X.astype(float), Y).predict(X.astype(float))
    np.testing.assert_array_equal(machine(random_state=0).fit(X, Y).predict(X), expected)


@each_machine
@each_library
def test_a_missing_value_is_named_by_its_column(machine, library):
    X = library.DataFrame({"age": [1.0, 2.0, 3.0, 4.0], "pay": [1.0, 2.0, None, 4.0]})
    with pytest.raises(ValueError, match="contains NaN at row 2, column 'pay'") as error:
        machine().fit(X, Y)
    assert 'TableEncoder, or learn from them with AdditiveSVC(missing="learn").' in str(error.value)


@pytest.mark.filterwarnings("ignore:Feature")
def test_values_whose_squares_overflow_are_named_by_their_column():
    X = frame(pay=[1.0, 2.0, -1e300, 3.0])
    with pytest.raises(ValueError, match=r"column 'pay' reaches 1e\+300\. Scale the features"):
        KernelSVC().fit(X, Y)
    AdditiveSVC().fit(X, Y)


# ------------------------------------------------------------------ the label's name

SERIES = {"pandas": pd.Series(Y, name="sort"), "polars": pl.Series("sort", Y)}


@each_machine
@pytest.mark.parametrize("y", SERIES.values(), ids=SERIES)
def test_a_named_series_names_the_label(machine, y, tmp_path):
    model = machine().fit(frame(), y)
    assert model.label_name_ == "sort"
    save(model, tmp_path / "m")
    assert load(tmp_path / "m").label_name_ == read_header(tmp_path / "m").label_name == "sort"
    assert [each.label_name_ for each in machine().fit_path(frame(), y, [1, 2])] == ["sort"] * 2
    for unnamed in (Y, pd.Series(Y), pl.Series(Y), pd.Series(Y, name=3)):
        assert not hasattr(model.fit(frame(), unnamed), "label_name_")
    save(model, tmp_path / "m")
    assert read_header(tmp_path / "m").label_name is None


def test_a_label_s_name_in_a_file_is_text(tmp_path):
    save(AdditiveSVC().fit(frame(), SERIES["pandas"]), tmp_path / "m")
    parts = Parts.of(tmp_path / "m")
    text = json.dumps(parts.header)
    assert text.count('"sort"') == 1
    (tmp_path / "m").write_bytes(parts.content(text.replace('"sort"', "12345678")))
    for reader in (load, read_header):
        with pytest.raises(ValueError, match="label_name must be text, not 12345678"):
            reader(tmp_path / "m")
