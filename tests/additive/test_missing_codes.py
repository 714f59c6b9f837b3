"""NaN is absent: no pass that looks for scale and bins counts it, and its code is 0."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from widemargin.additive.codes import Indicators, with_indicators
from widemargin.additive.encoder import exact_encoder, fit_encoder
from widemargin.additive.learn import choose_kernel
from widemargin.additive.source import Values, ranges

from .encoding import SCALINGS, Blocks, codes_of, counts, fit, same


def lossy(dtype="float64", zeros=0.3, shape=(60, 7)):
    """Numbers of which every tenth is missing, and which."""
    X = counts(dtype, shape=shape, zeros=zeros)
    missing = np.random.default_rng(1).random(X.shape) < 0.1
    return np.where(missing, np.nan, X).astype(dtype), missing


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("zero_is_absent", [True, False])
@pytest.mark.parametrize("n_bins", ["auto", 20])
@pytest.mark.parametrize("scaling", SCALINGS)
def test_a_missing_value_has_code_0_and_no_say_in_the_bins(
    scaling, n_bins, zero_is_absent, order, dtype
):
    X, missing = lossy(dtype)
    X = np.asarray(X, order=order)
    options = {"scaling": scaling, "n_bins": n_bins, "zero_is_absent": zero_is_absent}
    encoder = fit_encoder(Values.of(X), np.ones(len(X)), **options)
    codes = codes_of(encoder, X)
    assert (codes[missing] == 0).all()
    filled = np.where(missing, 3.25, X)
    assert_array_equal(codes[~missing], codes_of(encoder, filled)[~missing])
    assert zero_is_absent or (codes[~missing] > 0).all()
    # As if the rows with missing values of a column were not there, for each column.
    columns = [fit(X[~missing[:, [j]].ravel()][:, [j]], **options)[0] for j in range(X.shape[1])]
    if scaling == "minmax":
        assert_array_equal(encoder.shift, [own.shift[0] for own in columns])
        assert_array_equal(encoder.factor, [own.factor[0] for own in columns])


@pytest.mark.parametrize("weighted", [False, True])
def test_the_percentile_is_that_of_the_values_that_are_there(weighted):
    X, missing = lossy(shape=(90, 1))
    weight = np.arange(1.0, 91) if weighted else np.ones(90)
    encoder = fit_encoder(Values.of(X), weight, scaling="percentile")
    present = ~missing.ravel()
    same(encoder, fit_encoder(Values.of(X[present]), weight[present], scaling="percentile"))
    nothing = fit_encoder(Values.of(np.full((3, 1), np.nan)), np.ones(3), scaling="percentile")
    assert np.isfinite(nothing.representatives).all()


@pytest.mark.parametrize("scaling", ["global", "minmax", None])
def test_missing_values_of_sparse_data_and_of_blocks_are_those_of_dense_data(scaling):
    X, missing = lossy(zeros=0.6)
    encoder, codes = fit(X, scaling=scaling)
    sparse, compressed = fit(sp.csr_array(X), scaling=scaling)
    same(encoder, sparse)
    assert_array_equal(codes.toarray(), compressed.toarray())
    assert (codes.toarray()[missing] == 0).all()
    blocks = Blocks([X[:9], X[9:]])
    same(encoder, fit_encoder(blocks, np.ones(len(X)), scaling=scaling))


def test_ranges_where_all_is_missing():
    X = np.array([[np.nan, 1.0], [np.nan, -2.0], [np.nan, np.nan]])
    for source in (Values.of(X), Values.of(sp.csr_array(X)), Blocks([X[:1], X[1:]])):
        assert [end.tolist() for end in ranges(source)] == [[0.0, -2.0], [0.0, 1.0]]


def test_distinct_values_of_new_data_leave_out_what_is_missing():
    trained = fit(counts())[0]
    X = np.array([[1.0, np.nan], [np.nan, 2.0]])
    encoder = exact_encoder(Values.of(X), trained.__class__(
        np.zeros(1), np.ones(1), trained.thresholds, trained.representatives))  # fmt: skip
    assert encoder.representatives.tolist() == [0.0, 1.0, 2.0]


def test_the_choice_of_a_kernel_does_not_depend_on_missing_values():
    rng = np.random.default_rng(0)
    image = rng.integers(1, 255, (300, 200)).astype(float)
    lost = np.where(rng.random(image.shape) < 0.1, np.nan, image)
    assert {choose_kernel(Values.of(rows), len(rows)) for rows in (image, lost)} == {"chi2"}


# ------------------------------------------------------------------ indicators beside numbers


def marks(
    n_rows: int, n_features: int, per_row: int, seed: int = 0
) -> tuple[Indicators, np.ndarray]:
    """Some indicators of each row, and as a matrix."""
    rng = np.random.default_rng(seed)
    width = n_features // per_row
    columns = [rng.integers(-1, width, n_rows) for _ in range(per_row)]
    columns = [np.where(c < 0, -1, c + k * width) for k, c in enumerate(columns)]
    dense = np.zeros((n_rows, n_features), dtype=bool)
    for column in columns:
        rows = np.flatnonzero(column >= 0)
        dense[rows, column[rows]] = True
    return Indicators.of(columns, n_rows, n_features), dense


@pytest.mark.parametrize("n_features", [4, 60, 70_000])
@pytest.mark.parametrize("n_bins", [20, 3000])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_indicators_stand_beside_numbers_in_every_layout(container, n_bins, n_features):
    X = counts(zeros=0.1, shape=(400, 7))
    encoder, codes = fit(container(X), n_bins=n_bins)
    own, dense = marks(400, n_features, 2)
    joined = with_indicators(codes, own, encoder.n_codes - 1)
    expected = np.hstack([codes.toarray(), dense * (encoder.n_codes - 1)])
    assert_array_equal(joined.toarray(), expected)
    assert (joined.index is None) == (container is np.asarray and n_features == 4)
    assert joined.core is not None  # whose checks it passes
    assert joined.frequency(np.ones(400))[1:].sum() == (expected > 0).sum()
