"""Pack and unpack kernel machines."""

from __future__ import annotations

from dataclasses import fields as fields_of
from dataclasses import replace
from typing import Any

import numpy as np

from widemargin.additive.kernels import PowerMean
from widemargin.kernel.coefficients import Coefficients
from widemargin.kernel.kernels import DotKernel, FunctionKernel, Kernel, make_kernel
from widemargin.kernel.levels import Level
from widemargin.kernel.linear import LinearModel
from widemargin.kernel.linear_fit import LinearFit
from widemargin.kernel.machine import KernelMachine
from widemargin.kernel.model import KernelModel
from widemargin.kernel.partition import KernelRouter, PointRouter, Router
from widemargin.kernel.rows import CompressedRows, DenseRows, GivenRows, MatrixRows, Rows
from widemargin.multiclass import Coding
from widemargin.persistence.container import Arrays, Fields, pack_number
from widemargin.persistence.parameters import WHOLE_DTYPES, MissingKernelError, NotStored

_LARGEST_DEGREE = 2**31 - 1
_COMMITTEE = 40  # bytes per pair of a cluster's vectors: five matrices at once
_DTYPES: dict[str, type] = {"float32": np.float32, "float64": np.float64}
# Inputs of a user's function.
_GIVEN = ("bool", "float16", "float32", "float64", *WHOLE_DTYPES)
_NO_MEASURES = ("level", "n_clusters", "n_support", "sizes", "alpha", "label")
_FOUND = ("C_", "epsilon_")  # by a machine of nu
_MEASURES = tuple(f.name for f in fields_of(Level) if f.name not in _NO_MEASURES)


def pack_kernel(estimator: KernelMachine) -> tuple[dict, dict[str, np.ndarray]]:
    model = estimator.model_
    header: dict = {"sparse": bool(estimator._sparse), "rows_given": estimator.shape_fit_[0]}
    arrays = {
        "coef": model.coef.values,
        "intercept": model.intercept,
        "support": estimator.support_,
        "support_sizes": estimator.n_support_,
        "n_iter": estimator.n_iter_,
    }
    if model.coef.owner is not None:
        arrays["owner"] = model.coef.owner
    if _has_classes(estimator):
        arrays["class_weight"] = estimator.class_weight_
    arrays |= {name: getattr(estimator, name) for name in _FOUND if hasattr(estimator, name)}
    if isinstance(model, LinearModel):
        return header, arrays | {"weights": model.weights}
    kernel = model.kernel
    header |= {
        "gamma": float(estimator.gamma_),
        "dtype": np.dtype(kernel.dtype).name,
        "noise": float(model.noise),
        "levels": [_pack_level(level) for level in estimator.levels_],
        "compressed": isinstance(kernel, DotKernel) and bool(kernel.compressed),
    }
    arrays |= _named("vectors.", model.vectors.pack())
    if isinstance(kernel, DotKernel | FunctionKernel) and kernel.centre is not None:
        arrays["centre"] = kernel.centre
    if model.router is not None and model.cluster is not None:
        arrays["cluster"] = model.cluster
        arrays |= _named("router.", model.router.pack())
    return header, arrays


def _has_classes(estimator: KernelMachine) -> bool:
    return isinstance(estimator.coding_, Coding)


def unpack_kernel(estimator: KernelMachine, fields: Fields, arrays: Arrays) -> None:
    """Set the attributes of ``fit``."""
    d, coding = estimator.n_features_in_, estimator.coding_
    intercept = arrays.take("intercept", np.float64, (coding.n_outputs,))
    coef = _unpack_coef(arrays, coding)
    if isinstance(estimator, LinearFit) and estimator._is_linear():
        _unpack_fit(estimator, fields, arrays, coding)
        weights = arrays.take("weights", np.float64, (coding.n_outputs, d))
        estimator.support_ = arrays.indices("support", np.int64, len(coef), 2**62)
        estimator.gamma_, estimator.levels_ = 1.0, []
        estimator.model_ = LinearModel(weights, intercept, coef)
        return
    kernel = _unpack_kernel(estimator, fields, arrays)
    vectors = _unpack_rows(kernel, arrays.inner("vectors."), len(coef), d)
    _check_overflow(kernel, vectors, fields)
    router = cluster = None
    if arrays.has("cluster"):
        router = _unpack_router(kernel, arrays.inner("router."), d)
        cluster = arrays.indices("cluster", np.int64, len(coef), router.n_clusters)
        if estimator.early_prediction == "bcm" and len(cluster):
            largest = int(np.bincount(cluster).max())
            arrays.budget.check(_COMMITTEE * largest**2, "its committee takes")
    noise = fields.number("noise")
    if noise <= 0:
        raise fields.fault("noise", "positive")
    support = arrays.indices("support", np.int64, len(coef), 2**62)
    _unpack_fit(estimator, fields, arrays, coding)
    estimator.gamma_ = fields.number("gamma")
    estimator.model_ = KernelModel(
        kernel, vectors, coef, intercept, router, cluster, estimator.early_prediction, noise
    )
    estimator.support_ = support
    estimator.levels_ = [_unpack_level(level) for level in fields.inners("levels")]


def _unpack_fit(estimator: KernelMachine, fields: Fields, arrays: Arrays, coding: Any) -> None:
    """Set the fit's record and other attributes outside the model."""
    n_classes = coding.n_classes
    estimator._sparse = fields.flag("sparse")
    estimator.shape_fit_ = (fields.integer("rows_given", low=1), estimator.n_features_in_)
    estimator.n_support_ = arrays.indices("support_sizes", np.int64, n_classes, 2**53)
    estimator.n_iter_ = arrays.indices("n_iter", np.int64, coding.n_outputs, 2**53)
    if _has_classes(estimator):
        estimator.class_weight_ = arrays.take("class_weight", np.float64, (n_classes,))
    for name in _FOUND:
        if arrays.has(name):
            setattr(estimator, name, arrays.take(name, np.float64, (coding.n_outputs,)))


def _unpack_coef(arrays: Arrays, coding: Any) -> Coefficients:
    if not coding.votes:
        return Coefficients(arrays.take("coef", np.float64, (None, coding.n_outputs)))
    values = arrays.take("coef", np.float64, (None, coding.n_classes - 1))
    owner = arrays.indices("owner", np.int64, len(values), coding.n_classes)
    if np.any(owner[1:] < owner[:-1]):
        raise arrays.fault("owner", "must ascend")
    return Coefficients(values, owner)


def _unpack_kernel(estimator: KernelMachine, fields: Fields, arrays: Arrays) -> Kernel:
    """Build the kernel that `make_kernel` chose for the training data."""
    dtype = _DTYPES[fields.text("dtype", tuple(_DTYPES))]
    if isinstance(estimator.kernel, NotStored):
        raise MissingKernelError(
            f"{fields.path!r}: this model was trained with the kernel function "
            f"{estimator.kernel.__name__!r}, which a model file cannot hold. Pass it: "
            "load(path, kernel=function)."
        )
    d = estimator.n_features_in_
    gamma = fields.number("gamma")
    if gamma <= 0:
        raise fields.fault("gamma", "positive")
    if isinstance(estimator.kernel, PowerMean):
        raise ValueError(f"{fields.path!r}: the power mean is a kernel of AdditiveSVC only.")
    kernel = make_kernel(
        estimator.kernel, gamma, estimator.coef0, estimator.degree, np.zeros((1, 1)), dtype
    )
    compressed = fields.flag("compressed")
    if isinstance(kernel, FunctionKernel):
        centred = kernel.centre is not None
        return replace(kernel, centre=arrays.take("centre", np.float64, (d,)) if centred else None)
    if not isinstance(kernel, DotKernel):
        return kernel
    if gamma > float(np.finfo(dtype).max) or kernel.degree > _LARGEST_DEGREE:
        raise ValueError(f"{fields.path!r}: gamma or degree is too large to compute with.")
    centred = kernel.name == "rbf" and not compressed
    centre = arrays.take("centre", np.float64, (d,)) if centred else None
    return replace(kernel, compressed=compressed, centre=centre)


def _check_overflow(kernel: Kernel, vectors: Rows, fields: Fields) -> None:
    """Refuse a kernel that overflows on the vectors, as `fit` does on its data."""
    if isinstance(kernel, DotKernel):
        with np.errstate(over="ignore", invalid="ignore"):
            most = np.abs(kernel.diagonal(vectors)).max(initial=0.0)
        if not most <= float(np.finfo(kernel.dtype).max):
            raise ValueError(f"{fields.path!r}: the kernel overflows on the model's own vectors.")


def _named(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {prefix + name: array for name, array in arrays.items()}


def _unpack_rows(kernel: Kernel, arrays: Arrays, n: int | None, d: int) -> Rows:
    if kernel.traits.pairwise:
        return MatrixRows.of_columns(arrays.indices("column", np.int64, n, d))
    if not kernel.traits.inner:
        data = arrays.take("data", kernel.dtype if kernel.traits.ours else _GIVEN, (n, d))
        return GivenRows(data)
    norms = arrays.take("norms", kernel.dtype, (n,))
    if len(norms) and norms.min() < 0:
        raise arrays.fault("norms", "holds negative squares")
    if not (isinstance(kernel, DotKernel) and kernel.compressed):
        return DenseRows(arrays.take("data", kernel.dtype, (len(norms), d)), norms)
    value = arrays.take("value", kernel.dtype, (None,))
    start = arrays.pointers("start", len(norms), len(value))
    index = arrays.indices("index", np.int32, len(value), d)
    inside = np.ones(len(index), dtype=bool)  # whether a value is not the first of its row
    inside[start[:-1][start[:-1] < len(index)]] = False
    if np.any(inside[1:] & (index[1:] <= index[:-1])):
        raise arrays.fault("index", "must ascend within each row")
    return CompressedRows(start, index, value, norms, d)


def _unpack_router(kernel: Kernel, arrays: Arrays, d: int) -> Router:
    if arrays.has("centres"):
        centres = arrays.take("centres", kernel.dtype, (None, d))
        if len(centres) == 0:
            raise arrays.fault("centres", "must not be empty")
        return PointRouter(centres)
    members = arrays.take("members", np.float64, (None, None))
    if 0 in members.shape:
        raise arrays.fault("members", "must not be empty")
    constants = arrays.take("constants", np.float64, (members.shape[1],))
    sample = _unpack_rows(kernel, arrays.inner("sample."), len(members), d)
    return KernelRouter(kernel, sample, members, constants)


def _pack_level(level: Level) -> dict:
    return {
        "level": level.level,
        "sizes": level.sizes.tolist(),
        "n_support": int(level.n_support),
        **{name: pack_number(getattr(level, name)) for name in _MEASURES},
    }


def _unpack_level(fields: Fields) -> Level:
    sizes = fields.items("sizes")
    if not sizes or not all(type(n) is int and 0 < n < 2**53 for n in sizes):
        raise fields.fault("sizes", "a list of positive whole numbers")
    return Level(
        level=fields.integer("level", low=0, high=20),
        n_clusters=len(sizes),
        sizes=np.array(sizes),
        n_support=fields.integer("n_support"),
        **{name: fields.number(name, finite=False) for name in _MEASURES},  # type: ignore[arg-type]
    )
