"""`KernelSVC` as the text model that LIBSVM's svm-predict reads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import combinations, pairwise

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from widemargin.export.labels import plain_labels
from widemargin.files import replacing
from widemargin.kernel import KernelSVC
from widemargin.kernel.kernels import DotKernel
from widemargin.kernel.model import KernelModel
from widemargin.multiclass import Coding
from widemargin.wording import words

_DIGITS = {"float32": 9, "float64": 17}  # that tell any two values apart


def export_libsvm(model: KernelSVC, path: str | os.PathLike) -> None:
    """Write a fitted `KernelSVC` as a LIBSVM model.

    LIBSVM's decision values have the signs of ours: its labels are listed latest class first.
    Of several classes with the same number of votes LIBSVM takes the first listed, where
    `KernelSVC` takes the one with the larger sum of decision values.

    Parameters
    ----------
    model : KernelSVC
        Exact (``early=False``), with the kernel "rbf", "poly" or "sigmoid", whole numbers as
        labels, and two classes or ``multi_class="ovo"``.
    path : path
        Written whole or not at all.

    Raises
    ------
    ValueError
        If the format cannot say what the model does.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from widemargin import KernelSVC
    >>> from widemargin.export import export_libsvm
    >>> model = KernelSVC(C=1, gamma=0.5).fit([[0.0, 0.0], [0.0, 2.0]], [0, 1])
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "model"
    ...     export_libsvm(model, path)
    ...     print(*path.read_text().splitlines()[:8], sep="\\n")
    svm_type c_svc
    kernel_type rbf
    gamma 0.5
    nr_class 2
    total_sv 2
    rho 0
    label 1 0
    nr_sv 1 1
    """
    labels = _checked_labels(model)
    fitted, latest_first = model.model_, range(len(labels))[::-1]
    column, owner = _pairs(fitted.coef, len(labels))
    # A support vector has one coefficient against each of the other classes.
    rivals = np.array([[column[c, r] for r in latest_first if r != c] for c in range(len(labels))])
    coef = np.take_along_axis(fitted.coef, rivals[owner], axis=1)
    rho = [0.0 - fitted.intercept[column[pair]] for pair in combinations(latest_first, 2)]
    head: dict[str, Iterable] = {
        "svm_type": ["c_svc"],
        **_kernel_lines(fitted.kernel),  # type: ignore[arg-type]
        "nr_class": [len(labels)],
        "total_sv": [len(owner)],
        "rho": _numbers(rho),
        "label": labels[::-1],
        "nr_sv": np.bincount(owner, minlength=len(labels))[::-1],
    }
    grouped = np.argsort(-owner, kind="stable")
    with replacing(path) as temporary, open(temporary, "w", newline="\n") as file:
        for name, values in head.items():
            print(name, *values, file=file)
        print("SV", file=file)
        for line in _vector_lines(coef[grouped], _support_vectors(fitted)[grouped]):
            print(*line, file=file)


def _pairs(coef: np.ndarray, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Which column of ``coef`` belongs to each pair of classes, and the class of each row."""
    column = np.zeros((n_classes, n_classes), dtype=int)
    owner = np.zeros(len(coef), dtype=int)
    for k, (i, j) in enumerate(combinations(range(n_classes), 2)):
        column[i, j] = column[j, i] = k
        owner[coef[:, k] < 0] = i
        owner[coef[:, k] > 0] = j
    return column, owner


def _kernel_lines(kernel: DotKernel) -> dict[str, list[str]]:
    lines = {"kernel_type": [str(kernel.traits.libsvm)]}
    return lines | {name: _numbers([getattr(kernel, name)]) for name in kernel.traits.parameters}


def _vector_lines(coef: np.ndarray, vectors: sp.csr_array) -> Iterator[list[str]]:
    digits = _DIGITS[vectors.dtype.name]
    for own, (begin, end) in zip(coef, pairwise(vectors.indptr), strict=True):
        values = _numbers(vectors.data[begin:end], digits)
        entries = zip(vectors.indices[begin:end], values, strict=True)
        yield _numbers(own) + [f"{j + 1}:{value}" for j, value in entries]


def _numbers(values, digits: int = 17) -> list[str]:
    return [f"{value:.{digits}g}" for value in values]


def _support_vectors(fitted: KernelModel) -> sp.csr_array:
    """In the units of the data."""
    assert isinstance(fitted.kernel, DotKernel)
    stored, centre = fitted.vectors.matrix, fitted.kernel.centre
    if centre is None:
        return sp.csr_array(stored)
    values = stored + centre
    values[np.abs(values) < np.spacing(np.abs(stored))] = 0  # zero, but for the rounding
    return sp.csr_array(values)


def _checked_labels(model) -> np.ndarray:
    """The labels of a model that LIBSVM's format can express."""
    option, elsewhere = words().option, words().function("export_onnx")
    if not isinstance(model, KernelSVC):
        raise ValueError(
            f"LIBSVM's format has no {type(model).__name__}, only kernel machines: export a "
            "KernelSVC (of a Pipeline, its last step, and scale the data before svm-predict), or "
            f"use {elsewhere}."
        )
    check_is_fitted(model, "model_")
    if model.model_.kernel.traits.libsvm is None:
        raise ValueError(
            f"{option('kernel', model.kernel)} is none of LIBSVM's. Fit with "
            f"{option('kernel', 'rbf')}, 'poly' or 'sigmoid'; {elsewhere} also writes 'laplacian' "
            "and 'chi2'."
        )
    if model.model_.router is not None:
        raise ValueError(
            "This is an early model, of clusters, which LIBSVM's format cannot say. Fit to the end "
            f"with {option('early', False)}, or use {elsewhere}."
        )
    if len(model.classes_) > 2 and not Coding.of(model).votes:
        raise ValueError(
            f"{option('multi_class', model.multi_class)} with {len(model.classes_)} classes: "
            f"LIBSVM knows pairs of classes only. Fit with {option('multi_class', 'ovo')}, or use "
            f"{elsewhere}."
        )
    labels = plain_labels(model.classes_)
    limits = np.iinfo(np.int32)
    if labels.dtype.kind != "i" or labels.min() < limits.min or labels.max() > limits.max:
        raise ValueError(
            f"The labels {model.classes_.tolist()!r} are not whole numbers of 32 bits, which is "
            f"all that LIBSVM's format knows. Fit with numbers, or use {elsewhere}."
        )
    return labels
