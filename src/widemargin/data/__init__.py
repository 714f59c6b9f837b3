"""Read data sets in all formats with `read`; write svmlight text with `write_svmlight`."""

from widemargin.data.dataset import Columns, Dataset, Layout
from widemargin.data.reading import read, stream
from widemargin.data.svmlight import read_svmlight, stream_svmlight
from widemargin.data.svmlight_writing import write_svmlight

__all__ = [
    "Columns",
    "Dataset",
    "Layout",
    "read",
    "read_svmlight",
    "stream",
    "stream_svmlight",
    "write_svmlight",
]
