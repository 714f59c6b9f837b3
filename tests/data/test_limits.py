"""max_bytes: no reader holds more, whatever a file unpacks to or says of itself."""

import io
import os
import resource
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest
import scipy.sparse as sp

from widemargin.data import read, stream_svmlight
from widemargin.data.reading import detect_format
from widemargin.errors import TooLargeError

from .helpers import PACKERS, each_packer, refused, saved

MAX_BYTES = 1 << 20
UNPACKED = 1 << 26
PEAK = 48 << 20  # blocks of text, what unpacking holds; a fraction of UNPACKED at any rate
FORGOTTEN = "/proc/self/clear_refs"


def too_large(content: bytes, says: str = "", **options) -> None:
    """Refused in one line that names file and parameter, with no more than blocks in memory."""
    with refused("the file: ", says, f"max_bytes={MAX_BYTES}", kind=TooLargeError), peak(PEAK):
        read(io.BytesIO(content), max_bytes=MAX_BYTES, n_jobs=1, **options)


class peak:  # noqa: N801
    """A context that fails where memory grew by more than so many bytes."""

    def __init__(self, most: int):
        self._most = most

    @staticmethod
    def _now() -> int:
        return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def __enter__(self) -> None:
        if os.access(FORGOTTEN, os.W_OK):
            with open(FORGOTTEN, "w") as file:
                file.write("5")
        self._before = self._now()

    def __exit__(self, *error) -> None:
        assert self._now() - self._before < self._most


TEXTS = {
    "rows": b"1 1:1 2:2\n",
    "rows without values": b"1\n",
    "labels": b"word 3:1\n",
    "one line": b"1 1:1 ",
    "one word": b"a",
    "table": b"1,2\n",
    "words of a table": b"a,b\n",
    "one record": b'"a\n',
    "one name": b"a,b",
    "nothing": b"\n",
}


@pytest.mark.memory
@each_packer
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_compressed_text(pack, text):
    part = 1 << 19
    content = pack((text * part)[:part]) * (UNPACKED // part)
    if text == b"\n":  # of which nothing is kept
        with refused("no rows"), peak(PEAK):
            read(io.BytesIO(content), max_bytes=MAX_BYTES, n_jobs=1)
    else:
        too_large(content, **({"label": 0} if b"," in text else {}))


@pytest.mark.parametrize("packer", ["gz", "zst"])
@pytest.mark.parametrize("format", ["npz", "parquet", "arrow"])
def test_compressed_files_that_are_read_as_a_whole(packer, format):
    too_large(PACKERS[packer](bytes(UNPACKED)), "its contents take", format=format)


def test_a_block_at_a_time_there_is_no_limit_on_the_whole():
    text = b"1 1:1 2:2\n" * 200_000  # of 2 MB, which take 12
    n_rows = 0
    for block in stream_svmlight(io.BytesIO(text), n_features=2, n_jobs=1, max_bytes=MAX_BYTES):
        n_rows += len(block.y)
    assert n_rows == 200_000
    with refused("svmlight text: a line of it takes", kind=TooLargeError):
        list(stream_svmlight(io.BytesIO(b"1 1:1" + bytes(2 << 20)), n_features=1, max_bytes=9**6))


def test_labels_that_are_as_long_as_the_longest():
    text = b"x" * 256 + b" 1:1\n" + b"a 1:1\n" * 2000
    too_large(text, "its labels take")
    table = b"label,a\n" + b"x" * 4096 + b",1\n" + b"a,1\n" * 2000
    too_large(table, "its labels take")


def test_what_fits_is_read():
    text = b"1 1:1\n" * 100
    for pack in (bytes, *PACKERS.values()):
        assert read(io.BytesIO(pack(text)), max_bytes=20_000).X.shape == (100, 1)


def test_dictionaries_of_xz():
    """The header of an xz file says how much memory unpacking takes."""
    content = bytearray(PACKERS["xz"](b"1 1:1\n" * 100))
    content[16] = 40  # 4 GiB
    content[20:24] = zlib.crc32(content[12:20]).to_bytes(4, "little")
    with refused("the file: ", "Memory usage limit", kind=TooLargeError):
        read(io.BytesIO(content), max_bytes=MAX_BYTES)


# ------------------------------------------------------------------ NumPy's files


def header(shape: str, descr: str = "<f8") -> bytes:
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\0" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize("shape", ["(2147483648, 4)", "(4, 2147483648)", "(10**18, 10**18)"])
def test_shapes_that_are_not_there(shape):
    shape = shape.replace("10**18", str(10**18))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("X.npy", header(shape))
    too_large(header(shape), "its array takes")
    too_large(file.getvalue(), "its array X takes")


def test_arrays_of_nothing():
    for content in (header("(9999999999999, 0)"), saved(np.savez, X=np.zeros((0, 3)))):
        with refused("the file: X is empty"):
            read(io.BytesIO(content))


def test_packed_arrays():
    zeros = np.zeros((UNPACKED // 64, 8))
    too_large(saved(np.savez_compressed, X=zeros), "its array X takes")
    small = saved(np.savez_compressed, X=np.eye(3), other=zeros)
    assert read(io.BytesIO(small), max_bytes=MAX_BYTES).X.shape == (3, 3)


def test_a_few_columns_of_many_rows():
    parts = {"data": [1.0], "indices": [0], "indptr": [0, 1], "shape": [2**33, 1], "format": "csc"}
    too_large(saved(np.savez, **parts), "its sparse matrix of 8589934592 rows takes")


@pytest.mark.parametrize("key", ["X", "y", "X.npy", "y.npy"])
def test_members_that_are_no_arrays(key):
    members = {"X.npy": saved(np.save, np.eye(2)), "y.npy": saved(np.save, [0, 1])}
    members = {k: v for k, v in members.items() if k[0] != key[0]} | {key: b"text"}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with refused("the file: not a readable .npz file"):
        read(io.BytesIO(file.getvalue()))


def test_members_packed_as_numpy_never_does():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("X.npy", saved(np.save, np.eye(2)))
    with refused("the file: not a readable .npz file (X is packed"):
        read(io.BytesIO(file.getvalue()))


def test_members_that_are_longer_than_they_say():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("X.npy", saved(np.save, np.eye(2)) + b"more")
    with refused("the file: not a readable .npz file (its array X takes more"):
        read(io.BytesIO(file.getvalue()))


def test_sparse_files_are_read_within_it():
    X = sp.random_array((1000, 50), density=0.1, format="csc", rng=0)
    content = saved(sp.save_npz, X)
    tracemalloc.start()
    assert read(io.BytesIO(content), max_bytes=MAX_BYTES).X.nnz == X.nnz
    assert tracemalloc.get_traced_memory()[1] < MAX_BYTES
    tracemalloc.stop()


# ------------------------------------------------------------------ time


def test_formats_are_told_apart_in_no_time():
    """A run of spaces took time that grew with its square: half a minute for this one."""
    line = b"1" + b" " * 60_000 + b"x 1:1 "
    assert detect_format(line + b"y" * 5_000) == "svmlight"
    assert detect_format(b"\n" * (1 << 16)) == "svmlight"
