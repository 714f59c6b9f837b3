"""Warnings of data: a class that is predicted nowhere, negative values where amounts are meant."""

import warnings

import numpy as np
import pytest

from widemargin import AdditiveSVC, KernelSVC
from widemargin.errors import LostClassWarning, NegativeWarning

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
RARE = np.where(np.arange(200) < 6, "rare", "usual")  # nothing tells them apart


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_a_class_that_is_predicted_nowhere_is_named(kernel):
    model = KernelSVC(kernel, C=0.01)
    with pytest.warns(LostClassWarning, match=r"'rare' is predicted for none of its 6.*balanced"):
        model.fit(X, RARE)
    assert not np.any(model.predict(X) == "rare")


def test_the_warning_is_about_rows_of_that_class_in_several_classes():
    y = np.concatenate([np.zeros(97), np.ones(97), np.full(6, 2)])
    data = X + 3 * np.eye(3)[np.minimum(y, 1).astype(int)]
    with pytest.warns(LostClassWarning, match=r"Class 2\.0 is predicted for none of its 6"):
        model = KernelSVC(C=0.01).fit(data, y)
    assert set(model.predict(data)) == {0.0, 1.0}


@pytest.mark.parametrize("how", [{"C": 100.0}, {"C": 0.01, "class_weight": "balanced"}])
def test_classes_that_are_predicted_are_not_named(how):
    with warnings.catch_warnings():
        warnings.simplefilter("error", LostClassWarning)
        model = KernelSVC(**how).fit(X, RARE)
    assert np.any(model.predict(X[:6]) == "rare")


@pytest.mark.parametrize("kernel", ["chi2", "hellinger", "jensen_shannon"])
def test_negative_values_are_no_amounts(kernel):
    with pytest.warns(NegativeWarning, match=rf"kernel='{kernel}' is for amounts, and 3 columns"):
        AdditiveSVC(kernel).fit(X, RARE)


@pytest.mark.parametrize("kernel", ["intersection", "linear"])
def test_other_kernels_take_them(kernel):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        AdditiveSVC(kernel).fit(X, RARE)
        AdditiveSVC("chi2").fit(np.abs(X), RARE)
