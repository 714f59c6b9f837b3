"""SVMs with general kernels, exact by divide and conquer, or early and routed."""

from widemargin.kernel.estimator import KernelSVC

__all__ = ["KernelSVC"]
