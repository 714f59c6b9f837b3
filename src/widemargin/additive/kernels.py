"""Scalar kernels k(x, y) and their additive sums over features.

An additive kernel is the sum over features j of one scalar kernel, k(x, y) = sum_j k(x_j, y_j)
(PmSVM eq. 2).  The solver evaluates it on a grid of bin values only, so a kernel here is just a
vectorised function of two arrays.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from widemargin.validation import machine_of_kernel


class ScalarKernel(ABC):
    """A vectorised function of two non-negative arrays, and the additive kernel of its sums."""

    name: str
    saturates = False
    """Whether k(x, y) = k(x, x) for every y >= x: true of the intersection kernel, whose table
    need not go beyond the largest value of each feature (ICD, footnote 1)."""

    @abstractmethod
    def __call__(self, x, y):
        """k(x, y), element by element."""

    def matrix(self, X, Z=None, *, block_size=1024) -> np.ndarray:
        """Exact kernel matrix between the rows of X and of Z (of X when Z is None).

        Parameters
        ----------
        X, Z : array-like or sparse matrix of shape (n, d) and (m, d)
            Non-negative values, used as they are.
        block_size : int, default=1024
            Rows of X handled at a time; the temporary memory is ``block_size * m``.

        Returns
        -------
        K : ndarray of shape (n, m)

        Examples
        --------
        >>> from widemargin import PowerMean
        >>> PowerMean(float("-inf")).matrix([[1, 2], [0, 3]])
        array([[3., 2.],
               [2., 3.]])
        """
        blocks = [block for _, block in self.blocks(X, Z, block_size=block_size)]
        return np.vstack(blocks) if blocks else np.zeros((0, np.shape(X if Z is None else Z)[0]))

    def blocks(self, X, Z=None, *, block_size=1024) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield ``(rows, K[rows])`` without forming the whole matrix."""
        X = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
        Z = X if Z is None else Z
        columns = _by_column(Z) if sp.issparse(Z) else np.asarray(Z)
        if X.shape[1] != columns.shape[1]:
            raise ValueError(f"X has {X.shape[1]} features, but Z has {columns.shape[1]}.")
        for A in (X, columns):
            if sp.issparse(A) and not vanishes_at_zero(self, np.append(A.data[:1000], 1.0)):
                raise ValueError(_not_zero(self))
        for begin in range(0, X.shape[0], block_size):
            rows = slice(begin, min(begin + block_size, X.shape[0]))
            block = _by_column(X[rows]) if sp.issparse(X) else X[rows]
            out = np.zeros((block.shape[0], columns.shape[0]))
            for j in range(block.shape[1]):
                at_x, x = _column(block, j)
                at_z, z = _column(columns, j)
                out[np.ix_(at_x, at_z)] += self(x[:, None], z[None, :])
            yield rows, out


def _by_column(X) -> sp.csc_array:
    columns = sp.csc_array(X, copy=True)
    columns.sum_duplicates()
    return columns


def _column(X, j) -> tuple[np.ndarray, np.ndarray]:
    if sp.issparse(X):
        stored = slice(X.indptr[j], X.indptr[j + 1])
        return X.indices[stored], X.data[stored].astype(np.float64)
    return np.arange(X.shape[0]), X[:, j].astype(np.float64)


@dataclass(frozen=True)
class PowerMean(ScalarKernel):
    """The power-mean kernel M_p(x, y) = ((x^p + y^p) / 2)^(1/p), for p in [-inf, 0].

    p = -inf is the histogram intersection min(x, y), p = -1 the chi-square kernel
    2xy / (x + y) and p = 0 Hellinger's kernel sqrt(xy) (PmSVM, sec. 3.1).  Every p <= 0 gives
    a positive definite kernel (PmSVM, Theorem 1); p > 0 does not and is refused.

    Parameters
    ----------
    p : float
        The exponent, at most 0.

    Examples
    --------
    >>> from widemargin import PowerMean
    >>> float(PowerMean(-1)(1.0, 3.0))
    1.5
    >>> float(PowerMean(-8)(1e-200, 1.0)) < 1.1e-200  # no overflow, whatever p
    True
    """

    p: float

    def __post_init__(self):
        if not isinstance(self.p, numbers.Real):
            raise TypeError(f"PowerMean(p={self.p!r}): p must be a number.")
        if not self.p <= 0:  # NaN as well
            raise ValueError(
                f"PowerMean(p={self.p!r}): p must be in [-inf, 0]; a power mean with p > 0 is "
                "not a positive definite kernel."
            )

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"power mean, p = {self.p:g}"

    @property
    def saturates(self) -> bool:  # type: ignore[override]
        return self.p == -np.inf

    def __call__(self, x, y):
        # m ((1 + r^-p) / 2)^(1/p) with m = min and r = min / max in [0, 1]: nothing overflows,
        # and log1p/expm1 keep it exact as p approaches 0.
        low, high = np.minimum(x, y), np.maximum(x, y)
        if self.p == -np.inf:
            return low
        if self.p == 0:
            return np.sqrt(low) * np.sqrt(high)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio = np.where(high > 0, low / high, 1.0)
            if self.p == -1:
                return low * (2 / (1 + ratio))
            exponent = np.log1p(np.expm1(-self.p * np.log(ratio)) / 2) / self.p
            return np.where(low > 0, low * np.exp(exponent), 0.0)


@dataclass(frozen=True)
class JensenShannon(ScalarKernel):
    """x/2 log2((x + y) / x) + y/2 log2((x + y) / y) (PmSVM, sec. 4.4)."""

    name = "jensen_shannon"

    def __call__(self, x, y):
        low, high = np.minimum(x, y), np.maximum(x, y)
        with np.errstate(divide="ignore", invalid="ignore"):
            both = np.log2(1 + low / high)  # log2((x + y) / max), which cannot overflow
            value = (low * (both + np.log2(high) - np.log2(low)) + high * both) / 2
        return np.where(low > 0, value, 0.0)


@dataclass(frozen=True)
class Linear(ScalarKernel):
    """The dot product."""

    name = "linear"

    def __call__(self, x, y):
        return x * y


@dataclass(frozen=True)
class UserKernel(ScalarKernel):
    """A user's vectorised function of two arrays, with its results checked."""

    function: Callable

    @property
    def name(self) -> str:  # type: ignore[override]
        return getattr(self.function, "__name__", type(self.function).__name__)

    def __call__(self, x, y):
        x, y = np.broadcast_arrays(x, y)
        value = np.asarray(self.function(x, y), dtype=np.float64)
        if value.shape != x.shape:
            raise ValueError(
                f"kernel {self.name!r} is not vectorised: for two arrays of shape {x.shape} it "
                f"returned shape {value.shape}. Write it with NumPy functions of both arrays."
            )
        return value


KERNELS: dict[str, ScalarKernel] = {
    "intersection": PowerMean(-np.inf),
    "chi2": PowerMean(-1.0),
    "hellinger": PowerMean(0.0),
    "jensen_shannon": JensenShannon(),
    "linear": Linear(),
}


def resolve_kernel(kernel) -> ScalarKernel:
    """Return the kernel object for a ``kernel=`` parameter."""
    if isinstance(kernel, str):
        if kernel not in KERNELS:
            names = ", ".join(map(repr, KERNELS))
            raise ValueError(
                f"kernel={kernel!r} is not known. Use 'auto', one of {names}, PowerMean(p), or a "
                f"vectorised function of two arrays.{machine_of_kernel(kernel)}"
            )
        return KERNELS[kernel]
    if isinstance(kernel, ScalarKernel):
        return kernel
    if callable(kernel):
        return UserKernel(kernel)
    raise TypeError(
        f"kernel must be a name, PowerMean(p) or a function of two arrays, got {kernel!r}."
    )


_PROBE = np.concatenate([np.linspace(0.0, 1.0, 17), [10.0, 1000.0]])


def vanishes_at_zero(kernel: ScalarKernel, values: np.ndarray = _PROBE) -> bool:
    """Whether k(0, y) = 0 for all given y, so that absent entries contribute nothing."""
    return bool(np.all(kernel(np.zeros_like(values), values) == 0))


def checked_gram(kernel: ScalarKernel, values: np.ndarray, *, sparse: bool) -> np.ndarray:
    """Return the kernel on a grid of values; refuse one that the solver cannot use."""
    K = kernel(values[:, None], values[None, :])
    if not np.all(np.isfinite(K)):
        u, v = np.argwhere(~np.isfinite(K))[0]
        raise ValueError(
            f"kernel {kernel.name!r} is not finite: k({values[u]:g}, {values[v]:g}) = {K[u, v]}."
        )
    scale = np.abs(K).max(initial=0.0)
    if np.abs(K - K.T).max(initial=0.0) > 1e-8 * scale:
        u, v = np.unravel_index(np.argmax(np.abs(K - K.T)), K.shape)
        raise ValueError(
            f"kernel {kernel.name!r} is not symmetric: k({values[u]:g}, {values[v]:g}) = "
            f"{K[u, v]:g} but k({values[v]:g}, {values[u]:g}) = {K[v, u]:g}."
        )
    if sparse and not vanishes_at_zero(kernel, values):
        raise ValueError(_not_zero(kernel))
    return K


def _not_zero(kernel: ScalarKernel) -> str:
    return (
        f"kernel {kernel.name!r} is not zero at k(0, y), so the absent entries of sparse data "
        "would contribute. Pass dense data, or a kernel with k(0, y) = 0."
    )
