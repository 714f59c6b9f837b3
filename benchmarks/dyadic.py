"""ICD's open "sparse table T": the exact dyadic factor of the intersection kernel, measured.

min(s, t) of integers up to V = 2^L is the covariance of Brownian motion, and Levy built that by
midpoints: min(s, t) = st/V + the sum over levels l = 1..L of h_l(s) h_l(t) where s and t are in the
same interval of length w = V / 2^(l-1), with the hat h_l(t) = (distance of t to the nearer end of
its interval) / sqrt(w).  So every value has L + 1 numbers of V weights, exactly; unary codes t.

LIBLINEAR solves the same problem behind all codes, so that its seconds compare what they cost.
"""

from __future__ import annotations

import time
from statistics import median
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin

from benchmarks import data
from benchmarks.competitors.liblinear import liblinear
from benchmarks.competitors.quantisation import UnaryCode
from benchmarks.peer_gaps import linear_gap
from benchmarks.report import one_thread, table, write
from widemargin import AdditiveMap, AdditiveSVC

LEVELS = 7  # 128 bins
C, TOL = 1e-3, 0.01
REPEATS = 3
SETS = {"usps": None, "satimage": None, "letter": 5000, "ijcnn1": 20_000}


class DyadicCode(TransformerMixin, BaseEstimator):
    """Integers 0..2^levels to levels + 1 numbers each, whose products are their minima."""

    def __init__(self, levels: int = LEVELS):
        self.levels = levels

    def fit(self, X, y=None):
        return self

    def transform(self, X) -> sp.csr_matrix:
        counts = np.asarray(X)
        n, d = counts.shape
        size = 1 << self.levels
        if counts.min() < 0 or counts.max() > size:
            raise ValueError(f"DyadicCode takes integers from 0 to {size}.")
        values, columns = [counts / np.sqrt(size)], [np.zeros_like(counts)]
        for level in range(1, self.levels + 1):
            width = size >> (level - 1)
            place, within = np.divmod(counts, width)
            values.append(np.minimum(within, width - within) / np.sqrt(width))
            # At the very end the hat is 0, whatever its column.
            columns.append((size // width) + np.minimum(place, size // width - 1))
        index = np.stack(columns, axis=2) + size * np.arange(d)[:, None]
        value = np.stack(values, axis=2)
        pointer = np.arange(n + 1, dtype=np.int32) * (d * (self.levels + 1))
        parts = (value.ravel(), index.ravel().astype(np.int32), pointer)
        found = sp.csr_matrix(parts, shape=(n, d * size))
        found.eliminate_zeros()
        return found


def measured(fit) -> tuple[float, Any]:
    """Median seconds of this process's own work: the machine may be busy; and the last model."""
    seconds = []
    for _ in range(REPEATS):
        started = time.process_time()
        model = fit()
        seconds.append(time.process_time() - started)
    return median(seconds), model


def rows_of(name: str, parts) -> list[list[str]]:
    X, y, X_test, y_test = parts
    quantise = UnaryCode(1 << LEVELS).fit(X)
    bins, bins_test = quantise.quantise(X), quantise.quantise(X_test)
    codes = {
        "unary (ICD)": (quantise.transform(X), quantise.transform(X_test), 1 << LEVELS),
        "dyadic": (*(DyadicCode().transform(b) for b in (bins, bins_test)), 1 << LEVELS),
    }
    for rank in (8, 16):
        made = AdditiveMap("intersection", rank=rank, scaling=None).fit(bins)
        mapped = (sp.csr_matrix(made.transform(b), dtype=np.float64) for b in (bins, bins_test))
        codes[f"spectral, rank {rank}"] = (*mapped, rank)
    found = []
    some = np.random.default_rng(0).choice(len(bins), 300, replace=False)
    true = sum(np.minimum(bins[some, j][:, None], bins[some, j]) for j in range(bins.shape[1]))
    for code, (Z, Z_test, weights) in codes.items():
        seconds, model = measured(lambda Z=Z: liblinear(C, tol=TOL).fit(Z, y))
        kernel = (Z[some] @ Z[some].T).toarray()
        found.append([
            name, code, f"{Z.nnz / bins.size:.1f}", str(weights), f"{Z.nnz * 12 / 1e6:.0f}",
            f"{np.abs(kernel - true).max() / true.max():.1e}", f"{seconds:.2f}",
            f"{linear_gap(model, Z, y):.1e}",
            f"{100 * model.score(Z_test, y_test):.2f}",
        ])  # fmt: skip
    options = {"C": C, "C_unit": "raw", "fit_intercept": False, "tol": 1e-3, "n_jobs": 1}
    for code in ("unary", "spectral"):
        machine = AdditiveSVC(
            "intersection", approximation=code, scaling=None, random_state=0, **options
        )
        seconds, model = measured(lambda m=machine: m.fit(bins, y))
        found.append([name, f"ours, {code}", "", "", "", "", f"{seconds:.2f}",
                      f"{model.duality_gap_:.1e}",
                      f"{100 * model.score(bins_test, y_test):.2f}"])  # fmt: skip
    return found


def main() -> None:
    one_thread()
    rows = []
    for name, most in SETS.items():
        parts = getattr(data, name)()
        rows += rows_of(name, data.sampled(parts, most or parts[0].shape[0], 5000))
    columns = ["data", "code", "numbers per value", "weights per feature and class", "codes, MB",
               "error of the kernel", "fit, s", "gap", "accuracy, %"]  # fmt: skip
    intro = (
        f"ICD's {1 << LEVELS} levels, squared hinge, C = {C:g}; LIBLINEAR behind the codes, CPU "
        "seconds."
    )
    title = "The exact dyadic factor of the intersection kernel"
    write("dyadic", title, [intro, "", *table(columns, rows)])


if __name__ == "__main__":
    main()
