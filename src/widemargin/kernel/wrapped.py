"""Kernels that wrap another kernel."""

from __future__ import annotations

from typing import Any

from widemargin.kernel.kernels import Kernel


def _of_kernel(name: str) -> Any:
    return property(lambda wrapped: getattr(wrapped.kernel, name))


class WrappedKernel:
    """A kernel with the properties of the kernel that it wraps."""

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
