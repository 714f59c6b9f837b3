"""Arrays that need no conversion go past scikit-learn's checks, which change nothing about them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from widemargin import AdditiveSVC, KernelSVC
from widemargin.kernel.coefficients import Coefficients
from widemargin.kernel.kernels import make_kernel
from widemargin.kernel.precision import predicts_in_single
from widemargin.validation import median

MACHINES = [AdditiveSVC(random_state=0), KernelSVC(random_state=0)]
each_machine = pytest.mark.parametrize("machine", MACHINES, ids=lambda m: type(m).__name__)


def points(n=40):
    rng = np.random.default_rng(0)
    X = rng.random((n, 3))
    return X, (X[:, 0] > 0.5).astype(int)


@each_machine
@pytest.mark.parametrize("y_type", [np.int64, np.uint8, bool, str])
def test_an_array_is_what_a_list_is(machine, y_type):
    X, y = points()
    y = y.astype(y_type)
    plain, listed = machine.fit(X, y).decision_function(X), machine.fit(X.tolist(), y.tolist())
    assert listed.n_features_in_ == 3
    assert_array_equal(listed.decision_function(X.tolist()), plain)
    assert_array_equal(listed.predict(X), listed.predict(X.tolist()))


@each_machine
@pytest.mark.parametrize(
    ("spoil", "match"),
    [
        (lambda X, y: (X[:, 0], y), "Expected 2D array"),
        (lambda X, y: (X[:0], y[:0]), "minimum of 1 is required"),
        (lambda X, y: (X[:, :0], y), "0 feature"),
        (lambda X, y: (X, y[:-1]), "inconsistent numbers"),
        (lambda X, y: (X, np.stack([y, y], axis=1)), "1d array"),
        (lambda X, y: (X.astype(complex), y), "Complex"),
        (lambda X, y: (X, y + 0.25), "continuous"),
        (lambda X, y: (np.vstack([X[1:], np.full(3, np.inf)]), y), "infinity at row"),
    ],
)
def test_what_is_wrong_is_still_said(machine, spoil, match):
    with pytest.raises(ValueError, match=match):
        machine.fit(*spoil(*points()))


@each_machine
def test_another_width_and_lost_names_are_still_noticed(machine):
    pandas = pytest.importorskip("pandas")
    X, y = points()
    machine.fit(X, y)
    with pytest.raises(ValueError, match="expecting 3 features"):
        machine.predict(X[:, :2])
    machine.fit(pandas.DataFrame(X, columns=["a", "b", "c"]), y)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        machine.predict(X)
    assert not hasattr(machine.fit(X, y), "feature_names_in_")


@each_machine
@pytest.mark.parametrize("y_type", [np.int64, np.float64])
def test_labels_of_too_many_kinds_are_warned_of_once(machine, y_type):
    X, _ = points()
    with pytest.warns(UserWarning, match="unique classes is greater than 50%") as seen:
        machine.fit(X, np.minimum(np.arange(40), 25).astype(y_type))
    assert sum("unique classes" in str(w.message) for w in seen) == 1


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=40))
def test_the_median_is_numpys(values):
    values = np.array(values)
    assert median(values) == np.median(values)
    assert median(values[:0]) == 0.0


@given(st.integers(0, 1000), st.floats(-3, 9), st.sampled_from(["rbf", "poly", "sigmoid"]))
def test_a_bound_on_rounding_is_one(seed, size, kernel):
    """Where all values are at most as large as the diagonal, nothing has to be computed."""
    rng = np.random.default_rng(seed)
    X, coef = rng.standard_normal((30, 3)), 10**size * rng.standard_normal((30, 2))
    made = make_kernel(kernel, 0.5, 1.0, 3, X, np.float32)
    rows = made.prepare(X)
    values = np.empty((30, 30), dtype=np.float32)
    made.fill(made.as_left(rows), rows, values)
    largest = np.sqrt((values.astype(np.float64) ** 2 @ coef**2).max())
    found = predicts_in_single(made, rows, Coefficients(coef))
    assert found == (3 * made.relative_error(rows) * largest <= 1e-3)
