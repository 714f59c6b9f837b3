"""PmSVM-LUT with Chebyshev nodes in x, which the paper may mean, rather than in ln(x + 0.05)."""

from __future__ import annotations

from unittest import mock

import numpy as np

from widemargin import AdditiveSVC, papers
from widemargin.additive import tables

LINEAR = "chebyshev_linear"
"""What experiments and their results call nodes in x."""


def nodes_in_x(degree: int) -> np.ndarray:
    """PmSVM-LUT eq. 13 on [0, 1].

    >>> nodes_in_x(1).round(3).tolist()
    [0.854, 0.146]
    """
    i = np.arange(1, degree + 2)
    return (np.cos((2 * i - 1) / (2 * (degree + 1)) * np.pi) + 1) / 2


class NodesInX(AdditiveSVC):
    """`AdditiveSVC` whose ``approximation="chebyshev"`` has its nodes in x."""

    def fit(self, X, y, sample_weight=None):
        """Fit with the other nodes; predictions take the tables that were made of them."""
        with mock.patch.object(tables, "chebyshev_nodes", nodes_in_x):
            return super().fit(X, y, sample_weight)


def pmsvm_lut(*, approximation: str = "chebyshev", **changes) -> AdditiveSVC:
    """`papers.pmsvm_lut`, or with ``approximation="chebyshev_linear"`` the same with nodes in x."""
    if approximation != LINEAR:
        return papers.pmsvm_lut(approximation=approximation, **changes)
    return NodesInX(**papers.pmsvm_lut(**changes).get_params())
