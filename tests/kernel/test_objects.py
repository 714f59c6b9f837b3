"""Functions of rows that are no numbers, and functions that return sparse matrices."""

import numpy as np
import pytest
from scipy import sparse as sp
from sklearn.base import clone
from sklearn.svm import SVC

from widemargin import KernelSVC, save

TEXTS = [text for k in range(1, 15) for text in ("a" * k, "b" * k, "ab" * k, "ba" * k + "b")]
LABELS = np.array([text.count("a") > text.count("b") for text in TEXTS]) * 1
WORDS = np.array([[1 + t.count("a"), 1 + t.count("b")] for t in TEXTS]) / 30.0


def texts_kernel(a, b):
    assert isinstance(a[0], str)
    left, right = ([[1 + t.count("a"), 1 + t.count("b")] for t in texts] for texts in (a, b))
    return np.array(left) @ np.array(right).T / 900.0


def series_kernel(a, b):
    return np.array([[min(len(s), len(t)) + s[0] * t[0] for t in b] for s in a], dtype=float)


class Graph:
    def __init__(self, degrees):
        self.degrees = degrees


def graphs_kernel(a, b):
    most = 6
    left, right = (
        np.array([np.bincount(g.degrees, minlength=most) for g in graphs]) for graphs in (a, b)
    )
    return left @ right.T + 1.0


@pytest.mark.parametrize("container", [list, tuple, np.array, lambda t: np.array(t, dtype=object)])
def test_rows_may_be_texts(container):
    ours = KernelSVC(texts_kernel, tol=1e-9, C=50.0).fit(container(TEXTS), LABELS)
    numbers = KernelSVC("poly", degree=1, gamma=1.0, tol=1e-9, C=50.0).fit(WORDS, LABELS)
    np.testing.assert_allclose(
        ours.decision_function(container(TEXTS)), numbers.decision_function(WORDS), atol=1e-3
    )
    assert ours.score(container(TEXTS), LABELS) == numbers.score(WORDS, LABELS) > 0.9
    assert ours.shape_fit_ == (len(TEXTS),)
    assert not hasattr(ours, "n_features_in_")
    assert all(isinstance(text, str) for text in ours.support_vectors_)


def test_rows_may_be_a_pandas_series():
    pd = pytest.importorskip("pandas")
    given = KernelSVC(texts_kernel).fit(pd.Series(TEXTS), LABELS)
    listed = KernelSVC(texts_kernel).fit(TEXTS, LABELS)
    np.testing.assert_array_equal(given.predict(pd.Series(TEXTS)), listed.predict(TEXTS))


def test_rows_may_be_series_of_several_lengths_or_graphs():
    rng = np.random.default_rng(0)
    series = [rng.normal(size=n) + n % 2 for n in rng.integers(1, 9, size=60)]
    y = np.array([len(s) for s in series]) % 2
    model = KernelSVC(series_kernel).fit(series, y)
    theirs = SVC(kernel="precomputed").fit(series_kernel(series, series), y)
    assert model.predict(series).shape == theirs.predict(series_kernel(series, series)).shape
    graphs = [Graph(rng.integers(1 + k % 2, 4 + k % 2, size=7)) for k in range(60)]
    model = KernelSVC(graphs_kernel, warm_start=True).fit(graphs, np.arange(60) % 2)
    assert model.score(graphs, np.arange(60) % 2) > 0.9
    assert clone(model).fit(graphs, np.arange(60) % 2).n_iter_ == 1  # the same rows


def test_rows_may_be_arrays_of_one_shape():
    rng = np.random.default_rng(0)
    images = rng.normal(size=(50, 4, 3)) + (np.arange(50) % 2)[:, None, None]
    model = KernelSVC(lambda a, b: np.einsum("iab,jab->ij", a, b)).fit(images, np.arange(50) % 2)
    flat = KernelSVC("poly", degree=1, gamma=1.0).fit(images.reshape(50, 12), np.arange(50) % 2)
    assert model.score(images, np.arange(50) % 2) == flat.score(
        images.reshape(50, 12), np.arange(50) % 2
    )


def test_what_stays_refused(tmp_path):
    with pytest.raises(ValueError, match="Expected 2D array"):
        KernelSVC(texts_kernel).fit(np.arange(len(LABELS)), LABELS)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        KernelSVC(texts_kernel).fit(TEXTS, LABELS[:-1])
    with pytest.raises(TypeError, match="dense matrix of numbers"):
        save(KernelSVC(texts_kernel).fit(TEXTS, LABELS), tmp_path / "m")


def test_a_function_may_return_a_sparse_matrix():
    X = sp.csr_array(WORDS * (WORDS > 0.2))
    ours = KernelSVC(lambda a, b: a @ b.T).fit(X, LABELS)
    dense = KernelSVC(lambda a, b: (a @ b.T).toarray()).fit(X, LABELS)
    np.testing.assert_array_equal(ours.decision_function(X), dense.decision_function(X))
