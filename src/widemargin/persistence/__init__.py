"""`save` and `load`: one safetensors file per model, checked while reading, never executed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

import widemargin
from widemargin.additive.estimator import AdditiveSVC
from widemargin.additive.regression import AdditiveSVR
from widemargin.calibration import uncalibrated
from widemargin.classifier import MarginClassifier
from widemargin.kernel.estimator import KernelSVC
from widemargin.kernel.machine import KernelMachine
from widemargin.kernel.nu import NuSVC, NuSVR
from widemargin.kernel.one_class import OneClassSVM
from widemargin.kernel.regression import KernelSVR
from widemargin.libsvm import is_foreign, load_foreign
from widemargin.machine import Machine
from widemargin.multiclass import Coding, Numbers
from widemargin.persistence.additive import pack_additive, unpack_additive
from widemargin.persistence.container import (
    Arrays,
    Fields,
    model_budget,
    read_container,
    write_container,
)
from widemargin.persistence.header import (
    Header,
    feature_names,
    pack_record,
    read_header,
    unpack_record,
)
from widemargin.persistence.kernel import pack_kernel, unpack_kernel
from widemargin.persistence.parameters import (
    MissingKernelError,
    pack_labels,
    pack_parameters,
    unpack_labels,
    unpack_parameters,
)
from widemargin.persistence.parts import (
    PART_NAMES,
    check_finite,
    is_part,
    pack_calibration,
    pack_features,
    pack_part,
    pack_steps,
    put_in_line,
    unpack_calibration,
    unpack_part,
    unpack_width,
)

__all__ = ["Header", "MissingKernelError", "load", "read_header", "save"]


class _Kind(NamedTuple):
    """How to store an estimator, and the fit record's field that only this machine has."""

    estimator: type[Machine]
    pack: Callable
    unpack: Callable
    measure: str


_KINDS = {
    "AdditiveSVC": _Kind(AdditiveSVC, pack_additive, unpack_additive, "violation"),
    "AdditiveSVR": _Kind(AdditiveSVR, pack_additive, unpack_additive, "violation"),
    "KernelSVC": _Kind(KernelSVC, pack_kernel, unpack_kernel, "dual_objective"),
    "KernelSVR": _Kind(KernelSVR, pack_kernel, unpack_kernel, "dual_objective"),
    "NuSVC": _Kind(NuSVC, pack_kernel, unpack_kernel, "dual_objective"),
    "NuSVR": _Kind(NuSVR, pack_kernel, unpack_kernel, "dual_objective"),
    "OneClassSVM": _Kind(OneClassSVM, pack_kernel, unpack_kernel, "dual_objective"),
}


def save(model, path, *, notes: dict | None = None) -> None:
    """Write a fitted model to one file.

    Parameters
    ----------
    model : any of our classifiers, regressors and `OneClassSVM`, or a Pipeline that ends in one
        Or a `CalibratedSVC` of it, or a search, whose ``best_estimator_`` is written; that of
        `AutoSVC` with its probabilities.  The steps before are `TableEncoder`, scikit-learn's
        MinMaxScaler, MaxAbsScaler and StandardScaler, `NormalScaler` and `GradientScaler` of
        `widemargin.preparation`, and the features of images in `widemargin.vision`; they can be
        saved without a machine too.
    path : path
        Written to a temporary file and renamed, so an older model there survives any accident.
        A model that `load` would refuse is not written.
    notes : dict, default=None
        Plain values (JSON) for the header, such as the origin of the data.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import AdditiveSVC, load, save
    >>> X, y = load_iris(return_X_y=True)
    >>> model = AdditiveSVC(random_state=0).fit(X, y)
    >>> with TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/iris.safetensors")
    ...     again = load(f"{folder}/iris.safetensors")
    >>> bool((again.decision_function(X) == model.decision_function(X)).all())
    True
    """
    model = getattr(model, "calibrated_estimator_", getattr(model, "best_estimator_", model))
    header, arrays = _pack_calibrated(model)
    header |= {"package": widemargin.__version__, "notes": notes or {}}
    plain = uncalibrated(model)
    machine = plain[-1] if isinstance(plain, Pipeline) else plain
    kernel = machine.kernel if isinstance(machine, KernelMachine) else None
    kernel = kernel if callable(kernel) else None
    write_container(path, header, arrays, partial(_restored, kernel=kernel))


def load(path, *, kernel: Callable | None = None, max_bytes: int | None = None):
    """Load a model written by `save`, LIBSVM or LIBLINEAR; safe for files of unknown origin.

    Everything is checked before it is used (types, shapes, ranges, finiteness) and nothing is
    executed.

    Parameters
    ----------
    path : path
    kernel : callable, default=None
        The kernel function of a model that was trained with one.
    max_bytes : int, default=None
        The most memory that the model may take, in arrays and, for a row of its features and for
        the matrices of a committee, at prediction. By default 1 GiB or 64 times the size of the
        file, whichever is more, and at most 80 % of the memory that is free.

    Returns
    -------
    one of our machines, Pipeline, CalibratedSVC or scaler
        Ready to predict; for LIBSVM's and LIBLINEAR's text models a `LibsvmSVC` or
        `LiblinearClassifier`, which predict as those programs do.

    Raises
    ------
    ValueError
        If the file is damaged, from a newer version, or not a model.
    """
    if is_foreign(path):
        if kernel is not None:
            raise ValueError(f"{str(path)!r}: kernel= is for models trained with a function.")
        return load_foreign(path, model_budget(path, max_bytes))
    return _restored(*read_container(path, max_bytes), kernel)


def _restored(fields: Fields, arrays: Arrays, kernel: Callable | None):
    """Build a model from its file's checked content."""
    with arrays.budget:
        model = _unpack(fields, arrays, kernel)
        if fields.has("calibration"):
            inner = fields.inner("calibration"), arrays.inner("calibration/")
            model = unpack_calibration(model, *inner)
    arrays.finish()
    return model


def _pack_calibrated(model: Any) -> tuple[dict, dict[str, np.ndarray]]:
    """Pack a model, calibrated or not."""
    header, arrays = _pack(uncalibrated(model))
    if model is uncalibrated(model):
        return header, arrays
    fields, sigmoids = pack_calibration(model)
    check_finite("calibration", sigmoids)
    return header | {"calibration": fields}, arrays | sigmoids


def _pack(model: Any) -> tuple[dict, dict[str, np.ndarray]]:
    kind = type(model).__name__
    if type(model) is Pipeline:
        return _pack_pipeline(model)
    if is_part(model):
        return pack_part(model)
    if kind not in _KINDS or type(model) is not _KINDS[kind].estimator:
        raise TypeError(
            f"save() takes {', '.join(_KINDS)} or a Pipeline of {', '.join(PART_NAMES)} and "
            f"one of them, not {kind}{_way_out(model)}."
        )
    return _pack_machine(kind, model)


def _pack_machine(kind: str, model: Any) -> tuple[dict, dict[str, np.ndarray]]:
    check_is_fitted(model, "model_")
    fields, arrays = _KINDS[kind].pack(model)
    if isinstance(model.coding_, Numbers):
        fields["several"] = model.coding_.several
        arrays |= {"target_centre": model.coding_.centre, "target_scale": model.coding_.scale}
    training, measured = pack_record(model.fit_record_, _KINDS[kind].measure)
    check_finite("model", arrays)
    header = {
        "kind": kind,
        "parameters": pack_parameters(model),
        **({"classes": pack_labels(model.classes_)} if hasattr(model, "classes_") else {}),
        **pack_features(model),
        **({"label_name": model.label_name_} if hasattr(model, "label_name_") else {}),
        "training": training,
        "own": fields | measured,
    }
    return header, arrays


def _pack_pipeline(pipeline: Pipeline) -> tuple[dict, dict[str, np.ndarray]]:
    for name, step in pipeline.steps:
        last = step is pipeline.steps[-1][1]
        if not (last or is_part(step)) or type(step) is Pipeline:
            raise TypeError(
                f"A saved Pipeline is made of {', '.join(PART_NAMES)} and then one of "
                f"{', '.join(_KINDS)}; its step {name!r} is {type(step).__name__}"
                f"{_way_out(step)}."
            )
    return pack_steps(pipeline.steps, _pack)


def _way_out(part: Any) -> str:
    """Return advice on what to use instead of a class of scikit-learn's."""
    others = ("ColumnTransformer", "OneHotEncoder", "OrdinalEncoder", "SimpleImputer")
    if type(part).__name__ == "CalibratedClassifierCV":
        return "; fit a CalibratedSVC instead"
    instead = "; fit a TableEncoder instead, which takes categories and missing values"
    return instead if type(part).__name__ in others else ""


def _unpack(fields: Fields, arrays: Arrays, kernel: Callable | None) -> Any:
    kind = fields.text("kind", ("Pipeline", *_KINDS, *PART_NAMES))
    if kind == "Pipeline":
        return _unpack_pipeline(fields, arrays, kernel)
    if kind in PART_NAMES:
        return unpack_part(fields, arrays)
    d = unpack_width(fields, arrays)
    model = _unpack_machine(kind, fields, arrays, kernel, d)
    if fields.has("feature_names"):
        model.feature_names_in_ = np.array(feature_names(fields, d), dtype=object)
    return model


def _unpack_machine(kind: str, fields: Fields, arrays: Arrays, kernel: Callable | None, d: int):
    cls, _, unpack, measure = _KINDS[kind]
    model = unpack_parameters(cls, fields.inner("parameters"), kernel)
    model.n_features_in_ = d
    if issubclass(cls, MarginClassifier):
        model.classes_ = unpack_labels(fields.inner("classes"))
        model.coding_ = Coding(model.multi_class, len(model.classes_))
    if fields.has("label_name"):
        model.label_name_ = fields.text("label_name")
    inner = fields.inner("own")
    if not hasattr(model, "coding_"):
        model.coding_ = _unpack_numbers(inner, arrays)
    model.fit_record_ = unpack_record(fields.inner("training"), inner, measure)
    unpack(model, inner, arrays)
    return model


def _unpack_numbers(fields: Fields, arrays: Arrays) -> Numbers:
    """Parse centre and scale of each output."""
    centre = arrays.take("target_centre", np.float64, (None,))
    scale = arrays.take("target_scale", np.float64, (len(centre),))
    several = fields.flag("several")
    if len(centre) == 0 or (len(centre) > 1 and not several):
        raise arrays.fault("target_centre", "must have a number for each output")
    if not np.all(scale > 0):
        raise arrays.fault("target_scale", "must be positive")
    return Numbers(centre, scale, several)


def _unpack_pipeline(fields: Fields, arrays: Arrays, kernel: Callable | None) -> Pipeline:
    inners = fields.inners("steps")
    steps: list[tuple[str, Any]] = []
    for k, inner in enumerate(inners):
        last, step_arrays = k == len(inners) - 1, arrays.inner(f"{k}/")
        inner.text("kind", (*_KINDS, *PART_NAMES) if last else PART_NAMES)
        step = _unpack(inner, step_arrays, kernel)
        steps.append((inner.text("name"), step))
    return put_in_line(steps, fields)
