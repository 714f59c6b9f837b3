"""Kernels made of another one, from which they have all that they do not change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from widemargin import _core
from widemargin.kernel.kernels import Kernel
from widemargin.kernel.rows import Rows


def _of_kernel(name: str) -> Any:
    return property(lambda wrapped: getattr(wrapped.kernel, name))


class WrappedKernel:
    """What a kernel made of another one has from it."""

    kernel: Kernel
    name = _of_kernel("name")
    traits = _of_kernel("traits")
    definite = _of_kernel("definite")
    dtype = _of_kernel("dtype")
    cost = _of_kernel("cost")
    tile = _of_kernel("tile")
    in_double = _of_kernel("in_double")
    relative_error = _of_kernel("relative_error")
    prepare = _of_kernel("prepare")
    training_rows = _of_kernel("training_rows")


@dataclass(frozen=True)
class ShiftedKernel(WrappedKernel):
    """k + constant: the kernel of a model with a penalised intercept."""

    kernel: Kernel
    constant: float

    def in_double(self) -> ShiftedKernel:
        return ShiftedKernel(self.kernel.in_double(), self.constant)

    def as_left(self, a: Any) -> Any:
        return self.kernel.as_left(a)

    def fill(self, a: Any, b: Any, out: np.ndarray) -> None:
        self.kernel.fill(a, b, out)
        out += self.constant

    def in_core(self, a: Any, shift: float = 0.0) -> _core.DenseKernel | None:
        return self.kernel.in_core(a, shift + self.constant)

    def diagonal(self, a: Any) -> np.ndarray:
        return self.kernel.diagonal(a) + self.constant

    def vectors(self, a: Any, support: np.ndarray) -> Rows:
        return self.kernel.vectors(a, support)
