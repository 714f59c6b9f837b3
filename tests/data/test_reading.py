"""read(): every format told from its content, in every wrapping and from every kind of file."""

import io
import os
import threading
from contextlib import contextmanager, suppress

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from widemargin import AdditiveSVC, save
from widemargin.data import Dataset, read, stream
from widemargin.data.reading import detect_format

from .helpers import assert_same, each_wrapping, refused, saved

X = np.array([[0.5, 0.0, 2.0], [0.0, 1.0, 0.25]])


def arrow_bytes(write) -> bytes:
    """What ``write`` makes of a table with the columns a, b, c and y."""
    pa = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet")
    sink = io.BytesIO()
    write(pa, pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": [1, -1]}), sink)
    return sink.getvalue()


def write_ipc(pa, table, sink, new):
    with getattr(pa.ipc, new)(sink, table.schema) as writer:
        writer.write_table(table)


def table_text(separator: str) -> bytes:
    lines = ("a", "b", "c", "y"), (0.5, 0, 2, 1), (0, 1, 0.25, -1)
    return "".join(separator.join(map(str, line)) + "\n" for line in lines).encode()


def tables_need_arrow(content: bytes) -> bytes:
    pytest.importorskip("pyarrow")
    return content


FORMATS = {  # name: the format that is told, and the bytes
    "svmlight": ("svmlight", lambda: b"1 1:0.5 3:2\n-1 2:1 3:0.25\n"),
    "words": ("svmlight", lambda: b"yes 1:0.5 3:2\nno 2:1 3:0.25\n"),
    "csv": ("csv", lambda: tables_need_arrow(table_text(","))),
    "semicolons": ("csv", lambda: tables_need_arrow(table_text(";"))),
    "tsv": ("tsv", lambda: tables_need_arrow(table_text("\t"))),
    "parquet": ("parquet", lambda: arrow_bytes(lambda pa, *to: pa.parquet.write_table(*to))),
    "arrow file": ("arrow", lambda: arrow_bytes(lambda *to: write_ipc(*to, "new_file"))),
    "arrow stream": ("arrow", lambda: arrow_bytes(lambda *to: write_ipc(*to, "new_stream"))),
    "npz": ("npz", lambda: saved(np.savez, X=X, y=[1, -1])),
    "npy": ("npy", lambda: saved(np.save, X)),
}
each_format = pytest.mark.parametrize(("format", "make"), FORMATS.values(), ids=FORMATS)


def dense(data: Dataset) -> np.ndarray:
    if hasattr(data.X, "columns"):
        return np.column_stack(data.X.columns)
    return data.X if isinstance(data.X, np.ndarray) else data.X.toarray()


@contextmanager
def piped(content: bytes, first: int = 1):
    """The reading end of a pipe, into which a few bytes come before the others."""
    reading, writing = os.pipe()

    def write():
        with suppress(BrokenPipeError), open(writing, "wb", buffering=0) as file:
            file.write(content[:first])
            for at in range(first, len(content), 4096):
                file.write(content[at : at + 4096])

    thread = threading.Thread(target=write)
    thread.start()
    try:
        with open(reading, "rb") as file:
            yield file
    finally:
        thread.join()


class OnlyRead:
    """The least that a file can be."""

    def __init__(self, content: bytes):
        self.read = io.BytesIO(content).read


# ------------------------------------------------------------------ formats


@each_format
@each_wrapping
def test_format_is_told_from_the_content(format, make, pack, tmp_path):
    content = make()
    assert detect_format(content) == format
    path = tmp_path / "data.jpg"
    path.write_bytes(pack(content))
    assert_array_equal(dense(read(path)), X)
    assert_same(read(str(path)), read(path))
    file = io.BytesIO(pack(content))
    assert_same(read(file), read(path))
    assert not file.closed
    with open(path, "rb") as buffered, open(path, "rb", buffering=0) as raw:
        for opened in (buffered, raw):
            assert_same(read(opened), read(path))
            assert not opened.closed


@each_format
@each_wrapping
def test_files_that_cannot_go_back(format, make, pack):
    content = pack(make())
    with piped(content) as pipe:
        for file in (pipe, OnlyRead(content)):
            if make is FORMATS["words"][1]:
                with refused("the file: ", "a pipe cannot be read twice"):
                    read(file)
            else:
                assert_same(read(file), read(io.BytesIO(content)))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_named_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    thread = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(b"1 1:0.5\n" * 3,))
    thread.start()
    assert read(tmp_path / "pipe").X.shape == (3, 1)
    thread.join()


@pytest.mark.parametrize(
    ("head", "format"),
    [
        (b"", "svmlight"),
        (b"\n\n# a, comment\n\n+1 1:2\n", "svmlight"),
        (b"\xef\xbb\xbf1 1:2\r\n", "svmlight"),
        (b"\xef\xbb\xbfa,b\r\n", "csv"),
        (b"1\n", "svmlight"),
        (b"spam\n", "svmlight"),
        (b"1 qid:3 1:2 # a,b;c\n", "svmlight"),
        (b"1\t1:2\t3:4\n", "svmlight"),
        (b"1 1:2#a,b\n", "svmlight"),
        (b"1 1:2:3\n", "svmlight"),
        (b"a\tb\n", "tsv"),
        (b"a b\tc d\n", "tsv"),
        (b"a;b\n1;2\n", "csv"),
        (b"x,2020-01-01 10:30\n", "csv"),
        (b"1" + b" 1:2" * 5000, "svmlight"),
        (b"1" + b" 1:2" * 5000 + b" 17:", "svmlight"),
        (b"1" + b" 1:2" * 5000 + b" 1", "svmlight"),
        (b"1" + b"\t1:2" * 5000 + b"\t17", "svmlight"),
        (b"1 #" + b"," * 5000, "svmlight"),
        (b"a," * 5000, "csv"),
        (b"a\t" * 5000, "tsv"),
    ],
)
def test_detection(head, format):
    assert detect_format(head) == format


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (b'{"age": {"0": 31}}', "JSON, which is none of the formats svmlight, csv"),
        (b'[{"age": 31}, {"age": 52}]', "JSON"),
        (b"\x80\x05\x95\x1a\0\0\0\x8c\tDataFrame\n", "a binary file in none of the formats"),
    ],
)
def test_what_is_none_of_the_formats_is_named(head, said):
    with pytest.raises(ValueError, match=said):
        detect_format(head)


def test_the_only_column_of_a_csv_file_is_no_label_of_svmlight(tmp_path):
    path = tmp_path / "one.csv"
    path.write_text("age\n31\n52\n")
    assert read(path, label=False).X.to_pydict() == {"age": [31, 52]}


@pytest.mark.parametrize("code", ["utf-16", "utf-16-le", "utf-32"])
def test_text_in_utf_16_is_named(code):
    text = "\ufeff" * code.endswith("le") + "a,label\n1,x\n2,y\n"
    with refused("the file: its text is in UTF-16. Save it in UTF-8."):
        read(io.BytesIO(text.encode(code)))


def test_a_binary_file_is_not_shown_as_text():
    with refused("the file: a binary file in none of the formats svmlight, csv, tsv, "):
        read(io.BytesIO(b"scene15/,\xff\x00\x01;\n" * 30))


def test_a_model_is_no_data(tmp_path):
    save(AdditiveSVC().fit(X, [0, 1]), tmp_path / "m")
    for reads in (read, lambda path: next(stream(path))):
        with refused(f"{tmp_path / 'm'}: a model (a safetensors file), not data."):
            reads(tmp_path / "m")


def test_long_first_line(tmp_path):
    for separator in " \t":
        content = "1" + "".join(f"{separator}{i}:{i}" for i in range(1, 20_000))
        for cut in range(10):
            text = "#" * cut + "\n" + content + "\n"
            data = read(io.BytesIO(text.encode()))
            assert data.X.shape == (1, 19_999)


def test_detection_can_be_overruled():
    with refused("the file, line 1, column 1: 'a,b' lists several labels"):
        read(io.BytesIO(b"a,b\n1,2\n"), format="svmlight")
    for format in ("tar", "", "CSV", "svm"):
        with refused(f"format={format!r} is not known. Use one of 'svmlight', 'csv'"):
            read(io.BytesIO(b"1 1:2\n"), format=format)


def test_options_arrive():
    text = io.BytesIO(b"1 1:0.1 3:2\n")
    data = read(text, n_features=7, zero_based=True, dtype=np.float32, n_jobs=2)
    assert data.X.shape == (1, 7)
    assert data.X.dtype == np.float32
    arrays = saved(np.savez, X_train=X, X_test=2 * X)
    assert_array_equal(read(io.BytesIO(arrays), split="test").X, 2 * X)
    assert_array_equal(read(io.BytesIO(saved(np.save, X)), label=-1).y, X[:, -1])


# ------------------------------------------------------------------ files


def test_no_such_file(tmp_path):
    with refused("nowhere.txt", kind=FileNotFoundError):
        read(tmp_path / "nowhere.txt")
    with refused(str(tmp_path), kind=IsADirectoryError):
        read(tmp_path)


def test_empty_file(tmp_path):
    path = tmp_path / "empty.txt"
    path.touch()
    with refused(f"{path}: the file has no rows"):
        read(path)
    with piped(b"") as pipe, refused("the file: the file has no rows"):
        read(pipe)


@pytest.mark.parametrize("path", [None, 5.5, io.StringIO("1 1:2\n"), b"data.txt", [1]])
def test_neither_path_nor_file(path):
    with refused("path must be a path or a file opened as binary", kind=TypeError):
        read(path)


@each_wrapping
def test_messages_name_the_file_and_leave_it_open(pack, tmp_path):
    content = pack(b"1 1:2\n1 spam\n")
    path = tmp_path / "data"
    path.write_bytes(content)
    with refused(f"{path}, line 2, column 3: 'spam'"):
        read(path)
    file = io.BytesIO(content)
    with refused("the file, line 2, column 3: 'spam'"):
        read(file)
    assert not file.closed


@each_wrapping
@pytest.mark.parametrize("name", ["svmlight", "words", "npy"])
def test_from_where_the_file_stands(pack, name, tmp_path):
    content = pack(FORMATS[name][1]())
    for length in (3, 8190):  # then only 2 bytes are left of what was read ahead
        file = io.BytesIO(b"#" * length + content)
        for opened in (file, io.BufferedReader(file)):
            opened.seek(0)
            opened.read(length)
            assert_array_equal(dense(read(opened)), X)


@pytest.mark.parametrize("good", [b"", b"1 1:2\n" * 20_000, b"a,label\n" + b"1,2\n" * 30_000])
def test_errors_of_the_disk_are_not_blamed_on_the_data(good):
    class Broken(io.RawIOBase):
        """It can be read for a while."""

        rest = io.BytesIO(good)

        def readable(self):
            return True

        def readinto(self, buffer):
            content = self.rest.read(len(buffer))
            if not content:
                raise OSError(5, "Input/output error")
            buffer[: len(content)] = content
            return len(content)

    with refused("Input/output error", kind=OSError):
        read(Broken())


@pytest.mark.parametrize(
    ("content", "option"),
    [
        (b"1 1:2\n", {"label": 0}),
        (b"1 1:2\n", {"label": False}),
        (b"1 1:2\n", {"split": "train"}),
        (b"a,label\n1,2\n", {"split": "train"}),
        (b"a,label\n1,2\n", {"n_features": 3}),
    ],
    ids=repr,
)
def test_options_that_a_format_would_ignore_are_refused(content, option):
    ((name, value),) = option.items()
    with pytest.raises(ValueError, match=rf"{name}={value!r} has no meaning for (svmlight|csv)"):
        read(io.BytesIO(content), **option)


def test_an_option_that_nothing_knows_is_refused(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,target\n1,0\n2,1\n")
    with pytest.raises(TypeError, match="unexpected keyword argument 'threads'"):
        read(path, threads=2)
