"""Base of every machine: callbacks, a record of its fit, a path over C."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from joblib.parallel import get_active_backend
from sklearn.base import BaseEstimator, clone
from sklearn.callback import CallbackSupportMixin, with_callbacks

from widemargin.engine import ClusterExecutor, Threads
from widemargin.multiclass import Targets

FARTHEST = 1e6  # largest ratio of C to the C of the start


@dataclass(frozen=True)
class FitRecord:
    """Facts about a fit that are not part of its model.

    ``gap`` is the largest relative duality gap of its problems, the objectives are sums over
    them, ``violation`` is the largest projected gradient; NaN if undefined.
    """

    n_rows: int  # of positive weight
    seconds: float
    n_iter: int
    gap: float
    objective: float
    dual_objective: float = math.nan
    violation: float = math.nan
    history: list[list[dict]] = field(default_factory=list, repr=False)


def near(start: Any, C: float) -> Any:
    """Scale dual variables of another fit to this C; return None if there are none or C is too far.

    Bounded variables grow exactly with C, but others need not grow at all.
    """
    return start if start is not None and C <= FARTHEST * start.C else None


def recorded(name: str) -> Any:
    """Make a property that reads from the machine's `FitRecord`."""
    return property(lambda machine: getattr(machine.fit_record_, name))


class Machine(CallbackSupportMixin, BaseEstimator):
    """An estimator with parameters ``C`` and ``n_jobs``, and a `FitRecord` once fitted.

    A mixin, such as `MarginClassifier`, turns y into targets.  A subclass checks its parameters,
    computes everything that does not depend on C (``_prepare``), and solves (``_solve``), from the
    dual variables of another fit to its own.
    """

    C: float
    n_jobs: int | None
    max_seconds: float | None
    fit_record_: FitRecord
    duality_gap_ = recorded("gap")
    objective_ = recorded("objective")
    history_ = recorded("history")

    def _by_gap(self) -> bool:
        """Whether fits end by the relative duality gap."""
        return not np.isnan(self.duality_gap_)

    _check_params: Callable[[], None]
    _targets: Callable[..., Targets]
    _prepare: Callable[..., Any]
    _solve: Callable[..., Any]

    @with_callbacks
    def fit(self, X, y=None, sample_weight=None):
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Any real or integer dtype.  For ``kernel="precomputed"``, the kernel matrix of shape
            (n_samples, n_samples).  Or a `BlockStore`, for data larger than memory: of
            codes for `AdditiveSVC`, of values for `KernelSVC`; it has its own y and weights.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies C: 2 is the same as two copies, 0 the same as leaving the row out.

        Returns
        -------
        self : estimator
        """
        self._check_params()
        with self._time_limit():
            self._solve(self._prepare(X, y, sample_weight), None)
        return self

    def fit_path(self, X, y, Cs, sample_weight=None):
        """Fit one model per value of C, each started from the one before.

        What does not depend on C (codes and tables, or kernel rows as far as the cache holds them)
        is computed once.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        Cs : sequence of float
            Values of C, preferably in ascending order.

        Returns
        -------
        models : list of estimators
            Fitted copies of this one, in the order of ``Cs``.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from widemargin import AdditiveSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> [m.C for m in AdditiveSVC(random_state=0).fit_path(X, y, [0.1, 1.0])]
        [0.1, 1.0]
        """
        if not np.iterable(Cs):
            raise TypeError(f"Cs must be a sequence of numbers, such as [{Cs!r}], got {Cs!r}.")
        models = [clone(self).set_params(C=C) for C in Cs]
        for model in models:
            model._check_params()
        if not models:
            return models
        largest = max(models, key=lambda model: model.C)  # its precision suffices for all
        training, start = largest._prepare(X, y, sample_weight, several=True), None
        for model in models:
            for name in ("n_features_in_", "feature_names_in_", "label_name_"):
                if hasattr(largest, name):
                    setattr(model, name, getattr(largest, name))
            start = model._solve_managed(training, start)
        return models

    @with_callbacks
    def _solve_managed(self, training, start):
        with self._time_limit():
            return self._solve(training, start)

    @contextmanager
    def _time_limit(self) -> Iterator[None]:
        """End the fit in this block after ``max_seconds`` (see `progress_of`)."""
        if self.max_seconds is None:
            yield
            return
        self._deadline = time.monotonic() + self.max_seconds
        try:
            yield
        finally:
            del self._deadline

    def _why_stopped(self) -> str:
        """Return why a fit ended before it converged and before ``max_iter``."""
        if time.monotonic() >= getattr(self, "_deadline", math.inf):
            return f"The time limit of {self.max_seconds:g} s is over."
        return "It was told to stop."

    def _executor(self) -> Threads | Executor:
        """Return where tasks run: in threads, or as ``joblib.parallel_config("dask")`` says."""
        client = getattr(get_active_backend()[0], "client", None)
        return Threads(self.n_jobs) if client is None else ClusterExecutor(client)


def feature_names(model, names: Sequence[str] | None = None) -> list[str]:
    """Return the names of a model's features: given names, its own, or numbers."""
    n = model.n_features_in_
    if names is None:
        names = getattr(model, "feature_names_in_", None)
    if names is None:
        return [f"feature {j}" for j in range(n)]
    if len(names) != n:
        raise ValueError(f"names has {len(names)} names, and the model has {n} features.")
    return list(names)


def changed_and_default_parameters(machine) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters that differ from their defaults, and the others."""
    given, default = machine.get_params(), type(machine)().get_params()
    changed = {
        name: value
        for name, value in given.items()
        if np.ndim(value) or value != default[name]  # defaults are never arrays
    }
    return changed, {name: value for name, value in given.items() if name not in changed}
