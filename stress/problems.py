"""Hypothesis strategies: a whole case, an estimator with its parameters and data to fit it to.

The simplest value of everything stands first, since that is what hypothesis shrinks to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any

import numpy as np
from hypothesis import strategies as st
from sklearn.base import BaseEstimator

from stress.data import DTYPES, LAYOUTS, SPARSE, WEIGHTS, Data
from widemargin import AdditiveSVC, KernelSVC, PowerMean
from widemargin.kernel.kernels import traits_of

PREAMBLE = "from stress import *"


def cosine(A, B):
    """A kernel of the user's, for dense and sparse rows; positive semi-definite."""
    A, B = A.astype(np.float64), B.astype(np.float64)
    inner = A @ B.T
    lengths = [np.sqrt(np.asarray((M * M).sum(axis=1))).ravel() for M in (A, B)]
    dense = inner.toarray() if hasattr(inner, "toarray") else inner
    return dense / np.maximum(np.outer(*lengths), 1e-300) + 0.5


def soft_min(x, y):
    """An additive kernel of the user's (that of docs/additive.md)."""
    return x * y / (x + y + 0.1)


@dataclass(frozen=True)
class Case:
    """What is fitted, and to what."""

    machine: type[BaseEstimator]
    parameters: dict[str, Any]
    data: Data

    def estimator(self) -> BaseEstimator:
        return self.machine(**self.parameters)

    @property
    def kernel(self) -> str:
        return _written(self.parameters["kernel"]).strip("'")

    def lines(self, check: str) -> list[str]:
        """Python that shows what happens: data, fit, assertion."""
        told = ", ".join(f"{k}={_written(v)}" for k, v in self.parameters.items())
        return [
            f"{PREAMBLE}; X, y, w = {self.data!r}.arrays()",
            f"model = {self.machine.__name__}({told}).fit(X, y, w)",
            f"checks.{check}(model, X, y, w)",
        ]


def _written(value) -> str:
    return value.__name__ if isinstance(value, FunctionType) else repr(value)


# ------------------------------------------------------------------ numbers


def chosen(*values) -> st.SearchStrategy:
    """One of them; a single draw, because drawing is what a case costs most of."""
    return st.sampled_from(values)


def usually(value, *others) -> st.SearchStrategy:
    """The first two times in three."""
    return chosen(value, *[value] * (2 * len(others) - 1), *others)


def powers(low: int, high: int) -> st.SearchStrategy[float]:
    """A power of ten: one within 100 of 1, or as often any from 10^low to 10^high."""
    exponents = [*range(low, high + 1)]
    near = [0, 1, -1, 2, -2] * -(-len(exponents) // 5)
    return chosen(*(float(f"1e{k}") for k in near + exponents))


# ------------------------------------------------------------------ what is drawn

DATA = {
    "classes": usually(2, 3, 4, 5, 12),
    "rows": chosen(
        0, 1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 300
    ),  # beside one per class
    "columns": usually(2, 1, 3, 5, 20),
    "seed": st.integers(0, 999),
    "noise": chosen(0.3, 0.0, 1.0, 10.0),
    "copies": usually(1, 2, 5, 30),
    "zeros": usually(0.0, 0.5, 0.9, 1.0),
    "scale": powers(-20, 15),
    "offset": usually(0.0, 1e-3, 1.0, 100.0, 1e4, 1e6),
    "uneven": usually(1.0, 1e-6, 1e-2, 1e2, 1e6),
    "constant": usually(False, True),
    "signed": chosen(True, False),
    "steps": chosen(0, 1, 4),
    "dtype": usually(*DTYPES),
    "layout": usually(*LAYOUTS),
    "weights": usually(*WEIGHTS),
}

BOTH = {
    "C": powers(-6, 12),
    "class_weight": usually(None, "balanced", {0: 0.01}, {1: 1000.0}),
    "fit_intercept": chosen(False, True, "auto"),
    "tol": usually(1e-3, 1e-1, 1e-2, 1e-4, 1e-5, 1e-6, 1e-8),
    "max_iter": chosen(100, 100, 1, 3, 30),
}

KERNEL = BOTH | {
    "kernel": chosen("rbf", "poly", "laplacian", "chi2", "sigmoid", "precomputed", cosine),
    "fit_intercept": usually("auto", False, True),
    "gamma": st.one_of(chosen("scale", "auto"), powers(-8, 8)),
    "degree": usually(3, 0, 1, 2, 9),
    "coef0": usually(0.0, 1.0, -1.0, 100.0),
    "levels": usually("auto", 0, 1, 3),
    "branching": usually(4, 2, 5),
    "clustering": usually("auto", "kernel_kmeans", "plain_kernel_kmeans"),
    "early": usually(False, 1, 2),
    "multi_class": chosen("ovr", "ovo"),
    "cache_size": usually("auto", 0.001, 0.01, 1.0),
}

ADDITIVE = BOTH | {
    "kernel": chosen("chi2", "intersection", "hellinger", "jensen_shannon", "linear",
                     PowerMean(-2.5), soft_min),
    "loss": chosen("squared_hinge", "hinge"),
    "approximation": usually("spectral", "unary", "fourier", "chebyshev", "pmsvm"),
    "rank": usually("auto", 1, 3, 8, 20),
    "n_bins": usually("auto", 1, 2, 16, 300),
    "binning": usually("auto", "uniform", "floor", "exact"),
    "scaling": usually("auto", "global", "minmax", "percentile", None),
    "multi_class": chosen("ovr", "crammer_singer"),
    "C_unit": usually("diagonal", "raw"),
}  # fmt: skip


def kernel_cases(**changes) -> st.SearchStrategy[Case]:
    """`KernelSVC`; changes are strategies for parameters and fields of the data, by name."""
    near = st.booleans()
    return st.builds(_kernel_case, _table(KERNEL, changes), _table(DATA, changes), near)


def additive_cases(**changes) -> st.SearchStrategy[Case]:
    """`AdditiveSVC`, likewise."""
    return st.builds(_additive_case, _table(ADDITIVE, changes), _table(DATA, changes))


def cases(**changes) -> st.SearchStrategy[Case]:
    """Of either machine; changes that one of them does not have are left out of it."""
    return st.one_of(kernel_cases(**changes), additive_cases(**changes))


def _table(table: dict, changes: dict) -> st.SearchStrategy[dict]:
    return st.fixed_dictionaries({name: changes.get(name, table[name]) for name in table})


# ------------------------------------------------------------------ what suits each other


def _kernel_case(drawn: dict[str, Any], fields: dict[str, Any], near: bool) -> Case:
    kernel = drawn["kernel"]
    traits = traits_of(kernel)
    if not callable(kernel):
        unused = {"gamma", "degree", "coef0"} - set(traits.parameters)
        drawn = {k: v for k, v in drawn.items() if k not in unused}
    if drawn["early"]:
        drawn = drawn | {"fit_intercept": False}
    data = _data(fields, signed=not traits.non_negative, sparse=traits.sparse)
    if near and not isinstance(drawn.get("gamma", ""), str):  # in the unit of the data
        unit = data.columns * max(data.scale, 1e-15) ** (
            1 if kernel in ("laplacian", "chi2") else 2
        )
        drawn = drawn | {"gamma": float(f"{drawn['gamma'] / unit:.1e}")}
    return _case(KernelSVC, drawn, replace(data, gram=traits.pairwise))


def _additive_case(drawn: dict[str, Any], fields: dict[str, Any]) -> Case:
    """It keeps its dual variables (warm_start), from which the truth is told."""
    data = _data(fields, signed=drawn["scaling"] not in ("global", None), sparse=True)
    return _case(AdditiveSVC, drawn | {"warm_start": True}, data)


def _data(fields: dict[str, Any], *, signed: bool, sparse: bool) -> Data:
    layout = fields["layout"]
    return Data(
        **fields
        | {
            "rows": fields["rows"] + fields["classes"],
            "signed": signed and fields["signed"],
            "layout": layout if sparse or layout not in SPARSE else "C",
        }
    )


def _case(machine, drawn: dict[str, Any], data: Data) -> Case:
    """Parameters that differ from the defaults, so that reproductions are short."""
    default = machine().get_params()
    told = {k: v for k, v in drawn.items() if k == "kernel" or v != default[k]}
    return Case(machine, told | {"random_state": 0}, data)
