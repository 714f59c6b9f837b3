"""The dyadic factor of the intersection kernel is exact and short."""

import numpy as np
import pytest
from benchmarks.dyadic import DyadicCode


@pytest.mark.parametrize("levels", [1, 3, 7])
def test_products_of_dyadic_codes_are_minima(levels):
    values = np.arange((1 << levels) + 1)[:, None]
    code = DyadicCode(levels).fit_transform(values)
    assert code.shape[1] == 1 << levels
    assert np.diff(code.indptr).max() <= levels + 1
    np.testing.assert_allclose((code @ code.T).toarray(), np.minimum(values, values.T), atol=1e-12)


def test_features_have_columns_of_their_own():
    X = np.array([[3, 0], [0, 3], [2, 1]])
    code = DyadicCode(2).fit_transform(X)
    expected = [[3, 0, 2], [0, 3, 1], [2, 1, 3]]
    np.testing.assert_allclose((code @ code.T).toarray(), expected, atol=1e-12)


def test_other_integers_are_refused():
    with pytest.raises(ValueError, match="integers from 0 to 4"):
        DyadicCode(2).transform(np.array([[5]]))
