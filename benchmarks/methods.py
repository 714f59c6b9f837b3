"""Every method that an experiment can name: the papers' presets, our own machines, competitors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.base import BaseEstimator, ClassifierMixin

from benchmarks.competitors import COMPETITORS
from benchmarks.nodes import pmsvm_lut
from widemargin import AdditiveSVC, KernelSVC, papers
from widemargin.easy import Easy


class EasySearch(ClassifierMixin, BaseEstimator):
    """What ``widemargin easy`` does: machine, kernel and parameters chosen on the training rows.

    Seconds of a fit are those of the search too; half of ``seconds`` is for the search.
    """

    def __init__(self, seconds: float = 120.0, random_state: int = 0, n_jobs: int = 1):
        self.seconds, self.random_state, self.n_jobs = seconds, random_state, n_jobs

    def fit(self, X, y):
        own = {"random_state": self.random_state, "n_jobs": self.n_jobs}
        self.model_ = Easy(X, y, seconds=self.seconds, parameters=own).fit()
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        return self.model_.predict(X)


METHODS: dict[str, Callable[..., Any]] = COMPETITORS | {
    "ICD": papers.icd,
    "PmSVM": papers.pmsvm,
    "PmSVM-LUT": pmsvm_lut,
    "DC-SVM": papers.dcsvm,
    "DC-SVM (early)": papers.dcsvm_early,
    "AdditiveSVC": AdditiveSVC,
    "KernelSVC": KernelSVC,
    "easy": EasySearch,
}


def make(name: str, parameters: dict, seed: int, threads: int):
    """The estimator with these parameters, every seed in it set, and as many threads.

    >>> make("fm-HI", {"C": 0.5}, seed=7, threads=1)[-1].random_state
    7
    """
    model = METHODS[name](**parameters)
    values = {"seed": seed, "random_state": seed, "n_jobs": threads}
    names = {path: path.rpartition("__")[2] for path in model.get_params()}
    return model.set_params(**{path: values[n] for path, n in names.items() if n in values})
