"""Bad data, bad parameters, and what a fit warns of or writes to the log."""

import logging
import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from widemargin import KernelSVC
from widemargin.errors import UnscaledWarning

from .helpers import rbf2, svc

X4 = np.array([[0.1, 0.2, 0.0], [0.3, 0.0, 0.4], [0.5, 0.6, 0.0], [0.7, 0.0, 0.8]])
Y4 = np.array([0, 1, 0, 1])


def replaced(value, dtype=np.float64):
    X = X4.astype(dtype)
    X[2, 1] = value
    return X


# ------------------------------------------------------------------ bad data


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_matrix])
@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "inf")])
def test_a_value_that_is_not_finite_is_named_by_place(value, name, layout, dtype):
    X = layout(replaced(value, dtype))
    with pytest.raises(ValueError, match=f"{name}.* row 2, column 1"):
        svc().fit(X, Y4)
    with pytest.raises(ValueError, match=f"{name}.* row 2, column 1"):
        svc().fit(layout(X4), Y4).predict(X)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("method", ["predict", "decision_function"])
def test_a_wrong_number_of_features_is_refused(method, layout):
    model = svc().fit(X4, Y4)
    with pytest.raises(ValueError, match="X has 2 features, but KernelSVC is expecting 3"):
        getattr(model, method)(layout(X4[:, :2]))


def test_negative_data_is_named_by_place_for_the_chi2_kernel():
    with pytest.raises(ValueError, match=r"chi2.*Negative values in data: row 2, column 1"):
        svc("chi2").fit(replaced(-0.1), Y4)


@pytest.mark.parametrize("kernel", ["laplacian", "chi2", "precomputed"])
def test_sparse_data_is_refused_where_the_kernel_needs_dense_rows(kernel):
    with pytest.raises(TypeError, match="Sparse data was passed"):
        svc(kernel).fit(sp.csr_array(np.eye(4)), Y4)


def test_sparse_training_data_is_left_as_it_was(two):
    X, y = two
    sparse = sp.csr_array(np.where(X > 0.8, X, 0).astype(np.float32))
    sparse.data[::3] = 0  # stored zeros
    parts = [a.copy() for a in (sparse.data, sparse.indices, sparse.indptr)]
    for a in (sparse.data, sparse.indices, sparse.indptr):
        a.flags.writeable = False
    svc(gamma=1.0).fit(sparse, y)
    for before, after in zip(parts, (sparse.data, sparse.indices, sparse.indptr), strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize(
    ("scale", "changes", "message"),
    [
        (1e200, {"gamma": 1.0}, "too large for float64"),
        (1.0, {"kernel": "poly", "gamma": 1e30, "degree": 20, "tol": 1e-9}, "overflows"),
    ],
    ids=["rows", "kernel values"],
)
def test_values_too_large_for_their_arithmetic_are_refused(scale, changes, message, two):
    X, y = two
    with pytest.raises(ValueError, match=message):
        svc(**changes).fit(X * scale, y)


# ------------------------------------------------------------------ bad kernels


def test_a_precomputed_matrix_must_be_square():
    with pytest.raises(ValueError, match=r"square matrix, got shape \(4, 3\)"):
        svc("precomputed").fit(X4, Y4)


def test_a_precomputed_matrix_must_be_symmetric():
    K = rbf2(X4, X4)
    K[1, 3] = 0.25
    with pytest.raises(ValueError, match=rf"not symmetric: 0\.25 at \(1, 3\), {K[3, 1]:g} at"):
        svc("precomputed").fit(K, Y4)


def test_a_precomputed_matrix_may_be_asymmetric_by_rounding():
    K = rbf2(X4, X4)
    K[1, 3] *= 1 + 1e-7
    assert svc("precomputed").fit(K, Y4).duality_gap_ <= 1e-3


@pytest.mark.parametrize("levels", [0, 1])
def test_a_user_kernel_of_the_wrong_shape_is_named(levels, two):
    def narrow(A, B):
        return rbf2(A, B)[:, :-1]

    with pytest.raises(ValueError, match=r"'narrow' returned shape \(\d+, \d+\) for \d+ and"):
        svc(narrow, levels=levels).fit(*two)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_user_kernel_that_is_not_finite_is_named_by_place(bad, two):
    def broken(A, B):
        K = rbf2(A, B)
        K[2, 1] = bad
        return K

    with pytest.raises(ValueError, match=rf"'broken' returned {bad} at \(2, 1\) of a block"):
        svc(broken).fit(*two)


def test_an_error_of_a_user_kernel_is_passed_on(two):
    def failing(A, B):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        svc(failing, levels=1, n_jobs=2).fit(*two)


# ------------------------------------------------------------------ bad parameters

OUT_OF_RANGE = {
    "kernel": ["cubic", None, 3, ["rbf"]],
    "C": [0, -1.0],
    "gamma": [0.0, -1.0, "mean", 1e300],
    "degree": [-1, 2**40],
    "coef0": [1e300, -1e300],
    "levels": [-1, 21, "many"],
    "branching": [1, 0],
    "sample_size": [1, -5],
    "early": [0, -1, 21],
    "clustering": ["spectral", None],
    "early_prediction": ["vote", None],
    "multi_class": ["crammer_singer", None],
    "decision_function_shape": ["pairs", None],
    "tol": [0, -1e-3],
    "level_tol": [0, -1e-3],
    "max_iter": [0, -5],
    "max_seconds": [0, -1.0],
    "cache_size": [0, -1.0, "much"],
    "on_interrupt": ["stop", None],
    "record_levels": ["no"],
    "verbose": [-1],
    "n_jobs": [0],
}
NOT_FINITE = {
    "C": [np.nan],
    "gamma": [np.inf, np.nan],
    "coef0": [np.nan],
    "tol": [np.nan],
    "level_tol": [np.inf, np.nan],
    "cache_size": [np.inf, np.nan],
}
WRONG_TYPE = {
    "C": ["1", None, True, [1.0]],
    "gamma": [None, True],
    "degree": [2.5, None, "3"],
    "coef0": ["0", None],
    "levels": [1.5, None, True],
    "branching": [2.5, "4", None],
    "sample_size": [10.5, None],
    "early": ["yes", None, 1.5],
    "fit_intercept": ["no", 1, None],
    "break_ties": ["yes", None],
    "tol": ["1e-3", None],
    "level_tol": ["1e-3", None],
    "max_iter": [1.5, "10", None, True],
    "max_seconds": ["10", True],
    "cache_size": [None, True],
    "checkpoint": [3],
    "warm_start": ["no", 1],
    "record_levels": [None, 1],
    "verbose": ["loud", None],
    "n_jobs": ["two", 1.5],
}


def pairs(table):
    return [pytest.param(k, v, id=f"{k}={v!r}") for k, values in table.items() for v in values]


def refused(name, value, error, message):
    with pytest.raises(error, match=message.format(name=name, value=re.escape(repr(value)))):
        svc(**{name: value}).fit(X4, Y4)


@pytest.mark.parametrize(("name", "value"), pairs(OUT_OF_RANGE))
def test_a_parameter_out_of_range_is_named(name, value):
    refused(name, value, ValueError, "^{name}={value} is (out of range|not known)")


@pytest.mark.parametrize(("name", "value"), pairs(NOT_FINITE))
def test_a_parameter_that_is_not_finite_is_named(name, value):
    refused(name, value, ValueError, "^{name}={value} is out of range: it must be finite")


@pytest.mark.parametrize(("name", "value"), pairs(WRONG_TYPE))
def test_a_parameter_of_the_wrong_type_is_named(name, value):
    refused(name, value, TypeError, "^{name} must be .* got {value}")


@pytest.mark.parametrize("value", ["heavy", {0: -1.0, 1: 1.0}, 3], ids=str)
def test_a_bad_class_weight_is_named(value):
    refused("class_weight", value, ValueError, r"\bclass_weight\b")


def test_every_parameter_is_checked_here_or_free():
    checked = {*OUT_OF_RANGE, *NOT_FINITE, *WRONG_TYPE, "class_weight"}
    assert checked | {"random_state"} == set(KernelSVC().get_params())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fit_intercept": True, "early": True}, "fit_intercept=True needs the whole problem"),
        ({"fit_intercept": True, "early": 1}, "fit_intercept=True needs the whole problem"),
        ({"kernel": "precomputed", "early_prediction": "bcm"}, "early_prediction='bcm' needs"),
        ({"clustering": "kmeans", "kernel": "precomputed"}, "Use 'kernel_kmeans'"),
        ({"clustering": "kmeans", "kernel": rbf2}, "Use 'kernel_kmeans'"),
        ({"clustering": "random", "early": 1}, "no clusters for new rows"),
    ],
)
def test_parameters_that_exclude_each_other_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        svc(**changes).fit(X4, Y4)


def test_numpy_scalars_are_numbers(two):
    given = {"C": np.float32(3), "levels": np.int64(2), "early": np.int32(1), "degree": np.uint8(2),
             "warm_start": np.True_, "record_levels": np.False_}  # fmt: skip
    model = svc("poly", **given).fit(*two)
    expected = svc("poly", **{name: value.item() for name, value in given.items()}).fit(*two)
    np.testing.assert_array_equal(model.dual_coef_, expected.dual_coef_)


# ------------------------------------------------------------------ warnings and logs


def test_too_few_blocks_warn_with_the_gap(two):
    with pytest.warns(ConvergenceWarning, match="relative duality gap of ") as caught:
        model = svc(max_iter=1, tol=1e-6).fit(*two)
    assert f"gap of {model.duality_gap_:.2g}, above the tolerance of 1e-06" in str(
        caught[0].message
    )
    assert caught[0].filename == __file__
    assert model.n_iter_ == 1
    assert model.duality_gap_ > 1e-6


def test_the_sigmoid_kernel_warns_that_the_gap_is_no_certificate(two):
    with pytest.warns(UserWarning, match="not positive semi-definite"):
        svc("sigmoid", gamma=0.1).fit(*two)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly"])
def test_an_unscaled_feature_is_named_with_its_range(kernel, two):
    X, y = two
    X = X * [1, 1000, 1]
    low, high = X[:, 1].min(), X[:, 1].max()
    message = f"Feature 1 ranges from {low:g} to {high:g},"
    with pytest.warns(UserWarning, match=message) as caught:
        svc(kernel, gamma="scale").fit(X, y)
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match=f"Feature 'price' ranges from {low:g} to {high:g},"):
        svc(kernel, gamma="scale").fit(pd.DataFrame(X, columns=["size", "price", "age"]), y)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid"])
@pytest.mark.filterwarnings("ignore:kernel='sigmoid'")
def test_an_unscaled_feature_of_sparse_data_is_named_too(kernel, two):
    X, y = two
    X = np.abs(X) * [1, 1000, 1]
    X[::2, 1] = 0  # absent, but in its range
    says = f"Feature 1 ranges from 0 to {X[:, 1].max():g},"
    with pytest.warns(UnscaledWarning, match=says) as caught:
        svc(kernel, gamma=1e-7).fit(sp.csr_array(X), y)
    assert "MaxAbsScaler" in str(caught[0].message)  # which leaves zeros alone


def test_scaled_features_do_not_warn(two):
    X, y = two
    svc().fit(X * [1, 99, 1], y)  # warnings are errors here
    svc().fit(sp.csr_array(X * [1, 99, 1]), y)
    make_pipeline(StandardScaler(), svc()).fit(X * [1, 1000, 1], y)


def test_verbose_logs_a_summary(two, caplog, capsys):
    with caplog.at_level(logging.INFO, logger="widemargin"):
        svc(verbose=0, levels=1).fit(*two)
        assert caplog.records == []
        model = svc(verbose=1, levels=1).fit(*two)
    level, whole = (r.getMessage() for r in caplog.records if r.name == "widemargin")
    assert level.startswith(f"level 1: {model.levels_[0].n_clusters} clusters")
    assert whole.startswith(f"{len(model.support_)} support vectors")
    assert f"relative duality gap {model.duality_gap_:.2g}" in whole
    assert capsys.readouterr() == ("", "")
