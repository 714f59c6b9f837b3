"""What does not change a model."""

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from .problems import LOSSES, svc, unconverged

counts = st.integers(0, 8)


@st.composite
def problems(draw):
    """A few rows of counts and two or three classes, each of which occurs."""
    n_rows, n_features = draw(st.integers(6, 14)), draw(st.integers(1, 4))
    row = st.lists(counts, min_size=n_features, max_size=n_features)
    X = draw(st.lists(row, min_size=n_rows, max_size=n_rows))
    n_classes = draw(st.integers(2, 3))
    labels = st.lists(
        st.integers(0, n_classes - 1), min_size=n_rows - n_classes, max_size=n_rows - n_classes
    )
    return np.array(X, dtype=np.float64), np.array([*range(n_classes), *draw(labels)])


def invariance(test):
    few = settings(max_examples=20)
    return unconverged(few(given(problem=problems(), data=st.data())(test)))


def decide(X, y, at, sample_weight=None, **changes):
    model = svc(tol=1e-14, max_iter=3000, **changes).fit(X, y, sample_weight=sample_weight)
    return model.decision_function(at)


def assert_same(one, other):
    np.testing.assert_allclose(one, other, atol=1e-5)


@invariance
def test_order_of_rows_does_not_matter(problem, data):
    X, y = problem
    order = data.draw(st.permutations(range(len(X))))
    assert_same(decide(X[order], y[order], X), decide(X, y, X))


@invariance
def test_order_of_features_does_not_matter(problem, data):
    X, y = problem
    order = data.draw(st.permutations(range(X.shape[1])))
    assert_same(decide(X[:, order], y, X[:, order]), decide(X, y, X))


@invariance
def test_whole_weights_are_copies_and_weight_zero_is_absence(problem, data):
    X, y = problem
    weight = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(X), max_size=len(X))))
    weight[: y.max() + 1] = np.maximum(weight[: y.max() + 1], 1)  # the first rows: one per class
    copies = np.repeat(np.arange(len(X)), weight)
    assert_same(decide(X, y, X, sample_weight=weight), decide(X[copies], y[copies], X))


@invariance
def test_names_of_labels_do_not_matter(problem, data):
    X, y = problem
    names = np.array(sorted(data.draw(st.sets(st.text("abc", min_size=1), min_size=3, max_size=3))))
    assert_same(decide(X, names[y], X), decide(X, y, X))


@invariance
def test_reversed_labels_reverse_the_columns(problem, data):
    X, y = problem
    loss = data.draw(st.sampled_from(LOSSES))
    reverse = decide(X, -y, X, loss=loss, C=0.1)
    reverse = -reverse if reverse.ndim == 1 else reverse[:, ::-1]
    assert_same(reverse, decide(X, y, X, loss=loss, C=0.1))


@invariance
def test_sparse_and_dense_data_give_the_same_model(problem, data):
    X, y = problem
    layout = data.draw(st.sampled_from([sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix]))
    changes = {"approximation": data.draw(st.sampled_from(["spectral", "unary", "fourier"]))}
    assert_same(decide(layout(X), y, layout(X), **changes), decide(X, y, X, **changes))
