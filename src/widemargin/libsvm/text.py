"""Parse the model files of LIBSVM and LIBLINEAR, checking every byte; write LIBSVM's."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from widemargin.budget import Budget
from widemargin.data.svmlight import read_svmlight
from widemargin.files import text_output

_SHOWN = 40  # characters of a bad value in a message
_LARGEST = 2**31 - 1


class Head:
    """The lines before the model's numbers, each of the ``known`` names at most once.

    They end with the line ``last``, which must occur.
    """

    def __init__(self, text: bytes, last: str, known: Sequence[str], path: str):
        self.path = path
        self._values: dict[str, list[bytes]] = {}
        begin = 0
        while True:
            end = text.find(b"\n", begin)
            name, *values = text[begin : end if end >= 0 else len(text)].split() or [b""]
            word = name.decode(errors="replace")
            if end < 0:
                raise ValueError(f"{path!r}: the model ends before the line {last!r}.")
            begin = end + 1
            if word == last and not values:
                break
            if word not in known or word in self._values:
                raise ValueError(
                    f"{path!r}: a line begins with {word[:_SHOWN]!r}, which is not one of "
                    f"{', '.join(known)}, or comes twice."
                )
            self._values[word] = values
        self.length = begin

    def has(self, name: str) -> bool:
        return name in self._values

    def fault(self, name: str, what: str) -> ValueError:
        shown = b" ".join(self._values.get(name, [b"nothing"]))[:_SHOWN].decode(errors="replace")
        return ValueError(f"{self.path!r}: {name} must be {what}, not {shown!r}.")

    def word(self, name: str) -> str:
        values = self._values.get(name, [])
        if len(values) != 1:
            raise self.fault(name, "one word")
        return values[0].decode(errors="replace")

    def numbers(self, name: str, n: int) -> np.ndarray:
        """Return n finite numbers."""
        numbers = finite(self._values.get(name, []))
        if numbers is None or len(numbers) != n:
            raise self.fault(name, f"{n} finite number{'s' * (n != 1)}")
        return numbers

    def number(self, name: str) -> float:
        return float(self.numbers(name, 1)[0])

    def integers(self, name: str, n: int, low: int = -_LARGEST - 1) -> np.ndarray:
        """Return n integers of 32 bits."""
        numbers = self.numbers(name, n)
        if np.any(numbers != np.round(numbers)) or np.any((numbers < low) | (numbers > _LARGEST)):
            raise self.fault(name, f"whole numbers from {low} to {_LARGEST}")
        return numbers.astype(np.int64)

    def integer(self, name: str, low: int) -> int:
        return int(self.integers(name, 1, low)[0])

    def labels(self) -> np.ndarray:
        """Return two or more different labels, in the order of the file."""
        n_classes = self.integer("nr_class", 0)
        if n_classes < 2:
            raise self.fault("nr_class", "2 or more")
        labels = self.integers("label", n_classes)
        if len(np.unique(labels)) < n_classes:
            raise self.fault("label", "different whole numbers")
        return labels


def finite(words: Sequence[bytes]) -> np.ndarray | None:
    """Parse words as numbers; return None if one is not a finite number."""
    if any(b"_" in word for word in words):  # Python allows 1_0
        return None
    try:
        numbers = np.array([float(word) for word in words])
    except ValueError:
        return None
    return numbers if np.all(np.isfinite(numbers)) else None


_KERNELS = ("linear", "polynomial", "rbf", "sigmoid", "precomputed")
_PARAMETERS = {"polynomial": ("degree", "gamma", "coef0"), "rbf": ("gamma",)}
_PARAMETERS |= {"sigmoid": ("gamma", "coef0")}
_NAMES = (
    *("svm_type", "kernel_type", "degree", "gamma", "coef0", "nr_class", "total_sv", "rho"),
    *("label", "probA", "probB", "nr_sv", "prob_density_marks"),
)
_OTHERS = {
    "one_class": "one-class SVM",
    "epsilon_svr": "regression (epsilon-SVR)",
    "nu_svr": "regression (nu-SVR)",
}
_DIGITS = {"float32": 9, "float64": 17}  # enough digits to distinguish any two values
_AROUND = 4  # memory for parsing / size of the text


@dataclass(frozen=True)
class SvmText:
    """The contents of a model file.

    Pairs of classes are in the order of combinations of ``labels``; a positive value means the
    first of a pair.  A support vector has a coefficient for each of the other classes.
    """

    kernel: str  # LIBSVM's name
    parameters: dict[str, float]
    labels: np.ndarray
    rho: np.ndarray  # per pair
    n_support: np.ndarray  # per class
    coef: np.ndarray  # (n_support.sum(), n_classes - 1)
    vectors: sp.csr_array
    sigmoids: tuple[np.ndarray, np.ndarray] | None = None  # probA and probB, per pair
    svm_type: str = "c_svc"
    zero_based: bool = False

    def write(self, path: str | os.PathLike) -> None:
        """Write the file atomically."""
        head: dict[str, Iterable] = {
            "svm_type": [self.svm_type],
            "kernel_type": [self.kernel],
            **{name: _numbers([value]) for name, value in self.parameters.items()},
            "nr_class": [len(self.labels)],
            "total_sv": [len(self.coef)],
            "rho": _numbers(self.rho),
            "label": self.labels,
        }
        if self.sigmoids is not None:
            head |= dict(zip(("probA", "probB"), map(_numbers, self.sigmoids), strict=True))
        head["nr_sv"] = self.n_support
        with text_output(path) as file:
            for name, values in head.items():
                print(name, *values, file=file)
            print("SV", file=file)
            for line in _vector_lines(self.coef, self.vectors):
                print(*line, file=file)


def _vector_lines(coef: np.ndarray, vectors: sp.csr_array) -> Iterator[list[str]]:
    digits = _DIGITS[vectors.dtype.name]
    for row, (begin, end) in zip(coef, pairwise(vectors.indptr), strict=True):
        values = _numbers(vectors.data[begin:end], digits)
        entries = zip(vectors.indices[begin:end], values, strict=True)
        yield _numbers(row) + [f"{j + 1}:{value}" for j, value in entries]


def _numbers(values, digits: int = 17) -> list[str]:
    return [f"{value:.{digits}g}" for value in values]


# ------------------------------------------------------------------ reading


def parse_svm(text: bytes, path: str, budget: Budget) -> SvmText:
    """Parse a model file; refuse models that are not classifiers."""
    budget.hold(_AROUND * len(text), "its text takes")
    head = Head(text, "SV", _NAMES, path)
    kind = head.word("svm_type")
    if kind in _OTHERS:
        raise ValueError(f"{path!r}: a model of {_OTHERS[kind]}; only classifiers are supported.")
    if kind not in ("c_svc", "nu_svc"):
        raise head.fault("svm_type", f"one of c_svc, nu_svc, {', '.join(_OTHERS)}")
    kernel = head.word("kernel_type")
    if kernel not in _KERNELS:
        raise head.fault("kernel_type", f"one of {', '.join(_KERNELS)}")
    parameters = {name: head.number(name) for name in _PARAMETERS.get(kernel, ())}
    if parameters.get("gamma", 1.0) <= 0:
        raise head.fault("gamma", "positive")
    if "degree" in parameters:
        parameters["degree"] = head.integer("degree", 1)
    labels = head.labels()
    n_pairs = len(labels) * (len(labels) - 1) // 2
    n_support = head.integers("nr_sv", len(labels), 0)
    if head.integer("total_sv", 0) != n_support.sum():
        raise head.fault("total_sv", f"the sum of nr_sv, {n_support.sum()}")
    sigmoids = None
    if head.has("probA") or head.has("probB"):
        sigmoids = head.numbers("probA", n_pairs), head.numbers("probB", n_pairs)
    rho = head.numbers("rho", n_pairs)
    n = int(n_support.sum())
    coef, vectors, zero_based = _support(text[head.length :], n, len(labels) - 1, path, budget)
    if kernel == "precomputed":
        vectors, zero_based = _picking(vectors, zero_based, path), True
    of_file = (kernel, parameters, labels, rho, n_support, coef, vectors)
    return SvmText(*of_file, sigmoids, kind, zero_based)


def _support(
    text: bytes, n: int, n_coef: int, path: str, budget: Budget
) -> tuple[np.ndarray, sp.csr_array, bool]:
    """Parse n lines of coefficients and vectors; the core parses the svmlight part."""
    lines = text.splitlines()
    if len(lines) != n or n == 0:
        raise ValueError(
            f"{path!r}: {len(lines)} support vectors, but its head says {n}. It may be truncated."
        )
    budget.check(8 * n * n_coef, "its coefficients take")
    coef, rows = np.empty((n, n_coef)), []
    for k, line in enumerate(lines):
        words = line.split(None, n_coef)
        numbers = finite(words[:n_coef])
        if numbers is None or len(numbers) != n_coef:
            raise ValueError(
                f"{path!r}: support vector {k + 1} must begin with {n_coef} finite coefficients."
            )
        coef[k] = numbers
        rows.append(b"0 " + words[n_coef] if len(words) > n_coef else b"0")
    name = f"{path!r}, support vectors"
    read = read_svmlight(io.BytesIO(b"\n".join(rows)), name=name, max_bytes=budget)
    X = sp.csr_array(read.X)
    if X.shape[0] != n or X.shape[1] > _LARGEST or read.qid is not None:
        raise ValueError(f"{path!r}: its support vectors are damaged.")
    return coef, X, bool(read.zero_based)


def _picking(vectors: sp.csr_array, zero_based: bool, path: str) -> sp.csr_array:
    """Return unit vectors that select their training row's value from a row of kernel values.

    A file has ``0:i`` for training row i, and value i of a new row is the kernel value with it;
    value 0 is a serial number and is ignored.
    """
    number = vectors.data
    single = zero_based and vectors.shape[1] == 1 and len(number) == vectors.shape[0]
    if not (single and np.all((number == np.floor(number)) & (number >= 1) & (number < _LARGEST))):
        raise ValueError(
            f"{path!r}: of a precomputed kernel every support vector must be 0:i, with the number "
            "of a row of the training data."
        )
    entries = (np.ones(len(number)), number.astype(np.int32), np.arange(len(number) + 1))
    return sp.csr_array(entries, shape=(len(number), int(number.max()) + 1))


_LOGISTIC = ("L2R_LR", "L2R_LR_DUAL", "L1R_LR")
_MARGINS = ("L2R_L2LOSS_SVC", "L2R_L2LOSS_SVC_DUAL", "L2R_L1LOSS_SVC_DUAL", "L1R_L2LOSS_SVC")
_TOGETHER = "MCSVM_CS"  # has weights for both of two classes
_REGRESSION = ("L2R_L2LOSS_SVR", "L2R_L2LOSS_SVR_DUAL", "L2R_L1LOSS_SVR_DUAL")
_LINEAR_NAMES = ("solver_type", "nr_class", "label", "nr_feature", "bias", "rho")
_LINEAR_AROUND = 24  # memory for parsing / size of the text: a number has two characters or more


@dataclass(frozen=True)
class LinearText:
    """The contents of a model file; with two classes a positive value means the first."""

    solver: str
    labels: np.ndarray
    weights: np.ndarray  # (n_features, n_values)
    intercept: np.ndarray  # (n_values,)

    @property
    def is_logistic(self) -> bool:
        return self.solver in _LOGISTIC


def parse_linear(text: bytes, path: str, budget: Budget) -> LinearText:
    """Parse a model file; refuse models that are not classifiers."""
    budget.hold(_LINEAR_AROUND * len(text), "its text takes")
    head = Head(text, "w", _LINEAR_NAMES, path)
    solver = head.word("solver_type")
    if solver in (*_REGRESSION, "ONECLASS_SVM"):
        raise ValueError(f"{path!r}: a model of {solver}; only classifiers are supported.")
    if solver not in (*_LOGISTIC, *_MARGINS, _TOGETHER):
        raise head.fault("solver_type", "one of LIBLINEAR's classifiers")
    labels, n_features = head.labels(), head.integer("nr_feature", 1)
    bias = head.number("bias")
    n_values = 1 if len(labels) == 2 and solver != _TOGETHER else len(labels)
    numbers = finite(text[head.length :].split())
    n_rows = n_features + (bias >= 0)
    if numbers is None or len(numbers) != n_rows * n_values:
        raise ValueError(
            f"{path!r}: after w there must be {n_rows} x {n_values} finite numbers. It may be "
            "truncated."
        )
    weights = numbers.reshape(n_rows, n_values)
    intercept = bias * weights[-1] if bias >= 0 else np.zeros(n_values)
    return LinearText(solver, labels, weights[:n_features], intercept)
