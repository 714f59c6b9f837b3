"""All of a fit that does not depend on C, and what tells it from other fits."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np

from widemargin.digest import digest
from widemargin.engine import Threads
from widemargin.kernel.backend import Backend
from widemargin.kernel.divide import TrainingRows
from widemargin.multiclass import Targets
from widemargin.resources import one_blas_thread

_PROBED_ROWS = 128  # that tell one function from another, by its values on all their pairs


@dataclass(frozen=True)
class TrainingSet:
    """All of a fit that does not depend on C."""

    data: TrainingRows
    gamma: float
    targets: Targets
    host: Backend  # with memory for kernel rows that is handed on along a path
    executor: Threads | Executor
    along_path: bool
    X: object
    y: object

    def data_digest(self) -> str:
        t = self.targets
        value = () if t.value is None else (t.value,)
        return digest(self.X, t.label, *t.fitted.values(), t.weight, t.present, *value)

    def kernel_values_digest(self) -> str:
        """Of the kernel's values on some rows: what a function reads is not in its text."""
        kernel, rows = self.data.levels.kernel, self.data.levels.rows
        some = rows[np.linspace(0, len(rows) - 1, min(len(rows), _PROBED_ROWS)).astype(np.int64)]
        values: np.ndarray = np.empty((len(some), len(some)), dtype=kernel.dtype)
        with one_blas_thread():  # as in the fit: the last bits may depend on it
            kernel.fill(kernel.as_left(some), some, values)
        return digest(values)
