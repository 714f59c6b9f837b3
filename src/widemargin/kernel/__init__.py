"""SVMs with general kernels, exact by divide and conquer, or early and routed."""

from widemargin.kernel.estimator import KernelSVC
from widemargin.kernel.regression import KernelSVR

__all__ = ["KernelSVC", "KernelSVR"]
