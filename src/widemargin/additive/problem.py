"""The dual problems of a fit, as the core sees them.

`SharedProblem` is what all classes have in common; `BoxProblem` (one-vs-rest, up to 16 classes in
SIMD lanes, or one class) and `SimplexProblem` (Crammer-Singer) add labels, variables and weights.
The solver asks them for sweeps and certificates, and knows nothing of tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from widemargin import _core
from widemargin.additive.codes import Codes
from widemargin.additive.learn import Approximation
from widemargin.additive.tables import Tables
from widemargin.engine import Control

LANES: int = _core.LANES
SLICE_SECONDS = 0.1
_ROWS_PER_SLICE = 4096


# ------------------------------------------------------------------ arrays as the loops want them


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


@dataclass(frozen=True)
class Layout:
    """Which of the core's loops: classes at a time, precision, and the kind of dual."""

    lanes: int
    dtype: type
    simplex: bool = False

    def padded_rank(self, rank: int) -> int:
        """The next rank that has an unrolled loop; the numbers added are zero.

        Ranks up to 4 have loops of their own in single precision, except for Crammer-Singer.
        """
        has_own_loop = rank <= 4 and self.dtype == np.float32 and not self.simplex
        if self.lanes == 1:
            return 1 if rank == 1 else 4 if has_own_loop else -(-rank // 8) * 8
        return rank if has_own_loop else -(-rank // 4) * 4


@dataclass(frozen=True)
class CoreTables:
    """Tables in the precision and padding of the loops, and the shape of weights they need."""

    left: np.ndarray | None
    right: np.ndarray
    offset: np.ndarray | None
    cell_shape: tuple[int, ...]
    layout: Layout

    @classmethod
    def of(cls, tables: Tables, codes: Codes, layout: Layout) -> CoreTables:
        if tables.left is None:
            offset = _unary_offsets(tables, codes)
            right = aligned_copy(tables.right, layout.dtype)
            return cls(None, right, offset, (int(offset[-1]),), layout)
        rank = layout.padded_rank(tables.rank)
        padding = ((0, 0), (0, rank - tables.rank))
        left = aligned_copy(np.pad(tables.left, padding), layout.dtype)
        right = left
        if not tables.symmetric:
            right = aligned_copy(np.pad(tables.right, padding), layout.dtype)
        return cls(left, right, None, (codes.n_features, rank), layout)

    @cached_property
    def core(self) -> _core.Tables:
        """The checked pair that the core's loops take."""
        return _core.Tables(self.left, self.right, self.offset, self.layout.lanes)

    @property
    def block_shape(self) -> tuple[int, ...]:
        """The shape of as many classes' weights as there are lanes."""
        return (*self.cell_shape, self.layout.lanes)

    def weights(self, n_outputs: int) -> np.ndarray:
        """Zero weights, of shape (n_blocks, *block_shape)."""
        return aligned((-(-n_outputs // self.layout.lanes), *self.block_shape), self.layout.dtype)

    def __reduce__(self):
        """In another process the arrays must be aligned again."""
        return _realigned, (self.left, self.right, self.offset, self.cell_shape, self.layout)


def _realigned(left, right, offset, cell_shape, layout: Layout) -> CoreTables:
    symmetric = left is right
    left = None if left is None else aligned_copy(left, layout.dtype)
    right = left if symmetric else aligned_copy(right, layout.dtype)
    return CoreTables(left, right, offset, cell_shape, layout)


def _unary_offsets(tables: Tables, codes: Codes) -> np.ndarray:
    """Where each feature's table begins; ICD's footnote 1 where the kernel saturates."""
    if tables.kernel.saturates:
        size = np.asarray(_core.largest_codes(codes.core)) + 1
    else:
        size = np.full(codes.n_features, len(tables.representatives))
    return np.concatenate([[0], np.cumsum(size)]).astype(np.int64)


# ------------------------------------------------------------------ problems


@dataclass(frozen=True)
class SharedProblem:
    """What every class of a fit shares: codes, tables, C of each sample, the constant feature."""

    codes: Codes
    tables: CoreTables
    diagonal: np.ndarray  # k(x_i, x_i), the intercept's share included
    c: np.ndarray  # C_i of each sample
    bias_value: float
    squared: bool
    symmetric: bool

    @classmethod
    def of(
        cls,
        learned: Approximation,
        layout: Layout,
        *,
        c: np.ndarray,
        kernel_diagonal: np.ndarray,
        bias_value: float,
        loss: str,
    ) -> SharedProblem:
        return cls(
            learned.codes,
            CoreTables.of(learned.tables, learned.codes, layout),
            (kernel_diagonal + bias_value**2).astype(layout.dtype),
            c.astype(layout.dtype),
            float(bias_value),
            loss == "squared_hinge",
            learned.tables.symmetric,
        )

    @property
    def layout(self) -> Layout:
        return self.tables.layout

    def add_to(self, weights: np.ndarray, bias: np.ndarray, coef: np.ndarray, control) -> None:
        """Add sum_i coef_i phi(x_i), in slices that can be interrupted."""
        for begin in range(0, self.codes.n_rows, _ROWS_PER_SLICE):
            control.check()
            end = min(begin + _ROWS_PER_SLICE, self.codes.n_rows)
            _core.accumulate(self.codes.core, self.tables.core, weights, begin, end, coef)
        bias += self.bias_value * coef.sum(axis=0, dtype=np.float64)


class _Problem:
    """What both kinds of dual answer alike."""

    shared: SharedProblem
    alpha: np.ndarray

    @property
    def n_rows(self) -> int:
        return self.shared.codes.n_rows

    @property
    def symmetric(self) -> bool:
        return self.shared.symmetric

    @property
    def started(self) -> bool:
        return bool(np.any(self.alpha))

    def sweep(self, order, begin: int, bounds, shrunk, account) -> int:
        """Coordinate descent along ``order`` from ``begin``, for a while; where to go on."""
        return self._pass(order, begin, bounds, shrunk, account)

    def certify(self, begin: int, account) -> int:
        """Add up what all samples from ``begin`` say at fixed weights, for a while; likewise."""
        bounds = np.stack([np.full(LANES, np.inf), np.full(LANES, -np.inf)])
        return self._pass(None, begin, bounds, None, account)

    def _pass(self, order, begin, bounds, shrunk, account) -> int:
        raise NotImplementedError


class BoxProblem(_Problem):
    """One-vs-rest duals of one batch of classes: min 1/2 a'(Q + R)a - e'a, 0 <= a <= U."""

    def __init__(self, shared: SharedProblem, label, targets: np.ndarray, weights: np.ndarray):
        lanes, dtype = shared.layout.lanes, shared.layout.dtype
        self.shared, self.label, self.weights = shared, label, weights[0]
        self.n_problems = targets.shape[1]
        self.sign = aligned((len(targets), lanes), dtype)
        self.sign[:, : self.n_problems] = targets
        self.bias = aligned(lanes, dtype)
        self.alpha = aligned((self.n_rows, lanes), dtype)

    @property
    def coef(self) -> np.ndarray:
        """The variables, (n_rows, n_problems)."""
        return self.alpha[:, : self.n_problems]

    def start(self, coef: np.ndarray, control: Control) -> None:
        """Begin at the variables of another fit, brought into the box."""
        upper = np.inf if self.shared.squared else self.shared.c[:, None]
        self.alpha[:, : self.n_problems] = np.clip(coef, 0, upper)
        signed = self.alpha * self.sign[self.label]
        self.shared.add_to(self.weights, self.bias, signed, control)

    def _pass(self, order, begin, bounds, shrunk, account) -> int:
        s = self.shared
        model = (s.codes.core, s.tables.core, self.weights, self.label, self.sign)
        dual = (s.c, s.diagonal, self.alpha, self.bias, s.bias_value, s.squared)
        run = (order, begin, SLICE_SECONDS, bounds, shrunk, account)
        return _core.sweep_box(order is not None, *model, *dual, *run)


class SimplexProblem(_Problem):
    """Crammer and Singer's dual: all classes of a sample at once, in blocks of 16 lanes."""

    n_problems = 1

    def __init__(self, shared: SharedProblem, label, targets: np.ndarray, weights: np.ndarray):
        dtype, blocks = shared.layout.dtype, len(weights)
        self.shared, self.label, self.weights = shared, label, weights
        self.n_classes = len(targets)
        self.bias = aligned((blocks, LANES), dtype)
        self.alpha = aligned((self.n_rows, blocks, LANES), dtype)

    @property
    def coef(self) -> np.ndarray:
        """The variables, (n_rows, n_classes)."""
        return self.alpha.reshape(self.n_rows, -1)[:, : self.n_classes]

    def start(self, coef: np.ndarray, control: Control) -> None:
        """Begin at the variables of another fit, brought into the feasible set."""
        self.coef[...] = self._feasible(coef)
        for block, weights in enumerate(self.weights):
            lanes = np.ascontiguousarray(self.alpha[:, block])
            self.shared.add_to(weights, self.bias[block], lanes, control)

    def _feasible(self, coef: np.ndarray) -> np.ndarray:
        """A starting point brought into the feasible set of each sample, or to zero."""
        rows = np.arange(len(coef))
        of_label = coef[rows, self.label]
        others = coef.copy()
        others[rows, self.label] = 0
        scale = np.abs(coef).max(axis=1)
        bad = (others.max(axis=1) > 0) | (np.abs(coef.sum(axis=1)) > 1e-4 * scale)
        coef = np.where(bad[:, None], 0.0, coef)
        if self.shared.squared:
            return coef
        return coef * np.minimum(1.0, self.shared.c / np.maximum(of_label, 1e-30))[:, None]

    def _pass(self, order, begin, bounds, shrunk, account) -> int:
        s = self.shared
        model = (s.codes.core, s.tables.core, self.weights, self.n_classes, self.label)
        dual = (s.c, s.diagonal, self.alpha, self.bias, s.bias_value, s.squared)
        run = (order, begin, SLICE_SECONDS, bounds, shrunk, account)
        return _core.sweep_simplex(order is not None, *model, *dual, *run)
