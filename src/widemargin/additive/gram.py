"""The same dual on the kernel matrix of the rows, for few rows of many features (ICD, section 3.4).

A visit of a row costs its codes times the rank on the weights, and one number per row on the
matrix.  The matrix is itself a pair of tables: one feature whose code is the number of the row,
with the unary method.  So neither the solver nor the core changes; the certificate and the model
come from the real tables.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from widemargin import _core
from widemargin.additive.codes import Codes
from widemargin.additive.problem import LANES, CoreTables, Layout, SharedProblem, aligned
from widemargin.additive.tables import Tables
from widemargin.engine import Threads, run_tasks
from widemargin.losses import LOSSES

MOST_ROWS = 8192  # whose matrix is made
SWEEPS = 20  # that a fit is expected to take
ONE_LANE = 1 / 8  # cost of a visit for one output, in units of that for 16
GAIN = 2.0  # least ratio of costs
CACHED = 1 << 19  # bytes of weights


def is_cheaper(shared: SharedProblem, n_outputs: int) -> bool:
    """Return whether a fit on the matrix of the rows costs far less than one on the weights.

    The costs are vector operations per row, those of making the matrix included.
    """
    codes, tables = shared.codes, shared.tables
    n = codes.n_rows
    if not (isinstance(codes, Codes) and shared.symmetric and 0 < n <= MOST_ROWS):
        return False
    visits = SWEEPS * (-(-n_outputs // LANES) if shared.layout.lanes > 1 else ONE_LANE)
    stored = codes.n_stored / n
    on_weights = visits * stored * (tables.reads + tables.writes)
    on_matrix = n / (2 * LANES) * stored * tables.reads + visits * n
    return GAIN * on_matrix <= on_weights


def on_matrix(shared: SharedProblem, tables: Tables, threads: Threads) -> SharedProblem:
    """Return the problem whose single feature is the number of the row."""
    codes, layout = shared.codes, shared.layout
    assert isinstance(codes, Codes)
    n = codes.n_rows
    matrix = aligned((n + 1, n + 1), layout.dtype)
    matrix[1:, 1:] = kernel_matrix(codes, tables, layout.dtype, threads)
    number = np.arange(1, n + 1, dtype=np.min_scalar_type(n))[:, None]
    return replace(
        shared,
        codes=Codes(number, None, None, n, 1, n + 1),
        tables=CoreTables(None, matrix, np.array([0, n + 1]), (n + 1,), layout),
        of_features=shared.tables,
    )


def kernel_matrix(codes: Codes, tables: Tables, dtype: type, threads: Threads) -> np.ndarray:
    """Return the kernel that the tables represent on all pairs of rows.

    Sixteen rows at a time are the weights of 16 lanes, whose decision values are their columns.
    Features come in slices whose weights fit in a core's cache.
    """
    n = codes.n_rows
    out: np.ndarray = np.zeros((n, n), dtype)
    per_feature = LANES * np.dtype(dtype).itemsize * (tables.rank or codes.n_codes)
    step = max(CACHED // per_feature, 1)
    if codes.index is not None:  # compressed rows are not cut
        _add_features(out, codes, tables, threads)
        return out
    for begin in range(0, codes.n_features, step):
        _add_features(out, codes.of_features(begin, begin + step), tables, threads)
    return out


def _add_features(out: np.ndarray, codes: Codes, tables: Tables, threads: Threads) -> None:
    """Add the kernel of some features to the matrix."""
    n, dtype = codes.n_rows, out.dtype.type
    pair = CoreTables.of(tables, codes, Layout(LANES, dtype))
    targets = aligned((1, LANES), dtype)

    def columns(begin: int, control) -> None:
        control.check()
        end = min(begin + LANES, n)
        rows, weights = codes.of_rows(begin, end), pair.weights(1)[0]
        coef, bias = aligned((end - begin, LANES), dtype), aligned((LANES,), dtype)
        np.fill_diagonal(coef, 1)
        each: np.ndarray = np.ones(end - begin, dtype)
        label = np.zeros(end - begin, dtype=np.int32)
        loss = LOSSES["hinge"].core
        shared = _core.SharedProblem(rows.core, pair.core, label, each, each, 0.0, loss)
        _core.BoxDual(shared, targets, weights, coef, bias, 1).accumulate(0, end - begin)
        values = aligned((n, LANES), dtype)
        _core.decide(codes.core, pair.core, weights, begin, n, values)
        own = values[begin:, : end - begin]
        out[begin:, begin:end] += own
        out[begin:end, end:] += own[end - begin :].T

    run_tasks(columns, list(range(0, n, LANES)), threads)
