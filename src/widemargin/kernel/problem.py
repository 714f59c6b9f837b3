"""The quadratic programme of the kernel machine, and what a solution of it says."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from widemargin.kernel.kernels import Kernel


@dataclass(frozen=True)
class Problem:
    """min 1/2 a'Qa + p'a over 0 <= a <= U, with Q_ij = s_i s_j k(x_i, x_j).

    The dual of a support vector machine without a bias.  The hinge loss has the labels as signs s,
    and p = -1.  The gradient g = Qa + p gives the duality gap, a sum of non-negative terms:

        P - D = sum_i (U_i - a_i) max(0, -g_i) + a_i max(0, g_i)
    """

    kernel: Kernel
    rows: Any  # of each variable, as the kernel takes them; a row may occur more than once
    sign: np.ndarray
    linear: np.ndarray
    upper: np.ndarray

    @classmethod
    def hinge(cls, kernel: Kernel, rows: Any, y: np.ndarray, upper: np.ndarray) -> Problem:
        """Classification with labels -1.0 and 1.0 and upper bounds C_i."""
        return cls(kernel, rows, y, np.full(len(y), -1.0), upper)

    def __len__(self) -> int:
        return len(self.sign)

    @cached_property
    def diagonal(self) -> np.ndarray:
        """Q_ii, kept away from zero: a step divides by it."""
        return np.maximum(self.kernel.diagonal(self.rows), 1e-12)


@dataclass
class Solution:
    """The dual variables, and how far they are from the optimum."""

    alpha: np.ndarray
    primal: float
    dual: float
    n_iter: int
    history: list[dict] = field(default_factory=list)

    @property
    def relative_gap(self) -> float:
        return (self.primal - self.dual) / max(self.primal, np.finfo(np.float64).tiny)


def gap_terms(alpha: np.ndarray, gradient: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Each variable's share of primal minus dual."""
    return np.where(gradient < 0, (alpha - upper) * gradient, alpha * gradient)


def dual_value(alpha: np.ndarray, gradient: np.ndarray, linear: np.ndarray) -> float:
    """-1/2 a'Qa - p'a, over all variables that are not zero."""
    return -float(linear @ alpha + 0.5 * alpha @ (gradient - linear))
