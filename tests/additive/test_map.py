"""`AdditiveMap`: the tables as a transformer."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from widemargin import AdditiveMap, PowerMean
from widemargin.additive.codes import encode
from widemargin.additive.kernels import KERNELS, resolve_kernel
from widemargin.additive.source import Values
from widemargin.additive.tables import APPROXIMATIONS, make_tables

each_kernel = pytest.mark.parametrize("kernel", [*KERNELS, PowerMean(-8.0)], ids=str)


def test_the_sparse_map_feeds_liblinear():
    X = sp.random_array((60, 30), density=0.3, format="csr", rng=0)
    y = np.arange(60) % 2
    Z = AdditiveMap("chi2").fit_transform(X)
    assert Z.indices.dtype == np.int32
    LinearSVC().fit(Z, y)


def histograms(n=30, d=4, seed=0):
    return np.maximum(np.random.default_rng(seed).uniform(-1.0, 1.0, (n, d)), 0.0)


def codes_of(fitted, X):
    return encode(Values.of(X), fitted.encoder_)


@each_kernel
def test_map_is_the_table_of_each_feature(kernel):
    X, Z = histograms(), histograms(10, seed=1)
    fitted = AdditiveMap(kernel, rank=4).fit(X)
    grid, weight = fitted.encoder_.representatives, codes_of(fitted, X).frequency(np.ones(len(X)))
    gram = make_tables(resolve_kernel(kernel), grid, weight, rank=4).gram()
    at_x, at_z = codes_of(fitted, X).toarray(), codes_of(fitted, Z).toarray()
    expected = sum(gram[np.ix_(at_x[:, j], at_z[:, j])] for j in range(X.shape[1]))
    assert_allclose(fitted.transform(X) @ fitted.transform(Z).T, expected, atol=1e-5)


@each_kernel
def test_map_approximates_the_kernel_matrix(kernel):
    X = histograms()
    Z = AdditiveMap(kernel, scaling=None).fit_transform(X)
    K = resolve_kernel(kernel).matrix(X)
    assert np.linalg.norm(Z @ Z.T - K) < 0.01 * np.linalg.norm(K)


@pytest.mark.parametrize("kernel", ["chi2", "jensen_shannon"])
def test_fourier_map_approximates_the_kernel_matrix(kernel):
    X = histograms()
    Z = AdditiveMap(kernel, approximation="fourier", rank=7, scaling=None).fit_transform(X)
    K = resolve_kernel(kernel).matrix(X)
    assert np.linalg.norm(Z @ Z.T - K) < 0.01 * np.linalg.norm(K)


def test_map_makes_rank_columns_per_feature_in_single_precision():
    Z = AdditiveMap("chi2", rank=3).fit_transform(histograms())
    assert Z.shape == (30, 12)
    assert Z.dtype == np.float32


@pytest.mark.parametrize(
    "container",
    [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix, sp.csc_matrix, sp.coo_matrix],
    ids=lambda c: c.__name__,
)
def test_map_of_sparse_data_is_the_sparse_map_of_dense_data(container):
    X = histograms()
    expected = AdditiveMap("chi2", rank=3).fit_transform(X)
    Z = AdditiveMap("chi2", rank=3).fit_transform(container(X))
    assert sp.issparse(Z)
    assert_array_equal(Z.toarray(), expected)


def test_map_of_sparse_data_stores_nothing_for_absent_values():
    X = histograms()
    Z = AdditiveMap("chi2", rank=3).fit_transform(sp.csr_array(X))
    assert Z.nnz == 3 * np.count_nonzero(X)


def test_map_of_signed_sparse_data_is_that_of_dense_data():
    X = histograms() - histograms(seed=1)
    expected = AdditiveMap("chi2", rank=3).fit_transform(X)
    Z = AdditiveMap("chi2", rank=3).fit_transform(sp.csr_array(X))
    assert_array_equal(Z.toarray(), expected)


def test_map_clips_values_outside_the_training_range():
    X = histograms()
    fitted = AdditiveMap("chi2", rank=3, scaling="global").fit(X)
    top = np.full((1, 4), X.max())
    assert_array_equal(fitted.transform(10 * top), fitted.transform(top))


def test_map_ignores_rows_of_weight_zero():
    X, weight = histograms(), np.repeat([1.0, 0.0], 15)
    weighted = AdditiveMap("chi2", rank=3).fit(X, sample_weight=weight)
    assert_array_equal(weighted.table_, AdditiveMap("chi2", rank=3).fit(X[:15]).table_)


def test_map_takes_a_weight_as_copies():
    X, weight = histograms(), np.arange(30) % 3 + 1
    weighted = AdditiveMap("chi2", rank=3, n_bins=20).fit(X, sample_weight=weight)
    copied = AdditiveMap("chi2", rank=3, n_bins=20).fit(np.repeat(X, weight, axis=0))
    assert_allclose(
        weighted.transform(X) @ weighted.transform(X).T,
        copied.transform(X) @ copied.transform(X).T,
        atol=1e-5,
    )


def test_map_names_its_columns_after_the_features():
    fitted = AdditiveMap("chi2", rank=2).fit(histograms(d=2))
    assert list(fitted.get_feature_names_out()) == ["x0_0", "x0_1", "x1_0", "x1_1"]
    assert list(fitted.get_feature_names_out(["a", "b"])) == ["a_0", "a_1", "b_0", "b_1"]


@pytest.mark.parametrize(("library", "frame"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_map_gives_data_frames_when_asked(library, frame):
    X = histograms(d=2)
    table = frame({"a": X[:, 0], "b": X[:, 1]})
    Z = AdditiveMap("chi2", rank=2).set_output(transform=library).fit_transform(table)
    assert isinstance(Z, frame)
    assert list(Z.columns) == ["a_0", "a_1", "b_0", "b_1"]
    assert_array_equal(Z.to_numpy(), AdditiveMap("chi2", rank=2).fit_transform(X))


def test_map_lets_a_linear_model_use_the_kernel():
    X = np.random.default_rng(0).random((400, 2))
    y = np.abs(X[:, 0] - 0.5) < 0.25
    linear = LogisticRegression(C=100.0, max_iter=1000)
    mapped = make_pipeline(AdditiveMap("intersection"), linear)
    assert linear.fit(X[:200], y[:200]).score(X[200:], y[200:]) < 0.7
    assert mapped.fit(X[:200], y[:200]).score(X[200:], y[200:]) > 0.93


@pytest.mark.parametrize("approximation", sorted({*APPROXIMATIONS} - {"spectral", "fourier"}))
def test_map_refuses_tables_that_are_no_feature_map(approximation):
    with pytest.raises(ValueError, match=f"approximation='{approximation}'"):
        AdditiveMap("chi2", approximation=approximation).fit(histograms())
