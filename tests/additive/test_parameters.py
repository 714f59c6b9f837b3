"""Bad parameters and kernels are named."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from widemargin import AdditiveSVC, PowerMean

from .helpers import X4, Y4, svc

OUT_OF_RANGE = {
    "C": [0, -1.0, np.inf, np.nan],
    "tol": [0, -1e-3, np.nan],
    "max_iter": [0, -5],
    "visits": [0, 101],
    "stopping": ["tol", None],
    "rank": [0, -1, 257, "many"],
    "n_bins": [0, -1, 65_536, "many"],
    "loss": ["log", None],
    "approximation": ["nystroem", None],
    "binning": ["quantile", None],
    "scaling": ["standard", False],
    "multi_class": ["ovo", None],
    "C_unit": ["trace", None],
    "kernel": ["rbf"],
    "class_weight": ["heavy", {0: -1.0, 1: 1.0}],
    "n_jobs": [0],
}

WRONG_TYPE = {
    "C": ["1", None, True, [1.0]],
    "tol": ["1e-3", None],
    "max_iter": [1.5, "10", None, True],
    "rank": [2.5, None, True],
    "n_bins": [100.0, None],
    "kernel": [None, 3],
    "fit_intercept": ["no"],
    "warm_start": ["no"],
    "verbose": ["loud"],
    "n_jobs": ["two"],
}


def pairs(table):
    return [pytest.param(k, v, id=f"{k}={v!r}") for k, values in table.items() for v in values]


@pytest.mark.parametrize(("name", "value"), pairs(OUT_OF_RANGE))
def test_a_parameter_out_of_range_is_named(name, value):
    with pytest.raises(ValueError, match=rf"\b{name}\b"):
        svc(**{name: value}).fit(X4, Y4)


@pytest.mark.parametrize(("name", "value"), pairs(WRONG_TYPE))
def test_a_parameter_of_the_wrong_type_is_named(name, value):
    with pytest.raises((TypeError, ValueError), match=rf"\b{name}\b"):
        svc(**{name: value}).fit(X4, Y4)


@pytest.mark.parametrize("p", [0.5, 1, np.inf, np.nan])
def test_a_power_mean_above_zero_is_refused(p):
    with pytest.raises(ValueError, match=r"p must be in \[-inf, 0\]"):
        svc(PowerMean(p)).fit(X4, Y4)


def test_numpy_scalars_are_numbers():
    model = svc(C=np.float32(1), rank=np.int64(2), n_bins=np.int32(50), max_iter=np.uint16(500))
    assert model.fit(X4, Y4).rank_ == 2


BAD_TOGETHER = [
    ({"approximation": "pmsvm", "rank": 4}, "rank=4 with approximation=.pmsvm"),
    ({"approximation": "fourier", "rank": 4}, "rank=4 with approximation=.fourier.*odd"),
    ({"approximation": "unary", "rank": 4}, "rank must be .auto. with approximation=.unary"),
    ({"approximation": "unary", "n_bins": 5000, "binning": "uniform"}, "set n_bins to 4,095"),
    ({"approximation": "chebyshev", "scaling": None}, r"defined on \[0, 1\].*scaling="),
    ({"approximation": "pmsvm", "scaling": None}, r"defined on \[0, 1\].*scaling="),
    ({"approximation": "fourier", "kernel": "linear"}, "homogeneous.*approximation=.spectral"),
]


@pytest.mark.parametrize(("changes", "message"), BAD_TOGETHER)
def test_parameters_that_do_not_go_together_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        svc(**changes).fit(2 * X4, Y4)


def lopsided(x, y):
    return x * y**2


def broken(x, y):
    return np.where(x + y > 0.5, np.nan, x * y)


def scalar_only(x, y):
    return float(np.sum(x * y))


def shifted(x, y):
    return x * y + 1


@pytest.mark.parametrize(
    ("kernel", "layout", "message"),
    [
        (lopsided, np.asarray, r"'lopsided' is not symmetric: k\("),
        (broken, np.asarray, r"'broken' is not finite: k\(.*\) = nan"),
        (scalar_only, np.asarray, "'scalar_only' is not vectorised"),
        (shifted, sp.csr_array, r"'shifted' is not zero at k\(0, y\)"),
    ],
)
def test_a_function_that_is_no_kernel_is_refused(kernel, layout, message):
    with pytest.raises(ValueError, match=message):
        svc(kernel).fit(layout(X4), Y4)


def test_a_kernel_that_does_not_vanish_at_zero_works_on_dense_data():
    assert svc(shifted, C=100.0).fit(X4, Y4).score(X4, Y4) == 1.0


def test_a_user_function_equals_the_named_kernel(two):
    X, y = two

    def chi2(x, y):
        return 2 * x * y / np.maximum(x + y, 1e-300)

    own, named = (svc(kernel, tol=1e-9).fit(X, y) for kernel in (chi2, "chi2"))
    np.testing.assert_allclose(own.decision_function(X), named.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("method", ["predict", "decision_function", "contributions"])
def test_an_unfitted_model_says_so(method):
    with pytest.raises(NotFittedError):
        getattr(svc(), method)(X4)


def test_a_model_that_was_never_fitted_to_the_end_is_not_fitted():
    model = AdditiveSVC()
    model.n_features_in_ = 2  # what an interrupted first fit leaves behind
    with pytest.raises(NotFittedError):
        model.predict([[0.0, 1.0]])
