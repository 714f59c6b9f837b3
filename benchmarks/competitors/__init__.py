"""Every method of the papers' tables, and today's, by name.

A competitor is a function of keyword arguments that returns an unfitted scikit-learn estimator,
set as the paper that compared with it says.  C is the weight of the loss against |w|^2 / 2
everywhere, also where a paper writes lambda = 1 / (C n).

>>> from benchmarks.competitors import COMPETITORS
>>> COMPETITORS["fm-chi2"](C=0.1)[-1].C
0.1
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from sklearn.multiclass import OneVsRestClassifier

from benchmarks.competitors.additive_pca import additive_pca
from benchmarks.competitors.binary import BinaryMachine
from benchmarks.competitors.boosting import boosted_additive, boosted_trees, ebm, lightgbm
from benchmarks.competitors.cascade import CascadeSVM
from benchmarks.competitors.committees import RandomPartition, bcm
from benchmarks.competitors.feature_maps import fm_chi2, fm_hi
from benchmarks.competitors.landmarks import llsvm, ltpu
from benchmarks.competitors.lasvm import LaSVM
from benchmarks.competitors.libhik import libhik
from benchmarks.competitors.liblinear import liblinear
from benchmarks.competitors.libsvm import (
    LibsvmHIK,
    LibsvmUnbiased,
    intelex_rbf,
    libsvm_linear,
    libsvm_poly,
    libsvm_rbf,
)
from benchmarks.competitors.pegasos import Pegasos
from benchmarks.competitors.pwlsgd import PWLSGD
from benchmarks.competitors.random_features import fastfood, fourier_features
from benchmarks.competitors.sikma import SIKMA
from benchmarks.competitors.spsvm import SpSVM


def _one_vs_rest(machine: type[BinaryMachine]) -> Callable[..., Any]:
    """Two classes or more, as ICD and DC-SVM took them."""

    @wraps(machine, updated=())
    def made(**parameters):
        return OneVsRestClassifier(machine(**parameters))

    return made


COMPETITORS: dict[str, Callable[..., Any]] = {
    "LIBLINEAR": liblinear,
    "LIBSVM linear": libsvm_linear,
    "LIBSVM RBF": libsvm_rbf,
    "LIBSVM RBF, no bias": _one_vs_rest(LibsvmUnbiased),
    "LIBSVM polynomial": libsvm_poly,
    "LIBSVM HIK": LibsvmHIK,
    "intelex RBF": intelex_rbf,
    "fm-chi2": fm_chi2,
    "fm-HI": fm_hi,
    "libHIK": libhik,
    "Pegasos": _one_vs_rest(Pegasos),
    "PWLSGD": _one_vs_rest(PWLSGD),
    "SIKMA": _one_vs_rest(SIKMA),
    "additive kernel PCA": additive_pca,
    "LLSVM": llsvm,
    "LTPU": ltpu,
    "Fastfood": fastfood,
    "Fourier features": fourier_features,
    "SpSVM": _one_vs_rest(SpSVM),
    "LaSVM": _one_vs_rest(LaSVM),
    "CascadeSVM": _one_vs_rest(CascadeSVM),
    "BCM": bcm,
    "random partition": _one_vs_rest(RandomPartition),
    "boosted trees": boosted_trees,
    "boosted additive": boosted_additive,
    "EBM": ebm,
    "LightGBM": lightgbm,
}
