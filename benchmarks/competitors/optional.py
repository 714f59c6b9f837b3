"""Packages that only some comparisons need."""

from __future__ import annotations

import importlib
from types import ModuleType


class MissingPackageError(ImportError):
    """A competitor cannot run here."""


def needed(module: str, package: str) -> ModuleType:
    """The module, or an error that says what to install.

    >>> needed("no_such_module", "no-such-package")
    Traceback (most recent call last):
    ...
    benchmarks.competitors.optional.MissingPackageError: This competitor needs no-such-package:
    pip install no-such-package (or pip install --group bench).
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingPackageError(
            f"This competitor needs {package}: pip install {package} "
            "(or pip install --group bench)."
        ) from error
