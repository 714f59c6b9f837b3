"""Probabilities of many classes from those of their pairs."""

import tracemalloc

import numpy as np

from widemargin.libsvm.predictors import coupled


def test_many_rows_of_many_classes_take_little_memory():
    """A matrix of every row would be 80 MB here, and there are several of them."""
    n_classes = 100
    pairs = np.random.default_rng(0).random((1000, n_classes * (n_classes - 1) // 2))
    tracemalloc.start()
    try:
        found = coupled(pairs, n_classes)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 60e6
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_array_equal(found[-1:], coupled(pairs[-1:], n_classes))
