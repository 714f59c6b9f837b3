"""Kernels k(X, Z) on blocks of rows: one matrix product and a fused finish.

A kernel prepares each data set once (`prepare`) and then fills blocks of kernel values from two
sets of rows; nothing here ever forms a whole n-by-n matrix.  Values are float32, which is what the
memory and the matrix product are sized for, or float64 for tight tolerances.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import chi2_kernel, laplacian_kernel

from widemargin import _core
from widemargin.kernel.moments import is_off_centre, mean_row, share_of_nonzeros
from widemargin.kernel.rows import (
    CompressedRows,
    DenseRows,
    Finish,
    GivenRows,
    MatrixRows,
    Panels,
    RangeError,
    Rows,
    check_norms,
    pair_distances,
)

DENSE_FROM = 0.35  # share of non-zeros from which dense rows and the matrix product are faster
EPSILON = float(np.finfo(np.float32).eps) / 2
FAR = 1e4  # gamma |x|^2: above, stress found a gap of 1e-8 hidden by norms (docs/stress.md)
LARGE = 1e4  # upper bounds above which FAR is less: a gap is a bound times what rounding moves
ZERO = 746.0  # exp(-ZERO) is 0 in double precision
TILE, TILE_COMPRESSED = 1024, 2048  # columns
_CORE_FEATURES = 1024  # up to which the core is as fast as BLAS, which needs Python around it
_BLOCK = 64  # rows of a function's kernel matrix that are looked at together


@dataclass(frozen=True)
class Traits:
    """What the rest of the package may ask about a kernel instead of comparing its name."""

    parameters: tuple[str, ...] = ()  # of gamma, coef0 and degree, those it has
    inner: bool = False  # a function of inner products, which the core finishes
    by_distance: bool = False  # near rows are alike, so plain k-means clusters them
    sparse: bool = False  # takes sparse data
    non_negative: bool = False  # takes non-negative data only
    definite: bool | None = True  # positive semi-definite, so that a gap certifies; None: not known
    pairwise: bool = False  # data are kernel values
    ours: bool = True  # has a formula that a file can hold, is no function of the user's
    libsvm: str | None = None  # what LIBSVM calls it


KERNELS: dict[str, Traits] = {
    "linear": Traits(inner=True, sparse=True, libsvm="linear"),
    "rbf": Traits(("gamma",), inner=True, by_distance=True, sparse=True, libsvm="rbf"),
    "poly": Traits(("degree", "gamma", "coef0"), inner=True, sparse=True, libsvm="polynomial"),
    "sigmoid": Traits(
        ("gamma", "coef0"), inner=True, sparse=True, definite=False, libsvm="sigmoid"
    ),
    "laplacian": Traits(("gamma",), by_distance=True),
    "chi2": Traits(("gamma",), non_negative=True),
    "precomputed": Traits(pairwise=True, definite=None, ours=False),
}
FUNCTION = Traits(sparse=True, definite=None, ours=False)  # of a user's function, whatever its name


def traits_of(kernel: str | Callable) -> Traits:
    """Of a ``kernel=`` parameter; of an unknown name, those of no kernel at all."""
    return FUNCTION if callable(kernel) else KERNELS.get(kernel, Traits())


class Kernel(Protocol):
    """What solver, partition and model ask of a kernel."""

    @property
    def name(self) -> str: ...

    @property
    def traits(self) -> Traits: ...

    @property
    def definite(self) -> bool | None:
        """Whether it is positive semi-definite with its parameters; None: the data decide."""
        ...

    @property
    def dtype(self) -> type:
        """float32 or float64: the type of the values."""
        ...

    @property
    def cost(self) -> float:
        """Time for a value, in units of reading one that is cached; an estimate."""
        ...

    @property
    def tile(self) -> int:
        """Columns of a block at a time: few where a block goes through the cache twice."""
        ...

    def in_double(self) -> Kernel:
        """The same kernel with values in double precision."""
        ...

    def prepare(self, X) -> Any:
        """New rows, laid out for `fill`."""
        ...

    def training_rows(self, X, present: np.ndarray) -> Any:
        """Those rows of the training data that take part."""
        ...

    def as_left(self, a: Any) -> Any:
        """Rows laid out to be the first argument of many calls of `fill`."""
        ...

    def fill(self, a: Any, b: Any, out: np.ndarray) -> None:
        """Write k(a, b) to ``out``, whose rows are contiguous; ``a`` comes from `as_left`."""
        ...

    def in_core(self, a: Any) -> _core.DenseKernel | None:
        """The kernel on these rows, where the core computes it by itself."""
        ...

    def diagonal(self, a: Any) -> np.ndarray:
        """k(x, x) of every row, in double precision."""
        ...

    def relative_error(self, a: Any) -> float:
        """By which rounding moves a value of such rows in single precision, about."""
        ...

    def vectors(self, a: Any, support: np.ndarray) -> Rows:
        """What prediction needs of the support vectors."""
        ...


def _taking_part(X, present: np.ndarray):
    """Those rows; X itself, not a copy, where they are all."""
    every = len(present) == X.shape[0] and np.array_equal(present, np.arange(len(present)))
    return X if every else X[present]


def _centred(X: np.ndarray, centre: np.ndarray | None, dtype) -> np.ndarray:
    """X less the centre, rounded as it is written: there is no wider copy."""
    with np.errstate(over="ignore"):  # `check_norms` names the row
        if centre is None:
            return np.ascontiguousarray(X, dtype=dtype)
        return np.subtract(X, centre, out=np.empty(X.shape, dtype=dtype), casting="same_kind")


@dataclass(frozen=True)
class DotKernel:
    """Kernels of inner products: rbf, poly, sigmoid, linear.

    Rows that are mostly zeros are compressed, whatever they came as.  Distances are |a|^2 + |b|^2 -
    2ab, so other data of the rbf kernel is centred first (distances do not change, cancellation
    does; compressed rows are near enough to zero) and the difference is clamped at zero.  The
    exponential is right to 3e-7 in single precision.
    """

    name: str
    gamma: float
    coef0: float = 0.0
    degree: int = 3
    dtype: type = np.float32
    compressed: bool = False
    centre: np.ndarray | None = None
    cost: float = 4.0
    far: float = FAR

    @property
    def traits(self) -> Traits:
        return KERNELS[self.name]

    @property
    def definite(self) -> bool | None:
        return None if self.name == "poly" and self.coef0 < 0 else self.traits.definite

    @property
    def tile(self) -> int:
        return TILE_COMPRESSED if self.compressed else TILE

    @cached_property
    def finish(self) -> Finish:
        return Finish(self.name, self.gamma, self.coef0, self.degree)

    def in_double(self) -> DotKernel:
        return self if self.dtype is np.float64 else replace(self, dtype=np.float64)

    def prepare(self, X) -> DenseRows | CompressedRows:
        if self.compressed and isinstance(X, np.ndarray):
            return check_norms(CompressedRows.of_dense(X, self.dtype))
        if self.compressed:
            with np.errstate(over="ignore"):  # `check_norms` names the row
                X = sp.csr_array(X, dtype=self.dtype, copy=True)
            X.sum_duplicates()
            X.eliminate_zeros()
            return check_norms(CompressedRows.of(X))
        X = X.toarray() if sp.issparse(X) else np.asarray(X)
        return check_norms(DenseRows.of(_centred(X, self.centre, self.dtype)))

    def training_rows(self, X, present: np.ndarray) -> DenseRows | CompressedRows:
        return self.prepare(_taking_part(X, present))

    def as_left(self, a):
        return a if self.is_far(a) else a.as_left()

    def fill(self, a, b, out: np.ndarray) -> None:
        # Rows that are near to far ones are far themselves: of panels nothing else is asked.
        if not isinstance(a, Panels) and (self.is_far(a) or self.is_far(b)):
            self._fill_far(a, b, out)
        else:
            a.fill(b, out, self.finish)

    def in_core(self, a) -> _core.DenseKernel | None:
        if self.compressed or a.data.shape[1] > _CORE_FEATURES or self.is_far(a):
            return None
        return _core.DenseKernel(a.data, self.finish.core)

    def _fill_far(self, a, b, out: np.ndarray) -> None:
        """Distances by differences, but only of far pairs whose value is not zero.

        Inner products tell which those are, with twice the bound of their rounding.
        """
        a.as_left().fill(b, out)
        out *= -2
        out += a.norms[:, np.newaxis]
        out += b.norms
        far, others = (self.gamma * rows.norms > self.far for rows in (a, b))
        largest = max(float(rows.norms.max(initial=0.0)) for rows in (a, b))
        rounding = 8 * (a.matrix.shape[1] + 4) * np.finfo(np.float64).eps * largest
        near = out <= ZERO / self.gamma + rounding
        i, j = np.nonzero(near & (far[:, np.newaxis] | others))
        np.exp(-self.gamma * np.maximum(out, 0.0), out=out)
        out[i, j] = np.exp(-self.gamma * pair_distances(a, b, i, j))

    def is_far(self, rows) -> bool:
        """Whether rounding of squared norms would show in double precision."""
        wanted = self.traits.by_distance and self.dtype == np.float64
        return wanted and self.gamma * float(rows.norms.max(initial=0.0)) > self.far

    def diagonal(self, a) -> np.ndarray:
        if self.traits.by_distance:
            return np.ones(len(a))
        inner = self.gamma * a.norms.astype(np.float64) + self.coef0
        with np.errstate(over="ignore"):  # the estimator names the row
            return np.tanh(inner) if self.name == "sigmoid" else inner**self.degree

    def relative_error(self, a) -> float:
        if self.traits.by_distance:  # distances are differences of norms
            return EPSILON * max(1.0, 4 * self.gamma * float(a.norms.mean(dtype=np.float64)))
        if self.name == "sigmoid":  # whose slope is 1 where terms of an inner product cancel
            return EPSILON * max(1.0, self.gamma * float(a.norms.mean(dtype=np.float64)))
        return EPSILON

    def vectors(self, a, support: np.ndarray):
        return a[support]


def _copy(values: np.ndarray, out: np.ndarray, name: str) -> None:
    """Given kernel values in the precision of ``out``, which must be able to hold them."""
    with np.errstate(over="ignore"):
        out[...] = values
    if out.dtype == np.float32 and values.dtype != np.float32 and not np.isfinite(out).all():
        raise RangeError(
            f"kernel {name!r} has values of {np.abs(values).max():g}, too large for single "
            "precision. Set tol below 1e-4 for double precision, or scale the kernel."
        )


@dataclass(frozen=True)
class FunctionKernel:
    """Any function K(X, Z) -> (len(X), len(Z)), checked for shape and finiteness."""

    name: str
    function: Callable
    dtype: type = np.float32
    traits: Traits = FUNCTION
    gamma: float = float("nan")  # of ours
    centre: np.ndarray | None = None  # taken off the rows of ours where distances matter only
    cost: float = 50.0
    tile: int = TILE

    @property
    def definite(self) -> bool | None:
        return self.traits.definite

    def in_double(self) -> FunctionKernel:
        return replace(self, dtype=np.float64)

    def prepare(self, X) -> GivenRows:
        if not self.traits.ours:  # a user's function gets what the user has
            return GivenRows(X)
        rows = _centred(X, self.centre, self.dtype)
        return GivenRows(rows if rows.flags.writeable else rows.copy())  # scikit-learn insists

    def training_rows(self, X, present: np.ndarray) -> GivenRows:
        return self.prepare(_taking_part(X, present))

    def as_left(self, a: GivenRows) -> GivenRows:
        return a

    def fill(self, a: GivenRows, b: GivenRows, out: np.ndarray) -> None:
        K = self.function(a.data, b.data)
        K = K.toarray() if sp.issparse(K) else np.asarray(K)
        if K.shape != out.shape:
            raise ValueError(
                f"kernel {self.name!r} returned shape {K.shape} for {len(a)} and {len(b)} rows; "
                f"it must return {out.shape}."
            )
        if not np.all(np.isfinite(K)):
            i, j = np.argwhere(~np.isfinite(K))[0]
            raise ValueError(f"kernel {self.name!r} returned {K[i, j]} at ({i}, {j}) of a block.")
        _copy(K, out, self.name)

    def in_core(self, a: GivenRows) -> None:
        return None

    def diagonal(self, a: GivenRows) -> np.ndarray:
        values = np.empty(len(a))
        for begin in range(0, len(a), _BLOCK):
            part = a[begin : begin + _BLOCK]
            out = np.empty((len(part), len(part)))
            self.fill(part, part, out)
            values[begin : begin + _BLOCK] = np.diag(out)
        return values

    def relative_error(self, a: GivenRows) -> float:
        if not self.traits.ours:
            return EPSILON
        parts = (a[begin : begin + _BLOCK].data for begin in range(0, len(a), _BLOCK))
        typical = sum(float(np.abs(part).sum(axis=1).sum()) for part in parts) / max(len(a), 1)
        return EPSILON * max(1.0, 4 * self.gamma * typical)

    def vectors(self, a: GivenRows, support: np.ndarray) -> GivenRows:
        return a[support]


@dataclass(frozen=True)
class PrecomputedKernel:
    """Kernel values given by the caller: the columns of every matrix are the training rows."""

    name: str = "precomputed"
    dtype: type = np.float32
    cost: float = 2.0
    tile: int = TILE
    traits: Traits = KERNELS["precomputed"]
    definite: bool | None = None

    def in_double(self) -> PrecomputedKernel:
        return replace(self, dtype=np.float64)

    def prepare(self, X) -> MatrixRows:
        row = np.arange(X.shape[0])
        return MatrixRows(np.asarray(X), row, np.full(len(row), -1))

    def training_rows(self, X, present: np.ndarray) -> MatrixRows:
        """Columns keep their numbers: prediction has all of them."""
        return MatrixRows(np.asarray(X), present, present)

    def as_left(self, a: MatrixRows) -> MatrixRows:
        return a

    def fill(self, a: MatrixRows, b: MatrixRows, out: np.ndarray) -> None:
        if b.values is None or np.all(b.column >= 0):
            assert a.values is not None
            _copy(a.values[np.ix_(a.row, b.column)], out, self.name)
        else:
            _copy(b.values[np.ix_(b.row, a.column)].T, out, self.name)

    def in_core(self, a: MatrixRows) -> None:
        return None

    def diagonal(self, a: MatrixRows) -> np.ndarray:
        assert a.values is not None
        return a.values[a.row, a.column].astype(np.float64)

    def relative_error(self, a: MatrixRows) -> float:
        return EPSILON

    def vectors(self, a: MatrixRows, support: np.ndarray) -> MatrixRows:
        return MatrixRows.of_columns(a.column[support])


def make_kernel(
    kernel, gamma: float, coef0: float, degree: int, X, dtype=np.float32, most: float = 1.0
) -> Kernel:
    """The kernel object that parameters stand for, for training data X and variables up to most."""
    if callable(kernel):
        return FunctionKernel(getattr(kernel, "__name__", "user function"), kernel, dtype)
    if kernel not in KERNELS:
        raise ValueError(
            f"kernel={kernel!r} is not known. Use one of {', '.join(KERNELS)} or a function "
            "K(X, Z)."
        )
    traits = KERNELS[kernel]
    if traits.pairwise:
        return PrecomputedKernel(dtype=dtype)
    if not traits.inner:
        function = {"laplacian": laplacian_kernel, "chi2": chi2_kernel}[kernel]
        function = partial(function, gamma=gamma)
        centre = mean_row(X) if traits.by_distance else None
        return FunctionKernel(kernel, function, dtype, traits, float(gamma), centre)
    share = share_of_nonzeros(X)
    compressed = share < DENSE_FROM and not (traits.by_distance and is_off_centre(X))
    centre = mean_row(X) if traits.by_distance and not compressed else None
    if not traits.parameters:  # linear: the first power of the inner product
        gamma, coef0, degree = 1.0, 0.0, 1
    return DotKernel(
        name=kernel,
        gamma=float(gamma),
        coef0=float(coef0),
        degree=int(degree),
        dtype=dtype,
        compressed=compressed,
        centre=centre,
        cost=2 + X.shape[1] * (share / 8 if compressed else 1 / 25),
        far=FAR / max(1.0, most / LARGE),
    )
