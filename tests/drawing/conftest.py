"""Small models to draw."""

import pytest

from widemargin import AdditiveSVC

from .helpers import X, Y


@pytest.fixture(scope="module")
def three():
    return AdditiveSVC("chi2", random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def two():
    return AdditiveSVC("chi2", random_state=0).fit(X, Y > 0)
