"""Models of LIBSVM and LIBLINEAR: load their files, recognised by the first word, and predict."""

from __future__ import annotations

import os
from pathlib import Path

from widemargin.budget import Budget
from widemargin.libsvm.predictors import ForeignClassifier, LiblinearClassifier, LibsvmSVC
from widemargin.libsvm.text import parse_linear, parse_svm

__all__ = [
    "ForeignClassifier",
    "LiblinearClassifier",
    "LibsvmSVC",
    "is_foreign",
    "load_foreign",
]
_SVM, _LINEAR = b"svm_type ", b"solver_type "


def is_foreign(path: str | os.PathLike) -> bool:
    """Whether the path is a model file of LIBSVM or LIBLINEAR."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(len(_LINEAR)).startswith((_SVM, _LINEAR))


def load_foreign(path: str | os.PathLike, budget: Budget) -> LibsvmSVC | LiblinearClassifier:
    """Load a model that predicts as the program that wrote it."""
    name = os.fspath(path)
    budget.check(os.stat(path).st_size, "its text takes")
    with budget:
        text = Path(path).read_bytes()
        if not text.startswith(_SVM):
            return LiblinearClassifier()._keep(parse_linear(text, str(name), budget))
        model = parse_svm(text, str(name), budget)
        d = model.vectors.shape[1]
        budget.check(8 * d, f"a row of its {d} features takes")
        try:
            return LibsvmSVC()._keep(model)
        except ValueError as error:
            raise ValueError(f"{str(name)!r}: {error}") from None
