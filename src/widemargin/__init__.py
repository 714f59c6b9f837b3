"""Fast kernel support vector machines that certify their solutions.

Estimators are imported on first use, so that the command line starts fast.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from widemargin import papers
    from widemargin.additive import AdditiveMap, AdditiveSVC, AdditiveSVR, BlockStore, PowerMean
    from widemargin.auto import AutoSVC, AutoSVR
    from widemargin.calibration import CalibratedSVC
    from widemargin.data import read, stream
    from widemargin.kernel import KernelSVC, KernelSVR, NuSVC, NuSVR, OneClassSVM
    from widemargin.model_report import write_report
    from widemargin.pairs import missed_pairs
    from widemargin.persistence import load, save
    from widemargin.table_encoder import TableEncoder
    from widemargin.terms import explain

_HOMES = {
    "AdditiveMap": "widemargin.additive",
    "AdditiveSVC": "widemargin.additive",
    "AdditiveSVR": "widemargin.additive",
    "AutoSVC": "widemargin.auto",
    "AutoSVR": "widemargin.auto",
    "BlockStore": "widemargin.additive",
    "CalibratedSVC": "widemargin.calibration",
    "KernelSVC": "widemargin.kernel",
    "KernelSVR": "widemargin.kernel",
    "NuSVC": "widemargin.kernel",
    "NuSVR": "widemargin.kernel",
    "OneClassSVM": "widemargin.kernel",
    "PowerMean": "widemargin.additive",
    "TableEncoder": "widemargin.table_encoder",
    "explain": "widemargin.terms",
    "load": "widemargin.persistence",
    "missed_pairs": "widemargin.pairs",
    "papers": "widemargin.papers",
    "read": "widemargin.data",
    "save": "widemargin.persistence",
    "stream": "widemargin.data",
    "write_report": "widemargin.model_report",
}

__version__ = version("widemargin")
__all__ = [
    "AdditiveMap",
    "AdditiveSVC",
    "AdditiveSVR",
    "AutoSVC",
    "AutoSVR",
    "BlockStore",
    "CalibratedSVC",
    "KernelSVC",
    "KernelSVR",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "PowerMean",
    "TableEncoder",
    "__version__",
    "explain",
    "load",
    "missed_pairs",
    "papers",
    "read",
    "save",
    "stream",
    "write_report",
]


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module 'widemargin' has no attribute {name!r}")
    home = import_module(_HOMES[name])
    value = home if _HOMES[name].endswith(f".{name}") else getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
