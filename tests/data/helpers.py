"""What the tests of readers share: comparing data bit for bit, refusals, bytes of files."""

import bz2
import gzip
import io
import lzma
from contextlib import contextmanager

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from widemargin.data import Dataset

finite = st.floats(allow_nan=False, allow_infinity=False)


def assert_same_bits(a, b):
    """Equal types and equal bytes: -0.0 is not 0.0 here."""
    a, b = np.asarray(a), np.asarray(b)
    assert a.dtype == b.dtype
    assert_array_equal(a, b)
    assert a.tobytes() == b.tobytes()


def assert_same_matrix(a, b):
    """Also the order of the values, and which zeros are stored."""
    assert a.shape == b.shape
    assert sp.issparse(a) == sp.issparse(b)
    if sp.issparse(a):
        assert_array_equal(a.indptr, b.indptr)
        assert_array_equal(a.indices, b.indices)
        a, b = a.data, b.data
    assert_same_bits(a, b)


def assert_same(a: Dataset, b: Dataset):
    assert_same_matrix(a.X, b.X)
    for one, other in ((a.y, b.y), (a.qid, b.qid)):
        assert (one is None) == (other is None)
        if one is not None:
            assert_same_bits(one, other)
    assert a.zero_based == b.zero_based


@contextmanager
def refused(*fragments, kind=ValueError):
    """An error of just this kind, whose message has these parts."""
    with pytest.raises(kind) as caught:
        yield
    for fragment in fragments:
        assert fragment in str(caught.value)


def saved(save, *args, **options) -> bytes:
    """The bytes that np.save, np.savez and their like write."""
    file = io.BytesIO()
    save(file, *args, **options)
    return file.getvalue()


def zstandard(content: bytes) -> bytes:
    pa = pytest.importorskip("pyarrow")
    return pa.Codec("zstd").compress(content, asbytes=True)


PACKERS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard,
}
each_packer = pytest.mark.parametrize("pack", PACKERS.values(), ids=PACKERS)
each_wrapping = pytest.mark.parametrize("pack", [bytes, *PACKERS.values()], ids=["plain", *PACKERS])
