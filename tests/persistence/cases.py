"""Small models of every kind, and the rows that they are fitted on."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from widemargin import (
    AdditiveSVC,
    KernelSVC,
    KernelSVR,
    NuSVC,
    NuSVR,
    OneClassSVM,
    PowerMean,
    TableEncoder,
    papers,
)

NAMES = ["petal length", "petal width", "größe", "sepal"]

# ------------------------------------------------------------------ data


PLAIN = {"multi_class": "ovr", "fit_intercept": False}


@cache
def rows(n=60, d=4, seed=0):
    return np.random.default_rng(seed).random((n, d)) ** 2


def classes(X, n_classes=3):
    """Numbers from 0 that depend on the rows, all of them in use."""
    score = np.asarray(X @ np.arange(1, X.shape[1] + 1)).ravel()
    return np.argsort(np.argsort(score, kind="stable"), kind="stable") * n_classes // X.shape[0]


@cache
def mostly_zero(n=60, d=12, seed=1):
    rng = np.random.default_rng(seed)
    return sp.csr_array(rng.random((n, d)) * (rng.random((n, d)) < 0.2))


def table(n=60, **columns):
    """A frame with numbers, some missing, and texts."""
    import pandas as pd

    rng = np.random.default_rng(5)
    age = np.where(rng.random(n) < 0.2, np.nan, np.round(rng.uniform(20, 60, n)))
    job = rng.choice(np.array(["clerk", "smith", "größe"], dtype=object), n)
    content = {"age": age, "job": job, "count": rng.integers(0, 4, n), "size": rng.random(n)}
    return pd.DataFrame(content | columns)


def encoded(X=None, machine=None, **options) -> "Case":
    """A TableEncoder before a machine."""
    X = table() if X is None else X
    machine = AdditiveSVC(random_state=0) if machine is None else machine
    return Case(make_pipeline(TableEncoder(**options), machine), X, np.arange(len(X)) % 3)


def framed(X):
    import pandas as pd

    return pd.DataFrame(X, columns=NAMES)


def lossy():
    """Two columns of numbers and one of categories between them, with gaps in two of them."""
    import pandas as pd

    X, job = rows(), np.array(["baker", "clerk", "größe", None], dtype=object)
    a = np.where(X[:, 1] < 0.1, np.nan, X[:, 0])
    return pd.DataFrame({"a": a, "job": job[(4 * X[:, 2]).astype(int)], "b": X[:, 3]})


# ------------------------------------------------------------------ kernels of the user


def product_kernel(x, y):
    """A scalar kernel of two arrays, for AdditiveSVC."""
    return x * y / (1 + x + y)


def matrix_kernel(X, Z):
    """A kernel of two matrices, for KernelSVC."""
    return rbf_kernel(X, Z, gamma=0.7)


# ------------------------------------------------------------------ models


@dataclass(frozen=True)
class Case:
    """A model to be fitted, its data, and the function that `load` has to be given, if any."""

    model: Any
    X: Any
    y: Any
    kernel: Callable | None = None

    def fit(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a sigmoid kernel, a loose tolerance
            return self.model.fit(self.X, self.y)


def _additive(*arguments, X=None, y=None, n_classes=3, **parameters) -> Case:
    X = rows() if X is None else X
    y = classes(X, n_classes) if y is None else y
    kernel = arguments[0] if arguments and callable(arguments[0]) else None
    kernel = None if isinstance(kernel, PowerMean) else kernel
    return Case(AdditiveSVC(*arguments, **{"random_state": 0, **parameters}), X, y, kernel)


def _kernel(*arguments, X=None, n_classes=3, **parameters) -> Case:
    X = rows() if X is None else X
    y = classes(X, n_classes)
    parameters = {"random_state": 0, "gamma": 1.5, "sample_size": 20, "branching": 2, **parameters}
    kernel = arguments[0] if arguments and callable(arguments[0]) else None
    return Case(KernelSVC(*arguments, **parameters), X, y, kernel)


def _paper(model) -> Case:
    return Case(model.set_params(random_state=0), rows(), classes(rows()))


def _piped(*steps, X=None) -> Case:
    X = 3 * rows() + 1 if X is None else X
    return Case(make_pipeline(*steps), X, classes(X))


def _labels(*labels):
    """The rows' classes by other names."""
    return np.asarray(labels)[classes(rows(), len(labels))]


ADDITIVE: dict[str, Callable[[], Case]] = {
    **{
        kernel: lambda kernel=kernel: _additive(kernel)
        for kernel in ("intersection", "chi2", "hellinger", "jensen_shannon", "linear")
    },
    "power mean": lambda: _additive(PowerMean(-3)),
    "power mean at -inf": lambda: _additive(PowerMean(-np.inf)),
    "crammer singer": lambda: _additive(multi_class="crammer_singer"),
    "crammer singer of two": lambda: _additive(multi_class="crammer_singer", n_classes=2),
    "chebyshev": lambda: _additive("chi2", approximation="chebyshev", rank=4, tol=0.1),
    "fourier": lambda: _additive("chi2", approximation="fourier"),
    "icd": lambda: _paper(papers.icd()),
    "pmsvm": lambda: _paper(papers.pmsvm(-8)),
    "pmsvm lut": lambda: _paper(papers.pmsvm_lut(-1, 3)),
    "user function": lambda: _additive(product_kernel),
    "float64": lambda: _additive(tol=1e-6),
    "float64 of two": lambda: _additive("chi2", tol=1e-6, n_classes=2),
    "unary of two": lambda: _additive(approximation="unary", n_classes=2),
    "40 classes": lambda: _additive(X=rows(120), n_classes=40),
    "40 classes of crammer singer": lambda: _additive(
        X=rows(120), n_classes=40, multi_class="crammer_singer"
    ),
    "texts": lambda: _additive(y=_labels("a", "nan", "zwölf")),
    "texts as objects": lambda: _additive(y=_labels("a", "inf", "zwölf").astype(object)),
    "two texts": lambda: _additive(y=_labels("no", "yes")),
    "bools": lambda: _additive(y=_labels(False, True)),
    "integers": lambda: _additive(y=_labels(-5, 0, 2**40)),
    "bytes": lambda: _additive(y=_labels(3, 200, 255).astype(np.uint8)),
    "floats": lambda: _additive(y=_labels(-1.0, 1.0)),
    "single floats": lambda: _additive(y=_labels(-1.0, 0.0, 2.0).astype(np.float32)),
    "compressed rows": lambda: _additive("chi2", X=mostly_zero()),
    "feature names": lambda: _additive(X=framed(rows()), y=classes(rows())),
    "negative values": lambda: _additive(X=rows() - 0.5, y=classes(rows())),
    "integer histogram": lambda: _additive(
        X=(400 * rows()).astype(np.int32), y=classes(rows()), scaling=None
    ),
    "other settings": lambda: _additive(
        C=3, loss="hinge", fit_intercept=False, C_unit="raw", n_bins=20, binning="floor", rank=5,
        scaling="minmax", class_weight={0: 2.0, 1: 1.0, 2: 0.5}, max_iter=500, n_jobs=2,
        warm_start=True, verbose=0, tol=0.01,
    ),
    "class weights of texts": lambda: _additive(
        y=_labels("a", "b", "c"), class_weight={"a": 1.0, "b": 2.0, "c": 3.0}
    ),
    "categories and missing values": lambda: _additive(
        X=lossy(), y=classes(rows()), missing="learn", categorical_features=["job"]
    ),
    "categories by position": lambda: _additive(
        "chi2", X=lossy(), y=classes(rows()), missing="learn", categorical_features=[np.int64(1)]
    ),
    "categories by a mask": lambda: _additive(
        X=lossy(), y=classes(rows()), missing="learn", categorical_features=[False, True, False]
    ),
    "categories only": lambda: _additive(
        X=lossy()[["job"]], y=classes(rows()), missing="learn", approximation="unary"
    ),
    "missing numbers": lambda: _additive(
        X=lossy()[["a", "b"]].to_numpy(), y=classes(rows()), missing="learn", approximation="pmsvm"
    ),
    "no categories": lambda: _additive(categorical_features=None),
    "balanced": lambda: _additive(class_weight="balanced", random_state=np.int64(7)),
}  # fmt: skip


def _numbers(*arguments, X=None, several=False, **parameters) -> Case:
    X = rows() if X is None else X
    y = np.asarray(X @ np.arange(1.0, X.shape[1] + 1)).ravel()
    parameters = {"random_state": 0, "gamma": 1.5, "sample_size": 20, "branching": 2, **parameters}
    kernel = arguments[0] if arguments and callable(arguments[0]) else None
    y = np.column_stack([y, -100 * y**2]) if several else y
    return Case(KernelSVR(*arguments, **parameters), X, y, kernel)


REGRESSION: dict[str, Callable[[], Case]] = {
    "numbers": _numbers,
    "numbers of several outputs": lambda: _numbers("poly", degree=2, several=True),
    "numbers, linear": lambda: _numbers("linear", X=mostly_zero()),
    "numbers, early": lambda: _numbers(early=1, epsilon=0.01, C=10.0),
    "one class": lambda: Case(OneClassSVM(nu=0.2, gamma=1.5), rows(), None),
    "one class, early": lambda: Case(
        OneClassSVM("poly", gamma=1.5, early=1, random_state=0, sample_size=20, branching=2),
        rows(),
        None,
    ),
    "nu, classes": lambda: Case(NuSVC(nu=0.3, gamma=1.5), rows(), rows()[:, 0] > 0.5),
    "nu, numbers": lambda: Case(NuSVR(nu=0.3, gamma=1.5), rows(), rows()[:, 0]),
    "numbers, a function": lambda: _numbers(matrix_kernel, fit_intercept=False),
}

KERNEL: dict[str, Callable[[], Case]] = {
    "rbf": lambda: _kernel(),
    "poly": lambda: _kernel("poly", degree=2, coef0=1.0),
    "sigmoid": lambda: _kernel("sigmoid", gamma=0.1),
    "laplacian": lambda: _kernel("laplacian"),
    "exponential chi2": lambda: _kernel("chi2"),
    "precomputed": lambda: Case(
        KernelSVC("precomputed"), rbf_kernel(rows(), gamma=1.5), classes(rows())
    ),
    "matrix function": lambda: _kernel(matrix_kernel),
    "matrix function of integers": lambda: _kernel(matrix_kernel, X=(4 * rows()).astype(np.int16)),
    "rbf of two": lambda: _kernel(n_classes=2),
    "rbf, scaled gamma": lambda: _kernel(gamma="scale"),
    "compressed rbf": lambda: _kernel(X=mostly_zero()),
    "compressed poly": lambda: _kernel("poly", X=mostly_zero(), coef0=0.5),
    "compressed, from dense": lambda: _kernel(X=mostly_zero().toarray()),
    **{
        f"early {how}, {kernel}": lambda how=how, kernel=kernel: _kernel(
            kernel, early=1, early_prediction=how
        )
        for how in ("routed", "sum", "bcm")
        for kernel in ("rbf", "poly")
    },
    "early, rbf with centres in feature space": lambda: _kernel(
        early=1, clustering="kernel_kmeans"
    ),
    "early, poly with centres in input space": lambda: _kernel(
        "poly", early=1, clustering="kmeans"
    ),
    "early, compressed points": lambda: _kernel(X=mostly_zero(), early=1),
    "early, compressed kernel": lambda: _kernel("poly", X=mostly_zero(), early=1),
    "early, precomputed": lambda: Case(
        KernelSVC("precomputed", early=1, random_state=0, sample_size=20, branching=2),
        rbf_kernel(rows(), gamma=1.5),
        classes(rows()),
    ),
    "early, matrix function": lambda: _kernel(matrix_kernel, early=1),
    "early of two levels": lambda: _kernel(early=1, levels=2),
    "levels": lambda: _kernel(levels=2, record_levels=True),
    "ovo": lambda: _kernel(multi_class="ovo", n_classes=4),
    "intercept": lambda: _kernel(fit_intercept=True),
    "class weights": lambda: _kernel(class_weight={0: 1.0, 1: 2.5, 2: 1.0}),
    "tight tolerance": lambda: _kernel(tol=1e-6),
    "tight tolerance, early": lambda: _kernel("poly", tol=1e-6, early=1, X=mostly_zero()),
    "ten outputs": lambda: _kernel(n_classes=10),
    "frame": lambda: Case(KernelSVC(gamma=1.0), framed(rows()), classes(rows())),
}

PIPELINES: dict[str, Callable[[], Case]] = {
    "min max": lambda: _piped(MinMaxScaler((-1, 2), clip=True), AdditiveSVC(random_state=0)),
    "max abs": lambda: _piped(MaxAbsScaler(clip=True), KernelSVC()),
    "max abs, sparse": lambda: _piped(MaxAbsScaler(), AdditiveSVC(random_state=0), X=mostly_zero()),
    "standard": lambda: _piped(StandardScaler(), KernelSVC(C=3.0)),
    "standard, without mean": lambda: _piped(
        StandardScaler(with_mean=False), KernelSVC("poly"), X=mostly_zero()
    ),
    "standard, without deviation": lambda: _piped(
        StandardScaler(with_std=False), AdditiveSVC(random_state=0)
    ),
    "standard, neither": lambda: _piped(
        StandardScaler(with_mean=False, with_std=False), AdditiveSVC(random_state=0)
    ),
    "three steps": lambda: _piped(
        StandardScaler(), MinMaxScaler(), AdditiveSVC("chi2", random_state=0)
    ),
    "alone": lambda: _piped(KernelSVC()),
    "single floats through scalers": lambda: _piped(
        MinMaxScaler(), MaxAbsScaler(), KernelSVC(), X=(3 * rows() + 1).astype(np.float32)
    ),
    "frames": lambda: Case(
        make_pipeline(StandardScaler(), AdditiveSVC(random_state=0)),
        framed(rows()),
        classes(rows()),
    ),
    "frames all the way": lambda: Case(
        make_pipeline(MinMaxScaler(), AdditiveSVC(random_state=0)).set_output(transform="pandas"),
        framed(rows()),
        classes(rows()),
    ),
}

COLUMNS: dict[str, Callable[[], Case]] = {
    "table": lambda: encoded(),
    "table, sparse output": lambda: encoded(machine=KernelSVC(gamma=1.0), sparse_output=True),
    "table, then scaled": lambda: Case(
        make_pipeline(
            TableEncoder(["job", "count"], scaling=None, sparse_output=False),
            MinMaxScaler(),
            KernelSVC(gamma=1.0),
        ),
        table(),
        np.arange(60) % 2,
    ),
    "table with dates": lambda: encoded(
        table(when=np.datetime64("2026-11-18") + np.arange(60), text=np.arange(60).astype(str)),
        categorical_features=[1],
        date_features=["when"],
    ),
    "table of an array": lambda: encoded(rows(), categorical_features=[True] + 3 * [False]),
    "table in single precision": lambda: encoded(rows().astype(np.float32)),
    "table through frames": lambda: Case(
        make_pipeline(TableEncoder(sparse_output=False), AdditiveSVC(random_state=0)).set_output(
            transform="pandas"
        ),
        table(),
        np.arange(60) % 3,
    ),
}

SCALERS = {
    "MinMaxScaler": lambda: MinMaxScaler((0.5, 2)),
    "MaxAbsScaler": lambda: MaxAbsScaler(),
    "StandardScaler": lambda: StandardScaler(),
    "StandardScaler, copying nothing": lambda: StandardScaler(copy=False, with_std=False),
}

CASES = {**ADDITIVE, **KERNEL, **REGRESSION, **PIPELINES, **COLUMNS}


@cache
def fitted(name: str) -> tuple[Any, Case]:
    case = CASES[name]()
    return case.fit(), case
