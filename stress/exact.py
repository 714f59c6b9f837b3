"""`python -m stress.exact --cases 10000 --seed 0`: gaps of small models against exact arithmetic.

Random problems for `KernelSVC`: whole numbers and others up to a thousand, all kernels, C to 1e6,
gamma from 1e-30 to 1e30, weights, with and without an intercept, fits that are cut short and fits
that converge.  Objectives come from the model's variables: in rationals for linear and polynomial
kernels and precomputed values, in long doubles for others.  Exits 1 if a claimed gap is below the
true one.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np

from stress import truth
from widemargin import KernelSVC
from widemargin.kernel.linear import LinearRows

KERNELS = ("poly", "poly", "linear", "rbf", "rbf", "laplacian", "chi2", "precomputed")
SHARE = 1e-9  # of itself by which a claim may be below the truth: it is a double
UNIT = float(np.finfo(truth.REAL).eps)
RATIONAL = ("linear", "poly", "precomputed")
rational = np.frompyfunc(Fraction, 1, 1)


@dataclass(frozen=True)
class Case:
    """One problem."""

    parameters: dict[str, Any]
    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None

    @classmethod
    def drawn(cls, seed: int) -> Case:
        rng = np.random.default_rng(seed)
        kernel = str(rng.choice(KERNELS))
        n, classes = int(rng.choice([4, 6, 10, 16, 24])), int(rng.choice([2, 2, 2, 3]))
        X = _values(rng, n, int(rng.choice([1, 2, 3, 5])))
        parameters: dict[str, Any] = {
            "C": 10.0 ** rng.integers(-3, 7),
            "tol": float(rng.choice([1e-3, 1e-3, 1e-6, 1e-9])),
            "max_iter": int(rng.choice([1, 5, 50, 2000])),
            "fit_intercept": bool(rng.random() < 0.5),
            "multi_class": str(rng.choice(["ovr", "ovo"])),
            "random_state": 0,
        }
        if kernel == "chi2":
            X = np.abs(X)
        if kernel == "precomputed":
            X = X @ X.T
        if kernel == "poly":
            parameters |= {"degree": int(rng.integers(1, 6)), "coef0": float(rng.choice([0, 1, 9]))}
        if kernel in ("poly", "rbf", "laplacian", "chi2"):
            far = 10.0 ** float(rng.integers(-30, 31))
            near = 10.0 ** float(rng.integers(-8, 3))
            parameters["gamma"] = [near, near, "scale", far][rng.integers(4)]
        kinds = [None, None, rng.integers(1, 5, n) * 1.0, 10.0 ** rng.integers(-3, 4, n)]
        y = np.arange(n) % classes
        return cls(parameters | {"kernel": kernel}, X, y, kinds[rng.integers(4)])


def _values(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    size = 10.0 ** rng.integers(-2, 4)
    centre = rng.choice([0.0, 0.0, 1.0, 300.0])
    values = centre + size * rng.normal(size=(n, d))
    values = np.clip(np.round(values) if rng.random() < 0.5 else values, -1e3, 1e3)
    if rng.random() < 0.2:  # copies
        values[n // 2 :] = values[: n - n // 2]
    return values.astype(np.float32 if rng.random() < 0.2 else np.float64)


@dataclass(frozen=True)
class Gaps:
    """Of the worst output, relative to its primal objective."""

    claimed: float
    true: float

    @property
    def is_true(self) -> bool:
        return not self.claimed * (1 + SHARE) < self.true


def gaps(case: Case) -> Gaps | None:
    """None where a fit is refused, or has no gap."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = KernelSVC(**case.parameters).fit(case.X, case.y, case.weight)
    except ValueError:
        return None
    if np.isnan(model.duality_gap_):
        return None
    return Gaps(model.duality_gap_, true_gap(model, case))


def true_gap(model: KernelSVC, case: Case) -> float:
    """What the variables and the intercept of the model prove, at least."""
    weight = truth.weights(model, case.y, case.weight)
    target = truth.targets(case.y, model.multi_class)
    coef = np.zeros(target.shape)
    coef[model.support_] = model.model_.coef.dense()
    exact = model.kernel in RATIONAL
    K = _rational_kernel(model, case.X, weight) if exact else truth.kernel_matrix(model, case.X)
    as_real = rational if exact else (lambda values: np.asarray(values).astype(truth.REAL))
    free = model.fit_intercept and model.kernel != "linear"
    c = as_real(model.C) * as_real(weight)
    offset = as_real(model.model_.intercept if free else np.zeros(target.shape[1]))
    worst = 0.0
    for k, t in enumerate(target.T):
        rows = np.flatnonzero(t)
        own = (K[np.ix_(rows, rows)], t[rows], as_real(coef[rows, k]), c[rows])
        worst = max(worst, _relative_gap(*own, offset[k], free=free, exact=exact))
    return worst


def _relative_gap(K, t, b, c, offset, *, free: bool, exact: bool) -> float:
    own = K @ b
    short = 1 - t * (own + offset)
    loss = np.array([c_i * max(s, 0) for c_i, s in zip(c, short, strict=True)])
    primal = b @ own / 2 + loss.sum()
    gap = (loss - b * (t - own - offset)).sum()
    if free:  # at the optimum the intercept is at most 1 + |w| max |x|
        reach = 2 * primal * max(np.diag(K))
        reach = isqrt(int(reach)) if exact else np.sqrt(max(reach, 0))
        gap += abs(b.sum()) * (1 + abs(offset) + reach)
    if not exact:  # what long doubles have rounded
        size = 1 + np.abs(K) @ np.abs(b) + abs(offset)
        gap -= 64 * UNIT * (size * (c + np.abs(b))).sum()
    return float(gap / primal) if primal > 0 else 0.0


def _rational_kernel(model: KernelSVC, values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    X = rational(values.astype(np.float64))
    if model.kernel == "precomputed":
        return X
    inner = X @ X.T
    if model.kernel == "linear":  # its intercept is a feature: a constant, as large as a mean row
        return inner + Fraction(_constant(values, weight)) ** 2 if model.fit_intercept else inner
    inner = Fraction(model.gamma_) * inner + Fraction(model.coef0)
    return inner**model.degree


def _constant(X: np.ndarray, weight: np.ndarray) -> float:
    """As the machine rounds it."""
    diagonal = LinearRows.of(X).diagonal()
    return (float((diagonal * weight).sum() / weight.sum()) or 1.0) ** 0.5


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m stress.exact", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    told = parser.parse_args()
    counts, small = Counter[str](), 0
    for seed in range(told.seed, told.seed + told.cases):
        case = Case.drawn(seed)
        found = gaps(case)
        counts["refused" if found is None else case.parameters["kernel"]] += 1
        if found is not None and not found.is_true:
            small += 1
            print(f"{seed}: claimed {found.claimed:.3g}, true {found.true:.3g}: {case.parameters}")
    print(dict(counts), f"{small} of {told.cases} claims are too small")
    return bool(small)


if __name__ == "__main__":
    sys.exit(main())
