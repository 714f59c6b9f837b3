"""What the tests of readers share: comparing data bit for bit, and text through read_svmlight."""

import io
from contextlib import contextmanager

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.datasets import load_svmlight_file

from widemargin.data import Dataset, read_svmlight

finite = st.floats(allow_nan=False, allow_infinity=False)


def parse(text, **options) -> Dataset:
    content = text.encode() if isinstance(text, str) else text
    return read_svmlight(io.BytesIO(content), **options)


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


def assert_as_sklearn(ours: Dataset, text: bytes, **options):
    X, y, *qid = load_svmlight_file(io.BytesIO(text), query_id=ours.qid is not None, **options)
    assert_same_matrix(ours.X, sp.csr_array(X))
    assert_same_bits(ours.y, y)
    if qid:
        assert_array_equal(ours.qid, qid[0])


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
