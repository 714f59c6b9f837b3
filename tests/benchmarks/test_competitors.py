"""Every competitor learns, and says what it cannot do."""

import numpy as np
import pytest
from benchmarks.competitors import COMPETITORS
from benchmarks.competitors.pegasos import Pegasos
from sklearn.base import clone

pytestmark = pytest.mark.slow

OPTIONAL = {"intelex RBF": "sklearnex", "LightGBM": "lightgbm"}
SMALL = {
    "LIBSVM HIK": {"levels": 10, "C": 0.1},
    "Pegasos": {"batch": 8},
    "PWLSGD": {"bins": 5},
    "LIBSVM polynomial": {"gamma": 0.1},
    "CascadeSVM": {"parts": 4},
    "BCM": {"clusters": 4, "C": 10.0},
    "random partition": {"parts": 2},
    "SpSVM": {"basis": 40},
    "LLSVM": {"rank": 100, "gamma": 0.05, "C": 10.0},
    "LTPU": {"number": 100, "gamma": 0.05, "C": 10.0},
    "Fastfood": {"number": 512, "gamma": 0.05, "C": 10.0},
    "Fourier features": {"number": 512, "gamma": 0.05, "C": 10.0},
    "LaSVM": {"gamma": 0.05, "C": 10.0},
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", sorted(COMPETITORS.keys() - {"EBM"}))  # slow; see its own test
def test_four_classes_are_learned_and_a_clone_learns_the_same(name, digits):
    if name in OPTIONAL:
        pytest.importorskip(OPTIONAL[name])
    X, y, X_test, y_test = digits
    model = COMPETITORS[name](**SMALL.get(name, {}))
    first = clone(model).fit(X, y).predict(X_test)
    again = clone(model).fit(X, y).predict(X_test)
    assert np.mean(first == y_test) > 0.85
    np.testing.assert_array_equal(first, again)


def test_a_missing_package_is_named():
    from benchmarks.competitors.optional import MissingPackageError, needed

    with pytest.raises(MissingPackageError, match="pip install no-such-thing"):
        needed("no_such_thing", "no-such-thing")


def test_machines_of_two_classes_say_so(digits):
    with pytest.raises(ValueError, match="separates two classes and y has 4"):
        Pegasos().fit(digits[0], digits[1])
