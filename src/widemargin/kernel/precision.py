"""Which precision suffices: to begin a fit, for decision values, and for a row to be sure."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from widemargin.kernel.coefficients import Coefficients
from widemargin.kernel.kernels import EPSILON, ZERO, DotKernel, Kernel
from widemargin.kernel.rows import RangeError

DOUBLE_BELOW = 1e-4  # of tol: single precision certifies no tighter gaps
HIDDEN = 10.0  # multiples of tol that rounding may hide of a gradient: refinement finds them
ROUNDING = 1e-3  # of the margin, by which predictions in single precision may be off
WORST = 3.0  # times what rounding typically does, that it does to some of many predictions
PROBED = 64  # support vectors
SMALLEST = 1e-30  # of gamma and kernel values in single precision; 1 / SMALLEST is the largest
TO_DOUBLE = 2.0**-24  # rounding errors of double precision, in units of those of single precision
_FINISHED = 5e-7  # relative error of the core's exponential and hyperbolic tangent
_CLAMPED = 2e-35  # exp(-80), the smallest value of the core's exponential
TINY = float(np.finfo(np.float32).tiny)  # what a product that underflows may be off by
UNIT = float(np.finfo(np.float64).eps) / 2
EXTENDED_UNIT = float(np.finfo(np.longdouble).eps) / 2  # that of double precision on some machines
FEW_SUMMED = 8.0  # times the root of the terms of a long sum, which bounds its rounding errors


class Prepared(NamedTuple):
    """A kernel, the rows of the training data as it takes them, and k(x, x) of each."""

    kernel: Kernel
    rows: Any
    diagonal: np.ndarray


def in_range(make: Callable[[type], Prepared], gamma: float, C: float, tol: float) -> Prepared:
    """What ``make`` makes in single precision, or in double where that is out of range.

    A dual variable at its bound C makes the gradient uncertain by C k(x, x) times the rounding
    error of a kernel value, which must be small against the margin.
    """
    if tol < DOUBLE_BELOW or not SMALLEST <= gamma <= 1 / SMALLEST:
        return make(np.float64)
    try:
        made = make(np.float32)
    except RangeError:
        return make(np.float64)
    typical, largest = float(made.diagonal.mean()), float(made.diagonal.max())
    uncertain = made.kernel.relative_error(made.rows) * max(1.0, C * typical)
    if typical >= SMALLEST and largest <= 1 / SMALLEST and uncertain <= HIDDEN * tol:
        return made
    return make(np.float64)


def predicts_in_single(
    kernel: Kernel, rows: Any, coef: Coefficients, most: float = ROUNDING
) -> bool:
    """Whether single precision rounds decision values by little of the margin, or at most so much.

    Rounding errors of the terms of a sum are independent, more or less, so they add up like
    their squares.  Some support vectors stand for the rows to come.
    """
    if len(rows) == 0:
        return True
    error = WORST * kernel.relative_error(rows)
    if kernel.definite:  # no value is larger than all on the diagonal
        largest = error * float(kernel.diagonal(rows).max())
        if largest * np.linalg.norm(coef.values) <= most:  # that of any output is smaller
            return True
        squares = coef.squared().applied(np.ones((1, len(rows))))
        if largest * np.sqrt(float(squares.max())) <= most:
            return True
    some = rows[np.unique(np.linspace(0, len(rows) - 1, PROBED).astype(np.int64))]
    values: np.ndarray = np.empty((len(some), len(rows)), dtype=kernel.dtype)
    kernel.fill(kernel.as_left(some), rows, values)
    squares = coef.squared().applied(np.square(values, dtype=np.float64))
    size = float(np.sqrt(squares.max()))
    return error * size <= most


def in_single(kernel: Kernel) -> DotKernel | None:
    """The kernel in single precision if `rounding` knows the errors of its values there."""
    if not isinstance(kernel, DotKernel) or kernel.name == "linear":
        return None
    if not SMALLEST <= kernel.gamma <= 1 / SMALLEST:
        return None
    return replace(kernel, dtype=np.float32)


def rounding(
    kernel: Kernel, rows: Any, vectors: Any, n_summed: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """A bound on rounding errors of single precision: relative and absolute, for each row.

    The kernel is one of `in_single`.  A computed value c of a row with any of the vectors and the
    exact value k of the rows before they were rounded satisfy |c - k| <= relative c + absolute; the
    relative error is 0 unless all values are positive.  This includes sums of ``n_summed`` values
    times coefficients in single precision, relative to the sum of their absolute values.

    With unit roundoff u, rounding m features and adding their products in any order moves an inner
    product <x, v> by at most (m + 3) u |x| |v| (Higham 2002, sec. 3.1), up to terms in u^2 and
    underflow, which the factor 1.01 and TINY cover; squared norms likewise.  So

    - |x|^2 + |v|^2 - 2 <x, v> is off by at most 2 (m + 5) u (|x|^2 + |v|^2), two additions and
      2 |x| |v| <= |x|^2 + |v|^2 included, and gamma times it by 2 (m + 8) u gamma (|x|^2 + |v|^2)
      = e.  The exponential makes that a factor between exp(-e) and exp(e).
    - gamma <x, v> + coef0 is off by at most (m + 6) u s, with s = gamma |x| |v| + |coef0| the
      largest that it can be.  The slope of tanh is at most 1; a power takes another p roundings, so
      that it is off by at most s^p ((1 + (m + 8) u)^p - 1).
    """
    assert isinstance(kernel, DotKernel)
    n_terms = max(rows.n_terms, vectors.n_terms) + 8
    share = 1.01 * EPSILON * n_terms
    if share > 0.01:  # the terms in u^2 count
        return np.full(len(rows), np.inf), np.full(len(rows), np.inf)
    norms = 1.01 * rows.norms.astype(np.float64)
    largest = 1.01 * float(vectors.norms.max(initial=0.0))
    summed = 1.01 * EPSILON * n_summed
    with np.errstate(over="ignore", invalid="ignore"):
        if kernel.traits.by_distance:
            exponent = kernel.gamma * (2 * share * (norms + largest) + n_terms * TINY)
            relative = np.expm1(exponent + _FINISHED)
            return relative + summed * (1 + relative), _CLAMPED * (1 + relative)
        size = kernel.gamma * np.sqrt(norms * largest) + abs(kernel.coef0)
        tiny = n_terms * TINY * (1 + kernel.gamma)
        if kernel.name == "sigmoid":
            value: Any = np.minimum(size, 1.0)
            absolute = share * size + _FINISHED * value + tiny
        else:
            value = size**kernel.degree
            absolute = np.expm1(kernel.degree * share) * value
            absolute += kernel.degree * (tiny + TINY) * (1 + size) ** kernel.degree
        return np.zeros(len(rows)), absolute + summed * (value + absolute)


def roundings(n_summed: Any) -> Any:
    """By how many roundings a sum of so many terms is off, at most.

    Of long sums, errors are independent enough to add up like their squares: more than this has a
    probability below 1e-13 (Higham and Mary, SIAM J. Sci. Comput. 41(5), 2019).
    """
    return np.minimum(n_summed, FEW_SUMMED * np.sqrt(n_summed)) + 4


def most_hidden(
    largest: tuple[float, float], n: int, alpha: float, upper: float, size: float
) -> tuple[float, float]:
    """At most what rounding hides of a primal objective and takes from a dual one.

    From sums over n variables and their bounds, and the size of the objectives and of what
    variables are multiplied by in them.  It is some hundred times what `Errors` says, and
    nearly free.
    """
    square, relative = largest
    n_terms = min(n, FEW_SUMMED * math.sqrt(n)) + 4
    error = UNIT * square * (n_terms + 2 * relative) * alpha
    lost = error * alpha + UNIT * n_terms * size
    return error * upper + lost, lost


@dataclass(frozen=True)
class Errors:
    """What rounding in double precision does to kernel values, from two numbers of each row.

    A computed value is off by at most UNIT size_i size_j (relative_i + relative_j), and no value is
    larger than size_i size_j, by the Cauchy-Schwarz inequality.
    """

    size: np.ndarray
    relative: np.ndarray

    @classmethod
    def of(cls, kernel: Kernel, rows: Any) -> Errors:
        """Those of `rounding` in another precision; of a user's values, none: they are the kernel.

        Centring moves a row by a rounding of itself, which the terms in excess stand for.
        """
        if not kernel.traits.ours or kernel.name == "sigmoid":  # which has no certificate
            return cls(np.sqrt(np.abs(kernel.diagonal(rows))), np.zeros(len(rows)))
        n_features = getattr(rows, "n_features", None) or rows.n_terms  # the same on disk
        gamma, n_terms = kernel.gamma, roundings(n_features) + 6  # type: ignore[attr-defined]
        with np.errstate(over="ignore", invalid="ignore"):
            if not isinstance(kernel, DotKernel):
                one = np.abs(rows.data).sum(axis=1, dtype=np.float64)
                return cls(np.ones(len(rows)), n_terms * gamma * one)
            norms = rows.norms.astype(np.float64)
            if not kernel.traits.by_distance:
                size = (gamma * norms + abs(kernel.coef0)) ** kernel.degree
                return cls(np.sqrt(size), np.full(len(rows), 0.5 * kernel.degree * n_terms))
            near = 2 + 2 * n_terms * gamma * norms
            far = ZERO * n_terms + 4 * np.sqrt(ZERO * gamma * norms) + 4 * UNIT * gamma * norms
            return cls(np.ones(len(rows)), far if kernel.in_double().is_far(rows) else near)

    @classmethod
    def largest(cls, kernel: Kernel, rows: Any) -> tuple[float, float]:
        """The largest squared size and relative error of any row."""
        if isinstance(kernel, DotKernel) and len(rows):  # they grow with the norm
            most = int(rows.norms.argmax())
            rows = rows[most : most + 1]
        every = cls.of(kernel, rows)
        return float(every.size.max(initial=0)) ** 2, float(every.relative.max(initial=0))

    def __getitem__(self, which) -> Errors:
        return Errors(self.size[which], self.relative[which])

    def of_sums(self, alpha: np.ndarray, sums: Callable[[np.ndarray], Any]) -> np.ndarray:
        """Bounds for sum_j alpha_j k_ij, of each row i, by ``sums`` over all j that i is with."""
        terms, n_terms = np.abs(alpha) * self.size, roundings(sums(alpha != 0))
        every = (n_terms + self.relative) * sums(terms) + sums(terms * self.relative)
        return UNIT * self.size * every


def extended_values(kernel: Any, a: Any, b: Any) -> tuple[np.ndarray, np.ndarray]:
    """k(a, b) in extended precision, by the formula, and a bound on what is wrong with it.

    Distances are taken by differences.  What is left is that rows were centred in double precision.
    """
    if not kernel.traits.ours:
        values = np.empty((len(a), len(b)))
        kernel.fill(kernel.as_left(a), b, values)
        return values.astype(np.longdouble), np.zeros(values.shape)
    x, z = _extended_points(a), _extended_points(b)
    n_terms, gamma = x.shape[1] + 8, np.longdouble(kernel.gamma)
    if kernel.traits.inner and not kernel.traits.by_distance:
        power, shift = kernel.degree, np.longdouble(kernel.coef0)
        size = gamma * np.sqrt(np.outer((x * x).sum(axis=1), (z * z).sum(axis=1))) + abs(shift)
        return (gamma * (x @ z.T) + shift) ** power, EXTENDED_UNIT * power * n_terms * size**power
    exponent, square = np.zeros((len(x), len(z)), dtype=np.longdouble), kernel.name == "rbf"
    for left, right in zip(x.T, z.T, strict=True):
        apart = np.abs(np.subtract.outer(left, right))
        if kernel.name == "chi2":
            total = np.add.outer(left, right)
            apart *= np.divide(apart, total, out=np.zeros_like(total), where=total > 0)
        exponent += apart * apart if square else apart
    exponent *= gamma
    values = np.exp(-exponent)
    lengths = [np.sqrt((p * p).sum(axis=1)) if square else np.abs(p).sum(axis=1) for p in (x, z)]
    moved = np.zeros_like(exponent)
    if kernel.centre is not None:  # which equal rows are by the same
        moved = UNIT * gamma * np.add.outer(*lengths)
        if square:
            root = UNIT * np.sqrt(gamma) * np.add.outer(*lengths)
            moved = root * (2 * np.sqrt(exponent) + root)
    off = EXTENDED_UNIT * n_terms * (1 + exponent) + np.where(exponent > 0, moved, 0)
    return values, np.where(values > 0, values * np.expm1(np.minimum(off, ZERO)), 0)


def _extended_points(rows: Any) -> np.ndarray:
    points = rows.matrix
    return (points.toarray() if sp.issparse(points) else points).astype(np.longdouble)
