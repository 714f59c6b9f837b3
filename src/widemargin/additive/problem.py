"""The dual problems of a fit, in the form that the core needs.

`SharedProblem` is what all classes share; `BoxProblem` (one-vs-rest, up to 16 classes in
SIMD lanes, or one class) and `SimplexProblem` (Crammer-Singer) add labels, variables and weights.
The solver requests sweeps and certificates and is independent of tables.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from widemargin import _core
from widemargin.additive.codes import CodedRows, Codes
from widemargin.additive.learn import Approximation
from widemargin.additive.tables import Tables
from widemargin.engine import Control
from widemargin.losses import Loss

LANES: int = _core.LANES
SLICE_SECONDS = 0.1
_ROWS_PER_SLICE = 4096


# ------------------------------------------------------------------ arrays as the loops want them


def aligned(shape: tuple[int, ...], dtype) -> np.ndarray:
    """Return zeros aligned to a cache line: a vector across two lines costs twice."""
    n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    buffer = np.zeros(n_bytes + 64, dtype=np.uint8)
    offset = -buffer.__array_interface__["data"][0] % 64
    return buffer[offset : offset + n_bytes].view(dtype).reshape(shape)


def aligned_copy(a: np.ndarray, dtype) -> np.ndarray:
    out = aligned(a.shape, dtype)
    out[...] = a
    return out


@dataclass(frozen=True)
class Layout:
    """Selects a loop of the core: classes at a time, precision, kind of dual."""

    lanes: int
    dtype: type
    simplex: bool = False

    def padded_rank(self, rank: int) -> int:
        """Return the next rank with an unrolled loop; the padding is zero.

        Ranks up to 4 have their own loops, except for Crammer-Singer.
        """
        has_own_loop = rank <= 4 and not self.simplex
        if self.lanes == 1:
            return 1 if rank == 1 else 4 if has_own_loop else -(-rank // 8) * 8
        return rank if has_own_loop else -(-rank // 4) * 4


@dataclass(frozen=True)
class CoreTables:
    """Tables in the precision and padding of the loops, and the shape of their weights."""

    left: np.ndarray | None
    right: np.ndarray
    offset: np.ndarray | None
    cell_shape: tuple[int, ...]
    layout: Layout

    @classmethod
    def of(cls, tables: Tables, codes: CodedRows, layout: Layout) -> CoreTables:
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

    def in_double(self) -> CoreTables:
        """Return the same numbers for the loops in double precision."""
        layout = replace(self.layout, dtype=np.float64)
        return _realigned(self.left, self.right, self.offset, self.cell_shape, layout)

    @cached_property
    def core(self) -> _core.Tables:
        """Return the checked pair of tables for the core's loops."""
        return _core.Tables(self.left, self.right, self.offset, self.layout.lanes)

    @property
    def reads(self) -> int:
        """Numbers that the decision reads for a value."""
        return 1 if self.left is None else self.left.shape[1]

    @property
    def writes(self) -> int:
        """Numbers that an update changes for a value."""
        return self.right.shape[1]

    @property
    def block_shape(self) -> tuple[int, ...]:
        """Shape of the weights of one block of lanes."""
        return (*self.cell_shape, self.layout.lanes)

    def weights(self, n_outputs: int) -> np.ndarray:
        """Return zero weights, of shape (n_blocks, *block_shape)."""
        return aligned((-(-n_outputs // self.layout.lanes), *self.block_shape), self.layout.dtype)

    def __reduce__(self):
        """Rebuild on unpickling, because arrays must be aligned again."""
        return _realigned, (self.left, self.right, self.offset, self.cell_shape, self.layout)


def _realigned(left, right, offset, cell_shape, layout: Layout) -> CoreTables:
    symmetric = left is right
    left = None if left is None else aligned_copy(left, layout.dtype)
    right = left if symmetric else aligned_copy(right, layout.dtype)
    return CoreTables(left, right, offset, cell_shape, layout)


def _unary_offsets(tables: Tables, codes: CodedRows) -> np.ndarray:
    """Return each feature's start in the table; shorter if the kernel saturates (ICD, note 1)."""
    if tables.kernel.saturates:
        size = codes.largest() + 1
    else:
        size = np.full(codes.n_features, len(tables.representatives))
    return np.concatenate([[0], np.cumsum(size)]).astype(np.int64)


# ------------------------------------------------------------------ problems


@dataclass(frozen=True)
class SharedProblem:
    """What all classes of a fit share: codes, labels, tables, loss, the constant feature."""

    codes: CodedRows
    tables: CoreTables
    label: np.ndarray
    c: np.ndarray  # C_i of each sample
    diagonal: np.ndarray  # k(x_i, x_i), the intercept's share included
    bias_value: float
    loss: Loss
    symmetric: bool
    exact: SharedProblem | None = None  # in double precision, of symmetric tables: certificates
    of_features: CoreTables | None = None  # the model's tables, if ``tables`` are of a matrix

    @classmethod
    def of(
        cls,
        learned: Approximation,
        layout: Layout,
        *,
        label: np.ndarray,
        c: np.ndarray,
        kernel_diagonal: np.ndarray,
        bias_value: float,
        loss: Loss,
    ) -> SharedProblem:
        tables = CoreTables.of(learned.tables, learned.codes, layout)
        symmetric = tables
        if not learned.tables.symmetric:
            symmetric = CoreTables.of(learned.symmetric, learned.codes, layout)
        exact = cls(
            learned.codes,
            symmetric.in_double(),
            label.astype(np.int32, copy=False),
            c,
            kernel_diagonal + bias_value**2,
            float(bias_value),
            loss,
            symmetric=True,
        )
        return replace(exact.rounded(tables), symmetric=learned.tables.symmetric)

    def rounded(self, tables: CoreTables) -> SharedProblem:
        """Return the problem in the tables' precision, with this one for its certificate."""
        dtype = tables.layout.dtype
        c: np.ndarray = _rounded_down(self.c, dtype)
        diagonal: np.ndarray = self.diagonal.astype(dtype)
        return replace(self, tables=tables, c=c, diagonal=diagonal, exact=self)

    def slices(self) -> Iterator[tuple[slice, SharedProblem]]:
        """Yield the problem restricted to a few rows at a time."""
        for rows, codes in self.codes.slices(_ROWS_PER_SLICE):
            yield rows, self.of_rows(rows, codes)

    def of_rows(self, rows: slice, codes: CodedRows) -> SharedProblem:
        """Return the problem restricted to some rows with these codes."""
        arrays = {name: getattr(self, name)[rows] for name in ("label", "c", "diagonal")}
        exact = None if self.exact is None else self.exact.of_rows(rows, codes)
        return replace(self, codes=codes, **arrays, exact=exact)

    def of_outputs(self, outputs: slice) -> SharedProblem:
        """Return the problem that some outputs share."""
        exact = None if self.exact is None else self.exact.of_outputs(outputs)
        return replace(self, loss=self.loss.of_outputs(outputs), exact=exact)

    def core(self, rows: list[slice], codes: Codes) -> _core.SharedProblem:
        """Return the core's checked data shared by the duals of some rows."""
        return _core.SharedProblem(
            codes.core,
            self.tables.core,
            _rows_of(self.label, rows),
            _rows_of(self.c, rows),
            _rows_of(self.diagonal, rows),
            self.bias_value,
            self.loss.core,
        )

    @property
    def layout(self) -> Layout:
        return self.tables.layout

    @property
    def model_tables(self) -> CoreTables:
        """Return the tables that a model of this problem has weights for."""
        return self.of_features or self.tables


def _rounded_down(c: np.ndarray, dtype: type) -> np.ndarray:
    """Round down, so that feasible in less precision implies feasible."""
    near: np.ndarray = c.astype(dtype)
    return np.where(near > c, np.nextafter(near, dtype(0)), near)


@dataclass(frozen=True)
class CoreDual:
    """The dual of some blocks of rows in the core, with rows numbered from 0.

    Both passes work for about 0.1 s and return where to continue, so that they can be interrupted.
    They add to an ``account`` of `N_SUMS` rows, from which a `Certificate` is made.
    """

    group: tuple[int, ...]
    n_rows: int
    core: _core.BoxDual | _core.SimplexDual

    def sweep(self, order, begin: int, bounds, status, account) -> int:
        """Descend along ``order`` from ``begin`` for a while; return where to continue."""
        return self.core.sweep(order, begin, SLICE_SECONDS, bounds, status, account)

    def certify(self, begin: int, account) -> int:
        """Add up the sums of samples from ``begin`` at fixed weights; return where to continue."""
        return self.core.certify(begin, SLICE_SECONDS, account)


def _rows_of(array: np.ndarray, rows: list[slice]) -> np.ndarray:
    """Return some rows: a view for one slice, else a copy."""
    if len(rows) == 1:
        return array[rows[0]]
    out = aligned((sum(r.stop - r.start for r in rows), *array.shape[1:]), array.dtype)
    return np.concatenate([array[r] for r in rows], out=out)


def _put_back(copy: np.ndarray, array: np.ndarray, rows: list[slice]) -> None:
    if len(rows) > 1:
        lengths = [r.stop - r.start for r in rows]
        for r, piece in zip(rows, np.split(copy, np.cumsum(lengths)[:-1]), strict=True):
            array[r] = piece


class DualProblem(ABC):
    """Base class: up to 16 duals over the same rows, swept some blocks of rows at a time."""

    shared: SharedProblem
    n_problems: int
    weights: np.ndarray
    bias: np.ndarray
    coef: np.ndarray  # view of the core's variables without padding
    _lane_coef: np.ndarray
    _last: CoreDual | None = None

    @abstractmethod
    def _dual(
        self, core: _core.SharedProblem, coef: np.ndarray
    ) -> _core.BoxDual | _core.SimplexDual:
        """Return the core's dual of some rows with these variables."""

    @abstractmethod
    def _feasible(self, coef: np.ndarray, rows: slice) -> np.ndarray:
        """Project variables of these rows to the feasible set."""

    @property
    def n_rows(self) -> int:
        return self.shared.codes.n_rows

    @property
    def cuts(self) -> np.ndarray:
        """Start of each block of rows, and the end of the last one."""
        return self.shared.codes.cuts

    @property
    def at_once(self) -> int:
        """Most blocks that a sweep may load at a time."""
        return self.shared.codes.at_once

    @property
    def symmetric(self) -> bool:
        """Whether there is an objective, and so a duality gap."""
        return self.shared.symmetric

    @property
    def started(self) -> bool:
        """Whether the variables come from another fit."""
        return bool(np.any(self.coef))

    def start(self, coef: np.ndarray, control: Control) -> None:
        """Start from these variables: add them to the weights, in interruptible slices."""
        self.assign(coef)
        for dual in self.duals([(k,) for k in range(len(self.cuts) - 1)]):
            for begin in range(0, dual.n_rows, _ROWS_PER_SLICE):
                control.check()
                dual.core.accumulate(begin, min(begin + _ROWS_PER_SLICE, dual.n_rows))

    def assign(self, coef: np.ndarray) -> None:
        """Set the dual variables; the weights already match them."""
        for begin in range(0, self.n_rows, _ROWS_PER_SLICE):
            rows = slice(begin, begin + _ROWS_PER_SLICE)
            self.coef[rows] = self._feasible(coef[rows], rows)

    def duals(self, groups: Sequence[Sequence[int]]) -> Iterator[CoreDual]:
        """Yield the duals of groups of blocks; copy the variables of several blocks back.

        Keeps the last single block, because data in memory has only one.
        """
        if self._last is not None and groups and self._last.group == tuple(groups[0]):
            yield self._last
            groups = groups[1:]
        cuts = self.cuts.tolist()
        for group, codes in zip(groups, self.shared.codes.groups(groups), strict=True):
            rows = [slice(cuts[k], cuts[k + 1]) for k in group]
            coef = _rows_of(self._lane_coef, rows)
            core = self._dual(self.shared.core(rows, codes), coef)
            dual = CoreDual(tuple(group), codes.n_rows, core)
            self._last = dual if len(rows) == 1 else None
            yield dual
            _put_back(coef, self._lane_coef, rows)


class BoxProblem(DualProblem):
    """Duals of one batch of outputs, each with its bounds, in signed coefficients (see losses.py).

    Row i has the targets ``targets[label[i]]``: those of its class, or its own.
    """

    damping = 1.0  # of steps, when other shards move at the same time

    def __init__(
        self, shared: SharedProblem, targets: np.ndarray, weights: np.ndarray, n_threads: int = 1
    ):
        lanes, dtype = shared.layout.lanes, shared.layout.dtype
        self.shared, self.targets, self.weights = shared, targets, weights[0]
        self.n_problems = targets.shape[1]
        self._padded = aligned((len(targets), lanes), dtype)  # 0 in lanes without a problem
        self._padded[:, : self.n_problems] = targets
        self.bias, self._lane_coef = aligned((lanes,), dtype), aligned((self.n_rows, lanes), dtype)
        self.coef = self._lane_coef[:, : self.n_problems]
        self._n_threads = n_threads

    def _dual(self, core: _core.SharedProblem, coef: np.ndarray) -> _core.BoxDual:
        dual = _core.BoxDual(core, self._padded, self.weights, coef, self.bias, self._n_threads)
        dual.damping = self.damping
        return dual

    def _feasible(self, coef: np.ndarray, rows: slice) -> np.ndarray:
        """Clip to the box."""
        label, c = self.shared.label[rows], self.shared.c[rows]
        return np.clip(coef, *self.shared.loss.bounds(self.targets[label], c[:, None]))


class SimplexProblem(DualProblem):
    """Crammer and Singer's dual: all classes of a sample at once, in blocks of 16 lanes."""

    n_problems = 1

    def __init__(
        self, shared: SharedProblem, targets: np.ndarray, weights: np.ndarray, n_threads: int = 1
    ):
        dtype, blocks = shared.layout.dtype, len(weights)
        self.shared, self.weights, self._n_classes = shared, weights, len(targets)
        self.bias = aligned((blocks, LANES), dtype)
        self._lane_coef = aligned((self.n_rows, blocks, LANES), dtype)
        self.coef = self._lane_coef.reshape(self.n_rows, -1)[:, : self._n_classes]
        self._n_threads = n_threads

    def _dual(self, core: _core.SharedProblem, coef: np.ndarray) -> _core.SimplexDual:
        more = self.bias, self._n_threads
        return _core.SimplexDual(core, self._n_classes, self.weights, coef, *more)

    def _feasible(self, coef: np.ndarray, rows: slice) -> np.ndarray:
        """Project to the simplex of each sample, or to zero."""
        each, label = np.arange(len(coef)), self.shared.label[rows]
        others = coef.astype(np.float64)
        others[each, label] = 0
        total = -others.sum(axis=1)
        rounding = 1e-4 * np.abs(coef).max(axis=1)
        bad = (others.max(axis=1) > 0) | (np.abs(total - coef[each, label]) > rounding)
        largest = self.shared.loss.largest(self.shared.c[rows])
        above = total > largest
        share = np.where(bad, 0.0, np.where(above, largest / np.where(above, total, 1.0), 1.0))
        feasible = others * share[:, None]
        feasible[each, label] = -feasible.sum(axis=1)  # zero sum up to rounding
        return feasible
