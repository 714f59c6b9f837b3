"""Data and short cuts of the tests of encoders and codes."""

from functools import reduce

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from reference import SPARSE_CONTAINERS

from widemargin.additive.codes import encode
from widemargin.additive.encoder import Encoder, fit_encoder
from widemargin.additive.source import Values, united

INTEGERS = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")

DTYPES = (*INTEGERS, "float16", "float32", "float64")

EXOTIC_DTYPES = (">f4", ">f8", ">i2", ">u4", "longdouble")

SCALINGS = ("global", "minmax", "percentile", None)

each_scaling = pytest.mark.parametrize("scaling", SCALINGS)

each_binning = pytest.mark.parametrize(
    ("scaling", "binning"),
    [("percentile", "auto")]
    + [(s, b) for s in SCALINGS if s != "percentile" for b in ("auto", "uniform", "floor")],
)

each_dtype = pytest.mark.parametrize("dtype", DTYPES)

each_container = pytest.mark.parametrize("container", SPARSE_CONTAINERS, ids=lambda c: c.__name__)


class Blocks:
    """A `Source` of several matrices in memory, one below the other; some may have no rows."""

    def __init__(self, matrices):
        self.matrices = matrices
        first, *others = matrices
        self.n_features, self.sparse = first.shape[1], sp.issparse(first)
        self.n_rows = sum(X.shape[0] for X in matrices)
        self.dtype = np.result_type(first.dtype, *(X.dtype for X in others))

    def blocks(self):
        return (Values.of(X) for X in self.matrices if X.shape[0] > 0)

    def each(self, look):
        begin = 0
        for block in self.blocks():
            yield look(slice(begin, begin + block.n_rows), block)
            begin += block.n_rows

    def ranges(self):
        return reduce(united, (block.ranges() for block in self.blocks()))


def fit(X, weight=None, **options):
    """An encoder learned from X, and the codes of X."""
    values = Values.of(X)
    weight = np.ones(values.n_rows) if weight is None else np.asarray(weight, dtype=np.float64)
    encoder = fit_encoder(values, weight, **options)
    return encoder, encode(values, encoder)


def codes_of(encoder, X):
    return encode(Values.of(X), encoder).toarray()


def plain_codes(encoder, X):
    """The definition of a code, in NumPy."""
    t = (np.asarray(X, dtype=np.float64) - encoder.shift) * encoder.factor
    return np.searchsorted(encoder.thresholds, t, side="right")


def counts(dtype="float64", shape=(60, 7), zeros=0.3, seed=0):
    """Whole numbers up to 100 (and fractions for floats), some of them zero."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(1, 100, shape) * (rng.random(shape) > zeros)
    return X.astype(dtype)


def same(left: Encoder, right: Encoder):
    """Whether two encoders are equal up to rounding."""
    for name in ("shift", "factor", "thresholds", "representatives"):
        assert_allclose(getattr(left, name), getattr(right, name), rtol=1e-12, atol=1e-300)


def crowded(shape=(2000, 4), seed=0):
    """Values that crowd near zero."""
    return np.random.default_rng(seed).exponential(0.02, shape)
