"""Settings, and what is learned from data before any label."""

import numpy as np
import pytest

from widemargin.additive.learn import Settings, learn
from widemargin.additive.lookup import BinnedLookup, PolynomialLookup
from widemargin.additive.source import Values
from widemargin.additive.tables import _MAX_EIGEN, APPROXIMATIONS

from .encoding import crowded


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kernel": "rbf"}, "kernel"),
        ({"approximation": "nystroem"}, "approximation"),
        ({"rank": 0}, "rank"),
        ({"n_bins": 65_536}, "n_bins"),
        ({"binning": "quantile"}, "binning"),
        ({"scaling": "standard"}, "scaling"),
    ],
)
def test_settings_that_there_are_not_are_named(changes, message):
    Settings().check()
    with pytest.raises(ValueError, match=message):
        Settings(**changes).check()


@pytest.mark.parametrize(
    ("changes", "lookup"),
    [
        ({}, BinnedLookup),
        ({"approximation": "chebyshev"}, BinnedLookup),
        ({"approximation": "pmsvm"}, PolynomialLookup),
        ({"approximation": "pmsvm", "n_bins": 100}, BinnedLookup),
        ({"approximation": "pmsvm", "binning": "uniform"}, BinnedLookup),
    ],
)
def test_only_pmsvm_looks_at_values_themselves_unless_bins_are_asked_for(changes, lookup):
    assert Settings(**changes).lookup is lookup


@pytest.mark.parametrize("approximation", APPROXIMATIONS)
@pytest.mark.parametrize("n_bins", [100, 2 * _MAX_EIGEN])
def test_the_kernel_is_evaluated_on_all_pairs_of_nodes_once(approximation, n_bins):
    pairs = []

    def chi2(x, y):
        x, y = np.broadcast_arrays(x, y)
        if x.ndim == 2 and x.shape[0] == x.shape[1]:
            pairs.append(x.shape)
        return 2 * x * y / np.maximum(x + y, 1e-300)

    settings = Settings(chi2, approximation, scaling="global", n_bins=n_bins, binning="uniform")
    learned = learn(Values.of(crowded()), np.ones(2000), settings)
    others = not learned.tables.symmetric  # which have symmetric tables for their certificate
    assert len(pairs) == 1 + others
