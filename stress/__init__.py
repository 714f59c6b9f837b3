"""Random problems against every promise of the documents: `python -m stress`, `make stress`.

What a reproduction of a failure needs is in this namespace: `from stress import *`.
"""

from stress import checks
from stress.data import Data
from stress.problems import cosine, soft_min
from widemargin import AdditiveSVC, KernelSVC, PowerMean

__all__ = ["AdditiveSVC", "Data", "KernelSVC", "PowerMean", "checks", "cosine", "soft_min"]
