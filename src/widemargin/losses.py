"""The losses and their duals, in signed coefficients b_i = y_i a_i.

With targets t_i (+1 or -1; 0 if the sample takes no part) every binary problem is

    min_w  1/2 |w|^2 + sum_i C_i loss(t_i g(x_i)),      g(x) = w . phi(x)
    min_b  1/2 b'Kb - t'b + 1/2 sum_i rho_i b_i^2,      l_i <= b_i <= u_i

and w = sum_i b_i phi(x_i).  The core has the same losses (cpp/additive/losses.hpp);
tests/test_losses.py compares the two.  A new loss needs a class here and a case there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from widemargin import _core


class Loss(ABC):
    """A loss of the margin: its value, its gap, and its bounds and curvature in the dual."""

    name: str

    @property
    def core(self) -> _core.Loss:
        """Return the same loss in the compiled core."""
        return _core.Loss(self.name)

    @abstractmethod
    def ridge(self, c):
        """Return rho, the curvature that the loss adds to the dual."""

    @abstractmethod
    def largest(self, c):
        """Return the largest |b|."""

    @abstractmethod
    def _of_slack(self, slack, c):
        """Return C loss of a sample that misses its margin by ``slack``."""

    def bounds(self, target, c) -> tuple[np.ndarray, np.ndarray]:
        """Return l and u: coefficients have the target's sign, and are 0 for target 0."""
        largest = self.largest(c)
        return np.where(target < 0, -largest, 0.0), np.where(target > 0, largest, 0.0)

    def value(self, target, decision, c) -> np.ndarray:
        """Return C loss(t g)."""
        return self._of_slack(np.maximum(target * (target - decision), 0.0), c)

    def gap(self, target, decision, coef, c) -> np.ndarray:
        """Return a sample's part of the gap, C loss(t g) + rho b^2 / 2 - b (t - g)."""
        return self.value(target, decision, c) + coef * (
            0.5 * self.ridge(c) * coef - (target - decision)
        )


class Hinge(Loss):
    """max(0, 1 - m)."""

    name = "hinge"

    def ridge(self, c):
        return np.zeros(np.shape(c))

    def largest(self, c):
        return c

    def _of_slack(self, slack, c):
        return c * slack


class SquaredHinge(Loss):
    """max(0, 1 - m)^2."""

    name = "squared_hinge"

    def ridge(self, c):
        return 0.5 / c

    def largest(self, c):
        return np.full(np.shape(c), np.inf)

    def _of_slack(self, slack, c):
        return c * slack**2


LOSSES: dict[str, Loss] = {loss.name: loss for loss in (SquaredHinge(), Hinge())}
