"""Numbers or categories: the rule, what it refuses, and the ways out."""

import io

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from widemargin.data import Columns, stream
from widemargin.data import read as read_file

from .table_helpers import BINARY, columns, pa, read, read_arrow

N = 200
AGES = [str(18 + i % 60) for i in range(N)]


def text(ages, more="") -> str:
    return f"age{more and ',more'},label\n" + "".join(
        f"{age}{more and ','}{more},{i % 2}\n" for i, age in enumerate(ages)
    )


def with_question_mark(every: int = 50) -> list[str]:
    return ["?" if i % every == every - 1 else age for i, age in enumerate(AGES)]


# ------------------------------------------------------------------ an index among the columns


@pytest.mark.parametrize(
    "reads", [read_file, lambda path, **more: next(iter(stream(path, **more)))]
)
def test_the_index_of_a_frame_is_refused_with_the_ways_out(reads, tmp_path):
    """It tells rows apart by their place, and perhaps their class with it."""
    frame = pd.DataFrame({"a": np.arange(6.0), "label": [0, 1] * 3}).sample(frac=1, random_state=0)
    path = tmp_path / "frame.csv"
    frame.to_csv(path)
    with pytest.raises(ValueError, match="a column has no name, like the index") as seen:
        reads(path)
    assert str(seen.value).endswith("Use drop=[''], numeric=[''] or categorical=['']")
    assert reads(path, drop=[""]).feature_names.tolist() == ["a"]
    assert reads(path, numeric=[""]).feature_names.tolist() == ["", "a"]
    assert reads(path, label="").label_name == ""
    frame.to_parquet(path)  # which says itself that it is one
    assert reads(path).feature_names.tolist() == ["a"]


# ------------------------------------------------------------------ nearly numbers


def test_a_question_mark_among_numbers_is_refused_with_the_ways_out():
    with pytest.raises(ValueError) as caught:
        read(text(with_question_mark()))
    assert str(caught.value) == (
        "the file: column 'age': 196 of its 200 values are numbers, but '?' in row 50 is not. "
        "Use na=['?'] if that stands for a missing value, categorical=['age'] if all of them are "
        "categories, or drop=['age']"
    )


@pytest.mark.parametrize(
    "pay",
    [
        ["1,5", "2", "-0,25"],
        ["1,234", "12", "1,234,567.5"],
        ["1.234,5", "12", "1.234.567,25"],
    ],
)
def test_numbers_with_commas_are_refused_with_the_ways_out(pay):
    rows = "".join(f"{pay[i % 3]};{i % 2}\n" for i in range(30))
    with pytest.raises(ValueError) as caught:
        read(f"pay;label\n{rows}")
    assert str(caught.value) == (
        f"the file: column 'pay': {pay[0]!r} in row 1 is a number with a comma. Write decimals "
        "with a point and thousands with nothing between them; or use categorical=['pay'] if these "
        "are categories, or drop=['pay']"
    )
    assert read(f"pay;label\n{rows}", categorical=["pay"]).columns.categorical == {"pay": 3}
    others = "".join(f"{('a, b', *pay)[i % 4]};{i % 2}\n" for i in range(30))
    assert read(f"pay;label\n{others}").columns.categorical == {"pay": 4}


@pytest.mark.parametrize(("every", "refused"), [(10, True), (9, False)])
def test_nine_in_ten_are_nearly_all(every, refused):
    ages = with_question_mark(every)
    if refused:
        with pytest.raises(ValueError, match="are numbers, but"):
            read(text(ages))
    else:
        assert read(text(ages)).columns.categorical == {"age": len(set(ages))}


@pytest.mark.parametrize("write", BINARY.values(), ids=BINARY)
def test_text_that_is_all_numbers_is_refused(write):
    content = write[0](pa.table({"age": AGES, "label": [0, 1] * (N // 2)}))
    with pytest.raises(ValueError, match="is text, but all of its values are numbers") as caught:
        read_file(io.BytesIO(content))
    assert "Use numeric=['age'], categorical=['age'] or drop=['age']" in str(caught.value)
    data = read_file(io.BytesIO(content), numeric=["age"])
    assert_array_equal(data.X["age"], np.array(AGES, float))
    data = read_file(io.BytesIO(content), categorical=["age"])
    assert data.columns.categorical == {"age": 60}


@pytest.mark.parametrize("write", [pd.DataFrame.to_parquet, pd.DataFrame.to_feather])
def test_what_the_file_calls_a_category_is_one(write):
    frame = pd.DataFrame({"zip": pd.Categorical(AGES), "id": pd.Categorical(map(str, range(N)))})
    sink = io.BytesIO()
    write(frame.assign(label=[0, 1] * (N // 2)), sink)
    data = read_file(io.BytesIO(sink.getvalue()))
    assert data.columns == Columns([], {"zip": 60, "id": N}, [])


# ------------------------------------------------------------------ nearly every row another


def test_a_column_of_texts_that_hardly_repeat_is_refused_with_the_ways_out():
    ids = [f"id{i}" for i in range(N)]
    with pytest.raises(ValueError) as caught:
        read(text(ids).replace("age", "id", 1))
    assert str(caught.value) == (
        "the file: column 'id': 200 different texts in 200 rows, too many to be categories. Leave "
        "it out with drop=['id'], or keep it with categorical=['id']"
    )


@pytest.mark.parametrize(("n", "categories"), [(100, 50), (102, 51), (50, 50), (51, 50)])
def test_fifty_values_or_half_as_many_as_rows_are_fine(n, categories):
    data = read(text([f"v{i % categories}" for i in range(n)]))
    assert data.columns.categorical == {"age": categories}
    with pytest.raises(ValueError, match="too many to be categories"):
        read(text([f"v{i % (categories + 2)}" for i in range(max(n, 52))]))


# ------------------------------------------------------------------ the ways out


def test_values_that_count_as_missing():
    assert read(text(with_question_mark()), na=["?"]).columns.missing == {"age": 4}
    data = read_arrow({"s": ["u", "?", "v"], "label": [0, 1, 0]}, na=["?"])
    assert columns(data) == {"s": ["u", None, "v"]}
    data = read_arrow({"a": [1, -999, 3], "label": [0, 1, 0]}, na=["-999"])
    assert columns(data) == {"a": [1, None, 3]}
    data = read("a,s,label\n1, u,0\n2, ?,1\n", na=["?"])
    assert columns(data) == {"a": [1, 2], "s": ["u", None]}


def test_columns_that_are_left_out():
    data = read("id,age,job,label\nk1,31,smith,1\nk2,25,clerk,0\n", drop=["id", "age"])
    assert columns(data) == {"job": ["smith", "clerk"]}
    assert str(data.columns) == "0 numeric, 1 categorical (job 2), 2 dropped (id, age)"


def test_columns_that_are_left_out_may_hold_anything():
    text = "when,age,gap,label\n2020-01-01,3,,1\n2020-01-02,4,,0\n"
    assert columns(read(text, drop=["when", "gap"])) == {"age": [3, 4]}


def test_numbers_as_categories():
    data = read("zip,label\n01,1\n1,0\n01,0\n", categorical=["zip"])
    assert columns(data) == {"zip": ["01", "1", "01"]}


def test_text_that_is_said_to_be_numbers():
    with pytest.raises(
        ValueError, match=r"row 3, column 'a': 'x' is not a number\. Use na=\['x'\]"
    ):
        read("a,label\n1,1\n2,0\nx,0\n", numeric=["a"])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"drop": ["nme"]}, r"drop=\['nme'\]: no such column; there are 'a', 'b', 'label'"),
        ({"numeric": ["c"]}, r"numeric=\['c'\]: no such column"),
        ({"categorical": ["label"]}, r"categorical=\['label'\]: that is the label's column"),
        ({"drop": ["a"], "numeric": ["a"]}, r"drop=\['a'\] contradicts numeric=\['a'\]"),
        ({"drop": ["a", "b"]}, "no feature columns"),
    ],
)
def test_what_cannot_be_done(options, says):
    with pytest.raises(ValueError, match=says):
        read("a,b,label\n1,2,3\n", **options)


def test_names_come_in_lists():
    with pytest.raises(TypeError, match="drop must be a list of texts, got 'ab'"):
        read("a,b,label\n1,2,3\n", drop="ab")
    with pytest.raises(ValueError, match=r"na=\['\?'\] has no meaning for svmlight"):
        read_file(io.BytesIO(b"1 1:2\n"), na=["?"])


# ------------------------------------------------------------------ what is remembered


def test_new_data_need_none_of_it_again():
    rows = "id,zip,age,job,kind\nk1,01,31,smith,x\nk2,1,25,clerk,y\nk3,1,40,clerk,y\n"
    data = read(rows, label="kind", categorical=["zip"], drop=["id"], na=["?"])
    assert str(data.columns) == "1 numeric, 2 categorical (zip 2, job 2), 1 dropped (id)"
    again = read_file(io.BytesIO(rows.encode()), like=data.layout)
    assert columns(again) == columns(data)
    assert_array_equal(again.y, data.y)
    new = "age,job,zip,id\n31,clerk,1,k9\n"
    found = read_file(io.BytesIO(new.encode()), like=data.layout)
    assert columns(found) == {"zip": ["1"], "age": [31], "job": ["clerk"]}
    found = read_file(io.BytesIO(new.replace("31", "?").encode()), like=data.layout)
    assert columns(found)["age"] == [None]


def test_text_where_the_model_has_numbers_is_parsed():
    data = read_arrow({"a": ["1", " 2.5e1", "-.5"]}, columns=["a"])
    assert columns(data) == {"a": [1, 25, -0.5]}


def test_a_model_s_columns_are_settled():
    with pytest.raises(ValueError, match=r"row 1, column 'a': '\?' is not a number\. The model"):
        read("a,b\n?,1\n", columns=["a", "b"])
    assert columns(read("a,b\n?,1\n", columns=["a", "b"], na=["?"])) == {"a": [None], "b": [1]}
    with pytest.raises(ValueError, match=r"drop=\['b'\] has no effect, because the model deter"):
        read("a,b\n2,1\n", columns=["a", "b"], drop=["b"])


def test_a_report_names_some_of_many():
    many = {f"c{i}": i for i in range(12)}
    expected = "c0 0, c1 1, c2 2, c3 3, c4 4, c5 5, c6 6, c7 7 and 4 more"
    assert str(Columns([], many, [])) == f"0 numeric, 12 categorical ({expected})"
