"""Tables in pieces: the chunks are together what `read` has of the whole file."""

import errno
import gzip
import io
import os
import shutil
import tempfile
import threading

import numpy as np
import pytest

from widemargin.budget import Budget
from widemargin.data import read, reading, stream
from widemargin.data.table_files import whole_records

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")

ROWS = 300


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(reading, "_CHUNK_BYTES", 1000)


def table():
    """Numbers, counts that become fractions, categories of which some come late, and zeros."""
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 9, ROWS).astype(float)
    counts[250:] += 0.5
    jobs = rng.choice(["smith", "clerk", "a, b", 'a "b"'], ROWS).astype(object)
    jobs[280:] = "abbot"
    return {
        "age": rng.normal(size=ROWS).round(3),
        "count": counts,
        "job": jobs,
        "zero": rng.integers(0, 2, ROWS),
        "label": rng.choice(["yes", "no"], ROWS),
    }


def saved(kind, folder, columns):
    frame = pa.table(columns)
    path = folder / f"data.{kind}"
    if kind == "parquet":
        pa.parquet.write_table(frame, path, row_group_size=70)
        return path
    if kind in ("arrow", "arrows", "lz4"):
        new = pa.ipc.new_stream if kind == "arrows" else pa.ipc.new_file
        options = pa.ipc.IpcWriteOptions(compression="lz4" if kind == "lz4" else None)
        with new(path, frame.schema, options=options) as writer:
            writer.write_table(frame, max_chunksize=70)
        return path
    text = io.BytesIO()
    columns = [[_spelled(v) for v in column] for column in columns.values()]
    rows = [",".join(row) for row in zip(*columns, strict=True)]
    content = "\n".join([",".join(frame.column_names), *rows]) + "\n"
    text = content.replace(",", "\t").replace("a\t b", "a, b") if kind == "tsv" else content
    data = text.encode()
    path.write_bytes(gzip.compress(data) if kind.endswith("gz") else data)
    return path


def _spelled(value):
    if isinstance(value, str):
        quoted = value.replace('"', '""')
        return f'"{quoted}"' if set(value) & set(',"\n') else value
    if np.isnan(value):
        return ""
    return repr(float(value)) if value != int(value) else str(int(value))


def values(tables):
    """Types and values of columns, those that are missing as None."""
    together = pa.concat_tables(tables).unify_dictionaries()
    return {
        name: (column.type, [None if v != v else v for v in column.to_pylist()])
        for name, column in zip(together.column_names, together.columns, strict=True)
    }


def same(path, **options):
    chunks = list(stream(path, **options))
    whole = read(path, **options)
    assert len(chunks) > 3
    assert values([chunk.X for chunk in chunks]) == values([whole.X])
    np.testing.assert_array_equal(np.concatenate([c.y for c in chunks]), whole.y)
    for chunk in chunks:
        assert chunk.feature_names.tolist() == whole.feature_names.tolist()
        assert chunk.label_name == whole.label_name
        assert chunk.columns == whole.columns
        assert chunk.na == whole.na
    return whole


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "tsv", "parquet", "arrow", "arrows", "lz4"])
def test_chunks_are_what_is_read(kind, tmp_path):
    columns = table()
    columns["age"][[3, 200]] = np.nan
    whole = same(saved(kind, tmp_path, columns), na=["clerk"])
    assert whole.columns.categorical == {"job": 4}
    assert whole.columns.missing["age"] == 2
    assert whole.columns.missing["job"] > 20
    assert whole.feature_names.tolist() == list(columns)[:-1]


def test_a_column_of_numbers_with_text_at_its_end_is_text_from_its_start(tmp_path):
    columns = table()
    columns["code"] = [f"0{k % 3}" for k in range(ROWS)]
    columns["code"][-70:] = ["none"] * 70
    whole = same(saved("csv", tmp_path, columns), label="label")
    assert "01" in whole.X["code"].to_pylist()


def test_what_is_said_of_columns_is_heeded(tmp_path):
    columns = table()
    columns["zip"] = [f"{k % 7}" for k in range(ROWS)]
    columns["part"] = ["?" if k % 9 == 0 else f"{k}" for k in range(ROWS)]
    path = saved("csv", tmp_path, columns)
    same(path, categorical=["zip"], drop=["part", "age"])
    columns["part"] = ["7" if k % 2 else f"{k}" for k in range(ROWS)]
    same(saved("parquet", tmp_path, columns), numeric=["part", "zip"])


def test_a_file_without_a_header(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("".join(f"{k},{k % 5},{k % 2}\n" for k in range(400)))
    same(path, label=-1)


def refusals(path, **options):
    """What streaming and reading say."""
    said = []
    for function in (lambda *a, **k: list(stream(*a, **k)), read):
        with pytest.raises(ValueError, match="data") as caught:
            function(path, **options)
        said.append(str(caught.value))
    return said


@pytest.mark.parametrize(
    ("change", "options"),
    [
        ({"job": [f"text {k}" for k in range(ROWS)]}, {}),
        ({"job": [f"{k % 4}" for k in range(ROWS - 1)] + ["?"]}, {}),
        ({}, {"label": "nobody"}),
        ({}, {"drop": ["nobody"]}),
        ({}, {"drop": ["age", "count", "job", "zero"]}),
    ],
    ids=["unlike", "nearly", "label", "drop", "all"],
)
def test_what_is_refused_is_refused_in_the_same_words(change, options, tmp_path):
    streamed, whole = refusals(saved("parquet", tmp_path, table() | change), **options)
    assert streamed == whole


def test_a_missing_label_is_named_by_its_place(tmp_path):
    columns = table()
    columns["label"] = ["yes", *columns["label"][1:].tolist()]
    columns["label"][200] = None
    frame = pa.table(columns)
    pa.parquet.write_table(frame, tmp_path / "data.parquet")
    streamed, whole = refusals(tmp_path / "data.parquet")
    assert "row 201, column 'label'" in whole
    assert "of the rows after the first" in streamed
    first, row = (int(streamed.split(word)[1].split()[0].strip(":,")) for word in ("first", "row "))
    assert first + row == 201


def test_truths_among_numbers_are_refused_with_the_way_out(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,label\n" + "1,0\n" * 400 + "true,1\n" * 400)
    with pytest.raises(ValueError, match=r"data.csv: column 'a': true and false in some rows, .*"
                       r"categorical=\['a'\] or drop=\['a'\]"):  # fmt: skip
        list(stream(path))
    same(path, categorical=["a"])


@pytest.mark.parametrize("n_bytes", [1, 2, 5, 100])
def test_records_stay_whole(n_bytes):
    text = b'1,"a\nb"\n2,"c ""\n"" d"\n\n3,e\n4,f'
    pieces = list(whole_records(b"", io.BytesIO(text), n_bytes, Budget(None, "")))
    assert b"".join(pieces) == text
    assert all(piece.count(b'"') % 2 == 0 for piece in pieces)
    assert all(piece.endswith(b"\n") for piece in pieces[:-1])
    assert len(pieces) > 1 or n_bytes == 100


# ------------------------------------------------------------------ Arrow


@pytest.mark.parametrize("kind", ["arrow", "arrows", "lz4"])
def test_batches_of_arrow_files_and_streams(kind, tmp_path):
    columns = table() | {"job": pa.array(table()["job"].tolist()).dictionary_encode()}
    assert "abbot" in same(saved(kind, tmp_path, columns)).X["job"].to_pylist()


def test_one_large_batch_is_handed_on_in_pieces(tmp_path):
    with pa.ipc.new_file(tmp_path / "a", pa.table(table()).schema) as writer:
        writer.write_table(pa.table(table()))
    assert max(chunk.X.shape[0] for chunk in stream(tmp_path / "a")) < 60


@pytest.mark.parametrize("kind", ["arrow", "arrows"])
def test_memory_is_asked_for_one_batch_and_not_for_all(kind, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    columns = {f"a{j}": rng.random(40_000) for j in range(20)} | {"label": np.arange(40_000) % 2}
    path = saved(kind, tmp_path, columns)  # 6.7 MB in batches of 70 rows
    monkeypatch.setattr(reading, "_CHUNK_BYTES", 100_000)
    assert sum(chunk.X.shape[0] for chunk in stream(path, max_bytes=2_000_000)) == 40_000
    with pytest.raises(ValueError, match="its columns take"):
        read(path, max_bytes=2_000_000)


def test_a_batch_that_promises_too_much_is_refused_before_it_is_unpacked(tmp_path):
    path = saved("lz4", tmp_path, {"a": np.zeros(ROWS), "label": np.arange(ROWS) % 2})
    content = bytearray(path.read_bytes())
    at = content.index((70 * 8).to_bytes(8, "little"), 400)  # the length of a compressed buffer
    content[at : at + 8] = (1 << 40).to_bytes(8, "little")
    path.write_bytes(content)
    with pytest.raises(ValueError, match="some of its rows take"):
        list(stream(path))


def test_a_stream_that_is_cut_short_is_refused(tmp_path):
    path = saved("arrows", tmp_path, table())
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match="cut short"):
        list(stream(path))


def test_batches_of_another_program_are_read_once(tmp_path):
    columns = pa.table(table())
    whole = read(saved("parquet", tmp_path, table()))
    reader = pa.RecordBatchReader.from_batches(columns.schema, columns.to_batches(90))
    chunks = list(stream(reader))
    assert len(chunks) > 3
    assert values([chunk.X for chunk in chunks]) == values([whole.X])
    np.testing.assert_array_equal(np.concatenate([c.y for c in chunks]), whole.y)
    numbers = [c.X for c in stream(columns.drop_columns("job"))]
    with pytest.warns(UserWarning, match="the batches: the model does not use the columns 'job'"):
        like = [c.X for c in stream(columns, like=stream_layout(columns))]
    assert values(like) == values(numbers)
    with pytest.raises(ValueError, match="the batches: split='train' is only for files"):
        list(stream(columns, split="train"))
    with pytest.raises(ValueError, match="the batches: there is no column 'nobody'"):
        list(stream(columns, label="nobody"))


def stream_layout(columns):
    return next(stream(columns.drop_columns("job"))).layout


# ------------------------------------------------------------------ as a model has them


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "tsv", "parquet", "arrow"])
def test_new_rows_for_a_model_are_those_of_the_whole(kind, tmp_path):
    model = read(saved("parquet", tmp_path, table())).layout
    columns = table()
    columns["job"][290:] = "smith"
    columns["age"] = columns["age"].round()  # whole numbers in some pieces, of CSV text
    columns["age"][270] = 0.5
    columns["more"] = np.arange(ROWS)
    path = saved(kind, tmp_path, columns)
    with pytest.warns(UserWarning, match="does not use the columns 'more'"):
        chunks, whole = list(stream(path, like=model)), read(path, like=model)
    assert len(chunks) > 3
    np.testing.assert_array_equal(np.concatenate([c.y for c in chunks]), whole.y)
    assert values([c.X for c in chunks]) == values([whole.X])


def test_labels_that_are_text_somewhere_are_text_everywhere(tmp_path):
    columns = table() | {"label": ["01"] * 290 + ["x1"] * 10}
    path = saved("csv", tmp_path, columns)
    chunks = list(stream(path, like=read(path).layout))
    assert np.concatenate([c.y for c in chunks])[0] == "01"


def test_what_a_model_lacks_is_said_once_for_the_file(tmp_path):
    model = read(saved("csv", tmp_path, table())).layout
    short = {k: v for k, v in table().items() if k != "age"}
    path = saved("csv", tmp_path, short)
    with pytest.raises(ValueError, match="columns 'age' are missing") as streamed:
        list(stream(path, like=model))
    with pytest.raises(ValueError, match="columns 'age' are missing") as whole:
        read(path, like=model)
    assert str(streamed.value) == str(whole.value)


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet", "arrow", "arrows"])
@pytest.mark.parametrize("known", [False, True], ids=["new", "like a model's"])
def test_tables_from_pipes_come_in_pieces(kind, known, tmp_path, monkeypatch):
    """Which are those of the file, from a copy that is gone at the end."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "copies"))
    (tmp_path / "copies").mkdir()
    path = saved(kind, tmp_path, table())
    layout = read(path, label="label").layout if known else None
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(path.read_bytes(),))
    writer.start()
    named = list(stream(tmp_path / "pipe", label="label", like=layout))
    writer.join()
    opened = list(stream(OnlyRead(path.read_bytes()), label="label", like=layout))
    of_file = list(stream(path, label="label", like=layout))
    assert len(of_file) > 3
    for chunks in (named, opened):
        for one, other in zip(chunks, of_file, strict=True):
            assert one.X.equals(other.X)
            np.testing.assert_array_equal(one.y, other.y)
    assert not list((tmp_path / "copies").iterdir())


def test_what_a_pipe_cannot_have_is_refused_as_of_a_file(tmp_path):
    """Not as an empty file, which it would be if it were opened once more."""
    os.mkfifo(tmp_path / "pipe")
    content = b"1 1:0.5\n" * 3
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(content,))
    writer.start()
    with pytest.raises(ValueError, match="label='y' has no meaning for svmlight"):
        list(stream(tmp_path / "pipe", label="y"))
    writer.join()


def test_a_full_disk_names_the_folder_of_the_copy(monkeypatch, tmp_path):
    def full_disk(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(shutil, "copyfileobj", full_disk)
    with pytest.raises(OSError, match="No space left on device") as caught:
        list(stream(OnlyRead(b"a,b\n1,2\n"), label="b"))
    assert caught.value.filename == str(tmp_path)


class OnlyRead:
    """The least that a file can be."""

    def __init__(self, content: bytes):
        self.read = io.BytesIO(content).read
