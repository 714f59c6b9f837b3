"""kernel="auto": the kernel follows from the kind of data."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

from widemargin import AdditiveMap, AdditiveSVC, load, save

RNG = np.random.default_rng(0)


def counts(n=300, d=400):
    """Words of texts: few of many, small numbers."""
    return sp.csr_array(RNG.poisson(0.02, (n, d)).astype(float))


def images(n=300, d=200):
    return RNG.integers(0, 256, (n, d)) * (RNG.random((n, d)) < 0.6)


def one_hot(n=300, d=200):
    """Categories, and two columns of numbers beside them."""
    return np.column_stack([RNG.random((n, d)) < 0.3, 90 * RNG.random((n, 2))])


CASES = {
    "few features": (lambda: images(d=100), "intersection"),
    "negative values": (lambda: RNG.normal(size=(300, 200)), "intersection"),
    "categories": (one_hot, "intersection"),
    "images": (images, "chi2"),
    "few images": (lambda: images(n=150), "intersection"),
    "counts": (counts, "chi2"),
    "dense counts": (lambda: counts().toarray(), "chi2"),
    "tf-idf": (lambda: normalize(counts()), "linear"),
    "nothing": (lambda: np.zeros((5, 300)), "chi2"),
}


def chosen(X) -> str:
    """The kernel that kernel="auto" chooses for some rows."""
    return AdditiveMap("auto").fit(X).kernel_


@pytest.mark.parametrize("name", CASES)
def test_the_kernel_suits_the_data(name):
    make, kernel = CASES[name]
    assert chosen(make()) == kernel


def test_columns_of_very_different_size_are_no_image():
    X = RNG.random((300, 200)) * 10.0 ** RNG.uniform(0, 6, 200)
    assert chosen(X) == "intersection"


def test_the_order_of_rows_does_not_matter():
    X = counts(2500)
    order = RNG.permutation(2500)
    assert chosen(X) == chosen(X[order])


def test_the_model_is_that_of_the_kernel_by_name():
    X, y = images(), np.arange(300) % 3
    chosen = AdditiveSVC(random_state=0).fit(X, y)
    named = AdditiveSVC("chi2", random_state=0).fit(X, y)
    assert (chosen.kernel, chosen.kernel_) == ("auto", "chi2")
    np.testing.assert_array_equal(chosen.decision_function(X), named.decision_function(X))
    assert AdditiveMap("auto").fit(X).kernel_ == "chi2"


def test_a_file_keeps_the_choice(tmp_path):
    X, y = load_digits(return_X_y=True)
    model = AdditiveSVC(random_state=0).fit(X[:200], y[:200])
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    assert (again.kernel, again.kernel_) == ("auto", "intersection")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
