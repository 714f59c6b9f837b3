"""Additive-kernel SVMs: one file per step, listed in ARCHITECTURE.md."""

from widemargin.additive.estimator import AdditiveSVC
from widemargin.additive.kernels import PowerMean, resolve_kernel
from widemargin.additive.map import AdditiveMap
from widemargin.additive.regression import AdditiveSVR
from widemargin.additive.store import BlockStore
from widemargin.additive.tables import ApproximationError

__all__ = [
    "AdditiveMap",
    "AdditiveSVC",
    "AdditiveSVR",
    "ApproximationError",
    "BlockStore",
    "PowerMean",
    "resolve_kernel",
]
