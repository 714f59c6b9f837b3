"""SVMs with general kernels, exact by divide and conquer, or early and routed."""

from widemargin.kernel.estimator import KernelSVC
from widemargin.kernel.nu import NuSVC, NuSVR
from widemargin.kernel.one_class import OneClassSVM
from widemargin.kernel.regression import KernelSVR

__all__ = ["KernelSVC", "KernelSVR", "NuSVC", "NuSVR", "OneClassSVM"]
