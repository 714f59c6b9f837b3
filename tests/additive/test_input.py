"""Bad data is refused, and odd data is read."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

from widemargin import AdditiveSVC

from .helpers import X4, Y4, svc


def replaced(value, at=(2, 1), dtype=np.float64):
    X = X4.astype(dtype)
    X[at] = value
    return X


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_matrix])
@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "inf")])
def test_a_value_that_is_not_finite_is_named_by_place(value, name, layout, dtype):
    X = layout(replaced(value, dtype=dtype))
    with pytest.raises(ValueError, match=f"{name}.* row 2, column 1"):
        svc().fit(X, Y4)
    with pytest.raises(ValueError, match=f"{name}.* row 2, column 1"):
        svc().fit(layout(X4), Y4).predict(X)


def test_a_value_that_is_not_finite_is_found_in_a_late_row():
    X = np.ones((10_000, 3))
    X[9_000, 2] = np.nan
    with pytest.raises(ValueError, match="NaN at row 9000, column 2"):
        svc().fit(X, np.arange(10_000) % 2)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("scaling", ["global", None])
def test_a_negative_value_is_named_by_place_with_the_scaling_that_helps(scaling, layout):
    with pytest.raises(ValueError, match=r'row 2, column 1.*scaling="minmax"'):
        svc(scaling=scaling).fit(layout(replaced(-0.1)), Y4)


def test_the_scaling_that_helps_against_negative_values_does_help():
    X = replaced(-0.1)
    assert svc(scaling="minmax", C=100.0).fit(X, Y4).score(X, Y4) == 1.0


BAD_SHAPES = {
    "no rows": (np.ones((0, 3)), np.ones(0), r"0 sample\(s\)"),
    "no features": (np.ones((4, 0)), Y4, r"0 feature\(s\)"),
    "one dimension": (np.ones(4), Y4, "Expected 2D array"),
    "complex": (X4 + 1j, Y4, "Complex data not supported"),
    "strings": (X4.astype(str), Y4, "arrays of bytes/strings"),
}


@pytest.mark.parametrize(("X", "y", "message"), BAD_SHAPES.values(), ids=BAD_SHAPES)
def test_data_of_a_wrong_shape_or_kind_is_refused(X, y, message):
    with pytest.raises(ValueError, match=message):
        svc().fit(X, y)


@pytest.mark.parametrize("method", ["predict", "decision_function", "contributions"])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_a_wrong_number_of_features_is_refused(layout, method):
    model = svc().fit(X4, Y4)
    with pytest.raises(ValueError, match="X has 2 features, but AdditiveSVC is expecting 3"):
        getattr(model, method)(layout(X4[:, :2]))


@pytest.mark.parametrize("index", [3, 2**31 - 1, -1])
@pytest.mark.parametrize("method", ["fit", "predict"])
def test_a_sparse_index_out_of_range_is_named_by_its_row(method, index):
    X = sp.csr_array(X4)
    X.indices[X.indptr[1]] = index
    model = svc() if method == "fit" else svc().fit(X4, Y4)
    with pytest.raises(ValueError, match=r"row 1\b.*out of range"):
        model.fit(X, Y4) if method == "fit" else model.predict(X)


def test_more_features_than_indices_can_count_are_refused():
    X = sp.csr_array((np.ones(4), (np.arange(4), np.arange(4))), shape=(4, 2**40))
    with pytest.raises(ValueError, match="features"):
        svc().fit(X, Y4)


@pytest.mark.parametrize("weight", [np.nan, np.inf, -1.0])
def test_class_weights_must_be_finite_and_not_negative(weight):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="class_weight of class 0 must be finite"):
        AdditiveSVC(class_weight={0: weight, 1: 1.0, 2: 1.0}).fit(X, y)


def test_a_word_for_class_weights_is_ours_to_refuse():
    """Not that of a function of scikit-learn's which the user has not called."""
    said = "class_weight='heavy' is not known. Use 'balanced'\\. Or give weights in a dict"
    with pytest.raises(ValueError, match=f"^{said}"):
        AdditiveSVC(class_weight="heavy").fit(*load_iris(return_X_y=True))


def test_a_coordinate_out_of_range_is_named():
    X = sp.coo_array(np.eye(4))
    X.coords[0][0] = 50_000_000
    with pytest.raises(ValueError, match="row index 50000000 is out of range"):
        AdditiveSVC().fit(X, [0, 1, 0, 1])


def test_fields_of_structured_arrays_are_read_whatever_their_strides():
    table = np.zeros(40, dtype=[("a", "u1"), ("b", "f4", (3,))])
    table["b"] = np.random.default_rng(0).random((40, 3))
    y = np.arange(40) % 2
    packed = AdditiveSVC(random_state=0).fit(np.ascontiguousarray(table["b"]), y)
    strided = AdditiveSVC(random_state=0).fit(table["b"], y)
    np.testing.assert_array_equal(
        packed.decision_function(table["b"]), strided.decision_function(table["b"])
    )
