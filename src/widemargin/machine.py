"""What every machine of the package is: callbacks, a record of its fit, a path over C."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field

from sklearn.base import BaseEstimator, clone
from sklearn.callback import CallbackSupportMixin

from widemargin.engine import Threads


@dataclass(frozen=True)
class FitRecord:
    """What a fit leaves behind beside its model.

    ``gap`` is the largest relative duality gap of its problems, the objectives are sums over
    them, ``violation`` is the largest projected gradient; NaN where there is no such thing.
    """

    n_rows: int  # of positive weight
    seconds: float
    n_iter: int
    gap: float
    objective: float
    dual_objective: float = float("nan")
    violation: float = float("nan")
    history: list[list[dict]] = field(default_factory=list, repr=False)


class Machine(CallbackSupportMixin, BaseEstimator):
    """An estimator with parameters ``C`` and ``n_jobs``, and a `FitRecord` once fitted."""

    n_jobs: int | None
    fit_record_: FitRecord

    @property
    def n_iter_(self) -> int:
        return self.fit_record_.n_iter

    @property
    def duality_gap_(self) -> float:
        return self.fit_record_.gap

    @property
    def objective_(self) -> float:
        return self.fit_record_.objective

    @property
    def history_(self) -> list[list[dict]]:
        return self.fit_record_.history

    def _executor(self) -> Threads | Executor:
        """Where the tasks of a fit run."""
        return Threads(self.n_jobs)

    def _fit_along(self, Cs, prepare: Callable, solve: Callable, **changes) -> list:
        """One model per C: ``prepare(first)`` once, then ``solve(model, prepared, last)``."""
        models: list = []
        prepared = None
        for C in Cs:
            model = clone(self).set_params(C=C, **changes)
            model._check_params()
            if prepared is None:
                prepared = prepare(model)
            else:
                model.n_features_in_ = models[0].n_features_in_
                if hasattr(models[0], "feature_names_in_"):
                    model.feature_names_in_ = models[0].feature_names_in_
            solve(model, prepared, models[-1] if models else None)
            models.append(model)
        return models


def feature_names(model, names: Sequence[str] | None = None) -> list[str]:
    """Names of a model's features: those given, those it knows, or numbers."""
    if names is None:
        names = getattr(model, "feature_names_in_", None)
    return [f"feature {j}" for j in range(model.n_features_in_)] if names is None else list(names)
