"""Compute objectives and duality gaps from the sums of a pass over the data.

The primal is P(w) = 1/2 |w|^2 + sum_i C_i loss(t_i g_i) with decisions g_i = w . phi(x_i), the
dual D(b) = t'b - 1/2 b'Kb - 1/2 sum_i rho_i b_i^2 in signed coefficients (see losses.py).  At a
feasible b with w = sum_i b_i phi(x_i) one has |w|^2 = sum_i b_i g_i, so

    P(w) - D(b) = sum_i [ C_i loss(t_i g_i) + rho_i b_i^2 / 2 - b_i (t_i - g_i) ],

where no term is negative (the core adds them in forms without cancellation).  The gap bounds the
distance of either objective to the optimum.  It needs a symmetric kernel: the published
polynomial tables are not symmetric, so they have no primal and no gap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
