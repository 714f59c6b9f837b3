"""Every method that an experiment can name: the papers' presets, our own machines, competitors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.competitors import COMPETITORS
from benchmarks.nodes import pmsvm_lut
from widemargin import AdditiveSVC, AutoSVC, KernelSVC, papers


def easy(seconds: float = 120.0) -> AutoSVC:
    """What ``widemargin easy`` does; seconds of a fit are those of the search too."""
    return AutoSVC(seconds, scoring="accuracy")


METHODS: dict[str, Callable[..., Any]] = COMPETITORS | {
    "ICD": papers.icd,
    "PmSVM": papers.pmsvm,
    "PmSVM-LUT": pmsvm_lut,
    "DC-SVM": papers.dcsvm,
    "DC-SVM (early)": papers.dcsvm_early,
    "AdditiveSVC": AdditiveSVC,
    "KernelSVC": KernelSVC,
    "easy": easy,
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
