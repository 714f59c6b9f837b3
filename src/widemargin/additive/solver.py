"""Dual coordinate descent on tables (Algorithm 1 of ICD, PmSVM and PmSVM-LUT).

`minimise` is the outer loop: a random sweep over the active samples, shrinking, and a stop that
is only believed after a pass over every sample at fixed weights.  What a sweep is belongs to the
problem: `BoxProblem` (one-vs-rest, up to 16 classes in SIMD lanes, or one class) and
`SimplexProblem` (Crammer-Singer).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from widemargin import _core
from widemargin.additive.codes import Codes
from widemargin.additive.tables import Tables
from widemargin.duality import N_SUMS, PG_MAX, PG_MIN, Certificate
from widemargin.engine import Control

LANES: int = _core.LANES
SLICE_SECONDS = 0.1
_ROWS_PER_SLICE = 4096
_REOPEN = 20  # sweeps after which shrunk samples are looked at again
FLOAT32_TOL = 1e-4
"""Relative gaps below this are certified in double precision."""


def aligned(shape, dtype) -> np.ndarray:
    """Zeros that start on a cache line: a vector across two lines costs twice."""
    n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    buffer = np.zeros(n_bytes + 64, dtype=np.uint8)
    offset = -buffer.ctypes.data % 64
    return buffer[offset : offset + n_bytes].view(dtype).reshape(shape)


def aligned_copy(a: np.ndarray, dtype) -> np.ndarray:
    out = aligned(a.shape, dtype)
    out[...] = a
    return out


def padded_rank(rank: int, lanes: int, dtype, *, simplex: bool = False) -> int:
    """The next rank that has an unrolled loop; the numbers added are zero.

    Ranks up to 4 have loops of their own in single precision, except for Crammer-Singer.
    """
    own_loop = rank <= 4 and dtype == np.float32 and not simplex
    if lanes == 1:
        return 1 if rank == 1 else 4 if own_loop else -(-rank // 8) * 8
    return rank if own_loop else -(-rank // 4) * 4


@dataclass(frozen=True)
class CoreTables:
    """Tables in the precision and padding of the loops, and the shape of weights they need."""

    tables: _core.Tables
    left: np.ndarray | None
    offset: np.ndarray | None
    cell_shape: tuple[int, ...]
    dtype: type
    lanes: int

    @classmethod
    def of(cls, tables: Tables, codes: Codes, lanes: int, dtype, simplex: bool) -> CoreTables:
        if tables.left is None:
            right = aligned_copy(tables.right, dtype)
            offset = _unary_offsets(tables, codes)
            core = _core.Tables(None, right, offset, lanes)
            return cls(core, None, offset, (int(offset[-1]),), dtype, lanes)
        rank = padded_rank(tables.rank, lanes, dtype, simplex=simplex)
        padding = ((0, 0), (0, rank - tables.rank))
        left = aligned_copy(np.pad(tables.left, padding), dtype)
        right = left if tables.symmetric else aligned_copy(np.pad(tables.right, padding), dtype)
        core = _core.Tables(left, right, None, lanes)
        return cls(core, left, None, (codes.n_features, rank), dtype, lanes)

    def weights(self, n_outputs: int) -> np.ndarray:
        """Zero weights, one block per batch of classes."""
        return aligned((-(-n_outputs // self.lanes), *self.cell_shape, self.lanes), self.dtype)


def _unary_offsets(tables: Tables, codes: Codes) -> np.ndarray:
    """Where each feature's table begins; ICD's footnote 1 where the kernel saturates."""
    if tables.kernel.saturates:
        size = np.asarray(_core.largest_codes(codes.core)) + 1
    else:
        size = np.full(codes.n_features, len(tables.representatives))
    return np.concatenate([[0], np.cumsum(size)]).astype(np.int64)


@dataclass(frozen=True)
class Data:
    """What every class of a fit shares."""

    codes: Codes
    tables: CoreTables
    diagonal: np.ndarray  # k(x_i, x_i), the intercept's share included
    c: np.ndarray  # C_i of each sample
    bias_value: float
    squared: bool
    symmetric: bool

    @classmethod
    def of(
        cls, codes, tables, lanes, dtype, c, kernel_diagonal, bias_value, squared, simplex=False
    ) -> Data:
        return cls(
            codes,
            CoreTables.of(tables, codes, lanes, dtype, simplex),
            (kernel_diagonal + bias_value**2).astype(dtype),
            c.astype(dtype),
            float(bias_value),
            squared,
            tables.symmetric,
        )

    def add_to(self, weights: np.ndarray, bias: np.ndarray, coef: np.ndarray) -> None:
        """Add sum_i coef_i phi(x_i), in slices that can be interrupted."""
        for begin in range(0, self.codes.n_rows, _ROWS_PER_SLICE):
            end = min(begin + _ROWS_PER_SLICE, self.codes.n_rows)
            _core.accumulate(self.codes.core, self.tables.tables, weights, begin, end, coef)
        bias += self.bias_value * coef.sum(axis=0, dtype=np.float64)

    def feasible(self, alpha: np.ndarray) -> np.ndarray:
        """A starting point brought into the box."""
        upper = np.inf if self.squared else self.c[:, None]
        return np.clip(alpha, 0, upper)


class BoxProblem:
    """One-vs-rest duals of one batch of classes: min 1/2 a'(Q + R)a - e'a, 0 <= a <= U."""

    def __init__(
        self,
        data: Data,
        label: np.ndarray,
        sign: np.ndarray,
        weights: np.ndarray,
        alpha: np.ndarray | None = None,
    ):
        t = data.tables
        self.data, self.label = data, label
        self.n_problems = sign.shape[1]
        self.sign = aligned((len(sign), t.lanes), t.dtype)
        self.sign[:, : self.n_problems] = sign
        self.weights, self.bias = weights, aligned(t.lanes, t.dtype)
        self.alpha = aligned((data.codes.n_rows, t.lanes), t.dtype)
        if alpha is not None:
            self.alpha[:, : self.n_problems] = data.feasible(alpha)
            coef = self.alpha * self.sign[label]
            _core.accumulate(data.codes.core, t.tables, self.weights, 0, data.codes.n_rows, coef)
            self.bias += data.bias_value * coef.sum(axis=0, dtype=np.float64)

    def sweep(self, order, begin, shrink, shrunk, account) -> int:
        d = self.data
        return _core.sweep_box(
            order is not None, d.codes.core, d.tables.tables, self.weights, self.label, self.sign,
            d.c, d.diagonal, self.alpha, self.bias, d.bias_value, d.squared, order, begin,
            SLICE_SECONDS, shrink, shrunk, account,
        )  # fmt: skip


class SimplexProblem:
    """Crammer and Singer's dual: all classes of a sample at once, in blocks of 16 lanes."""

    n_problems = 1

    def __init__(
        self,
        data: Data,
        label: np.ndarray,
        n_classes: int,
        weights: np.ndarray,
        alpha: np.ndarray | None = None,
    ):
        t = data.tables
        self.data, self.label, self.n_classes = data, label, n_classes
        blocks = len(weights)
        self.weights, self.bias = weights, aligned((blocks, LANES), t.dtype)
        self.alpha = aligned((data.codes.n_rows, blocks, LANES), t.dtype)
        if alpha is not None:
            flat = self.alpha.reshape(len(self.alpha), -1)
            flat[:, :n_classes] = self._feasible(alpha)
            for b in range(blocks):
                coef = np.ascontiguousarray(self.alpha[:, b])
                data.add_to(self.weights[b], self.bias[b], coef)

    def _feasible(self, alpha: np.ndarray) -> np.ndarray:
        """A starting point brought into the feasible set of each sample, or to zero."""
        rows = np.arange(len(alpha))
        own = alpha[rows, self.label]
        others = alpha.copy()
        others[rows, self.label] = 0
        scale = np.abs(alpha).max(axis=1)
        bad = (others.max(axis=1) > 0) | (np.abs(alpha.sum(axis=1)) > 1e-4 * scale)
        alpha = np.where(bad[:, None], 0.0, alpha)
        if self.data.squared:
            return alpha
        return alpha * np.minimum(1.0, self.data.c / np.maximum(own, 1e-30))[:, None]

    def sweep(self, order, begin, shrink, shrunk, account) -> int:
        d = self.data
        return _core.sweep_simplex(
            order is not None, d.codes.core, d.tables.tables, self.weights, self.n_classes,
            self.label, d.c, d.diagonal, self.alpha, self.bias, d.bias_value, d.squared, order,
            begin, SLICE_SECONDS, shrink, shrunk, account,
        )  # fmt: skip


@dataclass(frozen=True)
class Dual:
    """The dual variables of a fit, and what they belong to."""

    alpha: np.ndarray  # (n_rows, n_problems), or (n_rows, n_classes) for Crammer-Singer
    C: float  # in the kernel's own unit
    multi_class: str
    label: np.ndarray
    present: np.ndarray


@dataclass
class Outcome:
    """How a minimisation ended: the certificate, and a record of the way."""

    certificate: Certificate
    n_iter: int
    converged: bool
    history: list[dict] = field(default_factory=list)


def minimise(
    problem: BoxProblem | SimplexProblem,
    *,
    tol: float,
    max_iter: int,
    rng: np.random.Generator,
    control: Control,
) -> Outcome:
    """Sweep until every problem of the batch is within ``tol`` of its optimum.

    Symmetric tables: the relative duality gap.  Others: LIBLINEAR's rule on the projected
    gradient.  Both are first estimated from the values met during a sweep and then measured at
    fixed weights over all samples, shrunk ones included.
    """
    n, lanes = problem.data.codes.n_rows, problem.n_problems
    active = np.arange(n, dtype=np.int32)
    shrink = _no_shrinking(lanes)
    shrunk = np.zeros(n, dtype=np.uint8)
    worthwhile = tol  # the estimate at which a measurement is worth its time
    history: list[dict] = []
    certificate = None
    if np.any(problem.alpha):  # a warm start may be there already
        certificate = _measure(problem, control)
        if _distance(certificate, problem) <= tol:
            return Outcome(certificate, 0, True, history)

    for epoch in range(1, max_iter + 1):
        account = np.zeros((N_SUMS, LANES))
        order = _core.shuffled(active, int(rng.integers(1 << 63)))
        _run(problem, order, shrink, shrunk, account, control)
        if not np.all(np.isfinite(account)):  # only tables without an objective can diverge
            return Outcome(Certificate.from_account(account, lanes), epoch, False, history)
        estimate = _distance(Certificate.from_account(account, lanes), problem, certificate)
        record = {"epoch": epoch, "active": len(active), "estimate": estimate}
        history.append(record)
        halted = control.epoch(problem)
        if estimate <= worthwhile or halted or epoch == max_iter:
            certificate = _measure(problem, control)
            measured = _distance(certificate, problem)
            record.update(
                measured=measured,
                primal=float(certificate.primal.sum()),
                dual=float(certificate.dual.sum()),
            )
            if measured <= tol or halted:
                return Outcome(certificate, epoch, measured <= tol, history)
            worthwhile = 0.8 * min(worthwhile, estimate)
            active = np.arange(n, dtype=np.int32)
            shrunk[:] = 0
            shrink = _no_shrinking(lanes)
        elif epoch % _REOPEN == 0:
            active = np.arange(n, dtype=np.int32)
            shrunk[:] = 0
            shrink = _no_shrinking(lanes)
        else:
            if shrunk.any():
                left = active[shrunk[active] == 0]
                active = left if len(left) else np.arange(n, dtype=np.int32)
                shrunk[:] = 0
            shrink = _shrink_bounds(account, lanes)
    assert certificate is not None
    return Outcome(certificate, max_iter, False, history)


def _run(problem, order, shrink, shrunk, account, control: Control) -> None:
    """One sweep (or, without an order, one measuring pass) in slices that can be interrupted."""
    end = problem.data.codes.n_rows if order is None else len(order)
    begin = 0
    while begin < end:
        control.check()
        begin = problem.sweep(order, begin, shrink, shrunk, account)


def _measure(problem, control: Control) -> Certificate:
    account = np.zeros((N_SUMS, LANES))
    _run(problem, None, _no_shrinking(problem.n_problems), None, account, control)
    return Certificate.from_account(account, problem.n_problems)


def _distance(certificate: Certificate, problem, last: Certificate | None = None) -> float:
    """The worst problem's relative gap or violation.

    A sweep over a shrunk set misses the losses of samples that rest at their upper bound, so the
    gap is also measured against the last full objective.
    """
    if not problem.data.symmetric:
        return float(certificate.violation.max())
    primal = certificate.primal if last is None else np.maximum(certificate.primal, last.primal)
    return float((certificate.gap / np.maximum(primal, np.finfo(np.float64).tiny)).max())


def _no_shrinking(lanes: int) -> np.ndarray:
    """Bounds that no gradient passes; an empty lane (gradient 0) always counts as at rest."""
    bounds = np.stack([np.full(LANES, np.inf), np.full(LANES, -np.inf)])
    bounds[0, lanes:] = -np.inf
    return bounds


def _shrink_bounds(account: np.ndarray, lanes: int) -> np.ndarray:
    """LIBLINEAR: the last sweep's extremes, or none where they say nothing."""
    bounds = _no_shrinking(lanes)
    high, low = account[PG_MAX, :lanes], account[PG_MIN, :lanes]
    bounds[0, :lanes] = np.where(high > 0, high, np.inf)
    bounds[1, :lanes] = np.where(low < 0, low, -np.inf)
    return bounds
