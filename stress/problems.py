"""Hypothesis strategies: a whole case, an estimator with its parameters and data to fit it to.

The simplest value of everything stands first, since that is what hypothesis shrinks to.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np
from hypothesis import strategies as st
from sklearn.base import BaseEstimator

from stress.data import DTYPES, LAYOUTS, WEIGHTS, Data
from widemargin import AdditiveSVC, KernelSVC, PowerMean

PREAMBLE = "from stress import *"


def cosine(A, B):
    """A kernel of the user's, for dense and sparse rows; positive semi-definite."""
    inner = A @ B.T
    inner = inner.toarray() if hasattr(inner, "toarray") else inner
    lengths = [np.sqrt(np.asarray((M * M).sum(axis=1), dtype=np.float64)).ravel() for M in (A, B)]
    return np.asarray(inner, dtype=np.float64) / np.maximum(np.outer(*lengths), 1e-300) + 0.5


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


# ------------------------------------------------------------------ data


@st.composite
def data(draw, *, signed: bool, sparse: bool, gram: bool) -> Data:
    classes = draw(usually(2, 3, 4, 5, 12))
    rows = draw(chosen(*range(12), *range(12, 60, 4), 60, 80, 100, 120, 300)) + classes
    return Data(
        rows=rows,
        columns=draw(usually(2, 1, 3, 5, 20)),
        classes=classes,
        seed=draw(st.integers(0, 999)),
        noise=draw(chosen(0.3, 0.0, 1.0, 10.0)),
        copies=draw(usually(1, 2, 5, 30)),
        zeros=draw(usually(0.0, 0.5, 0.9, 1.0)),
        scale=draw(powers(-20, 15)),
        offset=draw(usually(0.0, 1e-3, 1.0, 100.0, 1e4, 1e6)),
        uneven=draw(usually(1.0, 1e-6, 1e-2, 1e2, 1e6)),
        constant=draw(usually(False, True)),
        signed=signed and draw(st.booleans()),
        steps=draw(chosen(0, 1, 4)),
        dtype=draw(usually(*DTYPES)),
        layout=draw(usually(*(LAYOUTS if sparse else LAYOUTS[:3]))),
        weights=draw(usually(*WEIGHTS)),
        gram=gram,
    )


# ------------------------------------------------------------------ estimators

TOLERANCES = (1e-3, 1e-1, 1e-2, 1e-4, 1e-5, 1e-6, 1e-8)
CLASS_WEIGHTS: tuple = (None, "balanced", {0: 0.01}, {1: 1000.0})


@st.composite
def kernel_cases(draw, **fixed) -> Case:
    """`KernelSVC`, exact or early."""
    kernels = ("rbf", "poly", "laplacian", "chi2", "sigmoid", "precomputed", cosine)
    kernel = fixed.get("kernel") or draw(chosen(*kernels))
    own = draw(
        data(
            signed=kernel != "chi2",
            sparse=kernel in ("rbf", "poly", "sigmoid", cosine),
            gram=kernel == "precomputed",
        )
    )
    # gamma in the unit of the data, or far off it
    unit = 1 / (
        own.columns * max(own.scale, 1e-15) ** (1 if kernel in ("laplacian", "chi2") else 2)
    )
    gamma = draw(st.one_of(chosen("scale", "auto"), powers(-8, 8)))
    near = draw(st.booleans())
    drawn: dict[str, Any] = {
        "kernel": kernel,
        "C": draw(powers(-6, 12)),
        "gamma": float(f"{gamma * unit:.1e}") if near and not isinstance(gamma, str) else gamma,
        "degree": draw(usually(3, 0, 1, 2, 9)) if kernel == "poly" else 3,
        "coef0": draw(usually(0.0, 1.0, -1.0, 100.0)),
        "levels": draw(usually("auto", 0, 1, 3)),
        "branching": draw(usually(4, 2, 5)),
        "early": draw(usually(False, 1, 2)),
        "multi_class": draw(chosen("ovr", "ovo")),
        "class_weight": draw(usually(*CLASS_WEIGHTS)),
        "tol": draw(usually(*TOLERANCES)),
        "max_iter": draw(chosen(100, 100, 1, 3, 1000)),
        "cache_size": draw(usually("auto", 0.001, 0.01, 1.0)),
    }
    drawn["fit_intercept"] = not drawn["early"] and draw(st.booleans())
    return _case(KernelSVC, drawn | fixed, own)


@st.composite
def additive_cases(draw, **fixed) -> Case:
    """`AdditiveSVC`; it keeps its dual variables (warm_start), from which the truth is told."""
    kernels = ("chi2", "intersection", "hellinger", "jensen_shannon", "linear", PowerMean(-2.5),
               soft_min)  # fmt: skip
    scaling = draw(usually("auto", "global", "minmax", "percentile", None))
    own = draw(data(signed=scaling in ("auto", "minmax", "percentile"), sparse=True, gram=False))
    drawn: dict[str, Any] = {
        "kernel": draw(chosen(*kernels)),
        "C": draw(powers(-6, 12)),
        "loss": draw(chosen("squared_hinge", "hinge")),
        "approximation": draw(usually("spectral", "unary", "fourier", "chebyshev", "pmsvm")),
        "rank": draw(usually("auto", 1, 3, 8, 20)),
        "n_bins": draw(usually("auto", 1, 2, 16, 300)),
        "binning": draw(usually("auto", "uniform", "log", "exact")),
        "scaling": scaling,
        "multi_class": draw(chosen("ovr", "crammer_singer")),
        "fit_intercept": draw(chosen(True, False)),
        "class_weight": draw(usually(*CLASS_WEIGHTS)),
        "C_unit": draw(usually("diagonal", "raw")),
        "tol": draw(usually(*TOLERANCES)),
        "max_iter": draw(chosen(100, 100, 1, 3, 1000)),
        "warm_start": True,
    }
    return _case(AdditiveSVC, drawn | fixed, own)


def _case(machine, drawn: dict[str, Any], own: Data) -> Case:
    """Parameters that differ from the defaults, so that reproductions are short."""
    default = machine().get_params()
    told = {
        k: v for k, v in drawn.items() if k == "kernel" or not (v is default[k] or v == default[k])
    }
    return Case(machine, told | {"random_state": 0}, own)


def cases(**fixed) -> st.SearchStrategy[Case]:
    """Of either machine."""
    return st.one_of(kernel_cases(**fixed), additive_cases(**fixed))
