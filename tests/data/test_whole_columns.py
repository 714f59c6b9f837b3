"""Tables as they are: categories and gaps kept, for a machine that takes them."""

import gzip
import io
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from widemargin import AdditiveSVC, read
from widemargin.data.tables import read_table

ROWS = b"age,job,pay,label\n31,smith,1.5,yes\n,clerk,?,no\n60,,3.5,no\n44,smith,2.5,yes\n"


def whole(content: bytes, **options):
    return read(io.BytesIO(content), **{"one_hot": False, **options})


def same(found, expected) -> bool:
    """Whether the columns are, missing values too."""
    return found.X.to_pandas().equals(expected.X.to_pandas())


def test_columns_stay_as_they_are():
    data = whole(ROWS, na=["?"])
    assert data.X.column_names == data.feature_names.tolist() == ["age", "job", "pay"]
    assert data.X["age"].to_pylist() == [31.0, pytest.approx(np.nan, nan_ok=True), 60.0, 44.0]
    assert pa.types.is_dictionary(data.X["job"].type)
    assert data.X["job"].to_pylist() == ["smith", "clerk", None, "smith"]
    said = "2 numeric, 1 categorical (job 2), 3 values missing (age 1, job 1, pay 1)"
    assert str(data.columns) == said
    assert data.layout.categorical == (1,)
    model = AdditiveSVC(missing="learn", random_state=0).fit(data.X, data.y)
    assert model.predict(data.X).tolist() == ["yes", "no", "no", "yes"]


def test_the_rule_is_that_of_other_machines():
    with pytest.raises(ValueError, match="column 'pay': 10 of its 11 values are numbers"):
        whole(b"pay,label\n" + 10 * b"1,yes\n" + b"x,no\n")
    data = whole(ROWS, numeric=["pay"], na=["?"], drop=["job"])
    assert data.X.column_names == ["age", "pay"]
    assert whole(ROWS, categorical=["age"], na=["?"]).layout.categorical == (0, 1)


def test_new_data_is_read_likewise_whatever_the_order_of_its_columns():
    data = whole(ROWS, na=["?"])
    new = b"id,pay,job,age\n1,?,pilot,20\n2,3,7,\n"
    with pytest.warns(UserWarning, match="does not use the columns 'id'"):
        found = read(io.BytesIO(new), like=data.layout)
    assert found.X.column_names == ["age", "job", "pay"]
    assert found.X["job"].to_pylist() == ["pilot", "7"]
    assert np.isnan(found.X["pay"].to_numpy()).tolist() == [True, False]
    assert found.layout.categorical == (1,)
    with pytest.raises(ValueError, match="the model's columns 'pay' are missing"):
        read(io.BytesIO(b"age,job\n1,a\n"), like=data.layout)
    with pytest.raises(ValueError, match="row 1, column 'pay': 'much' is not a number"):
        read(io.BytesIO(b"age,job,pay\n1,a,much\n"), like=data.layout)


def test_missing_values_are_refused_where_categories_become_features():
    with pytest.raises(ValueError, match="or learn from them with AdditiveSVC"):
        read(io.BytesIO(ROWS), na=["?"])


def test_parquet_and_arrow_are_taken_like_text(tmp_path):
    frame = pd.read_csv(io.BytesIO(ROWS), na_values="?")
    frame.to_parquet(tmp_path / "a.parquet")
    frame.astype({"job": "category"}).to_feather(tmp_path / "a.arrow")
    expected = whole(ROWS, na=["?"]).X.to_pandas()
    for name in ("a.parquet", "a.arrow"):
        found = read(tmp_path / name, one_hot=False).X.to_pandas()
        pd.testing.assert_frame_equal(found, expected, check_categorical=False)


# ------------------------------------------------------------------ blanks after commas


def test_blanks_after_commas_count_as_nothing():
    spaced = ROWS.replace(b",", b", ")
    expected = whole(ROWS, na=["?"])
    found = whole(spaced, na=["?"])
    assert same(found, expected)
    assert found.y.tolist() == expected.y.tolist()
    assert (found.label_name, found.columns) == ("label", expected.columns)
    one_hot = read(io.BytesIO(b"a, job, label\n1, smith, x\n2, a b , y\n"))
    assert one_hot.feature_names.tolist() == ["a", "job=a b ", "job=smith"]
    assert one_hot.y.tolist() == ["x", "y"]


def test_blanks_in_other_files_are_text(tmp_path):
    pd.DataFrame({"a": [" x", "y"], "label": [0, 1]}).to_parquet(tmp_path / "a.parquet")
    found = read_table(tmp_path / "a.parquet", "parquet")
    assert found.feature_names.tolist() == ["a= x", "a=y"]


# ------------------------------------------------------------------ zip archives


def zipped(*names: str, content: bytes = ROWS) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, content)
    return file.getvalue()


def test_the_only_file_of_a_zip_archive_is_read(tmp_path):
    expected = whole(ROWS, na=["?"])
    (tmp_path / "a.zip").write_bytes(zipped("folder/a.csv"))
    assert same(read(tmp_path / "a.zip", na=["?"], one_hot=False), expected)
    assert same(whole(gzip.compress(ROWS), na=["?"]), expected)
    np.savez(tmp_path / "a.npz", X=np.eye(2), y=[0, 1])
    assert read(tmp_path / "a.npz").X.tolist() == np.eye(2).tolist()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (zipped("a", "b"), r"2 files in a zip archive, of .* a spreadsheet, .* as CSV\.$"),
        (zipped("a")[:80], "damaged"),
        (zipped("a", content=ROWS * 99).replace(b"PK\x01\x02", b"PK\x01\x03"), "damaged"),
    ],
    ids=["two files", "cut off", "another signature"],
)
def test_other_zip_archives_are_refused(content, said, tmp_path):
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(ValueError, match=f"a.zip: .*{said}"):
        read(tmp_path / "a.zip")


def test_every_damaged_byte_of_a_zip_archive_is_refused_or_read(tmp_path):
    content, path = zipped("a.csv"), tmp_path / "a.zip"
    refused = 0
    for k in range(len(content)):
        path.write_bytes(content[:k] + bytes([content[k] ^ 0xFF]) + content[k + 1 :])
        try:
            read(path, na=["?"], one_hot=False)
        except ValueError:
            refused += 1
    assert refused > len(content) / 4
