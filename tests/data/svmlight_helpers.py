"""Text through read_svmlight, texts with all that may be in a file, and scikit-learn's reading."""

import io

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.datasets import load_svmlight_file

from widemargin.data import Dataset, read_svmlight

from .helpers import assert_same_bits, assert_same_matrix

BOM = b"\xef\xbb\xbf"
each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
each_jobs = pytest.mark.parametrize("n_jobs", [1, 2, 3])

# All that may be in a file, with lines of all lengths.
NUMBERS = (
    BOM + b"+1 1:0.5 3:-2e-3 17:1 # first\r\n"
    b"\n"
    b"  # only a comment 1:2 : :\n"
    b"-1\n"
    b"\t 3.25\t2:.5   4:5.\t\r\n"
    b"# more\n\n\n"
    b"1e2 1:+1 2:-0 3:1E+3 100:0.1234567890123456789012345#9:9\n"
    b"-1 5:" + b"1" * 60 + b"\n"
    b"0 2:1 3:1 4:1 5:1 6:1 7:1 8:1 9:1 10:1 11:1 12:1 13:1 14:1 15:1 16:1\n"
    b"7"
)
TEXTS = {
    "numbers": NUMBERS,
    "qid": b"1 qid:3 1:1\n# none here\n-1 qid:-4 2:1\n\n1 qid:9223372036854775807\n",
    "text labels": NUMBERS + "\nklasse 1:1\n猫\n1.50 2:1\n".encode(),
    "wide indices": NUMBERS + b"\n1 2147483648:1\n",
    "both": NUMBERS + b"\nb 2147483648:1\n" + b"c 4000000000:2",
}
each_text = pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)


def parse(text, **options) -> Dataset:
    content = text.encode() if isinstance(text, str) else text
    return read_svmlight(io.BytesIO(content), **options)


def assert_as_sklearn(ours: Dataset, text: bytes, **options):
    X, y, *qid = load_svmlight_file(io.BytesIO(text), query_id=ours.qid is not None, **options)
    assert_same_matrix(ours.X, sp.csr_array(X))
    assert_same_bits(ours.y, y)
    if qid:
        assert_array_equal(ours.qid, qid[0])
