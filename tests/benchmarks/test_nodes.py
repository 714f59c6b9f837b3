"""PmSVM-LUT with its nodes in x: the formula, and errors that are larger than in the logarithm."""

import numpy as np
import pytest
from benchmarks.methods import METHODS, make
from benchmarks.nodes import NodesInX, nodes_in_x
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from widemargin import AdditiveSVC, PowerMean


@pytest.mark.parametrize("degree", [1, 2, 5, 9])
def test_nodes_are_the_roots_of_chebyshevs_polynomial(degree):
    roots = np.polynomial.chebyshev.Chebyshev.basis(degree + 1, domain=[0, 1]).roots()
    np.testing.assert_allclose(np.sort(nodes_in_x(degree)), np.sort(roots), atol=1e-14)


@pytest.mark.parametrize("rank", [3, 6])
def test_nodes_in_x_are_worse_than_nodes_in_its_logarithm(rank):
    X = np.random.default_rng(0).uniform(size=(300, 2)) ** 3  # crowded near zero, as histograms are
    y = X[:, 0] > 0.1
    settings = {"approximation": "chebyshev", "rank": rank, "scaling": "global", "max_iter": 1}
    with pytest.warns(ConvergenceWarning, match="1 sweep"):
        logarithmic, linear = (
            kind(PowerMean(-8.0), **settings).fit(X, y).approximation_error().relative_weighted
            for kind in (AdditiveSVC, NodesInX)
        )
    assert linear > 2 * logarithmic


def test_an_experiment_names_them_and_a_digit_is_learned():
    X, y = load_digits(n_class=2, return_X_y=True)
    model = make("PmSVM-LUT", {"approximation": "chebyshev_linear", "degree": 3, "C": 0.1}, 0, 1)
    assert isinstance(model, NodesInX)
    assert model.fit(X, y).rank_ == 4
    assert model.score(X, y) > 0.99
    assert not isinstance(METHODS["PmSVM-LUT"](degree=3), NodesInX)
