"""Does ICD need a primal solver where features outnumber rows by far (its section 3.4)?

The paper prefers the primal problem (eq. 10) when d >> n, solved with the table T beside w so that
no unary code is made.  That is `newton` here: a truncated Newton method whose products with B(x)
are one look-up or one addition per value, and cumulative sums over the table.  It is compared with
the dual, which AdditiveSVC solves, on one class of sector and of news20 against the others, for few
rows: seconds until the objective is known to be within 1e-2, 1e-4 and 1e-6 of its optimum.  Of the
primal this is told by the optimum itself, which it would not know; of the dual by its own gap.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from benchmarks import data
from benchmarks.report import SEED, one_thread, table, write
from widemargin import papers
from widemargin.additive.codes import encode
from widemargin.additive.source import Values

TOLERANCES = (1e-2, 1e-4, 1e-6)


@dataclass(frozen=True)
class Unary:
    """Products with the matrix of unary codes B(x), which is never made (ICD, eq. 6 and 9).

    Entries of w between two codes that occur are all alike at the optimum, so that one entry, times
    the root of their number, stands for them.
    """

    ones: sp.csr_array  # (n, entries): the one that each value looks up
    root: np.ndarray  # of how many entries each stands for
    first: np.ndarray  # of each entry, the first of its feature
    end: np.ndarray  # and the one after the last

    @classmethod
    def of(cls, model, X) -> Unary:
        codes = encode(Values.of(X), model.model_.encoder)
        key = codes.index.astype(np.int64) * codes.n_codes + codes.data
        entries, cell = np.unique(key, return_inverse=True)
        feature, code = entries // codes.n_codes, entries % codes.n_codes
        before = np.where(np.append(-1, feature[:-1]) == feature, np.append(0, code[:-1]), 0)
        shape = (codes.n_rows, len(entries))
        ones = sp.csr_array((np.ones(len(cell)), cell, codes.start), shape=shape)
        bounds = [np.searchsorted(feature, feature, side) for side in ("left", "right")]
        return cls(ones, np.sqrt(code - before), *bounds)

    def times(self, w: np.ndarray) -> np.ndarray:
        """B w: T is the running sum of w within a feature."""
        total = np.append(0.0, np.cumsum(self.root * w))
        return self.ones @ (total[1:] - total[self.first])

    def transposed(self, c: np.ndarray) -> np.ndarray:
        """B'c: what lies at or above an entry, within its feature."""
        below = np.append(0.0, np.cumsum(self.ones.T @ c))
        return self.root * (below[self.end] - below[:-1])


def newton(B: Unary, y: np.ndarray, C: float, best: float, within: float) -> list[tuple]:
    """Seconds and objectives of a truncated Newton method, until it is near the optimum."""
    started = time.perf_counter()
    w = np.zeros(B.ones.shape[1])
    decision = np.zeros(len(y))
    path = []
    for _ in range(500):
        slack = np.maximum(1 - y * decision, 0)
        objective = 0.5 * w @ w + C * slack @ slack
        path.append((time.perf_counter() - started, objective))
        if objective <= best * (1 + within):
            break
        gradient = w - 2 * C * B.transposed(y * slack)
        step = _conjugate_gradients(B, 2 * C * (slack > 0), gradient)
        moved = B.times(step)
        w, decision = _line_search(w, decision, step, moved, y, C)
    return path


def _conjugate_gradients(B: Unary, curvature: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """(I + B'DB) s = -gradient, to a tenth, as LIBLINEAR does."""
    s, r = np.zeros_like(gradient), -gradient
    p, square = r.copy(), r @ r
    enough = 0.01 * square
    for _ in range(100):
        product = p + B.transposed(curvature * B.times(p))
        size = square / (p @ product)
        s, r = s + size * p, r - size * product
        old, square = square, r @ r
        if square <= enough:
            break
        p = r + (square / old) * p
    return s


def _line_search(w, decision, step, moved, y, C) -> tuple[np.ndarray, np.ndarray]:
    """Half as far until the objective falls."""

    def value(t):
        slack = np.maximum(1 - y * (decision + t * moved), 0)
        return 0.5 * (w + t * step) @ (w + t * step) + C * slack @ slack

    t, here = 1.0, value(0.0)
    while value(t) > here and t > 1e-10:
        t /= 2
    return w + t * step, decision + t * moved


def compare(name: str, X, y, n: int, C: float) -> list[str]:
    rng = np.random.default_rng(SEED)
    rows = np.sort(rng.permutation(X.shape[0])[:n])
    X, y = X[rows], np.where(y[rows] == np.bincount(y[rows].astype(int)).argmax(), 1.0, -1.0)
    exact = papers.icd(C=C, tol=1e-7, max_iter=10_000).fit(X, y)
    best = exact.objective_
    seconds = {
        tol: min(papers.icd(C=C, tol=tol).fit(X, y).fit_record_.seconds for _ in range(3))
        for tol in TOLERANCES
    }
    B = Unary.of(exact, X)
    paths = [newton(B, y, C, best, TOLERANCES[-1]) for _ in range(3)]
    reached = [
        min(next((t for t, f in path if f <= best * (1 + tol)), np.inf) for path in paths)
        for tol in TOLERANCES
    ]
    apart = paths[0][-1][1] / best - 1
    used = int(np.count_nonzero(np.bincount(X.indices)))
    return [
        name, str(n), str(used), f"{C:g}",
        *(f"{1e3 * seconds[tol]:.1f} / {1e3 * t:.1f}"
          for tol, t in zip(TOLERANCES, reached, strict=True)),
        f"{apart:.1e}",
    ]  # fmt: skip


def main() -> None:
    one_thread()
    columns = ["data", "rows", "features used", "C", *(f"{tol:g}: dual / primal, ms"
               for tol in TOLERANCES), "primal / dual objective - 1"]  # fmt: skip
    rows = [
        compare(name, X, y, n, C)
        for name, (X, y) in {"sector": data.sector()[:2], "news20": data.news20()[:2]}.items()
        for n in (50, 200, 1000)
        for C in (1e-3, 1.0)
    ]
    write("primal", "ICD where features outnumber rows: dual and primal", table(columns, rows))


if __name__ == "__main__":
    main()
