"""Which precision a fit begins with: single where that can hold its numbers, double elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from widemargin.kernel.coefficients import Coefficients
from widemargin.kernel.kernels import Kernel
from widemargin.kernel.rows import RangeError

DOUBLE_BELOW = 1e-4  # of tol: single precision certifies no tighter gaps
HIDDEN = 10.0  # multiples of tol that rounding may hide of a gradient: refinement finds them
ROUNDING = 1e-3  # of the margin, by which predictions in single precision may be off
WORST = 3.0  # times what rounding typically does, that it does to some of many predictions
PROBED = 64  # support vectors
SMALLEST = 1e-30  # of gamma and kernel values in single precision; 1 / SMALLEST is the largest


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
