"""Export kernel machines as model files for LIBSVM's svm-predict."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from widemargin.calibration import CalibratedSVC, uncalibrated
from widemargin.errors import Message, Parameter, ParameterError
from widemargin.kernel import KernelSVC, NuSVC, NuSVR, OneClassSVM
from widemargin.kernel.kernels import DotKernel
from widemargin.kernel.linear import LinearModel
from widemargin.kernel.machine import KernelMachine
from widemargin.kernel.model import KernelModel
from widemargin.libsvm.text import SvmText
from widemargin.multiclass import every_pair, pair_numbers, plain_labels
from widemargin.table_encoder import TableEncoder
from widemargin.terms import SCALERS, Units

_TYPES = {OneClassSVM: "one_class", NuSVR: "nu_svr", KernelMachine: "epsilon_svr"}
_INEXACT = "which LIBSVM's format cannot express with this kernel."


def export_libsvm(model: Any, path: str | os.PathLike) -> None:
    """Write a fitted kernel machine as a LIBSVM model.

    LIBSVM's decision values have the signs of ours, because labels are listed latest class first.
    Among classes with equally many votes LIBSVM takes the first listed, `KernelSVC` the one with
    the larger sum of decision values.

    Parameters
    ----------
    model : KernelSVC, KernelSVR, NuSVC, NuSVR or OneClassSVM
        Or a Pipeline of scalers and one of these.  Scalers include a `TableEncoder` of numbers.
        Exact (``early=False``), with the kernel "rbf", "poly" or "sigmoid" (or "linear", but for
        `KernelSVC`); of classes, whole numbers as labels, and two classes or
        ``multi_class="ovo"``; of numbers, one target.  Behind scalers the file takes unscaled
        data, if the format can express that: "rbf" with one factor for all features, "poly" and
        "sigmoid" with scalers that keep zeros (MaxAbsScaler).  For two classes, the sigmoid of a
        `CalibratedSVC` becomes probA and probB.
    path : path
        Written whole or not at all.

    Raises
    ------
    ValueError
        If the format cannot express the model.

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
    given, model = model, uncalibrated(model)
    units, model = _units(model), model[-1] if isinstance(model, Pipeline) else model
    _check_machine(model)
    if not isinstance(model, KernelSVC):
        _single(model, units).write(path)
        return
    labels = _checked_labels(model)
    fitted, n_classes = model.model_, len(labels)
    coef, owner = fitted.coef.values[:, ::-1], fitted.coef.owner  # the latest class first
    if owner is None:  # of two classes
        owner = (coef[:, 0] > 0).astype(int)
    latest, other = (n_classes - 1 - number for number in every_pair(n_classes))
    rho = 0.0 - fitted.intercept[pair_numbers(other, latest, n_classes)]
    grouped = np.argsort(-owner, kind="stable")
    parameters, vectors = _in_units(fitted, units)
    SvmText(
        kernel=str(fitted.kernel.traits.libsvm),
        parameters=parameters,
        labels=labels[::-1],
        rho=rho,
        n_support=np.bincount(owner, minlength=len(labels))[::-1],
        coef=coef[grouped],
        vectors=vectors[grouped],
        sigmoids=_sigmoids(given),
        svm_type="nu_svc" if isinstance(model, NuSVC) else "c_svc",
    ).write(path)


def _single(model, units: Units | None) -> SvmText:
    """Return the text of a machine with one value and no labels."""
    fitted = model.model_
    if fitted.coef.n_outputs > 1:
        raise ValueError(
            f"LIBSVM's format has one target, but the model has {fitted.coef.n_outputs}. Fit a "
            "model for each."
        )
    parameters, vectors = _in_units(fitted, units)
    return SvmText(
        kernel=str(fitted.kernel.traits.libsvm),
        parameters=parameters,
        labels=np.empty(0, dtype=np.int64),
        rho=0.0 - fitted.intercept,
        n_support=np.array([len(fitted.coef)]),
        coef=fitted.coef.values,
        vectors=vectors,
        svm_type=next(name for kind, name in _TYPES.items() if isinstance(model, kind)),
    )


def _sigmoids(model) -> tuple[np.ndarray, np.ndarray] | None:
    """Return probA and probB of a calibrated model of two classes."""
    if not isinstance(model, CalibratedSVC):
        return None
    if len(model.classes_) > 2:
        message = Message(
            "LIBSVM couples the probabilities of pairs of classes by another rule. Export the "
            "model without them: {without}.",
            without=Parameter("probability", False, "model.estimator_"),
        )
        raise ValueError(message)
    return model.slope_, 0.0 - model.offset_  # of the second class, whose values are positive


def _units(model) -> Units | None:
    """Return the combined scaling before the machine; None without scalers."""
    if not (isinstance(model, Pipeline) and isinstance(model[-1], KernelMachine)):
        return None
    check_is_fitted(model)
    for step in model[:-1]:
        scales = isinstance(step, SCALERS) or (
            isinstance(step, TableEncoder)
            and step.columns_.are_features  # numbers without missing values
        )
        if not scales and step not in (None, "passthrough"):
            kind = type(step).__name__
            raise ValueError(
                f"LIBSVM's format cannot express a pipeline with {kind}. Export to ONNX."
            )
    if any(getattr(step, "clip", False) for step in model[:-1]):
        raise ValueError(f"The scaler clips, {_INEXACT} {_way_out()}")
    return Units.of(model)


def _in_units(fitted: KernelModel, units: Units | None) -> tuple[dict[str, float], sp.csr_array]:
    """Return parameters and vectors for unscaled data, if the kernel allows it.

    One factor for all features multiplies distances; factors without offsets multiply the vectors
    of inner products once more.
    """
    kernel = fitted.kernel
    assert isinstance(kernel, DotKernel)
    parameters = {name: float(getattr(kernel, name)) for name in kernel.traits.parameters}
    vectors = _support_vectors(fitted)
    if units is None:
        return parameters, vectors
    factor, vectors = units.factor, vectors.astype(np.float64)
    if not kernel.traits.by_distance:
        if np.any(units.offset):
            raise ValueError(f"The scaler moves zero, {_INEXACT} {_way_out()}")
        return parameters, sp.csr_array(vectors.multiply(factor))
    if not np.allclose(factor, factor[0], rtol=1e-12, atol=0):
        raise ValueError(f"The scaler has a factor for every feature, {_INEXACT} {_way_out()}")
    parameters["gamma"] *= factor[0] ** 2
    if not np.any(units.offset):
        return parameters, sp.csr_array(vectors / factor[0])
    return parameters, sp.csr_array((vectors.toarray() - units.offset) / factor[0])


def _way_out() -> str:
    return (
        "Train on data that is scaled already (the command scale writes a range file that "
        "svm-scale reads), or export to ONNX."
    )


def _support_vectors(fitted: KernelModel) -> sp.csr_array:
    """Return the support vectors in the data's units."""
    assert isinstance(fitted.kernel, DotKernel)
    stored, centre = fitted.vectors.matrix, fitted.kernel.centre
    if centre is None:
        return sp.csr_array(stored)
    values = stored + centre
    values[np.abs(values) < np.spacing(np.abs(stored))] = 0  # zero up to rounding
    return sp.csr_array(values)


def _check_machine(model) -> None:
    """Refuse models that LIBSVM's format cannot express."""
    if not isinstance(model, KernelMachine):
        raise ValueError(
            f"LIBSVM's format has no {type(model).__name__}, only kernel machines: export a "
            f"KernelSVC, perhaps after scalers, or export to ONNX."
        )
    check_is_fitted(model, "model_")
    if isinstance(model.model_, LinearModel):
        raise ParameterError(
            "kernel",
            model.kernel,
            "keeps weights, but LIBSVM's format needs support vectors. The same kernel is {poly} "
            "with {degree} and {gamma}: fit with that, or export to ONNX.",
            poly=Parameter("kernel", "poly"),
            degree=Parameter("degree", 1),
            gamma=Parameter("gamma", 1.0),
        )
    if model.model_.kernel.traits.libsvm is None:
        raise ParameterError(
            "kernel",
            model.kernel,
            "is not one of LIBSVM's. Fit with {rbf}, 'poly' or 'sigmoid', or export to ONNX, which "
            "also has 'laplacian' and 'chi2'.",
            rbf=Parameter("kernel", "rbf"),
        )
    if model.model_.router is not None:
        message = Message(
            "LIBSVM's format cannot express an early model, of clusters. Fit to the end with "
            "{early}, or export to ONNX.",
            early=Parameter("early", False),
        )
        raise ValueError(message)


def _checked_labels(model) -> np.ndarray:
    """Return the labels; refuse those that LIBSVM's format cannot express."""
    if len(model.classes_) > 2 and not model.coding_.votes:
        raise ParameterError(
            "multi_class",
            model.multi_class,
            "with {n} classes: LIBSVM has pairs only. Fit with {ovo}, or export to ONNX.",
            n=len(model.classes_),
            ovo=Parameter("multi_class", "ovo"),
        )
    labels = plain_labels(model.classes_)
    limits = np.iinfo(np.int32)
    if labels.dtype.kind != "i" or labels.min() < limits.min or labels.max() > limits.max:
        raise ValueError(
            f"The labels {model.classes_.tolist()!r} are not 32-bit integers, which LIBSVM's "
            "format requires. Fit with numbers, or export to ONNX."
        )
    return labels
