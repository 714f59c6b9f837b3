"""Parameters that every kernel machine has, checked; and rows of any kind for its predictions."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
from joblib import effective_n_jobs

from widemargin.errors import Message, Parameter, ParameterError
from widemargin.kernel.backend import Host
from widemargin.kernel.input import rows_of_objects
from widemargin.kernel.kernels import KERNELS, traits_of
from widemargin.kernel.machine import KernelMachine
from widemargin.kernel.model import COMBINATIONS
from widemargin.kernel.partition import CLUSTERINGS
from widemargin.stored import matrix_of
from widemargin.validation import (
    check_bool,
    check_choice,
    check_max_seconds,
    check_n_jobs,
    check_number,
    check_number_or_auto,
    check_X,
    machine_of_kernel,
)

LARGEST = 1e30  # gamma and coef0 that single precision can work with


class KernelParameters(KernelMachine):
    """A `KernelMachine` that checks its parameters, and whose model is asked about rows."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        traits = traits_of(self.kernel)
        tags.input_tags.sparse = traits.sparse
        tags.input_tags.pairwise = traits.pairwise
        tags.input_tags.positive_only = traits.non_negative
        return tags

    def _check_params(self) -> None:
        self._check_kernel()
        self._check_division()
        self._check_early()
        self._check_C()
        check_number("tol", self.tol, above=0)
        if self.max_iter != -1:
            check_number("max_iter", self.max_iter, low=1, integer=True)
        check_max_seconds(self.max_seconds)
        check_number_or_auto("cache_size", self.cache_size, above=0, finite=True)
        if self.checkpoint is not None and not isinstance(self.checkpoint, (str, os.PathLike)):
            raise TypeError(f"checkpoint must be a path or None, got {self.checkpoint!r}.")
        check_bool("warm_start", self.warm_start)
        check_choice("on_interrupt", self.on_interrupt, ("raise", "keep"))
        check_n_jobs(self.n_jobs)
        if not isinstance(self.verbose, bool):
            check_number("verbose", self.verbose, low=0)

    def _check_C(self) -> None:
        check_number("C", self.C, above=0)
        if np.inf == self.C:
            raise ParameterError(
                "C",
                self.C,
                "has no solution where no model is without errors. Use a large number, such as "
                "{large}; where there is one, numbers above the largest dual variable change "
                "nothing.",
                large=Parameter("C", 1e6),
            )

    def _check_kernel(self) -> None:
        if not callable(self.kernel):
            check_choice("kernel", self.kernel, KERNELS, machine_of_kernel(self.kernel))
        if isinstance(self.gamma, str):
            check_choice("gamma", self.gamma, ("scale", "auto"))
        else:
            check_number("gamma", self.gamma, above=0, high=LARGEST, finite=True)
        check_number("degree", self.degree, low=0, high=2**31 - 1, integer=True)
        check_number("coef0", self.coef0, low=-LARGEST, high=LARGEST, finite=True)

    def _check_division(self) -> None:
        check_number_or_auto("levels", self.levels, low=0, high=20, integer=True)
        check_number("branching", self.branching, low=2, integer=True)
        check_choice("clustering", self.clustering, CLUSTERINGS)
        if self.clustering == "kmeans" and not traits_of(self.kernel).ours:
            raise ValueError(
                "clustering='kmeans' needs rows of features, which this kernel may not have. Use "
                "'kernel_kmeans'."
            )
        check_number("sample_size", self.sample_size, low=2, integer=True)
        check_number("level_tol", self.level_tol, above=0, finite=True)
        if isinstance(self.record_levels, str):
            check_choice("record_levels", self.record_levels, ("exact",))
        else:
            check_bool("record_levels", self.record_levels)

    def _check_early(self) -> None:
        """An early model, and what does not go with one."""
        if not isinstance(self.early, (bool, np.bool_)):
            check_number("early", self.early, low=1, high=20, integer=True)
        if self.early and self.clustering == "random":
            message = (
                "clustering='random' has no clusters for new rows, which an early model needs. Use "
                "another, or {early}."
            )
            raise ValueError(Message(message, early=Parameter("early", False)))
        check_choice("early_prediction", self.early_prediction, COMBINATIONS)
        if self.early_prediction == "bcm" and traits_of(self.kernel).pairwise:
            raise ValueError(
                "early_prediction='bcm' needs kernel values between support vectors, which a "
                "precomputed matrix does not bring to predict. Use 'routed' or 'sum'."
            )
        if self.fit_intercept != "auto":
            check_bool("fit_intercept", self.fit_intercept)
        if self._has_intercept() and self.early:
            raise ParameterError(
                "fit_intercept",
                True,
                "needs the whole problem, which an early model does not solve. Use {early} or "
                "{without}.",
                early=Parameter("early", False),
                without=Parameter("fit_intercept", False),
            )

    def _of_rows(self, X, find: Callable[..., np.ndarray]) -> np.ndarray:
        """What ``find`` makes of the model, some rows and the host."""
        stored, host = matrix_of(X), Host(effective_n_jobs(self.n_jobs))
        if (objects := rows_of_objects(self.kernel, X)) is not None:
            return find(self.model_, objects, host)
        parts = [X] if stored is None else (part for _, part in stored.parts())
        checked = (check_X(self, part, reset=False) for part in parts)
        return np.concatenate([find(self.model_, part, host) for part in checked])
