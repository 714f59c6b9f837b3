"""The losses, their duals and certificates, in signed coefficients b_i.

A loss of a margin has targets t_i that are +1 or -1 (0 if the sample takes no part).  Every binary
problem is

    min_w  1/2 |w|^2 + sum_i C_i loss(t_i g(x_i)),      g(x) = w . phi(x)
    min_b  1/2 b'Kb - t'b + 1/2 sum_i rho_i b_i^2,      l_i <= b_i <= u_i

and w = sum_i b_i phi(x_i).  A loss of a tube has targets that are any numbers, and loses what
|t - g| exceeds its half width epsilon by:

    min_w  1/2 |w|^2 + sum_i C_i loss(|t_i - g(x_i)|)
    min_b  1/2 b'Kb - t'b + epsilon sum_i |b_i| + 1/2 sum_i rho_i b_i^2,      -u_i <= b_i <= u_i

The core has the same losses (cpp/additive/losses.hpp); tests/test_losses.py compares the two.  A
new loss needs a class here and a case there.

At a feasible b with w = sum_i b_i phi(x_i) one has |w|^2 = sum_i b_i g_i, so the gap of the two is

    P(w) - D(b) = sum_i [ C_i loss + epsilon |b_i| + rho_i b_i^2 / 2 - b_i (t_i - g_i) ],

where no term is negative (the core adds them in forms without cancellation).  The gap bounds the
distance of either objective to the optimum.  It needs a symmetric kernel: variables that were found
with the published polynomial tables, which are asymmetric, are judged with symmetric ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from widemargin import _core


class Loss(ABC):
    """A loss, of a margin unless it is a `Tube`: value, gap, bounds and curvature in the dual."""

    name: str
    by_row = False  # whether every row has targets of its own, rather than those of its class

    @property
    def core(self) -> _core.Loss:
        """Return the same loss in the compiled core."""
        return _core.Loss(self.name, None)

    def of_outputs(self, outputs: slice) -> Loss:
        """Return the loss of some outputs."""
        return self

    @abstractmethod
    def ridge(self, c):
        """Return rho, the curvature that the loss adds to the dual."""

    @abstractmethod
    def largest(self, c):
        """Return the largest |b|."""

    @abstractmethod
    def _of_slack(self, slack, c):
        """Return C loss of a sample that misses its margin, or the tube, by ``slack``."""

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


class Tube(Loss):
    """A loss of what |t - g| exceeds epsilon by; each output has its own epsilon."""

    by_row = True

    def __init__(self, epsilon):
        self.epsilon = np.array(epsilon, dtype=np.float64, ndmin=1)

    @property
    def core(self) -> _core.Loss:
        return _core.Loss(self.name, self.epsilon)

    def of_outputs(self, outputs: slice) -> Tube:
        return type(self)(self.epsilon[outputs])

    def bounds(self, target, c) -> tuple[np.ndarray, np.ndarray]:
        largest = np.broadcast_to(self.largest(c), np.shape(target))
        return -largest, largest

    def value(self, target, decision, c) -> np.ndarray:
        """Return C loss(|t - g|)."""
        return self._of_slack(np.maximum(np.abs(target - decision) - self.epsilon, 0.0), c)

    def gap(self, target, decision, coef, c) -> np.ndarray:
        """Return a sample's part of the gap."""
        return super().gap(target, decision, coef, c) + self.epsilon * np.abs(coef)


class EpsilonInsensitive(Tube, Hinge):
    """max(0, |t - g| - epsilon)."""

    name = "epsilon_insensitive"


class SquaredEpsilonInsensitive(Tube, SquaredHinge):
    """max(0, |t - g| - epsilon)^2."""

    name = "squared_epsilon_insensitive"


LOSSES: dict[str, Loss] = {loss.name: loss for loss in (SquaredHinge(), Hinge())}
TUBES: dict[str, type[Tube]] = {
    tube.name: tube for tube in (SquaredEpsilonInsensitive, EpsilonInsensitive)
}


N_SUMS = 5
LOSS, QUADRATIC, GAP, PG_MAX, PG_MIN = range(N_SUMS)  # rows of the core's `Account`


@dataclass(frozen=True)
class Certificate:
    """Per-problem objectives and violations, measured at fixed weights over all samples."""

    primal: np.ndarray
    gap: np.ndarray
    violation: np.ndarray

    @classmethod
    def from_account(cls, account: np.ndarray, n_problems: int) -> Certificate:
        a = account[:, :n_problems]
        return cls(
            primal=0.5 * a[QUADRATIC] + a[LOSS],
            gap=a[GAP],
            # LIBLINEAR's three parts at once: PGmax - PGmin <= tol, |PGmax| and |PGmin| <= tol.
            violation=np.maximum(a[PG_MAX] - a[PG_MIN], np.abs(a[PG_MAX : PG_MIN + 1]).max(axis=0)),
        )

    @property
    def dual(self) -> np.ndarray:
        return self.primal - self.gap

    @property
    def relative_gap(self) -> np.ndarray:
        """Gap over primal objective, per problem."""
        with np.errstate(invalid="ignore"):  # infinite after a divergence
            return self.gap / np.maximum(self.primal, np.finfo(np.float64).tiny)
