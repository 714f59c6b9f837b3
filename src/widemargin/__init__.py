"""Kernel support vector machines at the speed and scale of linear ones."""

from importlib.metadata import version

from widemargin import papers
from widemargin.additive import AdditiveMap, AdditiveSVC, PowerMean
from widemargin.kernel import KernelSVC

__version__ = version("widemargin")
__all__ = ["AdditiveMap", "AdditiveSVC", "KernelSVC", "PowerMean", "__version__", "papers"]
